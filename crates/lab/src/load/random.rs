//! The random numbers of workloads: uniform, and the skewed ones that pgbench and TPC-C name.
//!
//! A generator is seeded from the run's seed and the client's number, so that two targets are asked
//! the same things.

use rand::rngs::SmallRng;
use rand::{Rng, RngCore, SeedableRng};

#[derive(Clone)]
pub struct Random(SmallRng);

impl Random {
    /// The stream of one client; streams of different clients have nothing in common.
    pub fn of(seed: u64, stream: u64) -> Random {
        // SmallRng's seeding spreads the bits (SplitMix64); an odd factor keeps all pairs apart.
        Random(SmallRng::seed_from_u64(
            seed ^ stream.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        ))
    }

    /// Each of `low..=high` as likely.
    #[inline]
    pub fn within(&mut self, low: i64, high: i64) -> i64 {
        self.0.random_range(low..=high)
    }

    /// True in `percent` of 100 cases.
    pub fn percent(&mut self, percent: i64) -> bool {
        self.within(1, 100) <= percent
    }

    /// In [0, 1).
    pub fn unit(&mut self) -> f64 {
        self.0.random()
    }

    /// A time between two events that come independently, `mean` on average.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        // 1 - unit() is in (0, 1]: its logarithm is finite.
        -(1.0 - self.unit()).ln() * mean
    }

    /// `low..=high`, its lower values likelier: pgbench's `random_exponential`, with `parameter` > 0.
    pub fn exponential_within(&mut self, low: i64, high: i64, parameter: f64) -> i64 {
        let cut = (-parameter).exp();
        let uniform = 1.0 - self.unit();
        let share = -(cut + (1.0 - cut) * uniform).ln() / parameter;
        low + ((width(low, high) * share) as i64).min(high - low)
    }

    /// `low..=high`, its middle likelier: pgbench's `random_gaussian`, with `parameter` >= 2.
    pub fn gaussian_within(&mut self, low: i64, high: i64, parameter: f64) -> i64 {
        // Box and Muller's transform; what falls outside ±parameter is drawn again.
        let normal = loop {
            let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
            let normal = radius * (std::f64::consts::TAU * self.unit()).sin();
            if normal >= -parameter && normal < parameter {
                break normal;
            }
        };
        let share = (normal + parameter) / (parameter * 2.0);
        low + ((width(low, high) * share) as i64).min(high - low)
    }

    /// `low..=high`, rank k in proportion to k^-s: pgbench's `random_zipfian`, with s > 1
    /// (Devroye, "Non-Uniform Random Variate Generation", 1986, chapter X.6).
    pub fn zipfian_within(&mut self, low: i64, high: i64, s: f64) -> i64 {
        let n = width(low, high);
        let b = 2f64.powf(s - 1.0);
        loop {
            let (u, v) = (1.0 - self.unit(), self.unit());
            let x = u.powf(-1.0 / (s - 1.0)).floor();
            let t = (1.0 + 1.0 / x).powf(s - 1.0);
            if v * x * (t - 1.0) / (b - 1.0) <= t / b && x <= n {
                return low + (x as i64 - 1);
            }
        }
    }

    /// TPC-C's non-uniform distribution (clause 2.1.6): `(((0..=a | low..=high) + c) %
    /// (high-low+1)) + low`.
    pub fn nurand(&mut self, a: i64, c: i64, low: i64, high: i64) -> i64 {
        let mixed = self.within(0, a) | self.within(low, high);
        (mixed + c) % (high - low + 1) + low
    }

    /// Letters and digits, `low..=high` of them, appended.
    pub fn text(&mut self, low: i64, high: i64, out: &mut Vec<u8>) {
        const SIGNS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789Zz";
        let mut left = self.within(low, high) as usize;
        // Six bits a sign, ten signs a number drawn: loading draws hundreds of megabytes.
        while left > 0 {
            let mut bits = self.0.next_u64();
            for _ in 0..left.min(10) {
                out.push(SIGNS[(bits & 63) as usize]);
                bits >>= 6;
            }
            left -= left.min(10);
        }
    }

    /// Puts the elements in a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.within(0, last as i64) as usize;
            items.swap(last, other);
        }
    }
}

/// How many values there are.
fn width(low: i64, high: i64) -> f64 {
    (high - low) as f64 + 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(of: i64, mut draw: impl FnMut(&mut Random) -> i64) -> Vec<u32> {
        let mut random = Random::of(7, 0);
        let mut counts = vec![0; of as usize];
        for _ in 0..20_000 {
            counts[draw(&mut random) as usize - 1] += 1;
        }
        counts
    }

    #[test]
    fn streams_repeat_and_differ() {
        let draw = |seed, stream| {
            let mut random = Random::of(seed, stream);
            [(); 4].map(|()| random.within(0, i64::MAX - 1))
        };
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_ne!(draw(1, 2), draw(2, 2));
    }

    #[test]
    fn skewed_distributions_have_their_shapes_and_bounds() {
        let falling = |counts: &[u32]| counts.windows(2).all(|w| w[0] > w[1]);
        assert!(falling(&counts(5, |r| r.exponential_within(1, 5, 3.0))));
        assert!(falling(&counts(5, |r| r.zipfian_within(1, 5, 1.5))));
        let bell = counts(5, |r| r.gaussian_within(1, 5, 3.0));
        assert!(bell[2] > bell[1] && bell[2] > bell[3]);
        assert!(bell[1] > bell[0] && bell[3] > bell[4]);
        // k^-1.5 for 1 and 2: 2.83 to 1
        let zipf = counts(100, |r| r.zipfian_within(1, 100, 1.5));
        let ratio = f64::from(zipf[0]) / f64::from(zipf[1]);
        assert!((2.6..3.1).contains(&ratio), "{ratio}");
    }

    #[test]
    fn nurand_favours_values_with_many_bits() {
        // With c = 0 and a range of powers of two, a value's chance grows with the bits it has in
        // A's part: 255 needs for each of 8 bits one of two draws to have it, 0 needs all to be
        // clear.
        let mut random = Random::of(7, 0);
        let mut seen = [0u32; 2];
        for _ in 0..100_000 {
            match random.nurand(255, 0, 0, 1023) & 255 {
                0 => seen[0] += 1,
                255 => seen[1] += 1,
                _ => {}
            }
        }
        // (3/4)^8 = 10 % against (1/4)^8 = 0.0015 %
        assert!(
            seen[1] > 9_000 && seen[1] < 11_000 && seen[0] < 20,
            "{seen:?}"
        );
        for _ in 0..10_000 {
            assert!((1..=3000).contains(&random.nurand(1023, 259, 1, 3000)));
        }
    }

    #[test]
    fn texts() {
        let mut random = Random::of(1, 1);
        let mut out = Vec::new();
        random.text(24, 24, &mut out);
        assert!(out.len() == 24 && out.iter().all(u8::is_ascii_alphanumeric));
    }

    #[test]
    fn shuffling_keeps_the_elements() {
        let mut deck: Vec<u32> = (0..100).collect();
        Random::of(3, 3).shuffle(&mut deck);
        assert!(deck.windows(2).any(|w| w[0] > w[1]));
        deck.sort_unstable();
        assert!(deck.iter().copied().eq(0..100));
    }
}
