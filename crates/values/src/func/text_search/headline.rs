//! `ts_headline`: the piece of a text that shows best what was found in it.

use super::super::{EvalContext, EvalResult, EvalStop};
use super::{query, text, with_configuration};
use crate::io::json::{JsonPart, Token as JsonToken, Walker, parse_jsonb};
use crate::text_search::Configuration;
use crate::text_search::parser::Parser;
use crate::text_search::token::TokenKind::{self, *};
use throng_types::error::state;
use throng_types::text_search::matching::{Answer, Document, Location, Unknown, locations, search};
use throng_types::text_search::{Operand, TsQuery};
use throng_types::{Datum, Error, Result, Text, interrupt, jsonb};

/// What the last argument may tell.
struct Options {
    max_words: usize,
    min_words: usize,
    short_word: usize,
    max_fragments: usize,
    highlight_all: bool,
    start: String,
    stop: String,
    delimiter: String,
}

impl Options {
    fn read(written: &str) -> Result<Options> {
        let mut options = Options {
            max_words: 35,
            min_words: 15,
            short_word: 3,
            max_fragments: 0,
            highlight_all: false,
            start: "<b>".into(),
            stop: "</b>".into(),
            delimiter: " ... ".into(),
        };
        for (name, value) in name_value_list(written)? {
            let number = || {
                let message = format!("invalid input syntax for type integer: \"{value}\"");
                value
                    .trim()
                    .parse::<i32>()
                    .map_err(|_| Error::new(state::INVALID_TEXT_REPRESENTATION, message))
            };
            let at_least = |least: i32| match number()? {
                number if number >= least => Ok(number as usize),
                _ => Err(invalid(match least {
                    0 => format!("{name} must be >= 0"),
                    _ => format!("{name} must be positive"),
                })),
            };
            match name.to_ascii_lowercase().as_str() {
                "maxwords" => options.max_words = number()?.max(0) as usize,
                "minwords" => options.min_words = number()?.max(0) as usize,
                "shortword" => options.short_word = at_least(0)?,
                "maxfragments" => options.max_fragments = at_least(0)?,
                "startsel" => options.start = value,
                "stopsel" => options.stop = value,
                "fragmentdelimiter" => options.delimiter = value,
                "highlightall" => {
                    options.highlight_all = matches!(
                        value.to_ascii_lowercase().as_str(),
                        "1" | "on" | "true" | "t" | "y" | "yes"
                    );
                }
                _ => {
                    return Err(invalid(format!(
                        "unrecognized headline parameter: \"{name}\""
                    )));
                }
            }
        }
        if !options.highlight_all {
            if options.min_words >= options.max_words {
                return Err(invalid("MinWords must be less than MaxWords"));
            }
            if options.min_words == 0 {
                return Err(invalid("MinWords must be positive"));
            }
        }
        Ok(options)
    }
}

#[cold]
fn invalid(message: impl Into<String>) -> Error {
    Error::new(state::INVALID_PARAMETER_VALUE, message)
}

/// `a = b, c = "d"`.
fn name_value_list(written: &str) -> Result<Vec<(String, String)>> {
    let wrong = || {
        Error::new(
            state::SYNTAX_ERROR,
            format!("invalid parameter list format: \"{written}\""),
        )
    };
    let mut list = Vec::new();
    let mut rest = written;
    loop {
        rest = rest.trim_start_matches(|c: char| c == ',' || c.is_ascii_whitespace());
        if rest.is_empty() {
            return Ok(list);
        }
        let (name, after) = rest.split_once('=').ok_or_else(wrong)?;
        let name = name.trim().trim_matches('"');
        if name.is_empty() || name.contains(|c: char| c.is_ascii_whitespace()) {
            return Err(wrong());
        }
        let after = after.trim_start();
        let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''));
        let mut value = String::new();
        match quote {
            Some(quote) => {
                let mut chars = after[1..].char_indices().peekable();
                let mut end = None;
                while let Some((at, c)) = chars.next() {
                    match c {
                        '\\' => value.extend(chars.next().map(|(_, c)| c)),
                        c if c == quote => match chars.next_if(|(_, next)| *next == quote) {
                            Some(_) => value.push(quote),
                            None => {
                                end = Some(at + 2);
                                break;
                            }
                        },
                        c => value.push(c),
                    }
                }
                rest = &after[end.ok_or_else(wrong)?..];
            }
            None => {
                let end = after
                    .find(|c: char| c == ',' || c.is_ascii_whitespace())
                    .unwrap_or(after.len());
                value.push_str(&after[..end]);
                rest = &after[end..];
            }
        }
        list.push((name.to_owned(), value));
    }
}

/// A token of the text.
struct Piece<'a> {
    kind: TokenKind,
    text: &'a str,
    place: i32,
    /// The query's operand that it is.
    operand: Option<u32>,
    /// The same word again, for another operand that it is: counted as a word, not shown.
    repeated: bool,
    selected: bool,
    shown: bool,
}

impl Piece<'_> {
    /// Parts of it come after it.
    fn is_whole(&self) -> bool {
        matches!(
            self.kind,
            Url | NumHyphenated | AsciiHyphenated | Hyphenated
        )
    }
    fn is_word(&self) -> bool {
        !matches!(self.kind, Blank | Tag) && !self.is_whole()
    }
    fn is_found(&self) -> bool {
        self.operand.is_some() && !self.repeated
    }
    /// Whether a headline should not begin or end here.
    fn is_bad_end(&self, short_word: usize) -> bool {
        let no_end = !self.is_word()
            || matches!(
                self.kind,
                ScientificFloat | Version | Float | Int | UnsignedInt | Protocol | Entity
            );
        (no_end || self.text.len() <= short_word) && !self.is_found()
    }
}

fn pieces<'a>(by: &Configuration, query: &TsQuery, text: &'a str) -> Result<Vec<Piece<'a>>> {
    let mut parser = Parser::new(text);
    let (mut pieces, mut place) = (Vec::new(), 0);
    while let Some(token) = parser.next_token()? {
        let word = &text[token.range];
        let mut operands = Vec::new();
        if let Some(dictionary) = by.dictionary(token.kind) {
            place += 1;
            for lexeme in dictionary.lexize(word) {
                let same =
                    query
                        .operands_with_places()
                        .filter(|(_, operand)| match operand.prefix {
                            true => lexeme.starts_with(&operand.lexeme),
                            false => lexeme == operand.lexeme,
                        });
                operands.extend(same.map(|(at, _)| at));
            }
        }
        let mut operands: Vec<Option<u32>> = operands.into_iter().map(Some).collect();
        if operands.is_empty() {
            operands.push(None);
        }
        let operands = operands.into_iter().enumerate();
        pieces.extend(operands.map(|(nth, operand)| Piece {
            kind: token.kind,
            text: word,
            place,
            operand,
            repeated: nth > 0,
            selected: false,
            shown: false,
        }));
    }
    Ok(pieces)
}

/// Some pieces, as a document.
struct Found<'a, 'b>(&'a [Piece<'b>]);

impl Document for Found<'_, '_> {
    fn holds(&mut self, _: &Operand, nth: u32) -> Result<Answer> {
        Ok(Answer::from(
            self.0.iter().any(|piece| piece.operand == Some(nth)),
        ))
    }
    fn places(&mut self, _: &Operand, nth: u32, at: &mut Vec<i32>) -> Result<Answer> {
        let found = self.0.iter().filter(|piece| piece.operand == Some(nth));
        at.extend(found.map(|piece| piece.place));
        Ok(Answer::from(!at.is_empty()))
    }
}

/// The stretches of pieces that answer the query, each the shortest of its place.
struct Covers<'a> {
    query: &'a TsQuery,
    /// Where each term that must be there was found.
    terms: Vec<Location>,
    next: i32,
}

impl Covers<'_> {
    fn next(&mut self, pieces: &[Piece<'_>]) -> Result<Option<(usize, usize)>> {
        loop {
            interrupt::poll()?;
            let mut last = -1;
            for term in &self.terms {
                let after = term.at.iter().find(|end| **end >= self.next);
                match after {
                    Some(end) => last = last.max(*end),
                    None => return Ok(None),
                }
            }
            if last < 0 {
                return Ok(None);
            }
            let mut first = i32::MAX - 1;
            for term in &self.terms {
                let begins = term.at.iter().rev().map(|end| end - term.width);
                let before = begins.into_iter().find(|begin| *begin <= last);
                first = first.min(before.unwrap_or(-1));
            }
            let first = first.max(self.next);
            self.next = first + 1;
            let range = (first, last);
            let within = |piece: &Piece<'_>| {
                piece.operand.is_some() && (range.0..=range.1).contains(&piece.place)
            };
            let begin = pieces.iter().position(within);
            let end = pieces.iter().rposition(within);
            if let (Some(begin), Some(end)) = (begin, end) {
                let mut found = Found(&pieces[begin..=end]);
                if search(self.query, &mut found, Unknown::IsNo)? != Answer::No {
                    return Ok(Some((begin, end)));
                }
            }
        }
    }
}

/// A text's pieces while they are chosen among.
struct Headline<'a, 'b> {
    pieces: &'a mut [Piece<'b>],
    options: &'a Options,
}

impl Headline<'_, '_> {
    fn is_word(&self, at: usize) -> usize {
        usize::from(self.pieces[at].is_word())
    }
    fn is_found(&self, at: usize) -> i32 {
        i32::from(self.pieces[at].is_found())
    }
    fn is_bad_end(&self, at: usize) -> bool {
        self.pieces[at].is_bad_end(self.options.short_word)
    }
    fn show(&mut self, begin: usize, end: usize) {
        for piece in &mut self.pieces[begin..end] {
            piece.selected = piece.is_found();
            piece.shown = true;
        }
    }

    /// Pieces up to the least number of words.
    fn beginning(&self) -> usize {
        let (mut words, mut end) = (0, 0);
        while end < self.pieces.len() && words < self.options.min_words {
            words += self.is_word(end);
            end += 1;
        }
        end
    }

    /// One stretch, with the cover that has most of the query's words.
    fn choose_one(&mut self, covers: &mut Covers<'_>) -> Result<()> {
        let mut best: Option<Candidate> = None;
        while let Some((begin, end)) = covers.next(self.pieces)? {
            let candidate = self.around(begin, end);
            let better = match &best {
                None => true,
                Some(best) => {
                    let rank = |c: &Candidate| (c.holds_cover, c.found);
                    rank(&candidate) > rank(best)
                        || rank(&candidate) == rank(best)
                            && !self.is_bad_end(candidate.last)
                            && self.is_bad_end(best.last)
                }
            };
            if better {
                best = Some(candidate);
            }
        }
        match best {
            Some(best) => self.show(best.first, best.last + 1),
            None => self.show(0, self.beginning()),
        }
        Ok(())
    }

    /// The headline around a cover, as long as is asked for.
    fn around(&self, begin: usize, end: usize) -> Candidate {
        let (least, most) = (self.options.min_words, self.options.max_words);
        let (mut words, mut found) = (0, 0);
        let (mut first, mut last) = (begin, begin);
        let mut at = begin;
        while at <= end && words < most {
            words += self.is_word(at);
            found += self.is_found(at);
            last = at;
            at += 1;
        }
        if words < most {
            at -= 1;
            while at < self.pieces.len() && words < most {
                if at > end {
                    words += self.is_word(at);
                    found += self.is_found(at);
                }
                last = at;
                if !self.is_bad_end(at) && words >= least {
                    break;
                }
                at += 1;
            }
            if words < least {
                first = 0;
                for at in (0..begin).rev() {
                    words += self.is_word(at);
                    found += self.is_found(at);
                    if words >= most || !self.is_bad_end(at) && words >= least {
                        first = at;
                        break;
                    }
                }
            }
        } else {
            let mut at = at.min(end);
            while words > least && self.is_bad_end(at) {
                words -= self.is_word(at);
                found -= self.is_found(at);
                last = at.saturating_sub(1);
                match at.checked_sub(1) {
                    Some(before) => at = before,
                    None => break,
                }
            }
        }
        Candidate {
            first,
            last,
            found,
            holds_cover: first <= begin && last >= end,
        }
    }

    /// Several stretches, those with most of the query's words.
    fn choose_fragments(&mut self, covers: &mut Covers<'_>) -> Result<()> {
        let mut fragments = Vec::new();
        while let Some((begin, end)) = covers.next(self.pieces)? {
            let mut from = begin;
            while from <= end {
                interrupt::poll()?;
                let fragment = self.fragment(from, end);
                from = fragment.last + 1;
                fragments.push(fragment);
            }
        }
        let mut shown = 0;
        for _ in 0..self.options.max_fragments {
            let mut best: Option<usize> = None;
            let (mut most, mut fewest) = (0, usize::MAX);
            for (at, fragment) in fragments.iter().enumerate() {
                let better =
                    fragment.found > most || fragment.found == most && fragment.words < fewest;
                if !fragment.excluded && better {
                    (most, fewest, best) = (fragment.found, fragment.words, Some(at));
                }
            }
            let Some(best) = best else {
                break;
            };
            let (first, last) = self.stretched(&fragments[best]);
            self.show(first, last + 1);
            shown += 1;
            for fragment in &mut fragments {
                fragment.excluded |= fragment.first <= last && fragment.last >= first;
            }
            fragments[best].excluded = true;
        }
        if shown == 0 {
            self.show(0, self.beginning());
        }
        Ok(())
    }

    /// The first piece of a cover that is short enough, with a found word at either end.
    fn fragment(&self, begin: usize, end: usize) -> Fragment {
        let first = (begin..=end).find(|at| self.pieces[*at].is_found());
        let first = first.unwrap_or(end);
        let (mut words, mut found) = (0, 0);
        let (mut at, mut last) = (first, end);
        while at <= end && words < self.options.max_words {
            words += self.is_word(at);
            found += self.is_found(at);
            at += 1;
        }
        if end > at {
            let mut back = at;
            loop {
                last = back;
                if self.pieces[back].is_found() || back == first {
                    break;
                }
                words = words.saturating_sub(self.is_word(back));
                back -= 1;
            }
        }
        Fragment {
            first,
            last,
            words,
            found,
            excluded: false,
        }
    }

    /// Where a fragment ends when it takes words to either side.
    fn stretched(&self, fragment: &Fragment) -> (usize, usize) {
        let (mut first, mut last) = (fragment.first, fragment.last);
        let most = self.options.max_words;
        let mut words = fragment.words;
        if words >= most {
            return (first, last);
        }
        let room = (most - words) / 2;
        let (mut taken, mut marker) = (0, first);
        for at in (0..first).rev() {
            if taken >= room || self.pieces[at].shown {
                break;
            }
            taken += self.is_word(at);
            marker = at;
        }
        words += taken;
        while marker < first && self.is_bad_end(marker) {
            words -= self.is_word(marker);
            marker += 1;
        }
        first = marker;
        let mut marker = last;
        for at in last + 1..self.pieces.len() {
            if words >= most || self.pieces[at].shown {
                break;
            }
            words += self.is_word(at);
            marker = at;
        }
        while marker > last && self.is_bad_end(marker) {
            marker -= 1;
        }
        last = marker;
        (first, last)
    }
}

struct Candidate {
    first: usize,
    last: usize,
    found: i32,
    holds_cover: bool,
}

struct Fragment {
    first: usize,
    last: usize,
    words: usize,
    found: i32,
    excluded: bool,
}

fn headline(by: &Configuration, text: &str, query: &TsQuery, options: &Options) -> Result<String> {
    let mut pieces = pieces(by, query, text)?;
    let terms = locations(query, &mut Found(&pieces))?;
    let mut covers = Covers {
        query,
        terms,
        next: 0,
    };
    let count = pieces.len();
    let mut choice = Headline {
        pieces: &mut pieces,
        options,
    };
    if options.max_fragments > 0 {
        choice.choose_fragments(&mut covers)?;
    } else if options.highlight_all {
        choice.show(0, count);
    } else {
        choice.choose_one(&mut covers)?;
    }
    let mut out = String::new();
    let (mut fragments, mut within) = (0, false);
    for piece in pieces.iter().filter(|piece| !piece.repeated) {
        if !piece.shown {
            within = false;
            continue;
        }
        if !within {
            within = true;
            fragments += 1;
            if fragments > 1 {
                out.push_str(&options.delimiter);
            }
        }
        if piece.kind == Tag && !options.highlight_all {
            out.push(' ');
        } else if !piece.is_whole() {
            if piece.selected {
                out.push_str(&options.start);
            }
            out.push_str(piece.text);
            if piece.selected {
                out.push_str(&options.stop);
            }
        }
    }
    Ok(out)
}

struct Request {
    by: Configuration,
    query: TsQuery,
    options: Options,
}

fn request<'a>(ctx: &EvalContext<'_>, args: &'a [Datum]) -> Result<(Request, &'a Datum), EvalStop> {
    let (by, args) = with_configuration(ctx, args)?;
    let options = args.get(2).map_or("", text);
    let request = Request {
        by,
        query: query(&args[1]),
        options: Options::read(options)?,
    };
    Ok((request, &args[0]))
}

impl Request {
    fn of(&self, text: &str) -> Result<String> {
        headline(&self.by, text, &self.query, &self.options)
    }
}

pub fn of_text(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (request, document) = request(ctx, args)?;
    Ok(request.of(text(document))?.into())
}

/// The document with a headline for each of its strings, and without blanks between its parts.
fn in_json(request: &Request, document: &str) -> Result<String> {
    let mut walker = Walker::new(document, true);
    let (mut out, mut copied) = (String::new(), 0);
    let between = |text: &str, out: &mut String| {
        out.extend(text.chars().filter(|c| !c.is_ascii_whitespace()));
    };
    while let Some(part) = walker.next_part()? {
        let span = walker.span();
        between(&document[copied..span.start], &mut out);
        copied = span.end;
        if let JsonPart::Scalar(JsonToken::String, _) = part {
            let headline = request.of(&walker.take_string())?;
            let mut quoted = Vec::new();
            jsonb::write_string(&headline, &mut quoted);
            out.push_str(&String::from_utf8_lossy(&quoted));
        } else {
            out.push_str(&document[span]);
        }
    }
    between(&document[copied..], &mut out);
    Ok(out)
}

pub fn of_json(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (request, document) = request(ctx, args)?;
    match document {
        Datum::Json(text) => Ok(Datum::Json(Text::new(in_json(&request, text)?))),
        Datum::Jsonb(value) => {
            let mut text = Vec::new();
            value.root().write_text(&mut text);
            let text = String::from_utf8_lossy(&text);
            Ok(Datum::Jsonb(parse_jsonb(&in_json(&request, &text)?)?))
        }
        _ => Ok(Datum::Null),
    }
}
