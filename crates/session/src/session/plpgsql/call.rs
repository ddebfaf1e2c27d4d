//! Calls: a body found or read, arguments put into variables, what comes back.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use throng_bind::binder::{self, BodyResult, body_error};
use throng_catalog::{ArgDef, RoutineBody, RoutineDef, RoutineKind};
use throng_exec::drive::KeptRows;
use throng_syntax::parse::ast::DoBlock;
use throng_syntax::plpgsql::{Code, Held, Rows, Signature, Target};
use throng_txn::Snapshot;
use throng_types::error::state;
use throng_types::sqltype::{format_type, made};
use throng_types::{Datum, Error, Oid, Result, SqlType, oid};
use throng_values::func::RelColumn;
use throng_values::func::is_polymorphic;

use super::super::Session;
use super::record::is_row;
use super::weight;
use super::{Compiled, CompiledKey, Frame, MOST_BODIES, Machine, Outcome, Wanted};
use throng_exec::run::Row;
use throng_exec::run::context::Memory;
use throng_exec::run::routine::{CallRequest, CallResult};

const OF_CODE_BLOCK: &str = "inline_code_block";

impl Session {
    /// Runs a function or procedure for a statement.
    pub(in super::super) async fn run_procedural(
        &self,
        request: &CallRequest,
        caller: &Snapshot,
    ) -> Result<CallResult> {
        let compiled = self.compiled(request)?;
        let mut m = self.machine(compiled, request);
        if request.def.volatility != throng_values::func::Volatility::Volatile {
            m.caller = Some(caller.clone());
        }
        Box::pin(self.run_atomic(&mut m)).await?;
        Ok(m.given())
    }

    async fn run_atomic(&self, m: &mut Machine) -> Result<()> {
        match self.run_machine(m).await? {
            Outcome::Done => Ok(()),
            _ => Err(Error::internal("a function that ended the transaction")),
        }
    }

    /// A body as it was read for calls like this one, or is now.
    pub(super) fn compiled(&self, request: &CallRequest) -> Result<Rc<Compiled>> {
        let def = &request.def;
        let key = CompiledKey {
            routine: def.oid,
            types: request.types.clone(),
            result: request.result.types(),
        };
        if let Some(found) = self.procedures.compiled.borrow().get(&key)
            && let Some(had) = &found.def
            && (Arc::ptr_eq(had, def) || **had == **def)
        {
            return Ok(found.clone());
        }
        let compiled = Rc::new(self.compile(request)?);
        let mut all = self.procedures.compiled.borrow_mut();
        if all.len() >= MOST_BODIES {
            all.clear();
        }
        all.insert(key, compiled.clone());
        Ok(compiled)
    }

    fn compile(&self, request: &CallRequest) -> Result<Compiled> {
        let def = &request.def;
        let RoutineBody::Plpgsql(text) = &def.body else {
            return Err(Error::internal("a body that is not in PL/pgSQL"));
        };
        if def.ret == oid::TRIGGER && request.trigger.is_none() {
            let message = "trigger functions can only be called as triggers";
            let near = format!(
                "compilation of PL/pgSQL function \"{}\" near line 0",
                def.name
            );
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message).context(near));
        }
        let mut inputs = def.inputs().zip(&request.types);
        let given: Vec<(&ArgDef, SqlType)> = inputs.by_ref().map(|(a, ty)| (a, *ty)).collect();
        let outputs: Vec<SqlType> = match &request.result {
            BodyResult::Row { of, .. } if made::is_composite(*of) => vec![SqlType::plain(*of)],
            result => result.types(),
        };
        let output_args: Vec<&ArgDef> = def.outputs().collect();
        let actual = |arg: &ArgDef| {
            if !is_polymorphic(arg.ty) {
                return SqlType::plain(arg.ty);
            }
            let same = |other: &ArgDef| std::ptr::eq(other, arg);
            if let Some((_, ty)) = given.iter().find(|(a, _)| same(a)) {
                return *ty;
            }
            let place = output_args.iter().position(|a| same(a));
            let ty = place.and_then(|place| outputs.get(place));
            ty.copied().unwrap_or(SqlType::TEXT)
        };
        let ret = match (&request.result, is_polymorphic(def.ret)) {
            (BodyResult::Value(ty), true) => ty.oid,
            (BodyResult::Row { of, .. }, true) => *of,
            _ => def.ret,
        };
        let signature = binder::plpgsql_signature(def, &actual, ret);
        let catalog = self.catalog();
        let code = self.read(&catalog, text, &signature).map_err(|(e, line)| {
            let near = format!(
                "compilation of PL/pgSQL function \"{}\" near line {line}",
                def.name
            );
            body_error(e, text, None, near)
        })?;
        let label = catalog.routine_signature(&self.search_path(&catalog), def);
        Ok(Compiled::new(Some(def.clone()), label, code))
    }

    fn read(
        &self,
        catalog: &throng_catalog::Catalog,
        text: &str,
        signature: &Signature,
    ) -> Result<Code, (Error, u32)> {
        let mut read = None;
        let tried = self.with_context(catalog, |ctx| {
            read = Some(binder::plpgsql_code(ctx, text, signature));
            Ok(())
        });
        match (tried, read) {
            (Ok(()), Some(read)) => read,
            (Err(e), _) => Err((e, 0)),
            _ => Err((Error::internal("a body that was not read"), 0)),
        }
    }

    pub(super) fn machine(&self, compiled: Rc<Compiled>, request: &CallRequest) -> Machine {
        let def = &request.def;
        let mut m = self.fresh(compiled);
        m.set = def.set;
        m.trigger.clone_from(&request.trigger);
        m.wanted = match &request.result {
            _ if def.ret == oid::TRIGGER => Wanted::Trigger,
            BodyResult::Nothing => Wanted::Nothing,
            BodyResult::AnyRow => Wanted::AnyRow,
            BodyResult::Value(ty) => Wanted::Value(Held {
                ty: *ty,
                domain: def.ret_domain,
            }),
            BodyResult::Row { of, types } => {
                let names: Vec<String> = match binder::composite_shape(&self.catalog(), *of) {
                    Some(fields) => fields.into_iter().map(|(name, _)| name).collect(),
                    None => def.outputs().map(|a| a.name.clone()).collect(),
                };
                let names = names.into_iter().chain(std::iter::repeat(String::new()));
                let columns = types.iter().zip(names);
                Wanted::Row(
                    columns
                        .map(|(ty, name)| RelColumn { name, ty: *ty })
                        .collect(),
                )
            }
        };
        if def.kind == RoutineKind::Procedure && def.outputs().next().is_none() {
            m.wanted = Wanted::Nothing;
        }
        let slots = m.compiled.code.inputs.clone();
        for (slot, value) in slots.iter().zip(&request.args) {
            let at = usize::from(*slot);
            if let Datum::Record(record) = value
                && m.types[at].oid == oid::RECORD
            {
                m.shapes[at] = Some(super::record::shape_of_record(record));
            }
            m.values[at] = value.clone();
        }
        if let Some(call) = &request.trigger {
            m.told(call);
        }
        m
    }

    pub(super) fn fresh(&self, compiled: Rc<Compiled>) -> Machine {
        let code = &compiled.code;
        let work_mem = self.work_mem();
        let mut m = Machine {
            frame: Rc::new(Frame {
                label: compiled.label.clone(),
                line: Cell::new(0),
                what: Cell::new(""),
                sql: RefCell::new(None),
            }),
            pc: 0,
            values: vec![Datum::Null; code.variables.len()],
            weights: weight::Weights::new(code.variables.len(), &self.procedures.held),
            types: code.variables.iter().map(|v| v.held.ty).collect(),
            shapes: vec![None; code.variables.len()],
            loops: vec![],
            tries: vec![],
            errors: vec![],
            row_count: 0,
            wanted: Wanted::Nothing,
            set: false,
            rows: KeptRows::new(work_mem),
            columns: vec![],
            caller: None,
            alone: false,
            calling: None,
            trigger: None,
            memory: Memory::new(0, 0, usize::MAX),
            now: None,
            snapshot: None,
            compiled,
        };
        m.set_found(false);
        m
    }

    pub(super) fn compile_block(&self, block: &DoBlock) -> Result<Rc<Compiled>> {
        match block.language.as_deref().map(str::to_lowercase).as_deref() {
            None | Some("plpgsql") => {}
            Some(known @ ("sql" | "c" | "internal")) => {
                let message =
                    format!("language \"{known}\" does not support inline code execution");
                return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
            }
            Some(other) => {
                let message = format!("language \"{other}\" does not exist");
                return Err(Error::new(state::UNDEFINED_OBJECT, message));
            }
        }
        let signature = Signature {
            name: None,
            args: vec![],
            ret: oid::VOID,
            set: false,
            procedure: false,
        };
        let catalog = self.catalog();
        let code = self
            .read(&catalog, &block.text, &signature)
            .map_err(|(e, line)| {
                let near = format!(
                    "compilation of PL/pgSQL function \"{OF_CODE_BLOCK}\" near line {line}"
                );
                body_error(e, &block.text, block.at, near)
            })?;
        Ok(Rc::new(Compiled::new(None, OF_CODE_BLOCK.to_owned(), code)))
    }

    /// DO of a body.
    pub(super) async fn run_do_inside(&self, block: &DoBlock) -> Result<()> {
        let mut m = self.fresh(self.compile_block(block)?);
        self.run_atomic(&mut m).await
    }

    /// CALL or DO in a body: what comes back goes into the variables that were given.
    pub(super) async fn call_inside(&self, m: &mut Machine, id: usize) -> Result<()> {
        let done = self.run_statement(m, id, 1).await?;
        match done.rows.first() {
            Some(row) => self.give_back(m, id, row, &done.columns).await,
            None => Ok(()),
        }
    }

    /// Puts what a CALL gave into the variables that are its arguments.
    pub(super) async fn give_back(
        &self,
        m: &mut Machine,
        id: usize,
        row: &[Datum],
        columns: &[RelColumn],
    ) -> Result<()> {
        for (slot, value, ty) in self.returned_to(m, id, row, columns)? {
            self.put(m, &Target::of(slot), value, ty).await?;
        }
        Ok(())
    }

    /// Which variables a CALL's outputs go to.
    fn returned_to(
        &self,
        m: &mut Machine,
        id: usize,
        row: &[Datum],
        columns: &[RelColumn],
    ) -> Result<Vec<(u16, Datum, SqlType)>> {
        let now = self.now(m);
        let source = m.source(id).clone();
        let variables = m.visible_of(&source);
        let bound = self.with_context(&now.catalog, |ctx| {
            binder::pl_call_outputs(ctx, &variables, &source.text)
        })?;
        let mut given = Vec::new();
        for ((place, value), column) in bound.into_iter().zip(row).zip(columns) {
            match place {
                Some(slot) => given.push((slot, value.clone(), column.ty)),
                None => {
                    let message = format!(
                        "procedure parameter \"{}\" is an output parameter but corresponding argument is not writable",
                        column.name
                    );
                    return Err(Error::new(state::SYNTAX_ERROR, message));
                }
            }
        }
        Ok(given)
    }

    pub(super) async fn return_value(&self, m: &mut Machine, id: usize) -> Result<()> {
        let scalar = match &m.wanted {
            Wanted::Value(held) if !is_row(held.ty) => Some(*held),
            _ => None,
        };
        if let Some(held) = scalar {
            let (value, _) = self.value(m, id, Some(held)).await?;
            m.rows.rows.push(vec![value]);
            return Ok(());
        }
        let (value, _) = self.value(m, id, None).await?;
        self.give_row(m, value).await
    }

    /// Gives a value that is a row, or what stands for none.
    async fn give_row(&self, m: &mut Machine, value: Datum) -> Result<()> {
        let record = match value {
            Datum::Null => {
                if m.set
                    && let Wanted::Row(columns) = &m.wanted
                {
                    let nulls = vec![Datum::Null; columns.len()];
                    m.rows.keep(&nulls)?;
                }
                return Ok(());
            }
            Datum::Record(record) => record,
            _ => {
                let message =
                    "cannot return non-composite value from function returning composite type";
                return Err(Error::new(state::DATATYPE_MISMATCH, message));
            }
        };
        let wanted = match (&m.wanted, &m.trigger) {
            (Wanted::Trigger, Some(call)) => call.columns.to_vec(),
            (Wanted::Row(columns), _) if !columns.is_empty() => columns.clone(),
            _ => {
                let shape = super::record::shape_of_record(&record);
                let column = |(name, ty): &(String, SqlType)| RelColumn {
                    name: name.clone(),
                    ty: *ty,
                };
                m.columns = shape.iter().map(column).collect();
                m.rows.keep(&record.values)?;
                return Ok(());
            }
        };
        let trigger = m.wanted == Wanted::Trigger;
        if let [column] = &wanted[..]
            && column.ty.oid == oid::RECORD
            && !trigger
        {
            m.rows.keep(&[Datum::Record(record)])?;
            return Ok(());
        }
        fits(&record, &wanted, trigger)?;
        let mut row = Row::with_capacity(wanted.len());
        for ((value, from), column) in record.values.iter().zip(record.types.iter()).zip(&wanted) {
            let held = Held {
                ty: column.ty,
                domain: None,
            };
            let from = SqlType::plain(*from);
            row.push(self.coerce(m, value.clone(), from, held).await?);
        }
        m.rows.keep(&row)
    }

    pub(super) async fn return_outputs(&self, m: &mut Machine, code: &Code) -> Result<()> {
        let row = match &m.compiled.def {
            _ if m.set => return Ok(()),
            _ if !code.outputs.is_empty() => self.output_row(m, code),
            Some(def) if def.kind == RoutineKind::Function && def.ret == oid::VOID => {
                Row::from([Datum::VOID])
            }
            _ => return Ok(()),
        };
        m.rows.keep(&row)
    }

    fn output_row(&self, m: &Machine, code: &Code) -> Row {
        let value = |slot: &u16| m.values[usize::from(*slot)].clone();
        let Wanted::Row(columns) = &m.wanted else {
            return code.outputs.iter().map(value).collect();
        };
        match &code.outputs[..] {
            // The row itself.
            [one] if m.whole_row(*one, columns) => match value(one) {
                Datum::Record(record) => record.values.clone(),
                _ if m.set => vec![Datum::Null; columns.len()],
                _ => Row::new(),
            },
            outputs => outputs.iter().map(value).collect(),
        }
    }

    pub(super) async fn return_next(
        &self,
        m: &mut Machine,
        code: &Code,
        value: Option<usize>,
    ) -> Result<()> {
        let Some(id) = value else {
            let row = self.output_row(m, code);
            return m.rows.keep(&row);
        };
        match &m.wanted {
            Wanted::Value(held) if !is_row(held.ty) => {
                let held = *held;
                let (value, _) = self.value(m, id, Some(held)).await?;
                m.rows.keep(&[value])
            }
            _ => {
                let (value, _) = self.value(m, id, None).await?;
                self.give_row(m, value).await
            }
        }
    }

    pub(super) async fn return_query(&self, m: &mut Machine, rows: &Rows) -> Result<()> {
        let mut query = self.open_rows(m, rows).await?;
        let wanted: Vec<RelColumn> = match &m.wanted {
            Wanted::Row(columns) => columns.clone(),
            Wanted::Value(held) => vec![RelColumn {
                name: String::new(),
                ty: held.ty,
            }],
            _ => query.columns.to_vec(),
        };
        let domain = match &m.wanted {
            Wanted::Value(held) => held.domain,
            _ => None,
        };
        let types: Box<[Oid]> = query.columns.iter().map(|c| c.ty.oid).collect();
        structure_fits(&types, &wanted)?;
        m.columns.clone_from(&wanted);
        let mut count = 0;
        let mut row = Row::new();
        while self.next_row(&mut query, &mut row).await? {
            count += 1;
            for (value, (from, to)) in row.iter_mut().zip(query.columns.iter().zip(&wanted)) {
                if from.ty.oid == to.ty.oid && to.ty.typmod == -1 && domain.is_none() {
                    continue;
                }
                let held = Held { ty: to.ty, domain };
                let given = std::mem::take(value);
                *value = self.coerce(m, given, from.ty, held).await?;
            }
            m.rows.keep(&row)?;
        }
        m.row_count = count;
        m.set_found(count > 0);
        m.stale();
        Ok(())
    }
}

/// 42804: a row of another kind than is to come back.
fn fits(record: &throng_types::datum::Record, wanted: &[RelColumn], trigger: bool) -> Result<()> {
    let message = match trigger {
        true => "returned row structure does not match the structure of the triggering table",
        false => "returned record type does not match expected record type",
    };
    mismatch(&record.types, wanted, message)
}

fn structure_fits(types: &[Oid], wanted: &[RelColumn]) -> Result<()> {
    let message = "structure of query does not match function result type";
    mismatch(types, wanted, message)
}

fn mismatch(types: &[Oid], wanted: &[RelColumn], message: &str) -> Result<()> {
    let wrong = |detail: String| Err(Error::new(state::DATATYPE_MISMATCH, message).detail(detail));
    if types.len() != wanted.len() {
        return wrong(format!(
            "Number of returned columns ({}) does not match expected column count ({}).",
            types.len(),
            wanted.len()
        ));
    }
    for (i, (ty, column)) in types.iter().zip(wanted).enumerate() {
        if *ty != column.ty.oid {
            let (given, expected) = (
                format_type(SqlType::plain(*ty)),
                format_type(SqlType::plain(column.ty.oid)),
            );
            let name = match column.name.as_str() {
                "" => String::new(),
                name => format!(" \"{name}\""),
            };
            return wrong(format!(
                "Returned type {given} does not match expected type {expected} in column{name} (position {}).",
                i + 1
            ));
        }
    }
    Ok(())
}

impl Compiled {
    fn new(def: Option<Arc<RoutineDef>>, label: String, code: Code) -> Compiled {
        let kept = code.sources.iter().map(|_| RefCell::new(None)).collect();
        Compiled {
            def,
            label,
            code,
            kept,
            casts: RefCell::new(HashMap::new()),
        }
    }
}

impl Machine {
    /// Whether a variable holds all of a row, and not the one column of it.
    fn whole_row(&self, slot: u16, columns: &[RelColumn]) -> bool {
        let ty = self.types[usize::from(slot)].oid;
        made::is_composite(ty) && !matches!(columns, [one] if one.ty.oid == ty)
    }

    /// What came back.
    pub(super) fn given(self) -> CallResult {
        CallResult {
            rows: self.rows.rows,
            columns: self.columns,
        }
    }
}
