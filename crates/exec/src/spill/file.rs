//! Temporary files.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use throng_disk::descriptors;
use throng_types::error::state;
use throng_types::{Error, Result};

/// Where temporary files are made.
#[derive(Debug)]
pub struct SpillSpace {
    directory: PathBuf,
    made: AtomicU64,
    open: Arc<AtomicUsize>,
    /// Files that may be open at once.
    most: usize,
}

impl SpillSpace {
    /// The directory is made when it is needed.
    pub fn new(directory: &Path) -> SpillSpace {
        SpillSpace {
            directory: directory.to_owned(),
            made: AtomicU64::new(0),
            open: Arc::default(),
            most: descriptors::shares().temporary,
        }
    }

    /// A new, empty file.
    ///
    /// # Errors
    /// 53000 where as many are open as may be; 58030 and 53100 from the file system.
    pub fn file(&self) -> Result<SpillFile> {
        let turn = OpenFile::new(&self.open);
        if self.open.load(Ordering::Relaxed) > self.most {
            return Err(too_many(self.most));
        }
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let name = format!("rows.{}.{number}", std::process::id());
        let path = self.directory.join(name);
        let open = || {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create_new(true).open(&path)
        };
        let file = match open() {
            Err(e) if e.kind() == ErrorKind::NotFound => {
                std::fs::create_dir_all(&self.directory)?;
                open()?
            }
            opened => opened?,
        };
        // Its room is given back when it is closed, be it by the end of the process.
        std::fs::remove_file(&path)?;
        Ok(SpillFile {
            file: Arc::new(file),
            _open: Arc::new(turn),
            len: 0,
        })
    }
}

/// One of the files that may be open at once.
#[derive(Debug)]
struct OpenFile(Arc<AtomicUsize>);

impl OpenFile {
    fn new(count: &Arc<AtomicUsize>) -> OpenFile {
        count.fetch_add(1, Ordering::Relaxed);
        OpenFile(count.clone())
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cold]
fn too_many(most: usize) -> Error {
    let message = "too many temporary files";
    Error::new(state::INSUFFICIENT_RESOURCES, message)
        .detail(format!("The server may have {most} of them open at once."))
        .hint("Raise work_mem or the limit of open files, or close cursors that are held.")
}

/// A file that only its holders see. Whoever has a clone reads what was there then.
#[derive(Clone, Debug)]
pub struct SpillFile {
    file: Arc<File>,
    _open: Arc<OpenFile>,
    len: u64,
}

impl SpillFile {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// # Errors
    /// 58030 and 53100 from the file system.
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all_at(bytes, self.len)?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Fills `into` with what lies at `at`.
    ///
    /// # Errors
    /// 58030 from the file system.
    pub fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        Ok(self.file.read_exact_at(into, at)?)
    }
}
