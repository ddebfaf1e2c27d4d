//! Definitions written as SQL: what `pg_get_indexdef`, `pg_get_constraintdef` and `pg_get_expr`
//! say.

use throng_types::sqltype::type_name;
use throng_types::{Oid, oid};
use throng_values::func::operator_by_oid;

use crate::{
    Catalog, ColumnDef, ConstraintDef, ConstraintKind, FkAction, ForeignKey, IndexDef, TableDef,
    builtin,
};
use throng_types::lexical::{quote_ident, quote_literal};

/// A constraint, default or rule that has no object of its own, made a number: no oid is given out
/// from there on. Two columns share one only where their tables' oids are 2^19 apart.
fn synthetic(range: u32, table: Oid, attnum: u16) -> Oid {
    Oid(range | (table.0 << 11 | u32::from(attnum)) & 0x3fff_ffff)
}
const DEFAULTS: u32 = 0x8000_0000;
const NOT_NULLS: u32 = 0xc000_0000;

/// `pg_attrdef.oid` of a column's default.
pub fn default_oid(table: Oid, attnum: u16) -> Oid {
    synthetic(DEFAULTS, table, attnum)
}

/// `pg_rewrite.oid` of the rule that a view is.
pub fn rule_oid(view: Oid) -> Oid {
    synthetic(DEFAULTS, view, 0)
}

/// `pg_constraint.oid` of a column's NOT NULL.
pub fn not_null_oid(table: Oid, attnum: u16) -> Oid {
    synthetic(NOT_NULLS, table, attnum)
}

/// The column whose NOT NULL has this oid in `pg_constraint`.
pub fn not_null_column(catalog: &Catalog, oid: Oid) -> Option<(&TableDef, u16)> {
    let of_table = |table: &TableDef| {
        not_nulls(table)
            .find(|(attnum, _)| not_null_oid(table.oid, *attnum) == oid)
            .map(|n| n.0)
    };
    if oid.0 < NOT_NULLS {
        return None;
    }
    catalog
        .tables()
        .into_iter()
        .find_map(|t| Some((&**t, of_table(t)?)))
}

/// Columns that may not be NULL, with their attribute numbers.
pub fn not_nulls(table: &TableDef) -> impl Iterator<Item = (u16, &ColumnDef)> {
    table.live_columns().filter(|(_, c)| c.not_null)
}

/// The name PostgreSQL gives a column's NOT NULL.
pub fn not_null_name(table: &TableDef, column: &ColumnDef) -> String {
    table.not_null_name(column)
}

/// A relation's name, qualified unless it is in `public` or a system schema.
pub fn relation_name(catalog: &Catalog, oid: Oid) -> String {
    let Some(relation) = catalog.relation(oid) else {
        return oid.0.to_string();
    };
    catalog.display_name(&[builtin::PG_CATALOG, builtin::PUBLIC], &relation)
}

/// A relation's name with its schema.
pub fn qualified_name(catalog: &Catalog, schema: Oid, name: &str) -> String {
    match catalog.schema(schema) {
        Some(schema) => format!("{}.{}", quote_ident(&schema.name), quote_ident(name)),
        None => quote_ident(name),
    }
}

/// The default as SQL, a sequence's next value included, or what a generated column is computed by;
/// none for identity columns, whose sequence is not a default.
pub fn column_default(catalog: &Catalog, column: &ColumnDef) -> Option<String> {
    default_with(column, &|sequence| relation_name(catalog, sequence))
}

/// The default as `pg_attrdef` keeps it, a sequence's name with its schema: [`shown_default`] makes
/// it what is shown.
pub fn stored_default(catalog: &Catalog, column: &ColumnDef) -> Option<String> {
    default_with(column, &|sequence| match catalog.sequence(sequence) {
        Some(def) => qualified_name(catalog, def.schema, &def.name),
        None => sequence.0.to_string(),
    })
}

/// A stored default with its sequence's name as the search path asks for it.
pub fn shown_default(text: &str, shown: &dyn Fn(&str) -> Option<String>) -> String {
    let name = text
        .strip_prefix("nextval('")
        .and_then(|t| t.strip_suffix("'::regclass)"));
    match name.and_then(|name| shown(&name.replace("''", "'"))) {
        Some(name) => format!("nextval({}::regclass)", quote_literal(&name)),
        None => text.to_string(),
    }
}

fn default_with(column: &ColumnDef, name_of: &dyn Fn(Oid) -> String) -> Option<String> {
    if let Some(generated) = &column.generated {
        return Some(generated.expr.clone());
    }
    match (&column.default, column.sequence, column.identity) {
        // A string constant is shown with the type it was read as.
        (Some(text), ..) if is_string(text) && is_string_type(column.ty.oid) => {
            Some(format!("{text}::{}", plain_type(column.ty.oid)))
        }
        (Some(text), ..) => Some(text.clone()),
        (None, Some(sequence), None) => {
            let name = quote_literal(&name_of(sequence));
            Some(format!("nextval({name}::regclass)"))
        }
        _ => None,
    }
}

/// Is this SQL one string constant?
fn is_string(text: &str) -> bool {
    let inner = text.strip_prefix('\'').and_then(|t| t.strip_suffix('\''));
    inner.is_some_and(|inner| !inner.replace("''", "").contains('\''))
}

fn is_string_type(ty: Oid) -> bool {
    matches!(ty, oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::NAME)
}

/// A type without length: `char(n)` is `bpchar` then, for `character` alone has one place.
fn plain_type(ty: Oid) -> String {
    match ty {
        oid::BPCHAR => "bpchar".into(),
        oid::BIT => "\"bit\"".into(),
        _ => type_name(ty),
    }
}

/// `a, b` in attribute order given.
pub fn column_list(table: &TableDef, columns: &[u16]) -> String {
    let names: Vec<String> = columns
        .iter()
        .map(|n| quote_ident(&table.column(*n).name))
        .collect();
    names.join(", ")
}

/// An index's column as `CREATE INDEX` lists it; `position` from 0. None where there is none.
pub fn index_column(catalog: &Catalog, index: &IndexDef, position: usize) -> Option<String> {
    let table = catalog.table(index.table)?;
    let name = |attnum| quote_ident(&table.column(attnum).name);
    match index.keys().nth(position) {
        Some((_, Some(expr))) => Some(index_expr(&expr.text)),
        Some((key, None)) => Some(name(key.attnum)),
        None => {
            let place = position.checked_sub(index.columns.len())?;
            Some(name(*index.terms.include.get(place)?))
        }
    }
}

/// An expression as an index's column: in parentheses unless it is a call.
fn index_expr(text: &str) -> String {
    use throng_syntax::parse::ast::Node;
    let call = throng_syntax::parse::parse_expr(text).is_ok_and(|ast| {
        matches!(
            ast.node,
            Node::Call(_) | Node::Coalesce(_) | Node::MinMax { .. } | Node::NullIf(..)
        )
    });
    match call {
        true => text.to_owned(),
        false => format!("({text})"),
    }
}

/// ` INCLUDE (…)`, where there is one.
fn included(table: &TableDef, index: &IndexDef) -> String {
    match index.terms.include.is_empty() {
        true => String::new(),
        false => format!(" INCLUDE ({})", column_list(table, &index.terms.include)),
    }
}

/// An index's keys with what is said of their order.
fn key_texts(table: &TableDef, index: &IndexDef) -> Vec<String> {
    index
        .keys()
        .enumerate()
        .map(|(place, (key, expr))| {
            let mut text = match expr {
                Some(expr) => index_expr(&expr.text),
                None => quote_ident(&table.column(key.attnum).name),
            };
            let (collation, class) = index.terms.words_of(place);
            if let Some(collation) = collation {
                text += &format!(" COLLATE {}", quote_ident(collation));
            }
            if let Some(class) = class {
                text += &format!(" {}", quote_ident(class));
            }
            if key.descending {
                text += " DESC";
            }
            // NULLs are larger than everything: first where descending, unless told otherwise.
            match (key.descending, key.nulls_first) {
                (true, false) => text += " NULLS LAST",
                (false, true) => text += " NULLS FIRST",
                _ => {}
            }
            text
        })
        .collect()
}

/// Whether the index is a unique one, or that of a key WITHOUT OVERLAPS.
pub(super) fn is_unique(catalog: &Catalog, index: &IndexDef) -> bool {
    index.unique || catalog.is_without_overlaps(index)
}

/// `CREATE INDEX …`; `qualify` gives the table's schema always, otherwise unless it is `public`.
pub fn index_definition(catalog: &Catalog, index: &IndexDef, qualify: bool) -> String {
    let Some(table) = catalog.table(index.table) else {
        return String::new();
    };
    let keys = key_texts(table, index);
    let only = if table.is_partitioned() { "ONLY " } else { "" };
    let on = match qualify {
        true => qualified_name(catalog, table.schema, &table.name),
        false => relation_name(catalog, table.oid),
    };
    let on = format!("{only}{on}");
    let mut text = format!(
        "CREATE {}INDEX {} ON {on} USING {} ({})",
        if is_unique(catalog, index) {
            "UNIQUE "
        } else {
            ""
        },
        quote_ident(&index.name),
        index.terms.method.name(),
        keys.join(", "),
    );
    text += &included(table, index);
    if index.nulls_not_distinct {
        text += " NULLS NOT DISTINCT";
    }
    if !index.options.is_empty() {
        let options: Vec<String> = index
            .options
            .iter()
            .map(|(name, value)| match quote_ident(value) == *value {
                true => format!("{name}={value}"),
                false => format!("{name}={}", quote_literal(value)),
            })
            .collect();
        text += &format!(" WITH ({})", options.join(", "));
    }
    if let Some(predicate) = &index.terms.predicate {
        text += &format!(" WHERE {predicate}");
    }
    text
}

/// A constraint as it stands in `CREATE TABLE`; `name_of` writes the table a foreign key
/// references.
pub fn constraint_definition(
    catalog: &Catalog,
    constraint: &ConstraintDef,
    name_of: &dyn Fn(Oid) -> String,
) -> String {
    let Some(table) = catalog.table(constraint.table) else {
        return String::new();
    };
    let keyed = |index: Oid, what: &str| {
        let Some(index) = catalog.index(index) else {
            return what.to_string();
        };
        let key: Vec<u16> = index.columns.iter().map(|c| c.attnum).collect();
        let nulls = if index.nulls_not_distinct {
            " NULLS NOT DISTINCT"
        } else {
            ""
        };
        let include = included(table, index);
        let overlaps = match index.terms.exclusion.is_empty() {
            true => "",
            false => " WITHOUT OVERLAPS",
        };
        let columns = column_list(table, &key);
        format!("{what}{nulls} ({columns}{overlaps}){include}")
    };
    let mut text = match &constraint.kind {
        ConstraintKind::PrimaryKey { index } => keyed(*index, "PRIMARY KEY"),
        ConstraintKind::Unique { index } => keyed(*index, "UNIQUE"),
        ConstraintKind::Exclusion { index } => match catalog.index(*index) {
            Some(index) => exclusion(table, index),
            None => "EXCLUDE".to_owned(),
        },
        ConstraintKind::Check { expr, .. } => {
            let alone = if constraint.lineage.no_inherit {
                " NO INHERIT"
            } else {
                ""
            };
            format!("CHECK ({expr}){alone}")
        }
        ConstraintKind::ForeignKey(key) => foreign_key(catalog, table, key, name_of),
    };
    text += constraint.deferral.sql();
    if !constraint.validated && constraint.deferral.is_enforced() {
        text += " NOT VALID";
    }
    text
}

/// `EXCLUDE USING gist (room WITH =, during WITH &&) WHERE (…)`.
pub fn exclusion(table: &TableDef, index: &IndexDef) -> String {
    let elements = key_texts(table, index).into_iter();
    let operators = index.terms.exclusion.iter();
    let elements: Vec<String> = elements
        .zip(operators)
        .map(|(element, op)| {
            let name = operator_by_oid(*op).map_or("???", |op| op.name);
            format!("{element} WITH {name}")
        })
        .collect();
    let predicate = match &index.terms.predicate {
        Some(text) => format!(" WHERE ({text})"),
        None => String::new(),
    };
    format!(
        "EXCLUDE USING {} ({}){}{predicate}",
        index.terms.method.name(),
        elements.join(", "),
        included(table, index)
    )
}

/// A column's NOT NULL as a table constraint.
pub fn not_null_definition(table: &TableDef, attnum: u16) -> String {
    let column = table.column(attnum);
    let alone = if column.not_null_alone {
        " NO INHERIT"
    } else {
        ""
    };
    format!("NOT NULL {}{alone}", quote_ident(&column.name))
}

fn foreign_key(
    catalog: &Catalog,
    table: &TableDef,
    key: &ForeignKey,
    name_of: &dyn Fn(Oid) -> String,
) -> String {
    let columns = |table: &TableDef, columns: &[u16]| match columns.split_last() {
        Some((last, [])) if key.period => format!("PERIOD {}", column_list(table, &[*last])),
        Some((last, first)) if key.period => format!(
            "{}, PERIOD {}",
            column_list(table, first),
            column_list(table, &[*last])
        ),
        _ => column_list(table, columns),
    };
    let referenced = catalog
        .table(key.ref_table)
        .map_or_else(String::new, |t| columns(t, &key.ref_columns));
    let mut text = format!(
        "FOREIGN KEY ({}) REFERENCES {}({referenced})",
        columns(table, &key.columns),
        name_of(key.ref_table),
    );
    if key.match_full {
        text += " MATCH FULL";
    }
    for (event, action) in [("UPDATE", key.on_update), ("DELETE", key.on_delete)] {
        if action != FkAction::NoAction {
            text += &format!(" ON {event} {}", action_name(action));
        }
    }
    text
}

/// `NO ACTION`, `CASCADE`, ….
pub fn action_name(action: FkAction) -> &'static str {
    match action {
        FkAction::NoAction => "NO ACTION",
        FkAction::Restrict => "RESTRICT",
        FkAction::Cascade => "CASCADE",
        FkAction::SetNull => "SET NULL",
        FkAction::SetDefault => "SET DEFAULT",
    }
}

/// COMMENT ON's text, and PostgreSQL's own remark on the schema every database is born with.
pub fn comment(catalog: &Catalog, class: Oid, object: Oid, column: u16) -> Option<&str> {
    match catalog.comment(class, object, column) {
        Some(comment) => Some(&comment.text),
        None if (class, object) == (builtin::class::NAMESPACE, builtin::PUBLIC) => {
            Some("standard public schema")
        }
        None => None,
    }
}
