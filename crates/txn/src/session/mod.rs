//! Sessions as the transaction system knows them, and the core that they share.
//!
//! Of a session: its number, what it is doing, what may interrupt it, the snapshots and locks it
//! holds. The core knows all sessions, and each of them leads to it.

mod core;
mod live;

pub(crate) use self::core::Core;
pub use self::core::{LockReporter, TxnConfig};

use std::collections::HashMap;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use throng_sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering};

use throng_access::XidStatus;
use throng_observe::{Holder, PresentWait, SessionWaits};
use throng_sync::lock::{Mutex, RwLock};
use throng_sync::{WakerSlot, fetch_span_ahead, thread_index};
use throng_types::error::{Severity, state};
use throng_types::{Csn, Error, Result, Xid};

use crate::active::{Form, SessionIndex};
use crate::clock::SlotId;
use crate::lock::fast::FastWords;
use crate::lock::held::{HeldLocks, LockScope};
use crate::lock::wait::WaitOn;
use crate::lock::{LockMode, LockTag, WaitPolicy};
use crate::timer::{coarse_micros, now_micros, sleep_until};
use live::LiveSnapshots;

/// Who a session is.
#[derive(Clone, Debug, Default)]
pub struct SessionInfo {
    /// `pg_stat_activity.backend_type`, such as "client backend".
    pub backend_type: &'static str,
    pub user: String,
    pub user_oid: u32,
    pub database: String,
    /// The client's address, or `None` for a Unix socket or a session of the server's own.
    pub client_addr: Option<String>,
    pub client_port: Option<u16>,
    pub application_name: String,
    /// None: what client and server say goes over the network as it is.
    pub encryption: Option<Encryption>,
}

/// How a connection is encrypted, as `pg_stat_ssl` tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encryption {
    /// `TLSv1.3`
    pub version: &'static str,
    /// OpenSSL's name of the cipher suite.
    pub cipher: String,
    pub bits: i32,
}

/// `pg_stat_activity.state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SessionState {
    Idle = 0,
    Active = 1,
    IdleInTransaction = 2,
    IdleInFailedTransaction = 3,
}

impl SessionState {
    pub const fn name(self) -> &'static str {
        match self {
            SessionState::Idle => "idle",
            SessionState::Active => "active",
            SessionState::IdleInTransaction => "idle in transaction",
            SessionState::IdleInFailedTransaction => "idle in transaction (aborted)",
        }
    }
    fn from_raw(raw: u8) -> SessionState {
        match raw {
            1 => SessionState::Active,
            2 => SessionState::IdleInTransaction,
            3 => SessionState::IdleInFailedTransaction,
            _ => SessionState::Idle,
        }
    }
}

/// A registered session. Dropped, it gives back its session-level locks and its number.
pub struct Session {
    entry: Arc<SessionEntry>,
}

impl Session {
    pub(crate) fn new(entry: Arc<SessionEntry>) -> Session {
        Session { entry }
    }

    /// The number that stands for a PostgreSQL backend's process id.
    pub fn pid(&self) -> u32 {
        self.entry.pid
    }
    pub fn entry(&self) -> &Arc<SessionEntry> {
        &self.entry
    }
    pub fn cancel_flag(&self) -> &CancelFlag {
        &self.entry.cancel
    }
    /// How a transaction stands, for this session to tell.
    pub fn status(&self, xid: Xid) -> XidStatus {
        let status = self.entry.core.status.standing(xid).into();
        if let XidStatus::Committed(csn) = status {
            self.entry.has_seen(csn);
        }
        status
    }
    /// Takes a lock for the session, beyond any transaction: `pg_advisory_lock`. As often as it is
    /// taken it is to be given back. `false`: not free, and the policy is not to wait.
    pub async fn advisory_lock(
        &self,
        tag: LockTag,
        mode: LockMode,
        policy: WaitPolicy,
    ) -> Result<bool> {
        self.entry.lock(tag, mode, LockScope::Session, policy).await
    }
    /// `pg_advisory_unlock`. `false`: the session did not hold it.
    pub fn advisory_unlock(&self, tag: LockTag, mode: LockMode) -> bool {
        self.entry.unlock(tag, mode)
    }
    /// `pg_advisory_unlock_all`.
    pub fn advisory_unlock_all(&self) {
        self.entry.release_session_locks();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.entry.release_session_locks();
        let core = &self.entry.core;
        core.registry.remove(self.entry.pid);
        core.slots.release_all(self.entry.pid);
    }
}

/// A time that nobody has set.
const NOT_SET: u64 = u64::MAX;

/// The part of a session that others look at. What the session's own statements touch comes first,
/// close together and right behind the count of the entry's holders. What lies beside an entry in
/// memory is the same core's, which made it.
#[repr(C)]
pub struct SessionEntry {
    cancel: CancelFlag,
    core: Arc<Core>,
    waits: Arc<SessionWaits>,
    pub(crate) snapshots: Mutex<LiveSnapshots>,
    pub(crate) held: Mutex<HeldLocks>,
    activity: Activity,
    pub(crate) top_xid: AtomicU64,
    /// The newest commit that was seen before the disk had it.
    newest_seen: AtomicU64,
    pub(crate) slot: SlotId,
    /// Its number among those that a walk asks.
    pub(crate) place: SessionIndex,
    /// Transactions begun: the second half of a virtual transaction id.
    transactions: AtomicU32,
    pub(crate) in_transaction: AtomicU8,
    pub(crate) fast: FastWords,
    pid: u32,
    waiting: Mutex<Waits>,
    lock_timeout_ms: AtomicU64,
    deadlock_timeout_ms: AtomicU64,
    log_lock_waits: AtomicBool,
    backend_start: i64,
    info: Mutex<SessionInfo>,
}

/// Bytes of an entry from its beginning in which lies what most statements touch; of its words the
/// first few.
const TOUCHED: usize = std::mem::offset_of!(SessionEntry, fast) + FastWords::TOUCHED;

#[derive(Default)]
struct Waits {
    /// Goes up with every wait: two looks that see one number see one wait.
    number: u64,
    on: Option<WaitOn>,
}

struct Activity {
    state: AtomicU8,
    xact_start: AtomicI64,
    query_start: AtomicI64,
    state_change: AtomicI64,
    query: Mutex<String>,
}

/// A row of `pg_stat_activity`. Times in microseconds since 1970.
#[derive(Clone, Debug)]
pub struct SessionStatus {
    pub pid: u32,
    pub info: SessionInfo,
    pub state: SessionState,
    /// What it waits for now.
    pub wait: Option<PresentWait>,
    pub xid: Option<Xid>,
    /// The oldest snapshot held.
    pub snapshot: Option<Csn>,
    pub backend_start: i64,
    pub xact_start: Option<i64>,
    pub query_start: Option<i64>,
    pub state_change: i64,
    pub query: String,
}

impl SessionEntry {
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Has what most statements touch of it brought into the core's cache, for a statement that is
    /// about to come.
    #[inline]
    pub fn fetch_ahead(&self) {
        fetch_span_ahead(self, TOUCHED);
    }

    /// Its transaction has seen this commit.
    #[inline]
    pub(crate) fn has_seen(&self, csn: Csn) {
        if csn > self.core.clock.durable() {
            self.newest_seen.fetch_max(csn.0, Ordering::Relaxed);
        }
    }

    /// Waits until what its transaction has seen is on disk.
    pub async fn seen_is_durable(&self) -> Result<()> {
        let core = &self.core;
        let seen = Csn(self.newest_seen.load(Ordering::Relaxed));
        if seen > core.clock.durable() {
            // A commit's record is in the log before anybody sees it.
            core.wal.flush(core.wal.inserted()).await?;
        }
        Ok(())
    }
    pub fn cancel_flag(&self) -> &CancelFlag {
        &self.cancel
    }
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }
    /// `lock_timeout`; `None` waits for ever.
    pub fn set_lock_timeout(&self, timeout: Option<Duration>) {
        let ms = timeout.map_or(0, |t| t.as_millis().max(1) as u64);
        self.lock_timeout_ms.store(ms, Ordering::Relaxed);
    }
    pub(crate) fn lock_timeout(&self) -> Option<Duration> {
        match self.lock_timeout_ms.load(Ordering::Relaxed) {
            0 => None,
            ms => Some(Duration::from_millis(ms)),
        }
    }
    /// `deadlock_timeout` of this session alone; until then the server's holds.
    pub fn set_deadlock_timeout(&self, timeout: Duration) {
        self.deadlock_timeout_ms
            .store(timeout.as_millis() as u64, Ordering::Relaxed);
    }
    pub(crate) fn deadlock_timeout(&self) -> Duration {
        match self.deadlock_timeout_ms.load(Ordering::Relaxed) {
            NOT_SET => self.core.config.deadlock_timeout(),
            ms => Duration::from_millis(ms),
        }
    }

    /// `log_lock_waits`: the server's log is told of waits longer than the deadlock timeout.
    pub fn set_log_lock_waits(&self, on: bool) {
        self.log_lock_waits.store(on, Ordering::Relaxed);
    }
    pub(crate) fn logs_lock_waits(&self) -> bool {
        self.log_lock_waits.load(Ordering::Relaxed)
    }

    /// Counts a transaction that begins.
    pub(crate) fn count_transaction(&self) {
        // The session alone writes it.
        let begun = self.transactions.load(Ordering::Relaxed);
        self.transactions
            .store(begun.wrapping_add(1), Ordering::Relaxed);
    }

    /// What stands for the transaction while it has no id, as `pg_locks.virtualtransaction` shows
    /// it: the session's place and the transaction's number, 0 between transactions.
    pub fn virtual_transaction(&self) -> (u32, u32) {
        let open = self.in_transaction.load(Ordering::Relaxed) != 0;
        let number = self.transactions.load(Ordering::Relaxed);
        (self.slot.number(), if open { number } else { 0 })
    }

    /// The statement that runs, or ran last.
    pub fn query(&self) -> String {
        self.activity.query.lock().clone()
    }

    /// A statement begins `now`, in microseconds since 1970: state active, its text and time for
    /// `pg_stat_activity`.
    pub fn statement_began(&self, query: &str, now: i64) {
        self.activity.query_start.store(now, Ordering::Relaxed);
        self.activity.state_change.store(now, Ordering::Relaxed);
        self.activity
            .state
            .store(SessionState::Active as u8, Ordering::Relaxed);
        let mut text = self.activity.query.lock();
        text.clear();
        text.push_str(truncated(query));
    }

    pub fn set_state(&self, state: SessionState) {
        let before = self.activity.state_change.load(Ordering::Relaxed);
        let now = coarse_micros().max(before);
        self.activity.state_change.store(now, Ordering::Relaxed);
        self.activity.state.store(state as u8, Ordering::Relaxed);
    }

    /// When a transaction that begins now does: with its statement, where one runs.
    pub(crate) fn transaction_begins_at(&self) -> i64 {
        let activity = &self.activity;
        let runs = activity.state.load(Ordering::Relaxed) == SessionState::Active as u8;
        match activity.query_start.load(Ordering::Relaxed) {
            0 => now_micros(),
            _ if !runs => now_micros(),
            began => began,
        }
    }

    /// Where the session's waits are seen; its task runs in [`throng_observe::accounted`] with
    /// this.
    pub fn waits(&self) -> &Arc<SessionWaits> {
        &self.waits
    }

    pub fn update_info(&self, update: impl FnOnce(&mut SessionInfo)) {
        update(&mut self.info.lock());
    }

    /// When the transaction began, in microseconds since 1970.
    pub fn xact_start(&self) -> Option<i64> {
        non_zero(self.activity.xact_start.load(Ordering::Relaxed))
    }

    /// The running transaction's id, if it has one.
    pub(crate) fn top_xid(&self) -> Option<Xid> {
        Some(Xid(self.top_xid.load(Ordering::Acquire))).filter(|xid| !xid.is_none())
    }

    pub(crate) fn set_xact_start(&self, at: i64) {
        self.activity.xact_start.store(at, Ordering::Relaxed);
    }

    pub fn status(&self) -> SessionStatus {
        let activity = &self.activity;
        SessionStatus {
            pid: self.pid,
            info: self.info.lock().clone(),
            state: SessionState::from_raw(activity.state.load(Ordering::Relaxed)),
            wait: self.waits.present().or_else(|| self.waits_for_lock()),
            xid: self.top_xid(),
            snapshot: self.snapshots.lock().oldest(),
            backend_start: self.backend_start,
            xact_start: self.xact_start(),
            query_start: non_zero(activity.query_start.load(Ordering::Relaxed)),
            state_change: activity.state_change.load(Ordering::Relaxed),
            query: activity.query.lock().clone(),
        }
    }

    /// What the session waits for, and the wait's number.
    pub(crate) fn waiting(&self) -> Option<(u64, WaitOn)> {
        let waits = self.waiting.lock();
        waits.on.clone().map(|on| (waits.number, on))
    }

    /// The transaction it waits for, and since when.
    pub(crate) fn waits_for_xid(&self) -> Option<(Xid, i64)> {
        match self.waiting()?.1 {
            WaitOn::Xid { xid, node, .. } => Some((xid, node.since)),
            WaitOn::Lock { .. } | WaitOn::Holders { .. } => None,
        }
    }

    /// For a session whose task is not accounted for: only its locks are known.
    fn waits_for_lock(&self) -> Option<PresentWait> {
        let (event, object) = self.waiting()?.1.event();
        Some(PresentWait {
            event,
            object,
            since: 0,
            holder: Holder::NONE,
        })
    }

    pub(crate) fn note_waiting(&self, on: WaitOn) {
        let mut waits = self.waiting.lock();
        waits.number += 1;
        waits.on = Some(on);
    }

    pub(crate) fn note_not_waiting(&self) {
        self.waiting.lock().on = None;
    }
}

/// As much of a statement as `pg_stat_activity` keeps (`track_activity_query_size`).
fn truncated(query: &str) -> &str {
    const KEEP: usize = 1024;
    &query[..query.floor_char_boundary(KEEP)]
}

fn non_zero(value: i64) -> Option<i64> {
    Some(value).filter(|&v| v != 0)
}

/// Why a statement is to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CancelReason {
    /// The client's cancel request, `pg_cancel_backend`.
    UserRequest = 1,
    /// `statement_timeout`.
    StatementTimeout = 2,
    /// The server stops, or `pg_terminate_backend`: the session ends.
    Terminate = 4,
    /// Nobody is there to take the answer: the session ends.
    ClientLeft = 8,
}

/// The reasons that end a session, not its statement alone.
const ENDS_SESSION: u32 = CancelReason::Terminate as u32 | CancelReason::ClientLeft as u32;

/// What interrupts a session: looked at between rows, and by every wait.
pub struct CancelFlag {
    reasons: AtomicU32,
    /// The statement's deadline, in nanoseconds after `base`; 0: none.
    deadline: AtomicU64,
    /// It is the transaction's: past it the session ends.
    ends_session: AtomicBool,
    base: Instant,
    waker: WakerSlot,
}

impl Default for CancelFlag {
    fn default() -> CancelFlag {
        CancelFlag {
            reasons: AtomicU32::new(0),
            deadline: AtomicU64::new(0),
            ends_session: AtomicBool::new(false),
            base: Instant::now(),
            waker: WakerSlot::new(),
        }
    }
}

impl CancelFlag {
    /// Interrupts the session's statement, asleep or not.
    pub fn raise(&self, reason: CancelReason) {
        // SeqCst, and before the wake-up: who registers its waker and then looks sees this or is
        // woken.
        self.reasons.fetch_or(reason as u32, Ordering::SeqCst);
        self.waker.wake();
    }

    /// `statement_timeout` for the statement that begins.
    pub fn set_deadline(&self, at: Option<Instant>) {
        let nanos = at.map_or(0, |at| {
            at.saturating_duration_since(self.base).as_nanos().max(1) as u64
        });
        self.ends_session.store(false, Ordering::Relaxed);
        self.deadline.store(nanos, Ordering::Relaxed);
    }

    /// `transaction_timeout`, where it is over before the statement's time is: the session ends
    /// then.
    pub fn set_transaction_deadline(&self, at: Instant) {
        if self.deadline().is_some_and(|own| own <= at) {
            return;
        }
        self.set_deadline(Some(at));
        self.ends_session.store(true, Ordering::Relaxed);
    }

    pub fn deadline(&self) -> Option<Instant> {
        match self.deadline.load(Ordering::Relaxed) {
            0 => None,
            nanos => Some(self.base + Duration::from_nanos(nanos)),
        }
    }

    /// The statement is over: what was meant for it does not hit the next. What ends the session
    /// stays.
    pub fn statement_ended(&self) {
        self.deadline.store(0, Ordering::Relaxed);
        if self.reasons.load(Ordering::Relaxed) != 0 {
            self.reasons.fetch_and(ENDS_SESSION, Ordering::SeqCst);
        }
    }

    /// An error if the statement is to stop. Two loads if it is not (and has no timeout): cheap
    /// enough for every few rows.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.reasons.load(Ordering::Relaxed) == 0 && self.deadline.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        self.check_slow()
    }

    #[cold]
    fn check_slow(&self) -> Result<()> {
        let reasons = self.reasons.load(Ordering::SeqCst);
        if reasons & ENDS_SESSION != 0 {
            return Err(self.terminated());
        }
        let timed_out = self.deadline().is_some_and(|at| Instant::now() >= at);
        if timed_out && self.ends_session.load(Ordering::Relaxed) {
            let message = "terminating connection due to transaction timeout";
            return Err(Error::new(state::TRANSACTION_TIMEOUT, message).severity(Severity::Fatal));
        }
        if timed_out || reasons & CancelReason::StatementTimeout as u32 != 0 {
            return Err(Error::new(
                state::QUERY_CANCELED,
                "canceling statement due to statement timeout",
            ));
        }
        if reasons & CancelReason::UserRequest as u32 != 0 {
            return Err(Error::new(
                state::QUERY_CANCELED,
                "canceling statement due to user request",
            ));
        }
        Ok(())
    }

    /// What a session that is to end tells its client.
    #[cold]
    pub fn terminated(&self) -> Error {
        let reasons = self.reasons.load(Ordering::Relaxed);
        let (code, message) = if reasons & CancelReason::ClientLeft as u32 == 0 {
            let message = "terminating connection due to administrator command";
            (state::ADMIN_SHUTDOWN, message)
        } else {
            (state::CONNECTION_FAILURE, "connection to client lost")
        };
        Error::new(code, message).severity(Severity::Fatal)
    }

    /// Whether the session is to end.
    pub fn is_terminated(&self) -> bool {
        self.reasons.load(Ordering::Relaxed) & ENDS_SESSION != 0
    }

    /// Whom to wake when something is raised: the session's one task. Register, then
    /// [`check`](CancelFlag::check).
    pub fn register(&self, waker: &Waker) {
        self.waker.register(waker);
    }

    /// Waits for `future`, or for an interruption (a deadline included), whichever is first.
    pub async fn guard<T>(&self, future: impl Future<Output = Result<T>>) -> Result<T> {
        let mut future = std::pin::pin!(future);
        let mut timer = std::pin::pin!(None);
        std::future::poll_fn(|cx| {
            if let std::task::Poll::Ready(done) = future.as_mut().poll(cx) {
                return std::task::Poll::Ready(done);
            }
            self.register(cx.waker());
            self.check()?;
            if timer.is_none()
                && let Some(at) = self.deadline()
            {
                timer.set(Some(sleep_until((at + Duration::from_millis(1)).into())));
            }
            if let Some(timer) = timer.as_mut().as_pin_mut()
                && timer.poll(cx).is_ready()
            {
                self.check()?;
            }
            std::task::Poll::Pending
        })
        .await
    }
}

/// All sessions, by number.
pub(crate) struct Registry {
    sessions: RwLock<HashMap<u32, Arc<SessionEntry>>>,
    next_pid: AtomicU32,
}

impl Registry {
    pub(crate) fn new() -> Registry {
        // Numbers begin where a reader does not take them for counts.
        Registry {
            sessions: RwLock::default(),
            next_pid: AtomicU32::new(1001),
        }
    }

    pub(crate) fn add(&self, core: &Arc<Core>, info: SessionInfo) -> Arc<SessionEntry> {
        let now = now_micros();
        let slot = core.clock.add_slot(thread_index());
        let mut sessions = self.sessions.write();
        let pid = loop {
            let pid = self.next_pid.fetch_add(1, Ordering::Relaxed) & 0x7fff_ffff;
            if pid != 0 && !sessions.contains_key(&pid) {
                break pid;
            }
        };
        let entry = Arc::new(SessionEntry {
            pid,
            core: core.clone(),
            slot,
            place: core.running.enter(),
            snapshots: Mutex::default(),
            held: Mutex::default(),
            fast: FastWords::default(),
            waiting: Mutex::default(),
            waits: SessionWaits::new(pid),
            in_transaction: AtomicU8::new(0),
            top_xid: AtomicU64::new(0),
            newest_seen: AtomicU64::new(0),
            cancel: CancelFlag::default(),
            lock_timeout_ms: AtomicU64::new(0),
            deadlock_timeout_ms: AtomicU64::new(NOT_SET),
            log_lock_waits: AtomicBool::new(false),
            transactions: AtomicU32::new(0),
            backend_start: now,
            info: Mutex::new(info),
            activity: Activity {
                state: AtomicU8::new(SessionState::Idle as u8),
                xact_start: AtomicI64::new(0),
                query_start: AtomicI64::new(0),
                state_change: AtomicI64::new(now),
                query: Mutex::default(),
            },
        });
        sessions.insert(pid, entry.clone());
        entry
    }

    fn remove(&self, pid: u32) {
        self.sessions.write().remove(&pid);
    }

    pub(crate) fn get(&self, pid: u32) -> Option<Arc<SessionEntry>> {
        self.sessions.read().get(&pid).cloned()
    }

    pub(crate) fn each(&self, mut visit: impl FnMut(&Arc<SessionEntry>)) {
        self.sessions.read().values().for_each(&mut visit);
    }

    /// How many sessions are so, or `enough` if there are more.
    pub(crate) fn count_up_to(&self, enough: u32, is_so: impl Fn(&SessionEntry) -> bool) -> u32 {
        let sessions = self.sessions.read();
        let found = sessions.values().filter(|session| is_so(session));
        found.take(enough as usize).count() as u32
    }
}

impl Drop for SessionEntry {
    fn drop(&mut self) {
        self.core.clock.remove_slot(self.slot);
        self.core.running.leave(self.place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancel_hits_one_statement_and_a_termination_all() {
        let flag = CancelFlag::default();
        assert!(flag.check().is_ok());
        flag.raise(CancelReason::UserRequest);
        let error = flag.check().expect_err("cancelled");
        assert_eq!(
            (error.code(), error.message()),
            (
                state::QUERY_CANCELED,
                "canceling statement due to user request"
            )
        );
        flag.statement_ended();
        assert!(flag.check().is_ok());
        flag.set_deadline(Some(Instant::now()));
        assert_eq!(
            flag.check().expect_err("late").message(),
            "canceling statement due to statement timeout"
        );
        flag.statement_ended();
        assert!(flag.check().is_ok());
        flag.raise(CancelReason::Terminate);
        flag.statement_ended();
        assert_eq!(
            flag.check().expect_err("terminated").code(),
            state::ADMIN_SHUTDOWN
        );
    }

    #[test]
    fn a_long_query_is_kept_up_to_a_character() {
        let text = "é".repeat(1000);
        assert_eq!(truncated(&text).len(), 1024);
        assert_eq!(truncated("select 1"), "select 1");
        assert_eq!(truncated(&format!("x{text}")).len(), 1023);
    }
}
