//! Finding functions, operators and aggregates by name and by oid.

use super::extension::EXTENSIONS;
use super::{Aggregate, FAMILIES, Function, Operator, WindowFunction};
use foldhash::fast::FixedState;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;
use throng_types::Oid;

type Map<K, V> = HashMap<K, V, FixedState>;

struct Index<T: 'static> {
    by_name: Map<&'static str, Vec<&'static T>>,
    by_oid: Map<Oid, &'static T>,
}

impl<T> Index<T> {
    fn new(
        rows: impl Iterator<Item = &'static T>,
        name: fn(&'static T) -> &'static str,
        oid: fn(&T) -> Oid,
    ) -> Index<T> {
        let mut by_name: Map<_, Vec<_>> = Map::default();
        let mut by_oid = Map::default();
        for row in rows {
            by_name.entry(name(row)).or_default().push(row);
            by_oid.insert(oid(row), row);
        }
        Index { by_name, by_oid }
    }
    fn named(&self, name: &str) -> &[&'static T] {
        self.by_name.get(name).map_or(&[], Vec::as_slice)
    }
}

static FUNCTION_INDEX: LazyLock<Index<Function>> = LazyLock::new(|| {
    let functions = FAMILIES.iter().flat_map(|f| f.functions);
    Index::new(
        functions.chain(BEHIND_OPERATORS.iter()),
        |f| f.name,
        |f| f.oid,
    )
});

/// The functions behind operators, which can be called by their names, too.
static BEHIND_OPERATORS: LazyLock<Vec<Function>> = LazyLock::new(|| {
    let mut known: HashSet<Oid, FixedState> = HashSet::default();
    known.extend(FAMILIES.iter().flat_map(|f| f.functions).map(|f| f.oid));
    let mut functions = Vec::new();
    for operator in FAMILIES.iter().flat_map(|f| f.operators) {
        if operator.code == Oid::NONE || !known.insert(operator.code) {
            continue;
        }
        let mut args = vec![operator.left, operator.right];
        args.retain(|arg| *arg != Oid::NONE);
        functions.push(Function {
            strict: operator.strict,
            volatility: operator.volatility,
            ..Function::new(
                operator.code.0,
                operator.code_name,
                args.leak(),
                operator.ret,
                operator.eval,
            )
        });
    }
    functions
});

static OPERATOR_INDEX: LazyLock<Index<Operator>> = LazyLock::new(|| {
    let mut index = Index::new(
        FAMILIES.iter().flat_map(|f| f.operators),
        |o| o.name,
        |o: &Operator| o.oid,
    );
    // Those of extensions are not found by their names alone.
    let of_extensions = EXTENSIONS.iter().flat_map(|e| e.operators);
    index.by_oid.extend(of_extensions.map(|o| (o.oid, o)));
    index
});
static AGGREGATE_INDEX: LazyLock<Index<Aggregate>> = LazyLock::new(|| {
    Index::new(
        FAMILIES.iter().flat_map(|f| f.aggregates),
        |a| a.name,
        |a| a.oid,
    )
});

static WINDOW_INDEX: LazyLock<Index<WindowFunction>> = LazyLock::new(|| {
    Index::new(
        FAMILIES.iter().flat_map(|f| f.windows),
        |w| w.name,
        |w| w.oid,
    )
});

/// All overloads of a name (in lower case).
pub fn functions_named(name: &str) -> &'static [&'static Function] {
    FUNCTION_INDEX.named(name)
}
pub fn function_by_oid(oid: Oid) -> Option<&'static Function> {
    FUNCTION_INDEX.by_oid.get(&oid).copied()
}
pub fn operators_named(name: &str) -> &'static [&'static Operator] {
    OPERATOR_INDEX.named(name)
}
pub fn operator_by_oid(oid: Oid) -> Option<&'static Operator> {
    OPERATOR_INDEX.by_oid.get(&oid).copied()
}
pub fn aggregates_named(name: &str) -> &'static [&'static Aggregate] {
    AGGREGATE_INDEX.named(name)
}
pub fn aggregate_by_oid(oid: Oid) -> Option<&'static Aggregate> {
    AGGREGATE_INDEX.by_oid.get(&oid).copied()
}
pub fn windows_named(name: &str) -> &'static [&'static WindowFunction] {
    WINDOW_INDEX.named(name)
}
