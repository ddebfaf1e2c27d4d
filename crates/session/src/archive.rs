//! The commands that bring segments of the log to an archive and back, and what a start is told of
//! a recovery.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::RwLock;

use throng_exec::analytics::SessionFacts;
use throng_txn::{Archive, ArchiveRecovery, RecoveryStop, RecoveryTarget, TargetTimeline};
use throng_types::error::state;
use throng_types::{Error, Lsn, Result, Xid};
use throng_values::func::EvalContext;
use throng_values::io::datetime::{parse_timestamptz, to_unix};
use throng_values::io::{FormatSettings, Zone};
use throng_values::settings::{Id, ServerSettings};
use throng_wal::{TimelineId, parse_segment_name, segment_name, segment_path};

/// A file in the data directory that asks the next start for a recovery from the archive.
pub const RECOVERY: &str = "recovery.signal";
/// One that asks for a standby to begin a timeline of its own.
pub const PROMOTE: &str = "promote.signal";
/// What makes a directory a standby's, and what is left of that after a promotion.
pub const STANDBY: &str = "standby.signal";
pub const PROMOTED: &str = "promoted";
/// Where `restore_command` puts what it brings.
const FETCHED: &str = "tmp/restored";
/// A shell ends so where it does not find the command; signals come after. The archive is not there
/// then, so that nothing is concluded from it.
const NOT_FOUND: i32 = 126;

/// `archive_command` and `archive_timeout`, as they are in force.
pub(crate) struct ArchiveCommand {
    data: PathBuf,
    command: RwLock<String>,
    timeout_seconds: AtomicU64,
}

impl ArchiveCommand {
    /// None where nothing is to be archived.
    pub(crate) fn of(data: &Path, settings: &ServerSettings) -> Option<Arc<ArchiveCommand>> {
        (settings.text(Id::ArchiveMode) != "off").then(|| {
            let command = Arc::new(ArchiveCommand {
                data: data.to_owned(),
                command: RwLock::default(),
                timeout_seconds: AtomicU64::new(0),
            });
            command.apply(settings);
            command
        })
    }

    pub(crate) fn apply(&self, settings: &ServerSettings) {
        *self.command.write() = settings.text(Id::ArchiveCommand).to_owned();
        let seconds = settings.int(Id::ArchiveTimeout) as u64;
        self.timeout_seconds.store(seconds, Ordering::Relaxed);
    }
}

/// As the transaction system holds it.
pub(crate) struct ByCommand(pub Arc<ArchiveCommand>);

impl Archive for ByCommand {
    fn store(&self, path: &str, name: &str) -> Result<(), String> {
        let command = self.0.command.read().clone();
        if command.is_empty() {
            let why = "archive_mode enabled, yet archiving is not configured";
            tracing::warn!("{why}: archive_command is not set");
            return Err(why.to_owned());
        }
        let command = filled_in(&command, path, name);
        let status = run(&self.0.data, &command).map_err(|e| e.to_string())?;
        if status.success() {
            return Ok(());
        }
        let why = format!("archive command failed: {status}");
        tracing::warn!("{why}; the failed archive command was: {command}");
        Err(why)
    }

    fn timeout(&self) -> Option<Duration> {
        match self.0.timeout_seconds.load(Ordering::Relaxed) {
            0 => None,
            seconds => Some(Duration::from_secs(seconds)),
        }
    }
}

/// A command with `%p`, `%f` and `%%` as PostgreSQL has them.
fn filled_in(command: &str, path: &str, name: &str) -> String {
    let mut out = String::with_capacity(command.len() + path.len() + name.len());
    let mut chars = command.chars();
    while let Some(c) = chars.next() {
        match c {
            '%' => match chars.next() {
                Some('p') => out.push_str(path),
                Some('f') => out.push_str(name),
                Some('%') => out.push('%'),
                // Others stand for what there is not.
                Some(other) => out.extend(['%', other]),
                None => out.push('%'),
            },
            c => out.push(c),
        }
    }
    out
}

fn run(data: &Path, command: &str) -> std::io::Result<ExitStatus> {
    Command::new("sh")
        .args(["-c", command])
        .current_dir(data)
        .stdin(std::process::Stdio::null())
        .status()
}

/// The recovery that the data directory asks for.
///
/// # Errors
/// F0000 for one without `restore_command`, 22023 for targets that are none, or several.
pub(crate) fn recovery(data: &Path, settings: &ServerSettings) -> Result<Option<ArchiveRecovery>> {
    if data.join(PROMOTE).exists() {
        // What a standby has received is all there is.
        return Ok(Some(ArchiveRecovery {
            fetch: Box::new(|_| Ok(None)),
            target: RecoveryTarget {
                timeline: TargetTimeline::Current,
                ..RecoveryTarget::default()
            },
        }));
    }
    if !data.join(RECOVERY).exists() {
        return Ok(None);
    }
    let command = settings.text(Id::RestoreCommand).to_owned();
    if command.is_empty() {
        return Err(Error::new(
            state::CONFIG_FILE_ERROR,
            "must specify \"restore_command\" when standby mode is not enabled",
        ));
    }
    let directory = data.to_owned();
    let fetch = Box::new(move |name: &str| fetch(&directory, &command, name));
    let target = target(settings)?;
    Ok(Some(ArchiveRecovery { fetch, target }))
}

/// Puts the log that came with a backup where this server has it: PostgreSQL's tools write it to
/// `pg_wal`, by their own names. Of a segment that several timelines have, the newest one's is
/// taken.
pub fn adopt_streamed_log(data: &Path) -> Result<()> {
    let streamed = data.join("pg_wal");
    if !streamed.is_dir() {
        return Ok(());
    }
    let mut segments = BTreeMap::new();
    for entry in std::fs::read_dir(&streamed)? {
        let entry = entry?;
        let size = entry.metadata()?.len();
        let name = entry.file_name();
        let named = name.to_str().filter(|_| size.is_power_of_two());
        if let Some((timeline, number)) = named.and_then(|name| parse_segment_name(name, size)) {
            let newest = segments.entry(number).or_insert((timeline, size));
            *newest = (*newest).max((timeline, size));
        }
    }
    std::fs::create_dir_all(data.join("wal"))?;
    for (number, (timeline, size)) in segments {
        let from = streamed.join(segment_name(timeline, number, size));
        std::fs::rename(from, data.join(segment_path(number, size)))?;
    }
    std::fs::remove_dir_all(streamed)?;
    std::fs::File::open(data.join("wal"))?.sync_all()?;
    std::fs::File::open(data)?.sync_all()?;
    Ok(())
}

/// What was asked for is done. A standby is one no more before it is forgotten that it was to be
/// promoted.
pub(crate) fn recovered(data: &Path) -> Result<()> {
    if data.join(STANDBY).exists() {
        std::fs::rename(data.join(STANDBY), data.join(PROMOTED))?;
        std::fs::File::open(data)?.sync_all()?;
    }
    for signal in [RECOVERY, PROMOTE] {
        match std::fs::remove_file(data.join(signal)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e.into()),
            _ => {}
        }
    }
    Ok(())
}

fn fetch(data: &Path, command: &str, name: &str) -> Result<Option<Vec<u8>>> {
    let path = data.join(FETCHED);
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let removed = std::fs::remove_file(&path);
    removed.or_else(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(e),
    })?;
    let command = filled_in(command, FETCHED, name);
    let status = run(data, &command)?;
    if status.success() {
        return match std::fs::read(&path) {
            Ok(bytes) => {
                tracing::info!("restored log file \"{name}\" from archive");
                Ok(Some(bytes))
            }
            // It says that it has brought what is not there.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e.into()),
        };
    }
    // What is not in the archive fails with some status; a command that is none says nothing of
    // the archive.
    match status.code() {
        Some(code) if code < NOT_FOUND => Ok(None),
        _ => Err(Error::new(
            state::CONFIG_FILE_ERROR,
            format!("could not restore file \"{name}\" from archive: {status}"),
        )
        .detail(format!("The restore command was: {command}"))),
    }
}

fn target(settings: &ServerSettings) -> Result<RecoveryTarget> {
    let given = |id: Id| Some(settings.text(id)).filter(|text| !text.is_empty());
    let wrong = |id: Id, text: &str| {
        let name = id.definition().name;
        let message = format!("invalid value for parameter \"{name}\": \"{text}\"");
        Error::new(state::INVALID_PARAMETER_VALUE, message)
    };
    let mut stops = Vec::new();
    if given(Id::RecoveryTarget).is_some() {
        stops.push(RecoveryStop::Immediate);
    }
    if let Some(text) = given(Id::RecoveryTargetLsn) {
        let lsn = Lsn::from_halves(text).ok_or_else(|| wrong(Id::RecoveryTargetLsn, text))?;
        stops.push(RecoveryStop::Lsn(lsn));
    }
    if let Some(text) = given(Id::RecoveryTargetName) {
        stops.push(RecoveryStop::Name(text.to_owned()));
    }
    if let Some(text) = given(Id::RecoveryTargetTime) {
        let moment = moment(text, settings.text(Id::TimeZone))?;
        let time = u64::try_from(to_unix(moment));
        let time = time.map_err(|_| wrong(Id::RecoveryTargetTime, text))?;
        stops.push(RecoveryStop::Time(time));
    }
    if let Some(text) = given(Id::RecoveryTargetXid) {
        let xid = text
            .parse()
            .map_err(|_| wrong(Id::RecoveryTargetXid, text))?;
        stops.push(RecoveryStop::Xid(Xid(xid)));
    }
    if stops.len() > 1 {
        return Err(Error::new(
            state::INVALID_PARAMETER_VALUE,
            "multiple recovery targets specified",
        )
        .detail(
            "At most one of \"recovery_target\", \"recovery_target_lsn\", \"recovery_target_name\", \
             \"recovery_target_time\", \"recovery_target_xid\" may be set.",
        ));
    }
    let timeline = match settings.text(Id::RecoveryTargetTimeline) {
        "latest" => TargetTimeline::Latest,
        "current" => TargetTimeline::Current,
        number => TargetTimeline::Numbered(TimelineId(
            number
                .parse()
                .map_err(|_| wrong(Id::RecoveryTargetTimeline, number))?,
        )),
    };
    Ok(RecoveryTarget {
        stop: stops.pop(),
        inclusive: settings.bool(Id::RecoveryTargetInclusive),
        timeline,
    })
}

/// The moment that a text stands for, in microseconds since 2000.
fn moment(text: &str, zone: &str) -> Result<i64> {
    let format = FormatSettings {
        time_zone: Zone::by_name(zone).unwrap_or_else(Zone::utc),
        ..FormatSettings::default()
    };
    let host = SessionFacts::default();
    let ctx = EvalContext {
        host: &host,
        format: &format,
    };
    parse_timestamptz(&ctx, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_name_path_and_file() {
        let command = filled_in("cp %p '/a/%f' 50%% %x%", "wal/00", "0001");
        assert_eq!(command, "cp wal/00 '/a/0001' 50% %x%");
    }

    #[test]
    fn a_file_comes_is_missing_or_cannot_be_asked_for() {
        let dir = tempfile::tempdir().expect("a directory");
        let fetched = |command| fetch(dir.path(), command, "name");
        std::fs::write(dir.path().join("name"), b"bytes").expect("written");
        assert_eq!(
            fetched("cp %f %p").expect("run").as_deref(),
            Some(&b"bytes"[..])
        );
        assert_eq!(fetched("cp nowhere %p 2>/dev/null").expect("run"), None);
        assert_eq!(
            fetched("true").expect("run"),
            None,
            "what came before is gone"
        );
        assert!(fetched("no-such-command-at-all 2>/dev/null").is_err());
        assert!(fetched("kill -9 $$").is_err());
    }
}
