//! COPY … FROM: records become rows.
//!
//! A row that PostgreSQL would store in a batch is stored in one; where a default or the condition
//! is volatile each row is stored before the next is read, so that such a function sees the rows
//! before it.

use std::rc::Rc;
use std::sync::Arc;

use throng_bind::command::{CopyFormat, CopyHeader, CopyOptions, CopyVerbosity};
use throng_bind::expr::Expr;
use throng_bind::query::CheckExpr;
use throng_bind::query::CheckOf;
use throng_bind::route::Routing;
use throng_catalog::{TableDef, fires};
use throng_types::error::{Severity, state};
use throng_types::{Datum, Error, Result, SqlType};
use throng_values::charset::check_text;
use throng_values::func::{EvalContext, Volatility};
use throng_values::io::{input_binary, input_text_into};

use super::batch::Batch;
use super::binary::{BinaryReader, FieldRanges};
use super::charset::{Decoder, charset, other_format};
use super::context::{At, placed, quoted};
use super::{FieldKind, Fields, Source, Splitter, bad_format, parse_record};
use crate::client::{Client, Format};
use crate::run::Row;
use crate::run::context::Env;
use crate::slices::Turn;
use crate::write::cascade;
use crate::write::foreign::ForeignKeys;
use crate::write::partition::{Router, must_take};
use crate::write::row::{check_not_null, violation};
use crate::write::trigger::{Named, Triggers};
use crate::write::{Compute, Context, Target, insert_row};

/// `nextval` is volatile, but what it gives hangs on no table.
const NEXTVAL: &str = "nextval";

/// Rows gathered for all partitions together before they are stored.
const MOST_GATHERED: usize = 10_000;

/// A load, bound.
pub struct Load {
    pub table: Arc<TableDef>,
    /// Attribute numbers in the order of the file.
    pub columns: Vec<u16>,
    /// By place in the row; None where it is never wanted.
    pub defaults: Vec<Option<Expr>>,
    /// Columns of the file as their domains have them, by attribute number.
    pub domains: Vec<(u16, Expr)>,
    /// Columns computed from the row, by attribute number.
    pub generated: Vec<(u16, Expr)>,
    pub checks: Vec<CheckExpr>,
    pub filter: Option<Expr>,
    pub routing: Option<Box<Routing>>,
    pub options: CopyOptions,
    /// Whether the client wants to hear notices.
    pub notices: bool,
}

/// A column of the file.
struct Column {
    /// Its place in the row.
    at: usize,
    name: String,
    ty: SqlType,
    has_default: bool,
}

/// What of the statement does not change from row to row.
struct Plan {
    options: CopyOptions,
    table: Arc<TableDef>,
    routing: Option<Box<Routing>>,
    columns: Vec<Column>,
    /// What a row has where the file says nothing: constant defaults, or NULL.
    template: Row,
    /// Places of columns that are not in the file.
    unlisted: Vec<usize>,
    /// Those of them whose default is computed for each row.
    computed: Vec<usize>,
    /// Each row is stored before the next one is read.
    one_by_one: bool,
    notices: bool,
}

/// What is computed for a row.
struct Formulas {
    /// By place in the row.
    defaults: Vec<Option<Compute>>,
    filter: Option<Compute>,
    /// By place in the row.
    domains: Vec<(usize, Compute)>,
    generated: Vec<(usize, Compute)>,
    checks: Vec<(CheckOf, String, Compute)>,
}

impl Formulas {
    /// Whether rows are as the file has them. Defaults are of columns that it does not have, or
    /// marks.
    fn are_none(&self) -> bool {
        self.filter.is_none()
            && self.domains.is_empty()
            && self.generated.is_empty()
            && self.checks.is_empty()
    }
}

/// A table that rows are stored in.
struct Outlet {
    target: Target,
    keys: ForeignKeys,
    batch: Batch,
    /// Of a partition: its own.
    checks: Vec<(String, Compute)>,
}

impl Outlet {
    fn of(table: &Arc<TableDef>, checks: &[CheckExpr], cx: &Context<'_>) -> Result<Outlet> {
        let target = Target::of(table, cx)?;
        let own = checks.iter();
        Ok(Outlet {
            keys: ForeignKeys::new(table, cx)?,
            batch: Batch::new(&target, cx),
            target,
            checks: own
                .map(|c| (c.name.clone(), Compute::new(vec![c.expr.clone()])))
                .collect(),
        })
    }
}

/// A load under way.
struct Loading<'a> {
    plan: &'a Plan,
    cx: &'a Context<'a>,
    /// The table's, or those of the leaves that rows came to; a view has none.
    outlets: Vec<Outlet>,
    /// What does a view's rows instead.
    instead: Option<Rc<Triggers>>,
    /// For each leaf its place among the outlets.
    places: Vec<Option<usize>>,
    router: Option<Router>,
    formulas: Formulas,
    /// No row but those with large values has more done to it than being added to the batch.
    is_plain: bool,
    turn: Turn,
    /// Rows in the leaves' batches, and the outlet that the last of them went to.
    gathered: usize,
    last: usize,
    /// The row in hand, and columns in it whose default is to be computed because the file says
    /// DEFAULT.
    row: Row,
    marked: Vec<usize>,
    stored: u64,
    skipped: u64,
    /// What triggers the table has for the statement.
    named: Named,
}

/// By place in the row.
fn placed_values(values: Vec<(u16, Expr)>) -> Vec<(usize, Compute)> {
    let values = values.into_iter();
    values
        .map(|(attnum, expr)| (usize::from(attnum) - 1, Compute::new(vec![expr])))
        .collect()
}

fn is_volatile(expr: &Expr) -> bool {
    expr.any(&mut |e| match e {
        Expr::Call { func, .. } => func.volatility == Volatility::Volatile && func.name != NEXTVAL,
        Expr::Op { op, .. } => op.volatility == Volatility::Volatile,
        _ => false,
    })
}

impl Load {
    /// Runs the load to its end; the number of rows stored.
    ///
    /// # Errors
    /// 22P04 for input that is not in the format; what its values, constraints and indexes object
    /// to.
    pub async fn run(
        self,
        source: &mut Source,
        cx: &Context<'_>,
        client: &mut dyn Client,
    ) -> Result<u64> {
        let (plan, formulas) = self.plan();
        if let Source::Client = source {
            let format = match plan.options.format {
                CopyFormat::Binary => Format::Binary,
                _ => Format::Text,
            };
            client.copy_in_start(format, plan.columns.len());
        }
        cx.deferred.triggers.begin();
        let named = Named::begin_over(&plan.table, &[fires::INSERT], &[], cx).await?;
        let is_view = !plan.table.has_rows();
        let outlets = match &plan.routing {
            Some(_) => Vec::new(),
            None if is_view => Vec::new(),
            None => vec![Outlet::of(&plan.table, &[], cx)?],
        };
        let instead = match is_view {
            true => Triggers::of(&plan.table, cx)?,
            false => None,
        };
        let is_plain = plan.computed.is_empty()
            && formulas.are_none()
            && !named.keeps_rows()
            && outlets.iter().any(|o| o.target.triggers.is_none());
        let mut loading = Loading {
            is_plain,
            outlets,
            instead,
            places: plan
                .routing
                .iter()
                .flat_map(|r| &r.tree.leaves)
                .map(|_| None)
                .collect(),
            router: plan.routing.as_deref().map(Router::new),
            formulas,
            turn: Turn::new(),
            row: Row::new(),
            marked: Vec::new(),
            gathered: 0,
            last: 0,
            stored: 0,
            skipped: 0,
            named,
            plan: &plan,
            cx,
        };
        match plan.options.format {
            CopyFormat::Binary => loading.binary(source, client).await?,
            _ => loading.lines(source, client).await?,
        }
        loading.finish(client).await
    }

    fn plan(self) -> (Plan, Formulas) {
        let listed = |at: usize| self.columns.contains(&(at as u16 + 1));
        let mut template = Row::new();
        let unlisted = (0..self.defaults.len()).filter(|at| !listed(*at)).collect();
        let mut computed = Vec::new();
        let mut volatile = self.filter.as_ref().is_some_and(is_volatile);
        for (at, default) in self.defaults.iter().enumerate() {
            template.push(match default {
                Some(Expr::Const(value, _)) if !listed(at) => value.clone(),
                Some(expr) if !listed(at) => {
                    computed.push(at);
                    volatile |= is_volatile(expr);
                    Datum::Null
                }
                Some(expr) => {
                    volatile |= is_volatile(expr);
                    Datum::Null
                }
                None => Datum::Null,
            });
        }
        let columns = self.columns.iter().map(|attnum| {
            let at = usize::from(*attnum) - 1;
            let def = &self.table.columns[at];
            let has_default = def.default.is_some() || def.sequence.is_some();
            Column {
                at,
                name: def.name.clone(),
                ty: def.ty,
                has_default,
            }
        });
        let columns = columns.collect();
        let alone = |expr: Expr| Compute::new(vec![expr]);
        let formulas = Formulas {
            defaults: self
                .defaults
                .into_iter()
                .map(|expr| expr.map(alone))
                .collect(),
            filter: self.filter.map(alone),
            domains: placed_values(self.domains),
            generated: placed_values(self.generated),
            checks: self
                .checks
                .into_iter()
                .map(|check| (check.of, check.name, alone(check.expr)))
                .collect(),
        };
        let plan = Plan {
            options: self.options,
            table: self.table,
            routing: self.routing,
            columns,
            template,
            unlisted,
            computed,
            one_by_one: volatile,
            notices: self.notices,
        };
        (plan, formulas)
    }
}

impl Plan {
    fn placed(&self, error: Error, line: u64, at: At<'_>) -> Error {
        placed(error, &self.table.name, line, at)
    }

    /// The header line: it must have the columns' names if that is asked for.
    fn check_header(&self, record: &[u8], fields: &mut Fields) -> Result<()> {
        if self.options.header != CopyHeader::Match {
            return Ok(());
        }
        parse_record(&self.options, record, fields)?;
        if fields.len() != self.columns.len() {
            return Err(bad_format(format!(
                "wrong number of fields in header line: got {}, expected {}",
                fields.len(),
                self.columns.len()
            )));
        }
        for (i, column) in self.columns.iter().enumerate() {
            let name = fields.bytes(i, record);
            let got = match fields.kind(i) {
                FieldKind::Null => format!("null value (\"{}\")", self.options.null),
                _ if name == column.name.as_bytes() => continue,
                _ => format!("\"{}\"", String::from_utf8_lossy(name)),
            };
            return Err(bad_format(format!(
                "column name mismatch in header line field {}: got {got}, expected \"{}\"",
                i + 1,
                column.name
            )));
        }
        Ok(())
    }

    fn check_fields(&self, fields: &Fields) -> Result<()> {
        if !self.columns.is_empty() && fields.len() > self.columns.len() {
            return Err(bad_format("extra data after last expected column"));
        }
        for (i, column) in self.columns.iter().enumerate().take(fields.len()) {
            if fields.kind(i) == FieldKind::Default && !column.has_default {
                return Err(bad_format("unexpected default marker in COPY data")
                    .detail(format!("Column \"{}\" has no default value.", column.name)));
            }
        }
        Ok(())
    }
}

/// What came of a record.
enum Read {
    Row,
    /// The value of this column of the file is none of its type, and ON_ERROR says to go on.
    Bad(usize),
}

impl Loading<'_> {
    /// Text and CSV.
    async fn lines(&mut self, source: &mut Source, client: &mut dyn Client) -> Result<()> {
        let plan = self.plan;
        let mut splitter = Splitter::new(&plan.options);
        let mut decoder = Decoder::new(charset(&plan.options, &self.cx.env.eval));
        let mut fields = Fields::default();
        let mut in_header = plan.options.header != CopyHeader::No;
        loop {
            loop {
                let next = splitter.next_record();
                let line = splitter.line();
                let on_line = |error| plan.placed(error, line, At::Line);
                let Some(record) = next.map_err(on_line)? else {
                    break;
                };
                let text = splitter.bytes(record);
                let text = check_text(text).map_err(on_line)?;
                if std::mem::take(&mut in_header) {
                    let checked = plan.check_header(text.as_bytes(), &mut fields);
                    checked.map_err(|e| plan.placed(e, line, At::Text(text.as_bytes())))?;
                    continue;
                }
                let mut read = self.read_line(text, line, &mut fields)?;
                if !self.formulas.domains.is_empty() && matches!(read, Read::Row) {
                    read = self.check_domains(text, line, &fields).await?;
                }
                match read {
                    Read::Row => self.accept(line, Some(text.as_bytes())).await?,
                    Read::Bad(column) => {
                        let value = fields.value(column, text.as_bytes());
                        self.skip(column, line, value, client)?;
                    }
                }
                self.turn
                    .worked(text.len(), self.cx.env.cancel)
                    .await
                    .map_err(on_line)?;
            }
            // The record without line break was the last: the client has nothing more to say.
            if splitter.is_drained() {
                return Ok(());
            }
            let line = splitter.line();
            let more = match splitter.input() {
                Ok(input) => {
                    let start = input.len();
                    let more = source.read(client, self.cx.env.cancel, input).await;
                    more.and_then(|more| {
                        decoder.decode(start, input, more)?;
                        Ok(more)
                    })
                }
                Err(e) => Err(e),
            };
            if !more.map_err(|e| plan.placed(e, line, At::Line))? {
                splitter.finish();
                // What is left is a record without line break, and then nothing.
                if splitter.is_drained() {
                    return Ok(());
                }
            }
        }
    }

    /// Fills the row in hand from a line.
    fn read_line(&mut self, text: &str, line: u64, fields: &mut Fields) -> Result<Read> {
        let plan = self.plan;
        let whole = |error| plan.placed(error, line, At::Text(text.as_bytes()));
        parse_record(&plan.options, text.as_bytes(), fields).map_err(whole)?;
        plan.check_fields(fields).map_err(whole)?;
        self.begin_row();
        let ctx = &self.cx.env.eval;
        for (i, column) in plan.columns.iter().enumerate() {
            if i >= fields.len() {
                let message = format!("missing data for column \"{}\"", column.name);
                return Err(whole(bad_format(message)));
            }
            let place = &mut self.row[column.at];
            match fields.kind(i) {
                FieldKind::Null => *place = Datum::Null,
                FieldKind::Default => {
                    *place = Datum::Null;
                    self.marked.push(column.at);
                }
                FieldKind::Value => {
                    let value = fields.text(i, text);
                    match value.and_then(|text| input_text_into(ctx, text, column.ty, place)) {
                        Ok(()) => {}
                        Err(e)
                            if plan.options.ignore_errors
                                && e.code().as_str().starts_with("22") =>
                        {
                            return Ok(Read::Bad(i));
                        }
                        Err(e) => {
                            let value = fields.value(i, text.as_bytes());
                            return Err(plan.placed(e, line, At::Value(&column.name, value)));
                        }
                    }
                }
            }
        }
        Ok(Read::Row)
    }

    /// Whether the values of the line are such as their columns' domains allow.
    async fn check_domains(&mut self, text: &str, line: u64, fields: &Fields) -> Result<Read> {
        let plan = self.plan;
        let Some((column, error)) = self.refused_by_domain().await else {
            return Ok(Read::Row);
        };
        let refused = [state::CHECK_VIOLATION, state::NOT_NULL_VIOLATION].contains(&error.code());
        if plan.options.ignore_errors && refused {
            return Ok(Read::Bad(column));
        }
        let value = fields.value(column, text.as_bytes());
        Err(plan.placed(error, line, At::Value(&plan.columns[column].name, value)))
    }

    /// The first value of the row in hand that its column's domain does not allow: by the column's
    /// number in the file, and why.
    async fn refused_by_domain(&mut self) -> Option<(usize, Error)> {
        for (at, checked) in &mut self.formulas.domains {
            if self.marked.contains(at) {
                continue;
            }
            if let Err(error) = value(checked, &self.row, self.cx.env).await {
                let column = self.plan.columns.iter().position(|c| c.at == *at);
                return Some((column.expect("the file has the column"), error));
            }
        }
        None
    }

    /// Sets the columns that the file does not have; the others are to be set next.
    fn begin_row(&mut self) {
        let plan = self.plan;
        if self.row.len() != plan.template.len() {
            self.row.clone_from(&plan.template);
        }
        for &at in &plan.unlisted {
            self.row[at].clone_from(&plan.template[at]);
        }
        self.marked.clear();
    }

    /// ON_ERROR ignore.
    fn skip(
        &mut self,
        column: usize,
        line: u64,
        value: Option<&[u8]>,
        client: &mut dyn Client,
    ) -> Result<()> {
        let plan = self.plan;
        self.skipped += 1;
        let name = &plan.columns[column].name;
        if plan.notices && plan.options.verbosity == CopyVerbosity::Verbose {
            let message = format!(
                "skipping row due to data type incompatibility at line {line} for column \"{name}\": {}",
                quoted(value)
            );
            client.notice(&notice(message).context(format!("COPY {}", plan.table.name)));
        }
        match plan.options.reject_limit {
            Some(limit) if self.skipped > limit as u64 => {
                let message = format!(
                    "skipped more than REJECT_LIMIT ({limit}) rows due to data type incompatibility"
                );
                let error = Error::new(state::INVALID_TEXT_REPRESENTATION, message);
                Err(plan.placed(error, line, At::Value(name, value)))
            }
            _ => Ok(()),
        }
    }

    async fn binary(&mut self, source: &mut Source, client: &mut dyn Client) -> Result<()> {
        let plan = self.plan;
        let mut reader = BinaryReader::default();
        let mut fields = FieldRanges::new();
        let mut header_read = false;
        let mut finished = false;
        loop {
            header_read = header_read || reader.header()?;
            loop {
                if !header_read {
                    break;
                }
                let next = reader.next_row(plan.columns.len(), &mut fields);
                let row = reader.row();
                let next = next.map_err(|bad| match bad.field {
                    Some(field) => {
                        plan.placed(bad.error, row, At::Column(&plan.columns[field].name))
                    }
                    None => plan.placed(bad.error, row, At::Line),
                });
                if !next? {
                    break;
                }
                let size = self.read_binary(&reader, &fields)?;
                if let Some((column, error)) = self.refused_by_domain().await {
                    return Err(plan.placed(error, row, At::Column(&plan.columns[column].name)));
                }
                self.accept(row, None).await?;
                let turned = self.turn.worked(size, self.cx.env.cancel).await;
                turned.map_err(|e| plan.placed(e, row, At::Line))?;
            }
            if finished {
                return Ok(());
            }
            let more = match reader.input() {
                Ok(input) => source.read(client, self.cx.env.cancel, input).await,
                Err(e) => Err(e),
            };
            let more = more.map_err(|e| match header_read {
                true => plan.placed(e, reader.row(), At::Line),
                false => e,
            });
            if !more? {
                reader.finish();
                finished = true;
            }
        }
    }

    /// Fills the row in hand from a binary row; its bytes.
    fn read_binary(&mut self, reader: &BinaryReader, fields: &FieldRanges) -> Result<usize> {
        let plan = self.plan;
        self.begin_row();
        let other = other_format(&plan.options, &self.cx.env.eval);
        let ctx = EvalContext {
            format: other.as_ref().unwrap_or(self.cx.env.eval.format),
            ..self.cx.env.eval
        };
        let mut size = 0;
        for (column, field) in plan.columns.iter().zip(fields) {
            let Some(field) = field else {
                self.row[column.at] = Datum::Null;
                continue;
            };
            size += field.len();
            let value = input_binary(&ctx, reader.bytes(field.clone()), column.ty);
            self.row[column.at] =
                value.map_err(|e| plan.placed(e, reader.row(), At::Column(&column.name)))?;
        }
        Ok(size)
    }

    /// Completes the row in hand and takes it into the batch, unless the condition keeps it out.
    /// `text`: its line, if it has one.
    async fn accept(&mut self, line: u64, text: Option<&[u8]>) -> Result<()> {
        let plan = self.plan;
        let at = text.map_or(At::Line, At::Text);
        let placed = |e| plan.placed(e, line, at);
        let added = self.add_plain(line).map_err(placed)?;
        if !added && !self.complete(line).await.map_err(placed)? {
            return Ok(());
        }
        if plan.one_by_one {
            self.store(at).await
        } else if self.is_full() {
            self.store(At::Line).await
        } else {
            Ok(())
        }
    }

    /// The everyday row: nothing is computed for it, and nobody but the batch wants it. False, and
    /// nothing done, for another.
    fn add_plain(&mut self, line: u64) -> Result<bool> {
        let plan = self.plan;
        if !self.is_plain || !self.marked.is_empty() {
            return Ok(false);
        }
        check_not_null(&plan.table, &self.row, self.cx.env)?;
        let Outlet { target, batch, .. } = &mut self.outlets[0];
        batch.add_now(&self.row, line, target)
    }

    /// Defaults, condition and constraints of the row in hand, which is then added to the batch;
    /// false if it is kept out.
    async fn complete(&mut self, line: u64) -> Result<bool> {
        let plan = self.plan;
        let env = self.cx.env;
        for &at in self.marked.iter().chain(&plan.computed) {
            if let Some(default) = &mut self.formulas.defaults[at] {
                self.row[at] = value(default, &self.row, env).await?;
            }
        }
        let row = &self.row;
        if let Some(filter) = &mut self.formulas.filter
            && !value(filter, row, env).await?.is_true()
        {
            return Ok(false);
        }
        if let (Some(routing), Some(router)) = (&plan.routing, &mut self.router) {
            let leaf = router.leaf(routing, row, env).await?;
            return self.add_to(leaf, routing, line).await;
        }
        if !plan.table.has_rows() {
            return self.do_instead().await;
        }
        if let Some(triggers) = self.outlets[0].target.triggers.clone()
            && !triggers.before_insert(&mut self.row, self.cx).await?
        {
            return Ok(false);
        }
        for (at, expr) in &mut self.formulas.generated {
            self.row[*at] = value(expr, &self.row, env).await?;
        }
        let row = &self.row;
        check_not_null(&plan.table, row, env)?;
        for (of, name, check) in &mut self.formulas.checks {
            // A check that is NULL is satisfied.
            if value(check, row, env).await? == Datum::Bool(false) {
                return Err(violation(&plan.table, *of, name, row, env));
            }
        }
        let row = std::mem::take(&mut self.row);
        let taken = self.take(0, &row, None, line).await;
        self.row = row;
        taken
    }

    /// Gives the row in hand to the triggers of a view; it is in no batch.
    async fn do_instead(&mut self) -> Result<bool> {
        let row = std::mem::take(&mut self.row);
        let taken = match &self.instead {
            Some(triggers) => {
                triggers
                    .instead(fires::INSERT, None, Some(row), self.cx)
                    .await?
            }
            // They are switched off in this session.
            None => Some(Some(row)),
        };
        self.stored += u64::from(taken.is_some());
        Ok(false)
    }

    /// Stores a row of an outlet at once where triggers see it, else adds it to the batch, which is
    /// then to be stored. `top`: the row as the table has it that the statement names, where that
    /// is another.
    async fn take(
        &mut self,
        outlet: usize,
        row: &Row,
        top: Option<Row>,
        line: u64,
    ) -> Result<bool> {
        let cx = self.cx;
        self.named
            .changed(fires::INSERT, None, Some(top.as_ref().unwrap_or(row)))?;
        let Outlet {
            target,
            keys,
            batch,
            ..
        } = &mut self.outlets[outlet];
        if target.triggers.is_none() {
            batch.add(row, line, target, cx).await?;
            self.last = outlet;
            self.gathered += 1;
            return Ok(true);
        }
        let tid = insert_row(target, row, cx).await?;
        keys.inserted(row, tid, cx).await?;
        target.after_insert(row, tid, cx).await?;
        self.stored += 1;
        Ok(false)
    }

    /// Adds the row in hand to a leaf's batch.
    async fn add_to(&mut self, leaf: usize, routing: &Routing, line: u64) -> Result<bool> {
        let env = self.cx.env;
        let leaf_def = routing.leaf(leaf, env.catalog, env.eval)?;
        let place = match self.places[leaf] {
            Some(place) => place,
            None => {
                let outlet = Outlet::of(&leaf_def.table, &leaf_def.checks, self.cx)?;
                self.outlets.push(outlet);
                *self.places[leaf].insert(self.outlets.len() - 1)
            }
        };
        let mut row = leaf_def.row(&self.row);
        let mut top = None;
        if let Some(triggers) = self.outlets[place].target.triggers.clone() {
            if !triggers.before_insert(&mut row, self.cx).await? {
                return Ok(false);
            }
            must_take(&leaf_def.table, &row, env.catalog, self.cx).await?;
        }
        if self.named.keeps_rows() {
            top = Some(leaf_def.row_of_top(&row, self.row.len()));
        }
        let checks = &mut self.outlets[place].checks;
        check_not_null(&leaf_def.table, &row, env)?;
        for (name, check) in checks {
            if value(check, &row, env).await? == Datum::Bool(false) {
                return Err(crate::write::row::check_violation(
                    &leaf_def.table,
                    name,
                    &row,
                    env,
                ));
            }
        }
        self.take(place, &row, top, line).await
    }

    fn is_full(&self) -> bool {
        self.gathered >= MOST_GATHERED
            || self
                .outlets
                .get(self.last)
                .is_some_and(|o| o.batch.is_full() || o.batch.rows() >= MOST_GATHERED)
    }

    /// Stores the batch. `at`: what to tell of a row that is refused, beside its line.
    async fn store(&mut self, at: At<'_>) -> Result<()> {
        self.gathered = 0;
        for outlet in &mut self.outlets {
            let Outlet {
                target,
                keys,
                batch,
                ..
            } = outlet;
            let stored = batch.store(target, keys, &mut self.turn, self.cx).await;
            self.stored += stored.map_err(|refused| match refused.line {
                Some(line) => self.plan.placed(refused.error, line, at),
                None => refused.error,
            })?;
        }
        Ok(())
    }

    async fn finish(mut self, client: &mut dyn Client) -> Result<u64> {
        self.store(At::Line).await?;
        let outlets = std::mem::take(&mut self.outlets).into_iter();
        cascade::finish(outlets.map(|outlet| outlet.keys), self.cx).await?;
        self.cx.deferred.end_statement(self.cx).await?;
        self.named.end(&[], self.cx).await?;
        self.cx.deferred.triggers.end(self.cx).await?;
        if self.skipped > 0
            && self.plan.notices
            && self.plan.options.verbosity != CopyVerbosity::Silent
        {
            let rows = if self.skipped == 1 {
                "row was"
            } else {
                "rows were"
            };
            let message = format!(
                "{} {rows} skipped due to data type incompatibility",
                self.skipped
            );
            client.notice(&notice(message));
        }
        Ok(self.stored)
    }
}

async fn value(formula: &mut Compute, row: &[Datum], env: Env<'_>) -> Result<Datum> {
    Ok(formula.row(row, env).await?.pop().unwrap_or_default())
}

fn notice(message: String) -> Error {
    Error::new(state::SUCCESSFUL_COMPLETION, message).severity(Severity::Notice)
}
