//! The physical plan: a tree of row operators, each giving rows of datums.
//!
//! Every expression of an operator reads its *input row* by [`Expr::Slot`]. What that row is:
//!
//! | operator | input row of its expressions | output row |
//! | --- | --- | --- |
//! | scans | the scan's `columns` in order | the same |
//! | `Filter`, `Sort`, `Limit`, `LockRows`, `Distinct`, `Materialize` | child's | child's |
//! | `Project` | child's | `exprs` |
//! | `Append` | none | an input's, by its `slots` |
//! | joins | left's then right's | the same; semi and anti: left's |
//! | `Aggregate` | child's (`having`: output) | `group` values, then aggregates, then `groupings` |
//! | `Window` | child's; frame offsets: none | child's, then the calls |
//! | `Insert`, `Update`, `Delete`, `Merge` | see each | `returning` |
//!
//! Values from outside (correlation, nested-loop parameters) are [`Expr::Outer`].

use std::sync::Arc;
use throng_bind::query::CheckExpr;
use throng_syntax::vocabulary::TableLock;

use throng_types::reach::Reach;
use throng_types::{Oid, SqlType};

use super::bitmap::BitmapScan;
use super::leaf_locks::LeafLocks;
use throng_bind::expr::{AggCall, Expr, ParamId, RelId, RoutineCall, SortKey, system};
use throng_bind::query::{JoinKind, LockWait, MergeAction, RowLockStrength, SetOp};
use throng_bind::route::{Leaf, Routing, Tree};
use throng_bind::tablesample::Sample;
use throng_bind::window::{Frame, WindowCall};
use throng_catalog::{IndexDef, TableDef, VirtualTable};
use throng_values::func::Function;

/// A statement ready to run. Nothing in it depends on the session, so it can be cached by
/// (text, parameter types, catalog version) and shared.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedStatement {
    pub tag: StatementTag,
    pub root: Plan,
    /// Subqueries in expressions ([`throng_bind::expr::SubPlanRef`]) and shared WITH queries
    /// ([`Node::CteScan`]).
    pub subplans: Vec<Plan>,
    /// The writes of WITH that are run before the statement itself: each once, to its end, in this
    /// order.
    pub writes: Vec<WithWrite>,
    /// Those that are run after it, as nothing in it reads them.
    pub late_writes: Vec<WithWrite>,
    /// Operators, by number, that the analytics pool runs with all below them while the rest runs
    /// here.
    pub parts: Vec<u32>,
    /// Size of the array of [`ParamId`] values.
    pub outer_params: u32,
    /// How many expressions are computed once ([`throng_bind::expr::ComputedOnce`]).
    pub once: u32,
    /// Expressions with constant parts that may fail, be there rows or not.
    pub suspects: Vec<Expr>,
    /// One of them needs no parameters: PostgreSQL, which plans at Bind, fails there.
    pub fails_at_bind: bool,
    /// Types of `$1`, ….
    pub params: Vec<SqlType>,
    /// What the client is told about the rows; empty where there are none.
    pub output: Vec<OutputColumn>,
    /// Tables to lock before running, strongest mode each, by oid.
    pub locks: Vec<(Oid, TableLock)>,
    /// And those of partitions that values choose.
    pub leaf_locks: Vec<LeafLocks>,
    /// How it locks the first rows that it locks, if it does.
    pub row_lock: Option<RowLockStrength>,
    /// A materialized view that it reads and that has not been populated.
    pub unpopulated: Option<String>,
    /// WHERE CURRENT OF: whose place is to be known before it is run.
    pub cursor: Option<CursorUse>,
    /// It changes the one row of a single index scan, and all else that it computes comes from that
    /// row.
    pub changes_one_row: bool,
    /// A SELECT that gives the row of a single index scan, if there is one, and nothing else.
    pub gives_one_row: bool,
    /// It reads partitions that its parameters' values choose, and is not to be run: a plan that is
    /// made for the values reads those alone. See
    /// [`PlanContext::most_unknown`](super::PlanContext::most_unknown).
    pub wants_values: bool,
}

/// The cursor of WHERE CURRENT OF, and the table that is written to.
#[derive(Clone, Debug, PartialEq)]
pub struct CursorUse {
    pub name: String,
    pub table: Oid,
}

impl PlannedStatement {
    /// A SELECT that is one plan: nothing is asked of subqueries, of parameters or of whoever reads
    /// it.
    pub fn of_part(root: Plan) -> PlannedStatement {
        PlannedStatement {
            tag: StatementTag::Select,
            root,
            subplans: Vec::new(),
            writes: Vec::new(),
            late_writes: Vec::new(),
            parts: Vec::new(),
            row_lock: None,
            unpopulated: None,
            cursor: None,
            changes_one_row: false,
            gives_one_row: false,
            wants_values: false,
            outer_params: 0,
            once: 0,
            suspects: Vec::new(),
            fails_at_bind: false,
            params: Vec::new(),
            output: Vec::new(),
            locks: Vec::new(),
            leaf_locks: Vec::new(),
        }
    }

    /// What it does beyond reading, as PostgreSQL calls the command.
    pub fn changes(&self) -> Option<&'static str> {
        let writes = !self.writes.is_empty() || !self.late_writes.is_empty();
        match self.tag {
            StatementTag::Select => self
                .row_lock
                .map(RowLockStrength::command)
                .or(writes.then_some("SELECT")),
            StatementTag::Insert => Some("INSERT"),
            StatementTag::Update => Some("UPDATE"),
            StatementTag::Delete => Some("DELETE"),
            StatementTag::Merge => Some("MERGE"),
        }
    }
}

/// An INSERT, UPDATE, DELETE or MERGE of WITH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WithWrite {
    pub subplan: u32,
    /// Somebody reads what it returns.
    pub read: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementTag {
    Select,
    Insert,
    Update,
    Delete,
    Merge,
}

/// A column of the result as RowDescription tells it.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputColumn {
    pub name: String,
    pub ty: SqlType,
    /// Where it comes from, when it is a table's column as it is; else 0.
    pub table: Oid,
    pub attnum: i16,
}

/// An operator with its estimates.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Number within the statement, for EXPLAIN ANALYZE's counters; subplans go on counting.
    pub id: u32,
    pub node: Node,
    /// Types of the output row.
    pub types: Vec<SqlType>,
    pub cost: Cost,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    pub startup: f64,
    pub total: f64,
    pub rows: f64,
    /// Mean bytes of an output row.
    pub width: u32,
}

impl Cost {
    /// The total without what ways cost that the session has disabled.
    pub fn of_work(&self) -> f64 {
        self.total % super::cost::DISABLED
    }

    /// Has another input read after this.
    pub(super) fn append(&mut self, input: &Cost) {
        self.total += input.total;
        self.rows += input.rows;
        self.startup = self.startup.max(input.startup);
    }

    /// What it costs to read so many rows and no more.
    pub(super) fn until(&self, rows: f64) -> f64 {
        let part = (rows / self.rows.max(1.0)).min(1.0);
        self.startup + (self.total - self.startup) * part
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// Rows of constants and expressions (no input row). `SELECT 1` is one row of them.
    Values {
        rows: Vec<Vec<Expr>>,
    },
    SeqScan(SeqScan),
    IndexScan(IndexScan),
    BitmapScan(Box<BitmapScan>),
    VirtualScan {
        rel: RelId,
        alias: String,
        table: &'static VirtualTable,
        columns: Vec<i16>,
        /// What of it is read: rows with these values, perhaps with others. None: all.
        key: Option<(throng_catalog::Key, KeyMatch)>,
        filter: Option<Expr>,
    },
    FunctionScan(FunctionScan),
    RoutineScan(RoutineScan),
    /// The rows of each beside those of the others, NULLs where one has no more; `ordinality` adds
    /// a bigint that counts them.
    RowsFrom {
        inputs: Vec<Plan>,
        alias: String,
        ordinality: bool,
    },
    /// Reads a shared WITH query: the subplan is run once for the same `args`, which are set
    /// before, and its rows kept.
    CteScan {
        rel: RelId,
        alias: String,
        subplan: u32,
        args: Vec<(ParamId, Expr)>,
        filter: Option<Expr>,
    },
    RecursiveUnion(Box<RecursiveUnion>),
    /// In the term of a [`RecursiveUnion`]: the rows of its last step.
    WorkTableScan {
        rel: RelId,
        alias: String,
        work_table: u32,
        /// Another value for each step, so that what is kept of one is not taken for the next
        /// one's.
        step: Expr,
        filter: Option<Expr>,
    },
    /// A condition; `once` where it does not depend on the row (PostgreSQL's One-Time Filter).
    Filter {
        input: Box<Plan>,
        condition: Expr,
        once: bool,
    },
    Project {
        input: Box<Plan>,
        exprs: Vec<Expr>,
    },
    /// As `Project` where some expressions are set-returning functions at the top: each input row
    /// gives as many rows as the longest of them, the others NULL when exhausted.
    ProjectSet {
        input: Box<Plan>,
        exprs: Vec<SetExpr>,
    },
    NestedLoop(NestedLoop),
    HashJoin(HashJoin),
    Sort {
        input: Box<Plan>,
        keys: Vec<SortKey>,
    },
    Limit {
        input: Box<Plan>,
        limit: Option<Expr>,
        offset: Option<Expr>,
        /// Not empty: rows equal to the last one in these keys, in which the input is sorted, come
        /// too.
        ties: Vec<SortKey>,
    },
    Aggregate(AggregateNode),
    Window(WindowNode),
    Distinct {
        input: Box<Plan>,
        keys: Vec<Expr>,
        sorted: bool,
    },
    SetOp {
        op: SetOp,
        all: bool,
        left: Box<Plan>,
        right: Box<Plan>,
    },
    /// Rows of the tables behind a parent, one table after another.
    Append(Box<Append>),
    LockRows(Box<LockRowsNode>),
    /// Keeps its rows so that it can be read again cheaply.
    Materialize {
        input: Box<Plan>,
    },
    Insert(Box<InsertNode>),
    Update(Box<UpdateNode>),
    Delete(Box<DeleteNode>),
    Merge(Box<MergeNode>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Append {
    pub inputs: Vec<AppendInput>,
    pub pruning: Option<Pruning>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AppendInput {
    /// The entry of its table: a re-check of a row of it reads no other input.
    pub rel: RelId,
    /// Its place among the leaves of [`Pruning`].
    pub leaf: usize,
    pub plan: Plan,
    /// Where its row has the columns of the output; empty: it is the output.
    pub slots: Vec<u32>,
}

/// Inputs that need not be read, found out when the statement is run.
#[derive(Clone, Debug, PartialEq)]
pub struct Pruning {
    pub tree: Arc<Tree>,
    /// Over the parent's row by slot; `Outer(i)`: the value of `values[i]`.
    pub conditions: Vec<Expr>,
    /// No input row.
    pub values: Vec<Expr>,
}

/// The tables behind the target of an UPDATE or DELETE.
#[derive(Clone, Debug, PartialEq)]
pub struct InheritedTarget {
    /// Where the input row has the oid of the row's table.
    pub tableoid: u32,
    /// Those that are read.
    pub members: Vec<Member>,
    /// The places in `members`, by their tables' oids, ascending.
    pub by_table: Vec<(Oid, usize)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    pub rel: RelId,
    /// Its place among all tables of the family; of a partitioned table's the leaf's.
    pub place: usize,
    pub leaf: Leaf,
    /// For each of the parent's columns the attribute number here.
    pub columns: Arc<[u16]>,
}

/// `columns` are attribute numbers, from 1; negative: [`throng_bind::expr::system`].
#[derive(Clone, Debug, PartialEq)]
pub struct SeqScan {
    /// Which entry of the range table: to re-check one row after a concurrent update, the plan is
    /// run with this entry's scan giving just that row.
    pub rel: RelId,
    pub alias: String,
    pub table: Arc<TableDef>,
    pub columns: Vec<i16>,
    pub filter: Option<Expr>,
    /// Only the row at this place.
    pub place: Option<TidPlace>,
    /// Only some of the rows; its expressions have no input row.
    pub sample: Option<Box<Sample>>,
}

/// `ctid = value`.
#[derive(Clone, Debug, PartialEq)]
pub struct TidPlace {
    /// No input row.
    pub value: Expr,
    /// The cursor that tells it: what a row has become since is meant, too.
    pub cursor: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct IndexScan {
    pub rel: RelId,
    pub alias: String,
    pub table: Arc<TableDef>,
    pub index: Arc<IndexDef>,
    /// The stretches of the index that are read, each entry once: several for the arms of a
    /// disjunction.
    pub spans: Vec<KeySpan>,
    /// Read the index backwards.
    pub reverse: bool,
    pub columns: Vec<i16>,
    /// What `spans` say, as conditions on the row: for the re-check of a row that changed, and for
    /// EXPLAIN.
    pub condition: Option<Expr>,
    /// What of the condition the spans say only roughly is among what the filter asks.
    pub filter: Option<Expr>,
    /// The rows come in the index's order.
    pub in_order: bool,
    /// They are thought to be so many that they are read in the order in which they lie, each page
    /// once: a bitmap heap scan.
    pub by_place: bool,
    /// No snapshot sees more than one row there: the index is unique, at every moment, and its
    /// whole key is given.
    pub is_single: bool,
}

/// A stretch of an index.
#[derive(Clone, Debug, PartialEq)]
pub struct KeySpan {
    /// Conditions on the first key columns, in order.
    pub prefix: Vec<KeyMatch>,
    /// The key column after the prefix has many values, and each is looked up by itself.
    pub skip: Option<Box<SkippedKey>>,
    /// Bounds on the key column after those, in terms of values (not of index order).
    pub bounds: KeyBounds,
}

/// A key column whose values are found in the index, one after another, so that conditions on the
/// columns behind it bound what is read ("skip scan").
#[derive(Clone, Debug, PartialEq)]
pub struct SkippedKey {
    pub bounds: KeyBounds,
    /// Conditions on the key columns after it.
    pub then: Vec<KeyMatch>,
}

/// Bounds on a key column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyBounds {
    pub lower: Option<KeyBound>,
    pub upper: Option<KeyBound>,
}

impl KeyBounds {
    pub fn is_empty(&self) -> bool {
        self.lower.is_none() && self.upper.is_none()
    }

    fn for_each_expr<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        let bounds = self.lower.iter().chain(&self.upper);
        bounds.for_each(|bound| f(&bound.value));
    }
}

impl KeySpan {
    /// Whether it gives one value for each of so many key columns.
    pub(super) fn is_one_key(&self, columns: usize) -> bool {
        self.prefix.len() == columns && self.prefix.iter().all(|m| matches!(m, KeyMatch::Eq(_)))
    }

    pub(super) fn for_each_expr<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        self.prefix
            .iter()
            .for_each(|matching| matching.for_each_expr(f));
        if let Some(skip) = &self.skip {
            skip.bounds.for_each_expr(f);
            skip.then
                .iter()
                .for_each(|matching| matching.for_each_expr(f));
        }
        self.bounds.for_each_expr(f);
    }
}

/// Expressions have no input row: they are constants, parameters and `Outer` values. They are of
/// the key column's type, but an integer column may be met by any integer type: a value the
/// column cannot hold matches nothing (or bounds nothing). NULL matches nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyMatch {
    Eq(Expr),
    /// Any element of an array: several ranges, in index order, each once.
    Any(Expr),
    IsNull,
}

impl KeyMatch {
    pub(super) fn for_each_expr<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        match self {
            KeyMatch::Eq(e) | KeyMatch::Any(e) => f(e),
            KeyMatch::IsNull => {}
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct KeyBound {
    pub value: Expr,
    pub inclusive: bool,
    /// The key is a range, and this is how it is beside the value: both bounds of a key say the
    /// same.
    pub reach: Option<Reach>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FunctionScan {
    pub rel: RelId,
    pub alias: String,
    pub func: &'static Function,
    /// No input row.
    pub args: Vec<Expr>,
    /// Its values are rows, whose fields are the columns.
    pub composite: bool,
    /// Adds a bigint column counting rows from 1.
    pub ordinality: bool,
    pub filter: Option<Expr>,
}

/// A user's function in FROM. Its arguments have no input row.
#[derive(Clone, Debug, PartialEq)]
pub struct RoutineScan {
    pub rel: RelId,
    pub alias: String,
    pub call: RoutineCall,
    /// Adds a bigint column counting rows from 1.
    pub ordinality: bool,
    pub filter: Option<Expr>,
}

/// Gives the rows of `init`, then over and over those of `term`, which reads the rows of the time
/// before, until it gives none.
#[derive(Clone, Debug, PartialEq)]
pub struct RecursiveUnion {
    /// A row that was given before is given again.
    pub all: bool,
    pub init: Plan,
    pub term: Plan,
    /// Where `term` finds its rows.
    pub work_table: u32,
    /// Set to the number of the step.
    pub step: Option<ParamId>,
    /// What the term needs from outside. No input row.
    pub args: Vec<(ParamId, Expr)>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SetExpr {
    Scalar(Expr),
    Set {
        func: &'static Function,
        args: Vec<Expr>,
        ty: SqlType,
    },
    Routine(Box<RoutineCall>),
}

/// For each left row: set `params` from it, run the right side, keep pairs that satisfy `on`.
#[derive(Clone, Debug, PartialEq)]
pub struct NestedLoop {
    pub kind: JoinKind,
    pub left: Box<Plan>,
    pub right: Box<Plan>,
    /// Over the left row. Empty: the right side is the same each time.
    pub params: Vec<(ParamId, Expr)>,
    /// Subplans of WITH queries that begin anew with each left row, be it the same as the one
    /// before: what the right side makes of it may be another thing each time.
    pub volatile_ctes: Vec<u32>,
    pub on: Option<Expr>,
    /// Applied to joined rows (null-extended ones too); distinct from `on` for outer joins.
    pub filter: Option<Expr>,
}

/// Builds a table of the right side, probes with the left. Keys compare with their type's own
/// equality; both sides of a pair have the same type. NULL keys match nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct HashJoin {
    pub kind: JoinKind,
    pub left: Box<Plan>,
    pub right: Box<Plan>,
    /// Over the left row.
    pub left_keys: Vec<Expr>,
    /// Over the right row.
    pub right_keys: Vec<Expr>,
    /// Further join condition, over both.
    pub on: Option<Expr>,
    pub filter: Option<Expr>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AggregateNode {
    pub input: Box<Plan>,
    pub group: Vec<Expr>,
    /// Grouping sets, as places in `group`; the values of the others are NULL. None: the one set of
    /// all of it.
    pub sets: Vec<Vec<u32>>,
    pub aggs: Vec<AggCall>,
    /// For each a column of bits, the first argument's the highest: set where the row's set leaves
    /// that place of `group` out.
    pub groupings: Vec<Vec<u32>>,
    pub strategy: AggStrategy,
    /// Over the output row.
    pub having: Option<Expr>,
}

/// Functions over one window. The input comes ordered by `partition`, then by `order`.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowNode {
    pub input: Box<Plan>,
    /// As written, or made up.
    pub name: String,
    pub partition: Vec<Expr>,
    pub order: Vec<SortKey>,
    pub frame: Frame,
    pub calls: Vec<WindowCall>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggStrategy {
    /// No GROUP BY: one row, also from nothing.
    Plain,
    Hashed,
    /// The input comes ordered by the group.
    Sorted,
}

/// Where the input row tells which row of a table it is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct RowSource {
    pub rel: RelId,
    pub table: Arc<TableDef>,
    /// Where the input row has the row's ctid.
    pub tid: u32,
    /// Of a table with children: where the input row has the oid of the row's table, and the tables
    /// with their entries.
    pub family: Option<(u32, Vec<TableEntry>)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LockRowsNode {
    pub input: Plan,
    pub rows: Vec<LockTarget>,
    /// The other tables of the row, whose rows are not locked.
    pub others: Vec<RowSource>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LockTarget {
    pub source: RowSource,
    pub strength: RowLockStrength,
    pub wait: LockWait,
}

/// A table under the entry that it is read by.
pub type TableEntry = (RelId, Arc<TableDef>);

/// The input gives whole new rows: one value for each of the table's columns by attribute number,
/// dropped ones NULL.
///
/// Row of `checks`: the new row. Row of `returning`: the new row, then its [`NEW_SYSTEM`]; where
/// `returns_old`, the row that ON CONFLICT has replaced and its ctid (NULLs where there was none).
#[derive(Clone, Debug, PartialEq)]
pub struct InsertNode {
    pub table: Arc<TableDef>,
    pub input: Plan,
    /// Columns computed from the new row.
    pub generated: Vec<(u16, Expr)>,
    pub on_conflict: Option<ConflictNode>,
    pub checks: Vec<CheckExpr>,
    pub returns_old: bool,
    pub returning: Vec<Expr>,
    /// The table is partitioned, or a partition. Then the tableoid of its row follows its system
    /// columns.
    pub routing: Option<Box<Routing>>,
}

/// The system columns that follow a new row, in this order; `tableoid` is a constant.
pub const NEW_SYSTEM: [i16; 5] = [
    system::CTID,
    system::XMIN,
    system::XMAX,
    system::CMIN,
    system::CMAX,
];

#[derive(Clone, Debug, PartialEq)]
pub struct ConflictNode {
    /// Unique indexes whose conflict is taken care of; empty: all of the table's.
    pub arbiters: Vec<Oid>,
    pub update: Option<ConflictUpdate>,
}

/// Row of both: the row that is there (all columns), its ctid, then the row proposed (all columns).
#[derive(Clone, Debug, PartialEq)]
pub struct ConflictUpdate {
    pub set: Vec<(u16, Expr)>,
    pub filter: Option<Expr>,
    /// What row security asks of the row in the way.
    pub guards: Vec<CheckExpr>,
}

/// Row of `set`: the input row. Row of `checks`: the new row (all columns). Row of `returning`:
/// the new row, its [`NEW_SYSTEM`], then the input row.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateNode {
    pub rel: RelId,
    pub table: Arc<TableDef>,
    pub input: Plan,
    /// Where the input row has the old row's ctid.
    pub tid: u32,
    /// The tables of FROM.
    pub others: Vec<RowSource>,
    /// Where it has the old row's columns, by attribute number - 1 (dropped ones too).
    pub old: Vec<u32>,
    /// Attribute numbers and new values.
    pub set: Vec<(u16, Expr)>,
    /// Columns computed from the new row.
    pub generated: Vec<(u16, Expr)>,
    pub checks: Vec<CheckExpr>,
    pub returning: Vec<Expr>,
    /// The table has children. Then the tableoid of the new row follows its system columns in the
    /// row of `returning`.
    pub family: Option<Box<InheritedTarget>>,
    /// The table is partitioned, or a partition.
    pub routing: Option<Box<Routing>>,
}

/// Row of `returning`: the input row.
#[derive(Clone, Debug, PartialEq)]
pub struct DeleteNode {
    pub rel: RelId,
    pub table: Arc<TableDef>,
    pub input: Plan,
    pub tid: u32,
    /// The tables of USING.
    pub others: Vec<RowSource>,
    /// Where the input row has the old row's columns, by attribute number - 1.
    pub old: Vec<u32>,
    pub returning: Vec<Expr>,
    /// The table has children.
    pub family: Option<Box<InheritedTarget>>,
}

/// Row of `matched`, `visible` and `actions`: the input row. Row of `checks`: the new row. Row of
/// `returning`: the target's row (of a DELETE the old one), its ctid, what was done; the new row
/// (of a DELETE NULLs), its ctid; then the input row. In a family, each of the two has its table at
/// its end.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeNode {
    pub rel: RelId,
    /// What it goes by in the statement, if that is not its name.
    pub alias: Option<String>,
    pub table: Arc<TableDef>,
    pub input: Plan,
    /// Where the input row has the target's ctid; NULL there: a row of the source without partner.
    pub tid: u32,
    /// Where it has the target's columns, by attribute number - 1.
    pub old: Vec<u32>,
    /// Whether the target's row belongs to the source's.
    pub matched: Expr,
    /// Whether the target's row is seen through the views that are written through.
    pub visible: Option<Expr>,
    /// In order: the first one whose condition holds is done.
    pub actions: Vec<MergeAction>,
    /// Columns computed from the new row.
    pub generated: Vec<(u16, Expr)>,
    pub checks: Vec<CheckExpr>,
    pub returning: Vec<Expr>,
    /// The target is this table and those below it.
    pub family: Option<Box<InheritedTarget>>,
    /// Where new rows go, if the target is partitioned or a partition.
    pub routing: Option<Box<Routing>>,
}
