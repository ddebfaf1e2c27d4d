//! Where a server is: `postgres://user:password@host:port/database`, the way libpq reads it, as far
//! as a load needs it, and `mysql://` (or `mariadb://`) in the same way.
//!
//! A host that begins with a slash (`postgres:///db?host=/tmp`, or `postgres://%2Ftmp:5418/db`) is
//! the directory of a Unix socket; of MySQL's it is the socket itself
//! (`mysql://root@%2Ftmp%2Fmysql.sock/db`). What is left out is `postgres`, `127.0.0.1` and 5432,
//! or `root` and 3306; MySQL's database cannot be left out. Options other than `host`, `port`,
//! `user`, `password` and `dbname` are refused, not ignored.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use super::dialect::Dialect;
use super::trouble::{Result, Trouble};

/// A server and how to enter it.
#[derive(Clone)]
pub struct Target {
    pub dialect: Dialect,
    pub address: Address,
    pub user: String,
    pub password: Option<String>,
    pub database: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Address {
        Address::Tcp(address)
    }
}

impl Target {
    /// A server of our own: trusted, on this machine.
    pub fn local(address: impl Into<Address>) -> Target {
        Target {
            dialect: Dialect::Postgres,
            address: address.into(),
            user: "postgres".to_owned(),
            password: None,
            database: "postgres".to_owned(),
        }
    }

    pub fn parse(url: &str) -> Result<Target> {
        let wrong = |why: &str| Trouble::usage(format!("target {url}: {why}"));
        let (scheme, rest) = url.split_once("://").ok_or_else(|| {
            wrong("expected postgres://user:password@host:port/database, or mysql://")
        })?;
        let dialect = match scheme {
            "postgres" | "postgresql" => Dialect::Postgres,
            "mysql" | "mariadb" => Dialect::MySql,
            _ => return Err(wrong(&format!("{scheme}:// is not spoken here"))),
        };
        let (default_user, default_port) = match dialect {
            Dialect::Postgres => ("postgres", 5432),
            Dialect::MySql => ("root", 3306),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, place) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (login, None),
        };
        let (host, port) = split_port(place);
        let decoded = |text: &str| decode(text).ok_or_else(|| wrong("malformed percent escape"));
        let mut host = decoded(host)?;
        let mut port = port.to_owned();
        let mut user = decoded(user)?;
        let mut password = password.map(decoded).transpose()?;
        let mut database = decoded(database)?;
        for option in query.split('&').filter(|o| !o.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let value = decoded(value)?;
            match name {
                "host" => host = value,
                "port" => port = value,
                "user" => user = value,
                "password" => password = Some(value),
                "dbname" => database = value,
                _ => return Err(wrong(&format!("the option {name} is not known here"))),
            }
        }
        let port: u16 = match port.as_str() {
            "" => default_port,
            text => text
                .parse()
                .map_err(|_| wrong("the port is not a number"))?,
        };
        if user.is_empty() {
            user.push_str(default_user);
        }
        if database.is_empty() {
            match dialect {
                Dialect::Postgres => database.clone_from(&user),
                Dialect::MySql => return Err(wrong("which database?")),
            }
        }
        let address = if host.starts_with('/') {
            let path = PathBuf::from(host);
            Address::Unix(match dialect {
                Dialect::Postgres => path.join(format!(".s.PGSQL.{port}")),
                Dialect::MySql => path,
            })
        } else {
            let host = match host.as_str() {
                "" => "127.0.0.1",
                host => host.trim_start_matches('[').trim_end_matches(']'),
            };
            let mut found = (host, port)
                .to_socket_addrs()
                .map_err(|e| wrong(&e.to_string()))?;
            Address::Tcp(
                found
                    .next()
                    .ok_or_else(|| wrong("the host has no address"))?,
            )
        };
        Ok(Target {
            dialect,
            address,
            user,
            password,
            database,
        })
    }
}

/// Host and port; an IPv6 host is in brackets.
fn split_port(place: &str) -> (&str, &str) {
    match place.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (place, ""),
    }
}

/// `%41` is `A`.
fn decode(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        decoded.push((digit()? * 16 + digit()?) as u8);
    }
    String::from_utf8(decoded).ok()
}

/// Without the password.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}@", self.dialect.scheme(), self.user)?;
        match &self.address {
            Address::Tcp(address) => write!(f, "{address}")?,
            Address::Unix(path) => write!(f, "{}", path.display())?,
        }
        write!(f, "/{}", self.database)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let target = Target::parse("postgres://ada:p%40ss@127.0.0.1:7000/books").expect("valid");
        assert_eq!(
            target.address,
            Address::Tcp("127.0.0.1:7000".parse().expect("one"))
        );
        assert_eq!(
            (target.user.as_str(), target.database.as_str()),
            ("ada", "books")
        );
        assert_eq!(target.password.as_deref(), Some("p@ss"));
        assert_eq!(target.to_string(), "postgres://ada@127.0.0.1:7000/books");

        let socket = Address::Unix("/tmp/.s.PGSQL.5418".into());
        for url in [
            "postgresql://%2Ftmp:5418/x",
            "postgres:///x?host=/tmp&port=5418",
        ] {
            assert_eq!(Target::parse(url).expect("valid").address, socket);
        }

        let plain = Target::parse("postgres://").expect("valid");
        assert_eq!(
            plain.address,
            Address::Tcp("127.0.0.1:5432".parse().expect("one"))
        );
        assert_eq!(
            (plain.user.as_str(), plain.database.as_str()),
            ("postgres", "postgres")
        );

        let six = Target::parse("postgres://[::1]:5433").expect("valid");
        assert_eq!(
            six.address,
            Address::Tcp("[::1]:5433".parse().expect("one"))
        );
    }

    #[test]
    fn urls_of_mysql() {
        let target = Target::parse("mysql://ada:x@127.0.0.1/books").expect("valid");
        assert_eq!(target.dialect, Dialect::MySql);
        assert_eq!(
            target.address,
            Address::Tcp("127.0.0.1:3306".parse().expect("one"))
        );
        assert_eq!(target.to_string(), "mysql://ada@127.0.0.1:3306/books");
        let target = Target::parse("mariadb://%2Ftmp%2Fmy.sock/books").expect("valid");
        assert_eq!(target.address, Address::Unix("/tmp/my.sock".into()));
        assert_eq!(target.user, "root");
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for url in [
            "127.0.0.1",
            "oracle://x",
            "postgres://x:y@h:port/",
            "postgres:///?sslmode=require",
            "postgres://%zz@127.0.0.1",
            "mysql://root@127.0.0.1",
        ] {
            assert!(Target::parse(url).is_err(), "{url}");
        }
    }
}
