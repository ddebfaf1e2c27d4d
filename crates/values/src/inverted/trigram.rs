//! `gin_trgm_ops` of the extension `pg_trgm`: the keys of a text are its groups of three letters.
//!
//! ```text
//!   LIKE '%abcd e%'   All [abc, bcd, "cd ", "  e"]
//!   % 'abc'           AtLeast [  a,  ab, abc, "bc "], by the threshold
//! ```
//! A regular expression is taken apart where it is letters, dots and what repeats these; any other
//! is taken for everything.

use throng_types::{Datum, Result, oid};

use super::{Keys, OperatorClass, Search, Strategy};
use crate::eval::EvalStop;
use crate::func::EvalContext;
use crate::func::extension::class_oid;
use crate::func::extension::pg_trgm::{
    NUMBER, Trigram, similarity_limit, strict_word_limit, trigrams, trigrams_of_pattern, word_limit,
};

const SIMILAR: i16 = 1;
const LIKE: i16 = 3;
const ILIKE: i16 = 4;
const MATCHES: i16 = 5;
const MATCHES_ANY_CASE: i16 = 6;
const HAS_WORD: i16 = 7;
const HAS_STRICT_WORD: i16 = 9;
const EQUAL: i16 = 11;

const fn of_text(number: i16, operator: &'static str) -> Strategy {
    Strategy {
        number,
        operator,
        query: oid::TEXT,
    }
}

pub static TRIGRAM_OPS: OperatorClass = OperatorClass {
    oid: class_oid(NUMBER, 0),
    name: "gin_trgm_ops",
    family: class_oid(NUMBER, 1),
    input: oid::TEXT,
    key: oid::INT4,
    default: false,
    extension: Some("pg_trgm"),
    strategies: &[
        of_text(SIMILAR, "%"),
        of_text(LIKE, "~~"),
        of_text(ILIKE, "~~*"),
        of_text(MATCHES, "~"),
        of_text(MATCHES_ANY_CASE, "~*"),
        of_text(HAS_WORD, "%>"),
        of_text(HAS_STRICT_WORD, "%>>"),
        of_text(EQUAL, "="),
    ],
    support: &[],
    extract_value,
    extract_query,
};

fn extract_value(value: &Datum, keys: &mut Keys) -> Result<()> {
    let Datum::Text(text) = value else {
        return Ok(());
    };
    for trigram in trigrams(text)? {
        keys.key(|out| {
            out.extend_from_slice(&trigram);
            Ok(())
        })?;
    }
    Ok(())
}

fn extract_query(query: &Datum, strategy: i16, ctx: &EvalContext<'_>) -> Result<Search> {
    let Datum::Text(query) = query else {
        return Ok(Search::Everything);
    };
    let text: &str = query;
    match strategy {
        LIKE | ILIKE => all_of(&trigrams_of_pattern(&of_like(text))?),
        MATCHES | MATCHES_ANY_CASE => match of_regex(text, strategy == MATCHES_ANY_CASE) {
            Some(pattern) => all_of(&trigrams_of_pattern(&pattern)?),
            None => Ok(Search::Everything),
        },
        SIMILAR => share_of(&trigrams(text)?, similarity_limit(ctx)),
        HAS_WORD => share_of(&trigrams(text)?, word_limit(ctx)),
        HAS_STRICT_WORD => share_of(&trigrams(text)?, strict_word_limit(ctx)),
        _ => all_of(&trigrams(text)?),
    }
}

fn keys(trigrams: &[Trigram]) -> Result<Vec<Search>> {
    let key = |trigram: &Trigram| {
        Search::key(|out| {
            out.extend_from_slice(trigram);
            Ok(())
        })
    };
    trigrams.iter().map(key).collect()
}

fn all_of(trigrams: &[Trigram]) -> Result<Search> {
    Ok(Search::All(keys(trigrams)?))
}

/// Two texts that are alike have that share of either's trigrams in common.
fn share_of(trigrams: &[Trigram], limit: Result<f32, EvalStop>) -> Result<Search> {
    /// What rounding may take away.
    const ROUNDED: f32 = 1e-3;
    match limit {
        Ok(limit) if limit > 0.0 => {
            let least = (limit * trigrams.len() as f32 - ROUNDED).ceil().max(1.0);
            Ok(Search::AtLeast(least as usize, keys(trigrams)?))
        }
        // A limit that is none is an error of the condition itself.
        _ => Ok(Search::Everything),
    }
}

/// The letters of a LIKE pattern; None for what stands for any.
fn of_like(pattern: &str) -> Vec<Option<char>> {
    let mut letters = pattern.chars();
    let mut found = Vec::with_capacity(pattern.len());
    while let Some(letter) = letters.next() {
        match letter {
            '%' | '_' => found.push(None),
            '\\' => found.extend(letters.next().map(Some)),
            letter => found.push(Some(letter)),
        }
    }
    found
}

/// The letters of a plain regular expression; None in it for what stands for any.
fn of_regex(pattern: &str, any_case: bool) -> Option<Vec<Option<char>>> {
    let inner = pattern.strip_prefix('^');
    let mut found = Vec::with_capacity(pattern.len());
    if inner.is_none() {
        found.push(None);
    }
    let inner = inner.unwrap_or(pattern);
    let (inner, is_whole) = match inner.strip_suffix('$') {
        Some(inner) => (inner, true),
        None => (inner, false),
    };
    let mut letters = inner.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '.' => {
                while letters.next_if(|c| matches!(c, '*' | '+' | '?')).is_some() {}
                found.push(None);
            }
            '*' | '+' | '?' | '{' | '}' | '[' | ']' | '(' | ')' | '|' | '\\' | '^' | '$' => {
                return None;
            }
            // Letters that are the same but for their case as others than their small ones.
            letter if any_case && (!letter.is_ascii() || "kKsS".contains(letter)) => {
                if letters.peek().is_some_and(|c| "*+?{".contains(*c)) {
                    return None;
                }
                found.push(None);
            }
            letter => found.push(Some(letter)),
        }
    }
    if !is_whole {
        found.push(None);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(pattern: &[Option<char>]) -> Vec<String> {
        let found = trigrams_of_pattern(pattern).expect("trigrams");
        let text = |t: &Trigram| String::from_utf8_lossy(t).into_owned();
        found.iter().map(text).collect()
    }

    #[test]
    fn a_pattern_has_the_trigrams_of_what_it_spells() {
        assert_eq!(told(&of_like("%abcd E%")), ["  e", "abc", "bcd", "cd "]);
        assert_eq!(told(&of_like("ab_c")), ["  a", " ab"]);
        assert_eq!(told(&of_like(r"%a\%bc")), ["  b", " bc", "bc "]);
        assert!(told(&of_like("%ab%")).is_empty());
        let plain = of_regex("^abc.*def$", false).expect("a plain one");
        assert_eq!(told(&plain), ["  a", " ab", "abc", "def", "ef "]);
        assert_eq!(
            told(&of_regex("xaskbcd", true).expect("a plain one")),
            ["bcd"]
        );
        for other in [
            "ab*cde", "a|b", "(abc)", "[abc]d", r"\mabc", "ab{2}", "***abc",
        ] {
            assert_eq!(of_regex(other, false), None, "{other}");
        }
    }
}
