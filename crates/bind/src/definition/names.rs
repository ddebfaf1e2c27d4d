//! Names that PostgreSQL chooses, and what it calls objects in messages.

use throng_types::Oid;

use super::Run;
use throng_catalog::object_name::object_name;
use throng_catalog::{Catalog, ConstraintDef, ConstraintKind, IndexDef, RoutineKind};
use throng_types::lexical::quote_ident;

impl Run<'_> {
    /// CHECKs and indexes' terms are kept as text over names.
    pub(super) fn rename_in_checks(
        &mut self,
        table: Oid,
        names: (&str, &str),
        columns: (&str, &str),
    ) {
        for index in self.catalog().indexes_of(table).to_vec() {
            let mut terms = index.terms.clone();
            for expr in &mut terms.exprs {
                expr.text = rename_in_text(&expr.text, names, columns);
            }
            if let Some(predicate) = &mut terms.predicate {
                *predicate = rename_in_text(predicate, names, columns);
            }
            if terms != index.terms {
                self.edit.put(IndexDef {
                    terms,
                    ..(*index).clone()
                });
            }
        }
        for constraint in self.catalog().constraints_of(table).to_vec() {
            let ConstraintKind::Check {
                expr,
                columns: used,
            } = &constraint.kind
            else {
                continue;
            };
            let text = rename_in_text(expr, names, columns);
            if text != *expr {
                let kind = ConstraintKind::Check {
                    expr: text,
                    columns: used.clone(),
                };
                self.edit.put(ConstraintDef {
                    kind,
                    ..(*constraint).clone()
                });
            }
        }
    }

    /// A name of that pattern that no relation of the schema has: `…_idx`, `…_idx1`, ….
    pub(super) fn free_relation_name(
        &self,
        schema: Oid,
        name1: &str,
        name2: &str,
        label: &str,
    ) -> String {
        let taken = |name: &str| {
            self.catalog().relation_in(schema, name).is_some()
                || self.constraint_name_taken(schema, name)
                || self.host.is_being_named(schema, name)
        };
        free_name(name1, name2, label, taken)
    }

    pub(super) fn free_constraint_name(
        &self,
        schema: Oid,
        name1: &str,
        name2: &str,
        label: &str,
    ) -> String {
        free_name(name1, name2, label, |name| {
            self.constraint_name_taken(schema, name)
        })
    }

    fn constraint_name_taken(&self, schema: Oid, name: &str) -> bool {
        let catalog = self.catalog();
        let named = catalog.constraints_named(name).iter();
        let mut tables = named.filter_map(|oid| catalog.table(catalog.constraint(*oid)?.table));
        tables.any(|table| table.schema == schema)
    }

    /// `table t`, `constraint c on table t`, `sequence s`, as dependency messages say it.
    pub(super) fn describe(&self, oid: Oid) -> String {
        describe(self.catalog(), self.host.search_path(), oid)
    }
}

fn free_name(name1: &str, name2: &str, label: &str, taken: impl Fn(&str) -> bool) -> String {
    let first = object_name(name1, name2, label);
    if !taken(&first) {
        return first;
    }
    (1u32..)
        .map(|n| object_name(name1, name2, &format!("{label}{n}")))
        .find(|name| !taken(name))
        .unwrap_or(first)
}

fn describe(catalog: &Catalog, path: &[Oid], oid: Oid) -> String {
    if let Some(relation) = catalog.relation(oid) {
        let kind = relation.word();
        return format!("{kind} {}", catalog.display_name(path, &relation));
    }
    if let Some(constraint) = catalog.constraint(oid) {
        let table = describe(catalog, path, constraint.table);
        return format!("constraint {} on {table}", quote_ident(&constraint.name));
    }
    if let Some(trigger) = catalog.trigger(oid) {
        let relation = describe(catalog, path, trigger.table);
        return super::trigger::described(&trigger.name, &relation);
    }
    if let Some(policy) = catalog.policy(oid) {
        let table = describe(catalog, path, policy.table);
        return super::policy::described(&policy.name, &table);
    }
    if let Some(schema) = catalog.schema(oid) {
        return format!("schema {}", quote_ident(&schema.name));
    }
    if let Some(name) = catalog.type_display(path, oid) {
        return format!("type {name}");
    }
    if let Some(routine) = catalog.routine(oid) {
        // An aggregate is told of as a function.
        let kind = match routine.kind {
            RoutineKind::Procedure => "procedure",
            RoutineKind::Function | RoutineKind::Aggregate => "function",
        };
        return format!("{kind} {}", catalog.routine_signature(path, routine));
    }
    if let Some(extension) = catalog.extension(oid) {
        return format!("extension {}", extension.name);
    }
    if let Some(operator) = catalog.operator(oid) {
        return format!("operator {}", catalog.operator_signature(path, operator));
    }
    if let Some(cast) = catalog.cast(oid) {
        let name = |ty: Oid| {
            let shown = catalog.type_display(path, ty);
            shown.unwrap_or_else(|| throng_types::sqltype::type_name(ty))
        };
        return format!("cast from {} to {}", name(cast.from), name(cast.to));
    }
    if let Some(role) = catalog.role(oid) {
        return format!("role {}", quote_ident(&role.name));
    }
    format!("object {oid}")
}

/// The text of a CHECK after a column or the table was renamed. Only names that stand where a
/// column can are changed.
pub(super) fn rename_in_text(text: &str, table: (&str, &str), column: (&str, &str)) -> String {
    use throng_syntax::parse::Symbol;
    let Ok(symbols) = throng_syntax::parse::symbols(text) else {
        return text.to_string();
    };
    let named = |s: &Symbol, name: &str| s.name.as_deref() == Some(name);
    let mut out = String::new();
    let mut copied = 0;
    for (i, symbol) in symbols.iter().enumerate() {
        let before = i.checked_sub(1).map(|i| &symbols[i]);
        let next = symbols.get(i + 1);
        let follows = |c: &str| next.is_some_and(|n| n.text == c);
        let preceded = |c: &str| before.is_some_and(|b| b.text == c);
        let qualified = preceded(".") && i >= 2 && named(&symbols[i - 2], table.0);
        let literal = next.is_some_and(|n| n.text.starts_with('\''));
        let plain = !preceded(".") && !preceded("::") && !follows("(") && !literal;
        let is_column = named(symbol, column.0) && !follows(".") && (plain || qualified);
        let is_table = named(symbol, table.0) && follows(".") && !preceded(".");
        let new = match (is_column, is_table) {
            (true, _) => column.1,
            (_, true) => table.1,
            _ => continue,
        };
        out.push_str(&text[copied..symbol.start]);
        out.push_str(&quote_ident(new));
        copied = symbol.end;
    }
    out.push_str(&text[copied..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_evenly() {
        assert_eq!(object_name("t", "a_b", "idx"), "t_a_b_idx");
        assert_eq!(object_name("t", "", "pkey"), "t_pkey");
        let name = object_name(&"x".repeat(60), &"y".repeat(60), "key");
        assert_eq!(name.len(), 63);
        assert!(name.ends_with("_key") && name.contains('y'));
    }

    #[test]
    fn renaming_touches_columns_only() {
        let cases = [
            ("a > 0", "b > 0"),
            ("t.a > length('a')", "u.b > length('a')"),
            (
                "\"a\" = 'a'::text AND a(1) = 2",
                "b = 'a'::text AND a(1) = 2",
            ),
            ("x.a = 1", "x.a = 1"),
        ];
        for (text, expected) in cases {
            assert_eq!(rename_in_text(text, ("t", "u"), ("a", "b")), expected);
        }
    }
}
