//! Views: what a definition means, what it depends on, and reading one.
//!
//! A view is kept as SQL that means the same on any search path ([`crate::deparse`]). Before it is
//! kept, that text is read and bound again and compared with what was bound first: a query whose
//! text would come out as another is refused.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use throng_types::error::state;
use throng_types::sqltype::{element_of, format_type, made};
use throng_types::{Datum, Error, Oid, Result, SqlType, oid};

use crate::binder::expr::operator::{own_operator, relation_of};
use crate::binder::query::scope::Names;
use crate::binder::renamed::with_stored_style;
use crate::binder::{BindContext, Binder};
use crate::command::{CreateView, Ddl};
use crate::deparse::{self, Style};
use crate::tree::expr::own::without_casts;
use crate::tree::expr::{Expr, RelId, Var};
use crate::tree::query::walk::{QueryPart, QueryPartMut};
use crate::tree::query::{Body, BoundQuery, FromItem, Query, QueryKind, Rel, RelKind, Select};
use throng_catalog::{Catalog, CheckOption, Relation, ViewColumn, ViewDef, ViewUse, builtin};
use throng_syntax::parse::{self, ast};
use throng_values::func::RelColumn;
use throng_values::func::{CastContext, EvalContext, find_cast};
use throng_values::io::{FormatSettings, IntervalStyle};

/// Where a view's text is bound: it names everything else with its schema.
pub(in crate::binder) const STORED_PATH: &[Oid] = &[builtin::PG_CATALOG];

/// Most range-table entries of a statement that reads views: views that each read two others grow
/// by powers of two.
pub(in crate::binder) const MAX_ENTRIES: u32 = 4096;

/// How constants are written in a kept definition: such that they are read the same under any
/// settings.
pub(in crate::binder) fn stored_format() -> FormatSettings {
    FormatSettings {
        interval_style: IntervalStyle::Iso8601,
        ..FormatSettings::default()
    }
}

/// What a kept definition is bound in.
pub(crate) fn stored_context<'a>(catalog: &'a Catalog, eval: EvalContext<'a>) -> BindContext<'a> {
    BindContext {
        catalog,
        search_path: STORED_PATH,
        creation_schema: None,
        temporary_schema: None,
        // Whoever may read it: it is not read now.
        user: builtin::SUPERUSER,
        params: &[],
        eval,
        prepared: &|_| None,
        named: None,
    }
}

/// Reads a kept definition.
fn stored_view(view: &ViewDef, catalog: &Catalog, eval: EvalContext<'_>) -> Result<BoundQuery> {
    bound_text(&view.query, &stored_context(catalog, eval))
}

/// A kept definition as it has to be after something it names got another name in `renamed`.
pub fn rewritten(
    view: &ViewDef,
    catalog: &Catalog,
    renamed: &Catalog,
    eval: EvalContext<'_>,
) -> Result<String> {
    let bound = stored_view(view, catalog, eval)?;
    let QueryKind::Select(query) = &bound.kind else {
        return Err(Error::internal("a view that is no query"));
    };
    Ok(with_stored_style(renamed, eval, |style| {
        deparse::query(query, &bound.ctes, None, style)
    }))
}

/// A view's query as SQL, as a session with this search path would write it (`pg_get_viewdef`).
pub fn view_definition(
    view: &ViewDef,
    catalog: &Catalog,
    search_path: &[Oid],
    pretty: bool,
    eval: EvalContext<'_>,
) -> Result<String> {
    let bound = stored_view(view, catalog, eval)?;
    let style = Style {
        kept: false,
        catalog,
        search_path,
        pretty,
        eval,
    };
    deparse::view(view, &bound, &style).ok_or_else(|| Error::internal("a view that is no query"))
}

/// Which of a view's columns can be written to; none where no row of it can.
pub fn updatable_columns(
    view: &Arc<ViewDef>,
    catalog: &Catalog,
    eval: EvalContext<'_>,
) -> Result<Vec<bool>> {
    let ctx = stored_context(catalog, eval);
    let columns = Binder::new(&ctx).updatable_columns(view)?;
    Ok(columns.unwrap_or_default())
}

/// The table whose places a view shows as its column `ctid`: `currtid2` looks there.
///
/// # Errors
/// PostgreSQL's of a view without such a column.
pub fn ctid_source(view: &Arc<ViewDef>, catalog: &Catalog, eval: EvalContext<'_>) -> Result<Oid> {
    let Some(place) = view.columns.iter().position(|c| c.name == "ctid") else {
        let message = "currtid cannot handle views with no CTID";
        return Err(Error::new(state::UNDEFINED_OBJECT, message));
    };
    if view.columns[place].ty.oid != oid::TID {
        let message = "ctid isn't of type TID";
        return Err(Error::new(state::INVALID_OBJECT_DEFINITION, message));
    }
    let ctx = stored_context(catalog, eval);
    let mut binder = Binder::new(&ctx);
    binder.definition = true;
    let query = binder.view_rows(view)?;
    let source = match &query.body {
        Body::Select(select) => select.targets.get(place).and_then(|target| {
            let Expr::Var(var) = &target.expr else {
                return None;
            };
            select.from.iter().find_map(|item| match item {
                FromItem::Rel(rel) if rel.id == var.rel => match &rel.kind {
                    RelKind::Table(table) => Some(table.oid),
                    _ => None,
                },
                _ => None,
            })
        }),
        _ => None,
    };
    source.ok_or_else(|| Error::new(state::INTERNAL_ERROR, "currtid cannot handle this view"))
}

/// An expression without columns as SQL that means the same on any search path, and the users'
/// objects it names.
pub(in crate::binder) fn stored_expr(
    ctx: &BindContext<'_>,
    bound: &Expr,
) -> Result<(String, Vec<Oid>)> {
    let format = stored_format();
    let style = Style {
        kept: true,
        catalog: ctx.catalog,
        search_path: STORED_PATH,
        pretty: false,
        eval: EvalContext {
            format: &format,
            ..ctx.eval
        },
    };
    let bound = without_casts(bound.clone());
    let named = objects_of(&bound).into_iter();
    let named = named.map(|oid| relation_of(oid, ctx.catalog)).collect();
    Ok((deparse::expression(&bound, &style), named))
}

/// The users' objects that an expression names.
pub(in crate::binder) fn objects_of(expr: &Expr) -> Vec<Oid> {
    let mut uses = Uses::default();
    expr.walk(false, &mut |part| uses.part(&part));
    uses.objects.into_keys().collect()
}

/// What a query names, as definitions keep it.
pub(in crate::binder) fn named_by(bound: &BoundQuery, catalog: &Catalog) -> Result<Vec<ViewUse>> {
    let mut uses = Uses::default();
    uses.statement(bound);
    uses.found(catalog)
}

/// The users' objects that a statement names itself.
pub(in crate::binder) fn objects_named(bound: &BoundQuery, catalog: &Catalog) -> Vec<Oid> {
    let mut uses = Uses::default();
    uses.statement(bound);
    match &bound.kind {
        QueryKind::Select(_) => {}
        QueryKind::Insert(insert) => {
            uses.objects.entry(insert.table.oid).or_default();
            insert.source.walk(false, &mut |part| uses.part(&part));
        }
        QueryKind::Update(update) => {
            uses.objects.entry(update.table.oid).or_default();
        }
        QueryKind::Delete(delete) => {
            uses.objects.entry(delete.table.oid).or_default();
        }
        QueryKind::Merge(merge) => {
            uses.objects.entry(merge.table.oid).or_default();
        }
    }
    let named = uses.objects.into_keys();
    named.map(|oid| relation_of(oid, catalog)).collect()
}

fn bound_text(text: &str, ctx: &BindContext<'_>) -> Result<BoundQuery> {
    let mut binder = Binder::new(ctx);
    binder.definition = true;
    binder.defining = true;
    stored_query(&mut binder, text)
}

/// Binds the text of a view.
pub(in crate::binder) fn stored_query(binder: &mut Binder<'_>, text: &str) -> Result<BoundQuery> {
    let mut parsed = parse::parse(text)?;
    let statement = match parsed.pop() {
        Some(one) if parsed.is_empty() => one.statement,
        _ => return Err(Error::internal("a view that is not one statement")),
    };
    binder.data(&statement)
}

impl Binder<'_> {
    pub(in crate::binder) fn create_view(&mut self, ast: &ast::CreateView) -> Result<Ddl> {
        let query = &ast.query;
        for cte in &query.with {
            if !matches!(cte.statement, ast::Statement::Query(_)) {
                let message = "views must not contain data-modifying statements in WITH";
                return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
            }
        }
        let mut bound = self.view_query(query)?;
        let QueryKind::Select(query) = &mut bound.kind else {
            return Err(Error::internal("a view that is no query"));
        };
        let columns = view_columns(ast, query)?;
        name_outputs(self, query, &columns);
        let (check, options) = view_options(ast)?;
        let uses = named_by(&bound, self.catalog())?;
        let (schema, _) = self.view_place(ast, &uses)?;
        let text = self.stored_text(&bound)?;
        let old = self.replaced(ast, schema, &columns)?;
        if let Some(old) = &old {
            self.must_not_read_itself(old, &uses)?;
        }
        let view = ViewDef {
            oid: old.as_ref().map_or(Oid::NONE, |old| old.oid),
            schema,
            name: ast.name.last().to_owned(),
            owner: old.as_ref().map_or(self.ctx.user, |old| old.owner),
            columns,
            query: text,
            check,
            uses,
            options,
            defaults: old.as_ref().map_or(vec![], |old| old.defaults.clone()),
            array_name: None,
        };
        if view.check.is_some() {
            self.check_option_allowed(&view)?;
        }
        let over = view.uses.iter();
        let over = over.filter_map(|u| self.catalog().relation(u.object));
        let over = over.collect();
        Ok(Ddl::CreateView(CreateView { view, old, over }))
    }

    /// Where a view goes: with the session's temporary relations, where it reads one.
    fn view_place(&mut self, ast: &ast::CreateView, uses: &[ViewUse]) -> Result<(Oid, bool)> {
        let becomes = !ast.temporary && uses.iter().any(|used| self.is_temporary(used.object));
        if becomes {
            let message = format!("view \"{}\" will be a temporary view", ast.name.last());
            self.notice(Error::new(state::SUCCESSFUL_COMPLETION, message));
        }
        let temporary = ast.temporary || becomes;
        self.place(&ast.name, temporary).map_err(|mut e| {
            e.fields_mut().position = e.fields().position.filter(|_| !temporary);
            e
        })
    }

    /// What is kept of a query whose columns are called so: its text, and what it names.
    pub(in crate::binder) fn kept_query(
        &mut self,
        query: &ast::Query,
        columns: &[ViewColumn],
    ) -> Result<(String, Vec<ViewUse>)> {
        let mut bound = self.view_query(query)?;
        if let QueryKind::Select(query) = &mut bound.kind {
            name_outputs(self, query, columns);
        }
        Ok((self.stored_text(&bound)?, named_by(&bound, self.catalog())?))
    }

    fn view_query(&mut self, query: &ast::Query) -> Result<BoundQuery> {
        let params = self.params.len();
        // Its names are found as the role finds them.
        self.defining = true;
        let bound = self.query(query, None).and_then(|query| {
            self.accesses.clear();
            self.bound(QueryKind::Select(query))
        });
        self.defining = false;
        let bound = bound?;
        if self.params.len() > params {
            let message = format!("there is no parameter ${}", params + 1);
            return Err(Error::new(state::UNDEFINED_PARAMETER, message));
        }
        Ok(bound)
    }

    /// The definition as SQL, after making sure that it is read as what it was written from.
    fn stored_text(&mut self, bound: &BoundQuery) -> Result<String> {
        let QueryKind::Select(query) = &bound.kind else {
            return Err(Error::internal("a view that is no query"));
        };
        let format = stored_format();
        let eval = EvalContext {
            format: &format,
            ..self.ctx.eval
        };
        let style = Style {
            kept: true,
            catalog: self.catalog(),
            search_path: STORED_PATH,
            pretty: false,
            eval,
        };
        let text = deparse::query(query, &bound.ctes, None, &style);
        let ctx = BindContext {
            search_path: STORED_PATH,
            params: &[],
            ..*self.ctx
        };
        let same = match bound_text(&text, &ctx) {
            Ok(mut again) => {
                let mut first = bound.clone();
                normalize(&mut first);
                normalize(&mut again);
                first.kind == again.kind && first.ctes == again.ctes
            }
            Err(_) => false,
        };
        match same {
            true => Ok(text),
            false => Err(Error::unsupported("a view with such a query")
                .detail(format!("Its text would be: {}", text.trim()))),
        }
    }

    /// The view that is to be replaced, whose columns must stay.
    fn replaced(
        &mut self,
        ast: &ast::CreateView,
        schema: Oid,
        columns: &[ViewColumn],
    ) -> Result<Option<Arc<ViewDef>>> {
        let name = ast.name.last();
        let old = match self.catalog().relation_in(schema, name) {
            None => return Ok(None),
            Some(_) if !ast.or_replace => {
                let message = format!("relation \"{name}\" already exists");
                return Err(Error::new(state::DUPLICATE_TABLE, message));
            }
            Some(Relation::View(old)) => old,
            Some(_) => {
                let message = format!("\"{name}\" is not a view");
                return Err(Error::new(state::WRONG_OBJECT_TYPE, message));
            }
        };
        self.must_own(old.owner, "view", name)?;
        let refuse = |message: String| Err(Error::new(state::INVALID_TABLE_DEFINITION, message));
        if columns.len() < old.columns.len() {
            return refuse("cannot drop columns from view".to_owned());
        }
        for (new, was) in columns.iter().zip(&old.columns) {
            if new.name != was.name {
                let message = format!(
                    "cannot change name of view column \"{}\" to \"{}\"",
                    was.name, new.name
                );
                return Err(Error::new(state::INVALID_TABLE_DEFINITION, message).hint(
                    "Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.",
                ));
            }
            if new.ty != was.ty {
                return refuse(format!(
                    "cannot change data type of view column \"{}\" from {} to {}",
                    was.name,
                    format_type(was.ty),
                    format_type(new.ty)
                ));
            }
        }
        Ok(Some(old))
    }

    fn must_not_read_itself(&self, old: &ViewDef, uses: &[ViewUse]) -> Result<()> {
        let mut seen = Vec::new();
        let mut queue: Vec<Oid> = uses.iter().map(|u| u.object).collect();
        while let Some(oid) = queue.pop() {
            if oid == old.oid {
                return Err(itself(&old.name));
            }
            if let Some(view) = self.catalog().rule_of(oid)
                && !seen.contains(&oid)
            {
                seen.push(oid);
                queue.extend(view.uses.iter().map(|u| u.object));
            }
        }
        Ok(())
    }

    /// A view in FROM: its query, as its owner would run it.
    pub(in crate::binder) fn view_item(
        &mut self,
        view: &Arc<ViewDef>,
        alias: Option<&ast::Alias>,
        schema: Option<String>,
    ) -> Result<(FromItem, Names)> {
        // The view comes before what it reads.
        let place = self.accesses.len();
        let query = match self.defining {
            // A definition names the view and is not run: what the view reads is nothing to it.
            true => self.no_rows(view),
            false => self.view_rows(view)?,
        };
        let columns = view_rel_columns(view);
        let kind = RelKind::View {
            view: view.clone(),
            query: Box::new(query),
        };
        let (item, mut names) = self.named_rel(kind, &view.name, columns, alias)?;
        if let FromItem::Rel(rel) = &item {
            let inside = self.accesses.split_off(place);
            self.reads(&Relation::View(view.clone()), rel.id);
            self.accesses.extend(inside);
        }
        for table in &mut names.tables {
            table.schema.clone_from(&schema);
        }
        Ok((item, names))
    }

    /// A query with a view's columns that stands for the view's own.
    fn no_rows(&mut self, view: &ViewDef) -> Query {
        let target = |column: &ViewColumn| crate::tree::query::Target {
            expr: Expr::null(column.ty),
            name: column.name.clone(),
        };
        let columns = view.columns.iter().map(target).collect();
        Query {
            body: Body::Values {
                rows: vec![],
                columns,
            },
            order: vec![],
            limit: None,
            ties: false,
            offset: None,
            locks: vec![],
            output: self.new_rel(),
            ctes: vec![],
            outside: vec![],
        }
    }

    /// As which role what a view reads is read.
    pub(in crate::binder) fn read_as(&self, view: &ViewDef) -> Oid {
        match view.is_invokers() {
            true => self.ctx.user,
            false => view.owner,
        }
    }

    /// A view's query, with a part of this statement's own names and numbers.
    pub(in crate::binder) fn view_rows(&mut self, view: &Arc<ViewDef>) -> Result<Query> {
        if self.views.contains(&view.oid) {
            return Err(itself(&view.name));
        }
        if self.next_rel > MAX_ENTRIES {
            return Err(Error::new(
                state::STATEMENT_TOO_COMPLEX,
                format!("the views of the statement read more than {MAX_ENTRIES} relations in all"),
            ));
        }
        let mut parsed = parse::parse(&view.query)?;
        let Some(ast::Statement::Query(ast)) = parsed.pop().map(|p| p.statement) else {
            return Err(Error::internal("a view that is no query"));
        };
        self.views.push(view.oid);
        self.views_met.push(view.oid);
        let reader = self.read_as(view);
        let user = std::mem::replace(&mut self.user, reader);
        let path = std::mem::replace(&mut self.search_path, STORED_PATH.to_vec());
        let clause = self.clause;
        let keep_untyped = std::mem::take(&mut self.keep_untyped);
        let query = self.query(&ast, None).map_err(|mut e| {
            // Places in a text that nobody has seen.
            e.fields_mut().position = None;
            e
        });
        self.keep_untyped = keep_untyped;
        self.clause = clause;
        self.search_path = path;
        self.user = user;
        self.views.pop();
        let query = query?;
        let same = query
            .columns()
            .iter()
            .map(|c| c.ty)
            .eq(view.columns.iter().map(|c| c.ty));
        match same {
            true => Ok(query),
            // A function in it gives other columns since a column of its row type was dropped.
            false => {
                let message = format!(
                    "the columns of view \"{}\" are not what they were",
                    view.name
                );
                Err(Error::new(state::UNDEFINED_COLUMN, message))
            }
        }
    }
}

pub(in crate::binder) fn view_rel_columns(view: &ViewDef) -> Vec<RelColumn> {
    let column = |c: &ViewColumn| RelColumn {
        name: c.name.clone(),
        ty: c.ty,
    };
    view.columns.iter().map(column).collect()
}

fn itself(name: &str) -> Error {
    let message = format!("infinite recursion detected in rules for relation \"{name}\"");
    Error::new(state::INVALID_OBJECT_DEFINITION, message)
}

/// The view's columns: the query's, under the names that were given.
fn view_columns(ast: &ast::CreateView, query: &Query) -> Result<Vec<ViewColumn>> {
    let mut columns: Vec<ViewColumn> = Vec::new();
    let outputs = query.columns();
    if ast.columns.len() > outputs.len() {
        return Err(Error::new(
            state::SYNTAX_ERROR,
            "CREATE VIEW specifies more column names than columns",
        ));
    }
    for (i, output) in outputs.into_iter().enumerate() {
        let name = ast.columns.get(i).cloned().unwrap_or(output.name);
        if columns.iter().any(|c| c.name == name) {
            let message = format!("column \"{name}\" specified more than once");
            return Err(Error::new(state::DUPLICATE_COLUMN, message));
        }
        if output.ty.info().is_some_and(|info| info.is_pseudo()) {
            let message = format!(
                "column \"{name}\" has pseudo-type {}",
                format_type(output.ty)
            );
            return Err(Error::new(state::INVALID_TABLE_DEFINITION, message));
        }
        columns.push(ViewColumn {
            name,
            ty: output.ty,
        });
    }
    Ok(columns)
}

/// Calls the query's columns what the view does, in every operand.
fn name_outputs(binder: &mut Binder<'_>, query: &mut Query, columns: &[ViewColumn]) {
    match &mut query.body {
        Body::Select(select) => {
            for (target, column) in select.targets.iter_mut().zip(columns) {
                target.name.clone_from(&column.name);
            }
        }
        Body::SetOp {
            left,
            right,
            columns: targets,
            ..
        } => {
            for (target, column) in targets.iter_mut().zip(columns) {
                target.name.clone_from(&column.name);
            }
            name_outputs(binder, left, columns);
            name_outputs(binder, right, columns);
        }
        Body::Values { columns: own, .. } => {
            if own.iter().zip(columns).all(|(a, b)| a.name == b.name) {
                return;
            }
            // VALUES has names of its own: they are given others from outside.
            let inner = query.clone();
            let id = binder.new_rel();
            let rel_columns = inner.columns();
            let mut targets = crate::binder::query::select::output_targets(id, &rel_columns);
            for (target, column) in targets.iter_mut().zip(columns) {
                target.name.clone_from(&column.name);
            }
            let rel = Rel {
                aliased: true,
                ..Rel::subquery(id, "*VALUES*", inner, rel_columns)
            };
            let from = vec![FromItem::Rel(Box::new(rel))];
            query.body = Body::Select(Box::new(Select::plain(from, targets)));
            query.order = vec![];
            query.limit = None;
            query.ties = false;
            query.offset = None;
            query.ctes = vec![];
            query.outside = vec![];
            query.output = binder.new_rel();
        }
    }
}

/// Storage parameters of a view: its check option, and the rest.
#[allow(clippy::type_complexity)] // Two parts, taken apart at once.
fn view_options(ast: &ast::CreateView) -> Result<(Option<CheckOption>, Vec<(String, String)>)> {
    let mut check = ast.check;
    let mut rest: Vec<(String, String)> = Vec::new();
    for (name, value) in &ast.options {
        let twice = match set_view_option(name, value)? {
            Some(option) => check.replace(option).is_some(),
            None => {
                let twice = rest.iter().any(|(n, _)| n == name);
                rest.push((name.clone(), value.clone()));
                twice
            }
        };
        if twice {
            let message = format!("parameter \"{name}\" specified more than once");
            return Err(Error::new(state::INVALID_PARAMETER_VALUE, message));
        }
    }
    Ok((check, rest))
}

/// What a storage parameter of a view says, if it is its check option.
pub(in crate::binder) fn set_view_option(name: &str, value: &str) -> Result<Option<CheckOption>> {
    match name {
        "check_option" => match value.to_lowercase().as_str() {
            "local" => Ok(Some(CheckOption::Local)),
            "cascaded" => Ok(Some(CheckOption::Cascaded)),
            _ => {
                let message = format!("invalid value for enum option \"check_option\": {value}");
                Err(Error::new(state::INVALID_PARAMETER_VALUE, message)
                    .detail("Valid values are \"local\" and \"cascaded\"."))
            }
        },
        "security_barrier" | "security_invoker" => {
            match throng_values::settings::value::parse_bool(value) {
                None => {
                    let message = format!("invalid value for boolean option \"{name}\": {value}");
                    Err(Error::new(state::INVALID_PARAMETER_VALUE, message))
                }
                Some(_) => Ok(None),
            }
        }
        other => {
            let message = format!("unrecognized parameter \"{other}\"");
            Err(Error::new(state::INVALID_PARAMETER_VALUE, message))
        }
    }
}

/// The relations, columns and types a query names itself; what a view in it names is the view's own
/// affair.
#[derive(Default)]
struct Uses {
    objects: BTreeMap<Oid, Vec<u16>>,
    /// Which entry of the statement is which relation.
    entries: Vec<(RelId, Oid)>,
    /// The type of a constant that would not follow when what it names is renamed.
    fixed: Option<SqlType>,
}

impl Uses {
    /// `catalog`: a row type is its relation's.
    fn found(self, catalog: &Catalog) -> Result<Vec<ViewUse>> {
        if let Some(ty) = self.fixed {
            let message = format!("a view with a constant of type {}", format_type(ty));
            return Err(Error::unsupported(message));
        }
        let mut uses: BTreeMap<Oid, Vec<u16>> = BTreeMap::new();
        for (object, columns) in self.objects {
            let of = uses.entry(relation_of(object, catalog)).or_default();
            of.extend(columns);
            of.sort_unstable();
            of.dedup();
        }
        Ok(uses
            .into_iter()
            .map(|(object, columns)| ViewUse { object, columns })
            .collect())
    }

    fn constant(&mut self, value: &Datum, ty: SqlType) {
        let of_users = |oid: &Oid| *oid >= Oid::FIRST_USER;
        match value {
            Datum::Oid(named) if ty.oid == oid::REGCLASS && of_users(&Oid(*named)) => {
                self.objects.entry(Oid(*named)).or_default();
            }
            Datum::Oid(named) if ty.oid != oid::OID && of_users(&Oid(*named)) => {
                self.fixed = Some(ty);
            }
            Datum::Enum(_) | Datum::Base(_) | Datum::Null => {}
            _ if made::is_made(ty.oid) => self.fixed = Some(ty),
            _ => {}
        }
    }

    fn made_type(&mut self, ty: SqlType) {
        if made::is_made(ty.oid) {
            let element = element_of(ty.oid).unwrap_or(ty.oid);
            self.objects.entry(element).or_default();
        }
    }

    fn statement(&mut self, bound: &BoundQuery) {
        let mut queries: Vec<&Query> = bound.ctes.iter().flat_map(|c| c.body.queries()).collect();
        if let QueryKind::Select(query) = &bound.kind {
            queries.push(query);
        }
        let mut vars: Vec<&Var> = Vec::new();
        for query in queries {
            query.walk(false, &mut |part| match part {
                QueryPart::Expr(Expr::Var(var)) => vars.push(var),
                part => self.part(&part),
            });
        }
        for var in vars {
            let relation = self.entries.iter().find(|(id, _)| *id == var.rel);
            if let (Some((_, oid)), Ok(attnum @ 1..)) = (relation, u16::try_from(var.column)) {
                let columns = self.objects.entry(*oid).or_default();
                if let Err(at) = columns.binary_search(&attnum) {
                    columns.insert(at, attnum);
                }
            }
        }
    }

    fn part(&mut self, part: &QueryPart<'_>) {
        match part {
            QueryPart::Rel(rel) => self.entry(rel),
            QueryPart::Query(Query {
                body: Body::Select(select),
                ..
            }) => {
                for key in &select.grouping.keys {
                    self.objects.entry(*key).or_default();
                }
            }
            QueryPart::Expr(Expr::Const(value, ty)) => {
                self.constant(value, *ty);
                self.made_type(*ty);
            }
            QueryPart::Expr(Expr::Cast { to: ty, .. } | Expr::Array(_, ty)) => self.made_type(*ty),
            QueryPart::Expr(Expr::ToDomain(_, rules)) => {
                self.made_type(SqlType::plain(rules.domain));
            }
            QueryPart::Expr(e) => {
                if let Some(object) = e.definition().or_else(|| own_operator(e)) {
                    self.objects.entry(object).or_default();
                }
            }
            _ => {}
        }
    }

    fn entry(&mut self, rel: &Rel) {
        let oid = match &rel.kind {
            RelKind::Table(table) => table.oid,
            RelKind::View { view, .. } => view.oid,
            RelKind::Routine { call, .. } => call.def.oid,
            _ => return,
        };
        self.objects.entry(oid).or_default();
        self.entries.push((rel.id, oid));
    }
}

/// Gives an expression the one form of the two in which it may come back.
fn make_plain(e: &mut Expr) {
    match e {
        Expr::Own(form) => form.write_out(),
        Expr::Not(arg) => {
            if let Expr::IsDistinct {
                negated: negated @ false,
                ..
            } = &mut **arg
            {
                *negated = true;
                *e = std::mem::replace(arg, Expr::bool(true));
            }
        }
        // `(ARRAY[…])::type[]` casts the elements where they stand.
        Expr::Cast { arg, to, .. } => {
            let (Expr::Array(items, _), Some(element)) = (&mut **arg, element_of(to.oid)) else {
                return;
            };
            let cast_items = std::mem::take(items).into_iter().map(|item| {
                let from = item.type_oid();
                match from == element {
                    true => item,
                    false => Expr::Cast {
                        arg: Box::new(item),
                        cast: find_cast(from, element, CastContext::Explicit),
                        to: SqlType::plain(element),
                        context: CastContext::Explicit,
                    },
                }
            });
            *e = Expr::Array(cast_items.collect(), *to);
        }
        _ => {}
    }
}

/// A join by USING is one by what it compares.
fn forget_using(item: &mut FromItem) {
    if let FromItem::Join {
        left,
        right,
        using,
        alias,
        ..
    } = item
    {
        *alias = None;
        using.clear();
        forget_using(left);
        forget_using(right);
    }
}

fn forget_names(query: &mut Query) {
    let targets = match &mut query.body {
        Body::Select(select) => &mut select.targets,
        Body::Values { columns, .. } | Body::SetOp { columns, .. } => columns,
    };
    targets.iter_mut().for_each(|target| target.name.clear());
}

/// Takes away what may differ between a query and its text read again: the numbers of entries, what
/// they are called, and whether a cast was written or came by itself, where that is the same.
pub(in crate::binder) fn normalize(bound: &mut BoundQuery) {
    let mut given: HashMap<u32, u32> = HashMap::new();
    let mut number = |id: &mut RelId| {
        let next = given.len() as u32;
        id.0 = *given.entry(id.0).or_insert(next);
    };
    let mut plain = |part: QueryPartMut<'_>| match part {
        QueryPartMut::Query(query) => {
            match &mut query.body {
                Body::Select(select) => select.from.iter_mut().for_each(forget_using),
                // What an operand calls its columns nobody sees.
                Body::SetOp { left, right, .. } => {
                    forget_names(left);
                    forget_names(right);
                }
                Body::Values { .. } => {}
            }
            number(&mut query.output);
            query.locks.iter_mut().for_each(|lock| {
                number(&mut lock.rel);
                number(&mut lock.origin);
            });
        }
        QueryPartMut::Rel(rel) => {
            number(&mut rel.id);
            if let RelKind::Routine { inline, .. } = &mut rel.kind {
                *inline = None;
            }
            if rel.alias == Rel::COMPARED
                && let RelKind::Subquery { query, .. } = &mut rel.kind
            {
                forget_names(query);
                rel.columns
                    .iter_mut()
                    .for_each(|column| column.name.clear());
            }
            rel.alias.clear();
            rel.aliased = false;
            rel.column_aliases.clear();
        }
        QueryPartMut::Expr(e) => {
            make_plain(e);
            match e {
                Expr::Var(var) => number(&mut var.rel),
                Expr::Routine(call) => call.inline = None,
                Expr::Subquery(sub) => forget_names(&mut sub.query),
                Expr::Cast { context, to, .. } if to.typmod == -1 => {
                    *context = CastContext::Explicit;
                }
                _ => {}
            }
        }
    };
    if let QueryKind::Select(query) = &mut bound.kind {
        query.walk_mut(&mut plain);
    }
    for cte in &mut bound.ctes {
        cte.uses = 0;
        cte.aliases.clear();
        cte.body
            .queries_mut()
            .into_iter()
            .for_each(|query| query.walk_mut(&mut plain));
    }
}
