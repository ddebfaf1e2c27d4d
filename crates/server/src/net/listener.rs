//! Listening sockets, and the event loops that own the connections.
//!
//! ```text
//! acceptor (main thread) ──deals──► loop 0, pinned to core 0: its connections, for life
//!                           └─────► loop 1, pinned to core 1: …
//! ```
//! A TCP connection is dealt to the core that its packets come to ([`throng_sync::deal`]); one
//! by a Unix socket, which has no such core, to the loop that has fewest.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};
use std::thread::JoinHandle;
use std::time::Duration;

use socket2::SockRef;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::mpsc;
use tokio::task::LocalSet;

use throng_disk::descriptors;
use throng_exec::placement::Placement;
use throng_session::Engine;
use throng_sync::Load;
use throng_types::stack;

use super::connection::{self, LoopShared};
use super::door::{Bounds, Door, Guest, Room};
use super::outbox::Outbox;
use super::plain::PlainSocket;
use super::ring::Ring;
use super::shutdown::{Cause, Shutdown};
use super::stream::{Origin, Stream};
use super::tls::Tls;

/// Connections the kernel may hold for us before we accept them: a crowd arrives at once.
const BACKLOG: i32 = 4096;

/// A socket on its way from the acceptor to its loop; it joins that loop's reactor only there.
enum Arrival {
    Tcp(std::net::TcpStream),
    /// With whom the client runs as, if it could be asked.
    Unix(std::os::unix::net::UnixStream, Option<u32>),
}

impl Arrival {
    /// Which core its last packet came to.
    fn core(&self) -> Option<usize> {
        match self {
            Arrival::Tcp(socket) => SockRef::from(socket).cpu_affinity().ok(),
            Arrival::Unix(..) => None,
        }
    }
}

/// One event loop as the acceptor sees it.
struct Loop {
    core: usize,
    arrivals: mpsc::UnboundedSender<(Arrival, Guest)>,
    connections: Arc<AtomicUsize>,
    thread: JoinHandle<()>,
}

impl Loop {
    fn load(&self) -> Load {
        Load {
            core: self.core,
            open: self.connections.load(Ordering::Relaxed),
        }
    }
}

/// The loops of this server.
pub struct Loops {
    loops: Vec<Loop>,
    /// Connections that there may be together.
    sockets: usize,
    cause: Arc<Cause>,
    door: Arc<Door>,
}

/// So many more are taken at a time only to be told that there is no room.
const REFUSALS: usize = 32;
/// How often it is looked whether one of them has gone.
const LOOK: Duration = Duration::from_millis(20);

impl Loops {
    /// Starts one loop for each core, its thread bound there if threads are bound.
    pub fn start(
        engine: &Arc<Engine>,
        placement: &Placement,
        tls: Option<Tls>,
    ) -> io::Result<Loops> {
        let cause = Arc::<Cause>::default();
        throng_exec::offload::place(placement);
        let loops = placement
            .cores()
            .iter()
            .map(|&core| start_loop(core, placement, engine.clone(), tls.clone(), &cause))
            .collect::<io::Result<_>>()?;
        let sockets = descriptors::shares().sockets;
        Ok(Loops {
            loops,
            sockets,
            door: Arc::new(Door::new(Bounds::of(sockets))),
            cause,
        })
    }

    /// Connections there are.
    fn open(&self) -> usize {
        let open = |l: &Loop| l.connections.load(Ordering::Relaxed);
        self.loops.iter().map(open).sum()
    }

    /// Waits while there are so many that not even one more can be told so: the descriptors that
    /// are left are others'.
    async fn ready(&self) {
        while self.open() >= self.sockets + REFUSALS {
            tokio::time::sleep(LOOK).await;
        }
    }

    fn deal(&self, arrival: Arrival) {
        let room = match self.open() < self.sockets {
            true => Room::Free,
            false => Room::Full,
        };
        let guest = self.door.enter(room);
        let loads: Vec<_> = self.loops.iter().map(Loop::load).collect();
        let chosen = &self.loops[throng_sync::deal(&loads, arrival.core())];
        chosen.connections.fetch_add(1, Ordering::Relaxed);
        // A loop that has ended has been told to stop: the client sees its socket close.
        let _ = chosen.arrivals.send((arrival, guest));
    }

    /// Ends every session with 57P01, as loops do to which nobody can come any longer, and waits
    /// for the loops.
    pub fn stop(self) {
        self.join();
    }

    /// Ends every session with 57P02, for storage has failed, and waits for the loops as long as
    /// `most`.
    pub fn stop_within(self, most: Duration) {
        self.cause.storage_failed();
        let (ended, end) = std::sync::mpsc::channel();
        let joining = std::thread::Builder::new().name("farewell".into());
        let joined = joining.spawn(move || {
            self.join();
            // Nobody listens any more if it took too long.
            let _ = ended.send(());
        });
        if joined.is_ok() && end.recv_timeout(most).is_err() {
            tracing::warn!("some sessions did not end in time");
        }
    }

    fn join(self) {
        let threads: Vec<_> = self.loops.into_iter().map(|l| l.thread).collect();
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("an event loop ended by a panic");
            }
        }
    }
}

fn start_loop(
    core: usize,
    placement: &Placement,
    engine: Arc<Engine>,
    tls: Option<Tls>,
    cause: &Arc<Cause>,
) -> io::Result<Loop> {
    let cause = cause.clone();
    let (arrivals, receiver) = mpsc::unbounded_channel();
    let connections = Arc::new(AtomicUsize::new(0));
    let open = connections.clone();
    let (placement, for_blocking) = (placement.clone(), placement.clone());
    let builder = std::thread::Builder::new().name(format!("loop-{core}"));
    let thread = builder.stack_size(stack::SIZE).spawn(move || {
        placement.bind(core);
        throng_observe::this_is_core(core);
        engine.describe_stalls();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            // Sockets are looked at after this many polls: frequent enough that a busy session
            // delays nobody.
            .event_interval(31)
            // For VACUUM and sorting keys: few at a time, and every thread takes one of a bounded
            // number of lanes.
            .max_blocking_threads(4)
            // They start where the loop is bound, and must not compete with it there while other
            // cores are idle.
            .on_thread_start(move || for_blocking.confine())
            .on_thread_park(give_way)
            .build()
            .expect("a runtime for the event loop");
        let host = Rc::new(LoopShared {
            engine,
            tls,
            stop: Rc::new(Shutdown::new(cause)),
        });
        runtime.block_on(LocalSet::new().run_until(run_loop(host, receiver, open)));
    })?;
    Ok(Loop {
        core,
        arrivals,
        connections,
        thread,
    })
}

/// Before a loop waits for what comes, its clients get the core for as long as they have something
/// to send; else on a full core they wait for the loop's time slice to end, which is milliseconds.
/// On an idle core this returns at once. While others may be waiting for rows that sessions of this
/// loop have changed, it hurries on.
fn give_way() {
    stack::give_back();
    if throng_txn::writers_here() == 0 {
        throng_sync::yield_core();
    }
}

async fn run_loop(
    host: Rc<LoopShared>,
    mut arrivals: mpsc::UnboundedReceiver<(Arrival, Guest)>,
    open: Arc<AtomicUsize>,
) {
    let outbox = Rc::new(Outbox::new(ring()));
    let sender = outbox.clone();
    tokio::task::spawn_local(async move { sender.send().await });
    tokio::task::spawn_local(throng_exec::turns::deal(give_way));
    let mut sessions = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            arrival = arrivals.recv() => {
                let Some((arrival, guest)) = arrival else { break };
                match join(arrival, &outbox) {
                    Ok(stream) => {
                        let (host, open) = (host.clone(), open.clone());
                        sessions.spawn_local(async move {
                            let _leave = Leave(open);
                            connection::serve(host, stream, guest).await;
                            throng_exec::turns::statement_begins();
                        });
                    }
                    Err(e) => {
                        open.fetch_sub(1, Ordering::Relaxed);
                        tracing::warn!(error = %e, "could not take a connection");
                    }
                }
            }
            Some(ended) = sessions.join_next() => {
                if let Err(e) = ended {
                    tracing::error!(error = %e, "a session ended by a panic");
                }
            }
        }
    }
    host.stop.say();
    while sessions.join_next().await.is_some() {}
    outbox.leave();
}

/// The calling loop's ring, where the kernel lets us have one; where not, the first loop tells.
fn ring() -> Option<Ring> {
    static TELL: Once = Once::new();
    let refused = |e: &io::Error| {
        TELL.call_once(
            || tracing::info!(error = %e, "no io_uring: each reply leaves by a call of its own"),
        );
    };
    Ring::new().inspect_err(refused).ok()
}

/// Takes a connection off the loop's count, however it ends.
struct Leave(Arc<AtomicUsize>);

impl Drop for Leave {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn join(arrival: Arrival, outbox: &Rc<Outbox>) -> io::Result<Stream> {
    let (socket, origin) = match arrival {
        Arrival::Tcp(s) => {
            // Replies are complete when they are sent; nothing is gained by waiting for more.
            s.set_nodelay(true)?;
            let origin = s.peer_addr().map_or(Origin::Unknown, Origin::Tcp);
            (s.into(), origin)
        }
        Arrival::Unix(s, peer) => {
            let origin = peer.map_or(Origin::Unknown, |uid| Origin::Unix {
                owner: uid == rustix::process::geteuid().as_raw(),
            });
            (s.into(), origin)
        }
    };
    let socket = PlainSocket::new(socket, origin, outbox.clone())?;
    Ok(Stream::Plain(Rc::new(socket)))
}

/// The sockets new clients knock at.
pub struct Listeners {
    tcp: TcpListener,
    unix: Vec<UnixListener>,
    /// Unlinked when we go.
    paths: Vec<PathBuf>,
}

impl Listeners {
    /// Binds the TCP address and one Unix socket, `.s.PGSQL.PORT`, in each directory.
    pub fn bind(address: SocketAddr, directories: &[PathBuf]) -> io::Result<Listeners> {
        let socket = socket2::Socket::new(
            socket2::Domain::for_address(address),
            socket2::Type::STREAM,
            None,
        )?;
        socket.set_reuse_address(true)?;
        socket.bind(&address.into()).map_err(|e| at(address, e))?;
        socket.listen(BACKLOG).map_err(|e| at(address, e))?;
        socket.set_nonblocking(true)?;
        let tcp = TcpListener::from_std(socket.into())?;
        let port = tcp.local_addr()?.port();
        let mut listeners = Listeners {
            tcp,
            unix: Vec::new(),
            paths: Vec::new(),
        };
        for directory in directories {
            let path = directory.join(format!(".s.PGSQL.{port}"));
            listeners
                .unix
                .push(bind_unix(&path).map_err(|e| at(path.display(), e))?);
            listeners.paths.push(path);
        }
        Ok(listeners)
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// Accepts and deals until dropped.
    pub async fn accept(&self, loops: &Loops) {
        let tcp = async {
            loop {
                loops.ready().await;
                let accepted = self.tcp.accept().await.and_then(|(s, _)| s.into_std());
                deal(loops, accepted.map(Arrival::Tcp)).await;
            }
        };
        let unix = async {
            let mut accepting = tokio::task::JoinSet::new();
            // One at a time: what nobody has room for stays with the kernel.
            let (arrived, mut arrivals) = mpsc::channel(1);
            for listener in &self.unix {
                let listener = clone_unix(listener);
                let arrived = arrived.clone();
                accepting.spawn(async move {
                    let Ok(listener) = listener else { return };
                    loop {
                        let accepted = listener.accept().await.and_then(|(s, _)| {
                            let peer = s.peer_cred().ok().map(|cred| cred.uid());
                            Ok(Arrival::Unix(s.into_std()?, peer))
                        });
                        if arrived.send(accepted).await.is_err() {
                            return;
                        }
                    }
                });
            }
            while let Some(arrival) = arrivals.recv().await {
                loops.ready().await;
                deal(loops, arrival).await;
            }
        };
        tokio::join!(tcp, unix);
    }
}

impl Drop for Listeners {
    fn drop(&mut self) {
        for path in &self.paths {
            // Somebody may have removed it already; a stale socket file does no harm.
            let _ = std::fs::remove_file(path);
        }
    }
}

async fn deal(loops: &Loops, arrival: io::Result<Arrival>) {
    match arrival {
        Ok(arrival) => loops.deal(arrival),
        Err(e) => {
            // Most often no file descriptor is left: let sessions end before asking again.
            tracing::warn!(error = %e, "could not accept a connection");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

fn at(place: impl std::fmt::Display, e: io::Error) -> io::Error {
    io::Error::new(e.kind(), format!("could not listen on {place}: {e}"))
}

fn clone_unix(listener: &UnixListener) -> io::Result<UnixListener> {
    use std::os::fd::AsFd;
    let owned = listener.as_fd().try_clone_to_owned()?;
    UnixListener::from_std(owned.into())
}

/// Binds a Unix socket, replacing the file that a dead server left behind, not one that a live
/// server answers at.
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(e) if e.kind() == io::ErrorKind::AddrInUse => {
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                return Err(e);
            }
            std::fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        bound => bound,
    }
}
