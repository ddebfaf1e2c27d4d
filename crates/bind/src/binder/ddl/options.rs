//! Storage parameters: which there are, and what they may be.
//!
//! They are kept as they were given; `WITH (…)` and `SET (…)` name them, of a table's TOAST table
//! as `toast.name`.

use throng_types::error::state;
use throng_types::{Error, Result};

use crate::binder::Binder;
use throng_catalog::{IndexMethod, TableDef};
use throng_syntax::parse::ast::Pos;
use throng_values::settings::value::parse_bool;

/// What a parameter may be.
#[derive(Clone, Copy)]
pub(in crate::binder) enum Kind {
    Bool,
    Int(i64, i64),
    Real(f64, f64),
    /// One of these words.
    Words(&'static [&'static str]),
}

/// A parameter: its name, what it may be, and whether TOAST tables have it, too.
pub(in crate::binder) type Known = (&'static str, Kind, bool);

const MAX: i64 = i32::MAX as i64;

/// Of tables and materialized views.
pub(in crate::binder) const TABLE: &[Known] = &[
    ("fillfactor", Kind::Int(10, 100), false),
    ("parallel_workers", Kind::Int(0, 1024), false),
    ("toast_tuple_target", Kind::Int(128, 8160), false),
    ("user_catalog_table", Kind::Bool, false),
    ("vacuum_truncate", Kind::Bool, true),
    (
        "vacuum_index_cleanup",
        Kind::Words(&["on", "off", "auto"]),
        true,
    ),
    (
        "vacuum_max_eager_freeze_failure_rate",
        Kind::Real(0.0, 1.0),
        true,
    ),
    ("autovacuum_enabled", Kind::Bool, true),
    ("autovacuum_vacuum_threshold", Kind::Int(0, MAX), true),
    ("autovacuum_vacuum_max_threshold", Kind::Int(-1, MAX), true),
    (
        "autovacuum_vacuum_insert_threshold",
        Kind::Int(-1, MAX),
        true,
    ),
    (
        "autovacuum_vacuum_scale_factor",
        Kind::Real(0.0, 100.0),
        true,
    ),
    (
        "autovacuum_vacuum_insert_scale_factor",
        Kind::Real(0.0, 100.0),
        true,
    ),
    ("autovacuum_analyze_threshold", Kind::Int(0, MAX), false),
    (
        "autovacuum_analyze_scale_factor",
        Kind::Real(0.0, 100.0),
        false,
    ),
    ("autovacuum_vacuum_cost_delay", Kind::Real(0.0, 100.0), true),
    ("autovacuum_vacuum_cost_limit", Kind::Int(1, 10_000), true),
    (
        "autovacuum_freeze_min_age",
        Kind::Int(0, 1_000_000_000),
        true,
    ),
    (
        "autovacuum_freeze_max_age",
        Kind::Int(100_000, 2_000_000_000),
        true,
    ),
    (
        "autovacuum_freeze_table_age",
        Kind::Int(0, 2_000_000_000),
        true,
    ),
    (
        "autovacuum_multixact_freeze_min_age",
        Kind::Int(0, 1_000_000_000),
        true,
    ),
    (
        "autovacuum_multixact_freeze_max_age",
        Kind::Int(10_000, 2_000_000_000),
        true,
    ),
    (
        "autovacuum_multixact_freeze_table_age",
        Kind::Int(0, 2_000_000_000),
        true,
    ),
    ("log_autovacuum_min_duration", Kind::Int(-1, MAX), true),
];

/// Of columns: what ANALYZE is to take for the number of distinct values.
pub(in crate::binder) const COLUMN: &[Known] = &[
    ("n_distinct", Kind::Real(-1.0, f64::MAX), false),
    ("n_distinct_inherited", Kind::Real(-1.0, f64::MAX), false),
];

/// Of indexes of a method.
pub(in crate::binder) fn of_index(method: IndexMethod) -> &'static [Known] {
    const ALL: &[Known] = &[
        ("fillfactor", Kind::Int(10, 100), false),
        ("deduplicate_items", Kind::Bool, false),
    ];
    const GIN: &[Known] = &[
        ("fastupdate", Kind::Bool, false),
        ("gin_pending_list_limit", Kind::Int(64, MAX), false),
    ];
    match method {
        IndexMethod::Btree => ALL,
        IndexMethod::Hash | IndexMethod::Gist => &ALL[..1],
        IndexMethod::Gin => GIN,
    }
}

/// # Errors
/// 22023 for one that is none, or that may not be that.
pub(in crate::binder) fn check(list: &[(String, String)], known: &[Known]) -> Result<()> {
    for (name, value) in list {
        let (bare, toast) = match name.strip_prefix("toast.") {
            Some(bare) => (bare, true),
            None => (name.as_str(), false),
        };
        // Tables had oids once; to want none is no wish.
        if bare == "oids" && value.eq_ignore_ascii_case("false") {
            continue;
        }
        if toast && known.iter().all(|(.., of_toast)| !of_toast) {
            return Err(invalid(
                "unrecognized parameter namespace \"toast\"".to_owned(),
            ));
        }
        let found = known.iter().find(|(n, ..)| *n == bare);
        let Some((_, kind, _)) = found.filter(|(.., of_toast)| *of_toast || !toast) else {
            return Err(invalid(format!("unrecognized parameter \"{bare}\"")));
        };
        check_one(bare, value, *kind)?;
    }
    Ok(())
}

fn invalid(message: String) -> Error {
    Error::new(state::INVALID_PARAMETER_VALUE, message)
}

fn check_one(name: &str, value: &str, kind: Kind) -> Result<()> {
    let wrong = |what: &str| {
        invalid(format!(
            "invalid value for {what} option \"{name}\": {value}"
        ))
    };
    let outside = |low: String, high: String| {
        let message = format!("value {value} out of bounds for option \"{name}\"");
        let valid = format!("Valid values are between \"{low}\" and \"{high}\".");
        invalid(message).detail(valid)
    };
    match kind {
        Kind::Bool => match parse_bool(value) {
            Some(_) => Ok(()),
            None => Err(wrong("boolean")),
        },
        // A part of one is rounded.
        Kind::Int(low, high) => match value.parse::<f64>() {
            Ok(number) if (low as f64..=high as f64).contains(&number.round_ties_even()) => Ok(()),
            Ok(_) => Err(outside(low.to_string(), high.to_string())),
            Err(_) => Err(wrong("integer")),
        },
        Kind::Real(low, high) => match value.parse::<f64>() {
            Ok(number) if (low..=high).contains(&number) => Ok(()),
            Ok(_) => Err(outside(format!("{low:.6}"), format!("{high:.6}"))),
            Err(_) => Err(wrong("floating point")),
        },
        // Booleans are words for it, too.
        Kind::Words(words) => {
            let known = words.iter().any(|w| w.eq_ignore_ascii_case(value));
            match known || parse_bool(value).is_some() {
                true => Ok(()),
                false => {
                    let (last, others) = words.split_last().unwrap_or((&"", &[]));
                    let others: Vec<String> = others.iter().map(|w| format!("\"{w}\"")).collect();
                    let valid = format!("Valid values are {}, and \"{last}\".", others.join(", "));
                    Err(wrong("enum").detail(valid))
                }
            }
        }
    }
}

impl Binder<'_> {
    /// Says which of an index's parameters have no effect: entries of a GIN index are made at once,
    /// as with `fastupdate` off.
    pub(in crate::binder) fn tell_inert_options(&mut self, list: &[(String, String)]) {
        for (name, value) in list {
            let is_inert = match name.as_str() {
                "fastupdate" => parse_bool(value) == Some(true),
                "gin_pending_list_limit" => true,
                _ => false,
            };
            if is_inert {
                let message = format!("storage parameter \"{name}\" has no effect");
                let notice = Error::new(state::SUCCESSFUL_COMPLETION, message);
                self.notice(notice.detail("GIN indexes have no pending list."));
            }
        }
    }

    /// A column about whose statistics something is said.
    pub(in crate::binder) fn column_to_analyze(&self, table: &TableDef, name: &str) -> Result<u16> {
        const SYSTEM_COLUMNS: [&str; 6] = ["ctid", "xmin", "cmin", "xmax", "cmax", "tableoid"];
        if SYSTEM_COLUMNS.contains(&name) {
            let message = format!("cannot alter system column \"{name}\"");
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
        }
        const NOWHERE: Pos = 0;
        let found = self.target_column(table, name, NOWHERE);
        found.map_err(crate::binder::ddl::table::no_position)
    }

    /// What SET STATISTICS asks for; -1 is the default.
    pub(in crate::binder) fn statistics_target(
        &mut self,
        asked: Option<i64>,
    ) -> Result<Option<i16>> {
        const MOST: i16 = 10_000;
        match asked {
            None | Some(-1) => Ok(None),
            Some(low) if low < 0 => Err(invalid(format!("statistics target {low} is too low"))),
            Some(target) => match i16::try_from(target).ok().filter(|t| *t <= MOST) {
                Some(target) => Ok(Some(target)),
                None => {
                    let message = format!("lowering statistics target to {MOST}");
                    let warning = Error::new(state::INVALID_PARAMETER_VALUE, message);
                    self.notices
                        .push(warning.severity(throng_types::error::Severity::Warning));
                    Ok(Some(MOST))
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(name: &str, value: &str, known: &[Known]) -> Option<String> {
        let list = [(name.to_owned(), value.to_owned())];
        check(&list, known).err().map(|e| e.message().to_owned())
    }

    #[test]
    fn parameters_are_known_by_name_and_kept_within_bounds() {
        for (name, value) in [
            ("fillfactor", "70"),
            ("autovacuum_enabled", "off"),
            ("toast.autovacuum_enabled", "true"),
            ("autovacuum_analyze_scale_factor", "0.02"),
            ("autovacuum_analyze_threshold", "1.5"),
            ("vacuum_index_cleanup", "auto"),
            ("oids", "false"),
        ] {
            assert_eq!(refused(name, value, TABLE), None);
        }
        for (name, value, why) in [
            (
                "autovacuum_foo",
                "1",
                "unrecognized parameter \"autovacuum_foo\"",
            ),
            (
                "toast.fillfactor",
                "70",
                "unrecognized parameter \"fillfactor\"",
            ),
            (
                "autovacuum_enabled",
                "perhaps",
                "invalid value for boolean option \"autovacuum_enabled\": perhaps",
            ),
            (
                "autovacuum_analyze_threshold",
                "-1",
                "value -1 out of bounds for option \"autovacuum_analyze_threshold\"",
            ),
            (
                "autovacuum_analyze_scale_factor",
                "x",
                "invalid value for floating point option \"autovacuum_analyze_scale_factor\": x",
            ),
        ] {
            assert_eq!(refused(name, value, TABLE).as_deref(), Some(why));
        }
        assert_eq!(refused("n_distinct", "-0.5", COLUMN), None);
        assert!(refused("n_distinct", "-2", COLUMN).is_some());
        assert!(refused("fillfactor", "70", COLUMN).is_some());
    }
}
