//! A standby's directory, made from a base backup of the primary.

use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path};
use std::time::{Duration, Instant};

use throng_lab::load::url::Target;
use throng_session::STANDBY;
use throng_types::error::state;
use throng_types::{Error, Result};

use super::client::{Message, Primary, refusal};
use super::{LOOK, name, stop_was_asked};
use crate::config::Config;

/// A primary that sends nothing of a copy for so long is lost.
const SILENCE: Duration = Duration::from_secs(900);

/// Copies the primary into the data directory, which has nothing yet.
pub fn copy(config: &Config, target: &Target) -> Result<()> {
    fs::create_dir_all(&config.data)?;
    if config.data.join(STANDBY).exists() {
        forget_part_of_copy(&config.data)?;
    }
    let strange = fs::read_dir(&config.data)?
        .filter_map(std::result::Result::ok)
        .find(|entry| entry.file_name() != "throng.toml" && entry.file_name() != STANDBY);
    if let Some(entry) = strange {
        let message = format!(
            "{} holds {} and no control file: a standby begins in an empty directory",
            config.data.display(),
            entry.file_name().display()
        );
        return Err(Error::new(state::CONFIG_FILE_ERROR, message));
    }
    // From here on the directory is known as a standby's, however far the copy comes.
    fs::File::create(config.data.join(STANDBY))?.sync_all()?;
    fs::File::open(&config.data)?.sync_all()?;
    tracing::info!("copying the primary at {target}");
    let mut primary = Primary::connect(target, name(config))?;
    primary.start("BASE_BACKUP (LABEL 'standby', CHECKPOINT 'fast', WAL)")?;
    // The control file comes last: what has none was not copied whole.
    let mut members = tar::Archive::new(Members {
        primary,
        bytes: Vec::new(),
        at: 0,
        ended: false,
    });
    let whole = config.data.join("control");
    let part = config.data.join("control.new");
    for member in members.entries()? {
        let mut member = member?;
        let path = member.path()?.into_owned();
        must_stay_inside(&path)?;
        let to = match path.as_os_str() == "control" {
            true => part.clone(),
            false => config.data.join(&path),
        };
        // What the administrator has put there is theirs.
        if path.as_os_str() == "throng.toml" && to.exists() {
            continue;
        }
        match member.header().entry_type() {
            tar::EntryType::Directory => fs::create_dir_all(&to)?,
            _ => {
                let mut file = fs::File::create(&to)?;
                io::copy(&mut member, &mut file)?;
                file.sync_all()?;
            }
        }
    }
    if !part.exists() {
        return Err(Error::new(
            state::CONNECTION_FAILURE,
            "the copy ended before its end",
        ));
    }
    for dir in ["base", "xact", "pg_wal", ""] {
        fs::File::open(config.data.join(dir))?.sync_all()?;
    }
    fs::rename(part, whole)?;
    fs::File::open(&config.data)?.sync_all()?;
    tracing::info!("the primary is copied");
    Ok(())
}

/// Removes what an earlier copy has left that did not come to its end.
fn forget_part_of_copy(data: &Path) -> Result<()> {
    tracing::info!("an earlier copy was not completed: it begins anew");
    for dir in ["base", "xact", "pg_wal", "pg_tblspc", "wal", "tmp", "slots"] {
        if data.join(dir).is_dir() {
            fs::remove_dir_all(data.join(dir))?;
        }
    }
    for entry in fs::read_dir(data)? {
        let name = entry?.file_name();
        if name != "throng.toml" && name != STANDBY {
            fs::remove_file(data.join(name))?;
        }
    }
    Ok(())
}

/// A name that leads out of the directory is nothing that a primary sends.
fn must_stay_inside(path: &Path) -> Result<()> {
    match path
        .components()
        .all(|part| matches!(part, Component::Normal(_)))
    {
        true => Ok(()),
        false => Err(Error::corrupted(format!(
            "a base backup with the name {}",
            path.display()
        ))),
    }
}

/// The bytes of the tar, out of the messages of the copy.
struct Members {
    primary: Primary,
    bytes: Vec<u8>,
    at: usize,
    ended: bool,
}

impl Members {
    /// The next message; a checkpoint of the primary may keep the first one back for minutes.
    fn next(&mut self) -> Result<Message> {
        let began = Instant::now();
        while began.elapsed() < SILENCE {
            if stop_was_asked() {
                return Err(Error::new(state::ADMIN_SHUTDOWN, "the copy was stopped"));
            }
            if let Some(message) = self.primary.next_within(LOOK)? {
                return Ok(message);
            }
        }
        Err(Error::new(
            state::CONNECTION_FAILURE,
            "the primary has stopped sending the copy",
        ))
    }
}

impl Read for Members {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.bytes.len() && !self.ended {
            let message = self.next().map_err(io::Error::other)?;
            match (message.tag, message.body.split_first()) {
                (b'd', Some((b'd', bytes))) => {
                    self.bytes = bytes.to_vec();
                    self.at = 0;
                }
                (b'c', _) => self.ended = true,
                (b'E', _) => return Err(io::Error::other(refusal(&message.body))),
                // Where it begins, the archive's name, how far it is.
                _ => {}
            }
        }
        let n = into.len().min(self.bytes.len() - self.at);
        into[..n].copy_from_slice(&self.bytes[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}
