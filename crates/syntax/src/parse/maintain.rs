//! VACUUM, ANALYZE and CLUSTER.

use throng_types::error::state;
use throng_types::{Error, Result};

use super::Parser;
use super::ast::*;
use crate::vocabulary::VacuumOptions;
use throng_types::lexical::quantity::{Unit, parse_quantity};

/// An option in parentheses.
struct Given {
    name: String,
    value: Option<String>,
    pos: Pos,
}

impl Given {
    fn is_on(&self) -> Result<bool> {
        let Some(value) = &self.value else {
            return Ok(true);
        };
        match value.to_ascii_lowercase().as_str() {
            "true" | "on" | "1" => Ok(true),
            "false" | "off" | "0" => Ok(false),
            _ => Err(Error::new(
                state::SYNTAX_ERROR,
                format!("{} requires a Boolean value", self.name),
            )),
        }
    }

    fn wrong(&self, message: impl Into<String>) -> Error {
        Error::new(state::SYNTAX_ERROR, message).position(self.pos + 1)
    }
}

/// What VACUUM's options say besides what is carried out: enough to refuse what does not go
/// together.
#[derive(Default)]
struct Said {
    workers: i64,
    ring: Option<i64>,
    skip_toast: bool,
    disable_page_skipping: bool,
    only_database_stats: bool,
}

fn refused(message: &str) -> Error {
    Error::new(state::FEATURE_NOT_SUPPORTED, message)
}

/// The kilobytes of BUFFER_USAGE_LIMIT, which nothing here is limited by.
fn usage_limit(given: &Given) -> Result<i64> {
    let message = "BUFFER_USAGE_LIMIT option must be 0 or between 128 kB and 16777216 kB";
    let wrong = || Error::new(state::INVALID_PARAMETER_VALUE, message);
    let text = given.value.as_deref().unwrap_or_default();
    let limit = parse_quantity(text, Unit::Kilobytes).map_err(|hint| match hint.len() {
        0 => wrong(),
        _ => wrong().hint(hint),
    })? as i64;
    match limit {
        0 | 128..=16_777_216 => Ok(limit),
        _ if limit > i64::from(i32::MAX) => Err(wrong().hint("Value exceeds integer range.")),
        _ => Err(wrong()),
    }
}

impl Parser<'_> {
    fn given_options(&mut self) -> Result<Vec<Given>> {
        self.parens(|p| {
            p.list(|p| {
                let pos = p.pos();
                let name = p.label()?;
                let value = match p.is_punct(',') || p.is_punct(')') {
                    true => None,
                    false => Some(p.option_value()?),
                };
                Ok(Given { name, value, pos })
            })
        })
    }

    fn maintained_tables(&mut self) -> Result<Vec<Maintained>> {
        if self.at_end() || self.is_punct(';') {
            return Ok(vec![]);
        }
        self.list(|p| {
            let (name, only) = p.table_name_only()?;
            let columns = match p.is_punct('(') {
                true => p.name_list()?,
                false => Vec::new(),
            };
            Ok(Maintained {
                name,
                only,
                columns,
            })
        })
    }

    pub(super) fn vacuum(&mut self) -> Result<Statement> {
        let mut options = VacuumOptions::default();
        let mut said = Said::default();
        if self.is_punct('(') {
            for given in self.given_options()? {
                vacuum_option(&given, &mut options, &mut said)?;
            }
        } else {
            options.full = self.word("full");
            self.word("freeze");
            self.word("verbose");
            options.analyze = self.word("analyze") || self.word("analyse");
        }
        let tables = self.maintained_tables()?;
        fit_together(&options, &said, &tables)?;
        Ok(Statement::Vacuum { tables, options })
    }

    pub(super) fn analyze(&mut self) -> Result<Statement> {
        let mut skip_locked = false;
        if self.is_punct('(') {
            for given in self.given_options()? {
                match given.name.as_str() {
                    "verbose" => drop(given.is_on()?),
                    "skip_locked" => skip_locked = given.is_on()?,
                    "buffer_usage_limit" => drop(usage_limit(&given)?),
                    name => {
                        return Err(given.wrong(format!("unrecognized ANALYZE option \"{name}\"")));
                    }
                }
            }
        } else {
            self.word("verbose");
        }
        Ok(Statement::Analyze {
            tables: self.maintained_tables()?,
            skip_locked,
        })
    }

    pub(super) fn cluster(&mut self) -> Result<Statement> {
        if self.is_punct('(') {
            for given in self.given_options()? {
                match given.name.as_str() {
                    "verbose" => drop(given.is_on()?),
                    name => {
                        return Err(given.wrong(format!("unrecognized CLUSTER option \"{name}\"")));
                    }
                }
            }
        } else {
            self.word("verbose");
        }
        if self.at_end() || self.is_punct(';') {
            return Ok(Statement::Cluster {
                table: None,
                index: None,
            });
        }
        let first = self.any_name()?;
        // CLUSTER index ON table, as it was once written.
        let (table, index) = if first.parts.len() == 1 && self.word("on") {
            let index = first.parts.into_iter().next();
            (self.any_name()?, index)
        } else if self.word("using") {
            (first, Some(self.name()?))
        } else {
            (first, None)
        };
        let table = Some(table);
        Ok(Statement::Cluster { table, index })
    }
}

fn vacuum_option(given: &Given, options: &mut VacuumOptions, said: &mut Said) -> Result<()> {
    match given.name.as_str() {
        "full" => options.full = given.is_on()?,
        "analyze" | "analyse" => options.analyze = given.is_on()?,
        "skip_locked" => options.skip_locked = given.is_on()?,
        "process_main" => options.skip_main = !given.is_on()?,
        "process_toast" => said.skip_toast = !given.is_on()?,
        "disable_page_skipping" => said.disable_page_skipping = given.is_on()?,
        "only_database_stats" => said.only_database_stats = given.is_on()?,
        "truncate" => options.truncate = Some(given.is_on()?),
        // What these ask for is always done, or there is nothing to do about it.
        "verbose" | "freeze" | "skip_database_stats" => drop(given.is_on()?),
        "index_cleanup" => {
            let auto = |value: &String| value.eq_ignore_ascii_case("auto");
            if !given.value.as_ref().is_some_and(auto) {
                given.is_on()?;
            }
        }
        "parallel" => {
            let Some(value) = &given.value else {
                let message = "parallel option requires a value between 0 and 1024";
                return Err(given.wrong(message));
            };
            said.workers = value
                .parse()
                .map_err(|_| given.wrong("parallel requires an integer value"))?;
            if !(0..=1024).contains(&said.workers) {
                return Err(given.wrong("parallel workers for vacuum must be between 0 and 1024"));
            }
        }
        "buffer_usage_limit" => said.ring = Some(usage_limit(given)?),
        name => return Err(given.wrong(format!("unrecognized VACUUM option \"{name}\""))),
    }
    Ok(())
}

/// What PostgreSQL refuses, in its order.
fn fit_together(options: &VacuumOptions, said: &Said, tables: &[Maintained]) -> Result<()> {
    if options.full && said.workers > 0 {
        return Err(refused("VACUUM FULL cannot be performed in parallel"));
    }
    if options.full && said.ring.is_some() && !options.analyze {
        return Err(refused(
            "BUFFER_USAGE_LIMIT cannot be specified for VACUUM FULL",
        ));
    }
    if !options.analyze && tables.iter().any(|table| !table.columns.is_empty()) {
        return Err(refused(
            "ANALYZE option must be specified when a column list is provided",
        ));
    }
    if options.full && said.disable_page_skipping {
        return Err(refused(
            "VACUUM option DISABLE_PAGE_SKIPPING cannot be used with FULL",
        ));
    }
    if options.full && said.skip_toast {
        return Err(refused("PROCESS_TOAST required with VACUUM FULL"));
    }
    if said.only_database_stats && !tables.is_empty() {
        return Err(refused(
            "ONLY_DATABASE_STATS cannot be specified with a list of tables",
        ));
    }
    Ok(())
}
