//! The `throng` command.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use throng_observe::heap::Counting;
use throng_server::config::{Cli, Command, Config};
use throng_server::log::{Entries, Lost};
use throng_server::{check, manual, serve, standby};
use throng_types::{Error, Result};
use tracing_subscriber::EnvFilter;

#[global_allocator]
static ALLOCATOR: Counting<mimalloc::MiMalloc> = Counting(mimalloc::MiMalloc);

/// Of the server's log.
static LOST: Lost = Lost::none();

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(|| Entries {
            to: io::stderr(),
            lost: &LOST,
        })
        .with_env_filter(
            EnvFilter::try_from_env("THRONG_LOG").unwrap_or_else(|_| EnvFilter::new("info")),
        )
        .init();
    let ended = match Cli::parse().command {
        Command::Serve(args) => Config::of(&args)
            .and_then(serve::run)
            .map(|()| ExitCode::SUCCESS),
        Command::Promote(args) => standby::promote(&args.data).map(|()| ExitCode::SUCCESS),
        Command::Check(args) => check::run(&args),
        Command::Lab(args) => Ok(throng_lab::cli::run(&args)),
        Command::Profile(args) => Ok(throng_lab::profile::command::run(&args)),
        Command::Bench(args) => Ok(throng_lab::bench::cli::run(&args)),
        Command::Completions(args) => printed(manual::completions(&args)),
        Command::Man(args) => printed(manual::man(&args)),
    };
    ended.unwrap_or_else(|e| {
        // Where standard error takes nothing, the exit status tells it alone.
        let _ = tell(&e);
        ExitCode::FAILURE
    })
}

fn printed(outcome: io::Result<()>) -> Result<ExitCode> {
    outcome?;
    Ok(ExitCode::SUCCESS)
}

fn tell(e: &Error) -> io::Result<()> {
    let mut to = io::stderr().lock();
    writeln!(to, "throng: {e}")?;
    for (label, text) in [("detail", &e.fields().detail), ("hint", &e.fields().hint)] {
        if let Some(text) = text {
            writeln!(to, "{label}: {text}")?;
        }
    }
    Ok(())
}
