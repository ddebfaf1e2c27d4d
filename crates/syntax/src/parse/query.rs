//! SELECT and its parts.

use throng_types::Result;

use super::Parser;
use super::ast::*;
use super::lexer::Kind;
use throng_types::lexical::keyword::bare_label;

/// What a parenthesis in FROM turned out to hold.
enum FromContent {
    Query(Query),
    Table(TableRef),
}

impl Parser<'_> {
    /// A query with its WITH.
    pub(super) fn query(&mut self) -> Result<Query> {
        self.nested(|p| {
            let pos = p.pos();
            let (with, recursive) = p.with_clause()?;
            let mut query = p.query_without_with()?;
            query.pos = pos;
            if !with.is_empty() {
                if !query.with.is_empty() {
                    return Err(p.error("multiple WITH clauses not allowed", pos));
                }
                query.with = with;
                query.recursive = recursive;
            }
            Ok(query)
        })
    }

    pub(super) fn with_clause(&mut self) -> Result<(Vec<Cte>, bool)> {
        if !self.word("with") {
            return Ok((vec![], false));
        }
        let recursive = self.word("recursive");
        let ctes = self.list(|p| {
            let (name, pos) = p.name_pos()?;
            let columns = if p.is_punct('(') {
                p.name_list()?
            } else {
                vec![]
            };
            p.keyword("as")?;
            let materialized = if p.word("materialized") {
                Some(true)
            } else if p.words(&["not", "materialized"]) {
                Some(false)
            } else {
                None
            };
            p.expect('(')?;
            let statement = p.nested(Self::data_statement)?;
            p.expect(')')?;
            Ok(Cte {
                name,
                columns,
                materialized,
                statement,
                search: p.search_clause()?,
                cycle: p.cycle_clause()?,
                pos,
            })
        })?;
        Ok((ctes, recursive))
    }

    pub(super) fn query_without_with(&mut self) -> Result<Query> {
        let left = self.set_operand(2)?;
        self.query_rest(left, 1)
    }

    /// Goes on from a parenthesised query that has just been read.
    pub(super) fn query_from(&mut self, inner: Query, pos: Pos) -> Result<Query> {
        let left = bare(Body::Nested(Box::new(inner)), pos);
        let left = self.set_tail(left, 2)?;
        self.query_rest(left, 1)
    }

    pub(super) fn continues_query(&self) -> bool {
        self.any_of(&[
            "union",
            "intersect",
            "except",
            "order",
            "limit",
            "offset",
            "fetch",
            "for",
        ])
    }

    /// Set operations, ORDER BY, LIMIT and locking after a first operand.
    fn query_rest(&mut self, left: Query, min: u8) -> Result<Query> {
        let mut query = self.set_tail(left, min)?;
        self.query_tail(&mut query)?;
        Ok(query)
    }

    /// INTERSECT binds tighter (2) than UNION and EXCEPT (1); all are left-associative.
    fn set_operand(&mut self, min: u8) -> Result<Query> {
        let pos = self.pos();
        let first = if self.punct('(') {
            let inner = self.query()?;
            self.expect(')')?;
            bare(Body::Nested(Box::new(inner)), pos)
        } else {
            bare(self.simple_query()?, pos)
        };
        self.set_tail(first, min)
    }

    fn set_tail(&mut self, mut left: Query, min: u8) -> Result<Query> {
        let (links, depth) = (self.links, self.depth);
        loop {
            let (op, level) = match self.peek_word() {
                Some("union") => (SetOp::Union, 1),
                Some("except") => (SetOp::Except, 1),
                Some("intersect") => (SetOp::Intersect, 2),
                _ => break,
            };
            if level < min {
                break;
            }
            self.link()?;
            self.depth += 1;
            self.advance();
            let all = self.word("all");
            if !all {
                self.word("distinct");
            }
            let right = self.set_operand(level + 1)?;
            let pos = left.pos;
            let body = Body::SetOp {
                op,
                all,
                left: Box::new(left),
                right: Box::new(right),
            };
            left = bare(body, pos);
        }
        (self.links, self.depth) = (links, depth);
        Ok(left)
    }

    fn simple_query(&mut self) -> Result<Body> {
        if self.word("values") {
            let rows = self.list(|p| p.parens(|p| p.list(Self::expr)))?;
            return Ok(Body::Values(rows));
        }
        if self.word("table") {
            let (name, only) = self.table_name_only()?;
            let pos = name.pos;
            let star = Expr {
                node: Node::Star(vec![]),
                pos,
            };
            let table = TableRef::Table {
                name,
                only,
                alias: None,
                sample: None,
            };
            return Ok(plain_select(vec![star], vec![table]));
        }
        self.keyword("select")?;
        self.select().map(|s| Body::Select(Box::new(s)))
    }

    fn select(&mut self) -> Result<Select> {
        let distinct = if self.word("distinct") {
            match self.word("on") {
                true => Some(self.parens(|p| p.list(Self::expr))?),
                false => Some(vec![]),
            }
        } else {
            self.word("all");
            None
        };
        let none = self.at_end()
            || self.is_punct(')')
            || self.is_punct(';')
            || self.any_of(&["from", "where", "group", "having", "window", "into"])
            || self.continues_query();
        if none && distinct.is_some() {
            return Err(self.unexpected());
        }
        let targets = if none { vec![] } else { self.target_list()? };
        if self.word("into") {
            self.select_into()?;
        }
        let from = match self.word("from") {
            true => self.list(Self::table_ref)?,
            false => vec![],
        };
        let filter = self.where_clause()?;
        let (mut group_by, mut group_distinct) = (vec![], false);
        if self.words(&["group", "by"]) {
            group_distinct = self.word("distinct");
            if !group_distinct {
                self.word("all");
            }
            group_by = self.list(Self::group_item)?;
        }
        let having = match self.word("having") {
            true => Some(self.expr()?),
            false => None,
        };
        let windows = self.window_clause()?;
        Ok(Select {
            distinct,
            targets,
            from,
            filter,
            group_by,
            group_distinct,
            having,
            windows,
        })
    }

    fn group_item(&mut self) -> Result<GroupItem> {
        if self.is_punct('(') && self.is_punct_at(1, ')') {
            self.at += 2;
            return Ok(GroupItem::Empty);
        }
        if self.is("rollup") && self.is_punct_at(1, '(') {
            self.advance();
            return Ok(GroupItem::Rollup(self.parens(|p| p.list(Self::expr))?));
        }
        if self.is("cube") && self.is_punct_at(1, '(') {
            let pos = self.pos();
            self.advance();
            return Ok(GroupItem::Cube(self.parens(|p| p.list(Self::expr))?, pos));
        }
        if self.words(&["grouping", "sets"]) {
            let sets = self.nested(|p| p.parens(|p| p.list(Self::group_item)))?;
            return Ok(GroupItem::Sets(sets));
        }
        self.expr().map(GroupItem::Expr)
    }

    pub(super) fn where_clause(&mut self) -> Result<Option<Expr>> {
        match self.word("where") {
            true => Ok(Some(self.expr()?)),
            false => Ok(None),
        }
    }

    pub(super) fn target_list(&mut self) -> Result<Vec<SelectItem>> {
        self.list(|p| {
            let pos = p.pos();
            if p.op("*") {
                return Ok(SelectItem {
                    expr: Expr {
                        node: Node::Star(vec![]),
                        pos,
                    },
                    alias: None,
                });
            }
            let expr = p.expr()?;
            let alias = if p.word("as") {
                Some(p.label()?)
            } else {
                match p.kind() {
                    Kind::Quoted(_) => Some(p.label()?),
                    Kind::Word(w) if bare_label(w) => Some(p.label()?),
                    _ => None,
                }
            };
            Ok(SelectItem { expr, alias })
        })
    }

    pub(super) fn order_by_list(&mut self) -> Result<Vec<OrderBy>> {
        self.list(|p| {
            let expr = p.expr()?;
            let descending = match p.word("using") {
                true => p.ordering_operator()?,
                false => {
                    let descending = p.word("desc");
                    if !descending {
                        p.word("asc");
                    }
                    descending
                }
            };
            let nulls_first = p.nulls_order()?;
            Ok(OrderBy {
                expr,
                descending,
                nulls_first,
            })
        })
    }

    /// The operator after USING: whether it orders downwards.
    fn ordering_operator(&mut self) -> Result<bool> {
        let pos = self.pos();
        let Kind::Op(op) = self.kind().clone() else {
            return Err(self.unsupported("an operator with a schema in ORDER BY USING", pos));
        };
        self.advance();
        match op.as_str() {
            "<" => Ok(false),
            ">" => Ok(true),
            _ => {
                let message = format!("operator {op} is not a valid ordering operator");
                let code = throng_types::error::state::WRONG_OBJECT_TYPE;
                Err(super::error_at(code, message, pos).hint(
                    "Ordering operators must be \"<\" or \">\" members of btree operator families.",
                ))
            }
        }
    }

    pub(super) fn nulls_order(&mut self) -> Result<Option<bool>> {
        if !self.is("nulls") || !(self.is_at(1, "first") || self.is_at(1, "last")) {
            return Ok(None);
        }
        self.advance();
        let first = self.is("first");
        self.advance();
        Ok(Some(first))
    }

    fn query_tail(&mut self, query: &mut Query) -> Result<()> {
        let Some(pos) = self.query_clauses(query)? else {
            return Ok(());
        };
        query.ties = true;
        if query.order.is_empty() {
            return Err(self.error("WITH TIES cannot be specified without ORDER BY clause", pos));
        }
        let skips = |lock: &Locking| lock.wait == LockWait::SkipLocked;
        if query.locks.iter().any(skips) {
            let message = "SKIP LOCKED and WITH TIES options cannot be used together";
            return Err(self.error(message, pos));
        }
        Ok(())
    }

    /// ORDER BY and what follows; gives where WITH TIES stands.
    fn query_clauses(&mut self, query: &mut Query) -> Result<Option<Pos>> {
        if self.is("order") {
            self.keywords(&["order", "by"])?;
            query.order = self.order_by_list()?;
        }
        let (mut limited, mut skipped) = (false, false);
        let mut ties = None;
        loop {
            let pos = self.pos();
            if self.is("limit") || self.is("fetch") {
                if limited {
                    return Err(self.error("multiple LIMIT clauses not allowed", pos));
                }
                limited = true;
                (query.limit, ties) = self.limit()?;
            } else if self.word("offset") {
                if skipped {
                    return Err(self.error("multiple OFFSET clauses not allowed", pos));
                }
                skipped = true;
                query.offset = Some(self.expr()?);
                if !self.word("rows") {
                    self.word("row");
                }
            } else if self.is("for") {
                query.locks.extend(self.locking()?);
            } else {
                return Ok(ties);
            }
        }
    }

    /// The count, and where WITH TIES stands if it does.
    fn limit(&mut self) -> Result<(Option<Expr>, Option<Pos>)> {
        if self.word("limit") {
            return match self.word("all") {
                true => Ok((None, None)),
                false => Ok((Some(self.expr()?), None)),
            };
        }
        self.keyword("fetch")?;
        if !self.word("first") {
            self.keyword("next")?;
        }
        let pos = self.pos();
        let count = match self.any_of(&["row", "rows"]) {
            true => Expr {
                node: Node::Integer("1".into()),
                pos,
            },
            false => self.expr()?,
        };
        if !self.word("rows") {
            self.keyword("row")?;
        }
        let pos = self.pos();
        if self.words(&["with", "ties"]) {
            return Ok((Some(count), Some(pos)));
        }
        self.keyword("only")?;
        Ok((Some(count), None))
    }

    fn locking(&mut self) -> Result<Option<Locking>> {
        let pos = self.pos();
        self.keyword("for")?;
        if self.words(&["read", "only"]) {
            return Ok(None);
        }
        let strength = if self.word("update") {
            RowLockStrength::Update
        } else if self.words(&["no", "key", "update"]) {
            RowLockStrength::NoKeyUpdate
        } else if self.word("share") {
            RowLockStrength::Share
        } else if self.words(&["key", "share"]) {
            RowLockStrength::KeyShare
        } else {
            return Err(self.unexpected());
        };
        let of = match self.word("of") {
            true => self.list(Self::any_name)?,
            false => vec![],
        };
        let wait = if self.word("nowait") {
            LockWait::NoWait
        } else if self.words(&["skip", "locked"]) {
            LockWait::SkipLocked
        } else {
            LockWait::Wait
        };
        Ok(Some(Locking {
            strength,
            of,
            wait,
            pos,
        }))
    }

    /// A table with optional ONLY and `*`, where neither makes a difference.
    pub(super) fn table_name(&mut self) -> Result<Name> {
        Ok(self.table_name_only()?.0)
    }

    /// A table, and whether ONLY is before it.
    pub(super) fn table_name_only(&mut self) -> Result<(Name, bool)> {
        if self.word("only") {
            if self.punct('(') {
                let name = self.any_name()?;
                self.expect(')')?;
                return Ok((name, true));
            }
            return Ok((self.any_name()?, true));
        }
        let name = self.any_name()?;
        self.op("*");
        Ok((name, false))
    }

    pub(super) fn table_ref(&mut self) -> Result<TableRef> {
        self.nested(|p| {
            let left = p.table_primary()?;
            p.joins(left)
        })
    }

    fn joins(&mut self, mut left: TableRef) -> Result<TableRef> {
        let links = self.links;
        loop {
            let pos = self.pos();
            if self.words(&["cross", "join"]) {
                let right = self.table_primary()?;
                left = join(JoinKind::Inner, left, right, JoinOn::None, pos);
            } else {
                let natural = self.word("natural");
                let Some(kind) = self.join_kind()? else {
                    if natural {
                        return Err(self.unexpected());
                    }
                    break;
                };
                let (right, on) = match natural {
                    true => (self.table_primary()?, JoinOn::Natural),
                    false => {
                        let right = self.join_operand()?;
                        (right, self.join_condition()?)
                    }
                };
                left = join(kind, left, right, on, pos);
            }
            self.link()?;
        }
        self.links = links;
        Ok(left)
    }

    fn join_kind(&mut self) -> Result<Option<JoinKind>> {
        let kind = match self.peek_word() {
            Some("join") => JoinKind::Inner,
            Some("inner") => JoinKind::Inner,
            Some("left") => JoinKind::Left,
            Some("right") => JoinKind::Right,
            Some("full") => JoinKind::Full,
            _ => return Ok(None),
        };
        if !self.is("join") {
            self.advance();
            if kind != JoinKind::Inner {
                self.word("outer");
            }
        }
        self.keyword("join")?;
        Ok(Some(kind))
    }

    /// The right side of a join that needs a condition. Where another join comes before that
    /// condition, it belongs to the right side: `a JOIN b JOIN c ON … ON …`.
    fn join_operand(&mut self) -> Result<TableRef> {
        let right = self.table_primary()?;
        match self.any_of(&["on", "using"]) {
            true => Ok(right),
            false => self.nested(|p| p.joins(right)),
        }
    }

    fn join_condition(&mut self) -> Result<JoinOn> {
        if self.word("using") {
            let columns = self.name_list()?;
            let name = match self.word("as") {
                true => Some(self.name()?),
                false => None,
            };
            return Ok(JoinOn::Using(columns, name));
        }
        self.keyword("on")?;
        Ok(JoinOn::On(self.expr()?))
    }

    fn table_primary(&mut self) -> Result<TableRef> {
        let pos = self.pos();
        let lateral = self.word("lateral");
        if self.is_punct('(') {
            let content = self.nested(|p| p.item_in_parens())?;
            return match content {
                FromContent::Query(query) => {
                    let alias = self.alias()?;
                    Ok(TableRef::Subquery {
                        query: Box::new(query),
                        lateral,
                        alias,
                        pos,
                    })
                }
                FromContent::Table(_) if lateral => Err(self.unexpected()),
                FromContent::Table(table) => {
                    if let Some(alias) = self.alias()? {
                        return Ok(with_alias(table, alias));
                    }
                    Ok(table)
                }
            };
        }
        if self.is("rows") && self.is_at(1, "from") && self.is_punct_at(2, '(') {
            self.at += 2;
            let items = self.parens(|p| {
                p.list(|p| {
                    let call = p.function_item()?;
                    let definition = match p.word("as") {
                        true => p.column_definitions()?,
                        false => vec![],
                    };
                    Ok((call, definition))
                })
            })?;
            // An array each, where there are several.
            let spread =
                |(call, definition): (Expr, Vec<ColumnDefinition>)| match several_arrays(&call) {
                    Some(calls) => calls.into_iter().map(|call| (call, vec![])).collect(),
                    None => vec![(call, definition)],
                };
            let items = items.into_iter().flat_map(spread).collect();
            let ordinality = self.words(&["with", "ordinality"]);
            return Ok(TableRef::RowsFrom {
                items,
                ordinality,
                alias: self.alias()?,
                pos,
            });
        }
        if self.function_item_ahead() {
            let call = match self.is("json_table") {
                true => self.json_table()?,
                false => self.function_item()?,
            };
            let ordinality = self.words(&["with", "ordinality"]);
            let (alias, definition) = self.function_alias()?;
            if let Some(arrays) = several_arrays(&call) {
                return Ok(TableRef::RowsFrom {
                    items: arrays.into_iter().map(|call| (call, vec![])).collect(),
                    ordinality,
                    alias,
                    pos,
                });
            }
            return Ok(TableRef::Function {
                call,
                lateral,
                ordinality,
                alias,
                definition,
                pos,
            });
        }
        if lateral {
            return Err(self.unexpected());
        }
        let (name, only) = self.table_name_only()?;
        let alias = self.alias()?;
        let sample = match self.word("tablesample") {
            true => Some(Box::new(self.sample()?)),
            false => None,
        };
        Ok(TableRef::Table {
            name,
            only,
            alias,
            sample,
        })
    }

    fn sample(&mut self) -> Result<Sample> {
        let method = self.any_name()?;
        let args = self.parens(|p| p.list(Self::expr))?;
        let seed = match self.word("repeatable") {
            true => Some(self.parens(Self::expr)?),
            false => None,
        };
        Ok(Sample { method, args, seed })
    }

    /// After `(` in FROM: a query or a join, decided without going back (see `content`).
    fn item_in_parens(&mut self) -> Result<FromContent> {
        self.expect('(')?;
        let content = if self.any_of(&["select", "values", "table", "with"]) {
            FromContent::Query(self.query()?)
        } else if self.is_punct('(') {
            let pos = self.pos();
            match self.nested(|p| p.item_in_parens())? {
                FromContent::Query(query) if self.is_punct(')') || self.continues_query() => {
                    FromContent::Query(self.query_from(query, pos)?)
                }
                FromContent::Query(query) => {
                    let alias = self.alias()?;
                    let left = TableRef::Subquery {
                        query: Box::new(query),
                        lateral: false,
                        alias,
                        pos,
                    };
                    FromContent::Table(self.joins(left)?)
                }
                FromContent::Table(table) => {
                    let table = match self.alias()? {
                        Some(alias) => with_alias(table, alias),
                        None => table,
                    };
                    FromContent::Table(self.joins(table)?)
                }
            }
        } else {
            FromContent::Table(self.table_ref()?)
        };
        self.expect(')')?;
        Ok(content)
    }

    fn function_item_ahead(&self) -> bool {
        let mut ahead = 0;
        loop {
            if !matches!(self.kind_at(ahead), Kind::Word(_) | Kind::Quoted(_)) {
                return false;
            }
            match self.kind_at(ahead + 1) {
                Kind::Punct('.') => ahead += 2,
                Kind::Punct('(') => {
                    return !(ahead == 0 && self.any_of(&["select", "values", "only"]));
                }
                _ => {
                    return ahead == 0
                        && self.any_of(&["current_date", "current_timestamp", "current_user"]);
                }
            }
        }
    }

    fn function_item(&mut self) -> Result<Expr> {
        let at = self.at;
        // COALESCE, CAST and so on may stand here too.
        let expr = self.primary_for_from()?;
        match expr.node {
            Node::Call(_) | Node::Coalesce(_) | Node::Cast { .. } => Ok(expr),
            _ => {
                self.at = at;
                Err(self.unexpected())
            }
        }
    }

    pub(super) fn alias(&mut self) -> Result<Option<Alias>> {
        let named = self.word("as") || self.is_name() && !self.any_of(&["nowait"]);
        if !named {
            return Ok(None);
        }
        let name = self.name()?;
        if !self.is_punct('(') {
            return Ok(Some(Alias {
                name,
                columns: vec![],
            }));
        }
        let columns = self.parens(|p| {
            p.list(|p| {
                let column = p.name()?;
                match p.is_punct(',') || p.is_punct(')') {
                    true => Ok(column),
                    false => Err(p.unexpected()),
                }
            })
        })?;
        Ok(Some(Alias { name, columns }))
    }
}

/// SELECT of expressions without names, FROM what is given.
fn plain_select(targets: Vec<Expr>, from: Vec<TableRef>) -> Body {
    let targets = targets
        .into_iter()
        .map(|expr| SelectItem { expr, alias: None });
    Body::Select(Box::new(Select {
        distinct: None,
        targets: targets.collect(),
        from,
        filter: None,
        group_by: vec![],
        group_distinct: false,
        having: None,
        windows: vec![],
    }))
}

/// `unnest(a, b, …)`, which only FROM understands: a call for each array.
fn several_arrays(call: &Expr) -> Option<Vec<Expr>> {
    let Node::Call(unnest) = &call.node else {
        return None;
    };
    let plain = ["pg_catalog", "unnest"];
    let named = plain.ends_with(
        &unnest
            .name
            .parts
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>(),
    );
    if !named || unnest.args.len() < 2 || unnest.variadic {
        return None;
    }
    let of_one = |array: &Expr| Expr {
        node: Node::Call(Box::new(Call {
            args: vec![array.clone()],
            ..(**unnest).clone()
        })),
        pos: call.pos,
    };
    Some(unnest.args.iter().map(of_one).collect())
}

fn bare(body: Body, pos: Pos) -> Query {
    Query {
        with: vec![],
        recursive: false,
        body,
        order: vec![],
        limit: None,
        ties: false,
        offset: None,
        locks: vec![],
        pos,
    }
}

fn join(kind: JoinKind, left: TableRef, right: TableRef, on: JoinOn, pos: Pos) -> TableRef {
    TableRef::Join {
        kind,
        left: Box::new(left),
        right: Box::new(right),
        on,
        alias: None,
        pos,
    }
}

fn with_alias(table: TableRef, new: Alias) -> TableRef {
    match table {
        TableRef::Join {
            kind,
            left,
            right,
            on,
            pos,
            ..
        } => TableRef::Join {
            kind,
            left,
            right,
            on,
            alias: Some(new),
            pos,
        },
        other => other,
    }
}
