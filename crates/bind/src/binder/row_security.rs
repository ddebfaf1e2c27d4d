//! Row security: what policies ask of the rows that a statement reads and writes.
//!
//! | statement | rows that are there | new rows |
//! | --- | --- | --- |
//! | SELECT | SELECT | |
//! | SELECT … FOR UPDATE | SELECT, UPDATE | |
//! | INSERT | | INSERT; SELECT where it reads them |
//! | UPDATE | UPDATE; SELECT where it reads them | the same |
//! | DELETE | DELETE; SELECT where it reads them | |
//! | ON CONFLICT DO UPDATE | as UPDATE, and 42501 | as UPDATE |
//! | MERGE | SELECT, then as the action and 42501 | as the action |
//!
//! Rows that are there must meet USING: those that do not are not seen ([`BoundQuery::security`]),
//! or are an error where the statement has come upon them. New rows must meet WITH CHECK, or USING
//! where there is none.
//!
//! [`BoundQuery::security`]: crate::tree::query::BoundQuery::security

use std::sync::Arc;

use throng_types::error::state;
use throng_types::{Datum, Error, Oid, Result, SqlType, Tid};

use super::ddl::privilege::table_and_reader;
use super::ddl::view::{MAX_ENTRIES, STORED_PATH};
use super::dml::row_names;
use super::dml::updatable::WriteTarget;
use super::query::scope::Scope;
use super::{Binder, Clause};
use crate::tree::expr::{Expr, RelId, system};
use crate::tree::query::walk::{QueryPart, QueryPartMut};
use crate::tree::query::{
    Arrival, Check, CheckOf, ConflictAction, MergeAction, MergeWrite, OnConflict,
};
use throng_catalog::{PolicyCommand, PolicyCondition, PolicyDef, TableDef};
use throng_syntax::parse::{self, ast};

pub(in crate::binder) const POLICY: Clause = Clause::Other("policy expressions");

/// A table whose policies are asked, and of whom.
#[derive(Clone)]
struct Secured {
    table: Arc<TableDef>,
    user: Oid,
}

/// What is said of a row that a policy refuses.
#[derive(Clone, Copy)]
enum Refusal {
    NewRow,
    /// The row that ON CONFLICT has found.
    RowInTheWay,
    /// The row that MERGE is about to change.
    TargetRow,
}

impl Refusal {
    fn message(self, policy: Option<&str>, table: &str) -> String {
        let (row, using) = match self {
            Refusal::NewRow => ("new", ""),
            Refusal::RowInTheWay => ("new", " (USING expression)"),
            Refusal::TargetRow => ("target", " (USING expression)"),
        };
        let name = policy.map_or(String::new(), |name| format!(" \"{name}\""));
        format!("{row} row violates row-level security policy{name}{using} for table \"{table}\"")
    }
}

/// Whether expressions read a row of these entries.
pub(in crate::binder) fn reads_rows(exprs: &[&Expr], rels: &[RelId]) -> bool {
    let mut found = false;
    for expr in exprs {
        expr.for_each_var(&mut |var| found |= rels.contains(&var.rel));
    }
    found
}

impl Binder<'_> {
    /// The table, if its policies are asked of what a role reads and writes.
    ///
    /// # Errors
    /// 42501 where they would be and `row_security` is off.
    fn secured(&self, table: &Arc<TableDef>, user: Oid) -> Result<Option<Secured>> {
        let defines = self.defining || self.definition;
        if defines || !self.catalog().has_row_security(table, user) {
            return Ok(None);
        }
        if self.ctx.eval.host.show_setting("row_security").as_deref() == Some("off") {
            let message = format!(
                "query would be affected by row-level security policy for table \"{}\"",
                table.name
            );
            let error = Error::new(state::INSUFFICIENT_PRIVILEGE, message);
            return Err(match self.catalog().acts_as(user, table.owner) {
                false => error,
                true => error.hint("To disable the policy for the table's owner, use ALTER TABLE NO FORCE ROW LEVEL SECURITY."),
            });
        }
        let table = table.clone();
        Ok(Some(Secured { table, user }))
    }

    /// Whether policies stand between the role and a table's rows.
    ///
    /// # Errors
    /// 42501 where they would and `row_security` is off.
    pub(in crate::binder) fn is_secured(&self, table: &Arc<TableDef>) -> Result<bool> {
        Ok(self.secured(table, self.user)?.is_some())
    }

    /// A table in FROM.
    pub(in crate::binder) fn secure_read(
        &mut self,
        table: &Arc<TableDef>,
        rel: RelId,
    ) -> Result<()> {
        if let Some(secured) = self.secured(table, self.user)? {
            let conditions = self.using(&secured, rel, PolicyCommand::Select)?;
            self.security.push((rel, conditions));
        }
        Ok(())
    }

    /// FOR UPDATE and its kin, of a table that `user` reads.
    pub(in crate::binder) fn secure_lock(
        &mut self,
        table: &Arc<TableDef>,
        rel: RelId,
        user: Oid,
    ) -> Result<()> {
        if let Some(secured) = self.secured(table, user)? {
            let conditions = self.using(&secured, rel, PolicyCommand::Update)?;
            self.security.push((rel, conditions));
        }
        Ok(())
    }

    /// What is to be written to, which is read by this statement's own rules.
    pub(in crate::binder) fn forget_security(&mut self, rel: RelId) {
        self.security.retain(|(of, _)| *of != rel);
    }

    fn secured_target(&self, target: &WriteTarget) -> Result<Option<Secured>> {
        match table_and_reader(&target.links) {
            Some((table, user)) => self.secured(table, user),
            None => Ok(None),
        }
    }

    /// The checks of new rows of an INSERT. `read`: it reads rows of the table, too.
    pub(in crate::binder) fn secure_insert(
        &mut self,
        target: &WriteTarget,
        on_conflict: &mut Option<OnConflict>,
        read: bool,
    ) -> Result<Vec<Check>> {
        let Some(secured) = self.secured_target(target)? else {
            return Ok(vec![]);
        };
        let mut checks = self.new_rows(&secured, target.rel, Arrival::Inserted, read)?;
        if let Some(OnConflict {
            action: ConflictAction::Update { guards, .. },
            ..
        }) = on_conflict
        {
            let commands = [PolicyCommand::Update, PolicyCommand::Select];
            for command in commands.into_iter().take(1 + usize::from(read)) {
                let of = (CheckOf::Policy(Arrival::Updated), Refusal::RowInTheWay);
                guards.extend(self.asked(&secured, target.rel, command, true, of)?);
            }
            without_system(guards, target.rel, false)?;
            checks.extend(self.new_rows(&secured, target.rel, Arrival::Updated, read)?);
        }
        Ok(checks)
    }

    /// The checks of new rows of an UPDATE, under `new`.
    pub(in crate::binder) fn secure_update(
        &mut self,
        target: &mut WriteTarget,
        new: RelId,
        exprs: &[&Expr],
    ) -> Result<Vec<Check>> {
        let mut checks = Vec::new();
        if let Some(secured) = self.secured_target(target)? {
            let read = reads_rows(exprs, &[target.rel, new]);
            self.secure_rows(&secured, target.rel, Some(PolicyCommand::Update), read)?;
            checks = self.new_rows(&secured, new, Arrival::Updated, read)?;
        }
        self.secure_views(target);
        Ok(checks)
    }

    pub(in crate::binder) fn secure_delete(
        &mut self,
        target: &mut WriteTarget,
        exprs: &[&Expr],
    ) -> Result<()> {
        if let Some(secured) = self.secured_target(target)? {
            let read = reads_rows(exprs, &[target.rel]);
            self.secure_rows(&secured, target.rel, Some(PolicyCommand::Delete), read)?;
        }
        self.secure_views(target);
        Ok(())
    }

    /// The checks of new rows of a MERGE, under `row`; and what the target's rows must meet to be
    /// seen.
    pub(in crate::binder) fn secure_merge(
        &mut self,
        target: &mut WriteTarget,
        row: RelId,
        actions: &mut [MergeAction],
        (read, returned): (bool, bool),
    ) -> Result<(Vec<Check>, Vec<Expr>)> {
        let mut checks = Vec::new();
        if let Some(secured) = self.secured_target(target)? {
            self.secure_rows(&secured, target.rel, None, read)?;
            let mut arrivals = Vec::new();
            for action in actions {
                let (command, arrival) = match action.write {
                    MergeWrite::Insert(_) => (None, Some(Arrival::Inserted)),
                    MergeWrite::Update(_) => (Some(PolicyCommand::Update), Some(Arrival::Updated)),
                    MergeWrite::Delete => (Some(PolicyCommand::Delete), None),
                    MergeWrite::Nothing => (None, None),
                };
                if let Some(command) = command {
                    let of = (CheckOf::Policy(Arrival::Updated), Refusal::TargetRow);
                    action.guards = self.asked(&secured, target.rel, command, true, of)?;
                }
                if let Some(arrival) = arrival.filter(|new| !arrivals.contains(new)) {
                    arrivals.push(arrival);
                    // A new row is read only where it is returned.
                    let read = read && (returned || arrival == Arrival::Updated);
                    checks.extend(self.new_rows(&secured, row, arrival, read)?);
                }
            }
        }
        self.secure_views(target);
        let own = self.security.iter().filter(|(rel, _)| *rel == target.rel);
        let seen = own.flat_map(|(_, conditions)| conditions.clone());
        Ok((checks, seen.collect()))
    }

    /// What rows that are there must meet to be seen by a statement that changes them.
    fn secure_rows(
        &mut self,
        secured: &Secured,
        rel: RelId,
        command: Option<PolicyCommand>,
        read: bool,
    ) -> Result<()> {
        let mut conditions = Vec::new();
        if read {
            conditions.extend(self.using(secured, rel, PolicyCommand::Select)?);
        }
        if let Some(command) = command {
            conditions.extend(self.using(secured, rel, command)?);
        }
        self.security.push((rel, conditions));
        Ok(())
    }

    /// Conditions of views that hide rows come behind policies.
    fn secure_views(&mut self, target: &mut WriteTarget) {
        let barrier = std::mem::take(&mut target.barrier);
        if !barrier.is_empty() {
            self.security.push((target.rel, barrier));
        }
    }

    /// What new rows must meet. `read`: the statement reads them, too.
    fn new_rows(
        &mut self,
        secured: &Secured,
        rel: RelId,
        arrival: Arrival,
        read: bool,
    ) -> Result<Vec<Check>> {
        let command = match arrival {
            Arrival::Inserted => PolicyCommand::Insert,
            Arrival::Updated => PolicyCommand::Update,
        };
        let of = (CheckOf::Policy(arrival), Refusal::NewRow);
        let mut checks = self.asked(secured, rel, command, false, of)?;
        if read {
            checks.extend(self.asked(secured, rel, PolicyCommand::Select, true, of)?);
        }
        without_system(&mut checks, rel, true)?;
        Ok(checks)
    }

    /// The policies that are for a command and its role, by name: permissive ones, and restrictive
    /// ones.
    fn policies(
        &self,
        secured: &Secured,
        command: PolicyCommand,
    ) -> (Vec<Arc<PolicyDef>>, Vec<Arc<PolicyDef>>) {
        let catalog = self.catalog();
        let is_for = |role: &Oid| *role == Oid::NONE || catalog.acts_as(secured.user, *role);
        let all = catalog.policies_of(secured.table.oid).iter().cloned();
        all.filter(|p| p.is_for(command) && p.roles.iter().any(is_for))
            .partition(|p| p.permissive)
    }

    /// What rows that are there must meet: each restrictive policy, then one of the permissive.
    fn using(
        &mut self,
        secured: &Secured,
        rel: RelId,
        command: PolicyCommand,
    ) -> Result<Vec<Expr>> {
        let (permissive, restrictive) = self.policies(secured, command);
        let any = self.policy_conditions(secured, rel, &permissive, true)?;
        if any.is_empty() {
            return Ok(vec![Expr::bool(false)]);
        }
        let all = self.policy_conditions(secured, rel, &restrictive, true)?;
        let all = all.into_iter().map(|(_, condition)| condition);
        Ok(all.chain([one_of(any)]).collect())
    }

    /// As [`Binder::using`], as checks; `using`: USING also where there is WITH CHECK.
    fn asked(
        &mut self,
        secured: &Secured,
        rel: RelId,
        command: PolicyCommand,
        using: bool,
        (of, refusal): (CheckOf, Refusal),
    ) -> Result<Vec<Check>> {
        let (permissive, restrictive) = self.policies(secured, command);
        let any = self.policy_conditions(secured, rel, &permissive, using)?;
        let check = |policy: Option<&str>, condition: Expr| Check {
            name: refusal.message(policy, &secured.table.name),
            expr: Expr::IsBool {
                arg: Box::new(condition),
                value: Some(true),
                negated: false,
            },
            of,
        };
        if any.is_empty() {
            return Ok(vec![check(None, Expr::bool(false))]);
        }
        let all = self.policy_conditions(secured, rel, &restrictive, using)?;
        let all = all.into_iter();
        let all = all.map(|(policy, condition)| check(Some(&policy.name), condition));
        Ok([check(None, one_of(any))].into_iter().chain(all).collect())
    }

    fn policy_conditions<'p>(
        &mut self,
        secured: &Secured,
        rel: RelId,
        policies: &'p [Arc<PolicyDef>],
        using: bool,
    ) -> Result<Vec<(&'p Arc<PolicyDef>, Expr)>> {
        let mut found = Vec::with_capacity(policies.len());
        for policy in policies {
            let own = policy.check.as_ref().filter(|_| !using);
            if let Some(condition) = own.or(policy.using.as_ref()) {
                let bound = self.policy_condition(&secured.table, condition, rel)?;
                found.push((policy, bound));
            }
        }
        Ok(found)
    }

    /// A policy's condition over the row of an entry.
    ///
    /// # Errors
    /// 42P17 where it reads the table whose policies it is of.
    fn policy_condition(
        &mut self,
        table: &Arc<TableDef>,
        condition: &PolicyCondition,
        rel: RelId,
    ) -> Result<Expr> {
        if condition.queries && self.policies_in_hand.contains(&table.oid) {
            let message = format!(
                "infinite recursion detected in policy for relation \"{}\"",
                table.name
            );
            return Err(Error::new(state::INVALID_OBJECT_DEFINITION, message));
        }
        if self.next_rel > MAX_ENTRIES {
            let message = format!(
                "the policies of the statement read more than {MAX_ENTRIES} relations in all"
            );
            return Err(Error::new(state::STATEMENT_TOO_COMPLEX, message));
        }
        let ast = parse::parse_expr(&condition.text)?;
        self.policies_in_hand.push(table.oid);
        let bound = self.deeper(|b| b.apart(|b| b.over_policy_row(&ast, table, rel)));
        self.policies_in_hand.pop();
        let bound = bound.map_err(|mut e| {
            // Places in a text that nobody has written here.
            e.fields_mut().position = None;
            e
        })?;
        let mut read = Vec::new();
        bound.walk(true, &mut |part| {
            if let QueryPart::Expr(Expr::Var(var)) = part
                && var.rel != rel
            {
                read.push((var.rel, var.column));
            }
        });
        self.policy_reads.extend(read);
        Ok(bound)
    }

    /// Binds something that is no part of the text in hand.
    fn apart<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let path = std::mem::replace(&mut self.search_path, STORED_PATH.to_vec());
        let arguments = self.arguments.take();
        let levels = std::mem::take(&mut self.levels);
        let windows = std::mem::take(&mut self.windows);
        let keep_untyped = std::mem::take(&mut self.keep_untyped);
        let seen = std::mem::take(&mut self.seen);
        let places = std::mem::take(&mut self.target_places);
        let merging = self.merging.take();
        let bound = f(self);
        self.merging = merging;
        self.target_places = places;
        self.seen = seen;
        self.keep_untyped = keep_untyped;
        self.windows = windows;
        self.levels = levels;
        self.arguments = arguments;
        self.search_path = path;
        bound
    }

    pub(in crate::binder) fn over_policy_row(
        &mut self,
        ast: &ast::Expr,
        table: &Arc<TableDef>,
        rel: RelId,
    ) -> Result<Expr> {
        let names = row_names(table, &table.name, rel);
        let scope = Scope::within(&names, None);
        self.in_clause(POLICY, |b| {
            let bound = b.expr(ast, &scope)?;
            b.condition(bound, "POLICY", ast.pos)
        })
    }
}

/// A row that is not stored yet has no place, which reads as none; and no row that is checked tells
/// what transactions have done to it.
fn without_system(checks: &mut [Check], rel: RelId, is_new: bool) -> Result<()> {
    let mut other = false;
    for check in checks {
        check.expr.walk_mut(&mut |part| {
            if let QueryPartMut::Expr(e) = part
                && let Expr::Var(var) = e
                && var.rel == rel
            {
                match var.column {
                    system::CTID if is_new => {
                        *e = Expr::Const(Datum::Tid(Tid::NONE), SqlType::TID);
                    }
                    system::CTID | system::TABLEOID | 0.. => {}
                    _ => other = true,
                }
            }
        });
    }
    match other {
        false => Ok(()),
        true => {
            let message = "cannot retrieve a system column in this context";
            Err(Error::new(state::FEATURE_NOT_SUPPORTED, message))
        }
    }
}

fn one_of(mut conditions: Vec<(&Arc<PolicyDef>, Expr)>) -> Expr {
    match conditions.len() {
        1 => conditions.remove(0).1,
        _ => Expr::Or(conditions.into_iter().map(|(_, e)| e).collect()),
    }
}
