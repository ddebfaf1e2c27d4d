//! Rows that replication commands answer.

use throng_exec::client::Client;
use throng_session::Engine;
use throng_types::error::state;
use throng_types::{Error, Oid, Result, oid};
use throng_wal::{TimelineHistory, TimelineId};

use crate::net::output::Peer;
use crate::net::wire;

/// A column's type, as a client is told it, and the length of its values.
pub type ColumnType = (Oid, i16);
pub const TEXT: ColumnType = (oid::TEXT, -1);
pub const INT8: ColumnType = (oid::INT8, 8);
const BYTEA: ColumnType = (oid::BYTEA, -1);
pub const OID: ColumnType = (oid::OID, 4);

/// A result whose values are texts.
pub struct Answer {
    bytes: Vec<u8>,
    rows: usize,
}

impl Answer {
    pub fn new(columns: &[(&str, ColumnType)]) -> Answer {
        let mut bytes = Vec::new();
        wire::message(&mut bytes, b'T', |b| {
            wire::put_i16(b, columns.len() as i16);
            for (name, (ty, length)) in columns {
                wire::put_cstr(b, name);
                // Of no table, and with no modifier; in text form.
                wire::put_i32(b, 0);
                wire::put_i16(b, 0);
                wire::put_i32(b, ty.0 as i32);
                wire::put_i16(b, *length);
                wire::put_i32(b, -1);
                wire::put_i16(b, 0);
            }
        });
        Answer { bytes, rows: 0 }
    }

    pub fn row(mut self, values: &[Option<&str>]) -> Answer {
        wire::message(&mut self.bytes, b'D', |b| {
            wire::put_i16(b, values.len() as i16);
            for value in values {
                match value {
                    Some(text) => {
                        wire::put_i32(b, text.len() as i32);
                        b.extend_from_slice(text.as_bytes());
                    }
                    None => wire::put_i32(b, -1),
                }
            }
        });
        self.rows += 1;
        self
    }

    pub fn send(self, peer: &mut Peer, tag: &str) {
        peer.output.extend_from_slice(&self.bytes);
        peer.command_complete(tag);
    }
}

pub fn identify_system(peer: &mut Peer, engine: &Engine) {
    let system = engine.system();
    let identifier = system.system_identifier().to_string();
    let timeline = system.wal().timeline().0.to_string();
    let flushed = system.wal().flushed().to_halves();
    Answer::new(&[
        ("systemid", TEXT),
        ("timeline", INT8),
        ("xlogpos", TEXT),
        ("dbname", TEXT),
    ])
    .row(&[Some(&identifier), Some(&timeline), Some(&flushed), None])
    .send(peer, "IDENTIFY_SYSTEM");
}

/// # Errors
/// 58P01 for a timeline that is none of this server's history.
pub fn timeline_history(peer: &mut Peer, engine: &Engine, timeline: TimelineId) -> Result<()> {
    let own = &engine.system().wal().config().history;
    let history = if timeline == own.current() {
        Some((**own).clone())
    } else {
        let leading = own.ended().iter().copied();
        let leading: Vec<_> = leading.take_while(|e| e.timeline < timeline).collect();
        let is_own = own.ended().iter().any(|ended| ended.timeline == timeline);
        is_own
            .then(|| TimelineHistory::new(leading, timeline))
            .flatten()
    };
    let name = timeline.history_name();
    let Some(history) = history.filter(|_| timeline != TimelineId::FIRST) else {
        let message = format!("could not open file \"wal/{name}\": No such file or directory");
        return Err(Error::new(state::UNDEFINED_FILE, message));
    };
    Answer::new(&[("filename", TEXT), ("content", BYTEA)])
        .row(&[Some(&name), Some(&history.to_text())])
        .send(peer, "TIMELINE_HISTORY");
    Ok(())
}

/// A row of NULLs for a slot that there is not, as PostgreSQL answers.
pub fn read_slot(peer: &mut Peer, engine: &Engine, name: &str) {
    let system = engine.system();
    let slots = system.replication_slots().list();
    let slot = slots.into_iter().find(|slot| slot.name == name);
    let restart = slot.as_ref().and_then(|slot| slot.restart);
    let history = &system.wal().config().history;
    let timeline = restart.map(|lsn| history.at(lsn).0.to_string());
    let restart = restart.map(|lsn| lsn.to_halves());
    Answer::new(&[
        ("slot_type", TEXT),
        ("restart_lsn", TEXT),
        ("restart_tli", INT8),
    ])
    .row(&[
        slot.map(|_| "physical"),
        restart.as_deref(),
        timeline.as_deref(),
    ])
    .send(peer, "READ_REPLICATION_SLOT");
}
