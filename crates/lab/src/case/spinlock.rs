//! `spinlock`: the ways to try a spinlock's word, and to wait for it.

use throng_sync::CachePadded;
use throng_sync::spin::{Adaptive, BackOff, Cas, Fixed, RawSpin, Spinlock, Tas, Ttas};

use super::{About, Bench, Case, Effect, Metric, Role, Sample, Setup, Turn, Variant};
use crate::{Error, Result, crew};

pub struct Spin;

impl Case for Spin {
    fn name(&self) -> &'static str {
        "spinlock"
    }

    fn about(&self) -> About {
        About {
            title: "a spinlock, tried by test-and-set or looked at first",
            text: "Every thread takes one spinlock, counts, and gives it back. \
                   On Kunpeng 920 (aarch64) Greenplum 6.9.1 spent 82 % of its CPU in s_lock, whose test-and-set wrote \
                   the line with a full barrier on every try; comparing first took pgbench -S with 100 clients from 805 \
                   to about 3,800 TPS and s_lock to 38 %.",
            source: "Greenplum 6.9.1 on Kunpeng 920, pgbench -c 100 -j 100 -S",
            operations: "lock and unlock",
            inside: "the threads' time taking the lock, waiting for it and giving it back",
        }
    }

    fn variants(&self) -> Vec<Variant> {
        let variant = |name, role, about| Variant { name, role, about };
        let mut variants = vec![
            variant(
                "tas",
                Role::Was,
                "test-and-set on every try; fixed back-off",
            ),
            variant(
                "ttas",
                Role::Became,
                "test, then test-and-set; fixed back-off",
            ),
            variant(
                "cas",
                Role::Other,
                "compare-and-swap on every try; fixed back-off",
            ),
            variant(
                "tas_adaptive",
                Role::Other,
                "test-and-set; waiters learn how long to spin, as s_lock does",
            ),
            variant(
                "ttas_adaptive",
                Role::Further,
                "test, then test-and-set; waiters learn how long to spin",
            ),
            variant(
                "cas_adaptive",
                Role::Other,
                "compare-and-swap; waiters learn how long to spin",
            ),
        ];
        if cfg!(target_arch = "aarch64") {
            variants.push(variant(
                "llsc_full",
                Role::Other,
                "ldxr, stxr and a full barrier on every try, as the case found it",
            ));
            variants.push(variant(
                "llsc",
                Role::Other,
                "compare first, ldaxr and stlxr, as the case left it",
            ));
            if throng_sync::lab::SpinForm::Lse.is_available() {
                variants.push(variant(
                    "lse",
                    Role::Other,
                    "one swap instruction of the large system extensions",
                ));
            }
        }
        variants
    }

    fn default_clients(&self, cores: usize) -> Vec<usize> {
        super::doubling(cores.max(2) * 8)
    }

    fn effects(&self) -> Vec<Effect> {
        vec![Effect {
            was: "tas",
            became: "ttas",
            metric: Metric::Throughput,
            published: Some(4.7),
            figure: "805 to about 3,800 TPS with 100 clients",
        }]
    }

    fn functions(&self) -> &'static [&'static str] {
        &["throng_sync::spin"]
    }

    fn prepare(&self, variant: &Variant, _: &Setup) -> Result<Box<dyn Bench>> {
        Ok(match variant.name {
            "tas" => bench::<Tas, Fixed>(),
            "ttas" => bench::<Ttas, Fixed>(),
            "cas" => bench::<Cas, Fixed>(),
            "tas_adaptive" => bench::<Tas, Adaptive>(),
            "ttas_adaptive" => bench::<Ttas, Adaptive>(),
            "cas_adaptive" => bench::<Cas, Adaptive>(),
            #[cfg(target_arch = "aarch64")]
            "llsc_full" => bench::<throng_sync::spin::aarch64::LlscFull, Fixed>(),
            #[cfg(target_arch = "aarch64")]
            "llsc" => bench::<throng_sync::spin::aarch64::Llsc, Fixed>(),
            #[cfg(target_arch = "aarch64")]
            "lse" => bench::<throng_sync::spin::aarch64::Lse, Fixed>(),
            other => return Err(Error::usage(format!("spinlock has no variant {other}"))),
        })
    }
}

/// One lock, and what it protects on a line of its own, as in the pool.
struct One<R: RawSpin, B: BackOff>(CachePadded<Spinlock<u64, R, B>>);

fn bench<R: RawSpin, B: BackOff + 'static>() -> Box<dyn Bench> {
    Box::new(One::<R, B>(CachePadded::new(Spinlock::of("lab", 0))))
}

impl<R: RawSpin, B: BackOff> Bench for One<R, B> {
    fn run(&mut self, turn: &Turn) -> Result<Sample> {
        let lock = &*self.0;
        let before = *lock.lock();
        let sample = crew::run(turn, |worker| {
            while worker.goes_on() {
                worker.step(|| *lock.lock() += 1);
            }
        })?;
        let counted = *lock.lock() - before;
        if counted != sample.operations {
            return Err(Error::failed(format!(
                "the lock let {counted} of {} additions through",
                sample.operations
            )));
        }
        Ok(sample)
    }
}
