//! Triggers: `pg_trigger`, what `pg_get_triggerdef` says, and `information_schema` on them.

use throng_types::{Array, Datum, Oid, oid};

use super::constraint::{Address, dependency};
use super::definition::qualified_name;
use super::info_relation::{catalog_name, schema_name};
use super::{Rows, SystemState, row};
use crate::builtin::class;
use crate::{Catalog, ConstraintDef, FkAction, Relation, TableDef, TriggerDef, builtin, fires};
use throng_types::lexical::{quote_ident, quote_literal};
use throng_values::func::function_by_oid;

/// How a definition is written.
pub struct Written<'a> {
    pub search_path: &'a [Oid],
    /// The table's name without its schema, where the path finds it.
    pub short: bool,
    /// The condition, where there is one.
    pub condition: Option<&'a str>,
}

const EVENTS: [(i16, &str); 4] = [
    (fires::INSERT, "INSERT"),
    (fires::DELETE, "DELETE"),
    (fires::UPDATE, "UPDATE"),
    (fires::TRUNCATE, "TRUNCATE"),
];

fn timing(trigger: &TriggerDef) -> &'static str {
    match trigger.fires & fires::TIMING {
        fires::BEFORE => "BEFORE",
        fires::INSTEAD => "INSTEAD OF",
        _ => "AFTER",
    }
}

fn level(trigger: &TriggerDef) -> &'static str {
    match trigger.for_each_row() {
        true => "ROW",
        false => "STATEMENT",
    }
}

/// A column's name by its number.
fn column_name(relation: &Relation, attnum: u16) -> &str {
    let at = usize::from(attnum) - 1;
    match relation {
        Relation::Table(table) => table.columns.get(at).map_or("?", |c| &c.name),
        Relation::View(view) => view.columns.get(at).map_or("?", |c| &c.name),
        _ => "?",
    }
}

/// A relation's name, qualified where the path does not find it.
fn name_on_path(catalog: &Catalog, path: &[Oid], relation: Oid) -> String {
    let found = catalog.relation(relation);
    found.map_or_else(
        || relation.0.to_string(),
        |r| catalog.display_name(path, &r),
    )
}

/// `EXECUTE FUNCTION f('a')`
fn call(catalog: &Catalog, path: &[Oid], trigger: &TriggerDef) -> String {
    let name = match catalog.routine(trigger.function) {
        Some(def) => catalog.routine_display(path, def),
        None => function_by_oid(trigger.function)
            .map_or("?", |f| f.name)
            .to_owned(),
    };
    let args: Vec<String> = trigger.args.iter().map(|a| quote_literal(a)).collect();
    format!("EXECUTE FUNCTION {name}({})", args.join(", "))
}

/// The statement that would make the trigger.
pub fn definition(catalog: &Catalog, trigger: &TriggerDef, written: &Written<'_>) -> String {
    let Some(relation) = catalog.relation(trigger.table) else {
        return String::new();
    };
    let mut events = Vec::new();
    for (event, word) in EVENTS {
        if !trigger.is_on(event) {
            continue;
        }
        let mut text = word.to_owned();
        if event == fires::UPDATE && !trigger.columns.is_empty() {
            let columns = trigger.columns.iter();
            let columns = columns.map(|n| quote_ident(column_name(&relation, *n)));
            text.push_str(&format!(" OF {}", columns.collect::<Vec<_>>().join(", ")));
        }
        events.push(text);
    }
    let table = match written.short {
        true => catalog.display_name(written.search_path, &relation),
        false => qualified_name(catalog, relation.schema(), relation.name()),
    };
    let mut text = format!(
        "CREATE {}TRIGGER {} {} {} ON {table} ",
        if trigger.constraint.is_some() {
            "CONSTRAINT "
        } else {
            ""
        },
        quote_ident(&trigger.name),
        timing(trigger),
        events.join(" OR "),
    );
    if let Some(constraint) = &trigger.constraint {
        if let Some(other) = constraint.other {
            let name = name_on_path(catalog, written.search_path, other);
            text.push_str(&format!("FROM {name} "));
        }
        if !constraint.deferral.is_deferrable() {
            text.push_str("NOT ");
        }
        text.push_str(match constraint.deferral.is_deferred() {
            true => "DEFERRABLE INITIALLY DEFERRED ",
            false => "DEFERRABLE INITIALLY IMMEDIATE ",
        });
    }
    if trigger.has_transition_tables() {
        text.push_str("REFERENCING ");
        let tables = [("OLD", &trigger.old_table), ("NEW", &trigger.new_table)];
        for (which, name) in tables {
            if let Some(name) = name {
                text.push_str(&format!("{which} TABLE AS {} ", quote_ident(name)));
            }
        }
    }
    text.push_str(&format!("FOR EACH {} ", level(trigger)));
    if let Some(condition) = written.condition {
        text.push_str(&format!("WHEN ({condition}) "));
    }
    text.push_str(&call(catalog, written.search_path, trigger));
    text
}

/// Arguments as they are kept: each ends with a zero byte.
fn arguments(args: &[String]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for arg in args {
        bytes.extend_from_slice(arg.as_bytes());
        bytes.push(0);
    }
    bytes
}

pub(super) fn pg_trigger(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let row = |trigger: &&std::sync::Arc<TriggerDef>| {
        let columns = trigger.columns.iter().map(|n| Datum::from(*n as i16));
        let is_constraint = trigger.constraint.is_some();
        let other = trigger.constraint.and_then(|c| c.other);
        row![
            trigger.oid,
            trigger.table,
            trigger.parent.unwrap_or(Oid::NONE),
            trigger.name.as_str(),
            trigger.function,
            trigger.fires,
            Datum::Char(trigger.enabled.letter()),
            false,
            other.unwrap_or(Oid::NONE),
            Oid::NONE,
            if is_constraint {
                trigger.oid
            } else {
                Oid::NONE
            },
            trigger.deferral().is_deferrable(),
            trigger.deferral().is_deferred(),
            trigger.args.len() as i16,
            Datum::array(Array::vector(oid::INT2, columns.collect())),
            Datum::Bytea(arguments(&trigger.args).into()),
            trigger.when.as_ref().map(|when| when.text.as_str()),
            trigger.old_table.as_deref(),
            trigger.new_table.as_deref(),
        ]
    };
    let mut rows: Rows = catalog.triggers().iter().map(row).collect();
    for table in catalog.tables() {
        for constraint in catalog.constraints_of(table.oid) {
            rows.extend(of_foreign_key(catalog, constraint));
        }
    }
    rows
}

/// PostgreSQL's own functions for foreign keys: on DELETE and on UPDATE of a row that is pointed
/// at.
fn action_functions(on_delete: FkAction, on_update: FkAction) -> [u32; 2] {
    let pair = |action| match action {
        FkAction::Cascade => [1646, 1647],
        FkAction::Restrict => [1648, 1649],
        FkAction::SetNull => [1650, 1651],
        FkAction::SetDefault => [1652, 1653],
        FkAction::NoAction => [1654, 1655],
    };
    [pair(on_delete)[0], pair(on_update)[1]]
}

/// The oid of one of the four triggers that a foreign key is in PostgreSQL: a number that no object
/// has.
fn internal_oid(constraint: Oid, which: u32) -> Oid {
    const FIRST: u32 = 1 << 31;
    Oid(FIRST | (constraint.0 << 2) & !FIRST | which)
}

/// The name of the first trigger that foreign keys are on a table in PostgreSQL; none where it has
/// none.
pub fn of_keys(catalog: &Catalog, table: &TableDef) -> Option<String> {
    let of = |kind: char, which, constraint: &ConstraintDef| {
        let oid = internal_oid(constraint.oid, which);
        format!("RI_ConstraintTrigger_{kind}_{}", oid.0)
    };
    if let Some(incoming) = catalog.referencing(table.oid).first() {
        return Some(of('a', 0, incoming));
    }
    let own = catalog.constraints_of(table.oid).iter();
    let own = own
        .filter(|c| c.foreign_key().is_some())
        .min_by_key(|c| c.oid);
    own.map(|own| of('c', 2, own))
}

/// A foreign key as the triggers that it is in PostgreSQL, which clients look for.
fn of_foreign_key(catalog: &Catalog, constraint: &ConstraintDef) -> Rows {
    const CHECKS: [u32; 2] = [1644, 1645];
    let Some(key) = constraint.foreign_key() else {
        return Rows::new();
    };
    if !constraint.deferral.is_enforced() {
        return Rows::new();
    }
    let actions = action_functions(key.on_delete, key.on_update);
    let (own, other) = (constraint.table, key.ref_table);
    let mut found = Vec::with_capacity(4);
    // What is done with rows that are pointed at is said once, for the table that the key was
    // declared of.
    if constraint.lineage.parent.is_none() {
        let waits = |action| action == FkAction::NoAction;
        found.push((
            0,
            'a',
            other,
            own,
            actions[0],
            fires::DELETE,
            waits(key.on_delete),
        ));
        found.push((
            1,
            'a',
            other,
            own,
            actions[1],
            fires::UPDATE,
            waits(key.on_update),
        ));
    }
    found.push((2, 'c', own, other, CHECKS[0], fires::INSERT, true));
    found.push((3, 'c', own, other, CHECKS[1], fires::UPDATE, true));
    let parent = constraint.lineage.parent;
    let rows = found
        .into_iter()
        .map(|(which, kind, table, from, function, event, waits)| {
            let oid = internal_oid(constraint.oid, which);
            let parent = parent.map_or(Oid::NONE, |parent| internal_oid(parent, which));
            let of = catalog.table(table);
            let is_off = of.is_some_and(|t| t.keys_off.contains(&constraint.oid));
            row![
                oid,
                table,
                parent,
                format!("RI_ConstraintTrigger_{kind}_{}", oid.0),
                Oid(function),
                fires::ROW | event,
                Datum::Char(if is_off { b'D' } else { b'O' }),
                true,
                from,
                key.ref_index,
                constraint.oid,
                waits && constraint.deferral.is_deferrable(),
                waits && constraint.deferral.is_deferred(),
                0i16,
                Datum::array(Array::vector(oid::INT2, vec![])),
                Datum::Bytea(arguments(&[]).into()),
                Datum::Null,
                Datum::Null,
                Datum::Null,
            ]
        });
    rows.collect()
}

/// Constraint triggers as `pg_constraint` lists them, which have their triggers' oids.
pub(super) fn constraint_triggers<'a>(
    catalog: &'a Catalog,
    table: &TableDef,
) -> impl Iterator<Item = &'a TriggerDef> {
    let triggers = catalog.triggers_of(table.oid).iter().map(|t| &**t);
    triggers.filter(|trigger| trigger.constraint.is_some())
}

pub(super) fn dependencies(catalog: &Catalog, rows: &mut Rows) {
    for trigger in catalog.triggers() {
        let own: Address = (class::TRIGGER, trigger.oid, 0);
        let table = |column| (class::RELATION, trigger.table, column);
        rows.push(dependency(
            own,
            (class::PROCEDURE, trigger.function, 0),
            b'n',
        ));
        rows.push(dependency(own, table(0), b'a'));
        if let Some(parent) = trigger.parent {
            rows.push(dependency(own, (class::TRIGGER, parent, 0), b'P'));
            rows.push(dependency(own, table(0), b'S'));
        }
        let in_condition = trigger.when.iter().flat_map(|when| &when.columns);
        for column in trigger.columns.iter().chain(in_condition) {
            rows.push(dependency(own, table(*column), b'n'));
        }
    }
}

/// The triggers of relations that the reader may use, with their relations.
fn seen<'a>(catalog: &'a Catalog, state: &dyn SystemState) -> Vec<(&'a TriggerDef, Relation)> {
    let reader = state.current_user();
    let triggers = catalog.triggers().into_iter();
    let of = |trigger: &'a std::sync::Arc<TriggerDef>| {
        let relation = catalog.relation(trigger.table)?;
        let may = catalog.any_right(reader, &relation);
        may.then_some((&**trigger, relation))
    };
    triggers.filter_map(of).collect()
}

pub(super) fn triggers(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let mut rows = Rows::new();
    let reader = state.current_user();
    for (trigger, relation) in seen(catalog, state) {
        let path = [builtin::PG_CATALOG, builtin::PUBLIC, relation.schema()];
        // Standard SQL knows no TRUNCATE.
        for (event, word) in &EVENTS[..3] {
            if !trigger.is_on(*event) {
                continue;
            }
            let alike = |other: &&std::sync::Arc<TriggerDef>| {
                let same = fires::ROW | fires::TIMING;
                other.is_on(*event) && other.fires & same == trigger.fires & same
            };
            let before = catalog.triggers_of(trigger.table).iter().filter(alike);
            let order = before.take_while(|other| other.oid != trigger.oid).count() + 1;
            let owns = catalog.acts_as(reader, relation.owner(catalog));
            let condition = trigger.when.as_ref().filter(|_| owns);
            rows.push(row![
                catalog_name(catalog),
                schema_name(catalog, relation.schema()),
                trigger.name.as_str(),
                *word,
                catalog_name(catalog),
                schema_name(catalog, relation.schema()),
                relation.name(),
                order as i32,
                condition.map(|when| when.text.as_str()),
                call(catalog, &path, trigger),
                level(trigger),
                timing(trigger),
                trigger.old_table.as_deref(),
                trigger.new_table.as_deref(),
                Datum::Null,
                Datum::Null,
                Datum::Null,
            ]);
        }
    }
    rows
}

pub(super) fn triggered_update_columns(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let mut rows = Rows::new();
    for (trigger, relation) in seen(catalog, state) {
        for attnum in &trigger.columns {
            rows.push(row![
                catalog_name(catalog),
                schema_name(catalog, relation.schema()),
                trigger.name.as_str(),
                catalog_name(catalog),
                schema_name(catalog, relation.schema()),
                relation.name(),
                column_name(&relation, *attnum),
            ]);
        }
    }
    rows
}
