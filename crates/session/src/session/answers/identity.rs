//! What an object is called that a catalog and a number name: `pg_describe_object`,
//! `pg_identify_object` and `pg_identify_object_as_address`.
//!
//! One look at the catalog gives an [`Identity`], of which each of the three tells a part. A
//! catalog of which nothing is kept here has no objects, and so no names; one whose objects have no
//! names here is an error.

use std::sync::Arc;

use throng_catalog::builtin::{self, class};
use throng_catalog::system::{definition, extension, listed, routine};
use throng_catalog::{
    ConstraintDef, DefaultPrivilegesDef, Relation, TEMPORARY, TableDef, index_column_names,
};
use throng_types::error::state;
use throng_types::lexical::quote_ident;
use throng_types::sqltype::{element_of, format_type, made, type_info, type_name};
use throng_types::{Array, Datum, Error, Oid, Record, Result, SqlType, oid};
use throng_values::func::{Cast, EvalHost, EvalResult, ObjectKind};

use crate::session::answers::eval_host::SessionHost;

/// What an object is called, in all the ways that are asked for.
#[derive(Default)]
struct Identity {
    /// `column a of table t`.
    description: String,
    schema: Oid,
    /// Where it and the schema say which object it is.
    name: Option<String>,
    /// The whole, always with its schema.
    identity: String,
    /// What `pg_get_object_address` takes.
    names: Vec<String>,
    args: Vec<String>,
}

/// An object of a relation, and the relation.
struct OfRelation<'a> {
    /// `rule`, `trigger`, `constraint`.
    what: &'a str,
    name: &'a str,
    relation: Oid,
}

pub(in crate::session) const OPERATOR: Oid = Oid(2617);
pub(in crate::session) const ACCESS_METHOD: Oid = Oid(2601);
pub(in crate::session) const COLLATION: Oid = Oid(3456);
pub(in crate::session) const TABLESPACE: Oid = Oid(1213);

/// The words of catalogs of which there are no objects.
const EMPTY: &[(u32, &str)] = &[
    (1417, "server"),
    (1418, "user mapping"),
    (2328, "foreign-data wrapper"),
    (2613, "large object"),
    (3381, "statistics object"),
    (3466, "event trigger"),
    (3576, "transform"),
    (6100, "subscription"),
    (6104, "publication"),
    (6106, "publication relation"),
    (6237, "publication namespace"),
    (6243, "parameter ACL"),
];

/// The words of catalogs whose objects have no names here.
const UNNAMED: &[(u32, &str)] = &[
    (2602, "operator of access method"),
    (2603, "function of access method"),
    (2605, "cast"),
    (2607, "conversion"),
    (2616, "operator class"),
    (2753, "operator family"),
    (3600, "text search dictionary"),
    (3601, "text search parser"),
    (3602, "text search configuration"),
    (3764, "text search template"),
];

pub(in crate::session) const ACCESS_METHODS: [(Oid, &str); 5] = [
    (builtin::HEAP_AM, "heap"),
    (builtin::BTREE_AM, "btree"),
    (builtin::HASH_AM, "hash"),
    (builtin::GIST_AM, "gist"),
    (builtin::GIN_AM, "gin"),
];
pub(in crate::session) const TABLESPACES: [(Oid, &str); 2] = [
    (builtin::DEFAULT_TABLESPACE, "pg_default"),
    (builtin::GLOBAL_TABLESPACE, "pg_global"),
];
const LANGUAGES: [&str; 4] = ["internal", "c", "sql", "plpgsql"];

/// The name of one of a few.
fn listed_name(all: &[(Oid, &'static str)], oid: Oid) -> Option<&'static str> {
    all.iter().find(|(o, _)| *o == oid).map(|(_, name)| *name)
}

/// Tables whose columns may have a default of this number, or views whose rule it may be.
fn owners_of_default(oid: Oid) -> impl Iterator<Item = (Oid, u16)> {
    /// The bits of a relation's oid that the number keeps.
    const KEPT: u32 = 19;
    let attnum = (oid.0 & 0x7ff) as u16;
    let low = oid.0 >> 11 & ((1 << KEPT) - 1);
    (0..1 << (32 - KEPT)).map(move |high: u32| (Oid(high << KEPT | low), attnum))
}

impl SessionHost<'_> {
    pub(in crate::session) fn identify(&self, name: &str, args: &[Datum]) -> EvalResult {
        let number = |n: usize| args[n].as_i64().unwrap_or_default();
        let class = Oid(number(0) as u32);
        let object = Oid(number(1) as u32);
        if name == "pg_describe_object" && class == Oid::NONE && object == Oid::NONE {
            return Ok(Datum::Null);
        }
        let (kind, found) = self.identity(class, object, number(2) as i32)?;
        if name == "pg_describe_object" {
            return Ok(found.map(|f| f.description).into());
        }
        let as_address = name == "pg_identify_object_as_address";
        let texts = |list: Vec<String>| {
            let items = list.into_iter().map(Datum::from).collect();
            Datum::array(Array::from_items(oid::TEXT, items))
        };
        let (types, mut values) = match as_address {
            true => (vec![oid::TEXT, oid::TEXT_ARRAY, oid::TEXT_ARRAY], vec![]),
            false => (vec![oid::TEXT; 4], vec![]),
        };
        values.push(kind.into());
        match found {
            None => values.resize(types.len(), Datum::Null),
            Some(found) if as_address => values.extend([texts(found.names), texts(found.args)]),
            Some(found) => {
                let schema = self.catalog.schema(found.schema);
                values.push(schema.map(|s| quote_ident(&s.name)).into());
                values.push(found.name.map(|name| quote_ident(&name)).into());
                values.push(found.identity.into());
            }
        }
        Ok(Datum::Record(Arc::new(Record {
            types: types.into(),
            names: None,
            values,
        })))
    }

    /// What kind of object it is, and what it is called where it is there.
    fn identity(&self, of: Oid, object: Oid, column: i32) -> Result<(String, Option<Identity>)> {
        let catalog = self.catalog;
        let own = |word: &str, name: Option<String>| {
            let named = name.map(|name| Identity {
                description: format!("{word} {name}"),
                identity: quote_ident(&name),
                names: vec![name.clone()],
                name: Some(name),
                ..Identity::default()
            });
            (word.to_owned(), named)
        };
        Ok(match of {
            class::RELATION => self.relation_identity(object, column),
            class::PROCEDURE => self.routine_identity(object),
            class::TYPE => ("type".to_owned(), self.type_identity(object)),
            class::CONSTRAINT => self.constraint_identity(object),
            class::ATTRDEF => ("default value".to_owned(), self.default_identity(object)),
            class::REWRITE => {
                let view = owners_of_default(object)
                    .filter(|(_, attnum)| *attnum == 0)
                    .find(|(view, _)| {
                        definition::rule_oid(*view) == object && catalog.rule_of(*view).is_some()
                    });
                let rule = view.and_then(|(relation, _)| {
                    self.part_identity(&OfRelation {
                        what: "rule",
                        name: "_RETURN",
                        relation,
                    })
                });
                ("rule".to_owned(), rule)
            }
            class::TRIGGER => {
                let trigger = catalog.trigger(object).and_then(|trigger| {
                    self.part_identity(&OfRelation {
                        what: "trigger",
                        name: &trigger.name,
                        relation: trigger.table,
                    })
                });
                ("trigger".to_owned(), trigger)
            }
            class::POLICY => {
                let policy = catalog.policy(object).and_then(|policy| {
                    self.part_identity(&OfRelation {
                        what: "policy",
                        name: &policy.name,
                        relation: policy.table,
                    })
                });
                ("policy".to_owned(), policy)
            }
            class::NAMESPACE => own("schema", catalog.schema(object).map(|s| s.name.clone())),
            class::ROLE => own("role", catalog.role(object).map(|r| r.name.clone())),
            class::DATABASE => own("database", catalog.database(object).map(|d| d.name.clone())),
            class::EXTENSION => own("extension", extension::name(catalog, object)),
            class::LANGUAGE => {
                let mut all = LANGUAGES.iter();
                let name = all.find(|name| extension::language(name) == Some(object));
                own("language", name.map(|name| (*name).to_owned()))
            }
            TABLESPACE => {
                let name = listed_name(&TABLESPACES, object);
                own("tablespace", name.map(str::to_owned))
            }
            ACCESS_METHOD => {
                let name = listed_name(&ACCESS_METHODS, object);
                own("access method", name.map(str::to_owned))
            }
            COLLATION => ("collation".to_owned(), self.collation_identity(object)),
            OPERATOR => ("operator".to_owned(), self.operator_identity(object)),
            class::CAST if let Some(cast) = throng_values::func::extension::cast_by_oid(object) => {
                ("cast".to_owned(), Some(self.cast_identity(cast)))
            }
            class::AUTH_MEMBERS => {
                let word = "role membership".to_owned();
                (word, self.membership_identity(object))
            }
            class::DEFAULT_ACL => {
                let all = catalog.all_default_privileges().iter();
                let def = all.into_iter().find(|def| def.oid == object);
                let identity = def.map(|def| self.default_acl_identity(def));
                ("default acl".to_owned(), identity)
            }
            Oid(number) => {
                if let Some((_, word)) = EMPTY.iter().find(|(oid, _)| *oid == number) {
                    return Ok(((*word).to_owned(), None));
                }
                if let Some((_, word)) = UNNAMED.iter().find(|(oid, _)| *oid == number) {
                    return Err(Error::unsupported(format!("naming an object: {word}")));
                }
                let message = format!("unsupported object class: {number}");
                return Err(Error::new(state::INTERNAL_ERROR, message));
            }
        })
    }

    /// A schema's name, that of the session's own temporary one as the session calls it.
    pub(super) fn schema_name(&self, schema: Oid) -> String {
        match self.session.temporary.schema(self.catalog) == Some(schema) {
            true => TEMPORARY.to_owned(),
            false => {
                let def = self.catalog.schema(schema);
                def.map(|def| def.name.clone()).unwrap_or_default()
            }
        }
    }

    fn qualified(&self, schema: Oid, name: &str) -> String {
        let schema = quote_ident(&self.schema_name(schema));
        format!("{schema}.{}", quote_ident(name))
    }

    // Relations

    /// A relation as others name it: what it is, its schema and name.
    fn relation_parts(&self, relation: Oid) -> Option<(&'static str, Oid, String)> {
        if let Some(relation) = self.catalog.relation(relation) {
            let word = match &relation {
                Relation::Virtual(table) if table.relkind() == b'r' => "table",
                other => other.word(),
            };
            return Some((word, relation.schema(), relation.name().to_owned()));
        }
        if let Some(index) = listed::index(relation) {
            return Some(("index", builtin::PG_CATALOG, index.name().to_owned()));
        }
        let ty = made::composite_oid(relation)?;
        let def = self.catalog.made_type(ty)?;
        Some(("composite type", def.schema, def.name.clone()))
    }

    /// `table t`, qualified where the search path needs it.
    fn described_relation(&self, relation: Oid) -> Option<String> {
        let (word, _, name) = self.relation_parts(relation)?;
        let shown = self.relation_name(relation);
        Some(format!("{word} {}", shown.unwrap_or(quote_ident(&name))))
    }

    fn relation_identity(&self, relation: Oid, column: i32) -> (String, Option<Identity>) {
        let Some((word, schema, name)) = self.relation_parts(relation) else {
            return ("relation".to_owned(), None);
        };
        let described = self.described_relation(relation).unwrap_or_default();
        let mut identity = Identity {
            description: described,
            schema,
            identity: self.qualified(schema, &name),
            names: vec![self.schema_name(schema), name.clone()],
            name: Some(name),
            args: vec![],
        };
        if column == 0 {
            return (word.to_owned(), Some(identity));
        }
        let word = format!("{word} column");
        let Some(of_column) = self.column_called(relation, column) else {
            return (word, None);
        };
        identity.description = format!("column {of_column} of {}", identity.description);
        identity.identity = format!("{}.{}", identity.identity, quote_ident(&of_column));
        identity.names.push(of_column);
        (word, Some(identity))
    }

    /// The name of a relation's column, by its number.
    fn column_called(&self, relation: Oid, column: i32) -> Option<String> {
        const SYSTEM: [&str; 6] = ["ctid", "xmin", "cmin", "xmax", "cmax", "tableoid"];
        let place = usize::try_from(column - 1).ok();
        let found = self.catalog.relation(relation);
        if column < 0 {
            let place = usize::try_from(-(i64::from(column) + 1)).ok()?;
            let has_rows = match found? {
                Relation::Table(_) | Relation::Sequence(_) => true,
                Relation::Virtual(table) => table.relkind() == b'r',
                Relation::View(_) | Relation::Index(_) => false,
            };
            return SYSTEM
                .get(place)
                .filter(|_| has_rows)
                .map(|n| (*n).to_owned());
        }
        let place = place?;
        let name = match found {
            Some(Relation::Table(def)) => {
                let column = def.columns.get(place).filter(|c| !c.dropped)?;
                column.name.clone()
            }
            Some(Relation::View(def)) => def.columns.get(place)?.name.clone(),
            Some(Relation::Virtual(def)) => def.columns.get(place)?.0.to_owned(),
            Some(Relation::Sequence(_)) => {
                let columns = ["last_value", "log_cnt", "is_called"];
                (*columns.get(place)?).to_owned()
            }
            Some(Relation::Index(def)) => {
                let table = self.catalog.table(def.table)?;
                let names = index_column_names(&def.columns, &def.terms, table);
                names.into_iter().nth(place)?
            }
            None => match listed::index(relation) {
                Some(index) => index.column(place)?.to_owned(),
                None => {
                    let def = self.catalog.made_type(made::composite_oid(relation)?)?;
                    let field = def.fields.as_ref()?.get(place).filter(|f| !f.dropped)?;
                    field.name.clone()
                }
            },
        };
        Some(name)
    }

    /// A rule, a trigger or a constraint of a relation.
    fn part_identity(&self, part: &OfRelation<'_>) -> Option<Identity> {
        let (_, schema, relation) = self.relation_parts(part.relation)?;
        let described = self.described_relation(part.relation)?;
        let OfRelation { what, name, .. } = part;
        let in_schema = *what == "constraint";
        Some(Identity {
            description: format!("{what} {name} on {described}"),
            schema: if in_schema { schema } else { Oid::NONE },
            name: None,
            identity: format!(
                "{} on {}",
                quote_ident(name),
                self.qualified(schema, &relation)
            ),
            names: vec![self.schema_name(schema), relation, (*name).to_owned()],
            args: vec![],
        })
    }

    fn default_identity(&self, default: Oid) -> Option<Identity> {
        let catalog = self.catalog;
        let (table, attnum) = owners_of_default(default).find(|(table, attnum)| {
            let has_default = |def: &Arc<TableDef>| {
                let mut columns = def.live_columns();
                let column = columns.find(|(n, _)| n == attnum);
                column.is_some_and(|(_, c)| definition::stored_default(catalog, c).is_some())
            };
            definition::default_oid(*table, *attnum) == default
                && catalog.table(*table).is_some_and(has_default)
        })?;
        let (_, column) = self.relation_identity(table, i32::from(attnum));
        let column = column?;
        Some(Identity {
            description: format!("default value for {}", column.description),
            identity: format!("for {}", column.identity),
            names: column.names,
            ..Identity::default()
        })
    }

    fn constraint_identity(&self, constraint: Oid) -> (String, Option<Identity>) {
        let of_table = |name: &str, relation: Oid| {
            let part = OfRelation {
                what: "constraint",
                name,
                relation,
            };
            ("table constraint".to_owned(), self.part_identity(&part))
        };
        if let Some(def) = self.catalog.constraint(constraint) {
            let ConstraintDef { name, table, .. } = &**def;
            return of_table(name, *table);
        }
        let trigger = self.catalog.trigger(constraint);
        if let Some(trigger) = trigger.filter(|trigger| trigger.constraint.is_some()) {
            return of_table(&trigger.name, trigger.table);
        }
        if let Some((table, attnum)) = definition::not_null_column(self.catalog, constraint) {
            let name = definition::not_null_name(table, table.column(attnum));
            return of_table(&name, table.oid);
        }
        if let Some((table, name)) = listed::constrained(constraint) {
            return of_table(name, table);
        }
        let types = self.catalog.made_types().into_iter();
        let found = types.into_iter().find_map(|def| {
            let domain = def.domain.as_ref()?;
            let not_null = domain.not_null.iter().map(|n| (n.oid, &n.name));
            let mut all = domain
                .checks
                .iter()
                .map(|c| (c.oid, &c.name))
                .chain(not_null);
            let (_, name) = all.find(|(oid, _)| *oid == constraint)?;
            let over = self.qualified_type(def.oid);
            Some(Identity {
                description: format!("constraint {name}"),
                schema: def.schema,
                name: None,
                identity: format!("{} on {over}", quote_ident(name)),
                names: vec![over],
                args: vec![name.clone()],
            })
        });
        match found {
            Some(found) => ("domain constraint".to_owned(), Some(found)),
            None => ("constraint".to_owned(), None),
        }
    }

    // Types and what computes

    /// A type's name with its schema, but for those that SQL has words for.
    pub(in crate::session) fn qualified_type(&self, ty: Oid) -> String {
        use oid::{
            BOOL, BPCHAR, FLOAT4, FLOAT8, INT2, INT4, INT8, INTERVAL, JSON, NUMERIC, TIME,
            TIMESTAMP, TIMESTAMPTZ, TIMETZ, VARCHAR,
        };
        const WORDS: [Oid; 15] = [
            BOOL,
            BPCHAR,
            FLOAT4,
            FLOAT8,
            INT2,
            INT4,
            INT8,
            INTERVAL,
            JSON,
            NUMERIC,
            TIME,
            TIMESTAMP,
            TIMESTAMPTZ,
            TIMETZ,
            VARCHAR,
        ];
        let info = type_info(ty);
        if let Some(info) = info.filter(|info| info.is_array()) {
            return self.qualified_type(info.element) + "[]";
        }
        if WORDS.contains(&ty) {
            return format_type(SqlType::plain(ty));
        }
        if let Some(def) = self.catalog.user_type(ty) {
            return self.qualified(def.schema, &def.name);
        }
        match info.filter(|_| !made::is_made(ty)) {
            Some(info) => self.qualified(builtin::PG_CATALOG, info.name),
            None => "???".to_owned(),
        }
    }

    fn type_identity(&self, ty: Oid) -> Option<Identity> {
        let shown = self.object_name(ObjectKind::Type, ty)?;
        let (schema, name) = match made::is_made(ty) {
            false => (builtin::PG_CATALOG, type_info(ty)?.name.to_owned()),
            true => match self.catalog.user_type(ty) {
                Some(def) => (def.schema, def.name.clone()),
                None => {
                    let element = element_of(ty)?;
                    let def = self.catalog.user_type(element)?;
                    (def.schema, self.catalog.array_name(element)?)
                }
            },
        };
        let identity = self.qualified_type(ty);
        Some(Identity {
            description: format!("type {shown}"),
            schema,
            name: Some(name),
            names: vec![identity.clone()],
            identity,
            args: vec![],
        })
    }

    fn routine_identity(&self, object: Oid) -> (String, Option<Identity>) {
        let (word, schema, name, types) = match self.catalog.routine(object) {
            Some(def) => (def.noun(), def.schema, &def.name[..], def.input_types()),
            None => match routine::procedure(object) {
                Some(of) => {
                    let word = if of.kind == b'a' {
                        "aggregate"
                    } else {
                        "function"
                    };
                    (word, builtin::PG_CATALOG, of.name, of.args.clone())
                }
                None => return ("routine".to_owned(), None),
            },
        };
        let args: Vec<String> = types.iter().map(|ty| self.qualified_type(*ty)).collect();
        let shown = self.object_name(ObjectKind::ProcedureWithArguments, object);
        let identity = Identity {
            description: format!("function {}", shown.unwrap_or_default()),
            schema,
            name: None,
            identity: format!("{}({})", self.qualified(schema, name), args.join(",")),
            names: vec![self.schema_name(schema), name.to_owned()],
            args,
        };
        (word.to_owned(), Some(identity))
    }

    fn operator_identity(&self, object: Oid) -> Option<Identity> {
        let (schema, name, sides) = self.operator_parts(object)?;
        let shown = self.object_name(ObjectKind::OperatorWithArguments, object)?;
        let args = sides.iter().map(|ty| match *ty {
            Oid::NONE => "NONE".to_owned(),
            ty => self.qualified_type(ty),
        });
        let args: Vec<String> = args.collect();
        let place = self.schema_name(schema);
        Some(Identity {
            description: format!("operator {shown}"),
            schema,
            name: None,
            identity: format!("{}.{name}({})", quote_ident(&place), args.join(",")),
            names: vec![place, name],
            args: args.into_iter().filter(|arg| arg != "NONE").collect(),
        })
    }

    fn cast_identity(&self, cast: &Cast) -> Identity {
        let types = [cast.from, cast.to].map(|ty| self.qualified_type(ty));
        let shown = [cast.from, cast.to].map(|ty| {
            let name = self.object_name(ObjectKind::Type, ty);
            name.unwrap_or_else(|| type_name(ty))
        });
        Identity {
            description: format!("cast from {} to {}", shown[0], shown[1]),
            identity: format!("({} AS {})", types[0], types[1]),
            names: vec![types[0].clone()],
            args: vec![types[1].clone()],
            ..Identity::default()
        }
    }

    fn collation_identity(&self, object: Oid) -> Option<Identity> {
        let shown = self.object_name(ObjectKind::Collation, object)?;
        let name = throng_syntax::parse::parse_name(&shown)
            .ok()?
            .last()
            .to_owned();
        Some(Identity {
            description: format!("collation {shown}"),
            schema: builtin::PG_CATALOG,
            identity: self.qualified(builtin::PG_CATALOG, &name),
            names: vec!["pg_catalog".to_owned(), name.clone()],
            name: Some(name),
            args: vec![],
        })
    }

    // Rights

    fn membership_identity(&self, object: Oid) -> Option<Identity> {
        let def = self.catalog.membership(object)?;
        let role = |oid: Oid| self.catalog.role(oid).map(|role| role.name.clone());
        let (member, role) = (role(def.member)?, role(def.role)?);
        let text = format!("membership of role {member} in role {role}");
        Some(Identity {
            description: text.clone(),
            identity: text,
            ..Identity::default()
        })
    }

    fn default_acl_identity(&self, def: &DefaultPrivilegesDef) -> Identity {
        let role = self.catalog.role(def.role);
        let role = role.map(|role| role.name.clone()).unwrap_or_default();
        let (described, plural) = match def.kind {
            b'r' => ("relations", "tables"),
            b'S' => ("sequences", "sequences"),
            b'f' => ("functions", "functions"),
            b'T' => ("types", "types"),
            b'n' => ("schemas", "schemas"),
            _ => ("large objects", "large objects"),
        };
        let schema = self.catalog.schema(def.schema).map(|s| s.name.clone());
        let within = schema.as_ref().map(|s| format!(" in schema {s}"));
        let quoted = schema
            .as_ref()
            .map(|s| format!(" in schema {}", quote_ident(s)));
        let (within, quoted) = (within.unwrap_or_default(), quoted.unwrap_or_default());
        Identity {
            description: format!(
                "default privileges on new {described} belonging to role {role}{within}"
            ),
            identity: format!("for role {}{quoted} on {plural}", quote_ident(&role)),
            names: std::iter::once(role).chain(schema).collect(),
            args: vec![char::from(def.kind).to_string()],
            ..Identity::default()
        }
    }
}
