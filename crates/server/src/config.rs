//! What the server is told before it starts: the command line first, then `DIR/throng.toml`, then
//! defaults.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};
use throng_types::error::state;
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
    /// Verify every page, index and chain of a data directory that no server is using.
    Check(Check),
    /// Put servers under the same load, in turns, and say what limits each.
    Bench(throng_lab::bench::cli::Bench),
    /// Measure each structure as it was, as it became and beyond, side by side on this machine.
    Lab(throng_lab::cli::Lab),
    /// Show where a running server spends its time, on the cores and off them.
    Profile(throng_lab::profile::command::Profile),
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
    /// Server-wide values of settings, later ones winning.
    pub settings: Vec<(String, String)>,
}

/// Keys of `throng.toml` and `--set` that are the server's own and not an entry of the settings'
/// registry.
const LISTEN: &str = "listen";
const CORES: &str = "cores";
const MEMORY: &str = "memory";

const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 5433);
/// Less than this and the pool could not hold the pages that one statement latches at once.
const LEAST_POOL: usize = 1 << 20;

impl Config {
    pub fn of(serve: &Serve) -> Result<Config> {
        let mut settings = file_settings(&serve.data)?;
        for assignment in &serve.settings {
            let (name, value) = assignment
                .split_once('=')
                .ok_or_else(|| invalid(format!("--set {assignment}: expected NAME=VALUE")))?;
            settings.push((name.trim().to_owned(), value.trim().to_owned()));
        }
        let mut own = |name: &str| {
            let value = settings
                .iter()
                .rfind(|(n, _)| n == name)
                .map(|(_, v)| v.clone());
            settings.retain(|(n, _)| n != name);
            value
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
        let memory = serve.memory.clone().or(own(MEMORY)).or_else(|| {
            settings
                .iter()
                .rfind(|(n, _)| n == "shared_buffers")
                .map(|(_, v)| v.clone())
        });
        let pool_bytes = match memory {
            Some(text) => parse_size(&text)
                .filter(|n| *n >= LEAST_POOL)
                .ok_or_else(|| {
                    invalid(format!("memory: \"{text}\" is not a size of at least 1MB"))
                })?,
            None => total_memory() / 4,
        };
        settings.retain(|(n, _)| n != "shared_buffers");
        settings.push((
            "shared_buffers".to_owned(),
            format!("{}kB", pool_bytes / 1024),
        ));
        settings.push(("port".to_owned(), listen.port().to_string()));
        settings.push(("listen_addresses".to_owned(), listen.ip().to_string()));

        let value = |name: &str| {
            settings
                .iter()
                .rfind(|(n, _)| n == name)
                .map(|(_, v)| v.as_str())
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
            settings,
        })
    }
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(state::CONFIG_FILE_ERROR, message)
}

/// The settings of `DIR/throng.toml`, if there is one.
pub fn file_settings(data: &Path) -> Result<Vec<(String, String)>> {
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

/// Bytes in a size such as `512MB`, `4GB` or, with no unit, a count of bytes.
fn parse_size(text: &str) -> Option<usize> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let number: usize = text[..digits].parse().ok()?;
    let shift = match text[digits..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
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
        assert_eq!(parse_size("512MB"), Some(512 << 20));
        assert_eq!(parse_size(" 4 GB "), Some(4 << 30));
        assert_eq!(parse_size("4096"), Some(4096));
        assert_eq!(parse_size("many"), None);
        assert_eq!(parse_size("99999999999999TB"), None);
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
        };
        let config = Config::of(&serve).expect("valid");
        assert_eq!(config.listen.port(), 7000);
        assert_eq!(config.pool_bytes, 64 << 20);
        let work_mem: Vec<_> = config
            .settings
            .iter()
            .filter(|(n, _)| n == "work_mem")
            .map(|(_, v)| v.as_str())
            .collect();
        assert_eq!(work_mem, ["8MB", "16MB"]);
        serve.listen = Some("127.0.0.1:7001".parse().expect("an address"));
        assert_eq!(Config::of(&serve).expect("valid").listen.port(), 7001);
        serve.settings = vec!["nonsense".into()];
        assert!(Config::of(&serve).is_err());
    }
}
