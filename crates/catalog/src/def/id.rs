//! Ids in JSON are plain numbers.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use throng_types::{FileId, Oid, SqlType, Xid};

pub trait Raw: Sized {
    type As: Serialize + for<'a> Deserialize<'a>;
    fn raw(&self) -> Self::As;
    fn from_raw(raw: Self::As) -> Self;
}
impl Raw for Oid {
    type As = u32;
    fn raw(&self) -> u32 {
        self.0
    }
    fn from_raw(raw: u32) -> Oid {
        Oid(raw)
    }
}
impl Raw for FileId {
    type As = u32;
    fn raw(&self) -> u32 {
        self.0
    }
    fn from_raw(raw: u32) -> FileId {
        FileId(raw)
    }
}
impl Raw for Xid {
    type As = u64;
    fn raw(&self) -> u64 {
        self.0
    }
    fn from_raw(raw: u64) -> Xid {
        Xid(raw)
    }
}
impl Raw for SqlType {
    type As = (u32, i32);
    fn raw(&self) -> (u32, i32) {
        (self.oid.0, self.typmod)
    }
    fn from_raw((oid, typmod): (u32, i32)) -> SqlType {
        SqlType {
            oid: Oid(oid),
            typmod,
        }
    }
}
impl Raw for (Oid, u16) {
    type As = (u32, u16);
    fn raw(&self) -> (u32, u16) {
        (self.0.0, self.1)
    }
    fn from_raw((oid, column): (u32, u16)) -> (Oid, u16) {
        (Oid(oid), column)
    }
}
impl<T: Raw> Raw for Option<T> {
    type As = Option<T::As>;
    fn raw(&self) -> Option<T::As> {
        self.as_ref().map(T::raw)
    }
    fn from_raw(raw: Option<T::As>) -> Option<T> {
        raw.map(T::from_raw)
    }
}
impl<T: Raw> Raw for Vec<T> {
    type As = Vec<T::As>;
    fn raw(&self) -> Vec<T::As> {
        self.iter().map(T::raw).collect()
    }
    fn from_raw(raw: Vec<T::As>) -> Vec<T> {
        raw.into_iter().map(T::from_raw).collect()
    }
}
pub fn serialize<T: Raw, S: Serializer>(value: &T, s: S) -> Result<S::Ok, S::Error> {
    value.raw().serialize(s)
}
pub fn deserialize<'a, T: Raw, D: Deserializer<'a>>(d: D) -> Result<T, D::Error> {
    T::As::deserialize(d).map(T::from_raw)
}
