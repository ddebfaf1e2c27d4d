//! The schema `throng` and its views in the catalogs: an extension that every database is born with, so that a dump leaves them out.

use throng_types::{Datum, Oid};

use super::constraint::dependency;
use super::{Rows, SystemState, all, row};
use crate::catalog::{Catalog, builtin};

/// Below the numbers that dumps take for a user's.
const EXTENSION: Oid = Oid(15999);
const CLASS: Oid = Oid(3079);

pub(super) fn pg_extension(_: &Catalog, _: &dyn SystemState) -> Rows {
    vec![row![
        EXTENSION,
        "throng",
        builtin::SUPERUSER,
        builtin::THRONG,
        false,
        env!("CARGO_PKG_VERSION"),
        Datum::Null,
        Datum::Null,
    ]]
}

/// What belongs to it, as `pg_depend` says it.
pub(super) fn members() -> Rows {
    let own = (CLASS, EXTENSION, 0);
    let schema = (builtin::class::NAMESPACE, builtin::THRONG, 0);
    let views = all().iter().filter(|v| v.schema == builtin::THRONG);
    let views = views.map(|v| (builtin::class::RELATION, v.oid, 0));
    std::iter::once(schema)
        .chain(views)
        .map(|member| dependency(member, own, b'e'))
        .collect()
}
