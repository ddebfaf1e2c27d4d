//! Bound expressions: names resolved, every operator and cast chosen, every node typed.
//!
//! One type serves two stages. The binder produces `Var`, `Aggregate`, `Subquery` and `Default`
//! nodes, which speak of range-table entries; the planner replaces every one of them by `Slot`
//! (a place in the operator's input row), `Outer` (a value an enclosing operator provides) or
//! `SubPlan`. Executors meet only the second kind.

mod order;
pub mod own;
mod row;
mod same;

pub(crate) use order::{IN_ORDER, sort_by_arguments};
pub use own::{OwnForm, Written};
pub use same::same_term;

use std::sync::Arc;

use throng_types::error::state;
use throng_types::sqltype::made;
use throng_types::{Datum, Error, Oid, SqlType, Text};

use crate::tree::aggregate::AggFunction;
use crate::tree::query::Query;
use crate::tree::window::{Callee, WindowCall};
use throng_catalog::RoutineDef;
use throng_values::func::RelColumn;
use throng_values::func::{Cast, CastContext, Function, Operator};

/// A range-table entry's number, unique within a statement, subqueries included: so a variable
/// from outside a query is simply one whose entry the query does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelId(pub u32);

/// A value provided by an enclosing operator: correlation and nested-loop parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ParamId(pub u32);

/// A column of a range-table entry. `column` counts from 0; those of system columns are negative,
/// see [`system`].
#[derive(Clone, Debug, PartialEq)]
pub struct Var {
    pub rel: RelId,
    pub column: i16,
    pub ty: SqlType,
}

/// Attribute numbers of system columns, PostgreSQL's.
pub mod system {
    pub const CTID: i16 = -1;
    pub const XMIN: i16 = -2;
    pub const CMIN: i16 = -3;
    pub const XMAX: i16 = -4;
    pub const CMAX: i16 = -5;
    pub const TABLEOID: i16 = -6;
    /// Not a table's: what MERGE did to the row that it returns.
    pub const MERGE_ACTION: i16 = -7;
    /// Of an entry of FROM that is no table: whether it has a row, which an outer join may leave it
    /// without.
    pub const PRESENT: i16 = -8;

    /// What a table's column of this number is called, if it is one of these.
    pub fn name(column: i16) -> Option<&'static str> {
        Some(match column {
            CTID => "ctid",
            XMIN => "xmin",
            CMIN => "cmin",
            XMAX => "xmax",
            CMAX => "cmax",
            TABLEOID => "tableoid",
            _ => return None,
        })
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    Const(Datum, SqlType),
    /// Before planning: a column, by attribute number (from 1; negative: [`system`]).
    Var(Var),
    /// After planning: a place in the input row.
    Slot(u32, SqlType),
    /// A client's parameter; 0 is `$1`.
    Param(u16, SqlType),
    /// After planning: a value set by an enclosing operator.
    Outer(ParamId, SqlType),
    /// A function that gives one value.
    Call {
        func: &'static Function,
        args: Vec<Expr>,
        ty: SqlType,
    },
    /// A set-returning function in a select list: rows of `ProjectSet`.
    SetCall {
        func: &'static Function,
        args: Vec<Expr>,
        ty: SqlType,
    },
    /// A function that a user made, giving one value.
    Routine(Box<RoutineCall>),
    /// One that gives several, in a select list.
    SetRoutine(Box<RoutineCall>),
    /// As the last argument of a call: the items of an array as so many arguments.
    Variadic(Box<Expr>),
    /// An operator with its one or two operands.
    Op {
        op: &'static Operator,
        args: Vec<Expr>,
        ty: SqlType,
    },
    /// A user's operator or cast: a function by another name, which planning puts in its place.
    Own(Box<OwnForm>),
    /// A type conversion: `cast` where the types differ, then `to`'s modifier
    /// ([`throng_values::io::typmod::apply`], cutting to length where `context` is explicit).
    Cast {
        arg: Box<Expr>,
        cast: Option<&'static Cast>,
        to: SqlType,
        context: CastContext,
    },
    /// A value of a domain's base type that must be as the domain asks.
    ToDomain(Box<Expr>, Arc<DomainRules>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Not(Box<Expr>),
    IsNull(Box<Expr>),
    IsNotNull(Box<Expr>),
    /// `IS [NOT] TRUE/FALSE/UNKNOWN`.
    IsBool {
        arg: Box<Expr>,
        /// None: UNKNOWN.
        value: Option<bool>,
        negated: bool,
    },
    /// `IS DISTINCT FROM`; negated: `IS NOT DISTINCT FROM`.
    IsDistinct {
        equal: &'static Operator,
        left: Box<Expr>,
        right: Box<Expr>,
        negated: bool,
    },
    /// With an operand, conditions refer to it as [`Expr::CaseOperand`] of the innermost CASE.
    Case {
        operand: Option<Box<Expr>>,
        whens: Vec<(Expr, Expr)>,
        default: Box<Expr>,
        ty: SqlType,
    },
    CaseOperand(SqlType),
    Coalesce(Vec<Expr>, SqlType),
    NullIf {
        equal: &'static Operator,
        left: Box<Expr>,
        right: Box<Expr>,
        ty: SqlType,
    },
    /// GREATEST and LEAST; NULLs are passed over.
    MinMax {
        greatest: bool,
        less: &'static Operator,
        args: Vec<Expr>,
        ty: SqlType,
    },
    /// `left op ANY/ALL (array)`; also IN and NOT IN over a list.
    ArrayCompare {
        op: &'static Operator,
        left: Box<Expr>,
        array: Box<Expr>,
        all: bool,
    },
    /// `ARRAY[…]` of `ty`'s element type.
    Array(Vec<Expr>, SqlType),
    /// `array[subscript]`, NULL outside the bounds.
    Subscript {
        array: Box<Expr>,
        index: Box<Expr>,
        ty: SqlType,
    },
    /// A field of a row, by its place among those that exist.
    Field {
        row: Box<Expr>,
        index: u16,
        ty: SqlType,
    },
    /// An array's item by several subscripts, or a slice of it.
    Items {
        array: Box<Expr>,
        place: ValuePart,
        ty: SqlType,
    },
    /// A value with a part of it replaced.
    Replace {
        base: Box<Expr>,
        place: ValuePart,
        value: Box<Expr>,
    },
    /// `ROW(…)`, or a whole row, whose fields have names.
    Row(Vec<Expr>, Option<Arc<[Text]>>),
    /// Before planning: an aggregate's result.
    Aggregate(Box<AggCall>),
    /// Before planning: `GROUPING(…)`, a bit for each argument that the row's grouping set leaves
    /// out.
    Grouping(Vec<Expr>),
    /// Before planning: the value of a window function.
    Window(Box<WindowCall>),
    /// Before planning: a subquery.
    Subquery(Box<Subquery>),
    /// After planning: a subquery's result. `args` are set before it runs.
    SubPlan(Box<SubPlanRef>),
    /// After planning: what is the same for all rows of one execution.
    Once(Box<ComputedOnce>),
}

/// An expression without input row that is computed when it is first asked for, and kept for the
/// execution.
#[derive(Clone, Debug, PartialEq)]
pub struct ComputedOnce {
    /// Its number in the statement.
    pub number: u32,
    pub expr: Expr,
}

/// A function that a user made, as one call uses it.
#[derive(Clone, Debug, PartialEq)]
pub struct RoutineCall {
    pub def: Arc<RoutineDef>,
    /// For each input argument, cast to what it is in this call.
    pub args: Vec<Expr>,
    pub ty: SqlType,
    /// The columns of what it returns; empty where that is a value.
    pub columns: Vec<RelColumn>,
    /// The value as an expression over the arguments, which are its parameters: where the body is
    /// no more than that.
    pub inline: Option<Arc<Expr>>,
}

impl RoutineCall {
    /// It returns records that only the call can tell the columns of.
    pub fn returns_any_record(&self) -> bool {
        self.def.ret == throng_types::oid::RECORD
            && self.def.row_of.is_none()
            && self.def.outputs().next().is_none()
    }
}

/// A part of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum ValuePart {
    /// An array's item, by a subscript for each dimension.
    Item(Vec<Expr>),
    /// What lies between subscripts, for each dimension; none: as far as the array goes.
    Slice {
        lower: Vec<Option<Expr>>,
        upper: Vec<Option<Expr>>,
    },
    /// A row's field, with the types and names of all.
    Field {
        index: u16,
        fields: Arc<[(Oid, Text)]>,
    },
}

impl ValuePart {
    fn for_each<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        match self {
            ValuePart::Item(at) => at.iter().for_each(f),
            ValuePart::Slice { lower, upper } => lower.iter().chain(upper).flatten().for_each(f),
            ValuePart::Field { .. } => {}
        }
    }
    fn for_each_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        match self {
            ValuePart::Item(at) => at.iter_mut().for_each(f),
            ValuePart::Slice { lower, upper } => {
                lower.iter_mut().chain(upper).flatten().for_each(f);
            }
            ValuePart::Field { .. } => {}
        }
    }
}

/// What a value must be to be of a domain or an array of one. Conditions are over the value as
/// `Slot(0)`; they are no part of the expression that the rules stand in.
#[derive(Clone, Debug, PartialEq)]
pub struct DomainRules {
    pub domain: Oid,
    pub not_null: bool,
    pub checks: Vec<DomainRule>,
    /// Those for the items of an array.
    pub items: Option<Arc<DomainRules>>,
}

impl DomainRules {
    #[cold]
    fn refused(&self, state: throng_types::error::SqlState, message: String) -> Error {
        let mut error = Error::new(state, message);
        error.fields_mut().data_type = Some(made::mark(self.domain));
        error
    }

    /// 23502
    #[cold]
    pub fn refuses_null(&self) -> Error {
        let message = format!(
            "domain {} does not allow null values",
            made::mark(self.domain)
        );
        self.refused(state::NOT_NULL_VIOLATION, message)
    }

    /// 23514
    #[cold]
    pub fn violated(&self, rule: &DomainRule) -> Error {
        let message = format!(
            "value for domain {} violates check constraint \"{}\"",
            made::mark(self.domain),
            rule.name
        );
        self.refused(state::CHECK_VIOLATION, message)
            .constraint(&rule.name)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct DomainRule {
    pub name: String,
    pub expr: Expr,
}

/// One aggregate in a query.
#[derive(Clone, Debug, PartialEq)]
pub struct AggCall {
    pub agg: AggFunction,
    /// Of an ordered-set aggregate: evaluated once a group.
    pub direct: Vec<Expr>,
    pub args: Vec<Expr>,
    pub distinct: bool,
    pub order: Vec<SortKey>,
    pub filter: Option<Expr>,
    pub ty: SqlType,
}

/// One key of an ORDER BY.
#[derive(Clone, Debug, PartialEq)]
pub struct SortKey {
    pub expr: Expr,
    pub descending: bool,
    pub nulls_first: bool,
}

/// A subquery in an expression, before planning.
#[derive(Clone, Debug, PartialEq)]
pub struct Subquery {
    pub query: Query,
    pub kind: SubqueryKind,
    pub ty: SqlType,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SubqueryKind {
    Exists,
    /// More than one row is 21000.
    Scalar,
    /// `ARRAY(SELECT …)`.
    Array,
    /// `(left…) op ANY (SELECT …)`; IN is `= ANY`. Columns are compared pairwise and ANDed.
    Any {
        left: Vec<Expr>,
        compare: Vec<&'static Operator>,
    },
    /// `left op ALL (SELECT …)`; NOT IN is `NOT (= ANY)`.
    All {
        left: Vec<Expr>,
        compare: Vec<&'static Operator>,
    },
}

/// A planned subquery.
#[derive(Clone, Debug, PartialEq)]
pub struct SubPlanRef {
    /// Index into the statement's `subplans`.
    pub plan: u32,
    pub kind: SubPlanKind,
    /// Correlation: expressions over the current row, by the parameter they set. Empty: the
    /// subquery runs at most once in a statement (PostgreSQL's InitPlan).
    pub args: Vec<(ParamId, Expr)>,
    pub ty: SqlType,
    /// Set where equal arguments may give another answer or have another effect: the subquery
    /// is correlated and calls volatile functions or locks rows, so it runs for each row anew.
    pub volatile: Option<VolatileSubPlan>,
}

/// What else begins anew with a volatile subquery.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VolatileSubPlan {
    /// The shared WITH queries inside that read the outer row, as indexes into `subplans`.
    pub ctes: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SubPlanKind {
    Exists,
    Scalar,
    Array,
    /// `left[i] compare[i] column i`, ANDed over i, with SQL's three values over the rows.
    Any {
        left: Vec<Expr>,
        compare: Vec<&'static Operator>,
    },
    All {
        left: Vec<Expr>,
        compare: Vec<&'static Operator>,
    },
}

impl Expr {
    /// The row that it is where it is one at all.
    pub fn row_alone(&self) -> &Expr {
        self.row_if_there().map_or(self, |(row, _)| row)
    }

    /// A whole row of an entry that an outer join may leave without one: the row, and the entry.
    pub fn row_if_there(&self) -> Option<(&Expr, RelId)> {
        let Expr::Case {
            operand: None,
            whens,
            default,
            ..
        } = self
        else {
            return None;
        };
        match &whens[..] {
            [(Expr::IsNull(place), none)] if none.is_null_const() => match &**place {
                Expr::Var(var) if matches!(var.column, system::CTID | system::PRESENT) => {
                    Some((default, var.rel))
                }
                _ => None,
            },
            _ => None,
        }
    }

    pub fn bool(value: bool) -> Expr {
        Expr::Const(Datum::Bool(value), SqlType::BOOL)
    }
    pub fn null(ty: SqlType) -> Expr {
        Expr::Const(Datum::Null, ty)
    }
    pub fn int4(value: i32) -> Expr {
        Expr::Const(Datum::Int4(value), SqlType::INT4)
    }

    /// The type of the value.
    pub fn ty(&self) -> SqlType {
        match self {
            Expr::Const(_, ty)
            | Expr::Slot(_, ty)
            | Expr::Param(_, ty)
            | Expr::Outer(_, ty)
            | Expr::Call { ty, .. }
            | Expr::SetCall { ty, .. }
            | Expr::Op { ty, .. }
            | Expr::Cast { to: ty, .. }
            | Expr::Case { ty, .. }
            | Expr::CaseOperand(ty)
            | Expr::Coalesce(_, ty)
            | Expr::NullIf { ty, .. }
            | Expr::MinMax { ty, .. }
            | Expr::Array(_, ty)
            | Expr::Field { ty, .. }
            | Expr::Items { ty, .. }
            | Expr::Subscript { ty, .. } => *ty,
            Expr::Routine(call) | Expr::SetRoutine(call) => call.ty,
            Expr::Variadic(arg) => arg.ty(),
            Expr::Row(..) => SqlType::RECORD,
            Expr::Var(var) => var.ty,
            Expr::ToDomain(value, _) | Expr::Replace { base: value, .. } => value.ty(),
            Expr::Aggregate(agg) => agg.ty,
            Expr::Window(call) => call.ty,
            Expr::Own(form) => form.value.ty(),
            Expr::Grouping(_) => SqlType::INT4,
            Expr::Subquery(sub) => sub.ty,
            Expr::SubPlan(sub) => sub.ty,
            Expr::Once(once) => once.expr.ty(),
            Expr::And(_)
            | Expr::Or(_)
            | Expr::Not(_)
            | Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::IsBool { .. }
            | Expr::IsDistinct { .. }
            | Expr::ArrayCompare { .. } => SqlType::BOOL,
        }
    }
    pub fn type_oid(&self) -> Oid {
        self.ty().oid
    }
    pub fn is_null_const(&self) -> bool {
        matches!(self, Expr::Const(Datum::Null, _))
    }
    pub fn is_true(&self) -> bool {
        matches!(self, Expr::Const(Datum::Bool(true), _))
    }

    /// The conjuncts of a condition, flattened.
    pub fn conjuncts(self, into: &mut Vec<Expr>) {
        match self {
            Expr::And(parts) => parts.into_iter().for_each(|p| p.conjuncts(into)),
            e if e.is_true() => {}
            e => into.push(e),
        }
    }
    /// The conjunction of `parts`; none is no condition.
    pub fn all_of(mut parts: Vec<Expr>) -> Option<Expr> {
        match parts.len() {
            0 => None,
            1 => parts.pop(),
            _ => Some(Expr::And(parts)),
        }
    }

    /// Calls `f` on each direct operand. Operands inside a subquery's own query are not among them.
    pub fn for_each_child<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        match self {
            Expr::Const(..)
            | Expr::Var(_)
            | Expr::Slot(..)
            | Expr::Param(..)
            | Expr::Outer(..)
            | Expr::CaseOperand(_)
            | Expr::Grouping(_) => {}
            Expr::Call { args, .. }
            | Expr::SetCall { args, .. }
            | Expr::Op { args, .. }
            | Expr::And(args)
            | Expr::Or(args)
            | Expr::Coalesce(args, _)
            | Expr::MinMax { args, .. }
            | Expr::Array(args, _)
            | Expr::Row(args, _) => args.iter().for_each(f),
            Expr::Routine(call) | Expr::SetRoutine(call) => call.args.iter().for_each(f),
            Expr::Cast { arg, .. }
            | Expr::Variadic(arg)
            | Expr::Field { row: arg, .. }
            | Expr::ToDomain(arg, _)
            | Expr::Not(arg)
            | Expr::IsNull(arg)
            | Expr::IsNotNull(arg)
            | Expr::IsBool { arg, .. } => f(arg),
            Expr::IsDistinct { left, right, .. } | Expr::NullIf { left, right, .. } => {
                f(left);
                f(right);
            }
            Expr::Case {
                operand,
                whens,
                default,
                ..
            } => {
                operand.iter().for_each(|e| f(e));
                for (when, then) in whens {
                    f(when);
                    f(then);
                }
                f(default);
            }
            Expr::ArrayCompare { left, array, .. } => {
                f(left);
                f(array);
            }
            Expr::Subscript { array, index, .. } => {
                f(array);
                f(index);
            }
            Expr::Items { array, place, .. } => {
                f(array);
                place.for_each(f);
            }
            Expr::Replace { base, place, value } => {
                f(base);
                place.for_each(f);
                f(value);
            }
            Expr::Aggregate(agg) => {
                agg.direct.iter().chain(&agg.args).for_each(&mut *f);
                agg.order.iter().for_each(|k| f(&k.expr));
                agg.filter.iter().for_each(f);
            }
            Expr::Window(call) => call.args.iter().chain(&call.filter).for_each(f),
            Expr::Subquery(sub) => match &sub.kind {
                SubqueryKind::Any { left, .. } | SubqueryKind::All { left, .. } => {
                    left.iter().for_each(f)
                }
                SubqueryKind::Exists | SubqueryKind::Scalar | SubqueryKind::Array => {}
            },
            Expr::Own(form) => f(&form.value),
            Expr::Once(once) => f(&once.expr),
            Expr::SubPlan(sub) => {
                sub.args.iter().for_each(|(_, e)| f(e));
                match &sub.kind {
                    SubPlanKind::Any { left, .. } | SubPlanKind::All { left, .. } => {
                        left.iter().for_each(f)
                    }
                    SubPlanKind::Exists | SubPlanKind::Scalar | SubPlanKind::Array => {}
                }
            }
        }
    }

    /// As [`Expr::for_each_child`], to change them.
    pub fn for_each_child_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        match self {
            Expr::Const(..)
            | Expr::Var(_)
            | Expr::Slot(..)
            | Expr::Param(..)
            | Expr::Outer(..)
            | Expr::CaseOperand(_)
            | Expr::Grouping(_) => {}
            Expr::Call { args, .. }
            | Expr::SetCall { args, .. }
            | Expr::Op { args, .. }
            | Expr::And(args)
            | Expr::Or(args)
            | Expr::Coalesce(args, _)
            | Expr::MinMax { args, .. }
            | Expr::Array(args, _)
            | Expr::Row(args, _) => args.iter_mut().for_each(f),
            Expr::Routine(call) | Expr::SetRoutine(call) => call.args.iter_mut().for_each(f),
            Expr::Cast { arg, .. }
            | Expr::Variadic(arg)
            | Expr::Field { row: arg, .. }
            | Expr::ToDomain(arg, _)
            | Expr::Not(arg)
            | Expr::IsNull(arg)
            | Expr::IsNotNull(arg)
            | Expr::IsBool { arg, .. } => f(arg),
            Expr::IsDistinct { left, right, .. } | Expr::NullIf { left, right, .. } => {
                f(left);
                f(right);
            }
            Expr::Case {
                operand,
                whens,
                default,
                ..
            } => {
                operand.iter_mut().for_each(|e| f(e));
                for (when, then) in whens {
                    f(when);
                    f(then);
                }
                f(default);
            }
            Expr::ArrayCompare { left, array, .. } => {
                f(left);
                f(array);
            }
            Expr::Subscript { array, index, .. } => {
                f(array);
                f(index);
            }
            Expr::Items { array, place, .. } => {
                f(array);
                place.for_each_mut(f);
            }
            Expr::Replace { base, place, value } => {
                f(base);
                place.for_each_mut(f);
                f(value);
            }
            Expr::Aggregate(agg) => {
                agg.direct.iter_mut().chain(&mut agg.args).for_each(&mut *f);
                agg.order.iter_mut().for_each(|k| f(&mut k.expr));
                agg.filter.iter_mut().for_each(f);
            }
            Expr::Window(call) => call.args.iter_mut().chain(&mut call.filter).for_each(f),
            Expr::Subquery(sub) => match &mut sub.kind {
                SubqueryKind::Any { left, .. } | SubqueryKind::All { left, .. } => {
                    left.iter_mut().for_each(f)
                }
                SubqueryKind::Exists | SubqueryKind::Scalar | SubqueryKind::Array => {}
            },
            Expr::Own(form) => f(&mut form.value),
            Expr::Once(once) => f(&mut once.expr),
            Expr::SubPlan(sub) => {
                sub.args.iter_mut().for_each(|(_, e)| f(e));
                match &mut sub.kind {
                    SubPlanKind::Any { left, .. } | SubPlanKind::All { left, .. } => {
                        left.iter_mut().for_each(f)
                    }
                    SubPlanKind::Exists | SubPlanKind::Scalar | SubPlanKind::Array => {}
                }
            }
        }
    }

    /// The user's function, aggregate, operator or cast that it is a call of.
    pub fn definition(&self) -> Option<Oid> {
        let aggregate = match self {
            Expr::Routine(call) | Expr::SetRoutine(call) => return Some(call.def.oid),
            Expr::Own(form) => return Some(form.definition()),
            Expr::Aggregate(call) => &call.agg,
            Expr::Window(call) => match &call.callee {
                Callee::Aggregate(agg) => agg,
                Callee::Function(_) => return None,
            },
            _ => return None,
        };
        aggregate.def().map(|def| def.oid)
    }

    /// A function that returns a set.
    pub fn is_set(&self) -> bool {
        matches!(self, Expr::SetCall { .. } | Expr::SetRoutine(_))
    }

    /// A domain's condition, over `Slot(0)`, with the value in its place.
    pub fn over_value(mut self, value: &Expr) -> Expr {
        if let Expr::Slot(0, _) = self {
            return value.clone();
        }
        self.for_each_child_mut(&mut |e| {
            *e = std::mem::replace(e, Expr::bool(true)).over_value(value);
        });
        self
    }

    /// Whether `test` holds for this node or any below it.
    pub fn any(&self, test: &mut dyn FnMut(&Expr) -> bool) -> bool {
        if test(self) {
            return true;
        }
        let mut found = false;
        self.for_each_child(&mut |e| found = found || e.any(test));
        found
    }
}
