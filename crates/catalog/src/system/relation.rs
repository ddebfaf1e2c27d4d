//! Relations and their columns: `pg_class`, `pg_attribute`, `pg_attrdef`, `pg_index`,
//! `pg_sequence`, `pg_namespace`. The virtual relations list themselves too.

use std::sync::{Arc, LazyLock};

use throng_types::sqltype::made;
use throng_types::{Array, Datum, Oid, SqlType, oid};

use super::attribute::{Attribute, collation_oid, column_attributes};
use super::{Rows, SystemState, VirtualTable, all, definition, listed, operator_class, row, types};
use crate::acl;
use crate::{
    Catalog, CheckOption, ConstraintKind, IndexDef, Persistence, ReplicaIdentity, SchemaDef,
    SequenceDef, TEMPORARY_PREFIX, TableDef, TypeDef, ViewDef, ViewDefault, builtin,
};

/// Catalogs that all databases share.
const SHARED: [u32; 11] = [
    1213, 1214, 1260, 1261, 1262, 2396, 2964, 3592, 6000, 6100, 6243,
];

/// What differs between the kinds of relation in `pg_class`.
pub(super) struct Class<'a> {
    oid: Oid,
    name: &'a str,
    schema: Oid,
    owner: Oid,
    access_method: Oid,
    file: u32,
    kind: u8,
    /// False for a materialized view without its rows.
    populated: bool,
    persistence: u8,
    /// Blocks and rows; -1 rows where nobody counted.
    size: (u32, f64),
    columns: usize,
    has_index: bool,
    checks: usize,
    has_triggers: bool,
    options: &'a [(String, String)],
    /// Others inherit from it.
    has_children: bool,
    /// It is a partition, of a table or of an index.
    partition: bool,
    /// A partition's bound as SQL.
    bound: Option<String>,
    identity: ReplicaIdentity,
}

impl<'a> Class<'a> {
    /// A relation of the catalogs' that is listed and holds nothing.
    pub fn listed(oid: Oid, name: &'a str, schema: Oid, kind: u8, columns: usize) -> Class<'a> {
        Class {
            oid,
            name,
            schema,
            owner: builtin::SUPERUSER,
            access_method: match kind {
                b'i' => builtin::BTREE_AM,
                b'r' | b't' => builtin::HEAP_AM,
                _ => Oid::NONE,
            },
            file: 0,
            kind,
            populated: true,
            persistence: b'p',
            size: (0, -1.0),
            columns,
            has_index: kind == b't' || listed::has_index(oid),
            checks: 0,
            has_triggers: false,
            options: &[],
            has_children: false,
            partition: false,
            bound: None,
            identity: ReplicaIdentity::Default,
        }
    }

    pub fn row(&self) -> Vec<Datum> {
        let shared = SHARED.contains(&self.oid.0);
        let made = self.oid >= Oid::FIRST_USER;
        let has_type = matches!(self.kind, b'r' | b'm' | b'v' | b'c') && made;
        let row_type = made::composite_oid(self.oid).filter(|_| has_type);
        let row_type = row_type.unwrap_or(Oid::NONE);
        let identity = if made && matches!(self.kind, b'r' | b'p' | b'm') {
            self.identity.letter()
        } else {
            b'n'
        };
        let space = if shared {
            builtin::GLOBAL_TABLESPACE
        } else {
            Oid::NONE
        };
        row![
            self.oid,
            self.name,
            self.schema,
            row_type,
            Oid::NONE,
            self.owner,
            self.access_method,
            Oid(self.file),
            space,
            self.size.0 as i32,
            self.size.1 as f32,
            0,
            0,
            listed::toast_of(self.oid),
            self.has_index,
            shared,
            Datum::Char(self.persistence),
            Datum::Char(self.kind),
            self.columns as i16,
            self.checks as i16,
            matches!(self.kind, b'v' | b'm'),
            self.has_triggers,
            self.has_children,
            false,
            false,
            self.populated,
            Datum::Char(identity),
            self.partition,
            Oid::NONE,
            Datum::Oid(0),
            Datum::Oid(0),
            Datum::Null,
            options_array(self.options),
            self.bound.clone(),
        ]
    }
}

pub(super) fn options_array(options: &[(String, String)]) -> Datum {
    text_array(options.iter().map(|(n, v)| format!("{n}={v}")).collect())
}

/// NULL for an empty list, as options and settings are kept.
pub(super) fn text_array(items: Vec<String>) -> Datum {
    match items.is_empty() {
        true => Datum::Null,
        false => {
            let items = items.into_iter().map(Datum::from).collect();
            Datum::array(Array::from_items(oid::TEXT, items))
        }
    }
}

fn virtual_class(table: &VirtualTable) -> Class<'_> {
    let columns = table.columns.len();
    Class::listed(
        table.oid,
        table.name,
        table.schema,
        table.relkind(),
        columns,
    )
}

fn table_class<'a>(catalog: &Catalog, table: &'a TableDef, state: &dyn SystemState) -> Class<'a> {
    let constraints = catalog.constraints_of(table.oid);
    let checks = constraints
        .iter()
        .filter(|c| matches!(c.kind, ConstraintKind::Check { .. }));
    let references = constraints.iter().any(|c| c.foreign_key().is_some());
    Class {
        oid: table.oid,
        name: &table.name,
        schema: table.schema,
        owner: table.owner,
        access_method: match table.is_partitioned() {
            true => Oid::NONE,
            false => builtin::HEAP_AM,
        },
        file: match table.is_partitioned() {
            true => 0,
            false => table.file.0,
        },
        kind: match table.is_partitioned() {
            true => b'p',
            false if table.is_materialized() => b'm',
            false => b'r',
        },
        populated: !table.is_unpopulated(),
        persistence: persistence(table),
        size: state.relation_size(table.oid),
        columns: table.columns.len(),
        has_index: !catalog.indexes_of(table.oid).is_empty(),
        checks: checks.count(),
        has_triggers: references
            || !catalog.referencing(table.oid).is_empty()
            || !catalog.triggers_of(table.oid).is_empty(),
        options: &table.options,
        has_children: !catalog.children_of(table.oid).is_empty(),
        partition: table.bound.is_some(),
        bound: super::partition::bound_of(catalog, table),
        identity: table.replica_identity,
    }
}

fn persistence(table: &TableDef) -> u8 {
    match table.persistence {
        Persistence::Permanent => b'p',
        Persistence::Unlogged => b'u',
        Persistence::Temporary(_) => b't',
    }
}

fn index_class<'a>(catalog: &Catalog, index: &'a IndexDef, state: &dyn SystemState) -> Class<'a> {
    let table = catalog.table(index.table);
    Class {
        oid: index.oid,
        name: &index.name,
        schema: index.schema,
        owner: table.map_or(builtin::SUPERUSER, |t| t.owner),
        access_method: operator_class::access_method(index.terms.method),
        file: match table.is_some_and(|t| t.is_partitioned()) {
            true => 0,
            false => index.file.0,
        },
        kind: match table.is_some_and(|t| t.is_partitioned()) {
            true => b'I',
            false => b'i',
        },
        populated: true,
        persistence: table.map_or(b'p', |t| persistence(t)),
        size: state.relation_size(index.oid),
        columns: index.columns.len() + index.terms.include.len(),
        has_index: false,
        checks: 0,
        has_triggers: false,
        options: &index.options,
        has_children: table.is_some_and(|t| t.is_partitioned()),
        partition: index.parent.is_some(),
        bound: None,
        identity: ReplicaIdentity::Default,
    }
}

/// Of what has none of its own: temporary is what lies in such a schema.
fn persistence_in(catalog: &Catalog, schema: Oid) -> u8 {
    let schema = catalog.schema(schema);
    match schema.is_some_and(|s| s.name.starts_with(TEMPORARY_PREFIX)) {
        true => b't',
        false => b'p',
    }
}

fn sequence_class<'a>(catalog: &Catalog, sequence: &'a SequenceDef) -> Class<'a> {
    Class {
        oid: sequence.oid,
        name: &sequence.name,
        schema: sequence.schema,
        owner: sequence.owner,
        access_method: Oid::NONE,
        file: sequence.file.0,
        kind: b'S',
        populated: true,
        persistence: persistence_in(catalog, sequence.schema),
        size: (1, 1.0),
        columns: SEQUENCE_COLUMNS.len(),
        has_index: false,
        checks: 0,
        has_triggers: false,
        options: &[],
        has_children: false,
        partition: false,
        bound: None,
        identity: ReplicaIdentity::Default,
    }
}

fn view_class<'a>(catalog: &Catalog, view: &'a ViewDef) -> Class<'a> {
    Class {
        oid: view.oid,
        name: &view.name,
        schema: view.schema,
        owner: view.owner,
        access_method: Oid::NONE,
        file: 0,
        kind: b'v',
        populated: true,
        persistence: persistence_in(catalog, view.schema),
        size: (0, -1.0),
        columns: view.columns.len(),
        has_index: false,
        checks: 0,
        has_triggers: !catalog.triggers_of(view.oid).is_empty(),
        options: match view.check {
            None => &view.options,
            Some(CheckOption::Local) => &LOCAL_CHECK[..],
            Some(CheckOption::Cascaded) => &CASCADED_CHECK[..],
        },
        has_children: false,
        partition: false,
        bound: None,
        identity: ReplicaIdentity::Default,
    }
}

/// The relation of a composite type, which has columns and no rows.
fn composite_class(def: &TypeDef) -> Option<Class<'_>> {
    let fields = def.fields.as_ref()?;
    Some(Class {
        oid: made::serial(def.oid)?,
        name: &def.name,
        schema: def.schema,
        owner: def.owner,
        access_method: Oid::NONE,
        file: 0,
        kind: b'c',
        populated: true,
        persistence: b'p',
        size: (0, -1.0),
        columns: fields.len(),
        has_index: false,
        checks: 0,
        has_triggers: false,
        options: &[],
        has_children: false,
        partition: false,
        bound: None,
        identity: ReplicaIdentity::Default,
    })
}

static LOCAL_CHECK: LazyLock<Vec<(String, String)>> =
    LazyLock::new(|| vec![("check_option".to_owned(), "local".to_owned())]);
static CASCADED_CHECK: LazyLock<Vec<(String, String)>> =
    LazyLock::new(|| vec![("check_option".to_owned(), "cascaded".to_owned())]);

/// Where a row of `pg_class` has `relfrozenxid`; `relminmxid` follows.
const FROZEN_XID: usize = 29;
/// Where it has `relrowsecurity`; `relforcerowsecurity` follows.
const ROW_SECURITY: usize = 23;

fn built_in_classes(catalog: &Catalog) -> Rows {
    let mut rows: Rows = all().iter().map(|t| virtual_class(t).row()).collect();
    if let Some(place) = place_of("pg_class", "relacl") {
        for (row, table) in rows.iter_mut().zip(all()) {
            row[place] = listed::born_with(catalog, table);
        }
    }
    rows.extend(listed::pg_class());
    rows
}

pub(super) fn pg_class(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let mut rows = match catalog.has_built_in() {
        true => built_in_classes(catalog),
        false => Rows::new(),
    };
    let oldest = state.oldest_xid() as u32;
    rows.extend(catalog.tables().iter().map(|t| {
        let mut row = table_class(catalog, t, state).row();
        row[ROW_SECURITY] = t.row_security.enabled.into();
        row[ROW_SECURITY + 1] = t.row_security.forced.into();
        if !t.is_partitioned() {
            row[FROZEN_XID] = Datum::Oid(oldest);
            // Multixacts: the first is still to come.
            row[FROZEN_XID + 1] = Datum::Oid(1);
        }
        row
    }));
    rows.extend(
        catalog
            .indexes()
            .iter()
            .map(|i| index_class(catalog, i, state).row()),
    );
    let sequences = catalog.sequences();
    rows.extend(sequences.iter().map(|s| sequence_class(catalog, s).row()));
    rows.extend(catalog.views().into_iter().map(|v| {
        let class = view_class(catalog, v);
        let both = [&v.options[..], class.options].concat();
        let options = match v.check {
            Some(_) => &both[..],
            None => class.options,
        };
        Class { options, ..class }.row()
    }));
    with_grants(catalog, &mut rows, "pg_class", "relacl", |_| Some(0));
    let types = catalog.made_types().into_iter();
    rows.extend(types.filter_map(|def| Some(composite_class(def)?.row())));
    rows
}

/// Users' views, each a rule that stands for its rows.
pub(super) fn pg_rewrite(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let rule = |view: Arc<ViewDef>| {
        row![
            definition::rule_oid(view.oid),
            "_RETURN",
            view.oid,
            Datum::Char(b'1'),
            Datum::Char(b'O'),
            true,
            "<>",
            "<>",
        ]
    };
    catalog.rules().into_iter().map(rule).collect()
}

/// The columns of a sequence read as a table.
const SEQUENCE_COLUMNS: [(&str, SqlType); 3] = [
    ("last_value", SqlType::INT8),
    ("log_cnt", SqlType::INT8),
    ("is_called", SqlType::BOOL),
];

static VIRTUAL_ATTRIBUTES: LazyLock<Rows> = LazyLock::new(|| {
    let columns = all().iter().flat_map(|table| {
        let relation = table.oid;
        let numbered = table.columns.iter().zip(1..);
        numbered.map(move |(&(name, ty), n)| {
            // Catalogs' texts are compared byte by byte.
            let catalogs = table.schema == builtin::PG_CATALOG && table.relkind() == b'r';
            let compared = catalogs && types::collation(ty.oid) != Oid::NONE;
            let attribute = Attribute {
                not_null: table.is_never_null(name),
                collation: compared.then_some("C"),
                ..Attribute::plain(relation, n, name, ty)
            };
            attribute.row()
        })
    });
    columns.collect()
});

pub(super) fn pg_attribute(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let mut rows = Rows::new();
    if catalog.has_built_in() {
        rows.clone_from(&VIRTUAL_ATTRIBUTES);
        rows.extend(listed::pg_attribute());
    }
    for table in catalog.tables() {
        column_attributes(catalog, table, &mut rows);
    }
    for index in catalog.indexes() {
        let Some(table) = catalog.table(index.table) else {
            continue;
        };
        let included = index.terms.include.iter().map(|attnum| (*attnum, None));
        let keys = index.keys().map(|(key, expr)| (key.attnum, expr));
        let names = index.column_names(table);
        for (((attnum, expr), name), number) in keys.chain(included).zip(&names).zip(1..) {
            if let Some(expr) = expr {
                let target = index
                    .targets
                    .iter()
                    .find(|(n, _)| i16::try_from(*n) == Ok(number));
                let attribute = Attribute {
                    statistics_target: target.map(|(_, target)| *target),
                    ..Attribute::plain(index.oid, number, name, expr.ty)
                };
                rows.push(attribute.row());
                continue;
            }
            let column = table.column(attnum);
            let collation = column.collation.as_deref();
            let plain = Attribute::plain(index.oid, number, name, column.ty);
            rows.push(Attribute { collation, ..plain }.row());
        }
    }
    for view in catalog.views() {
        for (column, number) in view.columns.iter().zip(1..) {
            let own = |d: &ViewDefault| i16::try_from(d.attnum) == Ok(number);
            let attribute = Attribute {
                has_default: view.defaults.iter().any(own),
                ..Attribute::plain(view.oid, number, &column.name, column.ty)
            };
            rows.push(attribute.row());
        }
    }
    for def in catalog.made_types() {
        let fields = def.fields.iter().flatten().zip(1..);
        let relation = made::serial(def.oid).unwrap_or(Oid::NONE);
        for (field, number) in fields {
            let attribute = Attribute {
                shown: field.domain.map_or(field.ty, SqlType::plain),
                dropped: field.dropped,
                collation: field.collation.as_deref(),
                ..Attribute::plain(relation, number, &field.name, field.ty)
            };
            rows.push(attribute.row());
        }
    }
    for sequence in catalog.sequences() {
        for ((name, ty), number) in SEQUENCE_COLUMNS.into_iter().zip(1..) {
            let plain = Attribute::plain(sequence.oid, number, name, ty);
            rows.push(
                Attribute {
                    not_null: true,
                    ..plain
                }
                .row(),
            );
        }
    }
    with_grants(catalog, &mut rows, "pg_attribute", "attacl", |row| {
        let column = row[ATTNUM].as_i64().unwrap_or_default();
        u16::try_from(column).ok().filter(|column| *column != 0)
    });
    rows
}

/// Where `pg_attribute.attnum` is.
const ATTNUM: usize = 4;

/// Puts into rows that begin with a relation's oid what was granted on it, or on the column that
/// `column` gives.
fn with_grants(
    catalog: &Catalog,
    rows: &mut Rows,
    relation: &str,
    into: &str,
    column: impl Fn(&[Datum]) -> Option<u16>,
) {
    let Some(place) = place_of(relation, into).filter(|_| catalog.has_grants()) else {
        return;
    };
    for row in rows {
        let oid = Oid(row[0].as_i64().unwrap_or_default() as u32);
        if let Some(column) = column(row) {
            let granted = privileges(catalog, builtin::class::RELATION, oid, column);
            if !granted.is_null() {
                row[place] = granted;
            }
        }
    }
}

/// Where a catalog's rows have a column.
fn place_of(relation: &str, column: &str) -> Option<usize> {
    let table = super::find(builtin::PG_CATALOG, relation)?;
    table.columns.iter().position(|(name, _)| *name == column)
}

pub(super) fn pg_attrdef(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let mut rows = Rows::new();
    for table in catalog.tables() {
        for (attnum, column) in table.live_columns() {
            let Some(text) = definition::stored_default(catalog, column) else {
                continue;
            };
            let oid = definition::default_oid(table.oid, attnum);
            rows.push(row![oid, table.oid, attnum as i16, text]);
        }
    }
    for view in catalog
        .views()
        .into_iter()
        .filter(|v| !v.defaults.is_empty())
    {
        for (column, attnum) in view.columns_of_table().iter().zip(1_u16..) {
            if let Some(text) = definition::stored_default(catalog, column) {
                let oid = definition::default_oid(view.oid, attnum);
                rows.push(row![oid, view.oid, attnum as i16, text]);
            }
        }
    }
    rows
}

pub(super) fn pg_index(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let row_of = |index: &IndexDef| {
        let table = catalog.table(index.table)?;
        let columns = || {
            index.keys().enumerate().map(|(place, (key, expr))| {
                let (collation, class) = index.terms.words_of(place);
                let (own, ty) = match expr {
                    Some(expr) => (None, expr.ty.oid),
                    None => {
                        let column = table.column(key.attnum);
                        (column.collation.as_deref(), column.ty.oid)
                    }
                };
                (key, collation.or(own), ty, class)
            })
        };
        let vector = |element, items| Datum::array(Array::vector(element, items));
        let included = index.terms.include.iter().map(|n| (*n as i16).into());
        let keys = columns()
            .map(|(key, ..)| (key.attnum as i16).into())
            .chain(included)
            .collect();
        let collations = columns()
            .map(|(_, collation, ty, _)| collation_oid(collation, ty).into())
            .collect();
        let classes = columns()
            .map(|(_, _, ty, class)| {
                operator_class::class_of(index.terms.method, class.unwrap_or(""), ty).into()
            })
            .collect();
        let options = columns()
            .map(|(key, ..)| (i16::from(key.descending) | i16::from(key.nulls_first) << 1).into())
            .collect();
        // What PostgreSQL keeps as trees is here the SQL that it shows of them.
        let text = |texts: Vec<&str>| match texts.is_empty() {
            true => Datum::Null,
            false => Datum::from(texts.join(", ")),
        };
        let exprs = text(index.terms.exprs.iter().map(|e| e.text.as_str()).collect());
        let predicate = text(index.terms.predicate.iter().map(String::as_str).collect());
        let count = index.columns.len() as i16;
        Some(row![
            index.oid,
            index.table,
            count + index.terms.include.len() as i16,
            count,
            super::definition::is_unique(catalog, index),
            index.nulls_not_distinct,
            index.primary,
            !index.terms.exclusion.is_empty(),
            !catalog.is_deferrable(index.oid),
            index.clustered,
            catalog.is_valid(index),
            false,
            true,
            true,
            table.replica_identity == ReplicaIdentity::Index(index.oid),
            vector(oid::INT2, keys),
            vector(oid::OID, collations),
            vector(oid::OID, classes),
            vector(oid::INT2, options),
            exprs,
            predicate,
        ])
    };
    let mut rows = match catalog.has_built_in() {
        true => listed::pg_index(),
        false => Rows::new(),
    };
    rows.extend(
        catalog
            .indexes()
            .into_iter()
            .filter_map(|index| row_of(index)),
    );
    rows
}

pub(super) fn pg_sequence(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let sequences = catalog.sequences().into_iter();
    sequences
        .map(|s| {
            row![
                s.oid,
                s.ty,
                s.start,
                s.increment,
                s.max,
                s.min,
                s.cache,
                s.cycle
            ]
        })
        .collect()
}

/// The grants on a schema: those it was born with are shown where everybody may look into it.
fn schema_privileges(catalog: &Catalog, schema: &SchemaDef) -> Datum {
    let stored = catalog.stored_acl(builtin::class::NAMESPACE, schema.oid, 0);
    let open = [
        builtin::PG_CATALOG,
        builtin::INFORMATION_SCHEMA,
        builtin::PUBLIC,
    ];
    let shown = stored.is_some() || open.contains(&schema.oid);
    let items = shown.then(|| catalog.schema_acl(schema.oid));
    acl::datum(catalog, items.as_deref())
}

/// What was granted on an object or a column.
pub(super) fn privileges(catalog: &Catalog, class: Oid, object: Oid, column: u16) -> Datum {
    let stored = catalog.stored_acl(class, object, column);
    acl::datum(catalog, stored.map(|def| &def.items[..]))
}

pub(super) fn pg_namespace(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let schemas = catalog.schemas().into_iter();
    schemas
        .map(|s| {
            row![
                s.oid,
                s.name.as_str(),
                s.owner,
                schema_privileges(catalog, s)
            ]
        })
        .collect()
}
