//! `tests/scripts/isolation`: interleaved sessions, step by step, and PostgreSQL's answers to them.
//!
//! ```text
//! setup: create table t (id int primary key, v int)     before each scenario
//!
//! == a writer waits for the first one
//! a: begin                                               session a runs a statement
//!     BEGIN
//! b: update t set v = 2 where id = 1
//!     waits                                              it has not answered and waits for a lock
//! b?                                                     look again: waits, or its answer
//!     waits
//! c!: select 1                                             a statement to its end, whether it waits or not
//! cancel b                                               a cancel request; `vanish b` drops its connection
//! b>                                                     its answer, which must come now
//!     ERROR 57014: canceling statement due to user request
//! ```
//! Nothing sleeps to get an order: whether a statement waits is what `pg_stat_activity` says.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::script::{Detail, Tally, Target, name, render, scripts};

/// How long a statement may neither answer nor wait.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long an answer is awaited before the monitor is asked whether the session waits.
const GLANCE: Duration = Duration::from_millis(5);
const WAITS: &str = "waits";
const INDENT: &str = "    ";

/// One line of a script with the output below it.
struct Step {
    line: usize,
    text: String,
    expected: Vec<String>,
}

fn read(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        match (line.strip_prefix(INDENT), steps.last_mut()) {
            (Some(output), Some(step)) => step.expected.push(output.to_owned()),
            _ => steps.push(Step {
                line: number + 1,
                text: line.to_owned(),
                expected: Vec::new(),
            }),
        }
    }
    steps
}

fn written(steps: &[Step]) -> String {
    let mut text = String::new();
    for step in steps {
        text.push_str(&step.text);
        text.push('\n');
        for line in &step.expected {
            text.push_str(INDENT);
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// The sessions of one scenario.
struct Scenario<'a> {
    target: &'a Target,
    schema: String,
    monitor: Client,
    sessions: BTreeMap<String, Client>,
    /// Those whose answer is still to come.
    waiting: Vec<String>,
}

impl<'a> Scenario<'a> {
    fn new(target: &'a Target, script: &str, setup: &[String]) -> Scenario<'a> {
        let schema = format!("isolation_{script}");
        let mut monitor = target.connect();
        monitor.run("set client_min_messages = warning");
        monitor.run(&format!("drop schema if exists {schema} cascade"));
        monitor.run(&format!("create schema {schema}"));
        monitor.run(&format!("set search_path = {schema}"));
        for statement in setup {
            monitor.run(statement);
        }
        Scenario {
            target,
            schema,
            monitor,
            sessions: BTreeMap::new(),
            waiting: Vec::new(),
        }
    }

    fn session(&mut self, session: &str) -> &mut Client {
        let Scenario {
            target,
            schema,
            sessions,
            ..
        } = self;
        sessions.entry(session.to_owned()).or_insert_with(|| {
            let mut client = target.connect();
            client.run(&format!("set search_path = {schema}"));
            client
        })
    }

    /// The answer of a session, or that it waits.
    fn look(&mut self, session: &str) -> Vec<String> {
        let until = Instant::now() + PATIENCE;
        self.waiting.retain(|w| w != session);
        while Instant::now() < until {
            let client = self.sessions.get_mut(session).expect("a session");
            match client.poll(GLANCE) {
                Ok(Some(answer)) => return render(&answer, Detail::Terse),
                Ok(None) => {}
                Err(e) => return vec![format!("no answer: {e}")],
            }
            let asks = format!(
                "select case wait_event when 'SafeSnapshot' then 'Lock' else coalesce(wait_event_type, '') end from pg_stat_activity where pid = {}",
                client.pid
            );
            if self.monitor.run(&asks).value() == "Lock" {
                self.waiting.push(session.to_owned());
                return vec![WAITS.to_owned()];
            }
        }
        vec!["neither answers nor waits".to_owned()]
    }

    fn finish(&mut self, session: &str) -> Vec<String> {
        let Some(at) = self.waiting.iter().position(|w| w == session) else {
            return vec!["was not waiting".to_owned()];
        };
        self.waiting.remove(at);
        match self.session(session).finish() {
            Ok(answer) => render(&answer, Detail::Terse),
            Err(e) => vec![format!("no answer: {e}")],
        }
    }

    /// Runs one step. `None`: it has no output.
    fn step(&mut self, text: &str) -> Option<Vec<String>> {
        if let Some(session) = text.strip_prefix("cancel ") {
            self.session(session).cancel().expect("cancelled");
            None
        } else if let Some(session) = text.strip_prefix("vanish ") {
            self.waiting.retain(|w| w != session);
            self.sessions.remove(session).expect("a session");
            None
        } else if let Some(session) = text.strip_suffix('>') {
            Some(self.finish(session))
        } else if let Some(session) = text.strip_suffix('?') {
            Some(self.look(session))
        } else {
            let (session, sql) = text
                .split_once(": ")
                .unwrap_or_else(|| panic!("no step: {text}"));
            if self
                .waiting
                .iter()
                .any(|w| w == session.trim_end_matches('!'))
            {
                return Some(vec!["is still waiting".to_owned()]);
            }
            let to_its_end = session.strip_suffix('!');
            let session = to_its_end.unwrap_or(session);
            self.session(session).start(sql).expect("sent");
            if to_its_end.is_none() {
                return Some(self.look(session));
            }
            self.waiting.push(session.to_owned());
            Some(self.finish(session))
        }
    }

    fn end(mut self, place: &str) {
        if self.target.oracle {
            let unheard = &self.waiting;
            assert!(
                unheard.is_empty(),
                "{place}: nobody looks at the answer of {unheard:?}"
            );
        }
        drop(self.sessions);
        // Sessions end when their connection does, but not at that very moment.
        self.monitor
            .run(&format!("drop schema {} cascade", self.schema));
    }
}

fn run(target: &Target, path: &Path, tally: &mut Tally) {
    let script = name(path);
    let text = std::fs::read_to_string(path).expect("a script");
    let mut steps = read(&text);
    let setup: Vec<String> = steps
        .iter()
        .filter_map(|s| s.text.strip_prefix("setup: "))
        .map(str::to_owned)
        .collect();
    let mut stage: Option<Scenario> = None;
    for step in &mut steps {
        let place = format!("{script}:{}", step.line);
        let text = step.text.clone();
        if text.is_empty() || text.starts_with('#') || text.starts_with("setup: ") {
            continue;
        }
        if text.starts_with("== ") {
            if let Some(before) = stage.take() {
                before.end(&place);
            }
            stage = Some(Scenario::new(target, &script, &setup));
            continue;
        }
        let stage = stage
            .as_mut()
            .unwrap_or_else(|| panic!("{place}: a step outside a scenario"));
        let got = stage.step(&text).unwrap_or_default();
        if target.oracle {
            step.expected = got;
        } else {
            tally.compare(&place, &text, &step.expected, &got);
        }
    }
    if let Some(stage) = stage {
        stage.end(&script);
    }
    if target.oracle {
        std::fs::write(path, written(&steps)).expect("the script is written");
    }
}

#[test]
fn isolation_scripts() {
    scripts_against(Target::new());
}

/// Whatever tells a snapshot which transactions run, and however records enter the log, the answers
/// are the same.
#[test]
fn isolation_scripts_with_a_walk_and_one_log_lock() {
    let settings = ["--set", "lab_snapshot=walk", "--set", "lab_wal_insert=lock"];
    scripts_against(Target::with(&settings));
}

#[test]
fn isolation_scripts_with_a_bitmap_and_log_lanes() {
    let settings = [
        "--set",
        "lab_snapshot=bitmap",
        "--set",
        "lab_wal_insert=lanes",
    ];
    scripts_against(Target::with(&settings));
}

fn scripts_against(target: Target) {
    let mut tally = Tally::default();
    for path in scripts("isolation") {
        run(&target, &path, &mut tally);
    }
    tally.end();
    target.end();
}
