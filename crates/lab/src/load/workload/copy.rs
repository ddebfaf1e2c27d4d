//! Many clients COPY into one table with a primary key at once (PolarDB's case of the relation
//! extension lock).
//!
//! A transaction is one COPY of [`Copy::rows`] rows of about 100 bytes. Each client writes keys of
//! its own range, ascending, so no two rows collide and the index grows at as many places as there
//! are clients.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Client, Condition, Doing, Done, Link, Workload};
use crate::load::connection;
use crate::load::sql::Arg;
use crate::load::trouble::{Result, Trouble};
use crate::load::url::Target;

/// What every row carries besides its key and its number: a row is about 100 bytes on the page.
const FILLER: &str = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefgh";

/// Keys of one client: more than it can bring in any run.
const CLIENT_KEYS: i64 = 1 << 26;

const DROP: &str = "DROP TABLE IF EXISTS bench_copy";

pub struct Copy {
    rows: i64,
    /// By all clients of all runs since the load.
    answered: Arc<Mutex<Answered>>,
    /// Clients made so far: each gets a range of keys of its own, in every run.
    clients: AtomicU64,
}

/// What COPYs brought that were answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Answered {
    rows: i64,
    /// The sum of their keys.
    keys: i128,
}

impl Copy {
    /// `rows` a COPY.
    pub fn new(rows: i64) -> Copy {
        Copy {
            rows,
            answered: Arc::default(),
            clients: AtomicU64::new(0),
        }
    }

    fn answered(&self) -> MutexGuard<'_, Answered> {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Workload for Copy {
    fn name(&self) -> &'static str {
        "copy"
    }

    fn load(&self, target: &Target, _say: &dyn Fn(&str)) -> Result<()> {
        *self.answered() = Answered::default();
        connection::with(target, async |connection| {
            connection.simple(DROP).await?;
            let create = "CREATE TABLE bench_copy (id bigint PRIMARY KEY, amount int not null, filler text not null)";
            connection.simple(create).await?;
            Ok(())
        })
    }

    fn client(&self, _number: usize, _of: usize, _seed: u64) -> Box<dyn Client> {
        let client = self.clients.fetch_add(1, Ordering::Relaxed) as i64;
        Box::new(Loader {
            rows: self.rows,
            next: client * CLIENT_KEYS,
            answered: self.answered.clone(),
        })
    }

    fn check(&self, target: &Target) -> Result<Vec<Condition>> {
        let answered = *self.answered();
        connection::with(target, async |connection| {
            let query = "SELECT count(*), coalesce(sum(id), 0) FROM bench_copy";
            connection.simple(query).await?;
            let keys = connection.rows().string(0, 1)?;
            let there = Answered {
                rows: connection.rows().int(0, 0)?,
                keys: keys
                    .parse()
                    .map_err(|_| Trouble::wrong(format!("sum {keys}")))?,
            };
            let name = "the rows and keys of the COPYs that were answered, and no others";
            Ok(vec![Condition::of(name, there == answered, || {
                format!("{there:?} instead of {answered:?}")
            })])
        })
    }

    /// A minute's rows fill gigabytes.
    fn tidy(&self, target: &Target) -> Result<()> {
        connection::with(target, async |connection| {
            connection.simple(DROP).await.map(drop)
        })
    }
}

struct Loader {
    rows: i64,
    next: i64,
    answered: Arc<Mutex<Answered>>,
}

impl Client for Loader {
    fn draw(&mut self) -> usize {
        self.next += self.rows;
        0
    }

    fn run<'a>(&'a mut self, link: &'a mut Link) -> Doing<'a> {
        Box::pin(async move {
            let connection = link.connection().await?;
            let (mut id, end) = (self.next - self.rows, self.next);
            let more = |out: &mut Vec<u8>| {
                Arg::Int(id).write(out);
                out.push(b'\t');
                Arg::Int(id % 10_007).write(out);
                out.push(b'\t');
                out.extend_from_slice(FILLER.as_bytes());
                out.push(b'\n');
                id += 1;
                id < end
            };
            let tally = connection.fill("bench_copy", more).await?;
            if tally.affected != self.rows as u64 {
                return Err(Trouble::wrong(format!(
                    "COPY {} instead of {}",
                    tally.affected, self.rows
                )));
            }
            let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
            answered.rows += self.rows;
            answered.keys += (self.next - self.rows..self.next)
                .map(i128::from)
                .sum::<i128>();
            Ok(Done::Committed)
        })
    }
}
