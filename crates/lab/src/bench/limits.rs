//! What limited a target, in words, from what was measured at its knee.
//!
//! The rules, in this order: the client, when it is near what it can do at all or its threads have no time left;
//! a wait that takes much of the sessions' waiting while cores are idle; the cores, when they are busy; otherwise
//! it is not known, and that is said.

use super::findings::{Point, Target, Wait};
use super::waits::RUNNING;
use crate::print::percent;

/// Of what the constant answerer reached: then the client was the limit.
const NEAR_ANSWERER: f64 = 0.8;
/// The share of busy cores from which on they are what is short.
const BUSY: f64 = 0.85;
/// The share of waiting from which on one wait is worth its name.
const NOTABLE: f64 = 0.3;
/// The share of their cores' time that the client's threads use when they have none left.
const CLIENT_FULL: f64 = 0.9;

/// `answerer` is the constant answerer's throughput with the same number of clients, where it was measured.
pub fn describe(target: &Target, answerer: Option<f64>, threads: usize, cores: usize) -> String {
    let Some(point) = target.at_knee() else {
        return "nothing was done, so nothing can be said".to_owned();
    };
    let head = format!("at its knee ({} clients) it is limited by", point.clients);
    if target.is_answerer {
        return "this is what the client itself can do here".to_owned();
    }
    if let Some(share) = answerer.map(|most| point.throughput.median / most)
        && share >= NEAR_ANSWERER
    {
        return format!(
            "{head} the client itself: it does {} of what it does against a server that answers from a constant",
            percent(share)
        );
    }
    let client_full = CLIENT_FULL * threads as f64 / cores as f64;
    if point.own >= client_full {
        return format!(
            "{head} the client itself: its {threads} threads use {} of the cores",
            percent(point.own)
        );
    }
    if point.busy >= BUSY {
        return format!(
            "{head} the cores: {cores} are {} busy, the client's share of them {}{}",
            percent(point.busy),
            percent(point.own),
            also(&point.waits)
        );
    }
    if let Some(wait) = notable(point) {
        return format!(
            "{head} waiting for {}: {} of its sessions' time goes there, while the cores are {} busy",
            wait.what,
            percent(wait.share),
            percent(point.busy)
        );
    }
    format!(
        "at its knee ({} clients) nothing is known to limit it: the cores are {} busy, and the server names no wait \
         that stands out",
        point.clients,
        percent(point.busy)
    )
}

/// The wait that takes most, if it takes much.
fn notable(point: &Point) -> Option<&Wait> {
    let waiting = point.waits.iter().find(|w| w.what != RUNNING)?;
    (waiting.share >= NOTABLE).then_some(waiting)
}

fn also(waits: &[Wait]) -> String {
    let named: Vec<String> = waits
        .iter()
        .filter(|w| w.what != RUNNING && w.share >= 0.1)
        .take(2)
        .map(|w| format!("{} ({})", w.what, percent(w.share)))
        .collect();
    match named.is_empty() {
        true => String::new(),
        false => format!("; its sessions wait for {}", named.join(" and ")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::bench::findings::knee;
    use crate::findings::Latency;
    use crate::stats::Spread;
    use crate::usl::Law;

    fn point(clients: usize, throughput: f64, busy: f64, waits: &[(&str, f64)]) -> Point {
        let spread = |x: f64| Spread::of(&[x]).expect("one round");
        Point {
            clients,
            throughput: spread(throughput),
            tpmc: None,
            latency: Latency {
                p50: 0,
                p95: 0,
                p99: 0,
                most: 0,
            },
            kinds: Vec::new(),
            fairness: spread(1.0),
            failures: BTreeMap::new(),
            retries: 0,
            busy,
            own: 0.3,
            waits: waits
                .iter()
                .map(|(what, share)| Wait {
                    what: (*what).to_owned(),
                    share: *share,
                })
                .collect(),
        }
    }

    fn target(points: Vec<Point>) -> Target {
        Target {
            name: "a".to_owned(),
            version: "b".to_owned(),
            knee: knee(&points),
            points,
            law: Law::Absent("a test".to_owned()),
            conditions: Vec::new(),
            limit: String::new(),
            is_answerer: false,
        }
    }

    #[test]
    fn the_knee_is_the_first_point_near_the_best() {
        let points = [(1, 10.0), (4, 38.5), (16, 40.0), (64, 30.0)];
        let points: Vec<Point> = points
            .iter()
            .map(|(c, t)| point(*c, *t, 0.5, &[]))
            .collect();
        assert_eq!(knee(&points), Some(4));
        assert_eq!(knee(&[point(1, 0.0, 0.5, &[])]), None);
        assert_eq!(knee(&[]), None);
    }

    #[test]
    fn words() {
        let words = |busy, waits: &[(&str, f64)], answerer| {
            describe(&target(vec![point(8, 100.0, busy, waits)]), answerer, 2, 2)
        };
        assert!(words(0.99, &[], Some(110.0)).contains("the client itself"));
        assert!(words(0.99, &[], Some(500.0)).contains("the cores: 2 are 99 % busy"));
        let locks: &[(&str, f64)] = &[("running", 0.5), ("Lock tuple", 0.4)];
        assert!(words(0.4, locks, None).contains("waiting for Lock tuple: 40 %"));
        assert!(words(0.95, locks, None).contains("sessions wait for Lock tuple"));
        assert!(words(0.4, &[("running", 0.9)], None).contains("nothing is known"));
        assert!(describe(&target(Vec::new()), None, 2, 2).contains("nothing was done"));
    }
}
