//! ALTER DOMAIN, and what ALTER TABLE says of a generated column.

use throng_types::{Oid, Xid};

use crate::tree::expr::Expr;
use throng_catalog::{Compression, Generated, ReplicaIdentity, Storage, TypeDef};

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

/// What is only kept of a table or of a column: rows stay as they are.
#[derive(Clone, Debug)]
pub enum TableMark {
    /// None: as the column's type has it.
    Storage {
        attnum: u16,
        storage: Option<Storage>,
    },
    Compression {
        attnum: u16,
        compression: Option<Compression>,
    },
    /// The index to cluster by from now on, or none.
    ClusterOn(Option<Oid>),
    ReplicaIdentity(ReplicaIdentity),
}

impl TableMark {
    /// The same of a child, where it is one; `place`: where it has a column of the parent's.
    pub fn of_child(&self, place: impl Fn(u16) -> Option<u16>) -> Option<TableMark> {
        match *self {
            TableMark::Storage { attnum, storage } => {
                place(attnum).map(|attnum| TableMark::Storage { attnum, storage })
            }
            TableMark::Compression {
                attnum,
                compression,
            } => place(attnum).map(|attnum| TableMark::Compression {
                attnum,
                compression,
            }),
            TableMark::ClusterOn(_) | TableMark::ReplicaIdentity(_) => None,
        }
    }
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
