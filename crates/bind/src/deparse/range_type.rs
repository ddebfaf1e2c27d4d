//! Calls that make values of range types that users made.

use throng_types::sqltype::{element_of, made};
use throng_types::{Datum, Oid, SqlType};

use super::Writer;
use crate::tree::expr::Expr;
use throng_values::func::Function;
use throng_values::func::range::{MADE_MULTIRANGE, MADE_RANGE};

impl Writer<'_> {
    /// Writes a call by the type's name, which its last argument tells; false for other functions.
    pub(super) fn range_constructor(&mut self, func: &Function, args: &[Expr]) -> bool {
        let Some((Expr::Const(Datum::Oid(range), _), values)) = args.split_last() else {
            return false;
        };
        let ty = match func {
            func if *func == MADE_RANGE => Oid(*range),
            func if *func == MADE_MULTIRANGE => made::multirange_of(Oid(*range)),
            _ => return false,
        };
        let name = self.type_name(SqlType::plain(ty));
        self.push(&name);
        self.push("(");
        let values = match values {
            [Expr::Array(items, _)] if items.is_empty() => &[],
            [array] if element_of(array.type_oid()).is_some() => {
                self.push("VARIADIC ");
                values
            }
            values => values,
        };
        for (i, value) in values.iter().enumerate() {
            self.push(if i > 0 { ", " } else { "" });
            self.expr(value);
        }
        self.push(")");
        true
    }
}
