//! What CREATE INDEX says of its access method and of its keys' order: collations and operator
//! classes, which are kept where they are not what goes without saying.
//!
//! A hash index is a B-tree over its one column that is asked for equal keys alone, a GIN index one
//! over the keys that its operator classes find in values.

use throng_types::error::state;
use throng_types::sqltype::{has_collation, type_name};
use throng_types::{Error, Oid, Result};

use crate::binder::Binder;
use throng_catalog::system::operator_class;
use throng_catalog::{IndexMethod, IndexTerms, KeyWords, TableDef};
use throng_syntax::parse::ast;
use throng_values::inverted;

impl Binder<'_> {
    /// The access method of that name, where it can do what is asked of it.
    pub(in crate::binder) fn index_method(&self, ast: &ast::CreateIndex) -> Result<IndexMethod> {
        let method = self.method_named(ast.method.as_ref())?;
        let asked = IndexShape {
            unique: ast.unique,
            include: !ast.include.is_empty(),
            exclusion: false,
            columns: &ast.columns,
        };
        asked.fits(method)?;
        Ok(method)
    }

    /// The access method of that name.
    pub(in crate::binder) fn method_named(
        &self,
        method: Option<&(String, ast::Pos)>,
    ) -> Result<IndexMethod> {
        let Some((name, pos)) = method else {
            return Ok(IndexMethod::Btree);
        };
        match name.as_str() {
            "btree" => Ok(IndexMethod::Btree),
            "hash" => Ok(IndexMethod::Hash),
            "gist" => Ok(IndexMethod::Gist),
            "gin" => Ok(IndexMethod::Gin),
            "brin" | "spgist" | "rtree" | "hnsw" | "ivfflat" => {
                let what = format!("access method \"{name}\"");
                Err(Error::unsupported(what).position(pos + 1))
            }
            _ => {
                let message = format!("access method \"{name}\" does not exist");
                Err(Error::new(state::UNDEFINED_OBJECT, message))
            }
        }
    }

    /// Notes a key's collation and operator class where they are others than its type and column
    /// have.
    pub(in crate::binder) fn key_words(
        &self,
        key: &ast::IndexKey,
        ty: Oid,
        table: &TableDef,
        attnum: u16,
        terms: &mut IndexTerms,
    ) -> Result<()> {
        let mut words = KeyWords::default();
        if let Some(collation) = &key.collation {
            if !has_collation(ty) {
                let message = format!("collations are not supported by type {}", type_name(ty));
                return Err(Error::new(state::DATATYPE_MISMATCH, message));
            }
            let own = match attnum {
                0 => None,
                attnum => table.column(attnum).collation.as_deref(),
            };
            let said = collation.last();
            words.collation = (own.unwrap_or("default") != said).then(|| said.to_owned());
        }
        if let Some(class) = &key.class {
            words.class = self.key_class(class, ty, terms.method)?;
        }
        terms.words.push(words);
        Ok(())
    }

    /// The operator class's name, unless it is the one that the type has anyway.
    fn key_class(&self, class: &ast::Name, ty: Oid, method: IndexMethod) -> Result<Option<String>> {
        let name = class.last();
        let missing = || {
            let message = format!(
                "operator class \"{class}\" does not exist for access method \"{}\"",
                method.name()
            );
            Error::new(state::UNDEFINED_OBJECT, message)
        };
        if class.schema().is_some_and(|s| s != "pg_catalog") {
            return Err(missing());
        }
        let is_there = method != IndexMethod::Gin
            || inverted::class_named(name).is_some_and(|class| class.extension.is_none());
        match operator_class::accepts(method, name, ty).filter(|_| is_there) {
            None => Err(missing()),
            Some(false) => {
                let message = format!(
                    "operator class \"{name}\" does not accept data type {}",
                    type_name(ty)
                );
                Err(Error::new(state::DATATYPE_MISMATCH, message))
            }
            Some(true) if operator_class::is_default(method, name, ty) => Ok(None),
            Some(true) => Ok(Some(name.to_owned())),
        }
    }
}

/// What is asked of an index, for which not every method is made.
pub(in crate::binder) struct IndexShape<'a> {
    pub unique: bool,
    pub include: bool,
    pub exclusion: bool,
    pub columns: &'a [ast::IndexColumn],
}

impl IndexShape<'_> {
    /// 0A000 for what the method does not do.
    pub fn fits(&self, method: IndexMethod) -> Result<()> {
        let refused = |what: &str| {
            let name = method.name();
            let message = format!("access method \"{name}\" does not support {what}");
            Err(Error::new(state::FEATURE_NOT_SUPPORTED, message))
        };
        if method == IndexMethod::Btree {
            return Ok(());
        }
        if self.unique {
            return refused("unique indexes");
        }
        let (hash, gin) = (method == IndexMethod::Hash, method == IndexMethod::Gin);
        if self.include && (hash || gin) {
            return refused("included columns");
        }
        if self.columns.len() > 1 && hash {
            return refused("multicolumn indexes");
        }
        if self.exclusion && gin {
            return refused("exclusion constraints");
        }
        if self.columns.iter().any(|c| c.ordered) {
            return refused("ASC/DESC options");
        }
        if self.columns.iter().any(|c| c.nulls_first.is_some()) {
            return refused("NULLS FIRST/LAST options");
        }
        Ok(())
    }
}

/// Whether an index of a method may have a key of a type, by the class that was named or its own.
///
/// # Errors
/// 42704 for a type without a class, 42883 for an array whose elements have no order.
pub(in crate::binder) fn check_indexable(
    method: IndexMethod,
    class: Option<&str>,
    ty: Oid,
) -> Result<()> {
    let has_order = throng_values::func::compare::is_ordered;
    let has_class = match method {
        IndexMethod::Gin => match class {
            Some(class) => inverted::class_named(class),
            None => inverted::default_class(ty, |_| false),
        }
        .is_some_and(|class| class.accepts(ty)),
        IndexMethod::Btree | IndexMethod::Hash | IndexMethod::Gist => has_order(ty),
    };
    if !has_class {
        let message = format!(
            "data type {} has no default operator class for access method \"{}\"",
            type_name(ty),
            method.name()
        );
        return Err(Error::new(state::UNDEFINED_OBJECT, message)
            .hint("You must specify an operator class for the index or define a default operator class for the data type."));
    }
    match throng_types::sqltype::element_of(ty) {
        Some(element) if method == IndexMethod::Gin && !has_order(element) => {
            let message = format!(
                "could not identify a comparison function for type {}",
                type_name(element)
            );
            Err(Error::new(state::UNDEFINED_FUNCTION, message))
        }
        _ => Ok(()),
    }
}
