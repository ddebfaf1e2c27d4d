//! The constant answerer for clients that are not the bench's own: `answerer ADDRESS CONNECTIONS`
//! answers at ADDRESS, which is HOST:PORT or the path of a Unix socket, on as many threads as there
//! are cores, until the connections have ended. Before them one comes alone, as `pgbench`'s first
//! does.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use throng_lab::bench::answerer::{answer_others, bound};
use throng_lab::load::url::Address;

#[derive(Parser)]
struct Cli {
    address: String,
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,
}

fn main() -> ExitCode {
    let Cli {
        address,
        connections,
    } = Cli::parse();
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let address = address
        .parse()
        .map_or_else(|_| Address::Unix(PathBuf::from(address)), Address::Tcp);
    let answered = bound(&address).and_then(|listener| {
        println!("listening");
        answer_others(&listener, connections as usize, cores)
    });
    match answered {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("answerer: {e}");
            ExitCode::FAILURE
        }
    }
}
