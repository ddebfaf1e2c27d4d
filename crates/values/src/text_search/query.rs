//! Queries as they are written: `to_tsquery`, `plainto_tsquery`, `phraseto_tsquery`,
//! `websearch_to_tsquery` and the input of the type itself.
//!
//! ```text
//! text ── operands and operators ──► draft, stop words still in it ── without them ──► query
//! ```
//! Removing a stop word from a phrase widens the distance of its neighbours.

use super::configuration::Configuration;
use super::document::Words;
use crate::eval::EvalContext;
use throng_types::error::{Severity, state};
use throng_types::text_search::vector::{MAX_LEXEME, weight_of_letter};
use throng_types::text_search::{Node, Operand, TsQuery};
use throng_types::{Error, Result, interrupt, stack};

/// The greatest distance of a phrase.
pub const MAX_DISTANCE: u16 = 1 << 14;

/// An operator between operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Not,
    And,
    Or,
    Phrase(u16),
}

impl Operator {
    fn priority(self) -> u8 {
        match self {
            Operator::Or => 1,
            Operator::And => 2,
            Operator::Phrase(_) => 3,
            Operator::Not => 4,
        }
    }
}

/// A node while a query is made; operands are the places of nodes before it.
#[derive(Clone, Debug)]
enum Draft {
    Operand(Operand),
    /// Where a word was that nothing is found by.
    Stop,
    Not(usize),
    Join(Operator, usize, usize),
}

/// A query that is being made, in the order of a reverse Polish calculator.
#[derive(Default)]
pub struct QueryBuilder {
    nodes: Vec<Draft>,
    /// Operands that no operator has taken yet.
    open: Vec<usize>,
    /// Operators whose operands are not complete; None for a parenthesis.
    waiting: Vec<Option<Operator>>,
}

impl QueryBuilder {
    fn push(&mut self, node: Draft) {
        self.open.push(self.nodes.len());
        self.nodes.push(node);
    }
    pub fn operand(&mut self, operand: Operand) {
        self.push(Draft::Operand(operand));
    }
    pub fn stop(&mut self) {
        self.push(Draft::Stop);
    }
    /// Joins the last operands.
    fn apply(&mut self, operator: Operator) {
        let Some(right) = self.open.pop() else {
            return;
        };
        let node = match operator {
            Operator::Not => Draft::Not(right),
            _ => match self.open.pop() {
                Some(left) => Draft::Join(operator, left, right),
                None => {
                    self.open.push(right);
                    return;
                }
            },
        };
        self.push(node);
    }
    /// An operator between what came and what comes.
    fn operator(&mut self, operator: Operator) {
        while let Some(Some(before)) = self.waiting.last().copied() {
            // NOT binds to its right.
            let later = match operator {
                Operator::Not => operator.priority() >= before.priority(),
                _ => operator.priority() > before.priority(),
            };
            if later {
                break;
            }
            self.waiting.pop();
            self.apply(before);
        }
        self.waiting.push(Some(operator));
    }
    fn open_parenthesis(&mut self) {
        self.waiting.push(None);
    }
    /// What waits since the last parenthesis.
    fn close(&mut self) {
        while let Some(Some(operator)) = self.waiting.pop() {
            self.apply(operator);
        }
    }

    /// The query, and whether stop words were removed from it.
    ///
    /// # Errors
    /// 54001 where it is nested too deeply.
    pub fn finish(mut self) -> Result<(TsQuery, bool)> {
        while !self.waiting.is_empty() {
            self.close();
        }
        let mut query = TsQuery::default();
        if let Some(root) = self.open.last() {
            self.without_stops(*root, &mut query)?;
        }
        let had_stops = self.nodes.iter().any(|node| matches!(node, Draft::Stop));
        Ok((query, had_stops))
    }

    /// The node without stop words, in the query; what it was wide to either side that is not
    /// accounted for yet.
    fn without_stops(&self, at: usize, query: &mut TsQuery) -> Result<(Option<u32>, u16, u16)> {
        stack::check()?;
        interrupt::poll()?;
        let (operator, left, right) = match self.nodes[at] {
            Draft::Operand(ref operand) => {
                return Ok((Some(query.push(Node::Operand(operand.clone()))), 0, 0));
            }
            Draft::Stop => return Ok((None, 0, 0)),
            Draft::Not(operand) => {
                let (operand, before, after) = self.without_stops(operand, query)?;
                return Ok((operand.map(|a| query.push(Node::Not(a))), before, after));
            }
            Draft::Join(operator, left, right) => (operator, left, right),
        };
        let gap = match operator {
            Operator::Phrase(distance) => Some(distance),
            _ => None,
        };
        let (left, left_before, left_after) = self.without_stops(left, query)?;
        let (right, right_before, right_after) = self.without_stops(right, query)?;
        let sum = |widths: &[u16]| {
            let sum: u32 = widths.iter().map(|width| u32::from(*width)).sum();
            sum.min(u32::from(MAX_DISTANCE)) as u16
        };
        Ok(match (left, right, gap) {
            (None, None, Some(gap)) => {
                let all = sum(&[left_before, gap, right_before]);
                (None, all, all)
            }
            (None, None, None) => {
                let wider = left_before.max(right_before);
                (None, wider, wider)
            }
            (None, right, Some(gap)) => {
                (right, sum(&[left_before, gap, right_before]), right_after)
            }
            (None, right, None) => (right, right_before, right_after),
            (left, None, Some(gap)) => (left, left_before, sum(&[left_after, gap, right_after])),
            (left, None, None) => (left, left_before, left_after),
            (Some(left), Some(right), Some(gap)) => {
                let distance = sum(&[gap, left_after, right_before]);
                let node = query.push(Node::Phrase(left, right, distance));
                (Some(node), left_before, right_after)
            }
            (Some(left), Some(right), None) => {
                let node = match operator {
                    Operator::Or => Node::Or(left, right),
                    _ => Node::And(left, right),
                };
                (Some(query.push(node)), 0, 0)
            }
        })
    }
}

/// What an operand's text becomes.
pub trait Operands {
    fn add(
        &mut self,
        builder: &mut QueryBuilder,
        text: &str,
        weights: u8,
        prefix: bool,
    ) -> Result<()>;
}

/// Operands as they are written.
pub struct Verbatim;

impl Operands for Verbatim {
    fn add(
        &mut self,
        builder: &mut QueryBuilder,
        text: &str,
        weights: u8,
        prefix: bool,
    ) -> Result<()> {
        if text.len() >= MAX_LEXEME {
            return Err(Error::new(
                state::PROGRAM_LIMIT_EXCEEDED,
                format!("word is too long in tsquery: \"{text}\""),
            ));
        }
        builder.operand(Operand {
            lexeme: text.to_owned(),
            weights,
            prefix,
        });
        Ok(())
    }
}

/// Operands as lexemes; words of one operand are joined by an operator.
pub struct Lexemes<'a> {
    pub ctx: &'a EvalContext<'a>,
    pub configuration: &'a Configuration,
    pub joined_by: Operator,
}

impl Operands for Lexemes<'_> {
    fn add(
        &mut self,
        builder: &mut QueryBuilder,
        text: &str,
        weights: u8,
        prefix: bool,
    ) -> Result<()> {
        let mut words = Words::default();
        words.add(self.ctx, self.configuration, text)?;
        if words.words.is_empty() {
            builder.stop();
            return Ok(());
        }
        // One after the other, stop words between them in their places.
        let (mut place, mut pushed) = (0, 0);
        for word in words.words {
            while pushed > 0 && place + 1 < word.place {
                builder.stop();
                builder.apply(self.joined_by);
                place += 1;
            }
            let same_place = pushed > 0 && place == word.place;
            place = word.place;
            builder.operand(Operand {
                lexeme: word.lexeme,
                weights,
                prefix,
            });
            if same_place {
                builder.apply(Operator::Or);
            } else if pushed > 0 {
                builder.apply(self.joined_by);
            }
            pushed += 1;
        }
        Ok(())
    }
}

/// Reads the operators of `tsquery`.
///
/// # Errors
/// 42601 for what is no query.
pub fn parse(text: &str, operands: &mut dyn Operands) -> Result<QueryBuilder> {
    let mut reader = Reader {
        text,
        rest: text,
        depth: 0,
    };
    let mut builder = QueryBuilder::default();
    let mut first = true;
    loop {
        interrupt::poll()?;
        // An operand, or what may stand before one.
        reader.skip_blanks();
        match reader.rest.chars().next() {
            None if first => return Ok(builder),
            None => return Err(reader.error("no operand in tsquery")),
            Some('!') => {
                reader.skip(1);
                builder.operator(Operator::Not);
                first = false;
                continue;
            }
            Some('(') => {
                reader.skip(1);
                reader.depth += 1;
                builder.open_parenthesis();
                first = false;
                continue;
            }
            Some(':') => return Err(reader.syntax_error()),
            Some(_) => {}
        }
        first = false;
        let operand = reader.operand()?;
        let (weights, prefix) = reader.modifiers();
        operands.add(&mut builder, &operand, weights, prefix)?;
        // Closing parentheses, then an operator or the end.
        loop {
            reader.skip_blanks();
            match reader.rest.chars().next() {
                None if reader.depth > 0 => return Err(reader.syntax_error()),
                None => return Ok(builder),
                Some(')') if reader.depth > 0 => {
                    reader.skip(1);
                    reader.depth -= 1;
                    builder.close();
                }
                Some('&') => {
                    reader.skip(1);
                    builder.operator(Operator::And);
                    break;
                }
                Some('|') => {
                    reader.skip(1);
                    builder.operator(Operator::Or);
                    break;
                }
                Some('<') => {
                    let distance = reader.distance()?;
                    builder.operator(Operator::Phrase(distance));
                    break;
                }
                Some(_) => return Err(reader.syntax_error()),
            }
        }
    }
}

/// The text of a query, from the front.
struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
    depth: usize,
}

impl Reader<'_> {
    #[cold]
    fn error(&self, message: &str) -> Error {
        let text = self.text;
        Error::new(state::SYNTAX_ERROR, format!("{message}: \"{text}\""))
    }
    #[cold]
    fn syntax_error(&self) -> Error {
        self.error("syntax error in tsquery")
    }
    fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }
    fn skip_blanks(&mut self) {
        self.rest = self
            .rest
            .trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
    }

    /// A word, quoted or not.
    fn operand(&mut self) -> Result<String> {
        let (operand, rest) =
            super::query::operand(self.rest, true).ok_or_else(|| self.syntax_error())?;
        if operand.is_empty() {
            return Err(self.syntax_error());
        }
        self.rest = rest;
        Ok(operand)
    }

    /// `:*ABCD` after an operand.
    fn modifiers(&mut self) -> (u8, bool) {
        let (mut weights, mut prefix) = (0, false);
        let Some(letters) = self.rest.strip_prefix(':') else {
            return (0, false);
        };
        self.rest = letters;
        while let Some(letter) = self.rest.bytes().next() {
            match (letter, weight_of_letter(letter)) {
                (b'*', _) => prefix = true,
                (_, Some(weight)) => weights |= 1 << weight,
                _ => break,
            }
            self.skip(1);
        }
        (weights, prefix)
    }

    /// `<->` or `<N>`.
    fn distance(&mut self) -> Result<u16> {
        // An operator that ends the text is none.
        if let Some(rest) = self
            .rest
            .strip_prefix("<->")
            .filter(|rest| !rest.is_empty())
        {
            self.rest = rest;
            return Ok(1);
        }
        let digits = &self.rest[1..];
        let len = digits.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = digits.split_at(len);
        let Some(rest) = rest
            .strip_prefix('>')
            .filter(|rest| len > 0 && !rest.is_empty())
        else {
            return Err(self.syntax_error());
        };
        match number.parse() {
            Ok(distance) if distance <= MAX_DISTANCE => {
                self.rest = rest;
                Ok(distance)
            }
            _ => Err(bad_distance()),
        }
    }
}

#[cold]
pub fn bad_distance() -> Error {
    Error::new(
        state::INVALID_PARAMETER_VALUE,
        format!(
            "distance in phrase operator must be an integer value between zero and {MAX_DISTANCE} \
             inclusive"
        ),
    )
}

/// A word from the front of a text, and what follows: between quotes, or up to a blank, a colon or
/// (in a query) an operator. A backslash takes the next character as it is. None where it breaks
/// off.
pub fn operand(text: &str, in_query: bool) -> Option<(String, &str)> {
    let mut word = String::new();
    let mut chars = text.char_indices().peekable();
    let quoted = chars.next_if(|(_, c)| *c == '\'').is_some();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => word.push(chars.next()?.1),
            '\'' if quoted => match chars.next_if(|(_, c)| *c == '\'') {
                Some(_) => word.push('\''),
                None => return Some((word, &text[at + 1..])),
            },
            _ if quoted => word.push(c),
            ':' if in_query || at > 0 => return Some((word, &text[at..])),
            '!' | '&' | '|' | '(' | ')' | '<' if in_query => return Some((word, &text[at..])),
            c if c.is_ascii_whitespace() || c == '\x0b' => return Some((word, &text[at..])),
            c => word.push(c),
        }
    }
    (!quoted).then_some((word, ""))
}

/// Reads what people write into search engines: quotes for phrases, `or`, and `-` for NOT; nothing
/// is an error.
///
/// # Errors
/// Those of what makes operands.
pub fn parse_web_search(text: &str, operands: &mut dyn Operands) -> Result<QueryBuilder> {
    let mut builder = QueryBuilder::default();
    let mut rest = text;
    // An operator is told once its right side is there.
    let mut between = None;
    let mut negations = 0;
    loop {
        interrupt::poll()?;
        let Some(c) = rest.chars().next() else {
            break;
        };
        if c == '-' {
            rest = &rest[1..];
            negations += 1;
            continue;
        }
        if between.is_some() && or_word(rest) {
            rest = &rest[2..];
            between = Some(Operator::Or);
            continue;
        }
        let (operand, after) = match c {
            '"' => {
                let phrase = &rest[1..];
                // A quote that is not closed is none.
                phrase.split_once('"').unwrap_or((phrase, ""))
            }
            c if c.is_alphanumeric() || !c.is_ascii() && !c.is_whitespace() || c == '_' => {
                let end = rest
                    .find(|c: char| c.is_whitespace() || c == '"')
                    .unwrap_or(rest.len());
                rest.split_at(end)
            }
            c => {
                rest = &rest[c.len_utf8()..];
                continue;
            }
        };
        rest = after;
        if let Some(operator) = between {
            builder.operator(operator);
        }
        for _ in 0..negations {
            builder.operator(Operator::Not);
        }
        operands.add(&mut builder, operand, 0, false)?;
        between = Some(Operator::And);
        negations = 0;
    }
    Ok(builder)
}

/// Whether `or` stands here as a word that something follows.
fn or_word(rest: &str) -> bool {
    let Some((word, after)) = rest.split_at_checked(2) else {
        return false;
    };
    if !word.eq_ignore_ascii_case("or") {
        return false;
    }
    match after.chars().next() {
        None => false,
        Some(c) if c == '-' || c == '_' || c.is_alphanumeric() => false,
        Some(_) => after.chars().any(|c| !c.is_whitespace()),
    }
}

/// What is told where nothing is left of a query.
pub fn only_stop_words() -> Error {
    Error::new(
        state::SUCCESSFUL_COMPLETION,
        "text-search query contains only stop words or doesn't contain lexemes, ignored",
    )
    .severity(Severity::Notice)
}

/// What is told of a text without operands.
pub fn no_lexemes(text: &str) -> Error {
    Error::new(
        state::SUCCESSFUL_COMPLETION,
        format!("text-search query doesn't contain lexemes: \"{text}\""),
    )
    .severity(Severity::Notice)
}
