//! Redo: doing again what the log says was done to pages and files.
//!
//! One function for every structure, since a record says bytes, not meanings. Records may be redone
//! any number of times: a page knows by its LSN what it has had.

use throng_buffer::Pool;
use throng_types::{Lsn, Result};
use throng_wal::{Edit, Record};

/// Redoes one record that ends at `end`. Records about transactions and ids are not ours: they
/// change nothing here.
///
/// # Errors
/// XX001 for a page that is damaged and not replaced by the record; 58030 and 53100 from the disk.
pub fn apply(pool: &Pool, end: Lsn, record: &Record<'_>) -> Result<()> {
    match *record {
        Record::Pages { edits, .. } => {
            for Edit { page, ops } in edits {
                pool.redo_apply(page, end, ops)?;
            }
            Ok(())
        }
        Record::FileCreate { file, .. } => Ok(pool.files().create(file)?),
        Record::FileDrop { file } => pool.drop_file(file),
        // A file that is dropped later in the log may be gone already.
        Record::FileTruncate { file, blocks } if pool.files().exists(file)? => {
            pool.truncate(file, blocks)
        }
        Record::FileTruncate { .. }
        | Record::Commit { .. }
        | Record::RestorePoint { .. }
        | Record::Timeline { .. }
        | Record::Filler
        | Record::Abort { .. }
        | Record::Prepare { .. }
        | Record::NextIds(_)
        | Record::Checkpoint(_) => Ok(()),
    }
}
