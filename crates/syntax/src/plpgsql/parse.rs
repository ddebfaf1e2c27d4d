//! Reading a body: tokens, names in sight, texts, and the code that grows.

use throng_types::error::state;
use throng_types::{Error, Oid, Result, SqlType, oid, stack};

use super::code::*;
use crate::parse::lexer::{Kind, Token, error_at, tokenize_body};
use crate::parse::{self, ast};

/// More variables than anybody declares; a slot is 16 bits.
const MOST_VARIABLES: usize = 10_000;

pub type VarType = Held;

/// Who knows types and relations.
pub trait Types {
    /// A type as it is written.
    fn named(&mut self, ty: &ast::TypeName) -> Result<Held>;
    /// `table.column%TYPE`; none where there is no such column.
    fn of_column(&mut self, name: &ast::Name) -> Result<Held>;
    /// `table%ROWTYPE`
    fn of_row(&mut self, name: &ast::Name) -> Result<Held>;
    /// An array of a type.
    fn array_of(&mut self, held: Held) -> Result<Held>;
}

/// What a body is of.
#[derive(Clone, Debug)]
pub struct Signature {
    /// The outermost label; none: DO.
    pub name: Option<String>,
    pub args: Vec<SignatureArg>,
    pub ret: Oid,
    pub set: bool,
    pub procedure: bool,
}

#[derive(Clone, Debug)]
pub struct SignatureArg {
    pub name: String,
    pub held: Held,
    pub input: bool,
    pub output: bool,
}

impl Signature {
    pub fn outputs(&self) -> usize {
        self.args.iter().filter(|a| a.output).count()
    }
    pub fn is_trigger(&self) -> bool {
        self.ret == oid::TRIGGER
    }
}

/// Reads a body. Errors have their places in `text`, in bytes from 1; where they have none, the
/// line is the second of the pair.
pub fn parse_body(
    text: &str,
    signature: &Signature,
    types: &mut dyn Types,
) -> Result<Code, (Error, u32)> {
    let tokens = match tokenize_body(text) {
        Ok(tokens) => tokens,
        Err(e) => return Err((e, 1)),
    };
    let mut parser = Body::new(text, tokens, signature, types);
    match parser.body() {
        Ok(()) => Ok(parser.code),
        Err(e) => {
            let line = parser.line_of(parser.pos());
            Err((e, line))
        }
    }
}

/// What is around the statement in hand.
pub(super) struct Around {
    pub label: Option<String>,
    pub kind: AroundKind,
    /// Jumps to be told where it ends, and where its next turn begins.
    pub exits: Vec<Pc>,
    pub continues: Vec<Pc>,
    /// Where it is left from inside: whether that needs doing is known when its end has been read.
    pub leaves: Vec<Pc>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AroundKind {
    /// Without state of its own, as WHILE.
    Loop,
    /// With values to go through.
    StateLoop,
    Block,
    Handler,
}

impl AroundKind {
    pub fn is_loop(self) -> bool {
        matches!(self, AroundKind::Loop | AroundKind::StateLoop)
    }
}

pub(super) struct Body<'a> {
    pub text: &'a str,
    pub tokens: Vec<Token>,
    pub at: usize,
    pub signature: &'a Signature,
    pub types: &'a mut dyn Types,
    pub code: Code,
    pub scope: usize,
    pub around: Vec<Around>,
    lines: Vec<u32>,
}

impl<'a> Body<'a> {
    fn new(
        text: &'a str,
        tokens: Vec<Token>,
        signature: &'a Signature,
        types: &'a mut dyn Types,
    ) -> Body<'a> {
        let newlines = text.bytes().zip(0u32..).filter(|(b, _)| *b == b'\n');
        Body {
            text,
            tokens,
            at: 0,
            signature,
            types,
            code: Code {
                variables: vec![],
                inputs: vec![],
                outputs: vec![],
                scopes: vec![],
                sources: vec![],
                instrs: vec![],
                special: Special::default(),
                conflict: Conflict::Error,
                print_strict_params: None,
            },
            scope: 0,
            around: vec![],
            lines: newlines.map(|(_, at)| at).collect(),
        }
    }

    fn body(&mut self) -> Result<()> {
        self.outermost_names()?;
        self.options()?;
        let line = self.line();
        self.block_statement()?;
        self.punct(';');
        if !self.at_end() {
            return Err(self.unexpected());
        }
        self.emit(Op::Finish, line, "");
        Ok(())
    }

    /// The arguments, FOUND, and what a trigger's function is told.
    fn outermost_names(&mut self) -> Result<()> {
        self.code.scopes.push(Names {
            label: self.signature.name.clone(),
            ..Names::default()
        });
        for (i, arg) in self.signature.args.iter().enumerate() {
            let number = format!("${}", i + 1);
            let name = match arg.name.as_str() {
                "" => number.clone(),
                name => name.to_owned(),
            };
            let slot = self.variable(&name, arg.held, 0)?;
            self.name_it(&name, slot);
            if name != number {
                self.name_it(&number, slot);
            }
            if arg.input {
                self.code.inputs.push(slot);
            }
            if arg.output {
                self.code.outputs.push(slot);
            }
        }
        let held = |ty: Oid| Held {
            ty: SqlType::plain(ty),
            domain: None,
        };
        if self.signature.is_trigger() {
            let new = self.declared("new", held(oid::RECORD))?;
            let old = self.declared("old", held(oid::RECORD))?;
            let first = self.declared("tg_name", held(oid::NAME))?;
            for (name, ty) in [
                ("tg_when", oid::TEXT),
                ("tg_level", oid::TEXT),
                ("tg_op", oid::TEXT),
                ("tg_relid", oid::OID),
                ("tg_relname", oid::NAME),
                ("tg_table_name", oid::NAME),
                ("tg_table_schema", oid::NAME),
                ("tg_nargs", oid::INT4),
                ("tg_argv", oid::TEXT_ARRAY),
            ] {
                self.declared(name, held(ty))?;
            }
            self.code.special.new = Some(new);
            self.code.special.old = Some(old);
            self.code.special.trigger = Some(first);
        }
        self.code.special.found = self.declared("found", held(oid::BOOL))?;
        Ok(())
    }

    /// `#variable_conflict use_column` and its kin.
    fn options(&mut self) -> Result<()> {
        while self.is_op("#") {
            self.at += 1;
            let Some(word) = self.take_word() else {
                return Err(self.unexpected());
            };
            let Some(value) = self.take_word() else {
                return Err(self.unexpected());
            };
            match (word.as_str(), value.as_str()) {
                ("option", "dump") => {}
                ("variable_conflict", "error") => self.code.conflict = Conflict::Error,
                ("variable_conflict", "use_variable") => {
                    self.code.conflict = Conflict::UseVariable;
                }
                ("variable_conflict", "use_column") => self.code.conflict = Conflict::UseColumn,
                ("print_strict_params", "on") => self.code.print_strict_params = Some(true),
                ("print_strict_params", "off") => self.code.print_strict_params = Some(false),
                _ => {
                    self.at -= 1;
                    return Err(self.unexpected());
                }
            }
        }
        Ok(())
    }

    // Tokens

    pub fn kind(&self) -> &Kind {
        self.kind_at(0)
    }
    pub fn kind_at(&self, ahead: usize) -> &Kind {
        &self.tokens[(self.at + ahead).min(self.tokens.len() - 1)].kind
    }
    pub fn pos(&self) -> u32 {
        self.tokens[self.at.min(self.tokens.len() - 1)].start
    }
    pub fn last_end(&self) -> u32 {
        self.at.checked_sub(1).map_or(0, |i| self.tokens[i].end)
    }
    pub fn at_end(&self) -> bool {
        *self.kind() == Kind::End
    }
    pub fn advance(&mut self) {
        if !self.at_end() {
            self.at += 1;
        }
    }
    pub fn line_of(&self, pos: u32) -> u32 {
        self.lines.partition_point(|at| *at < pos) as u32 + 1
    }
    pub fn line(&self) -> u32 {
        self.line_of(self.pos())
    }
    pub fn token_text(&self) -> &str {
        let token = &self.tokens[self.at.min(self.tokens.len() - 1)];
        let text = self.text.get(token.start as usize..token.end as usize);
        text.unwrap_or_default()
    }

    /// `message` at the next token, as PostgreSQL's parsers say it.
    #[cold]
    pub fn wrong(&self, message: &str) -> Error {
        let message = match self.at_end() {
            true => format!("{message} at end of input"),
            false => format!("{message} at or near \"{}\"", self.token_text()),
        };
        error_at(state::SYNTAX_ERROR, message, self.pos())
    }
    #[cold]
    pub fn unexpected(&self) -> Error {
        self.wrong("syntax error")
    }
    #[cold]
    pub fn error(&self, message: impl Into<String>, pos: u32) -> Error {
        error_at(state::SYNTAX_ERROR, message, pos)
    }

    pub fn is_punct(&self, c: char) -> bool {
        *self.kind() == Kind::Punct(c)
    }
    pub fn punct(&mut self, c: char) -> bool {
        let found = self.is_punct(c);
        if found {
            self.advance();
        }
        found
    }
    pub fn expect(&mut self, c: char) -> Result<()> {
        match self.punct(c) {
            true => Ok(()),
            false => Err(self.unexpected()),
        }
    }
    pub fn is_op(&self, op: &str) -> bool {
        matches!(self.kind(), Kind::Op(o) if o == op)
    }
    pub fn is_at(&self, ahead: usize, word: &str) -> bool {
        matches!(self.kind_at(ahead), Kind::Word(w) if w == word)
    }
    pub fn is(&self, word: &str) -> bool {
        self.is_at(0, word)
    }
    pub fn word(&mut self, word: &str) -> bool {
        let found = self.is(word);
        if found {
            self.advance();
        }
        found
    }
    pub fn keyword(&mut self, word: &str) -> Result<()> {
        match self.word(word) {
            true => Ok(()),
            false => Err(self.unexpected()),
        }
    }
    pub fn take_word(&mut self) -> Option<String> {
        let Kind::Word(word) = self.kind() else {
            return None;
        };
        let word = word.clone();
        self.advance();
        Some(word)
    }
    /// `:=` or `=`
    pub fn is_assign_at(&self, ahead: usize) -> bool {
        match self.kind_at(ahead) {
            Kind::Op(op) => op == "=",
            Kind::Arrow => {
                let token = &self.tokens[(self.at + ahead).min(self.tokens.len() - 1)];
                self.text[token.start as usize..].starts_with(":=")
            }
            _ => false,
        }
    }
    /// The next token as a name, which a reserved word of PL/pgSQL is not.
    pub fn peek_name(&self, ahead: usize) -> Option<&str> {
        match self.kind_at(ahead) {
            Kind::Quoted(name) => Some(name),
            Kind::Word(word) if !is_reserved(word) => Some(word),
            _ => None,
        }
    }
    pub fn name(&mut self) -> Result<String> {
        match self.peek_name(0) {
            Some(name) => {
                let name = name.to_owned();
                self.advance();
                Ok(name)
            }
            None => Err(self.unexpected()),
        }
    }

    /// One level deeper.
    pub fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        stack::check()?;
        f(self)
    }

    // Names

    pub fn variable(&mut self, name: &str, held: Held, line: u32) -> Result<Slot> {
        if self.code.variables.len() >= MOST_VARIABLES {
            let message = "too many variables";
            return Err(Error::new(state::PROGRAM_LIMIT_EXCEEDED, message));
        }
        self.code.variables.push(Variable {
            name: name.to_owned(),
            held,
            constant: false,
            not_null: false,
            line,
            cursor: None,
            any_type: false,
        });
        Ok((self.code.variables.len() - 1) as Slot)
    }
    pub fn name_it(&mut self, name: &str, slot: Slot) {
        let scope = &mut self.code.scopes[self.scope];
        scope.names.push((name.to_owned(), slot));
    }
    fn declared(&mut self, name: &str, held: Held) -> Result<Slot> {
        let slot = self.variable(name, held, 0)?;
        self.name_it(name, slot);
        Ok(slot)
    }
    pub fn open_scope(&mut self, label: Option<String>) -> usize {
        self.code.scopes.push(Names {
            label,
            parent: Some(self.scope),
            names: vec![],
        });
        std::mem::replace(&mut self.scope, self.code.scopes.len() - 1)
    }

    /// The variable that parts of a name begin with, and how many of them name it.
    pub fn find(&self, parts: &[&str]) -> Option<(Slot, usize)> {
        let mut at = Some(self.scope);
        while let Some(scope) = at.map(|at| &self.code.scopes[at]) {
            let named = |name: &str| {
                let mut names = scope.names.iter().rev();
                names.find(|(n, _)| n == name).map(|(_, slot)| *slot)
            };
            let whole = |slot: &Slot| parts.len() == 1 || self.is_row(*slot);
            if let Some(slot) = named(parts[0]).filter(whole) {
                return Some((slot, 1));
            }
            if let [label, name, ..] = parts
                && scope.label.as_deref() == Some(label)
                && let Some(slot) = named(name)
            {
                return Some((slot, 2));
            }
            at = scope.parent;
        }
        None
    }
    /// The dotted name that comes next.
    pub fn dotted(&self) -> Vec<&str> {
        let mut parts = Vec::new();
        let mut ahead = 0;
        while let Kind::Quoted(name) | Kind::Word(name) = self.kind_at(ahead) {
            parts.push(name.as_str());
            if *self.kind_at(ahead + 1) != Kind::Punct('.') {
                break;
            }
            ahead += 2;
        }
        parts
    }
    pub fn known(&self) -> Option<(Slot, usize)> {
        self.peek_name(0)?;
        self.find(&self.dotted())
    }
    pub fn held(&self, slot: Slot) -> Held {
        self.code.variables[usize::from(slot)].held
    }
    /// Whether a variable holds rows.
    pub fn is_row(&self, slot: Slot) -> bool {
        let ty = self.held(slot).ty.oid;
        ty == oid::RECORD || throng_types::sqltype::made::is_composite(ty)
    }

    // Code

    pub fn pc(&self) -> Pc {
        self.code.instrs.len()
    }
    pub fn emit(&mut self, op: Op, line: u32, what: &'static str) -> Pc {
        self.code.instrs.push(Instr { op, line, what });
        self.pc() - 1
    }
    /// Tells a jump where it goes.
    pub fn patch(&mut self, at: Pc, to: Pc) {
        match &mut self.code.instrs[at].op {
            Op::Jump(target) | Op::Unless { to: target, .. } => *target = to,
            _ => {}
        }
    }

    /// Something begins that EXIT or CONTINUE may be about.
    pub fn enter(&mut self, label: Option<String>, kind: AroundKind) {
        self.around.push(Around {
            label,
            kind,
            exits: vec![],
            continues: vec![],
            leaves: vec![],
        });
    }
    /// It ends: what jumped to its end arrives at `end`.
    pub fn leave(&mut self, end: Pc) -> Around {
        let around = self.around.pop();
        let around = around.unwrap_or_else(|| unreachable!("what ends has begun"));
        for at in &around.exits {
            self.patch(*at, end);
        }
        around
    }

    // Texts

    pub fn source(&mut self, text: String, kind: SourceKind) -> SourceId {
        let visible = self.code.scopes[self.scope].names.len();
        self.code.sources.push(Source {
            text,
            kind,
            scope: self.scope,
            visible,
            whole: None,
        });
        self.code.sources.len() - 1
    }

    /// Checks what can be checked of an expression without knowing what it is about.
    pub fn check_expression(&self, text: &str, at: u32) -> Result<()> {
        let select = format!("SELECT {text}");
        let checked = parse::check_statement(&select);
        checked.map_err(|e| shifted(e, at, "SELECT ".len() as u32))
    }
    pub fn check_statement(&self, text: &str, at: u32) -> Result<()> {
        parse::check_statement(text).map_err(|e| shifted(e, at, 0))
    }

    /// The text up to one of these words or signs outside of parentheses, which is left to be
    /// taken; `expected` is what is said to be missing.
    pub fn text_until(
        &mut self,
        expression: bool,
        expected: &str,
        ends: &dyn Fn(&Self) -> bool,
    ) -> Result<(String, u32)> {
        let start = self.pos();
        let first = self.at;
        let mut depth = 0;
        loop {
            if depth == 0 && ends(self) {
                break;
            }
            match self.kind() {
                Kind::Punct('(' | '[') => depth += 1,
                Kind::Punct(')' | ']') => {
                    depth -= 1;
                    if depth < 0 {
                        return Err(self.wrong("mismatched parentheses"));
                    }
                }
                Kind::Punct(';') | Kind::End => {
                    if depth != 0 {
                        return Err(self.wrong("mismatched parentheses"));
                    }
                    let what = match expression {
                        true => "expression",
                        false => "statement",
                    };
                    let message = format!("missing \"{expected}\" at end of SQL {what}");
                    return Err(self.error(message, self.pos()));
                }
                _ => {}
            }
            self.advance();
        }
        if self.at == first {
            return Err(match expression {
                true => self.wrong("missing expression"),
                false => self.wrong("missing SQL statement"),
            });
        }
        let text = &self.text[start as usize..self.last_end() as usize];
        Ok((text.to_owned(), start))
    }

    pub fn expression_until(
        &mut self,
        expected: &str,
        ends: &dyn Fn(&Self) -> bool,
    ) -> Result<SourceId> {
        let (text, at) = self.text_until(true, expected, ends)?;
        self.check_expression(&text, at)?;
        Ok(self.source(text, SourceKind::Expression))
    }
    /// Up to a word, which is taken.
    pub fn expression_before(&mut self, word: &str) -> Result<SourceId> {
        let source = self.expression_until(&word.to_uppercase(), &|b: &Self| b.is(word))?;
        self.advance();
        Ok(source)
    }
    /// Up to a sign, which is taken.
    pub fn expression_to(&mut self, sign: char) -> Result<SourceId> {
        let source = self.expression_until(&sign.to_string(), &|b: &Self| b.is_punct(sign))?;
        self.advance();
        Ok(source)
    }
}

/// An error about a text that stands at `at` of the body and was read with so many characters
/// before it.
pub(super) fn shifted(mut e: Error, at: u32, lead: u32) -> Error {
    let fields = e.fields_mut();
    fields.position = fields
        .position
        .map(|p| (p + at).saturating_sub(lead).max(1));
    e
}

/// Words that are never a variable.
pub(super) fn is_reserved(word: &str) -> bool {
    matches!(
        word,
        "all"
            | "begin"
            | "by"
            | "case"
            | "declare"
            | "else"
            | "end"
            | "execute"
            | "for"
            | "foreach"
            | "from"
            | "if"
            | "in"
            | "into"
            | "loop"
            | "not"
            | "null"
            | "or"
            | "strict"
            | "then"
            | "to"
            | "using"
            | "when"
            | "while"
    )
}
