//! Operators and casts that users made: their rows of `pg_operator`, `pg_cast` and `pg_depend`.

use throng_types::sqltype::made;
use throng_types::{Datum, Oid};

use super::{Rows, row};
use crate::builtin::class;
use crate::{CastDef, Catalog, OperatorDef};

fn or_none(oid: Option<Oid>) -> Oid {
    oid.unwrap_or(Oid::NONE)
}

pub(super) fn operator_rows(catalog: &Catalog) -> Rows {
    let row_of = |def: &OperatorDef| {
        row![
            def.oid,
            def.name.as_str(),
            def.schema,
            def.owner,
            Datum::Char(match def.left {
                Some(_) => b'b',
                None => b'l',
            }),
            def.merges,
            def.hashes,
            or_none(def.left),
            def.right,
            def.ret,
            or_none(def.commutator),
            or_none(def.negator),
            or_none(def.function),
            or_none(def.restrict),
            or_none(def.join),
        ]
    };
    let operators = catalog.operators().into_iter();
    operators.map(|def| row_of(def)).collect()
}

pub(super) fn cast_rows(catalog: &Catalog) -> Rows {
    let row_of = |def: &CastDef| {
        row![
            def.oid,
            def.from,
            def.to,
            or_none(def.function),
            Datum::Char(def.context as u8),
            Datum::Char(def.method as u8),
        ]
    };
    let casts = catalog.casts().into_iter();
    casts.map(|def| row_of(def)).collect()
}

/// What operators and casts depend on: who, on whom, each with the catalog that it is in.
pub(super) fn dependencies(catalog: &Catalog) -> Vec<[(Oid, Oid); 2]> {
    let of = |used: Oid| match catalog.routine(used) {
        Some(_) => (class::PROCEDURE, used),
        None if made::is_made(used) => (class::TYPE, used),
        None => (class::RELATION, used),
    };
    let mut found = Vec::new();
    for def in catalog.operators() {
        let own = (class::OPERATOR, def.oid);
        found.push([own, (class::NAMESPACE, def.schema)]);
        found.extend(def.uses.iter().map(|used| [own, of(used.object)]));
    }
    for def in catalog.casts() {
        let own = (class::CAST, def.oid);
        found.extend(def.uses.iter().map(|used| [own, of(used.object)]));
    }
    found
}
