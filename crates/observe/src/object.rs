//! What is waited for, and who has it.
//!
//! Both are numbers that say what kind of number they are, small enough to be stored in words that
//! one thread writes and any thread reads. What they are called is found out by whoever shows them.

/// What kind of thing an [`Object`]'s number names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum ObjectKind {
    /// Nothing in particular, or one of those that were too many to be told apart.
    #[default]
    None,
    /// A number of which only the event knows the meaning.
    Number,
    /// A page: file in the upper half, block in the lower.
    Page,
    /// A relation's file.
    File,
    /// A relation, by its oid.
    Relation,
    /// Another object of the catalog: `scope` is the catalog's oid, the number the object's.
    Catalog,
    /// A row: `scope` is the file, the number block and slot.
    Tuple,
    /// A transaction.
    Transaction,
    /// An advisory lock of one key.
    Advisory,
    /// An advisory lock of two keys, one in each half.
    AdvisoryPair,
    /// A place in the log.
    Lsn,
    /// A core's event loop.
    Core,
    /// A lock in memory, by its place in the list of names ([`Object::lock_name`]).
    Lock,
}

impl ObjectKind {
    const ALL: [ObjectKind; 13] = [
        ObjectKind::None,
        ObjectKind::Number,
        ObjectKind::Page,
        ObjectKind::File,
        ObjectKind::Relation,
        ObjectKind::Catalog,
        ObjectKind::Tuple,
        ObjectKind::Transaction,
        ObjectKind::Advisory,
        ObjectKind::AdvisoryPair,
        ObjectKind::Lsn,
        ObjectKind::Core,
        ObjectKind::Lock,
    ];

    pub(crate) fn from_raw(raw: u8) -> ObjectKind {
        Self::ALL.get(usize::from(raw)).copied().unwrap_or_default()
    }
}

/// What a wait is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Object {
    pub kind: ObjectKind,
    /// What the number is counted in: see [`ObjectKind`]. 0 where it needs nothing.
    pub scope: u32,
    pub number: u64,
}

impl From<u64> for Object {
    fn from(number: u64) -> Object {
        Object::new(ObjectKind::Number, 0, number)
    }
}

impl Object {
    pub const NONE: Object = Object::new(ObjectKind::None, 0, 0);

    pub const fn new(kind: ObjectKind, scope: u32, number: u64) -> Object {
        Object {
            kind,
            scope,
            number,
        }
    }
    /// A page by its id's raw number: the file's in the upper half.
    pub const fn page(raw: u64) -> Object {
        Object::new(ObjectKind::Page, 0, raw)
    }
    pub const fn file(file: u32) -> Object {
        Object::new(ObjectKind::File, 0, file as u64)
    }
    pub const fn relation(oid: u32) -> Object {
        Object::new(ObjectKind::Relation, 0, oid as u64)
    }
    /// An object of another catalog than `pg_class`, whose oid is `class`.
    pub const fn catalog(class: u32, oid: u32) -> Object {
        Object::new(ObjectKind::Catalog, class, oid as u64)
    }
    /// A row by the 48 bits of its tid.
    pub const fn tuple(file: u32, tid: u64) -> Object {
        Object::new(ObjectKind::Tuple, file, tid)
    }
    pub const fn transaction(xid: u64) -> Object {
        Object::new(ObjectKind::Transaction, 0, xid)
    }
    pub const fn advisory(key: i64) -> Object {
        Object::new(ObjectKind::Advisory, 0, key as u64)
    }
    pub const fn advisory_pair(a: i32, b: i32) -> Object {
        let halves = (a as u32 as u64) << 32 | b as u32 as u64;
        Object::new(ObjectKind::AdvisoryPair, 0, halves)
    }
    pub const fn lsn(lsn: u64) -> Object {
        Object::new(ObjectKind::Lsn, 0, lsn)
    }
    pub const fn core(core: u32) -> Object {
        Object::new(ObjectKind::Core, 0, core as u64)
    }
    /// A lock in memory. There are few names, each a constant of the code; one too many becomes
    /// [`Object::NONE`].
    pub fn lock(name: &'static str) -> Object {
        names::place_of(name).map_or(Object::NONE, |place| {
            Object::new(ObjectKind::Lock, 0, place as u64)
        })
    }
    /// The name that [`Object::lock`] was given.
    pub fn lock_name(self) -> Option<&'static str> {
        match self.kind {
            ObjectKind::Lock => names::at(self.number as usize),
            _ => None,
        }
    }

    /// The object that others of its kind are added up under: pages that are read or written count
    /// for their file, places in the log for the log.
    pub(crate) fn gathered(self) -> Object {
        match self.kind {
            ObjectKind::Page => Object::file((self.number >> 32) as u32),
            ObjectKind::Lsn => Object::NONE,
            _ => self,
        }
    }
}

/// Who keeps others waiting.
///
/// ```text
///  63 … 32      31 … 0
/// | kind | session or thread |     all zero: not known, or nobody in particular
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Holder(u64);

const SESSION: u64 = 1 << 32;
const THREAD: u64 = 2 << 32;

impl Holder {
    pub const NONE: Holder = Holder(0);

    /// A session, by its number.
    pub const fn session(pid: u32) -> Holder {
        Holder(SESSION | pid as u64)
    }
    /// A thread that serves no session just now, by its index.
    pub(crate) const fn thread(index: usize) -> Holder {
        Holder(THREAD | index as u64)
    }
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
    /// The session's number.
    pub const fn pid(self) -> Option<u32> {
        match self.0 & !(u32::MAX as u64) {
            SESSION => Some(self.0 as u32),
            _ => None,
        }
    }
    /// The thread's index.
    pub const fn thread_index(self) -> Option<usize> {
        match self.0 & !(u32::MAX as u64) {
            THREAD => Some(self.0 as u32 as usize),
            _ => None,
        }
    }
    pub(crate) const fn raw(self) -> u64 {
        self.0
    }
    pub(crate) const fn from_raw(raw: u64) -> Holder {
        Holder(raw)
    }
}

/// Names by a small number: constants of the code, entered once each and never forgotten.
pub(crate) mod names {
    use std::sync::OnceLock;

    /// Locks and background threads have a name for a kind, not for each of the kind.
    const MOST: usize = 64;
    static NAMES: [OnceLock<&'static str>; MOST] = [const { OnceLock::new() }; MOST];

    /// The name's place, given out when it is first met; None when there are too many.
    pub(crate) fn place_of(name: &'static str) -> Option<usize> {
        NAMES
            .iter()
            .position(|place| *place.get_or_init(|| name) == name)
    }

    pub(crate) fn at(place: usize) -> Option<&'static str> {
        NAMES.get(place)?.get().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_by_their_number() {
        for (i, kind) in ObjectKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, i);
            assert_eq!(ObjectKind::from_raw(i as u8), kind);
        }
        assert_eq!(ObjectKind::from_raw(200), ObjectKind::None);
    }

    #[test]
    fn locks_are_known_by_their_name() {
        let lock = Object::lock("test.one");
        assert_eq!(lock, Object::lock("test.one"));
        assert_ne!(lock, Object::lock("test.other"));
        assert_eq!(lock.lock_name(), Some("test.one"));
        assert_eq!(Object::file(3).lock_name(), None);
    }

    #[test]
    fn a_holder_is_one_thing() {
        let (session, thread) = (Holder::session(7), Holder::thread(7));
        assert_eq!((session.pid(), session.thread_index()), (Some(7), None));
        assert_eq!((thread.pid(), thread.thread_index()), (None, Some(7)));
        assert_eq!(Holder::NONE.pid(), None);
        assert_eq!(Holder::from_raw(session.raw()), session);
    }
}
