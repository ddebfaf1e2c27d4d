//! Where cursors stand: what WHERE CURRENT OF asks for.
//!
//! ```text
//! DECLARE   the query's columns, then for each table whose rows it may tell apart ctid and tableoid, which no client sees
//! FETCH     the last row given is the current one
//! UPDATE    before it runs: the current row's place, then on to what the transaction sees of the row now
//! ```

use std::sync::Arc;

use throng_access::Visibility;
use throng_bind::expr::{Expr, Var, system};
use throng_bind::query::{Body, BoundQuery, Distinct, FromItem, QueryKind, RelKind, Target};
use throng_buffer::retry;
use throng_catalog::{Catalog, TableDef};
use throng_plan::{Node, Plan, PlannedStatement};
use throng_txn::Snapshot;
use throng_types::error::state;
use throng_types::{Datum, Error, Oid, Result, SqlType, Tid, oid};
use throng_values::func::EvalResult;

use crate::session::Session;
use crate::session::answers::eval_host::SessionHost;

/// What a cursor's rows tell of where they come from.
pub(in crate::session) struct Places {
    /// The tables, as the query names them; each has a ctid and a tableoid at the end of a row.
    tables: Vec<Arc<TableDef>>,
    /// FOR UPDATE and its kin named them.
    locked: bool,
    /// The plan leads back from a row to them.
    simple: bool,
    /// The columns before them.
    width: usize,
    /// With the tables as they were.
    catalog: Arc<Catalog>,
}

/// The row that a cursor stands on, for the statement under way.
#[derive(Default)]
pub(in crate::session) struct Position {
    name: String,
    row: Option<(Oid, Tid)>,
}

/// The table of an entry, somewhere below.
fn table_of(item: &FromItem, wanted: throng_bind::expr::RelId) -> Option<Arc<TableDef>> {
    match item {
        FromItem::Rel(rel) if rel.id == wanted => match &rel.kind {
            RelKind::Table(table) => Some(table.clone()),
            _ => None,
        },
        FromItem::Rel(_) => None,
        FromItem::Join { left, right, .. } => {
            table_of(left, wanted).or_else(|| table_of(right, wanted))
        }
    }
}

/// Adds to a query's columns where its rows are: in the tables it locks, or in the one that it
/// reads.
pub(in crate::session) fn with_places(
    query: &mut BoundQuery,
    catalog: &Arc<Catalog>,
) -> Option<Places> {
    let QueryKind::Select(query) = &mut query.kind else {
        return None;
    };
    let Body::Select(select) = &mut query.body else {
        return None;
    };
    let sets = select.targets.iter();
    let makes_rows = sets.into_iter().any(|t| t.expr.any(&mut Expr::is_set));
    if select.grouped || !select.windows.is_empty() || select.distinct != Distinct::No || makes_rows
    {
        return None;
    }
    let rels: Vec<_> = match (&query.locks[..], &select.from[..]) {
        ([], [FromItem::Rel(rel)]) => vec![rel.id],
        (locks, _) => locks.iter().map(|lock| lock.rel).collect(),
    };
    let mut tables = Vec::new();
    let width = select.targets.len();
    for rel in rels {
        let Some(table) = select.from.iter().find_map(|item| table_of(item, rel)) else {
            continue;
        };
        for (column, ty) in [(system::CTID, oid::TID), (system::TABLEOID, oid::OID)] {
            let ty = SqlType::plain(ty);
            select.targets.push(Target {
                expr: Expr::Var(Var { rel, column, ty }),
                name: String::new(),
            });
        }
        tables.push(table);
    }
    (!tables.is_empty()).then(|| Places {
        tables,
        locked: !query.locks.is_empty(),
        simple: false,
        width,
        catalog: catalog.clone(),
    })
}

/// Whether rows come out of a plan as they are in one table, one at a time.
fn is_scan(plan: &Plan) -> bool {
    match &plan.node {
        Node::SeqScan(_) | Node::IndexScan(_) | Node::BitmapScan(_) => true,
        Node::Append(_) | Node::Project { .. } | Node::Limit { .. } | Node::Filter { .. } => {
            plan.children().into_iter().all(is_scan)
        }
        _ => false,
    }
}

impl Places {
    /// The columns that a client is told of.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Looks whether a plan's rows are those of a table, one by one.
    pub fn learn(&mut self, plan: &PlannedStatement) {
        self.simple = self.locked || is_scan(&plan.root);
    }

    /// Which of them is this table, its parent or its child.
    fn number_of(&self, table: Oid, cursor: &str, catalog: &Catalog) -> Result<usize> {
        let related = |def: &&Arc<TableDef>| {
            catalog.descendants(def.oid).contains(&table)
                || catalog.descendants(table).contains(&def.oid)
        };
        let found: Vec<usize> = self
            .tables
            .iter()
            .enumerate()
            .filter(|(_, def)| self.simple && related(def))
            .map(|(number, _)| number)
            .collect();
        let name = || catalog.table(table).map_or("", |table| table.name.as_str());
        let wrong = |what: String| Err(Error::new(state::INVALID_CURSOR_STATE, what));
        match (&found[..], self.locked) {
            ([one], _) => Ok(*one),
            ([], true) => wrong(format!(
                "cursor \"{cursor}\" does not have a FOR UPDATE/SHARE reference to table \"{}\"",
                name()
            )),
            ([], false) => Err(not_simple(cursor, name())),
            _ => wrong(format!(
                "cursor \"{cursor}\" has multiple FOR UPDATE/SHARE references to table \"{}\"",
                name()
            )),
        }
    }
}

fn not_simple(cursor: &str, table: &str) -> Error {
    let message =
        format!("cursor \"{cursor}\" is not a simply updatable scan of table \"{table}\"");
    Error::new(state::INVALID_CURSOR_STATE, message)
}

impl Session {
    /// Finds where the cursor of a statement's WHERE CURRENT OF stands; the statement is about to
    /// run.
    pub(in crate::session) async fn find_position(
        &self,
        plan: &PlannedStatement,
        snapshot: &Snapshot,
    ) -> Result<()> {
        let Some(cursor) = &plan.cursor else {
            return Ok(());
        };
        let catalog = self.catalog();
        let row = match self.current_row(&cursor.name, cursor.table, &catalog)? {
            Some((table, tid)) => match catalog.table(table) {
                Some(def) => Some((table, self.seen(snapshot, def, tid).await?)),
                None => None,
            },
            None => None,
        };
        *self.position.borrow_mut() = Position {
            name: cursor.name.clone(),
            row,
        };
        Ok(())
    }

    /// The cursor's current row in a table or one of its children; none where it is in another.
    fn current_row(&self, name: &str, table: Oid, catalog: &Catalog) -> Result<Option<(Oid, Tid)>> {
        let wrong = |what: &str| {
            let message = format!("cursor \"{name}\" {what}");
            Err(Error::new(state::INVALID_CURSOR_STATE, message))
        };
        let portals = self.portals.borrow();
        let Some(portal) = portals.get(name) else {
            let message = format!("cursor \"{name}\" does not exist");
            return Err(Error::new(state::INVALID_CURSOR_NAME, message));
        };
        if portal.outlives_rollback() {
            return wrong("is held from a previous transaction");
        }
        let Some(places) = &portal.places else {
            let name_of = catalog.table(table).map_or("", |table| &table.name);
            return Err(not_simple(name, name_of));
        };
        let number = places.number_of(table, name, catalog)?;
        let Some(row) = portal.current() else {
            return wrong("is not positioned on a row");
        };
        let at = places.width + 2 * number;
        let (Some(Datum::Tid(tid)), Some(Datum::Oid(of))) = (row.get(at), row.get(at + 1)) else {
            return Ok(None);
        };
        let of = Oid(*of);
        if !catalog.descendants(table).contains(&of) {
            return Ok(None);
        }
        let file = |catalog: &Catalog| catalog.table(of).map(|def| def.file);
        if file(catalog) != file(&places.catalog) {
            return wrong("reads a table that was rewritten since");
        }
        Ok(Some((of, *tid)))
    }

    /// The version of a row that a snapshot shows, from an older one on.
    async fn seen(&self, snapshot: &Snapshot, def: &TableDef, tid: Tid) -> Result<Tid> {
        let heap = self.engine.store.relations.heap(def.file);
        let mut bytes = Vec::new();
        let (mut at, mut made_by) = (tid, None);
        while let Some(header) = retry(|| heap.read_version(at, &mut bytes)).await? {
            if made_by.is_some_and(|xid| xid != header.xmin) {
                break;
            }
            if snapshot.visible(&header) {
                return Ok(at);
            }
            if header.xmax_is_void() || header.next.is_none() || header.next == at {
                break;
            }
            (made_by, at) = (Some(header.xmax), header.next);
            self.handle.cancel_flag().check()?;
        }
        Ok(tid)
    }
}

impl SessionHost<'_> {
    /// What [`throng_values::func::cursor`] asks for.
    pub(in crate::session) fn position(&self, name: &str, cursor: &Datum) -> EvalResult {
        let position = self.session.position.borrow();
        if cursor.as_str() != Some(position.name.as_str()) {
            return Err(Error::unsupported("WHERE CURRENT OF in a function").into());
        }
        Ok(match (position.row, name) {
            (None, _) => Datum::Null,
            (Some((_, tid)), "cursor_row") => Datum::Tid(tid),
            (Some((table, _)), _) => Datum::Oid(table.0),
        })
    }
}

/// A row without its places.
pub(in crate::session) fn shown(row: &[Datum], fields: usize) -> &[Datum] {
    row.get(..fields).unwrap_or(row)
}
