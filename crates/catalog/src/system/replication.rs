//! Who takes the server's log, and for whom it is kept.

use throng_types::{Datum, Lsn};
use throng_values::io::network::inet_value;
use throng_values::io::scalar::wide;

use super::view::role_name;
use super::{Rows, SystemState, row};
use crate::Catalog;

fn position(lsn: Option<Lsn>) -> Datum {
    lsn.map_or(Datum::Null, |lsn| wide(lsn.0))
}

/// Lags in time are not measured; no standby is waited for.
pub(super) fn pg_stat_replication(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let senders = state.wal_senders();
    let sessions = state.sessions().into_iter();
    let rows = sessions.filter_map(|session| {
        let sender = senders.iter().find(|sender| sender.pid == session.pid)?;
        Some(row![
            session.pid,
            session.user,
            role_name(catalog, session.user),
            session.application_name,
            inet_value(session.client_addr.as_deref()),
            Datum::Null,
            session.client_port,
            Datum::TimestampTz(session.backend_start),
            Datum::Null,
            sender.state,
            position(sender.sent),
            position(sender.written),
            position(sender.flushed),
            position(sender.applied),
            Datum::Null,
            Datum::Null,
            Datum::Null,
            sender.priority,
            sender.sync_state,
            sender.reply_time.map_or(Datum::Null, Datum::TimestampTz),
        ])
    });
    rows.collect()
}

pub(super) fn pg_replication_slots(_: &Catalog, state: &dyn SystemState) -> Rows {
    let slots = state.replication_slots().into_iter();
    let rows = slots.map(|slot| {
        let status = match (slot.lost, slot.restart) {
            (true, _) => "lost".into(),
            (false, Some(_)) => "reserved".into(),
            (false, None) => Datum::Null,
        };
        let reason = match slot.lost {
            true => "wal_removed".into(),
            false => Datum::Null,
        };
        row![
            slot.name,
            Datum::Null,
            "physical",
            Datum::Null,
            Datum::Null,
            slot.temporary,
            slot.active_pid.is_some(),
            slot.active_pid,
            Datum::Null,
            Datum::Null,
            position(slot.restart),
            Datum::Null,
            status,
            slot.safe_size,
            false,
            Datum::Null,
            Datum::Null,
            Datum::Null,
            reason,
            false,
            false,
        ]
    });
    rows.collect()
}
