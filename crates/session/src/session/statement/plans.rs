//! The plan cache: statements understood once for all sessions of a core.
//!
//! ```text
//! text, parameter types ──┐
//! catalog version, role,  ├──▶ Known: parameters, columns, plan
//! settings that matter ───┘
//! ```
//! Each event loop has its own, so looking a statement up takes no lock and writes nothing that
//! another core reads; a statement is parsed and planned once a core. Whatever a plan depends on is
//! part of its key: a plan is never invalidated, it is not found any more. What is not found any
//! more goes with its generation: when the young one is full it becomes the old one, and what is
//! used again before the next turn comes back from there (a second chance at the cost of one move).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

use foldhash::fast::FixedState;
use throng_catalog::Catalog;
use throng_plan::PlannedStatement;
use throng_syntax::parse::ast::Statement;
use throng_types::{FileId, Oid, Result, SqlType};
use throng_values::settings::{Id, SessionSettings};

use crate::session::statement::query::formats_of;
use throng_exec::client::RowShape;
use throng_exec::store::Store;

/// A statement that has been understood. It never changes.
pub(crate) struct CachedPlan {
    pub sql: Rc<str>,
    /// None: the empty statement.
    pub statement: Option<Arc<Statement>>,
    pub params: Vec<SqlType>,
    /// The columns of its result, as text; None where it gives no rows.
    pub columns: Option<Arc<RowShape>>,
    /// None where it is no data statement.
    pub plan: Option<Arc<PlannedStatement>>,
    /// Pages of the plan's tables when it was made.
    sizes: Vec<(FileId, u32)>,
    uses: Cell<u32>,
    /// The columns in the formats that were last asked for, where those were not text.
    formatted: RefCell<Option<(Vec<i16>, Arc<RowShape>)>>,
}

/// Uses of a plan between two looks at how its tables have grown.
const USES_BETWEEN_LOOKS: u32 = 64;
/// A table of this many times the pages, or a part of them, is another table to the planner.
const GROWTH: u32 = 4;
/// Of more tables than this the growth of the first is looked at.
const MOST_WATCHED: usize = 256;
/// Pages below which growth changes no plan worth changing.
const SMALL: u32 = 16;

impl CachedPlan {
    pub fn new(
        sql: &str,
        statement: Option<Arc<Statement>>,
        params: Vec<SqlType>,
        columns: Option<Arc<RowShape>>,
    ) -> CachedPlan {
        CachedPlan {
            sql: sql.into(),
            statement,
            params,
            columns,
            plan: None,
            sizes: Vec::new(),
            uses: Cell::new(0),
            formatted: RefCell::default(),
        }
    }

    /// With a plan for its tables as they are now.
    pub fn planned(
        mut self,
        plan: Arc<PlannedStatement>,
        store: &Store,
        catalog: &Catalog,
    ) -> CachedPlan {
        let tables = plan.all_locks();
        let tables = tables.filter_map(|(oid, _)| catalog.table(oid));
        let watched = tables.take(MOST_WATCHED);
        self.sizes = watched
            .map(|table| (table.file, pages(store, table.file)))
            .collect();
        self.plan = Some(plan);
        self
    }

    /// Whether the plan was made for tables of quite another size; looked at now and then only.
    pub fn is_outgrown(&self, store: &Store) -> bool {
        let uses = self.uses.get().wrapping_add(1);
        self.uses.set(uses);
        uses.is_multiple_of(USES_BETWEEN_LOOKS)
            && self.sizes.iter().any(|&(file, then)| {
                let (now, then) = (pages(store, file).max(SMALL), then.max(SMALL));
                now / GROWTH >= then || then / GROWTH >= now
            })
    }

    /// The columns of its result in the formats a client asks for; None where it gives no rows.
    pub fn shape(&self, formats: &[i16]) -> Result<Option<Arc<RowShape>>> {
        let Some(text) = &self.columns else {
            return Ok(None);
        };
        if matches!(formats, [] | [0]) {
            return Ok(Some(text.clone()));
        }
        if let Some((of, shape)) = &*self.formatted.borrow()
            && of == formats
        {
            return Ok(Some(shape.clone()));
        }
        let formats_of_fields = formats_of(formats, text.fields.len())?;
        let shape = Arc::new(RowShape::new(text.fields.clone(), formats_of_fields));
        *self.formatted.borrow_mut() = Some((formats.to_vec(), shape.clone()));
        Ok(Some(shape))
    }
}

fn pages(store: &Store, file: FileId) -> u32 {
    store.pool.blocks(file).unwrap_or(0)
}

/// What a plan was made for: while this is the same, so is the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) struct PlanKey {
    /// The engine's number in this process.
    pub engine: u32,
    pub catalog: u64,
    /// With the transaction's own changes: such a plan is not kept.
    pub own: bool,
    pub role: Oid,
    /// The session's temporary schema, in which names are sought first.
    pub temporary: Oid,
    /// Place in the core's list of [`PlanSettings`].
    pub settings: u32,
}

impl Hash for PlanKey {
    /// In three steps, for each statement takes them: two fields a word, and `own`, which hardly
    /// ever tells two keys apart, left out.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        state.write_u64(self.catalog);
        state.write_u64(pair(self.engine, self.role.0));
        state.write_u64(pair(self.temporary.0, self.settings));
    }
}

/// The settings that plans depend on: where names are sought, how constants are read, which paths
/// are allowed.
#[derive(Clone, Debug, PartialEq)]
struct PlanSettings {
    texts: [String; 4],
    paths: [bool; 5],
    collapse_limits: [i64; 2],
    array_nulls: bool,
    /// Off: a statement that policies would have a say in is refused.
    row_security: bool,
}

impl PlanSettings {
    fn of(settings: &SessionSettings) -> PlanSettings {
        PlanSettings {
            texts: [
                Id::SearchPath,
                Id::DateStyle,
                Id::IntervalStyle,
                Id::TimeZone,
            ]
            .map(|id| settings.text(id).to_owned()),
            paths: [
                Id::EnableSeqscan,
                Id::EnableIndexscan,
                Id::EnableBitmapscan,
                Id::EnableHashjoin,
                Id::EnableNestloop,
            ]
            .map(|id| settings.bool(id)),
            collapse_limits: [Id::JoinCollapseLimit, Id::FromCollapseLimit]
                .map(|id| settings.int(id)),
            array_nulls: settings.bool(Id::ArrayNulls),
            row_security: settings.bool(Id::RowSecurity),
        }
    }
}

/// A statement's name in the cache: its text and the types of its parameters. Reused from statement
/// to statement.
pub(in crate::session) fn name_of(sql: &str, types: &[SqlType], name: &mut String) {
    name.clear();
    name.push_str(sql);
    add_types(types, name);
}

/// Makes a statement's name of its text.
pub(in crate::session) fn add_types(types: &[SqlType], name: &mut String) {
    for ty in types {
        // No text has a zero byte in it.
        name.push('\0');
        let mut oid = ty.oid.0;
        while oid > 0 {
            name.push(char::from(b'0' + (oid % 64) as u8));
            oid /= 64;
        }
    }
}

/// What is known of a text: how to run it, or that it is not to be run as one known statement.
pub(in crate::session) type Knowledge = Option<Rc<CachedPlan>>;

#[derive(Default)]
struct Generation {
    known: HashMap<PlanKey, HashMap<Box<str>, Knowledge, FixedState>, FixedState>,
    bytes: usize,
}

impl Generation {
    fn insert(&mut self, key: PlanKey, name: &str, known: Knowledge) {
        self.bytes += estimated_bytes(name);
        self.known
            .entry(key)
            .or_default()
            .insert(name.into(), known);
    }
}

/// What a generation may take, by [`estimated_bytes`].
const GENERATION_BYTES: usize = 16 << 20;

/// A statement with its tree, its bound form and its plan: measured at 3 to 6 kB for those of
/// pgbench and TPC-C, of 50 to 300 bytes of text.
fn estimated_bytes(name: &str) -> usize {
    3000 + 20 * name.len()
}

/// More combinations of settings than sessions go through; past them the list begins anew, and so
/// does the cache.
const MOST_COMBINATIONS: usize = 1000;

/// One core's cache.
#[derive(Default)]
struct PlanCache {
    young: Generation,
    old: Generation,
    /// What nobody finds any more. Each insertion drops some of it: to drop thousands of plans at
    /// once would hold the event loop for tens of milliseconds.
    gone: Vec<Knowledge>,
    settings: Vec<PlanSettings>,
    /// Times the list of settings began anew.
    restarts: u64,
}

impl PlanCache {
    fn find(&mut self, key: PlanKey, name: &str) -> Option<Knowledge> {
        if let Some(known) = self.young.known.get(&key).and_then(|of| of.get(name)) {
            return Some(known.clone());
        }
        let known = self.old.known.get_mut(&key)?.remove(name)?;
        self.insert(key, name, known.clone());
        Some(known)
    }

    fn insert(&mut self, key: PlanKey, name: &str, known: Knowledge) {
        /// More than an insertion can add, so that an end is come to.
        const SOME: usize = 8;
        if self.young.bytes + estimated_bytes(name) > GENERATION_BYTES {
            let old = std::mem::replace(&mut self.old, std::mem::take(&mut self.young));
            self.retire(old);
        }
        self.young.insert(key, name, known);
        self.gone.truncate(self.gone.len().saturating_sub(SOME));
    }

    fn retire(&mut self, generation: Generation) {
        let plans = generation.known.into_values();
        self.gone.extend(plans.flat_map(HashMap::into_values));
    }

    fn forget(&mut self) {
        for generation in [
            std::mem::take(&mut self.young),
            std::mem::take(&mut self.old),
        ] {
            self.retire(generation);
        }
    }

    fn settings_number(&mut self, settings: PlanSettings) -> u32 {
        let number = match self.settings.iter().position(|seen| *seen == settings) {
            Some(at) => at,
            None => {
                if self.settings.len() >= MOST_COMBINATIONS {
                    // Plans kept under old numbers must not be found under new ones.
                    self.settings.clear();
                    self.restarts += 1;
                    self.forget();
                }
                self.settings.push(settings);
                self.settings.len() - 1
            }
        };
        number as u32
    }
}

thread_local! {
    static PLANS: RefCell<PlanCache> = RefCell::default();
}

/// What this core knows of a text.
pub(in crate::session) fn find(key: PlanKey, name: &str) -> Option<Knowledge> {
    PLANS.with_borrow_mut(|plans| plans.find(key, name))
}

/// Keeps what was learned, unless it holds for one transaction only.
pub(in crate::session) fn keep(key: PlanKey, name: &str, known: Knowledge) {
    if !key.own {
        PLANS.with_borrow_mut(|plans| plans.insert(key, name, known));
    }
}

/// DISCARD PLANS: this core's all go.
pub(in crate::session) fn forget() {
    PLANS.with_borrow_mut(PlanCache::forget);
}

/// A session's place in the core's list of settings.
#[derive(Default)]
pub(in crate::session) struct SettingsNumber {
    /// The settings' version and the list's that `number` is of.
    of: Cell<Option<(u64, u64)>>,
    number: Cell<u32>,
}

impl SettingsNumber {
    pub fn get(&self, settings: &SessionSettings) -> u32 {
        PLANS.with_borrow_mut(|plans| {
            if self.of.get() != Some((settings.version(), plans.restarts)) {
                let number = plans.settings_number(PlanSettings::of(settings));
                self.number.set(number);
                self.of.set(Some((settings.version(), plans.restarts)));
            }
            self.number.get()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(catalog: u64) -> PlanKey {
        PlanKey {
            engine: 0,
            catalog,
            own: false,
            role: Oid(10),
            temporary: Oid::NONE,
            settings: 0,
        }
    }

    fn known(sql: &str) -> Knowledge {
        Some(Rc::new(CachedPlan::new(sql, None, Vec::new(), None)))
    }

    #[test]
    fn names_tell_types_apart() {
        let mut names = std::collections::HashSet::new();
        let mut name = String::new();
        let types: [&[SqlType]; 5] = [
            &[],
            &[SqlType::INT4],
            &[SqlType::INT8],
            &[SqlType::INT4, SqlType::INT8],
            &[SqlType::INT8, SqlType::INT4],
        ];
        for types in types {
            name_of("select $1", types, &mut name);
            assert!(names.insert(name.clone()), "{name:?}");
        }
    }

    #[test]
    fn what_is_used_stays_and_the_rest_goes() {
        let mut plans = PlanCache::default();
        let texts: Vec<String> = (0..20_000).map(|i| format!("select {i}")).collect();
        plans.insert(key(1), "favourite", known("favourite"));
        for text in &texts {
            plans.insert(key(1), text, known(text));
            assert!(plans.find(key(1), "favourite").is_some());
            assert!(plans.young.bytes <= GENERATION_BYTES);
            assert!(plans.old.bytes <= GENERATION_BYTES);
        }
        assert!(plans.find(key(1), &texts[0]).is_none());
        assert!(plans.find(key(1), &texts[19_999]).is_some());
        // Another catalog: nothing is known.
        assert!(plans.find(key(2), "favourite").is_none());
    }

    #[test]
    fn a_number_is_not_used_for_two_combinations() {
        let mut plans = PlanCache::default();
        let settings = |n: usize| PlanSettings {
            texts: [n.to_string(), String::new(), String::new(), String::new()],
            paths: [true; 5],
            collapse_limits: [8; 2],
            row_security: true,
            array_nulls: true,
        };
        assert_eq!(plans.settings_number(settings(7)), 0);
        plans.insert(key(1), "select", known("select"));
        for n in 0..MOST_COMBINATIONS {
            plans.settings_number(settings(n));
        }
        assert_eq!(plans.restarts, 0);
        plans.settings_number(settings(MOST_COMBINATIONS));
        assert_eq!(plans.restarts, 1);
        assert!(plans.find(key(1), "select").is_none());
    }
}
