//! `information_schema` on functions and their parameters.

use std::sync::LazyLock;

use throng_types::sqltype::type_info;
use throng_types::{Datum, Oid};

use super::info_relation::{Sparse, catalog_name, type_name, yes};
use super::routine::{Procedure, procedures};
use super::{Rows, SystemState, row};
use crate::{ArgMode, Catalog, RoutineBody, RoutineDef, RoutineKind, builtin};
use throng_values::func::Volatility;

/// A name that tells overloads apart.
fn specific_name(procedure: &Procedure) -> String {
    format!("{}_{}", procedure.name, procedure.oid.0)
}

fn udt_name(ty: Oid) -> Option<&'static str> {
    type_info(ty).map(|t| t.name)
}

static ROUTINES: LazyLock<Sparse> = LazyLock::new(|| {
    let known = [
        "specific_catalog",
        "specific_schema",
        "specific_name",
        "routine_catalog",
        "routine_schema",
        "routine_name",
        "routine_type",
        "data_type",
        "type_udt_catalog",
        "type_udt_schema",
        "type_udt_name",
        "dtd_identifier",
        "routine_body",
        "routine_definition",
        "external_language",
        "parameter_style",
        "is_deterministic",
        "sql_data_access",
        "is_null_call",
        "schema_level_routine",
        "max_dynamic_result_sets",
        "security_type",
        "as_locator",
        "is_udt_dependent",
    ];
    Sparse::new("routines", &known)
});

pub(super) fn routines(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let database = catalog_name(catalog);
    // An aggregate is no function to the standard.
    let kind = |p: &Procedure| (p.kind == b'f').then_some("FUNCTION");
    let row_of = |p: &Procedure| {
        ROUTINES.row(row![
            database.clone(),
            "pg_catalog",
            specific_name(p),
            database.clone(),
            "pg_catalog",
            p.name,
            kind(p),
            type_name(p.ret),
            database.clone(),
            "pg_catalog",
            udt_name(p.ret),
            "0",
            "EXTERNAL",
            p.name,
            "INTERNAL",
            "GENERAL",
            yes(p.volatility == Volatility::Immutable),
            "MODIFIES",
            yes(p.strict),
            "YES",
            0,
            "INVOKER",
            "NO",
            "NO",
        ])
    };
    let mut rows: Rows = procedures().iter().map(row_of).collect();
    rows.extend(
        catalog
            .routines()
            .into_iter()
            .map(|def| user_row(catalog, def)),
    );
    rows
}

/// A function that a user made.
fn user_row(catalog: &Catalog, def: &RoutineDef) -> Vec<Datum> {
    let database = catalog_name(catalog);
    let schema = catalog.schema(def.schema).map(|s| s.name.clone());
    let (kind, ret) = match def.kind {
        RoutineKind::Function => (Some("FUNCTION"), Some(def.ret)),
        RoutineKind::Procedure => (Some("PROCEDURE"), None),
        // An aggregate is no function to the standard.
        RoutineKind::Aggregate => (None, Some(def.ret)),
    };
    let source = def.body.text();
    let language = match def.body {
        RoutineBody::Plpgsql(_) | RoutineBody::Native { .. } | RoutineBody::Aggregate(_) => {
            "EXTERNAL"
        }
        _ => "SQL",
    };
    ROUTINES.row(row![
        database.clone(),
        schema.clone(),
        format!("{}_{}", def.name, def.oid.0),
        database.clone(),
        schema,
        def.name.as_str(),
        kind,
        ret.map(type_name),
        ret.map(|_| database.clone()),
        ret.map(|_| "pg_catalog"),
        ret.and_then(udt_name),
        ret.map(|_| "0"),
        language,
        source,
        def.body.language().to_uppercase(),
        "GENERAL",
        yes(def.volatility == Volatility::Immutable),
        "MODIFIES",
        yes(def.strict),
        "YES",
        0,
        match def.security_definer {
            true => "DEFINER",
            false => "INVOKER",
        },
        "NO",
        "NO",
    ])
}

static PARAMETERS: LazyLock<Sparse> = LazyLock::new(|| {
    let known = [
        "specific_catalog",
        "specific_schema",
        "specific_name",
        "ordinal_position",
        "parameter_mode",
        "is_result",
        "as_locator",
        "data_type",
        "udt_catalog",
        "udt_schema",
        "udt_name",
        "dtd_identifier",
        "parameter_name",
        "parameter_default",
    ];
    Sparse::new("parameters", &known)
});

pub(super) fn parameters(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let database = catalog_name(catalog);
    let mut rows = Rows::new();
    for procedure in procedures() {
        for (ty, number) in procedure.args.iter().zip(1i32..) {
            rows.push(PARAMETERS.row(row![
                database.clone(),
                "pg_catalog",
                specific_name(procedure),
                number,
                "IN",
                "NO",
                "NO",
                type_name(*ty),
                database.clone(),
                "pg_catalog",
                udt_name(*ty),
                number.to_string(),
                Datum::Null,
                Datum::Null,
            ]));
        }
    }
    for def in catalog.routines() {
        let schema = catalog.schema(def.schema).map(|s| s.name.clone());
        for (arg, number) in def.args.iter().zip(1i32..) {
            rows.push(PARAMETERS.row(row![
                database.clone(),
                schema.clone(),
                format!("{}_{}", def.name, def.oid.0),
                number,
                match arg.mode {
                    ArgMode::In | ArgMode::Variadic => "IN",
                    ArgMode::InOut => "INOUT",
                    ArgMode::Out | ArgMode::Table => "OUT",
                },
                "NO",
                "NO",
                type_name(arg.ty),
                database.clone(),
                "pg_catalog",
                udt_name(arg.ty),
                number.to_string(),
                (!arg.name.is_empty()).then(|| arg.name.clone()),
                arg.default.clone(),
            ]));
        }
    }
    rows
}

/// Who may call functions: their owner, who may pass that on, and everybody.
#[derive(Clone, Copy)]
enum Grantee {
    Owner,
    Public,
}

fn grants(catalog: &Catalog, grantees: &[Grantee]) -> Rows {
    let database = catalog_name(catalog);
    let owner = catalog.role(builtin::SUPERUSER).map(|r| r.name.as_str());
    let mut rows = Rows::new();
    for procedure in procedures() {
        for grantee in grantees {
            let (grantee, passes_on) = match grantee {
                Grantee::Owner => (owner, true),
                Grantee::Public => (Some("PUBLIC"), false),
            };
            rows.push(row![
                owner,
                grantee,
                database.clone(),
                "pg_catalog",
                specific_name(procedure),
                database.clone(),
                "pg_catalog",
                procedure.name,
                "EXECUTE",
                yes(passes_on),
            ]);
        }
    }
    rows
}

pub(super) fn routine_privileges(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    grants(catalog, &[Grantee::Owner, Grantee::Public])
}

pub(super) fn role_routine_grants(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    match catalog.acts_as(state.current_user(), builtin::SUPERUSER) {
        true => grants(catalog, &[Grantee::Owner, Grantee::Public]),
        false => grants(catalog, &[Grantee::Public]),
    }
}
