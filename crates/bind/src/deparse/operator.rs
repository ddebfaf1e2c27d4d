//! Operators by name: one of an extension has its schema with it where the search path does not
//! find it.

use super::Writer;
use throng_types::Oid;
use throng_types::lexical::quote_ident;
use throng_values::func::Operator;
use throng_values::func::extension::extension_of_operator;

impl Writer<'_> {
    pub(super) fn operator(&mut self, op: &Operator) {
        let name = self.operator_name(op);
        self.push(&name);
    }

    /// Whether the path finds an extension's operator of that schema, before any of a user's.
    fn finds(&self, schema: Oid, op: &Operator) -> bool {
        let path = self.style.search_path;
        let Some(place) = path.iter().position(|s| *s == schema) else {
            return false;
        };
        let left = Some(op.left).filter(|left| *left != Oid::NONE);
        let hides = |schema: &Oid| {
            let mut named = self
                .style
                .catalog
                .operators_in(*schema, op.name)
                .into_iter();
            named.any(|def| (def.left, def.right) == (left, op.right))
        };
        !path[..place].iter().any(hides)
    }

    fn operator_name(&self, op: &Operator) -> String {
        let catalog = self.style.catalog;
        let extension = extension_of_operator(op.oid);
        let def = extension.and_then(|e| catalog.extension_by_name(e.name));
        let schema = def
            .filter(|def| !self.finds(def.schema, op))
            .and_then(|def| catalog.schema(def.schema));
        match schema {
            Some(schema) => format!("OPERATOR({}.{})", quote_ident(&schema.name), op.name),
            None => op.name.to_owned(),
        }
    }
}
