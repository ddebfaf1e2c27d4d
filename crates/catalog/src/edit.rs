//! Editing a catalog: a private copy, and the rows that have to be written to make it last.

use std::collections::BTreeMap;

use throng_types::Oid;

use super::{Catalog, Object, ObjectKind, new_version};

/// One object row to write. `Put` replaces the row with the same oid, if there is one.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    Put {
        oid: Oid,
        kind: ObjectKind,
        json: String,
        /// It is every database's.
        shared: bool,
    },
    Delete {
        oid: Oid,
        shared: bool,
    },
}

impl Change {
    pub fn oid(&self) -> Oid {
        let (Change::Put { oid, .. } | Change::Delete { oid, .. }) = self;
        *oid
    }

    pub fn is_shared(&self) -> bool {
        let (Change::Put { shared, .. } | Change::Delete { shared, .. }) = self;
        *shared
    }
}

/// A catalog being changed.
pub struct CatalogEdit {
    pub(super) catalog: Catalog,
    /// Per oid, whether the object was there before and what it is now.
    touched: BTreeMap<Oid, Touched>,
}

struct Touched {
    shared: bool,
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
        let mut object = object.into();
        self.settle_array_names(&mut object);
        self.touch(object.oid(), object.is_shared());
        self.catalog.insert(object);
    }

    /// Removes an object; nothing happens if it is not there.
    pub fn delete(&mut self, oid: Oid) {
        let Some(shared) = self.catalog.object(oid).map(|o| o.is_shared()) else {
            return;
        };
        self.touch(oid, shared);
        self.catalog.remove(oid);
    }

    pub(super) fn touch(&mut self, oid: Oid, shared: bool) {
        let existed = self.catalog.object(oid).is_some();
        let touched = Touched { shared, existed };
        self.touched.entry(oid).or_insert(touched);
    }

    /// The new catalog, with a version of its own if it differs, and the changes in order of oid.
    pub fn finish(mut self) -> (Catalog, Vec<Change>) {
        let mut changes = Vec::new();
        for (oid, touched) in self.touched {
            match self.catalog.object(oid) {
                Some(object) => changes.push(Change::Put {
                    oid,
                    kind: object.kind(),
                    json: object.to_json(),
                    shared: touched.shared,
                }),
                None if touched.existed => changes.push(Change::Delete {
                    oid,
                    shared: touched.shared,
                }),
                None => {}
            }
        }
        if !changes.is_empty() {
            self.catalog.version = new_version();
        }
        (self.catalog, changes)
    }
}
