//! Commands in a body: definitions, settings, EXPLAIN, cursors' own statements, nested CALL.

use throng_bind::command::{Bound, BoundStatement, Command};
use throng_bind::expr::Expr;
use throng_syntax::parse::ast::DoBlock;
use throng_txn::Snapshot;
use throng_types::error::state;
use throng_types::{Datum, Error, Result};
use throng_values::func::EvalContext;
use throng_values::func::RelColumn;
use throng_values::settings::Scope;

use super::super::Session;
use super::super::routine::not_volatile;
use super::Machine;
use super::rows::Done;
use throng_exec::client::Notification;
use throng_exec::client::{Client, ClientFuture, Format, RowShape};
use throng_exec::run::Row;

/// Takes the rows that a command shows; what it says is for the session to tell.
pub(super) struct Gathered<'a> {
    session: &'a Session,
    pub rows: Vec<Row>,
    pub columns: Vec<RelColumn>,
    pub shown: bool,
    bytes: usize,
}

/// What a command's rows may take.
const MOST_BYTES: usize = 64 << 20;

impl<'a> Gathered<'a> {
    pub fn new(session: &'a Session) -> Gathered<'a> {
        Gathered {
            session,
            rows: vec![],
            columns: vec![],
            shown: false,
            bytes: 0,
        }
    }
}

impl Client for Gathered<'_> {
    fn row_description(&mut self, shape: &RowShape) {
        self.shown = true;
        let column = |f: &throng_exec::client::Field| RelColumn {
            name: f.name.clone(),
            ty: f.ty,
        };
        self.columns = shape.fields.iter().map(column).collect();
    }
    fn row(&mut self, row: &[Datum], shape: &RowShape, _: &EvalContext<'_>) -> Result<()> {
        self.bytes += throng_exec::run::hashed::row_bytes(row);
        if self.bytes > MOST_BYTES {
            return Err(throng_exec::run::context::too_much_kept(MOST_BYTES));
        }
        if !self.shown {
            self.row_description(shape);
        }
        self.rows
            .push(row[..row.len().min(shape.fields.len())].to_vec());
        Ok(())
    }
    fn command_complete(&mut self, _: &str) {}
    fn empty_query(&mut self) {}
    fn portal_suspended(&mut self) {}
    fn notice(&mut self, notice: &Error) {
        // Past what may be told in one statement the rest is not.
        let _ = self.session.tell(notice.clone());
    }
    fn hears_at_once(&self) -> bool {
        false
    }
    fn parameter_status(&mut self, _: &str, _: &str) {}
    fn notification(&mut self, _: i32, _: &Notification) {}
    fn copy_in_start(&mut self, _: Format, _: usize) {}
    fn copy_read<'a>(&'a mut self, _: &'a mut Vec<u8>) -> ClientFuture<'a, bool> {
        Box::pin(std::future::ready(Ok(false)))
    }
    fn copy_out_start(&mut self, _: Format, _: usize) {}
    fn copy_data(&mut self, _: &[u8]) {}
    fn copy_out_done(&mut self) {}
    fn backlog(&self) -> usize {
        0
    }
    fn flush(&mut self) -> ClientFuture<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }
}

fn inside(what: &str) -> Error {
    Error::unsupported(format!("{what} in a function"))
}

impl Session {
    /// Runs a command of a body in SQL; `caller`: what a function sees that changes nothing.
    pub(in super::super) async fn run_command_alone(
        &self,
        bound: Bound,
        text: &str,
        values: Vec<Datum>,
        caller: Option<Snapshot>,
    ) -> Result<()> {
        let nothing = DoBlock {
            text: "BEGIN END".to_owned(),
            language: None,
            at: None,
        };
        let mut m = self.fresh(self.compile_block(&nothing)?);
        m.caller = caller;
        self.run_command_inside(&mut m, bound, text, values).await?;
        Ok(())
    }

    /// Runs a command of a body, whose parameters are `values`.
    pub(super) async fn run_command_inside(
        &self,
        m: &mut Machine,
        bound: Bound,
        text: &str,
        values: Vec<Datum>,
    ) -> Result<Done> {
        for notice in bound.notices {
            self.tell(notice)?;
        }
        self.transaction()?.used.set(true);
        self.transaction()?.txn.next_command()?;
        let mut gathered = Gathered::new(self);
        let outer = self.command_values.replace(values.clone());
        let ran = self
            .run_bound_inside(m, bound.statement, text, values, &mut gathered)
            .await;
        *self.command_values.borrow_mut() = outer;
        let count = ran?;
        self.transaction()?.txn.next_command()?;
        m.stale();
        Ok(Done {
            count: count.unwrap_or(gathered.rows.len() as u64),
            gives: gathered.shown,
            rows: gathered.rows,
            columns: gathered.columns,
            data: false,
            select: false,
        })
    }

    async fn run_bound_inside(
        &self,
        m: &mut Machine,
        statement: BoundStatement,
        text: &str,
        values: Vec<Datum>,
        client: &mut Gathered<'_>,
    ) -> Result<Option<u64>> {
        match statement {
            BoundStatement::Ddl(ddl) => {
                if m.caller.is_some() {
                    return Err(not_volatile(&ddl.command()));
                }
                self.must_be_writable(&ddl.command())?;
                if let Some(what) = ddl.concurrently() {
                    let message = format!("{what} cannot be executed from a function");
                    return Err(Error::new(state::ACTIVE_SQL_TRANSACTION, message));
                }
                let (rows, notices) = Box::pin(self.define(&ddl)).await?;
                for notice in notices {
                    self.tell(notice)?;
                }
                Ok(rows.or(Some(0)))
            }
            BoundStatement::Explain { options, query } => {
                Box::pin(self.explain(&options, *query, client)).await?;
                Ok(None)
            }
            BoundStatement::Command(command) => {
                self.run_plain_command(m, *command, text, values, client)
                    .await?;
                Ok(None)
            }
            BoundStatement::ExplainExecute { .. } => Err(inside("EXPLAIN EXECUTE")),
            BoundStatement::CreateTableAsExecute { .. } => Err(inside("CREATE TABLE AS EXECUTE")),
            BoundStatement::CreateSchema { .. } => Err(inside("CREATE SCHEMA with elements")),
            BoundStatement::Query(_) => Err(Error::internal("a query among commands")),
        }
    }

    async fn run_plain_command(
        &self,
        m: &mut Machine,
        command: Command,
        text: &str,
        values: Vec<Datum>,
        client: &mut Gathered<'_>,
    ) -> Result<()> {
        refuse_of_transaction(&command)?;
        self.refuse_restricted(&command)?;
        match command {
            Command::Empty | Command::NothingTo(_) => Ok(()),
            Command::Set { name, value, local } => {
                let scope = if local { Scope::Local } else { Scope::Session };
                self.set_config(&name, value.as_deref(), scope)
            }
            Command::Reset(Some(name)) => self.set_config(&name, None, Scope::Session),
            Command::Show(Some(name)) => {
                self.may_examine(&name)?;
                let value = self.show(&name)?;
                client.shown = true;
                client.columns = vec![RelColumn {
                    name,
                    ty: throng_types::SqlType::TEXT,
                }];
                client.rows.push(vec![value.into()]);
                Ok(())
            }
            Command::Copy(_) => {
                let message = "cannot COPY to/from client in PL/pgSQL";
                Err(Error::new(state::FEATURE_NOT_SUPPORTED, message))
            }
            Command::Declare {
                name,
                query,
                options,
            } => self.open_cursor(name, *query, options, "", None).await,
            Command::Fetch {
                name,
                direction,
                moving,
            } => self
                .fetch(&name, direction, moving, client)
                .await
                .map(|_| ()),
            Command::Close(name) => self.close_cursor(name.as_deref()).await,
            Command::LockTable {
                tables,
                mode,
                nowait,
            } => self.lock_named(&tables, mode, nowait).await,
            Command::SetConstraints {
                all,
                constraints,
                deferred,
            } => {
                let named = (!all).then_some(&constraints);
                self.set_constraints(named, deferred).await
            }
            Command::Notify { channel, payload } => self.notify(&channel, &payload),
            Command::Listen(channel) => {
                self.listen(channel);
                Ok(())
            }
            Command::Unlisten(channel) => {
                self.unlisten(channel);
                Ok(())
            }
            Command::Call(call) => {
                let columns = call.columns.clone();
                let expr = Expr::Routine(call);
                let kept = std::mem::replace(&mut m.values, values);
                let called = self.evaluate(m, &expr, true).await;
                m.values = kept;
                if !columns.is_empty() {
                    client.shown = true;
                    client.rows.push(match called? {
                        Datum::Record(record) => record.values.clone(),
                        _ => vec![Datum::Null; columns.len()],
                    });
                    client.columns = columns;
                    return Ok(());
                }
                called.map(|_| ())
            }
            Command::Do(block) => Box::pin(self.run_do_inside(&block)).await,
            Command::Vacuum { .. } => {
                let message = "VACUUM cannot be executed from a function";
                Err(Error::new(state::ACTIVE_SQL_TRANSACTION, message))
            }
            Command::Analyze {
                tables,
                skip_locked,
            } => Box::pin(self.analyze_inside(tables, skip_locked, client)).await,
            Command::Reset(None) => {
                let mut settings = self.settings.borrow_mut();
                settings.reset_all(self.caller())
            }
            Command::Show(None) => Err(inside("SHOW ALL")),
            Command::Prepare {
                name,
                types,
                statement,
            } => Box::pin(self.prepare_named(name, types, statement, text)).await,
            Command::Execute { .. } => Err(inside("EXECUTE of a prepared statement")),
            Command::Deallocate(name) => self.deallocate(name.as_deref()),
            Command::SetRole { role, local } => self.set_role(role.as_deref(), local),
            Command::SetSessionAuthorization { role, local } => {
                self.set_session_authorization(role.as_deref(), local)
            }
            _ => Err(inside("this command")),
        }
    }
}

/// Where a transaction begins and ends is not for a body's commands to say.
fn refuse_of_transaction(command: &Command) -> Result<()> {
    match command {
        Command::Begin(_)
        | Command::Commit { .. }
        | Command::Rollback { .. }
        | Command::TwoPhase(_)
        | Command::Savepoint(_)
        | Command::RollbackTo(_)
        | Command::Release(_) => {
            let message = "unsupported transaction command in PL/pgSQL";
            Err(Error::new(state::FEATURE_NOT_SUPPORTED, message))
        }
        _ => Ok(()),
    }
}
