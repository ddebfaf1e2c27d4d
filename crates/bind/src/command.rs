//! Bound statements: what the executor is handed. Data statements are [`BoundQuery`]s; definitions
//! are [`Ddl`]; the rest are [`Command`]s.

mod alter;
mod copy;
mod extension;
pub mod operator;
mod policy;
mod tag;
mod target;
mod transaction;
mod trigger;

pub use policy::PolicyDdl;
pub use target::TargetKind;
pub use throng_syntax::vocabulary::{CursorOptions, Discard, FetchDirection, VacuumOptions};

use std::collections::BTreeSet;
use std::sync::Arc;

use throng_types::{Error, Oid, SqlType};

use crate::tree::expr::{Expr, RoutineCall};
use crate::tree::query::BoundQuery;
use throng_catalog::partition::{PartitionBound, PartitionKey};
use throng_catalog::{
    CastDef, CheckOption, ColumnDef, Deferral, FkAction, Identity, IndexColumn, IndexTerms,
    Lineage, Materialized, Persistence, Relation, RoutineDef, RowSecurityState, TriggerDef,
    TypeDef, ViewDef, ViewDefault,
};
use throng_syntax::parse::ast;
use throng_syntax::vocabulary::{SettingsOf, TableLock, TwoPhase};
use throng_values::func::Volatility;

/// A statement after binding, with what the client should be told although nothing is wrong
/// (`relation "t" does not exist, skipping`).
#[derive(Clone, Debug)]
pub struct Bound {
    pub statement: BoundStatement,
    pub notices: Vec<Error>,
}

#[derive(Clone, Debug)]
pub enum BoundStatement {
    Query(Box<BoundQuery>),
    Explain {
        options: ExplainOptions,
        query: Box<BoundQuery>,
    },
    /// EXPLAIN of a [`Command::Execute`].
    ExplainExecute {
        options: ExplainOptions,
        execute: Box<Command>,
    },
    /// A table of what a [`Command::Execute`] gives.
    CreateTableAsExecute {
        table: Box<ast::CreateTable>,
        names: Vec<String>,
        with_data: bool,
        execute: Box<Command>,
    },
    /// A schema, and what is then made in it, as it was written.
    CreateSchema {
        schema: Box<Ddl>,
        elements: Vec<ast::Statement>,
    },
    Ddl(Box<Ddl>),
    Command(Box<Command>),
}

impl BoundStatement {
    /// The tables whose definitions a command took in when it was bound, to read or to write them
    /// by.
    pub fn tables(&mut self) -> BTreeSet<Oid> {
        let query = match self {
            BoundStatement::Query(query) | BoundStatement::Explain { query, .. } => query,
            BoundStatement::Ddl(ddl) => match &mut **ddl {
                Ddl::CreateTable(CreateTable {
                    source: Some(source),
                    ..
                }) => &mut source.query,
                _ => return BTreeSet::new(),
            },
            BoundStatement::Command(command) => match &mut **command {
                Command::Declare { query, .. } => query,
                Command::Copy(copy) => match &mut copy.subject {
                    CopySubject::To { query } => query,
                    CopySubject::From { table, .. } => return BTreeSet::from([*table]),
                },
                _ => return BTreeSet::new(),
            },
            _ => return BTreeSet::new(),
        };
        query.tables()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct ExplainOptions {
    pub analyze: bool,
    pub verbose: bool,
    pub costs: bool,
    pub buffers: bool,
    pub timing: bool,
    pub summary: bool,
    pub format: ExplainFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExplainFormat {
    Text,
    Json,
    Xml,
    Yaml,
}

/// Changes of the catalog; [`crate::definition::apply`] carries them out on a
/// [`throng_catalog::CatalogEdit`].
#[derive(Clone, Debug)]
pub enum Ddl {
    CreateSchema {
        name: String,
        owner: Oid,
        if_not_exists: bool,
    },
    CreateTable(CreateTable),
    AlterTable {
        table: Oid,
        actions: Vec<AlterTable>,
        /// Not of its children.
        only: bool,
        /// What the statement called it.
        said: TargetKind,
    },
    /// Of an index: its storage parameters, and its columns' statistics targets by number.
    AlterIndex {
        index: Oid,
        options: Vec<(String, String)>,
        targets: Vec<(u16, Option<i16>)>,
        said: TargetKind,
    },
    AttachPartition {
        table: Oid,
        partition: Oid,
        bound: PartitionBound,
    },
    DetachPartition {
        table: Oid,
        partition: Oid,
        step: Detach,
    },
    AttachIndex {
        index: Oid,
        partition: Oid,
    },
    CreateIndex(CreateIndex),
    CreateView(CreateView),
    /// REFRESH MATERIALIZED VIEW.
    RefreshMaterialized {
        table: Oid,
        concurrently: bool,
        with_data: bool,
    },
    /// Its check option, if any is left, its other storage parameters, and its columns' defaults.
    AlterView {
        view: Oid,
        check: Option<CheckOption>,
        options: Vec<(String, String)>,
        defaults: Vec<ViewDefault>,
        said: TargetKind,
    },
    CreateSequence {
        sequence: NewSequence,
        if_not_exists: bool,
    },
    AlterSequence {
        sequence: Oid,
        changes: SequenceOptions,
        owned_by: Option<Option<(Oid, u16)>>,
    },
    Rename {
        target: Target,
        name: String,
        /// Not of its children.
        only: bool,
        /// What the statement called it, where that is not what it is.
        said: Option<TargetKind>,
    },
    SetSchema {
        target: Target,
        schema: Oid,
        /// What the statement called it, where that is not what it is.
        said: Option<TargetKind>,
    },
    SetOwner {
        target: Target,
        owner: Oid,
        /// What the statement called it, where that is not what it is.
        said: Option<TargetKind>,
    },
    Drop {
        targets: Vec<Target>,
        cascade: bool,
    },
    /// DROP INDEX CONCURRENTLY, which lets others use the table until it is its turn.
    DropIndexConcurrently(Target),
    /// Makes indexes anew.
    Reindex {
        indexes: Vec<Oid>,
        concurrently: bool,
    },
    Truncate {
        tables: Vec<Oid>,
        /// Those of them whose children are not meant.
        only: Vec<Oid>,
        restart_identity: bool,
        cascade: bool,
    },
    /// All versions of a table's rows into a new heap: CLUSTER, in an index's order, or VACUUM
    /// FULL.
    Repack {
        table: Oid,
        order: Option<Oid>,
    },
    CreateDatabase(Box<CreateDatabase>),
    AlterDatabase {
        database: Oid,
        changes: DatabaseChanges,
    },
    /// `force`: sessions that use it are ended.
    DropDatabase {
        database: Oid,
        force: bool,
    },
    CreateRole {
        name: String,
        changes: RoleOptions,
    },
    AlterRole {
        role: Oid,
        changes: RoleOptions,
    },
    /// Of a role or of a database. `value` None: RESET; name None: RESET ALL.
    AlterRoleSet {
        role: SettingsOf<Oid>,
        database: Option<Oid>,
        name: Option<String>,
        value: Option<String>,
    },
    DropRole {
        roles: Vec<Oid>,
    },
    GrantRole(GrantRole),
    Grant(Grant),
    AlterDefaultPrivileges(AlterDefaultPrivileges),
    ReassignOwned {
        roles: Vec<Oid>,
        to: Oid,
    },
    DropOwned {
        roles: Vec<Oid>,
        cascade: bool,
    },
    /// The range type, and what its multirange type is called.
    CreateRange {
        def: TypeDef,
        multirange: Option<String>,
    },
    CreateEnum {
        schema: Oid,
        name: String,
        owner: Oid,
        labels: Vec<String>,
    },
    AlterEnum {
        ty: Oid,
        change: EnumChange,
    },
    /// `old`: what it takes the place of, whose oid it has.
    CreateRoutine {
        def: Box<RoutineDef>,
        old: Option<Arc<RoutineDef>>,
        /// The relations that its body names.
        reads: Vec<Oid>,
    },
    AlterRoutine {
        target: Target,
        attributes: Box<RoutineAttributes>,
    },
    CreateOperator(Box<operator::CreateOperator>),
    CreateCast(Box<CastDef>),
    /// `old`: what it takes the place of, whose oid it has.
    CreateTrigger {
        def: Box<TriggerDef>,
        old: Option<Arc<TriggerDef>>,
    },
    /// CREATE or ALTER POLICY.
    Policy(Box<PolicyDdl>),
    /// The definition without its oids.
    CreateDomain(TypeDef),
    AlterDomain(AlterDomain),
    /// The definition without its oid.
    CreateComposite(TypeDef),
    /// What it is now.
    AlterComposite(TypeDef),
    Comment {
        target: Target,
        text: Option<String>,
    },
    Extension(ExtensionDdl),
    /// What it was about is not there, and IF EXISTS said that this is fine.
    Nothing {
        tag: &'static str,
    },
}

pub use alter::{AlterDomain, Detach, DomainTest, SetExpression, TableMark};
pub use copy::{
    ColumnSet, Copy, CopyFormat, CopyHeader, CopyOptions, CopySubject, CopyTarget, CopyVerbosity,
};
pub use extension::ExtensionDdl;
pub use throng_syntax::parse::ast::{EnumChange, RoutineWord};
pub use transaction::{Isolation, TransactionModes};
pub use trigger::EnableTriggers;

/// What was said of a function; the rest keeps its value or default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoutineAttributes {
    pub volatility: Option<Volatility>,
    pub strict: Option<bool>,
    pub security_definer: Option<bool>,
    pub leakproof: Option<bool>,
    pub parallel: Option<char>,
    pub cost: Option<f64>,
    pub rows: Option<f64>,
    /// Settings set and, without a value, reset; no name: all reset.
    pub settings: Vec<(Option<String>, Option<String>)>,
}

impl RoutineAttributes {
    /// A function's settings after these changes.
    pub fn changed_settings(&self, old: &[(String, String)]) -> Vec<(String, String)> {
        let mut settings = old.to_vec();
        for (name, value) in &self.settings {
            match name {
                None => settings.clear(),
                Some(name) => {
                    settings.retain(|(n, _)| n != name);
                    settings.extend(value.clone().map(|value| (name.clone(), value)));
                }
            }
        }
        settings
    }
}

/// A table that VACUUM or ANALYZE goes over.
#[derive(Clone, Debug)]
pub struct Maintained {
    pub table: Oid,
    /// As it was named; a table that was not named is skipped without a word.
    pub name: Option<String>,
    /// The one that was named, of which this is a child.
    pub child_of: Option<Oid>,
    /// The columns that ANALYZE is to look at; none: all.
    pub columns: Vec<String>,
}

/// GRANT or REVOKE of roles.
#[derive(Clone, Debug)]
pub struct GrantRole {
    pub roles: Vec<Oid>,
    pub members: Vec<Oid>,
    pub revoke: bool,
    /// Of a GRANT: what was said of the options. Of a REVOKE: those revoked alone.
    pub admin: Option<bool>,
    pub inherit: Option<bool>,
    pub set: Option<bool>,
    pub grantor: Option<Oid>,
    pub cascade: bool,
}

/// GRANT or REVOKE of rights on objects.
#[derive(Clone, Debug)]
pub struct Grant {
    pub revoke: bool,
    /// WITH GRANT OPTION, GRANT OPTION FOR.
    pub option: bool,
    /// On whole objects; None: ALL PRIVILEGES.
    pub rights: Option<u32>,
    /// On columns by name; None: ALL PRIVILEGES.
    pub columns: Vec<(Option<u32>, Vec<String>)>,
    pub objects: Vec<Granted>,
    /// NONE: PUBLIC.
    pub grantees: Vec<Oid>,
    pub cascade: bool,
}

/// What rights are granted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    pub kind: throng_values::acl::Kind,
    pub oid: Oid,
    /// It was called a table, whatever relation it is.
    pub as_table: bool,
}

#[derive(Clone, Debug)]
pub struct AlterDefaultPrivileges {
    /// Whose objects.
    pub roles: Vec<Oid>,
    /// NONE: in every schema.
    pub schemas: Vec<Oid>,
    pub kind: throng_values::acl::Kind,
    pub revoke: bool,
    pub option: bool,
    /// None: ALL PRIVILEGES.
    pub rights: Option<u32>,
    pub grantees: Vec<Oid>,
    pub cascade: bool,
}

/// An object a command is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    pub kind: TargetKind,
    /// For a column: its table's.
    pub oid: Oid,
}

/// A view to make, or to put in the place of `old`, whose oid it has.
#[derive(Clone, Debug)]
pub struct CreateView {
    pub view: ViewDef,
    pub old: Option<Arc<ViewDef>>,
    /// What the definition was bound over: it holds while these are as they were.
    pub over: Vec<Relation>,
}

#[derive(Clone, Debug)]
pub struct CreateTable {
    pub schema: Oid,
    pub name: String,
    pub owner: Oid,
    pub if_not_exists: bool,
    pub persistence: Persistence,
    pub columns: Vec<NewColumn>,
    pub constraints: Vec<NewConstraint>,
    pub options: Vec<(String, String)>,
    /// What LIKE copies once the table is there, in this order.
    pub copied: Vec<Copied>,
    /// CREATE TABLE AS.
    pub source: Option<TableSource>,
    /// CREATE MATERIALIZED VIEW.
    pub materialized: Option<Materialized>,
    /// Tables to inherit from; with `bound` the one it is a partition of.
    pub parents: Vec<Oid>,
    pub partitioned: Option<PartitionKey>,
    pub bound: Option<PartitionBound>,
}

/// Where a table made by CREATE TABLE AS has its columns and rows from.
#[derive(Clone, Debug)]
pub struct TableSource {
    pub query: Box<BoundQuery>,
    /// Not WITH NO DATA.
    pub with_data: bool,
}

/// What a table takes from another by LIKE.
#[derive(Clone, Debug)]
pub enum Copied {
    ColumnComment {
        attnum: u16,
        text: String,
    },
    /// By the constraint's name.
    ConstraintComment {
        name: String,
        text: String,
    },
    Key(NewConstraint),
    Index(CreateIndex),
    /// Of the key or index before it.
    IndexComment(String),
}

#[derive(Clone, Debug)]
pub struct NewColumn {
    pub def: ColumnDef,
    /// `serial` or identity: the sequence to make with it.
    pub sequence: Option<SequenceOptions>,
    /// The default bound and cast to the column's type, to fill rows that are there already.
    pub default: Option<Expr>,
    /// The expression of a generated column over the row by `Slot(attnum - 1)`.
    pub generated: Option<Expr>,
}

#[derive(Clone, Debug)]
pub struct NewConstraint {
    /// None: a name is chosen as PostgreSQL does.
    pub name: Option<String>,
    pub kind: NewConstraintKind,
    pub not_valid: bool,
    pub deferral: Deferral,
    pub lineage: Lineage,
    /// ALTER TABLE ONLY: a key that gets no parts on the partitions.
    pub only: bool,
}

impl NewConstraint {
    /// Whether rows that are there are to meet it.
    pub fn is_checked(&self) -> bool {
        !self.not_valid && self.deferral.is_enforced()
    }
}

#[derive(Clone, Debug)]
pub enum NewConstraintKind {
    /// Column names, of the table being made or changed.
    PrimaryKey {
        columns: Vec<String>,
        /// WITHOUT OVERLAPS of the last column.
        without_overlaps: bool,
        include: Vec<String>,
        options: Vec<(String, String)>,
    },
    Unique {
        columns: Vec<String>,
        without_overlaps: bool,
        include: Vec<String>,
        nulls_not_distinct: bool,
        options: Vec<(String, String)>,
    },
    Exclude(Box<NewExclusion>),
    /// `ALTER TABLE … ADD … USING INDEX`.
    UsingIndex {
        index: Oid,
        primary: bool,
        /// Where it stands in the statement, from 1: errors point there.
        position: u32,
    },
    /// `bound` is over the row by `Slot(attnum - 1)`.
    Check {
        expr: String,
        columns: Vec<String>,
        bound: Expr,
    },
    ForeignKey {
        columns: Vec<String>,
        /// None: the table being made.
        ref_table: Option<Oid>,
        /// Empty: the primary key.
        ref_columns: Vec<String>,
        on_update: FkAction,
        on_delete: FkAction,
        match_full: bool,
        /// Whether the last column of each side is a PERIOD.
        periods: (bool, bool),
    },
}

/// An exclusion constraint. Columns are told by their names, as those of other constraints are.
#[derive(Clone, Debug)]
pub struct NewExclusion {
    /// Of each key its column, none for an expression; and how it is ordered.
    pub keys: Vec<(Option<String>, IndexColumn)>,
    /// What of them are no plain columns; `include` and `uses` are told beside.
    pub terms: IndexTerms,
    pub uses: Vec<String>,
    pub include: Vec<String>,
    pub options: Vec<(String, String)>,
}

#[derive(Clone, Debug)]
pub enum AlterTable {
    AddColumn {
        column: Box<NewColumn>,
        constraints: Vec<NewConstraint>,
    },
    DropColumn {
        attnum: u16,
        cascade: bool,
    },
    /// `sequence`: the default is its next value.
    SetDefault {
        attnum: u16,
        default: Option<String>,
        sequence: Option<Oid>,
    },
    /// `value`: the expression of a virtual column.
    SetNotNull {
        attnum: u16,
        value: Option<Expr>,
        /// As it was said.
        name: Option<String>,
        no_inherit: bool,
    },
    DropNotNull(u16),
    RenameNotNull {
        attnum: u16,
        name: String,
    },
    SetType {
        attnum: u16,
        ty: SqlType,
        domain: Option<Oid>,
        collation: Option<String>,
        /// USING, or the column cast: over the old row, `Slot(attnum - 1)`.
        using: Box<Expr>,
        /// The stored bytes stay valid, as for `varchar(10)` to `varchar(20)`.
        same_bytes: bool,
    },
    /// An index whose columns have other types: its expressions and condition, bound anew.
    IndexTerms {
        index: Oid,
        terms: IndexTerms,
    },
    AddIdentity {
        attnum: u16,
        identity: Identity,
        options: SequenceOptions,
    },
    SetIdentity {
        attnum: u16,
        identity: Option<Identity>,
        options: SequenceOptions,
    },
    DropIdentity {
        attnum: u16,
    },
    SetExpression(SetExpression),
    /// What was computed is kept as it is.
    DropExpression {
        attnum: u16,
    },
    AddConstraint(NewConstraint),
    DropConstraint {
        constraint: Oid,
        cascade: bool,
    },
    /// `check`: a CHECK's condition over the row by `Slot(attnum - 1)`.
    ValidateConstraint {
        constraint: Oid,
        check: Option<Expr>,
    },
    /// A foreign key's.
    AlterConstraint {
        constraint: Oid,
        deferral: Deferral,
    },
    SetOptions(Vec<(String, String)>),
    ResetOptions(Vec<String>),
    SetPersistence(Persistence),
    SetOwner(Oid),
    Inherit(Oid),
    NoInherit(Oid),
    Mark(TableMark),
    EnableTriggers(EnableTriggers),
    RowSecurity(RowSecurityState),
    /// How much ANALYZE looks at of the column; none: `default_statistics_target`.
    SetStatistics {
        attnum: u16,
        target: Option<i16>,
    },
    SetColumnOptions {
        attnum: u16,
        options: Vec<(String, String)>,
    },
    ResetColumnOptions {
        attnum: u16,
        names: Vec<String>,
    },
}

#[derive(Clone, Debug)]
pub struct CreateIndex {
    /// None: a name is chosen as PostgreSQL does.
    pub name: Option<String>,
    pub table: Oid,
    /// Not on its partitions.
    pub only: bool,
    pub columns: Vec<IndexColumn>,
    pub unique: bool,
    pub nulls_not_distinct: bool,
    pub if_not_exists: bool,
    pub concurrently: bool,
    pub options: Vec<(String, String)>,
    pub terms: IndexTerms,
}

#[derive(Clone, Debug)]
pub struct NewSequence {
    pub schema: Oid,
    pub name: String,
    pub owner: Oid,
    pub options: SequenceOptions,
    pub owned_by: Option<(Oid, u16)>,
}

/// What was said of a sequence; the rest keeps its value or default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SequenceOptions {
    /// int2, int4 or int8.
    pub ty: Option<Oid>,
    pub start: Option<i64>,
    pub increment: Option<i64>,
    /// `Some(None)`: NO MINVALUE.
    pub min: Option<Option<i64>>,
    pub max: Option<Option<i64>>,
    pub cache: Option<i64>,
    pub cycle: Option<bool>,
    /// `Some(None)`: RESTART at the start value.
    pub restart: Option<Option<i64>>,
    /// `SEQUENCE NAME` of an identity column's sequence: its schema and its name.
    pub name: Option<(Oid, String)>,
}

#[derive(Clone, Debug)]
pub struct CreateDatabase {
    /// One that the system knows, for its own.
    pub oid: Option<Oid>,
    pub name: String,
    pub owner: Oid,
    pub template: Oid,
    pub changes: DatabaseChanges,
}

/// What CREATE and ALTER DATABASE may say of a database.
#[derive(Clone, Debug, Default)]
pub struct DatabaseChanges {
    pub is_template: Option<bool>,
    pub allow_connections: Option<bool>,
    /// -1 for none.
    pub connection_limit: Option<i32>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoleOptions {
    pub superuser: Option<bool>,
    pub inherit: Option<bool>,
    pub create_role: Option<bool>,
    pub create_db: Option<bool>,
    pub login: Option<bool>,
    pub replication: Option<bool>,
    pub bypass_rls: Option<bool>,
    pub connection_limit: Option<i32>,
    /// As typed, to be made into a verifier; `Some(None)`: no password.
    pub password: Option<Option<String>>,
    pub valid_until: Option<String>,
    /// Groups to join.
    pub in_roles: Vec<Oid>,
    /// Roles that join it.
    pub members: Vec<Oid>,
    /// Roles that join it and may grant it.
    pub admins: Vec<Oid>,
}

/// Everything that is neither a query nor a change of the catalog.
#[derive(Clone, Debug)]
pub enum Command {
    /// The empty statement.
    Empty,
    Begin(TransactionModes),
    Commit {
        chain: bool,
    },
    Rollback {
        chain: bool,
    },
    TwoPhase(TwoPhase),
    Savepoint(String),
    RollbackTo(String),
    Release(String),
    SetTransaction {
        modes: TransactionModes,
        session: bool,
    },
    /// `value` None: DEFAULT. Several words of a list come joined by `, `.
    Set {
        name: String,
        value: Option<String>,
        local: bool,
    },
    /// None: ALL.
    Reset(Option<String>),
    /// None: ALL.
    Show(Option<String>),
    SetRole {
        role: Option<String>,
        local: bool,
    },
    SetSessionAuthorization {
        role: Option<String>,
        local: bool,
    },
    /// `types` may be shorter than the parameters used; the rest is inferred.
    Prepare {
        name: String,
        types: Vec<SqlType>,
        statement: Arc<ast::Statement>,
    },
    /// Arguments are cast to the parameters' types and have no input row.
    Execute {
        name: String,
        args: Vec<Expr>,
    },
    /// None: ALL.
    Deallocate(Option<String>),
    Declare {
        name: String,
        query: Box<BoundQuery>,
        options: CursorOptions,
    },
    Fetch {
        name: String,
        direction: FetchDirection,
        moving: bool,
    },
    /// None: ALL.
    Close(Option<String>),
    Copy(Box<Copy>),
    LockTable {
        tables: Vec<Oid>,
        mode: TableLock,
        nowait: bool,
    },
    /// Nothing is left to do it to; its tag.
    NothingTo(&'static str),
    Vacuum {
        tables: Vec<Maintained>,
        options: VacuumOptions,
    },
    Analyze {
        tables: Vec<Maintained>,
        skip_locked: bool,
    },
    /// A table by one of its indexes. A partitioned one: each of its partitions by the index's
    /// part.
    Cluster {
        table: Oid,
        index: Oid,
    },
    /// All tables that were clustered before, each by the index of that time.
    ClusterAll,
    /// Indexes to build anew.
    Reindex {
        indexes: Vec<Oid>,
        concurrently: bool,
        /// Named where it cannot be run in a transaction block.
        alone: Option<&'static str>,
    },
    Checkpoint,
    Call(Box<RoutineCall>),
    Do(throng_syntax::parse::ast::DoBlock),
    Discard(Discard),
    /// No names: all deferrable constraints. `constraints` holds the deferrable ones of the names
    /// given.
    SetConstraints {
        all: bool,
        constraints: Vec<Oid>,
        deferred: bool,
    },
    Listen(String),
    Notify {
        channel: String,
        payload: String,
    },
    Unlisten(Option<String>),
}
