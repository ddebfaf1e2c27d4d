//! Rights on what a statement reads and writes.
//!
//! While names are resolved, what the role may not do with a relation as a whole is noted. When the
//! statement is bound, and only where something was noted, its columns are gone over: a right on
//! each column that is read or written does as well. A view's inside is read as its owner, so it is
//! the owner's rights that are noted there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use throng_types::error::state;
use throng_types::sqltype::{element_of, type_name};
use throng_types::{Error, Oid, Result};

use crate::binder::Binder;
use crate::tree::expr::{Expr, RelId};
use crate::tree::query::walk::QueryPart;
use crate::tree::query::{
    Body, BoundQuery, ConflictAction, CteBody, FromItem, MergeAction, MergeWrite, Query, QueryKind,
    RelKind, Target,
};
use throng_catalog::{Catalog, Relation, RoutineDef, TableDef, ViewDef};
use throng_values::acl::right;

/// A right that a role has not on a relation as a whole.
#[derive(Clone, Debug)]
pub(in crate::binder) struct Access {
    relation: Relation,
    user: Oid,
    right: u32,
    columns: Columns,
}

/// On which columns it would do.
#[derive(Clone, Debug)]
enum Columns {
    /// On none.
    Whole,
    /// Those read of these entries. `always`: where none is, on any.
    Read { rels: Vec<RelId>, always: bool },
    /// These; any where there are none.
    Named(Vec<u16>),
    /// As `Read`, of which it is known what is read.
    Known(Vec<i16>, bool),
}

/// A relation that is written to: a table, or a view before it.
#[derive(Clone, Debug)]
pub(in crate::binder) struct Link {
    relation: Relation,
    user: Oid,
    /// Its entry in the view above it.
    rel: Option<RelId>,
    /// What the view above it reads of it.
    read: Vec<i16>,
    /// The table's column that each of its columns is.
    columns: Vec<Option<u16>>,
}

/// The table that is written to at last, and as which role.
pub(in crate::binder) fn table_and_reader(links: &[Link]) -> Option<(&Arc<TableDef>, Oid)> {
    let link = links.last()?;
    match &link.relation {
        Relation::Table(table) => Some((table, link.user)),
        _ => None,
    }
}

fn denied(relation: &Relation) -> Error {
    let message = format!(
        "permission denied for {} {}",
        relation.privilege_name(),
        relation.name()
    );
    Error::new(state::INSUFFICIENT_PRIVILEGE, message)
}

/// How many columns a relation has, dropped ones included.
fn width(relation: &Relation) -> u16 {
    let count = match relation {
        Relation::Table(def) => def.columns.len(),
        Relation::View(def) => def.columns.len(),
        Relation::Virtual(def) => def.columns.len(),
        Relation::Sequence(_) => 3,
        Relation::Index(_) => 0,
    };
    count as u16
}

/// 42501 unless the role has one of these rights on a relation as a whole.
pub(in crate::binder) fn any_right(
    catalog: &Catalog,
    role: Oid,
    relation: &Relation,
    rights: u32,
) -> Result<()> {
    match catalog.relation_rights(role, relation, rights) {
        0 => Err(denied(relation)),
        _ => Ok(()),
    }
}

/// 42501 unless the role has a right on a relation, or on each of these columns of it.
pub(in crate::binder) fn right_on_columns(
    catalog: &Catalog,
    role: Oid,
    relation: &Relation,
    right: u32,
    columns: &[u16],
) -> Result<()> {
    let on = |column: &u16| catalog.column_rights(role, relation, *column, right) != 0;
    let whole = catalog.relation_rights(role, relation, right) != 0;
    match whole || !columns.is_empty() && columns.iter().all(on) {
        true => Ok(()),
        false => Err(denied(relation)),
    }
}

impl Access {
    fn check(&self, catalog: &Catalog, reads: &BTreeMap<RelId, BTreeSet<i16>>) -> Result<()> {
        let on = |column: i16| {
            // The system's columns come with the whole relation.
            u16::try_from(column).is_ok_and(|column| {
                column != 0
                    && catalog.column_rights(self.user, &self.relation, column, self.right) != 0
            })
        };
        let any = || (1..=width(&self.relation)).any(|column| on(column as i16));
        let allowed = match &self.columns {
            Columns::Whole => false,
            Columns::Named(columns) if columns.is_empty() => any(),
            Columns::Named(columns) => columns.iter().all(|column| on(*column as i16)),
            Columns::Known(read, always) if read.is_empty() => !always || any(),
            Columns::Known(read, _) => read.iter().all(|column| on(*column)),
            Columns::Read { rels, always } => {
                let mut read = rels
                    .iter()
                    .filter_map(|rel| reads.get(rel))
                    .flatten()
                    .peekable();
                match read.peek() {
                    None => !always || any(),
                    Some(_) => read.all(|column| on(*column)),
                }
            }
        };
        match allowed {
            true => Ok(()),
            false => Err(denied(&self.relation)),
        }
    }
}

impl Binder<'_> {
    fn note(&mut self, relation: &Relation, user: Oid, right: u32, columns: Columns) {
        if self.catalog().relation_rights(user, relation, right) == 0 {
            self.accesses.push(Access {
                relation: relation.clone(),
                user,
                right,
                columns,
            });
        }
    }

    /// A relation in FROM.
    pub(in crate::binder) fn reads(&mut self, relation: &Relation, rel: RelId) {
        let read = Columns::Read {
            rels: vec![rel],
            always: true,
        };
        self.note(relation, self.user, right::SELECT, read);
    }

    /// FOR UPDATE and its kin.
    pub(in crate::binder) fn locks_rows_of(&mut self, table: &Arc<TableDef>) {
        self.locks_relation(&Relation::Table(table.clone()), self.user);
    }

    /// The same of any relation, for a role.
    pub(in crate::binder) fn locks_relation(&mut self, relation: &Relation, user: Oid) {
        self.note(relation, user, right::UPDATE, Columns::Named(vec![]));
    }

    /// What is written to, without a view before it.
    pub(in crate::binder) fn target_link(&self, table: &Arc<TableDef>) -> Link {
        Link {
            relation: Relation::Table(table.clone()),
            user: self.user,
            rel: None,
            read: vec![],
            columns: (1..=table.columns.len() as u16).map(Some).collect(),
        }
    }

    /// A view that is written to, and what it stands for, down to the table.
    pub(in crate::binder) fn view_links(&self, view: &Arc<ViewDef>, query: &Query) -> Vec<Link> {
        let mut links = Vec::new();
        self.below(view, query, self.user, None, vec![], &mut links);
        links
    }

    /// What was noted since `place` of what is written to: how it is read is seen when that is
    /// known.
    pub(in crate::binder) fn forget_reads(&mut self, place: usize, links: &[Link]) {
        let written = |rel: &RelId| links.iter().any(|link| link.rel == Some(*rel));
        let noted = self.accesses.split_off(place);
        let of_target = |access: &Access| match &access.columns {
            Columns::Read { rels, .. } => rels.iter().all(written),
            _ => false,
        };
        self.accesses
            .extend(noted.into_iter().filter(|access| !of_target(access)));
    }

    /// The view and what is below it.
    fn below(
        &self,
        view: &Arc<ViewDef>,
        query: &Query,
        user: Oid,
        rel: Option<RelId>,
        read: Vec<i16>,
        links: &mut Vec<Link>,
    ) -> Vec<Option<u16>> {
        let at = links.len();
        links.push(Link {
            relation: Relation::View(view.clone()),
            user,
            rel,
            read,
            columns: vec![],
        });
        let Body::Select(select) = &query.body else {
            return vec![];
        };
        let [FromItem::Rel(rel)] = &select.from[..] else {
            return vec![];
        };
        let mut read = BTreeSet::new();
        query.walk(false, &mut |part| {
            if let QueryPart::Expr(Expr::Var(var)) = part
                && var.rel == rel.id
                && var.column > 0
            {
                read.insert(var.column);
            }
        });
        let read = read.into_iter().collect();
        let inner: Vec<Option<u16>> = match &rel.kind {
            RelKind::Table(table) => {
                let columns: Vec<_> = (1..=table.columns.len() as u16).map(Some).collect();
                links.push(Link {
                    relation: Relation::Table(table.clone()),
                    user: self.read_as(view),
                    rel: Some(rel.id),
                    read,
                    columns: columns.clone(),
                });
                columns
            }
            RelKind::View { view: inner, query } => {
                self.below(inner, query, self.read_as(view), Some(rel.id), read, links)
            }
            _ => vec![],
        };
        let column = |target: &Target| match &target.expr {
            Expr::Var(var) if var.rel == rel.id => {
                let place = usize::try_from(var.column).ok()?.checked_sub(1)?;
                *inner.get(place)?
            }
            _ => None,
        };
        let columns: Vec<Option<u16>> = select.targets.iter().map(column).collect();
        links[at].columns.clone_from(&columns);
        columns
    }

    /// Rows are inserted or deleted, or columns of them (by the table's numbers) inserted or
    /// updated.
    pub(in crate::binder) fn writes(&mut self, links: &[Link], right: u32, columns: &[u16]) {
        for link in links {
            let own = |column: &u16| {
                let place = link.columns.iter().position(|c| *c == Some(*column));
                place.map(|place| place as u16 + 1)
            };
            let columns = match right {
                right::DELETE => Columns::Whole,
                _ => Columns::Named(columns.iter().filter_map(own).collect()),
            };
            self.note(&link.relation, link.user, right, columns);
        }
    }

    /// What is written to is read as well: a table's entries wherever they occur, a view where one
    /// of its columns stands in `exprs`.
    pub(in crate::binder) fn reads_target(
        &mut self,
        links: &[Link],
        rels: &[RelId],
        view_columns: &[Expr],
        exprs: &[&Expr],
    ) {
        let [view, below @ ..] = links else { return };
        if below.is_empty() {
            let read = Columns::Read {
                rels: rels.to_vec(),
                always: false,
            };
            return self.note(&view.relation, view.user, right::SELECT, read);
        }
        let mut read = BTreeSet::new();
        for expr in exprs {
            expr.walk(false, &mut |part| {
                if let QueryPart::Expr(e) = part {
                    let is = |column: &Expr| same_but_entry(column, e, rels);
                    read.extend(view_columns.iter().position(is));
                }
            });
        }
        if read.is_empty() {
            return;
        }
        let read = read.into_iter().map(|place| place as u16 + 1).collect();
        self.note(
            &view.relation,
            view.user,
            right::SELECT,
            Columns::Named(read),
        );
        for link in below {
            let read = link.read.iter().map(|column| *column as u16).collect();
            self.note(
                &link.relation,
                link.user,
                right::SELECT,
                Columns::Named(read),
            );
        }
    }

    /// What a MERGE reads and writes; of what it reads, that which was noted since `place`. The
    /// join that is made of its parts reads more.
    pub(in crate::binder) fn merges(
        &mut self,
        place: usize,
        (links, view_columns): (&[Link], &[Expr]),
        rels: &[RelId],
        source: &FromItem,
        actions: &[(MergeAction, Vec<u16>)],
        exprs: &[&Expr],
    ) {
        let mut all = exprs.to_vec();
        for (action, columns) in actions {
            all.extend(&action.condition);
            match &action.write {
                MergeWrite::Nothing => {}
                MergeWrite::Delete => self.writes(links, right::DELETE, &[]),
                MergeWrite::Insert(values) => {
                    self.writes(links, right::INSERT, columns);
                    all.extend(values);
                }
                MergeWrite::Update(set) => {
                    self.writes(links, right::UPDATE, columns);
                    all.extend(set.iter().map(|(_, e)| e));
                }
            }
        }
        self.reads_target(links, rels, view_columns, &all);
        if self.accesses.len() == place {
            return;
        }
        let mut reads: BTreeMap<RelId, BTreeSet<i16>> = BTreeMap::new();
        let mut note = |part: QueryPart<'_>| {
            if let QueryPart::Expr(Expr::Var(var)) = part {
                reads.entry(var.rel).or_default().insert(var.column);
            }
        };
        source.walk(true, &mut note);
        all.into_iter().for_each(|e| e.walk(true, &mut note));
        for (rel, column) in &self.policy_reads {
            reads.entry(*rel).or_default().insert(*column);
        }
        for access in &mut self.accesses[place..] {
            if let Columns::Read { rels, always } = &access.columns {
                let read = rels.iter().filter_map(|rel| reads.get(rel)).flatten();
                let read: Vec<i16> = read.copied().collect();
                access.columns = Columns::Known(read, *always);
            }
        }
    }

    /// The columns by which ON CONFLICT finds the row in the way.
    pub(in crate::binder) fn reads_arbiters(&mut self, links: &[Link], arbiters: &[Oid]) {
        let [table] = links else { return };
        let mut columns = Vec::new();
        for arbiter in arbiters {
            if let Some(index) = self.catalog().index(*arbiter) {
                let keys = index.columns.iter().map(|c| c.attnum);
                columns.extend(keys.filter(|attnum| *attnum > 0));
                columns.extend(&index.terms.uses);
            }
        }
        if !columns.is_empty() {
            let columns = Columns::Named(columns);
            self.note(&table.relation, table.user, right::SELECT, columns);
        }
    }

    /// Whether what was noted is allowed, now that all of the statement is known.
    pub(in crate::binder) fn check_accesses(&mut self, query: Option<&BoundQuery>) -> Result<()> {
        let accesses = std::mem::take(&mut self.accesses);
        let policy_reads = std::mem::take(&mut self.policy_reads);
        if accesses.is_empty() || self.definition {
            return Ok(());
        }
        let mut reads: BTreeMap<RelId, BTreeSet<i16>> = BTreeMap::new();
        if let Some(query) = query {
            let mut note = |part: QueryPart<'_>| {
                if let QueryPart::Expr(Expr::Var(var)) = part {
                    reads.entry(var.rel).or_default().insert(var.column);
                }
            };
            walk_reads(&query.kind, &mut note);
            for cte in &query.ctes {
                match &cte.body {
                    CteBody::Write(kind) => walk_reads(kind, &mut note),
                    body => body
                        .queries()
                        .into_iter()
                        .for_each(|q| q.walk(true, &mut note)),
                }
            }
        }
        for (rel, column) in policy_reads {
            reads.entry(rel).or_default().insert(column);
        }
        let catalog = self.catalog();
        accesses
            .iter()
            .try_for_each(|access| access.check(catalog, &reads))
    }

    pub(in crate::binder) fn must_own(&self, owner: Oid, what: &str, name: &str) -> Result<()> {
        if self.acts_as(owner) {
            return Ok(());
        }
        let message = format!("must be owner of {what} {name}");
        Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message))
    }

    /// A user's function is called by who runs the statement, also inside a view.
    pub(in crate::binder) fn may_execute(&self, routine: &RoutineDef) -> Result<()> {
        let held = |user: Oid| self.catalog().routine_rights(user, routine, right::EXECUTE);
        if self.definition || held(self.ctx.user) != 0 {
            return Ok(());
        }
        let message = format!("permission denied for {} {}", routine.noun(), routine.name);
        Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message))
    }

    /// A type that something new is to be of.
    pub(in crate::binder) fn may_use_type(&self, ty: Oid) -> Result<()> {
        let ty = element_of(ty).unwrap_or(ty);
        let Some(def) = self.catalog().made_type(ty) else {
            return Ok(());
        };
        let rights = |user| {
            self.catalog()
                .type_rights(user, ty, def.owner, right::USAGE)
        };
        if self.definition || rights(self.user) != 0 {
            return Ok(());
        }
        let message = format!("permission denied for type {}", type_name(ty));
        Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message))
    }

    /// A foreign key refers to a table: to columns of it, or to its primary key.
    pub(in crate::binder) fn may_reference(
        &self,
        table: &Arc<TableDef>,
        references: &throng_syntax::parse::ast::References,
    ) -> Result<()> {
        let named = references.columns.iter();
        let mut columns: Vec<u16> = named.filter_map(|name| table.attnum(name)).collect();
        if references.columns.is_empty() {
            let key = self.catalog().primary_key(table.oid).into_iter();
            columns.extend(key.flat_map(|index| index.columns.iter().map(|c| c.attnum)));
        }
        let relation = Relation::Table(table.clone());
        right_on_columns(
            self.catalog(),
            self.user,
            &relation,
            right::REFERENCES,
            &columns,
        )
    }

    /// 42501 for a schema that the role may not look into. A view's inside was looked up by its
    /// owner, a policy's by its table's.
    pub(in crate::binder) fn may_look_into(&self, schema: Oid) -> Result<()> {
        let kept = !self.views.is_empty() || !self.policies_in_hand.is_empty();
        let own = self.ctx.temporary_schema == Some(schema) || kept;
        if own || self.definition || self.catalog().may_look_into(self.user, schema) {
            return Ok(());
        }
        Err(self.schema_denied(schema))
    }

    pub(in crate::binder) fn schema_denied(&self, schema: Oid) -> Error {
        let name = self.catalog().schema(schema).map_or("", |s| &s.name);
        let message = format!("permission denied for schema {name}");
        Error::new(state::INSUFFICIENT_PRIVILEGE, message)
    }
}

/// Whether an expression is a view's column, be it over the row that is there or over the new one.
fn same_but_entry(column: &Expr, e: &Expr, rels: &[RelId]) -> bool {
    let of_row = |e: &Expr| e.any(&mut |e| matches!(e, Expr::Var(var) if rels.contains(&var.rel)));
    if !of_row(column) {
        return false;
    }
    match (column, e) {
        (Expr::Var(a), Expr::Var(b)) => a.column == b.column && rels.contains(&b.rel),
        _ => {
            let to = rels[0];
            let mut e = e.clone();
            e.walk_mut(&mut |part| {
                if let crate::tree::query::walk::QueryPartMut::Expr(Expr::Var(var)) = part
                    && rels.contains(&var.rel)
                {
                    var.rel = to;
                }
            });
            *column == e
        }
    }
}

/// What a statement reads, its checks of new rows apart.
fn walk_reads<'a>(kind: &'a QueryKind, f: &mut dyn FnMut(QueryPart<'a>)) {
    match kind {
        QueryKind::Select(query) => query.walk(true, f),
        QueryKind::Insert(insert) => {
            insert.source.walk(true, f);
            insert.returning.iter().for_each(|t| t.expr.walk(true, f));
            if let Some(ConflictAction::Update { set, filter, .. }) =
                insert.on_conflict.as_ref().map(|c| &c.action)
            {
                set.iter().for_each(|(_, e)| e.walk(true, f));
                filter.iter().for_each(|e| e.walk(true, f));
            }
        }
        QueryKind::Update(update) => {
            update.from.iter().for_each(|item| item.walk(true, f));
            update.filter.iter().for_each(|e| e.walk(true, f));
            update.set.iter().for_each(|(_, e)| e.walk(true, f));
            update.returning.iter().for_each(|t| t.expr.walk(true, f));
        }
        // What it reads was noted when its parts were bound.
        QueryKind::Merge(_) => {}
        QueryKind::Delete(delete) => {
            delete.from.iter().for_each(|item| item.walk(true, f));
            delete.filter.iter().for_each(|e| e.walk(true, f));
            delete.returning.iter().for_each(|t| t.expr.walk(true, f));
        }
    }
}
