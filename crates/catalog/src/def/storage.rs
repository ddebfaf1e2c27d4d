//! What `ALTER COLUMN … SET STORAGE` says of a column: kept and shown. Where a long value really
//! lies is decided by its length alone, which no client can tell from PostgreSQL's choices but by
//! the size of files.

use super::id;
use serde::{Deserialize, Serialize};
use throng_types::error::state;
use throng_types::sqltype::type_info;
use throng_types::{Error, Oid, Result, SqlType, oid};

/// What `COMPRESSION` says of a column: kept and shown. Values are not compressed, which the client
/// is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Compression {
    Pglz,
    Lz4,
}

impl Compression {
    /// PostgreSQL's letter.
    pub fn letter(self) -> u8 {
        match self {
            Compression::Pglz => b'p',
            Compression::Lz4 => b'l',
        }
    }

    /// As [`Storage::said`]; none: the default.
    pub fn said(word: &str, ty: SqlType, shown: &str) -> Result<Option<Compression>> {
        let said = match word {
            "default" => None,
            "pglz" => Some(Compression::Pglz),
            "lz4" => Some(Compression::Lz4),
            _ => {
                let message = format!("invalid compression method \"{word}\"");
                return Err(Error::new(state::INVALID_PARAMETER_VALUE, message));
            }
        };
        if said.is_some() && Storage::of_type(ty.oid) == Storage::Plain {
            let message = format!("column data type {shown} does not support compression");
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
        }
        Ok(said)
    }
}

/// By what a row of a table is told to those who follow changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReplicaIdentity {
    /// The primary key.
    #[default]
    Default,
    Nothing,
    Full,
    Index(#[serde(with = "id")] Oid),
}

impl ReplicaIdentity {
    pub fn is_default(&self) -> bool {
        *self == ReplicaIdentity::Default
    }

    /// PostgreSQL's letter.
    pub fn letter(self) -> u8 {
        match self {
            ReplicaIdentity::Default => b'd',
            ReplicaIdentity::Nothing => b'n',
            ReplicaIdentity::Full => b'f',
            ReplicaIdentity::Index(_) => b'i',
        }
    }
}

/// How long values are kept, as `pg_attribute.attstorage` tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Storage {
    Plain,
    Main,
    External,
    Extended,
}

impl Storage {
    /// What a type's values have unless told otherwise.
    pub fn of_type(ty: Oid) -> Storage {
        match ty {
            oid::NUMERIC | oid::INET | oid::CIDR => Storage::Main,
            oid::INT2VECTOR | oid::OIDVECTOR => Storage::Plain,
            _ if type_info(ty).is_some_and(|t| t.len == -1) => Storage::Extended,
            _ => Storage::Plain,
        }
    }

    /// PostgreSQL's letter.
    pub fn letter(self) -> u8 {
        match self {
            Storage::Plain => b'p',
            Storage::Main => b'm',
            Storage::External => b'e',
            Storage::Extended => b'x',
        }
    }

    /// What was written for a column of that type, called `shown` in messages; none: what the type
    /// has. 22023 for another word, 0A000 for what only types of varying length have.
    pub fn said(word: &str, ty: SqlType, shown: &str) -> Result<Option<Storage>> {
        let said = match word.to_ascii_lowercase().as_str() {
            "plain" => Storage::Plain,
            "main" => Storage::Main,
            "external" => Storage::External,
            "extended" => Storage::Extended,
            "default" => return Ok(None),
            _ => {
                let message = format!("invalid storage type \"{word}\"");
                return Err(Error::new(state::INVALID_PARAMETER_VALUE, message));
            }
        };
        let own = Storage::of_type(ty.oid);
        if said != Storage::Plain && own == Storage::Plain {
            let message = format!("column data type {shown} can only have storage PLAIN");
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
        }
        Ok(Some(said).filter(|said| *said != own))
    }
}
