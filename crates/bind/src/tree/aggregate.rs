//! The function of an aggregate's call: one that is built in, or one that a user made.
//!
//! A user's aggregate is computed by expressions. The state is `Slot(0)` of the row that they are
//! over; behind it are the aggregated arguments, or for what finishes the state the direct ones and
//! a NULL for each aggregated one that it asks for:
//!
//! ```text
//!   step      f(state, a, b)            over [state, a, b]
//!   inverse   g(state, a, b)            over [state, a, b]
//!   finish    h(state, direct, NULL)    over [state, direct…]
//! ```
//! These rows are their own: no variable of the query is in the expressions, and what walks a
//! query's expressions does not meet them.

use std::sync::Arc;

use throng_catalog::{AggregateKind, RoutineDef};
use throng_types::{Datum, SqlType};
use throng_values::func::Aggregate;

use super::expr::Expr;

#[derive(Clone, Debug, PartialEq)]
pub enum AggFunction {
    BuiltIn(&'static Aggregate),
    /// A user's, whose functions are those of one that is built in.
    Renamed(Arc<RoutineDef>, &'static Aggregate),
    Own(Arc<OwnAggregate>),
}

/// A user's aggregate, as one call uses it.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnAggregate {
    pub def: Arc<RoutineDef>,
    pub kind: AggregateKind,
    pub plain: Transition,
    /// For frames that move.
    pub moving: Option<Transition>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    pub state: SqlType,
    /// The state before any row; NULL where nobody said.
    pub init: Datum,
    pub step: Expr,
    /// Rows with a NULL are passed over, and without a first state the first value is that.
    pub strict: bool,
    pub inverse: Option<Expr>,
    pub finish: Option<Expr>,
    /// `finish` leaves the state as it is, so that it may be asked again.
    pub keeps_state: bool,
}

impl OwnAggregate {
    /// How it is computed over a window's frame, whose start moves or stays.
    pub fn over_frame(&self, moves: bool) -> &Transition {
        let moving = self.moving.as_ref();
        let better = moving.filter(|m| moves || m.keeps_state && !self.plain.keeps_state);
        better.unwrap_or(&self.plain)
    }
}

impl AggFunction {
    /// What computes it, if that is built in.
    pub fn built_in(&self) -> Option<&'static Aggregate> {
        match self {
            AggFunction::BuiltIn(agg) | AggFunction::Renamed(_, agg) => Some(agg),
            AggFunction::Own(_) => None,
        }
    }

    pub fn own(&self) -> Option<&OwnAggregate> {
        match self {
            AggFunction::Own(own) => Some(own),
            AggFunction::BuiltIn(_) | AggFunction::Renamed(..) => None,
        }
    }

    /// The definition of a user's.
    pub fn def(&self) -> Option<&Arc<RoutineDef>> {
        match self {
            AggFunction::BuiltIn(_) => None,
            AggFunction::Renamed(def, _) => Some(def),
            AggFunction::Own(own) => Some(&own.def),
        }
    }

    pub fn name(&self) -> &str {
        match self {
            AggFunction::BuiltIn(agg) => agg.name,
            AggFunction::Renamed(def, _) => &def.name,
            AggFunction::Own(own) => &own.def.name,
        }
    }

    /// Called without WITHIN GROUP.
    pub fn is_plain(&self) -> bool {
        match self {
            AggFunction::BuiltIn(agg) | AggFunction::Renamed(_, agg) => agg.kind.is_plain(),
            AggFunction::Own(own) => own.kind == AggregateKind::Normal,
        }
    }
}
