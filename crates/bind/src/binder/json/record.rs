//! `json_to_record` and `json_to_recordset`, whose columns only the call tells: a query that reads
//! each by its name.
//!
//! ```text
//! json_to_recordset(x) AS t(a int, b text)
//!   ─►   LATERAL (SELECT (v.value ->> 'a')::int AS a, v.value ->> 'b' AS b FROM json_array_elements(x) v(value)) t
//! ```

use throng_types::sqltype::{element_of, made};
use throng_types::{Result, oid};

use crate::binder::Binder;
use crate::binder::ddl::domain::Declared;
use crate::binder::json::populate::json_member;
use throng_syntax::parse::ast::{self, Alias, ColumnDefinition, Expr, Node, Pos, TableRef};

/// What a call of one of them is made of.
struct RecordCall<'a> {
    binary: bool,
    set: bool,
    argument: &'a Expr,
}

fn recognized(call: &ast::Call) -> Option<RecordCall<'_>> {
    let name = call.name.last();
    let [argument] = &call.args[..] else {
        return None;
    };
    let (binary, set) = match name {
        "json_to_record" => (false, false),
        "json_to_recordset" => (false, true),
        "jsonb_to_record" => (true, false),
        "jsonb_to_recordset" => (true, true),
        _ => return None,
    };
    let plain = call.names.is_empty() && !call.variadic && !call.star;
    let builtin = call.name.schema().is_none_or(|s| s == "pg_catalog");
    (plain && builtin).then_some(RecordCall {
        binary,
        set,
        argument,
    })
}

impl Binder<'_> {
    /// The query that such a call in FROM stands for; none where it is another function.
    pub(in crate::binder) fn json_record(
        &self,
        call: &ast::Call,
        definition: &[ColumnDefinition],
        alias: Option<&Alias>,
        pos: Pos,
    ) -> Result<Option<TableRef>> {
        let Some(record) = recognized(call).filter(|_| !definition.is_empty()) else {
            return Ok(None);
        };
        let at = |node: Node| Expr { node, pos };
        let value = || at(Node::Column(vec!["v".into(), "value".into()]));
        let mut targets = Vec::with_capacity(definition.len());
        for column in definition {
            let Declared { ty, domain } = self.declared(&column.ty)?;
            let is_string = matches!(ty.oid, oid::VARCHAR | oid::BPCHAR);
            // What a cast of the member's text would not make of it.
            let whole = is_string && ty.typmod >= 0
                || domain.is_some()
                || element_of(ty.oid).is_some()
                || made::is_composite(ty.oid);
            let operator = match ty.oid {
                oid::JSON | oid::JSONB => "->",
                _ if whole => "->",
                _ => "->>",
            };
            let member = at(Node::Binary {
                op: ast::Operator {
                    schema: Some("pg_catalog".into()),
                    name: operator.into(),
                    pos,
                },
                left: Box::new(value()),
                right: Box::new(at(Node::Text(column.name.clone()))),
            });
            let expr = match whole {
                true => json_member(member, column, pos),
                false => at(Node::Cast {
                    arg: Box::new(member),
                    ty: column.ty.clone(),
                }),
            };
            targets.push(ast::SelectItem {
                expr,
                alias: Some(column.name.clone()),
            });
        }
        let source = Alias {
            name: "v".into(),
            columns: vec!["value".into()],
        };
        let from = match record.set {
            true => {
                let name = match record.binary {
                    true => "jsonb_array_elements",
                    false => "json_array_elements",
                };
                TableRef::Function {
                    call: at(Node::Call(Box::new(ast::Call {
                        name: ast::Name {
                            parts: vec!["pg_catalog".into(), name.into()],
                            pos,
                        },
                        ..call.clone()
                    }))),
                    lateral: true,
                    ordinality: false,
                    alias: Some(source),
                    definition: vec![],
                    pos,
                }
            }
            false => {
                let ty = if record.binary { "jsonb" } else { "json" };
                let argument = at(Node::Cast {
                    arg: Box::new(record.argument.clone()),
                    ty: ast::TypeName {
                        name: ast::Name {
                            parts: vec!["pg_catalog".into(), ty.into()],
                            pos,
                        },
                        modifiers: vec![],
                        typmod: None,
                        array: false,
                        setof: false,
                    },
                });
                let item = ast::SelectItem {
                    expr: argument,
                    alias: None,
                };
                TableRef::Subquery {
                    query: Box::new(select(vec![item], vec![], pos)),
                    lateral: true,
                    alias: Some(source),
                    pos,
                }
            }
        };
        let unnamed = Alias {
            name: call.name.last().to_owned(),
            columns: vec![],
        };
        Ok(Some(TableRef::Subquery {
            query: Box::new(select(targets, vec![from], pos)),
            lateral: true,
            alias: Some(alias.cloned().unwrap_or(unnamed)),
            pos,
        }))
    }
}

/// SELECT targets FROM items, and nothing else.
pub(in crate::binder) fn select(
    targets: Vec<ast::SelectItem>,
    from: Vec<TableRef>,
    pos: Pos,
) -> ast::Query {
    let select = ast::Select {
        distinct: None,
        targets,
        from,
        filter: None,
        group_by: vec![],
        group_distinct: false,
        having: None,
        windows: vec![],
    };
    ast::Query {
        with: vec![],
        recursive: false,
        body: ast::Body::Select(Box::new(select)),
        order: vec![],
        limit: None,
        ties: false,
        offset: None,
        locks: vec![],
        pos,
    }
}
