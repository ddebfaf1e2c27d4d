//! The syntax tree of COPY.

use super::{Expr, Name, Pos, Statement};

#[derive(Clone, Debug, PartialEq)]
pub struct Copy {
    pub subject: CopySubject,
    pub from: bool,
    pub target: crate::vocabulary::CopyTarget,
    pub options: Vec<CopyOption>,
    pub filter: Option<Expr>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum CopySubject {
    Table {
        name: Name,
        columns: Vec<(String, Pos)>,
    },
    /// A query, or a write with RETURNING.
    Query(Box<Statement>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct CopyOption {
    pub name: String,
    pub value: CopyValue,
    pub pos: Pos,
}

#[derive(Clone, Debug, PartialEq)]
pub enum CopyValue {
    None,
    Text(String),
    Star,
    List(Vec<String>),
}
