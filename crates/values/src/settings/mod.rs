//! Settings: what exists ([`registry`]), what values mean ([`value`]), and a session's own values
//! with their undo.
//!
//! ```text
//! SET x = 1;                 BEGIN; SET x = 2; SET LOCAL x = 3; COMMIT;      x is 2
//! BEGIN; SET x = 2; ROLLBACK;                                                x is 1
//! ```

#[cfg(test)]
mod document;
pub mod flags;
pub mod inert;
pub mod registry;
pub mod standbys;
pub mod value;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use throng_types::error::state;
use throng_types::{Error, Result};

pub use inert::{INERT, Inert, find_inert};
pub use registry::{Context, Id, SERVER_VERSION, SETTINGS, Setting};
pub use value::{Kind, Unit, Value};

impl Id {
    pub fn definition(self) -> &'static Setting {
        &SETTINGS[self as usize]
    }
}

static BY_NAME: LazyLock<HashMap<String, Id>> = LazyLock::new(|| {
    let mut names: HashMap<String, Id> = Id::ALL
        .iter()
        .map(|id| (id.definition().name.to_ascii_lowercase(), *id))
        .collect();
    names.insert("timezone".to_owned(), Id::TimeZone);
    names
});

/// The setting with this name, in any case.
pub fn find(name: &str) -> Option<Id> {
    BY_NAME.get(&name.to_ascii_lowercase()).copied()
}

/// What several values of one SET are to a setting.
#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    /// An error: it has one value.
    No,
    Words,
    /// Each is a name, and quoted where SQL would quote it.
    Names,
}

fn list_of(name: &str) -> List {
    const NAMES: [&str; 6] = [
        "search_path",
        "temp_tablespaces",
        "session_preload_libraries",
        "shared_preload_libraries",
        "local_preload_libraries",
        "unix_socket_directories",
    ];
    const WORDS: [&str; 9] = [
        "datestyle",
        "createrole_self_grant",
        "debug_io_direct",
        "listen_addresses",
        "log_connections",
        "log_destination",
        "restrict_nonsystem_relation_kind",
        "synchronous_standby_names",
        "wal_consistency_checking",
    ];
    let lower = name.to_ascii_lowercase();
    if NAMES.contains(&lower.as_str()) {
        List::Names
    } else if WORDS.contains(&lower.as_str()) {
        List::Words
    } else {
        List::No
    }
}

/// Whether a setting is a list of names, each of which is shown by itself where its definition is
/// written out.
pub fn is_list_of_names(name: &str) -> bool {
    list_of(name) == List::Names
}

/// Whether only those may see a setting who have the privileges of `pg_read_all_settings`: it tells
/// of the machine.
pub fn is_private(name: &str) -> bool {
    const PRIVATE: [&str; 10] = [
        "config_file",
        "data_directory",
        "dynamic_library_path",
        "external_pid_file",
        "hba_file",
        "ident_file",
        "session_preload_libraries",
        "shared_preload_libraries",
        "ssl_passphrase_command",
        "unix_socket_directories",
    ];
    PRIVATE
        .iter()
        .any(|private| private.eq_ignore_ascii_case(name))
}

/// The values of a SET as one text.
///
/// # Errors
/// 22023 for several values of a setting that is no list.
pub fn joined(name: &str, values: &[String]) -> Result<String> {
    match (list_of(name), values.len()) {
        (List::Names, _) => {
            let names: Vec<_> = values
                .iter()
                .map(|v| throng_types::lexical::quote_ident(v))
                .collect();
            Ok(names.join(", "))
        }
        (List::No, 2..) if find(name).is_some() || name.contains('.') => Err(Error::new(
            state::INVALID_PARAMETER_VALUE,
            format!("SET {name} takes only one argument"),
        )),
        _ => Ok(values.join(", ")),
    }
}

/// Whether a value may be kept for a setting, to be set whenever a function runs or a session
/// begins; `superuser`: whoever keeps it.
///
/// # Errors
/// 42704, 22023, 42501 and 55P02, as SET would give them.
pub fn check_stored(name: &str, value: Option<&str>, superuser: bool) -> Result<()> {
    // Who may become which role is checked when one does.
    if name.eq_ignore_ascii_case("role") {
        return Ok(());
    }
    let caller = Caller {
        superuser,
        starting: false,
    };
    let Some(id) = find(name) else {
        return match find_inert(name) {
            Some(inert) => {
                inert.setting.must_be_settable(caller)?;
                value.map_or(Ok(()), |value| inert.checked(value).map(|_| ()))
            }
            None if name.contains('.') => Ok(()),
            None => Err(unknown(name)),
        };
    };
    let setting = id.definition();
    if matches!(id, Id::SessionAuthorization) {
        return Ok(());
    }
    setting.must_be_settable(caller)?;
    match value {
        Some(value) => setting.kind.parse(setting.name, value).map(|_| ()),
        None => Ok(()),
    }
}

fn unknown(name: &str) -> Error {
    Error::new(
        state::UNDEFINED_OBJECT,
        format!("unrecognized configuration parameter \"{name}\""),
    )
}

/// Where a value comes from, as `pg_settings.source` says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Default,
    ConfigurationFile,
    CommandLine,
    Client,
    Session,
}

impl Source {
    pub fn name(self) -> &'static str {
        match self {
            Source::Default => "default",
            Source::ConfigurationFile => "configuration file",
            Source::CommandLine => "command line",
            Source::Client => "client",
            Source::Session => "session",
        }
    }
}

/// Values for the whole server: what each session starts with.
#[derive(Clone)]
pub struct ServerSettings {
    values: Vec<(Value, Source)>,
    /// Values of settings without effect that are not their defaults.
    inert: Arc<BTreeMap<String, String>>,
}

impl Default for ServerSettings {
    fn default() -> ServerSettings {
        let default = |s: &Setting| {
            s.kind
                .parse(s.name, s.default)
                .expect("a default is a valid value of its setting")
        };
        ServerSettings {
            values: SETTINGS
                .iter()
                .map(|s| (default(s), Source::Default))
                .collect(),
            inert: Arc::default(),
        }
    }
}

impl ServerSettings {
    /// Takes a value given at start or in the configuration file.
    pub fn set(&mut self, name: &str, text: &str, source: Source) -> Result<()> {
        let Some(id) = find(name) else {
            let inert = find_inert(name).ok_or_else(|| unknown(name))?;
            if inert.setting.context == Context::Internal {
                return Err(cannot_change(inert.setting.name));
            }
            let value = inert.checked(text)?;
            Arc::make_mut(&mut self.inert).insert(inert.setting.name.to_owned(), value);
            return Ok(());
        };
        let setting = id.definition();
        if setting.context == Context::Internal {
            return Err(cannot_change(setting.name));
        }
        let value = setting
            .kind
            .parse_over(setting.name, text, Some(self.get(id)))?;
        self.values[id as usize] = (value, source);
        Ok(())
    }
    /// Leaves what a restart alone can change as it is `now`. The names of settings that would have
    /// changed.
    pub fn keep_until_restart(&mut self, now: &ServerSettings) -> Vec<&'static str> {
        let mut kept = Vec::new();
        for (at, setting) in SETTINGS.iter().enumerate() {
            if setting.context == Context::Postmaster && self.values[at] != now.values[at] {
                self.values[at] = now.values[at].clone();
                kept.push(setting.name);
            }
        }
        kept
    }
    pub fn get(&self, id: Id) -> &Value {
        &self.values[id as usize].0
    }
    pub fn int(&self, id: Id) -> i64 {
        self.get(id).int()
    }
    pub fn real(&self, id: Id) -> f64 {
        self.get(id).real()
    }
    pub fn bool(&self, id: Id) -> bool {
        self.get(id).bool()
    }
    pub fn text(&self, id: Id) -> &str {
        self.get(id).text()
    }
}

fn cannot_change(name: &str) -> Error {
    Error::new(
        state::CANT_CHANGE_RUNTIME_PARAM,
        format!("parameter \"{name}\" cannot be changed"),
    )
}

/// How long a SET lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Session,
    /// SET LOCAL: until the transaction ends.
    Local,
}

/// What the session is allowed and whether it is just starting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    pub superuser: bool,
    /// The startup packet's options may set what a running session may not.
    pub starting: bool,
}

impl Setting {
    /// 42501 or 55P02 where the caller may not set it.
    fn must_be_settable(&self, caller: Caller) -> Result<()> {
        let name = self.name;
        let (code, message) = match self.context {
            Context::Internal => return Err(cannot_change(name)),
            Context::Postmaster => (
                state::CANT_CHANGE_RUNTIME_PARAM,
                format!("parameter \"{name}\" cannot be changed without restarting the server"),
            ),
            Context::Sighup => (
                state::CANT_CHANGE_RUNTIME_PARAM,
                format!("parameter \"{name}\" cannot be changed now"),
            ),
            Context::Superuser if !caller.superuser => (
                state::INSUFFICIENT_PRIVILEGE,
                format!("permission denied to set parameter \"{name}\""),
            ),
            Context::Backend if !caller.starting => (
                state::CANT_CHANGE_RUNTIME_PARAM,
                format!("parameter \"{name}\" cannot be set after connection start"),
            ),
            _ => return Ok(()),
        };
        Err(Error::new(code, message))
    }
}

/// One session's values, with what is needed to take them back.
pub struct SessionSettings {
    base: Vec<(Value, Source)>,
    values: Vec<(Value, Source)>,
    /// Settings of users' own, `prefix.name`, and those without effect, in their own units.
    custom: BTreeMap<String, String>,
    /// What settings without effect have where the session has not set them.
    inert: Arc<BTreeMap<String, String>>,
    /// Settings without effect that the client was told about, and whether it has still to be told.
    idle: Vec<(&'static Inert, bool)>,
    undo: Vec<Undo>,
    /// Counts changes: what was derived from settings is stale when it differs.
    version: u64,
    /// Reported settings that were set since the client was last told, with what it was told.
    changed: Vec<(Id, Value)>,
}

enum Undo {
    Known {
        id: Id,
        old: (Value, Source),
        new: (Value, Source),
        scope: Scope,
    },
    Custom {
        name: String,
        old: Option<String>,
        new: String,
        scope: Scope,
    },
}

impl Undo {
    fn scope(&self) -> Scope {
        match self {
            Undo::Known { scope, .. } | Undo::Custom { scope, .. } => *scope,
        }
    }
}

impl SessionSettings {
    pub fn new(server: &ServerSettings) -> SessionSettings {
        SessionSettings {
            base: server.values.clone(),
            values: server.values.clone(),
            custom: BTreeMap::new(),
            inert: Arc::clone(&server.inert),
            idle: Vec::new(),
            undo: Vec::new(),
            version: 0,
            changed: Vec::new(),
        }
    }

    pub fn version(&self) -> u64 {
        self.version
    }

    pub fn get(&self, id: Id) -> &Value {
        &self.values[id as usize].0
    }
    pub fn int(&self, id: Id) -> i64 {
        self.get(id).int()
    }
    pub fn real(&self, id: Id) -> f64 {
        self.get(id).real()
    }
    pub fn bool(&self, id: Id) -> bool {
        self.get(id).bool()
    }
    pub fn text(&self, id: Id) -> &str {
        self.get(id).text()
    }

    fn put(&mut self, id: Id, new: (Value, Source)) -> (Value, Source) {
        self.version += 1;
        let old = std::mem::replace(&mut self.values[id as usize], new);
        if id.definition().report
            && old.0 != self.values[id as usize].0
            && !self.changed.iter().any(|(known, _)| *known == id)
        {
            self.changed.push((id, old.0.clone()));
        }
        old
    }

    /// SET name = text. `None` is SET … TO DEFAULT and RESET.
    pub fn set(
        &mut self,
        name: &str,
        text: Option<&str>,
        scope: Scope,
        caller: Caller,
    ) -> Result<()> {
        let Some(id) = find(name) else {
            return match find_inert(name) {
                Some(inert) => self.set_inert(inert, text, scope, caller),
                None => self.set_custom(name, text, scope),
            };
        };
        let setting = id.definition();
        setting.must_be_settable(caller)?;
        let source = if caller.starting {
            Source::Client
        } else {
            Source::Session
        };
        let new = match text {
            Some(text) => (
                setting
                    .kind
                    .parse_over(setting.name, text, Some(self.get(id)))?,
                source,
            ),
            None => self.base[id as usize].clone(),
        };
        let old = self.put(id, new.clone());
        if caller.starting {
            self.base[id as usize] = new;
        } else {
            self.undo.push(Undo::Known {
                id,
                old,
                new,
                scope,
            });
        }
        Ok(())
    }

    fn set_custom(&mut self, name: &str, text: Option<&str>, scope: Scope) -> Result<()> {
        if !name.contains('.') {
            return Err(unknown(name));
        }
        self.put_custom(
            name.to_ascii_lowercase(),
            text.unwrap_or_default().to_owned(),
            scope,
        );
        Ok(())
    }

    fn put_custom(&mut self, name: String, new: String, scope: Scope) {
        let old = self.custom.insert(name.clone(), new.clone());
        self.undo.push(Undo::Custom {
            name,
            old,
            new,
            scope,
        });
    }

    /// A setting without effect: its value is checked and kept, and the client told of the first
    /// that is new.
    fn set_inert(
        &mut self,
        inert: &'static Inert,
        text: Option<&str>,
        scope: Scope,
        caller: Caller,
    ) -> Result<()> {
        inert.setting.must_be_settable(caller)?;
        let new = match text {
            Some(text) => inert.checked(text)?,
            None => self.server_inert(inert),
        };
        let told = self
            .idle
            .iter()
            .any(|(known, _)| std::ptr::eq(*known, inert));
        if new != self.inert_value(inert) && !told {
            self.idle.push((inert, true));
        }
        self.put_custom(inert.setting.name.to_owned(), new, scope);
        Ok(())
    }

    fn server_inert(&self, inert: &Inert) -> String {
        let set = self.inert.get(inert.setting.name).cloned();
        set.unwrap_or_else(|| inert.setting.default.to_owned())
    }

    /// What a setting without effect has, in its own unit.
    pub fn inert_value(&self, inert: &Inert) -> String {
        let set = self.custom.get(inert.setting.name).cloned();
        set.unwrap_or_else(|| self.server_inert(inert))
    }

    /// What the client is to be told of settings that were set and have no effect.
    pub fn take_notices(&mut self) -> Vec<Error> {
        let untold = self.idle.iter_mut().filter(|(_, untold)| *untold);
        untold
            .map(|(inert, untold)| {
                *untold = false;
                let name = inert.setting.name;
                Error::new(
                    state::SUCCESSFUL_COMPLETION,
                    format!("setting \"{name}\" has no effect"),
                )
                .detail(inert.because())
            })
            .collect()
    }

    /// Sets what only the server may, such as `is_superuser`.
    pub fn force(&mut self, id: Id, value: Value) {
        self.base[id as usize] = (value.clone(), Source::Default);
        self.put(id, (value, Source::Default));
    }

    /// RESET ALL.
    pub fn reset_all(&mut self, caller: Caller) -> Result<()> {
        for id in Id::ALL {
            let is_settable = matches!(id.definition().context, Context::User)
                || (caller.superuser && id.definition().context == Context::Superuser);
            if is_settable && self.values[*id as usize] != self.base[*id as usize] {
                self.set(id.definition().name, None, Scope::Session, caller)?;
            }
        }
        for inert in INERT {
            if self.custom.contains_key(inert.setting.name) {
                let was = self.server_inert(inert);
                self.put_custom(inert.setting.name.to_owned(), was, Scope::Session);
            }
        }
        Ok(())
    }

    /// SHOW name.
    pub fn show(&self, name: &str) -> Result<String> {
        match find(name) {
            Some(id) => Ok(self.show_id(id)),
            None => match find_inert(name) {
                Some(inert) => Ok(inert.shown(&self.inert_value(inert))),
                None => self
                    .custom
                    .get(&name.to_ascii_lowercase())
                    .cloned()
                    .ok_or_else(|| unknown(name)),
            },
        }
    }

    pub fn show_id(&self, id: Id) -> String {
        id.definition().kind.show(self.get(id))
    }

    /// The name as the registry spells it.
    pub fn canonical_name(name: &str) -> &str {
        match (find(name), find_inert(name)) {
            (Some(id), _) => id.definition().name,
            (None, Some(inert)) => inert.setting.name,
            (None, None) => name,
        }
    }

    /// Every setting with its value in its own unit and its source: the rows of `pg_settings`.
    pub fn all(&self) -> impl Iterator<Item = (&'static Setting, &Value, Source)> + '_ {
        SETTINGS
            .iter()
            .zip(&self.values)
            .map(|(setting, (value, source))| (setting, value, *source))
    }

    /// The names in `search_path`, `$user` not yet replaced.
    pub fn search_path(&self) -> Vec<String> {
        value::split_names(self.text(Id::SearchPath)).unwrap_or_default()
    }

    /// A place in the undo log: what a savepoint remembers.
    pub fn mark(&self) -> usize {
        self.undo.len()
    }

    /// Takes back everything set since `mark`.
    pub fn rollback_to(&mut self, mark: usize) {
        self.rollback_some(mark, usize::MAX);
    }

    /// The same, so many of the changes, the last first. Whether those were all.
    pub fn rollback_some(&mut self, mark: usize, most: usize) -> bool {
        let until = mark.max(self.undo.len().saturating_sub(most));
        while self.undo.len() > until {
            match self.undo.pop() {
                Some(Undo::Known { id, old, .. }) => {
                    self.put(id, old);
                }
                Some(Undo::Custom { name, old, .. }) => self.restore_custom(name, old),
                None => {}
            }
        }
        until <= mark
    }

    fn restore_custom(&mut self, name: String, value: Option<String>) {
        match value {
            Some(value) => self.custom.insert(name, value),
            None => self.custom.remove(&name),
        };
    }

    /// The transaction committed: what was set for it alone is taken back, the rest stays.
    pub fn commit(&mut self) {
        if self.undo.is_empty() {
            return;
        }
        let log = std::mem::take(&mut self.undo);
        // What was set for the session is there; only what was set for the transaction is taken
        // back.
        if log.iter().all(|entry| entry.scope() == Scope::Session) {
            return;
        }
        // For each setting touched: the value before the transaction, or the last one set for the
        // session.
        let mut known: BTreeMap<Id, (Value, Source)> = BTreeMap::new();
        let mut custom: BTreeMap<String, Option<String>> = BTreeMap::new();
        for entry in log {
            match entry {
                Undo::Known {
                    id,
                    old,
                    new,
                    scope,
                } => {
                    let lasting = known.entry(id).or_insert(old);
                    if scope == Scope::Session {
                        *lasting = new;
                    }
                }
                Undo::Custom {
                    name,
                    old,
                    new,
                    scope,
                } => {
                    let lasting = custom.entry(name).or_insert(old);
                    if scope == Scope::Session {
                        *lasting = Some(new);
                    }
                }
            }
        }
        for (id, value) in known {
            if self.values[id as usize] != value {
                self.put(id, value);
            }
        }
        for (name, value) in custom {
            self.restore_custom(name, value);
        }
    }

    /// Reported settings that changed since this was last asked, with their values.
    pub fn take_changed(&mut self) -> Vec<(&'static str, String)> {
        let changed = std::mem::take(&mut self.changed);
        changed
            .into_iter()
            .filter(|(id, told)| self.get(*id) != told)
            .map(|(id, _)| (id.definition().name, self.show_id(id)))
            .collect()
    }

    /// All reported settings, as a new client is told them.
    pub fn reported(&self) -> Vec<(String, String)> {
        let reported = Id::ALL.iter().filter(|id| id.definition().report);
        reported
            .map(|id| (id.definition().name.to_owned(), self.show_id(*id)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: Caller = Caller {
        superuser: false,
        starting: false,
    };

    fn session() -> SessionSettings {
        SessionSettings::new(&ServerSettings::default())
    }

    #[test]
    fn local_values_end_with_the_transaction() -> Result<()> {
        let mut s = session();
        s.set("work_mem", Some("1MB"), Scope::Session, USER)?;
        s.commit();
        s.set("work_mem", Some("2MB"), Scope::Session, USER)?;
        s.set("work_mem", Some("3MB"), Scope::Local, USER)?;
        assert_eq!(s.show("work_mem")?, "3MB");
        s.commit();
        assert_eq!(s.show("work_mem")?, "2MB");
        s.set("work_mem", Some("9MB"), Scope::Session, USER)?;
        s.rollback_to(0);
        assert_eq!(s.show("work_mem")?, "2MB");
        Ok(())
    }

    #[test]
    fn savepoints_take_back_what_came_after() -> Result<()> {
        let mut s = session();
        s.set("my.var", Some("a"), Scope::Session, USER)?;
        let mark = s.mark();
        s.set("my.var", Some("b"), Scope::Session, USER)?;
        s.set("statement_timeout", Some("5s"), Scope::Local, USER)?;
        s.rollback_to(mark);
        assert_eq!(s.show("my.var")?, "a");
        assert_eq!(s.show("statement_timeout")?, "0");
        Ok(())
    }

    #[test]
    fn refusals_have_postgresqls_codes() {
        let mut s = session();
        let mut code = |name, text| {
            s.set(name, Some(text), Scope::Session, USER)
                .map_err(|e| e.code())
        };
        assert_eq!(code("no_such", "1"), Err(state::UNDEFINED_OBJECT));
        assert_eq!(
            code("shared_buffers", "1GB"),
            Err(state::CANT_CHANGE_RUNTIME_PARAM)
        );
        assert_eq!(
            code("deadlock_timeout", "1s"),
            Err(state::INSUFFICIENT_PRIVILEGE)
        );
        assert_eq!(
            code("statement_timeout", "soon"),
            Err(state::INVALID_PARAMETER_VALUE)
        );
        assert_eq!(
            code("client_encoding", "klingon"),
            Err(state::INVALID_PARAMETER_VALUE)
        );
        assert_eq!(
            code("client_encoding", "mule_internal"),
            Err(state::FEATURE_NOT_SUPPORTED)
        );
        assert_eq!(code("client_encoding", "iso-8859-15"), Ok(()));
        assert_eq!(code("statement_timeout", "5min"), Ok(()));
    }

    #[test]
    fn changes_of_reported_settings_are_told_once() -> Result<()> {
        let mut s = session();
        s.set("application_name", Some("x"), Scope::Session, USER)?;
        assert_eq!(s.take_changed(), [("application_name", "x".to_owned())]);
        s.commit();
        assert!(s.take_changed().is_empty());
        Ok(())
    }
}
