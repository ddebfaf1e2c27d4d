//! Making arrays from arrays: joining, removing, replacing, sorting; and arrays as strings.

use crate::func::array::{array, same};
use crate::func::compare::comparator;
use crate::func::number::int;
use crate::func::string::length::{buffer_fits, fits, gather};
use crate::func::{EvalContext, EvalResult, EvalStop, Function, Operator, SetIterator};
use crate::io::to_text;
use rand::seq::SliceRandom;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;
use throng_types::datum::Dim;
use throng_types::error::state;
use throng_types::{Array, Datum, Error, Result, SqlType, oid::*};

/// Items an array may hold at most.
const MAX_ITEMS: i64 = 134_217_727;

#[cold]
fn too_large() -> Error {
    Error::new(
        state::PROGRAM_LIMIT_EXCEEDED,
        format!("array size exceeds the maximum allowed ({MAX_ITEMS})"),
    )
}

/// One item put at an end. A NULL array counts as empty.
fn extended(args_array: &Datum, item: &Datum, at_end: bool) -> EvalResult {
    let (element, mut items, lower) = match args_array {
        Datum::Null => (item.natural_type(), vec![], 1),
        value => {
            let array = array(value);
            if array.dims.len() > 1 {
                let message = "argument must be empty or one-dimensional array";
                return Err(Error::new(state::DATA_EXCEPTION, message).into());
            }
            (
                array.element,
                array.items.clone(),
                array.dims.first().map_or(1, |d| d.lower),
            )
        }
    };
    items.insert(if at_end { items.len() } else { 0 }, item.clone());
    let dims = vec![Dim {
        len: items.len() as i32,
        lower,
    }];
    Ok(Datum::array(Array {
        element,
        dims,
        items,
    }))
}
fn array_append(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    extended(&args[0], &args[1], true)
}
fn array_prepend(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    extended(&args[1], &args[0], false)
}

#[cold]
fn incompatible(detail: String) -> Error {
    Error::new(
        state::ARRAY_SUBSCRIPT_ERROR,
        "cannot concatenate incompatible arrays",
    )
    .detail(detail)
}

/// The shape of two arrays joined along their first dimension, or of one put into the other as its
/// first or last row.
fn joined_dims(a: &[Dim], b: &[Dim]) -> Result<Vec<Dim>> {
    let lens = |dims: &[Dim]| dims.iter().map(|d| d.len).collect::<Vec<_>>();
    let mut dims;
    if a.len() == b.len() {
        if lens(&a[1..]) != lens(&b[1..]) {
            return Err(incompatible(
                "Arrays with differing element dimensions are not compatible for concatenation."
                    .into(),
            ));
        }
        dims = a.to_vec();
        dims[0].len += b[0].len;
        return Ok(dims);
    }
    let (outer, inner) = if a.len() > b.len() { (a, b) } else { (b, a) };
    if outer.len() != inner.len() + 1 {
        return Err(incompatible(format!(
            "Arrays of {} and {} dimensions are not compatible for concatenation.",
            a.len(),
            b.len()
        )));
    }
    if lens(&outer[1..]) != lens(inner) {
        return Err(incompatible(
            "Arrays with differing dimensions are not compatible for concatenation.".into(),
        ));
    }
    dims = outer.to_vec();
    dims[0].len += 1;
    Ok(dims)
}
fn array_cat(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    if args[0].is_null() || args[1].is_null() {
        return Ok(args[usize::from(args[0].is_null())].clone());
    }
    let (a, b) = (array(&args[0]), array(&args[1]));
    if a.dims.is_empty() || b.dims.is_empty() {
        return Ok(args[usize::from(a.dims.is_empty())].clone());
    }
    let dims = joined_dims(&a.dims, &b.dims)?;
    let items = a.items.iter().chain(&b.items).cloned().collect();
    Ok(Datum::array(Array {
        element: a.element,
        dims,
        items,
    }))
}

fn array_remove(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    if args[0].is_null() {
        return Ok(Datum::Null);
    }
    let from = array(&args[0]);
    if from.dims.len() > 1 {
        return Err(Error::unsupported("removing elements from multidimensional arrays").into());
    }
    let mut kept = Vec::new();
    for item in &from.items {
        if !same(from.element, item, &args[1])? {
            kept.push(item.clone());
        }
    }
    let mut result = Array::from_items(from.element, kept);
    if let (Some(new), Some(old)) = (result.dims.first_mut(), from.dims.first()) {
        new.lower = old.lower;
    }
    Ok(Datum::array(result))
}
fn array_replace(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    if args[0].is_null() {
        return Ok(Datum::Null);
    }
    let from = array(&args[0]);
    let replaced = |i: &Datum| -> Result<Datum> {
        Ok(match same(from.element, i, &args[1])? {
            true => args[2].clone(),
            false => i.clone(),
        })
    };
    let items = from.items.iter().map(replaced).collect::<Result<_>>()?;
    Ok(Datum::array(Array {
        element: from.element,
        dims: from.dims.clone(),
        items,
    }))
}

fn array_fill(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let null = |message: &str| Error::new(state::NULL_VALUE_NOT_ALLOWED, message);
    if args[1..].iter().any(Datum::is_null) {
        return Err(null("dimension array or low bound array cannot be null").into());
    }
    let numbers = |value: &Datum, what: &str| -> Result<Vec<i64>> {
        let array = array(value);
        if array.dims.len() > 1 {
            return Err(Error::new(
                state::ARRAY_SUBSCRIPT_ERROR,
                "wrong number of array subscripts",
            )
            .detail(format!("{what} array must be one dimensional.")));
        }
        if array.items.iter().any(Datum::is_null) {
            return Err(null("dimension values cannot be null"));
        }
        Ok(array.items.iter().map(int).collect())
    };
    let lens = numbers(&args[1], "Dimension")?;
    let lowers = match args.get(2) {
        Some(lowers) => numbers(lowers, "Low bound")?,
        None => vec![1; lens.len()],
    };
    if lowers.len() != lens.len() {
        return Err(Error::new(
            state::ARRAY_SUBSCRIPT_ERROR,
            "wrong number of array subscripts",
        )
        .detail("Low bound array has different size than dimensions array.")
        .into());
    }
    let mut count = i64::from(!lens.is_empty());
    for &len in &lens {
        if len < 0 {
            return Err(too_large().into());
        }
        count = count
            .checked_mul(len)
            .filter(|&c| c <= MAX_ITEMS)
            .ok_or_else(too_large)?;
    }
    fits(count as usize * size_of::<Datum>())?;
    let dim = |(&len, &lower): (&i64, &i64)| Dim {
        len: len as i32,
        lower: lower as i32,
    };
    let dims = if count == 0 {
        vec![]
    } else {
        lens.iter().zip(&lowers).map(dim).collect()
    };
    let element = args[0].natural_type();
    Ok(Datum::array(Array {
        element,
        dims,
        items: vec![args[0].clone(); count as usize],
    }))
}

/// How many items one row of the first dimension has.
fn row_len(array: &Array) -> usize {
    array.dims.iter().skip(1).map(|d| d.len as usize).product()
}
/// The rows of the first dimension, rearranged.
fn with_rows<'a>(
    from: &'a Array,
    arrange: impl FnOnce(Vec<&'a [Datum]>) -> Vec<&'a [Datum]>,
) -> Array {
    if from.dims.is_empty() {
        return from.clone();
    }
    let rows = arrange(from.items.chunks(row_len(from).max(1)).collect());
    let mut dims = from.dims.clone();
    dims[0].len = rows.len() as i32;
    let items: Vec<Datum> = rows.concat();
    if items.is_empty() {
        dims.clear();
    }
    Array {
        element: from.element,
        dims,
        items,
    }
}
fn trim_array(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let from = array(&args[0]);
    let len = from.dims.first().map_or(0, |d| i64::from(d.len));
    let drop = int(&args[1]);
    if !(0..=len).contains(&drop) {
        return Err(Error::new(
            state::ARRAY_SUBSCRIPT_ERROR,
            format!("number of elements to trim must be between 0 and {len}"),
        )
        .into());
    }
    let mut result = with_rows(from, |mut rows| {
        rows.truncate((len - drop) as usize);
        rows
    });
    for dim in &mut result.dims {
        dim.lower = 1;
    }
    Ok(Datum::array(result))
}
fn array_reverse(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::array(with_rows(array(&args[0]), |mut rows| {
        rows.reverse();
        rows
    })))
}
fn array_sort(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let from = array(&args[0]);
    let descending = args.get(1).is_some_and(Datum::is_true);
    let nulls_first = args.get(2).map_or(descending, Datum::is_true);
    let compare = comparator(from.element);
    // Among the items of a row NULLs are the largest, as when arrays are compared.
    let nested = from.dims.len() > 1;
    let item = |a: &Datum, b: &Datum| match (a.is_null(), b.is_null()) {
        (true, true) => Ordering::Equal,
        (true, false) if !nested && nulls_first => Ordering::Less,
        (false, true) if !nested && nulls_first => Ordering::Greater,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) if descending && !nested => compare(b, a),
        (false, false) => compare(a, b),
    };
    Ok(Datum::array(with_rows(from, |mut rows| {
        rows.sort_by(|a, b| {
            let order = a
                .iter()
                .zip(*b)
                .map(|(a, b)| item(a, b))
                .find(|o| o.is_ne());
            let order = order.unwrap_or(Ordering::Equal);
            if nested && descending {
                order.reverse()
            } else {
                order
            }
        });
        rows
    })))
}
fn shuffled(from: &Array, count: usize) -> Datum {
    let mut result = with_rows(from, |mut rows| {
        rows.shuffle(&mut rand::rng());
        rows.truncate(count);
        rows
    });
    if let Some(first) = result.dims.first_mut() {
        first.lower = 1;
    }
    Datum::array(result)
}
fn array_shuffle(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(shuffled(array(&args[0]), usize::MAX))
}
fn array_sample(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let from = array(&args[0]);
    let len = from.dims.first().map_or(0, |d| i64::from(d.len));
    let count = int(&args[1]);
    if !(0..=len).contains(&count) {
        return Err(Error::new(
            state::INVALID_PARAMETER_VALUE,
            format!("sample size must be between 0 and {len}"),
        )
        .into());
    }
    Ok(shuffled(from, count as usize))
}

fn array_to_text(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (Datum::Array(from), Some(separator)) = (&args[0], args[1].as_str()) else {
        return Ok(Datum::Null);
    };
    let null_text = args.get(2).and_then(Datum::as_str);
    let element = SqlType::plain(from.element);
    let shown: Vec<Cow<'_, str>> = from
        .items
        .iter()
        .filter_map(|item| match item {
            Datum::Null => null_text.map(Cow::Borrowed),
            Datum::Text(s) => Some(Cow::Borrowed(s.as_str())),
            item => Some(Cow::Owned(to_text(ctx, item, element))),
        })
        .collect();
    let between = separator.len().saturating_mul(shown.len());
    buffer_fits(
        shown
            .iter()
            .map(|s| s.len())
            .sum::<usize>()
            .saturating_add(between),
    )?;
    Ok(shown.join(separator).into())
}

/// The parts of a string: between separators, or its characters where the separator is NULL.
fn parts(args: &[Datum]) -> Result<Option<Vec<Datum>>> {
    let Some(text) = args[0].as_str() else {
        return Ok(None);
    };
    let null_text = args.get(2).and_then(Datum::as_str);
    let mut parts = Vec::new();
    let mut keep = |s: &str| {
        let part = match null_text == Some(s) {
            true => Datum::Null,
            false => Datum::text(s),
        };
        gather(&mut parts, part)
    };
    match args[1].as_str() {
        _ if text.is_empty() => {}
        None => {
            for c in text.chars() {
                keep(c.encode_utf8(&mut [0; 4]))?;
            }
        }
        Some("") => keep(text)?,
        Some(separator) => text.split(separator).try_for_each(keep)?,
    }
    Ok(Some(parts))
}
fn text_to_array(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(parts(args)?.map_or(Datum::Null, |p| {
        Datum::Array(Arc::new(Array::from_items(TEXT, p)))
    }))
}
fn text_to_table(_: &EvalContext<'_>, args: &[Datum]) -> Result<SetIterator, EvalStop> {
    Ok(Box::new(
        parts(args)?.unwrap_or_default().into_iter().map(Ok),
    ))
}

pub static FUNCTIONS: &[Function] = &[
    Function::new(
        378,
        "array_append",
        &[ANYCOMPATIBLEARRAY, ANYCOMPATIBLE],
        ANYCOMPATIBLEARRAY,
        array_append,
    )
    .lenient(),
    Function::new(
        379,
        "array_prepend",
        &[ANYCOMPATIBLE, ANYCOMPATIBLEARRAY],
        ANYCOMPATIBLEARRAY,
        array_prepend,
    )
    .lenient(),
    Function::new(
        383,
        "array_cat",
        &[ANYCOMPATIBLEARRAY, ANYCOMPATIBLEARRAY],
        ANYCOMPATIBLEARRAY,
        array_cat,
    )
    .lenient(),
    Function::new(
        3167,
        "array_remove",
        &[ANYCOMPATIBLEARRAY, ANYCOMPATIBLE],
        ANYCOMPATIBLEARRAY,
        array_remove,
    )
    .lenient(),
    Function::new(
        3168,
        "array_replace",
        &[ANYCOMPATIBLEARRAY, ANYCOMPATIBLE, ANYCOMPATIBLE],
        ANYCOMPATIBLEARRAY,
        array_replace,
    )
    .lenient(),
    Function::new(
        1193,
        "array_fill",
        &[ANYELEMENT, INT4_ARRAY],
        ANYARRAY,
        array_fill,
    )
    .lenient(),
    Function::new(
        1286,
        "array_fill",
        &[ANYELEMENT, INT4_ARRAY, INT4_ARRAY],
        ANYARRAY,
        array_fill,
    )
    .lenient(),
    Function::new(6172, "trim_array", &[ANYARRAY, INT4], ANYARRAY, trim_array),
    Function::new(6381, "array_reverse", &[ANYARRAY], ANYARRAY, array_reverse),
    Function::new(6388, "array_sort", &[ANYARRAY], ANYARRAY, array_sort),
    Function::new(6389, "array_sort", &[ANYARRAY, BOOL], ANYARRAY, array_sort),
    Function::new(
        6390,
        "array_sort",
        &[ANYARRAY, BOOL, BOOL],
        ANYARRAY,
        array_sort,
    ),
    Function::new(6215, "array_shuffle", &[ANYARRAY], ANYARRAY, array_shuffle).volatile(),
    Function::new(
        6216,
        "array_sample",
        &[ANYARRAY, INT4],
        ANYARRAY,
        array_sample,
    )
    .volatile(),
    Function::new(
        384,
        "array_to_string",
        &[ANYARRAY, TEXT, TEXT],
        TEXT,
        array_to_text,
    )
    .stable()
    .lenient(),
    Function::new(
        395,
        "array_to_string",
        &[ANYARRAY, TEXT],
        TEXT,
        array_to_text,
    )
    .stable(),
    Function::new(
        376,
        "string_to_array",
        &[TEXT, TEXT, TEXT],
        TEXT_ARRAY,
        text_to_array,
    )
    .lenient(),
    Function::new(
        394,
        "string_to_array",
        &[TEXT, TEXT],
        TEXT_ARRAY,
        text_to_array,
    )
    .lenient(),
    Function::set(6160, "string_to_table", &[TEXT, TEXT], TEXT, text_to_table).lenient(),
    Function::set(
        6161,
        "string_to_table",
        &[TEXT, TEXT, TEXT],
        TEXT,
        text_to_table,
    )
    .lenient(),
];

pub static OPERATORS: &[Operator] = &[
    Operator::new(
        349,
        "||",
        ANYCOMPATIBLEARRAY,
        ANYCOMPATIBLE,
        ANYCOMPATIBLEARRAY,
        (378, "array_append"),
        array_append,
    ),
    Operator::new(
        374,
        "||",
        ANYCOMPATIBLE,
        ANYCOMPATIBLEARRAY,
        ANYCOMPATIBLEARRAY,
        (379, "array_prepend"),
        array_prepend,
    ),
    Operator::new(
        375,
        "||",
        ANYCOMPATIBLEARRAY,
        ANYCOMPATIBLEARRAY,
        ANYCOMPATIBLEARRAY,
        (383, "array_cat"),
        array_cat,
    ),
];
