//! What `pg_get_functiondef` and its kin say of built-in functions.

use throng_types::sqltype::type_name;
use throng_types::{Oid, oid};

use super::routine::{Procedure, procedure};
use throng_types::lexical::{quote_ident, quote_literal};
use throng_values::func::{Volatility, function_by_oid, named};

/// An argument's name and a space; nothing where it has none.
fn name_of(name: &str) -> String {
    match name {
        "" => String::new(),
        name => format!("{} ", quote_ident(name)),
    }
}

/// A default that is kept as the text of a value.
fn default_of(text: &str, ty: Oid) -> String {
    match ty {
        oid::BOOL | oid::INT4 | oid::INT8 | oid::FLOAT8 => text.to_owned(),
        ty => format!("{}::{}", quote_literal(text), type_name(ty)),
    }
}

/// Their input arguments, then what a row's columns are called.
fn arguments(of: &Procedure, defaults: bool, outputs: bool) -> String {
    let names = named::arguments(of.oid);
    let inputs = of.args.iter().enumerate().map(|(place, ty)| {
        let last = place + 1 == of.args.len();
        let variadic = of.variadic != Oid::NONE && last;
        // The repeated one is kept as the type that each value is of.
        let shown = match variadic && *ty != oid::ANY && *ty == of.variadic {
            true => throng_types::sqltype::array_of(*ty).unwrap_or(*ty),
            false => *ty,
        };
        let mode = if variadic { "VARIADIC " } else { "" };
        let name = name_of(names.get(place).copied().unwrap_or_default());
        let mut text = format!("{mode}{name}{}", type_name(shown));
        if let Some(default) = named::default(of.oid, place).filter(|_| defaults) {
            text += &format!(" DEFAULT {}", default_of(default, *ty));
        }
        text
    });
    let columns = function_by_oid(of.oid).map_or(&[][..], |f| f.columns);
    let columns = columns.iter().filter(|_| outputs);
    let outputs = columns.map(|(name, ty)| format!("OUT {}{}", name_of(name), type_name(*ty)));
    inputs.chain(outputs).collect::<Vec<_>>().join(", ")
}

fn result(of: &Procedure) -> String {
    let set = if of.returns_set { "SETOF " } else { "" };
    format!("{set}{}", type_name(of.ret))
}

/// What the function `what` says of the built-in one of that number; None where there is none.
pub fn signature(what: &str, function: Oid) -> Option<String> {
    let of = procedure(function)?;
    Some(match what {
        "pg_get_function_result" => result(of),
        "pg_get_function_identity_arguments" => arguments(of, false, false),
        _ => arguments(of, true, true),
    })
}

/// What `pg_get_functiondef` says.
pub fn definition(of: &Procedure) -> String {
    let mut text = format!(
        "CREATE OR REPLACE FUNCTION pg_catalog.{}({})\n RETURNS {}\n LANGUAGE internal\n",
        quote_ident(of.name),
        arguments(of, true, true),
        result(of),
    );
    text += if of.kind == b'w' { " WINDOW" } else { "" };
    text += match of.volatility {
        Volatility::Immutable => " IMMUTABLE",
        Volatility::Stable => " STABLE",
        Volatility::Volatile => "",
    };
    text += " PARALLEL SAFE";
    text += if of.strict { " STRICT" } else { "" };
    text + &format!("\nAS $function${}$function$\n", of.name)
}
