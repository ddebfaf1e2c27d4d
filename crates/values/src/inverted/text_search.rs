//! `tsvector_ops`: the keys of a `tsvector` are its lexemes.
//!
//! Keys tell no positions and no weights: phrases and weights are asked of the row.

use std::ops::Bound;

use throng_types::key::{self, KeyOrder};
use throng_types::text_search::{Node, TsQuery, TsVector};
use throng_types::{Datum, Result, Text, oid, stack};

use super::{Keys, NORMAL, OperatorClass, Search, Strategy};
use crate::func::EvalContext;

const MATCHES: i16 = 1;
const MATCHES_WITHOUT_WEIGHTS: i16 = 2;

pub static TSVECTOR_OPS: OperatorClass = OperatorClass {
    oid: 10073,
    name: "tsvector_ops",
    family: 3659,
    input: oid::TSVECTOR,
    key: oid::TEXT,
    default: true,
    extension: None,
    strategies: &[
        Strategy {
            number: MATCHES,
            operator: "@@",
            query: oid::TSQUERY,
        },
        Strategy {
            number: MATCHES_WITHOUT_WEIGHTS,
            operator: "@@@",
            query: oid::TSQUERY,
        },
    ],
    support: &[
        (1, 3724, "gin_cmp_tslexeme"),
        (2, 3656, "gin_extract_tsvector"),
        (3, 3657, "gin_extract_tsquery"),
        (4, 3658, "gin_tsquery_consistent"),
        (5, 2700, "gin_cmp_prefix"),
        (6, 3921, "gin_tsquery_triconsistent"),
    ],
    extract_value,
    extract_query,
};

fn write_lexeme(lexeme: &str, out: &mut Vec<u8>) -> Result<()> {
    key::encode_one(&Datum::Text(Text::new(lexeme)), KeyOrder::ASCENDING, out)
}

fn extract_value(value: &Datum, keys: &mut Keys) -> Result<()> {
    let Datum::Base(value) = value else {
        return Ok(());
    };
    let mut lexemes = TsVector::new(&value.bytes).iter();
    lexemes.try_for_each(|entry| keys.key(|out| write_lexeme(entry.text, out)))
}

fn extract_query(query: &Datum, _: i16, _: &EvalContext<'_>) -> Result<Search> {
    let Datum::Base(value) = query else {
        return Ok(Search::Nothing);
    };
    let query = TsQuery::from_bytes(&value.bytes);
    match query.root() {
        Some(root) => search(&query, root),
        None => Ok(Search::Nothing),
    }
}

fn search(query: &TsQuery, at: u32) -> Result<Search> {
    stack::check()?;
    Ok(match *query.node(at) {
        Node::Operand(ref operand) => {
            let mut key = vec![NORMAL];
            write_lexeme(&operand.lexeme, &mut key)?;
            match operand.prefix {
                false => Search::Key(key),
                true => {
                    // Without the end of the text, it begins all that goes on.
                    key.truncate(key.len() - key::TEXT_END);
                    Search::Range(Bound::Included(key.clone()), Bound::Included(key))
                }
            }
        }
        Node::Not(_) => Search::Everything,
        Node::And(a, b) | Node::Phrase(a, b, _) => {
            Search::All(vec![search(query, a)?, search(query, b)?])
        }
        Node::Or(a, b) => Search::Any(vec![search(query, a)?, search(query, b)?]),
    })
}
