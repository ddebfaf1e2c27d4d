//! Timelines: a recovery that stops before the log's end, or a promotion, begins a new one, so that
//! what the old one goes on to log can never pass for a part of it.
//!
//! ```text
//!   timeline 1  ──────────●────────────── (the old server's, or what a recovery did not want)
//!                         └── timeline 2 ─────●──────
//!                           end of 1          └── timeline 3 ──► current
//! ```
//! Positions go on over a switch. A record's checksum covers its timeline ([`TimelineId::salt`]),
//! so a record is accepted only where position, checksum and timeline fit.

use std::fmt;

use throng_types::Lsn;

/// A timeline's number, from 1. Shown as PostgreSQL shows it in names of files: eight hexadecimal
/// digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimelineId(pub u32);

impl TimelineId {
    pub const FIRST: TimelineId = TimelineId(1);

    /// The file that has its history, beside the log and in an archive.
    pub fn history_name(self) -> String {
        format!("{self}.history")
    }

    /// What the checksums of its records are combined with: another for each timeline, and 0 for
    /// the first, whose records are those of logs that knew no timelines.
    pub(crate) fn salt(self) -> u32 {
        // An odd factor gives each number a product of its own.
        self.0.wrapping_sub(1).wrapping_mul(0x9E37_79B1)
    }
}

impl fmt::Display for TimelineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08X}", self.0)
    }
}

/// A timeline that has ended, and where: records that begin at `end` or after are of the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedTimeline {
    pub timeline: TimelineId,
    pub end: Lsn,
}

/// The timelines that lead to the current one, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineHistory {
    ended: Vec<EndedTimeline>,
    current: TimelineId,
}

impl Default for TimelineHistory {
    fn default() -> TimelineHistory {
        TimelineHistory {
            ended: Vec::new(),
            current: TimelineId::FIRST,
        }
    }
}

impl TimelineHistory {
    /// None unless numbers and ends both rise.
    pub fn new(ended: Vec<EndedTimeline>, current: TimelineId) -> Option<TimelineHistory> {
        let rises = |pair: &[EndedTimeline]| {
            pair[0].timeline < pair[1].timeline && pair[0].end <= pair[1].end
        };
        let numbered = ended.first().map_or(current, |first| first.timeline).0 > 0;
        let leads = ended.last().is_none_or(|last| last.timeline < current);
        (numbered && leads && ended.windows(2).all(rises))
            .then_some(TimelineHistory { ended, current })
    }

    pub fn current(&self) -> TimelineId {
        self.current
    }

    pub fn ended(&self) -> &[EndedTimeline] {
        &self.ended
    }

    /// Where the current timeline begins; [`Lsn::ZERO`] for the first.
    pub fn begin(&self) -> Lsn {
        self.ended.last().map_or(Lsn::ZERO, |last| last.end)
    }

    /// The timeline of a record that begins at `lsn`.
    pub fn at(&self, lsn: Lsn) -> TimelineId {
        let ended = self.ended.partition_point(|ended| ended.end <= lsn);
        self.ended
            .get(ended)
            .map_or(self.current, |ended| ended.timeline)
    }

    /// The history of a timeline that leaves this one at `end`.
    ///
    /// # Panics
    /// When `to` is not greater than the current number.
    #[must_use]
    pub fn branched(&self, end: Lsn, to: TimelineId) -> TimelineHistory {
        let timeline = self.at(end);
        let mut ended: Vec<EndedTimeline> = self
            .ended
            .iter()
            .copied()
            .take_while(|ended| ended.end <= end)
            .collect();
        ended.push(EndedTimeline { timeline, end });
        TimelineHistory::new(ended, to).expect("a timeline's number is greater than its parent's")
    }

    /// As PostgreSQL writes it into `NNNNNNNN.history`: a line for each timeline that has ended.
    pub fn to_text(&self) -> String {
        let line = |ended: &EndedTimeline| {
            let (timeline, end) = (ended.timeline.0, ended.end.to_halves());
            format!("{timeline}\t{end}\tno recovery target specified\n")
        };
        self.ended.iter().map(line).collect()
    }

    /// Reads what [`to_text`](Self::to_text) or PostgreSQL has written for timeline `current`.
    pub fn from_text(text: &str, current: TimelineId) -> Option<TimelineHistory> {
        let lines = text
            .lines()
            .map(|line| line.split('#').next().unwrap_or_default().trim())
            .filter(|line| !line.is_empty());
        let ended = lines.map(|line| {
            let mut words = line.split_whitespace();
            let timeline = TimelineId(words.next()?.parse().ok()?);
            let end = Lsn::from_halves(words.next()?)?;
            Some(EndedTimeline { timeline, end })
        });
        TimelineHistory::new(ended.collect::<Option<_>>()?, current)
    }
}

/// A segment's name as PostgreSQL's tools know it: timeline, and the position's halves.
pub fn segment_name(timeline: TimelineId, number: u64, segment_size: u64) -> String {
    let per_id = (1 << 32) / segment_size;
    format!("{timeline}{:08X}{:08X}", number / per_id, number % per_id)
}

/// The timeline and number of a segment of that name; None for other names.
pub fn parse_segment_name(name: &str, segment_size: u64) -> Option<(TimelineId, u64)> {
    if name.len() != 24 || !name.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let part = |at: usize| u32::from_str_radix(&name[at..at + 8], 16).ok();
    let (timeline, id, within) = (part(0)?, part(8)?, part(16)?);
    let per_id = (1 << 32) / segment_size;
    (timeline > 0 && u64::from(within) < per_id).then_some((
        TimelineId(timeline),
        u64::from(id) * per_id + u64::from(within),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(timeline: u32, end: u64) -> EndedTimeline {
        EndedTimeline {
            timeline: TimelineId(timeline),
            end: Lsn(end),
        }
    }

    #[test]
    fn a_position_is_of_one_timeline() {
        let first = TimelineHistory::default();
        assert_eq!(first.at(Lsn(7)), TimelineId(1));
        let second = first.branched(Lsn(100), TimelineId(3));
        let at = |lsn| second.at(Lsn(lsn)).0;
        assert_eq!((at(99), at(100), at(1000)), (1, 3, 3));
        // A recovery that stops on an ancestor leaves it there.
        let beside = second.branched(Lsn(50), TimelineId(4));
        assert_eq!(beside.ended(), [ended(1, 50)]);
        let after = second.branched(Lsn(200), TimelineId(4));
        assert_eq!(after.ended(), [ended(1, 100), ended(3, 200)]);
    }

    #[test]
    fn histories_are_read_as_written() {
        let history = TimelineHistory::default()
            .branched(Lsn(0x1_0000_0010), TimelineId(2))
            .branched(Lsn(0x1_0000_0020), TimelineId(5));
        let text = history.to_text();
        assert_eq!(
            TimelineHistory::from_text(&text, TimelineId(5)),
            Some(history)
        );
        assert_eq!(TimelineHistory::from_text(&text, TimelineId(2)), None);
        assert_eq!(
            TimelineHistory::from_text("1\tnonsense", TimelineId(2)),
            None
        );
        assert_eq!(
            TimelineHistory::new(vec![ended(2, 9), ended(3, 8)], TimelineId(4)),
            None
        );
    }

    #[test]
    fn segments_have_postgresqls_names() {
        let size = 16 << 20;
        let name = segment_name(TimelineId(1), 0x1_2A, size);
        assert_eq!(name, "00000001000000010000002A");
        assert_eq!(
            parse_segment_name(&name, size),
            Some((TimelineId(1), 0x1_2A))
        );
        assert_eq!(parse_segment_name("000000010000000100000100", size), None);
        assert_eq!(parse_segment_name("0000000100000001000000", size), None);
    }

    #[test]
    fn each_timeline_has_a_salt_of_its_own() {
        assert_eq!(TimelineId::FIRST.salt(), 0);
        let salts: std::collections::HashSet<u32> =
            (1..10_000).map(|n| TimelineId(n).salt()).collect();
        assert_eq!(salts.len(), 9_999);
    }
}
