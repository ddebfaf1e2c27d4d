//! Expressions of a plan as SQL text, for people to read: slots by the names of the columns in
//! them.

use throng_bind::expr::{AggCall, Expr, RoutineCall, SortKey, system};
use throng_bind::query::JoinKind;
use throng_bind::window::{Exclude, Frame, FrameBound, FrameMode, WindowCall};
use throng_catalog::{TableDef, VirtualTable};
use throng_plan::{AggregateNode, WindowNode};
use throng_types::lexical::{quote_ident, quote_literal};
use throng_types::sqltype::{format_type, made};
use throng_types::{Datum, SqlType, interrupt};
use throng_values::func::sqljson::{self, Spec};
use throng_values::func::{EvalContext, ObjectKind, written};
use throng_values::io::to_text;

/// The names of a row's columns, and how constants beside them are written.
pub(super) struct Names<'c> {
    columns: Vec<String>,
    eval: EvalContext<'c>,
}

fn column_name(table: &TableDef, column: i16) -> String {
    match system::name(column) {
        Some(name) => name.to_owned(),
        None => table.columns[column as usize - 1].name.clone(),
    }
}

/// Around the number of a parameter that somebody above may know a name for.
const MARK: char = '\u{1}';

/// A text with the parameters of which `known` tells written out; `last`: those that nobody knows
/// by their numbers.
pub(super) fn with_params(text: &str, known: &[(u32, String)], last: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, part) in text.split(MARK).enumerate() {
        // Numbers are every other part, as marks come in pairs.
        let number = part.parse::<u32>().ok().filter(|_| at % 2 == 1);
        match number.map(|n| known.iter().find(|(id, _)| *id == n).ok_or(n)) {
            None => out.push_str(part),
            Some(Ok((_, name))) => out.push_str(name),
            Some(Err(n)) if last => out.push_str(&format!("${n}")),
            Some(Err(n)) => out.push_str(&format!("{MARK}{n}{MARK}")),
        }
    }
    out
}

impl<'c> Names<'c> {
    fn new(columns: impl Iterator<Item = String>, eval: EvalContext<'c>) -> Names<'c> {
        let columns = columns.collect();
        Names { columns, eval }
    }

    pub fn numbered(count: usize, eval: EvalContext<'c>) -> Names<'c> {
        Names::new((1..=count).map(|n| format!("column{n}")), eval)
    }

    pub fn repeated(name: &str, count: usize, eval: EvalContext<'c>) -> Names<'c> {
        match count {
            1 => Names::new(std::iter::once(name.to_owned()), eval),
            _ => Names::new((1..=count).map(|n| format!("{name}.column{n}")), eval),
        }
    }

    pub fn of_columns(table: &TableDef, columns: &[i16], eval: EvalContext<'c>) -> Names<'c> {
        let names = columns.iter().map(|c| column_name(table, *c));
        Names::new(names.map(|name| quote_ident(&name)), eval)
    }

    /// The same under the name of their relation, if that is to be said.
    pub fn under(mut self, alias: Option<&str>) -> Names<'c> {
        if let Some(alias) = alias {
            let alias = quote_ident(alias);
            self.columns
                .iter_mut()
                .for_each(|name| name.insert_str(0, &format!("{alias}.")));
        }
        self
    }

    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Of a joined row what the join gives on: semi- and anti-joins the left side's `width`
    /// columns.
    pub fn joined(mut self, kind: JoinKind, width: usize) -> Names<'c> {
        if matches!(kind, JoinKind::Semi | JoinKind::Anti) {
            self.columns.truncate(width);
        }
        self
    }

    /// Some of the columns; none asked for: all.
    pub fn picked(self, slots: &[u32]) -> Names<'c> {
        match slots {
            [] => self,
            some => {
                let picked = some.iter().map(|s| self.columns[*s as usize].clone());
                Names::new(picked, self.eval)
            }
        }
    }

    pub fn of_virtual(table: &VirtualTable, columns: &[i16], eval: EvalContext<'c>) -> Names<'c> {
        let name = |c: &i16| match usize::try_from(*c - 1)
            .ok()
            .and_then(|at| table.columns.get(at))
        {
            Some((name, _)) => (*name).to_owned(),
            None => "tableoid".to_owned(),
        };
        Names::new(columns.iter().map(|c| quote_ident(&name(c))), eval)
    }

    pub fn join(mut self, right: Names<'c>) -> Names<'c> {
        self.columns.extend(right.columns);
        self
    }

    pub fn project(&self, exprs: &[Expr]) -> Names<'c> {
        Names::new(exprs.iter().map(|e| self.text(e)), self.eval)
    }

    pub fn aggregate(&self, node: &AggregateNode) -> Names<'c> {
        let group = node.group.iter().map(|e| self.text(e));
        let groupings = node.groupings.iter().map(|places| {
            let args = places.iter().map(|at| self.text(&node.group[*at as usize]));
            format!("GROUPING({})", args.collect::<Vec<_>>().join(", "))
        });
        let calls = node.aggs.iter().map(|call| self.call(call));
        Names::new(group.chain(calls).chain(groupings), self.eval)
    }

    /// The row with a window's values at its end.
    pub fn windowed(self, node: &WindowNode) -> Names<'c> {
        let calls = node.calls.iter().map(|call| self.window_call(call, node));
        let calls: Vec<String> = calls.collect();
        let calls = Names::new(calls.into_iter(), self.eval);
        self.join(calls)
    }

    fn window_call(&self, call: &WindowCall, node: &WindowNode) -> String {
        let aggregate = matches!(call.callee, throng_bind::window::Callee::Aggregate(_));
        let args = match call.args.is_empty() && aggregate {
            true => "*".to_owned(),
            false => self.list(&call.args, ", "),
        };
        format!("{}({args}) OVER {}", call.callee.name(), node.name)
    }

    /// `w AS (PARTITION BY …)`.
    pub fn window(&self, node: &WindowNode) -> String {
        let mut parts = Vec::new();
        if !node.partition.is_empty() {
            parts.push(format!("PARTITION BY {}", self.list(&node.partition, ", ")));
        }
        if !node.order.is_empty() {
            // PostgreSQL leaves the directions to the sort below.
            let keys: Vec<String> = node.order.iter().map(|k| self.text(&k.expr)).collect();
            parts.push(format!("ORDER BY {}", keys.join(", ")));
        }
        if node.frame.written {
            parts.push(self.frame(&node.frame));
        }
        format!("{} AS ({})", node.name, parts.join(" "))
    }

    fn frame(&self, frame: &Frame) -> String {
        let mode = match frame.mode {
            FrameMode::Rows => "ROWS",
            FrameMode::Range => "RANGE",
            FrameMode::Groups => "GROUPS",
        };
        let bound = |bound: &FrameBound| match bound {
            FrameBound::UnboundedPreceding => "UNBOUNDED PRECEDING".to_owned(),
            FrameBound::Preceding(e) => format!("{} PRECEDING", self.text(e)),
            FrameBound::CurrentRow => "CURRENT ROW".to_owned(),
            FrameBound::Following(e) => format!("{} FOLLOWING", self.text(e)),
            FrameBound::UnboundedFollowing => "UNBOUNDED FOLLOWING".to_owned(),
        };
        let exclude = match frame.exclude {
            Exclude::Nothing => "",
            Exclude::CurrentRow => " EXCLUDE CURRENT ROW",
            Exclude::Group => " EXCLUDE GROUP",
            Exclude::Ties => " EXCLUDE TIES",
        };
        let start = bound(&frame.start);
        match frame.between {
            true => format!("{mode} BETWEEN {start} AND {}{exclude}", bound(&frame.end)),
            false => format!("{mode} {start}{exclude}"),
        }
    }

    pub fn condition(
        &self,
        label: &'static str,
        condition: Option<&Expr>,
    ) -> Option<(&'static str, String)> {
        condition.map(|condition| (label, self.text(condition)))
    }

    pub fn sort_key(&self, key: &SortKey) -> String {
        let mut text = self.text(&key.expr);
        if key.descending {
            text.push_str(" DESC");
        }
        // Each direction's own place for NULLs goes without saying.
        if key.nulls_first != key.descending {
            text.push_str(if key.nulls_first {
                " NULLS FIRST"
            } else {
                " NULLS LAST"
            });
        }
        text
    }

    fn call(&self, call: &AggCall) -> String {
        let distinct = if call.distinct { "DISTINCT " } else { "" };
        let args = if call.args.is_empty() {
            "*".to_owned()
        } else {
            self.list(&call.args, ", ")
        };
        format!("{}({distinct}{args})", call.agg.name())
    }

    fn routine(&self, call: &RoutineCall) -> String {
        format!("{}({})", call.def.name, self.list(&call.args, ", "))
    }

    fn list(&self, exprs: &[Expr], separator: &str) -> String {
        exprs
            .iter()
            .map(|e| self.text(e))
            .collect::<Vec<_>>()
            .join(separator)
    }

    pub fn text(&self, expr: &Expr) -> String {
        match expr {
            Expr::Const(value, ty) => self.constant(value, *ty),
            Expr::Slot(at, _) => self
                .columns
                .get(*at as usize)
                .cloned()
                .unwrap_or_else(|| format!("column{}", at + 1)),
            Expr::Param(at, _) => format!("${}", at + 1),
            Expr::Outer(param, _) => format!("{MARK}{}{MARK}", param.0),
            Expr::Call { func, args, .. } if **func == sqljson::CALL => {
                let (spec, args) = args.split_at(1.min(args.len()));
                let name = match spec {
                    [Expr::Const(spec, _)] => Spec::of(spec).map_or(func.name, |s| s.name()),
                    _ => func.name,
                };
                format!("{name}({})", self.list(args, ", "))
            }
            Expr::Call { func, args, .. }
                if written::has_words(func) && func.name == "timezone" =>
            {
                match &args[..] {
                    [zone, value] => {
                        format!("({} AT TIME ZONE {})", self.text(value), self.text(zone))
                    }
                    _ => format!("({} AT LOCAL)", self.list(args, ", ")),
                }
            }
            Expr::Call { func, args, .. } | Expr::SetCall { func, args, .. } => {
                format!("{}({})", func.name, self.list(args, ", "))
            }
            Expr::Routine(call) | Expr::SetRoutine(call) => self.routine(call),
            Expr::Own(form) => self.text(&form.value),
            Expr::Variadic(arg) => format!("VARIADIC {}", self.text(arg)),
            Expr::Op { op, args, .. } => match &args[..] {
                [arg] => format!("({} {})", op.name, self.text(arg)),
                [left, right] => format!("({} {} {})", self.text(left), op.name, self.text(right)),
                _ => op.name.to_owned(),
            },
            Expr::Cast { arg, to, .. } => {
                format!("({})::{}", self.text(arg), self.type_name(*to))
            }
            Expr::And(parts) => format!("({})", self.list(parts, " AND ")),
            Expr::Or(parts) => format!("({})", self.list(parts, " OR ")),
            Expr::Not(arg) => format!("(NOT {})", self.text(arg)),
            Expr::IsNull(arg) => format!("({} IS NULL)", self.text(arg)),
            Expr::IsNotNull(arg) => format!("({} IS NOT NULL)", self.text(arg)),
            Expr::IsBool {
                arg,
                value,
                negated,
            } => {
                let not = if *negated { "NOT " } else { "" };
                let value = match value {
                    Some(true) => "TRUE",
                    Some(false) => "FALSE",
                    None => "UNKNOWN",
                };
                format!("({} IS {not}{value})", self.text(arg))
            }
            Expr::IsDistinct {
                left,
                right,
                negated,
                ..
            } => {
                let not = if *negated { "NOT " } else { "" };
                format!(
                    "({} IS {not}DISTINCT FROM {})",
                    self.text(left),
                    self.text(right)
                )
            }
            Expr::Case {
                operand,
                whens,
                default,
                ..
            } => {
                let operand = operand
                    .as_ref()
                    .map(|e| format!(" {}", self.text(e)))
                    .unwrap_or_default();
                let whens: String = whens
                    .iter()
                    .map(|(when, then)| {
                        format!(" WHEN {} THEN {}", self.text(when), self.text(then))
                    })
                    .collect();
                format!("CASE{operand}{whens} ELSE {} END", self.text(default))
            }
            Expr::CaseOperand(_) => "CASE_TEST_EXPR".to_owned(),
            Expr::Coalesce(args, _) => format!("COALESCE({})", self.list(args, ", ")),
            Expr::NullIf { left, right, .. } => {
                format!("NULLIF({}, {})", self.text(left), self.text(right))
            }
            Expr::MinMax { greatest, args, .. } => {
                let name = if *greatest { "GREATEST" } else { "LEAST" };
                format!("{name}({})", self.list(args, ", "))
            }
            Expr::ArrayCompare {
                op,
                left,
                array,
                all,
            } => {
                let word = if *all { "ALL" } else { "ANY" };
                format!(
                    "({} {} {word} ({}))",
                    self.text(left),
                    op.name,
                    self.text(array)
                )
            }
            Expr::Array(items, _) => format!("ARRAY[{}]", self.list(items, ", ")),
            Expr::Subscript { array, index, .. } => {
                format!("({})[{}]", self.text(array), self.text(index))
            }
            Expr::Row(items, _) => format!("ROW({})", self.list(items, ", ")),
            Expr::ToDomain(value, _) => self.text(value),
            Expr::Once(once) => self.text(&once.expr),
            Expr::Field { row, index, .. } => format!("({}).f{}", self.text(row), index + 1),
            Expr::Items { array, .. } => format!("({})[…]", self.text(array)),
            Expr::Replace { value, .. } => self.text(value),
            Expr::SubPlan(sub) => format!("(SubPlan {})", sub.plan + 1),
            Expr::Var(_)
            | Expr::Aggregate(_)
            | Expr::Window(_)
            | Expr::Grouping(_)
            | Expr::Subquery(_) => "?".to_owned(),
        }
    }

    fn type_name(&self, ty: SqlType) -> String {
        let made = made::is_made(ty.oid).then(|| {
            let host = self.eval.host;
            host.object_name(ObjectKind::Type, ty.oid)
        });
        made.flatten().unwrap_or_else(|| format_type(ty))
    }

    /// A constant as it would be written: numbers and truth values bare, the rest quoted with their
    /// type.
    fn constant(&self, value: &Datum, ty: SqlType) -> String {
        if interrupt::expect_text(value).is_err() {
            return String::new();
        }
        let type_name = self.type_name(SqlType::plain(ty.oid));
        let text = to_text(&self.eval, value, ty);
        match value {
            Datum::Null => format!("NULL::{type_name}"),
            Datum::Bool(b) => b.to_string(),
            Datum::Int4(n) if *n >= 0 => text,
            // With a point it cannot be taken for an integer.
            Datum::Numeric(_)
                if text.starts_with(|c: char| c.is_ascii_digit()) && text.contains('.') =>
            {
                text
            }
            _ => format!("{}::{type_name}", quote_literal(&text)),
        }
    }
}
