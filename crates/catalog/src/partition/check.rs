//! Whether a bound can stand beside those of a table's other partitions.

use throng_types::error::state;
use throng_types::{Error, Oid, Result, SqlType};

use super::bounds::Bounds;
use super::{Edge, Keys, PartitionBound, RangeEnd};
use crate::{Catalog, TableDef};
use throng_types::lexical::quote_literal;
use throng_values::func::EvalContext;

/// What of a bound is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// All of it.
    Bound,
    /// A value of a list, or of a range's lower end.
    Value(usize),
    /// A value of a range's upper end.
    Upper(usize),
}

/// The complaint, and about what.
pub type Complaint = (Error, Fault);

fn wrong(message: String) -> Error {
    Error::new(state::INVALID_OBJECT_DEFINITION, message)
}

/// `(1, MINVALUE)`
fn ends_text(ends: &[RangeEnd], types: &[SqlType]) -> String {
    let parts: Vec<String> = ends
        .iter()
        .zip(types)
        .map(|(end, ty)| end_text(end, *ty))
        .collect();
    format!("({})", parts.join(", "))
}

/// A value of a bound as SQL.
pub fn value_text(text: &str, ty: SqlType) -> String {
    use throng_types::oid;
    match ty.oid {
        oid::INT4 if !text.starts_with('-') => text.to_owned(),
        oid::NUMERIC
            if text.starts_with(|c: char| c.is_ascii_digit()) && text.contains(['e', 'E', '.']) =>
        {
            text.to_owned()
        }
        oid::BOOL => match text {
            "t" => "true".to_owned(),
            _ => "false".to_owned(),
        },
        _ => quote_literal(text),
    }
}

pub fn end_text(end: &RangeEnd, ty: SqlType) -> String {
    match end {
        RangeEnd::Min => "MINVALUE".to_owned(),
        RangeEnd::Max => "MAXVALUE".to_owned(),
        RangeEnd::Value(text) => value_text(text, ty),
    }
}

/// 42P17 where a partition called `name` cannot have this bound; `without`: a partition that does
/// not count.
pub fn check_bound(
    parent: &TableDef,
    name: &str,
    bound: &PartitionBound,
    catalog: &Catalog,
    without: Option<Oid>,
    eval: EvalContext<'_>,
) -> Result<Option<Complaint>> {
    let types: Vec<SqlType> = match &parent.partitioned {
        Some(key) => key.parts.iter().map(|part| part.ty).collect(),
        None => Vec::new(),
    };
    let others = catalog.bounds_of(parent, eval)?.without(without);
    let keys = Keys::of(bound, &types, eval)?;
    if let (Keys::Range(from, to), PartitionBound::Range { from: a, to: b }) = (&keys, bound)
        && from >= to
    {
        let error = wrong(format!(
            "empty range bound specified for partition \"{name}\""
        ))
        .detail(format!(
            "Specified lower bound {} is greater than or equal to upper bound {}.",
            ends_text(a, &types),
            ends_text(b, &types)
        ));
        return Ok(Some((error, Fault::Value(0))));
    }
    let called = |part: Oid| {
        let table = catalog.table(part);
        table.map_or(String::new(), |t| t.name.clone())
    };
    if let Keys::Hash(modulus, _) = keys
        && let Some(error) = factor(modulus, &others, &called)
    {
        return Ok(Some((error, Fault::Bound)));
    }
    let Some(other) = others.overlapping(&keys) else {
        return Ok(None);
    };
    let message = match bound {
        PartitionBound::Default => format!(
            "partition \"{name}\" conflicts with existing default partition \"{}\"",
            called(other)
        ),
        _ => format!(
            "partition \"{name}\" would overlap partition \"{}\"",
            called(other)
        ),
    };
    Ok(Some((wrong(message), fault(&keys, &others, other))))
}

fn fault(keys: &Keys, others: &Bounds, other: Oid) -> Fault {
    let differ = |a: &[Edge], b: &[Edge]| a.iter().zip(b).position(|(a, b)| a != b).unwrap_or(0);
    match keys {
        Keys::List(keys) => {
            let meets = |key: &Option<Vec<u8>>| match key {
                None => others.listing_null().is_some(),
                Some(key) => others.listing(key).is_some(),
            };
            Fault::Value(keys.iter().position(meets).unwrap_or(0))
        }
        Keys::Range(from, to) => match others.keys_of(other) {
            Some(Keys::Range(start, _)) if start <= from => Fault::Value(differ(from, start)),
            Some(Keys::Range(start, _)) => Fault::Upper(differ(to, start)),
            _ => Fault::Bound,
        },
        Keys::Hash(..) | Keys::Default => Fault::Bound,
    }
}

/// Each modulus must be a factor of the next larger one.
fn factor(modulus: i32, others: &Bounds, called: &dyn Fn(Oid) -> String) -> Option<Error> {
    let [below, above] = others.around(modulus);
    let detail = match (below, above) {
        (Some((m, part)), _) if modulus % m != 0 => format!(
            "The new modulus {modulus} is not divisible by {m}, the modulus of existing partition \"{}\".",
            called(part)
        ),
        (_, Some((m, part))) if m % modulus != 0 => format!(
            "The new modulus {modulus} is not a factor of {m}, the modulus of existing partition \"{}\".",
            called(part)
        ),
        _ => return None,
    };
    let message = "every hash partition modulus must be a factor of the next larger modulus";
    Some(wrong(message.to_owned()).detail(detail))
}
