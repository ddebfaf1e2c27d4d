//! The relations over a small catalog.

use throng_types::sqltype::{element_of, type_info};
use throng_types::{Array, FileId, SqlType, oid};

use super::*;
use crate::{
    ColumnDef, ColumnStats, CommentDef, ConstraintDef, ConstraintKind, FkAction, ForeignKey,
    Identity, IndexColumn, IndexDef, Lineage, MembershipDef, Persistence, RoleDef, SequenceDef,
    StatsDef, TableDef,
};

/// One session that holds two locks, and one setting; the reader is given.
struct Quiet(Oid);

impl SystemState for Quiet {
    fn oldest_xid(&self) -> u64 {
        3
    }
    fn current_user(&self) -> Oid {
        self.0
    }
    fn sessions(&self) -> Vec<SessionInfo> {
        vec![SessionInfo {
            pid: 7,
            user: builtin::SUPERUSER,
            state: Some("active".into()),
            xact_start: Some(5),
            xid: Some(1 << 33 | 4),
            backend_type: "client backend".into(),
            ..SessionInfo::default()
        }]
    }
    fn locks(&self) -> Vec<LockInfo> {
        let relation = Some(ORDERS);
        vec![
            LockInfo {
                lock_type: "relation".into(),
                relation,
                pid: 7,
                ..LockInfo::default()
            },
            LockInfo {
                lock_type: "advisory".into(),
                class: Some(0),
                object: Some(9),
                part: Some(1),
                ..LockInfo::default()
            },
        ]
    }
    fn settings(&self) -> Vec<SettingInfo> {
        let words = Some(vec!["on".to_string(), "off".to_string()]);
        vec![SettingInfo {
            name: "jit".into(),
            enum_vals: words,
            ..SettingInfo::default()
        }]
    }
    fn prepared(&self) -> Vec<PreparedInfo> {
        vec![PreparedInfo {
            parameter_types: vec![oid::INT4],
            ..PreparedInfo::default()
        }]
    }
    fn relation_size(&self, _: Oid) -> (u32, f64) {
        (3, 100.0)
    }
    fn sequence_value(&self, _: Oid) -> Option<i64> {
        Some(12)
    }
    fn view_definition(&self, view: &ViewDef) -> Option<String> {
        Some(view.query.clone())
    }
    fn index_as_seen(&self, _: &IndexDef) -> Option<IndexDef> {
        None
    }
    fn updatable_columns(&self, view: &Arc<ViewDef>) -> Vec<bool> {
        vec![true; view.columns.len()]
    }
    fn database_activity(&self, _: Oid) -> DatabaseActivity {
        DatabaseActivity::default()
    }
    fn table_activity(&self, _: Oid) -> TableActivity {
        TableActivity {
            inserted: 4,
            live_rows: 3,
            ..TableActivity::default()
        }
    }
    fn waits(&self) -> Vec<WaitInfo> {
        vec![WaitInfo {
            event_type: "Lock",
            event: "tuple",
            object: Some("row (0,1) of table orders".into()),
            waiter: "session",
            count: 3,
            total_nanos: 6_000_500,
            holder: HolderInfo {
                pid: Some(7),
                user: Some(builtin::SUPERUSER),
                does: Some("update orders".into()),
                ..HolderInfo::default()
            },
            ..WaitInfo::default()
        }]
    }
    fn waiting_now(&self) -> Vec<WaitingInfo> {
        vec![WaitingInfo {
            waited_nanos: Some(1_234_567),
            holder_pids: vec![7, 8],
            ..WaitingInfo::default()
        }]
    }
    fn structures(&self) -> Vec<StructureInfo> {
        vec![StructureInfo {
            calls: 4,
            total_nanos: 8e6,
            share: Some(0.0123456),
            ..StructureInfo::default()
        }]
    }
    fn now(&self) -> i64 {
        0
    }
    fn moment(&self, text: &str) -> Option<i64> {
        (text == "infinity").then_some(i64::MAX)
    }
}

const CUSTOMERS: Oid = Oid(16384);
const ORDERS: Oid = Oid(16385);
const CUSTOMERS_PKEY: Oid = Oid(16386);
const ORDERS_SEQUENCE: Oid = Oid(16387);
const ORDERS_KEY: Oid = Oid(16388);
const READER: Oid = Oid(16389);

fn table(oid: Oid, name: &str, columns: Vec<ColumnDef>) -> TableDef {
    TableDef {
        oid,
        schema: builtin::PUBLIC,
        name: name.into(),
        owner: builtin::SUPERUSER,
        file: FileId(oid.0),
        columns,
        persistence: Persistence::Permanent,
        options: vec![("fillfactor".into(), "90".into())],
        parents: vec![],
        partitioned: None,
        bound: None,
        detaching: None,
        materialized: None,
        keys_off: vec![],
        row_security: Default::default(),
        array_name: None,
        replica_identity: crate::ReplicaIdentity::Default,
    }
}

fn index(oid: Oid, name: &str, table: Oid, attnum: u16, constraint: Option<Oid>) -> IndexDef {
    IndexDef {
        oid,
        schema: builtin::PUBLIC,
        name: name.into(),
        table,
        file: FileId(oid.0),
        columns: vec![IndexColumn {
            attnum,
            descending: constraint.is_none(),
            nulls_first: true,
        }],
        unique: constraint.is_some(),
        primary: constraint.is_some(),
        nulls_not_distinct: false,
        clustered: false,
        constraint,
        options: vec![],
        parent: None,
        terms: crate::IndexTerms::default(),
        targets: vec![],
    }
}

fn constraint(oid: u32, name: &str, table: Oid, kind: ConstraintKind) -> ConstraintDef {
    ConstraintDef {
        deferral: Default::default(),
        oid: Oid(oid),
        name: name.into(),
        table,
        kind,
        validated: true,
        lineage: Lineage::default(),
    }
}

/// `customers (id int primary key, "Name" varchar(20) default 'x')` and `orders (id serial,
/// dropped, customer int references customers, kind always identity, check (id > 0))`, indexed by
/// customer.
fn small() -> Catalog {
    let id = ColumnDef {
        not_null: true,
        ..ColumnDef::new("id", SqlType::INT4)
    };
    let name = ColumnDef {
        default: Some("'it''s'".into()),
        missing: Some("x".into()),
        collation: Some("C".into()),
        ..ColumnDef::new("Name", SqlType::new(oid::VARCHAR, 24))
    };
    let mut serial = id.clone();
    serial.sequence = Some(ORDERS_SEQUENCE);
    let dropped = ColumnDef {
        dropped: true,
        ..ColumnDef::new("gone", SqlType::TEXT)
    };
    let customer = ColumnDef::new("customer", SqlType::INT4);
    let kind = ColumnDef {
        identity: Some(Identity::Always),
        ..ColumnDef::new("kind", SqlType::INT8)
    };
    let sequence = SequenceDef {
        oid: ORDERS_SEQUENCE,
        schema: builtin::PUBLIC,
        name: "orders_id_seq".into(),
        owner: builtin::SUPERUSER,
        file: FileId(9),
        ty: oid::INT4,
        start: 1,
        increment: 1,
        min: 1,
        max: i32::MAX.into(),
        cache: 1,
        cycle: false,
        owned_by: Some((ORDERS, 1)),
        identity: false,
    };
    let key = ForeignKey {
        columns: vec![3],
        ref_table: CUSTOMERS,
        ref_columns: vec![1],
        ref_index: CUSTOMERS_PKEY,
        on_update: FkAction::NoAction,
        on_delete: FkAction::Cascade,
        match_full: false,
        period: false,
    };
    let check = ConstraintKind::Check {
        expr: "id > 0".into(),
        columns: vec![1],
    };
    let stats = StatsDef {
        oid: Oid(16400),
        table: CUSTOMERS,
        rows: 100.0,
        pages: 3,
        columns: vec![
            ColumnStats {
                distinct: 100.0,
                width: 4,
                ..ColumnStats::default()
            };
            2
        ],
        family: None,
    };
    let comment = CommentDef {
        oid: Oid(16401),
        class: builtin::class::RELATION,
        object: ORDERS,
        column: 1,
        text: "a number".into(),
    };
    let reader = RoleDef {
        valid_until: Some("infinity".into()),
        password: Some("SCRAM-SHA-256$".into()),
        settings: vec![("work_mem".into(), "1MB".into())],
        ..RoleDef::new(READER, "reader")
    };
    let primary = ConstraintKind::PrimaryKey {
        index: CUSTOMERS_PKEY,
    };
    let mut objects = Catalog::initial_objects();
    let membership = MembershipDef {
        oid: Oid(16402),
        role: builtin::SUPERUSER,
        member: READER,
        grantor: builtin::SUPERUSER,
        admin: false,
        inherit: true,
        set: true,
    };
    objects.push(membership.into());
    objects.extend([
        table(CUSTOMERS, "customers", vec![id, name]).into(),
        table(ORDERS, "orders", vec![serial, dropped, customer, kind]).into(),
        index(
            CUSTOMERS_PKEY,
            "customers_pkey",
            CUSTOMERS,
            1,
            Some(Oid(16390)),
        )
        .into(),
        index(ORDERS_KEY, "orders_customer_idx", ORDERS, 3, None).into(),
        sequence.into(),
        constraint(16390, "customers_pkey", CUSTOMERS, primary).into(),
        constraint(
            16391,
            "orders_customer_fkey",
            ORDERS,
            ConstraintKind::ForeignKey(key),
        )
        .into(),
        constraint(16392, "orders_id_check", ORDERS, check).into(),
        stats.into(),
        comment.into(),
        reader.into(),
    ]);
    Catalog::load(builtin::DATABASE, objects)
}

/// Could a column of that type hold the value?
fn fits(value: &Datum, ty: Oid) -> bool {
    use oid::*;
    match value {
        Datum::Null => true,
        Datum::Bool(_) => ty == BOOL,
        Datum::Char(_) => ty == CHAR,
        Datum::Int2(_) => ty == INT2,
        Datum::Int4(_) => ty == INT4,
        Datum::Int8(_) => ty == INT8,
        Datum::Float4(_) => ty == FLOAT4,
        Datum::Float8(_) => ty == FLOAT8,
        Datum::Numeric(_) => ty == NUMERIC,
        Datum::Text(_) => matches!(ty, TEXT | NAME | VARCHAR | PG_NODE_TREE | ACLITEM),
        Datum::Oid(_) => matches!(ty, OID | REGPROC | REGTYPE | XID | REGCLASS),
        Datum::Bytea(_) => ty == BYTEA,
        Datum::TimestampTz(_) => ty == TIMESTAMPTZ,
        Datum::Interval(_) => ty == INTERVAL,
        Datum::Array(array) => {
            let element = element_of(ty);
            (ty == ANYARRAY || element == Some(array.element))
                && array.items.iter().all(|item| fits(item, array.element))
        }
        _ => false,
    }
}

#[test]
fn every_row_has_the_columns_declared() {
    let catalog = small();
    for table in all() {
        for (_, ty) in table.columns {
            assert!(
                type_info(ty.oid).is_some(),
                "{}: no type {}",
                table.name,
                ty.oid
            );
        }
        for row in rows_of(table, &catalog, &Quiet(builtin::SUPERUSER)) {
            assert_eq!(row.len(), table.columns.len(), "{}", table.name);
            for (value, (column, ty)) in row.iter().zip(table.columns) {
                assert!(fits(value, ty.oid), "{}.{column}: {value:?}", table.name);
            }
        }
    }
}

/// The rows as they are read, piece by piece: those that come at once, in another order.
fn rows_of(table: &VirtualTable, catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let mut left = table.all(catalog);
    let read = std::iter::from_fn(|| table.next_rows(&mut left, catalog, state));
    let rows: Rows = read.flatten().collect();
    let sorted = |rows: &Rows| {
        let mut told: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
        told.sort_unstable();
        told
    };
    assert_eq!(sorted(&rows), sorted(&(table.rows)(catalog, state)));
    for (column, key) in table.key_columns() {
        let place = column as usize - 1;
        for wanted in &rows {
            let mut left = table.by_key(key, &wanted[place..=place], catalog);
            let read = std::iter::from_fn(|| table.next_rows(&mut left, catalog, state));
            let mut found = read.flatten().filter(|row| row[place] == wanted[place]);
            assert!(
                found.any(|row| row == *wanted),
                "{}: {wanted:?}",
                table.name
            );
        }
    }
    rows
}

/// Rows of a relation, only the columns named, those that fulfil `wanted` by those columns.
fn select(name: &str, columns: &[&str], wanted: impl Fn(&[Datum]) -> bool) -> Vec<Vec<Datum>> {
    let found = builtin::RELATION_SCHEMAS
        .into_iter()
        .find_map(|schema| find(schema, name));
    let table = found.unwrap_or_else(|| panic!("no relation {name}"));
    let places: Vec<usize> = columns
        .iter()
        .map(|c| {
            table
                .columns
                .iter()
                .position(|(n, _)| n == c)
                .expect("a column")
        })
        .collect();
    let rows = rows_of(table, &small(), &Quiet(builtin::SUPERUSER)).into_iter();
    rows.map(|row| places.iter().map(|i| row[*i].clone()).collect::<Vec<_>>())
        .filter(|row| wanted(row))
        .collect()
}

#[test]
fn oids_and_names_are_given_once() {
    let mut oids = std::collections::HashSet::new();
    let mut names = std::collections::HashSet::new();
    for table in all() {
        assert!(oids.insert(table.oid), "{}", table.oid);
        assert!(names.insert((table.schema, table.name)), "{}", table.name);
    }
}

#[test]
fn relations_list_themselves() {
    let kind = |oid: u32| {
        let rows = select("pg_class", &["oid", "relkind"], |row| {
            row[0] == Datum::Oid(oid)
        });
        assert_eq!(rows.len(), 1);
        rows[0][1].clone()
    };
    assert_eq!(kind(1259), Datum::Char(b'r'));
    assert_eq!(kind(12000), Datum::Char(b'v'));
    assert_eq!(kind(ORDERS.0), Datum::Char(b'r'));
    assert_eq!(kind(ORDERS_KEY.0), Datum::Char(b'i'));
    assert_eq!(kind(ORDERS_SEQUENCE.0), Datum::Char(b'S'));
    let of_class = select("pg_attribute", &["attrelid", "attname"], |row| {
        row[0] == Datum::Oid(1259)
    });
    assert_eq!(of_class.len(), by_oid(Oid(1259)).unwrap().columns.len());
}

#[test]
fn columns_keep_their_numbers() {
    let columns = [
        "attrelid",
        "attnum",
        "attname",
        "atttypid",
        "attisdropped",
        "atthasdef",
    ];
    let rows = select("pg_attribute", &columns, |row| {
        row[0] == ORDERS.into() && row[1].as_i64() > Some(0)
    });
    let shown: Vec<(&str, u32, bool, bool)> = rows
        .iter()
        .map(|row| {
            let ty = row[3].as_i64().unwrap() as u32;
            (
                row[2].as_str().unwrap(),
                ty,
                row[4].is_true(),
                row[5].is_true(),
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("id", 23, false, true),
            ("........pg.dropped.2........", 0, true, false),
            ("customer", 23, false, false),
            ("kind", 20, false, false),
        ]
    );
    let defaults = select("pg_attrdef", &["adrelid", "adbin"], |row| {
        row[0] == ORDERS.into()
    });
    assert_eq!(
        defaults[0][1],
        "nextval('public.orders_id_seq'::regclass)".into()
    );
    let defaults = select("pg_attrdef", &["adrelid", "adbin"], |row| {
        row[0] == CUSTOMERS.into()
    });
    assert_eq!(defaults[0][1], "'it''s'::character varying".into());
}

#[test]
fn constraints_are_spelled_out() {
    let catalog = small();
    let name = |table| definition::relation_name(&catalog, table);
    let shown = |oid: u32| {
        let def = catalog.constraint(Oid(oid)).expect("a constraint");
        definition::constraint_definition(&catalog, def, &name)
    };
    assert_eq!(shown(16390), "PRIMARY KEY (id)");
    assert_eq!(
        shown(16391),
        "FOREIGN KEY (customer) REFERENCES customers(id) ON DELETE CASCADE"
    );
    assert_eq!(shown(16392), "CHECK (id > 0)");
    let not_null = definition::not_null_oid(ORDERS, 1);
    let (table, attnum) = definition::not_null_column(&catalog, not_null).expect("one");
    assert_eq!((table.oid, attnum), (ORDERS, 1));
    assert_eq!(
        definition::not_null_definition(table, attnum),
        "NOT NULL id"
    );
    let kinds = select("pg_constraint", &["conrelid", "contype"], |r| {
        r[0] == ORDERS.into()
    });
    let kinds: Vec<&Datum> = kinds.iter().map(|r| &r[1]).collect();
    assert_eq!(
        kinds,
        [&Datum::Char(b'f'), &Datum::Char(b'c'), &Datum::Char(b'n')]
    );
    let operators = select("pg_constraint", &["contype", "conpfeqop"], |r| {
        r[0] == Datum::Char(b'f')
    });
    let int4_equal = Array::from_items(oid::OID, vec![Datum::Oid(96)]);
    assert_eq!(operators[0][1], Datum::array(int4_equal));
}

#[test]
fn indexes_are_spelled_out() {
    let catalog = small();
    let shown = |oid, qualify| {
        definition::index_definition(&catalog, catalog.index(oid).expect("an index"), qualify)
    };
    assert_eq!(
        shown(CUSTOMERS_PKEY, true),
        "CREATE UNIQUE INDEX customers_pkey ON public.customers USING btree (id NULLS FIRST)"
    );
    assert_eq!(
        shown(ORDERS_KEY, false),
        "CREATE INDEX orders_customer_idx ON orders USING btree (customer DESC)"
    );
    let options = select(
        "pg_index",
        &["indexrelid", "indoption", "indclass"],
        |row| row[0] == ORDERS_KEY.into(),
    );
    assert_eq!(
        options[0][1],
        Datum::array(Array::vector(oid::INT2, vec![Datum::Int2(3)]))
    );
    assert_eq!(
        options[0][2],
        Datum::array(Array::vector(oid::OID, vec![Datum::Oid(1978)]))
    );
}

#[test]
fn a_serial_columns_sequence_depends_on_it() {
    let rows = select(
        "pg_depend",
        &["objid", "refobjid", "refobjsubid", "deptype"],
        |row| row[0] == ORDERS_SEQUENCE.into() && row[1] == ORDERS.into(),
    );
    assert_eq!(rows[0][2..], [Datum::Int4(1), Datum::Char(b'a')]);
}

/// Every oid a catalog names functions and types by is there.
#[test]
fn references_lead_somewhere() {
    let known = |oid: &Datum| {
        let oid = Oid(oid.as_i64().unwrap() as u32);
        oid == Oid::NONE || routine::procedure(oid).is_some()
    };
    let forms = [
        "typinput",
        "typoutput",
        "typreceive",
        "typsend",
        "typmodin",
        "typsubscript",
    ];
    for row in select("pg_type", &forms, |_| true) {
        assert!(row.iter().all(known), "{row:?}");
    }
    for row in select("pg_operator", &["oprcode"], |_| true) {
        assert!(known(&row[0]), "{row:?}");
    }
    for row in select("pg_proc", &["prorettype"], |_| true) {
        let ty = Oid(row[0].as_i64().unwrap() as u32);
        assert!(type_info(ty).is_some(), "{ty}");
    }
    let families: Vec<Datum> = select("pg_opfamily", &["oid"], |_| true)
        .into_iter()
        .flatten()
        .collect();
    for row in select("pg_amop", &["amopfamily"], |_| true) {
        assert!(families.contains(&row[0]));
    }
}

#[test]
fn a_reader_who_is_no_superuser_sees_no_verifier() {
    let rows = select("pg_authid", &["rolname", "rolpassword"], |r| {
        r[0] == "reader".into()
    });
    assert_eq!(rows[0][1], "SCRAM-SHA-256$".into());
    let table = find(builtin::PG_CATALOG, "pg_authid").expect("pg_authid");
    let password = table
        .columns
        .iter()
        .position(|(n, _)| *n == "rolpassword")
        .unwrap();
    assert!(
        rows_of(table, &small(), &Quiet(READER))
            .iter()
            .all(|row| row[password].is_null())
    );
    let activity = find(builtin::PG_CATALOG, "pg_stat_activity").expect("pg_stat_activity");
    let query = activity
        .columns
        .iter()
        .position(|(n, _)| *n == "query")
        .unwrap();
    let rows = rows_of(activity, &small(), &Quiet(READER));
    assert_eq!(rows[0][query], "<insufficient privilege>".into());
}

#[test]
fn waits_are_told_in_units_one_can_read_and_statements_to_those_who_may() {
    let columns = ["total_ms", "avg_us", "holder", "holder_runs"];
    let told = select("waits", &columns, |_| true);
    let number = Datum::Float8;
    assert_eq!(
        told,
        [[
            number(6.001),
            number(2000.2),
            7.into(),
            "update orders".into()
        ]]
    );
    let table = find(builtin::THRONG, "waits").expect("throng.waits");
    let others = rows_of(table, &small(), &Quiet(READER));
    let runs = table
        .columns
        .iter()
        .position(|(name, _)| *name == "holder_runs");
    assert_eq!(
        others[0][runs.expect("a column")],
        Datum::from("<insufficient privilege>")
    );
    let now = select("waiting_now", &["waited_ms"], |_| true);
    assert_eq!(now, [[number(1.235)]]);
    let structures = select("structures", &["avg_us", "percent_of_running"], |_| true);
    assert_eq!(structures, [[number(2000.0), number(1.235)]]);
}
