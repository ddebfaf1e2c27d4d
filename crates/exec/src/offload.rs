//! Threads that compute what takes long by itself, so that an event loop goes on with its other
//! sessions: single values, and what long statements mean.
//!
//! ```text
//! eval ─ long arguments, or longer than a turn ─► Suspension::Long ─► run: a thread computes ─► Effect::Computed ─► eval again, finds it
//! aggregate ─ the end of a long state ──────────► Suspension::Long ─► run: a thread computes ─► Ending ──────────► end again, finds it
//!                                                                 ▲ told when nobody waits any longer: cancel, timeout, a client gone
//! ```
//! The threads have a tenth of a loop's weight. There are as many as jobs, up to a bound; those
//! past it wait in order. A function that asks the session or the catalog for something cannot be
//! computed here, and is where it was asked for.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};

use throng_bind::expr::Expr;
use throng_catalog::{Catalog, written_type};
use throng_txn::CancelFlag;
use throng_types::{Datum, Error, Oid, Result, interrupt, stack};
use throng_values::func::string::length::fits;
use throng_values::func::{
    Cast, EvalContext, EvalHost, EvalResult, EvalStop, Function, ObjectKind, Operator, SetFn,
    SetIterator, UserType, WrittenType,
};
use tokio::sync::oneshot;

use crate::placement::Placement;
use crate::run::context::Env;
use crate::run::effects::Effect;
use crate::run::routine::CallPlace;
use crate::run::{Cx, Step, Suspension};

/// A tenth of an event loop's weight: nobody's statement stands still while the loops have all to
/// do.
const NICENESS: i32 = 10;

/// Values computed at a time, however many cores there are.
const MOST_THREADS: usize = 8;

/// What computes a value of its arguments and nothing else.
#[derive(Clone, Copy)]
pub enum Callee {
    Function(&'static Function),
    Operator(&'static Operator),
    Cast(&'static Cast),
    /// A function of the items of an array, the last argument.
    Spread(&'static Function),
    /// A comparison with the items of an array: ANY, or ALL.
    Items {
        op: &'static Operator,
        all: bool,
    },
    /// Gives rows.
    Set(&'static Function, SetFn),
}

impl PartialEq for Callee {
    fn eq(&self, other: &Callee) -> bool {
        match (self, other) {
            (Callee::Function(a), Callee::Function(b)) | (Callee::Spread(a), Callee::Spread(b)) => {
                std::ptr::eq(*a, *b)
            }
            (Callee::Operator(a), Callee::Operator(b)) => std::ptr::eq(*a, *b),
            (Callee::Cast(a), Callee::Cast(b)) => std::ptr::eq(*a, *b),
            (Callee::Items { op: a, all }, Callee::Items { op: b, all: every }) => {
                std::ptr::eq(*a, *b) && all == every
            }
            (Callee::Set(a, _), Callee::Set(b, _)) => std::ptr::eq(*a, *b),
            _ => false,
        }
    }
}

/// What copies its arguments or looks at a part of them, as `pg_proc` calls it.
const QUICK: [&str; 17] = [
    "textcat",
    "byteacat",
    "array_append",
    "array_prepend",
    "array_cat",
    "array_ndims",
    "array_lower",
    "array_upper",
    "array_length",
    "cardinality",
    "octet_length",
    "jsonb_typeof",
    "jsonb_array_length",
    "jsonb_array_element",
    "jsonb_array_element_text",
    "jsonb_object_field",
    "jsonb_object_field_text",
];

impl Callee {
    #[inline]
    fn is_for_another_thread(self, args: &[Datum]) -> bool {
        interrupt::is_for_another_thread(args) && !self.is_quick(args)
    }

    #[cold]
    fn is_quick(self, args: &[Datum]) -> bool {
        /// Bytes that are copied in some tens of microseconds.
        const FEW: usize = 1 << 20;
        let name = match self {
            Callee::Function(func) => func.name,
            Callee::Operator(op) => op.code_name,
            Callee::Cast(_) | Callee::Spread(_) | Callee::Items { .. } | Callee::Set(..) => {
                return false;
            }
        };
        let few = |value: &Datum| match value {
            Datum::Text(text) | Datum::Json(text) => text.len() <= FEW,
            Datum::Bytea(bytes) => bytes.len() <= FEW,
            Datum::Base(value) => value.bytes.len() <= FEW,
            Datum::Array(array) => array.items.len() <= FEW / size_of::<Datum>(),
            // A part of it is found by halving, and seldom much of it.
            Datum::Jsonb(json) => json.as_bytes().len() <= 16 * FEW,
            _ => true,
        };
        QUICK.contains(&name) && args.iter().all(few)
    }

    #[inline]
    fn call(self, cx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
        match self {
            Callee::Function(func) => func.call(cx, args),
            Callee::Operator(op) => op.call(cx, args),
            Callee::Cast(cast) => cast.apply(cx, &args[0]),
            Callee::Spread(func) => {
                let mut values = args.to_vec();
                if let Some(Datum::Array(array)) = values.pop() {
                    fits(array.items.len() * size_of::<Datum>())?;
                    values.extend_from_slice(&array.items);
                }
                func.call(cx, &values)
            }
            Callee::Items { op, all } => op.call_on_items(cx, args[0].clone(), &args[1], all),
            Callee::Set(..) => Err(Error::internal("rows where a value is asked for").into()),
        }
    }

    fn outcome(self, cx: &EvalContext<'_>, args: &[Datum]) -> Result<Outcome, EvalStop> {
        match self {
            Callee::Set(_, start) => {
                let rows = Mutex::new(Some(start(cx, args)?));
                Ok(Outcome::Rows(Arc::new(rows)))
            }
            other => Ok(Outcome::Value(other.call(cx, args)?)),
        }
    }
}

/// What a call gave.
#[derive(Clone)]
pub enum Outcome {
    Value(Datum),
    /// For who takes them first.
    Rows(Arc<Mutex<Option<SetIterator>>>),
    /// Nothing: it asks the session, and so is called by it.
    AsksSession,
}

/// Where a call stands: its arguments in the plan, and the place in the log of effects where their
/// evaluation began.
#[derive(Clone, Copy)]
pub struct Site<'e> {
    pub args: &'e [Expr],
    /// Another argument, which is no neighbour of those.
    pub other: Option<&'e Expr>,
    pub at: usize,
}

impl Site<'_> {
    /// The place by which an answer is found where the arguments may be others when they are
    /// computed again.
    fn place(&self) -> Option<CallPlace> {
        let varies = |e: &Expr| throng_bind::fold::is_volatile(e) || matches!(e, Expr::SubPlan(_));
        let mut args = self.args.iter().chain(self.other);
        let vary = args.any(|arg| arg.any(&mut |e| varies(e)));
        vary.then(|| CallPlace {
            call: self.args.as_ptr().addr(),
            at: self.at,
        })
    }
}

/// A value that is to be computed elsewhere.
pub enum Long {
    /// It is left among the effects.
    Call(LongCall),
    /// It is left in its place.
    End(LongEnd),
}

/// A call whose arguments are long, or that took long.
pub struct LongCall {
    callee: Callee,
    args: Vec<Datum>,
    place: Option<CallPlace>,
}

/// The end of an aggregate that has gathered much. It asks nothing of the session.
pub struct LongEnd {
    compute: End,
    value: Arc<OnceLock<Datum>>,
}

type End = Box<dyn FnOnce(&EvalContext<'_>) -> EvalResult + Send>;

/// Where an aggregate's value is, once it has stopped for it.
#[derive(Default)]
pub struct Ending(Option<Arc<OnceLock<Datum>>>);

impl Ending {
    /// The value, where it was computed elsewhere.
    pub fn value(&self) -> Option<Datum> {
        self.0.as_ref()?.get().cloned()
    }

    /// Computes it, elsewhere if that `is_long`: it is then found by [`Ending::value`].
    pub fn compute(
        &mut self,
        is_long: bool,
        cx: &Cx,
        compute: impl FnOnce(&EvalContext<'_>) -> EvalResult + Send + 'static,
    ) -> Step<Datum> {
        if !is_long || !interrupt::is_shared() {
            return Ok(compute(&cx.eval)?);
        }
        let (compute, value) = (Box::new(compute), Arc::default());
        self.0 = Some(Arc::clone(&value));
        let end = LongEnd { compute, value };
        Err(Suspension::Long(Box::new(Long::End(end))))
    }
}

/// What a call has given elsewhere whose arguments may be others by now.
#[inline]
pub fn answered(site: Site<'_>, cx: &Cx) -> Option<Datum> {
    match cx.env.effects.has_more() {
        false => None,
        true => {
            let is_value = |had: &Outcome| matches!(had, Outcome::Value(_));
            match cx.env.effects.computed_at(site.place()?, is_value)? {
                Outcome::Value(value) => Some(value),
                Outcome::Rows(_) | Outcome::AsksSession => None,
            }
        }
    }
}

/// Calls a function here if that does not take long, else finds what it has given elsewhere, or
/// stops for it.
#[inline]
pub fn call(callee: Callee, args: &[Datum], site: Site<'_>, cx: &Cx) -> Step<Datum> {
    if callee.is_for_another_thread(args) || cx.env.effects.has_more() {
        return found_or_stop(callee, args, site, cx);
    }
    match interrupt::bounded(|| callee.call(&cx.eval, args)) {
        Some(value) => Ok(value?),
        None => found_or_stop(callee, args, site, cx),
    }
}

/// The rows of a function, begun here if that does not take long.
pub fn start(
    func: &'static Function,
    begin: SetFn,
    args: &[Datum],
    site: Site<'_>,
    cx: &Cx,
) -> Step<SetIterator> {
    let callee = Callee::Set(func, begin);
    if cx.env.effects.has_more() {
        let had = match site.place() {
            Some(place) => cx.env.effects.computed_at(place, |_| true),
            None => found(callee, args, site, cx),
        };
        match had {
            Some(Outcome::Rows(rows)) => {
                let rows = rows.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Some(rows) = rows {
                    return Ok(rows);
                }
            }
            Some(Outcome::AsksSession) => return Ok(begin(&cx.eval, args)?),
            Some(Outcome::Value(_)) | None => {}
        }
    }
    let here = match interrupt::is_for_another_thread(args) {
        true => None,
        false => interrupt::bounded(|| begin(&cx.eval, args)),
    };
    match here {
        Some(rows) => Ok(rows?),
        None => Err(long(callee, args, site)),
    }
}

/// What was computed last for these arguments, or for others at the same place where they may vary.
fn found(callee: Callee, args: &[Datum], site: Site<'_>, cx: &Cx) -> Option<Outcome> {
    cx.env.effects.computed(|had, of, place| {
        let same = || of.len() == args.len() && of.iter().zip(args).all(|(a, b)| is_same(a, b));
        had == callee && (same() || place.is_some() && place == site.place())
    })
}

#[cold]
fn long(callee: Callee, args: &[Datum], site: Site<'_>) -> Suspension {
    Suspension::Long(Box::new(Long::Call(LongCall {
        callee,
        args: args.to_vec(),
        place: site.place(),
    })))
}

/// Whether two values are one; long ones are compared only where they are not the same in memory.
fn is_same(a: &Datum, b: &Datum) -> bool {
    match (a, b) {
        (Datum::Bytea(a), Datum::Bytea(b)) => Arc::ptr_eq(a, b) || a == b,
        (Datum::Array(a), Datum::Array(b)) => Arc::ptr_eq(a, b) || a == b,
        (Datum::Record(a), Datum::Record(b)) => Arc::ptr_eq(a, b) || a == b,
        (a, b) => a == b,
    }
}

#[cold]
fn found_or_stop(callee: Callee, args: &[Datum], site: Site<'_>, cx: &Cx) -> Step<Datum> {
    match found(callee, args, site, cx) {
        Some(Outcome::Value(value)) => return Ok(value),
        Some(Outcome::AsksSession) => return Ok(callee.call(&cx.eval, args)?),
        Some(Outcome::Rows(_)) | None => {}
    }
    let here = match callee.is_for_another_thread(args) {
        true => None,
        false => interrupt::bounded(|| callee.call(&cx.eval, args)),
    };
    match here {
        Some(value) => Ok(value?),
        None => Err(long(callee, args, site)),
    }
}

impl Long {
    /// Computes it elsewhere and leaves the value where it is looked for.
    ///
    /// # Errors
    /// The function's, and what interrupts the statement.
    pub async fn answer(self, env: Env<'_>) -> Result<()> {
        match self {
            Long::Call(call) => call.answer(env).await,
            Long::End(LongEnd { compute, value }) => {
                let computed = aside(move |eval| compute(&eval), env.eval, None, env.cancel);
                leave(computed.await?, &value)
            }
        }
    }

    /// The same on the calling thread, which nobody else needs.
    pub fn answer_here(self, env: Env<'_>) -> Result<()> {
        match self {
            Long::Call(call) => call.answer_here(env),
            Long::End(LongEnd { compute, value }) => {
                let computed = compute(&env.eval).map_err(EvalStop::into_error)?;
                leave(Some(computed), &value)
            }
        }
    }
}

fn leave(computed: Option<Datum>, at: &OnceLock<Datum>) -> Result<()> {
    let computed = computed.ok_or_else(|| Error::internal("an aggregate's end that asks"))?;
    at.get_or_init(|| computed);
    Ok(())
}

impl LongCall {
    async fn answer(self, env: Env<'_>) -> Result<()> {
        let LongCall {
            callee,
            args,
            place,
        } = self;
        let args: Arc<[Datum]> = args.into();
        let value = match run(callee, args.clone(), env).await? {
            Some(value) => value,
            None => Outcome::AsksSession,
        };
        env.effects.record(Effect::Computed {
            callee,
            args,
            value,
            place,
        });
        Ok(())
    }

    fn answer_here(self, env: Env<'_>) -> Result<()> {
        let value = self.callee.outcome(&env.eval, &self.args);
        env.effects.record(Effect::Computed {
            callee: self.callee,
            args: self.args.into(),
            value: value.map_err(EvalStop::into_error)?,
            place: self.place,
        });
        Ok(())
    }
}

/// Nobody waits any longer once it is dropped.
struct Wanted(Arc<AtomicBool>);

impl Drop for Wanted {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The value, computed on one of the threads; None where the function asks the session.
async fn run(callee: Callee, args: Arc<[Datum]>, env: Env<'_>) -> Result<Option<Outcome>> {
    let work = move |eval: EvalContext<'_>| callee.outcome(&eval, &args);
    aside(work, env.eval, None, env.cancel).await
}

/// What `work` gives on one of the threads; None where it asks the session. It may ask the
/// `definitions`, where they are all that the session's names mean.
///
/// # Errors
/// Its own, and what interrupts the statement.
pub async fn aside<T: Send + 'static>(
    work: impl FnOnce(EvalContext<'_>) -> Result<T, EvalStop> + Send + 'static,
    eval: EvalContext<'_>,
    definitions: Option<Arc<Catalog>>,
    cancel: &CancelFlag,
) -> Result<Option<T>> {
    cancel.check()?;
    let wanted = Wanted(Arc::default());
    let unwanted = wanted.0.clone();
    let format = eval.format.clone();
    let host = Outside {
        transaction: eval.host.transaction_timestamp(),
        statement: eval.host.statement_timestamp(),
        definitions,
        asked: AtomicBool::new(false),
    };
    let (tell, told) = oneshot::channel();
    pool().give(Box::new(move || {
        if unwanted.load(Ordering::Relaxed) {
            return;
        }
        let value = interrupt::until(&unwanted, || {
            let host_and_format = EvalContext {
                host: &host,
                format: &format,
            };
            work(host_and_format)
        });
        // It may have been given up meanwhile.
        let _ = tell.send(without_session(value, &host));
    }));
    let answer = async {
        told.await
            .map_err(|_| Error::internal("a computation ended by a panic"))?
    };
    let value = cancel.guard(answer).await;
    drop(wanted);
    value
}

fn without_session<T>(value: Result<T, EvalStop>, host: &Outside) -> Result<Option<T>> {
    match value {
        _ if host.asked.load(Ordering::Relaxed) => Ok(None),
        Ok(value) => Ok(Some(value)),
        Err(EvalStop::Error(e)) => Err(e),
        Err(EvalStop::Wait(_)) => Ok(None),
    }
}

/// The cores that the threads may use: they are started by event loops, each bound to its own.
static PLACEMENT: OnceLock<Placement> = OnceLock::new();

/// Says on which cores values are computed.
pub fn place(placement: &Placement) {
    // The first server of a process has its way.
    let _ = PLACEMENT.set(placement.clone());
}

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
}

struct Pool {
    queue: Mutex<Queue>,
    more: Condvar,
}

fn pool() -> &'static Pool {
    static POOL: Pool = Pool {
        queue: Mutex::new(Queue {
            jobs: VecDeque::new(),
            threads: 0,
            idle: 0,
        }),
        more: Condvar::new(),
    };
    &POOL
}

impl Pool {
    fn give(&'static self, job: Job) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.jobs.push_back(job);
        if queue.idle < queue.jobs.len() && queue.threads < MOST_THREADS {
            let thread = std::thread::Builder::new()
                .name("values".into())
                .stack_size(stack::SIZE)
                .spawn(|| self.work());
            // Without it the others come to the job in time; the first is tried again with the next
            // job.
            if thread.is_ok() {
                queue.threads += 1;
            }
        }
        drop(queue);
        self.more.notify_one();
    }

    fn work(&self) {
        if let Some(placement) = PLACEMENT.get() {
            placement.confine();
        }
        // Best effort: without it the loops share their cores with this thread.
        let _ = throng_sync::come_after(NICENESS);
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match queue.jobs.pop_front() {
                Some(job) => {
                    drop(queue);
                    // A panic ends the job, whose session is told, and not the thread.
                    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
                    queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
                }
                None => {
                    queue.idle += 1;
                    queue = self
                        .more
                        .wait(queue)
                        .unwrap_or_else(PoisonError::into_inner);
                    queue.idle -= 1;
                }
            }
        }
    }
}

/// What stands for the session where there is none: it knows the time, and notes that it was asked
/// for more.
struct Outside {
    transaction: i64,
    statement: i64,
    definitions: Option<Arc<Catalog>>,
    asked: AtomicBool,
}

impl Outside {
    fn asked<T>(&self) -> Result<T, EvalStop> {
        self.asked.store(true, Ordering::Relaxed);
        Err(EvalStop::Error(Error::internal("a session's affair")))
    }
    fn unknown<T: Default>(&self) -> T {
        self.asked.store(true, Ordering::Relaxed);
        T::default()
    }
}

impl EvalHost for Outside {
    fn transaction_timestamp(&self) -> i64 {
        self.transaction
    }
    fn statement_timestamp(&self) -> i64 {
        self.statement
    }
    fn current_user(&self) -> String {
        self.unknown()
    }
    fn session_user(&self) -> String {
        self.unknown()
    }
    fn current_database(&self) -> String {
        self.unknown()
    }
    fn current_schemas(&self, _: bool) -> Vec<String> {
        self.unknown()
    }
    fn backend_pid(&self) -> i32 {
        self.unknown()
    }
    fn show_setting(&self, _: &str) -> Option<String> {
        self.unknown()
    }
    fn set_setting(&self, _: &str, _: Option<&str>, _: bool) -> Result<String, EvalStop> {
        self.asked()
    }
    fn transaction_id(&self, _: bool) -> Result<Option<u64>, EvalStop> {
        self.asked()
    }
    fn random_bits(&self) -> u64 {
        self.unknown()
    }
    fn seed_random(&self, _: f64) -> Result<(), EvalStop> {
        self.asked()
    }
    fn nextval(&self, _: Oid) -> Result<i64, EvalStop> {
        self.asked()
    }
    fn currval(&self, _: Oid) -> Result<i64, EvalStop> {
        self.asked()
    }
    fn lastval(&self) -> Result<i64, EvalStop> {
        self.asked()
    }
    fn setval(&self, _: Oid, _: i64, _: bool) -> Result<i64, EvalStop> {
        self.asked()
    }
    fn parse_type(&self, name: &str) -> Result<WrittenType> {
        written_type(name)
    }
    fn object_oid(&self, _: ObjectKind, _: &str) -> Result<Oid, EvalStop> {
        self.asked()
    }
    fn object_name(&self, _: ObjectKind, _: Oid) -> Option<String> {
        self.unknown()
    }
    fn user_type(&self, oid: Oid) -> Option<Arc<dyn UserType>> {
        match &self.definitions {
            Some(definitions) => Some(definitions.user_type(oid)?),
            None => self.unknown(),
        }
    }
    fn check_in_domain(&self, _: Oid, _: &Datum) -> Result<()> {
        self.asked().map_err(EvalStop::into_error)
    }
    fn transition_table(&self, _: &str) -> Option<throng_values::func::TransitionTable> {
        match self.definitions {
            Some(_) => None,
            None => self.unknown(),
        }
    }
    fn warn(&self, _: Error) {
        self.asked.store(true, Ordering::Relaxed);
    }
    fn system_function(&self, _: &str, _: &[Datum]) -> EvalResult {
        self.asked()
    }
}
