//! What PostgreSQL's catalogs list of full-text search.

use super::super::compare::any;
use super::super::{Function, Operator, Strategy};
use super::{headline, parse, query, rank, rewrite, vector};
use throng_types::Oid;
use throng_types::oid::*;

/// One row a function: oid, name, arguments, result, what computes it, and how it differs from a
/// strict and immutable one.
macro_rules! functions {
    ($($oid:literal $name:ident($($arg:ident),*) $ret:ident $module:ident::$eval:ident $(, $change:ident($($given:expr),*))*;)*) => {
        pub static FUNCTIONS: &[Function] = &[
            $(Function::new($oid, stringify!($name), &[$($arg),*], $ret, $module::$eval)$(.$change($($given),*))*,)*
        ];
    };
}

functions! {
    3319 ts_filter(TSVECTOR, CHAR_ARRAY) TSVECTOR vector::filter;
    3320 setweight(TSVECTOR, CHAR, TEXT_ARRAY) TSVECTOR vector::set_weight;
    3321 ts_delete(TSVECTOR, TEXT) TSVECTOR vector::delete;
    3323 ts_delete(TSVECTOR, TEXT_ARRAY) TSVECTOR vector::delete;
    3326 tsvector_to_array(TSVECTOR) TEXT_ARRAY vector::to_array;
    3327 array_to_tsvector(TEXT_ARRAY) TSVECTOR vector::from_array;
    3622 tsvector_cmp(TSVECTOR, TSVECTOR) INT4 vector::compare;
    3623 strip(TSVECTOR) TSVECTOR vector::strip;
    3624 setweight(TSVECTOR, CHAR) TSVECTOR vector::set_weight;
    3668 tsquery_cmp(TSQUERY, TSQUERY) INT4 vector::compare;
    3672 numnode(TSQUERY) INT4 query::node_count;
    3673 querytree(TSQUERY) TEXT query::tree;
    3684 ts_rewrite(TSQUERY, TSQUERY, TSQUERY) TSQUERY rewrite::rewrite;
    3703 ts_rank(FLOAT4_ARRAY, TSVECTOR, TSQUERY, INT4) FLOAT4 rank::rank;
    3704 ts_rank(FLOAT4_ARRAY, TSVECTOR, TSQUERY) FLOAT4 rank::rank;
    3705 ts_rank(TSVECTOR, TSQUERY, INT4) FLOAT4 rank::rank;
    3706 ts_rank(TSVECTOR, TSQUERY) FLOAT4 rank::rank;
    3707 ts_rank_cd(FLOAT4_ARRAY, TSVECTOR, TSQUERY, INT4) FLOAT4 rank::rank_by_covers;
    3708 ts_rank_cd(FLOAT4_ARRAY, TSVECTOR, TSQUERY) FLOAT4 rank::rank_by_covers;
    3709 ts_rank_cd(TSVECTOR, TSQUERY, INT4) FLOAT4 rank::rank_by_covers;
    3710 ts_rank_cd(TSVECTOR, TSQUERY) FLOAT4 rank::rank_by_covers;
    3711 length(TSVECTOR) INT4 vector::length;
    3723 ts_lexize(REGDICTIONARY, TEXT) TEXT_ARRAY parse::lexize;
    3743 ts_headline(REGCONFIG, TEXT, TSQUERY, TEXT) TEXT headline::of_text;
    3744 ts_headline(REGCONFIG, TEXT, TSQUERY) TEXT headline::of_text;
    3745 to_tsvector(REGCONFIG, TEXT) TSVECTOR parse::to_vector;
    3746 to_tsquery(REGCONFIG, TEXT) TSQUERY parse::to_query;
    3747 plainto_tsquery(REGCONFIG, TEXT) TSQUERY parse::plain_to_query;
    3749 to_tsvector(TEXT) TSVECTOR parse::to_vector, stable();
    3750 to_tsquery(TEXT) TSQUERY parse::to_query, stable();
    3751 plainto_tsquery(TEXT) TSQUERY parse::plain_to_query, stable();
    3754 ts_headline(TEXT, TSQUERY, TEXT) TEXT headline::of_text, stable();
    3755 ts_headline(TEXT, TSQUERY) TEXT headline::of_text, stable();
    3759 get_current_ts_config() REGCONFIG parse::current, stable();
    3760 ts_match_tt(TEXT, TEXT) BOOL parse::match_text_text, stable();
    4201 ts_headline(REGCONFIG, JSONB, TSQUERY, TEXT) JSONB headline::of_json;
    4202 ts_headline(REGCONFIG, JSONB, TSQUERY) JSONB headline::of_json;
    4203 ts_headline(JSONB, TSQUERY, TEXT) JSONB headline::of_json, stable();
    4204 ts_headline(JSONB, TSQUERY) JSONB headline::of_json, stable();
    4205 ts_headline(REGCONFIG, JSON, TSQUERY, TEXT) JSON headline::of_json;
    4206 ts_headline(REGCONFIG, JSON, TSQUERY) JSON headline::of_json;
    4207 ts_headline(JSON, TSQUERY, TEXT) JSON headline::of_json, stable();
    4208 ts_headline(JSON, TSQUERY) JSON headline::of_json, stable();
    4209 to_tsvector(JSONB) TSVECTOR parse::json_strings, stable();
    4210 to_tsvector(JSON) TSVECTOR parse::json_strings, stable();
    4211 to_tsvector(REGCONFIG, JSONB) TSVECTOR parse::json_strings;
    4212 to_tsvector(REGCONFIG, JSON) TSVECTOR parse::json_strings;
    4213 jsonb_to_tsvector(JSONB, JSONB) TSVECTOR parse::json_filtered, stable();
    4214 jsonb_to_tsvector(REGCONFIG, JSONB, JSONB) TSVECTOR parse::json_filtered;
    4215 json_to_tsvector(JSON, JSONB) TSVECTOR parse::json_filtered, stable();
    4216 json_to_tsvector(REGCONFIG, JSON, JSONB) TSVECTOR parse::json_filtered;
    5001 phraseto_tsquery(TEXT) TSQUERY parse::phrase_to_query, stable();
    5004 tsquery_phrase(TSQUERY, TSQUERY, INT4) TSQUERY query::phrase;
    5006 phraseto_tsquery(REGCONFIG, TEXT) TSQUERY parse::phrase_to_query;
    5007 websearch_to_tsquery(REGCONFIG, TEXT) TSQUERY parse::web_search_to_query;
    5009 websearch_to_tsquery(TEXT) TSQUERY parse::web_search_to_query, stable();
}

const TOKEN_KINDS: &[(&str, Oid)] = &[("tokid", INT4), ("alias", TEXT), ("description", TEXT)];
const TOKENS: &[(&str, Oid)] = &[("tokid", INT4), ("token", TEXT)];
const DEBUG: &[(&str, Oid)] = &[
    ("alias", TEXT),
    ("description", TEXT),
    ("token", TEXT),
    ("dictionaries", REGDICTIONARY_ARRAY),
    ("dictionary", REGDICTIONARY),
    ("lexemes", TEXT_ARRAY),
];
const LEXEMES: &[(&str, Oid)] = &[
    ("lexeme", TEXT),
    ("positions", INT2_ARRAY),
    ("weights", TEXT_ARRAY),
];

pub static SETS: &[Function] = &[
    Function::set(3322, "unnest", &[TSVECTOR], RECORD, vector::unnest).columns(LEXEMES),
    Function::set(3713, "ts_token_type", &[OID], RECORD, parse::token_types).columns(TOKEN_KINDS),
    Function::set(3714, "ts_token_type", &[TEXT], RECORD, parse::token_types)
        .columns(TOKEN_KINDS)
        .stable(),
    Function::set(3715, "ts_parse", &[OID, TEXT], RECORD, parse::tokens).columns(TOKENS),
    Function::set(3716, "ts_parse", &[TEXT, TEXT], RECORD, parse::tokens)
        .columns(TOKENS)
        .stable(),
    Function::set(6183, "ts_debug", &[REGCONFIG, TEXT], RECORD, parse::debug)
        .columns(DEBUG)
        .stable(),
    Function::set(6184, "ts_debug", &[TEXT], RECORD, parse::debug)
        .columns(DEBUG)
        .stable(),
];

/// One row an operator: oid, name, operands, result, its function, what computes it, commutator,
/// negator, and how it differs from an immutable one.
macro_rules! operators {
    ($($oid:literal $name:literal $left:ident $right:ident $ret:ident $code:literal $code_name:literal $module:ident::$eval:ident $commutator:literal $negator:literal $(, $change:ident($($given:expr),*))*;)*) => {
        pub static OPERATORS: &[Operator] = &[
            $(Operator::new($oid, $name, $left, $right, $ret, ($code, $code_name), $module::$eval)
                .related($commutator, $negator)$(.$change($($given),*))*,)*
        ];
    };
}

/// The operand that a prefix operator does not have.
const NONE: Oid = Oid::NONE;

operators! {
    3627 "<" TSVECTOR TSVECTOR BOOL 3616 "tsvector_lt" any::lt 3632 3631, orders(Strategy::Less);
    3628 "<=" TSVECTOR TSVECTOR BOOL 3617 "tsvector_le" any::le 3631 3632, orders(Strategy::LessEqual);
    3629 "=" TSVECTOR TSVECTOR BOOL 3618 "tsvector_eq" any::eq 3629 3630, orders(Strategy::Equal);
    3630 "<>" TSVECTOR TSVECTOR BOOL 3619 "tsvector_ne" any::ne 3630 3629;
    3631 ">=" TSVECTOR TSVECTOR BOOL 3620 "tsvector_ge" any::ge 3628 3627, orders(Strategy::GreaterEqual);
    3632 ">" TSVECTOR TSVECTOR BOOL 3621 "tsvector_gt" any::gt 3627 3628, orders(Strategy::Greater);
    3633 "||" TSVECTOR TSVECTOR TSVECTOR 3625 "tsvector_concat" vector::concat 0 0;
    3636 "@@" TSVECTOR TSQUERY BOOL 3634 "ts_match_vq" vector::match_vector_query 3637 0;
    3637 "@@" TSQUERY TSVECTOR BOOL 3635 "ts_match_qv" vector::match_query_vector 3636 0;
    3660 "@@@" TSVECTOR TSQUERY BOOL 3634 "ts_match_vq" vector::match_vector_query 3661 0;
    3661 "@@@" TSQUERY TSVECTOR BOOL 3635 "ts_match_qv" vector::match_query_vector 3660 0;
    3674 "<" TSQUERY TSQUERY BOOL 3662 "tsquery_lt" any::lt 3679 3678, orders(Strategy::Less);
    3675 "<=" TSQUERY TSQUERY BOOL 3663 "tsquery_le" any::le 3678 3679, orders(Strategy::LessEqual);
    3676 "=" TSQUERY TSQUERY BOOL 3664 "tsquery_eq" any::eq 3676 3677, orders(Strategy::Equal);
    3677 "<>" TSQUERY TSQUERY BOOL 3665 "tsquery_ne" any::ne 3677 3676;
    3678 ">=" TSQUERY TSQUERY BOOL 3666 "tsquery_ge" any::ge 3675 3674, orders(Strategy::GreaterEqual);
    3679 ">" TSQUERY TSQUERY BOOL 3667 "tsquery_gt" any::gt 3674 3675, orders(Strategy::Greater);
    3680 "&&" TSQUERY TSQUERY TSQUERY 3669 "tsquery_and" query::and 0 0;
    3681 "||" TSQUERY TSQUERY TSQUERY 3670 "tsquery_or" query::or 0 0;
    3682 "!!" NONE TSQUERY TSQUERY 3671 "tsquery_not" query::not 0 0;
    3693 "@>" TSQUERY TSQUERY BOOL 3691 "tsq_mcontains" query::contains 3694 0;
    3694 "<@" TSQUERY TSQUERY BOOL 3692 "tsq_mcontained" query::contained 3693 0;
    3762 "@@" TEXT TEXT BOOL 3760 "ts_match_tt" parse::match_text_text 0 0, stable();
    3763 "@@" TEXT TSQUERY BOOL 3761 "ts_match_tq" parse::match_text_query 0 0, stable();
    5005 "<->" TSQUERY TSQUERY TSQUERY 5003 "tsquery_phrase" query::phrase 0 0;
}
