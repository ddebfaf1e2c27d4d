//! Columns of the catalogs `pg_opclass` to `pg_user_mapping`, as PostgreSQL 18 has them.

use crate::system::relations;

relations! {
    PG_CATALOG;
    2616 pg_opclass in operator_class {
        oid: OID, opcmethod: OID, opcname: NAME, opcnamespace: OID, opcowner: OID, opcfamily: OID,
        opcintype: OID, opcdefault: BOOL, opckeytype: OID,
    }
    2617 pg_operator in routine {
        oid: OID, oprname: NAME, oprnamespace: OID, oprowner: OID, oprkind: CHAR, oprcanmerge: BOOL,
        oprcanhash: BOOL, oprleft: OID, oprright: OID, oprresult: OID, oprcom: OID, oprnegate: OID,
        oprcode: REGPROC, oprrest: REGPROC, oprjoin: REGPROC,
    }
    2753 pg_opfamily in operator_class {
        oid: OID, opfmethod: OID, opfname: NAME, opfnamespace: OID, opfowner: OID,
    }
    6243 pg_parameter_acl { oid: OID, parname: TEXT, paracl: ACLITEM_ARRAY }
    3350 pg_partitioned_table in partition {
        partrelid: OID, partstrat: CHAR, partnatts: INT2, partdefid: OID, partattrs: INT2VECTOR,
        partclass: OIDVECTOR, partcollation: OIDVECTOR, partexprs: PG_NODE_TREE,
    }
    3256 pg_policy in policy {
        oid: OID, polname: NAME, polrelid: OID, polcmd: CHAR, polpermissive: BOOL,
        polroles: OID_ARRAY, polqual: PG_NODE_TREE, polwithcheck: PG_NODE_TREE,
    }
    1255 pg_proc in routine {
        oid: OID, proname: NAME, pronamespace: OID, proowner: OID, prolang: OID, procost: FLOAT4,
        prorows: FLOAT4, provariadic: OID, prosupport: REGPROC, prokind: CHAR, prosecdef: BOOL,
        proleakproof: BOOL, proisstrict: BOOL, proretset: BOOL, provolatile: CHAR,
        proparallel: CHAR, pronargs: INT2, pronargdefaults: INT2, prorettype: OID,
        proargtypes: OIDVECTOR, proallargtypes: OID_ARRAY, proargmodes: CHAR_ARRAY,
        proargnames: TEXT_ARRAY, proargdefaults: PG_NODE_TREE, protrftypes: OID_ARRAY, prosrc: TEXT,
        probin: TEXT, prosqlbody: PG_NODE_TREE, proconfig: TEXT_ARRAY, proacl: ACLITEM_ARRAY,
    }
    6104 pg_publication {
        oid: OID, pubname: NAME, pubowner: OID, puballtables: BOOL, pubinsert: BOOL,
        pubupdate: BOOL, pubdelete: BOOL, pubtruncate: BOOL, pubviaroot: BOOL, pubgencols: CHAR,
    }
    6237 pg_publication_namespace { oid: OID, pnpubid: OID, pnnspid: OID }
    6106 pg_publication_rel {
        oid: OID, prpubid: OID, prrelid: OID, prqual: PG_NODE_TREE, prattrs: INT2VECTOR,
    }
    3541 pg_range in range {
        rngtypid: OID, rngsubtype: OID, rngmultitypid: OID, rngcollation: OID, rngsubopc: OID,
        rngcanonical: REGPROC, rngsubdiff: REGPROC,
    }
    6000 pg_replication_origin { roident: OID, roname: TEXT }
    2618 pg_rewrite in relation {
        oid: OID, rulename: NAME, ev_class: OID, ev_type: CHAR, ev_enabled: CHAR, is_instead: BOOL,
        ev_qual: PG_NODE_TREE, ev_action: PG_NODE_TREE,
    }
    3596 pg_seclabel { objoid: OID, classoid: OID, objsubid: INT4, provider: TEXT, label: TEXT }
    2224 pg_sequence in relation {
        seqrelid: OID, seqtypid: OID, seqstart: INT8, seqincrement: INT8, seqmax: INT8,
        seqmin: INT8, seqcache: INT8, seqcycle: BOOL,
    }
    1214 pg_shdepend in policy {
        dbid: OID, classid: OID, objid: OID, objsubid: INT4, refclassid: OID, refobjid: OID,
        deptype: CHAR,
    }
    2396 pg_shdescription in constraint { objoid: OID, classoid: OID, description: TEXT }
    3592 pg_shseclabel { objoid: OID, classoid: OID, provider: TEXT, label: TEXT }
    2619 pg_statistic in statistic {
        starelid: OID, staattnum: INT2, stainherit: BOOL, stanullfrac: FLOAT4, stawidth: INT4,
        stadistinct: FLOAT4, stakind1: INT2, stakind2: INT2, stakind3: INT2, stakind4: INT2,
        stakind5: INT2, staop1: OID, staop2: OID, staop3: OID, staop4: OID, staop5: OID,
        stacoll1: OID, stacoll2: OID, stacoll3: OID, stacoll4: OID, stacoll5: OID,
        stanumbers1: FLOAT4_ARRAY, stanumbers2: FLOAT4_ARRAY, stanumbers3: FLOAT4_ARRAY,
        stanumbers4: FLOAT4_ARRAY, stanumbers5: FLOAT4_ARRAY, stavalues1: ANYARRAY,
        stavalues2: ANYARRAY, stavalues3: ANYARRAY, stavalues4: ANYARRAY, stavalues5: ANYARRAY,
    }
    3381 pg_statistic_ext {
        oid: OID, stxrelid: OID, stxname: NAME, stxnamespace: OID, stxowner: OID,
        stxkeys: INT2VECTOR, stxstattarget: INT2, stxkind: CHAR_ARRAY, stxexprs: PG_NODE_TREE,
    }
    3429 pg_statistic_ext_data {
        stxoid: OID, stxdinherit: BOOL, stxdndistinct: BYTEA, stxddependencies: BYTEA,
        stxdmcv: BYTEA, stxdexpr: TEXT_ARRAY,
    }
    6100 pg_subscription {
        oid: OID, subdbid: OID, subskiplsn: PG_LSN, subname: NAME, subowner: OID, subenabled: BOOL,
        subbinary: BOOL, substream: CHAR, subtwophasestate: CHAR, subdisableonerr: BOOL,
        subpasswordrequired: BOOL, subrunasowner: BOOL, subfailover: BOOL, subconninfo: TEXT,
        subslotname: NAME, subsynccommit: TEXT, subpublications: TEXT_ARRAY, suborigin: TEXT,
    }
    6102 pg_subscription_rel { srsubid: OID, srrelid: OID, srsubstate: CHAR, srsublsn: PG_LSN }
    1213 pg_tablespace in role {
        oid: OID, spcname: NAME, spcowner: OID, spcacl: ACLITEM_ARRAY, spcoptions: TEXT_ARRAY,
    }
    3576 pg_transform {
        oid: OID, trftype: OID, trflang: OID, trffromsql: REGPROC, trftosql: REGPROC,
    }
    2620 pg_trigger in trigger {
        oid: OID, tgrelid: OID, tgparentid: OID, tgname: NAME, tgfoid: OID, tgtype: INT2,
        tgenabled: CHAR, tgisinternal: BOOL, tgconstrrelid: OID, tgconstrindid: OID,
        tgconstraint: OID, tgdeferrable: BOOL, tginitdeferred: BOOL, tgnargs: INT2,
        tgattr: INT2VECTOR, tgargs: BYTEA, tgqual: PG_NODE_TREE, tgoldtable: NAME, tgnewtable: NAME,
    }
    3602 pg_ts_config in text_search { oid: OID, cfgname: NAME, cfgnamespace: OID, cfgowner: OID, cfgparser: OID }
    3603 pg_ts_config_map in text_search { mapcfg: OID, maptokentype: INT4, mapseqno: INT4, mapdict: OID }
    3600 pg_ts_dict in text_search {
        oid: OID, dictname: NAME, dictnamespace: OID, dictowner: OID, dicttemplate: OID,
        dictinitoption: TEXT,
    }
    3601 pg_ts_parser in text_search {
        oid: OID, prsname: NAME, prsnamespace: OID, prsstart: REGPROC, prstoken: REGPROC,
        prsend: REGPROC, prsheadline: REGPROC, prslextype: REGPROC,
    }
    3764 pg_ts_template in text_search {
        oid: OID, tmplname: NAME, tmplnamespace: OID, tmplinit: REGPROC, tmpllexize: REGPROC,
    }
    1247 pg_type in types {
        oid: OID, typname: NAME, typnamespace: OID, typowner: OID, typlen: INT2, typbyval: BOOL,
        typtype: CHAR, typcategory: CHAR, typispreferred: BOOL, typisdefined: BOOL, typdelim: CHAR,
        typrelid: OID, typsubscript: REGPROC, typelem: OID, typarray: OID, typinput: REGPROC,
        typoutput: REGPROC, typreceive: REGPROC, typsend: REGPROC, typmodin: REGPROC,
        typmodout: REGPROC, typanalyze: REGPROC, typalign: CHAR, typstorage: CHAR, typnotnull: BOOL,
        typbasetype: OID, typtypmod: INT4, typndims: INT4, typcollation: OID,
        typdefaultbin: PG_NODE_TREE, typdefault: TEXT, typacl: ACLITEM_ARRAY,
    }
    1418 pg_user_mapping { oid: OID, umuser: OID, umserver: OID, umoptions: TEXT_ARRAY }
}
