//! `throng serve --standby-of`: a server that follows another one until it is promoted.
//!
//! ```text
//!   empty directory ── a base backup of the primary ──┐
//!                                                     ▼
//!   standby.signal ─► redo what is there ─► stream, flush, replay ─┬─ promote.signal ─► promoted
//!                          ▲                     │                 └─ SIGTERM ────────► stopped
//!                          └── a new timeline ◄──┴── lost: again after a pause
//! ```
//! Nothing can be read on it meanwhile: clients are told so (57P03). What the primary has flushed
//! is on this server's disk a moment later, and what it has on disk it tells the primary.
//!
//! `standby.signal` makes a directory a standby's, and a start without `--standby-of` refuses it. A
//! promotion takes it away and leaves `promoted`, so that a service that is always started with
//! `--standby-of` serves from then on.

mod client;
mod door;
mod seed;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use throng_lab::load::url::Target;
use throng_session::replication::{clock, open_standby};
use throng_session::{PROMOTE, PROMOTED, STANDBY};
use throng_txn::Standby;
use throng_types::error::state;
use throng_types::{Error, Lsn, Result};
use throng_wal::{TimelineHistory, TimelineId};

use crate::config::Config;
use client::{Message, Primary};
use door::Door;

/// How long is waited for more of the log before it is looked at what else is asked for.
const LOOK: Duration = Duration::from_millis(50);
/// What was received is made durable and replayed when so much has come, or nothing more has.
const TOGETHER: u64 = 1 << 20;
/// The primary hears of this standby at least so often.
const BETWEEN_REPORTS: Duration = Duration::from_secs(5);
/// After the primary was lost.
const PAUSE: Duration = Duration::from_secs(1);
/// How long `throng promote` waits.
const LONGEST_PROMOTION: Duration = Duration::from_secs(120);

/// Set by SIGTERM and SIGINT.
static STOP: AtomicBool = AtomicBool::new(false);

/// Why a standby follows no more.
pub enum Followed {
    /// The directory is to be served, on a new timeline.
    Promoted,
    Stopped,
}

/// Whom to follow, if the directory is, or becomes, a standby's.
///
/// # Errors
/// F0000 for a standby's directory without `--standby-of`, and for another's with it.
pub fn target(config: &Config) -> Result<Option<Target>> {
    let there = |name: &str| config.data.join(name).exists();
    let wrong = |message: &str, hint: &str| {
        let path = config.data.display();
        Err(Error::new(state::CONFIG_FILE_ERROR, format!("{path} {message}")).hint(hint))
    };
    if there(PROMOTE) {
        return Ok(None);
    }
    match &config.standby_of {
        None if there(STANDBY) => wrong(
            "is a standby's data directory",
            "Give --standby-of URL to go on following, or run throng promote.",
        ),
        None => Ok(None),
        Some(_) if there(PROMOTED) && !there(STANDBY) => {
            tracing::info!("this standby was promoted: it serves, and follows nobody");
            Ok(None)
        }
        Some(_) if there("control") && !there(STANDBY) => wrong(
            "is not a standby's data directory",
            "A standby makes its own in an empty directory, or begins with a base backup in which \
             there is a file standby.signal.",
        ),
        Some(url) => {
            let target = Target::parse(url);
            target
                .map(Some)
                .map_err(|e| Error::new(state::CONFIG_FILE_ERROR, e.to_string()))
        }
    }
}

/// Follows the primary until somebody ends it.
pub fn follow(config: &Config, target: &Target) -> Result<Followed> {
    catch_signals()?;
    if !config.data.join("control").exists() {
        match seed::copy(config, target) {
            Err(_) if stop_was_asked() => return Ok(Followed::Stopped),
            copied => copied?,
        }
    }
    let _door = Door::open(config.listen)?;
    loop {
        let mut standby = open_standby(
            &config.data,
            &config.settings,
            config.pool_bytes,
            &config.cores,
        )?;
        tracing::info!(
            "standby has the log up to {}, on timeline {}",
            standby.replayed().to_halves(),
            standby.history().current().0
        );
        let ended = follow_from(config, target, &mut standby);
        standby.close()?;
        match ended? {
            Ended::Promoted => {
                tracing::info!("promotion was asked for");
                return Ok(Followed::Promoted);
            }
            Ended::Stopped => return Ok(Followed::Stopped),
            Ended::Reopen => {}
        }
    }
}

enum Ended {
    Promoted,
    Stopped,
    /// The directory is to be opened anew: it names a new timeline, or has received what is none.
    Reopen,
}

/// Follows with one opened directory, over as many connections as it takes.
fn follow_from(config: &Config, target: &Target, standby: &mut Standby) -> Result<Ended> {
    let mut told = String::new();
    loop {
        if let Some(ended) = asked(config) {
            return Ok(ended);
        }
        match stream(config, target, standby) {
            Ok(Some(ended)) => return Ok(ended),
            Ok(None) => {}
            Err(e) if e.code() == state::DATA_CORRUPTED => {
                // What is not replayed goes when the directory is opened, and is asked for again.
                tracing::warn!("{}: it is received again", e.message());
                std::thread::sleep(PAUSE);
                return Ok(Ended::Reopen);
            }
            Err(e) if is_final(&e) => return Err(e),
            // Not with each attempt.
            Err(e) if e.message() == told => {}
            Err(e) => {
                tracing::warn!("{}", e.message());
                told = e.message().to_owned();
            }
        }
        let began = Instant::now();
        while began.elapsed() < PAUSE && asked(config).is_none() {
            std::thread::sleep(LOOK);
        }
    }
}

/// No further attempt helps.
fn is_final(e: &Error) -> bool {
    matches!(
        e.code(),
        state::CONFIG_FILE_ERROR | state::IO_ERROR | state::DISK_FULL
    )
}

/// Whether SIGTERM or SIGINT has come since the standby began.
pub fn stop_was_asked() -> bool {
    STOP.load(Ordering::Relaxed)
}

fn asked(config: &Config) -> Option<Ended> {
    if stop_was_asked() {
        Some(Ended::Stopped)
    } else if config.data.join(PROMOTE).exists() {
        Some(Ended::Promoted)
    } else {
        None
    }
}

/// One connection; None where it ended by itself.
fn stream(config: &Config, target: &Target, standby: &mut Standby) -> Result<Option<Ended>> {
    let mut primary = Primary::connect(target, name(config))?;
    let timeline = must_be_of_this_cluster(&mut primary, standby)?;
    let own = standby.history().current();
    if timeline == own {
        must_have_come_the_same_way(&mut primary, standby)?;
    } else if follow_timeline(&mut primary, standby, timeline)? {
        return Ok(Some(Ended::Reopen));
    }
    let slot = match &config.slot {
        Some(slot) => format!("SLOT \"{slot}\" "),
        None => String::new(),
    };
    let from = standby.received();
    let (from_text, number) = (from.to_halves(), own.0);
    primary.start(&format!(
        "START_REPLICATION {slot}PHYSICAL {from_text} TIMELINE {number}"
    ))?;
    let begun = primary.next()?;
    match begun.tag {
        b'W' => {}
        b'E' => return Err(client::refusal(&begun.body)),
        _ => return Err(garbled()),
    }
    tracing::info!("streaming from {target} at {from_text} on timeline {number}");
    let mut stream = Stream {
        primary,
        taken: 0,
        reported: Instant::now(),
    };
    // A primary whose commits wait for this standby knows it from here on.
    stream.report(standby)?;
    loop {
        if let Some(ended) = asked(config) {
            standby.replay()?;
            stream.report(standby)?;
            return Ok(Some(ended));
        }
        let message = match stream.primary.pending()? {
            Some(message) => Some(message),
            None => {
                // Nothing more has come: what there is is worth being kept.
                stream.keep(standby)?;
                stream.primary.next_within(LOOK)?
            }
        };
        match message {
            Some(message) if !stream.take(standby, &message)? => {
                stream.keep(standby)?;
                return Ok(None);
            }
            Some(_) if stream.taken >= TOGETHER => stream.keep(standby)?,
            _ => {}
        }
        if stream.reported.elapsed() >= BETWEEN_REPORTS {
            stream.report(standby)?;
        }
    }
}

struct Stream {
    primary: Primary,
    /// Bytes that are not yet durable.
    taken: u64,
    reported: Instant,
}

impl Stream {
    /// False where the stream has ended.
    fn take(&mut self, standby: &mut Standby, message: &Message) -> Result<bool> {
        match (message.tag, message.body.split_first()) {
            (b'd', Some((b'w', body))) => {
                let at = body.first_chunk().ok_or_else(garbled)?;
                let bytes = body.get(24..).ok_or_else(garbled)?;
                standby.append(Lsn(u64::from_be_bytes(*at)), bytes)?;
                self.taken += bytes.len() as u64;
            }
            (b'd', Some((b'k', body))) if body.get(16).is_some_and(|reply| *reply != 0) => {
                self.report(standby)?;
            }
            (b'c', _) => {
                self.primary.copy_done()?;
                return Ok(false);
            }
            (b'E', _) => return Err(client::refusal(&message.body)),
            _ => {}
        }
        Ok(true)
    }

    /// Makes durable what was received, replays it, and tells the primary.
    fn keep(&mut self, standby: &mut Standby) -> Result<()> {
        if self.taken == 0 {
            return Ok(());
        }
        self.taken = 0;
        // Nothing is confirmed that turns out to be no log.
        standby.replay()?;
        self.report(standby)
    }

    fn report(&mut self, standby: &Standby) -> Result<()> {
        let mut bytes = vec![b'r'];
        for lsn in [standby.received(), standby.flushed(), standby.replayed()] {
            bytes.extend_from_slice(&lsn.0.to_be_bytes());
        }
        bytes.extend_from_slice(&clock().to_be_bytes());
        bytes.push(0);
        self.reported = Instant::now();
        self.primary.copy_data(bytes)
    }
}

/// The primary's timeline.
fn must_be_of_this_cluster(primary: &mut Primary, standby: &Standby) -> Result<TimelineId> {
    let rows = primary.query("IDENTIFY_SYSTEM")?;
    let field = |n: usize| rows.first().and_then(|row| row.get(n)?.as_deref());
    let (identifier, timeline) = (field(0), field(1).and_then(|n| n.parse().ok()));
    let own = standby.system_identifier().to_string();
    if identifier != Some(&own) {
        let message = "database system identifier differs between the primary and standby";
        return Err(
            Error::new(state::CONFIG_FILE_ERROR, message).detail(format!(
                "The primary's identifier is {}, the standby's identifier is {own}.",
                identifier.unwrap_or("not told")
            )),
        );
    }
    let timeline = TimelineId(timeline.ok_or_else(garbled)?);
    if timeline < standby.history().current() {
        let (theirs, own) = (timeline.0, standby.history().current().0);
        let message =
            format!("highest timeline {theirs} of the primary is behind recovery timeline {own}");
        return Err(Error::new(state::CONNECTION_FAILURE, message));
    }
    Ok(timeline)
}

/// Two servers may each have begun a timeline of the same number.
fn must_have_come_the_same_way(primary: &mut Primary, standby: &Standby) -> Result<()> {
    let own = standby.history();
    if own.current() == TimelineId::FIRST {
        return Ok(());
    }
    let theirs = history_of(primary, own.current())?;
    match theirs.ended() == own.ended() {
        true => Ok(()),
        false => Err(Error::new(
            state::CONFIG_FILE_ERROR,
            format!(
                "timeline {} of the primary is another than the standby's",
                own.current().0
            ),
        )
        .hint("Both have taken over from the same server: make one of them anew.")),
    }
}

fn history_of(primary: &mut Primary, timeline: TimelineId) -> Result<TimelineHistory> {
    let rows = primary.query(&format!("TIMELINE_HISTORY {}", timeline.0))?;
    let text = rows.first().and_then(|row| row.get(1)?.clone());
    let text = text.ok_or_else(garbled)?;
    TimelineHistory::from_text(&text, timeline).ok_or_else(garbled)
}

/// The primary is on a later timeline. If all that this standby has is of it, the directory follows
/// it from here on; else what is missing up to the switch is streamed first.
fn follow_timeline(primary: &mut Primary, standby: &mut Standby, to: TimelineId) -> Result<bool> {
    let history = history_of(primary, to)?;
    let own = standby.history().current();
    let ended = history.ended().iter().find(|ended| ended.timeline == own);
    let replayed = standby.replayed();
    match ended {
        Some(ended) if replayed < ended.end => Ok(false),
        Some(ended) if replayed == ended.end => {
            standby.branch(history)?;
            Ok(true)
        }
        _ => Err(Error::new(
            state::CONFIG_FILE_ERROR,
            format!(
                "new timeline {} forked off current database system timeline {} before current \
                 recovery point {}",
                to.0,
                own.0,
                replayed.to_halves()
            ),
        )
        .hint("This directory has more than the new primary took over: make it anew.")),
    }
}

/// What the primary knows this standby as: its slot's name.
fn name(config: &Config) -> &str {
    config.slot.as_deref().unwrap_or("standby")
}

fn garbled() -> Error {
    Error::new(
        state::CONNECTION_FAILURE,
        "the primary answered what is not understood",
    )
}

fn catch_signals() -> Result<()> {
    extern "C" fn stop(_: libc::c_int) {
        STOP.store(true, Ordering::Relaxed);
    }
    for signal in [libc::SIGTERM, libc::SIGINT] {
        // SAFETY: the handler only stores to an atomic, which is safe in a signal's context; it
        // stays for good, and is replaced where a promoted server catches signals its own way.
        let before = unsafe { libc::signal(signal, stop as *const () as libc::sighandler_t) };
        if before == libc::SIG_ERR {
            return Err(std::io::Error::last_os_error().into());
        }
    }
    // SAFETY: as above; nothing runs for it. There are no settings that a standby would read anew.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
    Ok(())
}

/// `throng promote`: asks the standby on a directory to serve, and waits until it does.
///
/// # Errors
/// 55000 for a directory that is no standby's; 57014 where it takes too long.
pub fn promote(data: &Path) -> Result<()> {
    if !data.join(STANDBY).exists() {
        let message = format!("{} is not a standby's data directory", data.display());
        return Err(Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
    }
    std::fs::File::create(data.join(PROMOTE))?;
    let began = Instant::now();
    while data.join(PROMOTE).exists() {
        if began.elapsed() > LONGEST_PROMOTION {
            let message = "the standby has not taken over yet";
            return Err(Error::new(state::QUERY_CANCELED, message)
                .hint("Is there a server on the directory? It does as soon as there is."));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}
