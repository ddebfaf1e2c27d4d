//! A path as text, in PostgreSQL's form.

use super::*;
use std::fmt::{Display, Formatter, Result};
use throng_types::jsonb::write_string;

impl Display for Path {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if !self.lax {
            f.write_str("strict ")?;
        }
        chain(&self.root, true, f)
    }
}

/// How tightly an operator binds; what binds no tighter than what is around it needs parentheses.
fn priority(chain: &Chain) -> u8 {
    match chain.first() {
        Some(Item::Or(_)) => 0,
        Some(Item::And(_)) => 1,
        Some(Item::Compare(..) | Item::StartsWith(_)) => 2,
        Some(Item::Arithmetic(Arithmetic::Add | Arithmetic::Subtract, _)) => 3,
        Some(Item::Arithmetic(..)) => 4,
        Some(Item::Sign(..)) => 5,
        _ => 6,
    }
}

/// A value that is an operator's, not one that its accessors read on from.
fn is_operator(item: &Item) -> bool {
    matches!(
        item,
        Item::Arithmetic(..)
            | Item::Sign(..)
            | Item::And(_)
            | Item::Or(_)
            | Item::Not(_)
            | Item::IsUnknown(_)
            | Item::Compare(..)
            | Item::Exists(_)
            | Item::StartsWith(_)
            | Item::LikeRegex(_)
    )
}

/// `apart`: an operator stands in parentheses.
fn chain(items: &Chain, apart: bool, f: &mut Formatter<'_>) -> Result {
    let Some((first, steps)) = items.split_first() else {
        return Ok(());
    };
    // Not and exists have parentheses of their own, which suffice where nothing follows.
    let enclosed = match first {
        Item::Not(_) | Item::Exists(_) | Item::IsUnknown(_) | Item::Number(_) => !steps.is_empty(),
        item => is_operator(item) && (apart || !steps.is_empty()),
    };
    if enclosed {
        f.write_str("(")?;
    }
    head(first, priority(items), f)?;
    if enclosed {
        f.write_str(")")?;
    }
    steps.iter().try_for_each(|s| step(s, f))
}

fn operand(items: &Chain, around: u8, f: &mut Formatter<'_>) -> Result {
    chain(items, priority(items) <= around, f)
}

fn infix(pair: &(Chain, Chain), symbol: &str, around: u8, f: &mut Formatter<'_>) -> Result {
    operand(&pair.0, around, f)?;
    write!(f, " {symbol} ")?;
    operand(&pair.1, around, f)
}

fn string(text: &str, f: &mut Formatter<'_>) -> Result {
    let mut out = Vec::new();
    write_string(text, &mut out);
    f.write_str(&String::from_utf8_lossy(&out))
}
fn number(number: &Numeric, f: &mut Formatter<'_>) -> Result {
    Display::fmt(number, f)
}

fn head(item: &Item, around: u8, f: &mut Formatter<'_>) -> Result {
    match item {
        Item::Null => f.write_str("null"),
        Item::Bool(value) => Display::fmt(value, f),
        Item::Number(value) => number(value, f),
        Item::String(text) => string(text, f),
        Item::Variable(name) => {
            f.write_str("$")?;
            string(name, f)
        }
        Item::Root => f.write_str("$"),
        Item::Current => f.write_str("@"),
        Item::Last => f.write_str("last"),
        Item::Arithmetic(operator, pair) => infix(pair, operator.symbol(), around, f),
        Item::Compare(operator, pair) => infix(pair, operator.symbol(), around, f),
        Item::And(pair) => infix(pair, "&&", around, f),
        Item::Or(pair) => infix(pair, "||", around, f),
        Item::StartsWith(pair) => infix(pair, "starts with", around, f),
        Item::Sign(sign, inner) => {
            f.write_str(sign.symbol())?;
            operand(inner, around, f)
        }
        Item::Not(inner) => wrapped("!(", inner, ")", f),
        Item::IsUnknown(inner) => wrapped("(", inner, ") is unknown", f),
        Item::Exists(inner) => wrapped("exists (", inner, ")", f),
        Item::LikeRegex(like) => like_regex(like, around, f),
        // The rest stand first nowhere.
        step_like => step(step_like, f),
    }
}

fn wrapped(before: &str, inner: &Chain, after: &str, f: &mut Formatter<'_>) -> Result {
    f.write_str(before)?;
    chain(inner, false, f)?;
    f.write_str(after)
}

fn like_regex(like: &LikeRegex, around: u8, f: &mut Formatter<'_>) -> Result {
    operand(&like.subject, around, f)?;
    f.write_str(" like_regex ")?;
    string(&like.pattern, f)?;
    let flags = like.flags;
    let letters = [
        (flags.ignore_case, 'i'),
        (flags.dot_all, 's'),
        (flags.lines, 'm'),
        (flags.expanded, 'x'),
        (flags.quoted, 'q'),
    ];
    let set: String = letters.iter().filter(|l| l.0).map(|l| l.1).collect();
    if set.is_empty() {
        return Ok(());
    }
    write!(f, " flag \"{set}\"")
}

fn step(item: &Item, f: &mut Formatter<'_>) -> Result {
    match item {
        Item::Key(name) => {
            f.write_str(".")?;
            string(name, f)
        }
        Item::AnyKey => f.write_str(".*"),
        Item::AnyElement => f.write_str("[*]"),
        Item::Subscripts(all) => {
            for (i, (from, to)) in all.iter().enumerate() {
                f.write_str(if i == 0 { "[" } else { "," })?;
                chain(from, false, f)?;
                if let Some(to) = to {
                    f.write_str(" to ")?;
                    chain(to, false, f)?;
                }
            }
            f.write_str("]")
        }
        Item::AnyLevel { first, last } => any_level(*first, *last, f),
        Item::Filter(inner) => wrapped("?(", inner, ")", f),
        Item::Method(method) => method_call(method, f),
        value => head(value, 0, f),
    }
}

fn any_level(first: u32, last: u32, f: &mut Formatter<'_>) -> Result {
    match (first, last) {
        (0, LEAVES) => f.write_str(".**"),
        (LEAVES, LEAVES) => f.write_str(".**{last}"),
        (first, last) if first == last => write!(f, ".**{{{first}}}"),
        (LEAVES, last) => write!(f, ".**{{last to {last}}}"),
        (first, LEAVES) => write!(f, ".**{{{first} to last}}"),
        (first, last) => write!(f, ".**{{{first} to {last}}}"),
    }
}

fn method_call(method: &Method, f: &mut Formatter<'_>) -> Result {
    write!(f, ".{}(", method.name())?;
    match method {
        Method::Decimal(Some((precision, scale))) => {
            number(precision, f)?;
            if let Some(scale) = scale {
                f.write_str(",")?;
                number(scale, f)?;
            }
        }
        Method::Datetime(Some(template)) => string(template, f)?,
        Method::Time(Some(precision))
        | Method::TimeTz(Some(precision))
        | Method::Timestamp(Some(precision))
        | Method::TimestampTz(Some(precision)) => number(precision, f)?,
        _ => {}
    }
    f.write_str(")")
}
