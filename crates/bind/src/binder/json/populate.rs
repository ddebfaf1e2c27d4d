//! `json_populate_record` and its kin: the type of the row they fill becomes constants of the call.

use throng_types::error::state;
use throng_types::sqltype::made;
use throng_types::{Datum, Error, Oid, Result, SqlType, oid};

use crate::binder::Binder;
use crate::binder::ddl::domain::Declared;
use crate::binder::query::scope::Scope;
use crate::tree::expr::Expr;
use throng_syntax::parse::ast::{self, ColumnDefinition, Node, Pos};
use throng_values::func::json::populate;

/// What no written name is: see [`json_member`].
const MEMBER: &str = "\u{1}member";

/// A member of a JSON object as a column of a definition list has it.
pub(in crate::binder) fn json_member(
    member: ast::Expr,
    column: &ColumnDefinition,
    pos: Pos,
) -> ast::Expr {
    let at = |node: Node| ast::Expr { node, pos };
    let null = at(Node::Cast {
        arg: Box::new(at(Node::Null)),
        ty: column.ty.clone(),
    });
    let name = at(Node::Text(column.name.clone()));
    at(Node::Call(Box::new(ast::Call {
        name: ast::Name {
            parts: vec!["pg_catalog".into(), MEMBER.into()],
            pos,
        },
        args: vec![member, null, name],
        names: vec![],
        star: false,
        distinct: false,
        variadic: false,
        order: vec![],
        filter: None,
        within_group: false,
        over: None,
        label: None,
    })))
}

fn number(value: i64) -> Expr {
    Expr::Const(Datum::Int8(value), SqlType::INT8)
}
fn oid_or_none(oid: Option<Oid>) -> Expr {
    number(i64::from(oid.unwrap_or(Oid::NONE).0))
}

fn is_builtin(call: &ast::Call) -> bool {
    call.name.schema().is_none_or(|s| s == "pg_catalog")
}

impl Binder<'_> {
    /// A call of one of them as a value; none where it is another function.
    pub(in crate::binder) fn json_populate(
        &mut self,
        call: &ast::Call,
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Result<Option<Expr>> {
        let value = self.json_populate_call(call, pos, scope)?;
        if matches!(value, Some(Expr::SetCall { .. })) && !self.clause.allows_sets() {
            let message = format!(
                "set-returning functions are not allowed in {}",
                self.clause.name()
            );
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message).position(pos + 1));
        }
        Ok(value)
    }

    /// The same wherever it stands.
    pub(in crate::binder) fn json_populate_call(
        &mut self,
        call: &ast::Call,
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Result<Option<Expr>> {
        let name = call.name.last();
        if name == MEMBER {
            return self.bound_member(call, scope).map(Some);
        }
        let plain = call.names.is_empty() && !call.variadic && is_builtin(call);
        let (Some(func), [base, json, rest @ ..]) = (populate::named(name), &call.args[..]) else {
            return Ok(None);
        };
        if !plain || rest.len() > func.args.len() - 2 {
            return Ok(None);
        }
        self.plain_call(call, pos)?;
        let base = self.expr(base, scope)?;
        let json_type = SqlType::plain(func.args[1]);
        let json_pos = json.pos;
        let json = self.expr(json, scope)?;
        let json = self.coerce(json, json_type, json_pos)?;
        let mut ty = base.ty();
        let wrong = |message: String| Err(Error::new(state::DATATYPE_MISMATCH, message));
        match ty.oid {
            oid::UNKNOWN => {
                let what = "polymorphic type because input has type unknown";
                return wrong(format!("could not determine {what}"));
            }
            oid::RECORD => {}
            ty if made::is_composite(ty) => {}
            _ => return wrong(format!("first argument of {name} must be a row type")),
        }
        ty.typmod = -1;
        let domain = self.domain_of(&base);
        let args = vec![oid_or_none(Some(ty.oid)), oid_or_none(domain), base, json];
        if !func.returns_set() {
            return Ok(Some(Expr::Call { func, args, ty }));
        }
        Ok(Some(Expr::SetCall { func, args, ty }))
    }

    fn bound_member(&mut self, call: &ast::Call, scope: &Scope<'_>) -> Result<Expr> {
        let [member, null, name] = &call.args[..] else {
            return Err(Error::internal("a member of JSON without its column"));
        };
        let (Node::Cast { ty, .. }, Node::Text(name)) = (&null.node, &name.node) else {
            return Err(Error::internal("a member of JSON without its type"));
        };
        let Declared { ty, domain } = self.declared(ty)?;
        let member = self.expr(member, scope)?;
        Ok(Expr::Call {
            func: &populate::MEMBER,
            args: vec![
                oid_or_none(Some(ty.oid)),
                number(i64::from(ty.typmod)),
                oid_or_none(domain),
                Expr::Const(Datum::text(name), SqlType::TEXT),
                member,
            ],
            ty,
        })
    }
}
