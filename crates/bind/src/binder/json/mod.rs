//! SQL/JSON: what is written becomes a call of a function with a specification, see
//! [`throng_values::func::sqljson`].

pub(super) mod populate;
pub(super) mod record;
pub(super) mod table;

use throng_types::error::state;
use throng_types::sqltype::type_name;
use throng_types::{Datum, Error, Oid, Result, SqlType, oid};

use super::query::scope::Scope;
use super::{Binder, at};
use crate::tree::expr::{Expr, Subquery, SubqueryKind};
use throng_syntax::parse::ast::{
    self, JsonBehavior, JsonBehaviorKind, JsonFormat, JsonNode, JsonPathCall, JsonReturning,
    JsonValue, Pos,
};
use throng_values::func::sqljson::{self, Behavior, JsonPathOp, PathSpec, Spec, Wrapper};
use throng_values::func::{CastContext, find_cast};

/// How values are read where nothing is written, and what they become.
#[derive(Clone, Copy)]
struct Reading {
    /// A string is read as JSON.
    formatted: bool,
    /// The type they must be cast to; without one, what does not cast is converted as `to_json`
    /// does.
    target: Option<Oid>,
    /// PASSING takes values as they are.
    is_passed: bool,
}

impl Reading {
    /// Values of an object or an array.
    const VALUE: Reading = Reading {
        formatted: false,
        target: None,
        is_passed: false,
    };
    const PASSED: Reading = Reading {
        formatted: true,
        target: None,
        is_passed: true,
    };
    fn to(target: Oid) -> Reading {
        Reading {
            formatted: true,
            target: Some(target),
            is_passed: false,
        }
    }
}

#[cold]
fn mismatch(message: impl Into<String>, pos: Pos) -> Error {
    Error::new(state::DATATYPE_MISMATCH, message).position(pos + 1)
}
#[cold]
fn syntax(message: impl Into<String>, pos: Pos) -> Error {
    Error::new(state::SYNTAX_ERROR, message).position(pos + 1)
}

fn is_json(ty: Oid) -> bool {
    matches!(ty, oid::JSON | oid::JSONB)
}
fn category(ty: Oid) -> u8 {
    SqlType::plain(ty).info().map_or(b'U', |i| i.category)
}

/// A call with its specification.
pub(super) fn spec_call(spec: &Spec, args: Vec<Expr>, ty: SqlType) -> Result<Expr> {
    let mut all = vec![Expr::Const(spec.to_datum()?, SqlType::TEXT)];
    all.extend(args);
    Ok(Expr::Call {
        func: &sqljson::CALL,
        args: all,
        ty,
    })
}

impl Binder<'_> {
    pub(super) fn json(&mut self, json: &JsonNode, pos: Pos, scope: &Scope<'_>) -> Result<Expr> {
        match json {
            JsonNode::Parse { value, unique } => self.json_parse(value, *unique, pos, scope),
            JsonNode::Scalar(arg) => {
                let bound = self.expr(arg, scope)?;
                let bound = self.settle(bound, arg.pos)?;
                let bound = self.telling(bound, arg.pos)?;
                spec_call(&Spec::Scalar, vec![bound], SqlType::JSON)
            }
            JsonNode::Serialize { value, returning } => {
                self.json_serialize(value, returning.as_ref(), pos, scope)
            }
            JsonNode::Object {
                pairs,
                absent,
                unique,
                returning,
            } => {
                let mut args = Vec::with_capacity(2 * pairs.len());
                for (key, value) in pairs {
                    let bound = self.expr(key, scope)?;
                    let bound = self.settle(bound, key.pos)?;
                    args.push(self.telling(bound, key.pos)?);
                    args.push(self.json_value(value, Reading::VALUE, scope)?);
                }
                let (binary, ty) = self.json_made(returning.as_ref(), &args)?;
                let spec = Spec::Object {
                    absent: *absent,
                    unique: *unique,
                    binary,
                };
                let made = spec_call(&spec, args, made_type(binary))?;
                self.json_returned(made, ty, pos)
            }
            JsonNode::Array {
                items,
                absent,
                returning,
            } => {
                let args = items
                    .iter()
                    .map(|item| self.json_value(item, Reading::VALUE, scope))
                    .collect::<Result<Vec<_>>>()?;
                let (binary, ty) = self.json_made(returning.as_ref(), &args)?;
                let spec = Spec::Array {
                    absent: *absent,
                    binary,
                };
                let made = spec_call(&spec, args, made_type(binary))?;
                self.json_returned(made, ty, pos)
            }
            JsonNode::ArrayQuery {
                query,
                format,
                returning,
            } => self.json_array_query(query, format.as_ref(), returning.as_ref(), pos, scope),
            JsonNode::Aggregate(aggregate) => {
                let ty = self.json_output(aggregate.returning.as_ref(), SqlType::JSON)?;
                let made = self.call(&aggregate.call, pos, scope)?;
                self.json_returned(made, ty, pos)
            }
            JsonNode::Is { arg, kind, unique } => {
                let bound = self.expr(arg, scope)?;
                let bound = self.settle(bound, arg.pos)?;
                let ty = bound.type_oid();
                let bound = match ty {
                    oid::JSON | oid::JSONB | oid::BYTEA | oid::TEXT => bound,
                    _ if category(ty) == b'S' => self.coerce(bound, SqlType::TEXT, arg.pos)?,
                    _ => {
                        let name = type_name(ty);
                        let message = format!("cannot use type {name} in IS JSON predicate");
                        return Err(Error::new(state::DATATYPE_MISMATCH, message));
                    }
                };
                let spec = Spec::Is {
                    kind: *kind,
                    unique: *unique,
                };
                spec_call(&spec, vec![bound], SqlType::BOOL)
            }
            JsonNode::Path(call) => self.json_path(call, pos, scope),
            JsonNode::Table(_) => Err(Error::internal("JSON_TABLE stands only in FROM")),
        }
    }

    /// A value whose type JSON's functions can tell from it.
    fn telling(&mut self, bound: Expr, pos: Pos) -> Result<Expr> {
        match throng_values::func::json::telling_type(bound.type_oid()) {
            Some(ty) => self.explicit_cast(bound, SqlType::plain(ty), pos),
            None => Ok(bound),
        }
    }

    fn json_value(
        &mut self,
        value: &JsonValue,
        reading: Reading,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let pos = value.expr.pos;
        let bound = self.expr(&value.expr, scope)?;
        let bound = self.settle(bound, pos)?;
        let ty = bound.type_oid();
        let formatted = match &value.format {
            Some(format) => {
                if format.encoding.is_some() && ty != oid::BYTEA {
                    let message = "JSON ENCODING clause is only allowed for bytea input type";
                    return Err(mismatch(message, format.pos));
                }
                check_encoding(format)?;
                !is_json(ty)
            }
            None if reading.is_passed => {
                let as_is = category(ty) == b'S'
                    || matches!(
                        ty,
                        oid::BOOL
                            | oid::NUMERIC
                            | oid::INT2
                            | oid::INT4
                            | oid::INT8
                            | oid::FLOAT4
                            | oid::FLOAT8
                            | oid::DATE
                            | oid::TIME
                            | oid::TIMETZ
                            | oid::TIMESTAMP
                            | oid::TIMESTAMPTZ
                    );
                if as_is {
                    return Ok(bound);
                }
                !is_json(ty)
            }
            None => reading.formatted && !is_json(ty),
        };
        if !formatted && reading.target.is_none_or(|t| t == ty) {
            return match reading.is_passed && ty == oid::JSON {
                true => self.explicit_cast(bound, SqlType::JSONB, pos),
                false => self.telling(bound, pos),
            };
        }
        if reading.target.is_none()
            && !reading.is_passed
            && ty != oid::BYTEA
            && category(ty) != b'S'
        {
            let (how, at) = match &value.format {
                Some(format) => ("explicit", format.pos),
                None => ("implicit", pos),
            };
            let message = format!("cannot use non-string types with {how} FORMAT JSON clause");
            return Err(mismatch(message, at));
        }
        let target = reading.target.unwrap_or(match reading.is_passed {
            true => oid::JSONB,
            false => oid::JSON,
        });
        self.read_as_json(bound, target, formatted, reading.target.is_some(), pos)
    }

    fn read_as_json(
        &mut self,
        mut bound: Expr,
        target: Oid,
        formatted: bool,
        only_cast: bool,
        pos: Pos,
    ) -> Result<Expr> {
        if formatted && bound.type_oid() == oid::BYTEA {
            let encoding = Expr::Const(Datum::text("UTF8"), SqlType::plain(oid::NAME));
            bound = self.apply("convert_from", vec![bound, encoding], pos)?;
        }
        let from = bound.type_oid();
        let to = SqlType::plain(target);
        if only_cast || find_cast(from, target, CastContext::Explicit).is_some() {
            return self.explicit_cast(bound, to, pos);
        }
        let bound = self.telling(bound, pos)?;
        let name = if target == oid::JSON {
            "to_json"
        } else {
            "to_jsonb"
        };
        self.apply(name, vec![bound], pos)
    }

    fn json_parse(
        &mut self,
        value: &JsonValue,
        unique: bool,
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        if !unique {
            return self.json_value(value, Reading::to(oid::JSON), scope);
        }
        let arg = value.expr.pos;
        let bound = self.expr(&value.expr, scope)?;
        let mut bound = self.settle(bound, arg)?;
        if let Some(format) = &value.format {
            check_encoding(format)?;
        }
        let ty = bound.type_oid();
        if ty == oid::BYTEA {
            let encoding = Expr::Const(Datum::text("UTF8"), SqlType::plain(oid::NAME));
            bound = self.apply("convert_from", vec![bound, encoding], pos)?;
        } else if category(ty) != b'S' {
            let message = "cannot use non-string types with WITH UNIQUE KEYS clause";
            return Err(mismatch(message, pos));
        }
        let bound = self.coerce(bound, SqlType::TEXT, arg)?;
        spec_call(&Spec::Unique, vec![bound], SqlType::JSON)
    }

    fn json_serialize(
        &mut self,
        value: &JsonValue,
        returning: Option<&JsonReturning>,
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let reading = Reading {
            formatted: true,
            ..Reading::VALUE
        };
        let bound = self.json_value(value, reading, scope)?;
        let ty = self.json_output(returning, SqlType::TEXT)?;
        if ty.oid != oid::BYTEA && category(ty.oid) != b'S' {
            let message = format!(
                "cannot use type {} in RETURNING clause of JSON_SERIALIZE()",
                type_name(ty.oid)
            );
            return Err(Error::new(state::DATATYPE_MISMATCH, message)
                .hint("Try returning a string type or bytea."));
        }
        self.json_returned(bound, ty, pos)
    }

    fn json_array_query(
        &mut self,
        query: &ast::Query,
        format: Option<&JsonFormat>,
        returning: Option<&JsonReturning>,
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        const SUBQUERY: &str = "subquery must return only one column";
        // Its columns are counted where it is bound by itself.
        let bound = self.subquery(query, scope)?;
        if bound.columns().len() != 1 {
            return Err(syntax(SUBQUERY, pos));
        }
        let query = throng_syntax::parse::json::array_over(query.clone(), format, returning, pos);
        let query = self.subquery(&query, scope)?;
        let ty = query.columns()[0].ty;
        Ok(Expr::Subquery(Box::new(Subquery {
            query,
            kind: SubqueryKind::Scalar,
            ty,
        })))
    }

    /// Whether a constructor makes `jsonb`, and the type that is asked for.
    fn json_made(
        &mut self,
        returning: Option<&JsonReturning>,
        args: &[Expr],
    ) -> Result<(bool, SqlType)> {
        let ty = match returning {
            Some(_) => self.json_output(returning, SqlType::JSON)?,
            None if args.iter().any(|a| a.type_oid() == oid::JSONB) => SqlType::JSONB,
            None => SqlType::JSON,
        };
        Ok((ty.oid == oid::JSONB, ty))
    }

    pub(super) fn json_output(
        &mut self,
        returning: Option<&JsonReturning>,
        otherwise: SqlType,
    ) -> Result<SqlType> {
        let Some(returning) = returning else {
            return Ok(otherwise);
        };
        let ty = self.type_of(&returning.ty)?;
        if ty.info().is_some_and(|i| i.is_pseudo()) {
            let message = "returning pseudo-types is not supported in SQL/JSON functions";
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
        }
        if let Some(format) = &returning.format {
            if format.encoding.is_some() && ty.oid != oid::BYTEA {
                check_encoding(format)?;
                let message = "cannot set JSON encoding for non-bytea output types";
                let error = Error::new(state::FEATURE_NOT_SUPPORTED, message);
                return Err(error.position(format.pos + 1));
            }
            check_encoding(format)?;
        }
        Ok(ty)
    }

    /// JSON that was made, as the type asked for.
    fn json_returned(&mut self, made: Expr, ty: SqlType, pos: Pos) -> Result<Expr> {
        let from = made.type_oid();
        if from == ty.oid {
            return Ok(made);
        }
        if ty.oid == oid::BYTEA {
            let text = self.explicit_cast(made, SqlType::TEXT, pos)?;
            let encoding = Expr::Const(Datum::text("UTF8"), SqlType::plain(oid::NAME));
            return self.apply("convert_to", vec![text, encoding], pos);
        }
        let made = match category(ty.oid) == b'S' {
            true => self.try_coerce(made, ty, CastContext::Assignment, pos)?,
            false => self.try_coerce(made, ty, CastContext::Explicit, pos)?,
        };
        made.ok_or_else(|| {
            let message = format!(
                "cannot cast type {} to {}",
                type_name(from),
                type_name(ty.oid)
            );
            Error::new(state::CANNOT_COERCE, message).position(pos + 1)
        })
    }

    /// Values that PASSING gives, and their names.
    pub(super) fn json_passing(
        &mut self,
        passing: &[(String, JsonValue)],
        args: &mut Vec<Expr>,
        scope: &Scope<'_>,
    ) -> Result<Vec<String>> {
        let mut names = Vec::with_capacity(passing.len());
        for (name, value) in passing {
            names.push(name.clone());
            args.push(self.json_value(value, Reading::PASSED, scope)?);
        }
        Ok(names)
    }

    /// The document that a path walks.
    pub(super) fn json_context(&mut self, value: &JsonValue, scope: &Scope<'_>) -> Result<Expr> {
        self.json_value(value, Reading::to(oid::JSONB), scope)
    }

    fn json_path(&mut self, call: &JsonPathCall, pos: Pos, scope: &Scope<'_>) -> Result<Expr> {
        let op = call.op;
        if let (
            Some(JsonReturning {
                format: Some(f), ..
            }),
            JsonPathOp::Value,
        ) = (&call.returning, op)
        {
            let message = "cannot specify FORMAT JSON in RETURNING clause of JSON_VALUE()";
            return Err(syntax(message, f.pos));
        }
        check_quotes(call.wrapper, call.keep_quotes, pos)?;
        check_behavior(op, call.on_empty.as_ref(), "ON EMPTY")?;
        check_behavior(op, call.on_error.as_ref(), "ON ERROR")?;
        let document = self.json_context(&call.context, scope)?;
        let path = self.expr(&call.path, scope)?;
        let from = path.type_oid();
        let jsonpath = SqlType::plain(oid::JSONPATH);
        let path = self.try_coerce(path, jsonpath, CastContext::Explicit, call.path.pos);
        let path = path?.filter(|_| takes_path(from)).ok_or_else(|| {
            let message = format!(
                "JSON path expression must be of type jsonpath, not of type {}",
                type_name(from)
            );
            mismatch(message, call.path.pos)
        })?;
        let mut args = vec![document, path];
        let passing = self.json_passing(&call.passing, &mut args, scope)?;
        let otherwise = match op {
            JsonPathOp::Exists => SqlType::BOOL,
            JsonPathOp::Value => SqlType::TEXT,
            JsonPathOp::Query => SqlType::JSONB,
        };
        let ty = self.json_output(call.returning.as_ref(), otherwise)?;
        let spec = PathSpec {
            op,
            wrapper: settled(call.wrapper),
            omit_quotes: call.keep_quotes == Some(false),
            returning: (ty.oid.0, ty.typmod),
            passing,
            on_empty: self
                .behavior(call.on_empty.as_ref(), ty, &mut args, scope)?
                .filter(|b| *b != Behavior::Null),
            on_error: self
                .behavior(call.on_error.as_ref(), ty, &mut args, scope)?
                .filter(|b| *b != Behavior::otherwise(op)),
            column: None,
        };
        spec_call(&Spec::Path(spec), args, ty)
    }

    /// A default becomes one more argument.
    pub(super) fn behavior(
        &mut self,
        behavior: Option<&JsonBehavior>,
        ty: SqlType,
        args: &mut Vec<Expr>,
        scope: &Scope<'_>,
    ) -> Result<Option<Behavior>> {
        let Some(behavior) = behavior else {
            return Ok(None);
        };
        Ok(Some(match &behavior.kind {
            JsonBehaviorKind::Null => Behavior::Null,
            JsonBehaviorKind::Error => Behavior::Error,
            JsonBehaviorKind::EmptyArray => Behavior::EmptyArray,
            JsonBehaviorKind::EmptyObject => Behavior::EmptyObject,
            JsonBehaviorKind::True => Behavior::True,
            JsonBehaviorKind::False => Behavior::False,
            JsonBehaviorKind::Unknown => Behavior::Unknown,
            JsonBehaviorKind::Default(expr) => {
                args.push(self.default_value(expr, ty, scope)?);
                Behavior::Default(args.len() - 1)
            }
        }))
    }

    fn default_value(&mut self, expr: &ast::Expr, ty: SqlType, scope: &Scope<'_>) -> Result<Expr> {
        let pos = expr.pos;
        let bound = self.expr(expr, scope)?;
        let is = |test: fn(&Expr) -> bool| bound.any(&mut |e| test(e));
        if is(|e| matches!(e, Expr::Subquery(_) | Expr::Aggregate(_) | Expr::Window(_))) {
            let message = "can only specify a constant, non-aggregate function, or operator expression for DEFAULT";
            return Err(mismatch(message, pos));
        }
        if is(|e| matches!(e, Expr::Var(_))) {
            let message = "DEFAULT expression must not contain column references";
            return Err(mismatch(message, pos));
        }
        if is(|e| matches!(e, Expr::SetCall { .. })) {
            let message = "DEFAULT expression must not return a set";
            return Err(mismatch(message, pos));
        }
        let from = bound.type_oid();
        // A value too long is refused, as in an assignment.
        let context = match category(ty.oid) == b'S' || from == ty.oid {
            true => CastContext::Assignment,
            false => CastContext::Explicit,
        };
        self.try_coerce(bound, ty, context, pos)
            .map_err(|e| at(e, pos))?
            .ok_or_else(|| {
                let name = type_name(ty.oid);
                Error::new(
                    state::CANNOT_COERCE,
                    format!(
                        "cannot cast behavior expression of type {} to {name}",
                        type_name(from)
                    ),
                )
                .hint(format!(
                    "You will need to explicitly cast the expression to type {name}."
                ))
                .position(pos + 1)
            })
    }
}

/// Nothing written about a wrapper is none.
pub(super) fn settled(wrapper: Wrapper) -> Wrapper {
    match wrapper {
        Wrapper::Unspecified => Wrapper::Without,
        written => written,
    }
}

fn made_type(binary: bool) -> SqlType {
    if binary {
        SqlType::JSONB
    } else {
        SqlType::JSON
    }
}

/// Strings and what has no type yet are read as paths.
fn takes_path(ty: Oid) -> bool {
    matches!(ty, oid::UNKNOWN | oid::JSONPATH) || category(ty) == b'S'
}

fn check_encoding(format: &JsonFormat) -> Result<()> {
    let Some((name, pos)) = &format.encoding else {
        return Ok(());
    };
    match name.as_str() {
        "utf8" => Ok(()),
        "utf16" | "utf32" => Err(Error::new(
            state::FEATURE_NOT_SUPPORTED,
            "unsupported JSON encoding",
        )
        .hint("Only UTF8 JSON encoding is supported.")
        .position(format.pos + 1)),
        _ => Err(Error::new(
            state::INVALID_PARAMETER_VALUE,
            format!("unrecognized JSON encoding: {name}"),
        )
        .position(pos + 1)),
    }
}

pub(super) fn check_quotes(wrapper: Wrapper, keep: Option<bool>, pos: Pos) -> Result<()> {
    let wraps = matches!(wrapper, Wrapper::Conditional | Wrapper::Unconditional);
    if wraps && keep == Some(false) {
        let message = "SQL/JSON QUOTES behavior must not be specified when WITH WRAPPER is used";
        return Err(syntax(message, pos));
    }
    Ok(())
}

/// What may stand where, for a call; columns of JSON_TABLE have the same rules with other words.
pub(super) fn allowed(op: JsonPathOp, kind: &JsonBehaviorKind) -> bool {
    use JsonBehaviorKind::*;
    match op {
        JsonPathOp::Exists => matches!(kind, Error | True | False | Unknown),
        JsonPathOp::Value => matches!(kind, Error | Null | Default(_)),
        JsonPathOp::Query => {
            matches!(kind, Error | Null | EmptyArray | EmptyObject | Default(_))
        }
    }
}

/// The words for what may stand there.
pub(super) fn allowed_words(op: JsonPathOp) -> &'static str {
    match op {
        JsonPathOp::Exists => "ERROR, TRUE, FALSE, or UNKNOWN",
        JsonPathOp::Value => "ERROR, NULL, or DEFAULT expression",
        JsonPathOp::Query => "ERROR, NULL, EMPTY ARRAY, EMPTY OBJECT, or DEFAULT expression",
    }
}

fn check_behavior(op: JsonPathOp, behavior: Option<&JsonBehavior>, clause: &str) -> Result<()> {
    let Some(behavior) = behavior.filter(|b| !allowed(op, &b.kind)) else {
        return Ok(());
    };
    let detail = format!(
        "Only {} is allowed in {clause} for {}().",
        allowed_words(op),
        op.name()
    );
    Err(syntax(format!("invalid {clause} behavior"), behavior.pos).detail(detail))
}
