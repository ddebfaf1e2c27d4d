//! What the command line's definition says by itself: completions for shells, manual pages.

use std::io::{self, Write};

use clap::CommandFactory;

use crate::config::{Cli, Completions, Man};

const NAME: &str = "throng";

/// Prints the completions to standard output.
pub fn completions(args: &Completions) -> io::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), NAME, &mut script);
    io::stdout().write_all(&script)
}

/// Prints `throng.1`, or writes it and a page for each subcommand.
pub fn man(args: &Man) -> io::Result<()> {
    match &args.out {
        None => clap_mangen::Man::new(Cli::command()).render(&mut io::stdout()),
        Some(directory) => {
            std::fs::create_dir_all(directory)?;
            clap_mangen::generate_to(Cli::command(), directory)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subcommand_has_a_page() {
        let directory = tempfile::tempdir().expect("a directory");
        let out = Some(directory.path().to_owned());
        man(&Man { out }).expect("pages are written");
        for command in Cli::command().get_subcommands() {
            let page = directory
                .path()
                .join(format!("throng-{}.1", command.get_name()));
            let text = std::fs::read_to_string(&page).expect("a page");
            assert!(text.contains(".SH NAME"), "{}", page.display());
        }
    }
}
