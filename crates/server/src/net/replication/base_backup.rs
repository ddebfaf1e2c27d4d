//! BASE_BACKUP: the data directory as a tar, file after file, while others write.
//!
//! ```text
//!   begin: checkpoint ─► files as they are ─► finish ─► control ─► (the log) ─► manifest
//! ```
//! What makes the copy whole is told in `throng_txn`'s backup. The control file goes last, and
//! names how far the log must reach.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use throng_buffer::page_is_intact;
use throng_exec::client::Client;
use throng_session::replication::WalSender;
use throng_session::senders::SenderState;
use throng_session::{PROMOTE, PROMOTED, RECOVERY, STANDBY};
use throng_txn::files_to_copy;
use throng_types::error::state;
use throng_types::page::PAGE_SIZE;
use throng_types::{Error, FileId, Lsn, PageId, Result};
use throng_wal::{TimelineId, segment_name, segment_path};

use super::answer::{Answer, INT8, OID, TEXT};
use super::command::BackupOptions;
use super::manifest::Manifest;
use super::send;
use crate::net::output::Peer;
use crate::net::wire;

/// Bytes read and sent together: whole pages.
const CHUNK: usize = 16 * PAGE_SIZE;
/// Of a file of the server's own beside the storage: settings, keys.
const LARGEST_EXTRA: u64 = 16 << 20;
/// A page that is being written while it is read is read again.
const ATTEMPTS: u32 = 10;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(5);
/// The client hears of its progress after so many bytes.
const PROGRESS: u64 = 4 << 20;
const BLOCK: usize = 512;
/// By this `pg_verifybackup` knows a directory of files from one of tars.
const VERSION_FILE: &str = "PG_VERSION";

pub async fn run(peer: &mut Peer, sender: &WalSender, options: &BackupOptions) -> Result<()> {
    sender.update(|status| status.state = SenderState::Backup);
    let system = sender.engine().system();
    let backup = system.begin_backup(options.fast).await?;
    let directory = sender.engine().data_directory().to_owned();
    let mut paths = files_to_copy(&**system.disk())?;
    paths.extend(extras(&directory)?);
    tracing::info!(
        "base backup \"{}\" of {} files begins at {}",
        options.label,
        paths.len(),
        backup.start().to_halves()
    );

    let (start, timeline) = (backup.start(), backup.timeline());
    let size = options.progress.then(|| total_size(&directory, &paths));
    begin(peer, start, timeline, size);
    let mut copy = Copy::new(peer, directory, options);
    copy.archive("base.tar");
    // The last two are looked for by pg_basebackup.
    for dir in ["base", "xact", "pg_wal", "pg_tblspc"] {
        copy.directory(dir)?;
    }
    for path in &paths {
        copy.file(path).await?;
    }
    copy.bytes(VERSION_FILE, b"18\n").await?;
    let segment_size = backup.segment_size();
    let end = backup.finish().await?;
    copy.bytes("control", &end.control).await?;
    if options.wal {
        let last = (end.end.0 - 1) / segment_size;
        for number in start.0 / segment_size..=last {
            let name = segment_name(timeline, number, segment_size);
            copy.segment(
                &segment_path(number, segment_size),
                &format!("pg_wal/{name}"),
            )
            .await?;
        }
    }
    copy.content(&[0; 2 * BLOCK]).await?;
    let damaged = copy.finish(timeline, start, end.end).await?;
    if damaged > 0 {
        return Err(Error::new(
            state::DATA_CORRUPTED,
            "checksum verification failure during base backup",
        )
        .detail(format!(
            "{damaged} pages are damaged; the server's log names them."
        )));
    }
    peer.copy_out_done();
    positions(peer, end.end, timeline);
    peer.command_complete("BASE_BACKUP");
    // The log is kept until the client has heard where the backup ends.
    send(peer).await?;
    drop(end.hold);
    tracing::info!(
        "base backup \"{}\" ends at {}",
        options.label,
        end.end.to_halves()
    );
    Ok(())
}

/// Where the backup begins, and the one tablespace that there is.
fn begin(peer: &mut Peer, start: Lsn, timeline: TimelineId, size: Option<u64>) {
    positions(peer, start, timeline);
    let kilobytes = size.map(|size| (size / 1024).to_string());
    Answer::new(&[("spcoid", OID), ("spclocation", TEXT), ("size", INT8)])
        .row(&[None, None, kilobytes.as_deref()])
        .send(peer, "SELECT");
    wire::copy_response(&mut peer.output, b'H', throng_exec::client::Format::Text, 0);
}

fn positions(peer: &mut Peer, at: Lsn, timeline: TimelineId) {
    let (at, timeline) = (at.to_halves(), timeline.0.to_string());
    Answer::new(&[("recptr", TEXT), ("tli", INT8)])
        .row(&[Some(&at), Some(&timeline)])
        .send(peer, "SELECT");
}

/// Files beside the storage that belong to a copy: settings, keys, certificates. What belongs to
/// this one server stays.
fn extras(directory: &Path) -> Result<Vec<String>> {
    const OWN: [&str; 12] = [
        VERSION_FILE,
        "lock",
        "control",
        "control.new",
        "archived",
        "archived.new",
        RECOVERY,
        STANDBY,
        PROMOTE,
        PROMOTED,
        "disk-fault",
        "backup_manifest",
    ];
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let is_extra = entry
            .metadata()
            .is_ok_and(|facts| facts.is_file() && facts.len() <= LARGEST_EXTRA);
        if is_extra && !OWN.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

fn total_size(directory: &Path, paths: &[String]) -> u64 {
    let sizes = paths
        .iter()
        .filter_map(|path| std::fs::metadata(directory.join(path)).ok());
    sizes.map(|facts| facts.len()).sum()
}

/// A copy under way.
struct Copy<'a> {
    peer: &'a mut Peer,
    directory: PathBuf,
    manifest: Option<Manifest>,
    verify: bool,
    damaged: usize,
    sent: u64,
    told: u64,
    pace: Option<Pace>,
}

/// So many bytes a second at most.
struct Pace {
    rate: u64,
    began: Instant,
}

/// A file as it is read, with what is to be known of it.
struct Reading {
    file: File,
    /// Of a relation: its pages have checksums.
    relation: Option<FileId>,
    at: u64,
    bytes: Vec<u8>,
    damaged: Vec<u64>,
}

impl<'a> Copy<'a> {
    fn new(peer: &'a mut Peer, directory: PathBuf, options: &BackupOptions) -> Copy<'a> {
        Copy {
            peer,
            directory,
            manifest: options.manifest.then(|| Manifest::new(options.checksums)),
            verify: options.verify_checksums,
            damaged: 0,
            sent: 0,
            told: 0,
            pace: options.max_rate.map(|kilobytes| Pace {
                rate: kilobytes * 1024,
                began: Instant::now(),
            }),
        }
    }

    fn archive(&mut self, name: &str) {
        wire::message(&mut self.peer.output, b'd', |b| {
            b.push(b'n');
            wire::put_cstr(b, name);
            wire::put_cstr(b, "");
        });
    }

    async fn content(&mut self, bytes: &[u8]) -> Result<()> {
        self.queue(bytes);
        send(self.peer).await?;
        self.sent += bytes.len() as u64;
        if self.sent - self.told >= PROGRESS {
            self.told = self.sent;
            let sent = self.sent;
            wire::message(&mut self.peer.output, b'd', |b| {
                b.push(b'p');
                b.extend_from_slice(&sent.to_be_bytes());
            });
        }
        if let Some(pace) = &self.pace {
            let due = Duration::from_secs_f64(self.sent as f64 / pace.rate as f64);
            tokio::time::sleep(due.saturating_sub(pace.began.elapsed())).await;
        }
        Ok(())
    }

    fn queue(&mut self, bytes: &[u8]) {
        wire::message(&mut self.peer.output, b'd', |b| {
            b.push(b'd');
            b.extend_from_slice(bytes);
        });
    }

    fn directory(&mut self, path: &str) -> Result<()> {
        let header = header(path, 0, SystemTime::now(), tar::EntryType::Directory)?;
        self.queue(&header);
        Ok(())
    }

    /// A file of few bytes, in one piece.
    async fn bytes(&mut self, path: &str, bytes: &[u8]) -> Result<()> {
        let now = SystemTime::now();
        let header = header(path, bytes.len() as u64, now, tar::EntryType::Regular)?;
        self.content(&header).await?;
        self.content(bytes).await?;
        self.pad(bytes.len() as u64).await?;
        if let Some(manifest) = &mut self.manifest {
            manifest.file(path, bytes.len() as u64, now, crc_fast::crc32_iscsi(bytes));
        }
        Ok(())
    }

    /// A segment of the log, which a manifest does not list.
    async fn segment(&mut self, path: &str, name: &str) -> Result<()> {
        let manifest = self.manifest.take();
        let copied = self.file_as(path, name, None).await;
        self.manifest = manifest;
        match copied? {
            true => Ok(()),
            false => Err(Error::new(
                state::UNDEFINED_FILE,
                format!("could not find WAL file \"{path}\""),
            )),
        }
    }

    async fn file(&mut self, path: &str) -> Result<()> {
        let number = path.strip_prefix("base/").and_then(|n| n.parse().ok());
        let relation = number.map(FileId).filter(|_| self.verify);
        // One that is gone was dropped since, which the log tells.
        self.file_as(path, path, relation).await.map(|_| ())
    }

    /// False where the file is gone.
    async fn file_as(&mut self, path: &str, name: &str, relation: Option<FileId>) -> Result<bool> {
        let file = match File::open(self.directory.join(path)) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(e) => return Err(e.into()),
        };
        let facts = file.metadata()?;
        let (size, modified) = (facts.len(), facts.modified()?);
        let header = header(name, size, modified, tar::EntryType::Regular)?;
        self.content(&header).await?;
        let mut reading = Reading {
            file,
            relation,
            at: 0,
            bytes: Vec::with_capacity(CHUNK),
            damaged: Vec::new(),
        };
        let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi);
        while reading.at < size {
            let want = CHUNK.min((size - reading.at) as usize);
            let read = move || {
                let read = reading.next(want);
                read.map(|()| reading)
            };
            let read = tokio::task::spawn_blocking(read).await;
            reading = read.map_err(|e| Error::internal(e.to_string()))??;
            digest.update(&reading.bytes);
            let bytes = std::mem::take(&mut reading.bytes);
            self.content(&bytes).await?;
            reading.bytes = bytes;
        }
        for block in &reading.damaged {
            tracing::warn!("checksum verification failed in file \"{path}\", block {block}");
        }
        self.damaged += reading.damaged.len();
        self.pad(size).await?;
        if let Some(manifest) = &mut self.manifest {
            manifest.file(name, size, modified, digest.finalize() as u32);
        }
        Ok(true)
    }

    async fn pad(&mut self, size: u64) -> Result<()> {
        let over = size as usize % BLOCK;
        match over {
            0 => Ok(()),
            _ => self.content(&[0; BLOCK][over..]).await,
        }
    }

    /// Sends the manifest. Returns how many pages were damaged.
    async fn finish(mut self, timeline: TimelineId, start: Lsn, end: Lsn) -> Result<usize> {
        if let Some(manifest) = self.manifest.take() {
            wire::message(&mut self.peer.output, b'd', |b| b.push(b'm'));
            let text = manifest.finish(&[(timeline, start, end)]);
            for piece in text.as_bytes().chunks(CHUNK) {
                self.queue(piece);
                send(self.peer).await?;
            }
        }
        Ok(self.damaged)
    }
}

impl Reading {
    /// Reads the next `want` bytes; where the file has become shorter there are zeros.
    fn next(&mut self, want: usize) -> io::Result<()> {
        self.bytes.resize(want, 0);
        self.read_at(self.at, 0, want)?;
        if let Some(file) = self.relation {
            for n in 0..want / PAGE_SIZE {
                let block = self.at / PAGE_SIZE as u64 + n as u64;
                if !self.becomes_intact(PageId::new(file, block as u32), n)? {
                    self.damaged.push(block);
                }
            }
        }
        self.at += want as u64;
        Ok(())
    }

    fn read_at(&mut self, at: u64, offset: usize, length: usize) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(at))?;
        let into = &mut self.bytes[offset..offset + length];
        let mut filled = 0;
        while filled < into.len() {
            match self.file.read(&mut into[filled..])? {
                0 => break,
                n => filled += n,
            }
        }
        into[filled..].fill(0);
        Ok(())
    }

    fn becomes_intact(&mut self, page: PageId, n: usize) -> io::Result<bool> {
        for _ in 0..ATTEMPTS {
            let bytes = self.bytes[n * PAGE_SIZE..][..PAGE_SIZE].first_chunk();
            if bytes.is_some_and(|bytes| page_is_intact(page, bytes)) {
                return Ok(true);
            }
            std::thread::sleep(BETWEEN_ATTEMPTS);
            let at = self.at + (n * PAGE_SIZE) as u64;
            self.read_at(at, n * PAGE_SIZE, PAGE_SIZE)?;
        }
        Ok(false)
    }
}

fn header(
    path: &str,
    size: u64,
    modified: SystemTime,
    entry: tar::EntryType,
) -> Result<[u8; BLOCK]> {
    let mut header = tar::Header::new_gnu();
    header.set_path(path)?;
    header.set_entry_type(entry);
    header.set_mode(match entry {
        tar::EntryType::Directory => 0o700,
        _ => 0o600,
    });
    header.set_size(size);
    let modified = modified.duration_since(SystemTime::UNIX_EPOCH);
    header.set_mtime(modified.map_or(0, |d| d.as_secs()));
    header.set_uid(0);
    header.set_gid(0);
    header.set_cksum();
    Ok(*header.as_bytes())
}
