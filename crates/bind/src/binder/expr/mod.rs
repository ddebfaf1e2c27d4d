//! Expressions.

pub(super) mod aggregate;
pub(super) mod call;
pub(super) mod coerce;
pub(super) mod misspelled;
pub(super) mod notation;
pub(super) mod operator;
pub(super) mod own_aggregate;
pub(super) mod own_cast;
pub(super) mod part;
pub(super) mod subscript;
pub(super) mod window;

use throng_types::error::state;
use throng_types::sqltype::{array_of, element_of, has_collation, type_name};
use throng_types::{Datum, Error, Result, SqlType, oid};

use super::ddl::composite::row_fields;
use super::ddl::domain::Declared;
use super::query::scope::Scope;
use super::{Binder, at};
use crate::tree::expr::{Expr, Subquery, SubqueryKind};
use operator::Found;
use subscript::no_array;
use throng_syntax::parse::ast::{self, LikeKind, Node, Pos};
use throng_values::func::resolve_operator;

impl Binder<'_> {
    pub(super) fn expr(&mut self, ast: &ast::Expr, scope: &Scope<'_>) -> Result<Expr> {
        self.deeper(|b| b.node(ast, scope))
    }

    fn exprs(&mut self, list: &[ast::Expr], scope: &Scope<'_>) -> Result<Vec<(Expr, Pos)>> {
        list.iter()
            .map(|e| Ok((self.expr(e, scope)?, e.pos)))
            .collect()
    }

    /// What a row is made of, `t.*` and `(value).*` spread out.
    pub(super) fn row_items(
        &mut self,
        list: &[ast::Expr],
        scope: &Scope<'_>,
    ) -> Result<Vec<(Expr, Pos)>> {
        let mut items = Vec::with_capacity(list.len());
        for item in list {
            match &item.node {
                Node::Star(parts) => {
                    let mut targets = Vec::new();
                    self.star(parts, item.pos, scope, &mut targets)?;
                    items.extend(targets.into_iter().map(|t| (t.expr, item.pos)));
                }
                Node::FieldStar(arg) => {
                    let fields = self.spread(arg, scope)?;
                    items.extend(fields.into_iter().map(|(_, e)| (e, item.pos)));
                }
                _ => items.push((self.expr(item, scope)?, item.pos)),
            }
        }
        Ok(items)
    }

    pub(super) fn boxed(&mut self, ast: &ast::Expr, scope: &Scope<'_>) -> Result<Box<Expr>> {
        self.expr(ast, scope).map(Box::new)
    }

    fn node(&mut self, ast: &ast::Expr, scope: &Scope<'_>) -> Result<Expr> {
        let pos = ast.pos;
        match &ast.node {
            Node::Null => Ok(Expr::null(SqlType::UNKNOWN)),
            Node::Bool(value) => Ok(Expr::bool(*value)),
            Node::Integer(digits) => self.integer(digits, pos),
            Node::Decimal(digits) => {
                let text = Expr::Const(Datum::text(digits), SqlType::UNKNOWN);
                self.coerce(text, SqlType::NUMERIC, pos)
            }
            // Until it has a type, its modifier says where it was written.
            Node::Text(text) => Ok(Expr::Const(
                Datum::text(text),
                SqlType::new(oid::UNKNOWN, pos as i32),
            )),
            Node::Bits(letter, digits) => coerce::bits(*letter, digits, pos),
            Node::Param(n) => self.param(*n, pos),
            Node::Column(parts) => self.column(parts, pos, scope),
            Node::Star(table) if !table.is_empty() => self.row_of_table(table, pos, scope),
            Node::Star(_) => Err(Error::new(
                state::SYNTAX_ERROR,
                "row expansion via \"*\" is not supported here",
            )
            .position(pos + 1)),
            Node::Unary { op, arg } => {
                let arg = self.expr(arg, scope)?;
                self.operator_in(op, None, arg)
            }
            Node::Binary { op, left, right } => self.binary(op, left, right, scope),
            Node::And(parts) => Ok(Expr::And(self.conditions(parts, "AND", scope)?)),
            Node::Or(parts) => Ok(Expr::Or(self.conditions(parts, "OR", scope)?)),
            Node::Not(arg) => {
                let bound = self.expr(arg, scope)?;
                Ok(Expr::Not(Box::new(self.condition(bound, "NOT", arg.pos)?)))
            }
            Node::IsNull { arg, negated } => self.is_null(arg, *negated, scope),
            Node::IsBool {
                arg,
                value,
                negated,
            } => {
                let what = match (value, negated) {
                    (Some(true), false) => "IS TRUE",
                    (Some(true), true) => "IS NOT TRUE",
                    (Some(false), false) => "IS FALSE",
                    (Some(false), true) => "IS NOT FALSE",
                    (None, false) => "IS UNKNOWN",
                    (None, true) => "IS NOT UNKNOWN",
                };
                let bound = self.expr(arg, scope)?;
                let arg = Box::new(self.condition(bound, what, arg.pos)?);
                Ok(Expr::IsBool {
                    arg,
                    value: *value,
                    negated: *negated,
                })
            }
            Node::IsDistinct {
                left,
                right,
                negated,
            } => {
                let (l, r) = (self.expr(left, scope)?, self.expr(right, scope)?);
                let (op, left, right) = self.resolve_binary("=", l, r, pos)?;
                let (left, right) = (Box::new(left), Box::new(right));
                Ok(Expr::IsDistinct {
                    equal: op,
                    left,
                    right,
                    negated: *negated,
                })
            }
            Node::Between {
                arg,
                low,
                high,
                symmetric,
                negated,
            } => self.between(arg, low, high, *symmetric, *negated, pos, scope),
            Node::InList { arg, list, negated } => self.in_list(arg, list, *negated, pos, scope),
            Node::InQuery {
                arg,
                query,
                negated,
            } => {
                let op = ast::Operator {
                    schema: None,
                    name: "=".into(),
                    pos,
                };
                let any = self.quantified_query(arg, &op, false, query, scope)?;
                Ok(if *negated {
                    Expr::Not(Box::new(any))
                } else {
                    any
                })
            }
            Node::Like {
                kind,
                arg,
                pattern,
                escape,
                negated,
            } => self.like(*kind, arg, pattern, escape.as_deref(), *negated, pos, scope),
            Node::Quantified {
                left,
                op,
                all,
                right,
            } => match right {
                ast::Quantified::Query(query) => {
                    self.quantified_query(left, op, *all, query, scope)
                }
                ast::Quantified::Array(array) => self.quantified(left, op, *all, array, scope),
            },
            Node::Case {
                operand,
                whens,
                default,
            } => self.case(operand.as_deref(), whens, default.as_deref(), pos, scope),
            Node::Cast { arg, ty } => self.cast(arg, ty, pos, scope),
            Node::Call(call) => self.call(call, pos, scope),
            Node::Coalesce(args) => {
                let args = self.exprs(args, scope)?;
                let (args, ty) = self.unify(args, "COALESCE")?;
                Ok(Expr::Coalesce(args, ty))
            }
            Node::Grouping(args) => self.grouping(args, pos, scope),
            Node::NullIf(left, right) => {
                let (l, r) = (self.expr(left, scope)?, self.expr(right, scope)?);
                let (equal, left, right) = self.resolve_binary("=", l, r, pos)?;
                let ty = left.ty();
                let (left, right) = (Box::new(left), Box::new(right));
                Ok(Expr::NullIf {
                    equal,
                    left,
                    right,
                    ty,
                })
            }
            Node::MinMax { greatest, args } => {
                let what = if *greatest { "GREATEST" } else { "LEAST" };
                let args = self.exprs(args, scope)?;
                let (args, ty) = self.unify(args, what)?;
                let less = resolve_operator("<", Some(ty.oid), ty.oid).map_err(|e| at(e, pos))?;
                Ok(Expr::MinMax {
                    greatest: *greatest,
                    less: less.operator,
                    args,
                    ty,
                })
            }
            Node::FieldStar(_) => {
                let message = "row expansion via \"*\" is not supported here";
                Err(Error::new(state::FEATURE_NOT_SUPPORTED, message).position(pos + 1))
            }
            Node::Row { fields, .. } => {
                let fields = self.row_items(fields, scope)?;
                let fields = fields
                    .into_iter()
                    .map(|(e, pos)| self.settle(e, pos))
                    .collect::<Result<Vec<_>>>()?;
                Ok(Expr::Row(fields, None))
            }
            Node::Array(items) => self.array(items, None, pos, scope),
            Node::ArrayQuery(query) => {
                let query = self.subquery(query, scope)?;
                let columns = query.columns();
                if columns.len() != 1 {
                    return Err(one_column_only(pos));
                }
                let element = columns[0].ty.oid;
                let array = array_of(element).ok_or_else(|| no_array(element, pos))?;
                let ty = SqlType::plain(array);
                Ok(Expr::Subquery(Box::new(Subquery {
                    query,
                    kind: SubqueryKind::Array,
                    ty,
                })))
            }
            Node::Parenthesised(arg) => self.expr(arg, scope),
            Node::Slice { .. } => self.items(ast, scope),
            // Subscripts that follow each other are of one array's dimensions.
            Node::Subscript { arg, .. }
                if matches!(arg.node, Node::Subscript { .. } | Node::Slice { .. }) =>
            {
                self.items(ast, scope)
            }
            Node::Subscript { arg, index } => self.subscript(arg, index, pos, scope),
            Node::Field { arg, name } => self.field(arg, name, pos, scope),
            Node::Subquery(query) => {
                let query = self.subquery(query, scope)?;
                let columns = query.columns();
                if columns.len() != 1 {
                    return Err(one_column_only(pos));
                }
                let ty = columns[0].ty;
                Ok(Expr::Subquery(Box::new(Subquery {
                    query,
                    kind: SubqueryKind::Scalar,
                    ty,
                })))
            }
            Node::Exists(query) => {
                let query = self.subquery(query, scope)?;
                let (kind, ty) = (SubqueryKind::Exists, SqlType::BOOL);
                Ok(Expr::Subquery(Box::new(Subquery { query, kind, ty })))
            }
            Node::Collate { arg, collation } => {
                let bound = self.expr(arg, scope)?;
                let name = collation.last();
                if !["default", "C", "POSIX", "ucs_basic"].contains(&name) {
                    let message =
                        format!("collation \"{name}\" for encoding \"UTF8\" does not exist");
                    return Err(Error::new(state::UNDEFINED_OBJECT, message).position(pos + 1));
                }
                let bound = self.settle(bound, arg.pos)?;
                match has_collation(bound.type_oid()) {
                    true => Ok(self.collated(bound, name)),
                    false => {
                        let message = format!(
                            "collations are not supported by type {}",
                            type_name(bound.type_oid())
                        );
                        Err(Error::new(state::DATATYPE_MISMATCH, message).position(pos + 1))
                    }
                }
            }
            Node::Json(json) => self.json(json, pos, scope),
            Node::Default => {
                let message = "DEFAULT is not allowed in this context";
                Err(Error::new(state::SYNTAX_ERROR, message).position(pos + 1))
            }
        }
    }

    /// int4 where it fits, else int8, else numeric.
    fn integer(&mut self, digits: &str, pos: Pos) -> Result<Expr> {
        if let Ok(value) = digits.parse::<i32>() {
            return Ok(Expr::int4(value));
        }
        if let Ok(value) = digits.parse::<i64>() {
            return Ok(Expr::Const(Datum::Int8(value), SqlType::INT8));
        }
        let text = Expr::Const(Datum::text(digits), SqlType::UNKNOWN);
        self.coerce(text, SqlType::NUMERIC, pos)
    }

    fn param(&mut self, n: u32, pos: Pos) -> Result<Expr> {
        if n == 0 {
            return Err(
                Error::new(state::UNDEFINED_PARAMETER, "there is no parameter $0")
                    .position(pos + 1),
            );
        }
        if let Some(argument) = self.body_param(n, pos) {
            return argument;
        }
        let index = n as usize - 1;
        if index >= self.params.len() {
            self.params.resize(index + 1, SqlType::UNKNOWN);
        }
        Ok(Expr::Param(index as u16, self.params[index]))
    }

    fn conditions(
        &mut self,
        parts: &[ast::Expr],
        of: &str,
        scope: &Scope<'_>,
    ) -> Result<Vec<Expr>> {
        parts
            .iter()
            .map(|part| {
                let bound = self.expr(part, scope)?;
                self.condition(bound, of, part.pos)
            })
            .collect()
    }

    /// A row is null when all of its fields are, and not null when none is.
    fn is_null(&mut self, arg: &ast::Expr, negated: bool, scope: &Scope<'_>) -> Result<Expr> {
        let bound = self.expr(arg, scope)?;
        let test = |e: Expr| match negated {
            true => Expr::IsNotNull(Box::new(e)),
            false => Expr::IsNull(Box::new(e)),
        };
        // A definition keeps what was written.
        if let Some((fields, _)) = row_fields(&bound)
            && !fields.is_empty()
            && !self.defining
        {
            return Ok(Expr::And(fields.iter().cloned().map(test).collect()));
        }
        match bound {
            // A parameter gets no type from this.
            bound @ Expr::Param(..) => Ok(test(bound)),
            bound => {
                let bound = self.settle(bound, arg.pos)?;
                Ok(test(bound))
            }
        }
    }

    fn binary(
        &mut self,
        op: &ast::Operator,
        left: &ast::Expr,
        right: &ast::Expr,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        match (&left.node, &right.node) {
            (Node::Row { fields, .. }, Node::Subquery(query)) => {
                let fields = self.row_items(fields, scope)?.into_iter();
                let row = fields.map(|(field, _)| field).collect();
                return self.row_and_query(op, row, query, scope);
            }
            (Node::Row { fields: l, .. }, Node::Row { fields: r, .. }) => {
                return self.compare_rows(op, l, r, scope);
            }
            _ => {}
        }
        let (l, r) = (self.expr(left, scope)?, self.expr(right, scope)?);
        if row_fields(&l).is_some() && row_fields(&r).is_some() && !self.has_own(op, &l, &r) {
            return self.compare_bound_rows(op, l, r);
        }
        self.comparable(&l, &r, op.pos)?;
        self.operator_in(op, Some(l), r)
    }

    fn compare_rows(
        &mut self,
        op: &ast::Operator,
        left: &[ast::Expr],
        right: &[ast::Expr],
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let (l, r) = (self.exprs(left, scope)?, self.exprs(right, scope)?);
        let strip = |list: Vec<(Expr, Pos)>| list.into_iter().map(|(e, _)| e).collect();
        let (l, r): (Vec<Expr>, Vec<Expr>) = (strip(l), strip(r));
        self.compare_fields(op, l, r)
    }

    fn compare_bound_rows(&mut self, op: &ast::Operator, l: Expr, r: Expr) -> Result<Expr> {
        match (row_fields(&l), row_fields(&r)) {
            (Some((l, _)), Some((r, _))) => self.compare_fields(op, l.to_vec(), r.to_vec()),
            _ => self.operator_in(op, Some(l), r),
        }
    }

    /// `(a, b) < (c, d)` is `a < c OR (a = c AND b < d)`, and so on.
    pub(super) fn compare_fields(
        &mut self,
        op: &ast::Operator,
        l: Vec<Expr>,
        r: Vec<Expr>,
    ) -> Result<Expr> {
        if l.len() != r.len() {
            let message = "unequal number of entries in row expressions";
            return Err(Error::new(state::SYNTAX_ERROR, message).position(op.pos + 1));
        }
        if let ([left], [right]) = (&l[..], &r[..]) {
            let test = self.operator_in(op, Some(left.clone()), right.clone())?;
            return match test.type_oid() {
                oid::BOOL => Ok(test),
                other => {
                    let message = format!(
                        "row comparison operator must yield type boolean, not type {}",
                        type_name(other)
                    );
                    Err(Error::new(state::DATATYPE_MISMATCH, message).position(op.pos + 1))
                }
            };
        }
        if l.is_empty() {
            let message = "cannot compare rows of zero length";
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message).position(op.pos + 1));
        }
        let pairs: Vec<(Expr, Expr)> = l.into_iter().zip(r).collect();
        let each = |b: &mut Self, name: &str| -> Result<Vec<Expr>> {
            pairs
                .iter()
                .map(|(l, r)| {
                    let schema = op.schema.as_deref();
                    b.operator_of_schema(schema, name, Some(l.clone()), r.clone(), op.pos)
                })
                .collect()
        };
        match op.name.as_str() {
            "=" => Ok(Expr::all_of(each(self, "=")?).unwrap_or(Expr::bool(true))),
            "<>" => Ok(Expr::Or(each(self, "<>")?)),
            "<" | ">" | "<=" | ">=" => {
                let strict = &op.name[..1];
                let (equal, less) = (each(self, "=")?, each(self, strict)?);
                let last = pairs.len() - 1;
                let (l, r) = pairs[last].clone();
                let mut whole = self.operator_in(op, Some(l), r)?;
                for i in (0..last).rev() {
                    let rest = Expr::And(vec![equal[i].clone(), whole]);
                    whole = Expr::Or(vec![less[i].clone(), rest]);
                }
                Ok(whole)
            }
            name => {
                let message =
                    format!("could not determine interpretation of row comparison operator {name}");
                Err(Error::new(state::FEATURE_NOT_SUPPORTED, message)
                    .hint(
                        "Row comparison operators must be associated with btree operator families.",
                    )
                    .position(op.pos + 1))
            }
        }
    }

    #[allow(clippy::too_many_arguments)] // The parts of BETWEEN.
    fn between(
        &mut self,
        arg: &ast::Expr,
        low: &ast::Expr,
        high: &ast::Expr,
        symmetric: bool,
        negated: bool,
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let arg = self.expr(arg, scope)?;
        let (low, high) = (self.expr(low, scope)?, self.expr(high, scope)?);
        let (above, below) = match negated {
            false => (">=", "<="),
            true => ("<", ">"),
        };
        let range = |b: &mut Self, low: &Expr, high: &Expr| -> Result<Expr> {
            let lower = b.operator(above, Some(arg.clone()), low.clone(), pos)?;
            let upper = b.operator(below, Some(arg.clone()), high.clone(), pos)?;
            Ok(match negated {
                false => Expr::And(vec![lower, upper]),
                true => Expr::Or(vec![lower, upper]),
            })
        };
        let result = range(self, &low, &high)?;
        if !symmetric {
            return Ok(result);
        }
        let both = vec![result, range(self, &high, &low)?];
        Ok(match negated {
            false => Expr::Or(both),
            true => Expr::And(both),
        })
    }

    fn in_list(
        &mut self,
        arg: &ast::Expr,
        list: &[ast::Expr],
        negated: bool,
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let name = if negated { "<>" } else { "=" };
        let op = ast::Operator {
            schema: None,
            name: name.into(),
            pos,
        };
        if let Some(tests) = self.rows_in_list(&op, arg, list, scope)? {
            return Ok(any_or_none(tests, negated));
        }
        let left = self.expr(arg, scope)?;
        let items = self.exprs(list, scope)?;
        let types: Vec<SqlType> = [left.ty()]
            .into_iter()
            .chain(items.iter().map(|(e, _)| e.ty()))
            .collect();
        let rows = row_fields(&left).is_some();
        // What the query's own rows decide is compared one by one.
        let varies = |(item, _): &(Expr, Pos)| item.any(&mut |e| matches!(e, Expr::Var(_)));
        let (items, beside): (Vec<_>, Vec<_>) = match rows {
            true => (items, vec![]),
            false => items.into_iter().partition(|item| !varies(item)),
        };
        let array = match rows {
            true => None,
            false => self
                .common_type(&types, "IN")
                .ok()
                .and_then(|ty| array_of(ty.oid).map(|array| (ty, array))),
        };
        if let (Some((ty, array)), true) = (array, items.len() > 1) {
            let ty = SqlType::plain(ty.oid);
            let items = items
                .into_iter()
                .map(|(e, pos)| self.coerce(e, ty, pos))
                .collect::<Result<Vec<_>>>()?;
            let operands = (Some(left.type_oid()), ty.oid);
            let Found::Table(found) = self.choose_operator(None, name, operands, pos)? else {
                let beside = beside.into_iter().map(|(item, _)| item);
                let tests = items.into_iter().chain(beside);
                let tests = tests.map(|item| self.operator(name, Some(left.clone()), item, pos));
                return Ok(any_or_none(tests.collect::<Result<_>>()?, negated));
            };
            let plain = left.clone();
            let left = Box::new(self.coerce(left, SqlType::plain(found.left), arg.pos)?);
            let array = Expr::Array(items, SqlType::plain(array));
            // As of `varchar`, which is compared as `text`.
            let array = match array_of(found.right).filter(|_| found.right != ty.oid) {
                Some(wanted) => self.coerce(array, SqlType::plain(wanted), pos)?,
                None => array,
            };
            let array = Box::new(array);
            let mut tests = vec![Expr::ArrayCompare {
                op: found.operator,
                left,
                array,
                all: negated,
            }];
            for (item, _) in beside {
                tests.push(self.operator(name, Some(plain.clone()), item, pos)?);
            }
            return Ok(any_or_none(tests, negated));
        }
        let tests = items
            .into_iter()
            .chain(beside)
            .map(|(item, _)| match rows && row_fields(&item).is_some() {
                true => self.compare_bound_rows(&op, left.clone(), item),
                false => self.operator(name, Some(left.clone()), item, pos),
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(any_or_none(tests, negated))
    }

    /// `(a, b) IN ((c, d), …)` field by field, so that each gives the type of what it is compared
    /// with.
    fn rows_in_list(
        &mut self,
        op: &ast::Operator,
        arg: &ast::Expr,
        list: &[ast::Expr],
        scope: &Scope<'_>,
    ) -> Result<Option<Vec<Expr>>> {
        let Node::Row { fields: left, .. } = &arg.node else {
            return Ok(None);
        };
        let mut rights = Vec::with_capacity(list.len());
        for item in list {
            match &item.node {
                Node::Row { fields, .. } => rights.push(fields),
                _ => return Ok(None),
            }
        }
        let mut tests = Vec::with_capacity(rights.len());
        for right in rights {
            tests.push(self.compare_rows(op, left, right, scope)?);
        }
        Ok(Some(tests))
    }

    #[allow(clippy::too_many_arguments)] // The parts of LIKE.
    fn like(
        &mut self,
        kind: LikeKind,
        arg: &ast::Expr,
        pattern: &ast::Expr,
        escape: Option<&ast::Expr>,
        negated: bool,
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let left = self.expr(arg, scope)?;
        let mut right = self.expr(pattern, scope)?;
        let escape = escape.map(|e| self.expr(e, scope)).transpose()?;
        if kind == LikeKind::Similar {
            let mut args = vec![right];
            args.extend(escape);
            right = self.apply("similar_to_escape", args, pos)?;
        } else if let Some(escape) = escape {
            right = self.apply("like_escape", vec![right, escape], pos)?;
        }
        let name = match (kind, negated) {
            (LikeKind::Like, false) => "~~",
            (LikeKind::Like, true) => "!~~",
            (LikeKind::ILike, false) => "~~*",
            (LikeKind::ILike, true) => "!~~*",
            (LikeKind::Similar, false) => "~",
            (LikeKind::Similar, true) => "!~",
        };
        self.operator(name, Some(left), right, pos)
    }

    /// `left op ANY (array)`.
    fn quantified(
        &mut self,
        left: &ast::Expr,
        op: &ast::Operator,
        all: bool,
        array: &ast::Expr,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let l = self.expr(left, scope)?;
        let mut a = self.expr(array, scope)?;
        if a.type_oid() == oid::UNKNOWN {
            let element = if l.type_oid() == oid::UNKNOWN {
                oid::TEXT
            } else {
                l.type_oid()
            };
            let ty = array_of(element).ok_or_else(|| no_array(element, array.pos))?;
            a = self.coerce(a, SqlType::plain(ty), array.pos)?;
        }
        let Some(element) = element_of(a.type_oid()) else {
            let message = "op ANY/ALL (array) requires array on right side";
            return Err(Error::new(state::WRONG_OBJECT_TYPE, message).position(op.pos + 1));
        };
        let operands = (Some(l.type_oid()), element);
        let found = match self.choose_operator(op.schema.as_deref(), &op.name, operands, op.pos)? {
            Found::Table(found) => found,
            Found::Own { .. } => return self.own_quantified(op, l, a, all),
        };
        if found.ret != oid::BOOL {
            let message = "op ANY/ALL (array) requires operator to yield boolean";
            return Err(Error::new(state::WRONG_OBJECT_TYPE, message).position(op.pos + 1));
        }
        let l = self.coerce(l, SqlType::plain(found.left), left.pos)?;
        if found.right != element
            && let Some(wanted) = array_of(found.right)
        {
            a = self.coerce(a, SqlType::plain(wanted), array.pos)?;
        }
        Ok(Expr::ArrayCompare {
            op: found.operator,
            left: Box::new(l),
            array: Box::new(a),
            all,
        })
    }

    /// `left op ANY (SELECT …)`; a row on the left compares column by column.
    fn quantified_query(
        &mut self,
        left: &ast::Expr,
        op: &ast::Operator,
        all: bool,
        query: &ast::Query,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let fields: Vec<(Expr, Pos)> = match &left.node {
            Node::Row { fields, .. } => self.row_items(fields, scope)?,
            _ => vec![(self.expr(left, scope)?, left.pos)],
        };
        let query = self.subquery(query, scope)?;
        let columns = query.columns();
        if columns.len() != fields.len() {
            let message = match columns.len() > fields.len() {
                true => "subquery has too many columns",
                false => "subquery has too few columns",
            };
            return Err(Error::new(state::SYNTAX_ERROR, message).position(op.pos + 1));
        }
        if fields.len() > 1 && !matches!((op.name.as_str(), all), ("=", false) | ("<>", true)) {
            let row = fields.into_iter().map(|(field, _)| field).collect();
            return self.row_and_rows(op, all, row, query);
        }
        let (mut lefts, mut compare, mut casts) = (vec![], vec![], vec![]);
        // `<> ALL` over rows is NOT (`=` ANY): a row differs when any column does.
        let inverted = fields.len() > 1 && all;
        let name = if inverted { "=" } else { op.name.as_str() };
        for ((expr, pos), column) in fields.clone().into_iter().zip(&columns) {
            let operands = (Some(expr.type_oid()), column.ty.oid);
            let schema = op.schema.as_deref();
            let Found::Table(found) = self.choose_operator(schema, name, operands, op.pos)? else {
                let row = fields.into_iter().map(|(field, _)| field).collect();
                return self.row_and_rows(op, all, row, query);
            };
            if found.ret != oid::BOOL {
                let message = format!(
                    "operator {name} must return type boolean, not type {}",
                    type_name(found.ret)
                );
                return Err(Error::new(state::DATATYPE_MISMATCH, message).position(op.pos + 1));
            }
            lefts.push(self.coerce(expr, SqlType::plain(found.left), pos)?);
            compare.push(found.operator);
            casts.push(match found.right == column.ty.oid {
                true => column.ty,
                false => SqlType::plain(found.right),
            });
        }
        let query = self.cast_columns(query, &casts, op.pos)?;
        let kind = match all && !inverted {
            true => SubqueryKind::All {
                left: lefts,
                compare,
            },
            false => SubqueryKind::Any {
                left: lefts,
                compare,
            },
        };
        let any = Expr::Subquery(Box::new(Subquery {
            query,
            kind,
            ty: SqlType::BOOL,
        }));
        Ok(if inverted {
            Expr::Not(Box::new(any))
        } else {
            any
        })
    }

    fn case(
        &mut self,
        operand: Option<&ast::Expr>,
        whens: &[(ast::Expr, ast::Expr)],
        default: Option<&ast::Expr>,
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let operand = match operand {
            Some(ast) => {
                let bound = self.expr(ast, scope)?;
                Some(self.settle(bound, ast.pos)?)
            }
            None => None,
        };
        let (mut conditions, mut results) = (vec![], vec![]);
        // PostgreSQL considers ELSE first when it looks for the common type.
        results.push(match default {
            Some(ast) => (self.expr(ast, scope)?, ast.pos),
            None => (Expr::null(SqlType::UNKNOWN), pos),
        });
        for (when, then) in whens {
            let test = self.expr(when, scope)?;
            conditions.push(match &operand {
                Some(operand) => {
                    let left = Expr::CaseOperand(operand.ty());
                    self.operator("=", Some(left), test, when.pos)?
                }
                None => self.condition(test, "CASE/WHEN", when.pos)?,
            });
            results.push((self.expr(then, scope)?, then.pos));
        }
        let (mut results, ty) = self.unify(results, "CASE")?;
        let default = Box::new(results.remove(0));
        let whens = conditions.into_iter().zip(results).collect();
        Ok(Expr::Case {
            operand: operand.map(Box::new),
            whens,
            default,
            ty,
        })
    }

    fn cast(
        &mut self,
        arg: &ast::Expr,
        ty: &ast::TypeName,
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let Declared { ty: to, domain } = self.declared(ty)?;
        // The target says what an array constructor's items are.
        if let (Node::Array(items), Some(element)) = (&arg.node, element_of(to.oid))
            && !(self.reads_kept_text() && are_typed(items))
        {
            let array = self.array(
                items,
                Some(SqlType::new(element, to.typmod)),
                arg.pos,
                scope,
            )?;
            let array = self.explicit_cast(array, to, pos)?;
            return self.in_domain(array, domain);
        }
        let bound = self.expr(arg, scope)?;
        let place = if bound.type_oid() == oid::UNKNOWN {
            arg.pos
        } else {
            pos
        };
        let cast = self.explicit_cast(bound, to, place)?;
        self.in_domain(cast, domain)
    }
}

/// Items that say themselves what they are.
fn are_typed(items: &[ast::Expr]) -> bool {
    let open = |item: &ast::Expr| {
        matches!(
            item.node,
            Node::Text(_) | Node::Null | Node::Array(_) | Node::Param(_)
        )
    };
    !items.is_empty() && !items.iter().any(open)
}

fn one_column_only(pos: Pos) -> Error {
    Error::new(state::SYNTAX_ERROR, "subquery must return only one column").position(pos + 1)
}

/// Whether one of the tests holds, or, where it is negated, each.
fn any_or_none(mut tests: Vec<Expr>, negated: bool) -> Expr {
    match (tests.len(), negated) {
        (1, _) => tests.remove(0),
        (_, true) => Expr::And(tests),
        (_, false) => Expr::Or(tests),
    }
}
