//! Aggregates, operators and casts: CREATE, ALTER, DROP and COMMENT.

use throng_types::Result;

use super::Parser;
use super::ast::*;
use super::expr::level;
use super::lexer::Kind;
use throng_types::lexical::keyword::{Category, category};

impl Parser<'_> {
    /// From AGGREGATE on.
    pub(super) fn create_aggregate(&mut self, or_replace: bool) -> Result<Statement> {
        self.advance();
        let name = self.routine_name()?;
        let old = self.is_punct('(')
            && matches!(self.kind_at(1), Kind::Word(_) | Kind::Quoted(_))
            && matches!(self.kind_at(2), Kind::Op(op) if op == "=");
        let args = match old {
            true => None,
            false => Some(self.aggregate_args()?),
        };
        Ok(define(Define::CreateAggregate(CreateAggregate {
            or_replace,
            name,
            args,
            items: self.definition()?,
        })))
    }

    fn aggregate_args(&mut self) -> Result<AggregateArgs> {
        self.parens(|p| {
            if p.op("*") {
                return Ok(AggregateArgs {
                    direct: vec![],
                    ordered: None,
                });
            }
            let direct = match p.is("order") {
                true => vec![],
                false => p.list(Self::aggregate_arg)?,
            };
            let ordered = match p.words(&["order", "by"]) {
                true => Some(p.list(Self::aggregate_arg)?),
                false => None,
            };
            let pos = p.pos();
            let repeated = |args: &[RoutineArg]| {
                let last = args.last();
                last.filter(|arg| arg.mode == ArgMode::Variadic).cloned()
            };
            if let (Some(one), Some(many)) = (repeated(&direct), &ordered) {
                let same = |arg: &RoutineArg| arg.mode == one.mode && arg.ty == one.ty;
                // Names and places may differ; types are compared without places.
                let alike = matches!(&many[..], [arg] if same(arg) || shown(arg) == shown(&one));
                if !alike {
                    let message = "an ordered-set aggregate with a VARIADIC direct argument must \
                                   have one VARIADIC aggregated argument of the same data type";
                    return Err(super::error_at(
                        throng_types::error::state::FEATURE_NOT_SUPPORTED,
                        message,
                        pos,
                    ));
                }
            }
            Ok(AggregateArgs { direct, ordered })
        })
    }

    /// `(*)`: an aggregate of no arguments; None where there are none.
    pub(super) fn aggregate_with_args(&mut self) -> Result<RoutineName> {
        let name = self.routine_name()?;
        let args = Some(self.aggregate_args()?.into_all());
        Ok(RoutineName { name, args })
    }

    /// `(name = value, …)`
    pub(super) fn definition(&mut self) -> Result<Vec<DefinitionItem>> {
        self.parens(|p| p.list(Self::definition_item))
    }

    fn definition_item(&mut self) -> Result<DefinitionItem> {
        let pos = self.pos();
        let name = self.label()?;
        let value = match self.op("=") {
            true => Some(self.definition_value()?),
            false => None,
        };
        Ok(DefinitionItem { name, value, pos })
    }

    fn definition_value(&mut self) -> Result<DefinitionValue> {
        Ok(match self.kind().clone() {
            Kind::Text(_) => DefinitionValue::Text(self.string()?),
            Kind::Integer(digits) | Kind::Decimal(digits) => {
                self.advance();
                DefinitionValue::Number(digits)
            }
            Kind::Op(op)
                if (op == "-" || op == "+")
                    && matches!(self.kind_at(1), Kind::Integer(_) | Kind::Decimal(_)) =>
            {
                self.advance();
                let (Kind::Integer(digits) | Kind::Decimal(digits)) = self.kind().clone() else {
                    return Err(self.unexpected());
                };
                self.advance();
                let sign = if op == "-" { "-" } else { "" };
                DefinitionValue::Number(format!("{sign}{digits}"))
            }
            Kind::Op(_) => DefinitionValue::Operator(self.operator()?),
            Kind::Word(word) if word == "operator" && self.is_punct_at(1, '(') => {
                DefinitionValue::Operator(self.operator()?)
            }
            Kind::Word(word) if word == "none" || category(&word) == Category::Reserved => {
                self.advance();
                DefinitionValue::Word(word)
            }
            _ => DefinitionValue::Type(self.type_name()?),
        })
    }

    /// From OPERATOR on.
    pub(super) fn create_operator(&mut self) -> Result<Statement> {
        self.advance();
        if self.any_of(&["class", "family"]) && !self.is_punct_at(1, '.') {
            return Ok(self.skip_unsupported(match self.is("class") {
                true => "CREATE OPERATOR CLASS",
                false => "CREATE OPERATOR FAMILY",
            }));
        }
        let name = self.qualified_operator()?;
        let items = self.definition()?;
        Ok(define(Define::CreateOperator { name, items }))
    }

    /// An operator before its only operand.
    pub(super) fn prefix_operator(&mut self) -> Result<Expr> {
        let op = self.operator()?;
        let pos = op.pos;
        let arg = Box::new(self.expr_at(level::ADD)?);
        let node = Node::Unary { op, arg };
        Ok(Expr { node, pos })
    }

    /// `schema.<<`
    fn qualified_operator(&mut self) -> Result<Operator> {
        let pos = self.pos();
        let mut schema = None;
        while matches!(self.kind(), Kind::Word(_) | Kind::Quoted(_)) {
            schema = Some(self.name()?);
            self.expect('.')?;
        }
        Ok(Operator {
            schema,
            name: self.op_name()?,
            pos,
        })
    }

    /// `schema.<<(int, none)`
    pub(super) fn operator_with_args(&mut self) -> Result<OperatorName> {
        let name = self.qualified_operator()?;
        let mut end = self.pos();
        let mut types = self.parens(|p| {
            let types = p.list(|p| match p.word("none") {
                true => Ok(None),
                false => p.type_name().map(Some),
            });
            end = p.pos();
            types
        })?;
        match types.len() {
            2 => {
                let right = types.pop().flatten();
                let left = types.pop().flatten();
                Ok(OperatorName { name, left, right })
            }
            _ => Err(self
                .error("missing argument", end)
                .hint("Use NONE to denote the missing argument of a unary operator.")),
        }
    }

    /// From OPERATOR on.
    pub(super) fn alter_operator(&mut self) -> Result<Statement> {
        self.advance();
        if self.any_of(&["class", "family"]) && !self.is_punct_at(1, '.') {
            return Ok(self.skip_unsupported("ALTER OPERATOR CLASS or FAMILY"));
        }
        let operator = self.operator_with_args()?;
        let sets = self.is("set") && self.is_punct_at(1, '(');
        let change = match sets {
            true => {
                self.advance();
                OperatorChange::Set(self.definition()?)
            }
            false => OperatorChange::Object(self.object_change()?),
        };
        Ok(define(Define::AlterOperator { operator, change }))
    }

    /// After DROP OPERATOR.
    pub(super) fn drop_operators(&mut self) -> Result<Statement> {
        let if_exists = self.if_exists();
        let operators = self.list(Self::operator_with_args)?;
        let cascade = self.cascade();
        Ok(define(Define::DropOperators {
            operators,
            if_exists,
            cascade,
        }))
    }

    /// After COMMENT ON OPERATOR.
    pub(super) fn comment_on_operator(&mut self) -> Result<Statement> {
        let operator = self.operator_with_args()?;
        let text = self.comment_text()?;
        Ok(define(Define::CommentOperator { operator, text }))
    }

    fn comment_text(&mut self) -> Result<Option<String>> {
        self.keyword("is")?;
        match self.word("null") {
            true => Ok(None),
            false => self.string().map(Some),
        }
    }

    fn cast_name(&mut self) -> Result<CastName> {
        self.parens(|p| {
            let from = p.type_name()?;
            p.keyword("as")?;
            Ok(CastName {
                from,
                to: p.type_name()?,
            })
        })
    }

    /// From CAST on.
    pub(super) fn create_cast(&mut self) -> Result<Statement> {
        self.advance();
        let cast = self.cast_name()?;
        let method = if self.words(&["without", "function"]) {
            CastDefinition::WithoutFunction
        } else {
            self.keyword("with")?;
            match self.word("inout") {
                true => CastDefinition::InOut,
                false => {
                    self.keyword("function")?;
                    CastDefinition::Function(self.routine_with_args()?)
                }
            }
        };
        let context = match self.word("as") {
            false => CastWhere::Explicit,
            true if self.word("implicit") => CastWhere::Implicit,
            true => {
                self.keyword("assignment")?;
                CastWhere::Assignment
            }
        };
        Ok(define(Define::CreateCast(CreateCast {
            cast,
            method,
            context,
        })))
    }

    /// After DROP CAST.
    pub(super) fn drop_cast(&mut self) -> Result<Statement> {
        let if_exists = self.if_exists();
        let cast = self.cast_name()?;
        let cascade = self.cascade();
        Ok(define(Define::DropCast {
            cast,
            if_exists,
            cascade,
        }))
    }

    /// After COMMENT ON CAST.
    pub(super) fn comment_on_cast(&mut self) -> Result<Statement> {
        let cast = self.cast_name()?;
        let text = self.comment_text()?;
        Ok(define(Define::CommentCast { cast, text }))
    }
}

fn define(statement: Define) -> Statement {
    Statement::Define(Box::new(statement))
}

/// An argument's type as it reads.
fn shown(arg: &RoutineArg) -> (ArgMode, String) {
    let ty = match &arg.ty {
        RoutineType::Plain(ty) => format!("{}{}", ty.name, if ty.array { "[]" } else { "" }),
        RoutineType::Column { column, .. } => format!("{column}%TYPE"),
    };
    (arg.mode, ty)
}
