//! What the tests of the cases share.

use std::path::Path;
use std::time::Duration;

use super::{Case, Sample, Setup, Turn, Variant};
use crate::Progress;

/// Gives every variant of the case a short turn with each of these numbers of clients, the most of
/// them first, and each turn's sample to `check`. On a machine that is busy with other things a
/// short turn can be over before anything was done: it is taken again, longer. Where nothing is
/// done for long the test fails.
pub fn run_variants(
    case: &dyn Case,
    scratch: &Path,
    clients: &[usize],
    duration: Duration,
    mut check: impl FnMut(&Variant, &Sample),
) {
    let progress = Progress::new();
    let setup = Setup {
        scratch,
        throng: Path::new("throng"),
        progress: &progress,
        most_clients: clients[0],
    };
    for variant in case.variants() {
        let mut bench = case.prepare(&variant, &setup).expect("prepared");
        for &clients in clients {
            let lengths = (0..8).map(|doublings| duration * (1 << doublings));
            let mut samples =
                lengths.map(|duration| bench.run(&Turn { clients, duration }).expect("ran"));
            let sample = samples.find(|sample| sample.operations > 0);
            check(&variant, &sample.expect(variant.name));
        }
    }
}
