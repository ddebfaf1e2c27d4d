//! The window functions, as PostgreSQL's `pg_proc` lists them. They see other rows than their own,
//! so what computes them is the operator that has the rows.

use throng_types::Oid;
use throng_types::oid::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowKind {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile,
    Lag,
    Lead,
    FirstValue,
    LastValue,
    NthValue,
}

impl WindowKind {
    /// Says the same whatever the frame is.
    pub fn ignores_frame(self) -> bool {
        !matches!(
            self,
            WindowKind::FirstValue | WindowKind::LastValue | WindowKind::NthValue
        )
    }

    /// Tells of the row's place only: planned as if the frame ended with the row.
    pub fn is_rank(self) -> bool {
        self.ignores_frame() && !matches!(self, WindowKind::Lag | WindowKind::Lead)
    }
}

/// A row of `pg_proc` for a window function.
pub struct WindowFunction {
    pub oid: Oid,
    pub name: &'static str,
    pub args: &'static [Oid],
    pub ret: Oid,
    pub kind: WindowKind,
}

impl PartialEq for WindowFunction {
    fn eq(&self, other: &WindowFunction) -> bool {
        self.oid == other.oid
    }
}
impl Eq for WindowFunction {}
impl std::fmt::Debug for WindowFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}#{}", self.name, self.oid)
    }
}

const fn row(
    oid: u32,
    name: &'static str,
    args: &'static [Oid],
    ret: Oid,
    kind: WindowKind,
) -> WindowFunction {
    WindowFunction {
        oid: Oid(oid),
        name,
        args,
        ret,
        kind,
    }
}

const VALUE: &[Oid] = &[ANYELEMENT];
const VALUE_AND_COUNT: &[Oid] = &[ANYELEMENT, INT4];
const WITH_DEFAULT: &[Oid] = &[ANYCOMPATIBLE, INT4, ANYCOMPATIBLE];

pub static FUNCTIONS: &[WindowFunction] = &[
    row(3100, "row_number", &[], INT8, WindowKind::RowNumber),
    row(3101, "rank", &[], INT8, WindowKind::Rank),
    row(3102, "dense_rank", &[], INT8, WindowKind::DenseRank),
    row(3103, "percent_rank", &[], FLOAT8, WindowKind::PercentRank),
    row(3104, "cume_dist", &[], FLOAT8, WindowKind::CumeDist),
    row(3105, "ntile", &[INT4], INT4, WindowKind::Ntile),
    row(3106, "lag", VALUE, ANYELEMENT, WindowKind::Lag),
    row(3107, "lag", VALUE_AND_COUNT, ANYELEMENT, WindowKind::Lag),
    row(3108, "lag", WITH_DEFAULT, ANYCOMPATIBLE, WindowKind::Lag),
    row(3109, "lead", VALUE, ANYELEMENT, WindowKind::Lead),
    row(3110, "lead", VALUE_AND_COUNT, ANYELEMENT, WindowKind::Lead),
    row(3111, "lead", WITH_DEFAULT, ANYCOMPATIBLE, WindowKind::Lead),
    row(
        3112,
        "first_value",
        VALUE,
        ANYELEMENT,
        WindowKind::FirstValue,
    ),
    row(3113, "last_value", VALUE, ANYELEMENT, WindowKind::LastValue),
    row(
        3114,
        "nth_value",
        VALUE_AND_COUNT,
        ANYELEMENT,
        WindowKind::NthValue,
    ),
];
