//! Partitions and inheritance: `pg_inherits`, `pg_partitioned_table`, and bounds and keys written
//! as SQL.

use throng_types::{Array, Datum, Oid, SqlType, oid};

use super::{Rows, SystemState, attribute, operator_class, row};
use crate::partition::check::{end_text, value_text};
use crate::partition::{PartitionBound, PartitionKey, RangeEnd};
use crate::{Catalog, TableDef};
use throng_types::lexical::quote_ident;

pub(super) fn pg_inherits(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let mut rows = Rows::new();
    for table in catalog.tables() {
        for (parent, number) in table.parents.iter().zip(1..) {
            let detaching = table.detaching.is_some();
            rows.push(row![table.oid, *parent, number, detaching]);
        }
    }
    for index in catalog.indexes() {
        if let Some(parent) = index.parent {
            rows.push(row![index.oid, parent, 1, false]);
        }
    }
    rows
}

pub(super) fn pg_partitioned_table(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let mut rows = Rows::new();
    for table in catalog.tables() {
        let Some(key) = &table.partitioned else {
            continue;
        };
        let default = catalog.children_of(table.oid).iter().find(|child| {
            let child = catalog.table(**child);
            child.is_some_and(|c| c.bound == Some(PartitionBound::Default))
        });
        let vector = |element: Oid, items: Vec<Datum>| Datum::array(Array::vector(element, items));
        let numbers = key.parts.iter().map(|p| (p.attnum as i16).into());
        let classes = key
            .parts
            .iter()
            .map(|p| operator_class::default_for(p.ty.oid).into());
        let collations = key
            .parts
            .iter()
            .map(|p| attribute::collation_oid(None, p.ty.oid).into());
        let exprs: Vec<&str> = key.parts.iter().filter_map(|p| p.expr.as_deref()).collect();
        let exprs: Datum = match exprs.is_empty() {
            true => Datum::Null,
            false => exprs.join(", ").into(),
        };
        rows.push(row![
            table.oid,
            Datum::Char(key.strategy.letter()),
            key.parts.len() as i16,
            default.copied().unwrap_or(Oid::NONE),
            vector(oid::INT2, numbers.collect()),
            vector(oid::OID, classes.collect()),
            vector(oid::OID, collations.collect()),
            exprs,
        ]);
    }
    rows
}

/// An expression of a partition key as it is listed: a call as it is, others in parentheses.
fn key_expression(text: &str) -> String {
    let call = text.ends_with(')')
        && text.split('(').next().is_some_and(|name| {
            !name.is_empty()
                && name
                    .chars()
                    .all(|c| c.is_alphanumeric() || c == '_' || c == '.')
        });
    match call {
        true => text.to_owned(),
        false => format!("({text})"),
    }
}

/// `RANGE (a, lower(b))`
pub fn key_definition(table: &TableDef, key: &PartitionKey) -> String {
    let parts: Vec<String> = key
        .parts
        .iter()
        .map(|part| match &part.expr {
            Some(text) => key_expression(text),
            None => quote_ident(&table.column(part.attnum).name),
        })
        .collect();
    let strategy = key.strategy.name().to_uppercase();
    format!("{strategy} ({})", parts.join(", "))
}

/// `FOR VALUES …`
pub fn bound_definition(bound: &PartitionBound, types: &[SqlType]) -> String {
    let ends = |ends: &[RangeEnd]| {
        let parts: Vec<String> = ends
            .iter()
            .zip(types)
            .map(|(e, ty)| end_text(e, *ty))
            .collect();
        parts.join(", ")
    };
    match bound {
        PartitionBound::Default => "DEFAULT".to_owned(),
        PartitionBound::List(values) => {
            let ty = types.first().copied().unwrap_or(SqlType::TEXT);
            let parts: Vec<String> = values
                .iter()
                .map(|v| match v {
                    Some(text) => value_text(text, ty),
                    None => "NULL".to_owned(),
                })
                .collect();
            format!("FOR VALUES IN ({})", parts.join(", "))
        }
        PartitionBound::Range { from, to } => {
            format!("FOR VALUES FROM ({}) TO ({})", ends(from), ends(to))
        }
        PartitionBound::Hash { modulus, remainder } => {
            format!("FOR VALUES WITH (modulus {modulus}, remainder {remainder})")
        }
    }
}

/// A partition's bound as `pg_class` has it.
pub(super) fn bound_of(catalog: &Catalog, table: &TableDef) -> Option<String> {
    let bound = table.bound.as_ref()?;
    let parent = catalog.table(*table.parents.first()?)?;
    let key = parent.partitioned.as_ref()?;
    let types: Vec<SqlType> = key.parts.iter().map(|p| p.ty).collect();
    Some(bound_definition(bound, &types))
}

/// The condition that a partition's rows satisfy, as SQL.
pub fn constraint_definition(catalog: &Catalog, table: &TableDef) -> Option<String> {
    let bound = table.bound.as_ref()?;
    let parent = catalog.table(*table.parents.first()?)?;
    let key = parent.partitioned.as_ref()?;
    let mut own = conditions(catalog, parent, key, bound, table)?;
    if let Some(above) = constraint_definition(catalog, parent) {
        own = format!("({} AND {})", strip(&above), strip(&own));
    }
    Some(own)
}

fn strip(text: &str) -> &str {
    text.strip_prefix('(')
        .and_then(|t| t.strip_suffix(')'))
        .filter(|t| t.starts_with('('))
        .unwrap_or(text)
}

fn literal(text: &str, ty: SqlType) -> String {
    let shown = value_text(text, ty);
    let plain = !shown.starts_with('\'');
    let int = ty.oid == oid::INT4 || ty.oid == oid::BOOL || ty.oid == oid::NUMERIC;
    match plain && int {
        true => shown,
        false => {
            let name = throng_types::sqltype::format_type(ty);
            format!("{shown}::{name}")
        }
    }
}

fn conditions(
    catalog: &Catalog,
    parent: &TableDef,
    key: &PartitionKey,
    bound: &PartitionBound,
    table: &TableDef,
) -> Option<String> {
    let name = |at: usize| match &key.parts[at].expr {
        Some(text) => format!("({text})"),
        None => quote_ident(&parent.column(key.parts[at].attnum).name),
    };
    match bound {
        PartitionBound::List(values) => {
            let ty = key.parts[0].ty;
            let some: Vec<String> = values.iter().flatten().map(|v| literal(v, ty)).collect();
            let column = name(0);
            let null = values.iter().any(Option::is_none);
            let equal = match &some[..] {
                [] => None,
                [one] => Some(format!("({column} = {one})")),
                many => Some(format!("({column} = ANY (ARRAY[{}]))", many.join(", "))),
            };
            Some(match (null, equal) {
                (false, Some(equal)) => format!("(({column} IS NOT NULL) AND {equal})"),
                (true, Some(equal)) => format!("(({column} IS NULL) OR {equal})"),
                (_, None) => format!("({column} IS NULL)"),
            })
        }
        PartitionBound::Range { from, to } => Some(range_condition(key, from, to, &name)),
        PartitionBound::Hash { modulus, remainder } => {
            let columns: Vec<String> = (0..key.parts.len()).map(name).collect();
            Some(format!(
                "satisfies_hash_partition('{}'::oid, {modulus}, {remainder}, {})",
                parent.oid.0,
                columns.join(", ")
            ))
        }
        PartitionBound::Default => {
            let mut others = Vec::new();
            for child in catalog.children_of(parent.oid) {
                if *child == table.oid {
                    continue;
                }
                let Some(other) = catalog.table(*child) else {
                    continue;
                };
                if let Some(bound) = &other.bound {
                    others.extend(conditions(catalog, parent, key, bound, other));
                }
            }
            match &others[..] {
                [] => None,
                [one] => Some(format!("(NOT {one})")),
                many => Some(format!("(NOT ({}))", many.join(" OR "))),
            }
        }
    }
}

fn range_condition(
    key: &PartitionKey,
    from: &[RangeEnd],
    to: &[RangeEnd],
    name: &dyn Fn(usize) -> String,
) -> String {
    let mut parts: Vec<String> = (0..key.parts.len())
        .map(|at| format!("({} IS NOT NULL)", name(at)))
        .collect();
    let mut first = 0;
    // Equal leading values are said once.
    while let (Some(RangeEnd::Value(a)), Some(RangeEnd::Value(b))) =
        (from.get(first), to.get(first))
        && a == b
        && first + 1 < from.len()
    {
        parts.push(format!(
            "({} = {})",
            name(first),
            literal(a, key.parts[first].ty)
        ));
        first += 1;
    }
    for (ends, strict, last) in [(from, ">", ">="), (to, "<", "<")] {
        let mut arms: Vec<String> = Vec::new();
        let mut equal: Vec<String> = Vec::new();
        for at in first..ends.len() {
            let RangeEnd::Value(value) = &ends[at] else {
                let all = match (&ends[at], strict) {
                    (RangeEnd::Max, ">") | (RangeEnd::Min, "<") => None,
                    _ => Some(equal.clone()),
                };
                arms.extend(all.filter(|e| !e.is_empty()).map(|e| joined(&e)));
                break;
            };
            let value = literal(value, key.parts[at].ty);
            let end = at + 1 == ends.len();
            // Before an unbounded column the value itself is in.
            let open = matches!(
                (ends.get(at + 1), strict),
                (Some(RangeEnd::Min), ">") | (Some(RangeEnd::Max), "<")
            );
            let operator = match (end, open, strict) {
                (true, _, _) => last,
                (_, true, ">") => ">=",
                (_, true, _) => "<=",
                _ => strict,
            };
            let mut arm = equal.clone();
            arm.push(format!("({} {operator} {value})", name(at)));
            arms.push(joined(&arm));
            if open {
                break;
            }
            equal.push(format!("({} = {value})", name(at)));
        }
        match &arms[..] {
            [] => {}
            [one] => parts.push(one.clone()),
            many => parts.push(format!("({})", many.join(" OR "))),
        }
    }
    joined(&parts)
}

fn joined(parts: &[String]) -> String {
    match parts {
        [one] => one.clone(),
        many => format!("({})", many.join(" AND ")),
    }
}
