//! `tsvector` and `tsquery` as text and in binary.

use super::base::BaseInputOutput;
use super::binary::Reader;
use crate::eval::EvalContext;
use crate::text_search::query::{Verbatim, no_lexemes, operand, parse};
use throng_types::error::state;
use throng_types::text_search::vector::{MAX_LEXEME, weight_letter, weight_of_letter};
use throng_types::text_search::{
    Node, Operand, Position, TsQuery, TsVector, TsVectorBuilder, Weight,
};
use throng_types::{Error, Result, interrupt, oid, stack};

pub static TSVECTOR: BaseInputOutput = BaseInputOutput {
    ty: oid::TSVECTOR,
    input: |_, text, _| vector_input(text),
    output: |_, value, out| write_vector(TsVector::new(value), out),
    receive: vector_receive,
    send: vector_send,
    modifier: None,
};

pub static TSQUERY: BaseInputOutput = BaseInputOutput {
    ty: oid::TSQUERY,
    input: |ctx, text, _| query_input(ctx, text),
    output: |_, value, out| write_query(&TsQuery::from_bytes(value), out),
    receive: query_receive,
    send: query_send,
    modifier: None,
};

#[cold]
fn vector_error(what: &str, text: &str) -> Error {
    Error::new(state::SYNTAX_ERROR, format!("{what}: \"{text}\""))
}

fn vector_input(text: &str) -> Result<Vec<u8>> {
    let mut builder = TsVectorBuilder::default();
    let mut rest = text;
    loop {
        interrupt::poll()?;
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
        if rest.is_empty() {
            return builder.build();
        }
        let (lexeme, after) = operand(rest, false)
            .filter(|(lexeme, _)| !lexeme.is_empty())
            .ok_or_else(|| match rest.ends_with('\\') {
                true => vector_error("there is no escaped character", text),
                false => vector_error("syntax error in tsvector", text),
            })?;
        if lexeme.len() >= MAX_LEXEME {
            let (len, most) = (lexeme.len(), MAX_LEXEME - 1);
            let message = format!("word is too long ({len} bytes, max {most} bytes)");
            return Err(Error::new(state::PROGRAM_LIMIT_EXCEEDED, message));
        }
        rest = after;
        let mut positions = Vec::new();
        if let Some(after) = rest.strip_prefix(':') {
            rest = read_positions(after, &mut positions, text)?;
        }
        builder.push(lexeme, positions);
    }
}

/// `1A,2` up to a blank or the end.
fn read_positions<'a>(
    text: &'a str,
    positions: &mut Vec<Position>,
    whole: &str,
) -> Result<&'a str> {
    let syntax_error = || vector_error("syntax error in tsvector", whole);
    let mut rest = text;
    loop {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return Err(syntax_error());
        }
        let place = rest[..digits].parse().unwrap_or(u32::MAX);
        if place == 0 {
            return Err(vector_error("wrong position info in tsvector", whole));
        }
        rest = &rest[digits..];
        let mut weight = 0;
        if let Some(letter) = rest.bytes().next()
            && let Some(told) = weight_of_letter(letter).or((letter == b'*').then_some(3))
        {
            weight = told;
            rest = &rest[1..];
        }
        positions.push(Position::new(place.min(u32::from(u16::MAX)) as u16, weight));
        match rest.chars().next() {
            None => return Ok(rest),
            Some(',') => rest = &rest[1..],
            Some(c) if c.is_ascii_whitespace() || c == '\x0b' => return Ok(rest),
            Some(_) => return Err(syntax_error()),
        }
    }
}

/// A lexeme between quotes.
pub fn write_lexeme(lexeme: &str, out: &mut Vec<u8>) {
    out.push(b'\'');
    for byte in lexeme.bytes() {
        if matches!(byte, b'\'' | b'\\') {
            out.push(byte);
        }
        out.push(byte);
    }
    out.push(b'\'');
}

fn write_vector(vector: TsVector<'_>, out: &mut Vec<u8>) {
    for (nth, entry) in vector.iter().enumerate() {
        if nth > 0 {
            out.push(b' ');
        }
        write_lexeme(entry.text, out);
        for (nth, position) in entry.positions().enumerate() {
            out.push(if nth == 0 { b':' } else { b',' });
            out.extend_from_slice(position.place().to_string().as_bytes());
            if position.weight() > 0 {
                out.push(weight_letter(position.weight()) as u8);
            }
        }
    }
}

fn query_input(ctx: &EvalContext<'_>, text: &str) -> Result<Vec<u8>> {
    let (query, _) = parse(text, &mut Verbatim)?.finish()?;
    if query.is_empty() {
        ctx.host.warn(no_lexemes(text));
    }
    Ok(query.to_bytes())
}

fn write_operand(operand: &Operand, out: &mut Vec<u8>) {
    write_lexeme(&operand.lexeme, out);
    if operand.prefix || operand.weights != 0 {
        out.push(b':');
    }
    if operand.prefix {
        out.push(b'*');
    }
    for weight in (0..4).rev() {
        if operand.weights & 1 << weight != 0 {
            out.push(weight_letter(weight as Weight) as u8);
        }
    }
}

/// A query's text.
pub fn write_query(query: &TsQuery, out: &mut Vec<u8>) {
    if let Some(root) = query.root() {
        write_node(query, root, 0, false, out);
    }
}

/// Depths are those of what was read, which looked at the stack; where it is deeper, the text ends.
fn write_node(query: &TsQuery, at: u32, around: u8, after_phrase: bool, out: &mut Vec<u8>) {
    if stack::is_low() {
        return;
    }
    let node = query.node(at);
    let own = node.priority();
    let is_phrase = matches!(node, Node::Phrase(..));
    let parentheses = own < around || is_phrase && after_phrase;
    if parentheses {
        out.extend_from_slice(b"( ");
    }
    match *node {
        Node::Operand(ref operand) => write_operand(operand, out),
        Node::Not(a) => {
            out.push(b'!');
            write_node(query, a, own, false, out);
        }
        Node::And(a, b) | Node::Or(a, b) | Node::Phrase(a, b, _) => {
            write_node(query, a, own, false, out);
            match *node {
                Node::Or(..) => out.extend_from_slice(b" | "),
                Node::Phrase(_, _, 1) => out.extend_from_slice(b" <-> "),
                Node::Phrase(_, _, distance) => {
                    out.extend_from_slice(format!(" <{distance}> ").as_bytes());
                }
                _ => out.extend_from_slice(b" & "),
            }
            write_node(query, b, own, is_phrase, out);
        }
    }
    if parentheses {
        out.extend_from_slice(b" )");
    }
}

#[cold]
fn malformed(what: &str) -> Error {
    Error::new(
        state::INVALID_BINARY_REPRESENTATION,
        format!("invalid {what}"),
    )
}

/// A binary form, and the type that it is of.
struct Binary<'a>(Reader<'a>, &'static str);

impl Binary<'_> {
    fn count(&mut self) -> Result<u32> {
        let count = u32::from_be_bytes(self.0.take()?);
        match count as usize <= self.0.0.len() {
            true => Ok(count),
            false => Err(malformed(self.1)),
        }
    }
    /// A C string.
    fn string(&mut self, ctx: &EvalContext<'_>) -> Result<String> {
        let end = self.0.0.iter().position(|byte| *byte == 0);
        let end = end.ok_or_else(|| malformed(self.1))?;
        let text = ctx.format.charset.decode(self.0.bytes(end)?)?.into_owned();
        self.0.bytes(1)?;
        match text.len() < MAX_LEXEME {
            true => Ok(text),
            false => Err(malformed(self.1)),
        }
    }
}

fn vector_receive(ctx: &EvalContext<'_>, binary: &[u8]) -> Result<Vec<u8>> {
    let mut binary = Binary(Reader(binary), "tsvector");
    let mut builder = TsVectorBuilder::default();
    for _ in 0..binary.count()? {
        interrupt::poll()?;
        let lexeme = binary.string(ctx)?;
        let mut positions = Vec::new();
        for _ in 0..binary.0.u16()? {
            positions.push(Position(binary.0.u16()?));
        }
        builder.push(lexeme, positions);
    }
    builder.build()
}

fn vector_send(ctx: &EvalContext<'_>, value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let vector = TsVector::new(value);
    out.extend_from_slice(&(vector.count() as u32).to_be_bytes());
    for entry in vector.iter() {
        ctx.format.charset.encode(entry.text, out)?;
        out.push(0);
        out.extend_from_slice(&(entry.count() as u16).to_be_bytes());
        for position in entry.positions() {
            out.extend_from_slice(&position.0.to_be_bytes());
        }
    }
    Ok(())
}

fn query_receive(ctx: &EvalContext<'_>, binary: &[u8]) -> Result<Vec<u8>> {
    let mut binary = Binary(Reader(binary), "tsquery");
    let mut query = TsQuery::default();
    match binary.count()? {
        0 => {}
        _ => {
            receive_node(ctx, &mut binary, &mut query)?;
        }
    }
    Ok(query.to_bytes())
}

/// An operator comes before its right operand, that one before the left one.
fn receive_node(
    ctx: &EvalContext<'_>,
    binary: &mut Binary<'_>,
    query: &mut TsQuery,
) -> Result<u32> {
    stack::check()?;
    let kind = binary.0.take::<1>()?;
    let code = match kind {
        [1] => 0,
        [2] => binary.0.take::<1>()?[0],
        _ => return Err(malformed("tsquery: unrecognized operator type")),
    };
    let node = match code {
        0 => {
            let [weights, prefix] = binary.0.take()?;
            Node::Operand(Operand {
                lexeme: binary.string(ctx)?,
                weights: weights & 0xf,
                prefix: prefix != 0,
            })
        }
        1 => Node::Not(receive_node(ctx, binary, query)?),
        2..=4 => {
            let distance = if code == 4 { binary.0.u16()? } else { 0 };
            let mut right = TsQuery::default();
            receive_node(ctx, binary, &mut right)?;
            let left = receive_node(ctx, binary, query)?;
            let right = query.append(&right).unwrap_or(left);
            match code {
                2 => Node::And(left, right),
                3 => Node::Or(left, right),
                _ => Node::Phrase(left, right, distance),
            }
        }
        _ => return Err(malformed("tsquery: unrecognized operator type")),
    };
    Ok(query.push(node))
}

fn query_send(ctx: &EvalContext<'_>, value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let query = TsQuery::from_bytes(value);
    out.extend_from_slice(&(query.len() as u32).to_be_bytes());
    let mut left: Vec<u32> = query.root().into_iter().collect();
    while let Some(at) = left.pop() {
        let node = query.node(at);
        match node.operator_code() {
            None => out.push(1),
            Some(code) => out.extend_from_slice(&[2, code]),
        }
        match *node {
            Node::Operand(ref operand) => {
                out.extend_from_slice(&[operand.weights, u8::from(operand.prefix)]);
                ctx.format.charset.encode(&operand.lexeme, out)?;
                out.push(0);
            }
            Node::Not(a) => left.push(a),
            Node::And(a, b) | Node::Or(a, b) => left.extend([a, b]),
            Node::Phrase(a, b, distance) => {
                out.extend_from_slice(&distance.to_be_bytes());
                left.extend([a, b]);
            }
        }
    }
    Ok(())
}
