//! Connect, one query, close: what short-lived connections cost. Latency is from the connect to the
//! close.

use std::sync::Arc;

use super::{Client, Condition, Doing, Done, Link, Workload};
use crate::load::sql::{Book, Sql};
use crate::load::trouble::{Result, Trouble};
use crate::load::url::Target;

pub struct Connect {
    sql: Arc<Sql>,
}

impl Connect {
    pub fn new() -> Connect {
        Connect {
            sql: Arc::new(Book::default().statement("SELECT 1")),
        }
    }
}

impl Default for Connect {
    fn default() -> Connect {
        Connect::new()
    }
}

impl Workload for Connect {
    fn name(&self) -> &'static str {
        "connect"
    }

    /// Nothing is needed.
    fn load(&self, _target: &Target, _say: &dyn Fn(&str)) -> Result<()> {
        Ok(())
    }

    fn client(&self, _number: usize, _of: usize, _seed: u64) -> Box<dyn Client> {
        Box::new(Visitor {
            sql: self.sql.clone(),
        })
    }

    /// Each visit checks itself: exactly one row.
    fn check(&self, _target: &Target) -> Result<Vec<Condition>> {
        Ok(Vec::new())
    }

    fn connects_itself(&self) -> bool {
        true
    }
}

struct Visitor {
    sql: Arc<Sql>,
}

impl Client for Visitor {
    fn draw(&mut self) -> usize {
        0
    }

    fn run<'a>(&'a mut self, link: &'a mut Link) -> Doing<'a> {
        Box::pin(async move {
            let tally = link.connection().await?.run(&self.sql, &[]).await?;
            link.close().await;
            match tally.rows {
                1 => Ok(Done::Committed),
                rows => Err(Trouble::wrong(format!("{rows} rows for SELECT 1"))),
            }
        })
    }
}
