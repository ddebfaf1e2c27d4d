//! A value with a part of it replaced: an array's item or slice, a row's field.

use throng_types::datum::{Array, Dim, Record};
use throng_types::error::state;
use throng_types::{Datum, Error, Oid, Result, Text};

/// Most items of an array that an assignment makes longer.
const MOST_ITEMS: i64 = (1 << 24) - 1;

#[cold]
fn wrong_subscripts() -> Error {
    Error::new(
        state::ARRAY_SUBSCRIPT_ERROR,
        "wrong number of array subscripts",
    )
}

#[cold]
fn out_of_range() -> Error {
    Error::new(state::ARRAY_SUBSCRIPT_ERROR, "array subscript out of range")
}

#[cold]
fn too_long() -> Error {
    Error::new(
        state::PROGRAM_LIMIT_EXCEEDED,
        format!("array size exceeds the maximum allowed ({MOST_ITEMS})"),
    )
}

/// The row with the field at `index` replaced; of a NULL, a row whose other fields are NULL.
pub fn field(base: &Datum, index: usize, fields: &[(Oid, Text)], value: Datum) -> Datum {
    let mut values = match base {
        Datum::Record(record) => record.values.clone(),
        _ => Vec::new(),
    };
    values.resize(fields.len(), Datum::Null);
    values[index] = value;
    let record = Record {
        types: fields.iter().map(|(ty, _)| *ty).collect(),
        names: Some(fields.iter().map(|(_, name)| name.clone()).collect()),
        values,
    };
    Datum::Record(record.into())
}

/// The array with one item replaced. One of one dimension grows to have the subscript, with NULLs
/// between.
pub fn item(base: &Datum, element: Oid, at: &[i32], value: Datum) -> Result<Datum> {
    let empty = Array::from_items(element, vec![]);
    let array = match base {
        Datum::Array(array) => array,
        _ => &std::sync::Arc::new(empty),
    };
    if array.dims.is_empty() {
        let dims = at.iter().map(|lower| Dim {
            len: 1,
            lower: *lower,
        });
        return Ok(Datum::array(Array {
            element,
            dims: dims.collect(),
            items: vec![value],
        }));
    }
    if array.dims.len() != at.len() {
        return Err(wrong_subscripts());
    }
    if let ([dim], [at]) = (&array.dims[..], at) {
        return grown(array, *dim, *at, *at, vec![value]);
    }
    let mut place = 0i64;
    for (dim, at) in array.dims.iter().zip(at) {
        let offset = i64::from(*at) - i64::from(dim.lower);
        if offset < 0 || offset >= i64::from(dim.len) {
            return Err(out_of_range());
        }
        place = place * i64::from(dim.len) + offset;
    }
    let mut array = (**array).clone();
    array.items[place as usize] = value;
    Ok(Datum::array(array))
}

/// The array with the items from one subscript to another replaced by the first ones of `value`.
///
/// # Errors
/// 2202E where `value` has fewer; 0A000 for arrays of several dimensions.
pub fn slice(
    base: &Datum,
    element: Oid,
    bounds: &[(Option<i32>, Option<i32>)],
    value: &Datum,
) -> Result<Datum> {
    let Datum::Array(given) = value else {
        // NULL replaces nothing.
        return Ok(base.clone());
    };
    let [(lower, upper)] = bounds else {
        return Err(Error::unsupported(
            "assignment to a slice of an array of several dimensions",
        ));
    };
    let empty = Array::from_items(element, vec![]);
    let array = match base {
        Datum::Array(array) => array,
        _ => &std::sync::Arc::new(empty),
    };
    let dim = match &array.dims[..] {
        [] => {
            let (Some(lower), Some(_)) = (lower, upper) else {
                return Err(Error::new(
                    state::ARRAY_SUBSCRIPT_ERROR,
                    "array slice subscript must provide both boundaries",
                )
                .detail("When assigning to a slice of an empty array value, slice boundaries must be fully specified."));
            };
            Dim {
                len: 0,
                lower: *lower,
            }
        }
        [dim] => *dim,
        _ => {
            return Err(Error::unsupported(
                "assignment to a slice of an array of several dimensions",
            ));
        }
    };
    let lower = lower.unwrap_or(dim.lower);
    let last = i64::from(dim.lower) + i64::from(dim.len) - 1;
    let upper = match upper {
        Some(upper) => *upper,
        None => i32::try_from(last).map_err(|_| too_long())?,
    };
    if lower > upper {
        let message = "upper bound cannot be less than lower bound";
        return Err(Error::new(state::ARRAY_SUBSCRIPT_ERROR, message));
    }
    let count = i64::from(upper) - i64::from(lower) + 1;
    if (given.items.len() as i64) < count {
        let message = "source array too small";
        return Err(Error::new(state::ARRAY_SUBSCRIPT_ERROR, message));
    }
    let items = given.items[..count as usize].to_vec();
    grown(array, dim, lower, upper, items)
}

/// The items between subscripts, which then count from 1; dimensions without bounds are there
/// whole.
pub fn taken(array: &Array, bounds: &[(Option<i32>, Option<i32>)]) -> Datum {
    let none = || Datum::array(Array::from_items(array.element, vec![]));
    if bounds.len() > array.dims.len() || array.dims.is_empty() {
        return none();
    }
    // For each dimension: how many items its index passes over, the first one wanted, and how many.
    let mut dims = Vec::with_capacity(array.dims.len());
    for (i, dim) in array.dims.iter().enumerate() {
        let (from, to) = bounds.get(i).copied().unwrap_or((None, None));
        let begin = i64::from(dim.lower);
        let end = begin + i64::from(dim.len) - 1;
        let from = from.map_or(begin, |f| i64::from(f).max(begin));
        let to = to.map_or(end, |t| i64::from(t).min(end));
        if from > to {
            return none();
        }
        dims.push(((from - begin) as usize, (to - from + 1) as usize));
    }
    let mut items = Vec::new();
    let mut at = vec![0usize; dims.len()];
    'all: loop {
        let mut place = 0usize;
        for ((dim, (first, _)), at) in array.dims.iter().zip(&dims).zip(&at) {
            place = place * dim.len as usize + first + at;
        }
        items.push(array.items.get(place).cloned().unwrap_or_default());
        for i in (0..at.len()).rev() {
            at[i] += 1;
            if at[i] < dims[i].1 {
                continue 'all;
            }
            at[i] = 0;
        }
        break;
    }
    Datum::array(Array {
        element: array.element,
        dims: dims
            .iter()
            .map(|(_, len)| Dim {
                len: *len as i32,
                lower: 1,
            })
            .collect(),
        items,
    })
}

/// An array of one dimension with the items from `lower` to `upper` replaced.
fn grown(array: &Array, dim: Dim, lower: i32, upper: i32, values: Vec<Datum>) -> Result<Datum> {
    let (from, to) = (i64::from(lower), i64::from(upper));
    let (begin, end) = match dim.len {
        0 => (from, to + 1),
        len => {
            let begin = i64::from(dim.lower);
            (begin.min(from), (begin + i64::from(len)).max(to + 1))
        }
    };
    let len = end - begin;
    if len > MOST_ITEMS || i32::try_from(end).is_err() {
        return Err(too_long());
    }
    let mut items = vec![Datum::Null; len as usize];
    if dim.len > 0 {
        let start = (i64::from(dim.lower) - begin) as usize;
        items[start..start + array.items.len()].clone_from_slice(&array.items);
    }
    for (place, value) in items[(from - begin) as usize..].iter_mut().zip(values) {
        *place = value;
    }
    Ok(Datum::array(Array {
        element: array.element,
        dims: vec![Dim {
            len: len as i32,
            lower: begin as i32,
        }],
        items,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_types::oid;

    fn ints(lower: i32, items: &[Option<i32>]) -> Datum {
        Datum::array(Array {
            element: oid::INT4,
            dims: vec![Dim {
                len: items.len() as i32,
                lower,
            }],
            items: items
                .iter()
                .map(|i| i.map(Datum::Int4).unwrap_or_default())
                .collect(),
        })
    }

    #[test]
    fn an_array_grows_to_have_the_item() {
        let one = item(&Datum::Null, oid::INT4, &[2], Datum::Int4(5)).unwrap();
        assert_eq!(one, ints(2, &[Some(5)]));
        let more = item(&one, oid::INT4, &[4], Datum::Int4(7)).unwrap();
        assert_eq!(more, ints(2, &[Some(5), None, Some(7)]));
        let before = item(&more, oid::INT4, &[0], Datum::Int4(1)).unwrap();
        assert_eq!(before, ints(0, &[Some(1), None, Some(5), None, Some(7)]));
        assert!(item(&one, oid::INT4, &[1, 1], Datum::Null).is_err());
        assert!(item(&one, oid::INT4, &[i32::MAX], Datum::Null).is_err());
    }

    #[test]
    fn a_slice_takes_what_it_needs() {
        let base = ints(1, &[Some(1), Some(2), Some(3)]);
        let given = ints(1, &[Some(8), Some(9)]);
        let done = slice(&base, oid::INT4, &[(Some(2), Some(3))], &given).unwrap();
        assert_eq!(done, ints(1, &[Some(1), Some(8), Some(9)]));
        let open = slice(&base, oid::INT4, &[(Some(2), None)], &given).unwrap();
        assert_eq!(open, done);
        assert!(slice(&base, oid::INT4, &[(None, None)], &given).is_err());
        let Datum::Array(whole) = &done else {
            panic!("an array");
        };
        assert_eq!(
            taken(whole, &[(Some(2), Some(9))]),
            ints(1, &[Some(8), Some(9)])
        );
        assert_eq!(taken(whole, &[(None, Some(1))]), ints(1, &[Some(1)]));
    }
}
