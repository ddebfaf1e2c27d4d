//! TABLESAMPLE: which of a table's rows are taken.
//!
//! A row, or a page with all its rows, is taken where the hash of its place and a seed is below a
//! share of all hashes: so one seed takes the same rows again and again, and a larger share takes
//! those and more. The hash is PostgreSQL's.

use throng_types::error::state;
use throng_types::{Datum, Error, Result, Tid};

use crate::tree::expr::Expr;
use throng_values::hash::hash_any;

/// What was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub method: SampleMethod,
    /// A `real`, without the scan's own row.
    pub percent: Expr,
    /// REPEATABLE: a `double precision`.
    pub seed: Option<Expr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleMethod {
    /// Each row for itself.
    Bernoulli,
    /// Whole pages.
    System,
}

impl SampleMethod {
    pub fn of_name(name: &str) -> Option<SampleMethod> {
        match name {
            "bernoulli" => Some(SampleMethod::Bernoulli),
            "system" => Some(SampleMethod::System),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            SampleMethod::Bernoulli => "bernoulli",
            SampleMethod::System => "system",
        }
    }
}

impl Sample {
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        std::iter::once(&self.percent).chain(&self.seed)
    }

    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        std::iter::once(&mut self.percent).chain(&mut self.seed)
    }
}

/// What a scan takes.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    method: SampleMethod,
    /// Hashes below it are taken; past the last one for all.
    below: u64,
    seed: u32,
}

impl Taken {
    /// `seed`: none where any will do, which is `any` then.
    ///
    /// # Errors
    /// 2202H and 2202G for what is no share or no seed.
    pub fn new(
        method: SampleMethod,
        percent: &Datum,
        seed: Option<&Datum>,
        any: u32,
    ) -> Result<Taken> {
        let share = match percent {
            Datum::Float4(percent) => f64::from(*percent),
            _ => {
                let message = "TABLESAMPLE parameter cannot be null";
                return Err(Error::new(state::INVALID_TABLESAMPLE_ARGUMENT, message));
            }
        };
        let seed = match seed {
            None => any,
            Some(Datum::Float8(0.0)) => 0,
            Some(Datum::Float8(seed)) => hash_any(&seed.to_le_bytes()),
            Some(_) => {
                let message = "TABLESAMPLE REPEATABLE parameter cannot be null";
                return Err(Error::new(state::INVALID_TABLESAMPLE_REPEAT, message));
            }
        };
        if !(0.0..=100.0).contains(&share) {
            let message = "sample percentage must be between 0 and 100";
            return Err(Error::new(state::INVALID_TABLESAMPLE_ARGUMENT, message));
        }
        let all = f64::from(u32::MAX) + 1.0;
        Ok(Taken {
            method,
            below: (all * share / 100.0).round_ties_even() as u64,
            seed,
        })
    }

    /// Whether rows of a page may be taken.
    pub fn page(&self, block: u32) -> bool {
        match self.method {
            SampleMethod::Bernoulli => self.below > 0,
            SampleMethod::System => self.hash(&[block, self.seed]),
        }
    }

    /// Whether a row of a page that was taken is.
    pub fn row(&self, tid: Tid) -> bool {
        match self.method {
            SampleMethod::Bernoulli => self.hash(&[tid.block, u32::from(tid.slot), self.seed]),
            SampleMethod::System => true,
        }
    }

    fn hash(&self, words: &[u32]) -> bool {
        let mut bytes = [0u8; 12];
        for (word, place) in words.iter().zip(bytes.chunks_exact_mut(4)) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        u64::from(hash_any(&bytes[..4 * words.len()])) < self.below
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_takes_what_a_smaller_one_does() {
        let taken = |percent: f32| {
            let seed = Datum::Float8(0.0);
            Taken::new(
                SampleMethod::Bernoulli,
                &Datum::Float4(percent),
                Some(&seed),
                0,
            )
            .unwrap()
        };
        let (few, many, all, none) = (taken(10.0), taken(40.0), taken(100.0), taken(0.0));
        let rows = || (1..2000u16).map(|slot| Tid { block: 3, slot });
        assert!(rows().all(|tid| !few.row(tid) || many.row(tid)));
        assert!(rows().all(|tid| all.row(tid) && !none.row(tid)));
        let share = rows().filter(|tid| many.row(*tid)).count();
        assert!((700..900).contains(&share), "{share}");
    }
}
