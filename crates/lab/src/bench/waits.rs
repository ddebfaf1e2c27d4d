//! What a target's sessions waited for during a turn, in the way the target can tell.
//!
//! A Throng counts: `throng.waits` has the time of every event. PostgreSQL only shows the present:
//! a connection of its own asks `pg_stat_activity` again and again, and counts what it sees. So it
//! is with MySQL and MariaDB where their `performance_schema` looks at waits; where it does not,
//! there is nothing to ask.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::load::connection::{self, Connection};
use crate::load::trouble::Result;
use crate::load::url::Target;

use super::findings::Wait;
use super::server::{Kind, Server};

/// Between two looks at a server's sessions: a hundredth of a core with a hundred of PostgreSQL's.
const LOOK: Duration = Duration::from_millis(50);
/// InnoDB's list of transactions is made anew only for who has not asked for a tenth of a second.
const LOOK_AT_MYSQL: Duration = Duration::from_millis(150);

/// What is not waiting, in samples.
pub const RUNNING: &str = "running";

/// What sessions that are at work wait for, and how many.
const IN_POSTGRES: &str = "SELECT coalesce(wait_event_type || ' ' || wait_event, 'running'), count(*) \
                           FROM pg_stat_activity WHERE state = 'active' AND backend_type = 'client backend' \
                           AND pid <> pg_backend_pid() GROUP BY 1";
/// The innermost event that has begun, of sessions that do not wait for their client. A call into
/// the storage engine (`wait/io/table`) is one, however little it waits, so it is called running,
/// unless InnoDB says that the session waits for a row.
const IN_MYSQL: &str = "SELECT CASE WHEN lock_wait THEN 'row lock' \
                        WHEN event IS NULL OR event LIKE 'wait/io/table/%' THEN 'running' \
                        ELSE substr(event, 6) END, count(*) FROM (SELECT t.thread_id, \
                        (SELECT w.event_name FROM performance_schema.events_waits_current w \
                        WHERE w.thread_id = t.thread_id AND w.end_event_id IS NULL ORDER BY w.event_id DESC LIMIT 1) AS event, \
                        EXISTS (SELECT 1 FROM information_schema.innodb_trx x \
                        WHERE x.trx_mysql_thread_id = t.processlist_id AND x.trx_state = 'LOCK WAIT') AS lock_wait \
                        FROM performance_schema.threads t WHERE t.processlist_command IN ('Query', 'Execute') \
                        AND t.processlist_id <> connection_id()) s \
                        WHERE event IS NULL OR event <> 'idle' AND event NOT LIKE 'wait/io/socket/%' GROUP BY 1";

/// Waits under observation, from now to [`Watch::read`].
pub enum Watch {
    Nothing,
    Counted(Target),
    Sampled {
        stop: Arc<AtomicBool>,
        looking: JoinHandle<Result<Samples>>,
    },
}

/// How often sessions were seen at what.
type Samples = BTreeMap<String, u64>;

impl Watch {
    pub fn begin(target: &Target, server: &Server) -> Result<Watch> {
        let query = match server.kind {
            Kind::Throng => {
                connection::with(target, async |connection| {
                    connection.simple("SELECT throng_reset_waits()").await
                })?;
                return Ok(Watch::Counted(target.clone()));
            }
            Kind::Postgres => (IN_POSTGRES, LOOK),
            Kind::MySql if server.telling.tells => (IN_MYSQL, LOOK_AT_MYSQL),
            Kind::MySql => return Ok(Watch::Nothing),
        };
        let stop = Arc::new(AtomicBool::new(false));
        let (target, stopped) = (target.clone(), stop.clone());
        let looking = std::thread::Builder::new()
            .name("bench-waits".to_owned())
            .spawn(move || look(&target, query, &stopped))?;
        Ok(Watch::Sampled { stop, looking })
    }

    /// The most first. Empty where the target tells nothing.
    pub fn read(self) -> Result<Vec<Wait>> {
        match self {
            Watch::Nothing => Ok(Vec::new()),
            Watch::Counted(target) => counted(&target),
            Watch::Sampled { stop, looking } => {
                stop.store(true, Ordering::Relaxed);
                let seen = looking
                    .join()
                    .unwrap_or_else(|p| std::panic::resume_unwind(p));
                // A server without that view is none the worse for it: there is nothing to say
                // about its waits.
                Ok(seen.map(|samples| shares(&samples)).unwrap_or_default())
            }
        }
    }
}

fn counted(target: &Target) -> Result<Vec<Wait>> {
    // By event, over all objects; what is left of the sessions' time is not known here, so shares
    // are of the waits.
    let query = "SELECT wait_event_type || ' ' || wait_event, sum(total_ms) FROM throng.waits \
                 WHERE waiter = 'session' GROUP BY 1 ORDER BY 2 DESC";
    connection::with(target, async |connection| {
        connection.simple(query).await?;
        let rows = connection.rows();
        let mut times = Vec::with_capacity(rows.len());
        for row in 0..rows.len() {
            let millis = rows
                .text(row, 1)?
                .and_then(|t| t.parse::<f64>().ok())
                .unwrap_or(0.0);
            times.push((rows.string(row, 0)?.to_owned(), millis));
        }
        let all: f64 = times.iter().map(|(_, t)| t).sum();
        let wait = |(what, millis): (String, f64)| Wait {
            what,
            share: millis / all,
        };
        Ok(times
            .into_iter()
            .filter(|(_, t)| *t > 0.0)
            .map(wait)
            .collect())
    })
}

fn look(target: &Target, (query, pause): (&str, Duration), stop: &AtomicBool) -> Result<Samples> {
    connection::with(target, async |connection: &mut Connection| {
        let mut samples = Samples::new();
        while !stop.load(Ordering::Relaxed) {
            connection.simple(query).await?;
            let rows = connection.rows();
            for row in 0..rows.len() {
                *samples.entry(rows.string(row, 0)?.to_owned()).or_insert(0) +=
                    rows.int(row, 1)? as u64;
            }
            // The thread is this connection's alone: nothing else waits while it sleeps.
            std::thread::sleep(pause);
        }
        Ok(samples)
    })
}

fn shares(samples: &Samples) -> Vec<Wait> {
    let all: u64 = samples.values().sum();
    let wait = |(what, count): (&String, &u64)| Wait {
        what: what.clone(),
        share: *count as f64 / all as f64,
    };
    let mut waits: Vec<Wait> = samples.iter().map(wait).collect();
    waits.sort_by(|a, b| b.share.total_cmp(&a.share));
    waits
}

/// What a wait's name means, for who meets it the first time: by the longest of these that it
/// begins with.
pub fn meaning(what: &str) -> Option<&'static str> {
    const OTHER_TRANSACTION: &str =
        "another transaction has changed the same row and has not ended";
    const SHORT_LOCK: &str = "a short lock on memory that the server's sessions share";
    const DISK: &str = "the disk";
    const MEANINGS: &[(&str, &str)] = &[
        ("running", "not waiting: computing, or ready to"),
        ("Lock transactionid", OTHER_TRANSACTION),
        (
            "Lock tuple",
            "others already wait for the same row, which another transaction has changed",
        ),
        (
            "Lock extend",
            "another session makes the same table's file longer",
        ),
        (
            "Lock ",
            "another transaction holds a lock on the same object",
        ),
        ("row lock", OTHER_TRANSACTION),
        ("LWLock WALInsert", "room in the log's buffer"),
        (
            "LWLock WALWrite",
            "another session that writes the log, whose next write has this commit in it",
        ),
        ("LWLock ", SHORT_LOCK),
        ("IPC WalFlush", "the commit's record is not on disk yet"),
        (
            "IPC CoreQueue",
            "ready to run, but its core runs another session",
        ),
        (
            "IPC BufferAlloc",
            "memory for a new page: another is being written to the disk to make room",
        ),
        (
            "IPC BufferIO",
            "a page that another session is reading from disk",
        ),
        ("IPC ", "another part of the server"),
        (
            "IO WALSync",
            "the disk: the log is made durable, for commits",
        ),
        (
            "IO WalSync",
            "the disk: the log is made durable, for commits",
        ),
        ("IO ", DISK),
        (
            "Client ",
            "the client, to ask for more or to take what was sent",
        ),
        ("Timeout ", "a pause that the server makes on purpose"),
        ("BufferPin ", "another session uses the same page"),
        ("io/file/innodb/innodb_log_file", "the disk: the log"),
        ("io/", DISK),
        ("synch/", SHORT_LOCK),
        (
            "lock/",
            "another transaction holds a lock on the same table",
        ),
    ];
    let known = MEANINGS.iter().filter(|(name, _)| what.starts_with(name));
    known
        .max_by_key(|(name, _)| name.len())
        .map(|(_, meaning)| *meaning)
}

/// The mean of several turns' shares.
pub fn mean(turns: &[Vec<Wait>]) -> Vec<Wait> {
    let told = turns.iter().filter(|waits| !waits.is_empty()).count();
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for wait in turns.iter().flatten() {
        *sums.entry(&wait.what).or_insert(0.0) += wait.share;
    }
    let wait = |(what, sum): (&str, f64)| Wait {
        what: what.to_owned(),
        share: sum / told as f64,
    };
    let mut waits: Vec<Wait> = sums.into_iter().map(wait).collect();
    waits.sort_by(|a, b| b.share.total_cmp(&a.share));
    waits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_that_fits_says_what_is_meant() {
        assert_eq!(meaning("IO DataFileRead"), Some("the disk"));
        assert_eq!(meaning("Lock transactionid"), meaning("row lock"));
        assert_ne!(
            meaning("LWLock BufferContentShared"),
            meaning("Lock relation")
        );
        assert_eq!(meaning("Activity WalWriterMain"), None);
    }

    #[test]
    fn shares_of_samples_and_of_turns() {
        let samples = [("running".to_owned(), 1), ("Lock tuple".to_owned(), 3)].into();
        let first = shares(&samples);
        assert_eq!(
            (first[0].what.as_str(), first[0].share),
            ("Lock tuple", 0.75)
        );
        let second = vec![Wait {
            what: "running".to_owned(),
            share: 1.0,
        }];
        // A turn that told nothing does not count.
        let mean = mean(&[first, second, Vec::new()]);
        assert_eq!((mean[0].what.as_str(), mean[0].share), ("running", 0.625));
        assert_eq!(
            (mean[1].what.as_str(), mean[1].share),
            ("Lock tuple", 0.375)
        );
    }
}
