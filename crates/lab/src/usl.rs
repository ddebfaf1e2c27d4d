//! The Universal Scalability Law, fitted to throughputs.
//!
//! ```text
//!                       λ N
//! X(N) = ───────────────────────────────      λ  throughput of one client
//!         1 + σ (N − 1) + κ N (N − 1)         σ  contention: the part that is done one at a time
//!                                             κ  coherence: what each pays to agree with each other one
//! ```
//!
//! (N. J. Gunther, *Guerrilla Capacity Planning*, 2007, chapter 4.) With κ > 0 throughput falls
//! beyond N* = √((1 − σ)/κ). Where there are more clients than cores, σ also holds the cores: a
//! machine of two that loses nothing else shows σ near 1/2.
//!
//! The fit is nonlinear least squares on the logarithm of the throughput, since what disturbs a
//! measurement is a share of it, not an amount; σ and κ are kept at or above 0, where the law is
//! defined. Uncertainty comes from fitting again to measurements drawn from the measured ones with
//! replacement (pairs bootstrap, B. Efron 1979), drawn over all points at once, so that what the
//! law cannot describe widens the interval too.

use serde::Serialize;

/// Different numbers of clients needed: the law has three unknowns, and a fit through as many
/// points proves nothing.
pub const LEAST_POINTS: usize = 4;
const RESAMPLES: usize = 400;
const STEPS: usize = 200;
/// Above this mean deviation the coefficients describe a curve that the points do not follow.
const POOR: f64 = 0.10;

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub struct Observed {
    pub clients: f64,
    /// Operations a second.
    pub throughput: f64,
}

/// The law's coefficients.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Coefficients {
    pub lambda: f64,
    pub sigma: f64,
    pub kappa: f64,
}

/// The middle 95 % of what the resamples gave.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Law {
    Fitted(Fit),
    /// Why there is none.
    Absent(String),
}

#[derive(Clone, Debug, Serialize)]
pub struct Fit {
    #[serde(flatten)]
    pub coefficients: Coefficients,
    pub lambda_95: Interval,
    pub sigma_95: Interval,
    pub kappa_95: Interval,
    /// Clients at the most throughput, where the law has a peak.
    pub peak: Option<f64>,
    /// The typical deviation of a measurement from the curve, as a share of it.
    pub misfit: f64,
}

impl Coefficients {
    pub fn throughput(&self, clients: f64) -> f64 {
        self.lambda * clients / self.slowdown(clients)
    }

    fn slowdown(&self, n: f64) -> f64 {
        1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0)
    }

    fn peak(&self) -> Option<f64> {
        (self.kappa > 0.0 && self.sigma < 1.0).then(|| ((1.0 - self.sigma) / self.kappa).sqrt())
    }
}

impl Fit {
    pub fn is_poor(&self) -> bool {
        self.misfit > POOR
    }
}

/// Fits the law, or says why not.
pub fn fit(observed: &[Observed]) -> Law {
    let usable: Vec<Observed> = (observed.iter().copied())
        .filter(|o| o.throughput > 0.0 && o.clients >= 1.0)
        .collect();
    let points = distinct(&usable);
    if points < LEAST_POINTS {
        return Law::Absent(format!(
            "the scalability law needs {LEAST_POINTS} different numbers of clients, {points} measured"
        ));
    }
    let coefficients = least_squares(&usable);
    let mut draws = Draws::new();
    let resampled: Vec<Coefficients> = (0..RESAMPLES)
        .map(|_| least_squares(&draws.resample(&usable)))
        .collect();
    let interval = |of: fn(&Coefficients) -> f64| {
        let mut values: Vec<f64> = resampled.iter().map(of).collect();
        values.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| values[(share * (values.len() - 1) as f64).round() as usize];
        Interval {
            low: at(0.025),
            high: at(0.975),
        }
    };
    Law::Fitted(Fit {
        coefficients,
        lambda_95: interval(|c| c.lambda),
        sigma_95: interval(|c| c.sigma),
        kappa_95: interval(|c| c.kappa),
        peak: coefficients.peak(),
        misfit: (squares(&coefficients, &usable) / usable.len() as f64).sqrt(),
    })
}

fn distinct(observed: &[Observed]) -> usize {
    let mut clients: Vec<f64> = observed.iter().map(|o| o.clients).collect();
    clients.sort_unstable_by(f64::total_cmp);
    clients.dedup();
    clients.len()
}

/// The sum of squared deviations in the logarithm.
fn squares(c: &Coefficients, observed: &[Observed]) -> f64 {
    let deviation = |o: &Observed| (o.throughput / c.throughput(o.clients)).ln();
    observed.iter().map(|o| deviation(o).powi(2)).sum()
}

/// Levenberg's and Marquardt's method over (σ, κ), with λ at its best for each pair: in the
/// logarithm λ is a mere offset, so its best value is the mean deviation.
fn least_squares(observed: &[Observed]) -> Coefficients {
    let mut best = with_best_lambda(0.1, 0.001, observed);
    let mut cost = squares(&best, observed);
    let mut damping = 1e-3;
    for _ in 0..STEPS {
        let Some((sigma, kappa)) = step(&best, observed, damping) else {
            break;
        };
        let next = with_best_lambda(sigma.max(0.0), kappa.max(0.0), observed);
        let next_cost = squares(&next, observed);
        if next_cost < cost {
            let settled = cost - next_cost <= 1e-12 * cost;
            (best, cost) = (next, next_cost);
            damping = f64::max(damping / 10.0, 1e-12);
            if settled {
                break;
            }
        } else if damping > 1e12 {
            break;
        } else {
            damping *= 10.0;
        }
    }
    best
}

fn with_best_lambda(sigma: f64, kappa: f64, observed: &[Observed]) -> Coefficients {
    let unit = Coefficients {
        lambda: 1.0,
        sigma,
        kappa,
    };
    let deviations = (observed.iter()).map(|o| (o.throughput / unit.throughput(o.clients)).ln());
    let mean = deviations.sum::<f64>() / observed.len() as f64;
    Coefficients {
        lambda: mean.exp(),
        ..unit
    }
}

/// The next (σ, κ): solves the damped normal equations. A coefficient at 0 that would go below is
/// held there.
fn step(c: &Coefficients, observed: &[Observed], damping: f64) -> Option<(f64, f64)> {
    let n = observed.len() as f64;
    // Of ln X: what each coefficient changes, and what is left to explain. Means are taken off,
    // which is what λ following along does.
    let rows: Vec<[f64; 3]> = (observed.iter())
        .map(|o| {
            let slowdown = c.slowdown(o.clients);
            let by_sigma = -(o.clients - 1.0) / slowdown;
            let by_kappa = o.clients * by_sigma;
            let left = (o.throughput / c.throughput(o.clients)).ln();
            [by_sigma, by_kappa, left]
        })
        .collect();
    let mean = |k: usize| rows.iter().map(|row| row[k]).sum::<f64>() / n;
    let means = [mean(0), mean(1), mean(2)];
    let product = |j: usize, k: usize| -> f64 {
        let centred = |row: &[f64; 3], k: usize| row[k] - means[k];
        rows.iter()
            .map(|row| centred(row, j) * centred(row, k))
            .sum()
    };
    let (ss, kk, sk) = (product(0, 0), product(1, 1), product(0, 1));
    let (sl, kl) = (product(0, 2), product(1, 2));
    let (ss, kk) = (ss * (1.0 + damping), kk * (1.0 + damping));
    let determinant = ss * kk - sk * sk;
    if !determinant.is_finite() || determinant <= 0.0 {
        return None;
    }
    let sigma = (sl * kk - kl * sk) / determinant;
    let kappa = (kl * ss - sl * sk) / determinant;
    Some(if c.sigma <= 0.0 && sigma < 0.0 {
        (0.0, c.kappa + kl / kk)
    } else if c.kappa <= 0.0 && kappa < 0.0 {
        (c.sigma + sl / ss, 0.0)
    } else {
        (c.sigma + sigma, c.kappa + kappa)
    })
}

/// Draws with replacement, the same in every run: the same measurements give the same report.
struct Draws {
    state: u64,
}

impl Draws {
    fn new() -> Draws {
        Draws {
            state: 0x9E37_79B9_7F4A_7C15,
        }
    }

    /// Below `bound`. (SplitMix64, S. Vigna; the bias of the remainder is immaterial at these
    /// sizes.)
    fn below(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    /// As many as there are, with enough different numbers of clients left to determine the law.
    /// When chance keeps failing that, all of them.
    fn resample(&mut self, observed: &[Observed]) -> Vec<Observed> {
        for _ in 0..100 {
            let drawn: Vec<Observed> = (0..observed.len())
                .map(|_| observed[self.below(observed.len())])
                .collect();
            if distinct(&drawn) >= LEAST_POINTS - 1 {
                return drawn;
            }
        }
        observed.to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUNDS: usize = 5;

    /// What the law gives, each measurement off by up to `noise` of it.
    fn synthetic(truth: Coefficients, clients: &[u32], noise: f64) -> Vec<Observed> {
        let mut draws = Draws { state: 42 };
        let mut disturbed = |n: f64| {
            let off = draws.below(2001) as f64 / 1000.0 - 1.0;
            Observed {
                clients: n,
                throughput: truth.throughput(n) * (1.0 + noise * off),
            }
        };
        (clients.iter())
            .flat_map(|&n| [f64::from(n); ROUNDS])
            .map(&mut disturbed)
            .collect()
    }

    fn fitted(observed: &[Observed]) -> Fit {
        match fit(observed) {
            Law::Fitted(fit) => fit,
            Law::Absent(why) => panic!("{why}"),
        }
    }

    fn close(a: f64, b: f64, share: f64) -> bool {
        (a - b).abs() <= share * b.abs()
    }

    const MANY: &[u32] = &[1, 2, 4, 8, 16, 32, 64, 128];

    #[test]
    fn exact_measurements_give_the_exact_law() {
        for (sigma, kappa) in [
            (0.02, 0.0005),
            (0.5, 0.001),
            (0.0, 0.01),
            (0.3, 0.0),
            (0.0, 0.0),
        ] {
            let truth = Coefficients {
                lambda: 1234.5,
                sigma,
                kappa,
            };
            let fit = fitted(&synthetic(truth, MANY, 0.0));
            let got = fit.coefficients;
            assert!(close(got.lambda, truth.lambda, 1e-3), "{truth:?}: {got:?}");
            assert!((got.sigma - sigma).abs() < 1e-4, "{truth:?}: {got:?}");
            assert!((got.kappa - kappa).abs() < 1e-5, "{truth:?}: {got:?}");
            assert!(fit.misfit < 1e-3);
        }
    }

    #[test]
    fn noisy_measurements_give_the_law_within_its_uncertainty() {
        let truth = Coefficients {
            lambda: 25_000.0,
            sigma: 0.05,
            kappa: 0.0004,
        };
        let fit = fitted(&synthetic(truth, MANY, 0.05));
        let holds = |interval: Interval, value| interval.low <= value && value <= interval.high;
        assert!(holds(fit.lambda_95, truth.lambda), "{fit:?}");
        assert!(holds(fit.sigma_95, truth.sigma), "{fit:?}");
        assert!(holds(fit.kappa_95, truth.kappa), "{fit:?}");
        // And says something: the intervals are not wide.
        assert!(fit.sigma_95.high - fit.sigma_95.low < 0.03, "{fit:?}");
        assert!(fit.kappa_95.high - fit.kappa_95.low < 0.0002, "{fit:?}");
        let peak = ((1.0 - truth.sigma) / truth.kappa).sqrt();
        assert!(close(fit.peak.expect("a peak"), peak, 0.15), "{fit:?}");
        assert!(!fit.is_poor());
    }

    #[test]
    fn too_few_points_and_poor_fits_are_said() {
        let truth = Coefficients {
            lambda: 10.0,
            sigma: 0.1,
            kappa: 0.0,
        };
        let Law::Absent(why) = fit(&synthetic(truth, &[1, 2, 4], 0.0)) else {
            panic!("three points are too few");
        };
        assert!(why.contains("3 measured"), "{why}");
        // A cliff is no such curve.
        let mut cliff = synthetic(truth, MANY, 0.0);
        for observed in cliff.iter_mut().filter(|o| o.clients > 16.0) {
            observed.throughput /= 10.0;
        }
        assert!(fitted(&cliff).is_poor());
    }
}
