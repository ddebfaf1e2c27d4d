//! `t.f` for `f(t)`, and `f(t)` for the field `f` of the row `t`: either may be written for the
//! other.

use throng_types::Result;
use throng_types::sqltype::made;

use crate::binder::Binder;
use crate::binder::query::scope::Scope;
use crate::tree::expr::Expr;
use throng_syntax::parse::ast::{self, Node, Pos};
use throng_syntax::parse::new_call;

impl Binder<'_> {
    /// What a function makes of the row of a table in sight, written as a column of it; None where
    /// that means nothing.
    pub(in crate::binder) fn computed_column(
        &mut self,
        parts: &[String],
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Option<Result<Expr>> {
        let [table @ .., name] = parts else {
            return None;
        };
        let schema = table.len().checked_sub(2).and_then(|at| table.get(at));
        self.named_table(schema, table.last()?, pos, scope).ok()?;
        let row = ast::Expr {
            node: Node::Star(table.to_vec()),
            pos,
        };
        self.called_as_field(name, row, pos, scope)
    }

    /// A function of one argument, written behind it as a field; None where there is no such
    /// function.
    pub(in crate::binder) fn called_as_field(
        &mut self,
        name: &str,
        arg: ast::Expr,
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Option<Result<Expr>> {
        let name = ast::Name {
            parts: vec![name.to_owned()],
            pos,
        };
        // A type's name behind a row is no cast.
        if self.is_type_name(&name) {
            return None;
        }
        let call = new_call(name, vec![arg]);
        match self.call(&call, pos, scope) {
            Ok(value @ (Expr::Call { .. } | Expr::Routine(_) | Expr::SetRoutine(_))) => {
                Some(Ok(value))
            }
            _ => None,
        }
    }

    /// The field that a call of a function which is not there means.
    pub(in crate::binder) fn field_call(
        &mut self,
        call: &ast::Call,
        scope: &Scope<'_>,
    ) -> Option<Expr> {
        let plain = !call.star && !call.distinct && !call.variadic && call.names.is_empty();
        let plain = plain && call.order.is_empty() && call.filter.is_none();
        let ([arg], [name]) = (&call.args[..], &call.name.parts[..]) else {
            return None;
        };
        let row = self.expr(arg, scope).ok().filter(|_| plain)?;
        let is_row =
            made::is_composite(row.type_oid()) || row.type_oid() == throng_types::oid::RECORD;
        let mut fields = self.fields_of(&row).ok().filter(|_| is_row)?.into_iter();
        fields
            .find(|(field, _)| field == name)
            .map(|(_, value)| value)
    }
}
