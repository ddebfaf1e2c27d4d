//! What conditions say of an index's key columns.

use throng_bind::expr::same_term;
use throng_bind::expr::{Expr, RelId};
use throng_catalog::{IndexDef, IndexMethod};
use throng_types::key::same_keys;
use throng_types::reach::Reach;
use throng_types::{Datum, Oid, SqlType, oid};
use throng_values::func::{Operator, Strategy, operator_by_oid};

use super::like;

/// How a condition fixes a key column.
pub(super) enum Match {
    Eq(Expr),
    Any(Expr),
    IsNull,
}

/// A key column of an index, over the entry that is read.
#[derive(Clone, Copy)]
pub(super) enum Key<'k> {
    Column(i16),
    Expr(&'k Expr),
}

impl Key<'_> {
    /// Whether an expression is this key, or a conversion of it that leaves its encoding as it is.
    pub fn is(self, expr: &Expr, rel: RelId) -> bool {
        match self {
            Key::Column(column) => column_of(expr, rel) == Some(column),
            Key::Expr(key) => {
                same_term(expr, key)
                    || matches!(expr, Expr::Cast { arg, to, .. }
                        if to.typmod < 0 && same_keys(arg.ty(), *to) && self.is(arg, rel))
            }
        }
    }

    /// `key op value`, whichever side the key is on.
    pub fn compared(self, condition: &Expr, rel: RelId) -> Option<(Strategy, &Expr)> {
        let Expr::Op { op, args, .. } = condition else {
            return None;
        };
        let strategy = op.strategy?;
        let [left, right] = &args[..] else {
            return None;
        };
        if !same_keys(left.ty(), right.ty()) {
            return None;
        }
        if self.is(left, rel) && is_fixed(right, rel) {
            return Some((strategy, right));
        }
        (self.is(right, rel) && is_fixed(left, rel)).then(|| (strategy.commuted(), left))
    }

    /// How the key, a range, is beside a value.
    fn beside(self, condition: &Expr, rel: RelId) -> Option<(Reach, &Expr)> {
        let Expr::Op { op, args, .. } = condition else {
            return None;
        };
        let [left, right] = &args[..] else {
            return None;
        };
        if self.is(left, rel) && is_fixed(right, rel) {
            return Some((reach_of(op, true)?, right));
        }
        let on_the_right = self.is(right, rel) && is_fixed(left, rel);
        Some((reach_of(op, false).filter(|_| on_the_right)?, left))
    }
}

/// How a range is beside a value for which an operator holds; `first`: the range is its left
/// operand.
fn reach_of(op: &Operator, first: bool) -> Option<Reach> {
    let is_range = |ty: Oid| matches!(ty, oid::ANYRANGE | oid::ANYMULTIRANGE);
    let (key, value) = match first {
        true => (op.left, op.right),
        false => (op.right, op.left),
    };
    if !is_range(key) || !is_range(value) && value != oid::ANYELEMENT {
        return None;
    }
    Some(match (op.name, first) {
        ("@>", true) | ("<@", false) if value == oid::ANYELEMENT => Reach::ContainsValue,
        ("&&", _) => Reach::Overlaps,
        ("@>", true) | ("<@", false) => Reach::Contains,
        ("<@", true) | ("@>", false) => Reach::Within,
        ("<<", true) | (">>", false) => Reach::Before,
        (">>", true) | ("<<", false) => Reach::After,
        ("&<", true) => Reach::OverLeft,
        ("&>", true) => Reach::OverRight,
        ("-|-", _) => Reach::Adjacent,
        _ => return None,
    })
}

/// The column under conversions that leave the key as it is (`varchar` to `text`).
pub(super) fn column_of(expr: &Expr, rel: RelId) -> Option<i16> {
    match expr {
        Expr::Var(var) if var.rel == rel => Some(var.column),
        Expr::Cast { arg, to, .. } if to.typmod < 0 && same_keys(arg.ty(), *to) => {
            column_of(arg, rel)
        }
        _ => None,
    }
}

pub(super) fn mentions(expr: &Expr, rel: RelId) -> bool {
    let mut found = false;
    expr.for_each_var(&mut |var| found |= var.rel == rel);
    found
}

pub(super) fn is_fixed(expr: &Expr, rel: RelId) -> bool {
    !mentions(expr, rel) && !expr.any(&mut throng_bind::fold::is_volatile)
}

/// `column op value`, whichever side the column is on.
pub(super) fn comparison(condition: &Expr, rel: RelId) -> Option<(i16, Strategy, &Expr)> {
    let Expr::Op { op, args, .. } = condition else {
        return None;
    };
    let strategy = op.strategy?;
    let [left, right] = &args[..] else {
        return None;
    };
    if let Some(column) = column_of(left, rel).filter(|_| is_fixed(right, rel)) {
        return same_keys(left.ty(), right.ty()).then_some((column, strategy, right));
    }
    let column = column_of(right, rel).filter(|_| is_fixed(left, rel))?;
    same_keys(left.ty(), right.ty()).then_some((column, strategy.commuted(), left))
}

/// An end of a stretch.
pub(super) struct End {
    pub value: Expr,
    /// Whether it belongs to the stretch.
    pub inclusive: bool,
    /// As in [`super::KeyBound`].
    pub reach: Option<Reach>,
}

impl End {
    fn at((value, inclusive): (Expr, bool)) -> End {
        End {
            value,
            inclusive,
            reach: None,
        }
    }
}

/// The lower and the upper end of a stretch.
pub(super) type Ends = [Option<End>; 2];

/// What conditions say of an index's key columns, taken from its first column on.
pub(super) struct Taken<'c> {
    index: &'c IndexDef,
    keys: &'c [Key<'c>],
    rel: RelId,
    pub conditions: &'c [&'c Expr],
    /// Places in the list of conditions.
    pub used: Vec<usize>,
    pub implied: Vec<Expr>,
    /// Those of the used ones that not every entry satisfies which is read.
    pub rough: Vec<usize>,
    /// Combinations of the arrays' elements.
    pub combinations: f64,
}

impl<'c> Taken<'c> {
    pub fn of(
        (index, keys): (&'c IndexDef, &'c [Key<'c>]),
        rel: RelId,
        conditions: &'c [&'c Expr],
    ) -> Taken<'c> {
        Taken {
            index,
            keys,
            rel,
            conditions,
            used: Vec::new(),
            implied: Vec::new(),
            rough: Vec::new(),
            combinations: 1.0,
        }
    }

    /// The key columns from `first` on that a condition each fixes.
    pub fn matches(&mut self, first: usize) -> Vec<Match> {
        let hash = self.index.terms.method == IndexMethod::Hash;
        let mut found = Vec::new();
        for key in self.keys.iter().skip(first) {
            let Some((at, matching)) = find_match(self.conditions, self.rel, *key) else {
                break;
            };
            if hash && !matches!(matching, Match::Eq(_)) {
                break;
            }
            if let Match::Any(array) = &matching {
                self.combinations *= match array {
                    Expr::Const(Datum::Array(items), _) => items.items.len() as f64,
                    Expr::Array(items, _) => items.len() as f64,
                    _ => 10.0,
                };
            }
            self.used.push(at);
            found.push(matching);
        }
        found
    }

    /// The bounds of the key column `nth`.
    pub fn ends(&mut self, nth: usize) -> Ends {
        let mut ends = [None, None];
        let Some(key) = self.keys.get(nth) else {
            return ends;
        };
        let rel = self.rel;
        for (at, condition) in self.conditions.iter().enumerate() {
            let Some((strategy, value)) = key.compared(condition, rel) else {
                continue;
            };
            if self.used.contains(&at) {
                continue;
            }
            let (end, inclusive) = match strategy {
                Strategy::Greater => (0, false),
                Strategy::GreaterEqual => (0, true),
                Strategy::Less => (1, false),
                Strategy::LessEqual => (1, true),
                Strategy::Equal => continue,
            };
            if ends[end].is_none() {
                ends[end] = Some(End::at((value.clone(), inclusive)));
                self.used.push(at);
            }
        }
        if let [None, None] = ends {
            let (_, class) = self.index.terms.words_of(nth);
            let patterns = class.is_some_and(|c| c.ends_with("_pattern_ops"));
            let is_key = |expr: &Expr| key.is(expr, rel);
            let mut conditions = self.conditions.iter();
            if let Some(range) = conditions.find_map(|c| like::range(c, is_key, patterns)) {
                ends = [Some(End::at(range.lower)), range.upper.map(End::at)];
                self.implied.extend(range.conditions);
            }
        }
        if let [None, None] = ends
            && self.index.terms.method == IndexMethod::Gist
        {
            return self.reached(nth);
        }
        ends
    }

    /// The bounds of the key column `nth` where it is a range that is somehow beside a value.
    fn reached(&mut self, nth: usize) -> Ends {
        let (key, rel) = (self.keys[nth], self.rel);
        for (at, condition) in self.conditions.iter().enumerate() {
            let Some((reach, value)) = key.beside(condition, rel) else {
                continue;
            };
            self.used.push(at);
            self.rough.push(at);
            let end = || End {
                value: value.clone(),
                inclusive: true,
                reach: Some(reach),
            };
            return [Some(end()), Some(end())];
        }
        [None, None]
    }
}

/// A comparison with what speaks of the relation on its left.
pub(super) fn key_first(condition: Expr, rel: RelId) -> Expr {
    let commuted = match &condition {
        Expr::Op { op, args, ty } => match &args[..] {
            [left, right] if !mentions(left, rel) && mentions(right, rel) => {
                operator_by_oid(op.commutator).map(|op| Expr::Op {
                    op,
                    args: vec![right.clone(), left.clone()],
                    ty: *ty,
                })
            }
            _ => None,
        },
        _ => None,
    };
    commuted.unwrap_or(condition)
}

/// The condition that fixes a column, and how.
pub(super) fn find_match(conditions: &[&Expr], rel: RelId, key: Key<'_>) -> Option<(usize, Match)> {
    let mut found = None;
    for (at, condition) in conditions.iter().enumerate() {
        match condition {
            Expr::Op { .. } => {
                if let Some((Strategy::Equal, value)) = key.compared(condition, rel) {
                    return Some((at, Match::Eq(value.clone())));
                }
            }
            Expr::ArrayCompare {
                op,
                left,
                array,
                all: false,
            } => {
                let fits = op.strategy == Some(Strategy::Equal)
                    && key.is(left, rel)
                    && is_fixed(array, rel)
                    && throng_types::sqltype::element_of(array.type_oid())
                        .is_some_and(|e| same_keys(SqlType::plain(e), left.ty()));
                if fits && found.is_none() {
                    found = Some((at, Match::Any((**array).clone())));
                }
            }
            Expr::IsNull(arg) if found.is_none() && key.is(arg, rel) => {
                found = Some((at, Match::IsNull));
            }
            _ => {}
        }
    }
    found
}
