//! Texts of a body in PL/pgSQL: expressions and statements bound with variables as parameters.
//!
//! A parameter's number is its variable's place. A row's fields are known while it holds one, so
//! what was bound is good for rows of that shape; whoever keeps it looks whether the shapes are
//! still the same.

use std::rc::Rc;

use throng_types::error::state;
use throng_types::sqltype::{array_of, made, type_name};
use throng_types::{Error, Oid, Result, SqlType, oid};

use crate::binder::query::scope::Scope;
use crate::binder::routine::body::Arguments;
use crate::binder::{BindContext, Binder, Clause};
use crate::command::Bound;
use crate::tree::expr::Expr;
use throng_catalog::{ArgDef, RoutineDef, RoutineKind};
use throng_syntax::parse::ast::{self, Pos, Statement, TargetPart};
use throng_syntax::parse::{locate, parse_expr, parsed_statement};
use throng_syntax::plpgsql::{self, Code, Conflict, Held, Signature, SignatureArg, Slot};
use throng_values::func::CastContext;

/// The names and types of a row's fields.
pub type RowShape = Rc<[(String, SqlType)]>;

/// A variable as a text sees it.
#[derive(Clone, Debug)]
pub struct Visible {
    pub label: Option<String>,
    pub name: String,
    pub slot: Slot,
    pub ty: SqlType,
    /// Of a record that holds a row.
    pub fields: Option<RowShape>,
}

impl Visible {
    fn is_row(&self) -> bool {
        self.ty.oid == oid::RECORD || made::is_composite(self.ty.oid)
    }
    fn value(&self) -> Expr {
        Expr::Param(self.slot, self.ty)
    }
}

/// All that a text sees, and the types of all parameters.
#[derive(Clone, Debug)]
pub struct Variables {
    pub list: Vec<Visible>,
    pub types: Vec<SqlType>,
    pub conflict: Conflict,
}

impl Variables {
    /// The variable that a name begins with, and how many of its parts are the variable's.
    fn find(&self, parts: &[String]) -> Option<(&Visible, usize)> {
        self.list.iter().find_map(|v| {
            let own = parts.first() == Some(&v.name);
            if own && (parts.len() == 1 || parts.len() == 2 && v.is_row()) {
                return Some((v, 1));
            }
            let labelled = v.label.is_some() && v.label.as_ref() == parts.first();
            let named = labelled && parts.get(1) == Some(&v.name);
            let fits = parts.len() == 2 || parts.len() == 3 && v.is_row();
            (named && fits).then_some((v, 2))
        })
    }
}

/// An expression, or what stands in its place.
#[derive(Debug)]
pub enum PlValue {
    /// One that reads no table; cast to what was wanted.
    Simple(Expr),
    /// A query of one column, as it is.
    Query(Box<crate::tree::query::BoundQuery>),
}

/// What is assigned to: parts of a value of a name, which holds what.
pub struct PlTarget<'t> {
    pub name: &'t str,
    pub base: &'t Expr,
    pub held: Held,
    pub parts: &'t [TargetPart],
}

struct TypesOf<'b, 'c>(&'b mut Binder<'c>);

impl TypesOf<'_, '_> {
    fn field_of(&mut self, ty: Oid, name: &str) -> Option<Held> {
        let def = self.0.catalog().composite(ty)?;
        let mut fields = def.fields.iter().flatten().filter(|f| !f.dropped);
        let field = fields.find(|f| f.name == name)?;
        Some(Held {
            ty: field.ty,
            domain: field.domain,
        })
    }
}

impl plpgsql::Types for TypesOf<'_, '_> {
    fn named(&mut self, ty: &ast::TypeName) -> Result<Held> {
        if ty.setof {
            let message = "syntax error at or near \"setof\"";
            return Err(Error::new(state::SYNTAX_ERROR, message));
        }
        let declared = self.0.declared(ty)?;
        let pseudo = matches!(
            declared.ty.oid,
            oid::VOID
                | oid::TRIGGER
                | oid::CSTRING
                | oid::INTERNAL
                | oid::LANGUAGE_HANDLER
                | oid::ANY
                | oid::UNKNOWN
        );
        if pseudo || throng_values::func::is_polymorphic(declared.ty.oid) {
            let message = format!(
                "variable \"{}\" has pseudo-type {}",
                ty.name,
                type_name(declared.ty.oid)
            );
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
        }
        Ok(Held {
            ty: declared.ty,
            domain: declared.domain,
        })
    }

    fn of_column(&mut self, name: &ast::Name) -> Result<Held> {
        let missing = |what: &str, of: String| {
            let message = format!("{what} \"{of}\" does not exist");
            Error::new(state::UNDEFINED_TABLE, message)
        };
        let Some((column, table)) = name.parts.split_last().filter(|(_, t)| !t.is_empty()) else {
            return Err(missing("variable", name.parts.join(".")));
        };
        if let [number] = table
            && let Some(number) = number.strip_prefix('%')
        {
            let ty = Oid(number.parse().unwrap_or_default());
            return self.field_of(ty, column).ok_or_else(|| {
                let message = format!("record has no field \"{column}\"");
                Error::new(state::UNDEFINED_COLUMN, message)
            });
        }
        let table = ast::Name {
            parts: table.to_vec(),
            pos: name.pos,
        };
        let Some(relation) = self.0.find_relation(&table)? else {
            return Err(missing("relation", table.to_string()));
        };
        let found = made::composite_oid(relation.oid()).and_then(|ty| self.field_of(ty, column));
        found.ok_or_else(|| {
            let message = format!("column \"{column}\" of relation \"{table}\" does not exist");
            Error::new(state::UNDEFINED_COLUMN, message)
        })
    }

    fn of_row(&mut self, name: &ast::Name) -> Result<Held> {
        let found = self.0.made_type(name);
        let Some(def) = found.filter(|def| def.fields.is_some()) else {
            let message = format!("relation \"{name}\" does not exist");
            return Err(Error::new(state::UNDEFINED_TABLE, message));
        };
        Ok(Held {
            ty: SqlType::plain(def.oid),
            domain: None,
        })
    }

    fn array_of(&mut self, held: Held) -> Result<Held> {
        // An array of arrays is an array.
        if held.ty.info().is_some_and(|t| t.is_array()) {
            return Ok(held);
        }
        let array = array_of(held.ty.oid).ok_or_else(|| {
            let message = format!(
                "could not find array type for data type {}",
                type_name(held.ty.oid)
            );
            Error::new(state::UNDEFINED_OBJECT, message)
        })?;
        Ok(Held {
            ty: SqlType::new(array, held.ty.typmod),
            domain: held.domain.map(made::array_oid),
        })
    }
}

/// Reads a body; see [`plpgsql::parse_body`].
pub fn plpgsql_code(
    ctx: &BindContext<'_>,
    text: &str,
    signature: &Signature,
) -> Result<Code, (Error, u32)> {
    let mut binder = Binder::new(ctx);
    plpgsql::parse_body(text, signature, &mut TypesOf(&mut binder))
}

/// What a routine's body is read with; `actual`: the types of a call's arguments, where their
/// declared ones leave them open.
pub fn plpgsql_signature(
    def: &RoutineDef,
    actual: &dyn Fn(&ArgDef) -> SqlType,
    ret: Oid,
) -> Signature {
    let args = def.args.iter().map(|arg| SignatureArg {
        name: arg.name.clone(),
        held: Held {
            ty: actual(arg),
            domain: arg.domain,
        },
        input: arg.mode.is_input(),
        output: arg.mode.is_output(),
    });
    Signature {
        name: Some(def.name.clone()),
        args: args.collect(),
        ret,
        set: def.set,
        procedure: def.kind == RoutineKind::Procedure,
    }
}

fn binder<'c>(ctx: &'c BindContext<'c>, variables: &Rc<Variables>) -> Binder<'c> {
    let mut binder = Binder::new(ctx);
    binder.params.clone_from(&variables.types);
    binder.arguments = Some(Arguments::of_variables(variables.clone()));
    binder
}

const SELECT: &str = "SELECT ";

/// An error about `SELECT text`, its place told in `text`.
fn behind_select(mut e: Error, text: &str) -> Error {
    let fields = e.fields_mut();
    let lead = SELECT.len() as u32;
    fields.position = fields.position.map(|p| p.saturating_sub(lead).max(1));
    locate(e, text)
}

/// An expression of a body, cast to what is wanted.
pub fn pl_expression(
    ctx: &BindContext<'_>,
    variables: &Rc<Variables>,
    text: &str,
    wanted: Option<Held>,
) -> Result<PlValue> {
    if let Ok(parsed) = parse_expr(text) {
        let mut simple = binder(ctx, variables);
        let bound = simple.pl_simple(&parsed);
        if let Some(expr) = bound.map_err(|e| locate(e, text))? {
            let expr = match wanted {
                Some(held) => simple.pl_coerce(expr, held)?,
                None => simple.settle(expr, parsed.pos)?,
            };
            return Ok(PlValue::Simple(expr));
        }
    }
    let select = format!("{SELECT}{text}");
    let statement = parsed_statement(&select).map_err(|e| behind_select(e, text))?;
    let mut whole = binder(ctx, variables);
    let bound = whole.data(&statement).map_err(|e| behind_select(e, text))?;
    Ok(PlValue::Query(Box::new(bound)))
}

/// What is assigned to a variable or a field of it, whole.
pub fn pl_assignment(
    ctx: &BindContext<'_>,
    variables: &Rc<Variables>,
    text: &str,
    target: &PlTarget<'_>,
) -> Result<PlValue> {
    let PlTarget {
        name, base, held, ..
    } = *target;
    if target.parts.is_empty() {
        return pl_expression(ctx, variables, text, Some(held));
    }
    // A query's value is put there when it is known: [`pl_with_part`].
    Ok(match pl_expression(ctx, variables, text, None)? {
        PlValue::Simple(value) => PlValue::Simple(pl_with_part(
            ctx,
            variables,
            (name, base, held),
            target.parts,
            value,
        )?),
        query => query,
    })
}

/// Whether an expression is a query's, and cannot be evaluated by itself.
fn needs_plan(expr: &Expr) -> bool {
    expr.any(&mut |e| {
        matches!(
            e,
            Expr::Subquery(_)
                | Expr::SetCall { .. }
                | Expr::SetRoutine(_)
                | Expr::Aggregate(_)
                | Expr::Grouping(_)
                | Expr::Window(_)
                | Expr::Var(_)
        )
    })
}

/// A value whose parts are replaced by another value; `whole`: its name, the value and what holds
/// it.
pub fn pl_with_part(
    ctx: &BindContext<'_>,
    variables: &Rc<Variables>,
    whole: (&str, &Expr, Held),
    parts: &[TargetPart],
    value: Expr,
) -> Result<Expr> {
    let (name, base, held) = whole;
    let mut binder = binder(ctx, variables);
    let value = match binder.pl_part_type(base.ty(), parts) {
        Some(ty) => binder.pl_coerce(value, Held { ty, domain: None })?,
        None => value,
    };
    let column = throng_catalog::ColumnDef::new(name, base.ty());
    let whole = binder.with_part(base.clone(), &column, (parts, 0), value, &Scope::empty());
    let whole = whole.map_err(without_place)?;
    if needs_plan(&whole) {
        return Err(Error::unsupported(
            "a query in a subscript of what is assigned to",
        ));
    }
    binder.in_domain(whole, held.domain)
}

/// A statement of a body.
pub fn pl_statement(ctx: &BindContext<'_>, variables: &Rc<Variables>, text: &str) -> Result<Bound> {
    let statement = parsed_statement(text).map_err(|e| locate(e, text))?;
    let mut binder = binder(ctx, variables);
    let statement = binder.statement(&statement).map_err(|e| locate(e, text))?;
    Ok(Bound {
        statement,
        notices: binder.notices,
    })
}

/// The one statement of a text made at run time, over parameters of `ctx`; None where there is
/// none.
pub fn pl_dynamic(ctx: &BindContext<'_>, text: &str) -> Result<Option<(Statement, Bound)>> {
    let mut parsed = throng_syntax::parse::parse(text)?;
    let Some(last) = parsed.pop() else {
        return Ok(None);
    };
    if !parsed.is_empty() {
        return Err(Error::unsupported("several statements in one EXECUTE"));
    }
    let mut binder = Binder::new(ctx);
    let statement = binder
        .statement(&last.statement)
        .map_err(|e| locate(e, text))?;
    let bound = Bound {
        statement,
        notices: binder.notices,
    };
    Ok(Some((last.statement, bound)))
}

/// The variables that the outputs of a CALL go into, in the order of its columns; none where one
/// cannot be written to.
pub fn pl_call_outputs(
    ctx: &BindContext<'_>,
    variables: &Rc<Variables>,
    text: &str,
) -> Result<Vec<Option<Slot>>> {
    let statement = parsed_statement(text).map_err(|e| locate(e, text))?;
    let Statement::Call(call, pos) = &statement else {
        return Ok(vec![]);
    };
    let mut binder = binder(ctx, variables);
    let bound = binder
        .call_procedure(call, *pos)
        .map_err(|e| locate(e, text))?;
    let mut places = Vec::new();
    for (i, arg) in bound.def.call_args().enumerate() {
        if !arg.mode.is_output() {
            continue;
        }
        let named = call.names.iter().find(|(_, name)| *name == arg.name);
        let given = named.map_or(i, |(at, _)| *at);
        let slot = call.args.get(given).and_then(|arg| match &arg.node {
            ast::Node::Column(parts) => variables.find(parts).map(|(v, _)| v.slot),
            _ => None,
        });
        places.push(slot);
    }
    Ok(places)
}

/// How a value is put into a variable: an expression over the first parameter; none where nothing
/// is to be done.
pub fn pl_cast(ctx: &BindContext<'_>, from: SqlType, to: Held) -> Result<Option<Expr>> {
    let value = Expr::Param(0, from);
    let mut binder = Binder::new(ctx);
    let cast = binder.pl_coerce(value.clone(), to)?;
    Ok((cast != value).then_some(cast))
}

/// The fields of a composite type.
pub fn composite_shape(catalog: &throng_catalog::Catalog, ty: Oid) -> Option<Vec<(String, Held)>> {
    let def = catalog.composite(ty)?;
    let fields = def.fields.iter().flatten().filter(|f| !f.dropped);
    let held = |f: &throng_catalog::ColumnDef| Held {
        ty: f.ty,
        domain: f.domain,
    };
    Some(fields.map(|f| (f.name.clone(), held(f))).collect())
}

impl Binder<'_> {
    /// An expression that reads no table and gives one value; none where it is more than that.
    fn pl_simple(&mut self, parsed: &ast::Expr) -> Result<Option<Expr>> {
        let scope = Scope::empty();
        if matches!(parsed.node, ast::Node::Star(_) | ast::Node::FieldStar(_)) {
            return Ok(None);
        }
        let bound = self.in_clause(Clause::Targets, |b| b.expr(parsed, &scope));
        let bound = match bound {
            Ok(bound) => bound,
            Err(e) if matches!(e.code(), state::GROUPING_ERROR | state::WINDOWING_ERROR) => {
                return Ok(None);
            }
            Err(e) => return Err(e),
        };
        Ok((!needs_plan(&bound) && self.ctes.is_empty()).then_some(bound))
    }

    /// Casts as an assignment does, or by way of text. What becomes a row is left to be moved field
    /// by field.
    fn pl_coerce(&mut self, expr: Expr, to: Held) -> Result<Expr> {
        if to.ty.oid == oid::RECORD || made::is_composite(to.ty.oid) {
            return match expr.type_oid() {
                oid::UNKNOWN if made::is_composite(to.ty.oid) => self.coerce(expr, to.ty, 0),
                _ => self.settle(expr, 0),
            };
        }
        let cast = self.try_coerce(expr.clone(), to.ty, CastContext::Assignment, 0);
        let cast = match cast.map_err(without_place)? {
            Some(cast) => cast,
            None => {
                let text = self
                    .explicit_cast(expr, SqlType::TEXT, 0)
                    .map_err(without_place)?;
                self.explicit_cast(text, to.ty, 0).map_err(without_place)?
            }
        };
        self.in_domain(cast, to.domain)
    }

    /// The type of a part of a value, where that is plain to see.
    fn pl_part_type(&mut self, ty: SqlType, parts: &[TargetPart]) -> Option<SqlType> {
        let mut ty = ty;
        let mut at = 0;
        while at < parts.len() {
            match &parts[at] {
                TargetPart::Field(name, _) => {
                    let def = self.catalog().composite(ty.oid)?;
                    let mut fields = def.fields.iter().flatten();
                    ty = fields.find(|f| !f.dropped && f.name == *name)?.ty;
                    at += 1;
                }
                _ if ty.oid == oid::JSONB => return Some(ty),
                _ => {
                    let mut sliced = false;
                    while at < parts.len() && !matches!(parts[at], TargetPart::Field(..)) {
                        sliced |= matches!(parts[at], TargetPart::Slice(..));
                        at += 1;
                    }
                    let is_array = ty.info().is_some_and(|t| t.is_array());
                    let element = throng_types::sqltype::element_of(ty.oid).filter(|_| is_array)?;
                    if !sliced {
                        ty = SqlType::new(element, ty.typmod);
                    }
                }
            }
        }
        Some(ty)
    }

    fn variables(&self) -> Option<Rc<Variables>> {
        let of_body = self.views.is_empty();
        let arguments = self.arguments.as_ref().filter(|_| of_body)?;
        arguments.variables.clone()
    }

    /// A variable, or a field of one; none where no variable is named so.
    pub(in crate::binder) fn variable(&self, parts: &[String]) -> Option<Result<Expr>> {
        let variables = self.variables()?;
        let (found, used) = variables.find(parts)?;
        let Some(field) = parts.get(used) else {
            return Some(Ok(found.value()));
        };
        let Some(fields) = self.fields_of_variable(found) else {
            let message = format!("record \"{}\" is not assigned yet", found.name);
            let detail = "The tuple structure of a not-yet-assigned record is indeterminate.";
            let code = state::OBJECT_NOT_IN_PREREQUISITE_STATE;
            return Some(Err(Error::new(code, message).detail(detail)));
        };
        let place = fields.iter().position(|(name, _)| name == field);
        Some(match place {
            Some(index) => Ok(Expr::Field {
                row: Box::new(found.value()),
                index: index as u16,
                ty: fields[index].1,
            }),
            None => {
                let message = format!("record \"{}\" has no field \"{field}\"", found.name);
                Err(Error::new(state::UNDEFINED_COLUMN, message))
            }
        })
    }

    fn fields_of_variable(&self, variable: &Visible) -> Option<RowShape> {
        if let Some(fields) = &variable.fields {
            return Some(fields.clone());
        }
        let fields = composite_shape(self.catalog(), variable.ty.oid)?;
        Some(
            fields
                .into_iter()
                .map(|(name, held)| (name, held.ty))
                .collect(),
        )
    }

    /// The fields of a variable that holds a row, by its place.
    pub(in crate::binder) fn fields_of_param(&self, slot: Slot) -> Option<RowShape> {
        let variables = self.variables()?;
        let found = variables.list.iter().find(|v| v.slot == slot)?;
        self.fields_of_variable(found)
    }

    /// The fields of a variable that holds a row, by its name, for `name.*`.
    pub(in crate::binder) fn fields_of_named(
        &self,
        parts: &[String],
    ) -> Option<Vec<(String, Expr)>> {
        let variables = self.variables()?;
        let (found, used) = variables.find(parts)?;
        if used != parts.len() || !found.is_row() {
            return None;
        }
        let fields = self.fields_of_variable(found)?;
        let fields = fields.iter().zip(0..).map(|((name, ty), index)| {
            let value = Expr::Field {
                row: Box::new(found.value()),
                index,
                ty: *ty,
            };
            (name.clone(), value)
        });
        Some(fields.collect())
    }

    /// Which of a variable and a column is meant where both are there.
    pub(in crate::binder) fn conflict(&self) -> Option<Conflict> {
        self.variables().map(|v| v.conflict)
    }
}

fn without_place(mut e: Error) -> Error {
    e.fields_mut().position = None;
    e
}

/// 42702: a variable and a column go by the same name.
#[cold]
pub(in crate::binder) fn ambiguous_variable(parts: &[String], pos: Pos) -> Error {
    let message = format!("column reference \"{}\" is ambiguous", parts.join("."));
    Error::new(state::AMBIGUOUS_COLUMN, message)
        .detail("It could refer to either a PL/pgSQL variable or a table column.")
        .position(pos + 1)
}
