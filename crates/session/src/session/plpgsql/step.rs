//! The instructions of a call, one by one.

use std::rc::Rc;
use std::time::{Duration, Instant};

use throng_bind::binder;
use throng_bind::expr::Expr;
use throng_syntax::plpgsql::{
    Caught, Code, Destination, Diagnostic, Handler, Held, Op, Slot, Target,
};
use throng_types::error::{Severity, state};
use throng_types::{Datum, Error, Result, SqlState, SqlType, oid};

use super::super::Session;
use super::super::portal::Portal;
use super::bound_text::As;
use super::record::is_row;
use super::rows::Done;
use super::{Active, Machine, Outcome};

/// Instructions between two looks at the clock.
const TICKS: u32 = 64;
/// How long a call may hold its core before others get their turn.
pub(super) const SLICE: Duration = Duration::from_micros(200);

/// The same, where each instruction is a statement: they take long enough to look at the clock
/// after each.
const LONG: Duration = Duration::from_millis(2);

/// What an instruction asks for.
enum Next {
    Go,
    Jump(usize),
    Leave(Outcome),
}

fn runs_statement(op: &Op) -> bool {
    matches!(
        op,
        Op::Perform(_) | Op::Call(_) | Op::Sql { .. } | Op::Execute { .. }
    )
}

impl Session {
    /// Runs a call to its end, or to where it ends the transaction.
    pub(super) async fn run_machine(&self, m: &mut Machine) -> Result<Outcome> {
        let frames = &self.procedures.frames;
        frames.borrow_mut().push(m.frame.clone());
        let depth = frames.borrow().len();
        let ran = self.run_instructions(m).await;
        frames.borrow_mut().truncate(depth - 1);
        ran
    }

    async fn run_instructions(&self, m: &mut Machine) -> Result<Outcome> {
        let compiled = m.compiled.clone();
        let mut ticks = TICKS;
        let mut began = Instant::now();
        loop {
            ticks -= 1;
            if ticks == 0 {
                ticks = TICKS;
                if began.elapsed() >= SLICE {
                    if let Err(e) = self.handle.cancel_flag().check() {
                        self.caught(m, &compiled.code, e).await?;
                        continue;
                    }
                    throng_exec::turns::next_turn().await;
                    began = Instant::now();
                    m.now = None;
                }
            }
            let Some(instr) = compiled.code.instrs.get(m.pc) else {
                return Err(Error::internal("past the end of a body"));
            };
            m.frame.line.set(instr.line);
            m.frame.what.set(instr.what);
            let stepped = self.step(m, &compiled.code, &instr.op).await;
            if runs_statement(&instr.op) && began.elapsed() >= LONG {
                ticks = 1;
            }
            match stepped {
                Ok(Next::Go) => m.pc += 1,
                Ok(Next::Jump(to)) => m.pc = to,
                Ok(Next::Leave(outcome)) => {
                    m.pc += 1;
                    return Ok(outcome);
                }
                Err(e) => self.caught(m, &compiled.code, e).await?,
            }
        }
    }

    /// An error came up: goes on in the handler that is for it, its block undone.
    pub(super) async fn caught(&self, m: &mut Machine, code: &Code, mut e: Error) -> Result<()> {
        m.stale();
        *m.frame.sql.borrow_mut() = None;
        e.add_context(&place_of(m));
        if matches!(e.fields().severity, Severity::Fatal | Severity::Panic) {
            return Err(e);
        }
        while let Some(active) = m.tries.pop() {
            self.undo_block(&active).await?;
            m.loops.truncate(active.loops);
            m.errors.truncate(active.errors);
            let Op::Try(block) = &code.instrs[active.at].op else {
                return Err(Error::internal("a handler of no block"));
            };
            let Some(handler) = handler_for(&block.handlers, e.code()) else {
                continue;
            };
            m.values[usize::from(block.sqlstate)] = Datum::text(e.code().as_str());
            let told = self.spelled(e.clone());
            m.values[usize::from(block.sqlerrm)] = Datum::text(told.message());
            m.errors.push(told);
            m.pc = handler.at;
            return Ok(());
        }
        Err(e)
    }

    async fn undo_block(&self, active: &Active) -> Result<()> {
        self.undo_beneath(active.savepoint);
        let stays = |portal: &Portal| portal.outlives_savepoint(active.savepoint);
        let ended = self.portals.borrow_mut().retain(stays);
        ended.drop_in_turns().await;
        self.release_savepoints(active.savepoint)
    }

    async fn step(&self, m: &mut Machine, code: &Code, op: &Op) -> Result<Next> {
        match op {
            Op::Nothing => {}
            Op::Jump(to) => return Ok(Next::Jump(*to)),
            Op::Unless { condition, to } => {
                if !self.is_true(m, *condition).await? {
                    return Ok(Next::Jump(*to));
                }
            }
            Op::Assign { target, value } => self.assign(m, target, *value).await?,
            Op::Declare { slot, default } => self.declare_variable(m, *slot, *default).await?,
            Op::NextInt { slot, body } => {
                if self.next_int(m, *slot)? {
                    return Ok(Next::Jump(*body));
                }
            }
            Op::NextRow { into, body } => {
                if Box::pin(self.next_of_rows(m, into)).await? {
                    return Ok(Next::Jump(*body));
                }
            }
            Op::NextItem { into, body } => {
                if Box::pin(self.next_item(m, into)).await? {
                    return Ok(Next::Jump(*body));
                }
            }
            Op::EndLoop => {
                if let Some(ended) = m.loops.pop() {
                    let found = ended.found();
                    self.loop_ended(&ended);
                    m.set_found(found);
                }
            }
            Op::Return(Some(value)) => {
                Box::pin(self.return_value(m, *value)).await?;
                return self.leave(m);
            }
            Op::Return(None) => {
                Box::pin(self.return_outputs(m, code)).await?;
                return self.leave(m);
            }
            other => return Box::pin(self.rare_step(m, code, other)).await,
        }
        Ok(Next::Go)
    }

    async fn rare_step(&self, m: &mut Machine, code: &Code, op: &Op) -> Result<Next> {
        match op {
            Op::CaseValue { slot, value } => {
                let (value, ty) = self.value(m, *value, None).await?;
                m.types[usize::from(*slot)] = ty;
                m.values[usize::from(*slot)] = value;
                m.weigh(usize::from(*slot))?;
            }
            Op::NoCase => {
                let message = "case not found";
                return Err(Error::new(state::CASE_NOT_FOUND, message)
                    .hint("CASE statement is missing ELSE part."));
            }
            Op::Perform(id) => {
                let done = self.run_statement(m, *id, 0).await?;
                m.row_count = done.count;
                m.set_found(done.count > 0);
            }
            Op::Call(id) => {
                // Under a handler nothing may be ended, by nobody.
                if m.alone
                    && self.savepoint_depth() == 0
                    && let Some(callee) = self.callee(m, *id).await?
                {
                    return Ok(Next::Leave(Outcome::Call(Box::new(callee))));
                }
                self.call_inside(m, *id).await?;
            }
            Op::Sql {
                statement,
                into,
                strict,
            } => self.sql(m, *statement, into.as_ref(), *strict).await?,
            Op::Execute {
                dynamic,
                into,
                strict,
            } => {
                let most = match (into, strict) {
                    (None, _) => 0,
                    (Some(_), true) => 2,
                    (Some(_), false) => 1,
                };
                let done = self.run_dynamic(m, dynamic, most).await?;
                let (count, had) = (done.count, into.is_some());
                if let Some(into) = into {
                    self.put_in_places(m, into, *strict, &done, None).await?;
                }
                m.row_count = match had && done.select {
                    true => count.min(1),
                    false => count,
                };
            }
            Op::Diagnostics { stacked, items } => {
                for (target, item) in items {
                    let (value, ty) = self.diagnostic(m, *stacked, *item)?;
                    self.put(m, target, value, ty).await?;
                }
            }
            Op::ForInt {
                slot,
                from,
                until,
                step,
                reverse,
            } => {
                self.for_int(m, *slot, *from, *until, *step, *reverse)
                    .await?
            }
            Op::ForRows { rows, into } => self.for_rows(m, rows, into).await?,
            Op::ForEach { into, slice, array } => self.for_each(m, into, *slice, *array).await?,
            Op::Try(_) => {
                self.push_savepoint(String::new())?;
                let savepoints = self.transaction()?.savepoints.borrow().len();
                m.tries.push(Active {
                    at: m.pc,
                    savepoint: savepoints - 1,
                    loops: m.loops.len(),
                    errors: m.errors.len(),
                });
            }
            Op::EndTry => {
                if let Some(active) = m.tries.pop() {
                    self.release_savepoints(active.savepoint)?;
                    m.stale();
                }
            }
            Op::EndHandler => {
                m.errors.pop();
            }
            Op::Finish => {
                let returns =
                    m.set || matches!(m.wanted, super::Wanted::Nothing) || !code.outputs.is_empty();
                if !returns {
                    m.frame.what.set("");
                    m.frame.line.set(0);
                    let message = "control reached end of function without RETURN";
                    return Err(Error::new(state::NO_RETURN_STATEMENT, message));
                }
                self.return_outputs(m, code).await?;
                return self.leave(m);
            }
            Op::ReturnNext(value) => self.return_next(m, code, *value).await?,
            Op::ReturnQuery(rows) => self.return_query(m, rows).await?,
            Op::Raise(raise) => self.raise(m, raise).await?,
            Op::Reraise => {
                return Err(match m.errors.last() {
                    Some(e) => e.clone(),
                    None => {
                        let message =
                            "RAISE without parameters cannot be used outside an exception handler";
                        Error::new(state::STACKED_DIAGNOSTICS_WITHOUT_HANDLER, message)
                    }
                });
            }
            Op::Assert { condition, message } => self.assert(m, *condition, *message).await?,
            Op::Open { slot, what, scroll } => self.open(m, *slot, what, *scroll).await?,
            Op::Fetch(fetch) => self.fetch_into(m, fetch).await?,
            Op::Close(slot) => {
                let name = self.cursor_name(m, *slot)?;
                self.close_cursor(Some(&name)).await?;
            }
            Op::Commit { chain } => return self.end_transaction(m, "commit", *chain),
            Op::Rollback { chain } => return self.end_transaction(m, "roll back", *chain),
            _ => return Err(Error::internal("an instruction that nobody runs")),
        }
        Ok(Next::Go)
    }

    /// The call ends: what it began is done.
    fn leave(&self, m: &mut Machine) -> Result<Next> {
        while let Some(ended) = m.loops.pop() {
            self.loop_ended(&ended);
        }
        if let Some(first) = m.tries.first() {
            let savepoint = first.savepoint;
            m.tries.clear();
            self.release_savepoints(savepoint)?;
        }
        Ok(Next::Leave(Outcome::Done))
    }

    fn end_transaction(&self, m: &Machine, verb: &str, chain: bool) -> Result<Next> {
        let wrong = |message: &str| {
            let code = state::INVALID_TRANSACTION_TERMINATION;
            Err(Error::new(code, message))
        };
        if !m.alone {
            return wrong("invalid transaction termination");
        }
        if !m.tries.is_empty() {
            return wrong(&format!("cannot {verb} while a subtransaction is active"));
        }
        Ok(Next::Leave(match verb {
            "commit" => Outcome::Commit { chain },
            _ => Outcome::Rollback { chain },
        }))
    }

    async fn declare_variable(
        &self,
        m: &mut Machine,
        slot: Slot,
        default: Option<usize>,
    ) -> Result<()> {
        m.frame
            .what
            .set("during statement block local variable initialization");
        let at = usize::from(slot);
        let held = m.held(slot);
        m.shapes[at] = None;
        let Some(default) = default else {
            m.values[at] = match m.compiled.code.variables[at].cursor {
                Some(_) => Datum::text(m.name(slot)),
                None => Datum::Null,
            };
            if held.domain.is_some() {
                m.values[at] = self.coerce(m, Datum::Null, held.ty, held).await?;
            }
            return Ok(());
        };
        let target = Target::of(slot);
        self.assign(m, &target, default).await
    }

    async fn assign(&self, m: &mut Machine, target: &Target, id: usize) -> Result<()> {
        // Parts are put into what is there, so nobody else may hold it.
        let simple = target.field.is_none() && target.parts.is_empty();
        let wanted = match simple {
            true => Some(m.held(target.slot)),
            false => None,
        };
        let bound_as = match simple {
            true => As::Value(wanted.filter(|held| held.ty.oid != oid::RECORD)),
            false => As::Assigned(target),
        };
        let scalar = wanted.filter(|held| !is_row(held.ty));
        let variable = &m.compiled.code.variables[usize::from(target.slot)];
        if matches!(m.values[usize::from(target.slot)], Datum::Array(_))
            && target.field.is_none()
            && variable.held.domain.is_none()
            && !variable.not_null
        {
            let kept = self.kept(m, id, bound_as).await?;
            if self.assigned_in_place(m, target.slot, &kept).await? {
                return Ok(());
            }
        }
        let (value, ty) = self.value_as(m, id, bound_as, scalar).await?;
        if !target.parts.is_empty() && self.is_kept_query(m, id) {
            return self.put_part(m, target, id, value, ty).await;
        }
        if let Some(held) = scalar
            && !m.compiled.code.variables[usize::from(target.slot)].not_null
            && held.ty == m.types[usize::from(target.slot)]
        {
            m.values[usize::from(target.slot)] = value;
            return m.weigh(usize::from(target.slot));
        }
        let (value, ty) = match simple {
            true => (value, ty),
            false => {
                let now = self.now(m);
                let (held, _) = self.place_of(m, target, &now.catalog)?;
                (self.coerce(m, value, ty, held).await?, ty)
            }
        };
        self.store(m, target, value, ty).await
    }

    /// Puts a value into a part of what a target holds.
    async fn put_part(
        &self,
        m: &mut Machine,
        target: &Target,
        id: usize,
        value: Datum,
        ty: SqlType,
    ) -> Result<()> {
        let now = self.now(m);
        let source = m.source(id).clone();
        let (held, base) = self.place_of(m, target, &now.catalog)?;
        // The value is a parameter behind the variables.
        let mut variables = (*m.visible_of(&source)).clone();
        let given = Expr::Param(variables.types.len() as u16, ty);
        variables.types.push(ty);
        let variables = Rc::new(variables);
        let whole = (m.name(target.slot), &base, held);
        let expr = self.with_context(&now.catalog, |ctx| {
            binder::pl_with_part(ctx, &variables, whole, &target.parts, given)
        });
        let expr = expr.map_err(|e| super::bound_text::about_text(e, &source))?;
        m.values.push(value);
        let whole = self.evaluate(m, &expr, true).await;
        m.values.pop();
        let ty = expr.ty();
        self.store(m, target, whole?, ty).await
    }

    /// Casts a value to what a target holds, and puts it there.
    pub(super) async fn put(
        &self,
        m: &mut Machine,
        target: &Target,
        value: Datum,
        ty: SqlType,
    ) -> Result<()> {
        if !target.parts.is_empty() {
            return Err(Error::unsupported("INTO a part of a variable"));
        }
        let now = self.now(m);
        let (held, _) = self.place_of(m, target, &now.catalog)?;
        let value = self.coerce(m, value, ty, held).await?;
        Box::pin(self.store(m, target, value, ty)).await
    }

    async fn sql(
        &self,
        m: &mut Machine,
        id: usize,
        into: Option<&Destination>,
        strict: bool,
    ) -> Result<()> {
        let most = match (into, strict) {
            (None, _) => 0,
            (Some(_), true) => 2,
            (Some(_), false) => 1,
        };
        if into.is_none() {
            self.must_have_destination(m, id).await?;
        }
        let done = self.run_statement(m, id, most).await?;
        let Some(into) = into else {
            if done.gives {
                return Err(no_destination(false));
            }
            m.row_count = done.count;
            if done.data {
                m.set_found(done.count > 0);
            }
            return Ok(());
        };
        if !done.gives {
            let message = "INTO used with a command that cannot return data";
            return Err(Error::new(state::SYNTAX_ERROR, message));
        }
        self.put_in_places(m, into, strict, &done, Some(id)).await?;
        m.row_count = match done.select {
            true => done.count.min(1),
            false => done.count,
        };
        m.set_found(done.count > 0);
        Ok(())
    }

    /// 42601: a query whose rows nobody takes.
    async fn must_have_destination(&self, m: &mut Machine, id: usize) -> Result<()> {
        let text = m.source(id).text.trim_start_matches(['(', ' ', '\n', '\t']);
        let word: String = text.chars().take_while(char::is_ascii_alphabetic).collect();
        let selects = ["select", "values", "table", "with"];
        if !selects.iter().any(|s| word.eq_ignore_ascii_case(s)) {
            return Ok(());
        }
        let kept = self.kept(m, id, As::Statement).await?;
        if let super::bound_text::Meant::Query(planned) = &kept.what
            && let Some(plan) = &planned.known.plan
            && plan.tag == throng_plan::StatementTag::Select
        {
            return Err(no_destination(true));
        }
        Ok(())
    }

    async fn put_in_places(
        &self,
        m: &mut Machine,
        into: &Destination,
        strict: bool,
        done: &Done,
        statement: Option<usize>,
    ) -> Result<()> {
        let params = |m: &Machine| self.strict_params(m, statement);
        if strict && done.rows.is_empty() {
            let message = "query returned no rows";
            let mut error = Error::new(state::NO_DATA_FOUND, message);
            error.fields_mut().detail = params(m);
            return Err(error);
        }
        if done.rows.len() > 1 && (strict || !done.select) {
            let message = "query returned more than one row";
            let mut error = Error::new(state::TOO_MANY_ROWS, message)
                .hint("Make sure the query returns a single row, or use LIMIT 1.");
            error.fields_mut().detail = params(m);
            return Err(error);
        }
        let shape = super::record::shape_of(&done.columns);
        let row = done.rows.first().map(Vec::as_slice);
        self.put_into(m, into, row, &done.columns, &shape).await
    }

    /// What variables a strict statement used, where that is to be told.
    fn strict_params(&self, m: &Machine, statement: Option<usize>) -> Option<String> {
        if m.compiled.code.print_strict_params != Some(true) {
            return None;
        }
        let source = m.source(statement?);
        let mut shown = Vec::new();
        for (_, name, slot) in m.compiled.code.in_sight(source) {
            let word = |c: char| !(c.is_alphanumeric() || c == '_');
            if source
                .text
                .split(word)
                .any(|w| w.eq_ignore_ascii_case(name))
            {
                let value = &m.values[usize::from(slot)];
                let text = self.text_of(value, m.types[usize::from(slot)]);
                shown.push(match text {
                    Some(text) => format!("{name} = '{}'", text.replace('\'', "''")),
                    None => format!("{name} = NULL"),
                });
            }
        }
        (!shown.is_empty()).then(|| format!("parameters: {}", shown.join(", ")))
    }

    /// A value as text, as a message has it.
    pub(super) fn text_of(&self, value: &Datum, ty: SqlType) -> Option<String> {
        if value.is_null() {
            return None;
        }
        let catalog = self.catalog();
        let host = self.host(&catalog);
        let mut text = Vec::new();
        throng_values::io::output_text(&host.eval(), value, ty, &mut text);
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    fn diagnostic(&self, m: &Machine, stacked: bool, item: Diagnostic) -> Result<(Datum, SqlType)> {
        let text = |text: Option<&str>| (Datum::text(text.unwrap_or_default()), SqlType::TEXT);
        if !stacked {
            return Ok(match item {
                Diagnostic::RowCount => (Datum::Int8(m.row_count as i64), SqlType::INT8),
                Diagnostic::RoutineOid => {
                    let oid = m.compiled.def.as_ref().map_or(0, |def| def.oid.0);
                    (Datum::Oid(oid), SqlType::OID)
                }
                _ => (Datum::text(self.context_now()), SqlType::TEXT),
            });
        }
        let Some(error) = m.errors.last() else {
            let message = "GET STACKED DIAGNOSTICS cannot be used outside an exception handler";
            return Err(Error::new(
                state::STACKED_DIAGNOSTICS_WITHOUT_HANDLER,
                message,
            ));
        };
        let fields = error.fields();
        Ok(match item {
            Diagnostic::ReturnedSqlstate => text(Some(error.code().as_str())),
            Diagnostic::MessageText => text(Some(&fields.message)),
            Diagnostic::ErrorDetail => text(fields.detail.as_deref()),
            Diagnostic::ErrorHint => text(fields.hint.as_deref()),
            Diagnostic::ErrorContext => text(fields.context.as_deref()),
            Diagnostic::ColumnName => text(fields.column.as_deref()),
            Diagnostic::ConstraintName => text(fields.constraint.as_deref()),
            Diagnostic::DatatypeName => text(fields.data_type.as_deref()),
            Diagnostic::TableName => text(fields.table.as_deref()),
            Diagnostic::SchemaName => text(fields.schema.as_deref()),
            _ => (Datum::text(self.context_now()), SqlType::TEXT),
        })
    }

    /// Where all calls under way are, the innermost first.
    pub(super) fn context_now(&self) -> String {
        let frames = self.procedures.frames.borrow();
        let mut lines = Vec::new();
        for (i, frame) in frames.iter().rev().enumerate() {
            if i > 0
                && let Some(sql) = &*frame.sql.borrow()
            {
                lines.push(format!("SQL statement \"{sql}\""));
            }
            lines.push(frame.shown());
        }
        lines.join("\n")
    }
}

impl super::Frame {
    pub(super) fn shown(&self) -> String {
        let (label, line, what) = (&self.label, self.line.get(), self.what.get());
        let at = match what.starts_with("during") || what.starts_with("while") {
            true => "",
            false => "at ",
        };
        match (line, what) {
            (_, "") => format!("PL/pgSQL function {label}"),
            (0, _) => format!("PL/pgSQL function {label} {at}{what}"),
            _ => format!("PL/pgSQL function {label} line {line} {at}{what}"),
        }
    }
}

fn place_of(m: &Machine) -> String {
    m.frame.shown()
}

/// The first handler that is for an error: OTHERS is for all but those that nobody should pass over
/// by accident.
fn handler_for(handlers: &[Handler], code: SqlState) -> Option<&Handler> {
    let fits = |caught: &Caught| match caught {
        Caught::Others => code != state::QUERY_CANCELED && code != state::ASSERT_FAILURE,
        Caught::State(wanted) => {
            *wanted == code || wanted.0[2..] == *b"000" && wanted.0[..2] == code.0[..2]
        }
    };
    handlers.iter().find(|h| h.caught.iter().any(fits))
}

#[cold]
fn no_destination(hint: bool) -> Error {
    let message = "query has no destination for result data";
    let error = Error::new(state::SYNTAX_ERROR, message);
    match hint {
        true => error.hint("If you want to discard the results of a SELECT, use PERFORM instead."),
        false => error,
    }
}

pub(super) const TEXT: Held = Held {
    ty: SqlType::TEXT,
    domain: None,
};
