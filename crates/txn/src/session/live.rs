//! The snapshots a session holds, and what of them its slot in the clock tells.

use std::sync::Arc;

use throng_types::Csn;

use super::SessionEntry;
use crate::active::RunningSet;

/// Snapshots of one moment that a session holds.
#[derive(Clone, Copy)]
struct Live {
    csn: Csn,
    copies: u32,
    /// Those of them with which more than reading may be done.
    following: u32,
}

/// The snapshots a session holds: a statement's, those of open cursors, a transaction's.
#[derive(Default)]
pub(crate) struct LiveSnapshots {
    /// Oldest first. Rarely more than two.
    live: Vec<Live>,
    /// The room of a set that was given up, for the next.
    spare: Option<Arc<RunningSet>>,
}

impl LiveSnapshots {
    pub(crate) fn take(&mut self, session: &SessionEntry) -> (Csn, Option<Arc<RunningSet>>) {
        let core = session.core();
        let clock = &core.clock;
        // With an older one held, its number in the slot holds the horizon for this one too.
        let csn = match (self.oldest(), self.asks_for_later()) {
            (None, _) => clock.publish(session.slot),
            (Some(oldest), false) => clock.publish_another(session.slot, oldest),
            (Some(_), true) => clock.last(),
        };
        match self.live.last_mut() {
            Some(last) if last.csn == csn => {
                last.copies += 1;
                last.following += 1;
            }
            _ => self.live.push(Live {
                csn,
                copies: 1,
                following: 1,
            }),
        }
        // After the number: every commit up to it is seen to have ended.
        let running = core.running.listed().map(|form| {
            let mut set = self.spare.take().unwrap_or_default();
            let room = Arc::get_mut(&mut set).expect("nobody else has the spare one");
            form.look(room, || core.ids.next_xid());
            set
        });
        (csn, running)
    }

    fn at(&mut self, csn: Csn) -> usize {
        self.live
            .iter()
            .position(|live| live.csn == csn)
            .expect("a snapshot that there is, is held")
    }

    pub(crate) fn hold(&mut self, csn: Csn, follows: bool) {
        let at = self.at(csn);
        self.live[at].copies += 1;
        self.live[at].following += u32::from(follows);
    }

    /// With one of this moment nothing but reading is done any more.
    pub(crate) fn only_read(&mut self, csn: Csn, session: &SessionEntry) {
        let at = self.at(csn);
        self.live[at].following -= 1;
        self.tell(session);
    }

    pub(crate) fn give_up(
        &mut self,
        csn: Csn,
        follows: bool,
        running: Option<Arc<RunningSet>>,
        session: &SessionEntry,
    ) {
        if let Some(mut set) = running
            && Arc::get_mut(&mut set).is_some()
        {
            self.spare = Some(set);
        }
        let at = self.at(csn);
        self.live[at].following -= u32::from(follows);
        self.live[at].copies -= 1;
        if self.live[at].copies == 0 {
            self.live.remove(at);
            self.tell(session);
        }
    }

    /// Has what is held by now in the session's slot. It is less than before.
    fn tell(&self, session: &SessionEntry) {
        let clock = &session.core().clock;
        match self.oldest() {
            None => clock.clear(session.slot),
            Some(oldest) => clock.republish(session.slot, oldest, self.asks_for_later()),
        }
    }

    /// Whether what came after the oldest one may be asked for too.
    fn asks_for_later(&self) -> bool {
        match self.live[..] {
            [] => false,
            [only] => only.following > 0,
            _ => true,
        }
    }

    pub(crate) fn oldest(&self) -> Option<Csn> {
        self.live.first().map(|live| live.csn)
    }
}
