//! Row values.

use throng_types::{SqlType, oid};
use throng_values::func::RelColumn;

use super::Expr;

impl Expr {
    /// The columns of a row value, as far as they are known.
    pub(crate) fn row_columns(&self) -> Vec<RelColumn> {
        match self {
            Expr::Routine(call) | Expr::SetRoutine(call) => call.columns.clone(),
            Expr::Row(fields, Some(names)) => fields
                .iter()
                .zip(names.iter())
                .map(|(field, name)| RelColumn {
                    name: name.to_string(),
                    ty: field.ty(),
                })
                .collect(),
            Expr::Row(fields, None) => fields
                .iter()
                .zip(1..)
                .map(|(field, n)| RelColumn {
                    name: format!("f{n}"),
                    ty: field.ty(),
                })
                .collect(),
            Expr::Call { func, .. } | Expr::SetCall { func, .. } if func.ret == oid::RECORD => func
                .columns
                .iter()
                .map(|(name, ty)| RelColumn {
                    name: (*name).to_owned(),
                    ty: SqlType::plain(*ty),
                })
                .collect(),
            _ => vec![],
        }
    }
}
