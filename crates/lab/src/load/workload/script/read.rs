//! A script's text as commands: SQL up to its semicolon, meta commands up to the end of their line.

use super::expr::{Expr, word_length};
use crate::load::sql::{Book, Keep, Sql};
use crate::load::trouble::{Result, Trouble};

/// What a script does, in order.
pub enum Command {
    Set(String, Expr),
    /// Microseconds.
    Sleep(Expr, i64),
    Sql {
        sql: Sql,
        /// The variables behind `$1`, `$2`, …
        variables: Vec<String>,
        /// `\gset` follows: the one row's columns become variables with this prefix.
        into: Option<String>,
    },
}

/// A line of the script, counted from 1, and what it does.
pub struct Step {
    pub line: usize,
    pub command: Command,
}

pub fn read(text: &str) -> Result<Vec<Step>> {
    let mut book = Book::default();
    let mut steps: Vec<Step> = Vec::new();
    // SQL that has not met its semicolon, and the line where it began.
    let mut pending = String::new();
    let mut began = 0;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let at = |why: String| Trouble::usage(format!("line {number}: {why}"));
        let trimmed = line.trim();
        if let Some(meta) = trimmed.strip_prefix('\\') {
            let (name, rest) = meta.split_at(word_length(meta));
            if name == "gset" {
                // As in pgbench, \gset also ends the statement.
                finish(&mut book, &mut steps, &mut pending, began)?;
                let last = steps.last_mut().map(|s| &mut s.command);
                match last {
                    Some(Command::Sql { into, sql, .. }) if into.is_none() => {
                        *into = Some(rest.trim().to_owned());
                        sql.keep = Keep::Named;
                    }
                    _ => return Err(at("\\gset must follow a statement".to_owned())),
                }
                continue;
            }
            if !pending.trim().is_empty() {
                return Err(at("a statement before it lacks its semicolon".to_owned()));
            }
            let command = meta_command(name, rest.trim()).map_err(at)?;
            steps.push(Step {
                line: number,
                command,
            });
            continue;
        }
        for (piece, ends) in pieces(line, &pending) {
            if pending.trim().is_empty() {
                began = number;
            }
            pending.push_str(piece);
            if ends {
                finish(&mut book, &mut steps, &mut pending, began)?;
            }
        }
        pending.push('\n');
    }
    finish(&mut book, &mut steps, &mut pending, began)?;
    if !steps
        .iter()
        .any(|s| matches!(s.command, Command::Sql { .. }))
    {
        return Err(Trouble::usage("the script has no statement"));
    }
    Ok(steps)
}

/// Makes a step of the SQL collected, if there is any.
fn finish(book: &mut Book, steps: &mut Vec<Step>, pending: &mut String, line: usize) -> Result<()> {
    let text = std::mem::take(pending);
    if text.trim().is_empty() {
        return Ok(());
    }
    let (text, variables) = with_parameters(text.trim());
    let sql = book.statement(&text);
    if sql.params() != variables.len() {
        return Err(Trouble::usage(format!(
            "line {line}: $n has no meaning in a script"
        )));
    }
    steps.push(Step {
        line,
        command: Command::Sql {
            sql,
            variables,
            into: None,
        },
    });
    Ok(())
}

fn meta_command(name: &str, rest: &str) -> Result<Command, String> {
    match name {
        "set" => {
            let (variable, expr) = rest.split_at(word_length(rest));
            match variable.is_empty() {
                true => Err("\\set what?".to_owned()),
                false => Ok(Command::Set(variable.to_owned(), Expr::parse(expr)?)),
            }
        }
        "sleep" => {
            let (time, unit) = match rest.rsplit_once(char::is_whitespace) {
                Some((time, unit)) => (time, unit),
                // Without a blank the unit may still stick to a number.
                None => rest.split_at(
                    rest.trim_end_matches(|c: char| c.is_ascii_alphabetic())
                        .len(),
                ),
            };
            // A variable's name would have been taken for a unit.
            let (time, unit) = match rest.starts_with(':') && !rest.contains(char::is_whitespace) {
                true => (rest, ""),
                false => (time, unit),
            };
            let micros = match unit {
                "us" => 1,
                "ms" => 1_000,
                "s" | "" => 1_000_000,
                _ => return Err(format!("\\sleep: {unit} is no unit; us, ms and s are")),
            };
            Ok(Command::Sleep(Expr::parse(time)?, micros))
        }
        _ => Err(format!(
            "\\{name} is not supported; \\set, \\sleep and \\gset are"
        )),
    }
}

/// A line's SQL cut behind its semicolons, without a comment at its end. `before` is the
/// statement's text so far, which may have left a quote open.
fn pieces<'a>(line: &'a str, before: &str) -> Vec<(&'a str, bool)> {
    let mut quote = open_quote(before);
    let (mut pieces, mut start) = (Vec::new(), 0);
    let bytes = line.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        match quote {
            Some(open) if byte == open => quote = None,
            Some(_) => {}
            None if matches!(byte, b'\'' | b'"') => quote = Some(byte),
            None if byte == b';' => {
                pieces.push((&line[start..at], true));
                start = at + 1;
            }
            None if bytes[at..].starts_with(b"--") => {
                pieces.push((&line[start..at], false));
                return pieces;
            }
            None => {}
        }
    }
    pieces.push((&line[start..], false));
    pieces
}

fn open_quote(text: &str) -> Option<u8> {
    text.bytes().fold(None, |quote, byte| match quote {
        Some(open) if open == byte => None,
        None if matches!(byte, b'\'' | b'"') => Some(byte),
        quote => quote,
    })
}

/// `:name` outside of quotes becomes `$n`; `::` is a cast.
fn with_parameters(text: &str) -> (String, Vec<String>) {
    let mut variables: Vec<String> = Vec::new();
    let mut replaced = String::with_capacity(text.len());
    let mut quote = None;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let mut length = c.len_utf8();
        let name = &rest[length..][..word_length(&rest[length..])];
        if let Some(open) = quote {
            if c == open {
                quote = None;
            }
        } else if matches!(c, '\'' | '"') {
            quote = Some(c);
        } else if rest.starts_with("::") {
            length = 2;
        } else if c == ':' && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            let known = variables.iter().position(|v| v == name);
            let place = known.unwrap_or_else(|| {
                variables.push(name.to_owned());
                variables.len() - 1
            });
            replaced.push_str(&format!("${}", place + 1));
            rest = &rest[1 + name.len()..];
            continue;
        }
        replaced.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    (replaced, variables)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(script: &str) -> Vec<(usize, String)> {
        let steps = read(script).expect("valid");
        let described = steps.iter().map(|step| match &step.command {
            Command::Set(name, _) => (step.line, format!("set {name}")),
            Command::Sleep(_, micros) => (step.line, format!("sleep {micros}")),
            Command::Sql {
                sql,
                variables,
                into,
            } => (step.line, format!("{} {variables:?} {into:?}", sql.text())),
        });
        described.collect()
    }

    #[test]
    fn scripts() {
        let script = "\
-- a comment; with a semicolon
\\set aid random(1, 100000 * :scale)
BEGIN; SELECT ':aid; --', x::int
  FROM t WHERE a = :aid AND b = :b OR c = :aid; -- the end
\\sleep 5 ms
select max(x) as most from t
\\gset p_
END";
        assert_eq!(
            texts(script),
            [
                (2, "set aid".to_owned()),
                (3, "BEGIN [] None".to_owned()),
                (
                    3,
                    "SELECT ':aid; --', x::int\n  FROM t WHERE a = $1 AND b = $2 OR c = $1 [\"aid\", \"b\"] None"
                        .to_owned()
                ),
                (5, "sleep 1000".to_owned()),
                (6, "select max(x) as most from t [] Some(\"p_\")".to_owned()),
                (8, "END [] None".to_owned()),
            ]
        );
    }

    #[test]
    fn sleeps() {
        let sleep = |text: &str| match meta_command("sleep", text) {
            Ok(Command::Sleep(_, micros)) => Some(micros),
            _ => None,
        };
        assert_eq!(sleep("10"), Some(1_000_000));
        assert_eq!(sleep("10ms"), Some(1_000));
        assert_eq!(sleep(":pause us"), Some(1));
        assert_eq!(sleep(":pause"), Some(1_000_000));
        assert_eq!(sleep("10 days"), None);
    }

    #[test]
    fn what_is_not_supported_is_refused_with_its_line() {
        for (script, why) in [
            (
                "select 1;\n\\if :x\n\\endif",
                "line 2: \\if is not supported",
            ),
            ("\\set x 1", "no statement"),
            ("select 1\n\\set x 1", "line 2: a statement before it"),
            ("\\gset", "line 1: \\gset must follow"),
            ("\\set x 1 +\nselect 1", "line 1: "),
            ("select $1", "line 1: $n"),
        ] {
            let refused = read(script)
                .err()
                .map(|e| e.to_string())
                .unwrap_or_default();
            assert!(refused.contains(why), "{script}: {refused}");
        }
    }
}
