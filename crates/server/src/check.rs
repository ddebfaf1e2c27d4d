//! `throng check`: every page of a data directory verified while no server uses it.
//!
//! After a crash pages may be behind the log, so the log is applied first, as the next start would
//! do; after an orderly stop that changes nothing. Then each file is read from its first page to
//! its last.
//!
//! With `--redo`, before anything is applied, pages are also compared with what the log makes of
//! them.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use serde::Serialize;
use throng_access::XidStatus;
use throng_access::check::{Fault, FileKind, check_file, compare};
use throng_buffer::PoolConfig;
use throng_disk::{CheckedDisk, Disk, RealDisk, RelFiles, descriptors};
use throng_txn::{Archiving, OpenConfig, TxnConfig, TxnSystem};
use throng_types::error::state;
use throng_types::{Error, FileId, Result, Xid};
use throng_wal::WalConfig;

use crate::config;

/// Memory for applying the log.
const POOL: usize = 64 << 20;

#[derive(Serialize)]
struct Report {
    data: String,
    files: usize,
    pages: u64,
    /// The log was applied first: the directory had not been closed in order.
    recovered: bool,
    /// Pages compared with what the log makes of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<u64>,
    faults: Vec<Finding>,
}

#[derive(Serialize)]
struct Finding {
    file: u32,
    block: Option<u32>,
    what: String,
}

impl Finding {
    fn new(file: FileId, fault: Fault) -> Finding {
        Finding {
            file: file.0,
            block: fault.block,
            what: fault.what,
        }
    }
}

/// # Errors
/// Where there is no data directory, where another server uses it, and where its log cannot be
/// applied.
pub fn run(args: &config::Check) -> Result<ExitCode> {
    // Where one of the two is gone the other says what is missing.
    if !args.data.join("base").is_dir() && !args.data.join("control").is_file() {
        return Err(Error::new(
            state::UNDEFINED_FILE,
            format!("{} is no data directory", args.data.display()),
        ));
    }
    if args.data.join(throng_session::STANDBY).exists() {
        // What is checked is recovered first, which a standby's log would not go on from.
        let message = format!("{} is a standby's data directory", args.data.display());
        return Err(Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
            .hint("Check a copy of it, without standby.signal."));
    }
    // What pg_basebackup made has its log elsewhere.
    throng_session::adopt_streamed_log(&args.data)?;
    // A limit that stays is no fault of the data's.
    let _ = descriptors::raise();
    let disk: Arc<dyn Disk> = Arc::new(CheckedDisk::new(RealDisk::new(&args.data)?));
    let mut compared = None;
    let mut faults = Vec::new();
    if args.redo
        && let Some(log) = throng_txn::whole_log(&disk)?
    {
        let found = compare(&RelFiles::new(disk.clone())?, log)?;
        compared = Some(found.pages);
        let finding = |(file, fault)| Finding::new(file, fault);
        faults.extend(found.faults.into_iter().map(finding));
    }
    let (sys, recovery) = TxnSystem::open(OpenConfig {
        disk: disk.clone(),
        pool: PoolConfig::new(POOL),
        wal: WalConfig::default(),
        txn: TxnConfig::default(),
        recovery: None,
        archive: Archiving::Untouched,
    })?;
    sys.shutdown()?;
    let rolled_back = |xid: Xid| matches!(sys.status(xid), XidStatus::Aborted);
    let files = RelFiles::new(disk)?;
    let mut report = Report {
        data: args.data.display().to_string(),
        files: 0,
        pages: 0,
        recovered: recovery.crashed,
        compared,
        faults,
    };
    let mut list: Vec<FileId> = files.list()?;
    list.sort_unstable();
    for file in list {
        report.files += 1;
        report.pages += u64::from(files.blocks(file).unwrap_or(0));
        for fault in check_file(&files, file, FileKind::Unknown, &rolled_back) {
            report.faults.push(Finding::new(file, fault));
        }
    }
    print(&report, args.json)?;
    Ok(match report.faults.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn print(report: &Report, json: bool) -> Result<()> {
    let mut to = io::stdout().lock();
    if json {
        let text = serde_json::to_string_pretty(report).map_err(Error::internal)?;
        writeln!(to, "{text}")?;
        return Ok(());
    }
    for fault in &report.faults {
        match fault.block {
            Some(block) => writeln!(to, "base/{} block {block}: {}", fault.file, fault.what)?,
            None => writeln!(to, "base/{}: {}", fault.file, fault.what)?,
        }
    }
    let mut counts = format!("{} files, {} pages", report.files, report.pages);
    if let Some(pages) = report.compared {
        counts += &format!(", {pages} compared with the log");
    }
    match report.faults.len() {
        0 => writeln!(to, "ok: {counts}")?,
        n => writeln!(to, "{n} faults in {counts}")?,
    }
    Ok(())
}
