//! Medians and spreads of a few rounds, and the rule by which two variants are told apart.
//!
//! Rounds are few and a neighbour's disturbance is one-sided, so everything here goes by order, not
//! by means: the median, the median distance from it, the least and the most.

use serde::Serialize;

/// What some rounds measured of one thing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spread {
    pub median: f64,
    pub least: f64,
    pub most: f64,
    /// The median distance from the median.
    pub mad: f64,
    /// Round by round, in the order they were run.
    pub rounds: Vec<f64>,
}

impl Spread {
    /// None if there is nothing to add up.
    pub fn of(rounds: &[f64]) -> Option<Spread> {
        let middle = median(rounds)?;
        let distances: Vec<f64> = rounds.iter().map(|x| (x - middle).abs()).collect();
        Some(Spread {
            median: middle,
            least: rounds.iter().copied().fold(f64::INFINITY, f64::min),
            most: rounds.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            mad: median(&distances)?,
            rounds: rounds.to_vec(),
        })
    }
}

/// The middle value, or the mean of the middle two. None of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[half]),
        _ => Some((sorted[half - 1] + sorted[half]) / 2.0),
    }
}

/// What became of a published effect here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Reproduced,
    TooSmall,
    OtherWay,
}

/// A difference of less than this is not told from the machine's own drift, however steady the
/// rounds.
pub const LEAST_DIFFERENCE: f64 = 0.03;

/// The rule of [`judge`], to be printed with its outcome.
pub const RULE: &str = "each round compares the two variants' turns of that round; the effect counts as reproduced, \
                        or as running the other way, when the median ratio differs from 1 by 3 % or more and all \
                        rounds agree on the direction (of ten or more, one in ten may disagree)";

/// Tells from the rounds' ratios (how many times better the later variant was, so above 1 is the
/// published direction) what became of the effect. None without rounds.
///
/// Where there is no effect, all of `n` rounds agree by chance in one of `2^(n-1)` runs: in 6 % of
/// runs with 5 rounds, in 25 % with 3. The 3 % keep out what is steady but small.
pub fn judge(ratios: &[f64]) -> Option<Outcome> {
    let middle = median(ratios)?;
    let agreeing = |up: bool| ratios.iter().filter(|r| (**r > 1.0) == up).count();
    let enough = ratios.len() - ratios.len() / 10;
    Some(
        if middle >= 1.0 + LEAST_DIFFERENCE && agreeing(true) >= enough {
            Outcome::Reproduced
        } else if middle <= 1.0 / (1.0 + LEAST_DIFFERENCE) && agreeing(false) >= enough {
            Outcome::OtherWay
        } else {
            Outcome::TooSmall
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_spreads() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), Some(3.0));
        let spread = Spread::of(&[10.0, 30.0, 11.0, 12.0, 9.0]).expect("five rounds");
        assert_eq!((spread.median, spread.mad), (11.0, 1.0));
        assert_eq!((spread.least, spread.most), (9.0, 30.0));
        assert_eq!(spread.rounds, [10.0, 30.0, 11.0, 12.0, 9.0]);
    }

    #[test]
    fn the_rule() {
        use Outcome::{OtherWay, Reproduced, TooSmall};
        let cases: &[(&[f64], Outcome)] = &[
            (&[1.2, 1.3, 1.1, 1.04, 1.5], Reproduced),
            // One round of five against it.
            (&[1.2, 1.3, 0.99, 1.04, 1.5], TooSmall),
            // Steady, but less than the machine's drift.
            (&[1.02, 1.02, 1.02, 1.02, 1.02], TooSmall),
            (&[0.9, 0.8, 0.96, 0.7, 0.95], OtherWay),
            (&[0.99, 0.98, 0.99, 0.98, 0.99], TooSmall),
            // One of ten may disagree, two may not.
            (
                &[1.2, 1.2, 1.2, 1.2, 1.2, 1.2, 1.2, 1.2, 1.2, 0.9],
                Reproduced,
            ),
            (
                &[1.2, 1.2, 1.2, 1.2, 1.2, 1.2, 1.2, 1.2, 0.9, 0.9],
                TooSmall,
            ),
            (&[4.7], Reproduced),
        ];
        for (ratios, outcome) in cases {
            assert_eq!(judge(ratios), Some(*outcome), "{ratios:?}");
        }
        assert_eq!(judge(&[]), None);
    }
}
