//! What the server is told before it starts: the command line first, then `DIR/throng.toml`, then
//! defaults.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};
use throng_session::GivenSettings;
use throng_types::error::state;
use throng_types::page::PAGE_SIZE;
use throng_types::{Error, Result};

/// A PostgreSQL-compatible database for crowds: many clients, many cores.
#[derive(Parser)]
#[command(name = "throng", version)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Serve PostgreSQL clients from a data directory, created at first start.
    Serve(Serve),
    /// Have the standby on a data directory take over, and wait until it serves.
    Promote(Promote),
    /// Verify every page, index and chain of a data directory that no server is using.
    Check(Check),
    /// Put servers under the same load, in turns, and say what limits each.
    Bench(throng_lab::bench::cli::Bench),
    /// Measure each structure as it was, as it became and beyond, side by side on this machine.
    Lab(throng_lab::cli::Lab),
    /// Show where a running server spends its time, on the cores and off them.
    Profile(throng_lab::profile::command::Profile),
    /// Print a shell's completions of this command line.
    Completions(Completions),
    /// Print this command's manual page, or write the pages of all its parts.
    Man(Man),
}

#[derive(Args)]
pub struct Completions {
    pub shell: clap_complete::Shell,
}

#[derive(Args)]
pub struct Man {
    /// Write a page for each subcommand into this directory, instead of printing the first.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

#[derive(Args)]
pub struct Serve {
    /// Where the data lives.
    #[arg(long, value_name = "DIR", default_value = "./throng-data")]
    pub data: PathBuf,
    /// Address and port to listen on [default: 127.0.0.1:5433].
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<SocketAddr>,
    /// Cores to run on, such as 0-3,8 [default: all this process may use].
    #[arg(long, value_name = "LIST")]
    pub cores: Option<String>,
    /// Memory for the buffer pool, such as 512MB [default: a quarter of the machine's].
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Give a setting its server-wide value; may be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub settings: Vec<String>,
    /// Follow this server until promoted; an empty data directory begins with a copy of it.
    #[arg(long, value_name = "URL")]
    pub standby_of: Option<String>,
    /// The replication slot of the primary that keeps the log for this standby.
    #[arg(long, value_name = "NAME", requires = "standby_of")]
    pub slot: Option<String>,
}

#[derive(Args)]
pub struct Promote {
    /// The standby's data directory.
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
}

#[derive(Args)]
pub struct Check {
    /// The data directory to verify.
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,
    /// First compare the pages as they are with what the log makes of them, as far as it reaches
    /// back: redo equals do.
    #[arg(long)]
    pub redo: bool,
}

/// Everything `serve` was told, in one place.
pub struct Config {
    pub data: PathBuf,
    pub listen: SocketAddr,
    pub cores: Vec<usize>,
    pub pool_bytes: usize,
    /// Directories for Unix sockets.
    pub unix_sockets: Vec<PathBuf>,
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// Server-wide values of settings.
    pub settings: GivenSettings,
    pub standby_of: Option<String>,
    pub slot: Option<String>,
}

/// Keys of `throng.toml` and `--set` that are the server's own and not an entry of the settings'
/// registry.
const LISTEN: &str = "listen";
const CORES: &str = "cores";
const MEMORY: &str = "memory";
/// PostgreSQL's name for the same. Without a unit it counts pages.
const SHARED_BUFFERS: &str = "shared_buffers";

const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 5433);
/// Less than this and the pool could not hold the pages that one statement latches at once.
const LEAST_POOL: usize = 1 << 20;

impl Config {
    pub fn of(serve: &Serve) -> Result<Config> {
        let mut given = GivenSettings {
            file: read_file(&serve.data)?,
            command_line: Vec::new(),
        };
        for assignment in &serve.settings {
            let (name, value) = assignment
                .split_once('=')
                .ok_or_else(|| invalid(format!("--set {assignment}: expected NAME=VALUE")))?;
            let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
            given.command_line.push((name, value));
        }
        let own = |name: &str| {
            let found = given.all().rfind(|(n, _)| n == name);
            found.map(|(_, value)| value.clone())
        };
        let listen = match (serve.listen, own(LISTEN)) {
            (Some(address), _) => address,
            (None, Some(text)) => text
                .parse()
                .map_err(|_| invalid(format!("listen: \"{text}\" is not an ADDR:PORT")))?,
            (None, None) => DEFAULT_LISTEN,
        };
        let cores = match serve.cores.clone().or(own(CORES)) {
            Some(list) => throng_sync::topology::parse_core_list(&list)
                .map_err(|e| invalid(format!("cores: {e}")))?,
            None => throng_sync::topology::allowed_cores().unwrap_or_else(|_| vec![0]),
        };
        let memory = serve.memory.clone().or(own(MEMORY)).map(|text| (text, 1));
        let memory = memory.or_else(|| Some((own(SHARED_BUFFERS)?, PAGE_SIZE)));
        let pool_bytes = match memory {
            Some((text, unit)) => parse_size(&text, unit)
                .filter(|n| *n >= LEAST_POOL)
                .ok_or_else(|| {
                    invalid(format!("memory: \"{text}\" is not a size of at least 1MB"))
                })?,
            None => total_memory() / 4,
        };
        for settings in [&mut given.file, &mut given.command_line] {
            settings.retain(|(name, _)| !is_own(name) && name != SHARED_BUFFERS);
        }
        let decided = [
            (SHARED_BUFFERS, format!("{}kB", pool_bytes / 1024)),
            ("port", listen.port().to_string()),
            ("listen_addresses", listen.ip().to_string()),
        ];
        let decided = decided.map(|(name, value)| (name.to_owned(), value));
        given.command_line.extend(decided);

        let value = |name: &str| {
            let found = given.all().rfind(|(n, _)| n == name);
            found.map(|(_, value)| value.as_str())
        };
        let unix_sockets = value("unix_socket_directories")
            .unwrap_or("/tmp")
            .split(',')
            .map(str::trim)
            .filter(|d| !d.is_empty())
            .map(PathBuf::from)
            .collect();
        let certificate = match (value("ssl_cert_file"), value("ssl_key_file")) {
            (Some(certificate), Some(key)) => {
                Some((serve.data.join(certificate), serve.data.join(key)))
            }
            (None, None) => None,
            _ => return Err(invalid("ssl_cert_file and ssl_key_file belong together")),
        };
        Ok(Config {
            data: serve.data.clone(),
            listen,
            cores,
            pool_bytes,
            unix_sockets,
            certificate,
            settings: given,
            standby_of: serve.standby_of.clone(),
            slot: serve.slot.clone(),
        })
    }
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(state::CONFIG_FILE_ERROR, message)
}

/// Whether a key is the server's own, and no setting's name.
fn is_own(name: &str) -> bool {
    [LISTEN, CORES, MEMORY].contains(&name)
}

/// The settings of `DIR/throng.toml`, if there is one. The server's own keys, which only a start
/// reads, are left out.
pub fn file_settings(data: &Path) -> Result<Vec<(String, String)>> {
    let mut settings = read_file(data)?;
    settings.retain(|(name, _)| !is_own(name));
    Ok(settings)
}

fn read_file(data: &Path) -> Result<Vec<(String, String)>> {
    let path = data.join("throng.toml");
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(invalid(format!("{}: {e}", path.display()))),
    };
    let table: toml::Table = text
        .parse()
        .map_err(|e| invalid(format!("{}: {e}", path.display())))?;
    table
        .into_iter()
        .map(|(name, value)| {
            let text = match value {
                toml::Value::String(s) => s,
                toml::Value::Integer(n) => n.to_string(),
                toml::Value::Float(n) => n.to_string(),
                toml::Value::Boolean(b) => if b { "on" } else { "off" }.to_owned(),
                _ => {
                    return Err(invalid(format!(
                        "{}: {name}: expected one value",
                        path.display()
                    )));
                }
            };
            Ok((name, text))
        })
        .collect()
}

/// Bytes in a size such as `512MB`, `4GB` or, with no unit, a count of so many bytes each.
fn parse_size(text: &str, unit: usize) -> Option<usize> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let number: usize = text[..digits].parse().ok()?;
    let shift = match text[digits..].trim().to_ascii_lowercase().as_str() {
        "" => return number.checked_mul(unit),
        "b" => 0,
        "kb" => 10,
        "mb" => 20,
        "gb" => 30,
        "tb" => 40,
        _ => return None,
    };
    number.checked_mul(1 << shift)
}

/// The machine's memory in bytes, or what its control group allows if that is less.
fn total_memory() -> usize {
    let machine = rustix::system::sysinfo();
    let machine = machine.totalram as usize * machine.mem_unit as usize;
    let limit = std::fs::read_to_string("/sys/fs/cgroup/memory.max")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(usize::MAX);
    machine.min(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(parse_size("512MB", 1), Some(512 << 20));
        assert_eq!(parse_size(" 4 GB ", PAGE_SIZE), Some(4 << 30));
        assert_eq!(parse_size("4096", 1), Some(4096));
        assert_eq!(parse_size("4096", PAGE_SIZE), Some(32 << 20));
        assert_eq!(parse_size("many", 1), None);
        assert_eq!(parse_size("99999999999999TB", 1), None);
    }

    #[test]
    fn the_command_line_beats_the_file() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(
            dir.path().join("throng.toml"),
            "listen = \"127.0.0.1:7000\"\nwork_mem = \"8MB\"\nfsync = true\n",
        )
        .expect("written");
        let mut serve = Serve {
            data: dir.path().to_owned(),
            listen: None,
            cores: Some("0".into()),
            memory: Some("64MB".into()),
            settings: vec!["work_mem=16MB".into()],
            standby_of: None,
            slot: None,
        };
        let config = Config::of(&serve).expect("valid");
        assert_eq!(config.listen.port(), 7000);
        assert_eq!(config.pool_bytes, 64 << 20);
        let work_mem: Vec<_> = config
            .settings
            .all()
            .filter(|(n, _)| n == "work_mem")
            .map(|(_, v)| v.as_str())
            .collect();
        assert_eq!(work_mem, ["8MB", "16MB"]);
        serve.listen = Some("127.0.0.1:7001".parse().expect("an address"));
        assert_eq!(Config::of(&serve).expect("valid").listen.port(), 7001);
        serve.settings = vec!["nonsense".into()];
        assert!(Config::of(&serve).is_err());
        // A reload reads what is a setting.
        let reloaded = file_settings(dir.path()).expect("valid");
        let names: Vec<_> = reloaded.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["fsync", "work_mem"]);
    }
}
