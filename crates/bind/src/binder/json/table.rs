//! JSON_TABLE in FROM.

use throng_types::error::state;
use throng_types::sqltype::element_of;
use throng_types::{Error, Result, SqlType, oid};

use crate::binder::Binder;
use crate::binder::json::{allowed, allowed_words, check_quotes, settled};
use crate::binder::query::scope::{Names, Scope};
use crate::tree::expr::Expr;
use crate::tree::query::{FromItem, RelKind};
use throng_syntax::parse::ast::{
    self, Alias, JsonBehavior, JsonBehaviorKind, JsonTable, JsonTableColumn, Node, Pos,
};
use throng_values::func::RelColumn;
use throng_values::func::sqljson::{
    self, Behavior, Column, JsonPathOp, PathSpec, Plan, Spec, TableSpec, Wrapper,
};
use throng_values::io::jsonpath;

/// What is gathered while the columns are bound.
struct Gathered {
    /// The document, values passed, defaults.
    args: Vec<Expr>,
    columns: Vec<(String, SqlType)>,
    /// Names of columns and paths.
    names: Vec<String>,
    /// How many paths were given names.
    unnamed: usize,
}

#[cold]
fn syntax(message: impl Into<String>, pos: Pos) -> Error {
    Error::new(state::SYNTAX_ERROR, message).position(pos + 1)
}

impl Gathered {
    fn name(&mut self, name: &str, pos: Pos) -> Result<()> {
        if self.names.iter().any(|n| n == name) {
            let message = format!("duplicate JSON_TABLE column or path name: {name}");
            return Err(Error::new(state::DUPLICATE_ALIAS, message).position(pos + 1));
        }
        self.names.push(name.to_string());
        Ok(())
    }

    fn check_names(&mut self, columns: &[JsonTableColumn]) -> Result<()> {
        for column in columns {
            match column {
                JsonTableColumn::Ordinality { name, pos }
                | JsonTableColumn::Value { name, pos, .. } => self.name(name, *pos)?,
                JsonTableColumn::Nested {
                    path_name, columns, ..
                } => {
                    if let Some((name, pos)) = path_name {
                        self.name(name, *pos)?;
                    }
                    self.check_names(columns)?;
                }
            }
        }
        Ok(())
    }

    fn path_name(&mut self, written: Option<&(String, Pos)>) -> String {
        if let Some((name, _)) = written {
            return name.clone();
        }
        let name = format!("json_table_path_{}", self.unnamed);
        self.unnamed += 1;
        name
    }
}

/// A path that is written as a constant.
fn path_text(text: &str, pos: Pos) -> Result<String> {
    let path = jsonpath::input(text).map_err(|e| e.position(pos + 1))?;
    Ok(path.to_string())
}

/// Types whose values are JSON's own structures and not scalars.
fn is_structured(ty: SqlType) -> bool {
    matches!(ty.oid, oid::JSON | oid::JSONB | oid::RECORD) || element_of(ty.oid).is_some()
}

impl Binder<'_> {
    pub(in crate::binder) fn json_table(
        &mut self,
        table: &JsonTable,
        alias: Option<&Alias>,
        scope: &Scope<'_>,
    ) -> Result<(FromItem, Names)> {
        let error_on_error = rows_on_error(table.on_error.as_ref())?;
        let Node::Text(root) = &table.path.node else {
            let message = "only string constants are supported in JSON_TABLE path specification";
            let error = Error::new(state::FEATURE_NOT_SUPPORTED, message);
            return Err(error.position(leftmost(&table.path) + 1));
        };
        let mut gathered = Gathered {
            args: vec![],
            columns: vec![],
            names: vec![],
            unnamed: 0,
        };
        let name = gathered.path_name(table.path_name.as_ref());
        gathered.names.push(name.clone());
        gathered.check_names(&table.columns)?;
        let path = path_text(root, table.path.pos)?;
        let document = self.json_context(&table.context, scope)?;
        gathered.args.push(document);
        let passing = self.json_passing(&table.passing, &mut gathered.args, scope)?;
        let root = self.json_plan(path, name, &table.columns, &mut gathered, scope)?;
        let columns: Vec<RelColumn> = gathered
            .columns
            .iter()
            .map(|(name, ty)| RelColumn {
                name: name.clone(),
                ty: *ty,
            })
            .collect();
        if let Some(given) = alias
            .map(|a| a.columns.len())
            .filter(|n| *n > columns.len())
        {
            let message = format!(
                "JSON_TABLE function has {} columns available but {given} columns specified",
                columns.len()
            );
            return Err(Error::new(state::INVALID_COLUMN_REFERENCE, message));
        }
        let raw = |(name, ty): (String, SqlType)| (name, (ty.oid.0, ty.typmod));
        let spec = Spec::Table(TableSpec {
            root,
            passing,
            error_on_error,
            columns: gathered.columns.into_iter().map(raw).collect(),
        });
        let mut args = vec![Expr::Const(spec.to_datum()?, SqlType::TEXT)];
        args.extend(gathered.args);
        let lateral = args
            .iter()
            .any(|a| a.any(&mut |e| matches!(e, Expr::Var(_))));
        let kind = RelKind::Function {
            func: &sqljson::TABLE,
            args,
            composite: false,
            ordinality: false,
            lateral,
        };
        self.named_rel(kind, "json_table", columns, alias)
    }

    /// A path's own columns first, then those of the paths nested in it.
    fn json_plan(
        &mut self,
        path: String,
        name: String,
        columns: &[JsonTableColumn],
        gathered: &mut Gathered,
        scope: &Scope<'_>,
    ) -> Result<Plan> {
        let mut own = Vec::new();
        let mut numbered = false;
        for column in columns {
            let (name, ty, bound) = match column {
                JsonTableColumn::Ordinality { name, pos } => {
                    if std::mem::replace(&mut numbered, true) {
                        let message = "only one FOR ORDINALITY column is allowed";
                        return Err(syntax(message, *pos));
                    }
                    (name, SqlType::INT4, Column::Ordinality)
                }
                JsonTableColumn::Value { name, .. } => {
                    let (ty, bound) = self.json_column(column, gathered, scope)?;
                    (name, ty, bound)
                }
                JsonTableColumn::Nested { .. } => continue,
            };
            own.push((gathered.columns.len(), bound));
            gathered.columns.push((name.clone(), ty));
        }
        let mut nested = Vec::new();
        for column in columns {
            let JsonTableColumn::Nested {
                path,
                path_name,
                columns,
            } = column
            else {
                continue;
            };
            let name = gathered.path_name(path_name.as_ref());
            let path = path_text(&path.0, path.1)?;
            let plan = self.deeper(|b| b.json_plan(path, name, columns, gathered, scope))?;
            nested.push(plan);
        }
        Ok(Plan {
            path,
            name,
            columns: own,
            nested,
        })
    }

    fn json_column(
        &mut self,
        column: &JsonTableColumn,
        gathered: &mut Gathered,
        scope: &Scope<'_>,
    ) -> Result<(SqlType, Column)> {
        let JsonTableColumn::Value {
            name,
            pos,
            ty,
            format,
            exists,
            path,
            wrapper,
            keep_quotes,
            on_empty,
            on_error,
        } = column
        else {
            return Err(Error::internal("a column of JSON_TABLE without a value"));
        };
        let returning = ast::JsonReturning {
            ty: ty.clone(),
            format: format.clone(),
        };
        let ty = self.json_output(Some(&returning), SqlType::JSONB)?;
        let formatted = format.is_some()
            || is_structured(ty)
            || keep_quotes.is_some()
            || *wrapper != Wrapper::Unspecified;
        let op = match (exists, formatted) {
            (true, _) => JsonPathOp::Exists,
            (false, true) => JsonPathOp::Query,
            (false, false) => JsonPathOp::Value,
        };
        check_behavior(op, name, on_empty.as_ref(), "ON EMPTY")?;
        check_behavior(op, name, on_error.as_ref(), "ON ERROR")?;
        check_quotes(*wrapper, *keep_quotes, *pos)?;
        let path = match path {
            Some((text, pos)) => path_text(text, *pos)?,
            None => {
                let key = jsonpath::Item::Key(name.as_str().into());
                let root = vec![jsonpath::Item::Root, key];
                jsonpath::Path { lax: true, root }.to_string()
            }
        };
        let how = PathSpec {
            op,
            wrapper: settled(*wrapper),
            omit_quotes: *keep_quotes == Some(false),
            returning: (ty.oid.0, ty.typmod),
            passing: vec![],
            on_empty: self
                .behavior(on_empty.as_ref(), ty, &mut gathered.args, scope)?
                .filter(|b| *b != Behavior::Null),
            on_error: self
                .behavior(on_error.as_ref(), ty, &mut gathered.args, scope)?
                .filter(|b| *b != Behavior::otherwise(op)),
            column: Some(name.clone()),
        };
        Ok((ty, Column::Value { path, how }))
    }
}

/// Where an expression begins.
fn leftmost(expr: &ast::Expr) -> Pos {
    match &expr.node {
        Node::Binary { left, .. } => leftmost(left),
        _ => expr.pos,
    }
}

/// Whether a failing row path is an error.
fn rows_on_error(behavior: Option<&JsonBehavior>) -> Result<bool> {
    match behavior.map(|b| (&b.kind, b.pos)) {
        None | Some((JsonBehaviorKind::EmptyArray, _)) => Ok(false),
        Some((JsonBehaviorKind::Error, _)) => Ok(true),
        Some((_, pos)) => Err(syntax("invalid ON ERROR behavior", pos)
            .detail("Only EMPTY [ ARRAY ] or ERROR is allowed in the top-level ON ERROR clause.")),
    }
}

fn check_behavior(
    op: JsonPathOp,
    column: &str,
    behavior: Option<&JsonBehavior>,
    clause: &str,
) -> Result<()> {
    let Some(behavior) = behavior.filter(|b| !allowed(op, &b.kind)) else {
        return Ok(());
    };
    let kind = match op {
        JsonPathOp::Exists => "EXISTS",
        JsonPathOp::Value => "scalar",
        JsonPathOp::Query => "formatted",
    };
    let words = allowed_words(op);
    let message = format!("invalid {clause} behavior for column \"{column}\"");
    let detail = format!("Only {words} is allowed in {clause} for {kind} columns.");
    Err(syntax(message, behavior.pos).detail(detail))
}
