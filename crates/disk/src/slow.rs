//! A disk that takes its time: for seeing what a slower one would do.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::{Disk, File};

/// Another disk, each read, write and sync of which takes a given time longer. Names and lengths
/// are not data: what asks for them is as quick as ever.
pub struct SlowDisk<D> {
    inner: D,
    pause: Duration,
}

impl<D: Disk> SlowDisk<D> {
    pub fn new(inner: D, pause: Duration) -> SlowDisk<D> {
        SlowDisk { inner, pause }
    }
}

impl<D: Disk> Disk for SlowDisk<D> {
    fn open(&self, path: &str, create: bool) -> io::Result<Arc<dyn File>> {
        let inner = self.inner.open(path, create)?;
        let pause = self.pause;
        Ok(Arc::new(SlowFile { inner, pause }))
    }
    fn exists(&self, path: &str) -> io::Result<bool> {
        self.inner.exists(path)
    }
    fn len_of(&self, path: &str) -> io::Result<Option<u64>> {
        self.inner.len_of(path)
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        self.inner.remove(path)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)
    }
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.inner.list(dir)
    }
    fn create_dir(&self, path: &str) -> io::Result<()> {
        self.inner.create_dir(path)
    }
    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        thread::sleep(self.pause);
        self.inner.sync_dir(dir)
    }
}

struct SlowFile {
    inner: Arc<dyn File>,
    pause: Duration,
}

impl File for SlowFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        thread::sleep(self.pause);
        self.inner.read_at(buf, offset)
    }
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        thread::sleep(self.pause);
        self.inner.write_at(data, offset)
    }
    fn sync(&self) -> io::Result<()> {
        thread::sleep(self.pause);
        self.inner.sync()
    }
    fn start_writeback(&self) {
        self.inner.start_writeback();
    }
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }
    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        thread::sleep(self.pause);
        self.inner.allocate(offset, len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SimDisk;
    use std::time::Instant;

    #[test]
    fn it_does_the_same_and_takes_longer() {
        let pause = Duration::from_millis(2);
        let disk = SlowDisk::new(SimDisk::new(), pause);
        let file = disk.open("a", true).unwrap();
        let began = Instant::now();
        file.write_at(b"text", 0).unwrap();
        file.sync().unwrap();
        let mut read = [0; 4];
        assert_eq!(file.read_at(&mut read, 0).unwrap(), 4);
        assert_eq!(&read, b"text");
        assert!(began.elapsed() >= 3 * pause);
        assert_eq!(disk.list("").unwrap(), ["a"]);
    }
}
