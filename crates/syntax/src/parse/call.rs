//! Function calls, among them those with SQL's own argument syntax.

use throng_types::Result;

use super::Parser;
use super::ast::*;
use super::expr::{function, level, new_call, syntax};
use super::lexer::Kind;
use super::xml;

/// Words that, called, are followed by arguments in SQL's own syntax.
pub(super) fn begins(word: &str) -> bool {
    matches!(
        word,
        "extract" | "position" | "substring" | "overlay" | "trim"
    ) || xml::begins(word)
}

impl Parser<'_> {
    /// Functions with SQL's own argument syntax.
    pub(super) fn special_call(&mut self, word: &str) -> Result<Expr> {
        if xml::begins(word) {
            return self.xml_call(word);
        }
        let pos = self.pos();
        self.advance();
        self.expect('(')?;
        let node = match word {
            "extract" => {
                let at = self.pos();
                let field = match self.kind().clone() {
                    Kind::Word(field) | Kind::Quoted(field) | Kind::Text(field) => field,
                    _ => return Err(self.unexpected()),
                };
                self.advance();
                self.keyword("from")?;
                let arg = self.expr()?;
                function(
                    "extract",
                    vec![
                        Expr {
                            node: Node::Text(field),
                            pos: at,
                        },
                        arg,
                    ],
                    pos,
                )
            }
            "position" => {
                let needle = self.expr_at(level::OTHER)?;
                self.keyword("in")?;
                let hay = self.expr_at(level::OTHER)?;
                syntax("position", vec![hay, needle], pos)
            }
            "substring" => self.substring(pos)?,
            "overlay" => {
                let mut args = vec![self.expr()?];
                if self.word("placing") {
                    args.push(self.expr()?);
                    self.keyword("from")?;
                    args.push(self.expr()?);
                    if self.word("for") {
                        args.push(self.expr()?);
                    }
                    syntax("overlay", args, pos)
                } else {
                    while self.punct(',') {
                        args.push(self.expr()?);
                    }
                    function("overlay", args, pos)
                }
            }
            _ => {
                let name = match self.peek_word() {
                    Some("leading") => "ltrim",
                    Some("trailing") => "rtrim",
                    _ => "btrim",
                };
                if self.any_of(&["leading", "trailing", "both"]) {
                    self.advance();
                }
                let mut args = Vec::new();
                if self.word("from") {
                    args = self.list(Self::expr)?;
                } else {
                    let first = self.expr()?;
                    if self.word("from") {
                        args = self.list(Self::expr)?;
                        args.push(first);
                    } else {
                        args.push(first);
                        while self.punct(',') {
                            args.push(self.expr()?);
                        }
                    }
                }
                syntax(name, args, pos)
            }
        };
        self.expect(')')?;
        Ok(Expr { node, pos })
    }

    pub(super) fn substring(&mut self, pos: Pos) -> Result<Node> {
        let mut args = vec![self.expr()?];
        if self.word("similar") {
            args.push(self.expr()?);
            self.keyword("escape")?;
            args.push(self.expr()?);
        } else if self.word("from") {
            args.push(self.expr()?);
            if self.word("for") {
                args.push(self.expr()?);
            }
        } else if self.word("for") {
            let length = self.expr()?;
            if self.word("from") {
                args.push(self.expr()?);
            } else {
                args.push(Expr {
                    node: Node::Integer("1".into()),
                    pos,
                });
            }
            args.push(length);
        } else {
            while self.punct(',') {
                args.push(self.expr()?);
            }
            return Ok(function("substring", args, pos));
        }
        Ok(syntax("substring", args, pos))
    }

    pub(super) fn call(&mut self, name: Name) -> Result<Expr> {
        let pos = name.pos;
        let mut call = new_call(name, vec![]);
        self.expect('(')?;
        if self.op("*") {
            call.star = true;
        } else if !self.is_punct(')') {
            call.distinct = self.word("distinct");
            if !call.distinct {
                self.word("all");
            }
            loop {
                call.variadic = self.word("variadic");
                let place = self.pos();
                if let Some(name) = self.argument_name()? {
                    if call.names.iter().any(|(_, other)| *other == name) {
                        let message = format!("argument name \"{name}\" used more than once");
                        return Err(self.error(message, place));
                    }
                    call.names.push((call.args.len(), name));
                } else if !call.names.is_empty() {
                    let message = "positional argument cannot follow named argument";
                    return Err(self.error(message, place));
                }
                call.args.push(self.expr()?);
                if call.variadic || !self.punct(',') {
                    break;
                }
            }
            if self.words(&["order", "by"]) {
                call.order = self.order_by_list()?;
            }
        }
        self.expect(')')?;
        if self.is("within") && self.is_at(1, "group") {
            let wrong = if !call.order.is_empty() {
                Some("cannot use multiple ORDER BY clauses with WITHIN GROUP")
            } else if call.distinct {
                Some("cannot use DISTINCT with WITHIN GROUP")
            } else if call.variadic {
                Some("cannot use VARIADIC with WITHIN GROUP")
            } else {
                None
            };
            if let Some(wrong) = wrong {
                return Err(self.error(wrong, self.pos()));
            }
            call.within_group = true;
            self.at += 2;
            self.expect('(')?;
            self.keywords(&["order", "by"])?;
            call.order = self.order_by_list()?;
            self.expect(')')?;
        }
        if self.is("filter") && self.is_punct_at(1, '(') {
            self.advance();
            self.expect('(')?;
            self.keyword("where")?;
            call.filter = Some(self.expr()?);
            self.expect(')')?;
        }
        call.over = self.over()?;
        Ok(Expr {
            node: Node::Call(Box::new(call)),
            pos,
        })
    }
}
