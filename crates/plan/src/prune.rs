//! Which partitions can have rows that satisfy conditions, and which need not be read.
//!
//! Conditions speak of the partitioned table's row by slot, as its key does. What they compare the
//! key with are constants; a condition that does not compare a part of the key with a constant
//! keeps every partition.

use std::collections::{BTreeSet, HashSet};

use throng_types::key::same_keys;
use throng_types::{Datum, Result};

use throng_bind::expr::Expr;
use throng_bind::route::{Division, Next};
use throng_catalog::partition::{Edge, PartitionStrategy, Partitions, key_bytes, row_hash};
use throng_values::func::{EvalContext, Strategy};

use super::Pruning;
use super::constant::value_now;

/// Combinations of the values of several IN lists looked at before all partitions are kept.
const MOST_COMBINATIONS: usize = 1000;

type Places = BTreeSet<usize>;

/// What conditions say of one part of the key.
#[derive(Clone, Default)]
struct About {
    /// It is one of these.
    any: Option<Vec<Datum>>,
    lower: Option<(Datum, bool)>,
    upper: Option<(Datum, bool)>,
    not: Vec<Datum>,
    null: bool,
    /// NULL does not satisfy the conditions.
    not_null: bool,
}

/// The leaves, by place, that can have rows that satisfy all conditions.
pub fn leaves(divisions: &[Division], conditions: &[Expr]) -> Result<Places> {
    let mut found = Places::new();
    if !divisions.is_empty() {
        add(divisions, 0, conditions, &mut found)?;
    }
    Ok(found)
}

fn add(divisions: &[Division], at: usize, conditions: &[Expr], found: &mut Places) -> Result<()> {
    let division = &divisions[at];
    let mut visit = |part: usize| {
        match division.next.get(part) {
            Some(Next::Leaf(leaf)) => {
                found.insert(*leaf);
            }
            Some(Next::Division(next)) => add(divisions, *next, conditions, found)?,
            None => {}
        }
        Ok(())
    };
    match surviving(division, conditions)? {
        Some(parts) => parts.into_iter().try_for_each(visit),
        None => (0..division.next.len()).try_for_each(&mut visit),
    }
}

/// What is left of parts where others are left of all; None: all.
fn narrow(kept: &mut Option<Places>, to: Option<Places>) {
    match (&mut *kept, to) {
        (_, None) => {}
        (None, to) => *kept = to,
        (Some(kept), Some(to)) => kept.retain(|part| to.contains(part)),
    }
}

/// The parts of a division that can have such rows; None: all.
fn surviving(division: &Division, conditions: &[Expr]) -> Result<Option<Places>> {
    let mut about = vec![About::default(); division.key.len()];
    let mut kept: Option<Places> = None;
    for condition in conditions {
        if matches!(condition, Expr::Const(Datum::Null | Datum::Bool(false), _)) {
            return Ok(Some(Places::new()));
        }
        if let Expr::Or(arms) = condition {
            let mut either = Some(Places::new());
            for arm in arms {
                let mut parts = Vec::new();
                arm.clone().conjuncts(&mut parts);
                match (&mut either, surviving(division, &parts)?) {
                    (Some(either), Some(arm)) => either.extend(arm),
                    _ => {
                        either = None;
                        break;
                    }
                }
            }
            narrow(&mut kept, either);
            continue;
        }
        if let Expr::And(_) = condition {
            let mut parts = Vec::new();
            condition.clone().conjuncts(&mut parts);
            narrow(&mut kept, surviving(division, &parts)?);
            continue;
        }
        if let Some(places) = bool_is_not(division, condition)? {
            narrow(&mut kept, Some(places));
            continue;
        }
        if !note(division, condition, &mut about)? {
            return Ok(Some(Places::new()));
        }
    }
    let matching = match division.parts.strategy {
        PartitionStrategy::List => list(&division.parts, &about[0])?,
        PartitionStrategy::Range => range(&division.parts, &about)?,
        PartitionStrategy::Hash => hash(&division.parts, &about)?,
    };
    narrow(&mut kept, matching);
    Ok(kept)
}

/// `key IS NOT TRUE`: the other value, or NULL.
fn bool_is_not(division: &Division, condition: &Expr) -> Result<Option<Places>> {
    let Expr::IsBool {
        arg,
        value: Some(value),
        negated: true,
    } = condition
    else {
        return Ok(None);
    };
    let Some(at) = key_part(division, arg) else {
        return Ok(None);
    };
    let key = division.key[at].clone();
    let other = Expr::IsBool {
        arg: Box::new(key.clone()),
        value: Some(!value),
        negated: false,
    };
    let other = surviving(division, &[other])?;
    let null = surviving(division, &[Expr::IsNull(Box::new(key))])?;
    Ok(other.zip(null).map(|(mut places, null)| {
        places.extend(null);
        places
    }))
}

/// Which part of the key an expression is, under conversions that leave its order as it is.
fn key_part(division: &Division, expr: &Expr) -> Option<usize> {
    let found = division.key.iter().position(|key| key == expr);
    if found.is_some() {
        return found;
    }
    match expr {
        Expr::Cast { arg, to, .. } if to.typmod < 0 && same_keys(arg.ty(), *to) => {
            key_part(division, arg)
        }
        _ => None,
    }
}

fn constant(expr: &Expr) -> Option<&Datum> {
    match expr {
        Expr::Const(value, _) => Some(value),
        _ => None,
    }
}

/// Takes a condition in; false where no row satisfies it.
fn note(division: &Division, condition: &Expr, about: &mut [About]) -> Result<bool> {
    match condition {
        Expr::IsNull(arg) => {
            if let Some(at) = key_part(division, arg) {
                about[at].null = true;
            }
        }
        Expr::IsNotNull(arg) => {
            if let Some(at) = key_part(division, arg) {
                about[at].not_null = true;
            }
        }
        Expr::Op { op, args, .. } => {
            let [left, right] = &args[..] else {
                return Ok(true);
            };
            if !same_keys(left.ty(), right.ty()) {
                return Ok(true);
            }
            let (at, value, commuted) = match (key_part(division, left), key_part(division, right))
            {
                (Some(at), _) if constant(right).is_some() => (at, right, false),
                (_, Some(at)) if constant(left).is_some() => (at, left, true),
                _ => return Ok(true),
            };
            let Some(value) = constant(value) else {
                return Ok(true);
            };
            if value.is_null() && op.strict {
                return Ok(false);
            }
            if let Some(strategy) = op.strategy {
                let strategy = if commuted {
                    strategy.commuted()
                } else {
                    strategy
                };
                compare(&mut about[at], strategy, value, division.parts.types[at])?;
            } else if op.name == "<>" {
                about[at].not.push(value.clone());
                about[at].not_null = true;
            }
        }
        Expr::ArrayCompare {
            op,
            left,
            array,
            all,
        } => {
            let (Some(at), Some(Datum::Array(items))) = (key_part(division, left), constant(array))
            else {
                return Ok(true);
            };
            let element = throng_types::sqltype::element_of(array.type_oid());
            if !element.is_some_and(|e| same_keys(throng_types::SqlType::plain(e), left.ty())) {
                return Ok(true);
            }
            if *all {
                if op.name == "<>" {
                    if items.items.iter().any(Datum::is_null) {
                        return Ok(false);
                    }
                    about[at].not.extend(items.items.iter().cloned());
                    about[at].not_null = true;
                }
            } else if op.strategy == Some(Strategy::Equal) {
                let values = items.items.iter().filter(|v| !v.is_null()).cloned();
                one_of(&mut about[at], values.collect(), division.parts.types[at])?;
            }
        }
        Expr::IsBool {
            arg,
            value: Some(value),
            negated: false,
        } => {
            if let Some(at) = key_part(division, arg) {
                let value = vec![Datum::Bool(*value)];
                one_of(&mut about[at], value, division.parts.types[at])?;
            }
        }
        Expr::Not(arg) => {
            if let Some(at) = key_part(division, arg) {
                let value = vec![Datum::Bool(false)];
                one_of(&mut about[at], value, division.parts.types[at])?;
            }
        }
        other => {
            if let Some(at) = key_part(division, other)
                && other.type_oid() == throng_types::oid::BOOL
            {
                let value = vec![Datum::Bool(true)];
                one_of(&mut about[at], value, division.parts.types[at])?;
            }
        }
    }
    Ok(true)
}

fn one_of(about: &mut About, values: Vec<Datum>, ty: throng_types::SqlType) -> Result<()> {
    about.not_null = true;
    let known = about.any.take();
    about.any = Some(match known {
        None => values,
        Some(known) => {
            let mut keys = HashSet::with_capacity(values.len());
            for value in &values {
                keys.insert(key_bytes(value, ty)?);
            }
            let mut both = Vec::new();
            for value in known {
                if keys.contains(&key_bytes(&value, ty)?) {
                    both.push(value);
                }
            }
            both
        }
    });
    Ok(())
}

fn compare(
    about: &mut About,
    strategy: Strategy,
    value: &Datum,
    ty: throng_types::SqlType,
) -> Result<()> {
    about.not_null = true;
    let (end, inclusive, upper) = match strategy {
        Strategy::Equal => return one_of(about, vec![value.clone()], ty),
        Strategy::Less => (&mut about.upper, false, true),
        Strategy::LessEqual => (&mut about.upper, true, true),
        Strategy::Greater => (&mut about.lower, false, false),
        Strategy::GreaterEqual => (&mut about.lower, true, false),
    };
    let tighter = match end {
        None => true,
        Some((known, known_inclusive)) => {
            let (old, new) = (key_bytes(known, ty)?, key_bytes(value, ty)?);
            match upper {
                _ if old == new => *known_inclusive && !inclusive,
                true => new < old,
                false => new > old,
            }
        }
    };
    if tighter {
        *end = Some((value.clone(), inclusive));
    }
    Ok(())
}

impl About {
    fn is_empty(&self) -> bool {
        self.any.is_none()
            && self.lower.is_none()
            && self.upper.is_none()
            && self.not.is_empty()
            && !self.null
            && !self.not_null
    }

    /// Where keys can be, of all in their order, that satisfy the comparisons.
    fn stretch(
        &self,
        keys: &[(Vec<u8>, usize)],
        ty: throng_types::SqlType,
    ) -> Result<std::ops::Range<usize>> {
        let mut stretch = 0..keys.len();
        if let Some((value, _)) = &self.lower {
            let low = key_bytes(value, ty)?;
            stretch.start = keys.partition_point(|(key, _)| *key < low);
        }
        if let Some((value, _)) = &self.upper {
            let high = key_bytes(value, ty)?;
            stretch.end = keys
                .partition_point(|(key, _)| *key <= high)
                .max(stretch.start);
        }
        Ok(stretch)
    }

    /// Whether a key satisfies the comparisons.
    fn admits(&self, key: &[u8], ty: throng_types::SqlType) -> Result<bool> {
        if let Some((value, inclusive)) = &self.lower {
            let low = key_bytes(value, ty)?;
            if key < low.as_slice() || (key == low.as_slice() && !inclusive) {
                return Ok(false);
            }
        }
        if let Some((value, inclusive)) = &self.upper {
            let high = key_bytes(value, ty)?;
            if key > high.as_slice() || (key == high.as_slice() && !inclusive) {
                return Ok(false);
            }
        }
        for value in &self.not {
            if key_bytes(value, ty)? == key {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// None: nothing is said.
fn list(parts: &Partitions, about: &About) -> Result<Option<Places>> {
    if about.is_empty() {
        return Ok(None);
    }
    let ty = parts.types[0];
    if about.null {
        if about.not_null {
            return Ok(Some(Places::new()));
        }
        return Ok(Some(parts.null.or(parts.default).into_iter().collect()));
    }
    let mut kept = Places::new();
    if let Some(values) = &about.any {
        for value in values {
            let key = key_bytes(value, ty)?;
            if about.admits(&key, ty)? {
                kept.extend(parts.listed(&key).or(parts.default));
            }
        }
        return Ok(Some(kept));
    }
    for (key, part) in &parts.keys[about.stretch(&parts.keys, ty)?] {
        if about.admits(key, ty)? {
            kept.insert(*part);
        }
    }
    kept.extend(parts.default);
    Ok(Some(kept))
}

fn range(parts: &Partitions, about: &[About]) -> Result<Option<Places>> {
    if about.iter().all(About::is_empty) {
        return Ok(None);
    }
    if about.iter().any(|a| a.null) {
        if about.iter().any(|a| a.null && a.not_null) {
            return Ok(Some(Places::new()));
        }
        // NULLs are in no range.
        return Ok(Some(parts.default.into_iter().collect()));
    }
    // The leading parts that have one of some values each, then the ends of the next.
    let mut prefixes: Vec<Vec<Edge>> = vec![Vec::new()];
    let mut fixed = 0;
    for (a, ty) in about.iter().zip(&parts.types) {
        let Some(values) = &a.any else { break };
        let mut next = Vec::new();
        for value in values {
            let key = key_bytes(value, *ty)?;
            if !a.admits(&key, *ty)? {
                continue;
            }
            for prefix in &prefixes {
                let mut longer = prefix.clone();
                longer.push(Edge::Key(key.clone()));
                next.push(longer);
            }
        }
        if next.len() > MOST_COMBINATIONS {
            return Ok(None);
        }
        prefixes = next;
        fixed += 1;
    }
    let mut kept = Places::new();
    for prefix in prefixes {
        let (mut low, mut high) = (prefix.clone(), prefix);
        let (mut low_in, mut high_in) = (true, true);
        if let (Some(a), Some(ty)) = (about.get(fixed), parts.types.get(fixed)) {
            if let Some((value, inclusive)) = &a.lower {
                low.push(Edge::Key(key_bytes(value, *ty)?));
                low_in = *inclusive;
            }
            if let Some((value, inclusive)) = &a.upper {
                high.push(Edge::Key(key_bytes(value, *ty)?));
                high_in = *inclusive;
            }
        }
        let width = parts.types.len();
        // What is beyond an end that is left out begins after all that have it as a prefix.
        let (low_given, high_given) = (low.len(), high.len());
        low.resize(width, if low_in { Edge::Min } else { Edge::Max });
        high.resize(width, if high_in { Edge::Max } else { Edge::Min });
        let low_open = !low_in && low_given == width;
        let high_open = !high_in && high_given == width;
        within(parts, &low, low_open, &high, high_open, &mut kept);
    }
    Ok(Some(kept))
}

/// The ranges that meet the keys from `low` to `high`; the default partition where they do not
/// cover them.
fn within(
    parts: &Partitions,
    low: &[Edge],
    low_open: bool,
    high: &[Edge],
    high_open: bool,
    kept: &mut Places,
) {
    if low > high || (low == high && (low_open || high_open)) {
        return;
    }
    let mut covered = low.to_vec();
    let mut gap = false;
    let mut reached = false;
    let below = parts.ranges.partition_point(|r| r.to.as_slice() <= low);
    for r in &parts.ranges[below..] {
        if r.from.as_slice() > high || (r.from.as_slice() == high && high_open) {
            break;
        }
        kept.insert(r.part);
        gap |= r.from > covered;
        covered = covered.max(r.to.clone());
        reached = r.to.as_slice() > high || (high_open && r.to.as_slice() == high);
    }
    let all = high.first() == Some(&Edge::Max) && covered.first() == Some(&Edge::Max);
    if gap || !(reached || all) {
        kept.extend(parts.default);
    }
}

fn hash(parts: &Partitions, about: &[About]) -> Result<Option<Places>> {
    let mut keys: Vec<Vec<Datum>> = vec![Vec::new()];
    for a in about {
        let values = match (&a.any, a.null) {
            (Some(values), false) => values.clone(),
            (None, true) if !a.not_null => vec![Datum::Null],
            (_, true) => return Ok(Some(Places::new())),
            (None, false) => return Ok(None),
        };
        let mut next = Vec::new();
        for key in &keys {
            for value in &values {
                let mut longer = key.clone();
                longer.push(value.clone());
                next.push(longer);
            }
        }
        if next.len() > MOST_COMBINATIONS {
            return Ok(None);
        }
        keys = next;
    }
    let mut kept = Places::new();
    for key in keys {
        kept.extend(parts.hashed(row_hash(&key, &parts.types)?));
    }
    Ok(Some(kept))
}

/// Whether conditions in which values are yet to come say anything of a division's key.
pub(super) fn can_tell(divisions: &[Division], conditions: &[Expr]) -> bool {
    let speaks = |condition: &Expr| {
        condition.any(&mut |e| divisions.iter().any(|d| key_part(d, e).is_some()))
    };
    conditions.iter().any(speaks)
}

/// The leaves that are read if the statement runs now; None where no value can be told before it
/// does.
pub fn leaves_now(pruning: &Pruning, eval: &EvalContext<'_>) -> Option<Places> {
    let told = pruning.values.iter().map(|value| value_now(value, eval));
    let told: Vec<Option<Datum>> = told.collect();
    let waits = |e: &Expr| match e {
        Expr::Outer(param, _) => !matches!(told.get(param.0 as usize), Some(Some(_))),
        _ => false,
    };
    let conditions = pruning.conditions.iter();
    let conditions = conditions.filter(|c| !c.any(&mut |e| waits(e)));
    let conditions: Vec<Expr> = conditions.cloned().collect();
    if conditions.is_empty() {
        return None;
    }
    let values: Vec<Datum> = told.into_iter().map(Option::unwrap_or_default).collect();
    leaves(&pruning.tree.divisions, &with_values(&conditions, &values)).ok()
}

/// Conditions with the values they waited for.
pub fn with_values(conditions: &[Expr], values: &[Datum]) -> Vec<Expr> {
    fn put(expr: &Expr, values: &[Datum]) -> Expr {
        if let Expr::Outer(param, ty) = expr {
            let value = values.get(param.0 as usize).cloned();
            return Expr::Const(value.unwrap_or_default(), *ty);
        }
        let mut expr = expr.clone();
        expr.for_each_child_mut(&mut |child| *child = put(child, values));
        expr
    }
    conditions.iter().map(|c| put(c, values)).collect()
}
