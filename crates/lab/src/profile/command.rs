//! `throng profile`: where a running server spends its time.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::{HERTZ, Mode, Recorder, Sampled, draw};
use crate::html::{self, escape};
use crate::numbers::{duration, percent};
use crate::output::{json, writable};
use crate::{Error, Progress, Result};

/// Structures that a line of their own is worth: what it is called, and parts of the names of its
/// functions.
const STRUCTURES: &[(&str, &[&str])] = &[
    ("spinlocks", &["throng_sync::spin"]),
    ("latches", &["throng_sync::latch"]),
    ("frames and pins", &["throng_buffer::frames::frame"]),
    (
        "snapshots",
        &[
            "throng_txn::snapshot",
            "throng_txn::session::live",
            "throng_txn::clock",
        ],
    ),
    ("locks", &["throng_txn::lock"]),
    ("log insertion", &["throng_wal::buffer", "throng_wal::ring"]),
    (
        "log flushing",
        &["throng_wal::flusher", "throng_wal::writer"],
    ),
    ("extension", &["throng_buffer::pool::extend"]),
    (
        "eviction and writing",
        &["throng_buffer::pool::evict", "throng_buffer::pool::write"],
    ),
    ("B-trees", &["throng_access::btree"]),
    ("heaps", &["throng_access::heap"]),
    ("execution", &["throng_exec::"]),
    ("analytics", &["throng_analytics::"]),
    ("protocol", &["throng_server::net"]),
];

const LONGEST: f64 = 3600.0;

#[derive(Args, Debug)]
#[group(skip)]
pub struct Profile {
    /// The process to look at.
    #[arg(long, value_name = "PID", required_unless_present = "data")]
    pub pid: Option<u32>,
    /// Look at the server of this data directory.
    #[arg(long, value_name = "DIR", conflicts_with = "pid")]
    pub data: Option<PathBuf>,
    /// How long to look.
    #[arg(long, value_name = "N", default_value_t = 10.0)]
    pub seconds: f64,
    /// Look at the time off the cores instead: where threads wait.
    #[arg(long)]
    pub off_cpu: bool,
    /// Print what was found as JSON.
    #[arg(long)]
    pub json: bool,
    /// Write a page with the flame graph.
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
}

#[derive(Serialize)]
struct Found {
    pid: u32,
    seconds: f64,
    /// Shares of stacks that pass through each structure; one stack may pass through several.
    structures: Vec<Share>,
    #[serde(flatten)]
    sampled: Sampled,
}

#[derive(Serialize)]
struct Share {
    structure: &'static str,
    share: f64,
}

/// Runs the command; the status is as that of `throng lab`.
pub fn run(args: &Profile) -> ExitCode {
    match obey(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("throng profile: {e}");
            ExitCode::from(e.status())
        }
    }
}

fn obey(args: &Profile) -> Result<()> {
    if !(args.seconds > 0.0 && args.seconds <= LONGEST) {
        let message = format!(
            "--seconds {}: expected more than 0, at most {LONGEST}",
            args.seconds
        );
        return Err(Error::usage(message));
    }
    let pid = pid(args)?;
    if let Some(path) = &args.report {
        writable(path)?;
    }
    let found = look(pid, args)?;
    if let Some(path) = &args.report {
        std::fs::write(path, page(&found)).map_err(|e| Error::from(e).during(path.display()))?;
        eprintln!("The report is in {}.", path.display());
    }
    if args.json {
        println!("{}", json(&found)?);
    } else {
        print!("{}", text(&found));
    }
    Ok(())
}

fn pid(args: &Profile) -> Result<u32> {
    let pid = match (&args.pid, &args.data) {
        (Some(pid), _) => *pid,
        (None, Some(data)) => throng_disk::RealDisk::holder(data)
            .map_err(|e| Error::usage(format!("--data {}: {e}", data.display())))?
            .ok_or_else(|| Error::usage(format!("no server uses {}", data.display())))?,
        (None, None) => return Err(Error::usage("--pid or --data says whom to look at")),
    };
    if std::path::Path::new(&format!("/proc/{pid}/task")).is_dir() {
        Ok(pid)
    } else {
        Err(Error::usage(format!("there is no process {pid}")))
    }
}

fn look(pid: u32, args: &Profile) -> Result<Found> {
    let mode = match args.off_cpu {
        true => Mode::OffCpu,
        false => Mode::OnCpu { hertz: HERTZ },
    };
    let progress = Progress::new();
    let recorder = Recorder::start(&[pid], mode)?;
    progress.say(format_args!(
        "looking at process {pid} for {} s",
        args.seconds
    ));
    std::thread::sleep(Duration::from_secs_f64(args.seconds));
    let profile = recorder.stop()?;
    progress.clear();
    let structures = (STRUCTURES.iter())
        .filter_map(|(structure, functions)| {
            let share = profile.share(functions).filter(|share| *share > 0.0)?;
            Some(Share { structure, share })
        })
        .collect();
    Ok(Found {
        pid,
        seconds: args.seconds,
        structures,
        sampled: Sampled::of(profile, &[]),
    })
}

fn total(found: &Found) -> String {
    let profile = &found.sampled.profile;
    let mut text = match profile.off_cpu {
        true => format!("{} of threads' time off the cores", duration(profile.total)),
        false => format!("{} samples of computing threads", profile.total),
    };
    if profile.lost > 0 {
        text.push_str(&format!(", {} records lost", profile.lost));
    }
    text
}

fn text(found: &Found) -> String {
    let mut text = format!("{} in {} s\n", total(found), found.seconds);
    if found.sampled.profile.total == 0 {
        return text;
    }
    text.push_str("\nstacks through\n");
    for share in &found.structures {
        text.push_str(&format!(
            "  {:>8}  {}\n",
            percent(share.share),
            share.structure
        ));
    }
    text.push_str("\ninnermost functions\n");
    for hot in &found.sampled.hottest {
        text.push_str(&format!("  {:>8}  {}\n", percent(hot.share), hot.function));
    }
    text
}

fn page(found: &Found) -> String {
    let which = match found.sampled.profile.off_cpu {
        true => "off the cores",
        false => "on the cores",
    };
    let row = |name: &str, share: f64| {
        format!(
            "<tr><td class=\"name\">{}</td><td>{}</td></tr>\n",
            escape(name),
            percent(share)
        )
    };
    let structures: String = (found.structures.iter())
        .map(|s| row(s.structure, s.share))
        .collect();
    let hottest: String = (found.sampled.hottest.iter())
        .map(|h| row(&h.function, h.share))
        .collect();
    let flame = draw(&found.sampled.profile, &[]).unwrap_or_default();
    let body = format!(
        "<h1>Process {} {which}</h1>\n<p class=\"quiet\"><code>throng profile</code>: {} in {} s. A click on a frame \
         widens it, a click on <code>all</code> shows everything again.</p>\n{flame}\
         <h2>Stacks through</h2>\n<table>\n<tr><th>structure</th><th>share</th></tr>\n{structures}</table>\n\
         <h2>Innermost functions</h2>\n<table>\n<tr><th>function</th><th>share</th></tr>\n{hottest}</table>\n",
        found.pid,
        total(found),
        found.seconds
    );
    html::page(
        &format!("throng profile: process {} {which}", found.pid),
        &body,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args() -> Profile {
        Profile {
            pid: None,
            data: None,
            seconds: 0.05,
            off_cpu: false,
            json: false,
            report: None,
        }
    }

    #[test]
    fn what_is_not_there_is_the_users_mistake() {
        let wrong = [
            Profile {
                seconds: 0.0,
                pid: Some(1),
                ..args()
            },
            Profile {
                seconds: f64::NAN,
                pid: Some(1),
                ..args()
            },
            Profile {
                pid: Some(u32::MAX),
                ..args()
            },
            Profile {
                data: Some("/nowhere".into()),
                ..args()
            },
            args(),
        ];
        for args in wrong {
            let e = obey(&args).expect_err("not there");
            assert_eq!(e.status(), 2, "{args:?}: {e}");
        }
    }

    #[test]
    fn a_server_is_found_by_its_directory() {
        let dir = tempfile::tempdir().expect("a directory");
        let by_data = Profile {
            data: Some(dir.path().to_owned()),
            ..args()
        };
        let disk = throng_disk::RealDisk::new(dir.path()).expect("a disk");
        assert_eq!(pid(&by_data).expect("found"), std::process::id());
        drop(disk);
        assert!(pid(&by_data).is_err());
    }

    #[test]
    fn the_page_names_what_was_found() {
        let profile = super::super::Profile {
            off_cpu: true,
            total: 2_000_000,
            lost: 3,
            folded: vec![("core;throng_sync::spin::lock<T>".into(), 2_000_000)],
        };
        let found = Found {
            pid: 7,
            seconds: 1.0,
            structures: vec![Share {
                structure: "spinlocks",
                share: 1.0,
            }],
            sampled: Sampled::of(profile, &[]),
        };
        let page = page(&found);
        for text in [
            "Process 7 off the cores",
            "2.0 ms of threads' time",
            "spinlocks",
            "lock&lt;T&gt;",
            "3 records lost",
        ] {
            assert!(page.contains(text), "no {text}");
        }
        assert!(text(&found).contains("100 %  spinlocks"));
    }
}
