//! The numbers everything is named by. Each is its own type, so that a block is never taken for an
//! oid.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[repr(transparent)]
        pub struct $name(pub $inner);
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(
    /// A byte position in the log's endless stream. A page's LSN is the end of the last record that
    /// changed it.
    Lsn(u64)
);
id!(
    /// A transaction id: 64 bits, never reused. Given out at a transaction's first write.
    Xid(u64)
);
id!(
    /// A commit sequence number: the order in which commits became visible.
    Csn(u64)
);
id!(
    /// A command's number within its transaction.
    Cid(u32)
);
id!(
    /// A catalog object's id, PostgreSQL's numbers for PostgreSQL's objects.
    Oid(u32)
);
id!(
    /// A relation's file in `DIR/base`.
    FileId(u32)
);

/// A page's number within its file.
pub type BlockNo = u32;

impl Lsn {
    pub const ZERO: Lsn = Lsn(0);
    pub const MAX: Lsn = Lsn(u64::MAX);

    /// As `pg_lsn` shows it: both halves in hexadecimal.
    pub fn to_halves(self) -> String {
        format!("{:X}/{:X}", self.0 >> 32, self.0 as u32)
    }

    /// Reads what [`to_halves`](Self::to_halves) writes, in digits of either case.
    pub fn from_halves(text: &str) -> Option<Lsn> {
        let (high, low) = text.split_once('/')?;
        let half = |digits: &str| {
            let is_hex =
                (1..=8).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
            is_hex
                .then(|| u32::from_str_radix(digits, 16).ok())
                .flatten()
        };
        Some(Lsn(u64::from(half(high)?) << 32 | u64::from(half(low)?)))
    }
}

impl Xid {
    /// No transaction: an `xmax` that was never set.
    pub const NONE: Xid = Xid(0);
    /// Committed before everything: rows made at first start.
    pub const FROZEN: Xid = Xid(1);
    /// The first one given out.
    pub const FIRST: Xid = Xid(3);
    pub fn is_none(self) -> bool {
        self == Xid::NONE
    }
}

impl Oid {
    pub const NONE: Oid = Oid(0);
    /// Objects made by users start here, as in PostgreSQL.
    pub const FIRST_USER: Oid = Oid(16384);
}

/// A page of a file: file in the high half, block in the low half.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct PageId(u64);

impl PageId {
    pub const fn new(file: FileId, block: BlockNo) -> PageId {
        PageId((file.0 as u64) << 32 | block as u64)
    }
    pub const fn from_raw(raw: u64) -> PageId {
        PageId(raw)
    }
    pub const fn raw(self) -> u64 {
        self.0
    }
    pub const fn file(self) -> FileId {
        FileId((self.0 >> 32) as u32)
    }
    pub const fn block(self) -> BlockNo {
        self.0 as u32
    }
}

impl fmt::Debug for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.file(), self.block())
    }
}
impl fmt::Display for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Where a tuple is: block and slot (slots count from 1, as PostgreSQL's `ctid` shows them).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tid {
    pub block: BlockNo,
    pub slot: u16,
}

impl Tid {
    /// No tuple: the `next` of a version that has none.
    pub const NONE: Tid = Tid {
        block: u32::MAX,
        slot: 0,
    };
    /// The `next` of a version whose row went on in another relation: nothing here follows it.
    pub const MOVED: Tid = Tid {
        block: u32::MAX,
        slot: 1,
    };
    pub const fn new(block: BlockNo, slot: u16) -> Tid {
        Tid { block, slot }
    }
    pub fn is_none(self) -> bool {
        self == Tid::NONE
    }
    /// 48 bits, in block then slot order.
    pub const fn to_u64(self) -> u64 {
        (self.block as u64) << 16 | self.slot as u64
    }
    pub const fn from_u64(raw: u64) -> Tid {
        Tid {
            block: (raw >> 16) as u32,
            slot: raw as u16,
        }
    }
}

impl fmt::Debug for Tid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({},{})", self.block, self.slot)
    }
}
impl fmt::Display for Tid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
