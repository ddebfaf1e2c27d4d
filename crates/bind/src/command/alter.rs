//! ALTER DOMAIN, and what ALTER TABLE says of a generated column.

use throng_types::{Oid, Xid};

use crate::tree::expr::Expr;
use throng_catalog::{Generated, TypeDef};

/// ALTER DOMAIN: what it is now; new constraints have no oids yet.
#[derive(Clone, Debug)]
pub struct AlterDomain {
    pub def: TypeDef,
    /// What columns that are there must hold.
    pub tests: Vec<DomainTest>,
}

#[derive(Clone, Debug)]
pub struct DomainTest {
    pub table: Oid,
    pub attnum: u16,
    /// Over the value, `Slot(0)`; none: NOT NULL.
    pub condition: Option<Expr>,
}

/// ALTER COLUMN … SET EXPRESSION.
#[derive(Clone, Debug)]
pub struct SetExpression {
    pub attnum: u16,
    pub generated: Generated,
    /// Over the row, `Slot(attnum - 1)`.
    pub value: Expr,
    /// Conditions on the column with their names: they may not hold any more.
    pub checks: Vec<(String, Expr)>,
}

/// What of DETACH PARTITION is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detach {
    AtOnce,
    /// CONCURRENTLY: the session makes [`Detach::Begin`] of it, and later [`Detach::Finish`].
    Concurrently,
    /// The partition is hidden from whoever sees this transaction.
    Begin(Xid),
    /// Nobody uses it as a partition any more.
    Finish,
}
