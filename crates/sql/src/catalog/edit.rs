//! Editing a catalog: a private copy, and the rows that have to be written to make it last.

use std::collections::BTreeMap;

use throng_types::Oid;

use super::{Catalog, Object, ObjectKind};

/// One object row to write. `Put` replaces the row with the same oid, if there is one.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    Put {
        oid: Oid,
        kind: ObjectKind,
        json: String,
    },
    Delete {
        oid: Oid,
        kind: ObjectKind,
    },
}

/// A catalog being changed.
pub struct CatalogEdit {
    catalog: Catalog,
    /// Per oid, whether the object was there before and what it is now.
    touched: BTreeMap<Oid, Touched>,
}

struct Touched {
    kind: ObjectKind,
    existed: bool,
}

impl CatalogEdit {
    pub fn new(base: &Catalog) -> CatalogEdit {
        CatalogEdit {
            catalog: base.clone(),
            touched: BTreeMap::new(),
        }
    }

    /// The catalog as edited so far.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Adds or replaces an object.
    pub fn put(&mut self, object: impl Into<Object>) {
        let object = object.into();
        self.touch(object.oid(), object.kind());
        self.catalog.insert(object);
    }

    /// Removes an object; nothing happens if it is not there.
    pub fn delete(&mut self, oid: Oid) {
        let Some(kind) = self.catalog.object(oid).map(|o| o.kind()) else {
            return;
        };
        self.touch(oid, kind);
        self.catalog.remove(oid);
    }

    fn touch(&mut self, oid: Oid, kind: ObjectKind) {
        let existed = self.catalog.object(oid).is_some();
        self.touched.entry(oid).or_insert(Touched { kind, existed });
    }

    /// The new catalog, one version on, and the changes in order of oid.
    pub fn finish(mut self) -> (Catalog, Vec<Change>) {
        let mut changes = Vec::new();
        for (oid, touched) in self.touched {
            match self.catalog.object(oid) {
                Some(object) => changes.push(Change::Put {
                    oid,
                    kind: object.kind(),
                    json: object.to_json(),
                }),
                None if touched.existed => changes.push(Change::Delete {
                    oid,
                    kind: touched.kind,
                }),
                None => {}
            }
        }
        if !changes.is_empty() {
            self.catalog.version += 1;
        }
        (self.catalog, changes)
    }
}
