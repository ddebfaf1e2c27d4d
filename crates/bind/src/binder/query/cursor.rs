//! WHERE CURRENT OF.

use throng_types::error::state;
use throng_types::{Datum, Error, Result, SqlType, oid};

use crate::binder::Binder;
use crate::binder::dml::updatable::WriteTarget;
use crate::tree::expr::{Expr, RelId, Var, system};
use throng_values::func::{Function, cursor, resolve_operator};

impl Binder<'_> {
    /// That the target's row is the one that the cursor stands on.
    pub(in crate::binder) fn current_of(
        &mut self,
        name: &str,
        target: &WriteTarget,
    ) -> Result<Expr> {
        if target.is_view() {
            let message = "WHERE CURRENT OF on a view is not implemented";
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
        }
        let row = is(target.rel, system::CTID, &cursor::ROW, name)?;
        let table = &target.table;
        if !table.is_partitioned() && self.catalog().children_of(table.oid).is_empty() {
            return Ok(row);
        }
        // Rows of several tables may be at the same place.
        let of = is(target.rel, system::TABLEOID, &cursor::TABLE, name)?;
        Ok(Expr::And(vec![row, of]))
    }
}

/// `column = function(name)`
fn is(rel: RelId, column: i16, func: &'static Function, name: &str) -> Result<Expr> {
    let ty = SqlType::plain(func.ret);
    let call = Expr::Call {
        func,
        args: vec![Expr::Const(Datum::from(name), SqlType::TEXT)],
        ty,
    };
    let op = resolve_operator("=", Some(ty.oid), ty.oid)?.operator;
    Ok(Expr::Op {
        op,
        args: vec![Expr::Var(Var { rel, column, ty }), call],
        ty: SqlType::plain(oid::BOOL),
    })
}
