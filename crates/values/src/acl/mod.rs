//! Rights as bits, the kinds of things that they are on, and `aclitem` as text.
//!
//! A right is a bit; its grant option is the same bit 16 higher.

mod role;
mod text;

pub(crate) use role::{read_item, role_name, role_oid};
pub use text::{NamedItem, items_of};

use throng_types::Oid;

/// The role that a cluster is born with.
pub const BOOTSTRAP_SUPERUSER: Oid = Oid(10);

/// Rights, PostgreSQL's bits.
pub mod right {
    pub const INSERT: u32 = 1;
    pub const SELECT: u32 = 1 << 1;
    pub const UPDATE: u32 = 1 << 2;
    pub const DELETE: u32 = 1 << 3;
    pub const TRUNCATE: u32 = 1 << 4;
    pub const REFERENCES: u32 = 1 << 5;
    pub const TRIGGER: u32 = 1 << 6;
    pub const EXECUTE: u32 = 1 << 7;
    pub const USAGE: u32 = 1 << 8;
    pub const CREATE: u32 = 1 << 9;
    pub const TEMPORARY: u32 = 1 << 10;
    pub const CONNECT: u32 = 1 << 11;
    pub const SET: u32 = 1 << 12;
    pub const ALTER_SYSTEM: u32 = 1 << 13;
    pub const MAINTAIN: u32 = 1 << 14;

    /// Every right.
    pub const ALL: u32 = (1 << 15) - 1;
    /// Those on tables and views.
    pub const RELATION: u32 =
        INSERT | SELECT | UPDATE | DELETE | TRUNCATE | REFERENCES | TRIGGER | MAINTAIN;
    pub const COLUMN: u32 = INSERT | SELECT | UPDATE | REFERENCES;
    pub const SEQUENCE: u32 = SELECT | UPDATE | USAGE;
    pub const SCHEMA: u32 = USAGE | CREATE;
    pub const DATABASE: u32 = CREATE | TEMPORARY | CONNECT;

    const OPTION_SHIFT: u32 = 16;

    /// The grant options of rights.
    pub const fn options(rights: u32) -> u32 {
        rights << OPTION_SHIFT
    }
    /// The rights whose grant options are among these bits.
    pub const fn of_options(bits: u32) -> u32 {
        bits >> OPTION_SHIFT
    }
    /// The rights among these bits.
    pub const fn plain(bits: u32) -> u32 {
        bits & ALL
    }

    /// (what SQL calls it, its letter, the bit), in the order in which PostgreSQL writes them.
    pub const NAMES: [(&str, char, u32); 15] = [
        ("INSERT", 'a', INSERT),
        ("SELECT", 'r', SELECT),
        ("UPDATE", 'w', UPDATE),
        ("DELETE", 'd', DELETE),
        ("TRUNCATE", 'D', TRUNCATE),
        ("REFERENCES", 'x', REFERENCES),
        ("TRIGGER", 't', TRIGGER),
        ("EXECUTE", 'X', EXECUTE),
        ("USAGE", 'U', USAGE),
        ("CREATE", 'C', CREATE),
        ("TEMPORARY", 'T', TEMPORARY),
        ("CONNECT", 'c', CONNECT),
        ("SET", 's', SET),
        ("ALTER SYSTEM", 'A', ALTER_SYSTEM),
        ("MAINTAIN", 'm', MAINTAIN),
    ];

    /// The bit of a right's name in any case; `TEMP` is TEMPORARY.
    pub fn named(name: &str) -> Option<u32> {
        if name.eq_ignore_ascii_case("temp") {
            return Some(TEMPORARY);
        }
        let mut names = NAMES.iter();
        let found = names.find(|(known, ..)| known.eq_ignore_ascii_case(name));
        found.map(|(.., bit)| *bit)
    }

    /// Names of rights, with or without `WITH GRANT OPTION`, between commas: the bits of each. The
    /// name that is none is the error.
    pub fn list(text: &str) -> Result<Vec<u32>, &str> {
        const OPTION: &str = " with grant option";
        let one = |part: &'_ str| {
            let part = part.trim();
            let cut = part.len().saturating_sub(OPTION.len());
            let with_option =
                part.is_char_boundary(cut) && part[cut..].eq_ignore_ascii_case(OPTION) && cut > 0;
            match with_option {
                true => named(part[..cut].trim_end()).map(options),
                false => named(part),
            }
        };
        text.split(',')
            .map(|part| one(part).ok_or_else(|| part.trim()))
            .collect()
    }

    /// What SQL calls one right.
    pub fn name(bit: u32) -> &'static str {
        let mut names = NAMES.iter();
        names
            .find(|(.., b)| *b == bit)
            .map_or("", |(name, ..)| *name)
    }
}

/// The kinds of things that rights are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A table or view.
    Relation,
    Sequence,
    Column,
    Database,
    Schema,
    Type,
    Function,
    Language,
}

impl Kind {
    /// By the letter that `acldefault` takes.
    pub fn of_letter(letter: u8) -> Option<Kind> {
        Some(match letter {
            b'r' => Kind::Relation,
            b's' => Kind::Sequence,
            b'c' => Kind::Column,
            b'd' => Kind::Database,
            b'n' => Kind::Schema,
            b'T' => Kind::Type,
            b'f' => Kind::Function,
            b'l' => Kind::Language,
            _ => return None,
        })
    }

    /// Every right there is on such a thing.
    pub fn all(self) -> u32 {
        match self {
            Kind::Relation => right::RELATION,
            Kind::Sequence => right::SEQUENCE,
            Kind::Column => right::COLUMN,
            Kind::Database => right::DATABASE,
            Kind::Schema => right::SCHEMA,
            Kind::Type | Kind::Language => right::USAGE,
            Kind::Function => right::EXECUTE,
        }
    }

    /// The rights that everybody and the owner have on such a thing when it is made.
    pub fn defaults(self) -> (u32, u32) {
        match self {
            Kind::Column => (0, 0),
            Kind::Database => (right::TEMPORARY | right::CONNECT, self.all()),
            Kind::Type | Kind::Language | Kind::Function => (self.all(), self.all()),
            Kind::Relation | Kind::Sequence | Kind::Schema => (0, self.all()),
        }
    }

    /// What messages call it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Relation => "table",
            Kind::Sequence => "sequence",
            Kind::Column => "column",
            Kind::Database => "database",
            Kind::Schema => "schema",
            Kind::Type => "type",
            Kind::Function => "function",
            Kind::Language => "language",
        }
    }
}
