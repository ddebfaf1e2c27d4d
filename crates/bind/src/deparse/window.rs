//! Windows: the WINDOW clause and OVER.

use super::query::written;
use super::{STEP, Writer};
use crate::tree::aggregate::AggFunction;
use crate::tree::expr::Expr;
use crate::tree::query::Select;
use crate::tree::window::{Callee, Exclude, Frame, FrameBound, FrameMode, Window, WindowCall};

impl Writer<'_> {
    /// The windows that have names; the others are written where they are used.
    pub(super) fn window_clause(&mut self, select: &Select) {
        let named = select.windows.iter().filter(|w| w.name.is_some());
        for (i, window) in named.enumerate() {
            match i {
                0 => self.line(" WINDOW ", -STEP, STEP, 1),
                _ => self.push(", "),
            }
            let name = window.name.clone().unwrap_or_default();
            self.ident(&name);
            self.push(" AS ");
            self.window(window);
        }
    }

    pub(super) fn window_call(&mut self, call: &WindowCall) {
        match &call.callee {
            Callee::Function(function) => self.ident(function.name),
            Callee::Aggregate(agg) => self.aggregate_name(agg),
        }
        self.push("(");
        match call.args.is_empty() && matches!(call.callee, Callee::Aggregate(_)) {
            true => self.push("*"),
            false => self.list(&call.args),
        }
        self.push(")");
        self.filter_of(call.filter.as_ref());
        self.push(" OVER ");
        let scope = self.scopes.last();
        let window = scope.and_then(|s| s.windows.get(call.window as usize));
        match window.cloned() {
            Some(Window {
                name: Some(name), ..
            }) => self.ident(&name),
            Some(window) => self.window(&window),
            None => self.push("?"),
        }
    }

    /// A user's with its schema where the search path does not find it.
    pub(super) fn aggregate_name(&mut self, agg: &AggFunction) {
        match agg.def() {
            Some(def) => {
                let name = self.routine_name(def);
                self.push(&name);
            }
            None => self.ident(agg.name()),
        }
    }

    fn window(&mut self, window: &Window) {
        self.push("(");
        let mut space = "";
        for (i, expr) in window.partition.iter().enumerate() {
            self.push(if i == 0 { "PARTITION BY " } else { ", " });
            self.key_expr(expr, Vec::new());
            space = " ";
        }
        for (i, key) in window.order.iter().enumerate() {
            self.push(if i == 0 { space } else { ", " });
            self.push(if i == 0 { "ORDER BY " } else { "" });
            self.key_expr(&key.expr, Vec::new());
            self.direction(key);
            space = " ";
        }
        if window.frame.written {
            self.push(space);
            self.frame(&window.frame);
        }
        self.push(")");
    }

    fn frame(&mut self, frame: &Frame) {
        self.push(match frame.mode {
            FrameMode::Rows => "ROWS ",
            FrameMode::Range => "RANGE ",
            FrameMode::Groups => "GROUPS ",
        });
        if frame.between {
            self.push("BETWEEN ");
        }
        self.bound(&frame.start);
        if frame.between {
            self.push(" AND ");
            self.bound(&frame.end);
        }
        self.push(match frame.exclude {
            Exclude::Nothing => "",
            Exclude::CurrentRow => " EXCLUDE CURRENT ROW",
            Exclude::Group => " EXCLUDE GROUP",
            Exclude::Ties => " EXCLUDE TIES",
        });
    }

    fn bound(&mut self, bound: &FrameBound) {
        let mut offset = |e: &Expr, word: &str| {
            self.expr(written(e));
            self.push(word);
        };
        match bound {
            FrameBound::UnboundedPreceding => self.push("UNBOUNDED PRECEDING"),
            FrameBound::Preceding(e) => offset(e, " PRECEDING"),
            FrameBound::CurrentRow => self.push("CURRENT ROW"),
            FrameBound::Following(e) => offset(e, " FOLLOWING"),
            FrameBound::UnboundedFollowing => self.push("UNBOUNDED FOLLOWING"),
        }
    }
}
