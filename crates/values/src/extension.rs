//! PL/pgSQL as the extension that PostgreSQL's tools look for: every database is born with it.

pub const NAME: &str = "plpgsql";
pub const VERSION: &str = "1.0";
pub const DESCRIPTION: &str = "PL/pgSQL procedural language";
