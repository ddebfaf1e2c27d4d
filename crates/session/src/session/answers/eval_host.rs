//! The session and the catalog, as functions and casts ask for them.

use std::rc::Rc;
use std::sync::Arc;

use throng_catalog::system::routine;
use throng_catalog::{Catalog, Relation, TEMPORARY, builtin, written_type};
use throng_syntax::parse::parse_name;
use throng_types::error::state;
use throng_types::lexical::quote_ident;
use throng_types::sqltype::{format_type, made, type_by_name};
use throng_types::{Datum, Error, Oid, Result, SqlType, oid};
use throng_values::func::number::random::Random;
use throng_values::func::{
    EvalContext, EvalHost, EvalResult, EvalStop, ObjectKind, TransitionTable, UserType, WrittenType,
};
use throng_values::io::{ByteaOutput, Charset, DateStyle, FormatSettings, IntervalStyle, Zone};
use throng_values::settings::{Id, Scope, SessionSettings};
use throng_values::text_search::{Configuration, Dictionary};

use crate::session::Session;

/// What reading and writing values depends on, from the settings.
pub fn format_settings(settings: &SessionSettings) -> FormatSettings {
    FormatSettings {
        date_style: DateStyle::of(settings.text(Id::DateStyle)),
        interval_style: match settings.text(Id::IntervalStyle) {
            "postgres_verbose" => IntervalStyle::PostgresVerbose,
            "sql_standard" => IntervalStyle::SqlStandard,
            "iso_8601" => IntervalStyle::Iso8601,
            _ => IntervalStyle::Postgres,
        },
        time_zone: Zone::by_name(settings.text(Id::TimeZone)).unwrap_or_else(Zone::utc),
        extra_float_digits: settings.int(Id::ExtraFloatDigits) as i32,
        bytea_output: match settings.text(Id::ByteaOutput) {
            "escape" => ByteaOutput::Escape,
            _ => ByteaOutput::Hex,
        },
        array_nulls: settings.bool(Id::ArrayNulls),
        charset: Charset::named(settings.text(Id::ClientEncoding)).unwrap_or(Charset::UTF8),
    }
}

/// A session with the catalog its statement sees, and how it reads and writes values at that time.
#[derive(Clone)]
pub struct SessionHost<'a> {
    pub(in crate::session) session: &'a Session,
    pub(in crate::session) catalog: &'a Catalog,
    format: Rc<FormatSettings>,
}

impl Session {
    pub(crate) fn host<'a>(&'a self, catalog: &'a Catalog) -> SessionHost<'a> {
        // A body may have changed settings that its own later statements go by.
        self.settings_changed();
        SessionHost {
            session: self,
            catalog,
            format: self.format.borrow().clone(),
        }
    }
}

impl<'a> SessionHost<'a> {
    pub fn eval(&'a self) -> EvalContext<'a> {
        EvalContext {
            host: self,
            format: &self.format,
        }
    }

    /// The schemas that unqualified names are sought in.
    pub fn search_path(&self) -> Vec<Oid> {
        self.session.search_path(self.catalog)
    }

    pub(in crate::session) fn schema_named(&self, name: &str) -> Option<Oid> {
        match name {
            TEMPORARY => self.session.temporary.schema(self.catalog),
            name => self.catalog.schema_by_name(name).map(|schema| schema.oid),
        }
    }

    /// 42501 for a schema of others' that the role may not use.
    pub(in crate::session) fn may_look_into(&self, schema: Oid) -> Result<()> {
        let own = self.session.temporary.schema(self.catalog) == Some(schema);
        if own || self.catalog.may_look_into(self.session.role().oid, schema) {
            return Ok(());
        }
        let name = self.catalog.schema(schema).map_or("", |s| &s.name);
        let message = format!("permission denied for schema {name}");
        Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message))
    }

    /// A relation by its name as SQL writes it.
    pub fn relation(&self, name: &str) -> Result<Relation> {
        let parsed = parse_name(name)?;
        let found = match parsed.schema() {
            None => self
                .catalog
                .find_relation(&self.search_path(), parsed.last()),
            Some(schema) => {
                let schema = self.schema_named(schema);
                if let Some(schema) = schema {
                    self.may_look_into(schema)?;
                }
                schema.and_then(|schema| self.catalog.relation_in(schema, parsed.last()))
            }
        };
        found.ok_or_else(|| {
            Error::new(
                state::UNDEFINED_TABLE,
                format!("relation \"{parsed}\" does not exist"),
            )
        })
    }

    /// The relation that a composite type so called is in `pg_class`.
    fn relation_of_type(&self, name: &str) -> Option<Oid> {
        let ty = self.type_oid(name).ok()?;
        self.catalog.made_type(ty)?.fields.as_ref()?;
        made::serial(ty)
    }

    /// A relation's name, qualified where the search path needs it.
    pub fn relation_name(&self, relation: Oid) -> Option<String> {
        match self.catalog.relation(relation) {
            Some(relation) => Some(self.catalog.display_name(&self.search_path(), &relation)),
            None => {
                let ty = made::composite_oid(relation)?;
                self.catalog.made_type(ty)?;
                self.catalog.type_display(&self.search_path(), ty)
            }
        }
    }

    /// A type by its name as SQL writes it.
    pub(in crate::session) fn type_oid(&self, name: &str) -> Result<Oid> {
        let lower = name.trim().to_lowercase();
        let lower = lower.strip_prefix("pg_catalog.").unwrap_or(&lower);
        // A modifier says nothing about which type it is.
        let plain = match (lower.find('('), lower.find(')')) {
            (Some(open), Some(close)) if open < close => {
                format!("{}{}", lower[..open].trim_end(), &lower[close + 1..])
            }
            _ => lower.to_owned(),
        };
        type_by_name(plain.trim_matches('"'))
            .map(|info| info.oid)
            .or_else(|| self.made_type_named(name.trim()))
            .ok_or_else(|| {
                Error::new(
                    state::UNDEFINED_OBJECT,
                    format!("type \"{name}\" does not exist"),
                )
            })
    }

    /// A type that a user made, by its name as SQL writes it; `[]` after it for its array.
    fn made_type_named(&self, name: &str) -> Option<Oid> {
        if let Some(element) = name.strip_suffix("[]") {
            return throng_types::sqltype::array_of(self.made_type_named(element)?);
        }
        let parsed = parse_name(name).ok()?;
        let found = match parsed.schema() {
            None => self.catalog.type_named(&self.search_path(), parsed.last()),
            Some(schema) => {
                let schema = self.catalog.schema_by_name(schema)?.oid;
                self.catalog.type_named_in(schema, parsed.last())
            }
        };
        found.or_else(|| {
            // A relation's name is its rows' type.
            let relation = self.relation(name).ok()?;
            let ty = made::composite_oid(relation.oid())?;
            self.catalog.composite(ty).map(|def| def.oid)
        })
    }

    fn procedure(&self, name: &str) -> Result<Oid> {
        let (plain, args) = match name.split_once('(') {
            Some((plain, args)) => (plain, Some(args.trim_end().trim_end_matches(')'))),
            None => (name, None),
        };
        let args: Option<Vec<Oid>> = match args {
            None => None,
            Some(args) => Some(
                args.split(',')
                    .map(str::trim)
                    .filter(|a| !a.is_empty())
                    .map(|a| self.type_oid(a))
                    .collect::<Result<_>>()?,
            ),
        };
        let parsed = parse_name(plain.trim())?;
        let mut found = self.procedures_named(&parsed, args.as_deref()).into_iter();
        let missing = || {
            Error::new(
                state::UNDEFINED_FUNCTION,
                format!("function \"{name}\" does not exist"),
            )
        };
        let first = found.next().ok_or_else(missing)?;
        if found.next().is_some() {
            return Err(Error::new(
                state::AMBIGUOUS_FUNCTION,
                format!("more than one function named \"{}\"", plain.trim()),
            ));
        }
        Ok(first)
    }

    /// Functions of that name, and of those arguments where they are given: the first along the
    /// path for each arguments.
    pub(in crate::session) fn procedures_named(
        &self,
        name: &throng_syntax::parse::ast::Name,
        args: Option<&[Oid]>,
    ) -> Vec<Oid> {
        let path = match name.schema() {
            None => self.search_path(),
            Some(schema) => self.schema_named(schema).into_iter().collect(),
        };
        let mut found: Vec<(Vec<Oid>, Oid)> = Vec::new();
        for schema in path {
            let users = self.catalog.routines_in(schema, name.last());
            let mut here: Vec<(Vec<Oid>, Oid)> = users
                .iter()
                .map(|def| (def.input_types(), def.oid))
                .collect();
            if schema == builtin::PG_CATALOG {
                let all = routine::procedures().iter();
                let named = all.filter(|p| p.name == name.last());
                here.extend(named.map(|p| (p.args.clone(), p.oid)));
            }
            for (types, oid) in here {
                let wanted = args.is_none_or(|args| types == args);
                if wanted && !found.iter().any(|(seen, _)| *seen == types) {
                    found.push((types, oid));
                }
            }
        }
        found.into_iter().map(|(_, oid)| oid).collect()
    }

    pub fn role_oid(&self, name: &str) -> Result<Oid> {
        self.catalog
            .role_by_name(name)
            .map(|role| role.oid)
            .ok_or_else(|| {
                Error::new(
                    state::UNDEFINED_OBJECT,
                    format!("role \"{name}\" does not exist"),
                )
            })
    }

    fn schema_oid(&self, name: &str) -> Result<Oid> {
        self.catalog
            .schema_by_name(name)
            .map(|schema| schema.oid)
            .ok_or_else(|| {
                Error::new(
                    state::INVALID_SCHEMA_NAME,
                    format!("schema \"{name}\" does not exist"),
                )
            })
    }
}

/// The collations there are.
const COLLATIONS: [(&str, u32); 3] = [("default", 100), ("C", 950), ("POSIX", 951)];

/// An object of text search by its name, which may be qualified.
fn text_search_object(name: &str, kind: &str, find: impl Fn(&str) -> Option<Oid>) -> Result<Oid> {
    let written = parse_name(name)?;
    let here = written.schema().is_none_or(|schema| schema == "pg_catalog");
    let found = if here { find(written.last()) } else { None };
    found.ok_or_else(|| {
        let message = format!("text search {kind} \"{written}\" does not exist");
        Error::new(state::UNDEFINED_OBJECT, message)
    })
}

/// `integer,text` as `regprocedure` lists arguments.
fn type_list(types: &[Oid]) -> String {
    let names: Vec<String> = types
        .iter()
        .map(|t| format_type(SqlType::plain(*t)))
        .collect();
    names.join(",")
}

/// A single identifier, unquoted.
fn identifier(name: &str) -> Result<String> {
    Ok(parse_name(name)?.last().to_owned())
}

impl EvalHost for SessionHost<'_> {
    fn warn(&self, warning: Error) {
        self.session.warn(warning);
    }
    fn random_bits(&self) -> u64 {
        let kept = &self.session.random;
        let mut random = kept.get().unwrap_or_else(Random::unknown);
        let bits = random.bits();
        kept.set(Some(random));
        bits
    }
    fn seed_random(&self, seed: f64) -> Result<(), EvalStop> {
        self.session.random.set(Some(Random::seeded(seed)));
        Ok(())
    }
    fn transaction_timestamp(&self) -> i64 {
        self.session.transaction_time()
    }
    fn statement_timestamp(&self) -> i64 {
        self.session.statement_time
    }
    fn current_user(&self) -> String {
        let role = self.session.role();
        // One that was renamed since is called what it is called now.
        let now = self.catalog.role(role.oid);
        now.map_or_else(|| role.name.clone(), |now| now.name.clone())
    }
    fn session_user(&self) -> String {
        self.session.session_role().name.clone()
    }
    fn current_database(&self) -> String {
        self.session.database_name.clone()
    }
    fn current_schemas(&self, implicit: bool) -> Vec<String> {
        let setting = self.session.settings.borrow().search_path();
        let names_catalog = setting.iter().any(|name| name == "pg_catalog");
        let schemas = self.search_path();
        let own = self.session.temporary.schema(self.catalog);
        let schemas = schemas.iter().filter_map(|oid| self.catalog.schema(*oid));
        schemas
            .map(|schema| schema.name.clone())
            .filter(|name| implicit || names_catalog || name != "pg_catalog")
            .filter(|name| implicit || own.is_none() || *name != self.session.temporary.name)
            .collect()
    }
    fn backend_pid(&self) -> i32 {
        self.session.pid()
    }
    fn may_examine(&self, name: &str) -> Result<()> {
        self.session.may_examine(name)
    }
    fn show_setting(&self, name: &str) -> Option<String> {
        self.session.show(name).ok()
    }
    fn set_setting(
        &self,
        name: &str,
        value: Option<&str>,
        local: bool,
    ) -> Result<String, EvalStop> {
        let scope = if local { Scope::Local } else { Scope::Session };
        self.session.set_config(name, value, scope)?;
        Ok(self.session.show(name)?)
    }
    fn with_settings(
        &self,
        settings: &[(String, String)],
        within: &mut dyn FnMut(EvalContext<'_>, &[Oid]),
    ) -> Result<()> {
        let _set = self.session.set_for_routine(settings)?;
        let host = self.session.host(self.catalog);
        within(host.eval(), &host.search_path());
        Ok(())
    }
    fn transaction_id(&self, assign: bool) -> Result<Option<u64>, EvalStop> {
        let txn = &self.session.transaction()?.txn;
        let xid = if assign {
            Some(txn.assign_top_xid())
        } else {
            txn.top_xid()
        };
        Ok(xid.map(|xid| xid.0))
    }
    fn nextval(&self, sequence: Oid) -> Result<i64, EvalStop> {
        self.next_value(sequence, false)
    }
    fn next_of_identity(&self, sequence: Oid) -> Result<i64, EvalStop> {
        self.next_value(sequence, true)
    }
    fn currval(&self, sequence: Oid) -> Result<i64, EvalStop> {
        Ok(self.current_value(sequence)?)
    }
    fn lastval(&self) -> Result<i64, EvalStop> {
        Ok(self.last_value()?)
    }
    fn setval(&self, sequence: Oid, value: i64, is_called: bool) -> Result<i64, EvalStop> {
        self.set_value(sequence, value, is_called)
    }

    fn object_oid(&self, kind: ObjectKind, name: &str) -> Result<Oid, EvalStop> {
        Ok(match kind {
            ObjectKind::Class => match self.relation(name) {
                Ok(relation) => relation.oid(),
                Err(e) => self.relation_of_type(name).ok_or(e)?,
            },
            ObjectKind::Type => self.type_oid(name)?,
            ObjectKind::Procedure | ObjectKind::ProcedureWithArguments => self.procedure(name)?,
            ObjectKind::Operator | ObjectKind::OperatorWithArguments => self.operator(name)?,
            ObjectKind::Namespace => self.schema_oid(&identifier(name)?)?,
            ObjectKind::Role => self.role_oid(&identifier(name)?)?,
            ObjectKind::Collation => {
                let plain = identifier(name)?;
                let found = COLLATIONS.iter().find(|(n, _)| *n == plain);
                let missing = || {
                    let message =
                        format!("collation \"{plain}\" for encoding \"UTF8\" does not exist");
                    Error::new(state::UNDEFINED_OBJECT, message)
                };
                found.map(|(_, oid)| Oid(*oid)).ok_or_else(missing)?
            }
            ObjectKind::TextSearchConfiguration => {
                let find = |name: &str| Configuration::by_name(name).map(|c| c.oid);
                text_search_object(name, "configuration", find)?
            }
            ObjectKind::TextSearchDictionary => {
                let find = |name: &str| Dictionary::by_name(name).map(|d| d.oid);
                text_search_object(name, "dictionary", find)?
            }
        })
    }

    fn object_name(&self, kind: ObjectKind, object: Oid) -> Option<String> {
        match kind {
            ObjectKind::Class => self.relation_name(object),
            ObjectKind::Type if made::is_made(object) => {
                self.catalog.type_display(&self.search_path(), object)
            }
            ObjectKind::Type => SqlType::plain(object).info().map(|info| match info.oid {
                oid::BPCHAR => "character".to_owned(),
                _ => format_type(SqlType::plain(object)),
            }),
            ObjectKind::Procedure => {
                let (schema, name) = match self.catalog.routine(object) {
                    Some(def) => (def.schema, &def.name[..]),
                    None => (builtin::PG_CATALOG, routine::procedure(object)?.name),
                };
                let name = quote_ident(name);
                // Named alone where that says which one it is.
                match self.procedures_named(&parse_name(&name).ok()?, None)[..] {
                    [one] if one == object => Some(name),
                    _ => {
                        let schema = self.catalog.schema(schema)?;
                        Some(format!("{}.{name}", quote_ident(&schema.name)))
                    }
                }
            }
            ObjectKind::ProcedureWithArguments if self.catalog.routine(object).is_some() => {
                let def = self.catalog.routine(object)?;
                Some(self.catalog.routine_signature(&self.search_path(), def))
            }
            ObjectKind::ProcedureWithArguments => {
                let procedure = routine::procedure(object);
                procedure.map(|p| format!("{}({})", quote_ident(p.name), type_list(&p.args)))
            }
            ObjectKind::Operator => self.operator_name(object),
            ObjectKind::OperatorWithArguments => self.operator_signature(object),
            ObjectKind::Namespace => self.catalog.schema(object).map(|s| quote_ident(&s.name)),
            ObjectKind::Role => self.catalog.role(object).map(|r| quote_ident(&r.name)),
            ObjectKind::Collation => COLLATIONS
                .iter()
                .find(|(_, oid)| Oid(*oid) == object)
                .map(|(name, _)| quote_ident(name)),
            ObjectKind::TextSearchConfiguration => {
                Configuration::by_oid(object).map(|c| quote_ident(c.name))
            }
            ObjectKind::TextSearchDictionary => {
                Dictionary::by_oid(object).map(|d| quote_ident(d.name))
            }
        }
    }

    fn parse_type(&self, name: &str) -> Result<WrittenType> {
        written_type(name)
    }

    fn transition_table(&self, name: &str) -> Option<TransitionTable> {
        self.session.trigger_calls.table(name)
    }

    fn user_type(&self, oid: Oid) -> Option<Arc<dyn UserType>> {
        Some(self.catalog.user_type(oid)?)
    }

    fn check_in_domain(&self, domain: Oid, value: &Datum) -> Result<()> {
        throng_bind::binder::check_in_domain(domain, value, self.catalog, self.eval())
    }

    fn system_function(&self, name: &str, args: &[Datum]) -> EvalResult {
        self.function(name, args)
    }
}
