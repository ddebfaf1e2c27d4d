//! Reading a path, by the rules of PostgreSQL's grammar.
//!
//! An expression gives a sequence of values, a predicate a truth value; which of both something in
//! parentheses is shows only when it is read, so both are read by one descent and each place says
//! which it wants. A predicate becomes an expression by the accessors after its parentheses.

use super::lex::{Kind, Lexer, Token, empty_input};
use super::*;
use crate::regex::{self, Options};
use throng_types::error::state;
use throng_types::jsonb::too_deep;
use throng_types::{Error, oid};

/// What was read at a place.
struct Read {
    chain: Chain,
    is_predicate: bool,
    /// Levels of expressions in it.
    depth: usize,
}

impl Read {
    fn expression(item: Item) -> Read {
        Read {
            chain: vec![item],
            is_predicate: false,
            depth: 1,
        }
    }
    /// A node over others.
    fn over(item: Item, is_predicate: bool, deepest: usize) -> Result<Read> {
        if deepest >= MAX_DEPTH {
            return Err(too_deep());
        }
        Ok(Read {
            chain: vec![item],
            is_predicate,
            depth: deepest + 1,
        })
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Token,
    /// Parentheses and the like around the place.
    open: usize,
    /// Filters around the place: `@` has no meaning outside of them.
    filters: usize,
    /// Whether the place is in a subscript, where `last` has a meaning.
    in_subscript: bool,
    /// What is wrong with the path's meaning, told after all of its words are read.
    misplaced: Option<&'static str>,
}

pub fn parse(text: &str) -> Result<Path> {
    let mut lexer = Lexer::new(text);
    let token = lexer.next_token()?;
    if token.kind == Kind::End {
        return Err(empty_input(text));
    }
    let mut parser = Parser {
        lexer,
        token,
        open: 0,
        filters: 0,
        in_subscript: false,
        misplaced: None,
    };
    let lax = parser.mode()?;
    let read = parser.any()?;
    if parser.token.kind != Kind::End {
        return Err(parser.token.syntax_error());
    }
    match parser.misplaced {
        Some(message) => Err(Error::new(state::SYNTAX_ERROR, message)),
        None => Ok(Path {
            lax,
            root: read.chain,
        }),
    }
}

fn invalid(detail: String) -> Error {
    Error::new(
        state::SYNTAX_ERROR,
        "invalid input syntax for type jsonpath",
    )
    .detail(detail)
}

const fn mark(c: char) -> Kind {
    Kind::Mark(c as u8)
}

impl Parser<'_> {
    fn advance(&mut self) -> Result<Token> {
        let next = self.lexer.next_token()?;
        Ok(std::mem::replace(&mut self.token, next))
    }
    fn at(&self, kind: Kind) -> bool {
        self.token.kind == kind
    }
    fn accept(&mut self, kind: Kind) -> Result<bool> {
        let found = self.at(kind);
        if found {
            self.advance()?;
        }
        Ok(found)
    }
    fn expect(&mut self, kind: Kind) -> Result<Token> {
        if self.at(kind) {
            self.advance()
        } else {
            Err(self.token.syntax_error())
        }
    }
    fn accept_word(&mut self, word: &str) -> Result<bool> {
        let found = self.token.is_word(word);
        if found {
            self.advance()?;
        }
        Ok(found)
    }
    fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.accept_word(word)? {
            Ok(())
        } else {
            Err(self.token.syntax_error())
        }
    }

    fn mode(&mut self) -> Result<bool> {
        if self.accept_word("strict")? {
            return Ok(false);
        }
        self.accept_word("lax")?;
        Ok(true)
    }

    /// Runs a reader one level down.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.open >= MAX_DEPTH {
            return Err(too_deep());
        }
        self.open += 1;
        let result = read(self);
        self.open -= 1;
        result
    }

    /// An expression or a predicate.
    fn any(&mut self) -> Result<Read> {
        let mut left = self.conjunction()?;
        while left.is_predicate && self.accept(Kind::Or)? {
            let right = self.conjunction()?;
            let right = self.predicate_of(right)?;
            let deepest = left.depth.max(right.depth);
            left = Read::over(Item::Or(Box::new((left.chain, right.chain))), true, deepest)?;
        }
        Ok(left)
    }

    fn conjunction(&mut self) -> Result<Read> {
        let mut left = self.condition()?;
        while left.is_predicate && self.accept(Kind::And)? {
            let right = self.condition()?;
            let right = self.predicate_of(right)?;
            let deepest = left.depth.max(right.depth);
            left = Read::over(
                Item::And(Box::new((left.chain, right.chain))),
                true,
                deepest,
            )?;
        }
        Ok(left)
    }

    /// What was read must be a predicate; what follows it is where it turned out not to be.
    fn predicate_of(&self, read: Read) -> Result<Read> {
        if read.is_predicate {
            Ok(read)
        } else {
            Err(self.token.syntax_error())
        }
    }
    fn expression_of(&self, read: Read) -> Result<Read> {
        if read.is_predicate {
            Err(self.token.syntax_error())
        } else {
            Ok(read)
        }
    }
    fn expression(&mut self) -> Result<Read> {
        let read = self.sum()?;
        self.expression_of(read)
    }

    /// `(predicate)`
    fn in_parentheses(&mut self) -> Result<Read> {
        self.expect(mark('('))?;
        let inner = self.nested(Self::any)?;
        let inner = self.predicate_of(inner)?;
        self.expect(mark(')'))?;
        Ok(inner)
    }

    fn exists(&mut self) -> Result<Read> {
        self.advance()?;
        self.expect(mark('('))?;
        let inner = self.nested(Self::expression)?;
        self.expect(mark(')'))?;
        Read::over(Item::Exists(inner.chain), true, inner.depth)
    }

    /// A predicate without `&&` and `||`, or an expression.
    fn condition(&mut self) -> Result<Read> {
        if self.accept(Kind::Not)? {
            let inner = match self.token.is_word("exists") {
                true => self.exists()?,
                false => self.in_parentheses()?,
            };
            return Read::over(Item::Not(inner.chain), true, inner.depth);
        }
        if self.token.is_word("exists") {
            return self.exists();
        }
        let left = self.sum()?;
        if left.is_predicate {
            if self.accept_word("is")? {
                self.expect_word("unknown")?;
                return Read::over(Item::IsUnknown(left.chain), true, left.depth);
            }
            return Ok(left);
        }
        if let Some(comparison) = self.comparison()? {
            let right = self.expression()?;
            let deepest = left.depth.max(right.depth);
            let pair = Box::new((left.chain, right.chain));
            return Read::over(Item::Compare(comparison, pair), true, deepest);
        }
        if self.accept_word("starts")? {
            return self.starts_with(left);
        }
        if self.accept_word("like_regex")? {
            return self.like_regex(left);
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Result<Option<Comparison>> {
        let found = match self.token.kind {
            Kind::Equal => Comparison::Equal,
            Kind::NotEqual => Comparison::NotEqual,
            Kind::Less => Comparison::Less,
            Kind::LessEqual => Comparison::LessEqual,
            Kind::Greater => Comparison::Greater,
            Kind::GreaterEqual => Comparison::GreaterEqual,
            _ => return Ok(None),
        };
        self.advance()?;
        Ok(Some(found))
    }

    fn starts_with(&mut self, left: Read) -> Result<Read> {
        self.expect_word("with")?;
        let initial = match self.token.kind {
            Kind::String => Item::String(self.advance()?.text.into()),
            Kind::Variable => Item::Variable(self.advance()?.text.into()),
            _ => return Err(self.token.syntax_error()),
        };
        let pair = Box::new((left.chain, vec![initial]));
        Read::over(Item::StartsWith(pair), true, left.depth)
    }

    fn like_regex(&mut self, left: Read) -> Result<Read> {
        let pattern = self.expect(Kind::String)?.text;
        let flags = match self.accept_word("flag")? {
            true => flags(&self.expect(Kind::String)?.text)?,
            false => Flags::default(),
        };
        // A pattern that is none is refused here and not first where it is used.
        regex::compile(&pattern, flags.options()?)?;
        let item = Item::LikeRegex(Box::new(LikeRegex {
            subject: left.chain,
            pattern: pattern.into(),
            flags,
        }));
        Read::over(item, true, left.depth)
    }

    fn sum(&mut self) -> Result<Read> {
        self.operators(
            &[('+', Arithmetic::Add), ('-', Arithmetic::Subtract)],
            Self::product,
        )
    }
    fn product(&mut self) -> Result<Read> {
        self.operators(
            &[
                ('*', Arithmetic::Multiply),
                ('/', Arithmetic::Divide),
                ('%', Arithmetic::Modulo),
            ],
            Self::signed,
        )
    }
    fn operators(
        &mut self,
        operators: &[(char, Arithmetic)],
        operand: fn(&mut Self) -> Result<Read>,
    ) -> Result<Read> {
        let mut left = operand(self)?;
        while !left.is_predicate {
            let Some((_, operator)) = operators.iter().find(|(c, _)| self.at(mark(*c))) else {
                break;
            };
            self.advance()?;
            let right = operand(self)?;
            let right = self.expression_of(right)?;
            let deepest = left.depth.max(right.depth);
            let pair = Box::new((left.chain, right.chain));
            left = Read::over(Item::Arithmetic(*operator, pair), false, deepest)?;
        }
        Ok(left)
    }

    fn signed(&mut self) -> Result<Read> {
        let sign = match self.token.kind {
            Kind::Mark(b'+') => Sign::Plus,
            Kind::Mark(b'-') => Sign::Minus,
            _ => return self.accessed(),
        };
        self.advance()?;
        let operand = self.nested(Self::signed)?;
        let operand = self.expression_of(operand)?;
        Ok(match (&operand.chain[..], sign) {
            ([Item::Number(_)], Sign::Plus) => operand,
            ([Item::Number(number)], Sign::Minus) => Read::expression(Item::Number(number.neg())),
            _ => Read::over(Item::Sign(sign, operand.chain), false, operand.depth)?,
        })
    }

    fn accessed(&mut self) -> Result<Read> {
        let mut read = if self.accept(mark('('))? {
            let inner = self.nested(Self::any)?;
            self.expect(mark(')'))?;
            inner
        } else {
            Read::expression(self.primary()?)
        };
        while let Some((item, depth)) = self.accessor()? {
            read.chain.push(item);
            read.is_predicate = false;
            read.depth = read.depth.max(depth + 1);
        }
        Ok(read)
    }

    fn number(token: &Token) -> Result<Numeric> {
        crate::io::scalar::parse_numeric(&token.text)
    }

    fn primary(&mut self) -> Result<Item> {
        let item = match self.token.kind {
            Kind::String => Item::String(self.token.text.as_str().into()),
            Kind::Variable => Item::Variable(self.token.text.as_str().into()),
            Kind::Int | Kind::Number => Item::Number(Self::number(&self.token)?),
            Kind::Mark(b'$') => Item::Root,
            Kind::Mark(b'@') => {
                if self.filters == 0 {
                    let message = "@ is not allowed in root expressions";
                    self.misplaced.get_or_insert(message);
                }
                Item::Current
            }
            Kind::Word if self.token.is_word("last") => {
                if !self.in_subscript {
                    let message = "LAST is allowed only in array subscripts";
                    self.misplaced.get_or_insert(message);
                }
                Item::Last
            }
            Kind::Word => match self.token.text.as_str() {
                "null" => Item::Null,
                "true" => Item::Bool(true),
                "false" => Item::Bool(false),
                _ => return Err(self.token.syntax_error()),
            },
            _ => return Err(self.token.syntax_error()),
        };
        self.advance()?;
        Ok(item)
    }

    /// A step and the depth of what is in it; None where there is none.
    fn accessor(&mut self) -> Result<Option<(Item, usize)>> {
        if self.accept(mark('.'))? {
            return self.after_point().map(|item| Some((item, 0)));
        }
        if self.accept(mark('['))? {
            return self.subscripts().map(Some);
        }
        if self.accept(mark('?'))? {
            self.filters += 1;
            let inner = self.in_parentheses()?;
            self.filters -= 1;
            return Ok(Some((Item::Filter(inner.chain), inner.depth)));
        }
        Ok(None)
    }

    fn after_point(&mut self) -> Result<Item> {
        match self.token.kind {
            Kind::Mark(b'*') => {
                self.advance()?;
                Ok(Item::AnyKey)
            }
            Kind::Any => self.any_level(),
            Kind::String => Ok(Item::Key(self.advance()?.text.into())),
            Kind::Word => {
                let name = self.advance()?.text;
                if self.at(mark('(')) {
                    return self.method(&name);
                }
                Ok(Item::Key(name.into()))
            }
            _ => Err(self.token.syntax_error()),
        }
    }

    fn any_level(&mut self) -> Result<Item> {
        self.advance()?;
        if !self.accept(mark('{'))? {
            return Ok(Item::AnyLevel {
                first: 0,
                last: LEAVES,
            });
        }
        let first = self.level()?;
        let last = match self.accept_word("to")? {
            true => self.level()?,
            false => first,
        };
        self.expect(mark('}'))?;
        Ok(Item::AnyLevel { first, last })
    }
    fn level(&mut self) -> Result<u32> {
        if self.accept_word("last")? {
            return Ok(LEAVES);
        }
        let level = self.expect(Kind::Int)?;
        let level: i32 = crate::io::scalar::parse_int(&level.text, oid::INT4)?;
        // There is no minus among these tokens.
        Ok(level.unsigned_abs())
    }

    fn subscripts(&mut self) -> Result<(Item, usize)> {
        if self.accept(mark('*'))? {
            self.expect(mark(']'))?;
            return Ok((Item::AnyElement, 0));
        }
        let around = std::mem::replace(&mut self.in_subscript, true);
        let (mut all, mut deepest) = (Vec::new(), 0);
        loop {
            let from = self.nested(Self::expression)?;
            deepest = deepest.max(from.depth);
            let to = match self.accept_word("to")? {
                true => {
                    let to = self.nested(Self::expression)?;
                    deepest = deepest.max(to.depth);
                    Some(to.chain)
                }
                false => None,
            };
            all.push((from.chain, to));
            if !self.accept(mark(','))? {
                break;
            }
        }
        self.in_subscript = around;
        self.expect(mark(']'))?;
        Ok((Item::Subscripts(all), deepest))
    }

    /// At the parenthesis after a method's name.
    fn method(&mut self, name: &str) -> Result<Item> {
        let Some(method) = named(name) else {
            return Err(self.token.syntax_error());
        };
        self.advance()?;
        let method = match method {
            Method::Decimal(_) => Method::Decimal(self.precision_and_scale()?),
            Method::Datetime(_) => Method::Datetime(match self.at(Kind::String) {
                true => Some(self.advance()?.text.into()),
                false => None,
            }),
            Method::Time(_) => Method::Time(self.precision()?),
            Method::TimeTz(_) => Method::TimeTz(self.precision()?),
            Method::Timestamp(_) => Method::Timestamp(self.precision()?),
            Method::TimestampTz(_) => Method::TimestampTz(self.precision()?),
            plain => plain,
        };
        self.expect(mark(')'))?;
        Ok(Item::Method(method))
    }

    fn precision(&mut self) -> Result<Option<Numeric>> {
        if !self.at(Kind::Int) {
            return Ok(None);
        }
        Self::number(&self.advance()?).map(Some)
    }

    fn precision_and_scale(&mut self) -> Result<Option<(Numeric, Option<Numeric>)>> {
        if self.at(mark(')')) {
            return Ok(None);
        }
        let mut given = Vec::new();
        loop {
            let negative = self.at(mark('-'));
            if negative || self.at(mark('+')) {
                self.advance()?;
            }
            let number = Self::number(&self.expect(Kind::Int)?)?;
            given.push(if negative { number.neg() } else { number });
            if !self.accept(mark(','))? {
                break;
            }
        }
        if given.len() > 2 {
            let detail = ".decimal() can only have an optional precision[,scale].";
            return Err(invalid(detail.into()));
        }
        let mut given = given.into_iter();
        Ok(given.next().map(|precision| (precision, given.next())))
    }
}

/// The method of a name, without arguments.
fn named(name: &str) -> Option<Method> {
    Some(match name.to_ascii_lowercase().as_str() {
        "type" => Method::Type,
        "size" => Method::Size,
        "abs" => Method::Abs,
        "floor" => Method::Floor,
        "ceiling" => Method::Ceiling,
        "double" => Method::Double,
        "keyvalue" => Method::KeyValue,
        "bigint" => Method::Bigint,
        "boolean" => Method::Boolean,
        "integer" => Method::Integer,
        "number" => Method::Number,
        "string" => Method::String,
        "date" => Method::Date,
        "decimal" => Method::Decimal(None),
        "datetime" => Method::Datetime(None),
        "time" => Method::Time(None),
        "time_tz" => Method::TimeTz(None),
        "timestamp" => Method::Timestamp(None),
        "timestamp_tz" => Method::TimestampTz(None),
        _ => return None,
    })
}

fn flags(letters: &str) -> Result<Flags> {
    let mut flags = Flags::default();
    for letter in letters.chars() {
        match letter {
            'i' => flags.ignore_case = true,
            's' => flags.dot_all = true,
            'm' => flags.lines = true,
            'x' => flags.expanded = true,
            'q' => flags.quoted = true,
            other => {
                return Err(invalid(format!(
                    "Unrecognized flag character \"{other}\" in LIKE_REGEX predicate."
                )));
            }
        }
    }
    Ok(flags)
}

impl Flags {
    /// What our expressions call it. 0A000 for what PostgreSQL does not do either.
    pub fn options(self) -> Result<Options> {
        // Of a quoted pattern only case matters.
        if self.expanded && !self.quoted {
            return Err(Error::new(
                state::FEATURE_NOT_SUPPORTED,
                "XQuery \"x\" flag (expanded regular expressions) is not implemented",
            ));
        }
        Ok(Options {
            ignore_case: self.ignore_case,
            newline_stops: !self.dot_all && !self.quoted,
            newline_anchors: self.lines && !self.quoted,
            expanded: false,
            literal: self.quoted,
        })
    }
}
