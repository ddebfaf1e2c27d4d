//! Portals and cursors: statements under way whose rows are asked for in parts.

mod clients;
pub(super) mod position;
pub(super) mod rows;

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use foldhash::fast::RandomState;
use throng_bind::command::{Command, CursorOptions, FetchDirection};
use throng_bind::query::BoundQuery;
use throng_plan::{PlannedStatement, StatementTag};
use throng_sync::Pooled;
use throng_txn::Snapshot;
use throng_types::error::state;
use throng_types::{Datum, Error, Result};

use super::Session;
use super::definition::in_use::{Held, Using};
use super::routine::not_volatile;
use super::statement::plans::CachedPlan;
use super::statement::prepared::{Prepared, VALUES, is_data};
use super::statement::query::{Rows, Run, as_text, columns, tag};
use super::utility::explain::Discard;
use clients::{Collect, Described, WithoutPlaces};
use position::Places;
use rows::{Picked, Stored};
use throng_exec::client::{Client, Format, RowShape};
use throng_exec::run::Row;
use throng_exec::spill::RowStore;

/// A statement with its parameters, run as far as was options.
pub(crate) struct Portal {
    pub sql: Rc<str>,
    /// None: a cursor, whose plan is in `state` from the start.
    pub prepared: Option<Rc<Prepared>>,
    pub shape: Option<Arc<RowShape>>,
    pub kind: CursorKind,
    values: Vec<Datum>,
    state: PortalState,
    /// Rows given so far; the current row's number.
    given: u64,
    /// WITH HOLD, and the transaction that made it has committed.
    outlives: bool,
    /// Under how many savepoints it was made.
    level: usize,
    /// What gives the same rows again: of a cursor that may be read backwards though its rows are
    /// not kept.
    again: Option<Box<Again>>,
    /// Where a cursor's rows come from, told by columns that no client sees.
    pub places: Option<Places>,
    /// The row that was given last, where it tells its place; empty before the first and after the
    /// last.
    last: Row,
    /// When it was declared.
    pub made_at: i64,
    /// What a cursor has open though it has all its rows.
    using: Option<Using>,
}

struct Again {
    plan: Arc<PlannedStatement>,
    params: Vec<Datum>,
    snapshot: Snapshot,
}

/// What DECLARE said; the protocol's portals are none of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CursorKind {
    pub scroll: bool,
    pub hold: bool,
    pub binary: bool,
    pub is_cursor: bool,
}

enum PortalState {
    Ready,
    Running(Pooled<Run>),
    /// Rows are kept, all of them or those read so far: of SCROLL, of WITH HOLD once its
    /// transaction has committed, of writes that were asked for a part of their rows.
    Stored(Stored),
    Done,
    /// An error ended it, in a part of the transaction that was then undone.
    Failed,
}

impl Portal {
    /// It was made by a transaction that has committed, so that a rollback does not concern it.
    pub fn outlives_rollback(&self) -> bool {
        self.outlives
    }

    /// An error ended it.
    pub fn fail(&mut self) {
        drop(self.give_up());
    }

    /// The same; what it had open is for the caller to drop.
    fn give_up(&mut self) -> (PortalState, Option<Using>) {
        let state = std::mem::replace(&mut self.state, PortalState::Failed);
        (state, self.using.take())
    }

    /// 55000 of one that an error ended.
    pub fn must_run(&self, name: &str) -> Result<()> {
        match self.state {
            PortalState::Failed => Err(cannot_run(name)),
            _ => Ok(()),
        }
    }

    /// Whether undoing what came after savepoint number `at` leaves it: one made before stays where
    /// it stands.
    pub fn outlives_savepoint(&self, at: usize) -> bool {
        self.outlives || self.level <= at
    }

    /// The row it stands on, with its places.
    pub(super) fn current(&self) -> Option<&[Datum]> {
        Some(&self.last[..]).filter(|row| !row.is_empty())
    }

    /// Notes where it stands, of rows that are kept.
    fn note_current(&mut self) -> Result<()> {
        self.last.clear();
        if let (PortalState::Stored(stored), Some(_)) = (&mut self.state, &self.places)
            && let Some(row) = stored.current()?
        {
            self.last.extend_from_slice(row);
        }
        Ok(())
    }

    fn is_stored(&self) -> bool {
        matches!(self.state, PortalState::Stored(_))
    }

    /// WITH HOLD, and its transaction is yet to commit.
    fn is_to_be_held(&self) -> bool {
        let is_there = match &self.state {
            PortalState::Running(_) => false,
            PortalState::Stored(stored) => stored.rest.is_none(),
            PortalState::Done => self.again.is_none(),
            PortalState::Ready | PortalState::Failed => true,
        };
        self.kind.hold && !self.outlives && !is_there
    }
}

/// Open cursors and portals of a session.
const MOST_PORTALS: usize = 10_000;
/// A cursor's statement is shown with the text around it that is no longer than this.
const LONGEST_SHOWN: usize = 64 << 10;

/// A session's portals by name. The unnamed one, which drivers use for each statement, is kept
/// apart: it needs no name.
#[derive(Default)]
pub(super) struct Portals {
    unnamed: Option<Pooled<Portal>>,
    named: HashMap<String, Pooled<Portal>, RandomState>,
}

impl Portals {
    pub fn get(&self, name: &str) -> Option<&Portal> {
        if name.is_empty() {
            self.unnamed.as_deref()
        } else {
            self.named.get(name).map(|portal| &**portal)
        }
    }

    /// 53200 where there are more portals than anybody uses: a loop may open cursors for ever.
    pub fn has_room(&self) -> Result<()> {
        match self.named.len() < MOST_PORTALS {
            true => Ok(()),
            false => Err(Error::new(state::OUT_OF_MEMORY, "out of memory")
                .detail(format!("The session has {MOST_PORTALS} open cursors."))),
        }
    }

    pub fn insert(&mut self, name: &str, portal: Pooled<Portal>) {
        if name.is_empty() {
            self.unnamed = Some(portal);
        } else {
            self.named.insert(name.to_owned(), portal);
        }
    }

    pub fn drop_unnamed(&mut self) {
        self.unnamed = None;
    }

    pub fn remove(&mut self, name: &str) -> Option<Pooled<Portal>> {
        if name.is_empty() {
            self.unnamed.take()
        } else {
            self.named.remove(name)
        }
    }

    /// Takes the portals out that `stays` does not hold of.
    pub fn retain(&mut self, stays: impl Fn(&Portal) -> bool) -> Ended<Pooled<Portal>> {
        self.unnamed.take_if(|portal| !stays(portal));
        let gone = match self.named.is_empty() {
            true => Vec::new(),
            false => {
                let gone = self.named.extract_if(|_, portal| !stays(portal));
                gone.map(|(_, portal)| portal).collect()
            }
        };
        Ended(gone)
    }

    /// Savepoint number `at` and those after it are no more: what was made under them belongs to
    /// what is around.
    pub fn released(&mut self, at: usize) {
        let all = self.unnamed.iter_mut().chain(self.named.values_mut());
        all.for_each(|portal| portal.level = portal.level.min(at));
    }

    /// The transaction is about to commit: what ends with it is closed, and held cursors read no
    /// table any more.
    pub fn committing(&mut self) -> Ended<Pooled<Portal>> {
        let ended = self.retain(|portal| portal.kind.hold);
        let held = self.unnamed.iter_mut().chain(self.named.values_mut());
        held.for_each(|portal| portal.using = None);
        ended
    }

    /// The transaction failed: until it ends, what it has made is there and cannot be run.
    pub fn fail(&mut self) -> Ended<impl Sized + use<>> {
        let all = self.unnamed.iter_mut().chain(self.named.values_mut());
        let failed = all.filter(|portal| !portal.outlives);
        Ended(failed.map(|portal| portal.give_up()).collect())
    }

    /// The transaction committed: held cursors stay, and outlive every later rollback.
    pub fn committed(&mut self) -> Ended<Pooled<Portal>> {
        let ended = self.retain(|portal| portal.kind.hold);
        let held = self.unnamed.iter_mut().chain(self.named.values_mut());
        held.for_each(|portal| portal.outlives = true);
        ended
    }

    /// Whether the transaction under way has made one that is to outlive it.
    pub fn holds_any(&self) -> bool {
        let mut all = self.unnamed.iter().chain(self.named.values());
        all.any(|portal| portal.kind.hold && !portal.outlives)
    }

    /// Those that DECLARE made, by name.
    pub fn cursors(&self) -> Vec<(&str, &Portal)> {
        let declared = self
            .named
            .iter()
            .filter(|(_, portal)| portal.kind.is_cursor);
        let mut found: Vec<_> = declared.map(|(name, p)| (name.as_str(), &**p)).collect();
        found.sort_by_key(|(name, _)| *name);
        found
    }
}

/// Portals that are over, or what they had open: yet to be dropped.
#[must_use]
pub(super) struct Ended<T>(Vec<T>);

impl<T> Ended<T> {
    /// Drops them, with the core given to others in between: there may be thousands.
    pub async fn drop_in_turns(mut self) {
        /// Portals between two turns: some hundred microseconds.
        const PIECE: usize = 128;
        while self.0.len() > PIECE {
            self.0.truncate(self.0.len() - PIECE);
            tokio::task::yield_now().await;
        }
    }
}

fn cannot_run(name: &str) -> Error {
    Error::new(
        state::OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("portal \"{name}\" cannot be run"),
    )
}

fn forward_only() -> Error {
    Error::new(
        state::OBJECT_NOT_IN_PREREQUISITE_STATE,
        "cursor can only scan forward",
    )
    .hint("Declare it with SCROLL option to enable backward scan.")
}

impl Session {
    pub(super) fn make_portal(
        &mut self,
        prepared: Rc<Prepared>,
        known: &CachedPlan,
        values: Vec<Datum>,
        formats: &[i16],
    ) -> Result<Pooled<Portal>> {
        let shape = known.shape(formats)?;
        let level = self.savepoint_depth();
        Ok(Pooled::new(|| Portal {
            sql: known.sql.clone(),
            prepared: Some(prepared),
            shape,
            kind: CursorKind::default(),
            values,
            state: PortalState::Ready,
            given: 0,
            outlives: false,
            level,
            again: None,
            places: None,
            last: Row::new(),
            made_at: self.statement_time,
            using: None,
        }))
    }

    /// Runs a portal or goes on with it, giving at most `limit` rows, and says how it ended.
    pub(super) async fn run_portal(
        &mut self,
        portal: &mut Portal,
        limit: u64,
        client: &mut dyn Client,
    ) -> Result<()> {
        if let Some(prepared) = portal.prepared.clone()
            && matches!(portal.state, PortalState::Ready)
        {
            let known = prepared.known();
            let Some(statement) = &known.statement else {
                portal.state = PortalState::Done;
                client.empty_query();
                return Ok(());
            };
            if !is_data(statement) {
                portal.state = PortalState::Done;
                if let Some(command) = Command::of_transaction(statement) {
                    return self.run_command(command, &known.sql, client).await;
                }
                let mut client = Described {
                    inner: client,
                    shape: portal.shape.clone(),
                };
                *self.command_values.borrow_mut() = std::mem::take(&mut portal.values);
                let bound = self.bind_command(statement, &known.sql, &known.params);
                let bound = Box::pin(bound).await?;
                self.notices(bound.notices, &mut client);
                return self
                    .run_bound(bound.statement, &known.sql, &known.sql, &mut client)
                    .await;
            }
            self.start_portal(portal, &prepared).await?;
            let writes = self.tag_of(portal) != StatementTag::Select;
            if writes && limit != u64::MAX && portal.shape.is_some() {
                self.store_rows(portal, client).await?;
            }
        }
        let ran = self.advance(portal, limit, client).await?;
        match ran {
            Advance::Complete(tag) => client.command_complete(&tag),
            Advance::Suspended => client.portal_suspended(),
        }
        Ok(())
    }

    async fn start_portal(&mut self, portal: &mut Portal, prepared: &Prepared) -> Result<()> {
        let plan = self.plan_with(prepared, &portal.values).await?;
        let run = self.start(plan, std::mem::take(&mut portal.values), Rows::Given)?;
        self.find_position(run.execution.plan(), &run.snapshot)
            .await?;
        portal.state = PortalState::Running(Pooled::new(|| run));
        Ok(())
    }

    /// Starts the portal that Bind made of a query and Execute has not met yet: FETCH and MOVE may
    /// be the first to.
    pub(super) async fn start_if_ready(&mut self, name: &str) -> Result<()> {
        let is_ready = |p: &Portal| matches!(p.state, PortalState::Ready);
        if !self.portals.borrow().get(name).is_some_and(is_ready) {
            return Ok(());
        }
        let Some(mut portal) = self.portals.borrow_mut().remove(name) else {
            return Ok(());
        };
        let started = match portal.prepared.clone() {
            Some(prepared) if prepared.is_query() => {
                self.start_portal(&mut portal, &prepared).await
            }
            _ => Err(cannot_run(name)),
        };
        let started = started.and_then(|()| match self.tag_of(&portal) {
            StatementTag::Select => Ok(()),
            _ => Err(cannot_run(name)),
        });
        if started.is_err() {
            portal.fail();
        }
        self.portals.borrow_mut().insert(name, portal);
        started
    }

    fn tag_of(&self, portal: &Portal) -> StatementTag {
        match &portal.state {
            PortalState::Running(run) => run.execution.plan().tag,
            _ => StatementTag::Select,
        }
    }

    /// Gives up to `limit` further rows.
    async fn advance(
        &self,
        portal: &mut Portal,
        limit: u64,
        client: &mut dyn Client,
    ) -> Result<Advance> {
        if let PortalState::Stored(stored) = &portal.state {
            let needed = usize::try_from(limit).unwrap_or(usize::MAX);
            let needed = stored.at.saturating_add(needed);
            self.keep_more(portal, needed, client).await?;
        }
        match &mut portal.state {
            PortalState::Failed => Err(Error::internal("a portal that failed was asked for rows")),
            PortalState::Ready | PortalState::Done => {
                Ok(Advance::Complete(tag(StatementTag::Select, 0)))
            }
            PortalState::Running(run) => {
                let statement = run.execution.plan().tag;
                let shape = portal.shape.as_deref();
                let ran = match portal.places {
                    None => self.run_to(run, shape, limit, client).await?,
                    Some(_) => {
                        let mut client = WithoutPlaces { inner: client };
                        self.run_to(run, shape, limit, &mut client).await?
                    }
                };
                portal.given += ran.rows;
                portal.last.clear();
                if !ran.complete {
                    if portal.places.is_some() {
                        portal.last.clone_from(run.last());
                    }
                    return Ok(Advance::Suspended);
                }
                if let PortalState::Running(run) =
                    std::mem::replace(&mut portal.state, PortalState::Done)
                {
                    let (values, using) = run.into_inner().end();
                    VALUES.with(|rooms| rooms.give_back(values));
                    portal.using = portal.kind.is_cursor.then_some(using);
                }
                Ok(Advance::Complete(tag(statement, ran.rows)))
            }
            PortalState::Stored(stored) => {
                let left = stored.rows.len() - stored.at.min(stored.rows.len());
                let count = usize::try_from(limit).unwrap_or(usize::MAX).min(left);
                let from = stored.at;
                stored.at += count;
                let complete = stored.at == stored.rows.len() && (count as u64) < limit;
                let done = stored.tag.clone();
                let picked = Picked::forward(from..from + count);
                self.give_rows(stored, picked, portal.shape.as_deref(), client)
                    .await?;
                portal.given += count as u64;
                portal.note_current()?;
                if !complete {
                    return Ok(Advance::Suspended);
                }
                let done = done.unwrap_or_else(|| tag(StatementTag::Select, count as u64));
                Ok(Advance::Complete(done))
            }
        }
    }

    async fn give_rows(
        &self,
        stored: &mut Stored,
        picked: Picked,
        shape: Option<&RowShape>,
        client: &mut dyn Client,
    ) -> Result<()> {
        let Some(shape) = shape else { return Ok(()) };
        let catalog = self.catalog();
        for number in picked {
            let row = stored.rows.get(number)?.unwrap_or_default();
            let host = self.host(&catalog);
            client.row(
                position::shown(row, shape.fields.len()),
                shape,
                &host.eval(),
            )?;
            if client.backlog() > throng_exec::client::HIGH_WATER {
                client.flush().await?;
            }
        }
        Ok(())
    }

    /// Runs a portal to its end, keeping its rows.
    async fn store_rows(&self, portal: &mut Portal, client: &mut dyn Client) -> Result<()> {
        let PortalState::Running(run) = &mut portal.state else {
            return Ok(());
        };
        let statement = run.execution.plan().tag;
        let mut rows = self.row_store();
        let mut collect = Collect {
            inner: client,
            rows: Some(&mut rows),
        };
        let ran = self
            .run_to(run, portal.shape.as_deref(), u64::MAX, &mut collect)
            .await?;
        let done = (statement != StatementTag::Select).then(|| tag(statement, ran.rows));
        let stored = PortalState::Stored(Stored {
            tag: done,
            ..Stored::of(rows)
        });
        if let PortalState::Running(run) = std::mem::replace(&mut portal.state, stored) {
            portal.using = Some(run.into_inner().end().1);
        }
        Ok(())
    }

    /// For rows of a cursor.
    fn row_store(&self) -> RowStore {
        RowStore::new(self.work_mem(), &self.engine.store)
    }

    /// Has at least so many rows there, or all.
    async fn keep_more(
        &self,
        portal: &mut Portal,
        needed: usize,
        client: &mut dyn Client,
    ) -> Result<()> {
        let PortalState::Stored(stored) = &mut portal.state else {
            return Ok(());
        };
        let Some(run) = &mut stored.rest else {
            return Ok(());
        };
        if stored.rows.len() >= needed {
            return Ok(());
        }
        let limit = match needed {
            usize::MAX => u64::MAX,
            needed => (needed - stored.rows.len()) as u64,
        };
        let mut collect = Collect {
            inner: client,
            rows: Some(&mut stored.rows),
        };
        let ran = self
            .run_to(run, portal.shape.as_deref(), limit, &mut collect)
            .await?;
        if ran.complete
            && let Some(run) = stored.rest.take()
        {
            portal.using = Some(run.into_inner().end().1);
        }
        Ok(())
    }

    /// The transaction is about to commit: what cursors WITH HOLD have not given yet is kept. Of
    /// one that may be read backwards all its rows are.
    pub(super) async fn hold_cursors(&self) -> Result<()> {
        let to_hold = |portals: &Portals| {
            let mut all = portals.named.iter();
            let found = all.find(|(_, portal)| portal.is_to_be_held());
            found.map(|(name, _)| name.clone())
        };
        loop {
            let Some(name) = to_hold(&self.portals.borrow()) else {
                return Ok(());
            };
            let Some(mut portal) = self.portals.borrow_mut().remove(&name) else {
                return Ok(());
            };
            let held = self.hold(&mut portal).await;
            if held.is_err() {
                portal.fail();
            }
            self.portals.borrow_mut().insert(&name, portal);
            held?;
        }
    }

    async fn hold(&self, portal: &mut Portal) -> Result<()> {
        let mut client = Discard;
        if portal.is_stored() {
            return self.keep_more(portal, usize::MAX, &mut client).await;
        }
        if self.store_again(portal, &mut client).await? {
            return Ok(());
        }
        self.store_rows(portal, &mut client).await?;
        let given = portal.given;
        if let PortalState::Stored(stored) = &mut portal.state {
            stored.before = given;
        }
        Ok(())
    }

    /// DECLARE.
    pub(super) async fn declare(
        &self,
        name: String,
        query: BoundQuery,
        options: CursorOptions,
        sql: &str,
    ) -> Result<()> {
        if !self.is_in_block() && !options.hold {
            return Err(Error::new(
                state::NO_ACTIVE_SQL_TRANSACTION,
                "DECLARE CURSOR can only be used in transaction blocks",
            ));
        }
        self.open_cursor(name, query, options, sql, None).await?;
        match self.is_in_block() {
            true => Ok(()),
            // Its transaction ends with it.
            false => self.hold_cursors().await,
        }
    }

    /// A cursor over a query, whose parameters are the command's values. Where a function that
    /// changes nothing opens it, it sees what its `caller` does.
    pub(super) async fn open_cursor(
        &self,
        name: String,
        mut query: BoundQuery,
        options: CursorOptions,
        sql: &str,
        caller: Option<&Snapshot>,
    ) -> Result<()> {
        if self.portals.borrow().get(&name).is_some() {
            return Err(Error::new(
                state::DUPLICATE_CURSOR,
                format!("cursor \"{name}\" already exists"),
            ));
        }
        self.portals.borrow().has_room()?;
        let mut places = position::with_places(&mut query, &self.catalog());
        let mut plan = self.plan(query).await?;
        if let Some(places) = &mut places {
            plan.output.truncate(places.width());
            places.learn(&plan);
        }
        let plan = Arc::new(plan);
        self.lock_plan(&plan, &[]).await?;
        let mut shape = columns(&plan);
        if let Some(told) = shape.as_ref().filter(|_| options.binary) {
            let (fields, formats) = (told.fields.clone(), vec![Format::Binary; told.fields.len()]);
            shape = Some(Arc::new(RowShape::new(fields, formats)));
        }
        let values = self.command_values.take();
        let backwards = options.scroll.unwrap_or_else(|| plan.reads_backwards());
        let repeats = plan.repeats();
        let rows = match &places {
            Some(_) => Rows::Followed,
            None => Rows::Given,
        };
        if let (Some(_), Some(command)) = (caller, plan.changes()) {
            return Err(not_volatile(command));
        }
        // Who follows rows from the versions that it sees needs those after them, and the caller
        // may not have kept them.
        let sees = caller.filter(|_| rows == Rows::Given);
        let run = self.start_seeing(plan.clone(), values.clone(), rows, sees)?;
        let again = (backwards && repeats).then(|| {
            Box::new(Again {
                plan,
                params: values,
                snapshot: run.snapshot.clone(),
            })
        });
        // As PostgreSQL shows it: all of the text that it came in, where that is no book.
        let whole = self.handle.entry().query();
        let sql = match whole.len() <= LONGEST_SHOWN && whole.contains(sql) {
            true => whole.as_str(),
            false => sql,
        };
        let run = Pooled::new(|| run);
        let state = match backwards && !repeats {
            // Its plan may not give the same again.
            true => PortalState::Stored(Stored {
                rest: Some(run),
                ..Stored::of(self.row_store())
            }),
            false => PortalState::Running(run),
        };
        let portal = Pooled::new(|| Portal {
            sql: sql.into(),
            prepared: None,
            shape,
            kind: CursorKind {
                scroll: backwards,
                hold: options.hold,
                binary: options.binary,
                is_cursor: true,
            },
            values: Vec::new(),
            state,
            given: 0,
            outlives: false,
            level: self.savepoint_depth(),
            again,
            places,
            last: Row::new(),
            made_at: self.statement_time,
            using: None,
        });
        self.portals.borrow_mut().insert(&name, portal);
        Ok(())
    }

    /// FETCH and MOVE: the number of rows given or passed.
    pub(super) async fn fetch(
        &self,
        name: &str,
        direction: FetchDirection,
        moving: bool,
        client: &mut dyn Client,
    ) -> Result<u64> {
        let no_cursor = || {
            Error::new(
                state::INVALID_CURSOR_NAME,
                format!("cursor \"{name}\" does not exist"),
            )
        };
        let found = self.portals.borrow_mut().remove(name);
        let mut portal = found.ok_or_else(no_cursor)?;
        if let Err(e) = portal.must_run(name) {
            self.portals.borrow_mut().insert(name, portal);
            return Err(e);
        }
        if let (Some(shape), false) = (&portal.shape, moving) {
            match portal.kind.binary {
                true => client.row_description(shape),
                false => client.row_description(&as_text(shape.fields.clone())),
            }
        }
        let fetched = self
            .fetch_from(&mut portal, direction, moving, client)
            .await;
        if fetched.is_err() {
            portal.fail();
        }
        self.portals.borrow_mut().insert(name, portal);
        fetched
    }

    async fn fetch_from(
        &self,
        portal: &mut Portal,
        direction: FetchDirection,
        moving: bool,
        client: &mut dyn Client,
    ) -> Result<u64> {
        if portal.is_stored() {
            return self.fetch_stored(portal, direction, moving, client).await;
        }
        // Rows to pass over, then rows to give.
        let onwards = match direction {
            FetchDirection::Forward(n) if n > 0 => Some((0, n as u64)),
            FetchDirection::Backward(n) if n < 0 => Some((0, n.unsigned_abs())),
            FetchDirection::Relative(n) if n > 0 => Some((n as u64 - 1, 1)),
            FetchDirection::Absolute(n) if n > 0 && n as u64 > portal.given => {
                Some((n as u64 - portal.given - 1, 1))
            }
            FetchDirection::Absolute(0) if portal.given == 0 => Some((0, 0)),
            _ => None,
        };
        let Some((skip, give)) = onwards else {
            if !self.store_again(portal, client).await? {
                return Err(forward_only());
            }
            return self.fetch_stored(portal, direction, moving, client).await;
        };
        let limit_of = |n: u64| if n >= i64::MAX as u64 { u64::MAX } else { n };
        let mut dropped = Collect {
            inner: client,
            rows: None,
        };
        if skip > 0 {
            self.advance_counted(portal, limit_of(skip), &mut dropped)
                .await?;
        }
        if moving {
            return self
                .advance_counted(portal, limit_of(give), &mut dropped)
                .await;
        }
        self.advance_counted(portal, limit_of(give), client).await
    }

    /// Has all rows of a cursor there, and it where it is among them, so that it can be read
    /// backwards; false where its plan does not allow that.
    async fn store_again(&self, portal: &mut Portal, client: &mut dyn Client) -> Result<bool> {
        let Some(again) = portal.again.take() else {
            return Ok(false);
        };
        let ended = matches!(portal.state, PortalState::Done);
        let given = usize::try_from(portal.given).unwrap_or(usize::MAX - 1);
        let work_mem = self.work_mem();
        let using = self.in_use.hold(Held::Plan(again.plan.clone()));
        let run = Run::again(again.plan, again.params, again.snapshot, work_mem, using);
        portal.state = PortalState::Running(Pooled::new(|| run));
        self.store_rows(portal, client).await?;
        if let PortalState::Stored(stored) = &mut portal.state {
            stored.at = given + usize::from(ended);
        }
        Ok(true)
    }

    /// As [`Session::advance`]; the number of rows.
    async fn advance_counted(
        &self,
        portal: &mut Portal,
        limit: u64,
        client: &mut dyn Client,
    ) -> Result<u64> {
        if limit == 0 {
            return Ok(0);
        }
        let before = portal.given;
        self.advance(portal, limit, client).await?;
        Ok(portal.given - before)
    }

    /// All rows are there: any direction will do.
    async fn fetch_stored(
        &self,
        portal: &mut Portal,
        direction: FetchDirection,
        moving: bool,
        client: &mut dyn Client,
    ) -> Result<u64> {
        let PortalState::Stored(stored) = &portal.state else {
            return Ok(0);
        };
        let direction = match direction {
            // Rows that are not kept are counted.
            FetchDirection::Absolute(n) if n > 0 && stored.before > 0 => {
                FetchDirection::Absolute(n.saturating_sub_unsigned(stored.before).max(0))
            }
            other => other,
        };
        let needed = stored.needed(direction);
        self.keep_more(portal, needed, client).await?;
        let PortalState::Stored(stored) = &mut portal.state else {
            return Ok(0);
        };
        let backward = match direction {
            FetchDirection::Forward(n) | FetchDirection::Relative(n) => n <= 0,
            FetchDirection::Backward(n) => n >= 0,
            FetchDirection::Absolute(n) => n < 0 || n > 0 && n as u64 <= stored.at as u64,
        };
        if backward && !portal.kind.scroll {
            return Err(forward_only());
        }
        let picked = stored.picked(direction);
        let count = picked.len() as u64;
        if !moving {
            self.give_rows(stored, picked, portal.shape.as_deref(), client)
                .await?;
        }
        portal.note_current()?;
        Ok(count)
    }

    /// CLOSE.
    pub(super) async fn close_cursor(&self, name: Option<&str>) -> Result<()> {
        match name {
            None => self.close_portals().await,
            Some(name) => {
                if self.portals.borrow_mut().remove(name).is_none() {
                    return Err(Error::new(
                        state::INVALID_CURSOR_NAME,
                        format!("cursor \"{name}\" does not exist"),
                    ));
                }
            }
        }
        Ok(())
    }
}

/// How far a portal came.
enum Advance {
    Complete(Cow<'static, str>),
    Suspended,
}
