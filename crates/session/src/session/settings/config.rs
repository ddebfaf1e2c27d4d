//! Settings as every way of setting them reaches them: SET, RESET, `set_config` and what a
//! function's definition sets.
//!
//! Most lie in the session's [settings](throng_values::settings); the transaction's modes and the
//! session's roles lie with those.

use throng_bind::command::TransactionModes;
use throng_catalog::builtin;
use throng_types::error::state;
use throng_types::{Error, Result};
use throng_values::settings::value::parse_bool;
use throng_values::settings::{Scope, is_private};

use crate::session::Session;
use crate::session::transaction::parse_isolation;

/// The words of `transaction_isolation`.
const LEVELS: [&str; 4] = [
    "serializable",
    "repeatable read",
    "read committed",
    "read uncommitted",
];

fn invalid(message: String) -> Error {
    Error::new(state::INVALID_PARAMETER_VALUE, message)
}

fn boolean(name: &str, value: &str) -> Result<bool> {
    parse_bool(value)
        .ok_or_else(|| invalid(format!("parameter \"{name}\" requires a Boolean value")))
}

/// The transaction's mode that a setting of this name is; None where it is no such setting.
fn mode(name: &str, value: Option<&str>) -> Result<Option<TransactionModes>> {
    let none = TransactionModes::default();
    let given = || {
        value.ok_or_else(|| {
            let message = format!("parameter \"{name}\" cannot be reset");
            Error::new(state::FEATURE_NOT_SUPPORTED, message)
        })
    };
    Ok(Some(match name {
        "transaction_isolation" => {
            let text = given()?;
            let known = LEVELS.iter().find(|level| level.eq_ignore_ascii_case(text));
            let level = known.ok_or_else(|| {
                let message = format!("invalid value for parameter \"{name}\": \"{text}\"");
                invalid(message).hint(format!("Available values: {}.", LEVELS.join(", ")))
            })?;
            TransactionModes {
                isolation: Some(parse_isolation(level)),
                ..none
            }
        }
        "transaction_read_only" => TransactionModes {
            read_only: Some(boolean(name, given()?)?),
            ..none
        },
        "transaction_deferrable" => TransactionModes {
            deferrable: Some(boolean(name, given()?)?),
            ..none
        },
        _ => return Ok(None),
    }))
}

impl Session {
    /// 42501 for a setting that is not for the current role's eyes.
    pub(in crate::session) fn may_examine(&self, name: &str) -> Result<()> {
        if !is_private(name) || self.may_see_all_settings() {
            return Ok(());
        }
        let message = format!("permission denied to examine \"{name}\"");
        let detail = "Only roles with privileges of the \"pg_read_all_settings\" role may examine this parameter.";
        Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message).detail(detail))
    }

    pub(in crate::session) fn may_see_all_settings(&self) -> bool {
        let role = self.current_role_oid();
        self.catalog().acts_as(role, builtin::PG_READ_ALL_SETTINGS)
    }

    /// Sets a setting; no value is its default.
    pub(in crate::session) fn set_config(
        &self,
        name: &str,
        value: Option<&str>,
        scope: Scope,
    ) -> Result<()> {
        let lower = name.to_ascii_lowercase();
        let local = scope == Scope::Local;
        if let Some(modes) = mode(&lower, value)? {
            return self.change_modes(modes);
        }
        match lower.as_str() {
            "role" => return self.set_role(value.filter(|v| *v != "none"), local),
            "session_authorization" => return self.set_session_authorization(value, local),
            _ => {}
        }
        let caller = self.caller();
        self.settings.borrow_mut().set(name, value, scope, caller)?;
        self.settings_changed();
        Ok(())
    }

    /// As SET of a session that runs nothing else: the transaction's isolation may still be chosen.
    pub(in crate::session) fn set_first(
        &mut self,
        name: &str,
        value: Option<&str>,
        scope: Scope,
    ) -> Result<()> {
        match mode(&name.to_ascii_lowercase(), value)? {
            Some(modes) => self.set_transaction_modes(modes),
            None => self.set_config(name, value, scope),
        }
    }
}
