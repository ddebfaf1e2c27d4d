//! The share of rows that a condition lets through.
//!
//! A condition is looked at either from one relation, for which the columns of all others are
//! values that are not known yet, or from nowhere: then an equality between columns of two
//! relations is a share of their pairs. What nothing is known of is guessed as PostgreSQL guesses
//! it.

use std::cell::OnceCell;

use throng_types::key::same_keys;
use throng_types::{Datum, Oid, oid};

use super::facts::{self, Facts};
use super::{Planner, constant, cost};
use throng_bind::expr::{Expr, RelId};
use throng_bind::query::{FromItem, RelKind};
use throng_catalog::TableDef;
use throng_values::func::{Operator, Strategy};

/// PostgreSQL's guesses.
const BOOLEAN: f64 = 0.5;
const FUNCTION: f64 = 1.0 / 3.0;
const OTHER: f64 = 0.5;
const IS_NULL: f64 = 0.005;
const RANGE: f64 = 0.005;
/// One fixed character of a pattern; a wildcard takes its share back.
const FIXED_CHARACTER: f64 = 0.2;
const ANY_CHARACTER: f64 = 0.9;
const ANY_RUN: f64 = 5.0;
const LEAST: f64 = 1e-10;

/// PostgreSQL's guesses for operators that look into a value: that one value contains another, and
/// that something is met in it.
const CONTAINS: f64 = 0.005;
const MATCHES: f64 = 0.01;

/// The guess for an operator that looks into a value.
fn searched_share(name: &str, ret: Oid) -> Option<f64> {
    match name {
        _ if ret != oid::BOOL => None,
        "@>" | "<@" => Some(CONTAINS),
        "&&" | "?" | "?|" | "?&" | "@?" | "@@" => Some(MATCHES),
        _ => None,
    }
}

/// One end of a range of a column.
struct End<'e> {
    column: &'e Expr,
    is_lower: bool,
    share: f64,
    guessed: bool,
}

impl Planner<'_> {
    /// Notes the tables among items, so that their columns are known.
    pub(super) fn note_tables(&mut self, items: &[FromItem]) {
        for item in items {
            match item {
                FromItem::Rel(rel) => {
                    if let RelKind::Table(table) = &rel.kind {
                        self.tables.insert(rel.id, table.clone());
                        if !rel.only && self.has_kin(table) {
                            self.families.insert(rel.id, (table.oid, OnceCell::new()));
                        }
                    }
                }
                FromItem::Join { left, right, .. } => {
                    self.note_tables(std::slice::from_ref(left));
                    self.note_tables(std::slice::from_ref(right));
                }
            }
        }
    }

    /// What is known of an expression that is a column of a table; of `about`'s alone, if that is
    /// said.
    pub(super) fn facts(&self, expr: &Expr, about: Option<RelId>) -> Option<Facts<'_>> {
        match expr {
            Expr::Var(var) if about.is_none_or(|rel| rel == var.rel) => {
                let table = self.tables.get(&var.rel)?;
                let attnum = u16::try_from(var.column).ok().filter(|n| *n > 0)?;
                Some(self.column_facts(var.rel, table, attnum, var.ty.oid))
            }
            Expr::Cast { arg, to, .. } if same_keys(arg.ty(), *to) => self.facts(arg, about),
            _ => None,
        }
    }

    /// Rows of all tables behind an entry, where it is read with its children.
    pub(super) fn rows_of_family(&self, rel: RelId) -> Option<f64> {
        let (table, rows) = self.families.get(&rel)?;
        Some(*rows.get_or_init(|| self.family_rows(*table)))
    }

    /// Rows of a table and all those below it.
    fn family_rows(&self, table: Oid) -> f64 {
        let catalog = self.ctx.catalog;
        let has_rows = |table: &Oid| catalog.table(*table).is_some_and(|t| !t.is_partitioned());
        let members = catalog.descendants(table).into_iter().filter(has_rows);
        let sizes = members.map(|member| self.ctx.stats.table_size(member));
        sizes.map(|size| size.rows).sum()
    }

    pub(super) fn column_facts(
        &self,
        rel: RelId,
        table: &TableDef,
        attnum: u16,
        ty: Oid,
    ) -> Facts<'_> {
        let catalog = self.ctx.catalog;
        let family = self.rows_of_family(rel);
        let rows = family.unwrap_or_else(|| self.ctx.stats.table_size(table.oid).rows);
        let rows = rows.max(1.0);
        // What no two rows of a parent share, rows of its children may.
        let keyed = family.is_none() || table.is_partitioned();
        let unique = catalog.indexes_of(table.oid).iter().any(|index| {
            let one = index.unique && index.is_plain() && index.columns.len() == 1;
            one && keyed && index.columns[0].attnum == attnum
        });
        let found = catalog.stats_of(table.oid);
        let column = found.and_then(|s| s.column(attnum, family.is_some()));
        let mut facts = Facts::unknown(rows);
        if let Some((stats, then)) = column {
            facts.nulls = stats.null_fraction;
            if stats.distinct >= 1.0 {
                facts.distinct = facts::distinct_now(stats, then, rows);
                facts.guessed = false;
            }
            facts.stats = Some(stats).filter(|s| s.ty == ty);
        }
        if unique {
            facts.distinct = (rows * (1.0 - facts.nulls)).max(1.0);
            facts.guessed = false;
        }
        facts.distinct = facts.distinct.min(facts::most_distinct(ty));
        facts
    }

    /// The share of rows that meet all conditions.
    pub(super) fn shares<'e>(
        &self,
        conditions: impl IntoIterator<Item = &'e Expr>,
        about: Option<RelId>,
    ) -> f64 {
        let mut share = 1.0;
        let mut ends: Vec<End<'e>> = Vec::new();
        for condition in conditions {
            match self.end_of(condition, about) {
                Some(end) => ends.push(end),
                None => share *= self.share(condition, about),
            }
        }
        while let Some(end) = ends.pop() {
            let other = |e: &End<'_>| e.is_lower != end.is_lower && e.column == end.column;
            share *= match ends.iter().position(other) {
                None => end.share,
                Some(at) => {
                    let other = ends.remove(at);
                    let nulls = self.facts(end.column, about).map_or(0.0, |f| f.nulls);
                    let between = end.share + other.share + nulls - 1.0;
                    match end.guessed || other.guessed || between < -0.01 {
                        true => RANGE,
                        false => between.max(LEAST),
                    }
                }
            };
        }
        share.clamp(0.0, 1.0)
    }

    /// `column < value` and the like.
    fn end_of<'e>(&self, condition: &'e Expr, about: Option<RelId>) -> Option<End<'e>> {
        let Expr::Op { op, args, .. } = condition else {
            return None;
        };
        let strategy = op.strategy.filter(|s| *s != Strategy::Equal)?;
        let [left, right] = &args[..] else {
            return None;
        };
        let (column, strategy, value) = match (self.facts(left, about), self.facts(right, about)) {
            (Some(_), None) => (left, strategy, right),
            (None, Some(_)) => (right, strategy.commuted(), left),
            _ => return None,
        };
        let facts = self.facts(column, about)?;
        let known = self.value_of(value);
        let share = known.and_then(|value| facts.beyond(strategy, &value));
        Some(End {
            column,
            is_lower: matches!(strategy, Strategy::Greater | Strategy::GreaterEqual),
            guessed: share.is_none(),
            share: share.unwrap_or(cost::INEQUALITY),
        })
    }

    fn value_of(&self, expr: &Expr) -> Option<Datum> {
        constant::value_now(expr, &self.ctx.eval)
    }

    /// The share of rows that meet a condition.
    pub(super) fn share(&self, condition: &Expr, about: Option<RelId>) -> f64 {
        let share = match condition {
            Expr::Const(value, _) => f64::from(u8::from(value.is_true())),
            Expr::And(parts) => self.shares(parts, about),
            Expr::Or(parts) => parts.iter().fold(0.0, |sum, part| {
                let share = self.share(part, about);
                sum + share - sum * share
            }),
            Expr::Not(arg) => match &**arg {
                Expr::Var(_) => self.is_true(arg, false, about),
                arg => 1.0 - self.share(arg, about),
            },
            Expr::Var(_) => self.is_true(condition, true, about),
            Expr::IsBool {
                arg,
                value,
                negated,
            } => {
                let share = match value {
                    Some(value) => self.is_true(arg, *value, about),
                    None => self.facts(arg, about).map_or(IS_NULL, |f| f.nulls),
                };
                if *negated { 1.0 - share } else { share }
            }
            Expr::IsNull(arg) => self.nulls(arg, about),
            Expr::IsNotNull(arg) => 1.0 - self.nulls(arg, about),
            Expr::IsDistinct {
                equal,
                left,
                right,
                negated,
            } => {
                let share = self.operation(equal, left, right, about);
                if *negated { share } else { 1.0 - share }
            }
            Expr::Op { op, args, .. } => match &args[..] {
                [left, right] => self.operation(op, left, right, about),
                _ => OTHER,
            },
            Expr::ArrayCompare {
                op,
                left,
                array,
                all,
            } => self.any_of(op, left, array, *all, about),
            Expr::Call { .. } | Expr::Routine(_) => FUNCTION,
            _ => OTHER,
        };
        share.clamp(0.0, 1.0)
    }

    fn nulls(&self, arg: &Expr, about: Option<RelId>) -> f64 {
        match self.facts(arg, about) {
            Some(facts) if facts.stats.is_some() => facts.nulls,
            _ => IS_NULL,
        }
    }

    fn is_true(&self, arg: &Expr, value: bool, about: Option<RelId>) -> f64 {
        match self.facts(arg, about) {
            Some(facts) if facts.stats.is_some() => facts.equal(Some(&Datum::Bool(value))),
            _ => BOOLEAN,
        }
    }

    fn operation(&self, op: &Operator, left: &Expr, right: &Expr, about: Option<RelId>) -> f64 {
        let (a, b) = (self.facts(left, about), self.facts(right, about));
        match (op.strategy, op.name) {
            (Some(Strategy::Equal), _) => self.equality(left, right, about),
            (None, "<>") => {
                let nulls = a.or(b).map_or(0.0, |f| f.nulls);
                1.0 - self.equality(left, right, about) - nulls
            }
            (Some(strategy), _) => {
                let (facts, strategy, value) = match (&a, &b) {
                    (Some(facts), None) => (facts, strategy, right),
                    (None, Some(facts)) => (facts, strategy.commuted(), left),
                    _ => return cost::INEQUALITY,
                };
                let known = self.value_of(value);
                known
                    .and_then(|value| facts.beyond(strategy, &value))
                    .unwrap_or(cost::INEQUALITY)
            }
            (None, name) => match pattern_kind(name) {
                Some(kind) => self.pattern(op, kind, a, right),
                None => match searched_share(name, op.ret) {
                    Some(guess) => self.searched(op, (left, right), (a, b), guess),
                    None => OTHER,
                },
            },
        }
    }

    fn equality(&self, left: &Expr, right: &Expr, about: Option<RelId>) -> f64 {
        match (self.facts(left, about), self.facts(right, about)) {
            (Some(a), Some(b)) => facts::joined(&a, &b),
            (Some(facts), None) => facts.equal(self.value_of(right).as_ref()),
            (None, Some(facts)) => facts.equal(self.value_of(left).as_ref()),
            (None, None) => cost::EQUALITY,
        }
    }

    /// `left op ANY (array)` or `ALL`.
    fn any_of(
        &self,
        op: &Operator,
        left: &Expr,
        array: &Expr,
        all: bool,
        about: Option<RelId>,
    ) -> f64 {
        const ITEMS: f64 = 10.0;
        let facts = self.facts(left, about);
        let ty = left.ty();
        let one = |value: Option<&Datum>| match (&facts, op.strategy, value) {
            (Some(facts), Some(Strategy::Equal), value) => facts.equal(value),
            (_, Some(Strategy::Equal), _) => cost::EQUALITY,
            (_, _, Some(value)) => self.operation(op, left, &Expr::Const(value.clone(), ty), about),
            (_, Some(_), None) => cost::INEQUALITY,
            (_, None, None) if op.name == "<>" => 1.0 - cost::EQUALITY,
            _ => OTHER,
        };
        let shares: Vec<f64> = match (self.value_of(array), array) {
            (Some(Datum::Array(items)), _) => items.items.iter().map(|v| one(Some(v))).collect(),
            (_, Expr::Array(items, _)) => items
                .iter()
                .map(|item| one(self.value_of(item).as_ref()))
                .collect(),
            _ => {
                let share = one(None);
                return match all {
                    true => share.powf(ITEMS),
                    false => 1.0 - (1.0 - share).powf(ITEMS),
                };
            }
        };
        if all {
            // NOT IN: no value is two of them.
            let missed: f64 = shares.iter().map(|share| 1.0 - share).sum();
            return match op.name == "<>" && missed <= 1.0 {
                true => 1.0 - missed,
                false => shares.iter().product(),
            };
        }
        let sum: f64 = shares.iter().sum();
        match op.strategy == Some(Strategy::Equal) && sum <= 1.0 {
            true => sum,
            false => 1.0 - shares.iter().map(|share| 1.0 - share).product::<f64>(),
        }
    }

    /// `text LIKE pattern` and the like.
    fn pattern(&self, op: &Operator, kind: Pattern, facts: Option<Facts<'_>>, right: &Expr) -> f64 {
        let guess = |share: f64| if kind.negated { 1.0 - share } else { share };
        let Some(value) = self.value_of(right) else {
            return guess(RANGE);
        };
        let Some(text) = value.as_str() else {
            return guess(if value.is_null() { 0.0 } else { RANGE });
        };
        let parts = match kind.language {
            Language::Like => like_parts(text),
            Language::Regex => regex_parts(text),
        };
        let facts = facts.unwrap_or(Facts::unknown(f64::INFINITY));
        if parts.exact && !kind.caseless {
            return guess(facts.equal(Some(&Datum::text(&parts.prefix))));
        }
        /// Bounds from which the others can be told, and from which they need no guess beside them.
        const FEW: usize = 10;
        const MANY: usize = 100;
        let matches = |text: &Datum| {
            let args = [text.clone(), value.clone()];
            let found = op.call(&self.ctx.eval, &args);
            found.is_ok_and(|found| found.is_true()) != kind.negated
        };
        let (common, tested, bounds, rest) = facts.tested(&matches);
        let prefix = match kind.caseless || parts.prefix.is_empty() {
            true => 1.0,
            false => prefix_share(&facts, &parts.prefix),
        };
        let guessed = (prefix * parts.rest).clamp(0.0, 1.0);
        let share = match bounds {
            MANY.. => tested,
            FEW.. => {
                let weight = bounds as f64 / MANY as f64;
                tested * weight + guessed * (1.0 - weight)
            }
            _ => guessed,
        };
        let share = (common + rest * share.clamp(0.0001, 0.9999)).clamp(0.0, 1.0);
        match kind.negated {
            true => 1.0 - share - facts.nulls,
            false => share,
        }
    }

    /// What inverted indexes are asked for, `column @> value` and the like: tested of the values
    /// that are known of the column, and guessed where these are few.
    fn searched(
        &self,
        op: &Operator,
        (left, right): (&Expr, &Expr),
        facts: (Option<Facts<'_>>, Option<Facts<'_>>),
        guess: f64,
    ) -> f64 {
        /// Bounds from which the others can be told, and from which they need no guess beside them.
        const FEW: usize = 10;
        const MANY: usize = 100;
        let (facts, other, first) = match facts {
            (Some(facts), None) => (facts, right, true),
            (None, Some(facts)) => (facts, left, false),
            _ => return guess,
        };
        let Some(value) = self.value_of(other) else {
            return guess;
        };
        if value.is_null() {
            return 0.0;
        }
        let meets = |known: &Datum| {
            let args = match first {
                true => [known.clone(), value.clone()],
                false => [value.clone(), known.clone()],
            };
            let found = op.call(&self.ctx.eval, &args);
            found.is_ok_and(|found| found.is_true())
        };
        let (common, tested, bounds, rest) = facts.tested(&meets);
        let share = match bounds {
            MANY.. => tested,
            FEW.. => {
                let weight = bounds as f64 / MANY as f64;
                tested * weight + guess * (1.0 - weight)
            }
            _ => guess,
        };
        (common + rest * share.clamp(0.0001, 0.9999)).clamp(0.0, 1.0)
    }

    /// How many groups rows fall into by these expressions.
    pub(super) fn groups(&self, exprs: &[Expr], rows: f64) -> f64 {
        let mut seen: Vec<&Expr> = Vec::new();
        let mut of_rel: Vec<(RelId, f64, f64, u32)> = Vec::new();
        let mut others = 1.0;
        for expr in exprs {
            if seen.contains(&expr) {
                continue;
            }
            seen.push(expr);
            let mut columns = Vec::new();
            expr.for_each_var(&mut |var| columns.push(var.clone()));
            if columns.is_empty() {
                if !matches!(expr, Expr::Const(..) | Expr::Param(..)) {
                    others *= facts::DISTINCT;
                }
                continue;
            }
            if expr.type_oid() == oid::BOOL && !matches!(expr, Expr::Var(_)) {
                others *= 2.0;
                continue;
            }
            for var in columns {
                let whole = Expr::Var(var.clone());
                let Some(facts) = self.facts(&whole, None) else {
                    others *= facts::DISTINCT.min(rows.max(1.0));
                    continue;
                };
                let distinct = facts.distinct + f64::from(u8::from(facts.nulls > 0.0));
                match of_rel.iter_mut().find(|(rel, ..)| *rel == var.rel) {
                    Some((_, product, _, count)) => {
                        *product *= distinct;
                        *count += 1;
                    }
                    None => of_rel.push((var.rel, distinct, facts.rows, 1)),
                }
            }
        }
        let mut groups = others;
        for (_, product, table, count) in of_rel {
            // Several columns of one table are seldom independent.
            let most = if count > 1 {
                (table * 0.1).max(1.0)
            } else {
                table
            };
            let mut distinct = product.min(most).max(1.0);
            if table > 0.0 && rows < table {
                // Of what was filtered, some values are not met at all.
                distinct *= 1.0 - ((table - rows) / table).powf(table / distinct);
            }
            groups *= distinct.max(1.0);
        }
        groups.clamp(1.0, rows.max(1.0))
    }
}

#[derive(Clone, Copy)]
enum Language {
    Like,
    Regex,
}

#[derive(Clone, Copy)]
struct Pattern {
    language: Language,
    negated: bool,
    caseless: bool,
}

fn pattern_kind(operator: &str) -> Option<Pattern> {
    let negated = operator.starts_with('!');
    let (language, caseless) = match operator.trim_start_matches('!') {
        "~~" => (Language::Like, false),
        "~~*" => (Language::Like, true),
        "~" => (Language::Regex, false),
        "~*" => (Language::Regex, true),
        _ => return None,
    };
    Some(Pattern {
        language,
        negated,
        caseless,
    })
}

/// What a pattern begins with, and the share that the rest of it lets through.
struct Parts {
    prefix: String,
    /// There is no rest.
    exact: bool,
    rest: f64,
}

fn like_parts(pattern: &str) -> Parts {
    let mut parts = Parts {
        prefix: String::new(),
        exact: true,
        rest: 1.0,
    };
    let mut chars = pattern.chars();
    while let Some(mut c) = chars.next() {
        let wild = match c {
            '%' => Some(ANY_RUN),
            '_' => Some(ANY_CHARACTER),
            '\\' => {
                c = chars.next().unwrap_or(c);
                None
            }
            _ => None,
        };
        match wild {
            Some(share) => {
                // The first wildcard that ends the prefix costs nothing by itself.
                parts.rest *= if parts.exact && c == '%' { 1.0 } else { share };
                parts.exact = false;
            }
            None if parts.exact => parts.prefix.push(c),
            None => parts.rest *= FIXED_CHARACTER,
        }
    }
    parts.rest = parts.rest.min(1.0);
    parts
}

fn regex_parts(pattern: &str) -> Parts {
    let (anchored, body) = match pattern.strip_prefix('^') {
        Some(body) => (true, body),
        None => (false, pattern),
    };
    let special = |c: char| "\\.[](){}*+?|^$".contains(c);
    let plain = body.find(special).unwrap_or(body.len());
    let (head, tail) = body.split_at(plain);
    // What is repeated or left out may be the last character before.
    let optional = tail.starts_with(['*', '?', '{', '|']) || body.contains('|');
    let mut prefix = String::new();
    if anchored && !body.contains('|') {
        prefix.push_str(head);
        if optional {
            prefix.pop();
        }
    }
    let exact = anchored && tail == "$";
    let free = body.chars().count() - prefix.chars().count();
    let mut rest: f64 = if anchored { 1.0 } else { ANY_RUN };
    for c in body.chars().skip(body.chars().count() - free) {
        rest *= match c {
            '*' | '+' | '?' | '|' => ANY_RUN.sqrt(),
            '.' | '[' => ANY_CHARACTER,
            c if special(c) => 1.0,
            _ => FIXED_CHARACTER,
        };
    }
    Parts {
        prefix,
        exact,
        rest: rest.clamp(0.0, 1.0),
    }
}

/// Share of texts that begin so.
fn prefix_share(facts: &Facts<'_>, prefix: &str) -> f64 {
    let from = facts.beyond(Strategy::GreaterEqual, &Datum::text(prefix));
    let next = throng_types::key::after_prefix(prefix.as_bytes());
    let next = next.and_then(|bytes| String::from_utf8(bytes).ok());
    let to = next.and_then(|next| facts.beyond(Strategy::Less, &Datum::text(next)));
    match (from, to) {
        (Some(from), Some(to)) => (from + to + facts.nulls - 1.0).max(facts.equal(None)),
        _ => RANGE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_have_prefixes() {
        let parts = like_parts("special\\_x%requests%");
        assert_eq!((parts.prefix.as_str(), parts.exact), ("special_x", false));
        assert!(parts.rest < 0.001);
        assert!(like_parts("whole").exact);
        let brass = like_parts("%BRASS");
        assert!(brass.prefix.is_empty() && brass.rest < 0.001);
        assert_eq!(regex_parts("^abc").prefix, "abc");
        assert_eq!(regex_parts("^abc*").prefix, "ab");
        assert!(regex_parts("^abc$").exact);
        assert!(regex_parts("abc|def").prefix.is_empty());
    }
}
