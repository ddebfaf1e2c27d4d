//! `information_schema` on schemas, tables, columns, sequences. Only what the reader may use is
//! listed.

use std::sync::{Arc, LazyLock};

use throng_types::sqltype::{format_type, made, type_info};
use throng_types::{Datum, Oid, SqlType, oid};

use super::domain::domain_column;
use super::view::role_name;
use super::{Rows, SystemState, VirtualTable, all, definition, find, row, types};
use crate::{
    Catalog, CheckOption, ColumnDef, Identity, Relation, TableDef, ViewDef, builtin, fires,
};

/// The catalog's name, which is the database's.
pub(super) fn catalog_name(catalog: &Catalog) -> Datum {
    catalog.current_database().map(|d| d.name.as_str()).into()
}

/// `YES` or `NO`.
pub(super) fn yes(yes: bool) -> &'static str {
    if yes { "YES" } else { "NO" }
}

/// A schema's name.
pub(super) fn schema_name(catalog: &Catalog, schema: Oid) -> Datum {
    super::view::schema_name(catalog, schema)
}

/// The tables that the reader may use.
pub(super) fn own_tables<'a>(
    catalog: &'a Catalog,
    state: &dyn SystemState,
) -> impl Iterator<Item = &'a TableDef> {
    let reader = state.current_user();
    let own = catalog.tables().into_iter().map(|t| &**t);
    let own = own.filter(|t| !t.is_materialized());
    own.filter(move |t| {
        let relation = catalog.relation(t.oid);
        relation.is_some_and(|r| catalog.any_right(reader, &r))
    })
}

/// Rows of a wide relation of which only some columns are ever known.
pub(super) struct Sparse {
    width: usize,
    places: Vec<usize>,
}

impl Sparse {
    /// The columns of an `information_schema` relation whose values [`Sparse::row`] takes.
    pub(super) fn new(relation: &str, known: &[&str]) -> Sparse {
        let table = find(builtin::INFORMATION_SCHEMA, relation).expect("a relation listed");
        let place = |name: &&str| {
            table
                .columns
                .iter()
                .position(|(column, _)| column == name)
                .expect("a column listed")
        };
        Sparse {
            width: table.columns.len(),
            places: known.iter().map(place).collect(),
        }
    }

    pub(super) fn row(&self, values: Vec<Datum>) -> Vec<Datum> {
        debug_assert_eq!(values.len(), self.places.len());
        let mut row = vec![Datum::Null; self.width];
        for (place, value) in self.places.iter().zip(values) {
            row[*place] = value;
        }
        row
    }
}

pub(super) fn information_schema_catalog_name(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    vec![vec![catalog_name(catalog)]]
}

pub(super) fn schemata(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let reader = state.current_user();
    let schemas = catalog.schemas().into_iter();
    schemas
        .filter(|s| catalog.acts_as(reader, s.owner))
        .map(|s| {
            row![
                catalog_name(catalog),
                s.name.as_str(),
                role_name(catalog, s.owner),
                Datum::Null,
                Datum::Null,
                Datum::Null,
                Datum::Null,
            ]
        })
        .collect()
}

/// The virtual relations, where they are listed.
fn built_in(catalog: &Catalog) -> impl Iterator<Item = &'static VirtualTable> {
    let listed = catalog.has_built_in();
    all().iter().copied().filter(move |_| listed)
}

fn table_row(catalog: &Catalog, schema: Oid, name: &str, kind: u8) -> Vec<Datum> {
    let table = kind == b'r';
    row![
        catalog_name(catalog),
        schema_name(catalog, schema),
        name,
        if table { "BASE TABLE" } else { "VIEW" },
        Datum::Null,
        Datum::Null,
        Datum::Null,
        Datum::Null,
        Datum::Null,
        yes(table),
        "NO",
        Datum::Null,
    ]
}

pub(super) fn tables(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let system = built_in(catalog).map(|t| table_row(catalog, t.schema, t.name, t.relkind()));
    let own = own_tables(catalog, state).map(|t| table_row(catalog, t.schema, &t.name, b'r'));
    let views = own_views(catalog, state).map(|v| {
        let mut row = table_row(catalog, v.schema, &v.name, b'v');
        row[INSERTABLE_INTO] = yes(state.updatable_columns(v).contains(&true)).into();
        row
    });
    system.chain(own).chain(views).collect()
}

/// Where `tables.is_insertable_into` is.
const INSERTABLE_INTO: usize = 9;

/// The views that the reader may use.
fn own_views<'a>(
    catalog: &'a Catalog,
    state: &dyn SystemState,
) -> impl Iterator<Item = &'a Arc<ViewDef>> {
    let reader = state.current_user();
    let views = catalog.views().into_iter();
    views.filter(move |v| catalog.any_right(reader, &Relation::View((*v).clone())))
}

pub(super) fn views(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let own = own_views(catalog, state).map(|v| {
        let columns = state.updatable_columns(v);
        let acts = |event: i16| {
            let mut triggers = catalog.triggers_of(v.oid).iter();
            yes(triggers.any(|t| t.is_instead() && t.is_on(event)))
        };
        row![
            catalog_name(catalog),
            schema_name(catalog, v.schema),
            v.name.as_str(),
            state.view_definition(v),
            match v.check {
                None => "NONE",
                Some(CheckOption::Local) => "LOCAL",
                Some(CheckOption::Cascaded) => "CASCADED",
            },
            yes(columns.contains(&true)),
            yes(columns.contains(&true)),
            acts(fires::UPDATE),
            acts(fires::DELETE),
            acts(fires::INSERT),
        ]
    });
    super::view::virtual_relations(b'v')
        .map(|v| {
            row![
                catalog_name(catalog),
                schema_name(catalog, v.schema),
                v.name,
                Datum::Null,
                "NONE",
                "NO",
                "NO",
                "NO",
                "NO",
                "NO",
            ]
        })
        .chain(own)
        .collect()
}

/// The relations that a view names, with their columns that it reads.
fn used<'a>(
    catalog: &'a Catalog,
    view: &'a ViewDef,
) -> impl Iterator<Item = (Relation, &'a [u16])> {
    view.uses.iter().filter_map(move |used| {
        let relation = catalog.relation(used.object)?;
        let readable = matches!(relation, Relation::Table(_) | Relation::View(_));
        readable.then_some((relation, &used.columns[..]))
    })
}

pub(super) fn view_table_usage(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let mut rows = Rows::new();
    for view in own_views(catalog, state) {
        for (relation, _) in used(catalog, view) {
            rows.push(row![
                catalog_name(catalog),
                schema_name(catalog, view.schema),
                view.name.as_str(),
                catalog_name(catalog),
                schema_name(catalog, relation.schema()),
                relation.name(),
            ]);
        }
    }
    rows
}

pub(super) fn view_column_usage(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let mut rows = Rows::new();
    for view in own_views(catalog, state) {
        for (relation, columns) in used(catalog, view) {
            for attnum in columns {
                let at = usize::from(*attnum) - 1;
                let column = match &relation {
                    Relation::Table(table) => table.columns.get(at).map(|c| c.name.as_str()),
                    Relation::View(view) => view.columns.get(at).map(|c| c.name.as_str()),
                    _ => None,
                };
                rows.push(row![
                    catalog_name(catalog),
                    schema_name(catalog, view.schema),
                    view.name.as_str(),
                    catalog_name(catalog),
                    schema_name(catalog, relation.schema()),
                    relation.name(),
                    column,
                ]);
            }
        }
    }
    rows
}

/// A type as the standard describes it: name, character length and bytes, precision, radix and
/// scale, digits of a second, interval fields.
pub(super) struct Described {
    pub name: String,
    pub characters: Option<i32>,
    pub bytes: Option<i32>,
    pub precision: Option<i32>,
    pub radix: Option<i32>,
    pub scale: Option<i32>,
    pub seconds: Option<i32>,
    pub interval: Option<String>,
}

/// What a type without an array's brackets is called.
pub(super) fn type_name(ty: Oid) -> String {
    match type_info(ty) {
        Some(info) if info.element != Oid::NONE && info.len == -1 => "ARRAY".into(),
        Some(_) if made::is_made(ty) => "USER-DEFINED".into(),
        _ => format_type(SqlType::plain(ty)),
    }
}

pub(super) fn describe(ty: SqlType) -> Described {
    const UTF8_BYTES: i32 = 4;
    const LONGEST_STRING: i32 = 1 << 30;
    let characters = match ty.oid {
        oid::VARCHAR | oid::BPCHAR => SqlType::string_length(ty.typmod),
        _ => None,
    };
    let bytes = match ty.oid {
        oid::TEXT | oid::VARCHAR | oid::BPCHAR => {
            Some(characters.map_or(LONGEST_STRING, |n| n.saturating_mul(UTF8_BYTES)))
        }
        _ => None,
    };
    let (precision, radix, scale) = match ty.oid {
        oid::INT2 => (Some(16), Some(2), Some(0)),
        oid::INT4 => (Some(32), Some(2), Some(0)),
        oid::INT8 => (Some(64), Some(2), Some(0)),
        oid::FLOAT4 => (Some(24), Some(2), None),
        oid::FLOAT8 => (Some(53), Some(2), None),
        oid::NUMERIC => match SqlType::numeric_precision(ty.typmod) {
            Some((precision, scale)) => (Some(precision), Some(10), Some(scale)),
            None => (None, Some(10), None),
        },
        _ => (None, None, None),
    };
    const MICROSECONDS: i32 = 6;
    const ALL_DIGITS: i32 = 0xffff;
    let seconds = match ty.oid {
        oid::DATE => Some(0),
        oid::TIME | oid::TIMETZ | oid::TIMESTAMP | oid::TIMESTAMPTZ => Some(if ty.typmod < 0 {
            MICROSECONDS
        } else {
            ty.typmod
        }),
        oid::INTERVAL => match ty.typmod & ALL_DIGITS {
            _ if ty.typmod < 0 => Some(MICROSECONDS),
            ALL_DIGITS => Some(MICROSECONDS),
            digits => Some(digits),
        },
        _ => None,
    };
    let interval = match ty.oid {
        oid::INTERVAL => {
            let whole = format_type(ty);
            whole.strip_prefix("interval ").map(str::to_uppercase)
        }
        _ => None,
    };
    Described {
        name: type_name(ty.oid),
        characters,
        bytes,
        precision,
        radix,
        scale,
        seconds,
        interval,
    }
}

static COLUMNS: LazyLock<Sparse> = LazyLock::new(|| {
    let known = [
        "table_catalog",
        "table_schema",
        "table_name",
        "column_name",
        "ordinal_position",
        "column_default",
        "is_nullable",
        "data_type",
        "character_maximum_length",
        "character_octet_length",
        "numeric_precision",
        "numeric_precision_radix",
        "numeric_scale",
        "datetime_precision",
        "interval_type",
        "collation_catalog",
        "collation_schema",
        "collation_name",
        "domain_catalog",
        "domain_schema",
        "domain_name",
        "udt_catalog",
        "udt_schema",
        "udt_name",
        "dtd_identifier",
        "is_self_referencing",
        "is_identity",
        "identity_generation",
        "identity_start",
        "identity_increment",
        "identity_maximum",
        "identity_minimum",
        "identity_cycle",
        "is_generated",
        "generation_expression",
        "is_updatable",
    ];
    Sparse::new("columns", &known)
});

/// A column in its relation.
struct ColumnPlace<'a> {
    oid: Oid,
    schema: Oid,
    relation: &'a str,
    number: u16,
    updatable: bool,
}

fn column_row(
    (catalog, state): (&Catalog, &dyn SystemState),
    place: &ColumnPlace<'_>,
    column: &ColumnDef,
) -> Vec<Datum> {
    let database = catalog_name(catalog);
    let ty = describe(column.ty);
    // A default collation goes without saying.
    let collation = super::attribute::collation_oid(column.collation.as_deref(), column.ty.oid);
    let collation = types::COLLATIONS
        .iter()
        .find(|(oid, _)| *oid == collation && *oid != builtin::DEFAULT_COLLATION);
    let of_collation = |value: Datum| {
        if collation.is_some() {
            value
        } else {
            Datum::Null
        }
    };
    let identity = column.identity.map(|identity| match identity {
        Identity::Always => "ALWAYS",
        Identity::ByDefault => "BY DEFAULT",
    });
    let domain = domain_column(catalog, column);
    // Of a domain over a type that a user made, that type.
    let below = domain.and_then(|(_, d)| d.over);
    let udt = types::catalog_name(catalog, below.unwrap_or(column.ty.oid));
    let generated = column.generated.as_ref();
    let default = definition::column_default(catalog, column).filter(|_| generated.is_none());
    let sequence = column.sequence.filter(|_| identity.is_some());
    let sequence = sequence.and_then(|oid| catalog.sequence(oid));
    let number = |value: fn(&crate::SequenceDef) -> i64| -> Datum {
        sequence.map(|s| value(s).to_string()).into()
    };
    COLUMNS.row(row![
        database.clone(),
        schema_name(catalog, place.schema),
        place.relation,
        column.name.as_str(),
        i32::from(place.number),
        default.map(|text| state.kept_text(place.oid, &text)),
        yes(!column.not_null),
        below.map_or(ty.name, type_name),
        ty.characters,
        ty.bytes,
        ty.precision,
        ty.radix,
        ty.scale,
        ty.seconds,
        ty.interval,
        of_collation(database.clone()),
        of_collation("pg_catalog".into()),
        collation.map(|(_, name)| *name),
        domain.map(|_| catalog_name(catalog)),
        domain.map(|(def, _)| schema_name(catalog, def.schema)),
        domain.map(|(def, _)| def.name.as_str()),
        database,
        udt.as_ref()
            .map(|(schema, _)| schema_name(catalog, *schema))
            .unwrap_or_default(),
        udt.map(|(_, name)| name),
        place.number.to_string(),
        "NO",
        yes(identity.is_some()),
        identity,
        number(|s| s.start),
        number(|s| s.increment),
        number(|s| s.max),
        number(|s| s.min),
        yes(sequence.is_some_and(|s| s.cycle)),
        if generated.is_some() {
            "ALWAYS"
        } else {
            "NEVER"
        },
        generated.map(|g| state.kept_text(place.oid, &g.expr)),
        yes(place.updatable),
    ])
}

/// Columns with the generated columns that are computed from them.
pub(super) fn column_column_usage(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let mut rows = Rows::new();
    for table in own_tables(catalog, state) {
        for (attnum, column) in table.live_columns() {
            for (_, by) in table.generated_from(attnum) {
                rows.push(row![
                    catalog_name(catalog),
                    schema_name(catalog, table.schema),
                    table.name.as_str(),
                    column.name.as_str(),
                    by.name.as_str(),
                ]);
            }
        }
    }
    rows
}

fn virtual_columns(
    (catalog, state): (&Catalog, &dyn SystemState),
    table: &'static VirtualTable,
) -> Rows {
    let numbered = table.columns.iter().zip(1..);
    numbered
        .map(|(&(name, ty), number)| {
            let updatable = table.relkind() == b'r';
            let place = ColumnPlace {
                oid: table.oid,
                schema: table.schema,
                relation: table.name,
                number,
                updatable,
            };
            column_row((catalog, state), &place, &ColumnDef::new(name, ty))
        })
        .collect()
}

pub(super) fn columns(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let mut rows: Rows = built_in(catalog)
        .flat_map(|t| virtual_columns((catalog, state), t))
        .collect();
    for table in own_tables(catalog, state) {
        for (number, column) in table.live_columns() {
            let place = ColumnPlace {
                oid: table.oid,
                schema: table.schema,
                relation: &table.name,
                number,
                updatable: true,
            };
            rows.push(column_row((catalog, state), &place, column));
        }
    }
    for view in own_views(catalog, state) {
        let updatable = state.updatable_columns(view);
        for (column, number) in view.columns_of_table().iter().zip(1..) {
            let place = ColumnPlace {
                oid: view.oid,
                schema: view.schema,
                relation: &view.name,
                number,
                updatable: updatable.get(usize::from(number) - 1) == Some(&true),
            };
            rows.push(column_row((catalog, state), &place, column));
        }
    }
    rows
}

pub(super) fn column_udt_usage(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let mut rows = Rows::new();
    for table in own_tables(catalog, state) {
        for (_, column) in table.live_columns() {
            let udt = types::catalog_name(catalog, column.ty.oid);
            rows.push(row![
                catalog_name(catalog),
                udt.as_ref()
                    .map(|(schema, _)| schema_name(catalog, *schema))
                    .unwrap_or_default(),
                udt.map(|(_, name)| name),
                catalog_name(catalog),
                schema_name(catalog, table.schema),
                table.name.as_str(),
                column.name.as_str(),
            ]);
        }
    }
    rows
}

pub(super) fn sequences(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let reader = state.current_user();
    // Those behind identity columns are the columns' own affair.
    let sequences = catalog.sequences().into_iter().filter(|s| !s.identity);
    sequences
        .filter(|s| catalog.any_right(reader, &Relation::Sequence((*s).clone())))
        .map(|s| {
            let ty = describe(SqlType::plain(s.ty));
            row![
                catalog_name(catalog),
                schema_name(catalog, s.schema),
                s.name.as_str(),
                ty.name,
                ty.precision,
                ty.radix,
                ty.scale,
                s.start.to_string(),
                s.min.to_string(),
                s.max.to_string(),
                s.increment.to_string(),
                yes(s.cycle),
            ]
        })
        .collect()
}

pub(super) fn character_sets(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let database = catalog_name(catalog);
    let none = Datum::Null;
    vec![row![
        none.clone(),
        none.clone(),
        "UTF8",
        "UCS",
        "UTF8",
        database,
        none.clone(),
        none,
    ]]
}

pub(super) fn collations(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let all = types::COLLATIONS.iter();
    all.map(|(_, name)| row![catalog_name(catalog), "pg_catalog", *name, "NO PAD"])
        .collect()
}

pub(super) fn collation_character_set_applicability(
    catalog: &Catalog,
    _: &dyn SystemState,
) -> Rows {
    let all = types::COLLATIONS.iter();
    all.map(|(_, name)| {
        row![
            catalog_name(catalog),
            "pg_catalog",
            *name,
            Datum::Null,
            Datum::Null,
            "UTF8"
        ]
    })
    .collect()
}
