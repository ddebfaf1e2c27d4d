//! pgbench's TPC-B-like transaction on pgbench's tables, and the loader of those tables, which
//! `select` and `update` use as well (PostgreSQL's documentation, "pgbench", "What Is the
//! Transaction Actually Performed").
//!
//! Per unit of scale 1 branch, 10 tellers, 100,000 accounts. A transaction moves an amount: the
//! account's, the teller's and the branch's balance change by it and one row of history tells so.
//! Hence the conditions: the three sums and the sum over the history are equal, whatever ran and
//! failed.

use super::{Client, Condition, Doing, Done, Link, Workload};
use crate::load::connection;
use crate::load::random::Random;
use crate::load::sql::{Arg, Book, Sql};
use crate::load::trouble::Result;
use crate::load::url::Target;
use std::sync::Arc;

pub const BRANCHES: i64 = 1;
pub const TELLERS: i64 = 10;
pub const ACCOUNTS: i64 = 100_000;

pub struct Tpcb {
    scale: i64,
    sql: Arc<Statements>,
}

struct Statements {
    begin: Sql,
    account: Sql,
    balance: Sql,
    teller: Sql,
    branch: Sql,
    history: Sql,
    commit: Sql,
}

impl Tpcb {
    pub fn new(scale: i64) -> Tpcb {
        let mut book = Book::default();
        let sql = Statements {
            begin: book.statement("BEGIN"),
            account: book
                .statement("UPDATE pgbench_accounts SET abalance = abalance + $1 WHERE aid = $2"),
            balance: book.statement("SELECT abalance FROM pgbench_accounts WHERE aid = $1"),
            teller: book
                .statement("UPDATE pgbench_tellers SET tbalance = tbalance + $1 WHERE tid = $2"),
            branch: book
                .statement("UPDATE pgbench_branches SET bbalance = bbalance + $1 WHERE bid = $2"),
            history: book.statement(
                "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) \
                 VALUES ($1, $2, $3, $4, CURRENT_TIMESTAMP)",
            ),
            commit: book.statement("END"),
        };
        Tpcb {
            scale,
            sql: Arc::new(sql),
        }
    }
}

impl Workload for Tpcb {
    fn name(&self) -> &'static str {
        "tpcb"
    }

    fn load(&self, target: &Target, say: &dyn Fn(&str)) -> Result<()> {
        load_bank(target, self.scale, say)
    }

    fn client(&self, number: usize, _of: usize, seed: u64) -> Box<dyn Client> {
        Box::new(Teller {
            sql: self.sql.clone(),
            scale: self.scale,
            random: Random::of(seed, number as u64),
            transfer: Transfer::default(),
        })
    }

    fn check(&self, target: &Target) -> Result<Vec<Condition>> {
        check_bank(target)
    }
}

struct Teller {
    sql: Arc<Statements>,
    scale: i64,
    random: Random,
    transfer: Transfer,
}

#[derive(Clone, Copy, Default)]
struct Transfer {
    aid: i64,
    bid: i64,
    tid: i64,
    delta: i64,
}

impl Client for Teller {
    fn draw(&mut self) -> usize {
        let (random, scale) = (&mut self.random, self.scale);
        self.transfer = Transfer {
            aid: random.within(1, ACCOUNTS * scale),
            bid: random.within(1, BRANCHES * scale),
            tid: random.within(1, TELLERS * scale),
            delta: random.within(-5000, 5000),
        };
        0
    }

    fn run<'a>(&'a mut self, link: &'a mut Link) -> Doing<'a> {
        Box::pin(async move {
            let (sql, t) = (&self.sql, self.transfer);
            let (aid, bid, tid) = (Arg::Int(t.aid), Arg::Int(t.bid), Arg::Int(t.tid));
            let delta = Arg::Int(t.delta);
            let connection = link.connection().await?;
            connection.run(&sql.begin, &[]).await?;
            connection.run(&sql.account, &[delta, aid]).await?;
            connection.run(&sql.balance, &[aid]).await?;
            connection.run(&sql.teller, &[delta, tid]).await?;
            connection.run(&sql.branch, &[delta, bid]).await?;
            connection
                .run(&sql.history, &[tid, bid, aid, delta])
                .await?;
            connection.run(&sql.commit, &[]).await?;
            Ok(Done::Committed)
        })
    }
}

const TABLES: [&str; 4] = [
    "CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22))",
    "CREATE TABLE pgbench_tellers (tid int not null, bid int, tbalance int, filler char(84))",
    "CREATE TABLE pgbench_accounts (aid int not null, bid int, abalance int, filler char(84))",
    "CREATE TABLE pgbench_branches (bid int not null, bbalance int, filler char(88))",
];
const KEYS: [&str; 3] = [
    "ALTER TABLE pgbench_branches ADD PRIMARY KEY (bid)",
    "ALTER TABLE pgbench_tellers ADD PRIMARY KEY (tid)",
    "ALTER TABLE pgbench_accounts ADD PRIMARY KEY (aid)",
];

/// Makes and fills pgbench's tables, in either dialect.
pub fn load_bank(target: &Target, scale: i64, say: &dyn Fn(&str)) -> Result<()> {
    say(&format!("{} accounts", ACCOUNTS * scale));
    let dialect = target.dialect;
    connection::with(target, async |connection| {
        let drop = "DROP TABLE IF EXISTS pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers";
        connection.simple(drop).await?;
        for table in TABLES {
            connection.simple(&dialect.create_table(table)).await?;
        }
        let (before, after) = match dialect.keys_come_first() {
            true => (&KEYS[..], &[][..]),
            false => (&[][..], &KEYS[..]),
        };
        for key in before {
            connection.simple(key).await?;
        }
        let branches = rows(BRANCHES * scale, |bid, out| line(out, &[bid, 0], "\\N"));
        connection.fill("pgbench_branches", branches).await?;
        let tellers = rows(TELLERS * scale, |tid, out| {
            line(out, &[tid, (tid - 1) / TELLERS + 1, 0], "\\N");
        });
        connection.fill("pgbench_tellers", tellers).await?;
        let accounts = rows(ACCOUNTS * scale, |aid, out| {
            line(out, &[aid, (aid - 1) / ACCOUNTS + 1, 0], "");
        });
        connection.fill("pgbench_accounts", accounts).await?;
        for key in after {
            connection.simple(key).await?;
        }
        for table in ["pgbench_branches", "pgbench_tellers", "pgbench_accounts"] {
            connection.simple(&dialect.analyze(table)).await?;
        }
        Ok(())
    })
}

/// Writes lines 1 to `count`, one a call.
fn rows(count: i64, mut line: impl FnMut(i64, &mut Vec<u8>)) -> impl FnMut(&mut Vec<u8>) -> bool {
    let mut next = 1;
    move |out| {
        if next <= count {
            line(next, out);
            next += 1;
        }
        next <= count
    }
}

fn line(out: &mut Vec<u8>, numbers: &[i64], filler: &str) {
    for number in numbers {
        Arg::Int(*number).write(out);
        out.push(b'\t');
    }
    out.extend_from_slice(filler.as_bytes());
    out.push(b'\n');
}

/// The balances of accounts, tellers and branches and the history tell the same.
pub fn check_bank(target: &Target) -> Result<Vec<Condition>> {
    connection::with(target, async |connection| {
        let mut sums = [0; 4];
        for (sum, (column, table)) in sums.iter_mut().zip([
            ("abalance", "accounts"),
            ("tbalance", "tellers"),
            ("bbalance", "branches"),
            ("delta", "history"),
        ]) {
            let query = format!("SELECT coalesce(sum({column}), 0) FROM pgbench_{table}");
            connection.simple(&query).await?;
            *sum = connection.rows().int(0, 0)?;
        }
        let name = "balances of accounts, tellers and branches equal the history's sum";
        let equal = sums.iter().all(|s| *s == sums[0]);
        Ok(vec![Condition::of(name, equal, || format!("{sums:?}"))])
    })
}
