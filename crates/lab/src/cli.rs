//! The command line: `throng lab list` and `throng lab CASE`.
//!
//! It lives here and not in the binary, so that the laboratory can be built and tried in seconds
//! (`cargo run --release -p throng-lab --example lab -- list`).

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use crate::case::{self, ALL};
use crate::output::{json, writable};
use crate::runner::{self, Wishes};
use crate::{Error, Progress, Result, interrupt, print, report};

/// The most clients that can be asked for: each is a thread or a connection.
const MOST_CLIENTS: usize = 100_000;
const LONGEST_TURN: f64 = 3600.0;

#[derive(Args, Debug)]
pub struct Lab {
    /// A case, or `list`.
    #[arg(value_name = "CASE")]
    pub case: String,
    /// Numbers of clients to measure, such as 1,2,8 [default: the case's own].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub clients: Vec<usize>,
    /// Seconds of each turn [default: what makes the whole run about a minute].
    #[arg(long, value_name = "N")]
    pub seconds: Option<f64>,
    /// How often each variant is measured with each number of clients [default: the case's own,
    /// mostly 5].
    #[arg(long, value_name = "N")]
    pub rounds: Option<usize>,
    /// Variants to compare [default: all].
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub variants: Vec<String>,
    /// Print the findings as JSON.
    #[arg(long)]
    pub json: bool,
    /// Write the findings as one HTML page, with plots and flame graphs.
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
}

/// Runs the command. What is found goes to standard output, everything else to standard error; the
/// status is 2 where the command line asks for what is not there, 1 where the experiment failed.
pub fn run(args: &Lab) -> ExitCode {
    match obey(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("throng lab: {e}");
            ExitCode::from(e.status())
        }
    }
}

fn obey(args: &Lab) -> Result<()> {
    if args.case == "list" {
        print!("{}", print::list(ALL));
        return Ok(());
    }
    let case = case::named(&args.case).ok_or_else(|| {
        let known: Vec<&str> = ALL.iter().map(|case| case.name()).collect();
        Error::usage(format!(
            "there is no case \"{}\"; there are {}",
            args.case,
            known.join(", ")
        ))
    })?;
    let wishes = wishes(args)?;
    if let Some(path) = &args.report {
        writable(path)?;
    }
    eprint!("{}", print::about(case));
    let scratch = tempfile::Builder::new().prefix("throng-lab-").tempdir()?;
    interrupt::clears(scratch.path().to_owned())?;
    let progress = Progress::new();
    let found = runner::run(case, &wishes, scratch.path(), &progress)?;
    progress.clear();
    if let Some(path) = &args.report {
        std::fs::write(path, report::findings(&found))
            .map_err(|e| Error::from(e).during(path.display()))?;
        eprintln!("The report is in {}.", path.display());
    }
    if args.json {
        println!("{}", json(&found)?);
    } else {
        print!("{}", print::findings(&found));
    }
    Ok(())
}

fn wishes(args: &Lab) -> Result<Wishes> {
    if let Some(n) = (args.clients.iter()).find(|n| **n == 0 || **n > MOST_CLIENTS) {
        let message = format!("--clients {n}: expected 1 to {MOST_CLIENTS}");
        return Err(Error::usage(message));
    }
    let turn = match args.seconds {
        Some(s) if s > 0.0 && s <= LONGEST_TURN => Some(Duration::from_secs_f64(s)),
        Some(s) => {
            let message = format!("--seconds {s}: expected more than 0, at most {LONGEST_TURN}");
            return Err(Error::usage(message));
        }
        None => None,
    };
    if args.rounds == Some(0) {
        return Err(Error::usage("--rounds 0: expected at least 1"));
    }
    Ok(Wishes {
        clients: args.clients.clone(),
        turn,
        rounds: args.rounds,
        variants: args.variants.clone(),
        throng: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        lab: Lab,
    }

    fn parsed(line: &str) -> Lab {
        let words = std::iter::once("lab").chain(line.split(' '));
        Cli::try_parse_from(words).expect("understood").lab
    }

    #[test]
    fn what_is_not_there_is_the_users_mistake() {
        for (line, told) in [
            (
                "nonsense",
                "there is no case \"nonsense\"; there are atomics",
            ),
            (
                "atomics --variants cas,nonsense",
                "atomics has no variant \"nonsense\"; it has cas, add",
            ),
            ("atomics --clients 0", "--clients 0"),
            ("atomics --clients 1,1000000", "--clients 1000000"),
            ("atomics --seconds 0", "--seconds 0"),
            ("atomics --seconds nan", "--seconds NaN"),
            ("atomics --rounds 0", "--rounds 0"),
            (
                "atomics --report /nowhere/r.html",
                "--report /nowhere/r.html: No such file",
            ),
        ] {
            let e = obey(&parsed(line)).expect_err(line);
            assert_eq!(e.status(), 2, "{line}: {e}");
            assert!(e.to_string().contains(told), "{line}: {e}");
        }
        for line in ["lab", "lab atomics --clients x", "lab atomics --unknown"] {
            assert!(Cli::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }

    #[test]
    fn a_run_finds_what_it_was_asked_for() {
        let dir = tempfile::tempdir().expect("a directory");
        let report = dir.path().join("r.html");
        let line = format!(
            "atomics --variants add,cas --clients 2,1,2 --seconds 0.01 --rounds 3 --json --report {}",
            report.display()
        );
        let args = parsed(&line);
        let case = case::named(&args.case).expect("a case");
        let wishes = wishes(&args).expect("sound");
        let found = runner::run(case, &wishes, dir.path(), &Progress::new()).expect("it ran");
        let names: Vec<&str> = found.variants.iter().map(|v| v.name).collect();
        assert_eq!(names, ["cas", "add"]);
        for variant in &found.variants {
            let clients: Vec<usize> = variant.points.iter().map(|p| p.clients).collect();
            assert_eq!(clients, [1, 2]);
            assert!(
                variant
                    .points
                    .iter()
                    .all(|p| p.throughput.rounds.len() == 3)
            );
        }
        assert_eq!(found.verdicts.len(), 1);
        let json: serde_json::Value =
            serde_json::from_str(&json(&found).expect("JSON")).expect("JSON");
        assert_eq!(json["variants"][1]["points"][0]["clients"], 1);
        assert!(json["verdicts"][0]["ratio"]["median"].is_number());
        let text = print::findings(&found);
        assert!(
            text.contains("Rule: ") && text.contains("no fit: "),
            "{text}"
        );
    }
}
