//! Operators of extensions: which the search path finds, and which are named with their schema.

use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use crate::binder::Binder;
use crate::binder::at;
use crate::tree::expr::Expr;
use throng_catalog::Catalog;
use throng_syntax::parse::ast::{self, Pos};
use throng_types::sqltype::made;
use throng_values::func::extension::{Extension, extension_of_operator, known};
use throng_values::func::{Operator, ResolvedOperator, resolve_operator_among};

impl Binder<'_> {
    /// The installed extensions whose schema fits.
    fn extensions_in(&self, fits: impl Fn(Oid) -> bool) -> Vec<&'static Extension> {
        let installed = self.catalog().extensions().into_iter();
        let in_place = installed.filter(|def| fits(def.schema));
        in_place.filter_map(|def| known(&def.name)).collect()
    }

    /// Chooses the operator for these operands, of those that the path finds.
    pub(in crate::binder) fn resolve_operator(
        &self,
        name: &str,
        left: Option<Oid>,
        right: Oid,
    ) -> Result<ResolvedOperator> {
        let named = &self.operator_schemas;
        let fits = |schema| self.search_path.contains(&schema) || named.contains(&schema);
        let extensions = self.extensions_in(fits).into_iter();
        let name = if name == "!=" { "<>" } else { name };
        let operators = extensions.flat_map(|e| e.operators);
        let own: Vec<&'static Operator> = operators.filter(|o| o.name == name).collect();
        resolve_operator_among(&own, name, left, right)
    }

    /// The same, where an error has its place.
    pub(in crate::binder) fn operator_at(
        &self,
        name: &str,
        left: Option<Oid>,
        right: Oid,
        pos: Pos,
    ) -> Result<ResolvedOperator> {
        self.resolve_operator(name, left, right)
            .map_err(|e| at(e, pos))
    }

    /// That the schema of an operator has one of that name; from here on it is sought there, too.
    pub(in crate::binder) fn check_operator_schema(&mut self, op: &ast::Operator) -> Result<()> {
        let Some(name) = op.schema.as_deref().filter(|name| *name != "pg_catalog") else {
            return Ok(());
        };
        let schema = self.schema_named(name);
        let extensions = self.extensions_in(|place| Some(place) == schema);
        let mut operators = extensions.into_iter().flat_map(|e| e.operators);
        match schema.filter(|_| operators.any(|o| o.name == op.name)) {
            Some(schema) => {
                self.operator_schemas.push(schema);
                Ok(())
            }
            None => {
                let message = format!("operator does not exist: {name}.{}", op.name);
                Err(Error::new(state::UNDEFINED_FUNCTION, message).position(op.pos + 1))
            }
        }
    }
}

/// The operator of an extension that an expression has.
pub(in crate::binder) fn own_operator(expr: &Expr) -> Option<Oid> {
    let (Expr::Op { op, .. } | Expr::ArrayCompare { op, .. }) = expr else {
        return None;
    };
    extension_of_operator(op.oid).map(|_| op.oid)
}

/// The relation whose rows' type an object is, the extension whose operator it is, or the object
/// itself.
pub(in crate::binder) fn relation_of(object: Oid, catalog: &Catalog) -> Oid {
    if let Some(extension) = extension_of_operator(object) {
        let def = catalog.extension_by_name(extension.name);
        return def.map_or(object, |def| def.oid);
    }
    match made::is_composite(object) && catalog.made_type(object).is_none() {
        true => made::serial(object).unwrap_or(object),
        false => object,
    }
}
