//! The schema `throng`: what was waited for and what is waited for now, where the time of the
//! running goes, and what was counted.

use throng_observe::Counter;
use throng_types::{Array, Datum, Oid, oid};

use super::{Rows, SystemState, row};
use crate::Catalog;

/// A row of `throng.waits`: one event on one object since the server started, or the last
/// `throng_reset_waits()`.
#[derive(Clone, Debug, Default)]
pub struct WaitInfo {
    pub event_type: &'static str,
    pub event: &'static str,
    /// What was waited for, in words.
    pub object: Option<String>,
    /// `session`, `background`, or `idle` for waits that hold nothing up.
    pub waiter: &'static str,
    pub count: u64,
    pub total_nanos: u64,
    pub p50_nanos: u64,
    pub p99_nanos: u64,
    pub max_nanos: u64,
    /// Who had it in the longest wait.
    pub holder: HolderInfo,
    /// What to change, in a sentence.
    pub remedy: Option<String>,
}

/// Who keeps others waiting.
#[derive(Clone, Debug, Default)]
pub struct HolderInfo {
    /// Of a session.
    pub pid: Option<i32>,
    /// The session's user; other users' statements are not for everybody.
    pub user: Option<Oid>,
    pub state: Option<String>,
    /// What it runs or ran last; for a thread of the server, which one it is and what it waits for
    /// itself.
    pub does: Option<String>,
}

/// A row of `throng.waiting_now`.
#[derive(Clone, Debug, Default)]
pub struct WaitingInfo {
    /// None for a thread of the server.
    pub pid: Option<i32>,
    /// The session's application, or the thread's name.
    pub who: String,
    pub event_type: &'static str,
    pub event: &'static str,
    pub object: Option<String>,
    pub waited_nanos: Option<u64>,
    /// Those it waits for directly.
    pub holder_pids: Vec<i32>,
    /// Who, at the end of the chain, waits for nobody.
    pub root: HolderInfo,
    pub remedy: Option<String>,
}

/// A row of `throng.structures`.
#[derive(Clone, Debug, Default)]
pub struct StructureInfo {
    pub name: &'static str,
    pub calls: u64,
    pub samples: u64,
    /// Estimated from the samples.
    pub total_nanos: f64,
    /// Of the time in which sessions ran.
    pub share: Option<f64>,
}

/// A row of `throng.stalls`: a stretch in which a session held its event loop.
#[derive(Clone, Debug, Default)]
pub struct StallInfo {
    pub core: i32,
    /// Microseconds since 2000-01-01 UTC.
    pub began: i64,
    pub nanos: u64,
    /// Processor time used in it; None while it goes on.
    pub used: Option<u64>,
    /// It goes on.
    pub running: bool,
    /// Which session it was or is, and what it ran.
    pub session: HolderInfo,
}

/// Milliseconds with three places: what a reader can take in.
fn ms(nanos: u64) -> Datum {
    Datum::Float8((nanos as f64 / 1e3).round() / 1e3)
}

/// Microseconds with one place.
fn us(nanos: u64) -> Datum {
    Datum::Float8((nanos as f64 / 1e2).round() / 1e1)
}

/// What a holder does, for those who may know.
fn statement(catalog: &Catalog, state: &dyn SystemState, holder: &HolderInfo) -> Datum {
    let reader = state.current_user();
    let superuser = || catalog.role(reader).is_some_and(|role| role.superuser);
    match holder.user {
        Some(user) if user != reader && !superuser() => "<insufficient privilege>".into(),
        _ => holder.does.as_deref().into(),
    }
}

pub(super) fn waits(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let row_of = |w: WaitInfo| {
        let holder = statement(catalog, state, &w.holder);
        row![
            w.event_type,
            w.event,
            w.object,
            w.waiter,
            w.count as i64,
            ms(w.total_nanos),
            us(w.total_nanos / w.count.max(1)),
            us(w.p50_nanos),
            us(w.p99_nanos),
            ms(w.max_nanos),
            w.holder.pid,
            holder,
            w.remedy,
        ]
    };
    state.waits().into_iter().map(row_of).collect()
}

pub(super) fn waiting_now(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let row_of = |w: WaitingInfo| {
        let holder = statement(catalog, state, &w.root);
        let holders = w.holder_pids.into_iter().map(Datum::Int4).collect();
        row![
            w.pid,
            w.who,
            w.event_type,
            w.event,
            w.object,
            w.waited_nanos.map_or(Datum::Null, ms),
            Datum::array(Array::from_items(oid::INT4, holders)),
            w.root.pid,
            w.root.state,
            holder,
            w.remedy,
        ]
    };
    state.waiting_now().into_iter().map(row_of).collect()
}

pub(super) fn stalls(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let row_of = |s: StallInfo| {
        let statement = statement(catalog, state, &s.session);
        row![
            s.session.pid,
            s.core,
            Datum::TimestampTz(s.began),
            ms(s.nanos),
            s.used.map_or(Datum::Null, ms),
            s.running,
            statement,
        ]
    };
    state.stalls().into_iter().map(row_of).collect()
}

pub(super) fn structures(_: &Catalog, state: &dyn SystemState) -> Rows {
    let row_of = |s: StructureInfo| {
        let percent = |share: f64| Datum::Float8((share * 1e5).round() / 1e3);
        row![
            s.name,
            s.calls as i64,
            s.samples as i64,
            ms(s.total_nanos as u64),
            us((s.total_nanos / s.calls.max(1) as f64) as u64),
            s.share.map_or(Datum::Null, percent),
        ]
    };
    state.structures().into_iter().map(row_of).collect()
}

/// What was counted since the server started, all databases together.
pub(super) fn counters(_: &Catalog, _: &dyn SystemState) -> Rows {
    let row_of = |(which, count): (Counter, u64)| row![which.name(), count as i64, which.meaning()];
    throng_observe::counters().into_iter().map(row_of).collect()
}
