//! Joining two plans: the operators, and what they cost.

use throng_types::key::same_keys;
use throng_types::{Error, Result};

use super::index_key::comparison;
use super::join::rels_of;
use super::{Built, Columns, Cost, HashJoin, NestedLoop, Node, Planner};
use super::{cost, with};
use throng_bind::expr::{Expr, RelId};
use throng_bind::query::JoinKind;
use throng_values::func::{Operator, Strategy, operator_by_oid};

impl Planner<'_> {
    /// Joins two plans, of which `rows` are to come: by hash where an equality allows it, and it is
    /// not to be by a loop.
    pub(super) fn join_built(
        &mut self,
        mut kind: JoinKind,
        left: Built,
        right: Built,
        on: Vec<Expr>,
        (rows, by_hash): (f64, bool),
    ) -> Result<Built> {
        let (mut left, mut right) = (left, right);
        let (keys, rest) = hash_keys(on, &left.columns, &right.columns);
        if keys.is_empty() || !(by_hash || kind == JoinKind::Full) {
            if kind == JoinKind::Full {
                return Err(Error::unsupported(
                    "FULL JOIN is only supported with merge-joinable or hash-joinable join conditions",
                ));
            }
            let conditions = keys
                .into_iter()
                .map(|key| key.condition)
                .chain(rest)
                .collect();
            let right = self.materialize(right);
            return self.nested_loop(kind, left, right, Vec::new(), conditions, (rows, true));
        }
        let mut pairs: Vec<(Expr, Expr)> = keys.into_iter().map(|k| (k.left, k.right)).collect();
        // The table is built of the right side: the smaller one, where the kind of join does not
        // care; or the one that is the same in each step of a recursion.
        let better = match (with::changes(&left.plan), with::changes(&right.plan)) {
            (true, false) => !with::can_be_kept(&right.plan.cost) && left.rows() < right.rows(),
            (false, true) => with::can_be_kept(&left.plan.cost) || left.rows() < right.rows(),
            _ => left.rows() < right.rows(),
        };
        // What of the left has no partner is then what is left over in the table.
        let turned = match kind {
            JoinKind::Inner => Some(JoinKind::Inner),
            JoinKind::Left => Some(JoinKind::Right),
            _ => None,
        };
        if let (Some(turned), true) = (turned, better) {
            kind = turned;
            std::mem::swap(&mut left, &mut right);
            pairs.iter_mut().for_each(|(a, b)| std::mem::swap(a, b));
        }
        let mut left_keys = Vec::new();
        let mut right_keys = Vec::new();
        for (l, r) in pairs {
            left_keys.push(self.place(l, &left.columns)?);
            right_keys.push(self.place(r, &right.columns)?);
        }
        let both = left.columns.clone().join(&right.columns);
        let on = Expr::all_of(self.place_all(rest, &both)?);
        let (columns, types) = joined(kind, &left, &right, both);
        let cost = Cost {
            startup: right.plan.cost.total,
            total: left.plan.cost.total
                + right.plan.cost.total
                + cost::hash_work(left.rows(), right.rows())
                + rows * cost::TUPLE,
            rows,
            width: cost::width(&types),
        };
        let node = Node::HashJoin(HashJoin {
            kind,
            left: Box::new(left.plan),
            right: Box::new(right.plan),
            left_keys,
            right_keys,
            on,
            filter: None,
        });
        Ok(Built {
            plan: self.node(node, types, cost),
            columns,
            order: Vec::new(),
        })
    }

    /// `rows` are to come; `kept`: the right side's rows are kept, so that reading them again costs
    /// little.
    pub(super) fn nested_loop(
        &mut self,
        kind: JoinKind,
        left: Built,
        right: Built,
        free: Vec<(throng_bind::expr::ParamId, throng_bind::expr::Var)>,
        on: Vec<Expr>,
        (rows, kept): (f64, bool),
    ) -> Result<Built> {
        let params = self.arguments(free, &left.columns)?;
        let volatile_ctes = self.volatile_ctes(&right.plan, &left.columns);
        let both = left.columns.clone().join(&right.columns);
        let on = Expr::all_of(self.place_all(on, &both)?);
        let (columns, types) = joined(kind, &left, &right, both);
        let again = match kept {
            true => cost::pairs_work(
                left.rows(),
                right.rows(),
                on.as_ref().map_or(1.0, operators),
            ),
            false => left.rows() * right.plan.cost.total,
        };
        let cost = Cost {
            startup: left.plan.cost.startup,
            total: left.plan.cost.total + right.plan.cost.total + again + rows * cost::TUPLE,
            rows,
            width: cost::width(&types),
        };
        let order = left.order;
        let node = Node::NestedLoop(NestedLoop {
            kind,
            left: Box::new(left.plan),
            right: Box::new(right.plan),
            params,
            volatile_ctes,
            on,
            filter: None,
        });
        Ok(Built {
            plan: self.node(node, types, cost),
            columns,
            order,
        })
    }

    fn materialize(&mut self, input: Built) -> Built {
        let types = input.types().to_vec();
        let cost = input.plan.cost;
        let node = Node::Materialize {
            input: Box::new(input.plan),
        };
        Built {
            plan: self.node(node, types, cost),
            ..input
        }
    }
}

/// How many operators a condition asks, about.
fn operators(condition: &Expr) -> f64 {
    match condition {
        Expr::And(parts) | Expr::Or(parts) => parts.iter().map(operators).sum(),
        _ => 1.0,
    }
}

fn joined(
    kind: JoinKind,
    left: &Built,
    right: &Built,
    both: Columns,
) -> (Columns, Vec<throng_types::SqlType>) {
    if matches!(kind, JoinKind::Semi | JoinKind::Anti) {
        return (left.columns.clone(), left.types().to_vec());
    }
    (both, [left.types(), right.types()].concat())
}

/// `column = a OR column = b` as `column = ANY (ARRAY[a, b])`, which an index on a column of the
/// one relation in `rels` serves.
pub(super) fn as_any(condition: &Expr, rels: &[RelId]) -> Option<Expr> {
    let (Expr::Or(arms), [rel]) = (condition, rels) else {
        return None;
    };
    let mut items = Vec::with_capacity(arms.len());
    let mut first: Option<(&'static Operator, Expr)> = None;
    for arm in arms {
        let Expr::Op { op, args, .. } = arm else {
            return None;
        };
        let (column, Strategy::Equal, value) = comparison(arm, *rel)? else {
            return None;
        };
        let (op, left) = match &args[..] {
            [left, right] if right == value => (*op, left),
            [left, right] if left == value => (operator_by_oid(op.commutator)?, right),
            _ => return None,
        };
        if column <= 0 {
            return None;
        }
        match &first {
            None => first = Some((op, left.clone())),
            Some((same, column)) if same.oid == op.oid && column == left => {}
            Some(_) => return None,
        }
        items.push(value.clone());
    }
    let (op, left) = first?;
    let array = throng_types::sqltype::array_of(op.right)?;
    Some(Expr::ArrayCompare {
        op,
        left: Box::new(left),
        array: Box::new(Expr::Array(items, throng_types::SqlType::plain(array))),
        all: false,
    })
}

/// An equality between the two sides of a join.
struct HashKey {
    left: Expr,
    right: Expr,
    condition: Expr,
}

/// Splits join conditions into equalities that a hash table serves, and the rest.
fn hash_keys(on: Vec<Expr>, left: &Columns, right: &Columns) -> (Vec<HashKey>, Vec<Expr>) {
    let side = |expr: &Expr, columns: &Columns, other: &Columns| {
        let mut rels = rels_of(expr);
        rels.retain(|rel| columns.has_rel(*rel) || other.has_rel(*rel));
        !rels.is_empty() && rels.iter().all(|rel| columns.has_rel(*rel))
    };
    let mut keys = Vec::new();
    let mut rest = Vec::new();
    for condition in on {
        let pair = match &condition {
            Expr::Op { op, args, .. } if op.strategy == Some(Strategy::Equal) => match &args[..] {
                [a, b] if same_keys(a.ty(), b.ty()) => {
                    if side(a, left, right) && side(b, right, left) {
                        Some((a.clone(), b.clone()))
                    } else if side(b, left, right) && side(a, right, left) {
                        Some((b.clone(), a.clone()))
                    } else {
                        None
                    }
                }
                _ => None,
            },
            _ => None,
        };
        match pair {
            Some((left, right)) => keys.push(HashKey {
                left,
                right,
                condition,
            }),
            None => rest.push(condition),
        }
    }
    (keys, rest)
}
