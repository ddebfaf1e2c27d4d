//! Parameters that clients declare as of a domain, or as arrays of one: statements see what the
//! domain is made over, and the values that come must be the domain's.

use std::borrow::Cow;

use throng_catalog::Catalog;
use throng_types::sqltype::{array_of, element_of, made};
use throng_types::{Oid, SqlType};

pub(in crate::session) fn is_of_domain(ty: SqlType) -> bool {
    made::is_made(ty.oid) && made::is_domain(element_of(ty.oid).unwrap_or(ty.oid))
}

fn base(catalog: &Catalog, domain: Oid) -> Option<SqlType> {
    Some(catalog.made_type(domain)?.domain.as_ref()?.base)
}

/// What values of the type are, apart from their domain.
pub(in crate::session) fn plain(catalog: &Catalog, ty: SqlType) -> SqlType {
    if !is_of_domain(ty) {
        return ty;
    }
    let of = match element_of(ty.oid) {
        None => base(catalog, ty.oid),
        Some(element) => base(catalog, element)
            .and_then(|base| Some(SqlType::new(array_of(base.oid)?, base.typmod))),
    };
    of.unwrap_or(ty)
}

/// The types of parameters as statements see them.
pub(in crate::session) fn all_plain<'t>(
    catalog: &Catalog,
    types: &'t [SqlType],
) -> Cow<'t, [SqlType]> {
    match types.iter().any(|ty| is_of_domain(*ty)) {
        false => Cow::Borrowed(types),
        true => Cow::Owned(types.iter().map(|ty| plain(catalog, *ty)).collect()),
    }
}

/// The types of a statement's parameters as the client declared them, where it did so by domains.
pub(in crate::session) fn as_declared(params: &[SqlType], declared: &[SqlType]) -> Vec<SqlType> {
    let by_domain = |i: usize| declared.get(i).filter(|ty| is_of_domain(**ty));
    let types = params.iter().enumerate();
    types.map(|(i, ty)| *by_domain(i).unwrap_or(ty)).collect()
}
