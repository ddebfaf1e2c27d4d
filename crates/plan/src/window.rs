//! Window functions: one operator a window, each over rows in that window's order.
//!
//! ```text
//! … ─► Project (the row, then what windows partition and order by) ─► Sort ─► Window w1 ─► Sort, unless in order ─► Window w2 …
//! ```
//! Each operator adds its values at the row's end. Windows go in PostgreSQL's order: one whose
//! order begins with another's comes first, so that the other needs no sort.

use std::cmp::Ordering;

use throng_types::{Result, SqlType};

use super::cost;
use super::select::is_sorted;
use super::{Built, Columns, Cost, Node, OrderedBy, Planner, WindowNode};
use throng_bind::expr::{Expr, RelId, SortKey, Var};
use throng_bind::query::{Distinct, Query, Select};
use throng_bind::window::{Callee, Exclude, Frame, FrameBound, FrameMode, Window, WindowCall};

/// A window with the calls over it.
struct Active {
    window: Window,
    calls: Vec<WindowCall>,
    /// By whose rank among the query's sort expressions PostgreSQL tells which window goes first.
    ranks: Ranks,
}

/// What the expressions above the windows are made of.
pub(super) struct Windowed {
    rel: RelId,
    /// What windows partition and order by, where it is computed.
    extras: Vec<Expr>,
    active: Vec<Active>,
}

impl Windowed {
    /// Where a call's value is found.
    fn place(&self, call: &WindowCall, windows: &[usize]) -> Option<i16> {
        let mut column = self.extras.len();
        let wanted = windows[call.window as usize];
        for (index, active) in self.active.iter().enumerate() {
            let found = active.calls.iter().position(|c| {
                index == wanted
                    && (&c.callee, &c.args, &c.filter) == (&call.callee, &call.args, &call.filter)
            });
            if let Some(at) = found {
                return Some((column + at) as i16 + 1);
            }
            column += active.calls.len();
        }
        None
    }

    fn var(&self, column: i16, ty: SqlType) -> Expr {
        Expr::Var(Var {
            rel: self.rel,
            column,
            ty,
        })
    }

    /// Replaces window calls, and what windows compute too, by variables of the last window's row.
    fn rewrite(&self, mut expr: Expr, windows: &[usize]) -> Expr {
        if let Some(at) = self.extras.iter().position(|e| *e == expr) {
            return self.var(at as i16 + 1, expr.ty());
        }
        if let Expr::Window(call) = &expr
            && let Some(column) = self.place(call, windows)
        {
            return self.var(column, call.ty);
        }
        expr.for_each_child_mut(&mut |child| {
            *child = self.rewrite(std::mem::replace(child, Expr::bool(true)), windows);
        });
        expr
    }
}

/// By what number, direction and place of NULLs a window's rows are sorted.
pub(super) type Ranks = Vec<(usize, bool, bool)>;

/// For each of the query's windows what decides when its turn is: its sort order, in the numbers
/// that PostgreSQL gives the query's sort expressions one after the other.
pub(super) fn sort_ranks(query: &Query, select: &Select) -> Vec<Ranks> {
    if select.windows.is_empty() {
        return Vec::new();
    }
    let ranks = sort_expressions(query, select);
    let rank = |key: SortKey| {
        let number = ranks.iter().position(|e| *e == key.expr).unwrap_or(0);
        // PostgreSQL compares the operators' oids: those of > are greater; then NULLS FIRST goes
        // first.
        (number, key.descending, !key.nulls_first)
    };
    let ranks_of = |w: &Window| sort_order(w).into_iter().map(rank).collect();
    select.windows.iter().map(ranks_of).collect()
}

fn sort_expressions(query: &Query, select: &Select) -> Vec<Expr> {
    let mut ranks: Vec<Expr> = Vec::new();
    let mut note = |e: &Expr| {
        if !ranks.contains(e) {
            ranks.push(e.clone());
        }
    };
    query.order.iter().for_each(|k| note(&k.expr));
    select.group_by.iter().for_each(&mut note);
    match &select.distinct {
        Distinct::No => {}
        Distinct::All => select.targets.iter().for_each(|t| note(&t.expr)),
        Distinct::On(exprs) => exprs.iter().for_each(&mut note),
    }
    for window in &select.windows {
        window.order.iter().for_each(|k| note(&k.expr));
        window.partition.iter().for_each(&mut note);
    }
    ranks
}

/// The keys that bring a window's rows together and in order.
fn sort_order(window: &Window) -> Vec<SortKey> {
    let mut keys: Vec<SortKey> = Vec::new();
    let partition = window.partition.iter().map(|expr| SortKey {
        expr: expr.clone(),
        descending: false,
        nulls_first: false,
    });
    for key in partition.chain(window.order.iter().cloned()) {
        if !keys.iter().any(|k| k.expr == key.expr) {
            keys.push(key);
        }
    }
    keys
}

/// Greater numbers first; of two orders one of which begins the other, the longer first.
fn by_rank(a: &Active, b: &Active) -> Ordering {
    for ((n, desc, last), (m, other_desc, other_last)) in a.ranks.iter().zip(&b.ranks) {
        let order = (m, other_desc, last).cmp(&(n, desc, other_last));
        if order.is_ne() {
            return order;
        }
    }
    b.ranks.len().cmp(&a.ranks.len())
}

/// Functions of a row's place need no frame; said so, the window shows what it really reads.
fn optimized(mut window: Window, calls: &[WindowCall]) -> Window {
    let ranks_only = calls
        .iter()
        .all(|c| matches!(c.callee, Callee::Function(f) if f.kind.is_rank()));
    if ranks_only {
        window.frame = Frame {
            mode: FrameMode::Rows,
            start: FrameBound::UnboundedPreceding,
            end: FrameBound::CurrentRow,
            between: false,
            written: true,
            exclude: Exclude::Nothing,
        };
    }
    window
}

/// Calls over windows below `exprs`, each once.
fn collect_calls(exprs: &[&mut Expr]) -> Vec<WindowCall> {
    fn walk(expr: &Expr, calls: &mut Vec<WindowCall>) {
        match expr {
            Expr::Window(call) => {
                if !calls.contains(call) {
                    calls.push((**call).clone());
                }
            }
            _ => expr.for_each_child(&mut |e| walk(e, calls)),
        }
    }
    let mut calls = Vec::new();
    exprs.iter().for_each(|e| walk(e, &mut calls));
    calls
}

impl Planner<'_> {
    /// Computes the window functions in `exprs`, which are then read from the row. `windows`: the
    /// query's, with `ranks` of what they had been before grouping (see [`sort_ranks`]).
    pub(super) fn windows(
        &mut self,
        mut built: Built,
        windows: Vec<Window>,
        ranks: &[Ranks],
        mut exprs: Vec<&mut Expr>,
    ) -> Result<Built> {
        if windows.is_empty() {
            return Ok(built);
        }
        let calls = collect_calls(&exprs);
        if calls.is_empty() {
            return Ok(built);
        }
        let mut windowed = Windowed {
            rel: self.new_rel(),
            extras: Vec::new(),
            active: Vec::new(),
        };
        // Where each of the query's windows went.
        let mut places: Vec<usize> = vec![usize::MAX; windows.len()];
        for (index, window) in windows.into_iter().enumerate() {
            let own: Vec<WindowCall> = calls
                .iter()
                .filter(|c| c.window as usize == index)
                .cloned()
                .collect();
            if own.is_empty() {
                continue;
            }
            let window = optimized(window, &own);
            let known = windowed
                .active
                .iter()
                .position(|a| a.window.same_but_for_name(&window));
            places[index] = match known {
                Some(known) => {
                    windowed.active[known].calls.extend(own);
                    known
                }
                None => {
                    windowed.active.push(Active {
                        window,
                        calls: own,
                        ranks: ranks[index].clone(),
                    });
                    windowed.active.len() - 1
                }
            };
        }
        let mut sequence: Vec<usize> = (0..windowed.active.len()).collect();
        sequence.sort_by(|a, b| by_rank(&windowed.active[*a], &windowed.active[*b]));
        for place in places.iter_mut().filter(|p| **p != usize::MAX) {
            *place = sequence.iter().position(|s| s == place).unwrap_or(*place);
        }
        let mut active: Vec<Option<Active>> = windowed.active.into_iter().map(Some).collect();
        windowed.active = sequence.iter().filter_map(|s| active[*s].take()).collect();
        name_windows(&mut windowed.active);

        for active in &mut windowed.active {
            let keys = active.window.partition.iter_mut();
            let keys = keys.chain(active.window.order.iter_mut().map(|k| &mut k.expr));
            for key in keys {
                if matches!(key, Expr::Var(_) | Expr::Const(..) | Expr::Param(..)) {
                    continue;
                }
                let at = match windowed.extras.iter().position(|e| e == key) {
                    Some(at) => at,
                    None => {
                        windowed.extras.push(key.clone());
                        windowed.extras.len() - 1
                    }
                };
                *key = Expr::Var(Var {
                    rel: windowed.rel,
                    column: at as i16 + 1,
                    ty: key.ty(),
                });
            }
        }
        for expr in &mut exprs {
            let old = std::mem::replace(&mut **expr, Expr::bool(true));
            **expr = windowed.rewrite(old, &places);
        }
        let mut number = windowed.extras.len() as i16;
        built = self.extra_columns(built, windowed.rel, windowed.extras)?;
        for active in windowed.active {
            built = self.window(built, active, windowed.rel, &mut number)?;
        }
        Ok(built)
    }

    /// The rows with more columns, of `rel` from 1 on.
    fn extra_columns(&mut self, built: Built, rel: RelId, extras: Vec<Expr>) -> Result<Built> {
        let Built {
            plan,
            mut columns,
            order,
        } = built;
        let mut exprs: Vec<Expr> = plan
            .types
            .iter()
            .zip(0..)
            .map(|(ty, slot)| Expr::Slot(slot, *ty))
            .collect();
        for extra in extras {
            exprs.push(self.place(extra, &columns)?);
        }
        columns.width = plan.types.len() as u32;
        for number in 1..=(exprs.len() - plan.types.len()) as i16 {
            columns.push(Some((rel, number)));
        }
        Ok(Built {
            plan: self.project(plan, exprs),
            columns,
            order,
        })
    }

    /// One window's operator, over rows sorted for it.
    fn window(
        &mut self,
        mut built: Built,
        active: Active,
        rel: RelId,
        number: &mut i16,
    ) -> Result<Built> {
        let Active { window, calls, .. } = active;
        let mut keys = sort_order(&window);
        keys.retain(|k| !matches!(k.expr, Expr::Const(..) | Expr::Param(..)));
        if !is_sorted(&built.order, &keys) {
            let mut placed = Vec::with_capacity(keys.len());
            for key in &keys {
                placed.push(SortKey {
                    expr: self.place(key.expr.clone(), &built.columns)?,
                    ..key.clone()
                });
            }
            built = self.sort(built, placed);
            built.order = order_of(&keys);
        }
        let Built {
            plan,
            mut columns,
            order,
        } = built;
        let partition = self.place_all(window.partition, &columns)?;
        let mut sort_keys = Vec::with_capacity(window.order.len());
        for key in window.order {
            sort_keys.push(SortKey {
                expr: self.place(key.expr, &columns)?,
                ..key
            });
        }
        let mut frame = window.frame;
        for offset in frame.offsets_mut() {
            let expr = std::mem::replace(offset, Expr::bool(true));
            *offset = self.place(expr, &Columns::default())?;
        }
        let mut placed = Vec::with_capacity(calls.len());
        for call in calls {
            placed.push(WindowCall {
                args: self.place_all(call.args, &columns)?,
                filter: call.filter.map(|f| self.place(f, &columns)).transpose()?,
                ..call
            });
        }
        let mut types: Vec<SqlType> = plan.types.clone();
        columns.width = types.len() as u32;
        for call in &placed {
            *number += 1;
            columns.push(Some((rel, *number)));
            types.push(call.ty);
        }
        let work = (partition.len() + sort_keys.len() + placed.len()) as f64;
        let cost = Cost {
            width: cost::width(&types),
            ..cost::per_row(&plan.cost, work)
        };
        let node = Node::Window(WindowNode {
            input: Box::new(plan),
            name: window.name.unwrap_or_default(),
            partition,
            order: sort_keys,
            frame,
            calls: placed,
        });
        Ok(Built {
            plan: self.node(node, types, cost),
            columns,
            order,
        })
    }
}

/// What is known of rows sorted by these keys.
fn order_of(keys: &[SortKey]) -> Vec<OrderedBy> {
    keys.iter()
        .map_while(|key| match &key.expr {
            Expr::Var(var) => Some(OrderedBy {
                rel: var.rel,
                column: var.column,
                descending: key.descending,
                nulls_first: key.nulls_first,
            }),
            _ => None,
        })
        .collect()
}

/// Windows without a name get one, for EXPLAIN.
fn name_windows(active: &mut [Active]) {
    let mut number = 0;
    for at in 0..active.len() {
        if active[at].window.name.is_some() {
            continue;
        }
        let name = loop {
            number += 1;
            let name = format!("w{number}");
            if !active.iter().any(|a| a.window.name.as_ref() == Some(&name)) {
                break name;
            }
        };
        active[at].window.name = Some(name);
    }
}
