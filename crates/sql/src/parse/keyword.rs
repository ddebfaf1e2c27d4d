//! PostgreSQL's keywords that are special anywhere in the grammar. Words that are not here are
//! ordinary identifiers wherever they stand.

/// What a keyword may be used as without quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// Any name; listed because it cannot be a column label without AS.
    Unreserved,
    /// A column or table, not a function or type.
    ColumnName,
    /// A function or type, not a column or table.
    TypeOrFunction,
    Reserved,
}

/// (word, category, may be a column label without AS), sorted by word.
const KEYWORDS: &[(&str, Category, bool)] = &[
    ("all", Category::Reserved, true),
    ("analyse", Category::Reserved, true),
    ("analyze", Category::Reserved, true),
    ("and", Category::Reserved, true),
    ("any", Category::Reserved, true),
    ("array", Category::Reserved, false),
    ("as", Category::Reserved, false),
    ("asc", Category::Reserved, true),
    ("asymmetric", Category::Reserved, true),
    ("authorization", Category::TypeOrFunction, true),
    ("between", Category::ColumnName, true),
    ("bigint", Category::ColumnName, true),
    ("binary", Category::TypeOrFunction, true),
    ("bit", Category::ColumnName, true),
    ("boolean", Category::ColumnName, true),
    ("both", Category::Reserved, true),
    ("case", Category::Reserved, true),
    ("cast", Category::Reserved, true),
    ("char", Category::ColumnName, false),
    ("character", Category::ColumnName, false),
    ("check", Category::Reserved, true),
    ("coalesce", Category::ColumnName, true),
    ("collate", Category::Reserved, true),
    ("collation", Category::TypeOrFunction, true),
    ("column", Category::Reserved, true),
    ("concurrently", Category::TypeOrFunction, true),
    ("constraint", Category::Reserved, true),
    ("create", Category::Reserved, false),
    ("cross", Category::TypeOrFunction, true),
    ("current_catalog", Category::Reserved, true),
    ("current_date", Category::Reserved, true),
    ("current_role", Category::Reserved, true),
    ("current_schema", Category::TypeOrFunction, true),
    ("current_time", Category::Reserved, true),
    ("current_timestamp", Category::Reserved, true),
    ("current_user", Category::Reserved, true),
    ("day", Category::Unreserved, false),
    ("dec", Category::ColumnName, true),
    ("decimal", Category::ColumnName, true),
    ("default", Category::Reserved, true),
    ("deferrable", Category::Reserved, true),
    ("desc", Category::Reserved, true),
    ("distinct", Category::Reserved, true),
    ("do", Category::Reserved, true),
    ("else", Category::Reserved, true),
    ("end", Category::Reserved, true),
    ("except", Category::Reserved, false),
    ("exists", Category::ColumnName, true),
    ("extract", Category::ColumnName, true),
    ("false", Category::Reserved, true),
    ("fetch", Category::Reserved, false),
    ("filter", Category::Unreserved, false),
    ("float", Category::ColumnName, true),
    ("for", Category::Reserved, false),
    ("foreign", Category::Reserved, true),
    ("freeze", Category::TypeOrFunction, true),
    ("from", Category::Reserved, false),
    ("full", Category::TypeOrFunction, true),
    ("grant", Category::Reserved, false),
    ("greatest", Category::ColumnName, true),
    ("group", Category::Reserved, false),
    ("grouping", Category::ColumnName, true),
    ("having", Category::Reserved, false),
    ("hour", Category::Unreserved, false),
    ("ilike", Category::TypeOrFunction, true),
    ("in", Category::Reserved, true),
    ("initially", Category::Reserved, true),
    ("inner", Category::TypeOrFunction, true),
    ("inout", Category::ColumnName, true),
    ("int", Category::ColumnName, true),
    ("integer", Category::ColumnName, true),
    ("intersect", Category::Reserved, false),
    ("interval", Category::ColumnName, true),
    ("into", Category::Reserved, false),
    ("is", Category::TypeOrFunction, true),
    ("isnull", Category::TypeOrFunction, false),
    ("join", Category::TypeOrFunction, true),
    ("json", Category::ColumnName, true),
    ("json_array", Category::ColumnName, true),
    ("json_arrayagg", Category::ColumnName, true),
    ("json_exists", Category::ColumnName, true),
    ("json_object", Category::ColumnName, true),
    ("json_objectagg", Category::ColumnName, true),
    ("json_query", Category::ColumnName, true),
    ("json_scalar", Category::ColumnName, true),
    ("json_serialize", Category::ColumnName, true),
    ("json_table", Category::ColumnName, true),
    ("json_value", Category::ColumnName, true),
    ("lateral", Category::Reserved, true),
    ("leading", Category::Reserved, true),
    ("least", Category::ColumnName, true),
    ("left", Category::TypeOrFunction, true),
    ("like", Category::TypeOrFunction, true),
    ("limit", Category::Reserved, false),
    ("localtime", Category::Reserved, true),
    ("localtimestamp", Category::Reserved, true),
    ("merge_action", Category::ColumnName, true),
    ("minute", Category::Unreserved, false),
    ("month", Category::Unreserved, false),
    ("national", Category::ColumnName, true),
    ("natural", Category::TypeOrFunction, true),
    ("nchar", Category::ColumnName, true),
    ("none", Category::ColumnName, true),
    ("normalize", Category::ColumnName, true),
    ("not", Category::Reserved, true),
    ("notnull", Category::TypeOrFunction, false),
    ("null", Category::Reserved, true),
    ("nullif", Category::ColumnName, true),
    ("numeric", Category::ColumnName, true),
    ("offset", Category::Reserved, false),
    ("on", Category::Reserved, false),
    ("only", Category::Reserved, true),
    ("or", Category::Reserved, true),
    ("order", Category::Reserved, false),
    ("out", Category::ColumnName, true),
    ("outer", Category::TypeOrFunction, true),
    ("over", Category::Unreserved, false),
    ("overlaps", Category::TypeOrFunction, false),
    ("overlay", Category::ColumnName, true),
    ("placing", Category::Reserved, true),
    ("position", Category::ColumnName, true),
    ("precision", Category::ColumnName, false),
    ("primary", Category::Reserved, true),
    ("real", Category::ColumnName, true),
    ("references", Category::Reserved, true),
    ("returning", Category::Reserved, false),
    ("right", Category::TypeOrFunction, true),
    ("row", Category::ColumnName, true),
    ("second", Category::Unreserved, false),
    ("select", Category::Reserved, true),
    ("session_user", Category::Reserved, true),
    ("setof", Category::ColumnName, true),
    ("similar", Category::TypeOrFunction, true),
    ("smallint", Category::ColumnName, true),
    ("some", Category::Reserved, true),
    ("substring", Category::ColumnName, true),
    ("symmetric", Category::Reserved, true),
    ("system_user", Category::Reserved, true),
    ("table", Category::Reserved, true),
    ("tablesample", Category::TypeOrFunction, true),
    ("then", Category::Reserved, true),
    ("time", Category::ColumnName, true),
    ("timestamp", Category::ColumnName, true),
    ("to", Category::Reserved, false),
    ("trailing", Category::Reserved, true),
    ("treat", Category::ColumnName, true),
    ("trim", Category::ColumnName, true),
    ("true", Category::Reserved, true),
    ("union", Category::Reserved, false),
    ("unique", Category::Reserved, true),
    ("user", Category::Reserved, true),
    ("using", Category::Reserved, true),
    ("values", Category::ColumnName, true),
    ("varchar", Category::ColumnName, true),
    ("variadic", Category::Reserved, true),
    ("varying", Category::Unreserved, false),
    ("verbose", Category::TypeOrFunction, true),
    ("when", Category::Reserved, true),
    ("where", Category::Reserved, false),
    ("window", Category::Reserved, false),
    ("with", Category::Reserved, false),
    ("within", Category::Unreserved, false),
    ("without", Category::Unreserved, false),
    ("xmlattributes", Category::ColumnName, true),
    ("xmlconcat", Category::ColumnName, true),
    ("xmlelement", Category::ColumnName, true),
    ("xmlexists", Category::ColumnName, true),
    ("xmlforest", Category::ColumnName, true),
    ("xmlnamespaces", Category::ColumnName, true),
    ("xmlparse", Category::ColumnName, true),
    ("xmlpi", Category::ColumnName, true),
    ("xmlroot", Category::ColumnName, true),
    ("xmlserialize", Category::ColumnName, true),
    ("xmltable", Category::ColumnName, true),
    ("year", Category::Unreserved, false),
];

fn find(word: &str) -> Option<(Category, bool)> {
    let i = KEYWORDS.binary_search_by(|(w, ..)| (*w).cmp(word)).ok()?;
    Some((KEYWORDS[i].1, KEYWORDS[i].2))
}

/// What `word` (in lower case) is when it is a keyword with restrictions.
pub fn category(word: &str) -> Category {
    find(word).map_or(Category::Unreserved, |(c, _)| c)
}

/// Whether `word` can follow an expression as its label with no AS between.
pub fn bare_label(word: &str) -> bool {
    find(word).is_none_or(|(_, bare)| bare)
}

/// Whether an identifier needs quotes to be read back as itself.
pub fn needs_quotes(name: &str) -> bool {
    let plain_start = name
        .chars()
        .next()
        .is_some_and(|c| c.is_ascii_lowercase() || c == '_');
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    !plain_start || !name.chars().all(plain) || category(name) != Category::Unreserved
}

/// The identifier as SQL text.
pub fn quote_ident(name: &str) -> String {
    match needs_quotes(name) {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => name.to_string(),
    }
}

/// The string as an SQL constant.
pub fn quote_literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    match quoted.contains('\\') {
        true => format!("E'{}'", quoted.replace('\\', "\\\\")),
        false => format!("'{quoted}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_sorted_and_answers() {
        assert!(KEYWORDS.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(category("select"), Category::Reserved);
        assert_eq!(category("bid"), Category::Unreserved);
        assert!(!bare_label("from") && bare_label("select") && !bare_label("day"));
        assert_eq!(quote_ident("A b"), "\"A b\"");
        assert_eq!(quote_ident("order"), "\"order\"");
        assert_eq!(quote_ident("aid"), "aid");
    }
}
