//! What an evaluation may ask of its surroundings, and how it stops.

use crate::format::FormatSettings;
use std::any::Any;
use std::sync::Arc;
use throng_types::{Datum, Error, Oid, SqlType};

/// Why an evaluation did not end in a value.
pub enum EvalStop {
    Error(Error),
    /// Something must be waited for; the caller knows what, waits, and evaluates again.
    Wait(Box<dyn Any + Send>),
}

pub type EvalResult = Result<Datum, EvalStop>;

impl From<Error> for EvalStop {
    fn from(e: Error) -> EvalStop {
        EvalStop::Error(e)
    }
}

impl EvalStop {
    /// The error where there can be nothing to wait for, as with constants.
    pub fn into_error(self) -> Error {
        match self {
            EvalStop::Error(e) => e,
            EvalStop::Wait(_) => {
                Error::internal("an evaluation stopped where nothing can be waited for")
            }
        }
    }
}

impl std::fmt::Debug for EvalStop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            EvalStop::Error(e) => e.fmt(f),
            EvalStop::Wait(_) => f.write_str("Wait"),
        }
    }
}

/// What every evaluation is given.
#[derive(Clone, Copy)]
pub struct EvalContext<'a> {
    pub host: &'a dyn EvalHost,
    /// How dates, floats and bytes are read and written; the time zone.
    pub format: &'a FormatSettings,
}

/// The catalog objects that have a `reg*` type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    Class,
    Type,
    Procedure,
    ProcedureWithArguments,
    Operator,
    OperatorWithArguments,
    Namespace,
    Role,
    Collation,
    TextSearchConfiguration,
    TextSearchDictionary,
}

/// A column of a relation in a query.
#[derive(Clone, Debug, PartialEq)]
pub struct RelColumn {
    pub name: String,
    pub ty: SqlType,
}

/// A type that a user made, as input, output and functions need it.
pub trait UserType {
    fn oid(&self) -> Oid;
    /// The place of an enum's label among its values.
    fn place_of(&self, label: &str) -> Option<f64>;
    /// The label of an enum that has this place.
    fn label_at(&self, place: f64) -> Option<&str>;
    /// The places of an enum's labels, in their order.
    fn places(&self) -> Vec<f64>;
    /// The columns of a composite type.
    fn fields(&self) -> Option<Vec<Field<'_>>>;
    /// The type of a domain's values.
    fn domain_base(&self) -> Option<SqlType>;
}

/// A column of a composite type.
pub struct Field<'a> {
    pub name: &'a str,
    pub ty: SqlType,
    pub domain: Option<Oid>,
}

impl Field<'_> {
    /// The type that it is declared as: its domain, where it has one.
    pub fn declared(&self) -> Oid {
        self.domain.unwrap_or(self.ty.oid)
    }
}

/// The name of a type as it is written.
#[derive(Debug)]
pub struct WrittenType {
    pub schema: Option<String>,
    pub name: String,
    pub is_array: bool,
    pub modifiers: Vec<i32>,
}

/// Columns and rows.
pub type TransitionTable = (Arc<[RelColumn]>, Arc<[Vec<Datum>]>);

/// The session and the catalog, as functions see them.
///
/// What changes nothing and needs no more than the session answers a value; the rest may stop.
pub trait EvalHost {
    /// When the transaction began: `now()`. Microseconds since 2000-01-01 UTC.
    fn transaction_timestamp(&self) -> i64;
    /// When the statement came.
    fn statement_timestamp(&self) -> i64;
    fn current_user(&self) -> String;
    fn session_user(&self) -> String;
    fn current_database(&self) -> String;
    /// The schemas of the search path that exist, in order; `implicit` adds `pg_catalog` and the
    /// temporary one.
    fn current_schemas(&self, implicit: bool) -> Vec<String>;
    fn backend_pid(&self) -> i32;
    /// A setting as SHOW tells it; None where there is no such setting.
    fn show_setting(&self, name: &str) -> Option<String>;
    /// 42501 for a setting that not everybody may see.
    fn may_examine(&self, _name: &str) -> throng_types::Result<()> {
        Ok(())
    }
    /// `set_config`: the new value as SHOW tells it. None sets the default.
    fn set_setting(&self, name: &str, value: Option<&str>, local: bool)
    -> Result<String, EvalStop>;
    /// Does something while settings have the values that a routine of its own gives them; it is
    /// told of the search path then.
    fn with_settings(
        &self,
        _settings: &[(String, String)],
        _within: &mut dyn FnMut(EvalContext<'_>, &[Oid]),
    ) -> throng_types::Result<()> {
        Err(Error::unsupported("settings of a function here"))
    }
    /// The transaction's id, given out now if it has none and `assign`.
    fn transaction_id(&self, assign: bool) -> Result<Option<u64>, EvalStop>;
    fn nextval(&self, sequence: Oid) -> Result<i64, EvalStop>;
    /// The same for a column's own sequence, on which nobody needs rights.
    fn next_of_identity(&self, sequence: Oid) -> Result<i64, EvalStop> {
        self.nextval(sequence)
    }
    fn currval(&self, sequence: Oid) -> Result<i64, EvalStop>;
    fn lastval(&self) -> Result<i64, EvalStop>;
    fn setval(&self, sequence: Oid, value: i64, is_called: bool) -> Result<i64, EvalStop>;
    /// The oid of the object named (quoted and qualified as in SQL). The error is PostgreSQL's:
    /// `relation "x" does not exist`.
    fn object_oid(&self, kind: ObjectKind, name: &str) -> Result<Oid, EvalStop>;
    /// The object's name, qualified where the search path needs it; None where there is no such
    /// object.
    fn object_name(&self, kind: ObjectKind, oid: Oid) -> Option<String>;
    /// Parses the name of a type; whether there is such a type is another question.
    fn parse_type(&self, name: &str) -> throng_types::Result<WrittenType>;
    /// The type a user made that has this oid.
    fn user_type(&self, oid: Oid) -> Option<Arc<dyn UserType>> {
        let _ = oid;
        None
    }
    /// Whether a value is as a domain asks: 23502 or 23514 where it is not.
    fn check_in_domain(&self, domain: Oid, value: &Datum) -> throng_types::Result<()> {
        let _ = (domain, value);
        Err(Error::unsupported("values of a domain here"))
    }
    /// A transition table of the trigger whose function is running: its columns and rows.
    fn transition_table(&self, name: &str) -> Option<TransitionTable> {
        let _ = name;
        None
    }
    /// The session's random bits: the same after the same [`EvalHost::seed_random`].
    fn random_bits(&self) -> u64 {
        rand::random()
    }
    fn seed_random(&self, seed: f64) -> Result<(), EvalStop> {
        let _ = seed;
        Err(Error::unsupported("setseed here").into())
    }
    /// What the client is to be told beside the value.
    fn warn(&self, _: Error) {}
    /// Every other function that needs the catalog, the session or the server, by its `pg_proc`
    /// name.
    fn system_function(&self, name: &str, args: &[Datum]) -> EvalResult;
}
