//! What is to be joined: the relations of a FROM, the conditions between them, and how many rows
//! follow.
//!
//! | member | comes from | may be joined |
//! | --- | --- | --- |
//! | inner | an item of FROM, a side of an inner join | anywhere; a lateral one after what it refers to |
//! | left | the side of LEFT JOIN that may be missing | to the right, once what its ON refers to is there |
//! | semi, anti | IN, EXISTS, NOT EXISTS | to the right, once what its condition refers to is there |
//!
//! So all of them are ordered together, and every order allowed gives the same rows: a condition of
//! an inner join or of WHERE is met as soon as all it speaks of is there, one about a member that
//! may be missing not before that has been joined.
//!
//! Columns that equalities make equal form a class: any two of its members are a condition, one of
//! which is enough for each join; and one value for all of them, where one is compared with a
//! value, takes the place of the equalities.

use throng_types::key::same_keys;
use throng_types::oid;

use super::Built;
use super::enumerate::{Set, bits};
use super::subquery::Inner;
use throng_bind::expr::{Expr, RelId, Var};
use throng_bind::query::{FromItem, JoinKind};
use throng_values::func::{Operator, Strategy};

/// What a member's rows are made of.
pub(super) enum Item<'q> {
    From(&'q FromItem),
    Inner(Inner),
}

pub(super) struct Member<'q> {
    pub item: Item<'q>,
    pub rels: Vec<RelId>,
    pub kind: JoinKind,
    /// The members that have to be there before it.
    pub required: Set,
    /// Its rows depend on those of the required ones.
    pub lateral: bool,
    /// Conditions on it alone, met where it is read.
    pub own: Vec<Expr>,
    /// Conditions of a member that is not inner, on it and those before it.
    pub on: Vec<Expr>,
    /// What was built of it already; a table is built again for each way to read it.
    pub built: Option<Built>,
    pub rows: f64,
    pub cost: f64,
    /// Of a semi- or anti-join: the share of rows that have a partner. Of a left join: partners of
    /// a row.
    pub partners: f64,
}

/// A condition on several members.
pub(super) struct Clause {
    pub expr: Expr,
    pub mask: Set,
    /// The members on either side of an equality that can be hashed.
    pub sides: Option<(Set, Set)>,
    pub share: f64,
}

/// Columns that are equal.
pub(super) struct Class {
    pub op: &'static Operator,
    pub members: Vec<ClassMember>,
    /// The conditions that say so.
    pub said: Vec<(Set, Expr)>,
    /// The share of two members, where there are no more.
    pub share: Option<f64>,
}

pub(super) struct ClassMember {
    pub member: usize,
    pub var: Var,
    pub distinct: f64,
    pub nulls: f64,
}

/// An index over columns of a member that no two rows share.
pub(super) struct Unique {
    pub member: usize,
    pub rel: RelId,
    pub columns: Vec<i16>,
    /// Rows of the whole table.
    pub rows: f64,
}

#[derive(Default)]
pub(super) struct Graph<'q> {
    pub members: Vec<Member<'q>>,
    pub clauses: Vec<Clause>,
    pub classes: Vec<Class>,
    pub unique: Vec<Unique>,
}

/// Columns that are said to be equal: the equality, and the two.
pub(super) fn equal_columns(condition: &Expr) -> Option<(&'static Operator, &Var, &Var)> {
    let Expr::Op { op, args, .. } = condition else {
        return None;
    };
    let [Expr::Var(a), Expr::Var(b)] = &args[..] else {
        return None;
    };
    let plain = op.strategy == Some(Strategy::Equal)
        && op.left == op.right
        && a.ty.oid == b.ty.oid
        && a.ty.oid == op.left
        && a.rel != b.rel
        && a.column > 0
        && b.column > 0;
    plain.then_some((*op, a, b))
}

/// A column that is compared with something else: the equality, the column and the value.
pub(super) fn fixed_column(condition: &Expr) -> Option<(&'static Operator, &Var, &Expr)> {
    let Expr::Op { op, args, .. } = condition else {
        return None;
    };
    if op.strategy != Some(Strategy::Equal) || op.left != op.right {
        return None;
    }
    match &args[..] {
        [Expr::Var(var), value] | [value, Expr::Var(var)] if var.ty.oid == op.left => {
            Some((*op, var, value))
        }
        _ => None,
    }
}

/// `a = b` by an operator.
pub(super) fn equality(op: &'static Operator, a: &Var, b: Expr) -> Expr {
    Expr::Op {
        op,
        args: vec![Expr::Var(a.clone()), b],
        ty: throng_types::SqlType::BOOL,
    }
}

impl Graph<'_> {
    pub fn member_of(&self, rel: RelId) -> Option<usize> {
        self.members.iter().position(|m| m.rels.contains(&rel))
    }

    /// The members an expression speaks of.
    pub fn mask_of(&self, expr: &Expr) -> Set {
        let mut mask = 0;
        expr.for_each_var(&mut |var| {
            if let Some(at) = self.member_of(var.rel) {
                mask |= 1 << at;
            }
        });
        mask
    }

    /// The sides of an equality that can be hashed.
    pub fn sides_of(&self, condition: &Expr) -> Option<(Set, Set)> {
        let Expr::Op { op, args, .. } = condition else {
            return None;
        };
        let [left, right] = &args[..] else {
            return None;
        };
        if op.strategy != Some(Strategy::Equal) || !same_keys(left.ty(), right.ty()) {
            return None;
        }
        let (a, b) = (self.mask_of(left), self.mask_of(right));
        (a != 0 && b != 0 && a & b == 0).then_some((a, b))
    }

    /// The members each member has a condition with.
    pub fn edges(&self) -> Vec<Set> {
        let mut edges = vec![0; self.members.len()];
        let mut connect = |mask: Set| {
            for at in bits(mask) {
                edges[at] |= mask & !(1 << at);
            }
        };
        for clause in &self.clauses {
            connect(clause.mask);
        }
        for class in &self.classes {
            connect(class.members.iter().fold(0, |all, m| all | 1 << m.member));
        }
        for (at, member) in self.members.iter().enumerate() {
            // One that needs nobody stands beside any.
            let others = match (member.kind, member.required) {
                (JoinKind::Inner, required) => required,
                (_, 0) => !0 >> (64 - self.members.len()) & !(1 << at),
                (_, required) => required,
            };
            bits(others).for_each(|other| connect(1 << at | 1 << other));
        }
        edges
    }

    /// The conditions that a join of two sets meets, and neither side could.
    pub fn between(&self, left: Set, right: Set) -> Vec<Expr> {
        let both = left | right;
        let across = |mask: Set| mask & !both == 0 && mask & !left != 0 && mask & !right != 0;
        let mut found: Vec<Expr> = Vec::new();
        for class in &self.classes {
            if let Some((mask, said)) = class.said.iter().find(|(mask, _)| across(*mask)) {
                debug_assert!(mask & both == *mask);
                found.push(said.clone());
                continue;
            }
            let of = |side: Set| class.members.iter().find(|m| side >> m.member & 1 == 1);
            if let (Some(a), Some(b)) = (of(left), of(right)) {
                found.push(equality(class.op, &a.var, Expr::Var(b.var.clone())));
            }
        }
        let clauses = self.clauses.iter().filter(|clause| across(clause.mask));
        found.extend(clauses.map(|clause| clause.expr.clone()));
        found
    }

    /// Whether an equality that can be hashed connects two sets.
    pub fn is_hashable(&self, left: Set, right: Set) -> bool {
        let within = |(a, b): (Set, Set)| {
            (a & !left == 0 && b & !right == 0) || (a & !right == 0 && b & !left == 0)
        };
        self.clauses.iter().filter_map(|c| c.sides).any(within)
            || self.classes.iter().any(|class| {
                let in_side = |side: Set| class.members.iter().any(|m| side >> m.member & 1 == 1);
                in_side(left) && in_side(right)
            })
    }

    /// Members of a set that conditions connect with this one: of a class one, as all of it are
    /// equal.
    pub fn around(&self, at: usize, within: Set) -> Set {
        let own: Set = 1 << at;
        let mut around = self.members[at].required;
        for clause in &self.clauses {
            if clause.mask & own != 0 && clause.mask & !(within | own) == 0 {
                around |= clause.mask;
            }
        }
        for class in &self.classes {
            if class.members.iter().any(|m| m.member == at) {
                let others = class.members.iter().filter(|m| m.member != at);
                let here = others.filter(|m| within >> m.member & 1 == 1);
                let first: Option<Set> = here.map(|m| 1 << m.member).min();
                around |= first.unwrap_or(0);
            }
        }
        around & within & !own
    }

    /// Rows of the join of a set, whatever its order.
    pub fn rows_of(&self, set: Set) -> f64 {
        let inner = |m: &&Member<'_>| m.kind == JoinKind::Inner;
        let members = || bits(set).map(|at| &self.members[at]);
        let mut rows: f64 = members().filter(inner).map(|m| m.rows).product();
        let mut shares: Vec<f64> = self.classes.iter().map(|c| c.share_within(set)).collect();
        self.mend_keys(set, &mut shares);
        rows *= shares.iter().product::<f64>();
        let held = |clause: &&Clause| clause.mask & !set == 0;
        let (after, before): (Vec<&Clause>, Vec<&Clause>) = self
            .clauses
            .iter()
            .filter(held)
            .partition(|clause| self.waits(clause.mask));
        rows *= before.iter().map(|clause| clause.share).product::<f64>();
        for member in members() {
            rows = match member.kind {
                JoinKind::Left => rows * member.partners.max(1.0),
                JoinKind::Semi => rows * member.partners,
                JoinKind::Anti => rows * (1.0 - member.partners).max(0.001),
                _ => rows,
            };
        }
        rows *= after.iter().map(|clause| clause.share).product::<f64>();
        super::cost::at_least_one(rows)
    }

    /// Whether a condition speaks of a member that may be missing.
    fn waits(&self, mask: Set) -> bool {
        bits(mask).any(|at| self.members[at].kind != JoinKind::Inner)
    }

    /// Where equalities with columns of one other member cover all columns of a unique index, a row
    /// of the others has one partner at most: shares of single columns say fewer, as if these were
    /// independent.
    fn mend_keys(&self, set: Set, shares: &mut [f64]) {
        let mut mended = vec![false; shares.len()];
        for unique in &self.unique {
            if set >> unique.member & 1 == 0 {
                continue;
            }
            let of_column = |column: &i16| {
                let mine = |m: &ClassMember| m.var.rel == unique.rel && m.var.column == *column;
                let classes = &mut self.classes.iter();
                classes.position(|class| class.members.iter().any(mine))
            };
            let columns = unique.columns.iter().map(of_column);
            let Some(classes) = columns.collect::<Option<Vec<_>>>() else {
                continue;
            };
            let others = set & !(1 << unique.member);
            let refers = |other: usize| {
                let mut classes = classes.iter().map(|at| &self.classes[*at]);
                classes.all(|class| class.members.iter().any(|m| m.member == other))
            };
            if !bits(others).any(refers) || classes.iter().any(|at| mended[*at]) {
                continue;
            }
            let product: f64 = classes.iter().map(|at| shares[*at]).product();
            let among = classes
                .iter()
                .map(|at| self.classes[*at].share_within(others));
            let truth = among.product::<f64>() / unique.rows.max(1.0);
            if product < truth && product > 0.0 {
                shares[classes[0]] *= truth / product;
            }
            classes.iter().for_each(|at| mended[*at] = true);
        }
    }
}

impl Class {
    /// The share of the combinations of rows in which all members within a set are equal.
    fn share_within(&self, set: Set) -> f64 {
        let mut here: Vec<&ClassMember> = self
            .members
            .iter()
            .filter(|m| set >> m.member & 1 == 1)
            .collect();
        if here.len() < 2 {
            return 1.0;
        }
        if let (2, Some(share)) = (self.members.len(), self.share) {
            return share;
        }
        here.sort_by(|a, b| a.distinct.total_cmp(&b.distinct));
        let present: f64 = here.iter().map(|m| 1.0 - m.nulls).product();
        let partners = here.iter().skip(1).map(|m| 1.0 / m.distinct.max(1.0));
        present * partners.product::<f64>()
    }
}

/// Whether a condition cannot be true of rows in which all these relations are missing.
pub(super) fn rejects_missing(condition: &Expr, rels: &[RelId]) -> bool {
    match condition {
        Expr::And(parts) => parts.iter().any(|part| rejects_missing(part, rels)),
        Expr::Or(parts) => parts.iter().all(|part| rejects_missing(part, rels)),
        Expr::IsNotNull(arg) => is_missing_with(arg, rels),
        Expr::Op { op, args, .. } => op.strict && args.iter().any(|a| is_missing_with(a, rels)),
        Expr::ArrayCompare {
            op,
            left,
            all: false,
            ..
        } => op.strict && is_missing_with(left, rels),
        Expr::Var(_) => condition.type_oid() == oid::BOOL && is_missing_with(condition, rels),
        _ => false,
    }
}

/// Whether an expression is NULL where these relations are missing.
fn is_missing_with(expr: &Expr, rels: &[RelId]) -> bool {
    let args = match expr {
        Expr::Var(var) => return rels.contains(&var.rel),
        Expr::Op { op, args, .. } if op.strict => args.as_slice(),
        Expr::Call { func, args, .. } if func.strict => args.as_slice(),
        Expr::Cast { arg, .. } => std::slice::from_ref(&**arg),
        _ => return false,
    };
    args.iter().any(|arg| is_missing_with(arg, rels))
}
