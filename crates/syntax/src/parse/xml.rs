//! SQL/XML: elements, forests and their like.

use throng_types::Result;
use throng_types::error::state;

use super::ast::*;
use super::expr::{boxed, syntax};
use super::{Parser, error_at};

/// Words that, called, begin one of these.
pub(super) fn begins(word: &str) -> bool {
    matches!(
        word,
        "xmlconcat"
            | "xmlelement"
            | "xmlexists"
            | "xmlforest"
            | "xmlparse"
            | "xmlpi"
            | "xmlroot"
            | "xmlserialize"
            | "xmltable"
    )
}

fn text(text: String, pos: Pos) -> Expr {
    Expr {
        node: Node::Text(text),
        pos,
    }
}

/// Names as an array of text.
fn names(names: Vec<String>, pos: Pos) -> Expr {
    let items = names.into_iter().map(|name| text(name, pos)).collect();
    let ty = TypeName {
        name: Name {
            parts: vec!["pg_catalog".into(), "text".into()],
            pos,
        },
        modifiers: vec![],
        typmod: None,
        array: true,
        setof: false,
    };
    let arg = boxed(Node::Array(items), pos);
    Expr {
        node: Node::Cast { arg, ty },
        pos,
    }
}

impl Parser<'_> {
    pub(super) fn xml_call(&mut self, word: &str) -> Result<Expr> {
        let pos = self.pos();
        if matches!(word, "xmlexists" | "xmltable") {
            return Err(self.unsupported(&word.to_uppercase(), pos));
        }
        self.advance();
        self.expect('(')?;
        let node = match word {
            "xmlconcat" => syntax("xmlconcat", self.list(Self::expr)?, pos),
            "xmlelement" => self.xml_element(pos)?,
            "xmlforest" => {
                let (labels, values) = self.named_values("element")?;
                let mut args = vec![names(labels, pos)];
                args.extend(values);
                syntax("xmlforest", args, pos)
            }
            "xmlparse" => {
                let document = self.document_or_content()?;
                let value = self.expr()?;
                // What is kept or stripped is white space that the text has anyway.
                if self.word("preserve") || self.word("strip") {
                    self.keyword("whitespace")?;
                }
                syntax("xmlparse", vec![document, value], pos)
            }
            "xmlpi" => {
                self.keyword("name")?;
                let at = self.pos();
                let mut args = vec![text(self.label()?, at)];
                if self.punct(',') {
                    args.push(self.expr()?);
                }
                syntax("xmlpi", args, pos)
            }
            "xmlroot" => self.xml_root(pos)?,
            _ => self.xml_serialize(pos)?,
        };
        self.expect(')')?;
        Ok(Expr { node, pos })
    }

    /// Behind IS.
    pub(super) fn is_document(&mut self, value: Expr, negated: bool, pos: Pos) -> Node {
        self.advance();
        let node = syntax("is_document", vec![value], pos);
        match negated {
            true => Node::Not(boxed(node, pos)),
            false => node,
        }
    }

    fn document_or_content(&mut self) -> Result<Expr> {
        let pos = self.pos();
        let document = self.word("document");
        if !document {
            self.keyword("content")?;
        }
        Ok(Expr {
            node: Node::Bool(document),
            pos,
        })
    }

    fn xml_element(&mut self, pos: Pos) -> Result<Node> {
        self.keyword("name")?;
        let at = self.pos();
        let element = text(self.label()?, at);
        let (mut attributes, mut values) = (Vec::new(), Vec::new());
        let mut content = Vec::new();
        if self.punct(',') {
            let has_attributes = self.word("xmlattributes");
            if has_attributes {
                self.expect('(')?;
                (attributes, values) = self.named_values("attribute")?;
                self.expect(')')?;
            }
            if !has_attributes || self.punct(',') {
                content = self.list(Self::expr)?;
            }
        }
        let mut args = vec![element, names(attributes, pos)];
        args.extend(values);
        args.extend(content);
        Ok(syntax("xmlelement", args, pos))
    }

    /// Values that are named, or columns, which have names.
    fn named_values(&mut self, what: &str) -> Result<(Vec<String>, Vec<Expr>)> {
        let named = self.list(|p| {
            let value = p.expr()?;
            let name = match (&value.node, p.word("as")) {
                (_, true) => p.label()?,
                (Node::Column(parts), _) => parts.last().cloned().unwrap_or_default(),
                _ => {
                    let message = format!("unnamed XML {what} value must be a column reference");
                    return Err(error_at(state::SYNTAX_ERROR, message, value.pos));
                }
            };
            Ok((name, value))
        })?;
        Ok(named.into_iter().unzip())
    }

    fn xml_root(&mut self, pos: Pos) -> Result<Node> {
        let value = self.expr()?;
        self.expect(',')?;
        self.keyword("version")?;
        let at = self.pos();
        let version = match self.words(&["no", "value"]) {
            true => Expr {
                node: Node::Null,
                pos: at,
            },
            false => self.expr()?,
        };
        let standalone = match self.punct(',') {
            false => "3",
            true => {
                self.keyword("standalone")?;
                if self.word("yes") {
                    "0"
                } else {
                    self.keyword("no")?;
                    if self.word("value") { "2" } else { "1" }
                }
            }
        };
        let standalone = Expr {
            node: Node::Integer(standalone.into()),
            pos,
        };
        Ok(syntax("xmlroot", vec![value, version, standalone], pos))
    }

    fn xml_serialize(&mut self, pos: Pos) -> Result<Node> {
        let extent = self.document_or_content()?;
        let value = self.expr()?;
        self.keyword("as")?;
        let ty = self.type_name()?;
        if self.is("indent") {
            let at = self.pos();
            return Err(self.unsupported("INDENT", at));
        }
        self.words(&["no", "indent"]);
        let call = syntax("xmlserialize", vec![extent, value], pos);
        Ok(Node::Cast {
            arg: boxed(call, pos),
            ty,
        })
    }
}
