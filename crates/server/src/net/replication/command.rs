//! The commands of a replication connection: their own small language, which PostgreSQL documents
//! under "Streaming Replication Protocol".

use throng_types::error::state;
use throng_types::{Error, Lsn, Result};
use throng_wal::TimelineId;

#[derive(Debug, PartialEq)]
pub enum Command {
    IdentifySystem,
    /// Everything else is SQL, of which SHOW is taken.
    Show,
    TimelineHistory(TimelineId),
    CreateSlot {
        name: String,
        temporary: bool,
        reserve: bool,
    },
    ReadSlot(String),
    DropSlot(String),
    Start {
        slot: Option<String>,
        from: Lsn,
        timeline: Option<TimelineId>,
    },
    BaseBackup(BackupOptions),
}

/// What BASE_BACKUP was told.
#[derive(Debug, PartialEq)]
pub struct BackupOptions {
    pub label: String,
    pub progress: bool,
    pub fast: bool,
    /// The log that the backup needs goes with it.
    pub wal: bool,
    pub manifest: bool,
    pub checksums: bool,
    /// Kilobytes a second.
    pub max_rate: Option<u64>,
    pub verify_checksums: bool,
}

impl Default for BackupOptions {
    fn default() -> BackupOptions {
        BackupOptions {
            label: "base backup".to_owned(),
            progress: false,
            fast: false,
            wal: false,
            manifest: false,
            checksums: true,
            max_rate: None,
            verify_checksums: true,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// A word as it was written; keywords are compared without regard to case.
    Word(String),
    /// `"…"`, which is never a keyword.
    Name(String),
    Text(String),
    Sign(char),
}

struct Tokens {
    rest: std::vec::IntoIter<Token>,
    next: Option<Token>,
}

/// # Errors
/// 42601 for what is no command, 0A000 for what is one that is not served.
pub fn parse(text: &str) -> Result<Command> {
    let mut rest = tokens(text)?.into_iter();
    let next = rest.next();
    let mut tokens = Tokens { rest, next };
    let command = tokens.command()?;
    // SHOW is read by the session.
    if command != Command::Show {
        tokens.take_sign(';');
        tokens.must_end()?;
    }
    Ok(command)
}

impl Tokens {
    fn command(&mut self) -> Result<Command> {
        let word = self.word()?;
        Ok(match word.to_ascii_uppercase().as_str() {
            "IDENTIFY_SYSTEM" => Command::IdentifySystem,
            "SHOW" => Command::Show,
            "TIMELINE_HISTORY" => Command::TimelineHistory(self.timeline()?),
            "CREATE_REPLICATION_SLOT" => self.create_slot()?,
            "READ_REPLICATION_SLOT" => Command::ReadSlot(self.name()?),
            "DROP_REPLICATION_SLOT" => {
                let name = self.name()?;
                self.take("WAIT");
                Command::DropSlot(name)
            }
            "START_REPLICATION" => self.start()?,
            "BASE_BACKUP" => Command::BaseBackup(self.base_backup()?),
            "UPLOAD_MANIFEST" => return Err(unsupported("incremental backup")),
            "ALTER_REPLICATION_SLOT" => return Err(unsupported("ALTER_REPLICATION_SLOT")),
            _ => return Err(syntax(&word)),
        })
    }

    fn create_slot(&mut self) -> Result<Command> {
        let name = self.name()?;
        let temporary = self.take("TEMPORARY");
        if self.take("LOGICAL") {
            return Err(unsupported("logical decoding"));
        }
        self.must_take("PHYSICAL")?;
        let mut reserve = self.take("RESERVE_WAL");
        if self.take_sign('(') {
            for (option, value) in self.options()? {
                match option.as_str() {
                    "RESERVE_WAL" => reserve = is_on(value.as_deref(), &option)?,
                    _ => return Err(syntax(&option)),
                }
            }
        }
        Ok(Command::CreateSlot {
            name,
            temporary,
            reserve,
        })
    }

    fn start(&mut self) -> Result<Command> {
        let slot = match self.take("SLOT") {
            true => Some(self.name()?),
            false => None,
        };
        if self.take("LOGICAL") {
            return Err(unsupported("logical decoding"));
        }
        self.take("PHYSICAL");
        let word = self.word()?;
        let from = Lsn::from_halves(&word).ok_or_else(|| syntax(&word))?;
        let timeline = match self.take("TIMELINE") {
            true => Some(self.timeline()?),
            false => None,
        };
        Ok(Command::Start {
            slot,
            from,
            timeline,
        })
    }

    fn base_backup(&mut self) -> Result<BackupOptions> {
        let mut out = BackupOptions::default();
        if !self.take_sign('(') {
            return Ok(out);
        }
        for (option, value) in self.options()? {
            let value = value.as_deref();
            match option.as_str() {
                "LABEL" => out.label = value.unwrap_or_default().to_owned(),
                "PROGRESS" => out.progress = is_on(value, &option)?,
                "CHECKPOINT" => out.fast = value == Some("fast"),
                // Nobody is waited for: there is an archive, or the client takes the log itself.
                "WAIT" => _ = is_on(value, &option)?,
                "WAL" => out.wal = is_on(value, &option)?,
                "MANIFEST" => out.manifest = !matches!(value, Some("no" | "false" | "off" | "0")),
                "MANIFEST_CHECKSUMS" => out.checksums = checksums(value)?,
                "MAX_RATE" => {
                    let rate = value.and_then(|v| v.parse().ok());
                    let rate = rate.filter(|rate| (32..=1_048_576).contains(rate));
                    out.max_rate = Some(rate.ok_or_else(|| invalid(&option, value))?);
                }
                "VERIFY_CHECKSUMS" => out.verify_checksums = is_on(value, &option)?,
                // All tablespaces are the data directory.
                "TABLESPACE_MAP" => _ = is_on(value, &option)?,
                "TARGET" if value == Some("client") => {}
                "TARGET" => return Err(unsupported("a backup to the server's own disk")),
                "COMPRESSION" if value == Some("none") => {}
                "COMPRESSION" | "COMPRESSION_DETAIL" => {
                    return Err(unsupported("compression of a backup by the server")
                        .hint("The client can compress it."));
                }
                "INCREMENTAL" => return Err(unsupported("incremental backup")),
                _ => return Err(syntax(&option)),
            }
        }
        Ok(out)
    }

    /// `name [value], …)`: names in capitals.
    fn options(&mut self) -> Result<Vec<(String, Option<String>)>> {
        let mut options = Vec::new();
        loop {
            let option = self.word()?.to_ascii_uppercase();
            let value = match self.next.clone() {
                Some(Token::Word(word) | Token::Name(word) | Token::Text(word)) => {
                    self.advance();
                    Some(word)
                }
                _ => None,
            };
            options.push((option, value));
            match self.take_sign(',') {
                true => {}
                false if self.take_sign(')') => return Ok(options),
                false => return Err(self.unexpected()),
            }
        }
    }

    fn advance(&mut self) -> Option<Token> {
        std::mem::replace(&mut self.next, self.rest.next())
    }

    fn take(&mut self, keyword: &str) -> bool {
        let found = matches!(&self.next, Some(Token::Word(w)) if w.eq_ignore_ascii_case(keyword));
        if found {
            self.advance();
        }
        found
    }

    fn must_take(&mut self, keyword: &str) -> Result<()> {
        match self.take(keyword) {
            true => Ok(()),
            false => Err(self.unexpected()),
        }
    }

    fn take_sign(&mut self, sign: char) -> bool {
        let found = self.next == Some(Token::Sign(sign));
        if found {
            self.advance();
        }
        found
    }

    fn word(&mut self) -> Result<String> {
        match self.next.clone() {
            Some(Token::Word(word)) => {
                self.advance();
                Ok(word)
            }
            _ => Err(self.unexpected()),
        }
    }

    /// A slot's name: a bare one is in small letters.
    fn name(&mut self) -> Result<String> {
        match self.next.clone() {
            Some(Token::Word(word)) => {
                self.advance();
                Ok(word.to_ascii_lowercase())
            }
            Some(Token::Name(name)) => {
                self.advance();
                Ok(name)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn timeline(&mut self) -> Result<TimelineId> {
        let word = self.word()?;
        match word.parse() {
            Ok(number) if number > 0 => Ok(TimelineId(number)),
            _ => Err(syntax(&word)),
        }
    }

    fn unexpected(&self) -> Error {
        match &self.next {
            Some(Token::Word(text) | Token::Name(text) | Token::Text(text)) => syntax(text),
            Some(Token::Sign(sign)) => syntax(&sign.to_string()),
            None => Error::new(state::SYNTAX_ERROR, "syntax error at end of input"),
        }
    }

    fn must_end(&self) -> Result<()> {
        match &self.next {
            None => Ok(()),
            Some(_) => Err(self.unexpected()),
        }
    }
}

fn tokens(text: &str) -> Result<Vec<Token>> {
    let mut found = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(&c) = chars.peek() {
        match c {
            c if c.is_ascii_whitespace() => _ = chars.next(),
            '"' | '\'' => {
                chars.next();
                let text = quoted(&mut chars, c)?;
                found.push(match c {
                    '"' => Token::Name(text),
                    _ => Token::Text(text),
                });
            }
            '(' | ')' | ',' | ';' => {
                chars.next();
                found.push(Token::Sign(c));
            }
            _ => {
                let mut word = String::new();
                while let Some(c) = chars.next_if(|c| is_of_word(*c)) {
                    word.push(c);
                }
                if word.is_empty() {
                    return Err(syntax(&c.to_string()));
                }
                found.push(Token::Word(word));
            }
        }
    }
    Ok(found)
}

/// Letters, digits, and the slash of a position.
fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '/' | '$' | '.')
}

/// Up to the closing sign, which stands for itself where it is there twice.
fn quoted(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, sign: char) -> Result<String> {
    let mut text = String::new();
    while let Some(c) = chars.next() {
        if c != sign {
            text.push(c);
        } else if chars.next_if_eq(&sign).is_some() {
            text.push(sign);
        } else {
            return Ok(text);
        }
    }
    Err(Error::new(
        state::SYNTAX_ERROR,
        "unterminated quoted string",
    ))
}

fn is_on(value: Option<&str>, option: &str) -> Result<bool> {
    match value.map(str::to_ascii_lowercase).as_deref() {
        None | Some("true" | "on" | "1" | "yes") => Ok(true),
        Some("false" | "off" | "0" | "no") => Ok(false),
        Some(_) => Err(Error::new(
            state::SYNTAX_ERROR,
            format!("{} requires a Boolean value", option.to_ascii_lowercase()),
        )),
    }
}

fn checksums(value: Option<&str>) -> Result<bool> {
    match value.map(str::to_ascii_uppercase).as_deref() {
        Some("NONE") => Ok(false),
        Some("CRC32C") => Ok(true),
        Some("SHA224" | "SHA256" | "SHA384" | "SHA512") => {
            Err(unsupported("another checksum of a manifest than CRC32C"))
        }
        _ => Err(invalid("MANIFEST_CHECKSUMS", value)),
    }
}

fn invalid(option: &str, value: Option<&str>) -> Error {
    let (option, value) = (option.to_ascii_lowercase(), value.unwrap_or_default());
    let message = format!("invalid value for option \"{option}\": \"{value}\"");
    Error::new(state::INVALID_PARAMETER_VALUE, message)
}

fn unsupported(what: &str) -> Error {
    Error::unsupported(what)
}

fn syntax(at: &str) -> Error {
    let message = format!("syntax error at or near \"{at}\"");
    Error::new(state::SYNTAX_ERROR, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_postgresqls_tools_are_read() {
        let parsed = |text| parse(text).expect("a command");
        assert_eq!(parsed("IDENTIFY_SYSTEM"), Command::IdentifySystem);
        assert_eq!(parsed("SHOW wal_segment_size"), Command::Show);
        assert_eq!(
            parsed(
                "CREATE_REPLICATION_SLOT \"pg_basebackup_12\" TEMPORARY PHYSICAL ( RESERVE_WAL)"
            ),
            Command::CreateSlot {
                name: "pg_basebackup_12".into(),
                temporary: true,
                reserve: true
            }
        );
        assert_eq!(
            parsed("START_REPLICATION SLOT \"a\" 1/A0000000 TIMELINE 3"),
            Command::Start {
                slot: Some("a".into()),
                from: Lsn(0x1_A000_0000),
                timeline: Some(TimelineId(3))
            }
        );
        assert_eq!(
            parsed("START_REPLICATION PHYSICAL 0/1000000;"),
            Command::Start {
                slot: None,
                from: Lsn(0x100_0000),
                timeline: None
            }
        );
        let backup = "BASE_BACKUP ( LABEL 'it''s', PROGRESS, CHECKPOINT 'fast', WAIT 0, \
                      MANIFEST 'yes', MAX_RATE 500, TARGET 'client')";
        assert_eq!(
            parsed(backup),
            Command::BaseBackup(BackupOptions {
                label: "it's".into(),
                progress: true,
                fast: true,
                manifest: true,
                max_rate: Some(500),
                ..BackupOptions::default()
            })
        );
        assert_eq!(
            parsed("drop_replication_slot Abc wait"),
            Command::DropSlot("abc".into())
        );
    }

    #[test]
    fn what_is_none_is_refused() {
        let code = |text| parse(text).expect_err("refused").code().as_str().to_owned();
        for text in [
            "",
            "SELECT 1",
            "IDENTIFY_SYSTEM now",
            "TIMELINE_HISTORY 0",
            "START_REPLICATION 0-1",
            "START_REPLICATION",
            "BASE_BACKUP (LABEL 'x'",
            "BASE_BACKUP (NONSENSE)",
            "BASE_BACKUP (LABEL 'x",
            "CREATE_REPLICATION_SLOT a",
            "DROP_REPLICATION_SLOT 'a'",
            "\u{0}",
        ] {
            assert_eq!(code(text), "42601", "{text}");
        }
        assert_eq!(code("CREATE_REPLICATION_SLOT a LOGICAL pgoutput"), "0A000");
        assert_eq!(code("BASE_BACKUP (COMPRESSION 'gzip')"), "0A000");
        assert_eq!(code("BASE_BACKUP (MAX_RATE 1)"), "22023");
    }
}
