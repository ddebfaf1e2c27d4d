//! The kinds of objects that a definition can be about.

use throng_types::Oid;

use throng_syntax::parse::ast::RoutineWord;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    Table,
    Index,
    Sequence,
    Schema,
    Role,
    Database,
    Constraint,
    Column(u16),
    Type,
    Domain,
    View,
    MaterializedView,
    ViewColumn(u16),
    /// As it was called.
    Routine(RoutineWord),
    Trigger,
    Policy,
    Operator,
    Cast,
    Extension,
    Language,
    /// What is built in, by the catalog that it is in.
    BuiltIn(Oid),
}

impl TargetKind {
    pub fn keyword(self) -> &'static str {
        match self {
            TargetKind::Table => "TABLE",
            TargetKind::Index => "INDEX",
            TargetKind::Sequence => "SEQUENCE",
            TargetKind::Schema => "SCHEMA",
            TargetKind::Role => "ROLE",
            TargetKind::Database => "DATABASE",
            TargetKind::Constraint => "CONSTRAINT",
            TargetKind::Column(_) | TargetKind::ViewColumn(_) => "COLUMN",
            TargetKind::Type => "TYPE",
            TargetKind::Domain => "DOMAIN",
            TargetKind::View => "VIEW",
            TargetKind::MaterializedView => "MATERIALIZED VIEW",
            TargetKind::Trigger => "TRIGGER",
            TargetKind::Policy => "POLICY",
            TargetKind::Operator => "OPERATOR",
            TargetKind::Cast => "CAST",
            TargetKind::Extension => "EXTENSION",
            TargetKind::Language => "LANGUAGE",
            TargetKind::BuiltIn(_) => "OBJECT",
            TargetKind::Routine(RoutineWord::Function) => "FUNCTION",
            TargetKind::Routine(RoutineWord::Procedure) => "PROCEDURE",
            TargetKind::Routine(RoutineWord::Routine) => "ROUTINE",
            TargetKind::Routine(RoutineWord::Aggregate) => "AGGREGATE",
        }
    }
}
