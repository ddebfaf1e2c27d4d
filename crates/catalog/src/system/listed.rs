//! Indexes and toast tables of the catalogs, as PostgreSQL lists its own: those who read a catalog
//! look there for its key.
//!
//! They are listed and nothing else: a catalog's rows are computed, so no index finds one of them
//! and none is kept elsewhere.

use std::sync::LazyLock;

use throng_types::{Array, Datum, Oid, SqlType, oid};

use super::attribute::Attribute;
use super::relation::Class;
use super::{Rows, SystemState, VirtualTable, all, by_oid, definition, operator_class, row, types};
use crate::{Catalog, Relation, acl, builtin};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Unique,
    Primary,
}
use Kind::{Plain, Primary, Unique};

/// An index: its oid, its table's, its name, what it is, and its columns.
pub struct ListedIndex(u32, u32, &'static str, Kind, &'static [i16]);

/// By table.
const INDEXES: &[ListedIndex] = &[
    ListedIndex(
        827,
        826,
        "pg_default_acl_role_nsp_obj_index",
        Unique,
        &[2, 3, 4],
    ),
    ListedIndex(828, 826, "pg_default_acl_oid_index", Primary, &[1]),
    ListedIndex(2697, 1213, "pg_tablespace_oid_index", Primary, &[1]),
    ListedIndex(2698, 1213, "pg_tablespace_spcname_index", Unique, &[2]),
    ListedIndex(
        1232,
        1214,
        "pg_shdepend_depender_index",
        Plain,
        &[1, 2, 3, 4],
    ),
    ListedIndex(1233, 1214, "pg_shdepend_reference_index", Plain, &[5, 6]),
    ListedIndex(2703, 1247, "pg_type_oid_index", Primary, &[1]),
    ListedIndex(2704, 1247, "pg_type_typname_nsp_index", Unique, &[2, 3]),
    ListedIndex(
        2658,
        1249,
        "pg_attribute_relid_attnam_index",
        Unique,
        &[1, 2],
    ),
    ListedIndex(
        2659,
        1249,
        "pg_attribute_relid_attnum_index",
        Primary,
        &[1, 5],
    ),
    ListedIndex(2690, 1255, "pg_proc_oid_index", Primary, &[1]),
    ListedIndex(
        2691,
        1255,
        "pg_proc_proname_args_nsp_index",
        Unique,
        &[2, 20, 3],
    ),
    ListedIndex(2662, 1259, "pg_class_oid_index", Primary, &[1]),
    ListedIndex(2663, 1259, "pg_class_relname_nsp_index", Unique, &[2, 3]),
    ListedIndex(
        3455,
        1259,
        "pg_class_tblspc_relfilenode_index",
        Plain,
        &[9, 8],
    ),
    ListedIndex(2676, 1260, "pg_authid_rolname_index", Unique, &[2]),
    ListedIndex(2677, 1260, "pg_authid_oid_index", Primary, &[1]),
    ListedIndex(
        2694,
        1261,
        "pg_auth_members_role_member_index",
        Unique,
        &[2, 3, 4],
    ),
    ListedIndex(
        2695,
        1261,
        "pg_auth_members_member_role_index",
        Unique,
        &[3, 2, 4],
    ),
    ListedIndex(6302, 1261, "pg_auth_members_grantor_index", Plain, &[4]),
    ListedIndex(6303, 1261, "pg_auth_members_oid_index", Primary, &[1]),
    ListedIndex(2671, 1262, "pg_database_datname_index", Unique, &[2]),
    ListedIndex(2672, 1262, "pg_database_oid_index", Primary, &[1]),
    ListedIndex(113, 1417, "pg_foreign_server_oid_index", Primary, &[1]),
    ListedIndex(549, 1417, "pg_foreign_server_name_index", Unique, &[2]),
    ListedIndex(174, 1418, "pg_user_mapping_oid_index", Primary, &[1]),
    ListedIndex(
        175,
        1418,
        "pg_user_mapping_user_server_index",
        Unique,
        &[2, 3],
    ),
    ListedIndex(5002, 2224, "pg_sequence_seqrelid_index", Primary, &[1]),
    ListedIndex(
        112,
        2328,
        "pg_foreign_data_wrapper_oid_index",
        Primary,
        &[1],
    ),
    ListedIndex(
        548,
        2328,
        "pg_foreign_data_wrapper_name_index",
        Unique,
        &[2],
    ),
    ListedIndex(2397, 2396, "pg_shdescription_o_c_index", Primary, &[1, 2]),
    ListedIndex(2650, 2600, "pg_aggregate_fnoid_index", Primary, &[1]),
    ListedIndex(2651, 2601, "pg_am_name_index", Unique, &[2]),
    ListedIndex(2652, 2601, "pg_am_oid_index", Primary, &[1]),
    ListedIndex(2653, 2602, "pg_amop_fam_strat_index", Unique, &[2, 3, 4, 5]),
    ListedIndex(2654, 2602, "pg_amop_opr_fam_index", Unique, &[7, 6, 2]),
    ListedIndex(2756, 2602, "pg_amop_oid_index", Primary, &[1]),
    ListedIndex(
        2655,
        2603,
        "pg_amproc_fam_proc_index",
        Unique,
        &[2, 3, 4, 5],
    ),
    ListedIndex(2757, 2603, "pg_amproc_oid_index", Primary, &[1]),
    ListedIndex(
        2656,
        2604,
        "pg_attrdef_adrelid_adnum_index",
        Unique,
        &[2, 3],
    ),
    ListedIndex(2657, 2604, "pg_attrdef_oid_index", Primary, &[1]),
    ListedIndex(2660, 2605, "pg_cast_oid_index", Primary, &[1]),
    ListedIndex(2661, 2605, "pg_cast_source_target_index", Unique, &[2, 3]),
    ListedIndex(2579, 2606, "pg_constraint_conparentid_index", Plain, &[12]),
    ListedIndex(
        2664,
        2606,
        "pg_constraint_conname_nsp_index",
        Plain,
        &[2, 3],
    ),
    ListedIndex(
        2665,
        2606,
        "pg_constraint_conrelid_contypid_conname_index",
        Unique,
        &[9, 10, 2],
    ),
    ListedIndex(2666, 2606, "pg_constraint_contypid_index", Plain, &[10]),
    ListedIndex(2667, 2606, "pg_constraint_oid_index", Primary, &[1]),
    ListedIndex(
        2668,
        2607,
        "pg_conversion_default_index",
        Unique,
        &[3, 5, 6, 1],
    ),
    ListedIndex(2669, 2607, "pg_conversion_name_nsp_index", Unique, &[2, 3]),
    ListedIndex(2670, 2607, "pg_conversion_oid_index", Primary, &[1]),
    ListedIndex(2673, 2608, "pg_depend_depender_index", Plain, &[1, 2, 3]),
    ListedIndex(2674, 2608, "pg_depend_reference_index", Plain, &[4, 5, 6]),
    ListedIndex(
        2675,
        2609,
        "pg_description_o_c_o_index",
        Primary,
        &[1, 2, 3],
    ),
    ListedIndex(2678, 2610, "pg_index_indrelid_index", Plain, &[2]),
    ListedIndex(2679, 2610, "pg_index_indexrelid_index", Primary, &[1]),
    ListedIndex(2187, 2611, "pg_inherits_parent_index", Plain, &[2]),
    ListedIndex(
        2680,
        2611,
        "pg_inherits_relid_seqno_index",
        Primary,
        &[1, 3],
    ),
    ListedIndex(2681, 2612, "pg_language_name_index", Unique, &[2]),
    ListedIndex(2682, 2612, "pg_language_oid_index", Primary, &[1]),
    ListedIndex(2683, 2613, "pg_largeobject_loid_pn_index", Primary, &[1, 2]),
    ListedIndex(2684, 2615, "pg_namespace_nspname_index", Unique, &[2]),
    ListedIndex(2685, 2615, "pg_namespace_oid_index", Primary, &[1]),
    ListedIndex(
        2686,
        2616,
        "pg_opclass_am_name_nsp_index",
        Unique,
        &[2, 3, 4],
    ),
    ListedIndex(2687, 2616, "pg_opclass_oid_index", Primary, &[1]),
    ListedIndex(2688, 2617, "pg_operator_oid_index", Primary, &[1]),
    ListedIndex(
        2689,
        2617,
        "pg_operator_oprname_l_r_n_index",
        Unique,
        &[2, 8, 9, 3],
    ),
    ListedIndex(2692, 2618, "pg_rewrite_oid_index", Primary, &[1]),
    ListedIndex(2693, 2618, "pg_rewrite_rel_rulename_index", Unique, &[3, 2]),
    ListedIndex(
        2696,
        2619,
        "pg_statistic_relid_att_inh_index",
        Primary,
        &[1, 2, 3],
    ),
    ListedIndex(2699, 2620, "pg_trigger_tgconstraint_index", Plain, &[11]),
    ListedIndex(
        2701,
        2620,
        "pg_trigger_tgrelid_tgname_index",
        Unique,
        &[2, 4],
    ),
    ListedIndex(2702, 2620, "pg_trigger_oid_index", Primary, &[1]),
    ListedIndex(
        2754,
        2753,
        "pg_opfamily_am_name_nsp_index",
        Unique,
        &[2, 3, 4],
    ),
    ListedIndex(2755, 2753, "pg_opfamily_oid_index", Primary, &[1]),
    ListedIndex(
        2965,
        2964,
        "pg_db_role_setting_databaseid_rol_index",
        Primary,
        &[1, 2],
    ),
    ListedIndex(
        2996,
        2995,
        "pg_largeobject_metadata_oid_index",
        Primary,
        &[1],
    ),
    ListedIndex(3080, 3079, "pg_extension_oid_index", Primary, &[1]),
    ListedIndex(3081, 3079, "pg_extension_name_index", Unique, &[2]),
    ListedIndex(3119, 3118, "pg_foreign_table_relid_index", Primary, &[1]),
    ListedIndex(3257, 3256, "pg_policy_oid_index", Primary, &[1]),
    ListedIndex(
        3258,
        3256,
        "pg_policy_polrelid_polname_index",
        Unique,
        &[3, 2],
    ),
    ListedIndex(
        3351,
        3350,
        "pg_partitioned_table_partrelid_index",
        Primary,
        &[1],
    ),
    ListedIndex(3379, 3381, "pg_statistic_ext_relid_index", Plain, &[2]),
    ListedIndex(3380, 3381, "pg_statistic_ext_oid_index", Primary, &[1]),
    ListedIndex(3997, 3381, "pg_statistic_ext_name_index", Unique, &[3, 4]),
    ListedIndex(3395, 3394, "pg_init_privs_o_c_o_index", Primary, &[1, 2, 3]),
    ListedIndex(
        3433,
        3429,
        "pg_statistic_ext_data_stxoid_inh_index",
        Primary,
        &[1, 2],
    ),
    ListedIndex(3085, 3456, "pg_collation_oid_index", Primary, &[1]),
    ListedIndex(
        3164,
        3456,
        "pg_collation_name_enc_nsp_index",
        Unique,
        &[2, 7, 3],
    ),
    ListedIndex(3467, 3466, "pg_event_trigger_evtname_index", Unique, &[2]),
    ListedIndex(3468, 3466, "pg_event_trigger_oid_index", Primary, &[1]),
    ListedIndex(3502, 3501, "pg_enum_oid_index", Primary, &[1]),
    ListedIndex(3503, 3501, "pg_enum_typid_label_index", Unique, &[2, 4]),
    ListedIndex(3534, 3501, "pg_enum_typid_sortorder_index", Unique, &[2, 3]),
    ListedIndex(2228, 3541, "pg_range_rngmultitypid_index", Unique, &[3]),
    ListedIndex(3542, 3541, "pg_range_rngtypid_index", Primary, &[1]),
    ListedIndex(3574, 3576, "pg_transform_oid_index", Primary, &[1]),
    ListedIndex(3575, 3576, "pg_transform_type_lang_index", Unique, &[2, 3]),
    ListedIndex(
        3593,
        3592,
        "pg_shseclabel_object_index",
        Primary,
        &[1, 2, 3],
    ),
    ListedIndex(
        3597,
        3596,
        "pg_seclabel_object_index",
        Primary,
        &[1, 2, 3, 4],
    ),
    ListedIndex(3604, 3600, "pg_ts_dict_dictname_index", Unique, &[2, 3]),
    ListedIndex(3605, 3600, "pg_ts_dict_oid_index", Primary, &[1]),
    ListedIndex(3606, 3601, "pg_ts_parser_prsname_index", Unique, &[2, 3]),
    ListedIndex(3607, 3601, "pg_ts_parser_oid_index", Primary, &[1]),
    ListedIndex(3608, 3602, "pg_ts_config_cfgname_index", Unique, &[2, 3]),
    ListedIndex(3712, 3602, "pg_ts_config_oid_index", Primary, &[1]),
    ListedIndex(3609, 3603, "pg_ts_config_map_index", Primary, &[1, 2, 3]),
    ListedIndex(3766, 3764, "pg_ts_template_tmplname_index", Unique, &[2, 3]),
    ListedIndex(3767, 3764, "pg_ts_template_oid_index", Primary, &[1]),
    ListedIndex(
        6001,
        6000,
        "pg_replication_origin_roiident_index",
        Primary,
        &[1],
    ),
    ListedIndex(
        6002,
        6000,
        "pg_replication_origin_roname_index",
        Unique,
        &[2],
    ),
    ListedIndex(6114, 6100, "pg_subscription_oid_index", Primary, &[1]),
    ListedIndex(6115, 6100, "pg_subscription_subname_index", Unique, &[2, 4]),
    ListedIndex(
        6117,
        6102,
        "pg_subscription_rel_srrelid_srsubid_index",
        Primary,
        &[2, 1],
    ),
    ListedIndex(6110, 6104, "pg_publication_oid_index", Primary, &[1]),
    ListedIndex(6111, 6104, "pg_publication_pubname_index", Unique, &[2]),
    ListedIndex(6112, 6106, "pg_publication_rel_oid_index", Primary, &[1]),
    ListedIndex(
        6113,
        6106,
        "pg_publication_rel_prrelid_prpubid_index",
        Unique,
        &[3, 2],
    ),
    ListedIndex(6116, 6106, "pg_publication_rel_prpubid_index", Plain, &[2]),
    ListedIndex(
        6238,
        6237,
        "pg_publication_namespace_oid_index",
        Primary,
        &[1],
    ),
    ListedIndex(
        6239,
        6237,
        "pg_publication_namespace_pnnspid_pnpubid_index",
        Unique,
        &[3, 2],
    ),
    ListedIndex(6246, 6243, "pg_parameter_acl_parname_index", Unique, &[2]),
    ListedIndex(6247, 6243, "pg_parameter_acl_oid_index", Primary, &[1]),
];

/// A catalog with values that may be long; its toast table and that one's index.
const TOAST: &[(u32, u32, u32)] = &[
    (826, 4143, 4144),
    (1213, 4185, 4186),
    (1247, 4171, 4172),
    (1255, 2836, 2837),
    (1262, 4177, 4178),
    (1417, 4151, 4152),
    (1418, 4173, 4174),
    (2328, 4149, 4150),
    (2396, 2846, 2847),
    (2600, 4159, 4160),
    (2604, 2830, 2831),
    (2606, 2832, 2833),
    (2609, 2834, 2835),
    (2610, 6351, 6352),
    (2612, 4157, 4158),
    (2615, 4163, 4164),
    (2618, 2838, 2839),
    (2619, 2840, 2841),
    (2620, 2336, 2337),
    (2964, 2966, 2967),
    (3079, 4147, 4148),
    (3118, 4153, 4154),
    (3256, 4167, 4168),
    (3350, 4165, 4166),
    (3381, 3439, 3440),
    (3394, 4155, 4156),
    (3429, 3430, 3431),
    (3456, 6175, 6176),
    (3466, 4145, 4146),
    (3592, 4060, 4061),
    (3596, 3598, 3599),
    (3600, 4169, 4170),
    (6100, 4183, 4184),
    (6106, 6228, 6229),
    (6243, 6244, 6245),
];

/// A toast table's columns.
const TOAST_COLUMNS: [(&str, SqlType); 3] = [
    ("chunk_id", SqlType::OID),
    ("chunk_seq", SqlType::INT4),
    ("chunk_data", SqlType::plain(oid::BYTEA)),
];

/// The toast table that a catalog has, else 0.
pub(super) fn toast_of(table: Oid) -> Oid {
    let found = TOAST.binary_search_by_key(&table.0, |(table, ..)| *table);
    found.map_or(Oid::NONE, |at| Oid(TOAST[at].1))
}

pub(super) fn has_index(table: Oid) -> bool {
    let found = INDEXES.binary_search_by_key(&table.0, |index| index.1);
    found.is_ok()
}

/// The listed index with that oid.
pub fn index(oid: Oid) -> Option<&'static ListedIndex> {
    INDEXES.iter().find(|index| index.0 == oid.0)
}

impl ListedIndex {
    fn table(&self) -> Option<&'static VirtualTable> {
        by_oid(Oid(self.1))
    }

    fn columns(&self) -> impl Iterator<Item = (&'static str, SqlType)> {
        let all = self.table().map_or(&[][..], |t| t.columns);
        let place = |n: &i16| usize::try_from(*n - 1).ok();
        self.4
            .iter()
            .filter_map(move |n| all.get(place(n)?).copied())
    }

    pub fn name(&self) -> &'static str {
        self.2
    }

    /// The name of the column at a place, counting from 0.
    pub fn column(&self, place: usize) -> Option<&'static str> {
        self.columns().nth(place).map(|(name, _)| name)
    }

    /// `CREATE INDEX …`.
    pub fn definition(&self, catalog: &Catalog) -> String {
        let unique = match self.3 {
            Plain => "",
            Unique | Primary => "UNIQUE ",
        };
        let table = self.table().map_or("", |t| t.name);
        let table = definition::qualified_name(catalog, builtin::PG_CATALOG, table);
        let columns: Vec<&str> = self.columns().map(|(name, _)| name).collect();
        let columns = columns.join(", ");
        let name = self.2;
        format!("CREATE {unique}INDEX {name} ON {table} USING btree ({columns})")
    }

    fn row(&self) -> Vec<Datum> {
        let types: Vec<SqlType> = self.columns().map(|(_, ty)| ty).collect();
        let class = |ty: &SqlType| operator_class::default_for(ty.oid).into();
        index_row(
            (Oid(self.0), Oid(self.1), self.3),
            self.4,
            types
                .iter()
                .map(|ty| types::collation(ty.oid).into())
                .collect(),
            types.iter().map(class).collect(),
        )
    }
}

/// Oids of the constraints that unique indexes stand for, in the order of the indexes; PostgreSQL
/// gives them out when a cluster is made.
const FIRST_CONSTRAINT: u32 = 10_400;

/// Unique indexes with their constraints' oids.
fn constraints() -> impl Iterator<Item = (Oid, &'static ListedIndex)> {
    let unique = INDEXES.iter().filter(|index| index.3 != Plain);
    (FIRST_CONSTRAINT..).map(Oid).zip(unique)
}

/// The table and the name of a listed constraint.
pub fn constrained(oid: Oid) -> Option<(Oid, &'static str)> {
    let (_, index) = constraints().find(|(constraint, _)| *constraint == oid)?;
    Some((Oid(index.1), index.2))
}

/// `PRIMARY KEY (…)`, of a listed constraint.
pub fn constraint_definition(oid: Oid) -> Option<String> {
    let (_, index) = constraints().find(|(constraint, _)| *constraint == oid)?;
    let what = match index.3 {
        Primary => "PRIMARY KEY",
        _ => "UNIQUE",
    };
    let columns: Vec<&str> = index.columns().map(|(name, _)| name).collect();
    Some(format!("{what} ({})", columns.join(", ")))
}

pub(super) fn pg_constraint() -> Rows {
    let row = |(oid, index): (Oid, &ListedIndex)| {
        let keys = index.4.iter().map(|n| (*n).into()).collect();
        let mut row = row![
            oid,
            index.2,
            builtin::PG_CATALOG,
            Datum::Char(if index.3 == Primary { b'p' } else { b'u' }),
            false,
            false,
            true,
            true,
            Oid(index.1),
            Oid::NONE,
            Oid(index.0),
            Oid::NONE,
            Oid::NONE,
            Datum::Char(b' '),
            Datum::Char(b' '),
            Datum::Char(b' '),
            true,
            0i16,
            true,
            false,
            Datum::array(Array::from_items(oid::INT2, keys)),
        ];
        // What only foreign keys, exclusions and CHECKs have.
        row.resize(row.len() + 7, Datum::Null);
        row
    };
    constraints().map(row).collect()
}

fn index_row(
    (index, table, kind): (Oid, Oid, Kind),
    keys: &[i16],
    collations: Vec<Datum>,
    classes: Vec<Datum>,
) -> Vec<Datum> {
    let vector = |element, items| Datum::array(Array::vector(element, items));
    let count = keys.len() as i16;
    row![
        index,
        table,
        count,
        count,
        kind != Plain,
        false,
        kind == Primary,
        false,
        true,
        false,
        true,
        false,
        true,
        true,
        false,
        vector(oid::INT2, keys.iter().map(|n| (*n).into()).collect()),
        vector(oid::OID, collations),
        vector(oid::OID, classes),
        vector(oid::INT2, keys.iter().map(|_| 0i16.into()).collect()),
        Datum::Null,
        Datum::Null,
    ]
}

fn toast_name(table: u32) -> String {
    format!("pg_toast_{table}")
}

fn toast_index_name(table: u32) -> String {
    format!("pg_toast_{table}_index")
}

pub(super) fn pg_class() -> Rows {
    let mut rows = Rows::new();
    for index in INDEXES {
        let schema = builtin::PG_CATALOG;
        rows.push(Class::listed(Oid(index.0), index.2, schema, b'i', index.4.len()).row());
    }
    for &(table, toast, index) in TOAST {
        let schema = builtin::PG_TOAST;
        let columns = TOAST_COLUMNS.len();
        rows.push(Class::listed(Oid(toast), &toast_name(table), schema, b't', columns).row());
        rows.push(Class::listed(Oid(index), &toast_index_name(table), schema, b'i', 2).row());
    }
    rows
}

pub(super) fn pg_index() -> Rows {
    let of_catalogs = INDEXES.iter().map(ListedIndex::row);
    let of_toast = TOAST.iter().map(|&(_, toast, index)| {
        let classes = [oid::OID, oid::INT4].map(|ty| operator_class::default_for(ty).into());
        let none = vec![Oid::NONE.into(); 2];
        index_row(
            (Oid(index), Oid(toast), Primary),
            &[1, 2],
            none,
            classes.into(),
        )
    });
    of_catalogs.chain(of_toast).collect()
}

static ATTRIBUTES: LazyLock<Rows> = LazyLock::new(|| {
    let mut rows = Rows::new();
    for index in INDEXES {
        for ((name, ty), number) in index.columns().zip(1..) {
            rows.push(Attribute::plain(Oid(index.0), number, name, ty).row());
        }
    }
    for &(_, toast, index) in TOAST {
        for ((name, ty), number) in TOAST_COLUMNS.into_iter().zip(1..) {
            rows.push(Attribute::plain(Oid(toast), number, name, ty).row());
        }
        for ((name, ty), number) in TOAST_COLUMNS.into_iter().take(2).zip(1..) {
            rows.push(Attribute::plain(Oid(index), number, name, ty).row());
        }
    }
    rows
});

pub(super) fn pg_attribute() -> Rows {
    ATTRIBUTES.clone()
}

/// The grants that virtual relations are born with.
pub(super) fn born_with(catalog: &Catalog, table: &'static VirtualTable) -> Datum {
    let items = catalog.relation_acl_born(&Relation::Virtual(table));
    acl::datum(catalog, Some(&items))
}

/// What relations that the server brings let others do from the start.
pub(super) fn pg_init_privs(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let listed = all().iter().map(|table| {
        row![
            table.oid,
            builtin::class::RELATION,
            0,
            Datum::Char(b'i'),
            born_with(catalog, table),
        ]
    });
    let open = [builtin::PG_CATALOG, builtin::INFORMATION_SCHEMA];
    let schemas = open.into_iter().map(|schema| {
        let items = catalog.schema_acl_born(schema);
        row![
            schema,
            builtin::class::NAMESPACE,
            0,
            Datum::Char(b'i'),
            acl::datum(catalog, Some(&items)),
        ]
    });
    listed.chain(schemas).collect()
}
