//! When each table was last cleaned and looked at, how much it has changed since, and whether that
//! is enough to do it again.
//!
//! ```text
//! changes counted (RelCounts, a core's own lines) ──┬── minus those at the last ANALYZE ─► n_mod_since_analyze
//!                                                   └── and minus those it could not see yet: they were not committed
//! ```
//! Nothing here is on disk: a start forgets it, and who changes rows does not touch it.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use parking_lot::Mutex;
use throng_access::RelCounts;
use throng_catalog::TableDef;
use throng_types::{FileId, Oid};
use throng_values::settings::value::parse_bool;
use throng_values::settings::{Id, ServerSettings};

use crate::session::now;

/// Who did it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Statement,
    Background,
}

/// What was done to a table one way: times are microseconds since 2000-01-01 UTC.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Done {
    pub last: Option<i64>,
    pub count: u64,
    pub milliseconds: f64,
}

impl Done {
    fn again(&mut self, began: i64) {
        let ended = now();
        self.last = Some(ended);
        self.count += 1;
        self.milliseconds += (ended - began).max(0) as f64 / 1000.0;
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Record {
    pub vacuum: Done,
    pub autovacuum: Done,
    pub analyze: Done,
    pub autoanalyze: Done,
    /// The changes that the last ANALYZE knew of, of the heap that the table had then.
    analyzed: Option<(FileId, u64)>,
}

/// Every table's, by its oid.
#[derive(Default)]
pub(crate) struct Maintenance {
    records: Mutex<HashMap<Oid, Record, FixedState>>,
}

impl Maintenance {
    pub fn of(&self, table: Oid) -> Record {
        self.records.lock().get(&table).copied().unwrap_or_default()
    }

    /// A table was cleaned.
    pub fn vacuumed(&self, table: Oid, by: By, began: i64) {
        let mut records = self.records.lock();
        let record = records.entry(table).or_default();
        match by {
            By::Statement => record.vacuum.again(began),
            By::Background => record.autovacuum.again(began),
        }
    }

    /// A table was looked at. `changes`: those of its heap that were seen; none where some columns
    /// were passed over.
    pub fn analyzed(&self, table: &TableDef, by: By, began: i64, changes: Option<u64>) {
        let mut records = self.records.lock();
        let record = records.entry(table.oid).or_default();
        match by {
            By::Statement => record.analyze.again(began),
            By::Background => record.autoanalyze.again(began),
        }
        if let Some(changes) = changes {
            record.analyzed = Some((table.file, changes));
        }
    }

    /// Changes of a table's rows since the last ANALYZE.
    pub fn changed(&self, table: &TableDef, counts: &RelCounts) -> u64 {
        let known = self.of(table.oid).analyzed;
        let before = known.filter(|(file, _)| *file == table.file);
        counts.changes().saturating_sub(before.map_or(0, |b| b.1))
    }

    /// Forgets the tables that are gone.
    pub fn forget_unless(&self, is_there: impl Fn(Oid) -> bool) {
        let mut records = self.records.lock();
        records.retain(|table, _| is_there(*table));
    }
}

/// A table's own word on a storage parameter.
fn option<'t>(table: &'t TableDef, name: &str) -> Option<&'t str> {
    let given = table.options.iter().find(|(known, _)| known == name);
    given.map(|(_, value)| value.as_str())
}

/// Whether the background is to care for a table at all.
pub(crate) fn is_enabled(table: &TableDef) -> bool {
    option(table, "autovacuum_enabled").and_then(parse_bool) != Some(false)
}

/// So many rows, and such a part of all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Threshold {
    pub rows: u64,
    pub scale: f64,
}

impl Threshold {
    fn of(settings: &ServerSettings, table: &TableDef, of: [(&str, Id); 2]) -> Threshold {
        let [(rows_name, rows), (scale_name, scale)] = of;
        let own = |name| option(table, name);
        let rows = own(rows_name)
            .and_then(|v| v.parse::<f64>().ok())
            .map_or(settings.int(rows).max(0) as u64, |rows| {
                rows.round_ties_even() as u64
            });
        let scale = own(scale_name)
            .and_then(|v| v.parse().ok())
            .unwrap_or_else(|| settings.real(scale));
        Threshold { rows, scale }
    }

    /// Of dead rows, for cleaning.
    pub fn to_vacuum(settings: &ServerSettings, table: &TableDef) -> Threshold {
        let rows = ("autovacuum_vacuum_threshold", Id::AutovacuumVacuumThreshold);
        let scale = (
            "autovacuum_vacuum_scale_factor",
            Id::AutovacuumVacuumScaleFactor,
        );
        Threshold::of(settings, table, [rows, scale])
    }

    /// Of changed rows, for ANALYZE.
    pub fn to_analyze(settings: &ServerSettings, table: &TableDef) -> Threshold {
        let rows = (
            "autovacuum_analyze_threshold",
            Id::AutovacuumAnalyzeThreshold,
        );
        let scale = (
            "autovacuum_analyze_scale_factor",
            Id::AutovacuumAnalyzeScaleFactor,
        );
        Threshold::of(settings, table, [rows, scale])
    }

    /// Whether so many of `all` rows are more.
    pub fn is_passed(&self, rows: u64, all: f64) -> bool {
        rows as f64 > self.rows as f64 + self.scale * all.max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_values::settings::Source;

    fn table(options: &[(&str, &str)]) -> TableDef {
        let mut table = TableDef::of_columns(Vec::new());
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        table.options = options.iter().map(own).collect();
        table
    }

    #[test]
    fn changes_count_from_the_last_look_at_the_same_heap() {
        let maintenance = Maintenance::default();
        let table = table(&[]);
        let counts = RelCounts {
            inserted: 60,
            updated: 30,
            deleted: 10,
            ..RelCounts::default()
        };
        assert_eq!(maintenance.changed(&table, &counts), 100);
        maintenance.analyzed(&table, By::Background, now(), Some(70));
        assert_eq!(maintenance.changed(&table, &counts), 30);
        // Columns were passed over: what has changed is as much as before.
        maintenance.analyzed(&table, By::Statement, now(), None);
        assert_eq!(maintenance.changed(&table, &counts), 30);
        let record = maintenance.of(table.oid);
        assert_eq!((record.analyze.count, record.autoanalyze.count), (1, 1));
        assert!(record.analyze.last.is_some() && record.vacuum.last.is_none());
        let rewritten = TableDef {
            file: FileId(table.file.0 + 1),
            ..table
        };
        assert_eq!(maintenance.changed(&rewritten, &counts), 100);
    }

    #[test]
    fn a_table_may_say_itself_when_it_is_cared_for() -> throng_types::Result<()> {
        let mut settings = ServerSettings::default();
        let usual = Threshold::to_analyze(&settings, &table(&[]));
        let (rows, scale) = (50, 0.1);
        assert_eq!(usual, Threshold { rows, scale });
        assert!(!usual.is_passed(150, 1000.0) && usual.is_passed(151, 1000.0));
        settings.set("autovacuum_analyze_threshold", "7", Source::CommandLine)?;
        let own = table(&[("autovacuum_analyze_scale_factor", "0")]);
        let (rows, scale) = (7, 0.0);
        assert_eq!(
            Threshold::to_analyze(&settings, &own),
            Threshold { rows, scale }
        );
        assert!(is_enabled(&own));
        assert!(!is_enabled(&table(&[("autovacuum_enabled", "off")])));
        Ok(())
    }
}
