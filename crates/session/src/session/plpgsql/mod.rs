//! Running bodies in PL/pgSQL.
//!
//! A call is a [`Machine`]: values of variables, a place in the code, the loops and handlers it is
//! inside. It runs instruction by instruction ([`step`]) and holds nothing of the session, so that
//! a call that stands alone (CALL, DO) can stop where it commits and go on in the next transaction.
//! Texts are bound when they first run and kept with the body by the session; they are good while
//! the definitions, the settings and the shapes of the rows in sight are the same ([`bound_text`]).
//! Expressions that read no table are evaluated at once, without a plan.

mod bound_text;
mod call;
mod command;
mod cursor;
mod in_place;
mod loops;
mod nonatomic;
mod raise;
mod record;
mod rows;
mod step;
mod trigger;
mod weight;

pub(super) use nonatomic::may_end;
pub(super) use record::is_row;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use throng_bind::binder::RowShape;
use throng_bind::expr::Expr;
use throng_catalog::RoutineDef;
use throng_exec::drive::KeptRows;
use throng_syntax::plpgsql::{Code, Held, Pc, Slot};
use throng_txn::Snapshot;
use throng_types::{Datum, Error, Oid, SqlType};
use throng_values::func::RelColumn;

use super::SharedCatalog;
use super::statement::plans::PlanKey;
use bound_text::BoundText;
use loops::Loop;
use throng_exec::run::context::Memory;
use throng_exec::trigger::TriggerCall;

type Casts = HashMap<(SqlType, SqlType, Option<Oid>), Option<Rc<Expr>>>;

/// A body that was read, with what was bound of it.
pub(super) struct Compiled {
    /// None: DO.
    def: Option<Arc<RoutineDef>>,
    /// As errors name it: `f(integer)`.
    label: String,
    code: Code,
    /// By the text's number.
    kept: Vec<RefCell<Option<Rc<BoundText>>>>,
    /// How values become others' types: from, to, and the domain.
    casts: RefCell<Casts>,
}

/// What a body was read for.
#[derive(PartialEq, Eq, Hash)]
struct CompiledKey {
    routine: Oid,
    types: Vec<SqlType>,
    result: Vec<SqlType>,
}

/// A call under way, for who asks where it is.
struct Frame {
    label: String,
    line: Cell<u32>,
    what: Cell<&'static str>,
    /// The statement of SQL that it runs.
    sql: RefCell<Option<Rc<str>>>,
}

/// Bodies of a session that are kept; past them it begins anew.
const MOST_BODIES: usize = 300;

/// What a session knows of PL/pgSQL.
#[derive(Default)]
pub(super) struct Procedures {
    compiled: RefCell<HashMap<CompiledKey, Rc<Compiled>>>,
    frames: RefCell<Vec<Rc<Frame>>>,
    /// Numbers of cursors that have no name of their own.
    cursors: Cell<u32>,
    /// Bytes that the variables of calls under way hold.
    held: Rc<Cell<usize>>,
}

impl Procedures {
    /// The statement has ended, however it did.
    pub fn ended(&self) {
        self.frames.borrow_mut().clear();
    }
}

/// The definitions that the expressions in hand go by.
#[derive(Clone)]
struct Now {
    catalog: SharedCatalog,
    key: PlanKey,
}

/// A block with handlers that the call is inside.
struct Active {
    /// The instruction that it began with.
    at: Pc,
    /// The place of its savepoint.
    savepoint: usize,
    loops: usize,
    errors: usize,
}

/// What is to come back.
#[derive(Clone, Debug, PartialEq)]
enum Wanted {
    Nothing,
    Value(Held),
    Row(Vec<RelColumn>),
    AnyRow,
    /// A row of the relation whose trigger it is.
    Trigger,
}

/// A call under way.
struct Machine {
    compiled: Rc<Compiled>,
    frame: Rc<Frame>,
    pc: Pc,
    values: Vec<Datum>,
    weights: weight::Weights,
    types: Vec<SqlType>,
    /// Of records that have held a row.
    shapes: Vec<Option<RowShape>>,
    loops: Vec<Loop>,
    tries: Vec<Active>,
    /// The errors that are being handled, innermost last.
    errors: Vec<Error>,
    row_count: u64,
    wanted: Wanted,
    set: bool,
    rows: KeptRows,
    columns: Vec<RelColumn>,
    /// What its statements see: none, what there is when each begins.
    caller: Option<Snapshot>,
    /// It stands alone and may end the transaction.
    alone: bool,
    /// The call that it has made and waits for.
    calling: Option<nonatomic::Calling>,
    trigger: Option<Arc<TriggerCall>>,
    memory: Memory,
    now: Option<Now>,
    /// What expressions see.
    snapshot: Option<Snapshot>,
}

impl Machine {
    fn held(&self, slot: Slot) -> Held {
        let variable = &self.compiled.code.variables[usize::from(slot)];
        Held {
            ty: self.types[usize::from(slot)],
            domain: variable.held.domain,
        }
    }
    fn name(&self, slot: Slot) -> &str {
        &self.compiled.code.variables[usize::from(slot)].name
    }
    fn set_found(&mut self, found: bool) {
        let slot = self.compiled.code.special.found;
        self.values[usize::from(slot)] = Datum::Bool(found);
    }
    /// Something ran that others' changes, or its own, may be seen after.
    fn stale(&mut self) {
        self.now = None;
        self.snapshot = None;
    }
}

/// How a run ended.
enum Outcome {
    Done,
    /// Another call is to run before this one goes on.
    Call(Box<Machine>),
    Commit {
        chain: bool,
    },
    Rollback {
        chain: bool,
    },
}
