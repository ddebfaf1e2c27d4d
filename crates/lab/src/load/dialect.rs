//! The two kinds of SQL that a load writes, and all in which their texts differ that a workload
//! uses.
//!
//! A workload's texts are PostgreSQL's; parameters are `$1`, `$2`, … in both. MySQL's sessions are
//! told to read the standard's strings and its `||` ([`SESSION`]), so what is left is this:
//!
//! | PostgreSQL | MySQL | where |
//! | --- | --- | --- |
//! | `$1` | `?` | [`Book`](super::sql::Book) |
//! | `UPDATE … RETURNING` | `SELECT … FOR UPDATE`, `UPDATE …` | [`Book::change`](super::sql::Book::change) |
//! | `COPY … FROM STDIN` | `INSERT` of many rows | [`Connection::fill`](super::connection::Connection::fill) |
//! | type `timestamp` | `datetime`: MySQL's own `timestamp` ends in 2038 and may change with each update | [`Dialect::create_table`] |
//! | keys after the rows | keys before them: InnoDB keeps rows in their primary key | [`Dialect::keys_come_first`] |
//! | `SHOW setting` | `SELECT @@setting` | [`Dialect::show`] |
//! | `VACUUM ANALYZE` | `ANALYZE TABLE` | [`Dialect::analyze`] |

/// Which SQL, and with it which protocol, a server speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    #[default]
    Postgres,
    /// MariaDB too.
    MySql,
}

/// What each of MySQL's sessions is told first. READ COMMITTED is what PostgreSQL's are told too.
pub const SESSION: [&str; 2] = [
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION autocommit = 1, sql_mode = 'STRICT_ALL_TABLES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES'",
];

impl Dialect {
    /// How the target's URL begins.
    pub fn scheme(self) -> &'static str {
        match self {
            Dialect::Postgres => "postgres",
            Dialect::MySql => "mysql",
        }
    }

    /// From PostgreSQL's text. Text is compared by its bytes, as PostgreSQL's default collation of
    /// UTF-8 does.
    pub fn create_table(self, text: &str) -> String {
        match self {
            Dialect::Postgres => text.to_owned(),
            Dialect::MySql => format!(
                "{} ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
                text.replace(" timestamp", " datetime")
            ),
        }
    }

    /// Whether primary keys are declared before rows come.
    pub fn keys_come_first(self) -> bool {
        self == Dialect::MySql
    }

    /// Asks for a setting of the server's.
    pub fn show(self, setting: &str) -> String {
        match self {
            Dialect::Postgres => format!("SHOW {setting}"),
            Dialect::MySql => format!("SELECT @@{setting}"),
        }
    }

    /// What is done with a table that was filled.
    pub fn analyze(self, table: &str) -> String {
        match self {
            Dialect::Postgres => format!("VACUUM ANALYZE {table}"),
            Dialect::MySql => format!("ANALYZE TABLE {table}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_in_both() {
        let text = "CREATE TABLE t (a int, b timestamp, c timestamp)";
        assert_eq!(Dialect::Postgres.create_table(text), text);
        assert!(
            Dialect::MySql
                .create_table(text)
                .starts_with("CREATE TABLE t (a int, b datetime, c datetime) ENGINE=InnoDB ")
        );
    }
}
