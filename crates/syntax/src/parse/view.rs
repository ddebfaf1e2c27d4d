//! CREATE VIEW and ALTER VIEW.

use throng_types::Result;

use super::Parser;
use super::ast::*;

impl Parser<'_> {
    /// After CREATE and what may stand before VIEW.
    pub(super) fn create_view(&mut self, or_replace: bool, temporary: bool) -> Result<Statement> {
        let recursive = self.word("recursive");
        self.keyword("view")?;
        let name = self.any_name()?;
        let columns = match self.is_punct('(') || recursive {
            true => self.name_list()?,
            false => vec![],
        };
        let options = self.with_options()?;
        self.keyword("as")?;
        let start = self.pos();
        let refused = Self::refused_into("views must not contain SELECT INTO");
        let mut query = self.query().map_err(refused)?;
        if recursive {
            query = recursive_view(&name, &columns, query, start);
        }
        let pos = self.pos();
        let check = match self.word("with") {
            false => None,
            true => {
                let local = self.word("local");
                if !local {
                    self.word("cascaded");
                }
                self.keywords(&["check", "option"])?;
                Some(match local {
                    true => CheckOption::Local,
                    false => CheckOption::Cascaded,
                })
            }
        };
        if recursive && check.is_some() {
            return Err(self.unsupported("WITH CHECK OPTION on recursive views", pos));
        }
        Ok(Statement::CreateView(Box::new(CreateView {
            name,
            temporary,
            columns,
            query,
            or_replace,
            options,
            check,
        })))
    }

    pub(super) fn alter_view(&mut self) -> Result<Statement> {
        self.keyword("view")?;
        let if_exists = self.if_exists();
        let name = self.any_name()?;
        if self.is("rename") && !self.is_at(1, "to") {
            self.advance();
            self.word("column");
            let column = self.name()?;
            self.keyword("to")?;
            return Ok(Statement::RenameColumn {
                kind: ObjectKind::View,
                only: false,
                table: name,
                if_exists,
                column,
                to: self.name()?,
            });
        }
        let kind = ObjectKind::View;
        if self.is("rename") || (self.is("set") && self.is_at(1, "schema")) {
            let change = self.object_change()?;
            return Ok(Statement::AlterObject {
                kind,
                name,
                if_exists,
                change,
            });
        }
        self.alter_actions(kind, name, if_exists)
    }
}

/// `CREATE RECURSIVE VIEW v (c) AS query`: `WITH RECURSIVE v (c) AS (query) SELECT c FROM v`.
fn recursive_view(name: &Name, columns: &[String], query: Query, pos: Pos) -> Query {
    let item = |column: &String| SelectItem {
        expr: Expr {
            node: Node::Column(vec![column.clone()]),
            pos,
        },
        alias: None,
    };
    let own = Name {
        parts: vec![name.last().to_owned()],
        pos,
    };
    let select = Select {
        distinct: None,
        targets: columns.iter().map(item).collect(),
        from: vec![TableRef::Table {
            name: own,
            only: false,
            alias: None,
            sample: None,
        }],
        filter: None,
        group_by: vec![],
        group_distinct: false,
        having: None,
        windows: vec![],
    };
    Query {
        with: vec![Cte {
            name: name.last().to_owned(),
            columns: columns.to_vec(),
            materialized: None,
            statement: Statement::Query(Box::new(query)),
            search: None,
            cycle: None,
            pos,
        }],
        recursive: true,
        body: Body::Select(Box::new(select)),
        order: vec![],
        limit: None,
        ties: false,
        offset: None,
        locks: vec![],
        pos,
    }
}
