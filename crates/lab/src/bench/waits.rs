//! What a target's sessions waited for during a turn, in the way the target can tell.
//!
//! A Throng counts: `throng.waits` has the time of every event. PostgreSQL only shows the present: a connection of
//! its own asks `pg_stat_activity` again and again, and counts what it sees.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::load::connection::{self, Connection};
use crate::load::trouble::Result;
use crate::load::url::Target;

use super::findings::Wait;

/// Between two looks at PostgreSQL's sessions: a hundredth of a core with a hundred of them.
const LOOK: Duration = Duration::from_millis(50);

/// What is not waiting, in PostgreSQL's samples.
pub const RUNNING: &str = "running";

/// What kind of server a target is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Throng,
    Other,
}

/// Asks who is there.
pub fn identify(target: &Target) -> Result<(Kind, String)> {
    connection::with(target, async |connection| {
        connection.simple("SELECT version()").await?;
        let version = connection.rows().string(0, 0)?.to_owned();
        let kind = match version.contains("Throng") {
            true => Kind::Throng,
            false => Kind::Other,
        };
        Ok((kind, version))
    })
}

/// Waits under observation, from now to [`Watch::read`].
pub enum Watch {
    Counted(Target),
    Sampled {
        stop: Arc<AtomicBool>,
        looking: JoinHandle<Result<Samples>>,
    },
}

/// How often sessions were seen at what.
type Samples = BTreeMap<String, u64>;

impl Watch {
    pub fn begin(target: &Target, kind: Kind) -> Result<Watch> {
        if kind == Kind::Throng {
            connection::with(target, async |connection| {
                connection.simple("SELECT throng_reset_waits()").await
            })?;
            return Ok(Watch::Counted(target.clone()));
        }
        let stop = Arc::new(AtomicBool::new(false));
        let (target, stopped) = (target.clone(), stop.clone());
        let looking = std::thread::Builder::new()
            .name("bench-waits".to_owned())
            .spawn(move || look(&target, &stopped))?;
        Ok(Watch::Sampled { stop, looking })
    }

    /// The most first. Empty where the target tells nothing.
    pub fn read(self) -> Result<Vec<Wait>> {
        match self {
            Watch::Counted(target) => counted(&target),
            Watch::Sampled { stop, looking } => {
                stop.store(true, Ordering::Relaxed);
                let seen = looking
                    .join()
                    .unwrap_or_else(|p| std::panic::resume_unwind(p));
                // A server without that view is none the worse for it: there is nothing to say about its waits.
                Ok(seen.map(|samples| shares(&samples)).unwrap_or_default())
            }
        }
    }
}

fn counted(target: &Target) -> Result<Vec<Wait>> {
    // By event, over all objects; what is left of the sessions' time is not known here, so shares are of the waits.
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

fn look(target: &Target, stop: &AtomicBool) -> Result<Samples> {
    connection::with(target, async |connection: &mut Connection| {
        let mut samples = Samples::new();
        while !stop.load(Ordering::Relaxed) {
            let query = "SELECT coalesce(wait_event_type || ' ' || wait_event, 'running'), count(*) \
                         FROM pg_stat_activity WHERE state = 'active' AND backend_type = 'client backend' \
                         AND pid <> pg_backend_pid() GROUP BY 1";
            connection.simple(query).await?;
            let rows = connection.rows();
            for row in 0..rows.len() {
                *samples.entry(rows.string(row, 0)?.to_owned()).or_insert(0) +=
                    rows.int(row, 1)? as u64;
            }
            // The thread is this connection's alone: nothing else waits while it sleeps.
            std::thread::sleep(LOOK);
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
