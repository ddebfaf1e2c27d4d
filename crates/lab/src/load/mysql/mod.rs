//! MySQL's protocol (handshake version 10), the client's side; MariaDB speaks it too.
//!
//! ```text
//! connect ─► handshake ─► password (auth) ─► SET SESSION … ─► ready ─┬─► command ─► OK, ERR or rows ─┐
//!                                                                    └────────────── ready ◄─────────┘
//! ```
//!
//! A statement goes as COM_QUERY or, once prepared, as COM_STMT_EXECUTE with its values in binary.
//! Without parameters it always goes as COM_QUERY: MySQL does not prepare BEGIN and ROLLBACK (error
//! 1295). COM_STMT_RESET is not needed, as no statement here leaves a cursor or long data behind.

mod auth;
mod packet;
mod rsa;
mod values;

#[cfg(test)]
mod tests;

use self::auth::{Handshake, Next, Proof, can};
use self::packet::{Ended, Reader, Wire, malformed};
use self::values::{Column, MOST_COLUMNS};
use super::connection::{Session, Tally};
use super::dialect::SESSION;
use super::sql::{Arg, Keep, Mode, Sql};
use super::stream::Stream;
use super::trouble::{Result, Trouble};
use super::url::Target;

/// Commands.
const QUIT: u8 = 0x01;
const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
const CLOSE: u8 = 0x19;

/// Text of one INSERT while a table is filled: a batch a round trip, below any server's
/// `max_allowed_packet`.
const BATCH: usize = 1 << 20;

/// What a server may ask before it lets us in: another method, the password, and its key's use take
/// four.
const MOST_QUESTIONS: usize = 8;

/// What a session of MySQL's knows beside what all know.
pub struct MySql {
    wire: Wire,
    /// Whether rows end with OK packets, see [`can::DEPRECATE_EOF`].
    deprecates_eof: bool,
    /// By the workload's number of a statement, the server's.
    prepared: Vec<Option<u32>>,
    /// Of the result that is being read.
    columns: Vec<Column>,
}

/// How a result's rows are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Binary,
}

impl MySql {
    /// From the server's handshake to a session that is as all are.
    pub async fn enter(session: &mut Session, target: &Target) -> Result<MySql> {
        let mut wire = Wire::default();
        let capabilities = authenticate(&mut wire, &mut session.stream, target).await?;
        let mut mysql = MySql {
            wire,
            deprecates_eof: capabilities & can::DEPRECATE_EOF != 0,
            prepared: Vec::new(),
            columns: Vec::new(),
        };
        for statement in SESSION {
            mysql.simple(session, statement).await?;
        }
        Ok(mysql)
    }

    pub fn leave(&mut self, session: &mut Session) {
        self.wire.command(&mut session.stream.out, QUIT, |_| {});
    }

    pub async fn run(
        &mut self,
        session: &mut Session,
        sql: &Sql,
        args: &[Arg<'_>],
    ) -> Result<Tally> {
        // A change's statements are given the same values, of which each may need some only.
        debug_assert!(sql.params() <= args.len(), "{}", sql.text());
        if session.mode == Mode::Simple || sql.params() == 0 {
            let out = &mut session.stream.out;
            self.wire
                .command(out, QUERY, |text| sql.write_simple(args, text));
            session.stream.flush().await?;
            return self.result(session, sql.keep, Form::Text).await;
        }
        let known = self.prepared.get(sql.id).copied().flatten();
        let statement = match known {
            Some(statement) => statement,
            None => self.prepare(session, sql).await?,
        };
        let out = &mut session.stream.out;
        self.wire.command(out, EXECUTE, |out| {
            values::execute(statement, sql, args, out);
        });
        session.stream.flush().await?;
        let done = self.result(session, sql.keep, Form::Binary).await;
        match session.mode {
            Mode::Prepared => self.remember(sql.id, statement),
            // Never answered: it goes with whatever is sent next.
            _ => self.wire.command(&mut session.stream.out, CLOSE, |out| {
                out.extend_from_slice(&statement.to_le_bytes());
            }),
        }
        done
    }

    /// By COM_QUERY.
    pub async fn simple(&mut self, session: &mut Session, text: &str) -> Result<Tally> {
        self.query(session, text.as_bytes(), Keep::Rows).await
    }

    /// By INSERTs of many rows.
    pub async fn fill(
        &mut self,
        session: &mut Session,
        table: &str,
        mut more: impl FnMut(&mut Vec<u8>) -> bool,
    ) -> Result<Tally> {
        let head = format!("INSERT INTO {table} VALUES ");
        let (mut text, mut lines) = (Vec::with_capacity(BATCH), Vec::new());
        let mut tally = Tally::default();
        let mut goes_on = true;
        while goes_on {
            text.clear();
            text.extend_from_slice(head.as_bytes());
            while goes_on && text.len() < BATCH {
                lines.clear();
                goes_on = more(&mut lines);
                values::insert_rows(&lines, &mut text);
            }
            // The comma behind the last row; without one there is no row.
            if text.pop() == Some(b',') {
                let done = self.query(session, &text, Keep::Count).await?;
                tally.affected += done.affected;
            }
        }
        Ok(tally)
    }

    async fn query(&mut self, session: &mut Session, text: &[u8], keep: Keep) -> Result<Tally> {
        let out = &mut session.stream.out;
        self.wire
            .command(out, QUERY, |out| out.extend_from_slice(text));
        session.stream.flush().await?;
        self.result(session, keep, Form::Text).await
    }

    /// The server's number of a statement that it now knows.
    async fn prepare(&mut self, session: &mut Session, sql: &Sql) -> Result<u32> {
        let out = &mut session.stream.out;
        self.wire.command(out, PREPARE, |out| {
            out.extend_from_slice(sql.text().as_bytes());
        });
        session.stream.flush().await?;
        let stream = &mut session.stream;
        let body = self.wire.next(stream).await?;
        let mut reader = Reader(body);
        match reader.u8()? {
            packet::OK => {}
            packet::ERR => return Err(packet::refusal(body)),
            other => return Err(unexpected(other)),
        }
        let statement = reader.u32()?;
        let (columns, params) = (reader.u16()?, reader.u16()?);
        if usize::from(params) != sql.order().len() {
            return Err(Trouble::broken(format!(
                "{params} parameters in a statement of {}",
                sql.order().len()
            )));
        }
        // What is known of the parameters is nothing; the columns come again with each result.
        for count in [params, columns].into_iter().filter(|count| *count > 0) {
            for _ in 0..count {
                self.wire.next(stream).await?;
            }
            self.columns_end(stream).await?;
        }
        Ok(statement)
    }

    fn remember(&mut self, id: usize, statement: u32) {
        if self.prepared.len() <= id {
            self.prepared.resize(id + 1, None);
        }
        self.prepared[id] = Some(statement);
    }

    /// Reads what a command brings, to its end.
    async fn result(&mut self, session: &mut Session, keep: Keep, form: Form) -> Result<Tally> {
        let mut tally = Tally::default();
        if keep != Keep::Count {
            session.rows.clear();
            session.column_names.clear();
            self.columns.clear();
        }
        let stream = &mut session.stream;
        let body = self.wire.next(stream).await?;
        match body.first().copied().ok_or_else(malformed)? {
            packet::OK => {
                let ended = Ended::ok(body)?;
                tally.affected = ended.affected;
                session.in_transaction = ended.in_transaction;
                return Ok(tally);
            }
            packet::ERR => return Err(packet::refusal(body)),
            packet::NULL => return Err(Trouble::broken("the server asks for a file")),
            _ => {}
        }
        let count = Reader(body).number()?;
        if count > MOST_COLUMNS {
            return Err(malformed());
        }
        for _ in 0..count {
            let body = self.wire.next(stream).await?;
            if keep != Keep::Count {
                let (column, name) = Column::read(body)?;
                self.columns.push(column);
                if keep == Keep::Named {
                    let name = String::from_utf8_lossy(name).into_owned();
                    session.column_names.push(name);
                }
            }
        }
        self.columns_end(stream).await?;
        loop {
            let body = self.wire.next(stream).await?;
            match body.first() {
                Some(&packet::EOF) if body.len() < packet::WHOLE => {
                    let ended = match self.deprecates_eof {
                        true => Ended::ok(body)?,
                        false => Ended::eof(body)?,
                    };
                    session.in_transaction = ended.in_transaction;
                    return Ok(tally);
                }
                Some(&packet::ERR) => return Err(packet::refusal(body)),
                _ => tally.rows += 1,
            }
            match (keep, form) {
                (Keep::Count, _) => {}
                (_, Form::Text) => values::text_row(body, &self.columns, &mut session.rows)?,
                (_, Form::Binary) => values::binary_row(body, &self.columns, &mut session.rows)?,
            }
        }
    }

    /// What stands behind definitions of columns, where anything does.
    async fn columns_end(&mut self, stream: &mut Stream) -> Result<()> {
        if self.deprecates_eof {
            return Ok(());
        }
        let body = self.wire.next(stream).await?;
        match body.first() {
            Some(&packet::EOF) => Ended::eof(body).map(|_| ()),
            _ => Err(malformed()),
        }
    }
}

/// Enters as the target's user; what both sides can is the result.
async fn authenticate(wire: &mut Wire, stream: &mut Stream, target: &Target) -> Result<u32> {
    let body = wire.next(stream).await?;
    if body.first() == Some(&packet::ERR) {
        return Err(turned_away(body));
    }
    let handshake = Handshake::read(body)?;
    let (answer, mut proof) = handshake.answer(target);
    wire.send(&mut stream.out, |out| out.extend_from_slice(&answer));
    stream.flush().await?;
    for _ in 0..MOST_QUESTIONS {
        let body = wire.next(stream).await?;
        let answer = match body.split_first().ok_or_else(malformed)? {
            (&packet::OK, _) => return Ok(handshake.shared()),
            (&packet::ERR, _) => return Err(turned_away(body)),
            (&packet::EOF, _) => {
                proof = Proof::switched(body)?;
                Next::Answer(proof.of(target))
            }
            (&packet::MORE_DATA, said) => proof.go_on(target, said)?,
            (&other, _) => return Err(unexpected(other)),
        };
        if let Next::Answer(answer) = answer {
            wire.send(&mut stream.out, |out| out.extend_from_slice(&answer));
            stream.flush().await?;
        }
    }
    Err(Trouble::broken("the server asks and asks who is there"))
}

/// An error before the server has let us in ends the connection.
fn turned_away(body: &[u8]) -> Trouble {
    match packet::refusal(body) {
        Trouble::Refused(mut refused) => {
            refused.severity = "FATAL".to_owned();
            Trouble::Refused(refused)
        }
        other => other,
    }
}

fn unexpected(tag: u8) -> Trouble {
    Trouble::broken(format!("an unexpected packet {tag:#04x}"))
}
