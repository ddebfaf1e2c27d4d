//! Functions and procedures: CREATE, ALTER, DROP and COMMENT, and how calls name arguments.

use throng_types::{Error, Result};

use super::Parser;
use super::ast::*;
use super::lexer::Kind;
use throng_types::lexical::keyword::{Category, category};

impl Parser<'_> {
    /// From FUNCTION or PROCEDURE on.
    pub(super) fn create_routine(&mut self, or_replace: bool) -> Result<Statement> {
        let kind = match self.word("procedure") {
            true => RoutineKind::Procedure,
            false => {
                self.keyword("function")?;
                RoutineKind::Function
            }
        };
        let name = self.routine_name()?;
        let mut routine = CreateRoutine {
            kind,
            or_replace,
            name,
            args: self.routine_args()?,
            returns: None,
            options: vec![],
            bodies: vec![],
        };
        if kind == RoutineKind::Function && self.is("returns") && !self.is_at(1, "null") {
            self.advance();
            routine.returns = Some(self.returns(&mut routine.args)?);
        }
        loop {
            let pos = self.pos();
            if let Some(body) = self.routine_body()? {
                routine.bodies.push(body);
            } else if let Some(option) = self.routine_option()? {
                routine.options.push((option, pos));
            } else {
                return Ok(Statement::CreateRoutine(Box::new(routine)));
            }
        }
    }

    fn returns(&mut self, args: &mut Vec<RoutineArg>) -> Result<Returns> {
        if !(self.is("table") && self.is_punct_at(1, '(')) {
            return Ok(Returns::Type(self.routine_type()?));
        }
        self.advance();
        let columns = self.parens(|p| {
            p.list(|p| {
                let pos = p.pos();
                let name = Some(p.parameter_name()?);
                Ok(RoutineArg {
                    mode: ArgMode::Table,
                    name,
                    ty: p.routine_type()?,
                    default: None,
                    pos,
                })
            })
        })?;
        args.extend(columns);
        Ok(Returns::Table)
    }

    /// `a`, `s.a`: what a function may be called.
    pub(super) fn routine_name(&mut self) -> Result<Name> {
        let pos = self.pos();
        let mut parts = vec![self.name_of(&[
            Category::Unreserved,
            Category::TypeOrFunction,
            // Of a schema; none of them is a function's that can be made.
            Category::ColumnName,
        ])?];
        while self.punct('.') {
            parts.push(self.label()?);
        }
        self.check_parts(Name { parts, pos })
    }

    pub(super) fn routine_args(&mut self) -> Result<Vec<RoutineArg>> {
        self.expect('(')?;
        let args = match self.is_punct(')') {
            true => vec![],
            false => self.list(Self::routine_arg)?,
        };
        self.expect(')')?;
        Ok(args)
    }

    /// An argument of an aggregate, which has no default.
    pub(super) fn aggregate_arg(&mut self) -> Result<RoutineArg> {
        let arg = self.plain_arg()?;
        match arg.mode {
            ArgMode::Out | ArgMode::InOut => {
                let message = "aggregates cannot have output arguments";
                let code = throng_types::error::state::FEATURE_NOT_SUPPORTED;
                Err(super::error_at(code, message, arg.pos))
            }
            _ => Ok(arg),
        }
    }

    fn routine_arg(&mut self) -> Result<RoutineArg> {
        let mut arg = self.plain_arg()?;
        if self.word("default") || self.op("=") {
            let start = self.pos();
            let expr = self.expr()?;
            arg.default = Some(Source {
                expr,
                text: self.text_from(start),
            });
        }
        Ok(arg)
    }

    /// An argument without its default.
    fn plain_arg(&mut self) -> Result<RoutineArg> {
        let pos = self.pos();
        let mut mode = self.arg_mode();
        let name = match self.parameter_name_ahead() {
            true => Some(self.parameter_name()?),
            false => None,
        };
        if mode.is_none() {
            mode = self.arg_mode();
        }
        Ok(RoutineArg {
            mode: mode.unwrap_or(ArgMode::In),
            name,
            ty: self.routine_type()?,
            default: None,
            pos,
        })
    }

    fn arg_mode(&mut self) -> Option<ArgMode> {
        let mode = match self.peek_word()? {
            "in" if self.is_at(1, "out") => {
                self.advance();
                ArgMode::InOut
            }
            "in" => ArgMode::In,
            "out" => ArgMode::Out,
            "inout" => ArgMode::InOut,
            "variadic" => ArgMode::Variadic,
            _ => return None,
        };
        self.advance();
        Some(mode)
    }

    fn parameter_name(&mut self) -> Result<String> {
        self.name_of(&[Category::Unreserved, Category::TypeOrFunction])
    }

    /// Whether a name comes next and after it a type, and not a type alone.
    fn parameter_name_ahead(&self) -> bool {
        let can_be = match self.kind() {
            Kind::Quoted(_) => true,
            Kind::Word(word) => {
                matches!(
                    category(word),
                    Category::Unreserved | Category::TypeOrFunction
                ) && !(word == "double" && self.is_at(1, "precision"))
            }
            _ => false,
        };
        can_be
            && match self.kind_at(1) {
                Kind::Quoted(_) => true,
                Kind::Word(word) => {
                    matches!(word.as_str(), "in" | "variadic")
                        || category(word) != Category::Reserved
                }
                _ => false,
            }
    }

    fn routine_type(&mut self) -> Result<RoutineType> {
        let start = self.at;
        let setof = self.word("setof");
        if self.is_name()
            && let Ok(column) = self.any_name()
            && self.is_op("%")
            && self.is_at(1, "type")
        {
            self.at += 2;
            return Ok(RoutineType::Column { column, setof });
        }
        self.at = start;
        Ok(RoutineType::Plain(self.type_name()?))
    }

    /// The body, if it comes next.
    fn routine_body(&mut self) -> Result<Option<RoutineBody>> {
        if self.word("as") {
            let (text, at) = self.body_text()?;
            if self.punct(',') {
                self.string()?;
                return Ok(Some(RoutineBody::Symbol));
            }
            return Ok(Some(RoutineBody::Text { text, at }));
        }
        if self.word("return") {
            let start = self.pos();
            let expr = self.expr()?;
            let text = self.text_from(start);
            return Ok(Some(RoutineBody::Return(Source { expr, text })));
        }
        if !self.words(&["begin", "atomic"]) {
            return Ok(None);
        }
        let start = self.pos();
        let mut statements = Vec::new();
        loop {
            while self.punct(';') {}
            if self.is("end") {
                break;
            }
            let from = self.pos();
            let statement = match self.word("return") {
                true => AtomicStatement::Return(self.expr()?),
                false => {
                    let statement = self.statement()?;
                    AtomicStatement::Statement(Parsed {
                        statement,
                        start: from,
                        end: self.last_end(),
                    })
                }
            };
            statements.push(statement);
            self.expect(';')?;
        }
        let text = self.text_from(start);
        self.keyword("end")?;
        Ok(Some(RoutineBody::Atomic { statements, text }))
    }

    fn routine_option(&mut self) -> Result<Option<RoutineOption>> {
        let Some(word) = self.peek_word().map(str::to_string) else {
            return Ok(None);
        };
        let pos = self.pos();
        let start = self.at;
        self.advance();
        let option = match word.as_str() {
            "language" => RoutineOption::Language(self.language()?),
            "immutable" => RoutineOption::Volatility(Volatility::Immutable),
            "stable" => RoutineOption::Volatility(Volatility::Stable),
            "volatile" => RoutineOption::Volatility(Volatility::Volatile),
            "strict" => RoutineOption::Strict(true),
            "called" => {
                self.keywords(&["on", "null", "input"])?;
                RoutineOption::Strict(false)
            }
            "returns" => {
                self.keywords(&["null", "on", "null", "input"])?;
                RoutineOption::Strict(true)
            }
            "external" | "security" => {
                if word == "external" {
                    self.keyword("security")?;
                }
                let definer = self.word("definer");
                if !definer {
                    self.keyword("invoker")?;
                }
                RoutineOption::SecurityDefiner(definer)
            }
            "leakproof" => RoutineOption::Leakproof(true),
            "not" => {
                self.keyword("leakproof")?;
                RoutineOption::Leakproof(false)
            }
            "window" => RoutineOption::Window,
            "parallel" => RoutineOption::Parallel(self.label()?),
            "cost" => RoutineOption::Cost(self.number()?),
            "rows" => RoutineOption::Rows(self.number()?),
            "support" => {
                self.any_name()?;
                RoutineOption::Support
            }
            "transform" => {
                self.skip_unsupported("TRANSFORM");
                RoutineOption::Transform
            }
            "set" => match self.set_rest(false)? {
                Statement::Set { name, value, .. } => RoutineOption::Set {
                    name: Some(name),
                    value,
                },
                Statement::SetRole { role, .. } => RoutineOption::Set {
                    name: Some("role".to_owned()),
                    value: role.unwrap_or_else(|| "none".to_owned()).into(),
                },
                _ => return Err(self.unsupported("this SET of a function", pos)),
            },
            "reset" => RoutineOption::Set {
                name: match self.word("all") {
                    true => None,
                    false => Some(self.setting_name()?),
                },
                value: SetTo::Default,
            },
            _ => {
                self.at = start;
                return Ok(None);
            }
        };
        Ok(Some(option))
    }

    fn language(&mut self) -> Result<String> {
        match self.kind() {
            Kind::Text(_) => self.string(),
            _ => self.label(),
        }
    }

    fn number(&mut self) -> Result<f64> {
        let minus = self.op("-");
        let text = match self.kind() {
            Kind::Integer(digits) | Kind::Decimal(digits) => digits.clone(),
            _ => return Err(self.unexpected()),
        };
        let value: f64 = text.parse().map_err(|_| self.unexpected())?;
        self.advance();
        Ok(if minus { -value } else { value })
    }

    pub(super) fn routine_word(word: &str) -> RoutineWord {
        match word {
            "procedure" => RoutineWord::Procedure,
            "routine" => RoutineWord::Routine,
            "aggregate" => RoutineWord::Aggregate,
            _ => RoutineWord::Function,
        }
    }

    /// `f`, `f(int, OUT text)`
    pub(super) fn routine_with_args(&mut self) -> Result<RoutineName> {
        let name = self.routine_name()?;
        let args = match self.is_punct('(') {
            true => Some(self.routine_args()?),
            false => None,
        };
        Ok(RoutineName { name, args })
    }

    /// What follows the word for a routine.
    fn named_routine(&mut self, word: &str) -> Result<RoutineName> {
        match word {
            "aggregate" => self.aggregate_with_args(),
            _ => self.routine_with_args(),
        }
    }

    /// From FUNCTION, PROCEDURE, ROUTINE or AGGREGATE on.
    pub(super) fn alter_routine(&mut self, word: &str) -> Result<Statement> {
        self.advance();
        let routine = self.named_routine(word)?;
        let is_object = self.any_of(&["rename", "owner"])
            || self.is("set") && self.is_at(1, "schema") && !self.is_at(2, "to");
        if self.is("depends") || self.is("no") {
            return Ok(self.skip_unsupported("DEPENDS ON EXTENSION"));
        }
        let change = match is_object {
            true => RoutineChange::Object(self.object_change()?),
            false => {
                let mut options = Vec::new();
                let mut pos = self.pos();
                while let Some(option) = self.routine_option()? {
                    options.push((option, pos));
                    pos = self.pos();
                }
                if options.is_empty() {
                    return Err(self.unexpected());
                }
                self.word("restrict");
                RoutineChange::Options(options)
            }
        };
        Ok(Statement::AlterRoutine {
            word: Self::routine_word(word),
            routine,
            change,
        })
    }

    /// After FUNCTION, PROCEDURE, ROUTINE or AGGREGATE.
    pub(super) fn drop_routine(&mut self, word: &str) -> Result<Statement> {
        let if_exists = self.if_exists();
        let routines = self.list(|p| p.named_routine(word))?;
        let cascade = self.cascade();
        Ok(Statement::DropRoutine {
            word: Self::routine_word(word),
            routines,
            if_exists,
            cascade,
        })
    }

    /// From FUNCTION, PROCEDURE, ROUTINE or AGGREGATE on.
    pub(super) fn comment_on_routine(&mut self, word: &str) -> Result<Statement> {
        self.advance();
        let routine = self.named_routine(word)?;
        self.keyword("is")?;
        let text = match self.word("null") {
            true => None,
            false => Some(self.string()?),
        };
        Ok(Statement::CommentRoutine {
            word: Self::routine_word(word),
            routine,
            text,
        })
    }

    /// After DO.
    pub(super) fn do_statement(&mut self) -> Result<Statement> {
        let (mut body, mut language) = (None, None);
        loop {
            let is_text = matches!(self.kind(), Kind::Text(_));
            let again = if is_text {
                let text = self.body_text()?;
                body.replace(text).is_some()
            } else if self.word("language") {
                let name = self.language()?;
                language.replace(name).is_some()
            } else {
                break;
            };
            if again {
                return Err(self.error("conflicting or redundant options", self.pos()));
            }
        }
        if body.is_none() && language.is_none() {
            return Err(self.unexpected());
        }
        let Some((text, at)) = body else {
            return Err(Error::new(
                throng_types::error::state::SYNTAX_ERROR,
                "no inline code specified",
            ));
        };
        Ok(Statement::Do(DoBlock { text, at, language }))
    }

    /// A body's text, and where it begins, if its characters are those of the statement.
    fn body_text(&mut self) -> Result<(String, Option<Pos>)> {
        let token = &self.tokens[self.at];
        let (start, end) = (token.start as usize, token.end as usize);
        let text = self.string()?;
        let written = &self.sql[start..end];
        let quotes = match written.as_bytes().first() {
            Some(b'$') => written[1..].find('$').map(|i| i + 2),
            Some(b'\'') if text.len() + 2 == written.len() => Some(1),
            _ => None,
        };
        Ok((text, quotes.map(|quotes| (start + quotes) as Pos)))
    }

    /// After CALL.
    pub(super) fn call_statement(&mut self) -> Result<Statement> {
        let name = self.routine_name()?;
        let call = self.call(name)?;
        match call.node {
            Node::Call(written) => Ok(Statement::Call(written, call.pos)),
            _ => Err(self.unexpected()),
        }
    }

    /// `name =>` before an argument.
    pub(super) fn argument_name(&mut self) -> Result<Option<String>> {
        if *self.kind_at(1) != Kind::Arrow {
            return Ok(None);
        }
        let name = self.parameter_name()?;
        self.advance();
        Ok(Some(name))
    }

    /// What follows a function in FROM: its alias, and the columns of its records where they are
    /// defined.
    pub(super) fn function_alias(&mut self) -> Result<(Option<Alias>, Vec<ColumnDefinition>)> {
        let start = self.at;
        let with_as = self.word("as");
        let name = match self.is_punct('(') {
            true if with_as => None,
            true => return Ok((None, vec![])),
            false => {
                self.at = start;
                let named = with_as || self.is_name() && !self.any_of(&["nowait"]);
                if !named {
                    return Ok((None, vec![]));
                }
                self.word("as");
                Some(self.name()?)
            }
        };
        let defines = self.is_punct('(')
            && matches!(self.kind_at(1), Kind::Word(_) | Kind::Quoted(_))
            && matches!(self.kind_at(2), Kind::Word(_) | Kind::Quoted(_));
        if !defines {
            // Only names of columns, as after anything in FROM.
            self.at = start;
            return Ok((self.alias()?, vec![]));
        }
        let definition = self.column_definitions()?;
        let alias = name.map(|name| Alias {
            name,
            columns: vec![],
        });
        Ok((alias, definition))
    }

    pub(super) fn column_definitions(&mut self) -> Result<Vec<ColumnDefinition>> {
        self.parens(|p| {
            p.list(|p| {
                let name = p.name()?;
                let ty = p.type_name()?;
                if p.word("collate") {
                    p.any_name()?;
                }
                Ok(ColumnDefinition { name, ty })
            })
        })
    }
}

/// The statements of a body, in `text`, with their places in it.
pub fn routine_statements(text: &str) -> Result<Vec<AtomicStatement>> {
    let mut parser = Parser::new(text)?;
    let mut statements = Vec::new();
    loop {
        while parser.punct(';') {}
        if parser.at_end() {
            return Ok(statements);
        }
        let start = parser.pos();
        statements.push(match parser.word("return") {
            true => AtomicStatement::Return(parser.expr()?),
            false => {
                let statement = parser.statement()?;
                AtomicStatement::Statement(Parsed {
                    statement,
                    start,
                    end: parser.last_end(),
                })
            }
        });
        if !parser.at_end() && !parser.is_punct(';') {
            return Err(parser.unexpected());
        }
    }
}
