//! SQL text to statements.
//!
//! A recursive-descent parser over PostgreSQL's grammar, expressions by precedence climbing.
//! It is our own because what has to come out is PostgreSQL's: the same texts accepted and
//! refused, errors that name the same token at the same place, offsets for every operator and
//! name, and a bound on nesting instead of a stack overflow.
//!
//! What it promises: any text whatever gives statements or an error, in time linear in the text
//! (but for a few bounded look-aheads), with nesting that the thread's stack bounds ([`stack`]).

pub mod ast;
mod ast_constraint;
mod ast_write;
mod call;
mod column;
mod constraint;
mod copy;
mod database;
mod ddl;
mod define;
mod dml;
mod domain;
mod drop_absent;
mod expr;
mod extension;
mod grant;
mod index;
pub mod json;
mod key;
pub mod lexer;
mod long_name;
mod maintain;
mod matview;
mod merge;
pub mod partition;
mod policy;
mod query;
mod recursion;
mod routine;
mod table;
mod trigger;
mod types;
mod utility;
mod view;
pub mod walk;
mod window;
mod xml;

use throng_types::error::state;
use throng_types::lexical::is_space;
use throng_types::lexical::keyword::{Category, category};
use throng_types::{Error, Result, interrupt, stack};

use ast::{Name, Parsed, Pos, Statement};
pub use expr::new_call;
use lexer::{Kind, Token};
pub use lexer::{error_at, truncate_name};
pub use long_name::cut_names;
pub use routine::routine_statements;
pub use utility::option_is_on;

/// All statements of a text, empty ones left out.
///
/// Errors: 42601 with the position as a character number, 54001 for nesting too deep.
pub fn parse(sql: &str) -> Result<Vec<Parsed>> {
    parse_tokens(sql).map_err(|e| locate(e, sql))
}

fn parse_tokens(sql: &str) -> Result<Vec<Parsed>> {
    let mut parser = Parser::new(sql)?;
    let mut statements = Vec::new();
    loop {
        while parser.punct(';') {}
        if parser.at_end() {
            return Ok(statements);
        }
        let start = parser.pos();
        let statement = parser.statement()?;
        let statement = parser.with_into(statement)?;
        let end = parser.last_end();
        if !parser.at_end() && !parser.is_punct(';') {
            return Err(parser.unexpected());
        }
        statements.push(Parsed {
            statement,
            start,
            end,
        });
    }
}

/// Parses one expression, such as a stored default.
pub fn parse_expr(sql: &str) -> Result<ast::Expr> {
    let mut parser = Parser::new(sql)?;
    let expr = parser.expr()?;
    match parser.at_end() {
        true => Ok(expr),
        false => Err(parser.unexpected()),
    }
}

/// Reads one statement and says what is wrong with it; places are byte offsets.
pub fn check_statement(sql: &str) -> Result<()> {
    parsed_statement(sql).map(|_| ())
}

/// One statement; places in errors are byte offsets.
pub fn parsed_statement(sql: &str) -> Result<Statement> {
    let mut parser = Parser::new(sql)?;
    let statement = parser.statement()?;
    let statement = parser.with_into(statement)?;
    match parser.at_end() {
        true => Ok(statement),
        false => Err(parser.unexpected()),
    }
}

/// Parses `[1].f`, parts of a value.
pub fn parse_parts(sql: &str) -> Result<Vec<ast::TargetPart>> {
    let mut parser = Parser::new(sql)?;
    let parts = parser.parts()?;
    match parser.at_end() {
        true => Ok(parts),
        false => Err(parser.unexpected()),
    }
}

/// Parses a type's name, as in `'numeric(10,2)'::regtype`.
pub fn parse_type(sql: &str) -> Result<ast::TypeName> {
    let mut parser = Parser::new(sql)?;
    let ty = parser.type_name()?;
    match parser.at_end() {
        true => Ok(ty),
        false => Err(parser.unexpected()),
    }
}

/// Parses a possibly qualified name, as in `'public.t'::regclass`. Any word is a name there, `3`
/// and `select` too.
pub fn parse_name(text: &str) -> Result<Name> {
    let invalid = || Error::new(state::INVALID_NAME, "invalid name syntax");
    let (mut parts, mut rest) = (Vec::new(), text);
    loop {
        let (part, after) = name_part(rest.trim_start_matches(is_space)).ok_or_else(invalid)?;
        parts.push(lexer::truncate_name(part));
        rest = after.trim_start_matches(is_space);
        match rest.strip_prefix('.') {
            Some(more) => rest = more,
            None if rest.is_empty() => break,
            None => return Err(invalid()),
        }
    }
    if parts.len() > 3 {
        let message = format!("improper relation name (too many dotted names): {text}");
        return Err(Error::new(state::SYNTAX_ERROR, message));
    }
    Ok(Name { parts, pos: 0 })
}

/// The word or quoted name that a text begins with, and what follows.
fn name_part(text: &str) -> Option<(String, &str)> {
    let Some(mut rest) = text.strip_prefix('"') else {
        let end = text.find(|c| c == '.' || is_space(c)).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        return (end > 0).then(|| (word.to_ascii_lowercase(), rest));
    };
    let mut name = String::new();
    loop {
        let (piece, after) = rest.split_once('"')?;
        name.push_str(piece);
        let Some(more) = after.strip_prefix('"') else {
            return Some((name, after));
        };
        name.push('"');
        rest = more;
    }
}

/// A token of a text, for changing names in it.
pub struct Symbol<'a> {
    /// As written.
    pub text: &'a str,
    /// The identifier it is, folded; none for keywords that cannot be names and for the rest.
    pub name: Option<String>,
    pub start: usize,
    pub end: usize,
}

/// The tokens of a text.
pub fn symbols(sql: &str) -> Result<Vec<Symbol<'_>>> {
    let tokens = lexer::tokenize(sql)?;
    let symbol = |token: Token| {
        let (start, end) = (token.start as usize, token.end as usize);
        let name = match token.kind {
            Kind::Quoted(name) => Some(name),
            Kind::Word(word) if category(&word) != Category::Reserved => Some(word),
            _ => None,
        };
        Symbol {
            text: &sql[start..end],
            name,
            start,
            end,
        }
    };
    Ok(tokens
        .into_iter()
        .filter(|t| t.kind != Kind::End)
        .map(symbol)
        .collect())
}

/// Positions in errors are made with byte offsets; clients count characters.
pub fn locate(mut error: Error, sql: &str) -> Error {
    if let Some(position) = error.fields().position {
        let offset = (position as usize - 1).min(sql.len());
        let end = (0..=offset)
            .rev()
            .find(|&i| sql.is_char_boundary(i))
            .unwrap_or(0);
        error.fields_mut().position = Some(sql[..end].chars().count() as u32 + 1);
    }
    error
}

struct Parser<'a> {
    sql: &'a str,
    tokens: Vec<Token>,
    at: usize,
    depth: u32,
    /// Links of the chains around the place in hand, and how many there may be.
    links: usize,
    most_links: usize,
    /// In a `b_expr`, outside of what is enclosed in it: COLLATE is not the expression's.
    restricted: bool,
    /// The INTO of the SELECT that was read, and where it was.
    into: Option<(ast::CreateTable, Pos)>,
}

impl<'a> Parser<'a> {
    fn new(sql: &'a str) -> Result<Parser<'a>> {
        Ok(Parser {
            sql,
            tokens: lexer::tokenize(sql)?,
            at: 0,
            depth: 0,
            links: 0,
            most_links: stack::longest_chain(),
            restricted: false,
            into: None,
        })
    }

    fn kind(&self) -> &Kind {
        &self.tokens[self.at].kind
    }
    fn kind_at(&self, ahead: usize) -> &Kind {
        &self.tokens[(self.at + ahead).min(self.tokens.len() - 1)].kind
    }
    /// Where the next token begins.
    fn pos(&self) -> Pos {
        self.tokens[self.at].start
    }
    /// Where the last token taken ended.
    fn last_end(&self) -> Pos {
        self.at.checked_sub(1).map_or(0, |i| self.tokens[i].end)
    }
    fn at_end(&self) -> bool {
        *self.kind() == Kind::End
    }
    fn advance(&mut self) {
        if !self.at_end() {
            self.at += 1;
        }
    }

    /// The error PostgreSQL gives for the next token.
    #[cold]
    fn unexpected(&self) -> Error {
        let token = &self.tokens[self.at];
        let message = match token.kind {
            Kind::End => "syntax error at end of input".to_string(),
            _ => {
                let text = &self.sql[token.start as usize..token.end as usize];
                format!("syntax error at or near \"{text}\"")
            }
        };
        error_at(state::SYNTAX_ERROR, message, token.start)
    }
    #[cold]
    fn error(&self, message: impl Into<String>, at: Pos) -> Error {
        error_at(state::SYNTAX_ERROR, message, at)
    }
    #[cold]
    fn unsupported(&self, what: &str, at: Pos) -> Error {
        Error::unsupported(what).position(at + 1)
    }

    /// Runs `f` one level deeper; 54001 where that is too deep.
    fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        stack::check()?;
        interrupt::poll()?;
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    /// A chain that nests to its left gets another link; 54001 where it has too many. It is read by
    /// a loop, but walked deep.
    fn link(&mut self) -> Result<()> {
        self.links += 1;
        match self.links > self.most_links {
            true => Err(stack::exceeded()),
            false => Ok(()),
        }
    }

    fn is_punct(&self, c: char) -> bool {
        matches!(self.kind(), Kind::Punct(p) if *p == c)
    }
    fn is_punct_at(&self, ahead: usize, c: char) -> bool {
        matches!(self.kind_at(ahead), Kind::Punct(p) if *p == c)
    }
    fn punct(&mut self, c: char) -> bool {
        let found = self.is_punct(c);
        if found {
            self.advance();
        }
        found
    }
    fn expect(&mut self, c: char) -> Result<()> {
        if self.punct(c) {
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }
    fn is_op(&self, op: &str) -> bool {
        matches!(self.kind(), Kind::Op(o) if o == op)
    }
    fn op(&mut self, op: &str) -> bool {
        let found = self.is_op(op);
        if found {
            self.advance();
        }
        found
    }

    /// Whether the next token is this keyword (in lower case).
    fn is(&self, word: &str) -> bool {
        self.is_at(0, word)
    }
    fn is_at(&self, ahead: usize, word: &str) -> bool {
        matches!(self.kind_at(ahead), Kind::Word(w) if w == word)
    }
    fn any_of(&self, words: &[&str]) -> bool {
        matches!(self.kind(), Kind::Word(w) if words.contains(&w.as_str()))
    }
    /// Takes the keyword if it is next.
    fn word(&mut self, word: &str) -> bool {
        let found = self.is(word);
        if found {
            self.advance();
        }
        found
    }
    /// Takes all of the keywords if they are next, or none.
    fn words(&mut self, words: &[&str]) -> bool {
        let found = words.iter().enumerate().all(|(i, w)| self.is_at(i, w));
        if found {
            self.at += words.len();
        }
        found
    }
    fn keyword(&mut self, word: &str) -> Result<()> {
        if self.word(word) {
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }
    fn keywords(&mut self, words: &[&str]) -> Result<()> {
        words.iter().try_for_each(|w| self.keyword(w))
    }
    /// The next token as a word of any category.
    fn peek_word(&self) -> Option<&str> {
        match self.kind() {
            Kind::Word(w) => Some(w),
            _ => None,
        }
    }

    /// Takes a name of one of these categories; quoted ones always are.
    fn name_of(&mut self, allowed: &[Category]) -> Result<String> {
        let name = match self.kind() {
            Kind::Quoted(name) => name.clone(),
            Kind::Word(word) if allowed.contains(&category(word)) => word.clone(),
            _ => return Err(self.unexpected()),
        };
        self.advance();
        Ok(name)
    }
    /// A table's, column's or alias's name.
    fn name(&mut self) -> Result<String> {
        self.name_of(&[Category::Unreserved, Category::ColumnName])
    }
    fn is_name(&self) -> bool {
        match self.kind() {
            Kind::Quoted(_) => true,
            Kind::Word(w) => {
                matches!(category(w), Category::Unreserved | Category::ColumnName)
            }
            _ => false,
        }
    }
    /// A label after AS or a dot: any word.
    fn label(&mut self) -> Result<String> {
        self.name_of(&[
            Category::Unreserved,
            Category::ColumnName,
            Category::TypeOrFunction,
            Category::Reserved,
        ])
    }
    fn name_pos(&mut self) -> Result<(String, Pos)> {
        let pos = self.pos();
        Ok((self.name()?, pos))
    }
    /// `a`, `a.b` or `a.b.c`.
    fn any_name(&mut self) -> Result<Name> {
        let pos = self.pos();
        let mut parts = vec![self.name()?];
        while self.punct('.') {
            parts.push(self.label()?);
        }
        self.check_parts(Name { parts, pos })
    }
    fn check_parts(&self, name: Name) -> Result<Name> {
        if name.parts.len() > 3 {
            let message = format!("improper qualified name (too many dotted names): {name}");
            return Err(self.error(message, name.pos));
        }
        Ok(name)
    }

    /// `item, item, …`
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.punct(',') {
            items.push(item(self)?);
        }
        Ok(items)
    }
    fn parens<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.expect('(')?;
        let value = inner(self)?;
        self.expect(')')?;
        Ok(value)
    }
    fn name_list(&mut self) -> Result<Vec<String>> {
        self.parens(|p| p.list(Self::name))
    }
    fn string(&mut self) -> Result<String> {
        match self.kind() {
            Kind::Text(text) => {
                let text = text.clone();
                self.advance();
                Ok(text)
            }
            _ => Err(self.unexpected()),
        }
    }
    /// A signed integer constant.
    fn integer(&mut self) -> Result<i64> {
        let pos = self.pos();
        let minus = self.op("-");
        if !minus {
            self.op("+");
        }
        let digits = match self.kind() {
            Kind::Integer(digits) => digits.clone(),
            _ => return Err(self.unexpected()),
        };
        self.advance();
        let text = if minus { format!("-{digits}") } else { digits };
        text.parse().map_err(|_| {
            let message = format!("value \"{text}\" is out of range for type bigint");
            error_at(state::NUMERIC_VALUE_OUT_OF_RANGE, message, pos)
        })
    }
    /// The text from `start` to the last token taken.
    fn text_from(&self, start: Pos) -> String {
        let taken = self.sql.get(start as usize..self.last_end() as usize);
        taken.unwrap_or_default().to_string()
    }
    fn if_not_exists(&mut self) -> bool {
        self.words(&["if", "not", "exists"])
    }
    fn if_exists(&mut self) -> bool {
        self.words(&["if", "exists"])
    }
    /// CASCADE or RESTRICT; whether the former.
    fn cascade(&mut self) -> bool {
        self.word("cascade") || {
            self.word("restrict");
            false
        }
    }

    fn statement(&mut self) -> Result<Statement> {
        let query = self.is_punct('(') || self.any_of(&["select", "values", "table", "with"]);
        if query {
            return self.data_statement();
        }
        let Some(word) = self.peek_word().map(str::to_string) else {
            return Err(self.unexpected());
        };
        match word.as_str() {
            "insert" | "update" | "delete" | "merge" => self.data_statement(),
            "explain" => self.explain(),
            "create" => self.create(),
            "alter" => self.alter(),
            "drop" => self.drop_statement(),
            "truncate" => self.truncate(),
            "comment" => self.comment(),
            "copy" => self.copy(),
            "grant" | "revoke" => self.grant(),
            _ => self.utility(&word),
        }
    }

    /// SELECT, INSERT, UPDATE, DELETE or MERGE, with its WITH.
    fn data_statement(&mut self) -> Result<Statement> {
        let start = self.pos();
        let (with, recursive) = self.with_clause()?;
        match self.peek_word() {
            Some("insert") => self.insert(with, recursive),
            Some("update") => self.update(with, recursive),
            Some("delete") => self.delete(with, recursive),
            Some("merge") => self.merge(with, recursive),
            _ => {
                let mut query = self.query_without_with()?;
                query.pos = start;
                if query.with.is_empty() {
                    query.with = with;
                    query.recursive = recursive;
                }
                Ok(Statement::Query(Box::new(query)))
            }
        }
    }
}

#[cfg(test)]
mod tests;
