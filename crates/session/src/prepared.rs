//! Definitions of prepared transactions, over a restart.
//!
//! The log keeps with a prepared transaction the definitions that it has changed: its rows have
//! them as well, but a start that finds it has no transaction to read those with.

use throng_catalog::{Change, ObjectKind};
use throng_txn::TxnSystem;
use throng_types::{Error, Oid, Result};

use crate::database::{Database, Databases};

/// Has prepared transactions that a start has found make their definitions everybody's when they
/// are committed: `publish` does that.
///
/// # Errors
/// XX001 where the log does not say which these are.
pub(crate) fn adopt<P>(sys: &TxnSystem, databases: &Databases, publish: P) -> Result<()>
where
    P: Fn(&Database, &[Change]) + Clone + Send + 'static,
{
    let mut outcome = Ok(());
    sys.each_prepared(|info, txn| {
        let database = databases.by_oid(info.database);
        let (Some(changes), Some(database)) = (decode(&info.rest), database) else {
            let message = format!("prepared transaction \"{}\" is damaged", info.gid);
            outcome = Err(Error::corrupted(message));
            return;
        };
        if !changes.is_empty() {
            let publish = publish.clone();
            txn.on_commit(move |_| publish(&database, &changes));
        }
    });
    outcome
}

/// Definitions as the log keeps them.
pub(crate) fn encode(changes: &[Change]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut put = |bytes: &[u8]| {
        out.extend((bytes.len() as u32).to_le_bytes());
        out.extend(bytes);
    };
    for change in changes {
        let (kind, json) = match change {
            Change::Put { kind, json, .. } => (kind.tag(), json.as_str()),
            Change::Delete { .. } => ("", ""),
        };
        put(&change.oid().0.to_le_bytes());
        put(&[u8::from(change.is_shared())]);
        put(kind.as_bytes());
        put(json.as_bytes());
    }
    out
}

fn decode(mut bytes: &[u8]) -> Option<Vec<Change>> {
    let mut changes = Vec::new();
    while !bytes.is_empty() {
        let mut next = || {
            let (len, rest) = bytes.split_first_chunk::<4>()?;
            let (field, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
            bytes = rest;
            Some(field)
        };
        let oid = Oid(u32::from_le_bytes(next()?.try_into().ok()?));
        let shared = next()? == [1];
        let kind = std::str::from_utf8(next()?).ok()?;
        let json = std::str::from_utf8(next()?).ok()?.to_owned();
        changes.push(match kind {
            "" => Change::Delete { oid, shared },
            kind => Change::Put {
                oid,
                kind: ObjectKind::from_tag(kind)?,
                json,
                shared,
            },
        });
    }
    Some(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_survive_the_log() {
        let changes = vec![
            Change::Put {
                oid: Oid(70_000),
                kind: ObjectKind::Table,
                json: "{\"é\":1}".to_owned(),
                shared: false,
            },
            Change::Delete {
                oid: Oid(3),
                shared: true,
            },
        ];
        let bytes = encode(&changes);
        assert_eq!(decode(&bytes).as_ref(), Some(&changes));
        assert_eq!(decode(&bytes[..bytes.len() - 1]), None);
        assert_eq!(decode(&[]), Some(Vec::new()));
    }
}
