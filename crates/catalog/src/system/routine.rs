//! What computes: `pg_proc`, `pg_operator`, `pg_aggregate`, `pg_cast`, `pg_language`, `pg_am`.
//!
//! The rows are those of [`throng_values::func`]'s tables, with the functions behind operators and
//! types that cannot be called by name here but are referred to.

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::FixedState;
use throng_types::{Array, Datum, Oid, oid};

use super::{
    Rows, SystemState, extension, operator_class, row, types, user_operator, user_routine,
};
use crate::{Catalog, builtin};
use throng_values::func::leakproof::is_leakproof;
use throng_values::func::{
    AggKind, Aggregate, Cast, CastContext, CastMethod, FAMILIES, Function, Operator, Volatility,
    WindowFunction, aggregate::support, datetime::make,
};

/// A row of `pg_proc`.
#[derive(Clone, Debug)]
pub struct Procedure {
    pub oid: Oid,
    pub name: &'static str,
    pub args: Vec<Oid>,
    pub ret: Oid,
    /// `f` function, `a` aggregate, `w` window function.
    pub kind: u8,
    pub strict: bool,
    pub returns_set: bool,
    pub volatility: Volatility,
    /// The repeated last argument's element type, or none.
    pub variadic: Oid,
    pub defaults: u8,
}

/// The language all of them are written in.
const INTERNAL: Oid = Oid(12);

impl From<&Function> for Procedure {
    fn from(f: &Function) -> Procedure {
        Procedure {
            oid: f.oid,
            name: f.name,
            args: f.args.to_vec(),
            ret: f.ret,
            kind: b'f',
            strict: f.strict,
            returns_set: f.returns_set(),
            volatility: f.volatility,
            variadic: f.variadic,
            defaults: f.defaults,
        }
    }
}

impl From<&Aggregate> for Procedure {
    fn from(a: &Aggregate) -> Procedure {
        Procedure {
            kind: b'a',
            strict: false,
            variadic: a.variadic,
            ..Procedure::plain(a.oid, a.name, a.args.to_vec(), a.ret)
        }
    }
}

impl From<&WindowFunction> for Procedure {
    fn from(w: &WindowFunction) -> Procedure {
        Procedure {
            kind: b'w',
            strict: w.args.first().is_some_and(|a| *a != oid::ANYCOMPATIBLE),
            ..Procedure::plain(w.oid, w.name, w.args.to_vec(), w.ret)
        }
    }
}

/// The function behind an operator.
impl From<&Operator> for Procedure {
    fn from(o: &Operator) -> Procedure {
        let args = [o.left, o.right]
            .into_iter()
            .filter(|t| *t != Oid::NONE)
            .collect();
        Procedure {
            strict: o.strict,
            volatility: o.volatility,
            ..Procedure::plain(o.code, o.code_name, args, o.ret)
        }
    }
}

impl Procedure {
    fn plain(oid: Oid, name: &'static str, args: Vec<Oid>, ret: Oid) -> Procedure {
        Procedure {
            oid,
            name,
            args,
            ret,
            kind: b'f',
            strict: true,
            returns_set: false,
            volatility: Volatility::Immutable,
            variadic: Oid::NONE,
            defaults: 0,
        }
    }

    fn row(&self) -> Vec<Datum> {
        let args = self.args.iter().map(|a| Datum::from(*a)).collect();
        let volatility = match self.volatility {
            Volatility::Immutable => b'i',
            Volatility::Stable => b's',
            Volatility::Volatile => b'v',
        };
        row![
            self.oid,
            self.name,
            builtin::PG_CATALOG,
            builtin::SUPERUSER,
            INTERNAL,
            1f32,
            if self.returns_set { 1000f32 } else { 0f32 },
            self.variadic,
            Oid::NONE,
            Datum::Char(self.kind),
            false,
            is_leakproof(self.oid),
            self.strict,
            self.returns_set,
            Datum::Char(volatility),
            Datum::Char(b's'),
            self.args.len() as i16,
            i16::from(self.defaults),
            self.ret,
            Datum::array(Array::vector(oid::OID, args)),
            Datum::Null,
            Datum::Null,
            Datum::Null,
            Datum::Null,
            Datum::Null,
            self.name,
            Datum::Null,
            Datum::Null,
            Datum::Null,
            Datum::Null,
        ]
    }
}

/// The functions that read and write a type's values.
fn forms(forms: &types::Forms) -> impl Iterator<Item = Procedure> {
    let ty = forms.ty;
    let signatures = [
        (vec![oid::CSTRING], ty),
        (vec![ty], oid::CSTRING),
        (vec![oid::INTERNAL], ty),
        (vec![ty], oid::BYTEA),
        (vec![oid::CSTRING_ARRAY], oid::INT4),
        (vec![oid::INT4], oid::CSTRING),
    ];
    let functions = forms.functions.into_iter().zip(signatures);
    functions.map(|((oid, name), (args, ret))| Procedure::plain(Oid(oid), name, args, ret))
}

/// Functions that nothing but catalogs refers to.
fn unnamed() -> Vec<Procedure> {
    let array = oid::ANYARRAY;
    let [input, output, receive, send] = types::ARRAY_FORMS;
    let [range_in, range_out, range_receive, range_send] = types::RANGE_FORMS;
    let [multi_in, multi_out, multi_receive, multi_send] = types::MULTIRANGE_FORMS;
    let (range, multi) = (oid::ANYRANGE, oid::ANYMULTIRANGE);
    let read = |from| vec![from, oid::OID, oid::INT4];
    let [enum_in, enum_out, enum_receive, enum_send] = types::ENUM_FORMS;
    let any_enum = oid::ANYENUM;
    let given = [
        (enum_in, vec![oid::CSTRING, oid::OID], any_enum),
        (enum_out, vec![any_enum], oid::CSTRING),
        (enum_receive, vec![oid::INTERNAL, oid::OID], any_enum),
        (enum_send, vec![any_enum], oid::BYTEA),
        (range_in, read(oid::CSTRING), range),
        (range_out, vec![range], oid::CSTRING),
        (range_receive, read(oid::INTERNAL), range),
        (range_send, vec![range], oid::BYTEA),
        (multi_in, read(oid::CSTRING), multi),
        (multi_out, vec![multi], oid::CSTRING),
        (multi_receive, read(oid::INTERNAL), multi),
        (multi_send, vec![multi], oid::BYTEA),
        ((3916, "range_typanalyze"), vec![oid::INTERNAL], oid::BOOL),
        (
            (4242, "multirange_typanalyze"),
            vec![oid::INTERNAL],
            oid::BOOL,
        ),
        (
            (6098, "jsonb_subscript_handler"),
            vec![oid::INTERNAL],
            oid::INTERNAL,
        ),
        (input, vec![oid::CSTRING, oid::OID, oid::INT4], array),
        (output, vec![array], oid::CSTRING),
        (receive, vec![oid::INTERNAL, oid::OID, oid::INT4], array),
        (send, vec![array], oid::BYTEA),
        ((3816, "array_typanalyze"), vec![oid::INTERNAL], oid::BOOL),
        (
            (6179, "array_subscript_handler"),
            vec![oid::INTERNAL],
            oid::INTERNAL,
        ),
        (
            (6180, "raw_array_subscript_handler"),
            vec![oid::INTERNAL],
            oid::INTERNAL,
        ),
        (
            (3, "heap_tableam_handler"),
            vec![oid::INTERNAL],
            oid::INTERNAL,
        ),
        ((330, "bthandler"), vec![oid::INTERNAL], oid::INTERNAL),
        ((333, "ginhandler"), vec![oid::INTERNAL], oid::INTERNAL),
    ];
    let [call, inline, validator] = extension::HANDLERS;
    let handlers = [
        (call, vec![], oid::LANGUAGE_HANDLER),
        (inline, vec![oid::INTERNAL], oid::VOID),
        (validator, vec![oid::OID], oid::VOID),
    ];
    let mut all: Vec<Procedure> = given
        .into_iter()
        .chain(handlers)
        .map(|((oid, name), args, ret)| Procedure::plain(Oid(oid), name, args, ret))
        .collect();
    let (internal, float) = (oid::INTERNAL, oid::FLOAT8);
    all.extend(RESTRICTIONS.iter().map(|&(number, name)| {
        let args = vec![internal, oid::OID, internal, oid::INT4];
        Procedure::plain(Oid(number), name, args, float)
    }));
    all.extend(JOINS.iter().map(|&(number, name)| {
        let args = vec![internal, oid::OID, internal, oid::INT2, internal];
        Procedure::plain(Oid(number), name, args, float)
    }));
    all.extend(support::FUNCTIONS.iter().map(|f| Procedure {
        strict: f.strict,
        ..Procedure::plain(
            Oid(f.oid),
            f.name,
            f.args.iter().map(|arg| Oid(*arg)).collect(),
            Oid(f.ret),
        )
    }));
    all.extend(
        operator_class::COMPARISONS
            .iter()
            .map(|&(_, left, right, function, name)| {
                Procedure::plain(Oid(function), name, vec![left, right], oid::INT4)
            }),
    );
    all.extend(
        operator_class::support_functions()
            .map(|(oid, name, args, ret)| Procedure::plain(Oid(oid), name, args, ret)),
    );
    all
}

/// What guesses how many rows an operator with a constant leaves.
const RESTRICTIONS: &[(u32, &str)] = &[
    (101, "eqsel"),
    (102, "neqsel"),
    (103, "scalarltsel"),
    (104, "scalargtsel"),
    (139, "areasel"),
    (336, "scalarlesel"),
    (337, "scalargesel"),
    (1300, "positionsel"),
    (1302, "contsel"),
    (1814, "iclikesel"),
    (1815, "icnlikesel"),
    (1818, "regexeqsel"),
    (1819, "likesel"),
    (1820, "icregexeqsel"),
    (1821, "regexnesel"),
    (1822, "nlikesel"),
    (1823, "icregexnesel"),
    (3169, "rangesel"),
    (3437, "prefixsel"),
    (3560, "networksel"),
    (3686, "tsmatchsel"),
    (3817, "arraycontsel"),
    (4243, "multirangesel"),
    (5040, "matchingsel"),
];
/// What guesses how many rows an operator leaves in a join.
const JOINS: &[(u32, &str)] = &[
    (105, "eqjoinsel"),
    (106, "neqjoinsel"),
    (107, "scalarltjoinsel"),
    (108, "scalargtjoinsel"),
    (140, "areajoinsel"),
    (386, "scalarlejoinsel"),
    (398, "scalargejoinsel"),
    (1301, "positionjoinsel"),
    (1303, "contjoinsel"),
    (1816, "iclikejoinsel"),
    (1817, "icnlikejoinsel"),
    (1824, "regexeqjoinsel"),
    (1825, "likejoinsel"),
    (1826, "icregexeqjoinsel"),
    (1827, "regexnejoinsel"),
    (1828, "nlikejoinsel"),
    (1829, "icregexnejoinsel"),
    (3438, "prefixjoinsel"),
    (3561, "networkjoinsel"),
    (3687, "tsmatchjoinsel"),
    (3818, "arraycontjoinsel"),
    (5041, "matchingjoinsel"),
];

static PROCEDURES: LazyLock<Vec<Procedure>> = LazyLock::new(|| {
    let mut by_oid: HashMap<Oid, Procedure, FixedState> = HashMap::default();
    let functions = FAMILIES
        .iter()
        .flat_map(|f| f.functions)
        .map(Procedure::from);
    let aggregates = FAMILIES
        .iter()
        .flat_map(|f| f.aggregates)
        .map(Procedure::from);
    let windows = FAMILIES.iter().flat_map(|f| f.windows).map(Procedure::from);
    let operators = FAMILIES
        .iter()
        .flat_map(|f| f.operators)
        .map(Procedure::from);
    let forms = types::FORMS.iter().flat_map(forms);
    // The first to describe a function knows most of it.
    for procedure in functions
        .chain(aggregates)
        .chain(windows)
        .chain(operators)
        .chain(forms)
        .chain(unnamed())
    {
        if procedure.oid != Oid::NONE && !make::is_grammars(procedure.oid) {
            by_oid.entry(procedure.oid).or_insert(procedure);
        }
    }
    let mut all: Vec<Procedure> = by_oid.into_values().collect();
    all.sort_by_key(|p| p.oid);
    all
});

/// Every row of `pg_proc`, by oid.
pub fn procedures() -> &'static [Procedure] {
    &PROCEDURES
}

pub fn procedure(oid: Oid) -> Option<&'static Procedure> {
    let found = PROCEDURES.binary_search_by_key(&oid, |p| p.oid);
    found.ok().map(|i| &PROCEDURES[i])
}

pub(super) fn pg_proc(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    static ROWS: LazyLock<Rows> = LazyLock::new(|| PROCEDURES.iter().map(Procedure::row).collect());
    let mut rows = ROWS.clone();
    rows.extend(user_routine::proc_rows(catalog));
    rows
}

pub(super) fn pg_operator(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let row_of = |o: &Operator, schema: Oid, code: Oid| {
        let equality = o.strategy == Some(throng_values::func::Strategy::Equal);
        let prefix = o.left == Oid::NONE;
        row![
            o.oid,
            o.name,
            schema,
            builtin::SUPERUSER,
            Datum::Char(if prefix { b'l' } else { b'b' }),
            equality,
            equality,
            o.left,
            o.right,
            o.ret,
            o.commutator,
            o.negator,
            code,
            Oid::NONE,
            Oid::NONE,
        ]
    };
    let built_in = FAMILIES.iter().flat_map(|f| f.operators);
    let mut rows: Rows = built_in
        .map(|o| row_of(o, builtin::PG_CATALOG, o.code))
        .collect();
    for (def, known) in extension::installed(catalog) {
        let own = known.operators.iter();
        rows.extend(own.map(|o| row_of(o, def.schema, extension::code_of(catalog, &def, o))));
    }
    rows.extend(user_operator::operator_rows(catalog));
    rows
}

/// The functions are PostgreSQL's, of which those of most aggregates are only names here.
pub(super) fn pg_aggregate(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let row_of = |a: &Aggregate| {
        let (kind, direct) = match a.kind {
            AggKind::Plain => (b'n', 0),
            AggKind::OrderedSet { direct, .. } => (b'o', i16::from(direct)),
            AggKind::Hypothetical(_) => (b'h', 1i16),
        };
        const UNKNOWN: &support::AggregateParts = &support::AggregateParts {
            aggregate: 0,
            functions: [0; 8],
            extra: [false; 2],
            modify: [b'r'; 2],
            sort_operator: 0,
            states: [(oid::INTERNAL.0, 0), (0, 0)],
            init: [None; 2],
        };
        let parts = support::parts_of(a.oid).unwrap_or(UNKNOWN);
        let [
            step,
            finish,
            combine,
            serial,
            deserial,
            moving,
            inverse,
            moved,
        ] = parts.functions.map(Oid);
        let [(state, space), (moving_state, moving_space)] = parts.states;
        let [init, moving_init] = parts.init.map(|init| init.map_or(Datum::Null, Datum::from));
        row![
            a.oid,
            Datum::Char(kind),
            direct,
            step,
            finish,
            combine,
            serial,
            deserial,
            moving,
            inverse,
            moved,
            parts.extra[0],
            parts.extra[1],
            Datum::Char(parts.modify[0]),
            Datum::Char(parts.modify[1]),
            Oid(parts.sort_operator),
            Oid(state),
            space,
            Oid(moving_state),
            moving_space,
            init,
            moving_init,
        ]
    };
    FAMILIES
        .iter()
        .flat_map(|f| f.aggregates)
        .map(row_of)
        .chain(user_routine::aggregate_rows(catalog))
        .collect()
}

pub(super) fn pg_cast(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let row_of = |(cast, number): (&Cast, u32)| {
        let context = match cast.context {
            CastContext::Implicit => b'i',
            CastContext::Assignment => b'a',
            CastContext::Explicit => b'e',
        };
        let method = match cast.method {
            CastMethod::Binary => b'b',
            CastMethod::Text => b'i',
            CastMethod::Function(_)
            | CastMethod::Sized(_)
            | CastMethod::Items(_)
            | CastMethod::Unknown => b'f',
        };
        row![
            Oid(number),
            cast.from,
            cast.to,
            cast.function,
            Datum::Char(context),
            Datum::Char(method),
        ]
    };
    const FIRST_UNPINNED: u32 = 10_000;
    let built_in = FAMILIES.iter().flat_map(|f| f.casts).zip(FIRST_UNPINNED..);
    let own = extension::installed(catalog).into_iter();
    let own = own.flat_map(|(_, known)| known.cast_oids().map(|(oid, cast)| (cast, oid.0)));
    let rows = built_in.chain(own).map(row_of);
    rows.chain(user_operator::cast_rows(catalog)).collect()
}

pub(super) fn pg_language(_: &Catalog, _: &dyn SystemState) -> Rows {
    const C: Oid = Oid(13);
    let [call, inline, validator] = extension::HANDLERS.map(|(oid, _)| Oid(oid));
    let row_of = |(oid, name, trusted): (Oid, &str, bool)| {
        let is_made = oid == user_routine::PLPGSQL;
        let handler = |handler| if is_made { handler } else { Oid::NONE };
        row![
            oid,
            name,
            builtin::SUPERUSER,
            is_made,
            trusted,
            handler(call),
            handler(inline),
            handler(validator),
            Datum::Null,
        ]
    };
    let languages = [
        (INTERNAL, "internal", false),
        (C, "c", false),
        (user_routine::SQL, "sql", true),
        (user_routine::PLPGSQL, "plpgsql", true),
    ];
    languages.map(row_of).into()
}

pub(super) fn pg_am(_: &Catalog, _: &dyn SystemState) -> Rows {
    vec![
        row![builtin::HEAP_AM, "heap", Oid(3), Datum::Char(b't')],
        row![builtin::BTREE_AM, "btree", Oid(330), Datum::Char(b'i')],
        row![builtin::HASH_AM, "hash", Oid(331), Datum::Char(b'i')],
        row![builtin::GIST_AM, "gist", Oid(332), Datum::Char(b'i')],
        row![builtin::GIN_AM, "gin", Oid(333), Datum::Char(b'i')],
    ]
}
