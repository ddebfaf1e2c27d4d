//! Who a target is: its kind, its version, the settings that a comparison must know, and whether it
//! can say what its sessions wait for.

use super::findings::WaitReporting;
use crate::load::connection::{self, Connection};
use crate::load::dialect::Dialect;
use crate::load::trouble::{Result, Trouble};
use crate::load::url::Target;

/// What kind of server a target is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Throng,
    Postgres,
    MySql,
}

#[derive(Clone, Debug)]
pub struct Server {
    pub kind: Kind,
    /// As the server says it, by its name.
    pub version: String,
    /// What of a server decides how much a commit costs and how much it keeps in memory, in its own
    /// names.
    pub settings: Vec<(String, String)>,
    pub telling: WaitReporting,
}

/// What sampled waits are shares of.
const OF_LOOKS: &str = "of its sessions' time in statements";

const THRONG: WaitReporting = WaitReporting {
    tells: true,
    how: "counts the time of each wait (throng.waits); shares are of all time waited, and what its sessions computed is \
          not in them",
    of: "of the time that its sessions waited",
};
const POSTGRES: WaitReporting = WaitReporting {
    tells: true,
    how: "is asked 20 times a second what its sessions at work do (pg_stat_activity); running is one of the answers",
    of: OF_LOOKS,
};
const MYSQL: WaitReporting = WaitReporting {
    tells: true,
    how: "is asked six times a second what its sessions at work do (performance_schema); running is one of the answers",
    of: OF_LOOKS,
};
const MYSQL_SILENT: WaitReporting = WaitReporting {
    tells: false,
    how: "cannot tell what its sessions wait for: its performance_schema is off, or does not look at waits \
          (consumer events_waits_current)",
    of: OF_LOOKS,
};

const POSTGRES_SETTINGS: &[&str] = &[
    "shared_buffers",
    "fsync",
    "synchronous_commit",
    "full_page_writes",
];
const MYSQL_SETTINGS: &[&str] = &[
    "innodb_buffer_pool_size",
    "innodb_flush_log_at_trx_commit",
    "innodb_doublewrite",
    "log_bin",
    "sync_binlog",
];

impl Server {
    /// Asks who is there.
    pub fn identify(target: &Target) -> Result<Server> {
        connection::with(target, async |connection| match target.dialect {
            Dialect::Postgres => postgres(connection).await,
            Dialect::MySql => mysql(connection).await,
        })
    }

    /// The constant answerer, of which there is little to say.
    pub fn answerer() -> Server {
        Server {
            kind: Kind::Postgres,
            version: "the bench's own, which looks at nothing".to_owned(),
            settings: Vec::new(),
            telling: WaitReporting {
                tells: false,
                how: "waits for nothing",
                of: OF_LOOKS,
            },
        }
    }
}

async fn postgres(connection: &mut Connection) -> Result<Server> {
    let version = word(connection, "SELECT version()").await?;
    let (kind, telling) = match version.contains("Throng") {
        true => (Kind::Throng, THRONG),
        false => (Kind::Postgres, POSTGRES),
    };
    Ok(Server {
        kind,
        version,
        settings: settings(connection, Dialect::Postgres, POSTGRES_SETTINGS).await?,
        telling,
    })
}

async fn mysql(connection: &mut Connection) -> Result<Server> {
    let version = word(connection, "SELECT version()").await?;
    let name = match version.contains("MariaDB") {
        true => "MariaDB",
        false => "MySQL",
    };
    let telling = match looks_at_waits(connection).await? {
        true => MYSQL,
        false => MYSQL_SILENT,
    };
    Ok(Server {
        kind: Kind::MySql,
        version: format!("{name} {version}"),
        settings: settings(connection, Dialect::MySql, MYSQL_SETTINGS).await?,
        telling,
    })
}

/// Whether `performance_schema` is on, may be read, and keeps the waits that are under way.
async fn looks_at_waits(connection: &mut Connection) -> Result<bool> {
    let query = "SELECT count(*) FROM performance_schema.setup_consumers \
                 WHERE name IN ('global_instrumentation', 'thread_instrumentation', 'events_waits_current') \
                 AND enabled = 'YES' AND @@performance_schema = 1";
    match connection.simple(query).await {
        Ok(_) => Ok(connection.rows().int(0, 0)? == 3),
        Err(Trouble::Refused(_)) => Ok(false),
        Err(e) => Err(e),
    }
}

/// Those that the server has.
async fn settings(
    connection: &mut Connection,
    dialect: Dialect,
    names: &[&str],
) -> Result<Vec<(String, String)>> {
    let mut settings = Vec::with_capacity(names.len());
    for name in names {
        match word(connection, &dialect.show(name)).await {
            Ok(value) => settings.push(((*name).to_owned(), readable(name, value))),
            Err(Trouble::Refused(_)) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(settings)
}

/// MySQL says sizes in bytes.
fn readable(name: &str, value: String) -> String {
    match value.parse::<u64>() {
        Ok(bytes) if name.ends_with("_size") => format!("{}MB", bytes >> 20),
        _ => value,
    }
}

async fn word(connection: &mut Connection, query: &str) -> Result<String> {
    connection.simple(query).await?;
    Ok(connection.rows().string(0, 0)?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_said_in_one_unit() {
        let size = |value: &str| readable("innodb_buffer_pool_size", value.to_owned());
        assert_eq!(size("536870912"), "512MB");
        assert_eq!(readable("shared_buffers", "512MB".to_owned()), "512MB");
        assert_eq!(readable("sync_binlog", "1".to_owned()), "1");
    }
}
