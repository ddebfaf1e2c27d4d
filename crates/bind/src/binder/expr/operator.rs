//! Operators of extensions: which the search path finds, and which are named with their schema.

use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use crate::binder::Binder;
use throng_syntax::parse::ast;
use throng_values::func::extension::{Extension, known};
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
