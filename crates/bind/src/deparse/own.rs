//! Users' functions, operators and casts, as they are written.

use super::Writer;
use crate::tree::expr::{Expr, OwnForm, RoutineCall, Written};
use throng_catalog::{OperatorDef, RoutineDef};
use throng_types::SqlType;

impl Writer<'_> {
    pub(super) fn routine(&mut self, call: &RoutineCall) {
        let name = self.routine_name(&call.def);
        self.push(&name);
        self.push("(");
        let last = call.args.len().saturating_sub(1);
        for (i, arg) in call.args.iter().enumerate() {
            if i > 0 {
                self.push(", ");
            }
            if i == last && call.def.is_variadic() {
                self.push("VARIADIC ");
            }
            self.expr(arg);
        }
        self.push(")");
    }

    /// With its schema where the search path does not find it.
    pub(super) fn routine_name(&self, def: &RoutineDef) -> String {
        let catalog = self.style.catalog;
        // As it is called now.
        let def = catalog.routine(def.oid).map_or(def, |d| d);
        catalog.routine_display(self.style.search_path, def)
    }

    pub(super) fn own_form(&mut self, form: &OwnForm, parent: &Expr) {
        match &form.written {
            Written::Operator(def) => {
                let name = self.own_operator_name(def);
                self.wrapped(|w| match form.operands() {
                    [arg] => {
                        w.push(&name);
                        w.push(" ");
                        w.operand_of(arg, parent);
                    }
                    [left, right] => {
                        w.operand_of(left, parent);
                        w.push(" ");
                        w.push(&name);
                        w.push(" ");
                        w.operand_of(right, parent);
                    }
                    _ => {}
                });
            }
            Written::Cast(def, _) => {
                let Some(value) = form.operands().first() else {
                    return;
                };
                self.wrapped(|w| w.operand_of(value, parent));
                let name = self.type_name(SqlType::plain(def.to));
                self.push("::");
                self.push(&name);
            }
        }
    }

    /// With its schema where the search path does not find it.
    fn own_operator_name(&self, def: &OperatorDef) -> String {
        let catalog = self.style.catalog;
        // As it is called now.
        let def = catalog.operator(def.oid).map_or(def, |d| d);
        catalog.operator_display(self.style.search_path, def)
    }
}
