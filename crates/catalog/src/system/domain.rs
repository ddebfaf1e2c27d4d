//! Domains in the catalogs: `pg_type`, `pg_constraint`, and what `information_schema` says of them.

use throng_types::sqltype::made;
use throng_types::{Datum, Oid};

use super::info_relation::{Described, catalog_name, describe, schema_name, type_name};
use super::relation::privileges;
use super::{Rows, SystemState, row, types};
use crate::{Catalog, ColumnDef, Domain, DomainCheck, TypeDef, builtin};
use throng_syntax::parse;

fn domains_of(catalog: &Catalog) -> impl Iterator<Item = (&TypeDef, &Domain)> {
    let all = catalog.made_types().into_iter();
    all.filter_map(|def| Some((&**def, def.domain.as_ref()?)))
}

/// Those whose owner the reader is, or may be.
fn own_domains<'a>(
    catalog: &'a Catalog,
    state: &dyn SystemState,
) -> impl Iterator<Item = (&'a TypeDef, &'a Domain)> {
    let reader = state.current_user();
    domains_of(catalog).filter(move |(def, _)| catalog.acts_as(reader, def.owner))
}

/// What a constraint of a domain is as `ALTER DOMAIN … ADD` has it; `shown` writes a condition.
pub fn constraint_definition(
    catalog: &Catalog,
    oid: Oid,
    shown: &dyn Fn(&DomainCheck, &Domain) -> String,
) -> Option<String> {
    domains_of(catalog).find_map(|(_, domain)| {
        if domain.not_null.as_ref().is_some_and(|n| n.oid == oid) {
            return Some("NOT NULL".to_owned());
        }
        let check = domain.checks.iter().find(|c| c.oid == oid)?;
        let not_valid = if check.validated { "" } else { " NOT VALID" };
        Some(format!("CHECK ({}){not_valid}", shown(check, domain)))
    })
}

pub(super) fn constraint_rows(catalog: &Catalog, rows: &mut Rows) {
    for (def, domain) in domains_of(catalog) {
        let mut add = |oid: Oid, name: &str, kind: u8, validated: bool, expr: Option<&str>| {
            rows.push(row![
                oid,
                name,
                def.schema,
                Datum::Char(kind),
                false,
                false,
                true,
                validated,
                Oid::NONE,
                def.oid,
                Oid::NONE,
                Oid::NONE,
                Oid::NONE,
                Datum::Char(b' '),
                Datum::Char(b' '),
                Datum::Char(b' '),
                true,
                0i16,
                false,
                false,
                Datum::Null,
                Datum::Null,
                Datum::Null,
                Datum::Null,
                Datum::Null,
                Datum::Null,
                Datum::Null,
                expr,
            ]);
        };
        if let Some(not_null) = &domain.not_null {
            add(not_null.oid, &not_null.name, b'n', true, None);
        }
        for check in &domain.checks {
            let text = shown_check(&check.expr);
            add(check.oid, &check.name, b'c', check.validated, Some(&text));
        }
    }
}

/// The reader's columns that are of domains.
pub(super) fn domain_column<'a>(
    catalog: &'a Catalog,
    column: &ColumnDef,
) -> Option<(&'a TypeDef, &'a Domain)> {
    let def = catalog.made_type(column.domain?)?;
    Some((def, def.domain.as_ref()?))
}

pub(super) fn domains(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let rows = own_domains(catalog, state).map(|(def, domain)| {
        let Described {
            name,
            characters,
            bytes,
            precision,
            radix,
            scale,
            seconds,
            interval,
        } = describe(domain.base);
        let udt = types::catalog_name(catalog, domain.over.unwrap_or(domain.base.oid));
        let name = domain.over.map_or(name, type_name);
        let udt_schema = udt
            .as_ref()
            .map(|(schema, _)| schema_name(catalog, *schema));
        row![
            catalog_name(catalog),
            schema_name(catalog, def.schema),
            def.name.as_str(),
            name,
            characters,
            bytes,
            Datum::Null,
            Datum::Null,
            Datum::Null,
            Datum::Null,
            Datum::Null,
            Datum::Null,
            precision,
            radix,
            scale,
            seconds,
            interval,
            Datum::Null,
            domain.default.as_deref(),
            catalog_name(catalog),
            udt_schema.unwrap_or_default(),
            udt.map(|(_, name)| name),
            Datum::Null,
            Datum::Null,
            Datum::Null,
            Datum::Null,
            "1",
        ]
    });
    rows.collect()
}

/// The types that domains are over and the reader owns.
pub(super) fn domain_udt_usage(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let reader = state.current_user();
    let mut rows = Rows::new();
    for (def, domain) in domains_of(catalog) {
        let below = domain.over.unwrap_or(domain.base.oid);
        let owner = catalog
            .made_type(below)
            .map_or(builtin::SUPERUSER, |t| t.owner);
        let Some((schema, name)) = types::catalog_name(catalog, below) else {
            continue;
        };
        if catalog.acts_as(reader, owner) {
            rows.push(row![
                catalog_name(catalog),
                schema_name(catalog, schema),
                name,
                catalog_name(catalog),
                schema_name(catalog, def.schema),
                def.name.as_str(),
            ]);
        }
    }
    rows
}

/// Columns of the reader's domains.
pub(super) fn column_domain_usage(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let reader = state.current_user();
    let mut rows = Rows::new();
    for table in catalog.tables() {
        for (_, column) in table.live_columns() {
            let Some((def, _)) = domain_column(catalog, column) else {
                continue;
            };
            if catalog.acts_as(reader, def.owner) {
                rows.push(row![
                    catalog_name(catalog),
                    schema_name(catalog, def.schema),
                    def.name.as_str(),
                    catalog_name(catalog),
                    schema_name(catalog, table.schema),
                    table.name.as_str(),
                    column.name.as_str(),
                ]);
            }
        }
    }
    rows
}

pub(super) fn domain_constraints(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let mut rows = Rows::new();
    for (def, domain) in own_domains(catalog, state) {
        let not_null = domain.not_null.iter().map(|n| n.name.as_str());
        let checks = domain.checks.iter().map(|c| c.name.as_str());
        for name in not_null.chain(checks) {
            let schema = schema_name(catalog, def.schema);
            rows.push(row![
                catalog_name(catalog),
                schema.clone(),
                name,
                catalog_name(catalog),
                schema,
                def.name.as_str(),
                "NO",
                "NO",
            ]);
        }
    }
    rows
}

/// Names and conditions of domains' constraints, for `check_constraints`.
pub(super) fn check_rows(catalog: &Catalog, state: &dyn SystemState, rows: &mut Rows) {
    for (def, domain) in own_domains(catalog, state) {
        let mut add = |name: &str, clause: String| {
            let schema = schema_name(catalog, def.schema);
            rows.push(row![catalog_name(catalog), schema, name, clause]);
        };
        for check in &domain.checks {
            add(&check.name, shown_check(&check.expr));
        }
        if let Some(not_null) = &domain.not_null {
            add(&not_null.name, "VALUE IS NOT NULL".to_owned());
        }
    }
}

/// Places in a row of `pg_type`.
mod place {
    pub const OID: usize = 0;
    pub const KIND: usize = 6;
    pub const PREFERRED: usize = 8;
    pub const RELATION: usize = 11;
    pub const SUBSCRIPT: usize = 12;
    pub const ELEMENT: usize = 13;
    pub const ARRAY: usize = 14;
    pub const INPUT: usize = 15;
    pub const RECEIVE: usize = 17;
    pub const NOT_NULL: usize = 24;
    pub const BASE: usize = 25;
    pub const TYPMOD: usize = 26;
    pub const COLLATION: usize = 28;
    pub const DEFAULT_EXPR: usize = 29;
    pub const DEFAULT: usize = 30;
    pub const PRIVILEGES: usize = 31;
}
const DOMAIN_IN: Oid = Oid(2597);
const DOMAIN_RECV: Oid = Oid(2598);

/// The `pg_type` row of a domain, made of that of its base type under the domain's name.
pub(super) fn type_row(
    mut row: Vec<Datum>,
    catalog: &Catalog,
    def: &TypeDef,
    domain: &Domain,
) -> Vec<Datum> {
    row[place::OID] = def.oid.into();
    row[place::RELATION] = Oid::NONE.into();
    row[place::ARRAY] = made::array_oid(def.oid).into();
    row[place::KIND] = Datum::Char(b'd');
    row[place::PREFERRED] = false.into();
    row[place::SUBSCRIPT] = Oid::NONE.into();
    row[place::ELEMENT] = Oid::NONE.into();
    row[place::INPUT] = DOMAIN_IN.into();
    row[place::RECEIVE] = DOMAIN_RECV.into();
    row[place::NOT_NULL] = domain.not_null.is_some().into();
    row[place::BASE] = domain.over.unwrap_or(domain.base.oid).into();
    row[place::TYPMOD] = domain.base.typmod.into();
    if domain.collation.is_some() {
        row[place::COLLATION] = builtin::C_COLLATION.into();
    }
    row[place::DEFAULT_EXPR] = domain.default.clone().into();
    row[place::DEFAULT] = domain.default.clone().into();
    row[place::PRIVILEGES] = privileges(catalog, builtin::class::TYPE, def.oid, 0);
    row
}

/// A check as it is shown: VALUE is written large.
pub fn shown_check(text: &str) -> String {
    let Ok(symbols) = parse::symbols(text) else {
        return text.to_owned();
    };
    let (mut out, mut copied) = (String::new(), 0);
    for (i, symbol) in symbols.iter().enumerate() {
        let after_dot = i > 0 && symbols[i - 1].text == ".";
        if symbol.text == "value" && !after_dot {
            out.push_str(&text[copied..symbol.start]);
            out.push_str("VALUE");
            copied = symbol.end;
        }
    }
    out + &text[copied..]
}
