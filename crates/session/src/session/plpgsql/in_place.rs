//! Assignments that change an array where it lies, so that a loop which fills one takes time in
//! proportion to its items.
//!
//! ```text
//!   a := a || x     a := array_append(a, x)     an item more
//!   a[i] := x                                   another item, or one more
//! ```
//! Nobody else may hold the array. Whatever else is assigned makes a value anew.

use std::sync::Arc;

use throng_bind::expr::{Expr, ValuePart};
use throng_syntax::plpgsql::Slot;
use throng_types::{Array, Datum, Oid, Result};
use throng_values::func::string::length::gather;

use super::super::Session;
use super::Machine;
use super::bound_text::{BoundText, Meant};

/// `array_append` in `pg_proc`, which is also behind `||`.
const ARRAY_APPEND: Oid = Oid(378);

impl Session {
    /// Whether the value was put into the variable's array; else nothing has been done.
    pub(super) async fn assigned_in_place(
        &self,
        m: &mut Machine,
        slot: Slot,
        kept: &BoundText,
    ) -> Result<bool> {
        let Meant::Value { expr, calls } = &kept.what else {
            return Ok(false);
        };
        let at = usize::from(slot);
        let is_whole = |e: &Expr| matches!(e, Expr::Param(n, _) if *n == slot);
        let is_own = match &m.values[at] {
            Datum::Array(array) => array.dims.len() == 1 && Arc::strong_count(array) == 1,
            _ => false,
        };
        if !is_own || expr.ty() != m.types[at] {
            return Ok(false);
        }
        let appended = match expr {
            Expr::Op { op, args, .. } if op.code == ARRAY_APPEND => Some(&args[..]),
            Expr::Call { func, args, .. } if func.oid == ARRAY_APPEND => Some(&args[..]),
            _ => None,
        };
        match (appended, expr) {
            (Some([array, item]), _) if is_whole(array) => {
                let item = self.evaluate(m, item, *calls).await?;
                let Datum::Array(array) = &mut m.values[at] else {
                    return Ok(false);
                };
                push(Arc::make_mut(array), item)?;
            }
            (_, Expr::Replace { base, place, value }) if is_whole(base) => {
                let ValuePart::Item(subscripts) = place else {
                    return Ok(false);
                };
                let [subscript] = &subscripts[..] else {
                    return Ok(false);
                };
                let item = self.evaluate(m, value, *calls).await?;
                let index = self.evaluate(m, subscript, *calls).await?;
                let Datum::Array(array) = &mut m.values[at] else {
                    return Ok(false);
                };
                if let Some(left) = put(Arc::make_mut(array), &index, item)? {
                    let ty = |e: &Expr| e.ty();
                    let anew = Expr::Replace {
                        base: base.clone(),
                        place: ValuePart::Item(vec![Expr::Const(index, ty(subscript))]),
                        value: Box::new(Expr::Const(left, ty(value))),
                    };
                    m.values[at] = self.evaluate(m, &anew, false).await?;
                }
            }
            _ => return Ok(false),
        }
        m.weigh(at)?;
        Ok(true)
    }
}

fn push(array: &mut Array, item: Datum) -> Result<()> {
    gather(&mut array.items, item)?;
    array.dims[0].len = array.items.len() as i32;
    Ok(())
}

/// Puts an item into an array of one dimension; gives it back where the array must become another
/// for it.
fn put(array: &mut Array, index: &Datum, item: Datum) -> Result<Option<Datum>> {
    let Datum::Int4(index) = index else {
        return Ok(Some(item));
    };
    let place = i64::from(*index) - i64::from(array.dims[0].lower);
    let Ok(place) = usize::try_from(place) else {
        return Ok(Some(item));
    };
    if place == array.items.len() && *index < i32::MAX {
        return push(array, item).map(|()| None);
    }
    match array.items.get_mut(place) {
        Some(there) => *there = item,
        None => return Ok(Some(item)),
    }
    Ok(None)
}
