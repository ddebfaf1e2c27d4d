//! FROM: its relations and conditions as a graph, the cheapest order of joining them, and the joins
//! in that order.
//!
//! Joins that are written keep no order but where [`graph`](super::graph) says so, or where there
//! are more of them than `join_collapse_limit` and `from_collapse_limit` let be ordered together
//! ([`Parts`]).

use std::collections::HashMap;

use foldhash::fast::FixedState;
use throng_types::{Error, Result, interrupt};

use super::access::Wanted;
use super::enumerate::{self, Best, Joins, MOST_RELATIONS, Set, Table, Way, bits};
use super::facts::{self, Facts};
use super::graph::{self, Class, ClassMember, Clause, Graph, Item, Member, Unique};
use super::joining::as_any;
use super::subquery::{Inner, SemiJoin};
use super::{Built, Node, Planner};
use super::{alternatives, cost, from};
use throng_bind::expr::{Expr, RelId};
use throng_bind::query::{FromItem, JoinKind, Rel, RelKind};
use throng_values::func::{Operator, Strategy};

/// The most pairs of rows that a join which need not be looked at one by one may look at where
/// `enable_hashjoin` is off.
const MOST_PAIRS: f64 = 1e7;

/// The relations an expression speaks of.
pub(super) fn rels_of(expr: &Expr) -> Vec<RelId> {
    let mut rels = Vec::new();
    expr.for_each_var(&mut |var| {
        if !rels.contains(&var.rel) {
            rels.push(var.rel);
        }
    });
    rels
}

/// Takes the conditions out that pass a test.
fn take(conditions: &mut Vec<Expr>, mut test: impl FnMut(&Expr) -> bool) -> Vec<Expr> {
    conditions.extract_if(.., |c| test(c)).collect()
}

/// The items of FROM, taken apart: those that are ordered together.
///
/// ```text
/// a JOIN b ON … JOIN c ON …      both sides' items together, if they are no more than join_collapse_limit; else either side is one
/// x, (a JOIN b ON …)             an item's among the others, if all are no more than from_collapse_limit; else it is one
/// ```
struct Parts<'q> {
    inner: Vec<&'q FromItem>,
    /// Sides that may be missing.
    outer: Vec<Outer<'q>>,
    conditions: Vec<Expr>,
    /// `join_collapse_limit`
    limit: usize,
}

struct Outer<'q> {
    item: &'q FromItem,
    /// Were it not outer, it would be taken apart.
    apart: bool,
    on: Vec<Expr>,
    /// The side that is there.
    left: Vec<RelId>,
}

fn conjuncts(condition: Option<&Expr>) -> Vec<Expr> {
    let mut parts = Vec::new();
    if let Some(condition) = condition {
        condition.clone().conjuncts(&mut parts);
    }
    parts
}

fn relations(item: &FromItem) -> usize {
    match item {
        FromItem::Rel(_) => 1,
        FromItem::Join { left, right, .. } => relations(left) + relations(right),
    }
}

/// How many an item is where it is taken apart as far as `limit` allows.
fn apart(item: &FromItem, limit: usize) -> usize {
    match item {
        FromItem::Rel(_) => 1,
        FromItem::Join {
            kind: JoinKind::Full,
            ..
        } => 1,
        FromItem::Join { left, right, .. } => {
            let both = apart(left, limit).saturating_add(apart(right, limit));
            if both <= limit { both } else { 2 }
        }
    }
}

impl<'q> Parts<'q> {
    fn new(conditions: Vec<Expr>, limit: usize) -> Parts<'q> {
        Parts {
            inner: Vec::new(),
            outer: Vec::new(),
            conditions,
            limit,
        }
    }

    fn len(&self) -> usize {
        self.inner.len() + self.outer.len()
    }

    /// Adds the items of a FROM, one after another.
    fn add_all(&mut self, items: &'q [FromItem], limit: usize) {
        let mut before = 0;
        for (at, item) in items.iter().enumerate() {
            let own = apart(item, self.limit);
            let after = items.len() - at - 1;
            let collapses = own <= 1 || before + own + after <= limit;
            before += if collapses { own } else { 1 };
            match collapses || items.len() == 1 {
                true => self.add(item, true, false),
                false => self.inner.push(item),
            }
        }
    }

    /// Adds an item, taken apart if it is a join and may be; one within another only where there is
    /// room.
    fn add(&mut self, item: &'q FromItem, may: bool, within: bool) {
        let room = self.len() + relations(item) <= MOST_RELATIONS;
        match item {
            FromItem::Join {
                kind: kind @ (JoinKind::Inner | JoinKind::Left | JoinKind::Right),
                left,
                right,
                on,
                ..
            } if may && (room || !within) => {
                let sides = apart(left, self.limit).saturating_add(apart(right, self.limit));
                let apart = sides <= self.limit;
                let on = conjuncts(on.as_ref());
                // A right join is a left join seen from the other side.
                let (left, right) = match kind {
                    JoinKind::Right => (right, left),
                    _ => (left, right),
                };
                self.add(left, apart, true);
                if *kind == JoinKind::Inner {
                    self.add(right, apart, true);
                    self.conditions.extend(on);
                    return;
                }
                let mut rels = Vec::new();
                left.rels(&mut rels);
                self.outer.push(Outer {
                    item: right,
                    apart,
                    on,
                    left: rels,
                });
            }
            other => self.inner.push(other),
        }
    }

    /// Outer joins whose missing rows a condition would take away again are inner joins.
    fn reduce(&mut self) {
        let reduced = |outer: &Outer<'_>, conditions: &[Expr]| {
            let mut rels = Vec::new();
            outer.item.rels(&mut rels);
            conditions.iter().any(|c| graph::rejects_missing(c, &rels))
        };
        while let Some(at) = self.outer.iter().position(|o| reduced(o, &self.conditions)) {
            let outer = self.outer.remove(at);
            self.add(outer.item, outer.apart, true);
            self.conditions.extend(outer.on);
        }
    }
}

impl Planner<'_> {
    /// The join of `items` under `conditions`, conjuncts that may speak of variables from outside.
    pub(super) fn from(
        &mut self,
        items: &[FromItem],
        conditions: Vec<Expr>,
        wanted: &Wanted,
    ) -> Result<Built> {
        if items.iter().map(relations).sum::<usize>() > MOST_RELATIONS && items.len() > 1 {
            let joined = items
                .iter()
                .rev()
                .cloned()
                .reduce(|right, left| FromItem::Join {
                    kind: JoinKind::Inner,
                    left: Box::new(left),
                    right: Box::new(right),
                    on: None,
                    using: vec![],
                    alias: None,
                });
            // Who wrote a list has not asked for this order.
            let limit = std::mem::replace(&mut self.join_limit, usize::MAX);
            let built = self.from(&Vec::from_iter(joined), conditions, wanted);
            self.join_limit = limit;
            return built;
        }
        self.note_tables(items);
        let mut parts = Parts::new(conditions, self.join_limit);
        let limit = usize::try_from(self.ctx.from_collapse_limit).unwrap_or(1);
        parts.add_all(items, limit);
        parts.reduce();
        let mut local = Vec::new();
        items.iter().for_each(|item| item.rels(&mut local));
        let mut conditions = std::mem::take(&mut parts.conditions);
        if parts.len() > 1 {
            alternatives::derive(&mut conditions, &local);
        }
        let (semi, conditions) = self.semi_joins(conditions, &local, &parts.inner);
        match (&parts.inner[..], parts.outer.is_empty() && semi.is_empty()) {
            ([], true) => {
                let built = self.one_row();
                self.filter(built, conditions)
            }
            ([item], true) => {
                let mut conditions = conditions;
                let late = take(&mut conditions, |c| runs_for_each_row(c, &local));
                conditions.extend(late);
                self.unit(item, conditions, wanted)
            }
            _ => self.joined(parts, semi, conditions, &local),
        }
    }

    /// One item of FROM under conditions on it alone.
    fn unit(&mut self, item: &FromItem, own: Vec<Expr>, wanted: &Wanted) -> Result<Built> {
        match item {
            FromItem::Rel(rel) => self.rel(rel, own, wanted),
            FromItem::Join {
                kind: JoinKind::Full,
                left,
                right,
                on,
                ..
            } => self.full_join(left, right, conjuncts(on.as_ref()), own),
            FromItem::Join { .. } => self.from(std::slice::from_ref(item), own, wanted),
        }
    }

    fn full_join(
        &mut self,
        left: &FromItem,
        right: &FromItem,
        on: Vec<Expr>,
        above: Vec<Expr>,
    ) -> Result<Built> {
        let mut left_rels = Vec::new();
        left.rels(&mut left_rels);
        let mut lateral = false;
        right.for_each_expr(&mut |e| {
            e.for_each_var(&mut |var| lateral |= left_rels.contains(&var.rel));
        });
        if lateral {
            return Err(Error::unsupported("a lateral item on a side of FULL JOIN"));
        }
        let left = self.from(std::slice::from_ref(left), vec![], &Wanted::default())?;
        let right = self.from(std::slice::from_ref(right), vec![], &Wanted::default())?;
        let pairs = left.rows() * right.rows() * self.shares(&on, None);
        let rows = cost::at_least_one(pairs.max(left.rows()).max(right.rows()));
        let joined = self.join_built(JoinKind::Full, left, right, on, (rows, true))?;
        self.filter(joined, above)
    }

    fn joined(
        &mut self,
        parts: Parts<'_>,
        semi: Vec<SemiJoin>,
        mut conditions: Vec<Expr>,
        local: &[RelId],
    ) -> Result<Built> {
        let mut late = take(&mut conditions, |c| runs_for_each_row(c, local));
        let filtered_by_joins = !semi.is_empty();
        let mut graph = self.members(parts, semi, local);
        let mut last = self.clauses(&mut graph, conditions);
        self.measure(&mut graph)?;
        // Conditions that run a query for each row wait for the joins, unless those leave no fewer
        // rows to run them for.
        let least = graph
            .members
            .iter()
            .map(|m| m.rows)
            .fold(f64::INFINITY, f64::min);
        for at in 0..graph.members.len() {
            let member = &graph.members[at];
            if member.kind != JoinKind::Inner || member.rows > least || filtered_by_joins {
                continue;
            }
            let early = take(&mut late, |c| graph.mask_of(c) == 1 << at);
            if !early.is_empty() {
                graph.members[at].own.extend(early);
                graph.members[at].built = None;
                self.measure_one(&mut graph.members[at])?;
            }
        }
        last.extend(late);
        let edges = graph.edges();
        let mut search = Search {
            planner: self,
            graph: &graph,
            rows: RowsOf::default(),
            probes: HashMap::default(),
            failed: None,
        };
        let found = enumerate::cheapest(&edges, &mut search);
        interrupt::look()?;
        if let Some(e) = search.failed {
            return Err(e);
        }
        let table = found.ok_or_else(|| Error::internal("lateral items that need each other"))?;
        let all = (0..graph.members.len()).fold(0, |all, at| all | 1 << at);
        let built = self.realize(&mut graph, &table, all)?;
        self.filter(built, last)
    }

    /// What is joined, without the conditions between.
    fn members<'q>(&mut self, parts: Parts<'q>, semi: Vec<SemiJoin>, local: &[RelId]) -> Graph<'q> {
        let mut graph = Graph::default();
        let member = |item: Item<'q>, rels: Vec<RelId>, kind: JoinKind| Member {
            item,
            rels,
            kind,
            required: 0,
            lateral: false,
            own: Vec::new(),
            on: Vec::new(),
            built: None,
            rows: 1.0,
            cost: 0.0,
            partners: 1.0,
        };
        for item in parts.inner {
            let mut rels = Vec::new();
            item.rels(&mut rels);
            graph
                .members
                .push(member(Item::From(item), rels, JoinKind::Inner));
        }
        let mut beside = Vec::new();
        for outer in parts.outer {
            let mut rels = Vec::new();
            outer.item.rels(&mut rels);
            let mut new = member(Item::From(outer.item), rels, JoinKind::Left);
            new.on = outer.on;
            new.own = take(&mut new.on, |c| {
                is_about(c, &new.rels, local) && !has_volatile(c)
            });
            beside.push((graph.members.len(), outer.left));
            graph.members.push(new);
        }
        for join in semi {
            let rels = join.right.rels();
            if let Inner::From(items) = &join.right {
                self.note_tables(items);
            }
            let mut new = member(Item::Inner(join.right), rels, join.kind);
            (new.own, new.on) = (join.own, join.on);
            graph.members.push(new);
        }
        for at in 0..graph.members.len() {
            let member = &graph.members[at];
            let mut needs: Set = 0;
            if let Item::From(item) = &member.item {
                item.for_each_expr(&mut |e| needs |= graph.mask_of(e));
            }
            needs &= !(1 << at);
            let on = member.on.iter().fold(0, |all, c| all | graph.mask_of(c)) & !(1 << at);
            graph.members[at].lateral = needs != 0;
            graph.members[at].required = needs | on;
        }
        // One whose ON says nothing of the other side stands beside all of it.
        for (at, left) in beside {
            if graph.members[at].required == 0 {
                let of = |rel: &RelId| graph.member_of(*rel).map_or(0, |at| 1 << at);
                graph.members[at].required = left.iter().fold(0, |all, rel| all | of(rel));
            }
        }
        graph
    }

    /// Sorts conditions to where they are met: at one member, between several; gives back those
    /// that come last.
    fn clauses(&self, graph: &mut Graph<'_>, conditions: Vec<Expr>) -> Vec<Expr> {
        let mut last = Vec::new();
        let mut fixed = Vec::new();
        for condition in conditions {
            let mask = graph.mask_of(&condition);
            if mask == 0 || has_volatile(&condition) {
                last.push(condition);
                continue;
            }
            let at = mask.trailing_zeros() as usize;
            if mask.count_ones() == 1 && graph.members[at].kind == JoinKind::Inner {
                fixed.extend(
                    graph::fixed_column(&condition).and_then(|(op, var, value)| {
                        let steady = graph.mask_of(value) == 0
                            && !value.any(&mut |e| matches!(e, Expr::Subquery(_)));
                        steady.then(|| (op, var.clone(), value.clone()))
                    }),
                );
                graph.members[at].own.push(condition);
                continue;
            }
            if let Some((op, a, b)) = graph::equal_columns(&condition) {
                let (x, y) = (graph.member_of(a.rel), graph.member_of(b.rel));
                let inner = |at: usize| graph.members[at].kind == JoinKind::Inner;
                if let (Some(x), Some(y)) = (x, y)
                    && x != y
                    && inner(x)
                    && inner(y)
                {
                    let of = |member: usize, var: &throng_bind::expr::Var| {
                        let facts = self.facts(&Expr::Var(var.clone()), None);
                        ClassMember {
                            member,
                            var: var.clone(),
                            distinct: facts.map_or(facts::DISTINCT, |f| f.distinct),
                            nulls: facts.map_or(0.0, |f| f.nulls),
                        }
                    };
                    let pair = [of(x, a), of(y, b)];
                    add_to_classes(&mut graph.classes, op, pair, (mask, condition));
                    continue;
                }
            }
            // One about a side that may be missing waits for its join, wherever else it could be
            // met.
            let mask = bits(mask).fold(mask, |all, at| match graph.members[at].kind {
                JoinKind::Inner => all,
                _ => all | graph.members[at].required,
            });
            let share = self.share_beyond_implied(&condition, graph);
            let sides = graph.sides_of(&condition);
            graph.clauses.push(Clause {
                expr: condition,
                mask,
                sides,
                share,
            });
        }
        self.settle_classes(graph, &fixed);
        last
    }

    /// The share that a condition lets through of the rows that meet what it implies of single
    /// members.
    fn share_beyond_implied(&self, condition: &Expr, graph: &Graph<'_>) -> f64 {
        let rels: Vec<RelId> = graph
            .members
            .iter()
            .flat_map(|m| &m.rels)
            .copied()
            .collect();
        let implied = alternatives::implied_by(condition, &rels);
        let apart: f64 = implied.iter().map(|c| self.share(c, None)).product();
        let share = self.share(condition, None);
        if apart > share { share / apart } else { share }
    }

    /// What classes say of single members, and what their equalities let through.
    fn settle_classes(
        &self,
        graph: &mut Graph<'_>,
        fixed: &[(&'static Operator, throng_bind::expr::Var, Expr)],
    ) {
        let Graph {
            members,
            classes,
            unique,
            ..
        } = graph;
        let mut add = |member: usize, condition: Expr| {
            if !members[member].own.contains(&condition) {
                members[member].own.push(condition);
            }
        };
        classes.retain_mut(|class| {
            // Two columns of one member are equal by themselves.
            let mut firsts: Vec<ClassMember> = Vec::new();
            let value = fixed.iter().find(|(op, var, _)| {
                op.oid == class.op.oid && class.members.iter().any(|m| m.var == *var)
            });
            for one in class.members.drain(..) {
                if let Some((_, _, value)) = value {
                    add(
                        one.member,
                        graph::equality(class.op, &one.var, value.clone()),
                    );
                    continue;
                }
                match firsts.iter().find(|first| first.member == one.member) {
                    Some(first) => add(
                        one.member,
                        graph::equality(class.op, &first.var, Expr::Var(one.var)),
                    ),
                    None => firsts.push(one),
                }
            }
            class.members = firsts;
            class.members.len() > 1
        });
        for class in classes {
            if let [a, b] = &class.members[..] {
                let of = |m: &ClassMember| self.facts(&Expr::Var(m.var.clone()), None);
                class.share = of(a).zip(of(b)).map(|(a, b)| facts::joined(&a, &b));
            }
        }
        for (at, member) in members.iter().enumerate() {
            for rel in &member.rels {
                let Some(table) = self.tables.get(rel) else {
                    continue;
                };
                let family = self.rows_of_family(*rel);
                if family.is_some() && !table.is_partitioned() {
                    continue;
                }
                let rows = family.unwrap_or_else(|| self.ctx.stats.table_size(table.oid).rows);
                for index in self.ctx.catalog.indexes_of(table.oid) {
                    if index.unique && index.is_plain() && index.columns.len() > 1 {
                        unique.push(Unique {
                            member: at,
                            rel: *rel,
                            columns: index.columns.iter().map(|c| c.attnum as i16).collect(),
                            rows,
                        });
                    }
                }
            }
        }
    }

    /// Rows and cost of each member by itself, and how many partners rows find in those that are
    /// not inner.
    fn measure(&mut self, graph: &mut Graph<'_>) -> Result<()> {
        for member in &mut graph.members {
            self.measure_one(member)?;
            if member.kind != JoinKind::Inner {
                member.partners = self.partners(member);
            }
        }
        Ok(())
    }

    fn measure_one(&mut self, member: &mut Member<'_>) -> Result<()> {
        let own = member.own.clone();
        // A table is read in one of several ways; what is more than a table is built once.
        let cost = match is_table(&member.item) || member.lateral {
            true => self.tried(|p| Ok(p.read(member, own)?.plan.cost))?.0,
            false => {
                let built = self.read(member, own)?;
                let cost = built.plan.cost;
                member.built = Some(built);
                cost
            }
        };
        (member.rows, member.cost) = (cost.rows, cost.total);
        Ok(())
    }

    fn read(&mut self, member: &Member<'_>, conditions: Vec<Expr>) -> Result<Built> {
        match &member.item {
            Item::From(item) => self.unit(item, conditions, &Wanted::default()),
            Item::Inner(Inner::From(items)) => self.from(items, conditions, &Wanted::default()),
            Item::Inner(Inner::Query(query)) => {
                let inner = self.query(query)?;
                let built = from::rename(inner.plan, query.output);
                self.filter(built, conditions)
            }
        }
    }

    /// Builds something to see what it costs, and leaves no trace of it; gives with it whether it
    /// needs anything from outside.
    pub(super) fn tried<T>(
        &mut self,
        build: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(T, bool)> {
        let before = (self.next_plan, self.next_param, self.subplans.len());
        let (shared, steps) = (self.shared.clone(), self.steps.clone());
        let work_tables = self.work_tables;
        let built = self.attached(build);
        (self.next_plan, self.next_param) = (before.0, before.1);
        self.subplans.truncate(before.2);
        (self.shared, self.steps) = (shared, steps);
        self.work_tables = work_tables;
        built.map(|(built, free)| (built, !free.is_empty()))
    }

    /// Of a left join's right side: partners of a row on average. Of a semi-join's: the share of
    /// rows with a partner.
    fn partners(&self, member: &Member<'_>) -> f64 {
        let inner = |e: &Expr| rels_of(e).iter().any(|rel| member.rels.contains(rel));
        if member.kind == JoinKind::Left {
            return member.rows * self.shares(&member.on, None);
        }
        let mut share = 1.0;
        for condition in &member.on {
            let Expr::Op { op, args, .. } = condition else {
                share *= self.share(condition, None);
                continue;
            };
            let (outer, own) = match &args[..] {
                [a, b] if inner(b) && !inner(a) => (a, b),
                [a, b] if inner(a) && !inner(b) => (b, a),
                _ => {
                    share *= self.share(condition, None);
                    continue;
                }
            };
            share *= match (op.strategy, op.name) {
                (Some(Strategy::Equal), _) => {
                    let of_query = Facts {
                        distinct: member.rows,
                        guessed: false,
                        ..Facts::unknown(member.rows)
                    };
                    let theirs = self.facts(own, None).unwrap_or(of_query);
                    match self.facts(outer, None) {
                        Some(mine) => facts::partnered(&mine, &theirs, member.rows),
                        None => 0.5,
                    }
                }
                (None, "<>") => 1.0,
                _ => self.share(condition, None),
            };
        }
        // Whoever asks for what has no partner expects some.
        match member.kind {
            JoinKind::Anti => share.min(0.9),
            _ => share,
        }
    }

    /// Builds the joins that were found to be the cheapest.
    fn realize(&mut self, graph: &mut Graph<'_>, table: &Table, set: Set) -> Result<Built> {
        let lost = || Error::internal("a join without an order");
        let best = *table.get(&set).ok_or_else(lost)?;
        let at = set.trailing_zeros() as usize;
        let Some((left_set, right_set, way)) = best.join else {
            let member = &mut graph.members[at];
            if let Some(built) = member.built.take() {
                return Ok(built);
            }
            let own = member.own.clone();
            return self.read(&graph.members[at], own);
        };
        let left = self.realize(graph, table, left_set)?;
        let between = graph.between(left_set, right_set);
        let right_at = right_set.trailing_zeros() as usize;
        let single = right_set.count_ones() == 1;
        let kind = match single {
            true => graph.members[right_at].kind,
            false => JoinKind::Inner,
        };
        let (on, above) = match kind {
            JoinKind::Inner => (between, Vec::new()),
            _ => (graph.members[right_at].on.clone(), between),
        };
        let by_row = single && (way == Way::Keyed || graph.members[right_at].lateral);
        let joined = if by_row {
            let member = &graph.members[right_at];
            let (own, on) = match way {
                Way::Keyed => (with_keys(member, &on), Vec::new()),
                _ => (member.own.clone(), on),
            };
            let (right, free) = self.attached(|p| p.read(member, own))?;
            self.nested_loop(kind, left, right, free, on, (best.rows, false))?
        } else {
            let right = self.realize(graph, table, right_set)?;
            self.join_built(kind, left, right, on, (best.rows, way == Way::Hash))?
        };
        let mut built = self.filter(joined, above)?;
        built.plan.cost.rows = best.rows;
        Ok(built)
    }
}

/// A member's conditions with those that lead to it.
fn with_keys(member: &Member<'_>, on: &[Expr]) -> Vec<Expr> {
    let mut all = member.own.clone();
    let by_array = |c: &Expr| as_any(c, &member.rels).unwrap_or_else(|| c.clone());
    all.extend(on.iter().map(by_array));
    all
}

fn has_keys(rel: &Rel) -> bool {
    match &rel.kind {
        RelKind::Table(_) => true,
        RelKind::Virtual(table) => table.key_columns().next().is_some(),
        _ => false,
    }
}

fn is_table(item: &Item<'_>) -> bool {
    match item {
        Item::From(FromItem::Rel(rel)) => has_keys(rel),
        Item::Inner(Inner::From(items)) => match &items[..] {
            [FromItem::Rel(rel)] => has_keys(rel),
            _ => false,
        },
        _ => false,
    }
}

fn add_to_classes(
    classes: &mut Vec<Class>,
    op: &'static Operator,
    pair: [ClassMember; 2],
    said: (Set, Expr),
) {
    let holds = |class: &Class, m: &ClassMember| {
        class.op.oid == op.oid && class.members.iter().any(|other| other.var == m.var)
    };
    let mut class = Class {
        op,
        members: Vec::new(),
        said: vec![said],
        share: None,
    };
    let mut at = 0;
    while at < classes.len() {
        if pair.iter().any(|m| holds(&classes[at], m)) {
            let other = classes.remove(at);
            class.members.extend(other.members);
            class.said.extend(other.said);
        } else {
            at += 1;
        }
    }
    for one in pair {
        if !class.members.iter().any(|m| m.var == one.var) {
            class.members.push(one);
        }
    }
    classes.push(class);
}

type RowsOf = HashMap<Set, f64, FixedState>;

/// What joins of a graph cost.
struct Search<'s, 'p, 'q> {
    planner: &'s mut Planner<'p>,
    graph: &'s Graph<'q>,
    rows: RowsOf,
    /// What reading a member by keys costs for one row of those that it is connected with, where it
    /// can be.
    probes: HashMap<(usize, Set), Option<f64>, FixedState>,
    failed: Option<Error>,
}

impl Search<'_, '_, '_> {
    fn probe(&mut self, at: usize, left: Set) -> Option<f64> {
        let member = &self.graph.members[at];
        if !is_table(&member.item) || member.kind == JoinKind::Full {
            return None;
        }
        let around = self.graph.around(at, left);
        if let Some(cost) = self.probes.get(&(at, around)) {
            return *cost;
        }
        let on = match member.kind {
            JoinKind::Inner => self.graph.between(around, 1 << at),
            _ => member.on.clone(),
        };
        let mut cost = None;
        if !on.is_empty() {
            let tried = self.planner.tried(|p| {
                let built = p.read(member, with_keys(member, &on))?;
                Ok(is_by_key(&built.plan).then_some(built.plan.cost.total))
            });
            match tried {
                Ok((found, needs)) => cost = found.filter(|_| needs),
                Err(e) => self.failed = Some(e),
            }
        }
        self.probes.insert((at, around), cost);
        cost
    }
}

impl Joins for Search<'_, '_, '_> {
    fn relation(&self, at: usize) -> (f64, f64) {
        let member = &self.graph.members[at];
        (member.rows, member.cost)
    }

    fn rows(&mut self, set: Set) -> f64 {
        let graph = self.graph;
        *self.rows.entry(set).or_insert_with(|| graph.rows_of(set))
    }

    fn join(&mut self, left: (Set, Best), right: (Set, Best), rows: f64) -> Option<(f64, Way)> {
        let ((left, a), (right, b)) = (left, right);
        let alone = |set: Set| (set.count_ones() == 1).then(|| set.trailing_zeros() as usize);
        let bound = |at: usize| {
            let member = &self.graph.members[at];
            member.kind != JoinKind::Inner || member.required != 0
        };
        if alone(left).is_some_and(bound) {
            return None;
        }
        let made = rows * cost::TUPLE;
        let mut hashable = None;
        let mut kind = JoinKind::Inner;
        if let Some(at) = alone(right) {
            let member = &self.graph.members[at];
            if member.required & !left != 0 {
                return None;
            }
            if member.lateral {
                return Some((a.cost + a.rows * b.cost + made, Way::Loop));
            }
            kind = member.kind;
            if kind != JoinKind::Inner {
                let splits = |(x, y): (Set, Set)| x == right || y == right;
                let mut sides = member.on.iter().filter_map(|c| self.graph.sides_of(c));
                hashable = Some(sides.any(splits));
            }
        }
        let hashable = hashable.unwrap_or_else(|| self.graph.is_hashable(left, right));
        let ctx = self.planner.ctx;
        let pairs = a.rows * b.rows;
        let hash = hashable && (ctx.enable_hashjoin || pairs > MOST_PAIRS);
        let mut best = (f64::INFINITY, Way::Loop);
        if hash {
            let work = match kind {
                JoinKind::Inner | JoinKind::Left if a.rows < b.rows => {
                    cost::hash_work(b.rows, a.rows)
                }
                _ => cost::hash_work(a.rows, b.rows),
            };
            best = (a.cost + b.cost + work + made, Way::Hash);
        }
        if ctx.enable_nestloop || !hash {
            let work = cost::pairs_work(a.rows, b.rows, 1.0);
            let cost = a.cost + b.cost + work + made;
            if cost < best.0 {
                best = (cost, Way::Loop);
            }
        }
        if let (Some(at), true) = (alone(right), ctx.enable_nestloop)
            && let Some(probe) = self.probe(at, left)
        {
            let cost = a.cost + a.rows * probe + made;
            if cost < best.0 {
                best = (cost, Way::Keyed);
            }
        }
        Some(best)
    }
}

/// Whether a table is read through indexes alone, or a virtual one by key.
fn is_by_key(plan: &super::Plan) -> bool {
    match &plan.node {
        Node::IndexScan(_) | Node::BitmapScan(_) | Node::VirtualScan { key: Some(_), .. } => true,
        Node::Append(append) => append.inputs.iter().all(|input| is_by_key(&input.plan)),
        _ => false,
    }
}

/// Whether, of the relations joined here, a condition speaks of these alone.
fn is_about(condition: &Expr, rels: &[RelId], local: &[RelId]) -> bool {
    rels_of(condition)
        .iter()
        .all(|rel| rels.contains(rel) || !local.contains(rel))
}

/// A condition with a subquery about the relations that are joined.
fn runs_for_each_row(condition: &Expr, local: &[RelId]) -> bool {
    condition.any(&mut |e| match e {
        Expr::Subquery(sub) => {
            let mut refers = false;
            sub.query
                .for_each_var(&mut |var| refers |= local.contains(&var.rel));
            refers
        }
        _ => false,
    })
}

/// A condition that must not be met earlier or more often than it is written.
fn has_volatile(condition: &Expr) -> bool {
    condition.any(&mut throng_bind::fold::is_volatile)
}
