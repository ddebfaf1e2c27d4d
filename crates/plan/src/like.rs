//! `key LIKE 'abc%'` as the range of keys that begin so: what an index can be asked for. The
//! condition itself is still looked at.

use throng_types::{Datum, SqlType, oid};

use throng_bind::expr::Expr;
use throng_values::func::resolve_operator;

/// Both ends of a range of strings, and the comparisons with the key that say it.
pub(super) struct Range {
    pub lower: (Expr, bool),
    pub upper: Option<(Expr, bool)>,
    pub conditions: Vec<Expr>,
}

/// The range of a condition on the expression that `is_key` knows. `patterns`: by the names that
/// comparisons of pattern operator classes go by.
pub(super) fn range(
    condition: &Expr,
    is_key: impl Fn(&Expr) -> bool,
    patterns: bool,
) -> Option<Range> {
    let Expr::Op { op, args, .. } = condition else {
        return None;
    };
    let [key, Expr::Const(Datum::Text(pattern), _)] = &args[..] else {
        return None;
    };
    if key.type_oid() != oid::TEXT || !is_key(key) {
        return None;
    }
    let (prefix, exact) = match op.name {
        "~~" => fixed_part(pattern.as_str())?,
        "^@" => (pattern.as_str().to_owned(), false),
        _ => return None,
    };
    if prefix.is_empty() && !exact {
        return None;
    }
    let value = |text: &str| Expr::Const(Datum::from(text), SqlType::TEXT);
    let compare = |name: &str, to: &Expr| {
        let own = format!("~{name}~");
        let found = match patterns && name != "=" {
            true => resolve_operator(&own, Some(oid::TEXT), oid::TEXT),
            false => resolve_operator(name, Some(oid::TEXT), oid::TEXT),
        };
        let found = found.or_else(|_| resolve_operator(name, Some(oid::TEXT), oid::TEXT));
        found.ok().map(|found| Expr::Op {
            op: found.operator,
            args: vec![key.clone(), to.clone()],
            ty: SqlType::BOOL,
        })
    };
    let from = value(&prefix);
    if exact {
        return Some(Range {
            conditions: vec![compare("=", &from)?],
            lower: (from.clone(), true),
            upper: Some((from, true)),
        });
    }
    let mut conditions = vec![compare(">=", &from)?];
    let upper = match next_prefix(&prefix) {
        Some(next) => {
            let to = value(&next);
            conditions.push(compare("<", &to)?);
            Some((to, false))
        }
        None => None,
    };
    Some(Range {
        lower: (from, true),
        upper,
        conditions,
    })
}

/// What every string that a pattern takes begins with, and whether that is all of it. None for a
/// pattern that is an error.
fn fixed_part(pattern: &str) -> Option<(String, bool)> {
    let mut prefix = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '%' | '_' => return Some((prefix, false)),
            '\\' => prefix.push(chars.next()?),
            c => prefix.push(c),
        }
    }
    Some((prefix, true))
}

/// The least string that is greater than all that begin with this one.
fn next_prefix(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        let next = match last {
            '\u{d7ff}' => Some('\u{e000}'),
            other => char::from_u32(u32::from(other) + 1),
        };
        if let Some(next) = next {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_pattern_begins_with() {
        let part = fixed_part;
        assert_eq!(part("abc%"), Some(("abc".into(), false)));
        assert_eq!(part("a\\%b_c"), Some(("a%b".into(), false)));
        assert_eq!(part("abc"), Some(("abc".into(), true)));
        assert_eq!(part("abc\\"), None);
        assert_eq!(next_prefix("ab"), Some("ac".into()));
        assert_eq!(next_prefix("a\u{10ffff}"), Some("b".into()));
        assert_eq!(next_prefix("\u{10ffff}"), None);
    }
}
