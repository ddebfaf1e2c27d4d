//! The laboratory without the server: builds in seconds, runs every case that needs no server.

use std::process::ExitCode;

use clap::Parser;
use throng_lab::cli::{self, Lab};

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    lab: Lab,
}

fn main() -> ExitCode {
    cli::run(&Cli::parse().lab)
}
