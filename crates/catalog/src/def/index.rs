//! Indexes, as they are kept.

use serde::{Deserialize, Serialize};
use throng_types::{FileId, Oid, SqlType};
use throng_values::inverted::{self, OperatorClass};

use super::{TableDef, id};

/// An index over columns and expressions, of all rows or those that meet a condition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexDef {
    #[serde(with = "id")]
    pub oid: Oid,
    #[serde(with = "id")]
    pub schema: Oid,
    pub name: String,
    #[serde(with = "id")]
    pub table: Oid,
    #[serde(with = "id")]
    pub file: FileId,
    pub columns: Vec<IndexColumn>,
    pub unique: bool,
    pub primary: bool,
    pub nulls_not_distinct: bool,
    /// The constraint that owns it: the index then goes with the constraint only.
    #[serde(with = "id")]
    pub constraint: Option<Oid>,
    pub options: Vec<(String, String)>,
    /// The index of the partitioned table that it is a part of.
    #[serde(default, with = "id")]
    pub parent: Option<Oid>,
    /// The table was put into its order last, or is to be: what CLUSTER without an index goes by.
    #[serde(default)]
    pub clustered: bool,
    #[serde(default)]
    pub terms: IndexTerms,
    /// SET STATISTICS of columns that are expressions, by their numbers; no number twice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<(u16, i16)>,
}

/// What of an index are no plain key columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IndexTerms {
    /// Of the key columns with attribute number 0, in their order.
    pub exprs: Vec<IndexExpr>,
    /// Rows for which it does not hold have no entry: SQL text over the table's columns.
    pub predicate: Option<String>,
    /// Attribute numbers that the expressions and the condition use.
    pub uses: Vec<u16>,
    /// INCLUDE: columns that the index is said to carry. What is read of them is read from the
    /// table.
    pub include: Vec<u16>,
    #[serde(default)]
    pub method: IndexMethod,
    /// Of an exclusion constraint, and of a key WITHOUT OVERLAPS: no two rows may be there for
    /// which the operators, one of each key column, all hold.
    #[serde(default, with = "id", skip_serializing_if = "Vec::is_empty")]
    pub exclusion: Vec<Oid>,
    /// Of each key column, where any has some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<KeyWords>,
}

/// What an index is asked for. All are kept as B-trees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum IndexMethod {
    #[default]
    Btree,
    /// Equal keys alone.
    Hash,
    /// Ranges beside values, and equal keys.
    Gist,
    /// Inverted: the keys are those that an operator class finds in a value, and a row has many.
    Gin,
}

impl IndexMethod {
    pub fn name(self) -> &'static str {
        match self {
            IndexMethod::Btree => "btree",
            IndexMethod::Hash => "hash",
            IndexMethod::Gist => "gist",
            IndexMethod::Gin => "gin",
        }
    }
}

/// What was said of a key column's order and does not go without saying. It changes nothing: all
/// strings order by their bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeyWords {
    pub collation: Option<String>,
    /// The operator class.
    pub class: Option<String>,
}

impl IndexTerms {
    /// What was said of a key column, by its place from 0.
    pub fn words_of(&self, place: usize) -> (Option<&str>, Option<&str>) {
        let words = self.words.get(place);
        (
            words.and_then(|w| w.collation.as_deref()),
            words.and_then(|w| w.class.as_deref()),
        )
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexExpr {
    /// SQL text over the table's columns.
    pub text: String,
    /// What the index's column is called.
    pub name: String,
    #[serde(with = "id")]
    pub ty: SqlType,
}

/// What an index's own columns are called: by the table's, and numbered where a name comes again.
pub fn index_column_names(
    columns: &[IndexColumn],
    terms: &IndexTerms,
    table: &TableDef,
) -> Vec<String> {
    let mut exprs = terms.exprs.iter();
    let keys = columns.iter().map(|c| match c.attnum {
        0 => exprs.next().map_or("expr", |e| e.name.as_str()),
        attnum => table.column(attnum).name.as_str(),
    });
    let included = terms.include.iter();
    let included = included.map(|attnum| table.column(*attnum).name.as_str());
    let mut names: Vec<String> = Vec::with_capacity(columns.len() + terms.include.len());
    for name in keys.chain(included) {
        let mut own = name.to_owned();
        let mut number = 1;
        while names.contains(&own) {
            own = format!("{name}{number}");
            number += 1;
        }
        names.push(own);
    }
    names
}

impl IndexDef {
    /// Per cent of its leaves that are filled when it is built, where it was said.
    pub fn fill_factor(&self) -> Option<usize> {
        let given = self.options.iter().find(|(name, _)| name == "fillfactor");
        given?.1.parse().ok()
    }

    /// Whether it is on plain columns of all rows.
    pub fn is_plain(&self) -> bool {
        self.terms.exprs.is_empty() && self.terms.predicate.is_none()
    }

    /// Whether it has to do with a column.
    pub fn names(&self, attnum: u16) -> bool {
        self.columns.iter().any(|c| c.attnum == attnum)
            || self.terms.uses.contains(&attnum)
            || self.terms.include.contains(&attnum)
    }

    /// What the index's own columns are called.
    pub fn column_names(&self, table: &TableDef) -> Vec<String> {
        index_column_names(&self.columns, &self.terms, table)
    }

    /// Of an inverted index the operator class of each key column; none of any other.
    pub fn inverted_classes(&self, table: &TableDef) -> Option<Vec<&'static OperatorClass>> {
        if self.terms.method != IndexMethod::Gin {
            return None;
        }
        let class = |(place, (key, expr)): (usize, (&IndexColumn, Option<&IndexExpr>))| {
            let ty = match expr {
                Some(expr) => expr.ty,
                None => table.column(key.attnum).ty,
            };
            match self.terms.words_of(place).1 {
                Some(name) => inverted::class_named(name),
                None => inverted::default_class(ty.oid, |_| false),
            }
        };
        self.keys().enumerate().map(class).collect()
    }

    /// The key columns with their expressions, where they are ones.
    pub fn keys(&self) -> impl Iterator<Item = (&IndexColumn, Option<&IndexExpr>)> {
        let mut exprs = self.terms.exprs.iter();
        self.columns.iter().map(move |column| match column.attnum {
            0 => (column, exprs.next()),
            _ => (column, None),
        })
    }
}

/// One key column of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexColumn {
    /// Attribute number in the table, from 1; 0: an expression.
    pub attnum: u16,
    pub descending: bool,
    pub nulls_first: bool,
}
