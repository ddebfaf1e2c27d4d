//! What was written: statements as trees of names and constants, with byte offsets for messages.

mod absent;
mod alter;
mod column;
mod copy;
mod define;
mod extension;
mod json;
mod made;
mod maintain;
mod policy;
mod routine;
mod trigger;

pub use super::partition::{BoundSpec, PartitionBy, PartitionOf};
pub use absent::*;
pub use alter::*;
pub use column::*;
pub use copy::*;
pub use define::*;
pub use extension::*;
pub use json::*;
pub use made::*;
pub use maintain::*;
pub use policy::*;
pub use routine::*;
pub use trigger::*;

/// A byte offset in the text.
pub type Pos = u32;

/// A possibly qualified name.
#[derive(Clone, Debug, PartialEq)]
pub struct Name {
    pub parts: Vec<String>,
    pub pos: Pos,
}

impl Name {
    pub fn last(&self) -> &str {
        self.parts.last().map_or("", |s| s.as_str())
    }
    pub fn schema(&self) -> Option<&str> {
        self.parts
            .len()
            .checked_sub(2)
            .map(|i| self.parts[i].as_str())
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.parts.join("."))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    pub node: Node,
    pub pos: Pos,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    Null,
    Bool(bool),
    Integer(String),
    Decimal(String),
    Text(String),
    Bits(char, String),
    Param(u32),
    Column(Vec<String>),
    /// `*`, `t.*`
    Star(Vec<String>),
    /// `(value).*`
    FieldStar(Box<Expr>),
    Unary {
        op: Operator,
        arg: Box<Expr>,
    },
    Binary {
        op: Operator,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Not(Box<Expr>),
    IsNull {
        arg: Box<Expr>,
        negated: bool,
    },
    /// `IS TRUE`, `IS FALSE`, `IS UNKNOWN` (None).
    IsBool {
        arg: Box<Expr>,
        value: Option<bool>,
        negated: bool,
    },
    IsDistinct {
        left: Box<Expr>,
        right: Box<Expr>,
        negated: bool,
    },
    Between {
        arg: Box<Expr>,
        low: Box<Expr>,
        high: Box<Expr>,
        symmetric: bool,
        negated: bool,
    },
    InList {
        arg: Box<Expr>,
        list: Vec<Expr>,
        negated: bool,
    },
    InQuery {
        arg: Box<Expr>,
        query: Box<Query>,
        negated: bool,
    },
    Like {
        kind: LikeKind,
        arg: Box<Expr>,
        pattern: Box<Expr>,
        escape: Option<Box<Expr>>,
        negated: bool,
    },
    /// `left op ANY (right)`
    Quantified {
        left: Box<Expr>,
        op: Operator,
        all: bool,
        right: Quantified,
    },
    Case {
        operand: Option<Box<Expr>>,
        whens: Vec<(Expr, Expr)>,
        default: Option<Box<Expr>>,
    },
    Cast {
        arg: Box<Expr>,
        ty: TypeName,
    },
    Call(Box<Call>),
    Coalesce(Vec<Expr>),
    /// `GROUPING(…)`
    Grouping(Vec<Expr>),
    NullIf(Box<Expr>, Box<Expr>),
    MinMax {
        greatest: bool,
        args: Vec<Expr>,
    },
    /// `explicit`: written with ROW.
    Row {
        fields: Vec<Expr>,
        explicit: bool,
    },
    Array(Vec<Expr>),
    ArrayQuery(Box<Query>),
    Subscript {
        arg: Box<Expr>,
        index: Box<Expr>,
    },
    /// `array[from:to]`
    Slice {
        arg: Box<Expr>,
        from: Option<Box<Expr>>,
        to: Option<Box<Expr>>,
    },
    /// Parentheses around subscripts: what follows them are subscripts of the value, not of the
    /// same array's further dimensions.
    Parenthesised(Box<Expr>),
    Field {
        arg: Box<Expr>,
        name: String,
    },
    Subquery(Box<Query>),
    Exists(Box<Query>),
    Collate {
        arg: Box<Expr>,
        collation: Name,
    },
    /// SQL/JSON.
    Json(Box<JsonNode>),
    /// In INSERT and UPDATE.
    Default,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Quantified {
    Query(Box<Query>),
    Array(Box<Expr>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LikeKind {
    Like,
    ILike,
    Similar,
}

/// An operator's name, its schema where written as `OPERATOR(schema.op)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Operator {
    pub schema: Option<String>,
    pub name: String,
    pub pos: Pos,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub name: Name,
    pub args: Vec<Expr>,
    /// Those given by name, `name => value`, by their places.
    pub names: Vec<(usize, String)>,
    /// `count(*)`
    pub star: bool,
    pub distinct: bool,
    pub variadic: bool,
    pub order: Vec<OrderBy>,
    pub filter: Option<Expr>,
    pub within_group: bool,
    pub over: Option<Over>,
    /// How the column is called when it has no name of its own, if not by the function's.
    pub label: Option<&'static str>,
}

/// An item of GROUP BY.
#[derive(Clone, Debug, PartialEq)]
pub enum GroupItem {
    /// A column; several where it is a row without ROW.
    Expr(Expr),
    /// `()`: all rows are one group.
    Empty,
    Rollup(Vec<Expr>),
    Cube(Vec<Expr>, Pos),
    Sets(Vec<GroupItem>),
}

impl GroupItem {
    /// What is grouped by.
    pub fn exprs<'a>(&'a self, into: &mut Vec<&'a Expr>) {
        match self {
            GroupItem::Expr(expr) => into.push(expr),
            GroupItem::Empty => {}
            GroupItem::Rollup(exprs) | GroupItem::Cube(exprs, _) => into.extend(exprs),
            GroupItem::Sets(items) => items.iter().for_each(|item| item.exprs(into)),
        }
    }
}

/// The window of a window function call.
#[derive(Clone, Debug, PartialEq)]
pub enum Over {
    /// `OVER w`
    Named(String, Pos),
    /// `OVER (…)`
    Spec(Box<WindowSpec>),
}

/// What stands between the parentheses of OVER, or of WINDOW.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowSpec {
    /// Another window that this one goes on from.
    pub base: Option<String>,
    pub partition: Vec<Expr>,
    pub order: Vec<OrderBy>,
    pub frame: Option<Frame>,
    /// Of the parenthesis.
    pub pos: Pos,
}

/// `w AS (…)` in a WINDOW clause.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedWindow {
    pub name: String,
    pub spec: WindowSpec,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    pub mode: FrameMode,
    pub start: FrameBound,
    pub end: FrameBound,
    /// Written with BETWEEN.
    pub between: bool,
    pub exclude: Exclude,
}

#[derive(Clone, Debug, PartialEq)]
pub enum FrameBound {
    UnboundedPreceding,
    Preceding(Expr),
    CurrentRow,
    Following(Expr),
    UnboundedFollowing,
}

pub use crate::vocabulary::{Exclude, FrameMode};

#[derive(Clone, Debug, PartialEq)]
pub struct OrderBy {
    pub expr: Expr,
    pub descending: bool,
    pub nulls_first: Option<bool>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    pub with: Vec<Cte>,
    pub recursive: bool,
    pub body: Body,
    pub order: Vec<OrderBy>,
    pub limit: Option<Expr>,
    /// FETCH … WITH TIES: the last row's peers too.
    pub ties: bool,
    pub offset: Option<Expr>,
    pub locks: Vec<Locking>,
    pub pos: Pos,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Cte {
    pub name: String,
    pub columns: Vec<String>,
    pub materialized: Option<bool>,
    /// A query, or an INSERT, UPDATE or DELETE.
    pub statement: Statement,
    pub search: Option<Search>,
    pub cycle: Option<Cycle>,
    pub pos: Pos,
}

/// `SEARCH DEPTH FIRST BY columns SET sequence`
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    pub breadth_first: bool,
    pub columns: Vec<String>,
    pub sequence: String,
    pub pos: Pos,
}

/// `CYCLE columns SET mark TO value DEFAULT default USING path`; values as texts.
#[derive(Clone, Debug, PartialEq)]
pub struct Cycle {
    pub columns: Vec<String>,
    pub mark: String,
    pub value: String,
    pub default: String,
    pub path: String,
    pub pos: Pos,
}

impl Query {
    /// Its SELECT, in parentheses or not.
    pub fn as_select(&self) -> Option<&Select> {
        match &self.body {
            Body::Select(select) => Some(select),
            Body::Nested(inner) => inner.as_select(),
            _ => None,
        }
    }

    /// No clause stands before or behind it.
    pub fn is_bare(&self) -> bool {
        self.with.is_empty()
            && self.order.is_empty()
            && self.limit.is_none()
            && self.offset.is_none()
            && self.locks.is_empty()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    Select(Box<Select>),
    Values(Vec<Vec<Expr>>),
    SetOp {
        op: SetOp,
        all: bool,
        left: Box<Query>,
        right: Box<Query>,
    },
    /// In parentheses.
    Nested(Box<Query>),
}

pub use crate::vocabulary::{JoinKind, LockWait, RowLockStrength, SetOp};

#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    /// `Some([])`: DISTINCT; otherwise DISTINCT ON.
    pub distinct: Option<Vec<Expr>>,
    pub targets: Vec<SelectItem>,
    pub from: Vec<TableRef>,
    pub filter: Option<Expr>,
    pub group_by: Vec<GroupItem>,
    /// GROUP BY DISTINCT: of equal grouping sets one.
    pub group_distinct: bool,
    pub having: Option<Expr>,
    pub windows: Vec<NamedWindow>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SelectItem {
    pub expr: Expr,
    pub alias: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Alias {
    pub name: String,
    pub columns: Vec<String>,
}

/// `TABLESAMPLE method (args) REPEATABLE (seed)`
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub method: Name,
    pub args: Vec<Expr>,
    pub seed: Option<Expr>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TableRef {
    Table {
        name: Name,
        /// Not its children.
        only: bool,
        alias: Option<Alias>,
        sample: Option<Box<Sample>>,
    },
    Subquery {
        query: Box<Query>,
        lateral: bool,
        alias: Option<Alias>,
        pos: Pos,
    },
    Function {
        call: Expr,
        lateral: bool,
        ordinality: bool,
        alias: Option<Alias>,
        /// The columns of a function that returns records of any kind.
        definition: Vec<ColumnDefinition>,
        pos: Pos,
    },
    /// `ROWS FROM (f(…), g(…))`
    RowsFrom {
        items: Vec<(Expr, Vec<ColumnDefinition>)>,
        ordinality: bool,
        alias: Option<Alias>,
        pos: Pos,
    },
    Join {
        kind: JoinKind,
        left: Box<TableRef>,
        right: Box<TableRef>,
        on: JoinOn,
        alias: Option<Alias>,
        pos: Pos,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum JoinOn {
    None,
    Natural,
    /// The columns, and what those merged are called as a table.
    Using(Vec<String>, Option<String>),
    On(Expr),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Locking {
    pub strength: RowLockStrength,
    pub of: Vec<Name>,
    pub wait: LockWait,
    pub pos: Pos,
}

/// A statement and where its text is.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    pub statement: Statement,
    pub start: Pos,
    pub end: Pos,
}

pub use super::ast_constraint::*;
pub use super::ast_write::*;

#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    Query(Box<Query>),
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    Merge(Box<Merge>),
    Explain {
        options: Vec<(String, Option<String>)>,
        statement: Box<Statement>,
    },
    CreateTable(Box<CreateTable>),
    /// The columns and the query are those of a prepared statement.
    CreateTableAsExecute {
        table: Box<CreateTable>,
        names: Vec<String>,
        name: String,
        args: Vec<Expr>,
        with_data: bool,
    },
    /// Of any relation.
    AlterTable {
        kind: ObjectKind,
        name: Name,
        /// Not of its children.
        only: bool,
        if_exists: bool,
        actions: Vec<AlterAction>,
    },
    AttachPartition {
        table: Name,
        if_exists: bool,
        partition: Name,
        bound: BoundSpec,
    },
    DetachPartition {
        table: Name,
        if_exists: bool,
        partition: Name,
        concurrently: bool,
        finalize: bool,
    },
    /// `ALTER INDEX … ATTACH PARTITION`
    AttachIndex {
        index: Name,
        partition: Name,
    },
    /// Of any object: `ALTER … RENAME TO`, `SET SCHEMA`, `OWNER TO`.
    AlterObject {
        kind: ObjectKind,
        name: Name,
        if_exists: bool,
        change: ObjectChange,
    },
    RenameColumn {
        kind: ObjectKind,
        table: Name,
        only: bool,
        if_exists: bool,
        column: String,
        to: String,
    },
    RenameConstraint {
        table: Name,
        only: bool,
        if_exists: bool,
        constraint: String,
        to: String,
    },
    CreateIndex(Box<CreateIndex>),
    CreateView(Box<CreateView>),
    CreateSchema {
        name: Option<String>,
        owner: Option<String>,
        if_not_exists: bool,
        /// What is made in it with it.
        elements: Vec<Statement>,
    },
    CreateSequence {
        name: Name,
        temporary: bool,
        if_not_exists: bool,
        options: Vec<SequenceOption>,
    },
    AlterSequence {
        name: Name,
        if_exists: bool,
        options: Vec<SequenceOption>,
    },
    Drop {
        kind: ObjectKind,
        names: Vec<Name>,
        if_exists: bool,
        cascade: bool,
        concurrently: bool,
    },
    Truncate {
        /// Whether ONLY was written.
        tables: Vec<(Name, bool)>,
        restart_identity: bool,
        cascade: bool,
    },
    CreateComposite {
        name: Name,
        fields: Vec<ColumnDef>,
    },
    AlterComposite {
        name: Name,
        changes: Vec<FieldChange>,
    },
    CreateDomain(Box<CreateDomain>),
    AlterDomain {
        name: Name,
        change: DomainChange,
    },
    CreateEnum {
        name: Name,
        labels: Vec<String>,
    },
    CreateRange {
        name: Name,
        options: Vec<RangeOption>,
    },
    AlterEnum {
        name: Name,
        change: EnumChange,
    },
    Comment {
        kind: ObjectKind,
        name: Name,
        column: Option<String>,
        text: Option<String>,
    },
    CreateRoutine(Box<CreateRoutine>),
    AlterRoutine {
        word: RoutineWord,
        routine: RoutineName,
        change: RoutineChange,
    },
    DropRoutine {
        word: RoutineWord,
        routines: Vec<RoutineName>,
        if_exists: bool,
        cascade: bool,
    },
    Call(Box<Call>, Pos),
    Do(DoBlock),
    CommentRoutine {
        word: RoutineWord,
        routine: RoutineName,
        text: Option<String>,
    },
    CreateDatabase {
        name: String,
        options: Vec<DatabaseOption>,
    },
    AlterDatabase {
        name: String,
        options: Vec<DatabaseOption>,
    },
    Extension(ExtensionStatement),
    Define(Box<Define>),
    DropAbsent(Box<DropAbsent>),
    CommentAbsent(Box<CommentAbsent>),
    DropDatabase {
        name: String,
        if_exists: bool,
        force: bool,
    },
    CreateRole {
        name: String,
        options: Vec<RoleOption>,
    },
    AlterRole {
        name: String,
        options: Vec<RoleOption>,
    },
    AlterRoleSet {
        role: crate::vocabulary::SettingsOf<String>,
        database: Option<String>,
        /// None: RESET ALL.
        name: Option<String>,
        value: SetTo,
    },
    GrantRole(Box<GrantRole>),
    Grant(Box<Grant>),
    AlterDefaultPrivileges {
        /// Whose objects it is about; none: the current role's.
        roles: Vec<String>,
        schemas: Vec<String>,
        grant: Box<Grant>,
    },
    ReassignOwned {
        roles: Vec<String>,
        to: String,
    },
    DropOwned {
        roles: Vec<String>,
        cascade: bool,
    },
    RefreshMaterialized(Refresh),
    Copy(Box<Copy>),
    Set {
        name: String,
        value: SetTo,
        local: bool,
    },
    SetTransaction {
        modes: crate::vocabulary::TransactionModes,
        session: bool,
    },
    SetRole {
        role: Option<String>,
        local: bool,
    },
    SetSessionAuthorization {
        role: Option<String>,
        local: bool,
    },
    Show(Option<String>),
    Reset(Option<String>),
    Begin(crate::vocabulary::TransactionModes),
    Commit {
        chain: bool,
    },
    Rollback {
        chain: bool,
    },
    TwoPhase(crate::vocabulary::TwoPhase),
    Savepoint(String),
    RollbackTo(String),
    Release(String),
    Prepare {
        name: String,
        types: Vec<TypeName>,
        statement: std::sync::Arc<Statement>,
    },
    Execute {
        name: String,
        args: Vec<Expr>,
    },
    Deallocate(Option<String>),
    Declare {
        name: String,
        options: crate::vocabulary::CursorOptions,
        query: Box<Query>,
    },
    Fetch {
        name: String,
        direction: crate::vocabulary::FetchDirection,
        moving: bool,
    },
    Close(Option<String>),
    Lock {
        tables: Vec<Name>,
        mode: crate::vocabulary::TableLock,
        nowait: bool,
    },
    Vacuum {
        tables: Vec<Maintained>,
        options: crate::vocabulary::VacuumOptions,
    },
    Analyze {
        tables: Vec<Maintained>,
        skip_locked: bool,
    },
    /// No table: all that were clustered before.
    Cluster {
        table: Option<Name>,
        index: Option<String>,
    },
    Reindex {
        kind: ObjectKind,
        name: Name,
        concurrently: bool,
    },
    Checkpoint,
    Discard(crate::vocabulary::Discard),
    /// `SET CONSTRAINTS`; no names: ALL.
    SetConstraints {
        names: Vec<Name>,
        deferred: bool,
    },
    Listen(String),
    Notify {
        channel: String,
        payload: String,
    },
    Unlisten(Option<String>),
    Trigger(Box<TriggerStatement>),
    Policy(Box<PolicyStatement>),
    /// Understood, not done: what to call it.
    SecurityLabel(Option<String>),
    Unsupported(&'static str),
}

pub use super::grant::{Grant, GrantKind, GrantOn, GrantRole, GrantedRight};

#[derive(Clone, Debug, PartialEq)]
pub struct CreateTable {
    pub name: Name,
    pub if_not_exists: bool,
    pub persistence: crate::vocabulary::Persistence,
    pub columns: Vec<ColumnDef>,
    /// LIKE clauses, each with how many of the columns come before it.
    pub likes: Vec<(usize, Like)>,
    pub constraints: Vec<TableConstraint>,
    pub options: Vec<(String, String)>,
    pub query: Option<CreateTableAs>,
    /// It keeps the query's rows, which REFRESH brings up to date.
    pub materialized: bool,
    pub inherits: Vec<Name>,
    pub partition_by: Option<PartitionBy>,
    pub partition_of: Option<PartitionOf>,
}

/// `LIKE source INCLUDING …`.
#[derive(Clone, Debug, PartialEq)]
pub struct Like {
    pub source: Name,
    pub comments: bool,
    pub constraints: bool,
    pub defaults: bool,
    pub generated: bool,
    pub identity: bool,
    pub indexes: bool,
    pub storage: bool,
    pub compression: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateTableAs {
    pub names: Vec<String>,
    pub query: Query,
    pub with_data: bool,
}

/// An expression and its text, which is what the catalog keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    pub expr: Expr,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    Table,
    Index,
    Sequence,
    View,
    MaterializedView,
    Schema,
    Role,
    Database,
    Column,
    Constraint,
    Type,
    Domain,
    DomainConstraint,
    /// Kinds of objects there are none of: dropped only IF EXISTS.
    Other(&'static str),
}

#[derive(Clone, Debug, PartialEq)]
pub enum ObjectChange {
    Rename(String),
    SetSchema(String),
    Owner(String),
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateView {
    pub name: Name,
    pub temporary: bool,
    pub columns: Vec<String>,
    pub query: Query,
    pub or_replace: bool,
    pub options: Vec<(String, String)>,
    pub check: Option<CheckOption>,
}

pub use crate::vocabulary::CheckOption;

pub use super::index::{CreateIndex, IndexColumn, IndexKey};

#[derive(Clone, Debug, PartialEq)]
pub enum SequenceOption {
    As(TypeName),
    Start(i64),
    Increment(i64),
    Min(Option<i64>),
    Max(Option<i64>),
    Cache(i64),
    Cycle(bool),
    Restart(Option<i64>),
    /// None: NONE.
    OwnedBy(Option<Name>),
    Name(Name),
}

/// An option of CREATE or ALTER DATABASE as it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct DatabaseOption {
    pub name: String,
    /// None: DEFAULT.
    pub value: Option<String>,
    pub pos: Pos,
}

#[derive(Clone, Debug, PartialEq)]
pub enum RoleOption {
    Superuser(bool),
    Inherit(bool),
    CreateRole(bool),
    CreateDb(bool),
    Login(bool),
    Replication(bool),
    BypassRls(bool),
    ConnectionLimit(i32),
    Password(Option<String>),
    ValidUntil(String),
    InRole(Vec<String>),
    Members(Vec<String>),
    /// Members that may grant it.
    Admins(Vec<String>),
}
