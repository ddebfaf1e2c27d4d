//! All forms against one model, and under fire.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use proptest::prelude::*;

use super::*;

/// Ids start in the middle of a word, as after a restart of a test's database.
const FIRST: u64 = 77;

struct Forms {
    form: ActiveTransactions,
    next: AtomicU64,
}

impl Forms {
    fn new(form: SnapshotForm) -> Forms {
        Forms {
            form: ActiveTransactions::new(form, Xid(FIRST), &[]),
            next: AtomicU64::new(FIRST),
        }
    }
    fn begin(&self, place: SessionIndex, part: IdPurpose) -> Xid {
        self.form.begin(place, part, || {
            Xid(self.next.fetch_add(1, Ordering::Relaxed))
        })
    }
    fn next(&self) -> Xid {
        Xid(self.next.load(Ordering::Relaxed))
    }
    fn look(&self) -> RunningSet {
        let mut set = RunningSet::default();
        self.form.look(&mut set, || self.next());
        set
    }
}

#[derive(Clone, Debug)]
enum Op {
    /// An id for the session: its transaction's, or a subtransaction's if it has one.
    Begin(usize),
    /// Rolls back the session's last so many subtransactions.
    EndSubs(usize, usize),
    End(usize),
    Look,
    Tidy,
    /// The session goes and another comes in its place.
    Replace(usize),
}

const SESSIONS: usize = 5;

fn op() -> impl Strategy<Value = Op> {
    let session = 0..SESSIONS;
    prop_oneof![
        6 => session.clone().prop_map(Op::Begin),
        1 => (session.clone(), 0..3usize).prop_map(|(s, n)| Op::EndSubs(s, n)),
        3 => session.clone().prop_map(Op::End),
        3 => Just(Op::Look),
        1 => Just(Op::Tidy),
        1 => session.prop_map(Op::Replace),
    ]
}

fn run(form: SnapshotForm, ops: &[Op]) {
    let forms = Forms::new(form);
    let mut sessions: Vec<(SessionIndex, Vec<Xid>)> = (0..SESSIONS)
        .map(|_| (forms.form.enter(), Vec::new()))
        .collect();
    let mut running = BTreeSet::new();
    let mut kept: Vec<(RunningSet, BTreeSet<Xid>, Xid)> = Vec::new();
    for op in ops {
        match *op {
            Op::Begin(s) => {
                let (place, xids) = &mut sessions[s];
                let part = if xids.is_empty() {
                    IdPurpose::Top
                } else {
                    IdPurpose::Sub
                };
                let xid = forms.begin(*place, part);
                xids.push(xid);
                running.insert(xid);
            }
            Op::EndSubs(s, n) => {
                let (place, xids) = &mut sessions[s];
                let undone = xids.split_off(xids.len().saturating_sub(n).max(1).min(xids.len()));
                if !undone.is_empty() {
                    forms.form.end(*place, IdPurpose::Sub, &undone, || ());
                }
                undone.iter().for_each(|xid| assert!(running.remove(xid)));
            }
            Op::End(s) => {
                let (place, xids) = &mut sessions[s];
                if !xids.is_empty() {
                    forms.form.end(*place, IdPurpose::Top, xids, || ());
                }
                xids.drain(..).for_each(|xid| assert!(running.remove(&xid)));
            }
            Op::Look => kept.push((forms.look(), running.clone(), forms.next())),
            Op::Tidy => forms.form.tidy(),
            Op::Replace(s) => {
                let (place, xids) = &mut sessions[s];
                if xids.is_empty() {
                    forms.form.leave(*place);
                    *place = forms.form.enter();
                }
            }
        }
    }
    // At the end, because what a snapshot says must not change.
    for (set, running, next) in kept {
        for xid in 1..next.0 + 200 {
            let runs = xid >= next.0 || running.contains(&Xid(xid));
            assert_eq!(
                set.contains(Xid(xid)),
                runs,
                "{form}: {xid} below {next}: {set:?}"
            );
        }
    }
}

proptest! {
    #[test]
    fn every_form_knows_who_runs(ops in proptest::collection::vec(op(), 1..400)) {
        for form in [SnapshotForm::Walk, SnapshotForm::Bitmap] {
            run(form, &ops);
        }
    }
}

#[test]
fn names_are_the_settings() {
    for form in SnapshotForm::ALL {
        assert_eq!(form.name().parse(), Ok(form));
    }
    assert_eq!("vector".parse::<SnapshotForm>(), Err(()));
    assert_eq!(SnapshotForm::default(), SnapshotForm::Csn);
}

#[test]
fn a_long_history_takes_no_room() {
    let forms = Forms::new(SnapshotForm::Bitmap);
    for _ in 0..100_000 {
        let xid = forms.begin(0, IdPurpose::Top);
        forms.form.end(0, IdPurpose::Top, &[xid], || ());
        if xid.0.is_multiple_of(50) {
            forms.form.tidy();
        }
    }
    let ActiveTransactions::Listed(Listed::Bitmap(bitmap)) = &forms.form else {
        unreachable!("made above")
    };
    assert!(bitmap.chunks_made() < 4, "{}", bitmap.chunks_made());
}

/// A thread's transactions end one after the other, so whoever sees one sees those before it; and a
/// transaction of two ids is seen whole or not at all.
#[test]
fn ends_have_one_order_for_everybody() {
    for form in [SnapshotForm::Walk, SnapshotForm::Bitmap] {
        let forms = Forms::new(form);
        let stop = AtomicBool::new(false);
        /// By writer, the last ids of its transactions, so that a snapshot finds some near its
        /// edge.
        const RECENT: usize = 8;
        let recent: [[[AtomicU64; 2]; RECENT]; 2] = Default::default();
        std::thread::scope(|scope| {
            for mine in &recent {
                let (forms, stop) = (&forms, &stop);
                scope.spawn(move || {
                    let place = forms.form.enter();
                    let mut n = 0usize;
                    while !stop.load(Ordering::Relaxed) {
                        let ids = [
                            forms.begin(place, IdPurpose::Top),
                            forms.begin(place, IdPurpose::Sub),
                        ];
                        for (word, id) in mine[n % RECENT].iter().zip(ids) {
                            word.store(id.0, Ordering::Release);
                        }
                        forms.form.end(place, IdPurpose::Top, &ids, || ());
                        n += 1;
                        if n.is_multiple_of(64) {
                            std::thread::yield_now();
                        }
                    }
                });
            }
            let tidier = scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    forms.form.tidy();
                    std::thread::yield_now();
                }
            });
            for _ in 0..20_000 {
                let set = forms.look();
                for mine in &recent {
                    let mut ids: Vec<[u64; 2]> = mine
                        .iter()
                        .map(|pair| [0, 1].map(|i| pair[i].load(Ordering::Acquire)))
                        .filter(|[top, sub]| *top != 0 && top < sub)
                        .collect();
                    ids.sort_unstable();
                    // Pairs may be torn while they are written: only whole ones of one writer are
                    // compared.
                    let seen: Vec<bool> =
                        ids.iter().map(|pair| !set.contains(Xid(pair[0]))).collect();
                    assert!(seen.is_sorted_by(|a, b| a >= b), "{form}: {ids:?} {seen:?}");
                }
            }
            stop.store(true, Ordering::Relaxed);
            tidier.join().expect("the tidier panicked");
        });
    }
}
