//! Statements that neither read rows nor change definitions.

use throng_types::error::state;
use throng_types::{Error, Oid, Result, SqlType};

use super::ddl::privilege::any_right;
use super::query::scope::Scope;
use super::{Binder, Clause};
use crate::command::{BoundStatement, Command, CursorOptions, ExplainFormat, ExplainOptions};
use crate::tree::expr::Expr;
use crate::tree::query::{Cte, CteBody, QueryKind, RowLockStrength};
use throng_catalog::{Deferral, Relation};
use throng_syntax::parse::ast::{self, Statement as S};
use throng_syntax::parse::option_is_on;
use throng_syntax::vocabulary::TableLock;
use throng_values::acl::right;
use throng_values::func::CastContext;
use throng_values::io::IntervalStyle;
use throng_values::io::datetime::interval;
use throng_values::settings::{self, SessionSettings};

impl Binder<'_> {
    /// The setting that a role, a database or a function keeps a value of, and the value.
    pub(super) fn stored_setting(
        &self,
        name: &str,
        to: &ast::SetTo,
    ) -> Result<(String, Option<String>)> {
        let superuser = self.ctx.catalog.is_superuser(self.ctx.user);
        let value = self.set_to(name, to)?;
        settings::check_stored(name, value.as_deref(), superuser)?;
        Ok((SessionSettings::canonical_name(name).to_owned(), value))
    }

    /// The value that SET gives; none is the default.
    fn set_to(&self, name: &str, to: &ast::SetTo) -> Result<Option<String>> {
        match to {
            ast::SetTo::Values(values) => settings::joined(name, values).map(Some),
            ast::SetTo::ZoneInterval(text, modifier) => {
                let style = IntervalStyle::Postgres;
                let interval = interval::parse(text, style, *modifier)?;
                let mut shown = Vec::new();
                interval::write(interval, style, &mut shown);
                Ok(Some(format!(
                    "INTERVAL '{}'",
                    String::from_utf8_lossy(&shown)
                )))
            }
            ast::SetTo::Default => Ok(None),
            ast::SetTo::Current => match self.ctx.eval.host.show_setting(name) {
                Some(value) => Ok(Some(value)),
                None => Err(Error::new(
                    state::UNDEFINED_OBJECT,
                    format!("unrecognized configuration parameter \"{name}\""),
                )),
            },
        }
    }

    pub(super) fn utility(&mut self, statement: &ast::Statement) -> Result<Command> {
        if let Some(command) = Command::of_transaction(statement) {
            return Ok(command);
        }
        Ok(match statement {
            S::Savepoint(name) => Command::Savepoint(name.clone()),
            S::RollbackTo(name) => Command::RollbackTo(name.clone()),
            S::Release(name) => Command::Release(name.clone()),
            S::SetTransaction { modes, session } => Command::SetTransaction {
                modes: *modes,
                session: *session,
            },
            S::Set { name, value, local } => Command::Set {
                name: name.clone(),
                value: self.set_to(name, value)?,
                local: *local,
            },
            S::Reset(name) => Command::Reset(name.clone()),
            S::Show(name) => Command::Show(name.clone()),
            S::SetRole { role, local } => Command::SetRole {
                role: role.clone(),
                local: *local,
            },
            S::SetSessionAuthorization { role, local } => Command::SetSessionAuthorization {
                role: role.clone(),
                local: *local,
            },
            S::Prepare {
                name,
                types,
                statement,
            } => {
                let types = types
                    .iter()
                    .map(|t| self.type_of(t))
                    .collect::<Result<Vec<SqlType>>>()?;
                Command::Prepare {
                    name: name.clone(),
                    types,
                    statement: statement.clone(),
                }
            }
            S::Execute { name, args } => self.execute(name, args)?,
            S::Deallocate(name) => Command::Deallocate(name.clone()),
            S::Declare {
                name,
                options,
                query,
            } => {
                let query = self.query(query, None)?;
                let query = Box::new(self.bound(QueryKind::Select(query))?);
                let writes = |cte: &Cte| matches!(cte.body, CteBody::Write(_));
                if query.ctes.iter().any(writes) {
                    let message =
                        "DECLARE CURSOR must not contain data-modifying statements in WITH";
                    return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
                }
                if let QueryKind::Select(query) = &query.kind
                    && let Some(lock) = query.locks.first()
                {
                    must_be_read_only(options, lock.strength)?;
                }
                Command::Declare {
                    name: name.clone(),
                    query,
                    options: *options,
                }
            }
            S::Fetch {
                name,
                direction,
                moving,
            } => Command::Fetch {
                name: name.clone(),
                direction: *direction,
                moving: *moving,
            },
            S::Close(name) => Command::Close(name.clone()),
            S::Copy(copy) => Command::Copy(Box::new(self.copy(copy)?)),
            S::Lock {
                tables,
                mode,
                nowait,
            } => {
                let mut all = Vec::new();
                for table in self.plain_tables(tables)? {
                    // Who may lock a table may lock its children by it.
                    self.may_lock(table, *mode)?;
                    all.extend(self.catalog().descendants(table));
                }
                let tables = all;
                Command::LockTable {
                    tables,
                    mode: *mode,
                    nowait: *nowait,
                }
            }
            S::Vacuum { tables, options } => match self.maintained(tables, "vacuum")? {
                Some(tables) => Command::Vacuum {
                    tables,
                    options: *options,
                },
                None => Command::NothingTo("VACUUM"),
            },
            S::Analyze {
                tables,
                skip_locked,
            } => match self.maintained(tables, "analyze")? {
                Some(tables) => Command::Analyze {
                    tables,
                    skip_locked: *skip_locked,
                },
                None => Command::NothingTo("ANALYZE"),
            },
            S::Cluster { table, index } => self.cluster(table.as_ref(), index.as_deref())?,
            S::Reindex {
                kind,
                name,
                concurrently,
            } => self.reindex(*kind, name, *concurrently)?,
            S::Checkpoint => Command::Checkpoint,
            S::Call(call, pos) => Command::Call(Box::new(self.call_procedure(call, *pos)?)),
            S::Do(block) => Command::Do(block.clone()),
            S::Discard(what) => Command::Discard(*what),
            S::SetConstraints { names, deferred } => self.set_constraints(names, *deferred)?,
            S::Listen(channel) => Command::Listen(channel.clone()),
            S::Notify { channel, payload } => Command::Notify {
                channel: channel.clone(),
                payload: payload.clone(),
            },
            S::Unlisten(channel) => Command::Unlisten(channel.clone()),
            _ => return Err(Error::internal("a statement that nothing binds")),
        })
    }

    /// The deferrable constraints of these names, each in the first schema of the path that has
    /// one.
    fn set_constraints(&self, names: &[ast::Name], deferred: bool) -> Result<Command> {
        let mut constraints = Vec::new();
        for name in names {
            let schemas = match name.schema() {
                Some(schema) => vec![self.schema(schema)?],
                None => self.ctx.search_path.to_vec(),
            };
            let named = |schema: &Oid| {
                let tables = self.catalog().tables().into_iter();
                let tables = tables.filter(|table| table.schema == *schema);
                let found = tables
                    .filter_map(|t| self.constraint_or_trigger(t.oid, name.last()))
                    .collect::<Vec<_>>();
                Some(found).filter(|found| !found.is_empty())
            };
            let Some(found) = schemas.iter().find_map(named) else {
                let message = format!("constraint \"{}\" does not exist", name.last());
                return Err(Error::new(state::UNDEFINED_OBJECT, message));
            };
            for (oid, deferral) in found {
                if deferral.is_deferrable() {
                    constraints.push(oid);
                } else if deferred {
                    let message = format!("constraint \"{}\" is not deferrable", name.last());
                    return Err(Error::new(state::WRONG_OBJECT_TYPE, message));
                }
            }
        }
        Ok(Command::SetConstraints {
            all: names.is_empty(),
            constraints,
            deferred,
        })
    }

    /// A table's constraint, or its constraint trigger, of that name.
    fn constraint_or_trigger(&self, table: Oid, name: &str) -> Option<(Oid, Deferral)> {
        if let Some(found) = self.catalog().constraint_by_name(table, name) {
            return Some((found.oid, found.deferral));
        }
        let found = self.catalog().trigger_by_name(table, name)?;
        found.constraint.map(|c| (found.oid, c.deferral))
    }

    fn may_lock(&self, table: Oid, mode: TableLock) -> Result<()> {
        let mut rights = right::MAINTAIN | right::UPDATE | right::DELETE | right::TRUNCATE;
        if mode <= TableLock::RowExclusive {
            rights |= right::INSERT;
        }
        if mode <= TableLock::AccessShare {
            rights |= right::SELECT;
        }
        match self.catalog().relation(table) {
            Some(relation) => any_right(self.catalog(), self.user, &relation, rights),
            None => Ok(()),
        }
    }

    fn plain_tables(&self, names: &[ast::Name]) -> Result<Vec<Oid>> {
        names
            .iter()
            .map(|name| match self.relation(name)? {
                Relation::Table(table) if table.is_materialized() => {
                    let message = format!("cannot lock relation \"{}\"", table.name);
                    Err(super::ddl::matview::not_for_materialized(message))
                }
                Relation::Table(table) => Ok(table.oid),
                // System catalogs have nothing to lock or clean.
                Relation::Virtual(table) => Ok(table.oid),
                Relation::View(_) | Relation::Index(_) | Relation::Sequence(_) => {
                    let message = format!("\"{}\" is not a table", name.last());
                    Err(Error::new(state::WRONG_OBJECT_TYPE, message))
                }
            })
            .collect::<Result<Vec<Oid>>>()
            .map(|oids| {
                oids.into_iter()
                    .filter(|o| throng_catalog::system::by_oid(*o).is_none())
                    .collect()
            })
    }

    pub(super) fn execute(&mut self, name: &str, args: &[ast::Expr]) -> Result<Command> {
        let Some(types) = (self.ctx.prepared)(name) else {
            let message = format!("prepared statement \"{name}\" does not exist");
            return Err(Error::new(state::INVALID_SQL_STATEMENT_NAME, message));
        };
        if types.len() != args.len() {
            let message = format!("wrong number of parameters for prepared statement \"{name}\"");
            return Err(Error::new(state::SYNTAX_ERROR, message).detail(format!(
                "Expected {} parameters but got {}.",
                types.len(),
                args.len()
            )));
        }
        let clause = Clause::Other("EXECUTE parameters");
        let mut bound = Vec::with_capacity(args.len());
        for (i, (arg, ty)) in args.iter().zip(types).enumerate() {
            let expr = self.in_clause(clause, |b| b.expr(arg, &Scope::empty()))?;
            if expr.any(&mut |e| matches!(e, Expr::Subquery(_))) {
                let message = "cannot use subquery in EXECUTE parameter";
                return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message).position(arg.pos + 1));
            }
            let from = expr.type_oid();
            let cast = self.try_coerce(expr, ty, CastContext::Assignment, arg.pos)?;
            bound.push(cast.ok_or_else(|| {
                use throng_types::sqltype::type_name;
                let message = format!(
                    "parameter ${} of type {} cannot be coerced to the expected type {}",
                    i + 1,
                    type_name(from),
                    type_name(ty.oid)
                );
                Error::new(state::DATATYPE_MISMATCH, message)
                    .hint("You will need to rewrite or cast the expression.")
                    .position(arg.pos + 1)
            })?);
        }
        Ok(Command::Execute {
            name: name.to_string(),
            args: bound,
        })
    }

    pub(super) fn explained(
        &mut self,
        options: ExplainOptions,
        statement: &ast::Statement,
    ) -> Result<BoundStatement> {
        let query = match statement {
            S::Execute { name, args } => {
                let execute = Box::new(self.execute(name, args)?);
                return Ok(BoundStatement::ExplainExecute { options, execute });
            }
            S::Declare { query, .. } => {
                let query = self.query(query, None)?;
                self.bound(QueryKind::Select(query))?
            }
            S::CreateTable(create) => {
                let Some(source) = &create.query else {
                    return Err(Error::internal("EXPLAIN of a table without query"));
                };
                if options.analyze {
                    return Err(Error::unsupported("EXPLAIN ANALYZE CREATE TABLE AS"));
                }
                let query = self.query(&source.query, None)?;
                let query = self.bound(QueryKind::Select(query))?;
                if create.materialized {
                    super::ddl::matview::no_parameters(&query)?;
                }
                query
            }
            S::Unsupported(what) => return Err(Error::unsupported(what)),
            statement => self.data(statement)?,
        };
        let query = Box::new(query);
        Ok(BoundStatement::Explain { options, query })
    }

    pub(super) fn explain_options(
        &self,
        list: &[(String, Option<String>)],
    ) -> Result<ExplainOptions> {
        let mut options = ExplainOptions {
            analyze: false,
            verbose: false,
            costs: true,
            buffers: false,
            timing: true,
            summary: false,
            format: ExplainFormat::Text,
        };
        let (mut summary, mut timing) = (None, None);
        for (name, value) in list {
            let on = option_is_on(value.as_deref());
            match name.as_str() {
                "analyze" | "analyse" => options.analyze = on,
                "verbose" => options.verbose = on,
                "costs" => options.costs = on,
                "buffers" => options.buffers = on,
                "timing" => timing = Some(on),
                "summary" => summary = Some(on),
                "format" => match value.as_deref().map(str::to_ascii_lowercase).as_deref() {
                    Some("text") => options.format = ExplainFormat::Text,
                    Some("json") => options.format = ExplainFormat::Json,
                    Some(other @ ("xml" | "yaml")) => {
                        return Err(Error::unsupported(format!("EXPLAIN format {other}")));
                    }
                    other => {
                        let message = format!(
                            "unrecognized value for EXPLAIN option \"format\": \"{}\"",
                            other.unwrap_or("")
                        );
                        return Err(Error::new(state::INVALID_PARAMETER_VALUE, message));
                    }
                },
                "settings" | "wal" | "memory" | "generic_plan" | "serialize" => {
                    if on {
                        let what = format!("EXPLAIN option {}", name.to_uppercase());
                        return Err(Error::unsupported(what));
                    }
                }
                _ => {
                    let message = format!("unrecognized EXPLAIN option \"{name}\"");
                    return Err(Error::new(state::SYNTAX_ERROR, message));
                }
            }
        }
        if timing == Some(true) && !options.analyze {
            let message = "EXPLAIN option TIMING requires ANALYZE";
            return Err(Error::new(state::INVALID_PARAMETER_VALUE, message));
        }
        options.timing = timing.unwrap_or(options.analyze);
        options.summary = summary.unwrap_or(options.analyze);
        Ok(options)
    }
}

/// What a cursor that locks its rows cannot be.
fn must_be_read_only(options: &CursorOptions, lock: RowLockStrength) -> Result<()> {
    let lock = lock.clause();
    let refused = |message: String, what: &str| {
        let error = Error::new(state::FEATURE_NOT_SUPPORTED, message);
        Err(error.detail(format!("{what} cursors must be READ ONLY.")))
    };
    if options.hold {
        let message = format!("DECLARE CURSOR WITH HOLD ... {lock} is not supported");
        return refused(message, "Holdable");
    }
    if options.scroll == Some(true) {
        let message = format!("DECLARE SCROLL CURSOR ... {lock} is not supported");
        return refused(message, "Scrollable");
    }
    if options.insensitive {
        let message = format!("DECLARE INSENSITIVE CURSOR ... {lock} is not valid");
        let error = Error::new(state::INVALID_CURSOR_DEFINITION, message);
        return Err(error.detail("Insensitive cursors must be READ ONLY."));
    }
    Ok(())
}

/// SECURITY LABEL: there are no providers to say what a label means.
pub(super) fn no_label_provider(named: Option<&str>) -> Error {
    let message = match named {
        None => "no security label providers have been loaded".to_owned(),
        Some(name) => format!("security label provider \"{name}\" is not loaded"),
    };
    Error::new(state::INVALID_PARAMETER_VALUE, message)
}
