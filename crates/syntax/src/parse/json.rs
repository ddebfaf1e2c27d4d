//! SQL/JSON: constructors, predicates, query functions, JSON_TABLE.

use throng_types::Result;

use super::Parser;
use super::ast::*;
use super::expr::{Content, level, new_call};
use super::lexer::Kind;

/// Words that, called, begin one of these.
pub(super) fn begins(word: &str) -> bool {
    matches!(
        word,
        "json"
            | "json_scalar"
            | "json_serialize"
            | "json_object"
            | "json_array"
            | "json_objectagg"
            | "json_arrayagg"
            | "json_exists"
            | "json_value"
            | "json_query"
    )
}

fn text_type(pos: Pos) -> TypeName {
    TypeName {
        name: Name {
            parts: vec!["pg_catalog".into(), "text".into()],
            pos,
        },
        modifiers: vec![],
        typmod: None,
        array: false,
        setof: false,
    }
}

/// A value that is to be read as JSON, as `JSON(…)` reads it.
fn formatted(value: JsonValue) -> Expr {
    let pos = value.expr.pos;
    let untyped = matches!(value.expr.node, Node::Null | Node::Text(_));
    match value.format {
        None if untyped => Expr {
            node: Node::Cast {
                arg: Box::new(value.expr),
                ty: text_type(pos),
            },
            pos,
        },
        None => value.expr,
        Some(_) => Expr {
            node: Node::Json(Box::new(JsonNode::Parse {
                value,
                unique: false,
            })),
            pos,
        },
    }
}

/// `JSON_ARRAY(query)` as the query over it that it stands for.
pub fn array_over(
    query: Query,
    format: Option<&JsonFormat>,
    returning: Option<&JsonReturning>,
    pos: Pos,
) -> Query {
    let at = |node| Expr { node, pos };
    let value = JsonValue {
        expr: at(Node::Column(vec!["q".into(), "a".into()])),
        format: format.cloned(),
    };
    let aggregate = aggregate(
        vec![formatted(value)],
        false,
        false,
        true,
        returning.cloned(),
        pos,
    );
    let from = TableRef::Subquery {
        query: Box::new(query),
        lateral: false,
        alias: Some(Alias {
            name: "q".into(),
            columns: vec!["a".into()],
        }),
        pos,
    };
    let select = Select {
        distinct: None,
        targets: vec![SelectItem {
            expr: at(Node::Json(Box::new(JsonNode::Aggregate(Box::new(
                aggregate,
            ))))),
            alias: None,
        }],
        from: vec![from],
        filter: None,
        group_by: vec![],
        group_distinct: false,
        having: None,
        windows: vec![],
    };
    Query {
        with: vec![],
        recursive: false,
        body: Body::Select(Box::new(select)),
        order: vec![],
        limit: None,
        ties: false,
        offset: None,
        locks: vec![],
        pos,
    }
}

/// An aggregate's call of the catalog's function that does as asked.
fn aggregate(
    args: Vec<Expr>,
    object: bool,
    unique: bool,
    absent: bool,
    returning: Option<JsonReturning>,
    pos: Pos,
) -> JsonAggregate {
    let binary = returning
        .as_ref()
        .is_some_and(|r| r.ty.name.last() == "jsonb" && !r.ty.array);
    let name = format!(
        "{}_{}agg{}{}",
        if binary { "jsonb" } else { "json" },
        if object { "object_" } else { "" },
        if unique { "_unique" } else { "" },
        if absent { "_strict" } else { "" },
    );
    let parts = vec!["pg_catalog".to_string(), name];
    JsonAggregate {
        object,
        call: new_call(Name { parts, pos }, args),
        returning,
    }
}

impl Parser<'_> {
    /// At a word that [`begins`] and its parenthesis. None where it is a call of the function
    /// `json_object`.
    pub(super) fn json_call(&mut self, word: &str) -> Result<Option<Expr>> {
        let pos = self.pos();
        let start = self.at;
        self.advance();
        self.expect('(')?;
        let node = match word {
            "json" => {
                let value = self.json_value()?;
                let unique = self.json_unique()?.unwrap_or(false);
                JsonNode::Parse { value, unique }
            }
            "json_scalar" => JsonNode::Scalar(self.expr()?),
            "json_serialize" => {
                let value = self.json_value()?;
                let returning = self.json_returning()?;
                JsonNode::Serialize { value, returning }
            }
            "json_object" if !self.json_pairs_ahead() => {
                self.at = start;
                return Ok(None);
            }
            "json_object" => self.json_object()?,
            "json_array" => self.json_array()?,
            "json_objectagg" | "json_arrayagg" => {
                let node = self.json_aggregate(word == "json_objectagg", pos)?;
                let node = Node::Json(Box::new(node));
                return Ok(Some(Expr { node, pos }));
            }
            "json_exists" => self.json_path_call(JsonPathOp::Exists)?,
            "json_value" => self.json_path_call(JsonPathOp::Value)?,
            _ => self.json_path_call(JsonPathOp::Query)?,
        };
        self.expect(')')?;
        let node = Node::Json(Box::new(node));
        Ok(Some(Expr { node, pos }))
    }

    fn json_value(&mut self) -> Result<JsonValue> {
        Ok(JsonValue {
            expr: self.expr()?,
            format: self.json_format()?,
        })
    }

    fn json_format(&mut self) -> Result<Option<JsonFormat>> {
        let pos = self.pos();
        if !(self.is("format") && self.is_at(1, "json")) {
            return Ok(None);
        }
        self.at += 2;
        let encoding = match self.word("encoding") {
            true => {
                let at = self.pos();
                Some((self.name()?, at))
            }
            false => None,
        };
        Ok(Some(JsonFormat { encoding, pos }))
    }

    fn json_returning(&mut self) -> Result<Option<JsonReturning>> {
        if !self.word("returning") {
            return Ok(None);
        }
        Ok(Some(JsonReturning {
            ty: self.type_name()?,
            format: self.json_format()?,
        }))
    }

    /// `WITH UNIQUE [KEYS]`, `WITHOUT UNIQUE [KEYS]`
    fn json_unique(&mut self) -> Result<Option<bool>> {
        let unique = if self.is("with") && self.is_at(1, "unique") {
            true
        } else if self.is("without") && self.is_at(1, "unique") {
            false
        } else {
            return Ok(None);
        };
        self.at += 2;
        self.word("keys");
        Ok(Some(unique))
    }

    /// `NULL ON NULL` (false), `ABSENT ON NULL`
    fn json_absent(&mut self) -> Option<bool> {
        if self.words(&["null", "on", "null"]) {
            return Some(false);
        }
        self.words(&["absent", "on", "null"]).then_some(true)
    }

    /// `key : value`, `key VALUE value`
    fn json_pair(&mut self) -> Result<(Expr, JsonValue)> {
        let simple = self.expr_at(level::CAST + 1)?;
        if self.word("value") {
            return Ok((simple, self.json_value()?));
        }
        let key = self.infix(simple, level::OR)?;
        self.expect(':')?;
        Ok((key, self.json_value()?))
    }

    /// After the parenthesis of `json_object`: whether what is in it is the constructor's and not a
    /// function's arguments, which the first of them tells.
    fn json_pairs_ahead(&self) -> bool {
        if self.is_punct(')') || self.is("returning") {
            return true;
        }
        let mut open = 0;
        for ahead in 1.. {
            match self.kind_at(ahead - 1) {
                Kind::End => break,
                Kind::Punct('(' | '[') => open += 1,
                Kind::Punct(')' | ']') if open > 0 => open -= 1,
                Kind::Punct(')' | ',') if open == 0 => break,
                Kind::Punct(':') if open == 0 => return true,
                // A column may be called so, too.
                Kind::Word(word)
                    if open == 0
                        && word == "value"
                        && ahead > 1
                        && *self.kind_at(ahead - 2) != Kind::Punct('.') =>
                {
                    return true;
                }
                _ => {}
            }
        }
        false
    }

    fn json_object(&mut self) -> Result<JsonNode> {
        let mut pairs = Vec::new();
        if !self.is_punct(')') && !self.is("returning") {
            pairs = self.list(Self::json_pair)?;
        }
        let absent = self.json_absent().unwrap_or(false);
        let unique = self.json_unique()?.unwrap_or(false);
        let returning = self.json_returning()?;
        Ok(JsonNode::Object {
            pairs,
            absent,
            unique,
            returning,
        })
    }

    fn json_array(&mut self) -> Result<JsonNode> {
        let mut items = Vec::new();
        if !self.is_punct(')') && !self.is("returning") {
            if self.any_of(&["select", "values", "table", "with"]) || self.is_punct('(') {
                match self.nested(|p| p.content_then_format())? {
                    (Content::Query(query), _) => {
                        let format = self.json_format()?;
                        let returning = self.json_returning()?;
                        return Ok(JsonNode::ArrayQuery {
                            query,
                            format,
                            returning,
                        });
                    }
                    (Content::Exprs(mut exprs), format) => {
                        let last = exprs.pop();
                        items.extend(
                            exprs
                                .into_iter()
                                .map(|expr| JsonValue { expr, format: None }),
                        );
                        items.extend(last.map(|expr| JsonValue { expr, format }));
                        if self.punct(',') {
                            items.append(&mut self.list(Self::json_value)?);
                        }
                    }
                }
            } else {
                items = self.list(Self::json_value)?;
            }
        }
        let absent = self.json_absent().unwrap_or(true);
        let returning = self.json_returning()?;
        Ok(JsonNode::Array {
            items,
            absent,
            returning,
        })
    }

    /// A query, or expressions of which the last may have a format.
    fn content_then_format(&mut self) -> Result<(Content, Option<JsonFormat>)> {
        let content = self.content()?;
        let format = match &content {
            Content::Query(_) => None,
            Content::Exprs(_) => self.json_format()?,
        };
        Ok((content, format))
    }

    fn json_aggregate(&mut self, object: bool, pos: Pos) -> Result<JsonNode> {
        let (mut args, mut order) = (vec![], vec![]);
        let value = if object {
            let (key, value) = self.json_pair()?;
            args.push(key);
            value
        } else {
            let value = self.json_value()?;
            if self.words(&["order", "by"]) {
                order = self.order_by_list()?;
            }
            value
        };
        args.push(formatted(value));
        let absent = self.json_absent().unwrap_or(!object);
        let unique = object && self.json_unique()?.unwrap_or(false);
        let returning = self.json_returning()?;
        self.expect(')')?;
        let mut aggregate = aggregate(args, object, unique, absent, returning, pos);
        let call = &mut aggregate.call;
        call.order = order;
        if self.is("filter") && self.is_punct_at(1, '(') {
            self.advance();
            self.expect('(')?;
            self.keyword("where")?;
            call.filter = Some(self.expr()?);
            self.expect(')')?;
        }
        call.over = self.over()?;
        Ok(JsonNode::Aggregate(Box::new(aggregate)))
    }

    /// After `IS [NOT]`, at JSON.
    pub(super) fn is_json(&mut self, arg: Expr) -> Result<Node> {
        self.keyword("json")?;
        let kind = if self.word("value") {
            JsonKind::Value
        } else if self.word("array") {
            JsonKind::Array
        } else if self.word("object") {
            JsonKind::Object
        } else if self.word("scalar") {
            JsonKind::Scalar
        } else {
            JsonKind::Any
        };
        let unique = self.json_unique()?.unwrap_or(false);
        Ok(Node::Json(Box::new(JsonNode::Is { arg, kind, unique })))
    }

    fn json_passing(&mut self) -> Result<Vec<(String, JsonValue)>> {
        if !self.word("passing") {
            return Ok(vec![]);
        }
        self.list(|p| {
            let value = p.json_value()?;
            p.keyword("as")?;
            Ok((p.label()?, value))
        })
    }

    fn json_wrapper(&mut self) -> Result<Wrapper> {
        if self.word("without") {
            self.word("array");
            self.keyword("wrapper")?;
            return Ok(Wrapper::Without);
        }
        if !self.word("with") {
            return Ok(Wrapper::Unspecified);
        }
        let wrapper = match self.word("conditional") {
            true => Wrapper::Conditional,
            false => {
                self.word("unconditional");
                Wrapper::Unconditional
            }
        };
        self.word("array");
        self.keyword("wrapper")?;
        Ok(wrapper)
    }

    fn json_quotes(&mut self) -> Result<Option<bool>> {
        let keep = match () {
            () if self.word("keep") => true,
            () if self.word("omit") => false,
            () => return Ok(None),
        };
        self.keyword("quotes")?;
        if self.word("on") {
            self.keywords(&["scalar", "string"])?;
        }
        Ok(Some(keep))
    }

    fn json_behavior(&mut self) -> Result<Option<JsonBehavior>> {
        let pos = self.pos();
        let kind = if self.word("default") {
            JsonBehaviorKind::Default(Box::new(self.expr()?))
        } else if self.word("error") {
            JsonBehaviorKind::Error
        } else if self.word("null") {
            JsonBehaviorKind::Null
        } else if self.word("true") {
            JsonBehaviorKind::True
        } else if self.word("false") {
            JsonBehaviorKind::False
        } else if self.word("unknown") {
            JsonBehaviorKind::Unknown
        } else if self.word("empty") {
            if self.word("object") {
                JsonBehaviorKind::EmptyObject
            } else {
                self.word("array");
                JsonBehaviorKind::EmptyArray
            }
        } else {
            return Ok(None);
        };
        Ok(Some(JsonBehavior { kind, pos }))
    }

    /// ON EMPTY, where it may stand, and ON ERROR.
    fn json_behaviors(
        &mut self,
        may_be_empty: bool,
    ) -> Result<(Option<JsonBehavior>, Option<JsonBehavior>)> {
        let mut on_empty = None;
        loop {
            let Some(behavior) = self.json_behavior()? else {
                return Ok((on_empty, None));
            };
            self.keyword("on")?;
            if may_be_empty && on_empty.is_none() && self.word("empty") {
                on_empty = Some(behavior);
                continue;
            }
            self.keyword("error")?;
            return Ok((on_empty, Some(behavior)));
        }
    }

    fn json_path_call(&mut self, op: JsonPathOp) -> Result<JsonNode> {
        let context = self.json_value()?;
        self.expect(',')?;
        let path = self.expr()?;
        let passing = self.json_passing()?;
        let (mut returning, mut wrapper, mut keep_quotes) = (None, Wrapper::Unspecified, None);
        if op != JsonPathOp::Exists {
            returning = self.json_returning()?;
        }
        if op == JsonPathOp::Query {
            wrapper = self.json_wrapper()?;
            keep_quotes = self.json_quotes()?;
        }
        let (on_empty, on_error) = self.json_behaviors(op != JsonPathOp::Exists)?;
        Ok(JsonNode::Path(Box::new(JsonPathCall {
            op,
            context,
            path,
            passing,
            returning,
            wrapper,
            keep_quotes,
            on_empty,
            on_error,
        })))
    }

    /// At JSON_TABLE and its parenthesis, in FROM.
    pub(super) fn json_table(&mut self) -> Result<Expr> {
        let pos = self.pos();
        self.advance();
        self.expect('(')?;
        let context = self.json_value()?;
        self.expect(',')?;
        let path = self.expr_at(level::OTHER)?;
        let path_name = self.json_path_name()?;
        let passing = self.json_passing()?;
        let columns = self.json_columns()?;
        let on_error = self.json_behaviors(false)?.1;
        self.expect(')')?;
        let table = JsonTable {
            context,
            path,
            path_name,
            passing,
            columns,
            on_error,
            pos,
        };
        Ok(Expr {
            node: Node::Json(Box::new(JsonNode::Table(Box::new(table)))),
            pos,
        })
    }

    fn json_path_name(&mut self) -> Result<Option<(String, u32)>> {
        match self.word("as") {
            true => self.name_pos().map(Some),
            false => Ok(None),
        }
    }

    fn json_columns(&mut self) -> Result<Vec<JsonTableColumn>> {
        self.keyword("columns")?;
        self.parens(|p| p.nested(|p| p.list(Self::json_column)))
    }

    fn path_string(&mut self) -> Result<(String, u32)> {
        let pos = self.pos();
        Ok((self.string()?, pos))
    }

    fn json_column(&mut self) -> Result<JsonTableColumn> {
        let string = |p: &Self, ahead| matches!(p.kind_at(ahead), Kind::Text(_));
        if self.is("nested") && (self.is_at(1, "path") || string(self, 1)) {
            self.advance();
            self.word("path");
            return Ok(JsonTableColumn::Nested {
                path: self.path_string()?,
                path_name: self.json_path_name()?,
                columns: self.json_columns()?,
            });
        }
        let (name, pos) = self.name_pos()?;
        if self.words(&["for", "ordinality"]) {
            return Ok(JsonTableColumn::Ordinality { name, pos });
        }
        let ty = self.type_name()?;
        let exists = self.word("exists");
        let format = match exists {
            true => None,
            false => self.json_format()?,
        };
        let path = match self.word("path") {
            true => Some(self.path_string()?),
            false => None,
        };
        let (mut wrapper, mut keep_quotes) = (Wrapper::Unspecified, None);
        if !exists {
            wrapper = self.json_wrapper()?;
            keep_quotes = self.json_quotes()?;
        }
        let (on_empty, on_error) = self.json_behaviors(!exists)?;
        Ok(JsonTableColumn::Value {
            name,
            pos,
            ty,
            format,
            exists,
            path,
            wrapper,
            keep_quotes,
            on_empty,
            on_error,
        })
    }
}
