//! Recovery from an archive: which timeline to follow, which segments to fetch, and where to stop.
//!
//! ```text
//!   backup's redo point        target
//!        │                       │
//!   ─────●───────────────────────●─ ─ ─ ─ ─ ─   the log as it was: timeline 1
//!                                └──────────►   what is logged from here on: timeline 2
//! ```
//! 1. The timeline: the target's, the newest that the archive has a history of, or the directory's.
//! 2. Segments from the redo point on, each from the newest timeline that has it, as long as there
//!    are any. What the directory has itself serves where the archive has nothing.
//! 3. The log is read up to the target, which is not before the [minimum recovery
//!    point](crate::control::Control::minimum_recovery).
//! 4. A new timeline begins there, with a number that the archive has no history of.
//!
//! Source: PostgreSQL's documentation, "Continuous Archiving and Point-in-Time Recovery (PITR)",
//! whose settings and names of files these are.

use std::collections::BTreeSet;
use std::sync::Arc;

use throng_disk::Disk;
use throng_types::error::state;
use throng_types::{Error, Lsn, Result, Xid};
use throng_wal::{
    Record, TimelineHistory, TimelineId, WalConfig, has_segment, import_segment, segment_name,
};

use crate::control::Control;

/// Brings a file of the archive; None where it has none of that name.
pub type FetchFromArchive = Box<dyn Fn(&str) -> Result<Option<Vec<u8>>>>;

/// A recovery that is asked for, whatever the last server left.
pub struct ArchiveRecovery {
    pub fetch: FetchFromArchive,
    pub target: RecoveryTarget,
}

/// Where a recovery ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryTarget {
    /// None: where the log does.
    pub stop: Option<RecoveryStop>,
    /// Right after what `stop` names, not right before it.
    pub inclusive: bool,
    pub timeline: TargetTimeline,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecoveryStop {
    /// As soon as what a backup copied fits together.
    Immediate,
    /// Transactions that committed up to then, in microseconds since 1970.
    Time(u64),
    Xid(Xid),
    /// A restore point. Always inclusive.
    Name(String),
    Lsn(Lsn),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TargetTimeline {
    #[default]
    Latest,
    /// The directory's own.
    Current,
    Numbered(TimelineId),
}

/// Which side of a record a recovery ends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopAt {
    Before,
    After,
}

impl RecoveryTarget {
    /// Whether a recovery ends at this record, which lies before `end`.
    pub(crate) fn stops(&self, record: &Record<'_>, start: Lsn, end: Lsn) -> Option<StopAt> {
        let side = match self.inclusive {
            true => StopAt::After,
            false => StopAt::Before,
        };
        match (self.stop.as_ref()?, record) {
            // What happens at the very moment of the target is in if it is inclusive.
            (RecoveryStop::Time(until), Record::Commit { time, .. }) => {
                let is_past = match self.inclusive {
                    true => *time > *until,
                    false => *time >= *until,
                };
                is_past.then_some(StopAt::Before)
            }
            (RecoveryStop::Xid(target), Record::Commit { xid, .. } | Record::Abort { xid, .. }) => {
                (xid == target).then_some(side)
            }
            (RecoveryStop::Name(target), Record::RestorePoint { name, .. }) => {
                (name == target).then_some(StopAt::After)
            }
            (RecoveryStop::Lsn(target), _) => match self.inclusive {
                true => (end > *target).then_some(StopAt::After),
                false => (start >= *target).then_some(StopAt::Before),
            },
            _ => None,
        }
    }

    /// A target that was given and not met is an error. The earliest one is met by any backup that
    /// is whole.
    pub(crate) fn must_be_met(&self) -> bool {
        matches!(self.stop, Some(ref stop) if *stop != RecoveryStop::Immediate)
    }
}

impl ArchiveRecovery {
    /// The history of the timeline to follow.
    pub(crate) fn history(&self, control: &Control) -> Result<Arc<TimelineHistory>> {
        let own = &control.history;
        let numbered = match self.target.timeline {
            TargetTimeline::Current => return Ok(own.clone()),
            TargetTimeline::Numbered(timeline) if timeline == own.current() => {
                return Ok(own.clone());
            }
            TargetTimeline::Numbered(timeline) => timeline,
            TargetTimeline::Latest => match self.newest_after(own.current())? {
                None => return Ok(own.clone()),
                Some(newest) => newest,
            },
        };
        let Some(history) = self.fetch_history(numbered)? else {
            return Err(Error::new(
                state::CONFIG_FILE_ERROR,
                format!("recovery target timeline {} does not exist", numbered.0),
            ));
        };
        // Up to what the directory has, both must have come the same way.
        let reached = control.redo.max(control.minimum_recovery);
        let last = Lsn(reached.0.saturating_sub(1));
        if history.at(control.redo) != own.at(control.redo) || history.at(last) != own.at(last) {
            return Err(Error::new(
                state::CONFIG_FILE_ERROR,
                format!(
                    "requested timeline {} is not a child of this server's history",
                    numbered.0
                ),
            )
            .detail(format!(
                "Latest checkpoint in the data directory is at {} on timeline {}, but in the \
                 history of the requested timeline, the server forked off from that timeline.",
                control.redo.to_halves(),
                own.current().0
            )));
        }
        Ok(Arc::new(history))
    }

    /// The number for a new timeline after this one: none that the archive knows.
    pub(crate) fn next_timeline(&self, current: TimelineId) -> Result<TimelineId> {
        let newest = self.newest_after(current)?.unwrap_or(current);
        Ok(TimelineId(newest.0 + 1))
    }

    /// The last of the numbers after `timeline` that have a history without a gap.
    fn newest_after(&self, timeline: TimelineId) -> Result<Option<TimelineId>> {
        let mut newest = timeline;
        while self.fetch_history(TimelineId(newest.0 + 1))?.is_some() {
            newest.0 += 1;
        }
        Ok((newest > timeline).then_some(newest))
    }

    fn fetch_history(&self, timeline: TimelineId) -> Result<Option<TimelineHistory>> {
        let name = timeline.history_name();
        let Some(bytes) = (self.fetch)(&name)? else {
            return Ok(None);
        };
        let text = String::from_utf8_lossy(&bytes);
        match TimelineHistory::from_text(&text, timeline) {
            Some(history) => Ok(Some(history)),
            None => Err(Error::corrupted(format!(
                "the archive's file {name} is no timeline's history"
            ))),
        }
    }

    /// Fetches segments from the one of `from` on, as long as the archive or the directory has the
    /// next one. Where the last one begins that the archive had.
    pub(crate) fn fetch_segments(
        &self,
        disk: &dyn Disk,
        config: &WalConfig,
        from: Lsn,
    ) -> Result<Lsn> {
        let mut last = Lsn::ZERO;
        let size = config.segment_size;
        for number in from.0 / size.. {
            let bytes = self.fetch_segment(&config.history, number, size)?;
            match bytes {
                Some(bytes) => {
                    import_segment(disk, config, number, &bytes)?;
                    last = Lsn(number * size);
                }
                None if has_segment(disk, config, number)? => {}
                None => {
                    // A hole is no end.
                    let after = self.fetch_segment(&config.history, number + 1, size)?;
                    if after.is_some() {
                        last = Lsn((number + 1) * size);
                    }
                    break;
                }
            }
        }
        Ok(last)
    }

    fn fetch_segment(
        &self,
        history: &TimelineHistory,
        number: u64,
        size: u64,
    ) -> Result<Option<Vec<u8>>> {
        // A segment that a switch lies in is there once for each side; the newer one has both.
        let within = history.ended().iter().map(|ended| ended.end);
        let within = within.filter(|end| end.0 / size == number);
        let mut timelines: BTreeSet<TimelineId> = within.map(|end| history.at(end)).collect();
        timelines.insert(history.at(Lsn(number * size)));
        for timeline in timelines.into_iter().rev() {
            let name = segment_name(timeline, number, size);
            if let Some(bytes) = (self.fetch)(&name)? {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(xid: u64, time: u64) -> Record<'static> {
        Record::Commit {
            xid: Xid(xid),
            subxids: Vec::new(),
            dropped: Vec::new(),
            durable: Lsn::ZERO,
            time,
        }
    }

    fn stops(stop: RecoveryStop, inclusive: bool, record: &Record<'_>) -> Option<StopAt> {
        let target = RecoveryTarget {
            stop: Some(stop),
            inclusive,
            timeline: TargetTimeline::Latest,
        };
        target.stops(record, Lsn(100), Lsn(150))
    }

    #[test]
    fn targets_end_where_they_say() {
        use RecoveryStop as S;
        let record = commit(7, 1000);
        let before = Some(StopAt::Before);
        let after = Some(StopAt::After);
        assert_eq!(stops(S::Time(999), true, &record), before);
        assert_eq!(stops(S::Time(1000), true, &record), None);
        assert_eq!(stops(S::Time(1000), false, &record), before);
        assert_eq!(stops(S::Xid(Xid(7)), true, &record), after);
        assert_eq!(stops(S::Xid(Xid(7)), false, &record), before);
        assert_eq!(stops(S::Xid(Xid(8)), true, &record), None);
        assert_eq!(stops(S::Lsn(Lsn(149)), true, &record), after);
        assert_eq!(stops(S::Lsn(Lsn(150)), true, &record), None);
        assert_eq!(stops(S::Lsn(Lsn(100)), false, &record), before);
        assert_eq!(stops(S::Lsn(Lsn(101)), false, &record), None);
        let point = Record::RestorePoint { name: "a", time: 5 };
        assert_eq!(stops(S::Name("a".into()), false, &point), after);
        assert_eq!(stops(S::Name("b".into()), false, &point), None);
        assert_eq!(
            RecoveryTarget::default().stops(&record, Lsn(1), Lsn(2)),
            None
        );
    }

    #[test]
    fn a_segment_with_a_switch_comes_from_the_newer_side() {
        let history = TimelineHistory::default().branched(Lsn(2500), TimelineId(2));
        let archive = |there: Vec<&'static str>| ArchiveRecovery {
            fetch: Box::new(move |name| {
                let found = there.contains(&name);
                Ok(found.then(|| name.as_bytes().to_vec()))
            }),
            target: RecoveryTarget::default(),
        };
        let first = "000000010000000000000002";
        let second = "000000020000000000000002";
        let fetched = |there, number| {
            let bytes = archive(there).fetch_segment(&history, number, 1000);
            bytes
                .expect("readable")
                .map(|b| String::from_utf8(b).expect("a name"))
        };
        assert_eq!(fetched(vec![first, second], 2).as_deref(), Some(second));
        assert_eq!(fetched(vec![first], 2).as_deref(), Some(first));
        assert_eq!(fetched(vec![second], 1), None);
    }
}
