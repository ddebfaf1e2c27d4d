//! Clients that leave while their statement runs.
//!
//! A session that computes or waits does not read, so nothing tells it that nobody is there to take
//! its answer. As PostgreSQL does where `client_connection_check_interval` is set, it looks every
//! so often whether the other end of its socket has closed, and its statement ends then.

use std::os::fd::RawFd;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use throng_txn::{CancelFlag, CancelReason};
use tokio::time::{Instant, sleep_until};

/// Waits for `answered`. Whenever `interval` has gone by meanwhile it looks at the client's
/// `socket`, which is open as long as this runs, and ends the session where the client has left.
///
/// What is answered at once, or after a short wait, costs no more than a timer.
pub async fn ended_by_disconnection<T>(
    socket: RawFd,
    interval: Option<Duration>,
    flag: &CancelFlag,
    answered: impl Future<Output = T>,
) -> T {
    let mut answered = pin!(answered);
    let Some(interval) = interval else {
        return answered.await;
    };
    let mut next_look = pin!(None);
    std::future::poll_fn(|cx| {
        if let Poll::Ready(answer) = answered.as_mut().poll(cx) {
            return Poll::Ready(answer);
        }
        if next_look.is_none() {
            next_look.set(Some(sleep_until(Instant::now() + interval)));
        }
        if let Some(mut timer) = next_look.as_mut().as_pin_mut() {
            while timer.as_mut().poll(cx).is_ready() {
                if has_left(socket) {
                    flag.raise(CancelReason::ClientLeft);
                }
                timer.as_mut().reset(Instant::now() + interval);
            }
        }
        Poll::Pending
    })
    .await
}

/// Whether the other end has closed its socket, or its direction of it.
fn has_left(socket: RawFd) -> bool {
    let left = libc::POLLRDHUP | libc::POLLHUP | libc::POLLERR;
    let mut asked = libc::pollfd {
        fd: socket,
        events: libc::POLLRDHUP,
        revents: 0,
    };
    // SAFETY: one `pollfd` is asked about, and it is here; no time is waited.
    let told = unsafe { libc::poll(&raw mut asked, 1, 0) };
    told > 0 && asked.revents & left != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn an_end_is_seen_behind_what_was_not_read() {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        theirs.write_all(b"not read yet").expect("written");
        assert!(!has_left(ours.as_raw_fd()));
        drop(theirs);
        assert!(has_left(ours.as_raw_fd()));

        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let address = listener.local_addr().expect("an address");
        let mut theirs = TcpStream::connect(address).expect("connected");
        let (ours, _) = listener.accept().expect("accepted");
        theirs.write_all(b"not read yet").expect("written");
        assert!(!has_left(ours.as_raw_fd()));
        drop(theirs);
        while !has_left(ours.as_raw_fd()) {
            std::thread::yield_now();
        }
    }
}
