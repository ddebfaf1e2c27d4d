//! What limited a target, in words, from what was measured at its knee.
//!
//! The rules, in this order: the client, when it is near what it can do at all, its threads have no
//! time left or nearly all of what the cores do is its own; a wait that takes much of the sessions'
//! waiting while cores are idle; the cores, when they are busy; otherwise it is not known, and that
//! is said.

use super::findings::{Point, Target, Wait};
use super::waits::{RUNNING, meaning};
use crate::numbers::{clients, percent};

/// Of what the constant answerer reached: then the client was the limit.
const NEAR_ANSWERER: f64 = 0.8;
/// The share of busy cores from which on they are what is short.
const BUSY: f64 = 0.85;
/// The share of waiting from which on one wait is worth its name.
const NOTABLE: f64 = 0.3;
/// The share of their cores' time that the client's threads use when they have none left.
const CLIENT_FULL: f64 = 0.9;

/// The client's share of what the cores do, with what the kernel does for it, from which on the
/// server hardly matters.
const CLIENTS_OWN: f64 = 0.8;

/// `answerer` is the constant answerer's throughput with the same number of clients, where it was
/// measured.
pub fn describe(target: &Target, answerer: Option<f64>, threads: usize, cores: usize) -> String {
    let Some(point) = target.at_knee() else {
        return "nothing was done, so nothing can be said".to_owned();
    };
    let head = format!(
        "with {}, the fewest that come near its best, it is limited by",
        clients(point.clients)
    );
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
    if point.own >= CLIENTS_OWN * point.busy {
        return format!(
            "{head} the client itself: the cores are {} busy, {} with the bench's own client",
            percent(point.busy),
            percent(point.own)
        );
    }
    if point.busy >= BUSY {
        return format!(
            "{head} the cores: all {cores} together are {} busy, {} with the bench's own client and the rest with the \
             server and whatever else runs on them{}",
            percent(point.busy),
            percent(point.own),
            also(point, target.telling.of)
        );
    }
    if let Some(wait) = notable(point) {
        return format!(
            "{head} waiting for {}: {} {} goes there, while the cores are {} busy",
            explained(&wait.what),
            percent(wait.share),
            target.telling.of,
            percent(point.busy)
        );
    }
    format!(
        "with {}, the fewest that come near its best, nothing is known to limit it: the cores are {} busy, and {}",
        clients(point.clients),
        percent(point.busy),
        match target.telling.tells {
            true => "the server names no wait that stands out".to_owned(),
            false => format!("the server {}", target.telling.how),
        }
    )
}

/// The wait that takes most, if it takes much.
fn notable(point: &Point) -> Option<&Wait> {
    let waiting = point.waits.iter().find(|w| w.what != RUNNING)?;
    (waiting.share >= NOTABLE).then_some(waiting)
}

fn also(point: &Point, of: &str) -> String {
    let notable = point
        .waits
        .iter()
        .filter(|w| w.what != RUNNING && w.share >= 0.1);
    let named: Vec<(String, String)> = notable
        .take(2)
        .map(|w| (percent(w.share), explained(&w.what)))
        .collect();
    match named.as_slice() {
        [] => String::new(),
        [(share, what)] => format!("; {share} {of} is for {what}"),
        [(first, one), (second, two), ..] => {
            format!("; {first} {of} is for {one} and {second} for {two}")
        }
    }
}

/// A wait's name and, if it is known, what it means.
fn explained(what: &str) -> String {
    match meaning(what) {
        Some(meaning) => format!("{what} ({meaning})"),
        None => what.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::bench::findings::{WaitReporting, knee};
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
            protocol: "postgres",
            version: "b".to_owned(),
            settings: Vec::new(),
            telling: WaitReporting {
                tells: true,
                how: "cannot be asked",
                of: "of the time",
            },
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
        assert!(words(0.99, &[], Some(500.0)).contains("the cores: all 2 together are 99 % busy"));
        let locks: &[(&str, f64)] = &[("running", 0.5), ("Lock tuple", 0.4)];
        assert!(
            words(0.4, locks, None)
                .contains("which another transaction has changed): 40 % of the time goes there")
        );
        assert!(words(0.95, locks, None).contains("40 % of the time is for Lock tuple (others"));
        assert!(words(0.4, &[("running", 0.9)], None).contains("nothing is known"));
        // Of these 37 %, 30 are the client's.
        assert!(words(0.37, locks, None).contains("37 % busy, 30 % with the bench's own client"));
        let mut silent = target(vec![point(8, 100.0, 0.4, &[])]);
        silent.telling.tells = false;
        assert!(describe(&silent, None, 2, 2).ends_with("and the server cannot be asked"));
        assert!(describe(&target(Vec::new()), None, 2, 2).contains("nothing was done"));
    }
}
