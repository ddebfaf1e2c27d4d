//! A host without a server, for tests.

use super::{EvalContext, EvalHost, EvalResult, EvalStop, ObjectKind, WrittenType};
use crate::io::FormatSettings;
use throng_types::{Datum, Error, Oid};

/// Knows one moment (2024-02-29 12:34:56.5 UTC), one user, no objects.
pub struct TestHost;

pub const NOW: i64 = 762_525_296_500_000;

impl EvalHost for TestHost {
    fn transaction_timestamp(&self) -> i64 {
        NOW
    }
    fn statement_timestamp(&self) -> i64 {
        NOW
    }
    fn current_user(&self) -> String {
        "postgres".into()
    }
    fn session_user(&self) -> String {
        "postgres".into()
    }
    fn current_database(&self) -> String {
        "postgres".into()
    }
    fn current_schemas(&self, implicit: bool) -> Vec<String> {
        let all = ["pg_catalog", "public"];
        all[usize::from(!implicit)..]
            .iter()
            .map(|s| s.to_string())
            .collect()
    }
    fn backend_pid(&self) -> i32 {
        4711
    }
    fn show_setting(&self, name: &str) -> Option<String> {
        (name == "work_mem").then(|| "4MB".into())
    }
    fn set_setting(&self, _: &str, value: Option<&str>, _: bool) -> Result<String, EvalStop> {
        Ok(value.unwrap_or("").into())
    }
    fn transaction_id(&self, _: bool) -> Result<Option<u64>, EvalStop> {
        Ok(Some(3))
    }
    fn nextval(&self, _: Oid) -> Result<i64, EvalStop> {
        Ok(1)
    }
    fn currval(&self, _: Oid) -> Result<i64, EvalStop> {
        Ok(1)
    }
    fn lastval(&self) -> Result<i64, EvalStop> {
        Ok(1)
    }
    fn setval(&self, _: Oid, value: i64, _: bool) -> Result<i64, EvalStop> {
        Ok(value)
    }
    fn object_oid(&self, _: ObjectKind, name: &str) -> Result<Oid, EvalStop> {
        let message = format!("relation \"{name}\" does not exist");
        Err(Error::new(throng_types::error::state::UNDEFINED_TABLE, message).into())
    }
    fn object_name(&self, _: ObjectKind, _: Oid) -> Option<String> {
        None
    }
    fn parse_type(&self, name: &str) -> throng_types::Result<WrittenType> {
        Err(Error::unsupported(name))
    }
    fn system_function(&self, name: &str, _: &[Datum]) -> EvalResult {
        Err(Error::unsupported(name).into())
    }
}

/// Runs `f` in UTC with default formats.
pub fn with_context<R>(f: impl FnOnce(&EvalContext<'_>) -> R) -> R {
    let format = FormatSettings::default();
    f(&EvalContext {
        host: &TestHost,
        format: &format,
    })
}
