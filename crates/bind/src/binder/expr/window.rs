//! Windows: OVER and WINDOW, and the functions computed over them.

use throng_types::error::state;
use throng_types::sqltype::type_name;
use throng_types::{Error, Result, SqlType, oid};

use crate::binder::query::scope::Scope;
use crate::binder::{Binder, Clause, at};
use crate::tree::aggregate::AggFunction;
use crate::tree::expr::{Expr, SortKey};
use crate::tree::window::{self, Frame, FrameBound, FrameMode, Window, WindowCall, range_offsets};
use throng_catalog::RoutineKind;
use throng_syntax::parse::ast::{self, Over, Pos, WindowSpec};
use throng_values::func::{Callee, CastContext, can_coerce};

fn windowing(message: impl Into<String>, pos: Pos) -> Error {
    Error::new(state::WINDOWING_ERROR, message.into()).position(pos + 1)
}

impl Binder<'_> {
    /// The windows of a WINDOW clause; each may go on from one before it.
    pub(in crate::binder) fn named_windows(
        &mut self,
        windows: &[ast::NamedWindow],
        scope: &Scope<'_>,
    ) -> Result<()> {
        for window in windows {
            if self.window_named(&window.name).is_some() {
                let message = format!("window \"{}\" is already defined", window.name);
                return Err(windowing(message, window.spec.pos));
            }
            let mut bound = self.window(&window.spec, false, scope)?;
            bound.name = Some(window.name.clone());
            self.windows.push(bound);
        }
        Ok(())
    }

    fn window_named(&self, name: &str) -> Option<usize> {
        self.windows
            .iter()
            .position(|w| w.name.as_deref() == Some(name))
    }

    fn base_window(&self, name: &str, pos: Pos) -> Result<usize> {
        self.window_named(name).ok_or_else(|| {
            let message = format!("window \"{name}\" does not exist");
            Error::new(state::UNDEFINED_OBJECT, message).position(pos + 1)
        })
    }

    /// `inline`: written in an OVER.
    fn window(&mut self, spec: &WindowSpec, inline: bool, scope: &Scope<'_>) -> Result<Window> {
        let mut window = Window {
            name: None,
            partition: vec![],
            order: vec![],
            frame: Frame::DEFAULT,
        };
        let order = self.in_clause(Clause::Window("window ORDER BY"), |b| {
            b.window_order(&spec.order, scope)
        })?;
        let partition = self.in_clause(Clause::Window("window PARTITION BY"), |b| {
            b.window_partition(&spec.partition, scope)
        })?;
        if let Some(name) = &spec.base {
            let base = self.windows[self.base_window(name, spec.pos)?].clone();
            if !partition.is_empty() {
                let message = format!("cannot override PARTITION BY clause of window \"{name}\"");
                return Err(windowing(message, spec.pos));
            }
            if !order.is_empty() && !base.order.is_empty() {
                let message = format!("cannot override ORDER BY clause of window \"{name}\"");
                return Err(windowing(message, spec.pos));
            }
            if base.frame != Frame::DEFAULT {
                let message =
                    format!("cannot copy window \"{name}\" because it has a frame clause");
                let error = windowing(message, spec.pos);
                let bare = inline && order.is_empty() && spec.frame.is_none();
                return Err(match bare {
                    true => error.hint("Omit the parentheses in this OVER clause."),
                    false => error,
                });
            }
            window.partition = base.partition;
            window.order = base.order;
        } else {
            window.partition = partition;
        }
        if !order.is_empty() {
            window.order = order;
        }
        if let Some(frame) = &spec.frame {
            window.frame = self.frame(frame, &window.order, spec.pos, scope)?;
        }
        Ok(window)
    }

    fn window_order(&mut self, order: &[ast::OrderBy], scope: &Scope<'_>) -> Result<Vec<SortKey>> {
        let mut keys: Vec<SortKey> = Vec::new();
        for item in order {
            let expr = self.expr(&item.expr, scope)?;
            let expr = self.settle(expr, item.expr.pos)?;
            self.check_sortable(&expr, item.expr.pos)?;
            if !keys.iter().any(|k| k.expr == expr) {
                keys.push(SortKey {
                    expr,
                    descending: item.descending,
                    nulls_first: item.nulls_first.unwrap_or(item.descending),
                });
            }
        }
        Ok(keys)
    }

    fn window_partition(&mut self, items: &[ast::Expr], scope: &Scope<'_>) -> Result<Vec<Expr>> {
        let mut keys: Vec<Expr> = Vec::new();
        for item in items {
            let expr = self.expr(item, scope)?;
            let expr = self.settle(expr, item.pos)?;
            self.check_groupable(&expr, item.pos)?;
            let fields = match expr {
                Expr::Row(fields, _) => fields,
                expr => vec![expr],
            };
            for expr in fields {
                if !keys.contains(&expr) {
                    keys.push(expr);
                }
            }
        }
        Ok(keys)
    }

    fn frame(
        &mut self,
        frame: &ast::Frame,
        order: &[SortKey],
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Result<Frame> {
        if frame.mode == FrameMode::Groups && order.is_empty() {
            return Err(windowing("GROUPS mode requires an ORDER BY clause", pos));
        }
        let has_offset = |b: &ast::FrameBound| {
            matches!(
                b,
                ast::FrameBound::Preceding(_) | ast::FrameBound::Following(_)
            )
        };
        let offsets = has_offset(&frame.start) || has_offset(&frame.end);
        if frame.mode == FrameMode::Range && offsets && order.len() != 1 {
            let message =
                "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column";
            return Err(windowing(message, pos));
        }
        let mut bound = |b: &ast::FrameBound| -> Result<FrameBound> {
            Ok(match b {
                ast::FrameBound::UnboundedPreceding => FrameBound::UnboundedPreceding,
                ast::FrameBound::CurrentRow => FrameBound::CurrentRow,
                ast::FrameBound::UnboundedFollowing => FrameBound::UnboundedFollowing,
                ast::FrameBound::Preceding(e) => {
                    FrameBound::Preceding(self.frame_offset(frame.mode, e, order, scope)?)
                }
                ast::FrameBound::Following(e) => {
                    FrameBound::Following(self.frame_offset(frame.mode, e, order, scope)?)
                }
            })
        };
        Ok(Frame {
            mode: frame.mode,
            start: bound(&frame.start)?,
            end: bound(&frame.end)?,
            between: frame.between,
            written: true,
            exclude: frame.exclude,
        })
    }

    fn frame_offset(
        &mut self,
        mode: FrameMode,
        ast: &ast::Expr,
        order: &[SortKey],
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let (what, clause) = match mode {
            FrameMode::Rows => ("ROWS", "window ROWS"),
            FrameMode::Range => ("RANGE", "window RANGE"),
            FrameMode::Groups => ("GROUPS", "window GROUPS"),
        };
        let bound = self.in_clause(Clause::Window(clause), |b| b.expr(ast, scope))?;
        let to = match mode {
            FrameMode::Range => range_offset_type(order, &bound, ast.pos)?,
            _ => SqlType::INT8,
        };
        let from = bound.type_oid();
        self.check_var_free(&bound, what, ast.pos, scope)?;
        let cast = self.try_coerce(bound, to, CastContext::Assignment, ast.pos)?;
        cast.ok_or_else(|| {
            let message = format!(
                "argument of {what} must be type {}, not type {}",
                type_name(to.oid),
                type_name(from)
            );
            Error::new(state::DATATYPE_MISMATCH, message).position(ast.pos + 1)
        })
    }

    /// The window that an OVER means, entered among the query's if it is a new one.
    fn over(&mut self, over: &Over, scope: &Scope<'_>) -> Result<u32> {
        let index = match over {
            Over::Named(name, pos) => self.base_window(name, *pos)?,
            Over::Spec(spec) => {
                let window = self.window(spec, true, scope)?;
                match self
                    .windows
                    .iter()
                    .position(|w| w.same_but_for_name(&window))
                {
                    Some(known) => known,
                    None => {
                        self.windows.push(window);
                        self.windows.len() - 1
                    }
                }
            }
        };
        Ok(index as u32)
    }

    /// `f(…) OVER …`
    pub(in crate::binder) fn window_call(
        &mut self,
        call: &ast::Call,
        over: &Over,
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let name = call.name.last();
        let wrong =
            |message: String| Err(Error::new(state::WRONG_OBJECT_TYPE, message).position(pos + 1));
        let unsupported = |message: &str| {
            Err(Error::new(state::FEATURE_NOT_SUPPORTED, message).position(pos + 1))
        };
        let Some(resolved) = self.resolve_call(call, pos, scope)? else {
            return wrong(format!(
                "OVER specified, but {name} is not a window function nor an aggregate function"
            ));
        };
        let mut resolved = resolved;
        let own = resolved.routine.take();
        let own = own.filter(|routine| routine.def.kind == RoutineKind::Aggregate);
        let agg = match (&resolved.callee, &own) {
            (_, Some(routine)) => {
                resolved.args.clone_from(&routine.args);
                Some(self.own_aggregate_of(routine, 0).map_err(|e| at(e, pos))?)
            }
            (Callee::Aggregate(agg), None) => Some(AggFunction::BuiltIn(agg)),
            _ => None,
        };
        if let Some(AggFunction::Own(own)) = &agg
            && !own.over_frame(false).keeps_state
        {
            let path = &self.search_path;
            let called = self.catalog().routine_signature(path, &own.def);
            let message =
                format!("aggregate function {called} does not support use as a window function");
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
        }
        let callee = match (agg, resolved.callee) {
            (Some(agg), _) if !agg.is_plain() => {
                return wrong(format!(
                    "WITHIN GROUP is required for ordered-set aggregate {name}"
                ));
            }
            (Some(agg), _) => {
                if resolved.args.is_empty() && !call.star {
                    return wrong(format!(
                        "{name}(*) must be used to call a parameterless aggregate function"
                    ));
                }
                window::Callee::Aggregate(agg)
            }
            (None, Callee::Window(function)) => window::Callee::Function(function),
            _ => {
                self.plain_call(call, pos)?;
                return wrong(format!(
                    "OVER specified, but {name} is not a window function nor an aggregate function"
                ));
            }
        };
        self.check_window_place(pos)?;
        if call.distinct {
            return unsupported("DISTINCT is not implemented for window functions");
        }
        if !call.order.is_empty() {
            return unsupported("aggregate ORDER BY is not implemented for window functions");
        }
        if call.filter.is_some() && matches!(callee, window::Callee::Function(_)) {
            return unsupported("FILTER is not implemented for non-aggregate window functions");
        }
        let filter = self.call_filter(call, scope)?;
        let window = self.over(over, scope)?;
        Ok(Expr::Window(Box::new(WindowCall {
            callee,
            args: resolved.args,
            filter,
            window,
            ty: resolved.ty,
        })))
    }

    fn check_window_place(&self, pos: Pos) -> Result<()> {
        let message = match self.clause {
            clause if clause.allows_windows() => return Ok(()),
            Clause::Aggregate => {
                let message = "aggregate function calls cannot contain window function calls";
                return Err(Error::new(state::GROUPING_ERROR, message).position(pos + 1));
            }
            Clause::WindowArgs => "window function calls cannot be nested".to_string(),
            Clause::Window(_) => {
                "window functions are not allowed in window definitions".to_string()
            }
            clause => format!("window functions are not allowed in {}", clause.name()),
        };
        Err(windowing(message, pos))
    }
}

/// The type of offset that suits a RANGE over this order, as PostgreSQL picks among its `in_range`
/// functions.
fn range_offset_type(order: &[SortKey], offset: &Expr, pos: Pos) -> Result<SqlType> {
    let Some(key) = order.first() else {
        return Err(Error::internal("RANGE with an offset and no order"));
    };
    let given = offset.type_oid();
    let column = match key.expr.type_oid() {
        oid::VARCHAR => oid::TEXT,
        column => column,
    };
    let fail = |message: String, hint: Option<&str>| {
        let error = Error::new(state::FEATURE_NOT_SUPPORTED, message).position(pos + 1);
        Err(match hint {
            Some(hint) => error.hint(hint),
            None => error,
        })
    };
    let known = range_offsets(column);
    if known.is_empty() {
        let message = format!(
            "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {}",
            type_name(column)
        );
        return fail(message, None);
    }
    let preferred = match given {
        oid::UNKNOWN => column,
        given => given,
    };
    let matching: Vec<_> = known
        .iter()
        .filter(|ty| can_coerce(given, **ty, CastContext::Implicit))
        .collect();
    match &matching[..] {
        [] => fail(
            format!(
                "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {} and offset type {}",
                type_name(column),
                type_name(given)
            ),
            Some("Cast the offset value to an appropriate type."),
        ),
        [only] => Ok(SqlType::plain(**only)),
        several if several.contains(&&preferred) => Ok(SqlType::plain(preferred)),
        _ => fail(
            format!(
                "RANGE with offset PRECEDING/FOLLOWING has multiple interpretations for column type {} and offset type {}",
                type_name(column),
                type_name(given)
            ),
            Some("Cast the offset value to the exact intended type."),
        ),
    }
}
