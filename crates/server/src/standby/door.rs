//! Clients of a standby are told that it serves nobody yet.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use throng_types::error::{Severity, state};
use throng_types::{Error, Result};

use crate::net::wire;

/// How often it is looked whether somebody is there.
const LOOK: Duration = Duration::from_millis(20);
/// A client has so long to say what it wants.
const PATIENCE: Duration = Duration::from_millis(200);

/// Listens where the server will, for as long as this is there.
pub struct Door {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Door {
    pub fn open(address: SocketAddr) -> Result<Door> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::Builder::new()
            .name("standby-door".into())
            .spawn(move || {
                while !stopped.load(Ordering::Relaxed) {
                    match listener.accept() {
                        // Who is gone already needs no answer.
                        Ok((stream, _)) => _ = refuse(stream),
                        Err(_) => std::thread::sleep(LOOK),
                    }
                }
            })?;
        Ok(Door {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of it was told where it happened.
            let _ = thread.join();
        }
    }
}

fn refuse(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut head = [0; 8];
    stream.read_exact(&mut head)?;
    // It asks for encryption first: there is none for this.
    const LENGTH_OF_REQUEST: [u8; 4] = 8u32.to_be_bytes();
    if head[..4] == LENGTH_OF_REQUEST {
        stream.write_all(b"N")?;
        stream.read_exact(&mut head)?;
    }
    let error = Error::new(
        state::CANNOT_CONNECT_NOW,
        "the database system is not accepting connections",
    )
    .detail("This server is a standby, and serves when it is promoted.")
    .severity(Severity::Fatal);
    let mut answer = Vec::new();
    wire::error(&mut answer, &error);
    stream.write_all(&answer)
}
