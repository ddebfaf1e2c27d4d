//! A server of the test's own: a child process on a temporary directory and a free port.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::client::{Address, Client};

/// How long a start may take on a busy machine.
const START: Duration = Duration::from_secs(60);

/// What a test that does not say otherwise gets.
const DEFAULTS: &[(&str, &str)] = &[("--listen", "127.0.0.1:0"), ("--memory", "64MB")];

/// The binary under test.
pub fn throng() -> Command {
    Command::new(env!("CARGO_BIN_EXE_throng"))
}

/// A place for a server to live in, which outlives its processes.
pub struct Home {
    dir: TempDir,
}

impl Home {
    pub fn new() -> Home {
        Home {
            dir: tempfile::tempdir().expect("a temporary directory"),
        }
    }

    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// How many files relations have.
    pub fn files(&self) -> usize {
        let base = std::fs::read_dir(self.data().join("base"));
        base.expect("a data directory").count()
    }

    /// Where the Unix socket is put: short, and nobody else's.
    pub fn sockets(&self) -> &Path {
        self.dir.path()
    }

    fn log(&self) -> PathBuf {
        self.dir.path().join("log")
    }

    pub fn serve(&self, args: &[&str]) -> Server {
        self.try_serve(args)
            .unwrap_or_else(|| panic!("no ready line; log:\n{}", self.log_text()))
    }

    /// None where no ready line comes: [`log_text`](Home::log_text) says why.
    pub fn try_serve(&self, args: &[&str]) -> Option<Server> {
        self.spawn(throng(), args, self.open_log())
    }

    fn open_log(&self) -> File {
        let mut options = File::options();
        options.create(true).append(true);
        options.open(self.log()).expect("a log file")
    }

    /// As [`serve`](Home::serve), with its log on a disk that takes nothing.
    pub fn serve_without_log(&self, args: &[&str]) -> Server {
        let full = File::options().write(true).open("/dev/full");
        self.spawn(throng(), args, full.expect("/dev/full"))
            .expect("a ready line")
    }

    /// As [`serve`](Home::serve), in a process that may have so many files open.
    pub fn serve_with_files(&self, limit: usize, args: &[&str]) -> Server {
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(format!("ulimit -n {limit}; exec \"$0\" \"$@\""))
            .arg(env!("CARGO_BIN_EXE_throng"));
        self.spawn(command, args, self.open_log())
            .unwrap_or_else(|| panic!("no ready line; log:\n{}", self.log_text()))
    }

    fn spawn(&self, mut command: Command, args: &[&str], log: File) -> Option<Server> {
        let started = Instant::now();
        let mut child = command
            .args(["serve", "--data"])
            .arg(self.data())
            .arg("--set")
            .arg(format!(
                "unix_socket_directories={}",
                self.sockets().display()
            ))
            .args(
                DEFAULTS
                    .iter()
                    .filter(|(option, _)| !args.contains(option))
                    .flat_map(|d| [d.0, d.1]),
            )
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("the server starts");
        let stdout = child.stdout.take().expect("piped");
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // Nobody listens once the first line has been read.
                let _ = sender.send(line);
            }
        });
        let mut server = Server {
            child,
            address: ([0, 0, 0, 0], 0).into(),
            startup: Duration::ZERO,
            log: self.log(),
        };
        let ready = receiver.recv_timeout(START).ok()?;
        server.startup = started.elapsed();
        let address = ready
            .split_whitespace()
            .find_map(|word| word.parse::<SocketAddr>().ok());
        server.address = address.unwrap_or_else(|| panic!("no address in {ready:?}"));
        Some(server)
    }

    /// `throng serve` with other arguments, which is expected to end by itself.
    pub fn serve_to_end(&self, args: &[&str]) -> Output {
        throng()
            .args(["serve", "--data"])
            .arg(self.data())
            .args(args)
            .output()
            .expect("the server runs")
    }

    /// `throng check` of the data directory.
    pub fn run_check(&self, args: &[&str]) -> Output {
        throng()
            .args(["check", "--data"])
            .arg(self.data())
            .args(args)
            .output()
            .expect("check runs")
    }

    /// Verifies the data directory offline, and that redo makes the pages that the server made.
    pub fn check(&self) {
        let checked = self.run_check(&["--redo"]);
        assert!(
            checked.status.success(),
            "throng check: {}\n{}{}",
            checked.status,
            String::from_utf8_lossy(&checked.stdout),
            String::from_utf8_lossy(&checked.stderr)
        );
    }

    pub fn log_text(&self) -> String {
        std::fs::read_to_string(self.log()).unwrap_or_default()
    }

    /// Panics in the server are faults even where every client was answered.
    pub fn assert_no_panic(&self) {
        let log = self.log_text();
        assert!(!log.contains("panicked at"), "the server panicked:\n{log}");
    }
}

/// A running server. Dropping it kills it.
pub struct Server {
    child: Child,
    address: SocketAddr,
    log: PathBuf,
    /// From the start of the process to its ready line.
    pub startup: Duration,
}

impl Server {
    pub fn address(&self) -> Address {
        Address::Tcp(self.address)
    }

    /// The process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    pub fn connect(&self) -> Client {
        Client::connect(&self.address()).unwrap_or_else(|e| panic!("could not connect: {e}"))
    }

    /// As a power cut to the process: nothing it would do at its end is done.
    pub fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("gone");
    }

    /// Has the configuration file read again.
    pub fn reload(&self) {
        kill_process(Pid::from_child(&self.child), Signal::HUP).expect("signalled");
    }

    /// A clean stop.
    pub fn stop(mut self) -> ExitStatus {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("signalled");
        self.child.wait().expect("gone")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Killed or stopped already in most tests; then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = std::fs::read_to_string(&self.log).unwrap_or_default();
            let tail: Vec<&str> = log.lines().rev().take(30).collect();
            for line in tail.iter().rev() {
                eprintln!("server: {line}");
            }
        }
    }
}
