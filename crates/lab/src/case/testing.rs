//! What the tests of the cases share.

use std::path::Path;
use std::time::Duration;

use super::{Case, Sample, Setup, Turn, Variant};
use crate::Progress;

/// Gives every variant of the case a short turn with each of these numbers of clients, the most of them first, and each
/// turn's sample to `check`. A turn in which nothing was done fails.
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
            let sample = bench.run(&Turn { clients, duration }).expect("ran");
            assert!(sample.operations > 0, "{}", variant.name);
            check(&variant, &sample);
        }
    }
}
