//! A workload written in pgbench's script language: SQL with `:variables`, `\set` with expressions,
//! `\sleep`, `\gset`.
//!
//! Where it differs from pgbench: a `:variable` inside quotes is text, and so is one that nobody
//! sets refused when the statement runs; the remaining meta commands (`\if`, `\setshell`,
//! pipelines) are refused when the script is read. Variables given to every script: `client_id`,
//! `random_seed`, `scale`.

mod expr;
mod read;
mod value;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use self::expr::Variables;
use self::read::{Command, Step};
use self::value::Value;
use super::tpcb::load_bank;
use super::{Client, Condition, Doing, Done, Link, Workload};
use crate::load::random::Random;
use crate::load::sql::Arg;
use crate::load::trouble::{Result, Trouble};
use crate::load::url::Target;

pub struct Script {
    steps: Arc<Vec<Step>>,
    scale: i64,
}

impl Script {
    pub fn read(path: &Path, scale: i64) -> Result<Script> {
        let text = std::fs::read_to_string(path)
            .map_err(|e| Trouble::usage(format!("{}: {e}", path.display())))?;
        Script::of(&text, scale).map_err(|e| Trouble::usage(format!("{}: {e}", path.display())))
    }

    pub fn of(text: &str, scale: i64) -> Result<Script> {
        Ok(Script {
            steps: Arc::new(read::read(text)?),
            scale,
        })
    }
}

impl Workload for Script {
    fn name(&self) -> &'static str {
        "script"
    }

    /// pgbench's tables, which most scripts are about.
    fn load(&self, target: &Target, say: &dyn Fn(&str)) -> Result<()> {
        load_bank(target, self.scale, say)
    }

    fn client(&self, number: usize, _of: usize, seed: u64) -> Box<dyn Client> {
        let given = [
            ("client_id", number as i64),
            ("random_seed", seed as i64),
            ("scale", self.scale),
        ];
        let given = given.map(|(name, value)| (name.to_owned(), Value::Int(value)));
        let state = ScriptState {
            variables: given.into(),
            random: Random::of(seed, number as u64),
        };
        Box::new(Player {
            steps: self.steps.clone(),
            before: state.clone(),
            state,
        })
    }

    /// Nothing is known about a script.
    fn check(&self, _target: &Target) -> Result<Vec<Condition>> {
        Ok(Vec::new())
    }
}

#[derive(Clone)]
struct ScriptState {
    variables: Variables,
    random: Random,
}

struct Player {
    steps: Arc<Vec<Step>>,
    /// As it was when the transaction was drawn: a retry begins there, so that it does the same
    /// again.
    before: ScriptState,
    state: ScriptState,
}

impl Client for Player {
    fn draw(&mut self) -> usize {
        self.before.clone_from(&self.state);
        0
    }

    fn run<'a>(&'a mut self, link: &'a mut Link) -> Doing<'a> {
        self.state.clone_from(&self.before);
        Box::pin(async move {
            let steps = self.steps.clone();
            for step in steps.iter() {
                self.state.step(step, link).await?;
            }
            // A script that leaves a transaction open would go on in it: end it, as a failure does.
            if link.connection().await?.in_transaction() {
                return Err(Trouble::usage("the script ends inside a transaction"));
            }
            Ok(Done::Committed)
        })
    }
}

impl ScriptState {
    async fn step(&mut self, step: &Step, link: &mut Link) -> Result<()> {
        let at = |why: String| Trouble::usage(format!("line {}: {why}", step.line));
        match &step.command {
            Command::Set(name, expr) => {
                let value = expr
                    .evaluate(&self.variables, &mut self.random)
                    .map_err(at)?;
                self.variables.insert(name.clone(), value);
            }
            Command::Sleep(time, micros) => {
                let value = time.evaluate(&self.variables, &mut self.random);
                let time = value.and_then(|v| v.to_int()).map_err(at)?;
                let time = Duration::from_micros(time.saturating_mul(*micros).max(0) as u64);
                link.reactor().sleep(time).await;
            }
            Command::Sql {
                sql,
                variables,
                into,
            } => {
                let mut args: Vec<Arg<'_>> = Vec::with_capacity(variables.len());
                for name in variables {
                    let value = self.variables.get(name);
                    let unset = || at(format!("the variable {name} is not set"));
                    args.push(value.ok_or_else(unset)?.as_arg());
                }
                let connection = link.connection().await?;
                let tally = connection.run(sql, &args).await?;
                let Some(prefix) = into else {
                    return Ok(());
                };
                if tally.rows != 1 {
                    return Err(at(format!("\\gset expects one row, not {}", tally.rows)));
                }
                let rows = connection.rows();
                for (column, name) in connection.column_names().iter().enumerate() {
                    let value = rows.text(0, column)?.map_or(Value::Null, Value::of_text);
                    self.variables.insert(format!("{prefix}{name}"), value);
                }
            }
        }
        Ok(())
    }
}
