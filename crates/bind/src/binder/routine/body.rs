//! The bodies of SQL functions: statements bound over the function's arguments, the last one's rows
//! cast to its result.
//!
//! A body's arguments are parameters of its statements: `$1`, or by name where no column of that
//! name is in sight. What is no more than an expression, or a query in FROM, is bound together with
//! its call and takes its place in the plan.

use std::rc::Rc;

use throng_types::error::state;
use throng_types::sqltype::{format_type, made};
use throng_types::{Error, Oid, Result, SqlType, oid};

use crate::binder::query::scope::Scope;
use crate::binder::renamed::{Named, Renamed};
use crate::binder::routine::plpgsql::Variables;
use crate::binder::{BindContext, Binder, Clause};
use crate::command::Bound;
use crate::deparse::{self, BodyPart, Style};
use crate::tree::expr::{Expr, RoutineCall};
use crate::tree::query::{Body, BoundQuery, FromItem, Query, QueryKind, Rel, Select, Target};
use throng_catalog::{Catalog, RoutineBody, RoutineDef, builtin};
use throng_syntax::parse::ast::{self, AtomicStatement, Node, Pos, Statement};
use throng_syntax::parse::routine_statements;
use throng_types::lexical::quote_ident;
use throng_values::func::RelColumn;
use throng_values::func::{CastContext, EvalContext, Volatility};

/// The arguments that a body being bound may name.
pub(in crate::binder) struct Arguments {
    function: String,
    /// Empty: without a name.
    names: Vec<String>,
    types: Vec<SqlType>,
    /// Of a body in PL/pgSQL its variables, instead.
    pub variables: Option<Rc<Variables>>,
}

impl Arguments {
    pub fn of_variables(variables: Rc<Variables>) -> Arguments {
        Arguments {
            function: String::new(),
            names: vec![],
            types: vec![],
            variables: Some(variables),
        }
    }
}

/// What the last statement of a body has to give.
#[derive(Clone, Debug, PartialEq)]
pub enum BodyResult {
    /// `void`: whatever it gives is not looked at.
    Nothing,
    Value(SqlType),
    /// Columns of these types; `of`: the row type they are of, or `record`.
    Row {
        of: Oid,
        types: Vec<SqlType>,
    },
    /// A record of whatever it gives.
    AnyRow,
}

impl BodyResult {
    /// Of a function as a call uses it.
    pub fn of_call(call: &RoutineCall) -> BodyResult {
        match call.ty.oid {
            oid::VOID => BodyResult::Nothing,
            _ if !call.columns.is_empty() => BodyResult::of_columns(call.ty.oid, &call.columns),
            oid::RECORD => BodyResult::AnyRow,
            _ => BodyResult::Value(call.ty),
        }
    }

    /// Rows of these columns, of this type.
    pub fn of_columns(of: Oid, columns: &[RelColumn]) -> BodyResult {
        BodyResult::Row {
            of,
            types: columns.iter().map(|c| c.ty).collect(),
        }
    }

    /// The types that come back: those of the columns, or that of the value.
    pub fn types(&self) -> Vec<SqlType> {
        match self {
            BodyResult::Nothing | BodyResult::AnyRow => vec![],
            BodyResult::Value(ty) => vec![*ty],
            BodyResult::Row { types, .. } => types.clone(),
        }
    }
}

/// A body's statements. Errors have their places in the text.
pub fn body_statements(def: &RoutineDef) -> Result<Vec<AtomicStatement>> {
    match &def.body {
        RoutineBody::Text(text) | RoutineBody::Standard { text, .. } => routine_statements(text),
        RoutineBody::Plpgsql(_) => Err(Error::unsupported("a body in PL/pgSQL as SQL")),
        RoutineBody::Native { symbol, .. } => {
            let what = format!("the function {symbol}, which this server has not,");
            Err(Error::unsupported(what))
        }
        RoutineBody::Aggregate(_) => Err(Error::unsupported("the body of an aggregate")),
    }
}

/// Binds one statement of a body; `last`: what it has to give, where it is the last one.
pub fn body_statement(
    ctx: &BindContext<'_>,
    def: &RoutineDef,
    args: &[SqlType],
    statement: &AtomicStatement,
    last: Option<&BodyResult>,
) -> Result<BoundQuery> {
    let mut binder = Binder::new(ctx);
    if let RoutineBody::Standard { path, .. } = &def.body {
        binder.search_path.clone_from(path);
    }
    binder.params = args.to_vec();
    binder.arguments = Some(arguments(def, args));
    let statement = match statement {
        AtomicStatement::Statement(parsed) => parsed.statement.clone(),
        AtomicStatement::Return(expr) => Statement::Query(Box::new(select_of(expr))),
    };
    let mut bound = binder.body_data(&statement)?;
    if let Some(result) = last {
        binder.cast_result(&mut bound.kind, def, result)?;
        bound.rel_count = binder.next_rel;
    }
    Ok(bound)
}

/// Whether a statement of a body is planned: others are commands.
pub fn has_plan(statement: &AtomicStatement) -> bool {
    match statement {
        AtomicStatement::Return(_) => true,
        AtomicStatement::Statement(parsed) => matches!(
            parsed.statement,
            Statement::Query(_)
                | Statement::Insert(_)
                | Statement::Update(_)
                | Statement::Delete(_)
                | Statement::Merge(_)
        ),
    }
}

/// Binds a command of a body.
pub fn body_command(
    ctx: &BindContext<'_>,
    def: &RoutineDef,
    args: &[SqlType],
    statement: &AtomicStatement,
) -> Result<Bound> {
    let AtomicStatement::Statement(parsed) = statement else {
        return Err(Error::internal("an expression among commands"));
    };
    let mut binder = Binder::new(ctx);
    if let RoutineBody::Standard { path, .. } = &def.body {
        binder.search_path.clone_from(path);
    }
    binder.params = args.to_vec();
    binder.arguments = Some(arguments(def, args));
    check_command(statement)?;
    let statement = binder.statement(&parsed.statement)?;
    Ok(Bound {
        statement,
        notices: binder.notices,
    })
}

/// 0A000 for what no function in SQL does.
pub fn check_command(statement: &AtomicStatement) -> Result<()> {
    let AtomicStatement::Statement(parsed) = statement else {
        return Ok(());
    };
    let word = match &parsed.statement {
        Statement::Begin(_) => "BEGIN",
        Statement::Commit { .. } => "COMMIT",
        Statement::Rollback { .. } => "ROLLBACK",
        Statement::Unsupported(what) => return Err(Error::unsupported(what)),
        _ => return Ok(()),
    };
    let message = format!("{word} is not allowed in an SQL function");
    Err(Error::new(state::FEATURE_NOT_SUPPORTED, message))
}

fn arguments(def: &RoutineDef, types: &[SqlType]) -> Arguments {
    Arguments {
        function: def.name.clone(),
        names: def.inputs().map(|a| a.name.clone()).collect(),
        types: types.to_vec(),
        variables: None,
    }
}

/// `SELECT value`
fn select_of(expr: &ast::Expr) -> ast::Query {
    let item = ast::SelectItem {
        expr: expr.clone(),
        alias: None,
    };
    crate::binder::json::record::select(vec![item], vec![], expr.pos)
}

/// 42P13: the body does not give what the function is declared to.
#[cold]
fn mismatch(declared: &str, detail: String) -> Error {
    let message = format!("return type mismatch in function declared to return {declared}");
    Error::new(state::INVALID_FUNCTION_DEFINITION, message).detail(detail)
}

fn shown(ty: Oid) -> String {
    format_type(SqlType::plain(ty))
}

/// What a function is declared to return: a type, or a relation whose rows it does.
fn declared_type(def: &RoutineDef, catalog: &Catalog) -> String {
    let relation = def.row_of.and_then(|oid| catalog.relation(oid));
    relation.map_or_else(|| shown(def.ret), |r| quote_ident(r.name()))
}

/// What a body without a last statement that gives rows is told.
pub fn no_result(def: &RoutineDef, catalog: &Catalog) -> Error {
    mismatch(
        &declared_type(def, catalog),
        "Function's final statement must be SELECT or INSERT/UPDATE/DELETE/MERGE RETURNING.".into(),
    )
}

/// The columns a statement gives.
fn outputs(kind: &QueryKind) -> Vec<SqlType> {
    let types = |targets: &[Target]| targets.iter().map(|t| t.expr.ty()).collect();
    match kind {
        QueryKind::Select(query) => query.columns().iter().map(|c| c.ty).collect(),
        QueryKind::Insert(insert) => types(&insert.returning),
        QueryKind::Update(update) => types(&update.returning),
        QueryKind::Delete(delete) => types(&delete.returning),
        QueryKind::Merge(merge) => types(&merge.returning),
    }
}

impl Binder<'_> {
    fn body_data(&mut self, statement: &Statement) -> Result<BoundQuery> {
        match statement {
            Statement::Query(_)
            | Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Merge(_) => self.data(statement),
            _ => Err(Error::internal("a command without a plan")),
        }
    }

    /// `$n` of a body.
    pub(in crate::binder) fn body_param(&self, n: u32, pos: Pos) -> Option<Result<Expr>> {
        let arguments = self.arguments.as_ref()?;
        if arguments.variables.is_some() {
            let found = self.variable(&[format!("${n}")]);
            return Some(found.unwrap_or_else(|| {
                let message = format!("there is no parameter ${n}");
                Err(Error::new(state::UNDEFINED_PARAMETER, message).position(pos + 1))
            }));
        }
        let index = n.checked_sub(1)?;
        Some(match arguments.types.get(index as usize) {
            Some(ty) => Ok(Expr::Param(index as u16, *ty)),
            None => {
                let message = format!("there is no parameter ${n}");
                Err(Error::new(state::UNDEFINED_PARAMETER, message).position(pos + 1))
            }
        })
    }

    /// An argument by its name, `a` or `function.a`.
    pub(in crate::binder) fn argument(&self, parts: &[String]) -> Option<Expr> {
        let arguments = self.arguments.as_ref()?;
        let found = match parts {
            [name] => Some(name),
            [function, name] if *function == arguments.function => Some(name),
            _ => None,
        };
        let index = found.and_then(|name| arguments.names.iter().position(|n| n == name));
        if let Some(index) = index {
            return Some(Expr::Param(index as u16, arguments.types[index]));
        }
        // A field of an argument that is a row.
        let [row @ .., field] = parts else {
            return None;
        };
        if row.is_empty() {
            return None;
        }
        let row = self.argument(row)?;
        let def = self.catalog().composite(row.type_oid())?;
        let mut fields = def.fields.iter().flatten().filter(|f| !f.dropped);
        let index = fields.clone().position(|f| f.name == *field)?;
        let ty = fields.nth(index)?.ty;
        Some(Expr::Field {
            row: Box::new(row),
            index: index as u16,
            ty,
        })
    }

    /// Casts what the last statement gives to what is wanted of it.
    fn cast_result(
        &mut self,
        kind: &mut QueryKind,
        def: &RoutineDef,
        result: &BodyResult,
    ) -> Result<()> {
        let given = outputs(kind);
        let wanted: Vec<SqlType> = match result {
            BodyResult::Nothing => return Ok(()),
            _ if given.is_empty() && !matches!(kind, QueryKind::Select(_)) => {
                return Err(no_result(def, self.catalog()));
            }
            BodyResult::AnyRow => return Ok(()),
            _ => result.types(),
        };
        // One value that is all of the row.
        if let (BodyResult::Row { of, .. }, [one]) = (result, &given[..])
            && self.is_whole_row(one.oid, *of)
        {
            return match made::is_composite(*of) {
                true => self.cast_outputs(kind, &[SqlType::plain(*of)], &[]),
                false => Ok(()),
            };
        }
        let castable = |from: &SqlType, to: &SqlType| {
            from.oid == oid::UNKNOWN
                || throng_values::func::can_coerce(from.oid, to.oid, CastContext::Assignment)
        };
        if let BodyResult::Value(ty) = result {
            let [one] = given[..] else {
                let detail = "Final statement must return exactly one column.";
                return Err(mismatch(&shown(ty.oid), detail.into()));
            };
            if !castable(&one, ty) {
                let detail = format!("Actual return type is {}.", format_type(one));
                return Err(mismatch(&shown(ty.oid), detail));
            }
        }
        for (at, (from, to)) in given.iter().zip(&wanted).enumerate() {
            if !castable(from, to) {
                let detail = format!(
                    "Final statement returns {} instead of {} at column {}.",
                    format_type(*from),
                    format_type(*to),
                    at + 1
                );
                return Err(mismatch(&declared_type(def, self.catalog()), detail));
            }
        }
        let count = match given.len().cmp(&wanted.len()) {
            std::cmp::Ordering::Less => Some("few"),
            std::cmp::Ordering::Greater => Some("many"),
            std::cmp::Ordering::Equal => None,
        };
        if let Some(count) = count {
            let detail = format!("Final statement returns too {count} columns.");
            return Err(mismatch(&declared_type(def, self.catalog()), detail));
        }
        let domains: Vec<Option<Oid>> = match result {
            BodyResult::Value(_) => vec![def.ret_domain],
            BodyResult::Row { of, .. } if *of == oid::RECORD => {
                def.outputs().map(|arg| arg.domain).collect()
            }
            _ => vec![],
        };
        self.cast_outputs(kind, &wanted, &domains)
    }

    /// Whether a value of one type stands for all of a row of another.
    fn is_whole_row(&self, given: Oid, of: Oid) -> bool {
        match made::is_composite(of) {
            true => given == of || matches!(given, oid::RECORD | oid::UNKNOWN),
            false => given == oid::RECORD || made::is_composite(given),
        }
    }

    /// Casts what a statement gives, column by column; `domains`: which they have to be of.
    fn cast_outputs(
        &mut self,
        kind: &mut QueryKind,
        wanted: &[SqlType],
        domains: &[Option<Oid>],
    ) -> Result<()> {
        let domains = domains.iter().copied().chain(std::iter::repeat(None));
        let cast = |binder: &mut Self, targets: &mut [Target]| -> Result<()> {
            for ((target, ty), domain) in targets.iter_mut().zip(wanted).zip(domains.clone()) {
                let expr = std::mem::replace(&mut target.expr, Expr::bool(true));
                let expr = binder.assign(expr, &target.name, *ty, 0)?;
                target.expr = binder.in_domain(expr, domain)?;
            }
            Ok(())
        };
        match kind {
            QueryKind::Select(query) => {
                let inner = query.clone();
                let cast = self.cast_columns_for(inner, wanted, CastContext::Assignment, 0)?;
                *query = match domains.clone().take(wanted.len()).any(|d| d.is_some()) {
                    true => self.columns_in_domains(cast, domains)?,
                    false => cast,
                };
                Ok(())
            }
            QueryKind::Insert(insert) => cast(self, &mut insert.returning),
            QueryKind::Update(update) => cast(self, &mut update.returning),
            QueryKind::Delete(delete) => cast(self, &mut delete.returning),
            QueryKind::Merge(merge) => cast(self, &mut merge.returning),
        }
    }

    /// A query whose columns have to be of domains.
    fn columns_in_domains(
        &mut self,
        query: Query,
        domains: impl Iterator<Item = Option<Oid>>,
    ) -> Result<Query> {
        let (rel, columns) = (self.new_rel(), query.columns());
        let mut targets = crate::binder::query::select::output_targets(rel, &columns);
        for (target, domain) in targets.iter_mut().zip(domains) {
            let expr = std::mem::replace(&mut target.expr, Expr::bool(true));
            target.expr = self.in_domain(expr, domain)?;
        }
        let rel = Rel::unnamed_subquery(rel, query, columns);
        let select = Select::plain(vec![FromItem::Rel(Box::new(rel))], targets);
        Ok(Query::of_body(
            Body::Select(Box::new(select)),
            self.new_rel(),
        ))
    }

    /// Binds something of a routine's body inside the statement in hand; None where it cannot be
    /// done, as the call will tell.
    fn within_body<T>(
        &mut self,
        def: &RoutineDef,
        args: &[SqlType],
        bind: impl FnOnce(&mut Self) -> Result<Option<T>>,
    ) -> Option<T> {
        const DEEPEST: usize = 16;
        if self.inlining.contains(&def.oid) || self.inlining.len() >= DEEPEST {
            return None;
        }
        self.inlining.push(def.oid);
        let path = match &def.body {
            RoutineBody::Standard { path, .. } => path.clone(),
            _ => self.search_path.clone(),
        };
        let path = std::mem::replace(&mut self.search_path, path);
        let user = std::mem::replace(&mut self.user, self.ctx.user);
        let params = std::mem::replace(&mut self.params, args.to_vec());
        let outer = self.arguments.replace(arguments(def, args));
        let levels = std::mem::take(&mut self.levels);
        let windows = std::mem::take(&mut self.windows);
        let keep_untyped = std::mem::take(&mut self.keep_untyped);
        let (clause, views) = (self.clause, self.views.len());
        let (notices, ctes) = (self.notices.len(), self.ctes.len());
        let seen = self.seen.len();
        let bound = bind(self);
        self.views.truncate(views);
        self.clause = clause;
        self.seen.truncate(seen);
        self.keep_untyped = keep_untyped;
        self.windows = windows;
        self.levels = levels;
        self.arguments = outer;
        self.params = params;
        self.search_path = path;
        self.user = user;
        self.inlining.pop();
        match bound {
            Ok(Some(bound)) => Some(bound),
            _ => {
                self.notices.truncate(notices);
                self.ctes.truncate(ctes);
                None
            }
        }
    }

    /// The value of a call as an expression over its arguments, where the function is but that.
    pub(in crate::binder) fn inline_value(&mut self, call: &RoutineCall) -> Option<Expr> {
        let def = call.def.clone();
        if let Some(func) = def.native() {
            let parameters = (0..).zip(&call.args);
            return (!def.set).then(|| Expr::Call {
                func,
                args: parameters
                    .map(|(n, arg)| Expr::Param(n, arg.ty()))
                    .collect(),
                ty: call.ty,
            });
        }
        let plain = !def.set
            && call.columns.is_empty()
            && call.ty.oid != oid::RECORD
            && !def.security_definer
            && def.settings.is_empty();
        if !plain {
            return None;
        }
        let statements = body_statements(&def).ok()?;
        let [statement] = &statements[..] else {
            return None;
        };
        let ast = match statement {
            AtomicStatement::Return(expr) => expr,
            AtomicStatement::Statement(parsed) => match &parsed.statement {
                Statement::Query(query) => only_value(query)?,
                _ => return None,
            },
        };
        let args: Vec<SqlType> = call.args.iter().map(Expr::ty).collect();
        let ty = call.ty;
        self.within_body(&def, &args, |b| {
            let scope = Scope::empty();
            let expr = b.in_clause(Clause::Targets, |b| b.expr(ast, &scope))?;
            let expr = b.settle(expr, ast.pos)?;
            if ty.oid == oid::VOID && expr.type_oid() != oid::VOID {
                return Ok(None);
            }
            let Some(expr) = b.try_coerce(expr, ty, CastContext::Assignment, ast.pos)? else {
                return Ok(None);
            };
            if !may_stand_for(&def, args.len(), &expr) {
                return Ok(None);
            }
            b.in_domain(expr, def.ret_domain).map(Some)
        })
    }

    /// The rows of a call in FROM as a query over its arguments, where the function is but that.
    pub(in crate::binder) fn inline_rows(&mut self, call: &RoutineCall) -> Option<Query> {
        let def = call.def.clone();
        let plain = def.set
            && def.volatility != Volatility::Volatile
            && !def.strict
            && !def.security_definer
            && def.settings.is_empty()
            && call.ty.oid != oid::VOID
            && !(call.ty.oid == oid::RECORD && call.columns.is_empty());
        let costly = |e: &Expr| {
            e.any(&mut |e| matches!(e, Expr::Subquery(_)) || crate::fold::is_volatile(e))
        };
        if !plain || call.args.iter().any(costly) {
            return None;
        }
        let statements = body_statements(&def).ok()?;
        let [AtomicStatement::Statement(parsed)] = &statements[..] else {
            return None;
        };
        let Statement::Query(ast) = &parsed.statement else {
            return None;
        };
        if !ast.with.is_empty() || !ast.locks.is_empty() {
            return None;
        }
        let args: Vec<SqlType> = call.args.iter().map(Expr::ty).collect();
        let result = BodyResult::of_call(call);
        self.within_body(&def, &args, |b| {
            let ctes = b.ctes.len();
            let mut kind = QueryKind::Select(b.query(ast, None)?);
            b.cast_result(&mut kind, &def, &result)?;
            let wanted = result.types();
            let QueryKind::Select(query) = kind else {
                return Ok(None);
            };
            let fits = query
                .columns()
                .iter()
                .map(|c| c.ty.oid)
                .eq(wanted.iter().map(|t| t.oid));
            Ok((fits && b.ctes.len() == ctes).then_some(query))
        })
    }
}

/// The one expression that a SELECT without anything else gives.
fn only_value(query: &ast::Query) -> Option<&ast::Expr> {
    let ast::Body::Select(select) = &query.body else {
        return None;
    };
    let plain = query.with.is_empty()
        && query.order.is_empty()
        && query.limit.is_none()
        && query.offset.is_none()
        && query.locks.is_empty()
        && select.distinct.is_none()
        && select.from.is_empty()
        && select.filter.is_none()
        && select.group_by.is_empty()
        && select.having.is_none()
        && select.windows.is_empty();
    match &select.targets[..] {
        [item] if plain && !matches!(item.expr.node, Node::Star(_)) => Some(&item.expr),
        _ => None,
    }
}

/// Whether a body's expression gives what a call of the function would: as steady as it is
/// declared, NULL for NULL where it is strict.
fn may_stand_for(def: &RoutineDef, args: usize, expr: &Expr) -> bool {
    let mut used = vec![false; args];
    let mut good = true;
    expr.any(&mut |e| {
        match e {
            Expr::Param(n, _) => used[usize::from(*n)] = true,
            Expr::Subquery(_)
            | Expr::SetCall { .. }
            | Expr::SetRoutine(_)
            | Expr::Aggregate(_)
            | Expr::Grouping(_)
            | Expr::Window(_)
            | Expr::Var(_) => good = false,
            _ => {}
        }
        good &= volatility(e) <= def.volatility;
        good &= !def.strict || is_strict(e);
        false
    });
    good && (!def.strict || used.iter().all(|u| *u))
}

fn volatility(e: &Expr) -> Volatility {
    match e {
        Expr::Call { func, .. } => func.volatility,
        Expr::Op { op, .. } => op.volatility,
        Expr::Routine(call) => call.def.volatility,
        // What text says may depend on settings.
        Expr::Cast {
            cast: Some(cast), ..
        } => match crate::fold::is_steady_cast(cast) {
            true => Volatility::Immutable,
            false => Volatility::Stable,
        },
        _ => Volatility::Immutable,
    }
}

fn is_strict(e: &Expr) -> bool {
    match e {
        Expr::Const(..) | Expr::Param(..) | Expr::Cast { .. } | Expr::Not(_) => true,
        Expr::Call { func, .. } => func.strict,
        Expr::Op { op, .. } => op.strict,
        Expr::Routine(call) => call.def.strict,
        _ => false,
    }
}

/// The body of a function that was read when it was made, as SQL again; what there is no writing of
/// is shown as it was written.
pub fn routine_body_text(
    def: &RoutineDef,
    catalog: &Catalog,
    search_path: &[Oid],
    eval: EvalContext<'_>,
) -> Option<String> {
    let RoutineBody::Standard { text, atomic, .. } = &def.body else {
        return None;
    };
    let ctx = BindContext {
        catalog,
        search_path,
        creation_schema: None,
        temporary_schema: None,
        user: builtin::SUPERUSER,
        params: &[],
        eval,
        prepared: &|_| None,
        named: None,
    };
    let style = Style {
        kept: false,
        catalog,
        search_path,
        pretty: false,
        eval,
    };
    let mut lines = statement_texts(def, text, *atomic, &ctx, &style)?;
    if !atomic {
        return lines.pop();
    }
    let lines: String = lines.iter().map(|l| format!(" {l};\n")).collect();
    Some(format!("BEGIN ATOMIC\n{lines}END"))
}

/// A body that was read when it was made, as it has to be after something that it names got another
/// name.
pub(in crate::binder) fn routine_body_again(
    def: &RoutineDef,
    renamed: &Renamed<'_>,
) -> Option<String> {
    let RoutineBody::Standard { text, atomic, .. } = &def.body else {
        return None;
    };
    let (host, format) = (
        Named::by(renamed.after, renamed.eval),
        crate::binder::ddl::view::stored_format(),
    );
    let ctx = crate::binder::ddl::view::stored_context(renamed.before, renamed.eval);
    let style = Style {
        kept: true,
        catalog: renamed.after,
        search_path: crate::binder::ddl::view::STORED_PATH,
        pretty: false,
        eval: EvalContext {
            host: &host,
            format: &format,
        },
    };
    let lines = statement_texts(def, text, *atomic, &ctx, &style)?;
    Some(renamed.mended(def, &lines.join(";\n")))
}

/// The statements of a body as SQL; what there is no writing of is as it was written.
fn statement_texts(
    def: &RoutineDef,
    text: &str,
    atomic: bool,
    ctx: &BindContext<'_>,
    style: &Style<'_>,
) -> Option<Vec<String>> {
    let names: Vec<String> = def.inputs().map(|a| a.name.clone()).collect();
    let types = def.value_types();
    let statements = body_statements(def).ok()?;
    let mut lines = Vec::new();
    for statement in &statements {
        let returns = matches!(statement, AtomicStatement::Return(_));
        let last = BodyResult::Value(SqlType::plain(def.ret));
        let last = (returns && def.ret != oid::VOID && def.ret != oid::RECORD).then_some(&last);
        let bound = match has_plan(statement) {
            true => body_statement(ctx, def, &types, statement, last),
            false => Err(Error::internal("a command without a plan")),
        };
        let indent = if atomic { 1 } else { 0 };
        let function = (def.name.as_str(), &names[..]);
        let shown = match (&bound.as_ref().map(|b| &b.kind), statement) {
            (Ok(QueryKind::Select(query)), AtomicStatement::Return(_)) => {
                let value = match &query.body {
                    Body::Select(select) => &select.targets.first()?.expr,
                    _ => return None,
                };
                let text = deparse::body(&BodyPart::Value(value), function, indent, style);
                let wrapped = matches!(
                    value,
                    Expr::Op { .. }
                        | Expr::And(_)
                        | Expr::Or(_)
                        | Expr::Not(_)
                        | Expr::IsNull(_)
                        | Expr::IsNotNull(_)
                );
                match wrapped && !text.starts_with('(') {
                    true => format!("RETURN ({text})"),
                    false => format!("RETURN {text}"),
                }
            }
            (Ok(QueryKind::Select(query)), _) => {
                let ctes = bound.as_ref().map_or(&[][..], |b| &b.ctes[..]);
                let text = deparse::body(&BodyPart::Query(query, ctes), function, indent, style);
                text.trim_start().to_owned()
            }
            (_, AtomicStatement::Statement(parsed)) => {
                text[parsed.start as usize..parsed.end as usize].to_owned()
            }
            (_, AtomicStatement::Return(_)) => text.to_owned(),
        };
        lines.push(shown);
    }
    Some(lines)
}

/// The schemas in which a body that is read when it is made seeks names afterwards.
pub(in crate::binder) fn body_path(binder: &Binder<'_>) -> Vec<Oid> {
    let mut path = binder.search_path.clone();
    if !path.contains(&builtin::PG_CATALOG) {
        path.insert(0, builtin::PG_CATALOG);
    }
    path
}
