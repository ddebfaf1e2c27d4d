//! Functions, procedures and aggregates that users made: their rows of `pg_proc` and
//! `pg_aggregate`, and what `pg_get_functiondef` and its kin say.

use throng_types::sqltype::{element_of, format_type, made};
use throng_types::{Array, Datum, Oid, SqlType, oid};

use super::{Rows, row};
use crate::{
    AggregateDef, AggregateKind, ArgDef, ArgMode, Catalog, RoutineBody, RoutineDef, RoutineKind,
    TransitionDef, builtin,
};
use throng_types::lexical::{quote_ident, quote_literal};
use throng_values::func::Volatility;
use throng_values::settings::{self, value::split_names};

/// The language of what is built in.
const INTERNAL: Oid = Oid(12);
/// The language SQL, as `pg_language` numbers it.
pub(super) const SQL: Oid = Oid(14);
/// PL/pgSQL, likewise.
pub(super) const PLPGSQL: Oid = Oid(13600);
/// C, likewise.
const C: Oid = Oid(13);
const DEFAULT_COST: f64 = 100.0;
const DEFAULT_ROWS: f64 = 1000.0;

fn chars(items: impl Iterator<Item = u8>) -> Datum {
    let items = items.map(Datum::Char).collect();
    Datum::array(Array::from_items(oid::CHAR, items))
}

fn texts(items: impl Iterator<Item = String>) -> Datum {
    let items = items.map(Datum::from).collect();
    Datum::array(Array::from_items(oid::TEXT, items))
}

/// What PostgreSQL calls the library of an extension.
fn library(extension: &str) -> String {
    format!("$libdir/{extension}")
}

/// The element of its last argument, where that is VARIADIC.
fn variadic(def: &RoutineDef) -> Oid {
    let last = def.args.iter().find(|a| a.mode == ArgMode::Variadic);
    match last.map(|a| a.ty) {
        None => Oid::NONE,
        Some(oid::ANY) => oid::ANY,
        Some(oid::ANYARRAY) => oid::ANYELEMENT,
        Some(oid::ANYCOMPATIBLEARRAY) => oid::ANYCOMPATIBLE,
        Some(array) => element_of(array).unwrap_or(Oid::NONE),
    }
}

pub(super) fn proc_row(def: &RoutineDef) -> Vec<Datum> {
    let volatility = match def.volatility {
        Volatility::Immutable => b'i',
        Volatility::Stable => b's',
        Volatility::Volatile => b'v',
    };
    let only_inputs = def.args.iter().all(|a| a.mode == ArgMode::In);
    let unnamed = def.args.iter().all(|a| a.name.is_empty());
    let oids = |items: &mut dyn Iterator<Item = Oid>| items.map(Datum::from).collect::<Vec<_>>();
    let defaults: Vec<&str> = def.inputs().filter_map(|a| a.default.as_deref()).collect();
    let (source, standard) = match &def.body {
        RoutineBody::Text(text) | RoutineBody::Plpgsql(text) => (text.as_str(), Datum::Null),
        RoutineBody::Standard { text, .. } => ("", Datum::from(text.as_str())),
        RoutineBody::Native { symbol, .. } => (symbol.as_str(), Datum::Null),
        RoutineBody::Aggregate(_) => (def.body.text(), Datum::Null),
    };
    let settings = def.settings.iter().map(|(n, v)| format!("{n}={v}"));
    let library = match &def.body {
        RoutineBody::Native { extension, .. } => Datum::from(library(extension)),
        _ => Datum::Null,
    };
    row![
        def.oid,
        def.name.as_str(),
        def.schema,
        def.owner,
        match def.body {
            RoutineBody::Plpgsql(_) => PLPGSQL,
            RoutineBody::Native { .. } => C,
            RoutineBody::Aggregate(_) => INTERNAL,
            RoutineBody::Text(_) | RoutineBody::Standard { .. } => SQL,
        },
        def.cost as f32,
        def.rows as f32,
        variadic(def),
        Oid::NONE,
        Datum::Char(match def.kind {
            RoutineKind::Function => b'f',
            RoutineKind::Procedure => b'p',
            RoutineKind::Aggregate => b'a',
        }),
        def.security_definer,
        def.leakproof,
        def.strict,
        def.set,
        Datum::Char(volatility),
        Datum::Char(def.parallel as u8),
        def.inputs().count() as i16,
        def.defaults() as i16,
        def.declared_ret(),
        Datum::array(Array::vector(
            oid::OID,
            oids(&mut def.inputs().map(ArgDef::declared))
        )),
        match only_inputs {
            true => Datum::Null,
            false => Datum::array(Array::from_items(
                oid::OID,
                oids(&mut def.args.iter().map(ArgDef::declared))
            )),
        },
        match only_inputs {
            true => Datum::Null,
            false => chars(def.args.iter().map(|a| a.mode.letter())),
        },
        match unnamed {
            true => Datum::Null,
            false => texts(def.args.iter().map(|a| a.name.clone())),
        },
        match defaults.is_empty() {
            true => Datum::Null,
            false => Datum::from(defaults.join(", ")),
        },
        Datum::Null,
        source,
        library,
        standard,
        match def.settings.is_empty() {
            true => Datum::Null,
            false => texts(settings),
        },
        Datum::Null,
    ]
}

pub(super) fn proc_rows(catalog: &Catalog) -> Rows {
    catalog
        .routines()
        .into_iter()
        .map(|d| {
            let mut row = proc_row(d);
            // The last column is `proacl`.
            if let Some(acl) = row.last_mut() {
                let class = builtin::class::PROCEDURE;
                *acl = super::relation::privileges(catalog, class, d.oid, 0);
            }
            row
        })
        .collect()
}

/// The rows of `pg_aggregate`.
pub(super) fn aggregate_rows(catalog: &Catalog) -> Rows {
    let routines = catalog.routines().into_iter();
    routines
        .filter_map(|def| Some(aggregate_row(def.oid, def.aggregate()?)))
        .collect()
}

fn aggregate_row(oid: Oid, def: &AggregateDef) -> Vec<Datum> {
    let or_none = |oid: Option<Oid>| oid.unwrap_or(Oid::NONE);
    let plain = &def.plain;
    let moving = def.moving.as_ref();
    let modify =
        |of: Option<&TransitionDef>| Datum::Char(of.map_or('r', |t| t.finish_modify) as u8);
    let init = |of: Option<&TransitionDef>| {
        let text = of.and_then(|t| t.init.as_deref());
        text.map_or(Datum::Null, Datum::from)
    };
    row![
        oid,
        Datum::Char(def.kind.letter()),
        def.direct as i16,
        plain.function,
        or_none(plain.finish),
        or_none(def.combine),
        or_none(def.serialize),
        or_none(def.deserialize),
        or_none(moving.map(|m| m.function)),
        or_none(moving.and_then(|m| m.inverse)),
        or_none(moving.and_then(|m| m.finish)),
        plain.finish_extra,
        moving.is_some_and(|m| m.finish_extra),
        modify(Some(plain)),
        modify(moving),
        or_none(def.sort_operator),
        plain.state,
        plain.space,
        or_none(moving.map(|m| m.state)),
        moving.map_or(0, |m| m.space),
        init(Some(plain)),
        init(moving),
    ]
}

fn type_text(catalog: &Catalog, path: &[Oid], ty: Oid) -> String {
    match catalog.type_display(path, ty).filter(|_| made::is_made(ty)) {
        Some(made) => made,
        None => format_type(SqlType::plain(ty)),
    }
}

/// What `pg_get_function_arguments` and, without defaults, `pg_get_function_identity_arguments`
/// say.
pub fn arguments(catalog: &Catalog, path: &[Oid], def: &RoutineDef, defaults: bool) -> String {
    let shown = def.args.iter().filter(|a| a.mode != ArgMode::Table);
    let shown: Vec<String> = shown
        .map(|a| argument(catalog, path, def, a, defaults))
        .collect();
    let set = def.aggregate().filter(|a| a.kind != AggregateKind::Normal);
    let Some(set) = set else {
        return shown.join(", ");
    };
    // A repeated last argument stands for both lists.
    let repeated = def.is_variadic() && usize::from(set.direct) == shown.len();
    let (direct, ordered) = shown.split_at(usize::from(set.direct).min(shown.len()));
    let ordered = match repeated {
        true => &shown[shown.len() - 1..],
        false => ordered,
    };
    let space = if direct.is_empty() { "" } else { " " };
    format!(
        "{}{space}ORDER BY {}",
        direct.join(", "),
        ordered.join(", ")
    )
}

fn argument(
    catalog: &Catalog,
    path: &[Oid],
    def: &RoutineDef,
    arg: &ArgDef,
    defaults: bool,
) -> String {
    let mode = match arg.mode {
        ArgMode::In if def.kind == RoutineKind::Procedure => "IN ",
        ArgMode::In | ArgMode::Table => "",
        ArgMode::Out => "OUT ",
        ArgMode::InOut => "INOUT ",
        ArgMode::Variadic => "VARIADIC ",
    };
    let mut text = mode.to_owned();
    if !arg.name.is_empty() {
        text += &quote_ident(&arg.name);
        text.push(' ');
    }
    text += &type_text(catalog, path, arg.declared());
    if let Some(default) = arg.default.as_ref().filter(|_| defaults) {
        text += " DEFAULT ";
        text += default;
    }
    text
}

/// What `pg_get_function_result` says; nothing of a procedure.
pub fn result(catalog: &Catalog, path: &[Oid], def: &RoutineDef) -> Option<String> {
    if def.kind == RoutineKind::Procedure {
        return None;
    }
    let columns: Vec<String> = def
        .args
        .iter()
        .filter(|a| a.mode == ArgMode::Table)
        .map(|a| argument(catalog, path, def, a, false))
        .collect();
    if !columns.is_empty() {
        return Some(format!("TABLE({})", columns.join(", ")));
    }
    let ty = match def.row_of.and_then(|table| catalog.relation(table)) {
        Some(relation) => catalog.display_name(path, &relation),
        None => type_text(catalog, path, def.declared_ret()),
    };
    Some(match def.set {
        true => format!("SETOF {ty}"),
        false => ty,
    })
}

/// What `pg_get_functiondef` says; `body`: the body of one that was read when it was made.
pub fn definition(catalog: &Catalog, path: &[Oid], def: &RoutineDef, body: Option<&str>) -> String {
    let schema = catalog.schema(def.schema).map_or("", |s| s.name.as_str());
    let mut text = format!(
        "CREATE OR REPLACE {} {}.{}({})\n",
        def.word(),
        quote_ident(schema),
        quote_ident(&def.name),
        arguments(catalog, path, def, true)
    );
    if let Some(result) = result(catalog, path, def) {
        text += &format!(" RETURNS {result}\n");
    }
    text += &format!(" LANGUAGE {}\n", def.body.language());
    let mut options = String::new();
    options += match def.volatility {
        Volatility::Immutable => " IMMUTABLE",
        Volatility::Stable => " STABLE",
        Volatility::Volatile => "",
    };
    options += match def.parallel {
        's' => " PARALLEL SAFE",
        'r' => " PARALLEL RESTRICTED",
        _ => "",
    };
    for (on, word) in [
        (def.strict, " STRICT"),
        (def.security_definer, " SECURITY DEFINER"),
        (def.leakproof, " LEAKPROOF"),
    ] {
        options += if on { word } else { "" };
    }
    let default_cost = match def.body {
        RoutineBody::Native { .. } => 1.0,
        _ => DEFAULT_COST,
    };
    if def.cost != default_cost {
        options += &format!(" COST {}", def.cost);
    }
    if def.rows > 0.0 && def.rows != DEFAULT_ROWS {
        options += &format!(" ROWS {}", def.rows);
    }
    if !options.is_empty() {
        text += &options;
        text.push('\n');
    }
    for (name, value) in &def.settings {
        let names = settings::is_list_of_names(name).then(|| split_names(value));
        let value = match names.flatten() {
            Some(names) => {
                let quoted: Vec<_> = names.iter().map(|n| quote_literal(n)).collect();
                quoted.join(", ")
            }
            None => quote_literal(value),
        };
        text += &format!(" SET {} TO {value}\n", quote_ident(name));
    }
    match (&def.body, body) {
        (RoutineBody::Text(source) | RoutineBody::Plpgsql(source), _) => {
            let mut tag = match def.kind {
                RoutineKind::Procedure => "$procedure".to_owned(),
                RoutineKind::Function | RoutineKind::Aggregate => "$function".to_owned(),
            };
            while source.contains(&tag) {
                tag.push('x');
            }
            text += &format!("AS {tag}${source}{tag}$\n");
        }
        (RoutineBody::Native { extension, symbol }, _) => {
            let library = quote_literal(&library(extension));
            text += &format!("AS {library}, $function${symbol}$function$\n");
        }
        (RoutineBody::Standard { text: written, .. }, shown) => {
            text += shown.unwrap_or(written);
            text.push('\n');
        }
        (RoutineBody::Aggregate(_), _) => {}
    }
    text
}
