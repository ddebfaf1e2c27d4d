//! The constant answerer for clients that are not the bench's own: `answerer PATH CONNECTIONS` answers at the Unix socket PATH,
//! on as many threads as there are cores, until the connections have ended. Before them one comes alone, as `pgbench`'s first does.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use throng_lab::bench::answerer::answer_at;

#[derive(Parser)]
struct Cli {
    path: PathBuf,
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,
}

fn main() -> ExitCode {
    let Cli { path, connections } = Cli::parse();
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    match answer_at(&path, connections as usize, cores) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("answerer: {e}");
            ExitCode::FAILURE
        }
    }
}
