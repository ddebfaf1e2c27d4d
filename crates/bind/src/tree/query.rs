//! The bound query: what a statement means, before anything is decided about how to run it.

pub mod walk;

use std::collections::HashSet;
use std::sync::Arc;
pub use throng_syntax::vocabulary::{JoinKind, LockWait, RowLockStrength, SetOp};

use foldhash::fast::FixedState;

use throng_types::{Datum, Oid, SqlType};

use crate::tree::expr::{Expr, RelId, RoutineCall, SortKey, Var};
use crate::tree::tablesample::Sample;
use crate::tree::window::Window;
use throng_catalog::{TableDef, ViewDef, VirtualTable};
pub use throng_syntax::parse::ast::MergeMatch;
use throng_values::func::system::SEQUENCE;
use throng_values::func::{Function, RelColumn};

/// A SELECT, VALUES or set operation with its ORDER BY, LIMIT and locking clauses.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    pub body: Body,
    /// Keys over the body's input (SELECT) or its output, as `Var`s of `output` (set operations).
    pub order: Vec<SortKey>,
    pub limit: Option<Expr>,
    /// The rows that are equal to the last one in `order` come too.
    pub ties: bool,
    pub offset: Option<Expr>,
    pub locks: Vec<RowLock>,
    /// The range-table entry that stands for this query's own output columns.
    pub output: RelId,
    /// The WITH queries written before this one, by their index in the statement.
    pub ctes: Vec<u32>,
    /// What those need of the queries around this one, as variables.
    pub outside: Vec<Expr>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    Select(Box<Select>),
    /// Rows of expressions of the same types.
    Values {
        rows: Vec<Vec<Expr>>,
        columns: Vec<Target>,
    },
    SetOp {
        op: SetOp,
        all: bool,
        left: Box<Query>,
        right: Box<Query>,
        columns: Vec<Target>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    /// Comma-separated items, joined by `filter`.
    pub from: Vec<FromItem>,
    pub filter: Option<Expr>,
    /// What is grouped by, each expression once.
    pub group_by: Vec<Expr>,
    /// The grouping sets, as places in `group_by`; none: the one set of all of it.
    pub grouping_sets: Vec<Vec<u32>>,
    /// What was written, for showing it.
    pub grouping: Grouping,
    /// Set when there is a GROUP BY, a HAVING or an aggregate.
    pub grouped: bool,
    pub having: Option<Expr>,
    /// Those of the WINDOW clause and of the OVERs;
    /// [`WindowCall`](crate::tree::window::WindowCall)s say which.
    pub windows: Vec<Window>,
    /// Aggregates over this query's rows that queries inside it ask for, as columns of its output's
    /// entry.
    pub lifted: Vec<Expr>,
    pub targets: Vec<Target>,
    pub distinct: Distinct,
}

impl Select {
    /// SELECT targets FROM items, and nothing else.
    pub fn plain(from: Vec<FromItem>, targets: Vec<Target>) -> Select {
        Select {
            from,
            filter: None,
            group_by: vec![],
            grouping_sets: vec![],
            grouping: Grouping::default(),
            grouped: false,
            having: None,
            windows: vec![],
            lifted: vec![],
            targets,
            distinct: Distinct::No,
        }
    }
}

/// A GROUP BY as it was written; columns are places in [`Select::group_by`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grouping {
    /// How many of the grouping expressions were written: those after them depend on a primary key
    /// among them.
    pub written: usize,
    /// GROUP BY DISTINCT
    pub distinct: bool,
    /// The items, where they are not all plain columns.
    pub items: Vec<GroupingItem>,
    /// The primary keys, as constraints.
    pub keys: Vec<Oid>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum GroupingItem {
    /// `a`, `(a, b)`, `()`
    Columns(Vec<u32>),
    Rollup(Vec<Vec<u32>>),
    Cube(Vec<Vec<u32>>),
    Sets(Vec<GroupingItem>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Distinct {
    No,
    All,
    On(Vec<Expr>),
}

/// An output column.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    pub expr: Expr,
    pub name: String,
}

#[derive(Clone, Debug, PartialEq)]
pub enum FromItem {
    Rel(Box<Rel>),
    Join {
        kind: JoinKind,
        left: Box<FromItem>,
        right: Box<FromItem>,
        on: Option<Expr>,
        /// The columns of USING or NATURAL that `on` compares.
        using: Vec<String>,
        /// In a definition that is to be written again: what it is called as a whole.
        alias: Option<Box<JoinAlias>>,
    },
}

/// `(a JOIN b) AS j (x, y)`
#[derive(Clone, Debug, PartialEq)]
pub struct JoinAlias {
    pub name: String,
    pub columns: Vec<JoinColumn>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct JoinColumn {
    pub name: String,
    /// The name was written behind the join's.
    pub written: bool,
    pub expr: Expr,
}

/// A range-table entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Rel {
    pub id: RelId,
    /// The name it goes by in the query.
    pub alias: String,
    /// The name was written after it, and the names of its first columns.
    pub aliased: bool,
    pub column_aliases: Vec<String>,
    pub kind: RelKind,
    /// Of a table: without its children.
    pub only: bool,
    /// Of a table: which of its rows.
    pub sample: Option<Box<Sample>>,
    /// What it offers, by position (for tables: by attribute number - 1, dropped ones included).
    pub columns: Vec<RelColumn>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum RelKind {
    Table(Arc<TableDef>),
    Virtual(&'static VirtualTable),
    /// May refer to entries before it where `lateral`.
    Subquery {
        query: Box<Query>,
        lateral: bool,
    },
    /// A view, with the query it stands for.
    View {
        view: Arc<ViewDef>,
        query: Box<Query>,
    },
    /// A function in FROM. Set-returning ones give their rows, others one row.
    Function {
        func: &'static Function,
        args: Vec<Expr>,
        /// Its values are of a composite type, whose fields are the columns.
        composite: bool,
        ordinality: bool,
        lateral: bool,
    },
    /// A function in FROM that a user made.
    Routine {
        call: Box<RoutineCall>,
        /// Its rows as a query over its arguments, which are the query's parameters: where the body
        /// is no more than that.
        inline: Option<Box<Query>>,
        ordinality: bool,
        lateral: bool,
    },
    /// Functions in FROM side by side, each an entry of its own; the short ones are filled up with
    /// NULLs.
    RowsFrom {
        items: Vec<FromItem>,
        ordinality: bool,
    },
    /// A WITH query that is run once and read by several.
    Cte(u32),
    /// In the recursive term of this WITH query: the rows its last step gave.
    WorkTable(u32),
}

/// Any bound data statement.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundQuery {
    pub kind: QueryKind,
    /// WITH queries that [`RelKind::Cte`] refers to.
    pub ctes: Vec<Cte>,
    /// Types of `$1`, `$2`, …, given or inferred.
    pub params: Vec<SqlType>,
    /// How many [`RelId`]s the binder gave out.
    pub rel_count: u32,
    /// The views whose queries became part of it.
    pub views: Vec<Oid>,
    /// What a row of a table's entry must meet before anything else that could tell of it looks at
    /// it: row security, then conditions of views with `security_barrier`.
    pub security: Vec<(RelId, Vec<Expr>)>,
}

/// A WITH query.
#[derive(Clone, Debug, PartialEq)]
pub struct Cte {
    pub name: String,
    /// The names written after its own for its first columns.
    pub aliases: Vec<String>,
    pub body: CteBody,
    /// MATERIALIZED was written: run it on its own even where it is read once. NOT MATERIALIZED:
    /// false.
    pub materialized: Option<bool>,
    /// Places that read it, its own recursive term apart.
    pub uses: u32,
}

#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant)] // A few a statement.
pub enum CteBody {
    Query(Query),
    /// WITH RECURSIVE: `term` reads what the step before gave, as [`RelKind::WorkTable`], and is
    /// run until it gives nothing.
    Recursive {
        init: Query,
        term: Query,
        /// UNION ALL: rows that were there before count again.
        all: bool,
    },
    /// An INSERT, UPDATE, DELETE or MERGE, which is run once whoever reads what it returns.
    Write(Box<QueryKind>),
}

#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant)] // One a statement, and held in a box.
pub enum QueryKind {
    Select(Query),
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    Merge(Box<Merge>),
}

impl QueryKind {
    /// Output columns: name and type; of a write RETURNING's, none where there is none.
    pub fn columns(&self) -> Vec<RelColumn> {
        match self {
            QueryKind::Select(query) => query.columns(),
            QueryKind::Insert(insert) => named(&insert.returning),
            QueryKind::Update(update) => named(&update.returning),
            QueryKind::Delete(delete) => named(&delete.returning),
            QueryKind::Merge(merge) => named(&merge.returning),
        }
    }
}

fn named(targets: &[Target]) -> Vec<RelColumn> {
    let column = |t: &Target| RelColumn {
        name: t.name.clone(),
        ty: t.expr.ty(),
    };
    targets.iter().map(column).collect()
}

/// INSERT.
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    pub table: Arc<TableDef>,
    /// Stands for the new row in `returning` and `checks`.
    pub rel: RelId,
    /// Stands in `returning` for the row that ON CONFLICT has replaced.
    pub old: RelId,
    pub source: Query,
    /// For each of the table's columns, by attribute number: its value over the source's output
    /// (variables of `source.output`); defaults filled in, dropped columns NULL.
    pub values: Vec<Expr>,
    /// Stored columns that are computed from the new row, under `rel`, however it came about.
    pub generated: Vec<(u16, Expr)>,
    pub on_conflict: Option<OnConflict>,
    pub checks: Vec<Check>,
    pub returning: Vec<Target>,
}

/// A condition that a new row must not break.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The constraint's name, or the view's; of a policy what is said of a row that it refuses.
    pub name: String,
    pub expr: Expr,
    pub of: CheckOf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckOf {
    /// A CHECK constraint.
    Constraint,
    /// NOT NULL of a virtual column, which this attribute number has.
    NotNull(u16),
    /// A view WITH CHECK OPTION.
    View,
    /// Row security, where a row comes about so: it must hold, and not only be unknown.
    Policy(Arrival),
}

/// How a new row came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    Inserted,
    Updated,
}

#[derive(Clone, Debug, PartialEq)]
pub struct OnConflict {
    /// Unique indexes whose conflict is taken care of; empty: any.
    pub arbiters: Vec<Oid>,
    pub action: ConflictAction,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ConflictAction {
    Nothing,
    /// Expressions over the row that is there (the INSERT's `rel`) and the one proposed.
    Update {
        excluded: RelId,
        set: Vec<(u16, Expr)>,
        filter: Option<Expr>,
        /// What row security asks of the row that is there: 42501 where it does not hold.
        guards: Vec<Check>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    pub table: Arc<TableDef>,
    pub rel: RelId,
    /// Without its children.
    pub only: bool,
    /// The FROM items; the target is not among them.
    pub from: Vec<FromItem>,
    pub filter: Option<Expr>,
    /// Attribute numbers with their new values, over the joined row.
    pub set: Vec<(u16, Expr)>,
    /// Stored columns that are computed from the new row, under `new`.
    pub generated: Vec<(u16, Expr)>,
    /// Over the new row, under `new`.
    pub checks: Vec<Check>,
    pub returning: Vec<Target>,
    /// Stands for the new row in `checks` and `returning`.
    pub new: RelId,
    /// WHERE CURRENT OF this cursor, which `filter` asks for by itself.
    pub current_of: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    pub table: Arc<TableDef>,
    pub rel: RelId,
    /// Without its children.
    pub only: bool,
    /// The USING items; the target is not among them.
    pub from: Vec<FromItem>,
    pub filter: Option<Expr>,
    pub returning: Vec<Target>,
    /// As [`Update::current_of`].
    pub current_of: Option<String>,
}

/// MERGE.
#[derive(Clone, Debug, PartialEq)]
pub struct Merge {
    pub table: Arc<TableDef>,
    /// The target's row that is there.
    pub rel: RelId,
    /// The source joined with the target, outer where rows without partner are acted on.
    pub from: Vec<FromItem>,
    pub filter: Option<Expr>,
    /// Whether a row of the target belongs to the source's row beside it.
    pub matched: Expr,
    /// What the views that are written through show of the target.
    pub visible: Option<Expr>,
    pub actions: Vec<MergeAction>,
    /// Stored columns that are computed from the new row, under `row`.
    pub generated: Vec<(u16, Expr)>,
    /// Over the new row, under `row`.
    pub checks: Vec<Check>,
    pub returning: Vec<Target>,
    /// Stands in `returning` for the target's row: the new one, of a DELETE the old one. Its column
    /// [`crate::tree::expr::system::MERGE_ACTION`] is what was done.
    pub row: RelId,
    /// The new row in `returning`, of a DELETE NULLs.
    pub new: RelId,
    /// Not its children.
    pub only: bool,
}

/// WHEN … THEN.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeAction {
    pub of: MergeMatch,
    pub condition: Option<Expr>,
    pub write: MergeWrite,
    /// What row security asks of the target's row that is there.
    pub guards: Vec<Check>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum MergeWrite {
    Nothing,
    /// For each of the table's columns its value, over the source's row.
    Insert(Vec<Expr>),
    Update(Vec<(u16, Expr)>),
    Delete,
}

impl Merge {
    pub fn for_each_expr<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        self.from.iter().for_each(|item| item.for_each_expr(f));
        self.filter.iter().for_each(&mut *f);
        f(&self.matched);
        self.visible.iter().for_each(&mut *f);
        for action in &self.actions {
            action.condition.iter().for_each(&mut *f);
            action.guards.iter().for_each(|c| f(&c.expr));
            match &action.write {
                MergeWrite::Insert(values) => values.iter().for_each(&mut *f),
                MergeWrite::Update(set) => set.iter().for_each(|(_, e)| f(e)),
                MergeWrite::Nothing | MergeWrite::Delete => {}
            }
        }
        self.generated.iter().for_each(|(_, e)| f(e));
        self.checks.iter().for_each(|c| f(&c.expr));
        self.returning.iter().for_each(|t| f(&t.expr));
    }
}

/// FOR UPDATE and its kin, on one table of the query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowLock {
    pub rel: RelId,
    pub strength: RowLockStrength,
    pub wait: LockWait,
    /// The output of the query whose clause it is: that one, or one that reads from it.
    pub origin: RelId,
}

impl CteBody {
    /// The variables in it that are not of its own entries.
    pub fn outside(&self) -> Vec<Expr> {
        let mut own: HashSet<RelId, FixedState> = HashSet::default();
        let mut vars: Vec<&Var> = Vec::new();
        for query in self.queries() {
            query.walk(true, &mut |part| match part {
                walk::QueryPart::Query(query) => {
                    own.insert(query.output);
                }
                walk::QueryPart::Rel(rel) => {
                    own.insert(rel.id);
                }
                walk::QueryPart::Expr(Expr::Var(var)) => vars.push(var),
                walk::QueryPart::Expr(_) => {}
            });
        }
        vars.retain(|var| !own.contains(&var.rel));
        let mut outside: Vec<Expr> = Vec::new();
        for var in vars {
            let var = Expr::Var(var.clone());
            if !outside.contains(&var) {
                outside.push(var);
            }
        }
        outside
    }

    /// The queries it is made of; none of a write.
    pub fn queries(&self) -> Vec<&Query> {
        match self {
            CteBody::Query(query) => vec![query],
            CteBody::Recursive { init, term, .. } => vec![init, term],
            CteBody::Write(_) => vec![],
        }
    }

    pub fn queries_mut(&mut self) -> Vec<&mut Query> {
        match self {
            CteBody::Query(query) => vec![query],
            CteBody::Recursive { init, term, .. } => vec![init, term],
            CteBody::Write(_) => vec![],
        }
    }
}

impl Query {
    /// A body with nothing behind it.
    pub fn of_body(body: Body, output: RelId) -> Query {
        Query {
            body,
            order: vec![],
            limit: None,
            ties: false,
            offset: None,
            locks: vec![],
            output,
            ctes: vec![],
            outside: vec![],
        }
    }

    /// Output columns: name and type.
    pub fn columns(&self) -> Vec<RelColumn> {
        named(match &self.body {
            Body::Select(select) => &select.targets,
            Body::Values { columns, .. } | Body::SetOp { columns, .. } => columns,
        })
    }
}

impl Query {
    /// Calls `f` on every expression of this query, nested queries in FROM included; not on the
    /// expressions below them, nor on those of subqueries inside expressions.
    pub fn for_each_expr<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        match &self.body {
            Body::Select(select) => {
                select.from.iter().for_each(|item| item.for_each_expr(f));
                select.filter.iter().for_each(&mut *f);
                select.group_by.iter().for_each(&mut *f);
                select.having.iter().for_each(&mut *f);
                select.windows.iter().for_each(|w| w.for_each_expr(f));
                select.lifted.iter().for_each(&mut *f);
                select.targets.iter().for_each(|t| f(&t.expr));
                if let Distinct::On(exprs) = &select.distinct {
                    exprs.iter().for_each(&mut *f);
                }
            }
            Body::Values { rows, .. } => rows.iter().flatten().for_each(&mut *f),
            Body::SetOp { left, right, .. } => {
                left.for_each_expr(f);
                right.for_each_expr(f);
            }
        }
        self.order.iter().for_each(|k| f(&k.expr));
        self.limit.iter().for_each(&mut *f);
        self.offset.iter().for_each(&mut *f);
        self.outside.iter().for_each(f);
    }

    /// Every variable used anywhere in the query, subqueries included.
    pub fn for_each_var(&self, f: &mut dyn FnMut(&Var)) {
        self.for_each_expr(&mut |e| e.for_each_var(f));
    }

    /// The entries the query itself brings in, those of nested queries included.
    pub fn for_each_rel(&self, f: &mut dyn FnMut(RelId)) {
        f(self.output);
        match &self.body {
            Body::Select(select) => select.from.iter().for_each(|item| item.for_each_rel(f)),
            Body::Values { .. } => {}
            Body::SetOp { left, right, .. } => {
                left.for_each_rel(f);
                right.for_each_rel(f);
            }
        }
    }
}

impl Rel {
    /// What a query goes by whose rows are compared with a row.
    pub const COMPARED: &'static str = "*COMPARED*";

    /// A query in FROM that was given no name, with its columns.
    pub fn unnamed_subquery(id: RelId, query: Query, columns: Vec<RelColumn>) -> Rel {
        Rel::subquery(id, "unnamed_subquery", query, columns)
    }

    /// A query in FROM, which goes by a name that was not written after it.
    pub fn subquery(id: RelId, alias: &str, query: Query, columns: Vec<RelColumn>) -> Rel {
        Rel {
            id,
            alias: alias.to_owned(),
            aliased: false,
            column_aliases: vec![],
            kind: RelKind::Subquery {
                query: Box::new(query),
                lateral: false,
            },
            only: false,
            sample: None,
            columns,
        }
    }

    /// The sequence that it reads as a table.
    pub fn sequence(&self) -> Option<Oid> {
        match &self.kind {
            RelKind::Function { func, args, .. } if **func == SEQUENCE => match args.first() {
                Some(Expr::Const(Datum::Oid(sequence), _)) => Some(Oid(*sequence)),
                _ => None,
            },
            _ => None,
        }
    }
}

impl FromItem {
    /// The whole table under an entry.
    pub fn of_table(
        table: &Arc<TableDef>,
        rel: RelId,
        alias: Option<&str>,
        only: bool,
    ) -> FromItem {
        let column = |c: &throng_catalog::ColumnDef| RelColumn {
            name: c.name.clone(),
            ty: c.ty,
        };
        FromItem::Rel(Box::new(Rel {
            id: rel,
            alias: alias.unwrap_or(&table.name).to_owned(),
            aliased: alias.is_some(),
            column_aliases: vec![],
            kind: RelKind::Table(table.clone()),
            only,
            sample: None,
            columns: table.columns.iter().map(column).collect(),
        }))
    }

    pub fn for_each_expr<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        match self {
            FromItem::Rel(rel) => match &rel.kind {
                RelKind::Table(_) => rel.sample.iter().flat_map(|s| s.exprs()).for_each(f),
                RelKind::Subquery { query, .. } | RelKind::View { query, .. } => {
                    query.for_each_expr(f)
                }
                RelKind::Function { args, .. } => args.iter().for_each(f),
                RelKind::Routine { call, .. } => call.args.iter().for_each(f),
                RelKind::RowsFrom { items, .. } => {
                    items.iter().for_each(|item| item.for_each_expr(f));
                }
                RelKind::Virtual(_) | RelKind::Cte(_) | RelKind::WorkTable(_) => {}
            },
            FromItem::Join {
                left, right, on, ..
            } => {
                left.for_each_expr(f);
                right.for_each_expr(f);
                on.iter().for_each(f);
            }
        }
    }
    pub fn for_each_rel(&self, f: &mut dyn FnMut(RelId)) {
        match self {
            FromItem::Rel(rel) => {
                f(rel.id);
                match &rel.kind {
                    RelKind::Subquery { query, .. } | RelKind::View { query, .. } => {
                        query.for_each_rel(f);
                    }
                    RelKind::RowsFrom { items, .. } => {
                        items.iter().for_each(|item| item.for_each_rel(f));
                    }
                    _ => {}
                }
            }
            FromItem::Join { left, right, .. } => {
                left.for_each_rel(f);
                right.for_each_rel(f);
            }
        }
    }
    /// The entries at this level only.
    pub fn rels(&self, into: &mut Vec<RelId>) {
        match self {
            FromItem::Rel(rel) => into.push(rel.id),
            FromItem::Join { left, right, .. } => {
                left.rels(into);
                right.rels(into);
            }
        }
    }
}

impl Expr {
    /// Every variable in the expression, those in subqueries included.
    pub fn for_each_var(&self, f: &mut dyn FnMut(&Var)) {
        match self {
            Expr::Var(var) => f(var),
            Expr::Subquery(sub) => sub.query.for_each_var(f),
            _ => {}
        }
        self.for_each_child(&mut |e| e.for_each_var(f));
    }
}

/// A condition on the new row.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckExpr {
    pub of: CheckOf,
    pub name: String,
    pub expr: Expr,
}

impl QueryKind {
    pub fn for_each_var(&self, f: &mut dyn FnMut(&Var)) {
        let mut expr = |e: &Expr| e.for_each_var(f);
        match self {
            QueryKind::Select(query) => query.for_each_var(f),
            QueryKind::Insert(insert) => {
                insert.values.iter().for_each(&mut expr);
                insert.generated.iter().for_each(|(_, e)| expr(e));
                insert.checks.iter().for_each(|c| expr(&c.expr));
                insert.returning.iter().for_each(|t| expr(&t.expr));
                if let Some(ConflictAction::Update {
                    set,
                    filter,
                    guards,
                    ..
                }) = insert.on_conflict.as_ref().map(|c| &c.action)
                {
                    set.iter().for_each(|(_, e)| expr(e));
                    guards.iter().for_each(|c| expr(&c.expr));
                    filter.iter().for_each(expr);
                }
                insert.source.for_each_var(f);
            }
            QueryKind::Update(update) => {
                update.filter.iter().for_each(&mut expr);
                update.set.iter().for_each(|(_, e)| expr(e));
                update.generated.iter().for_each(|(_, e)| expr(e));
                update.checks.iter().for_each(|c| expr(&c.expr));
                update.returning.iter().for_each(|t| expr(&t.expr));
                update
                    .from
                    .iter()
                    .for_each(|item| item.for_each_expr(&mut |e| e.for_each_var(f)));
            }
            QueryKind::Delete(delete) => {
                delete.filter.iter().for_each(&mut expr);
                delete.returning.iter().for_each(|t| expr(&t.expr));
                delete
                    .from
                    .iter()
                    .for_each(|item| item.for_each_expr(&mut |e| e.for_each_var(f)));
            }
            QueryKind::Merge(merge) => merge.for_each_expr(&mut |e| e.for_each_var(f)),
        }
    }
}
