//! What an index can do, by PostgreSQL's names for it; grants, files and base types of objects.

use throng_catalog::builtin::{self, class};
use throng_catalog::system::listed;
use throng_catalog::{Catalog, IndexDef, IndexMethod, Relation, acl};
use throng_types::error::state;
use throng_types::sqltype::{made, type_info};
use throng_types::{Datum, Error, Oid, Result};

use crate::session::answers::eval_host::SessionHost;
use crate::session::answers::identity::{ACCESS_METHOD, COLLATION, OPERATOR, TABLESPACE};

/// What decides about a column of an index: how its kind finds rows, and the column's place among
/// the keys.
struct IndexColumnFacts {
    is_tree: bool,
    /// Not one that is INCLUDEd.
    is_key: bool,
    descending: bool,
    nulls_first: bool,
}

impl IndexColumnFacts {
    fn of(index: &IndexDef, place: usize) -> Option<IndexColumnFacts> {
        let key = index.columns.get(place);
        if place >= index.columns.len() + index.terms.include.len() {
            return None;
        }
        Some(IndexColumnFacts {
            is_tree: index.terms.method == IndexMethod::Btree,
            is_key: key.is_some(),
            descending: key.is_some_and(|key| key.descending),
            nulls_first: key.is_some_and(|key| key.nulls_first),
        })
    }

    /// NULL for a property that columns do not have, and for an order that this one has not.
    fn property(&self, name: &str) -> Datum {
        let of_key = |fits: bool| match self.is_key {
            true => (self.is_tree && fits).into(),
            false => Datum::Null,
        };
        match name {
            "asc" => of_key(!self.descending),
            "desc" => of_key(self.descending),
            "nulls_first" => of_key(self.nulls_first),
            "nulls_last" => of_key(!self.nulls_first),
            "orderable" => (self.is_key && self.is_tree).into(),
            "search_array" | "search_nulls" => of_key(true),
            "distance_orderable" => false.into(),
            "returnable" => self.is_tree.into(),
            _ => Datum::Null,
        }
    }
}

impl SessionHost<'_> {
    /// A property of an index, or of a column of it; NULL for what is no index and no property.
    pub(in crate::session) fn index_property(
        &self,
        index: Oid,
        column: Option<i32>,
        name: &str,
    ) -> Datum {
        let name = name.to_ascii_lowercase();
        let place = match column {
            Some(column) => match usize::try_from(i64::from(column) - 1) {
                Ok(place) => Some(place),
                Err(_) => return Datum::Null,
            },
            None => None,
        };
        let own = self.catalog.index(index);
        let of_catalog = listed::index(index);
        if own.is_none() && of_catalog.is_none() {
            return Datum::Null;
        }
        if let Some(place) = place {
            let facts = match (own, of_catalog) {
                (Some(index), _) => IndexColumnFacts::of(index, place),
                (None, Some(listed)) => listed.column(place).map(|_| IndexColumnFacts {
                    is_tree: true,
                    is_key: true,
                    descending: false,
                    nulls_first: false,
                }),
                (None, None) => None,
            };
            return facts.map(|facts| facts.property(&name)).unwrap_or_default();
        }
        match name.as_str() {
            "clusterable" => own
                .is_none_or(|index| index.terms.method == IndexMethod::Btree)
                .into(),
            "bitmap_scan" => true.into(),
            "index_scan" | "backward_scan" => own
                .is_none_or(|index| index.terms.method != IndexMethod::Gin)
                .into(),
            _ => Datum::Null,
        }
    }

    /// The pages by which a GIN index's pending list became shorter: it has none.
    pub(in crate::session) fn pages_cleaned(&self, index: Oid) -> Result<Datum> {
        let wrong = |code, message| Err(Error::new(code, message));
        let Some(relation) = self.catalog.relation(index) else {
            let message = format!("could not open relation with OID {index}");
            return wrong(state::INTERNAL_ERROR, message);
        };
        let name = relation.name();
        match self.catalog.index(index).map(|index| index.terms.method) {
            Some(IndexMethod::Gin) => Ok(0i64.into()),
            Some(_) => wrong(
                state::WRONG_OBJECT_TYPE,
                format!("\"{name}\" is not a GIN index"),
            ),
            None => wrong(
                state::WRONG_OBJECT_TYPE,
                format!("\"{name}\" is not an index"),
            ),
        }
    }

    /// The type that a domain is over; any other is its own.
    pub(in crate::session) fn base_type(&self, ty: Oid) -> Option<Oid> {
        if !made::is_made(ty) {
            return type_info(ty).map(|info| info.oid);
        }
        match self.catalog.made_type(ty) {
            Some(def) => Some(def.domain.as_ref().map_or(ty, |domain| domain.base.oid)),
            None => self.catalog.type_display(&[], ty).map(|_| ty),
        }
    }

    /// The relation that is kept in a file.
    pub(in crate::session) fn relation_of_file(&self, tablespace: Oid, file: Oid) -> Option<Oid> {
        let everywhere = [Oid::NONE, builtin::DEFAULT_TABLESPACE];
        if file == Oid::NONE || !everywhere.contains(&tablespace) {
            return None;
        }
        let catalog = self.catalog;
        let tables = catalog.tables().into_iter();
        let indexes = catalog.indexes().into_iter();
        let sequences = catalog.sequences().into_iter();
        let all = tables.map(|def| (def.file, def.oid));
        let all = all.chain(indexes.map(|def| (def.file, def.oid)));
        let mut all = all.chain(sequences.map(|def| (def.file, def.oid)));
        all.find(|(of, _)| of.0 == file.0).map(|(_, oid)| oid)
    }

    /// The grants on an object; NULL where nobody ever granted or revoked.
    pub(in crate::session) fn acl_of(&self, args: &[Datum]) -> Result<Datum> {
        let number = |n: usize| args[n].as_i64().unwrap_or_default();
        let (of, object) = (Oid(number(0) as u32), Oid(number(1) as u32));
        if of == Oid::NONE && object == Oid::NONE {
            return Ok(Datum::Null);
        }
        let others = [ACCESS_METHOD, COLLATION, OPERATOR, TABLESPACE];
        if !class::ALL.contains(&of) && !others.contains(&of) {
            let message = format!("unrecognized class ID: {of}");
            return Err(Error::new(state::INTERNAL_ERROR, message));
        }
        let column = u16::try_from(number(2)).ok();
        let column = match of {
            class::RELATION => column,
            _ => Some(0),
        };
        Ok(column.map_or(Datum::Null, |column| {
            grants(self.catalog, of, object, column)
        }))
    }
}

/// Schemas that everybody may look into from the start.
const OPEN_SCHEMAS: [Oid; 3] = [
    builtin::PG_CATALOG,
    builtin::INFORMATION_SCHEMA,
    builtin::PUBLIC,
];

fn grants(catalog: &Catalog, of: Oid, object: Oid, column: u16) -> Datum {
    let stored = catalog.stored_acl(of, object, column);
    if let Some(stored) = stored {
        return acl::datum(catalog, Some(&stored.items));
    }
    let born = match of {
        class::NAMESPACE if OPEN_SCHEMAS.contains(&object) && catalog.schema(object).is_some() => {
            Some(catalog.schema_acl(object))
        }
        class::RELATION if column == 0 => match catalog.relation(object) {
            Some(relation @ Relation::Virtual(_)) => Some(catalog.relation_acl(&relation)),
            _ => None,
        },
        _ => None,
    };
    acl::datum(catalog, born.as_deref())
}

/// What a kind of index can do, by PostgreSQL's names for it.
pub(in crate::session) fn method_property(method: Oid, property: &str) -> Datum {
    let is_tree = method == builtin::BTREE_AM;
    let is_gist = method == builtin::GIST_AM;
    let is_inverted = method == builtin::GIN_AM;
    if !is_tree && !is_gist && !is_inverted && method != builtin::HASH_AM {
        return Datum::Null;
    }
    match property.to_ascii_lowercase().as_str() {
        "can_order" | "can_unique" => is_tree.into(),
        "can_include" => (is_tree || is_gist).into(),
        "can_multi_col" => (is_tree || is_gist || is_inverted).into(),
        "can_exclude" => (!is_inverted).into(),
        _ => Datum::Null,
    }
}
