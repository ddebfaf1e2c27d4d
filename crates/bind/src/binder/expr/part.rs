//! Assignment to a part of a column: `SET a[1] = …`, `SET c.f = …`, `INSERT INTO t (a[1], c.f)`.
//!
//! The column gets its old value (of a new row: NULL) with the part in it replaced; several parts
//! of one column are put in one after the other.

use throng_types::error::state;
use throng_types::sqltype::{element_of, made, part_of, type_name};
use throng_types::{Error, Result, SqlType, oid};

use crate::binder::Binder;
use crate::binder::query::scope::Scope;
use crate::tree::expr::{Expr, ValuePart};
use throng_catalog::ColumnDef;
use throng_syntax::parse::ast::{self, Node, Pos, TargetPart};
use throng_values::func::CastContext;
use throng_values::func::json::assign::ASSIGN;

/// Subscripts that follow each other, or a field.
enum Step<'a> {
    Items(Vec<&'a TargetPart>),
    Field(&'a str),
}

fn steps(parts: &[TargetPart]) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    for part in parts {
        match (part, steps.last_mut()) {
            (TargetPart::Field(name, _), _) => steps.push(Step::Field(name)),
            (item, Some(Step::Items(items))) => items.push(item),
            (item, _) => steps.push(Step::Items(vec![item])),
        }
    }
    steps
}

/// What a value is put into, for complaints.
struct Target<'a> {
    name: &'a str,
    /// Where the column was written.
    pos: Pos,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    Column,
    Field,
    Items,
}

impl<'a> Target<'a> {
    fn field(&self, name: &'a str) -> Target<'a> {
        Target {
            name,
            pos: self.pos,
            what: What::Field,
        }
    }
    fn items(&self) -> Target<'a> {
        Target {
            what: What::Items,
            ..*self
        }
    }
}

impl Binder<'_> {
    /// `base`, a column's value, with one part of it replaced by a written value.
    pub(in crate::binder) fn with_part(
        &mut self,
        base: Expr,
        column: &ColumnDef,
        (parts, pos): (&[TargetPart], Pos),
        value: Expr,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        // A part of a part is written with the whole in it twice.
        const MOST_NODES: usize = 4096;
        let mut nodes = 0;
        base.any(&mut |_| {
            nodes += 1;
            nodes > MOST_NODES
        });
        if nodes > MOST_NODES {
            let what = "so many assignments to parts of one column";
            return Err(Error::unsupported(what).position(pos + 1));
        }
        // The whole is the domain's again when the part is in it.
        let base = match base {
            Expr::ToDomain(base, _) => *base,
            base => base,
        };
        let target = Target {
            name: &column.name,
            pos,
            what: What::Column,
        };
        let whole = self.part_replaced(base, &target, &steps(parts), value, scope)?;
        self.in_domain(whole, column.domain)
    }

    fn part_replaced(
        &mut self,
        base: Expr,
        target: &Target<'_>,
        steps: &[Step<'_>],
        value: Expr,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let name = target.name;
        let ty = base.ty();
        let Some((step, rest)) = steps.split_first() else {
            return self.put_in(value, ty, target);
        };
        match step {
            Step::Items(items) => self.with_items(base, target, items, rest, value, scope),
            Step::Field(field) => {
                let pos = target.pos;
                if !made::is_composite(ty.oid) {
                    let message = format!(
                        "cannot assign to field \"{field}\" of column \"{name}\" because its type {} is not a composite type",
                        type_name(ty.oid)
                    );
                    return Err(Error::new(state::DATATYPE_MISMATCH, message).position(pos + 1));
                }
                let def = self.catalog().composite(ty.oid);
                let fields = def.iter().flat_map(|d| d.fields.iter().flatten());
                let found = fields.filter(|f| !f.dropped).cloned().collect::<Vec<_>>();
                let Some(index) = found.iter().position(|f| f.name == *field) else {
                    let message = format!(
                        "cannot assign to field \"{field}\" of column \"{name}\" because there is no such column in data type {}",
                        type_name(ty.oid)
                    );
                    return Err(Error::new(state::UNDEFINED_COLUMN, message).position(pos + 1));
                };
                let inner = Expr::Field {
                    row: Box::new(base.clone()),
                    index: index as u16,
                    ty: found[index].ty,
                };
                let value = self.part_replaced(inner, &target.field(field), rest, value, scope)?;
                let value = self.in_domain(value, found[index].domain)?;
                let place = ValuePart::Field {
                    index: index as u16,
                    fields: found
                        .iter()
                        .map(|f| (f.ty.oid, f.name.as_str().into()))
                        .collect(),
                };
                Ok(Expr::Replace {
                    base: Box::new(base),
                    place,
                    value: Box::new(value),
                })
            }
        }
    }

    /// `array[1][2]`, `array[1:2]`: subscripts that follow each other, outermost last in what was
    /// written.
    pub(in crate::binder) fn items(&mut self, ast: &ast::Expr, scope: &Scope<'_>) -> Result<Expr> {
        let mut written = Vec::new();
        let mut at = ast;
        loop {
            at = match &at.node {
                Node::Subscript { arg, index } => {
                    written.push((None, Some(&**index), false));
                    arg
                }
                Node::Slice { arg, from, to } => {
                    written.push((from.as_deref(), to.as_deref(), true));
                    arg
                }
                _ => break,
            };
        }
        written.reverse();
        let array = self.expr(at, scope)?;
        // A vector's items are those of an array.
        let array = match array.type_oid() {
            oid::INT2VECTOR => self.coerce(array, SqlType::plain(oid::INT2_ARRAY), at.pos)?,
            oid::OIDVECTOR => self.coerce(array, SqlType::plain(oid::OID_ARRAY), at.pos)?,
            _ => array,
        };
        let ty = array.ty();
        let is_array = ty.info().is_some_and(|t| t.is_array());
        let Some(element) = element_of(ty.oid).filter(|_| is_array) else {
            if ty.oid == oid::JSONB && written.iter().all(|(.., slice)| !slice) {
                return self.jsonb_path(array, &written, scope);
            }
            if part_of(ty.oid).is_some() {
                let slices = written.iter().any(|(.., slice)| *slice);
                return Err(Error::unsupported(match slices {
                    true => "a slice of a value of fixed length",
                    false => "several subscripts of a value of fixed length",
                })
                .position(at.pos + 1));
            }
            let message = match ty.oid {
                oid::JSONB => "jsonb subscript does not support slices".to_owned(),
                _ => format!(
                    "cannot subscript type {} because it does not support subscripting",
                    type_name(ty.oid)
                ),
            };
            return Err(Error::new(state::DATATYPE_MISMATCH, message).position(at.pos + 1));
        };
        let sliced = written.iter().any(|(.., slice)| *slice);
        let (mut lower, mut upper) = (Vec::new(), Vec::new());
        for (from, to, slice) in written {
            let mut bound =
                |at: Option<&ast::Expr>| at.map(|at| self.array_subscript(at, scope)).transpose();
            lower.push(match slice {
                true => bound(from)?,
                false => Some(Expr::int4(1)),
            });
            upper.push(bound(to)?);
        }
        Ok(match sliced {
            true => Expr::Items {
                array: Box::new(array),
                place: ValuePart::Slice { lower, upper },
                ty,
            },
            false => Expr::Items {
                array: Box::new(array),
                place: ValuePart::Item(upper.into_iter().flatten().collect()),
                ty: SqlType::new(element, ty.typmod),
            },
        })
    }

    /// `value['a'][0]`
    fn jsonb_path(
        &mut self,
        value: Expr,
        written: &[(Option<&ast::Expr>, Option<&ast::Expr>, bool)],
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let mut value = value;
        for (_, step, _) in written {
            if let Some(step) = step {
                value = self.jsonb_subscript(value, step, step.pos, scope)?;
            }
        }
        Ok(value)
    }

    /// `value['a'][0]`, put into the whole.
    fn with_json_part(
        &mut self,
        base: Expr,
        target: &Target<'_>,
        items: &[&TargetPart],
        rest: &[Step<'_>],
        value: Expr,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let (mut path, mut begins_with_integer) = (Vec::with_capacity(items.len()), false);
        for (i, item) in items.iter().enumerate() {
            match item {
                TargetPart::Index(at) => {
                    let (step, integer) = self.jsonb_step(at, scope)?;
                    begins_with_integer |= i == 0 && integer;
                    path.push(step);
                }
                TargetPart::Slice(.., pos) | TargetPart::Field(_, pos) => {
                    let message = "jsonb subscript does not support slices";
                    let error = Error::new(state::DATATYPE_MISMATCH, message);
                    return Err(error.position(pos + 1));
                }
            }
        }
        let inside = Expr::null(SqlType::plain(oid::JSONB));
        let value = self.part_replaced(inside, &target.items(), rest, value, scope)?;
        Ok(Expr::Call {
            func: &ASSIGN,
            args: vec![
                base,
                Expr::Array(path, SqlType::plain(oid::TEXT_ARRAY)),
                value,
                Expr::bool(begins_with_integer),
            ],
            ty: SqlType::plain(oid::JSONB),
        })
    }

    fn put_in(&mut self, value: Expr, ty: SqlType, target: &Target<'_>) -> Result<Expr> {
        let from = value.type_oid();
        let cast = self.try_coerce(value, ty, CastContext::Assignment, target.pos)?;
        cast.ok_or_else(|| {
            let (name, to, from) = (target.name, type_name(ty.oid), type_name(from));
            let message = match target.what {
                What::Column => {
                    format!("column \"{name}\" is of type {to} but expression is of type {from}")
                }
                What::Field => {
                    format!("subfield \"{name}\" is of type {to} but expression is of type {from}")
                }
                What::Items => format!(
                    "subscripted assignment to \"{name}\" requires type {to} but expression is of type {from}"
                ),
            };
            Error::new(state::DATATYPE_MISMATCH, message)
                .hint("You will need to rewrite or cast the expression.")
                .position(target.pos + 1)
        })
    }

    fn with_items(
        &mut self,
        base: Expr,
        target: &Target<'_>,
        items: &[&TargetPart],
        rest: &[Step<'_>],
        value: Expr,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let ty = base.ty();
        let first = match items[0] {
            TargetPart::Index(at) => at.pos,
            TargetPart::Slice(.., pos) | TargetPart::Field(_, pos) => *pos,
        };
        if ty.oid == oid::JSONB {
            return self.with_json_part(base, target, items, rest, value, scope);
        }
        let of_array = element_of(ty.oid).filter(|_| ty.info().is_some_and(|t| t.is_array()));
        let of_base = || part_of(ty.oid).filter(|_| matches!(items, [TargetPart::Index(_)]));
        let Some(element) = of_array.or_else(of_base) else {
            let message = format!(
                "cannot subscript type {} because it does not support subscripting",
                type_name(ty.oid)
            );
            return Err(Error::new(state::DATATYPE_MISMATCH, message).position(first + 1));
        };
        let sliced = items.iter().any(|i| matches!(i, TargetPart::Slice(..)));
        let (mut lower, mut upper) = (Vec::new(), Vec::new());
        for item in items {
            match item {
                // Beside a slice, `[n]` is `[1:n]`.
                TargetPart::Index(at) => {
                    if sliced {
                        lower.push(Some(Expr::int4(1)));
                    }
                    upper.push(Some(self.array_subscript(at, scope)?));
                }
                TargetPart::Slice(from, to, _) => {
                    let bound = |b: &mut Self, at: &Option<ast::Expr>| {
                        at.as_ref()
                            .map(|at| b.array_subscript(at, scope))
                            .transpose()
                    };
                    lower.push(bound(self, from)?);
                    upper.push(bound(self, to)?);
                }
                TargetPart::Field(..) => {}
            }
        }
        let element = SqlType::new(element, ty.typmod);
        if sliced {
            if !rest.is_empty() {
                return Err(Error::unsupported(
                    "assignment to a part of an array's slice",
                ));
            }
            let value = self.part_replaced(base.clone(), &target.items(), &[], value, scope)?;
            return Ok(Expr::Replace {
                base: Box::new(base),
                place: ValuePart::Slice { lower, upper },
                value: Box::new(value),
            });
        }
        let upper: Vec<Expr> = upper.into_iter().flatten().collect();
        let inner = match &upper[..] {
            [index] => Expr::Subscript {
                array: Box::new(base.clone()),
                index: Box::new(index.clone()),
                ty: element,
            },
            _ if rest.is_empty() => Expr::null(element),
            _ => {
                let what = "assignment to a field of an item of an array of several dimensions";
                return Err(Error::unsupported(what));
            }
        };
        let value = self.part_replaced(inner, &target.items(), rest, value, scope)?;
        Ok(Expr::Replace {
            base: Box::new(base),
            place: ValuePart::Item(upper),
            value: Box::new(value),
        })
    }

    fn array_subscript(&mut self, ast: &ast::Expr, scope: &Scope<'_>) -> Result<Expr> {
        let bound = self.expr(ast, scope)?;
        let cast = self.try_coerce(bound, SqlType::INT4, CastContext::Assignment, ast.pos)?;
        cast.ok_or_else(|| {
            let message = "array subscript must have type integer";
            Error::new(state::DATATYPE_MISMATCH, message).position(ast.pos + 1)
        })
    }
}
