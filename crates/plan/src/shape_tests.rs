//! Statements of any shape are planned or refused, whatever their depth.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use proptest::prelude::*;
use throng_types::error::state;
use throng_types::stack;

use crate::testing::Planning;
use throng_syntax::parse::parse;

/// Whatever the depth, a statement is planned or refused; a thousand levels are planned.
#[test]
fn depth_is_planned_or_refused() {
    let thread = std::thread::Builder::new().stack_size(stack::SIZE);
    thread.spawn(plan_deep).unwrap().join().unwrap();
}

fn plan_deep() {
    let bench = Planning::new("create table t (a int, b text)");
    let nested = [
        ("select ", "(", "1", ")"),
        ("select ", "- ", "a from t", ""),
        ("select ", "case when true then ", "1", " end"),
        ("select ", "abs(", "1", ")"),
        ("", "select (", "select 1", ")"),
        ("", "select true in (", "select true", ")"),
        ("", "select * from (", "select 1", ") x"),
        ("", "with a as (", "select 1", ") select * from a"),
        ("select 1", " + 1", "", ""),
        ("select a from t where true", " and a + 1 > 0", "", ""),
        ("select 1", " union all select 1", "", ""),
        ("select 1", " union select 1", "", ""),
        ("select 1", " except select 1", "", ""),
    ];
    for (start, open, middle, close) in nested {
        for n in [1_000, 30_000, 200_000] {
            let sql = format!("{start}{}{middle}{}", open.repeat(n), close.repeat(n));
            let parsed = parse(&sql);
            let bound = parsed.and_then(|_| bench.bind_one(&sql));
            match bound.and_then(|b| bench.plan(b).unwrap()) {
                Ok(_) => {}
                Err(e) => {
                    assert_eq!(e.code(), state::STATEMENT_TOO_COMPLEX, "{open} {n}: {e:?}");
                    assert!(n > 1_000, "{open} {n}: {e:?}");
                }
            }
        }
    }
}

#[test]
fn a_chain_of_with_queries_is_planned() {
    let thread = std::thread::Builder::new().stack_size(stack::SIZE);
    let plan = || {
        let bench = Planning::new("create table t (a int, b text)");
        let link = |i| format!(", c{i} as (select x + 1 as x from c{})", i - 1);
        let links: String = (1..2_500).map(link).collect();
        let sql = format!("with c0 as (select 1 as x){links} select x from c2499");
        let bound = bench.bind_one(&sql).unwrap();
        bench.plan(bound).unwrap().unwrap();
    };
    thread.spawn(plan).unwrap().join().unwrap();
}

/// Words and signs that, in any order, come near to being SQL.
fn soup() -> impl Strategy<Value = String> {
    let words: BTreeSet<&'static str> = BTreeSet::from_iter(
        "select from where group by order limit union all ( ) , ; . :: 1 1.5 'x' $1 * + - = < a b t \
         insert into values update set delete create table int text primary key as join left on \
         using not null in between and or case when then else end with recursive exists any \
         array [ ] cast interval distinct having for share of returning default alter add column \
         drop index copy stdin begin commit set local to show explain analyze vacuum lateral row \
         is like escape collate at time zone \"q\" references check unique truncate lock"
            .split_whitespace(),
    );
    let words: Vec<&'static str> = words.into_iter().collect();
    prop::collection::vec(prop::sample::select(words), 1..40).prop_map(|w| w.join(" "))
}

static BENCH: LazyLock<Planning> =
    LazyLock::new(|| Planning::new("create table t (a int, b text)"));

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn any_soup_is_planned_or_refused(sql in soup()) {
        if let Ok(parsed) = parse(&sql) {
            for p in parsed {
                let bound = BENCH.bench.bind(&p.statement, &sql).map_err(|e| e.to_string());
                let _ = bound.map(|b| BENCH.plan(b));
            }
        }
    }
}
