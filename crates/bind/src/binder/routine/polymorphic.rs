//! What a function with a polymorphic result asks of its arguments.

use throng_catalog::RoutineDef;
use throng_types::error::state;
use throng_types::sqltype::type_name;
use throng_types::{Error, Oid, Result, oid};
use throng_values::func::is_polymorphic;

#[cold]
fn invalid(message: &str) -> Error {
    Error::new(state::INVALID_FUNCTION_DEFINITION, message)
}

/// 42P13: a polymorphic result needs an argument that decides it.
pub(super) fn check_polymorphic(def: &RoutineDef) -> Result<()> {
    let compatible = |ty: Oid| {
        matches!(
            ty,
            oid::ANYCOMPATIBLE
                | oid::ANYCOMPATIBLEARRAY
                | oid::ANYCOMPATIBLENONARRAY
                | oid::ANYCOMPATIBLERANGE
                | oid::ANYCOMPATIBLEMULTIRANGE
        )
    };
    // Which range type is over an element's no element tells.
    let ranged = |ty: Oid| {
        matches!(
            ty,
            oid::ANYRANGE
                | oid::ANYMULTIRANGE
                | oid::ANYCOMPATIBLERANGE
                | oid::ANYCOMPATIBLEMULTIRANGE
        )
    };
    let results = def.outputs().map(|a| a.ty).chain([def.ret]);
    for ret in results.filter(|ty| is_polymorphic(*ty)) {
        let decided = def.inputs().any(|a| {
            let family = is_polymorphic(a.ty) && compatible(a.ty) == compatible(ret);
            family && (ranged(a.ty) || !ranged(ret))
        });
        if decided {
            continue;
        }
        let kinds = match compatible(ret) {
            true if ranged(ret) => "anycompatiblerange or anycompatiblemultirange",
            false if ranged(ret) => "anyrange or anymultirange",
            true => {
                "anycompatible, anycompatiblearray, anycompatiblenonarray, anycompatiblerange, or anycompatiblemultirange"
            }
            false => "anyelement, anyarray, anynonarray, anyenum, anyrange, or anymultirange",
        };
        return Err(invalid("cannot determine result data type").detail(format!(
            "A result of type {} requires at least one input of type {kinds}.",
            type_name(ret)
        )));
    }
    Ok(())
}
