//! JSON texts: checked, walked, and made into `jsonb`.
//!
//! [`Walker`] gives a text's parts one after the other without recursion, so a text of any nesting
//! costs a bit a level; what is built from it is bounded by [`throng_types::jsonb::MAX_DEPTH`].

mod lex;
#[cfg(test)]
mod tests;

pub use lex::Token;
use lex::{Fault, Lexer};
use std::borrow::Cow;
use std::ops::Range;
use throng_types::jsonb::{Json, MAX_DEPTH, too_deep};
use throng_types::{Jsonb, Numeric, Result};

/// A part of a text.
#[derive(Clone, Debug, PartialEq)]
pub enum JsonPart<'a> {
    ObjectStart,
    ObjectEnd,
    ArrayStart,
    ArrayEnd,
    /// A member's key; its value is what comes next.
    Key(Cow<'a, str>),
    /// A string, a number or a word, as it is written.
    Scalar(Token, &'a str),
}

/// What may come next.
#[derive(Clone, Copy, PartialEq)]
enum JsonState {
    /// Nothing is read yet.
    Start,
    /// A value, whose first token is read.
    Value,
    FirstElement,
    FirstMember,
    /// After a value.
    Next,
    Done,
}

/// The parts of a text in their order, checking it on the way.
pub struct Walker<'a> {
    lexer: Lexer<'a>,
    /// The containers that are open: true for an object.
    open: Vec<bool>,
    state: JsonState,
    /// What the last scalar string means.
    string: Option<Cow<'a, str>>,
    /// Where the last part is written.
    span: Range<usize>,
}

impl<'a> Walker<'a> {
    /// `escapes`: strings are read for what they mean, and those that mean nothing refused.
    pub fn new(text: &'a str, escapes: bool) -> Walker<'a> {
        Walker {
            lexer: Lexer::new(text, escapes),
            open: Vec::new(),
            state: JsonState::Start,
            string: None,
            span: 0..0,
        }
    }

    /// Containers around the place that is reached.
    pub fn depth(&self) -> usize {
        self.open.len()
    }
    /// Where the last part is written in the text.
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }
    /// What the last part, a string, means.
    pub fn take_string(&mut self) -> Cow<'a, str> {
        self.string.take().unwrap_or_default()
    }

    fn note(&mut self) {
        self.span = self.lexer.start..self.lexer.end;
    }

    fn start(&mut self, object: bool) -> Result<Option<JsonPart<'a>>> {
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep());
        }
        self.open.push(object);
        self.note();
        self.state = if object {
            JsonState::FirstMember
        } else {
            JsonState::FirstElement
        };
        Ok(Some(if object {
            JsonPart::ObjectStart
        } else {
            JsonPart::ArrayStart
        }))
    }

    fn end(&mut self) -> Option<JsonPart<'a>> {
        self.note();
        self.state = JsonState::Next;
        Some(match self.open.pop() {
            Some(true) => JsonPart::ObjectEnd,
            _ => JsonPart::ArrayEnd,
        })
    }

    fn key(&mut self) -> Result<Option<JsonPart<'a>>> {
        if self.lexer.token != Token::String {
            return Err(self.lexer.fault(Fault::ExpectedString));
        }
        self.note();
        let key = self.lexer.take_string();
        self.lexer.advance()?;
        if self.lexer.token != Token::Colon {
            return Err(self.lexer.fault(Fault::ExpectedColon));
        }
        self.lexer.advance()?;
        self.state = JsonState::Value;
        Ok(Some(JsonPart::Key(key)))
    }

    /// The value that begins with the current token.
    fn value(&mut self) -> Result<Option<JsonPart<'a>>> {
        match self.lexer.token {
            Token::ObjectStart => self.start(true),
            Token::ArrayStart => self.start(false),
            token @ (Token::String | Token::Number | Token::True | Token::False | Token::Null) => {
                self.note();
                if token == Token::String {
                    self.string = Some(self.lexer.take_string());
                }
                self.state = JsonState::Next;
                Ok(Some(JsonPart::Scalar(token, self.lexer.lexeme())))
            }
            _ => Err(self.lexer.fault(Fault::ExpectedValue)),
        }
    }

    /// The next part; None at the text's end.
    pub fn next_part(&mut self) -> Result<Option<JsonPart<'a>>> {
        if !matches!(self.state, JsonState::Value | JsonState::Done) {
            self.lexer.advance()?;
        }
        match self.state {
            JsonState::Start | JsonState::Value => self.value(),
            JsonState::FirstElement if self.lexer.token == Token::ArrayEnd => Ok(self.end()),
            JsonState::FirstElement => self.value(),
            JsonState::FirstMember => match self.lexer.token {
                Token::ObjectEnd => Ok(self.end()),
                Token::String => self.key(),
                _ => Err(self.lexer.fault(Fault::ExpectedFirstMember)),
            },
            JsonState::Next => self.after_value(),
            JsonState::Done => Ok(None),
        }
    }

    fn after_value(&mut self) -> Result<Option<JsonPart<'a>>> {
        match (self.open.last(), self.lexer.token) {
            (None, Token::End) => {
                self.state = JsonState::Done;
                Ok(None)
            }
            (None, _) => Err(self.lexer.fault(Fault::ExpectedEnd)),
            (Some(true), Token::ObjectEnd) | (Some(false), Token::ArrayEnd) => Ok(self.end()),
            (Some(true), Token::Comma) => {
                self.lexer.advance()?;
                self.key()
            }
            (Some(false), Token::Comma) => {
                self.lexer.advance()?;
                self.value()
            }
            (Some(true), _) => Err(self.lexer.fault(Fault::ExpectedNextMember)),
            (Some(false), _) => Err(self.lexer.fault(Fault::ExpectedNextElement)),
        }
    }
}

/// Is it a `json` value? 22P02 where it is not.
pub fn check(text: &str) -> Result<()> {
    let mut walker = Walker::new(text, false);
    while walker.next_part()?.is_some() {}
    Ok(())
}

/// A container whose parts are being gathered.
enum Open<'a> {
    Array(Vec<Json<'a>>),
    Object(Vec<(Cow<'a, str>, Json<'a>)>, Option<Cow<'a, str>>),
}

/// Reads a text as a tree.
pub fn parse_tree(text: &str) -> Result<Json<'_>> {
    let mut walker = Walker::new(text, true);
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut whole = Json::Null;
    while let Some(part) = walker.next_part()? {
        let value = match part {
            JsonPart::ObjectStart => {
                open.push(Open::Object(Vec::new(), None));
                continue;
            }
            JsonPart::ArrayStart => {
                open.push(Open::Array(Vec::new()));
                continue;
            }
            JsonPart::Key(name) => {
                if let Some(Open::Object(_, key)) = open.last_mut() {
                    *key = Some(name);
                }
                continue;
            }
            JsonPart::ObjectEnd | JsonPart::ArrayEnd => match open.pop() {
                Some(Open::Array(items)) => Json::Array(items),
                Some(Open::Object(members, _)) => Json::Object(members),
                None => Json::Null,
            },
            JsonPart::Scalar(token, written) => scalar(token, written, &mut walker)?,
        };
        match open.last_mut() {
            None => whole = value,
            Some(Open::Array(items)) => items.push(value),
            Some(Open::Object(members, key)) => {
                members.push((key.take().unwrap_or_default(), value));
            }
        }
    }
    Ok(whole)
}

fn scalar<'a>(token: Token, written: &str, walker: &mut Walker<'a>) -> Result<Json<'a>> {
    Ok(match token {
        Token::String => Json::String(walker.take_string()),
        Token::Number => Json::Number(number(written)?),
        Token::True => Json::Bool(true),
        Token::False => Json::Bool(false),
        _ => Json::Null,
    })
}

fn number(written: &str) -> Result<Numeric> {
    super::scalar::parse_numeric(written)
}

/// Reads a text as `jsonb`.
pub fn parse_jsonb(text: &str) -> Result<Jsonb> {
    parse_tree(text)?.encode()
}
