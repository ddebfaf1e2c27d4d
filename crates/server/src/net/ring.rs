//! Sends on many sockets by one call to the kernel.
//!
//! ```text
//!   a call each                                     one call (io_uring)
//!   send 1 ─► the client wakes and takes the core   send 1, 2, 3 … ─► the client wakes,
//!     it reads 1, asks for more, sleeps               reads all, asks for more, sleeps
//!   send 2 ─► it wakes and takes the core …
//! ```
//! A client that has slept has used less of the loop's core than the loop has, so the scheduler
//! gives it the core as soon as a call returns to the loop. Within a call most kernels do not
//! switch.

use std::io;
use std::os::fd::AsRawFd;
use std::rc::Rc;

use io_uring::{IoUring, opcode, squeue, types};

use super::plain::PlainSocket;

/// As many leave by one call.
const ENTRIES: u32 = 256;

pub struct Ring(IoUring);

impl Ring {
    /// A ring of the calling thread.
    ///
    /// # Errors
    /// Where the kernel has none, or none for us: before Linux 6.0, in many containers, by
    /// `kernel.io_uring_disabled`.
    pub fn new() -> io::Result<Ring> {
        let mut builder = IoUring::builder();
        // What one client's socket refuses does not keep the others' replies.
        builder.setup_submit_all().setup_single_issuer();
        builder.build(ENTRIES).map(Ring)
    }

    /// Sends what is posted on each of them, as far as it has room.
    ///
    /// # Errors
    /// When the kernel takes no more. What has not been sent is still posted, and the ring is of no
    /// further use.
    pub fn send(&mut self, sockets: &[Rc<PlainSocket>]) -> io::Result<()> {
        sockets
            .chunks(ENTRIES as usize)
            .try_for_each(|some| self.send_some(some))
    }

    fn send_some(&mut self, sockets: &[Rc<PlainSocket>]) -> io::Result<()> {
        let mut queue = self.0.submission();
        for (number, socket) in (0..).zip(sockets) {
            // SAFETY: the socket, and what is posted on it, outlive the call that takes the entry
            // and stay as they are: this function alone runs on the socket's thread until then, and
            // does not return before each entry that was taken is completed.
            unsafe { queue.push(&entry(socket).user_data(number)) }.expect("the ring is empty");
        }
        drop(queue);
        let mut completed = 0;
        loop {
            let submitted = self.0.submit_and_wait(sockets.len() - completed);
            let taken = sockets.len() - self.0.submission().len();
            for completion in self.0.completion() {
                // An error is met again, and told, by who sends the rest.
                if let Ok(sent) = usize::try_from(completion.result()) {
                    sockets[completion.user_data() as usize].has_sent(sent);
                }
                completed += 1;
            }
            match submitted {
                _ if completed == sockets.len() => return Ok(()),
                Err(e) if completed == taken && e.kind() != io::ErrorKind::Interrupted => {
                    return Err(e);
                }
                _ => {}
            }
        }
    }
}

/// Sends what is posted on a socket, at once or not at all.
fn entry(socket: &PlainSocket) -> squeue::Entry {
    let posted = socket.posted();
    let fd = types::Fd(socket.as_raw_fd());
    // More than can be told is sent in parts.
    let len = u32::try_from(posted.len()).unwrap_or(i32::MAX as u32);
    opcode::Send::new(fd, posted.as_ptr(), len)
        .flags(libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
        .build()
}
