//! The constant answerer: a server that understands the protocol just enough to answer every query
//! with the same row, without looking at it. What the load reaches against it is the most that any
//! server could show here.
//!
//! ```text
//! accept thread ──► as many connections as the load has ──► threads, a reactor each ──► the same answers again
//! ```
//! Its threads are bound to cores, and it deals connections to them as a server of ours does.

use std::io::{ErrorKind, Read, Write};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use socket2::{Domain, SockAddr, Socket, Type};
use throng_sync::topology::allowed_cores;
use throng_sync::{Load, deal, pin_current_thread};

use crate::load::reactor::{Reactor, Task};
use crate::load::url::{Address, Target};
use crate::{Error, Result};

/// One column, text: a name, no table, type int4.
const DESCRIPTION: &[u8] =
    b"T\0\0\0\x21\0\x01abalance\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0";
const ROW: &[u8] = b"D\0\0\0\x0b\0\x01\0\0\0\x010";
const COMPLETE: &[u8] = b"C\0\0\0\x0dSELECT 1\0";
const READY: &[u8] = b"Z\0\0\0\x05I";
const AUTHENTICATED: &[u8] = b"R\0\0\0\x08\0\0\0\0";
const PARSED: &[u8] = b"1\0\0\0\x04";
const BOUND: &[u8] = b"2\0\0\0\x04";
const SSL_REQUEST: &[u8; 8] = b"\0\0\0\x08\x04\xd2\x16\x2f";
const GSS_REQUEST: &[u8; 8] = b"\0\0\0\x08\x04\xd2\x16\x30";
/// A crowd connects at once.
const BACKLOG: i32 = 4096;

/// An answerer that waits for its connections.
pub struct Answerer {
    address: Address,
    running: JoinHandle<std::io::Result<()>>,
}

impl Answerer {
    /// For exactly `connections`, on `threads`; it ends when they have. They come the way that they
    /// go to `like`.
    pub fn start(connections: usize, threads: usize, like: &Address) -> Result<Answerer> {
        let (listener, address) = listen(like)?;
        let running = std::thread::Builder::new()
            .name("bench-answerer".to_owned())
            .spawn(move || serve(&listener, connections, threads.clamp(1, connections)))?;
        Ok(Answerer { address, running })
    }

    pub fn target(&self) -> Target {
        Target::local(self.address.clone())
    }

    /// Waits until all connections have ended.
    pub fn finish(self) -> Result<()> {
        let ended = self
            .running
            .join()
            .unwrap_or_else(|p| std::panic::resume_unwind(p));
        ended.map_err(Error::from)
    }
}

/// A socket of the kind of `like`, on a port or under a name that nobody else has.
fn listen(like: &Address) -> Result<(Socket, Address)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    Ok(match like {
        Address::Tcp(_) => {
            let listener = bound(&Address::Tcp((Ipv4Addr::LOCALHOST, 0).into()))?;
            let address = listener.local_addr()?.as_socket();
            let address =
                address.ok_or_else(|| std::io::Error::from(ErrorKind::AddrNotAvailable))?;
            (listener, Address::Tcp(address))
        }
        Address::Unix(_) => {
            // In the abstract namespace (unix(7)): no file is left behind.
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("\0throng-answerer-{}-{number}", std::process::id());
            let address = Address::Unix(PathBuf::from(name));
            (bound(&address)?, address)
        }
    })
}

/// Where clients of another load can come from now on.
pub fn bound(address: &Address) -> std::io::Result<Socket> {
    let (domain, address) = match address {
        Address::Tcp(address) => (Domain::for_address(*address), SockAddr::from(*address)),
        Address::Unix(path) => (Domain::UNIX, SockAddr::unix(path)?),
    };
    let listener = Socket::new(domain, Type::STREAM, None)?;
    if domain != Domain::UNIX {
        // Connections of the last load may still be known.
        listener.set_reuse_address(true)?;
    }
    listener.bind(&address)?;
    listener.listen(BACKLOG)?;
    Ok(listener)
}

/// Answers the clients of another load: first one alone, to look around as `pgbench`'s does, then
/// `connections` at once. Ends when they have.
pub fn answer_others(listener: &Socket, connections: usize, threads: usize) -> std::io::Result<()> {
    serve(listener, 1, 1)?;
    serve(listener, connections, threads.clamp(1, connections))
}

fn serve(listener: &Socket, connections: usize, threads: usize) -> std::io::Result<()> {
    let cores = allowed_cores()?;
    let cores = cores.into_iter().cycle().take(threads);
    let mut shares: Vec<(usize, Vec<Socket>)> = cores.map(|core| (core, Vec::new())).collect();
    for _ in 0..connections {
        let (mut stream, from) = listener.accept()?;
        // A load may open its connections one after the other, each when the one before has been
        // greeted.
        greet(&mut stream)?;
        stream.set_nonblocking(true)?;
        if !from.is_unix() {
            stream.set_tcp_nodelay(true)?;
        }
        let load = |(core, streams): &(usize, Vec<Socket>)| Load {
            core: *core,
            open: streams.len(),
        };
        let loads: Vec<_> = shares.iter().map(load).collect();
        let core = stream.cpu_affinity().ok().filter(|_| !from.is_unix());
        shares[deal(&loads, core)].1.push(stream);
    }
    std::thread::scope(|scope| {
        let spawned: Vec<_> = shares
            .iter()
            .map(|(core, streams)| {
                scope.spawn(move || {
                    pin_current_thread(*core)?;
                    answer_all(streams)
                })
            })
            .collect();
        spawned
            .into_iter()
            .try_for_each(|t| t.join().unwrap_or_else(|p| std::panic::resume_unwind(p)))
    })
}

fn answer_all(streams: &[Socket]) -> std::io::Result<()> {
    let reactor = Reactor::new()?;
    let task = |stream| -> Task<'_> {
        let reactor = &reactor;
        Box::pin(async move {
            // However a connection ends, it has ended.
            let _ = answer(reactor, stream).await;
        })
    };
    reactor.run(streams.iter().map(task).collect(), None)?;
    Ok(())
}

/// Reads the packet that a connection begins with, whatever it says, and lets its client in.
/// Encryption, for which some ask before that, it is denied.
fn greet(stream: &mut Socket) -> std::io::Result<()> {
    loop {
        let mut head = [0; 8];
        stream.read_exact(&mut head)?;
        match &head {
            SSL_REQUEST | GSS_REQUEST => stream.write_all(b"N")?,
            [a, b, c, d, ..] => {
                let rest = u64::from(u32::from_be_bytes([*a, *b, *c, *d]));
                let rest = rest.saturating_sub(head.len() as u64);
                std::io::copy(&mut stream.take(rest), &mut std::io::sink())?;
                return stream.write_all(&[AUTHENTICATED, READY].concat());
            }
        }
    }
}

/// One connection that was greeted, until its client leaves.
async fn answer(reactor: &Reactor, mut stream: &Socket) -> std::io::Result<()> {
    reactor.register(stream)?;
    let mut input = Vec::new();
    let mut buffer = [0; 4096];
    let mut answers = Vec::new();
    loop {
        reactor.readable().await;
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => {
                input.extend_from_slice(&buffer[..n]);
                if n < buffer.len() {
                    reactor.drained();
                }
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => reactor.drained(),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
        let mut used = 0;
        while let Some(length) = message(&input[used..]) {
            reply(input[used], &mut answers);
            used += length;
        }
        input.drain(..used);
        let mut written = 0;
        while written < answers.len() {
            match stream.write(&answers[written..]) {
                Ok(n) => written += n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    reactor.writable(stream).await?;
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        answers.clear();
    }
}

/// The length of the first message, its tag included, once it is all there.
fn message(bytes: &[u8]) -> Option<usize> {
    let length = bytes.get(1..5)?.try_into().map(u32::from_be_bytes).ok()?;
    let whole = 1 + length as usize;
    (bytes.len() >= whole).then_some(whole)
}

fn reply(tag: u8, answers: &mut Vec<u8>) {
    let parts: &[&[u8]] = match tag {
        b'Q' => &[DESCRIPTION, ROW, COMPLETE, READY],
        b'P' => &[PARSED],
        b'B' => &[BOUND],
        b'D' => &[DESCRIPTION],
        b'E' => &[ROW, COMPLETE],
        b'S' => &[READY],
        _ => &[],
    };
    parts
        .iter()
        .for_each(|part| answers.extend_from_slice(part));
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Duration;

    use super::*;
    use crate::load::dialect::Dialect;
    use crate::load::drive::{Plan, drive};
    use crate::load::sql::Mode;
    use crate::load::workload::select::Select;

    fn tcp() -> Address {
        Address::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
    }

    #[test]
    fn the_load_takes_its_answers_in_every_mode() {
        let unix = Address::Unix(PathBuf::new());
        for (mode, like) in [
            (Mode::Simple, tcp()),
            (Mode::Extended, tcp()),
            (Mode::Prepared, tcp()),
            (Mode::Simple, unix),
        ] {
            let answerer = Answerer::start(5, 2, &like).expect("started");
            let plan = Plan {
                mode,
                ..Plan::new(5, Duration::from_millis(50))
            };
            let measured = drive(
                &Select::new(1, Dialect::Postgres),
                &answerer.target(),
                &plan,
            )
            .expect("driven");
            answerer.finish().expect("ended");
            assert!(measured.done() > 0, "{mode:?}");
            assert_eq!(
                (measured.failed(), measured.cut_off),
                (0, 0),
                "{:?}",
                measured.failures
            );
            assert!(measured.per_client.iter().all(|n| *n > 0));
            let all: u64 = measured.per_client.iter().sum();
            assert_eq!(all, measured.done());
            assert_eq!(measured.latency().len(), all);
        }
    }

    #[test]
    fn with_a_rate_latency_counts_from_the_intended_start() {
        let answerer = Answerer::start(2, 1, &tcp()).expect("started");
        let plan = Plan {
            rate: Some(1000.0),
            ..Plan::new(2, Duration::from_millis(300))
        };
        let measured = drive(
            &Select::new(1, Dialect::Postgres),
            &answerer.target(),
            &plan,
        )
        .expect("driven");
        answerer.finish().expect("ended");
        // Poisson with mean 300: five standard deviations either way.
        assert!((210..390).contains(&measured.done()), "{}", measured.done());
        assert!(measured.paced);
    }
}
