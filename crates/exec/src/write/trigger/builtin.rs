//! Trigger functions that come with the system.

use throng_types::error::state;
use throng_types::{Error, Result};

use crate::run::Row;
use crate::trigger::{TriggerCall, TriggerEvent, TriggerWhen};

/// `suppress_redundant_updates_trigger`: an update that changes nothing is none.
///
/// # Errors
/// 39P01 where it is no trigger BEFORE UPDATE for each row.
pub fn suppress_redundant_update(call: &TriggerCall) -> Result<Option<Row>> {
    let wrong = |what: &str| {
        let message = format!("suppress_redundant_updates_trigger: must be called {what}");
        Err(Error::new(state::TRIGGER_PROTOCOL_VIOLATED, message))
    };
    if call.event != TriggerEvent::Update {
        return wrong("on update");
    }
    if call.when != TriggerWhen::Before {
        return wrong("before update");
    }
    if !call.for_each_row {
        return wrong("for each row");
    }
    match call.old == call.new {
        true => Ok(None),
        false => Ok(call.new.clone()),
    }
}
