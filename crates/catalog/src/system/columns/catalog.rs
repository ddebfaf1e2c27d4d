//! Columns of the catalogs `pg_aggregate` to `pg_namespace`, as PostgreSQL 18 has them.

use crate::system::relations;

relations! {
    PG_CATALOG;
    2600 pg_aggregate in routine {
        aggfnoid: REGPROC, aggkind: CHAR, aggnumdirectargs: INT2, aggtransfn: REGPROC,
        aggfinalfn: REGPROC, aggcombinefn: REGPROC, aggserialfn: REGPROC, aggdeserialfn: REGPROC,
        aggmtransfn: REGPROC, aggminvtransfn: REGPROC, aggmfinalfn: REGPROC, aggfinalextra: BOOL,
        aggmfinalextra: BOOL, aggfinalmodify: CHAR, aggmfinalmodify: CHAR, aggsortop: OID,
        aggtranstype: OID, aggtransspace: INT4, aggmtranstype: OID, aggmtransspace: INT4,
        agginitval: TEXT, aggminitval: TEXT,
    }
    2601 pg_am in routine { oid: OID, amname: NAME, amhandler: REGPROC, amtype: CHAR }
    2602 pg_amop in operator_class {
        oid: OID, amopfamily: OID, amoplefttype: OID, amoprighttype: OID, amopstrategy: INT2,
        amoppurpose: CHAR, amopopr: OID, amopmethod: OID, amopsortfamily: OID,
    }
    2603 pg_amproc in operator_class {
        oid: OID, amprocfamily: OID, amproclefttype: OID, amprocrighttype: OID, amprocnum: INT2,
        amproc: REGPROC,
    }
    2604 pg_attrdef in relation { oid: OID, adrelid: OID, adnum: INT2, adbin: PG_NODE_TREE }
    1249 pg_attribute in relation {
        attrelid: OID, attname: NAME, atttypid: OID, attlen: INT2, attnum: INT2, atttypmod: INT4,
        attndims: INT2, attbyval: BOOL, attalign: CHAR, attstorage: CHAR, attcompression: CHAR,
        attnotnull: BOOL, atthasdef: BOOL, atthasmissing: BOOL, attidentity: CHAR,
        attgenerated: CHAR, attisdropped: BOOL, attislocal: BOOL, attinhcount: INT2,
        attcollation: OID, attstattarget: INT2, attacl: ACLITEM_ARRAY, attoptions: TEXT_ARRAY,
        attfdwoptions: TEXT_ARRAY, attmissingval: ANYARRAY,
    }
    1261 pg_auth_members in role {
        oid: OID, roleid: OID, member: OID, grantor: OID, admin_option: BOOL, inherit_option: BOOL,
        set_option: BOOL,
    }
    1260 pg_authid in role {
        oid: OID, rolname: NAME, rolsuper: BOOL, rolinherit: BOOL, rolcreaterole: BOOL,
        rolcreatedb: BOOL, rolcanlogin: BOOL, rolreplication: BOOL, rolbypassrls: BOOL,
        rolconnlimit: INT4, rolpassword: TEXT, rolvaliduntil: TIMESTAMPTZ,
    }
    2605 pg_cast in routine {
        oid: OID, castsource: OID, casttarget: OID, castfunc: OID, castcontext: CHAR,
        castmethod: CHAR,
    }
    1259 pg_class in relation {
        oid: OID, relname: NAME, relnamespace: OID, reltype: OID, reloftype: OID, relowner: OID,
        relam: OID, relfilenode: OID, reltablespace: OID, relpages: INT4, reltuples: FLOAT4,
        relallvisible: INT4, relallfrozen: INT4, reltoastrelid: OID, relhasindex: BOOL,
        relisshared: BOOL, relpersistence: CHAR, relkind: CHAR, relnatts: INT2, relchecks: INT2,
        relhasrules: BOOL, relhastriggers: BOOL, relhassubclass: BOOL, relrowsecurity: BOOL,
        relforcerowsecurity: BOOL, relispopulated: BOOL, relreplident: CHAR, relispartition: BOOL,
        relrewrite: OID, relfrozenxid: XID, relminmxid: XID, relacl: ACLITEM_ARRAY,
        reloptions: TEXT_ARRAY, relpartbound: PG_NODE_TREE,
    }
    3456 pg_collation in types {
        oid: OID, collname: NAME, collnamespace: OID, collowner: OID, collprovider: CHAR,
        collisdeterministic: BOOL, collencoding: INT4, collcollate: TEXT, collctype: TEXT,
        colllocale: TEXT, collicurules: TEXT, collversion: TEXT,
    }
    2606 pg_constraint in constraint {
        oid: OID, conname: NAME, connamespace: OID, contype: CHAR, condeferrable: BOOL,
        condeferred: BOOL, conenforced: BOOL, convalidated: BOOL, conrelid: OID, contypid: OID,
        conindid: OID, conparentid: OID, confrelid: OID, confupdtype: CHAR, confdeltype: CHAR,
        confmatchtype: CHAR, conislocal: BOOL, coninhcount: INT2, connoinherit: BOOL,
        conperiod: BOOL, conkey: INT2_ARRAY, confkey: INT2_ARRAY, conpfeqop: OID_ARRAY,
        conppeqop: OID_ARRAY, conffeqop: OID_ARRAY, confdelsetcols: INT2_ARRAY,
        conexclop: OID_ARRAY, conbin: PG_NODE_TREE,
    }
    2607 pg_conversion {
        oid: OID, conname: NAME, connamespace: OID, conowner: OID, conforencoding: INT4,
        contoencoding: INT4, conproc: REGPROC, condefault: BOOL,
    }
    1262 pg_database in role {
        oid: OID, datname: NAME, datdba: OID, encoding: INT4, datlocprovider: CHAR,
        datistemplate: BOOL, datallowconn: BOOL, dathasloginevt: BOOL, datconnlimit: INT4,
        datfrozenxid: XID, datminmxid: XID, dattablespace: OID, datcollate: TEXT, datctype: TEXT,
        datlocale: TEXT, daticurules: TEXT, datcollversion: TEXT, datacl: ACLITEM_ARRAY,
    }
    2964 pg_db_role_setting in role { setdatabase: OID, setrole: OID, setconfig: TEXT_ARRAY }
    826 pg_default_acl in role {
        oid: OID, defaclrole: OID, defaclnamespace: OID, defaclobjtype: CHAR,
        defaclacl: ACLITEM_ARRAY,
    }
    2608 pg_depend in constraint {
        classid: OID, objid: OID, objsubid: INT4, refclassid: OID, refobjid: OID, refobjsubid: INT4,
        deptype: CHAR,
    }
    2609 pg_description in constraint {
        objoid: OID, classoid: OID, objsubid: INT4, description: TEXT,
    }
    3501 pg_enum in types { oid: OID, enumtypid: OID, enumsortorder: FLOAT4, enumlabel: NAME }
    3466 pg_event_trigger {
        oid: OID, evtname: NAME, evtevent: NAME, evtowner: OID, evtfoid: OID, evtenabled: CHAR,
        evttags: TEXT_ARRAY,
    }
    3079 pg_extension in extension {
        oid: OID, extname: NAME, extowner: OID, extnamespace: OID, extrelocatable: BOOL,
        extversion: TEXT, extconfig: OID_ARRAY, extcondition: TEXT_ARRAY,
    }
    2328 pg_foreign_data_wrapper {
        oid: OID, fdwname: NAME, fdwowner: OID, fdwhandler: OID, fdwvalidator: OID,
        fdwacl: ACLITEM_ARRAY, fdwoptions: TEXT_ARRAY,
    }
    1417 pg_foreign_server {
        oid: OID, srvname: NAME, srvowner: OID, srvfdw: OID, srvtype: TEXT, srvversion: TEXT,
        srvacl: ACLITEM_ARRAY, srvoptions: TEXT_ARRAY,
    }
    3118 pg_foreign_table { ftrelid: OID, ftserver: OID, ftoptions: TEXT_ARRAY }
    2610 pg_index in relation {
        indexrelid: OID, indrelid: OID, indnatts: INT2, indnkeyatts: INT2, indisunique: BOOL,
        indnullsnotdistinct: BOOL, indisprimary: BOOL, indisexclusion: BOOL, indimmediate: BOOL,
        indisclustered: BOOL, indisvalid: BOOL, indcheckxmin: BOOL, indisready: BOOL,
        indislive: BOOL, indisreplident: BOOL, indkey: INT2VECTOR, indcollation: OIDVECTOR,
        indclass: OIDVECTOR, indoption: INT2VECTOR, indexprs: PG_NODE_TREE, indpred: PG_NODE_TREE,
    }
    2611 pg_inherits in partition { inhrelid: OID, inhparent: OID, inhseqno: INT4, inhdetachpending: BOOL }
    3394 pg_init_privs in listed {
        objoid: OID, classoid: OID, objsubid: INT4, privtype: CHAR, initprivs: ACLITEM_ARRAY,
    }
    2612 pg_language in routine {
        oid: OID, lanname: NAME, lanowner: OID, lanispl: BOOL, lanpltrusted: BOOL,
        lanplcallfoid: OID, laninline: OID, lanvalidator: OID, lanacl: ACLITEM_ARRAY,
    }
    2613 pg_largeobject { loid: OID, pageno: INT4, data: BYTEA }
    2995 pg_largeobject_metadata { oid: OID, lomowner: OID, lomacl: ACLITEM_ARRAY }
    2615 pg_namespace in relation { oid: OID, nspname: NAME, nspowner: OID, nspacl: ACLITEM_ARRAY }
}
