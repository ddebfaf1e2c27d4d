//! Prepared statements: parsed once, planned once for each catalog and each set of settings that matter.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use throng_sql::command::{BoundStatement, Command};
use throng_sql::parse::ast::Statement;
use throng_sql::plan::PlannedStatement;
use throng_sql::settings::Id;
use throng_sql::{func, io};
use throng_types::error::state;
use throng_types::{Datum, Error, Oid, Result, SqlType};

use super::query::{field, fields};
use super::{Session, now};
use crate::client::{Client, Field};

/// A statement to be run any number of times.
pub(crate) struct Prepared {
    pub sql: String,
    /// None: the empty statement.
    pub statement: Option<Arc<Statement>>,
    pub params: Vec<SqlType>,
    /// The columns of its result; None where it gives no rows.
    pub fields: Option<Vec<Field>>,
    /// Made by PREPARE rather than by the protocol.
    pub from_sql: bool,
    pub made_at: i64,
    plan: RefCell<Option<(PlanKey, Arc<PlannedStatement>)>>,
}

/// What a plan was made for: while this is the same, so is the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PlanKey {
    catalog: u64,
    /// With the transaction's own changes: such a plan is not kept.
    own: bool,
    role: Oid,
    /// Place in the session's list of [`PlanSettings`].
    settings: u32,
}

impl PlanKey {
    /// Whether it holds for this transaction only.
    pub fn is_own(&self) -> bool {
        self.own
    }
}

/// The settings that plans depend on: where names are sought, how constants are read, which paths are allowed.
#[derive(Clone, Debug, PartialEq)]
struct PlanSettings {
    texts: [String; 4],
    paths: [bool; 4],
}

/// The combinations of settings a session has planned with.
#[derive(Default)]
pub(super) struct SettingsSeen {
    seen: Vec<PlanSettings>,
    /// The settings' version that `current` is of, and the place in `seen`.
    current: Option<(u64, u32)>,
}

/// More combinations than a session goes through; past them the list begins anew, and with it all numbers grow.
const MOST_COMBINATIONS: u32 = 1000;

pub(super) fn is_data(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Query(_) | Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_)
    )
}

impl Session {
    /// What a plan made now would be made for.
    pub(super) fn plan_key(&mut self) -> PlanKey {
        let own = self
            .transaction
            .as_ref()
            .is_some_and(|t| t.catalog.is_some());
        let catalog = self.catalog().version();
        PlanKey {
            catalog,
            own,
            role: self.role.oid,
            settings: self.settings_number(),
        }
    }

    fn settings_number(&mut self) -> u32 {
        let settings = self.settings.borrow();
        let version = settings.version();
        if let Some((of, number)) = self.plan_settings.current
            && of == version
        {
            return number;
        }
        let text = |id| settings.text(id).to_owned();
        let now = PlanSettings {
            texts: [
                text(Id::SearchPath),
                text(Id::DateStyle),
                text(Id::IntervalStyle),
                text(Id::TimeZone),
            ],
            paths: [
                Id::EnableSeqscan,
                Id::EnableIndexscan,
                Id::EnableHashjoin,
                Id::EnableNestloop,
            ]
            .map(|id| settings.bool(id)),
        };
        let list = &mut self.plan_settings.seen;
        let number = match list.iter().position(|seen| *seen == now) {
            Some(at) => at,
            None => {
                list.push(now);
                list.len() - 1
            }
        } as u32;
        if number >= MOST_COMBINATIONS {
            // Plans kept under old numbers must not be found under new ones.
            list.clear();
            drop(settings);
            self.forget_plans();
        }
        self.plan_settings.current = Some((version, number));
        number
    }

    /// Makes all statements plan anew when they run next.
    pub(super) fn forget_plans(&self) {
        let shapes = self.shapes.values().flatten();
        for prepared in self.prepared.values().chain(shapes) {
            prepared.plan.take();
        }
    }

    /// Makes a prepared statement: binds it to know its parameters, plans it to know its columns.
    pub(super) fn prepare(
        &mut self,
        sql: &str,
        statement: Option<Arc<Statement>>,
        types: Vec<SqlType>,
        from_sql: bool,
    ) -> Result<Prepared> {
        let mut prepared = Prepared {
            sql: sql.to_owned(),
            statement,
            params: types,
            fields: None,
            from_sql,
            made_at: now(),
            plan: RefCell::default(),
        };
        let Some(statement) = prepared.statement.clone() else {
            return Ok(prepared);
        };
        let key = self.plan_key();
        let bound = self.bind_statement(&statement, sql, &prepared.params)?;
        match bound.statement {
            BoundStatement::Query(query) => {
                prepared.params = query.params.clone();
                let plan = Arc::new(self.plan(*query)?);
                prepared.fields = fields(&plan);
                if !key.own {
                    prepared.plan = RefCell::new(Some((key, plan)));
                }
            }
            BoundStatement::Explain { query, .. } => {
                prepared.params = query.params.clone();
                prepared.fields = Some(vec![field("QUERY PLAN", SqlType::TEXT)]);
            }
            BoundStatement::Ddl(_) => {}
            BoundStatement::Command(command) => {
                if let Command::Declare { query, .. } = &*command {
                    prepared.params = query.params.clone();
                }
                prepared.fields = self.command_fields(&command);
            }
        }
        Ok(prepared)
    }

    /// The columns of what a command shows.
    fn command_fields(&self, command: &Command) -> Option<Vec<Field>> {
        match command {
            Command::Show(name) => Some(super::command::show_fields(name.as_deref())),
            Command::Execute { name, .. } => self.prepared.get(name)?.fields.clone(),
            Command::Fetch {
                name,
                moving: false,
                ..
            } => self
                .portals
                .get(name)?
                .shape
                .as_ref()
                .map(|shape| shape.fields.clone()),
            _ => None,
        }
    }

    /// The plan of a prepared data statement, its tables locked.
    pub(super) async fn plan_of(&mut self, prepared: &Prepared) -> Result<Arc<PlannedStatement>> {
        let Some(statement) = &prepared.statement else {
            return Err(Error::internal("the empty statement has no plan"));
        };
        loop {
            let key = self.plan_key();
            let kept = prepared
                .plan
                .borrow()
                .as_ref()
                .filter(|(k, _)| *k == key)
                .map(|(_, p)| p.clone());
            let plan = match kept {
                Some(plan) => plan,
                None => self.replan(prepared, statement, key)?,
            };
            self.lock_tables(&plan.locks).await?;
            // While a lock was waited for, what it protects may have become another.
            if self.plan_key() == key {
                return Ok(plan);
            }
        }
    }

    #[cold]
    fn replan(
        &mut self,
        prepared: &Prepared,
        statement: &Statement,
        key: PlanKey,
    ) -> Result<Arc<PlannedStatement>> {
        let bound = self.bind_statement(statement, &prepared.sql, &prepared.params)?;
        let BoundStatement::Query(query) = bound.statement else {
            return Err(Error::internal("a command has no plan"));
        };
        let plan = Arc::new(self.plan(*query)?);
        let told = |fields: &Option<Vec<Field>>| -> Option<Vec<(String, SqlType)>> {
            Some(
                fields
                    .as_ref()?
                    .iter()
                    .map(|f| (f.name.clone(), f.ty))
                    .collect(),
            )
        };
        if told(&fields(&plan)) != told(&prepared.fields) {
            return Err(Error::new(
                state::FEATURE_NOT_SUPPORTED,
                "cached plan must not change result type",
            ));
        }
        if !key.own {
            *prepared.plan.borrow_mut() = Some((key, plan.clone()));
        }
        Ok(plan)
    }

    /// The values of a Bind message.
    pub(super) fn read_parameters(
        &mut self,
        prepared: &Prepared,
        name: &str,
        formats: &[i16],
        values: &[Option<&[u8]>],
    ) -> Result<Vec<Datum>> {
        let wrong = |message: String| Error::new(state::PROTOCOL_VIOLATION, message);
        if formats.len() > 1 && formats.len() != values.len() {
            return Err(wrong(format!(
                "bind message has {} parameter formats but {} parameters",
                formats.len(),
                values.len()
            )));
        }
        if values.len() != prepared.params.len() {
            return Err(wrong(format!(
                "bind message supplies {} parameters, but prepared statement \"{name}\" requires {}",
                values.len(),
                prepared.params.len()
            )));
        }
        let catalog = self.catalog();
        let host = self.host(&catalog);
        let ctx = host.eval();
        let mut datums = Vec::with_capacity(values.len());
        for (i, (value, ty)) in values.iter().zip(&prepared.params).enumerate() {
            let format = match formats {
                [] => 0,
                [one] => *one,
                many => many[i],
            };
            datums.push(match value {
                None => Datum::Null,
                Some(bytes) => read_parameter(&ctx, bytes, format, *ty)?,
            });
        }
        Ok(datums)
    }

    /// PREPARE.
    pub(super) fn prepare_named(
        &mut self,
        name: String,
        types: Vec<SqlType>,
        statement: Arc<Statement>,
        sql: &str,
    ) -> Result<()> {
        if self.prepared.contains_key(&name) {
            return Err(Error::new(
                state::DUPLICATE_PREPARED_STATEMENT,
                format!("prepared statement \"{name}\" already exists"),
            ));
        }
        let prepared = self.prepare(sql, Some(statement), types, true)?;
        self.prepared.insert(name, Rc::new(prepared));
        Ok(())
    }

    /// DEALLOCATE.
    pub(super) fn deallocate(&mut self, name: Option<&str>) -> Result<()> {
        match name {
            None => self.prepared.clear(),
            Some(name) => {
                self.find_prepared(name)?;
                self.prepared.remove(name);
            }
        }
        Ok(())
    }

    /// EXECUTE, with its arguments' values.
    pub(super) async fn execute_prepared(
        &mut self,
        name: &str,
        values: Vec<Datum>,
        client: &mut dyn Client,
    ) -> Result<()> {
        let prepared = self.find_prepared(name)?;
        let plan = self.plan_of(&prepared).await?;
        self.run_planned(plan, values, client).await
    }
}

fn read_parameter(
    ctx: &func::EvalContext<'_>,
    bytes: &[u8],
    format: i16,
    ty: SqlType,
) -> Result<Datum> {
    match format {
        0 => io::input_text(ctx, io::binary::check_text(bytes)?, ty),
        1 => io::input_binary(ctx, bytes, ty),
        other => Err(Error::new(
            state::PROTOCOL_VIOLATION,
            format!("unsupported format code: {other}"),
        )),
    }
}
