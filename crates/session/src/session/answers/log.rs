//! Functions about the write-ahead log: where it is, its files, and points to recover to.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::{Datum, Error, Lsn, Record, Result, oid};
use throng_values::func::{EvalResult, EvalStop};
use throng_values::io::scalar::{wide, wide_number};
use throng_values::settings::Id;
use throng_wal::{MAX_RESTORE_POINT, segment_name};

use super::eval_host::SessionHost;
use super::functions::text;

impl SessionHost<'_> {
    /// `None` for what is no function of the log.
    pub(super) fn log_function(&self, name: &str, args: &[Datum]) -> Option<EvalResult> {
        let wal = self.session.engine.sys.wal();
        Some(Ok(match name {
            "pg_current_wal_lsn" | "pg_current_wal_flush_lsn" => wide(wal.flushed().0),
            "pg_current_wal_insert_lsn" => wide(wal.inserted().0),
            "pg_walfile_name" => self.segment_of(position(&args[0])).into(),
            "pg_switch_wal" => match self.must_be_superuser(name) {
                Ok(()) => {
                    let end = wal.switch_segment();
                    wal.request_flush(wal.inserted());
                    wide(end.0)
                }
                Err(e) => return Some(Err(e.into())),
            },
            "pg_create_restore_point" => {
                let point = text(&args[0]);
                let made = self
                    .must_be_superuser(name)
                    .and_then(|()| self.create_restore_point(point));
                match made {
                    Ok(lsn) => wide(lsn.0),
                    Err(e) => return Some(Err(e.into())),
                }
            }
            "pg_create_physical_replication_slot" => return Some(self.create_slot(args)),
            "pg_drop_replication_slot" => {
                let dropped = self.must_replicate().and_then(|()| {
                    let slots = self.session.engine.sys.replication_slots();
                    slots.drop_slot(text(&args[0]), self.session.pid() as u32)
                });
                return Some(dropped.map(|()| Datum::VOID).map_err(EvalStop::from));
            }
            _ => return None,
        }))
    }

    fn create_slot(&self, args: &[Datum]) -> EvalResult {
        self.must_replicate()?;
        let is = |at: usize| args.get(at) == Some(&Datum::Bool(true));
        let engine = &self.session.engine;
        let most = engine.number(Id::MaxReplicationSlots) as usize;
        let temporary_of = is(2).then(|| self.session.pid() as u32);
        let reserve = is(1).then(|| engine.sys.redo_point());
        let slots = engine.sys.replication_slots();
        let restart = slots.create(text(&args[0]), temporary_of, reserve, most)?;
        Ok(Datum::Record(Arc::new(Record {
            types: [oid::NAME, oid::PG_LSN].into(),
            names: None,
            values: vec![
                args[0].clone(),
                restart.map_or(Datum::Null, |lsn| wide(lsn.0)),
            ],
        })))
    }

    fn must_replicate(&self) -> Result<()> {
        let role = self.session.role();
        let replicates = (self.catalog.role(role.oid)).is_some_and(|role| role.replication);
        match role.superuser || replicates {
            true => Ok(()),
            false => Err(Error::new(
                state::INSUFFICIENT_PRIVILEGE,
                "permission denied to use replication slots",
            )
            .detail("Only roles with the REPLICATION attribute may use replication slots.")),
        }
    }

    fn create_restore_point(&self, name: &str) -> Result<Lsn> {
        if name.len() > MAX_RESTORE_POINT {
            return Err(Error::new(
                state::INVALID_PARAMETER_VALUE,
                format!(
                    "value too long for restore point (maximum {MAX_RESTORE_POINT} characters)"
                ),
            ));
        }
        tracing::info!("restore point \"{name}\" created");
        Ok(self.session.engine.sys.create_restore_point(name))
    }

    /// The file that a position lies in; one at a border lies in the file that begins there.
    fn segment_of(&self, lsn: Lsn) -> String {
        let config = self.session.engine.sys.wal().config();
        let number = lsn.0 / config.segment_size;
        segment_name(config.history.current(), number, config.segment_size)
    }

    fn must_be_superuser(&self, function: &str) -> Result<()> {
        match self.session.role().superuser {
            true => Ok(()),
            false => Err(Error::new(
                state::INSUFFICIENT_PRIVILEGE,
                format!("permission denied for function {function}"),
            )),
        }
    }
}

fn position(value: &Datum) -> Lsn {
    Lsn(wide_number(value.as_i64().unwrap_or_default()))
}
