//! Expressions, by precedence climbing over gram.y's levels.

use throng_types::Result;

use super::Parser;
use super::ast::*;
use super::lexer::Kind;
use super::types::types_of_constant;
use throng_types::lexical::keyword::{Category, category};

/// gram.y's levels, loosest first.
pub(super) mod level {
    pub const OR: u8 = 1;
    pub const AND: u8 = 2;
    pub const NOT: u8 = 3;
    pub const IS: u8 = 4;
    pub const COMPARE: u8 = 5;
    pub const RANGE: u8 = 6;
    pub const OTHER: u8 = 7;
    pub const ADD: u8 = 8;
    pub const MULTIPLY: u8 = 9;
    pub const POWER: u8 = 10;
    pub const AT: u8 = 11;
    pub const COLLATE: u8 = 12;
    pub const SIGN: u8 = 13;
    pub const SUBSCRIPT: u8 = 14;
    pub const CAST: u8 = 15;
}

/// What parentheses turned out to hold.
pub(super) enum Content {
    Query(Box<Query>),
    Exprs(Vec<Expr>),
}

pub(super) fn boxed(node: Node, pos: Pos) -> Box<Expr> {
    Box::new(Expr { node, pos })
}

impl Parser<'_> {
    pub(super) fn expr(&mut self) -> Result<Expr> {
        let outside = std::mem::replace(&mut self.restricted, false);
        let expr = self.expr_at(level::OR);
        self.restricted = outside;
        expr
    }

    pub(super) fn expr_at(&mut self, min: u8) -> Result<Expr> {
        self.nested(|p| {
            let left = p.prefix()?;
            p.infix(left, min)
        })
    }

    fn prefix(&mut self) -> Result<Expr> {
        let pos = self.pos();
        if self.word("not") {
            let arg = self.expr_at(level::NOT)?;
            return Ok(Expr {
                node: Node::Not(Box::new(arg)),
                pos,
            });
        }
        let Kind::Op(op) = self.kind() else {
            return match self.is("operator") && self.is_punct_at(1, '(') {
                true => self.prefix_operator(),
                false => self.primary(),
            };
        };
        let op = op.clone();
        self.advance();
        match op.as_str() {
            "+" | "-" => {
                let arg = self.expr_at(level::SIGN)?;
                Ok(Expr {
                    node: signed(op, arg, pos),
                    pos,
                })
            }
            "<" | ">" | "=" | "<=" | ">=" | "<>" | "*" | "/" | "%" | "^" => {
                self.at -= 1;
                Err(self.unexpected())
            }
            _ => {
                self.at -= 1;
                self.prefix_operator()
            }
        }
    }

    /// Operators after `left` that bind at least as tightly as `min`.
    pub(super) fn infix(&mut self, mut left: Expr, min: u8) -> Result<Expr> {
        let links = self.links;
        // A non-associative operator just applied: its like cannot follow.
        let mut barred = 0u8;
        loop {
            let found = self.infix_level();
            if found == 0 || found < min {
                break;
            }
            if found == barred {
                return Err(self.unexpected());
            }
            barred = match found {
                level::IS | level::COMPARE | level::RANGE => found,
                _ => 0,
            };
            self.link()?;
            left = self.infix_one(left, found)?;
        }
        self.links = links;
        Ok(left)
    }

    /// The level of the operator that comes next; 0 where none does.
    fn infix_level(&self) -> u8 {
        match self.kind() {
            Kind::Cast => level::CAST,
            Kind::Punct('[') => level::SUBSCRIPT,
            Kind::Op(op) => match op.as_str() {
                "<" | ">" | "=" | "<=" | ">=" | "<>" => level::COMPARE,
                "+" | "-" => level::ADD,
                "*" | "/" | "%" => level::MULTIPLY,
                "^" => level::POWER,
                _ => level::OTHER,
            },
            Kind::Word(word) => match word.as_str() {
                "or" => level::OR,
                "and" => level::AND,
                "is" | "isnull" | "notnull" => level::IS,
                "between" | "in" | "like" | "ilike" => level::RANGE,
                // SUBSTRING has one of its own.
                "similar" if self.is_at(1, "to") => level::RANGE,
                "not" => match self.kind_at(1) {
                    Kind::Word(w)
                        if ["between", "in", "like", "ilike", "similar"].contains(&w.as_str()) =>
                    {
                        level::RANGE
                    }
                    _ => 0,
                },
                "operator" if self.is_punct_at(1, '(') => level::OTHER,
                "at" if self.is_at(1, "time") || self.is_at(1, "local") => level::AT,
                "collate" if !self.restricted => level::COLLATE,
                "overlaps" => level::OTHER,
                _ => 0,
            },
            _ => 0,
        }
    }

    fn infix_one(&mut self, left: Expr, found: u8) -> Result<Expr> {
        let pos = self.pos();
        let start = left.pos;
        let node = match found {
            level::CAST => {
                self.advance();
                let ty = self.type_name()?;
                return Ok(Expr {
                    node: Node::Cast {
                        arg: Box::new(left),
                        ty,
                    },
                    pos,
                });
            }
            level::SUBSCRIPT => return self.subscript(left),
            level::OR | level::AND => return self.connective(left, found),
            level::IS => self.is_test(left)?,
            level::RANGE => self.range_test(left)?,
            level::AT => {
                self.advance();
                if self.word("local") {
                    syntax("timezone", vec![left], pos)
                } else {
                    self.keywords(&["time", "zone"])?;
                    let zone = self.expr_at(level::AT + 1)?;
                    syntax("timezone", vec![zone, left], pos)
                }
            }
            level::COLLATE => {
                self.advance();
                Node::Collate {
                    arg: Box::new(left),
                    collation: self.any_name()?,
                }
            }
            _ if self.is("overlaps") => self.overlaps(left)?,
            _ => {
                let op = self.operator()?;
                if self.is_quantified() {
                    let pos = op.pos;
                    let node = self.quantified(left, op)?;
                    return Ok(Expr { node, pos });
                }
                let right = self.expr_at(found + 1)?;
                Node::Binary {
                    op,
                    left: Box::new(left),
                    right: Box::new(right),
                }
            }
        };
        let pos = match node {
            Node::Call(_) => start,
            _ => pos,
        };
        Ok(Expr { node, pos })
    }

    /// AND and OR gather their operands, so that long chains are not deep.
    fn connective(&mut self, left: Expr, found: u8) -> Result<Expr> {
        let (word, pos) = (if found == level::OR { "or" } else { "and" }, self.pos());
        let mut parts = vec![left];
        while self.word(word) {
            parts.push(self.expr_at(found + 1)?);
        }
        let node = if found == level::OR {
            Node::Or(parts)
        } else {
            Node::And(parts)
        };
        Ok(Expr { node, pos })
    }

    fn subscript(&mut self, left: Expr) -> Result<Expr> {
        let pos = self.pos();
        self.expect('[')?;
        let from = match self.is_punct(':') {
            true => None,
            false => Some(self.expr()?),
        };
        let node = match (self.punct(':'), from) {
            (false, Some(index)) => Node::Subscript {
                arg: Box::new(left),
                index: Box::new(index),
            },
            (_, from) => Node::Slice {
                arg: Box::new(left),
                from: from.map(Box::new),
                to: match self.is_punct(']') {
                    true => None,
                    false => Some(Box::new(self.expr()?)),
                },
            },
        };
        self.expect(']')?;
        self.indirection(Expr { node, pos })
    }

    fn is_test(&mut self, left: Expr) -> Result<Node> {
        let pos = self.pos();
        let arg = Box::new(left);
        if self.word("isnull") {
            return Ok(Node::IsNull {
                arg,
                negated: false,
            });
        }
        if self.word("notnull") {
            return Ok(Node::IsNull { arg, negated: true });
        }
        self.keyword("is")?;
        let negated = self.word("not");
        let Some(word) = self.peek_word().map(str::to_string) else {
            return Err(self.unexpected());
        };
        let test = match word.as_str() {
            "null" => Node::IsNull { arg, negated },
            "true" => Node::IsBool {
                arg,
                value: Some(true),
                negated,
            },
            "false" => Node::IsBool {
                arg,
                value: Some(false),
                negated,
            },
            "unknown" => Node::IsBool {
                arg,
                value: None,
                negated,
            },
            "distinct" => {
                self.advance();
                self.keyword("from")?;
                let right = Box::new(self.expr_at(level::COMPARE)?);
                return Ok(Node::IsDistinct {
                    left: arg,
                    right,
                    negated,
                });
            }
            "json" => {
                let test = self.is_json(*arg)?;
                return Ok(match negated {
                    true => Node::Not(boxed(test, pos)),
                    false => test,
                });
            }
            "normalized" | "nfc" | "nfd" | "nfkc" | "nfkd" => {
                let form = self.normal_form();
                self.keyword("normalized")?;
                let args = std::iter::once(*arg).chain(form).collect();
                let node = syntax("is_normalized", args, pos);
                return Ok(match negated {
                    true => Node::Not(Box::new(Expr { node, pos })),
                    false => node,
                });
            }
            "document" => return Ok(self.is_document(*arg, negated, pos)),
            _ => return Err(self.unexpected()),
        };
        self.advance();
        Ok(test)
    }

    /// One of Unicode's normal forms, as the text that functions take.
    fn normal_form(&mut self) -> Option<Expr> {
        let pos = self.pos();
        let form = self
            .peek_word()
            .filter(|word| ["nfc", "nfd", "nfkc", "nfkd"].contains(word));
        let node = Node::Text(form?.to_ascii_uppercase());
        self.advance();
        Some(Expr { node, pos })
    }

    /// `[NOT] BETWEEN, IN, LIKE, ILIKE, SIMILAR TO`.
    fn range_test(&mut self, left: Expr) -> Result<Node> {
        let pos = self.pos();
        let negated = self.word("not");
        if self.word("between") {
            let symmetric = self.word("symmetric");
            if !symmetric {
                self.word("asymmetric");
            }
            let low = Box::new(self.expr_at(level::OTHER)?);
            self.keyword("and")?;
            let high = Box::new(self.expr_at(level::OTHER)?);
            return Ok(Node::Between {
                arg: Box::new(left),
                low,
                high,
                symmetric,
                negated,
            });
        }
        if self.word("in") {
            self.expect('(')?;
            let content = self.nested(|p| p.content())?;
            self.expect(')')?;
            let arg = Box::new(left);
            return Ok(match content {
                Content::Query(query) => Node::InQuery {
                    arg,
                    query,
                    negated,
                },
                Content::Exprs(list) => Node::InList { arg, list, negated },
            });
        }
        let kind = if self.word("like") {
            LikeKind::Like
        } else if self.word("ilike") {
            LikeKind::ILike
        } else {
            self.keywords(&["similar", "to"])?;
            LikeKind::Similar
        };
        let name = match (kind, negated) {
            (LikeKind::Like, false) => "~~",
            (LikeKind::Like, true) => "!~~",
            (LikeKind::ILike, false) => "~~*",
            (LikeKind::ILike, true) => "!~~*",
            (LikeKind::Similar, _) => "",
        };
        if kind != LikeKind::Similar && self.is_quantified() {
            let op = Operator {
                schema: None,
                name: name.into(),
                pos,
            };
            return self.quantified(left, op);
        }
        let pattern = Box::new(self.expr_at(level::OTHER)?);
        let escape = match self.word("escape") {
            true => Some(Box::new(self.expr_at(level::OTHER)?)),
            false => None,
        };
        Ok(Node::Like {
            kind,
            arg: Box::new(left),
            pattern,
            escape,
            negated,
        })
    }

    /// `(start, end) OVERLAPS (start, length)`.
    fn overlaps(&mut self, left: Expr) -> Result<Node> {
        let pos = self.pos();
        self.advance();
        let right = self.expr_at(level::OTHER + 1)?;
        let mut args = Vec::with_capacity(4);
        for (side, name) in [(left, "left"), (right, "right")] {
            match side.node {
                Node::Row { fields, .. } if fields.len() == 2 => args.extend(fields),
                _ => {
                    let message =
                        format!("wrong number of parameters on {name} side of OVERLAPS expression");
                    return Err(self.error(message, side.pos));
                }
            }
        }
        Ok(syntax("overlaps", args, pos))
    }

    pub(super) fn operator(&mut self) -> Result<Operator> {
        let pos = self.pos();
        if self.word("operator") {
            self.expect('(')?;
            let mut schema = None;
            while self.is_name() {
                schema = Some(self.name()?);
                self.expect('.')?;
            }
            let name = self.op_name()?;
            self.expect(')')?;
            return Ok(Operator { schema, name, pos });
        }
        Ok(Operator {
            schema: None,
            name: self.op_name()?,
            pos,
        })
    }

    pub(super) fn op_name(&mut self) -> Result<String> {
        match self.kind() {
            Kind::Op(op) => {
                let op = op.clone();
                self.advance();
                Ok(op)
            }
            _ => Err(self.unexpected()),
        }
    }

    /// `ANY (…)`, `SOME (…)` or `ALL (…)` after an operator.
    fn is_quantified(&self) -> bool {
        self.any_of(&["any", "some", "all"]) && self.is_punct_at(1, '(')
    }

    fn quantified(&mut self, left: Expr, op: Operator) -> Result<Node> {
        let all = self.is("all");
        self.advance();
        self.expect('(')?;
        let content = self.nested(|p| p.content())?;
        let right = match content {
            Content::Query(query) => Quantified::Query(query),
            Content::Exprs(mut list) if list.len() == 1 => {
                Quantified::Array(Box::new(list.remove(0)))
            }
            Content::Exprs(_) => return Err(self.unexpected()),
        };
        self.expect(')')?;
        Ok(Node::Quantified {
            left: Box::new(left),
            op,
            all,
            right,
        })
    }

    /// Between parentheses: a query, or expressions. Decided without going back: an opening
    /// parenthesis may begin either, and what follows its end tells.
    pub(super) fn content(&mut self) -> Result<Content> {
        if self.any_of(&["select", "values", "table", "with"]) {
            return Ok(Content::Query(Box::new(self.query()?)));
        }
        let first = match self.is_punct('(') {
            false => self.expr()?,
            true => {
                let pos = self.pos();
                self.advance();
                let inner = self.nested(|p| p.content())?;
                self.expect(')')?;
                let primary = match inner {
                    Content::Query(query) => {
                        if self.is_punct(')') || self.continues_query() {
                            return Ok(Content::Query(Box::new(self.query_from(*query, pos)?)));
                        }
                        Expr {
                            node: Node::Subquery(query),
                            pos,
                        }
                    }
                    Content::Exprs(fields) => parenthesised(fields, pos),
                };
                let primary = self.indirection(primary)?;
                self.infix(primary, level::OR)?
            }
        };
        let mut exprs = vec![first];
        while self.punct(',') {
            exprs.push(self.expr()?);
        }
        Ok(Content::Exprs(exprs))
    }

    fn primary(&mut self) -> Result<Expr> {
        let pos = self.pos();
        let node = match self.kind().clone() {
            Kind::Integer(digits) => self.take(Node::Integer(digits)),
            Kind::Decimal(digits) => self.take(Node::Decimal(digits)),
            Kind::Text(text) => self.take(Node::Text(text)),
            Kind::Bits(radix, digits) => self.take(Node::Bits(radix, digits)),
            Kind::Param(n) => {
                let expr = Expr {
                    node: self.take(Node::Param(n)),
                    pos,
                };
                return self.indirection(expr);
            }
            Kind::Punct('(') => {
                self.advance();
                let content = self.nested(|p| p.content())?;
                self.expect(')')?;
                let expr = match content {
                    Content::Query(query) => Expr {
                        node: Node::Subquery(query),
                        pos,
                    },
                    Content::Exprs(fields) => parenthesised(fields, pos),
                };
                return self.indirection(expr);
            }
            Kind::Word(word) => return self.word_primary(&word),
            Kind::Quoted(_) => return self.name_primary(),
            _ => return Err(self.unexpected()),
        };
        Ok(Expr { node, pos })
    }

    /// A function call in FROM.
    pub(super) fn primary_for_from(&mut self) -> Result<Expr> {
        self.primary()
    }

    fn take(&mut self, node: Node) -> Node {
        self.advance();
        node
    }

    /// `.field` after something in parentheses.
    fn indirection(&mut self, mut expr: Expr) -> Result<Expr> {
        while self.is_punct('.') {
            let pos = self.pos();
            self.advance();
            if self.op("*") {
                let pos = expr.pos;
                let node = Node::FieldStar(Box::new(expr));
                return Ok(Expr { node, pos });
            }
            let name = self.label()?;
            expr = Expr {
                node: Node::Field {
                    arg: Box::new(expr),
                    name,
                },
                pos,
            };
        }
        Ok(expr)
    }

    fn word_primary(&mut self, word: &str) -> Result<Expr> {
        let pos = self.pos();
        let called = self.is_punct_at(1, '(');
        let node = match word {
            "null" => self.take(Node::Null),
            "true" => self.take(Node::Bool(true)),
            "false" => self.take(Node::Bool(false)),
            "default" => self.take(Node::Default),
            "case" => self.case()?,
            "array" => self.array()?,
            "cast" if called => self.cast()?,
            "exists" if called => {
                self.advance();
                let query = self.parens(|p| p.nested(|p| p.query()))?;
                Node::Exists(Box::new(query))
            }
            "row" if called => {
                self.advance();
                self.expect('(')?;
                let fields = match self.is_punct(')') {
                    true => vec![],
                    false => self.list(Self::expr)?,
                };
                self.expect(')')?;
                Node::Row {
                    fields,
                    explicit: true,
                }
            }
            "coalesce" if called => {
                self.advance();
                Node::Coalesce(self.parens(|p| p.list(Self::expr))?)
            }
            "greatest" | "least" if called => {
                self.advance();
                let args = self.parens(|p| p.list(Self::expr))?;
                Node::MinMax {
                    greatest: word == "greatest",
                    args,
                }
            }
            "nullif" if called => {
                self.advance();
                self.expect('(')?;
                let left = self.expr()?;
                self.expect(',')?;
                let right = self.expr()?;
                self.expect(')')?;
                Node::NullIf(Box::new(left), Box::new(right))
            }
            "normalize" if called => {
                self.advance();
                self.expect('(')?;
                let mut args = vec![self.expr()?];
                if self.punct(',') {
                    let Some(form) = self.normal_form() else {
                        return Err(self.unexpected());
                    };
                    args.push(form);
                }
                self.expect(')')?;
                syntax("normalize", args, pos)
            }
            "merge_action" if called => {
                self.advance();
                self.parens(|_| Ok(()))?;
                function(word, vec![], pos)
            }
            word if called && super::json::begins(word) => {
                if let Some(call) = self.json_call(word)? {
                    return Ok(call);
                }
                return self.name_primary();
            }
            word if called && super::call::begins(word) => return self.special_call(word),
            "current_date" | "current_role" | "current_user" | "session_user" | "user"
            | "current_catalog" | "system_user" => {
                self.advance();
                special_value(word, pos)
            }
            "current_schema" if !called => {
                self.advance();
                special_value(word, pos)
            }
            "current_time" | "current_timestamp" | "localtime" | "localtimestamp" => {
                self.advance();
                let mut node = special_value(word, pos);
                if let (true, Node::Call(call)) = (self.is_punct('('), &mut node) {
                    let digits = self.parens(|p| p.integer())?;
                    call.args.push(Expr {
                        node: Node::Integer(digits.to_string()),
                        pos,
                    });
                }
                node
            }
            "grouping" if called => {
                self.advance();
                Node::Grouping(self.parens(|p| p.list(Self::expr))?)
            }
            _ => {
                if let Some(constant) = self.typed_constant(word)? {
                    return Ok(constant);
                }
                return self.name_primary();
            }
        };
        Ok(Expr { node, pos })
    }

    /// `type 'constant'`, where the type is more than a plain name or is a keyword.
    fn typed_constant(&mut self, word: &str) -> Result<Option<Expr>> {
        let pos = self.pos();
        if !types_of_constant(word) && !self.typed_literal_ahead() {
            return Ok(None);
        }
        if category(word) == Category::Reserved {
            return Ok(None);
        }
        let start = self.at;
        if word == "interval" && matches!(self.kind_at(1), Kind::Text(_)) {
            self.advance();
            let text = self.string()?;
            let typmod = self.interval_fields(None)?;
            let name = Name {
                parts: vec!["interval".into()],
                pos,
            };
            let ty = TypeName {
                name,
                modifiers: vec![],
                typmod,
                array: false,
                setof: false,
            };
            let arg = boxed(Node::Text(text), pos);
            return Ok(Some(Expr {
                node: Node::Cast { arg, ty },
                pos,
            }));
        }
        if let Ok(ty) = self.type_name()
            && let Kind::Text(text) = self.kind().clone()
        {
            let arg = boxed(Node::Text(text), self.pos());
            self.advance();
            return Ok(Some(Expr {
                node: Node::Cast { arg, ty },
                pos,
            }));
        }
        self.at = start;
        Ok(None)
    }

    fn case(&mut self) -> Result<Node> {
        self.keyword("case")?;
        let operand = match self.is("when") {
            true => None,
            false => Some(Box::new(self.expr()?)),
        };
        let mut whens = Vec::new();
        while self.word("when") {
            let when = self.expr()?;
            self.keyword("then")?;
            whens.push((when, self.expr()?));
        }
        if whens.is_empty() {
            return Err(self.unexpected());
        }
        let default = match self.word("else") {
            true => Some(Box::new(self.expr()?)),
            false => None,
        };
        self.keyword("end")?;
        Ok(Node::Case {
            operand,
            whens,
            default,
        })
    }

    fn array(&mut self) -> Result<Node> {
        self.keyword("array")?;
        if self.is_punct('(') {
            let query = self.parens(|p| p.nested(|p| p.query()))?;
            return Ok(Node::ArrayQuery(Box::new(query)));
        }
        self.array_items()
    }

    fn array_items(&mut self) -> Result<Node> {
        self.expect('[')?;
        if self.punct(']') {
            return Ok(Node::Array(vec![]));
        }
        let items = self.list(|p| match p.is_punct('[') {
            true => {
                let pos = p.pos();
                Ok(Expr {
                    node: p.nested(|p| p.array_items())?,
                    pos,
                })
            }
            false => p.expr(),
        })?;
        self.expect(']')?;
        Ok(Node::Array(items))
    }

    fn cast(&mut self) -> Result<Node> {
        self.keyword("cast")?;
        self.expect('(')?;
        let arg = Box::new(self.expr()?);
        self.keyword("as")?;
        let ty = self.type_name()?;
        self.expect(')')?;
        Ok(Node::Cast { arg, ty })
    }

    /// A column reference or a function call.
    fn name_primary(&mut self) -> Result<Expr> {
        let pos = self.pos();
        let first_column = self.is_name();
        let first = self.name_of(&[
            Category::Unreserved,
            Category::ColumnName,
            Category::TypeOrFunction,
        ])?;
        let plain_function = match &self.tokens[self.at - 1].kind {
            // What is called like any function, beside a form of SQL's own.
            Kind::Word(w) if w == "json_object" => true,
            Kind::Word(w) => category(w) != Category::ColumnName,
            _ => true,
        };
        let mut parts = vec![first];
        while self.is_punct('.') {
            self.advance();
            if self.op("*") {
                return Ok(Expr {
                    node: Node::Star(parts),
                    pos,
                });
            }
            parts.push(self.label()?);
        }
        if self.is_punct('(') && (plain_function || parts.len() > 1) {
            return self.call(Name { parts, pos });
        }
        if !first_column {
            self.at = self.tokens.partition_point(|t| t.start < pos) + 1;
            return Err(self.unexpected());
        }
        Ok(Expr {
            node: Node::Column(parts),
            pos,
        })
    }
}

/// One parenthesised expression is itself; several are a row.
fn parenthesised(mut fields: Vec<Expr>, pos: Pos) -> Expr {
    match fields.len() {
        1 => match fields.remove(0) {
            subscripts
                if matches!(subscripts.node, Node::Subscript { .. } | Node::Slice { .. }) =>
            {
                Expr {
                    pos: subscripts.pos,
                    node: Node::Parenthesised(Box::new(subscripts)),
                }
            }
            other => other,
        },
        _ => Expr {
            node: Node::Row {
                fields,
                explicit: false,
            },
            pos,
        },
    }
}

/// A sign before a constant becomes part of it, so that the smallest integer can be written.
fn signed(op: String, arg: Expr, pos: Pos) -> Node {
    let negated = |digits: &str| match digits.strip_prefix('-') {
        Some(digits) => digits.to_string(),
        None => format!("-{digits}"),
    };
    match (op.as_str(), &arg.node) {
        ("-", Node::Integer(digits)) => Node::Integer(negated(digits)),
        ("-", Node::Decimal(digits)) => Node::Decimal(negated(digits)),
        _ => {
            let op = Operator {
                schema: None,
                name: op,
                pos,
            };
            Node::Unary {
                op,
                arg: Box::new(arg),
            }
        }
    }
}

pub fn new_call(name: Name, args: Vec<Expr>) -> Call {
    Call {
        name,
        args,
        names: vec![],
        star: false,
        distinct: false,
        variadic: false,
        order: vec![],
        filter: None,
        within_group: false,
        over: None,
        label: None,
    }
}

/// A call that has words between its arguments; its label says so.
pub(super) fn syntax(name: &'static str, args: Vec<Expr>, pos: Pos) -> Node {
    let parts = vec!["pg_catalog".to_string(), name.to_string()];
    let mut call = new_call(Name { parts, pos }, args);
    call.label = Some(name);
    Node::Call(Box::new(call))
}

pub(super) fn function(name: &str, args: Vec<Expr>, pos: Pos) -> Node {
    let parts = vec!["pg_catalog".to_string(), name.to_string()];
    Node::Call(Box::new(new_call(Name { parts, pos }, args)))
}

/// `CURRENT_DATE` and its kin: calls without parentheses.
fn special_value(word: &str, pos: Pos) -> Node {
    const LABELS: [&str; 13] = [
        "current_date",
        "current_role",
        "current_user",
        "session_user",
        "user",
        "current_catalog",
        "system_user",
        "current_schema",
        "current_time",
        "current_timestamp",
        "localtime",
        "localtimestamp",
        "",
    ];
    let name = match word {
        "current_role" | "user" => "current_user",
        "current_catalog" => "current_database",
        other => other,
    };
    let parts = vec!["pg_catalog".to_string(), name.to_string()];
    let mut call = new_call(Name { parts, pos }, vec![]);
    call.label = LABELS.iter().find(|l| **l == word).copied();
    Node::Call(Box::new(call))
}

impl Parser<'_> {
    /// gram.y's `b_expr`: no AND, OR, NOT, IN, LIKE, BETWEEN, IS NULL, COLLATE.
    pub(super) fn restricted_expr(&mut self) -> Result<Expr> {
        let outside = std::mem::replace(&mut self.restricted, true);
        let expr = self.expr_at(level::OTHER);
        self.restricted = outside;
        expr
    }
}
