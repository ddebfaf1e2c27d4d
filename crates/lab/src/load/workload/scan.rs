//! Sensor readings, and many clients that each ask for a range of time (DolphinDB's case of 1000
//! concurrent jobs).
//!
//! ```text
//! bench_reading   sensor, at (seconds from the start), value        primary key (sensor, at)
//! ```
//!
//! Every sensor reports once a second. A transaction asks one random sensor for a random range and
//! gets count, sum, least and greatest, which follow from the sensor and the range, so every answer
//! is checked.

use std::sync::Arc;

use super::{Client, Condition, Doing, Done, Link, Workload};
use crate::load::connection;
use crate::load::random::Random;
use crate::load::sql::{Arg, Book, Sql};
use crate::load::trouble::{Result, Trouble};
use crate::load::url::Target;

pub struct Scan {
    sensors: i64,
    /// Of each sensor.
    readings: i64,
    /// Readings that a query goes through.
    range: i64,
    sql: Arc<Sql>,
}

impl Scan {
    pub fn new(sensors: i64, readings: i64, range: i64) -> Scan {
        let text = "SELECT count(*), sum(value), min(value), max(value) FROM bench_reading \
                    WHERE sensor = $1 AND at >= $2 AND at < $3";
        Scan {
            sensors,
            readings,
            range: range.min(readings),
            sql: Arc::new(Book::default().query(text)),
        }
    }
}

/// What sensor `sensor` reads at second `at`: a saw tooth of the sensor's own period, so that sums
/// are easily said and no two sensors look alike.
fn value(sensor: i64, at: i64) -> i64 {
    (at + sensor * 37) % (1000 + sensor % 97)
}

impl Workload for Scan {
    fn name(&self) -> &'static str {
        "scan"
    }

    fn load(&self, target: &Target, say: &dyn Fn(&str)) -> Result<()> {
        say(&format!("{} readings", self.sensors * self.readings));
        connection::with(target, async |connection| {
            for statement in [
                "DROP TABLE IF EXISTS bench_reading",
                "CREATE TABLE bench_reading (sensor int not null, at bigint not null, value int not null)",
            ] {
                connection.simple(statement).await?;
            }
            let (mut sensor, mut at) = (1, 0);
            // By time, as readings arrive: one sensor's lie spread over the table.
            let more = |out: &mut Vec<u8>| {
                for (number, end) in [(sensor, b'\t'), (at, b'\t'), (value(sensor, at), b'\n')] {
                    Arg::Int(number).write(out);
                    out.push(end);
                }
                sensor += 1;
                if sensor > self.sensors {
                    (sensor, at) = (1, at + 1);
                }
                at < self.readings
            };
            connection.fill("bench_reading", more).await?;
            for statement in [
                "ALTER TABLE bench_reading ADD PRIMARY KEY (sensor, at)",
                "VACUUM ANALYZE bench_reading",
            ] {
                connection.simple(statement).await?;
            }
            Ok(())
        })
    }

    fn client(&self, number: usize, _of: usize, seed: u64) -> Box<dyn Client> {
        Box::new(Job {
            sql: self.sql.clone(),
            sensors: self.sensors,
            readings: self.readings,
            range: self.range,
            random: Random::of(seed, number as u64),
            sensor: 0,
            from: 0,
        })
    }

    /// Each query checks itself.
    fn check(&self, _target: &Target) -> Result<Vec<Condition>> {
        Ok(Vec::new())
    }
}

struct Job {
    sql: Arc<Sql>,
    sensors: i64,
    readings: i64,
    range: i64,
    random: Random,
    sensor: i64,
    from: i64,
}

impl Job {
    /// What the answer must be.
    fn expected(&self) -> [i64; 4] {
        let values = (self.from..self.from + self.range).map(|at| value(self.sensor, at));
        values.fold([0, 0, i64::MAX, i64::MIN], |[n, sum, least, most], v| {
            [n + 1, sum + v, least.min(v), most.max(v)]
        })
    }
}

impl Client for Job {
    fn draw(&mut self) -> usize {
        self.sensor = self.random.within(1, self.sensors);
        self.from = self.random.within(0, self.readings - self.range);
        0
    }

    fn run<'a>(&'a mut self, link: &'a mut Link) -> Doing<'a> {
        Box::pin(async move {
            let connection = link.connection().await?;
            let bounds = [self.sensor, self.from, self.from + self.range].map(Arg::Int);
            connection.run(&self.sql, &bounds).await?;
            let rows = connection.rows();
            let mut got = [0; 4];
            for (column, value) in got.iter_mut().enumerate() {
                *value = rows.int(0, column)?;
            }
            let expected = self.expected();
            match got == expected {
                true => Ok(Done::Committed),
                false => Err(Trouble::wrong(format!(
                    "sensor {} from {}: {got:?} instead of {expected:?}",
                    self.sensor, self.from
                ))),
            }
        })
    }
}
