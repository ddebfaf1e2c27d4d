//! Who may come in.
//!
//! | the role has | comes through | then |
//! | --- | --- | --- |
//! | a password | TLS | SCRAM-SHA-256-PLUS, bound to the certificate, or SCRAM-SHA-256, as the client likes |
//! | a password | anything else | SCRAM-SHA-256 |
//! | none | the Unix socket, as the operating-system user the server runs as | trusted, so that an owner is never locked out |
//! | none | the Unix socket or loopback, while no role has a password | trusted |
//! | none | anything else | refused, after an exchange that looks like the others |

pub mod scram;

use throng_session::Engine;
use throng_types::error::state;
use throng_types::{Error, Result};

use super::output::Peer;
use super::stream::Origin;
use super::wire::{self, Frontend};
use scram::{Channel, Exchange, Verifier};

/// The target of this module's lines, by which `THRONG_LOG` and readers of the log know them. It
/// stays where the module moves.
const TARGET: &str = "throng_server::auth";

const MECHANISM: &str = "SCRAM-SHA-256";
/// The one whose proof is also of the server's certificate.
const BOUND_MECHANISM: &str = "SCRAM-SHA-256-PLUS";

/// How a client was let in, as the log calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Trust,
    ScramSha256,
}

impl Method {
    pub fn name(self) -> &'static str {
        match self {
            Method::Trust => "trust",
            Method::ScramSha256 => "scram-sha-256",
        }
    }
}

/// Lets `user` in or says why not. Sends everything up to, but not including, AuthenticationOk.
///
/// `end_point`: the hash of the certificate that the client saw, where channels can be bound to it.
///
/// A user that does not exist goes through the same exchange as one with another password, so that
/// names cannot be probed; the log alone tells the one from the other. A password is good until
/// VALID UNTIL.
pub async fn authenticate(
    engine: &Engine,
    peer: &mut Peer,
    user: &str,
    origin: &Origin,
    end_point: Option<&[u8]>,
) -> Result<Method> {
    let role = engine.find_role(user);
    let verifier = role
        .as_ref()
        .and_then(|r| r.verifier.as_deref())
        .and_then(Verifier::parse);
    let trusted =
        verifier.is_none() && (origin.is_owner() || (origin.is_near() && !engine.any_password()));
    if !trusted {
        let is_expired = role.as_ref().is_some_and(|r| r.is_expired);
        let why = match (&role, &verifier) {
            (None, _) => format!("Role \"{user}\" does not exist."),
            (_, None) => format!("User \"{user}\" has no password assigned."),
            _ if is_expired => format!("User \"{user}\" has an expired password."),
            _ => format!("Password does not match for user \"{user}\"."),
        };
        let good = verifier.filter(|_| !is_expired);
        let entered = scram(peer, user, good, end_point).await;
        if entered
            .as_ref()
            .is_err_and(|e| e.code() == state::INVALID_PASSWORD)
        {
            tracing::warn!(
                target: TARGET,
                %origin,
                detail = %why,
                "password authentication failed for user \"{user}\""
            );
        }
        entered?;
    }
    match role {
        None => Err(Error::new(
            state::INVALID_AUTHORIZATION_SPECIFICATION,
            format!("role \"{user}\" does not exist"),
        )),
        Some(role) if !role.can_login => Err(Error::new(
            state::INVALID_AUTHORIZATION_SPECIFICATION,
            format!("role \"{user}\" is not permitted to log in"),
        )),
        Some(_) => Ok(match trusted {
            true => Method::Trust,
            false => Method::ScramSha256,
        }),
    }
}

fn failed(user: &str) -> Error {
    Error::new(
        state::INVALID_PASSWORD,
        format!("password authentication failed for user \"{user}\""),
    )
}

async fn scram(
    peer: &mut Peer,
    user: &str,
    verifier: Option<Verifier>,
    end_point: Option<&[u8]>,
) -> Result<()> {
    wire::message(&mut peer.output, b'R', |b| {
        wire::put_i32(b, 10);
        if end_point.is_some() {
            wire::put_cstr(b, BOUND_MECHANISM);
        }
        wire::put_cstr(b, MECHANISM);
        b.push(0);
    });
    let doomed = verifier.is_none();
    let exchange = Exchange::new(verifier.unwrap_or_else(|| Verifier::mock(user)));

    let first = reply(peer).await?;
    let (mechanism, client_first) = initial_response(&first).ok_or_else(malformed)?;
    let channel = match (mechanism, end_point) {
        (BOUND_MECHANISM, Some(hash)) => Channel::Bound(hash),
        (MECHANISM, Some(_)) => Channel::Offered,
        (MECHANISM, None) => Channel::Plain,
        _ => {
            let message = "client selected an invalid SASL authentication mechanism";
            return Err(Error::new(state::PROTOCOL_VIOLATION, message));
        }
    };
    if channel == Channel::Offered && client_first.starts_with("y,") {
        let message = "SCRAM channel binding negotiation error";
        let detail = "The client supports SCRAM channel binding but thinks the server does not.  \
            However, this server does support channel binding.";
        return Err(Error::new(state::INVALID_AUTHORIZATION_SPECIFICATION, message).detail(detail));
    }
    let (exchange, server_first) = exchange
        .first(client_first, channel)
        .ok_or_else(malformed)?;
    wire::message(&mut peer.output, b'R', |b| {
        wire::put_i32(b, 11);
        b.extend_from_slice(server_first.as_bytes());
    });

    let last = reply(peer).await?;
    let client_final = std::str::from_utf8(&last).map_err(|_| malformed())?;
    let server_final = exchange.last(client_final).ok_or_else(malformed)?;
    let Some(server_final) = server_final.filter(|_| !doomed) else {
        return Err(failed(user));
    };
    wire::message(&mut peer.output, b'R', |b| {
        wire::put_i32(b, 12);
        b.extend_from_slice(server_final.as_bytes());
    });
    Ok(())
}

fn malformed() -> Error {
    Error::new(state::PROTOCOL_VIOLATION, "malformed SCRAM message")
}

/// The body of the next authentication message.
async fn reply(peer: &mut Peer) -> Result<Vec<u8>> {
    let Some(range) = peer.next_message().await? else {
        return Err(Error::new(
            state::CONNECTION_FAILURE,
            "client left during authentication",
        ));
    };
    match wire::frontend(peer.bytes(range))? {
        Frontend::Authentication(body) => Ok(body.to_vec()),
        _ => Err(Error::new(
            state::PROTOCOL_VIOLATION,
            "expected a SASL response",
        )),
    }
}

/// The mechanism and the client-first-message inside a SASLInitialResponse: mechanism, length,
/// data.
fn initial_response(body: &[u8]) -> Option<(&str, &str)> {
    let end = body.iter().position(|&b| b == 0)?;
    let mechanism = std::str::from_utf8(&body[..end]).ok()?;
    let data = body.get(end + 5..)?;
    let length = u32::from_be_bytes(body[end + 1..end + 5].try_into().ok()?);
    if length as usize != data.len() {
        return None;
    }
    Some((mechanism, std::str::from_utf8(data).ok()?))
}
