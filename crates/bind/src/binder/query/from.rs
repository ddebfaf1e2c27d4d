//! FROM: tables, subqueries, functions and joins.

use throng_types::error::state;
use throng_types::sqltype::made;
use throng_types::{Datum, Error, Oid, Result, SqlType, oid};

use crate::binder::expr::aggregate::misplaced;
use crate::binder::query::scope::{
    CteName, CteReading, NO_NAMES, NamedColumn, NamedTable, Names, Scope,
};
use crate::binder::routine::plpgsql::composite_shape;
use crate::binder::{Binder, Clause};
use crate::tree::expr::{Expr, RelId, RoutineCall, Var};
use crate::tree::query::{
    Body, CteBody, FromItem, JoinAlias, JoinColumn, JoinKind, Query, Rel, RelKind, Select, Target,
};
use throng_catalog::{Relation, RoutineKind};
use throng_syntax::parse::ast::{self, Alias, JoinOn, Pos, TableRef};
use throng_syntax::plpgsql::Held;
use throng_values::func::RelColumn;
use throng_values::func::aggregate::transition::TRANSITION;
use throng_values::func::system::{SEQUENCE, SEQUENCE_COLUMNS};
use throng_values::func::{Callee, TransitionTable};

fn wrong_alias(table: &str, has: usize, given: usize) -> Error {
    let message =
        format!("table \"{table}\" has {has} columns available but {given} columns specified");
    Error::new(state::INVALID_COLUMN_REFERENCE, message)
}

#[cold]
fn no_definition(pos: Pos) -> Error {
    let message = "a column definition list is required for functions returning \"record\"";
    Error::new(state::SYNTAX_ERROR, message).position(pos + 1)
}

/// What a call in FROM came out as.
enum ItemCall {
    Function(&'static throng_values::func::Function, Vec<Expr>, SqlType),
    Routine(Box<RoutineCall>),
    Value(Expr),
}

impl Binder<'_> {
    /// A comma list of items: each may refer to those before it where it is lateral.
    pub(in crate::binder) fn bind_from(
        &mut self,
        items: &[TableRef],
        names: &mut Names,
        scope: &Scope<'_>,
    ) -> Result<Vec<FromItem>> {
        let mut bound = Vec::with_capacity(items.len());
        for item in items {
            let (from, new) = self.bind_item(item, names, scope)?;
            names.join(new)?;
            bound.push(from);
        }
        Ok(bound)
    }

    /// One item, with `left`: the names a lateral item may use.
    fn bind_item(
        &mut self,
        item: &TableRef,
        left: &Names,
        scope: &Scope<'_>,
    ) -> Result<(FromItem, Names)> {
        match item {
            TableRef::Table {
                name,
                only,
                alias,
                sample,
            } => {
                let (mut item, names) = self.table_item(name, *only, alias.as_ref(), scope)?;
                if let Some(sample) = sample {
                    let within = Scope::within(left, Some(scope));
                    self.sample_item(&mut item, sample, name.pos, &within)?;
                }
                Ok((item, names))
            }
            TableRef::Subquery {
                query,
                lateral,
                alias,
                ..
            } => {
                let within = Scope::within(left, Some(scope));
                let beside = Scope {
                    names: &NO_NAMES,
                    outer: Some(scope),
                    ctes: &[],
                    barred: Some(left),
                };
                let inner = if *lateral { &within } else { &beside };
                let query = self.in_clause(Clause::From, |b| b.query(query, Some(inner)))?;
                let columns = query.columns();
                let shapes = self.record_shapes(&query);
                let kind = RelKind::Subquery {
                    query: Box::new(query),
                    lateral: *lateral,
                };
                let named = self.named_rel(kind, "unnamed_subquery", columns, alias.as_ref())?;
                self.note_records(&named.0, shapes);
                Ok(named)
            }
            TableRef::Function {
                call,
                ordinality,
                alias,
                definition,
                pos,
                ..
            } => {
                let alias = alias.as_ref();
                if let ast::Node::Call(written) = &call.node
                    && !*ordinality
                    && let Some(query) = self.json_record(written, definition, alias, *pos)?
                {
                    return self.deeper(|b| b.bind_item(&query, left, scope));
                }
                let inner = Scope::within(left, Some(scope));
                self.function_item(call, *ordinality, alias, definition, *pos, &inner)
            }
            TableRef::RowsFrom {
                items,
                ordinality,
                alias,
                ..
            } => {
                let inner = Scope::within(left, Some(scope));
                self.rows_from(items, *ordinality, alias.as_ref(), &inner)
            }
            TableRef::Join {
                kind,
                left: a,
                right: b,
                on,
                alias,
                pos,
            } => self
                .deeper(|binder| binder.join(*kind, a, b, on, alias.as_ref(), *pos, left, scope)),
        }
    }

    fn table_item(
        &mut self,
        name: &ast::Name,
        only: bool,
        alias: Option<&Alias>,
        scope: &Scope<'_>,
    ) -> Result<(FromItem, Names)> {
        if let ([plain], Some(cte)) = (&name.parts[..], scope.find_cte(name.last())) {
            let cte = cte.clone();
            // A name that cannot be read yet may still be a table's.
            if cte.reading != CteReading::Later || self.find_relation(name)?.is_none() {
                return self.cte_item(plain, cte, alias, name.pos);
            }
        }
        if let Some((columns, _)) = self.transition_table(name) {
            let text = SqlType::plain(throng_types::oid::TEXT);
            let kind = RelKind::Function {
                func: &TRANSITION,
                args: vec![Expr::Const(Datum::from(name.last()), text)],
                composite: false,
                ordinality: false,
                lateral: false,
            };
            return self.named_rel(kind, name.last(), columns.to_vec(), alias);
        }
        let relation = self.relation(name)?;
        let schema = match (alias, &relation) {
            (Some(_), _) => None,
            (None, Relation::Table(table)) => self.schema_name(table.schema),
            (None, Relation::View(view)) => self.schema_name(view.schema),
            (None, _) => name.schema().map(str::to_string),
        };
        let (kind, columns, table) = match relation.clone() {
            Relation::Table(table) => {
                let columns = table
                    .columns
                    .iter()
                    .map(|c| RelColumn {
                        name: c.name.clone(),
                        ty: c.ty,
                    })
                    .collect();
                (RelKind::Table(table.clone()), columns, Some(table))
            }
            Relation::Virtual(table) => {
                let columns: Vec<RelColumn> = table
                    .columns
                    .iter()
                    .map(|(name, ty)| RelColumn {
                        name: name.to_string(),
                        ty: *ty,
                    })
                    .collect();
                (RelKind::Virtual(table), columns, None)
            }
            Relation::Sequence(sequence) => {
                let regclass = SqlType::plain(oid::REGCLASS);
                let kind = RelKind::Function {
                    func: &SEQUENCE,
                    args: vec![Expr::Const(Datum::Oid(sequence.oid.0), regclass)],
                    composite: false,
                    ordinality: false,
                    lateral: false,
                };
                let column = |(name, ty): (&str, Oid)| RelColumn {
                    name: name.to_owned(),
                    ty: SqlType::plain(ty),
                };
                (kind, SEQUENCE_COLUMNS.map(column).into(), None)
            }
            Relation::View(view) => return self.view_item(&view, alias, schema),
            Relation::Index(index) => {
                let message = format!("cannot open relation \"{}\"", index.name);
                return Err(Error::new(state::WRONG_OBJECT_TYPE, message)
                    .detail("This operation is not supported for indexes.")
                    .position(name.pos + 1));
            }
        };
        let id = self.new_rel();
        self.reads(&relation, id);
        if let Some(table) = &table {
            self.secure_read(table, id)?;
            self.note_computed(id, table);
        }
        let mut rel = Rel {
            id,
            alias: name.last().to_string(),
            aliased: alias.is_some(),
            column_aliases: alias.map_or(vec![], |a| a.columns.clone()),
            kind,
            only,
            sample: None,
            columns,
        };
        let mut visible: Vec<NamedColumn> = Vec::new();
        for (i, column) in rel.columns.iter().enumerate() {
            let dropped = table.as_ref().is_some_and(|t| t.columns[i].dropped);
            if !dropped {
                let var = Var {
                    rel: id,
                    column: i as i16 + 1,
                    ty: column.ty,
                };
                visible.push(NamedColumn {
                    name: column.name.clone(),
                    expr: Expr::Var(var),
                });
            }
        }
        if let Some(alias) = alias {
            rel.alias = alias.name.clone();
            if alias.columns.len() > visible.len() {
                return Err(wrong_alias(&alias.name, visible.len(), alias.columns.len()));
            }
            visible
                .iter_mut()
                .zip(&alias.columns)
                .for_each(|(c, n)| c.name = n.clone());
        }
        let named = NamedTable {
            name: rel.alias.clone(),
            schema,
            rel: Some(id),
            columns: visible.clone(),
            catalog: matches!(&rel.kind, RelKind::Virtual(table) if table.relkind() == b'r'),
            table,
            function: false,
            row_type: None,
            nullable: false,
        };
        let names = Names {
            tables: vec![named],
            columns: visible,
        };
        Ok((FromItem::Rel(Box::new(rel)), names))
    }

    /// A transition table that a name without schema means, in a trigger's function.
    pub(in crate::binder) fn transition_table(&self, name: &ast::Name) -> Option<TransitionTable> {
        match &name.parts[..] {
            [plain] => self.ctx.eval.host.transition_table(plain),
            _ => None,
        }
    }

    fn cte_item(
        &mut self,
        name: &str,
        cte: CteName,
        alias: Option<&Alias>,
        pos: Pos,
    ) -> Result<(FromItem, Names)> {
        let kind = match cte.reading {
            CteReading::Result(index) => {
                let body = &self.ctes[index as usize].body;
                if matches!(body, CteBody::Write(_)) && cte.columns.is_empty() {
                    let message = format!("WITH query \"{name}\" does not have a RETURNING clause");
                    let error = Error::new(state::FEATURE_NOT_SUPPORTED, message);
                    return Err(error.position(pos + 1));
                }
                self.ctes[index as usize].uses += 1;
                RelKind::Cte(index)
            }
            CteReading::LastStep(index) => RelKind::WorkTable(index),
            CteReading::Later => {
                let message = format!("relation \"{name}\" does not exist");
                let error = Error::new(state::UNDEFINED_TABLE, message)
                    .detail(format!("There is a WITH item named \"{name}\", but it cannot be referenced from this part of the query."))
                    .hint("Use WITH RECURSIVE, or re-order the WITH items to remove forward references.");
                return Err(error.position(pos + 1));
            }
        };
        self.named_rel(kind, name, cte.columns, alias)
    }

    /// An entry whose columns are its output by position.
    pub(in crate::binder) fn named_rel(
        &mut self,
        kind: RelKind,
        name: &str,
        mut columns: Vec<RelColumn>,
        alias: Option<&Alias>,
    ) -> Result<(FromItem, Names)> {
        let id = self.new_rel();
        let mut rel_name = name.to_string();
        if let Some(alias) = alias {
            rel_name = alias.name.clone();
            if alias.columns.len() > columns.len() {
                return Err(wrong_alias(&rel_name, columns.len(), alias.columns.len()));
            }
            columns
                .iter_mut()
                .zip(&alias.columns)
                .for_each(|(c, n)| c.name = n.clone());
        }
        let visible = visible_columns(id, &columns);
        let tables = match alias.is_none() && name == "unnamed_subquery" {
            true => vec![],
            false => vec![NamedTable {
                name: rel_name.clone(),
                schema: None,
                rel: Some(id),
                columns: visible.clone(),
                table: None,
                catalog: false,
                function: false,
                row_type: None,
                nullable: false,
            }],
        };
        let rel = Rel {
            id,
            alias: rel_name,
            aliased: alias.is_some(),
            column_aliases: alias.map_or(vec![], |a| a.columns.clone()),
            kind,
            only: false,
            sample: None,
            columns,
        };
        Ok((
            FromItem::Rel(Box::new(rel)),
            Names {
                tables,
                columns: visible,
            },
        ))
    }

    fn function_item(
        &mut self,
        call: &ast::Expr,
        ordinality: bool,
        alias: Option<&Alias>,
        definition: &[ast::ColumnDefinition],
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Result<(FromItem, Names)> {
        if let ast::Node::Json(json) = &call.node
            && let ast::JsonNode::Table(table) = &**json
        {
            return self.in_clause(Clause::From, |b| b.json_table(table, alias, scope));
        }
        let label = self.label_of(call);
        let (func, args, ty) = match &call.node {
            ast::Node::Call(c) => {
                let resolved = self.in_clause(Clause::From, |b| b.item_call(c, pos, scope))?;
                match resolved {
                    ItemCall::Function(func, args, ty) => (func, args, ty),
                    ItemCall::Routine(call) => {
                        return self.routine_item(call, &label, ordinality, alias, definition, pos);
                    }
                    // An expression that is no plain function: a row of its value.
                    ItemCall::Value(expr) => {
                        return self.value_item(expr, &label, ordinality, alias, pos);
                    }
                }
            }
            _ => {
                let expr = self.in_clause(Clause::From, |b| b.expr(call, scope))?;
                return self.value_item(expr, &label, ordinality, alias, pos);
            }
        };
        let lateral = args
            .iter()
            .any(|a: &Expr| a.any(&mut |e| matches!(e, Expr::Var(_))));
        let given: Vec<Expr> = args;
        let fields = self
            .composite_columns(ty.oid)
            .filter(|_| definition.is_empty());
        let row_type = fields.is_some().then_some(ty.oid);
        let mut columns = match (fields, definition.is_empty()) {
            (Some(fields), _) => fields,
            (None, true) => self.function_columns(func, ty, &label, alias, pos)?,
            (None, false) => {
                let has_columns = !func.columns.is_empty() || made::is_composite(ty.oid);
                self.defined_columns(definition, ty, has_columns, pos)?
            }
        };
        let single = columns.len() == 1 && row_type.is_none();
        if ordinality {
            columns.push(RelColumn {
                name: "ordinality".into(),
                ty: SqlType::INT8,
            });
        }
        let kind = RelKind::Function {
            func,
            args: given,
            composite: row_type.is_some(),
            ordinality,
            lateral,
        };
        let (item, mut names) = self.named_rel(kind, &label, columns, alias)?;
        for table in &mut names.tables {
            table.function = single && !ordinality;
            table.row_type = row_type.filter(|_| !ordinality);
        }
        Ok((item, names))
    }

    fn rows_from(
        &mut self,
        items: &[(ast::Expr, Vec<ast::ColumnDefinition>)],
        ordinality: bool,
        alias: Option<&Alias>,
        scope: &Scope<'_>,
    ) -> Result<(FromItem, Names)> {
        let (mut bound, mut columns) = (Vec::new(), Vec::new());
        for (call, definition) in items {
            let query = match &call.node {
                ast::Node::Call(written) => {
                    self.json_record(written, definition, None, call.pos)?
                }
                _ => None,
            };
            let (item, _) = match query {
                Some(query) => self.deeper(|b| b.bind_item(&query, scope.names, scope))?,
                None => self.function_item(call, false, None, definition, call.pos, scope)?,
            };
            if let FromItem::Rel(rel) = &item {
                columns.extend(rel.columns.iter().cloned());
            }
            bound.push(item);
        }
        if ordinality {
            columns.push(RelColumn {
                name: "ordinality".into(),
                ty: SqlType::INT8,
            });
        }
        let label = self.label_of(&items[0].0);
        let kind = RelKind::RowsFrom {
            items: bound,
            ordinality,
        };
        self.named_rel(kind, &label, columns, alias)
    }

    /// A value in FROM, such as `coalesce(…)` or `current_date`: one row of it.
    fn value_item(
        &mut self,
        expr: Expr,
        label: &str,
        ordinality: bool,
        alias: Option<&Alias>,
        pos: Pos,
    ) -> Result<(FromItem, Names)> {
        if ordinality {
            return Err(Error::unsupported("WITH ORDINALITY here").position(pos + 1));
        }
        let expr = self.settle(expr, pos)?;
        let ty = expr.ty();
        let name = alias.map_or(label, |a| &a.name).to_string();
        let columns = vec![RelColumn {
            name: name.clone(),
            ty,
        }];
        let values = Body::Values {
            rows: vec![vec![expr.clone()]],
            columns: vec![Target { expr, name }],
        };
        let value = Query::of_body(values, self.new_rel());
        let Some(fields) = self.composite_columns(ty.oid) else {
            return self.named_rel(lateral(value), label, columns, alias);
        };
        // The fields of a row.
        let rel = self.new_rel();
        let row = Expr::Var(Var { rel, column: 1, ty });
        let targets = fields.iter().zip(0..).map(|(field, index)| Target {
            expr: Expr::Field {
                row: Box::new(row.clone()),
                index,
                ty: field.ty,
            },
            name: field.name.clone(),
        });
        let value = Rel::unnamed_subquery(rel, value, columns);
        let select = Select::plain(vec![FromItem::Rel(Box::new(value))], targets.collect());
        let spread = Query::of_body(Body::Select(Box::new(select)), self.new_rel());
        let (item, mut names) = self.named_rel(lateral(spread), label, fields, alias)?;
        for table in &mut names.tables {
            table.row_type = Some(ty.oid);
        }
        Ok((item, names))
    }

    /// The columns that a value of a composite type has in FROM.
    pub(in crate::binder) fn composite_columns(&self, ty: Oid) -> Option<Vec<RelColumn>> {
        if !made::is_composite(ty) {
            return None;
        }
        let fields = composite_shape(self.catalog(), ty)?.into_iter();
        let column = |(name, held): (String, Held)| RelColumn { name, ty: held.ty };
        Some(fields.map(column).collect())
    }

    /// A function called in FROM, by the kind of thing it is.
    fn item_call(&mut self, call: &ast::Call, pos: Pos, scope: &Scope<'_>) -> Result<ItemCall> {
        if call.filter.is_some()
            || call.distinct
            || !call.order.is_empty()
            || call.star
            || call.over.is_some()
        {
            return Ok(ItemCall::Value(self.call(call, pos, scope)?));
        }
        match self.json_populate_call(call, pos, scope)? {
            Some(Expr::Call { func, args, ty } | Expr::SetCall { func, args, ty }) => {
                return Ok(ItemCall::Function(func, args, ty));
            }
            Some(value) => return Ok(ItemCall::Value(value)),
            None => {}
        }
        let resolved = match self.resolve_call(call, pos, scope)? {
            Some(resolved) => resolved,
            None => return Ok(ItemCall::Value(self.call(call, pos, scope)?)),
        };
        if let Some(routine) = resolved.routine {
            match routine.def.kind {
                RoutineKind::Function => {}
                RoutineKind::Aggregate => return Err(misplaced(Clause::From, pos)),
                RoutineKind::Procedure => {
                    self.routine_value(call, routine.clone(), &resolved.given, pos)?;
                }
            }
            if routine.def.ret_domain.is_some() && made::is_composite(routine.ty.oid) {
                let value = self.routine_value(call, routine, &resolved.given, pos)?;
                return Ok(ItemCall::Value(value));
            }
            return Ok(ItemCall::Routine(routine));
        }
        match resolved.callee {
            Callee::Scalar(f) | Callee::Set(f) => {
                Ok(ItemCall::Function(f, resolved.args, resolved.ty))
            }
            Callee::Window(_) | Callee::Routine(_) => {
                Ok(ItemCall::Value(self.call(call, pos, scope)?))
            }
            Callee::Aggregate(_) => Err(misplaced(Clause::From, pos)),
        }
    }

    /// A user's function in FROM: as its query where it is but that, else to be called.
    fn routine_item(
        &mut self,
        mut call: Box<RoutineCall>,
        label: &str,
        ordinality: bool,
        alias: Option<&Alias>,
        definition: &[ast::ColumnDefinition],
        pos: Pos,
    ) -> Result<(FromItem, Names)> {
        let any_record = call.ty.oid == throng_types::oid::RECORD && call.columns.is_empty();
        if !definition.is_empty() {
            let has_columns = !call.columns.is_empty();
            call.columns = self.defined_columns(definition, call.ty, has_columns, pos)?;
        } else if any_record {
            return Err(no_definition(pos));
        }
        let scalar = call.columns.is_empty();
        let row_type = made::is_composite(call.ty.oid).then_some(call.ty.oid);
        let mut columns = match scalar {
            false => call.columns.clone(),
            true => {
                let mut outputs = call.def.outputs().filter(|o| !o.name.is_empty());
                let own = outputs.next().map(|o| o.name.as_str());
                let name = own.unwrap_or_else(|| alias.map_or(label, |a| &a.name));
                vec![RelColumn {
                    name: name.to_string(),
                    ty: call.ty,
                }]
            }
        };
        let inline = match ordinality {
            false => self.inline_rows(&call).map(Box::new),
            true => None,
        };
        let mut lateral = false;
        for arg in &call.args {
            arg.for_each_var(&mut |_| lateral = true);
        }
        if ordinality {
            columns.push(RelColumn {
                name: "ordinality".into(),
                ty: SqlType::INT8,
            });
        }
        let kind = RelKind::Routine {
            call,
            inline,
            ordinality,
            lateral,
        };
        let (item, mut names) = self.named_rel(kind, label, columns, alias)?;
        for table in &mut names.tables {
            table.function = scalar && !ordinality;
            table.row_type = row_type.filter(|_| !ordinality);
        }
        Ok((item, names))
    }

    /// The columns that a definition list gives to records.
    fn defined_columns(
        &mut self,
        definition: &[ast::ColumnDefinition],
        ty: SqlType,
        has_columns: bool,
        pos: Pos,
    ) -> Result<Vec<RelColumn>> {
        if ty.oid != throng_types::oid::RECORD || has_columns {
            let message = match has_columns {
                true if made::is_composite(ty.oid) => {
                    "a column definition list is redundant for a function returning a named composite type"
                }
                true => "a column definition list is redundant for a function with OUT parameters",
                false => {
                    "a column definition list is only allowed for functions returning \"record\""
                }
            };
            return Err(Error::new(state::SYNTAX_ERROR, message).position(pos + 1));
        }
        let columns = definition.iter().map(|column| {
            Ok(RelColumn {
                name: column.name.clone(),
                ty: self.type_of(&column.ty)?,
            })
        });
        columns.collect()
    }

    /// The columns a function in FROM gives.
    fn function_columns(
        &self,
        func: &throng_values::func::Function,
        ty: SqlType,
        label: &str,
        alias: Option<&Alias>,
        pos: Pos,
    ) -> Result<Vec<RelColumn>> {
        if !func.columns.is_empty() {
            let named = func.columns.iter();
            return Ok(named
                .map(|&(name, ty)| RelColumn {
                    name: name.to_string(),
                    ty: SqlType::plain(ty),
                })
                .collect());
        }
        if ty.oid == throng_types::oid::RECORD {
            return Err(no_definition(pos));
        }
        let name = alias.map_or(label, |a| &a.name);
        Ok(vec![RelColumn {
            name: name.to_string(),
            ty,
        }])
    }

    #[allow(clippy::too_many_arguments)] // The parts of a written join.
    fn join(
        &mut self,
        kind: JoinKind,
        a: &TableRef,
        b: &TableRef,
        on: &JoinOn,
        alias: Option<&Alias>,
        pos: Pos,
        outer_left: &Names,
        scope: &Scope<'_>,
    ) -> Result<(FromItem, Names)> {
        let (left, mut left_names) = self.bind_item(a, outer_left, scope)?;
        // A lateral right side may use the left side, where every left row is there to use.
        let mut visible = outer_left.clone();
        if matches!(kind, JoinKind::Inner | JoinKind::Left) {
            visible.join(left_names.clone())?;
        }
        let (right, mut right_names) = self.bind_item(b, &visible, scope)?;
        let without_row = |names: &mut Names| {
            for table in &mut names.tables {
                table.nullable = true;
            }
        };
        if matches!(kind, JoinKind::Left | JoinKind::Full) {
            without_row(&mut right_names);
        }
        if matches!(kind, JoinKind::Right | JoinKind::Full) {
            without_row(&mut left_names);
        }
        let mut names = Names {
            tables: left_names.tables.clone(),
            columns: vec![],
        };
        names.join(Names {
            tables: right_names.tables.clone(),
            columns: vec![],
        })?;
        let (condition, columns, using) =
            self.join_condition(kind, on, &names, &left_names, &right_names, pos, scope)?;
        names.columns = columns;
        let mut kept = None;
        if let JoinOn::Using(merged, Some(name)) = on {
            let columns = names.columns[..merged.len()].to_vec();
            names.join(Names {
                tables: vec![NamedTable::of_columns(name, columns)],
                columns: vec![],
            })?;
        }
        if let Some(alias) = alias {
            if alias.columns.len() > names.columns.len() {
                let (has, given) = (names.columns.len(), alias.columns.len());
                return Err(wrong_alias(&alias.name, has, given));
            }
            names
                .columns
                .iter_mut()
                .zip(&alias.columns)
                .for_each(|(c, n)| c.name = n.clone());
            kept = self.join_alias(alias, &names.columns);
            names.tables = vec![NamedTable::of_columns(&alias.name, names.columns.clone())];
        }
        let item = FromItem::Join {
            kind,
            left: Box::new(left),
            right: Box::new(right),
            on: condition,
            using,
            alias: kept,
        };
        Ok((item, names))
    }

    /// What a definition keeps of a join's name.
    fn join_alias(&self, alias: &Alias, columns: &[NamedColumn]) -> Option<Box<JoinAlias>> {
        let columns = columns.iter().enumerate().map(|(i, column)| JoinColumn {
            name: column.name.clone(),
            written: i < alias.columns.len(),
            expr: column.expr.clone(),
        });
        self.defining.then(|| {
            Box::new(JoinAlias {
                name: alias.name.clone(),
                columns: columns.collect(),
            })
        })
    }

    #[allow(clippy::too_many_arguments)] // Both sides' names and where they are.
    fn join_condition(
        &mut self,
        kind: JoinKind,
        on: &JoinOn,
        tables: &Names,
        left: &Names,
        right: &Names,
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Result<(Option<Expr>, Vec<NamedColumn>, Vec<String>)> {
        let all = || {
            left.columns
                .iter()
                .chain(&right.columns)
                .cloned()
                .collect::<Vec<_>>()
        };
        let shared: Vec<String> = match on {
            JoinOn::None => return Ok((None, all(), vec![])),
            JoinOn::On(expr) => {
                let names = Names {
                    tables: tables.tables.clone(),
                    columns: all(),
                };
                let inner = Scope::within(&names, Some(scope));
                let condition = self.in_clause(Clause::On, |b| {
                    let bound = b.expr(expr, &inner)?;
                    b.condition(bound, "JOIN/ON", expr.pos)
                })?;
                return Ok((Some(condition), all(), vec![]));
            }
            JoinOn::Using(columns, _) => columns.clone(),
            JoinOn::Natural => left
                .columns
                .iter()
                .filter(|c| right.columns.iter().any(|r| r.name == c.name))
                .map(|c| c.name.clone())
                .collect(),
        };
        let (mut conditions, mut merged) = (Vec::new(), Vec::new());
        for name in &shared {
            let l = one_column(&left.columns, name, "left")?;
            let r = one_column(&right.columns, name, "right")?;
            let equal = self.operator("=", Some(l.clone()), r.clone(), pos)?;
            conditions.push(equal);
            let (mut both, ty) = self.unify(vec![(l, pos), (r, pos)], "JOIN/USING")?;
            let expr = match kind {
                JoinKind::Full => Expr::Coalesce(both, ty),
                JoinKind::Right => both.swap_remove(1),
                JoinKind::Left => both.swap_remove(0),
                // Either would do; one that is a column as it stands is taken first.
                _ => {
                    let plain = both.iter().position(|e| matches!(e, Expr::Var(_)));
                    both.swap_remove(plain.unwrap_or(0))
                }
            };
            merged.push(NamedColumn {
                name: name.clone(),
                expr,
            });
        }
        let rest = left.columns.iter().chain(&right.columns);
        merged.extend(rest.filter(|c| !shared.contains(&c.name)).cloned());
        Ok((Expr::all_of(conditions), merged, shared))
    }
}

/// A query that may use what stands before it.
fn lateral(query: Query) -> RelKind {
    RelKind::Subquery {
        query: Box::new(query),
        lateral: true,
    }
}

fn one_column(columns: &[NamedColumn], name: &str, side: &str) -> Result<Expr> {
    let mut found = columns.iter().filter(|c| c.name == name);
    let Some(column) = found.next() else {
        let message =
            format!("column \"{name}\" specified in USING clause does not exist in {side} table");
        return Err(Error::new(state::UNDEFINED_COLUMN, message));
    };
    if found.next().is_some() {
        let message =
            format!("common column name \"{name}\" appears more than once in {side} table");
        return Err(Error::new(state::AMBIGUOUS_COLUMN, message));
    }
    Ok(column.expr.clone())
}

fn visible_columns(id: RelId, columns: &[RelColumn]) -> Vec<NamedColumn> {
    columns
        .iter()
        .enumerate()
        .map(|(i, c)| {
            let var = Var {
                rel: id,
                column: i as i16 + 1,
                ty: c.ty,
            };
            NamedColumn {
                name: c.name.clone(),
                expr: Expr::Var(var),
            }
        })
        .collect()
}
