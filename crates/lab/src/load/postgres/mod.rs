//! PostgreSQL's protocol 3.0, the client's side.
//!
//! ```text
//! connect ─► startup ─► authentication (trust, SCRAM-SHA-256) ─► ready ─┬─► run, fill ─┐
//!                                                                       └── ready ◄────┘
//! ```
//!
//! Replies are read message by message up to ReadyForQuery, so after an error the connection is in
//! step again.

mod scram;
mod wire;

use self::scram::{Proved, Scram};
use self::wire::Out;
use super::connection::{Session, Tally};
use super::sql::{Arg, Keep, Mode, Sql};
use super::trouble::{Result, Trouble};
use super::url::Target;

/// COPY data is sent in pieces of about this size.
const COPY_PIECE: usize = 64 << 10;

/// What a session of PostgreSQL's knows beside what all know.
#[derive(Default)]
pub struct Postgres {
    /// Which of the workload's statements are prepared here.
    prepared: Vec<bool>,
}

impl Postgres {
    /// From the first message to ReadyForQuery.
    pub async fn enter(session: &mut Session, target: &Target) -> Result<Postgres> {
        Out(&mut session.stream.out).startup(&target.user, &target.database);
        session.stream.flush().await?;
        authenticate(session, target).await?;
        Ok(Postgres::default())
    }

    pub fn leave(session: &mut Session) {
        Out(&mut session.stream.out).terminate();
    }

    pub async fn run(
        &mut self,
        session: &mut Session,
        sql: &Sql,
        args: &[Arg<'_>],
    ) -> Result<Tally> {
        debug_assert_eq!(sql.params(), args.len(), "{}", sql.text());
        self.queue(session, sql, args);
        session.stream.flush().await?;
        let done = until_ready(session, sql.keep).await;
        if session.mode == Mode::Prepared && done.is_ok() {
            self.remember(sql.id);
        }
        done
    }

    /// By the simple protocol.
    pub async fn simple(&mut self, session: &mut Session, text: &str) -> Result<Tally> {
        query(session, text).await?;
        until_ready(session, Keep::Rows).await
    }

    /// By COPY.
    pub async fn fill(
        &mut self,
        session: &mut Session,
        table: &str,
        mut more: impl FnMut(&mut Vec<u8>) -> bool,
    ) -> Result<Tally> {
        query(session, &format!("COPY {table} FROM STDIN")).await?;
        if !copy_starts(session).await? {
            return until_ready(session, Keep::Count).await;
        }
        let mut goes_on = true;
        while goes_on {
            let out = &mut session.stream.out;
            Out(out).copy_data(|out| {
                let start = out.len();
                while goes_on && out.len() - start < COPY_PIECE {
                    goes_on = more(out);
                }
            });
            if !goes_on {
                Out(out).copy_done();
            }
            session.stream.flush().await?;
        }
        until_ready(session, Keep::Count).await
    }

    fn queue(&self, session: &mut Session, sql: &Sql, args: &[Arg<'_>]) {
        let mut out = Out(&mut session.stream.out);
        match session.mode {
            Mode::Simple => return out.query(|text| sql.write_simple(args, text)),
            Mode::Extended => {
                out.parse("", sql.text());
                out.bind("", args);
            }
            Mode::Prepared => {
                let name = Name::of(sql.id);
                if !self.prepared.get(sql.id).is_some_and(|p| *p) {
                    out.parse(name.text(), sql.text());
                }
                out.bind(name.text(), args);
            }
        }
        if sql.keep == Keep::Named {
            out.describe_portal();
        }
        out.execute();
        out.sync();
    }

    fn remember(&mut self, id: usize) {
        if self.prepared.len() <= id {
            self.prepared.resize(id + 1, false);
        }
        self.prepared[id] = true;
    }
}

async fn query(session: &mut Session, text: &str) -> Result<()> {
    Out(&mut session.stream.out).query(|out| out.extend_from_slice(text.as_bytes()));
    session.stream.flush().await
}

/// Reads replies up to ReadyForQuery; the first error among them is the result.
async fn until_ready(session: &mut Session, keep: Keep) -> Result<Tally> {
    let mut tally = Tally::default();
    let mut trouble = None;
    if keep != Keep::Count {
        session.rows.clear();
    }
    loop {
        while let Some(message) = session.stream.input.take(wire::first)? {
            match message.tag {
                b'D' => {
                    tally.rows += 1;
                    if keep != Keep::Count {
                        wire::row(message.body, &mut session.rows)?;
                    }
                }
                b'T' if keep == Keep::Named => {
                    session.column_names = wire::column_names(message.body)?
                }
                b'C' => tally.affected = wire::affected(message.body),
                b'Z' => {
                    session.in_transaction = message.body != b"I";
                    return trouble.map_or(Ok(tally), Err);
                }
                b'E' => {
                    let refused = Trouble::Refused(Box::new(wire::refusal(message.body)));
                    // The server hangs up after this: there will be no ReadyForQuery.
                    if refused.ends_connection() {
                        return Err(refused);
                    }
                    trouble.get_or_insert(refused);
                }
                // RowDescription, ParseComplete, BindComplete, NoData, EmptyQueryResponse,
                // ParameterStatus, NoticeResponse, PortalSuspended, CloseComplete
                b'T' | b'1' | b'2' | b'n' | b'I' | b'S' | b'N' | b's' | b'3' => {}
                tag => return Err(unexpected(tag)),
            }
        }
        session.stream.fill().await?;
    }
}

/// Whether the server wants COPY data; otherwise what it says instead is still to be read.
async fn copy_starts(session: &mut Session) -> Result<bool> {
    loop {
        let unread = session.stream.input.unread();
        let tag = wire::first(unread)?.map(|(message, _)| message.tag);
        match tag {
            Some(b'G') => {
                session.stream.input.take(wire::first)?;
                return Ok(true);
            }
            Some(b'N' | b'S') => {
                session.stream.input.take(wire::first)?;
            }
            Some(_) => return Ok(false),
            None => session.stream.fill().await?,
        }
    }
}

async fn authenticate(session: &mut Session, target: &Target) -> Result<()> {
    let mut scram: Option<Scram> = None;
    let mut proved: Option<Proved> = None;
    loop {
        let Some(message) = session.stream.input.take(wire::first)? else {
            session.stream.fill().await?;
            continue;
        };
        let answer = match message.tag {
            b'R' => match Challenge::read(message.body)? {
                Challenge::Ok => None,
                Challenge::Sasl(mechanisms) => {
                    if !mechanisms.contains(&scram::MECHANISM) {
                        return Err(Trouble::broken(format!(
                            "authentication by {} is not spoken here",
                            mechanisms.join(", ")
                        )));
                    }
                    let password = target.password.as_deref().ok_or_else(|| {
                        Trouble::broken("the server asks for a password and the target has none")
                    })?;
                    let first = scram.insert(Scram::new(password)).first();
                    Some((true, first))
                }
                Challenge::Continue(challenge) => {
                    let scram = scram.as_ref().ok_or_else(|| unexpected(b'R'))?;
                    let (answer, expects) = scram.answer(challenge)?;
                    proved = Some(expects);
                    Some((false, answer))
                }
                Challenge::Final(signature) => {
                    let proved = proved.as_ref().ok_or_else(|| unexpected(b'R'))?;
                    proved.verify(signature)?;
                    None
                }
            },
            b'E' => return Err(Trouble::Refused(Box::new(wire::refusal(message.body)))),
            // ParameterStatus, BackendKeyData, NoticeResponse, NegotiateProtocolVersion
            b'S' | b'K' | b'N' | b'v' => None,
            b'Z' => return Ok(()),
            tag => return Err(unexpected(tag)),
        };
        if let Some((is_first, data)) = answer {
            let mut out = Out(&mut session.stream.out);
            match is_first {
                true => out.sasl_first(scram::MECHANISM, &data),
                false => out.sasl_next(&data),
            }
            session.stream.flush().await?;
        }
    }
}

/// AuthenticationXxx.
enum Challenge<'a> {
    Ok,
    Sasl(Vec<&'a str>),
    Continue(&'a str),
    Final(&'a str),
}

impl Challenge<'_> {
    fn read(body: &[u8]) -> Result<Challenge<'_>> {
        let malformed = || Trouble::broken("a malformed authentication request");
        let (kind, rest) = body.split_first_chunk::<4>().ok_or_else(malformed)?;
        let text = || std::str::from_utf8(rest).map_err(|_| malformed());
        match u32::from_be_bytes(*kind) {
            0 => Ok(Challenge::Ok),
            10 => Ok(Challenge::Sasl(
                text()?.split('\0').filter(|m| !m.is_empty()).collect(),
            )),
            11 => Ok(Challenge::Continue(text()?)),
            12 => Ok(Challenge::Final(text()?)),
            other => Err(Trouble::broken(format!(
                "authentication request {other} is not spoken here, only trust and SCRAM-SHA-256"
            ))),
        }
    }
}

/// A prepared statement's name, made without allocating: `s` and eight hexadecimal digits.
struct Name([u8; 9]);

impl Name {
    fn of(id: usize) -> Name {
        let mut name = *b"s00000000";
        for (nibble, digit) in name[1..].iter_mut().rev().enumerate() {
            *digit = b"0123456789abcdef"[(id >> (4 * nibble)) & 15];
        }
        Name(name)
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.0).expect("digits are ASCII")
    }
}

fn unexpected(tag: u8) -> Trouble {
    Trouble::broken(format!("an unexpected message {:?}", char::from(tag)))
}
