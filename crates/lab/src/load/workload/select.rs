//! pgbench's `select-only`: one account by its key.

use std::sync::Arc;

use super::tpcb::{ACCOUNTS, load_bank};
use super::{Client, Condition, Doing, Done, Link, Workload};
use crate::load::dialect::Dialect;
use crate::load::random::Random;
use crate::load::sql::{Arg, Book, Sql};
use crate::load::trouble::{Result, Trouble};
use crate::load::url::Target;

pub struct Select {
    scale: i64,
    sql: Arc<Sql>,
}

impl Select {
    pub fn new(scale: i64, dialect: Dialect) -> Select {
        let text = "SELECT abalance FROM pgbench_accounts WHERE aid = $1";
        Select {
            scale,
            sql: Arc::new(Book::new(dialect).statement(text)),
        }
    }
}

impl Workload for Select {
    fn name(&self) -> &'static str {
        "select"
    }

    fn load(&self, target: &Target, say: &dyn Fn(&str)) -> Result<()> {
        load_bank(target, self.scale, say)
    }

    fn client(&self, number: usize, _of: usize, seed: u64) -> Box<dyn Client> {
        Box::new(Reader {
            sql: self.sql.clone(),
            accounts: ACCOUNTS * self.scale,
            random: Random::of(seed, number as u64),
            aid: 0,
        })
    }

    /// Each read checks itself: exactly one row.
    fn check(&self, _target: &Target) -> Result<Vec<Condition>> {
        Ok(Vec::new())
    }
}

struct Reader {
    sql: Arc<Sql>,
    accounts: i64,
    random: Random,
    aid: i64,
}

impl Client for Reader {
    fn draw(&mut self) -> usize {
        self.aid = self.random.within(1, self.accounts);
        0
    }

    fn run<'a>(&'a mut self, link: &'a mut Link) -> Doing<'a> {
        Box::pin(async move {
            let connection = link.connection().await?;
            let tally = connection.run(&self.sql, &[Arg::Int(self.aid)]).await?;
            match tally.rows {
                1 => Ok(Done::Committed),
                rows => Err(Trouble::wrong(format!(
                    "{rows} rows for account {}",
                    self.aid
                ))),
            }
        })
    }
}
