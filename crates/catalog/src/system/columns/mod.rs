//! What the virtual relations are called and which columns they have; nothing about their rows.

mod catalog;
mod catalog_rest;
mod information_schema;
mod statistic;
mod throng;
mod view;

use super::VirtualTable;

/// Every relation, by where it is listed.
pub(super) fn lists() -> [&'static [VirtualTable]; 6] {
    [
        catalog::TABLES,
        catalog_rest::TABLES,
        view::TABLES,
        statistic::TABLES,
        information_schema::TABLES,
        throng::TABLES,
    ]
}

/// The columns of PostgreSQL's catalogs that may be NULL.
pub(super) const NULLABLE: &[(&str, &[&str])] = &[
    ("pg_aggregate", &["agginitval", "aggminitval"]),
    (
        "pg_attribute",
        &[
            "attstattarget",
            "attacl",
            "attoptions",
            "attfdwoptions",
            "attmissingval",
        ],
    ),
    ("pg_authid", &["rolpassword", "rolvaliduntil"]),
    ("pg_class", &["relacl", "reloptions", "relpartbound"]),
    (
        "pg_collation",
        &[
            "collcollate",
            "collctype",
            "colllocale",
            "collicurules",
            "collversion",
        ],
    ),
    (
        "pg_constraint",
        &[
            "conkey",
            "confkey",
            "conpfeqop",
            "conppeqop",
            "conffeqop",
            "confdelsetcols",
            "conexclop",
            "conbin",
        ],
    ),
    (
        "pg_database",
        &["datlocale", "daticurules", "datcollversion", "datacl"],
    ),
    ("pg_db_role_setting", &["setconfig"]),
    ("pg_event_trigger", &["evttags"]),
    ("pg_extension", &["extconfig", "extcondition"]),
    ("pg_foreign_data_wrapper", &["fdwacl", "fdwoptions"]),
    (
        "pg_foreign_server",
        &["srvtype", "srvversion", "srvacl", "srvoptions"],
    ),
    ("pg_foreign_table", &["ftoptions"]),
    ("pg_index", &["indexprs", "indpred"]),
    ("pg_language", &["lanacl"]),
    ("pg_largeobject_metadata", &["lomacl"]),
    ("pg_namespace", &["nspacl"]),
    ("pg_parameter_acl", &["paracl"]),
    ("pg_partitioned_table", &["partexprs"]),
    ("pg_policy", &["polqual", "polwithcheck"]),
    (
        "pg_proc",
        &[
            "proallargtypes",
            "proargmodes",
            "proargnames",
            "proargdefaults",
            "protrftypes",
            "probin",
            "prosqlbody",
            "proconfig",
            "proacl",
        ],
    ),
    ("pg_publication_rel", &["prqual", "prattrs"]),
    (
        "pg_statistic",
        &[
            "stanumbers1",
            "stanumbers2",
            "stanumbers3",
            "stanumbers4",
            "stanumbers5",
            "stavalues1",
            "stavalues2",
            "stavalues3",
            "stavalues4",
            "stavalues5",
        ],
    ),
    ("pg_statistic_ext", &["stxstattarget", "stxexprs"]),
    (
        "pg_statistic_ext_data",
        &["stxdndistinct", "stxddependencies", "stxdmcv", "stxdexpr"],
    ),
    ("pg_subscription", &["subslotname", "suborigin"]),
    ("pg_subscription_rel", &["srsublsn"]),
    ("pg_tablespace", &["spcacl", "spcoptions"]),
    ("pg_trigger", &["tgqual", "tgoldtable", "tgnewtable"]),
    ("pg_ts_dict", &["dictinitoption"]),
    ("pg_type", &["typdefaultbin", "typdefault", "typacl"]),
    ("pg_user_mapping", &["umoptions"]),
];
