//! One account's balance changed by its key, in a transaction of its own: a commit a statement, and
//! no row that all clients want, unlike `tpcb`'s branches.

use std::sync::Arc;

use super::tpcb::{ACCOUNTS, load_bank};
use super::{Client, Condition, Doing, Done, Link, Workload};
use crate::load::random::Random;
use crate::load::sql::{Arg, Book, Sql};
use crate::load::trouble::{Result, Trouble};
use crate::load::url::Target;

pub struct Update {
    scale: i64,
    sql: Arc<Sql>,
}

impl Update {
    pub fn new(scale: i64) -> Update {
        let text = "UPDATE pgbench_accounts SET abalance = abalance + $1 WHERE aid = $2";
        Update {
            scale,
            sql: Arc::new(Book::default().statement(text)),
        }
    }
}

impl Workload for Update {
    fn name(&self) -> &'static str {
        "update"
    }

    fn load(&self, target: &Target, say: &dyn Fn(&str)) -> Result<()> {
        load_bank(target, self.scale, say)
    }

    fn client(&self, number: usize, _of: usize, seed: u64) -> Box<dyn Client> {
        Box::new(Writer {
            sql: self.sql.clone(),
            accounts: ACCOUNTS * self.scale,
            random: Random::of(seed, number as u64),
            aid: 0,
            delta: 0,
        })
    }

    /// Each update checks itself: exactly one row.
    fn check(&self, _target: &Target) -> Result<Vec<Condition>> {
        Ok(Vec::new())
    }
}

struct Writer {
    sql: Arc<Sql>,
    accounts: i64,
    random: Random,
    aid: i64,
    delta: i64,
}

impl Client for Writer {
    fn draw(&mut self) -> usize {
        self.aid = self.random.within(1, self.accounts);
        self.delta = self.random.within(-5000, 5000);
        0
    }

    fn run<'a>(&'a mut self, link: &'a mut Link) -> Doing<'a> {
        Box::pin(async move {
            let connection = link.connection().await?;
            let args = [Arg::Int(self.delta), Arg::Int(self.aid)];
            let tally = connection.run(&self.sql, &args).await?;
            match tally.affected {
                1 => Ok(Done::Committed),
                rows => Err(Trouble::wrong(format!(
                    "{rows} rows changed for account {}",
                    self.aid
                ))),
            }
        })
    }
}
