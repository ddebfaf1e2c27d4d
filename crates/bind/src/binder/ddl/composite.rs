//! Composite types: rows become values of them, and fields are taken out again.
//!
//! A value of a composite type is a record whose fields are the type's that exist, in order, under
//! their names. Operators and functions take it as a `record`.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::sqltype::{made, type_name};
use throng_types::{Error, Oid, Result, SqlType, Text, oid};

use crate::binder::ddl::domain::Declared;
use crate::binder::ddl::table::check_storable;
use crate::binder::query::scope::Scope;
use crate::binder::{Binder, at};
use crate::command::{Ddl, Target, TargetKind};
use crate::tree::expr::{Expr, Var};
use crate::tree::query::{Body, FromItem, Query};
use throng_catalog::{ColumnDef, Relation, TableDef, TypeDef};
use throng_syntax::parse::ast::{self, FieldChange, Node, Pos};
use throng_values::func::CastContext;
use throng_values::func::RelColumn;

/// The values of a row, and their names where they have some.
type RowParts<'a> = (&'a [Expr], Option<&'a Arc<[Text]>>);

/// The fields of a row that is written out or a table's, whatever type it was given.
pub(in crate::binder) fn row_fields(expr: &Expr) -> Option<RowParts<'_>> {
    match expr {
        Expr::Row(fields, names) => Some((fields, names.as_ref())),
        Expr::Cast {
            arg,
            cast: None,
            to,
            ..
        } if made::is_composite(to.oid) || to.oid == oid::RECORD => row_fields(arg),
        _ => None,
    }
}

/// A value said to be of another type whose values look the same.
pub(in crate::binder) fn relabelled(expr: Expr, to: Oid, context: CastContext) -> Expr {
    Expr::Cast {
        arg: Box::new(expr),
        cast: None,
        to: SqlType::plain(to),
        context,
    }
}

/// The names and types of a record's fields.
pub(in crate::binder) type Shape = Vec<(String, SqlType)>;

/// A field's type and name.
fn fields(def: &TypeDef) -> impl Iterator<Item = &ColumnDef> {
    def.fields.iter().flatten().filter(|f| !f.dropped)
}

/// An item of a row that is assigned to columns.
pub(in crate::binder) enum RowItem<'e> {
    Written(&'e ast::Expr),
    /// One that a `*` stands for.
    Spread(Expr, Pos),
}

impl Binder<'_> {
    /// A column of a composite type, as one of the relation that the type has.
    pub(in crate::binder) fn composite_column(
        &mut self,
        name: &ast::Name,
        column: &str,
    ) -> Result<Target> {
        let def = self.made_type(name);
        let found = def.and_then(|def| Some((made::serial(def.oid)?, def.fields.clone()?, def)));
        let Some((relation, fields, def)) = found else {
            let message = format!("relation \"{name}\" does not exist");
            return Err(Error::new(state::UNDEFINED_TABLE, message));
        };
        self.must_own(def.owner, "type", &def.name)?;
        let place = fields.iter().position(|c| c.name == column && !c.dropped);
        let Some(place) = place else {
            let message = format!(
                "column \"{column}\" of relation \"{}\" does not exist",
                def.name
            );
            return Err(Error::new(state::UNDEFINED_COLUMN, message));
        };
        Ok(Target {
            kind: TargetKind::ViewColumn(place as u16 + 1),
            oid: relation,
        })
    }

    /// A whole row of a table as a value of the table's row type.
    pub(in crate::binder) fn as_row_type(&self, row: Expr, table: Oid) -> Expr {
        match made::composite_oid(table).filter(|_| table != Oid::NONE) {
            Some(ty) => relabelled(row, ty, CastContext::Implicit),
            None => row,
        }
    }

    /// Rows to composite types and back; None where this is not about them, or cannot be.
    pub(in crate::binder) fn coerce_row(
        &mut self,
        expr: &Expr,
        to: SqlType,
        context: CastContext,
        pos: Pos,
    ) -> Result<Option<Expr>> {
        let from = expr.type_oid();
        if to.oid == oid::RECORD && made::is_composite(from) {
            return Ok(Some(match row_fields(expr) {
                Some((fields, names)) => Expr::Row(fields.to_vec(), names.cloned()),
                None => relabelled(expr.clone(), oid::RECORD, context),
            }));
        }
        if !made::is_composite(to.oid) || from != oid::RECORD {
            return Ok(None);
        }
        match expr {
            Expr::Row(given, _) => self.row_as(given, to.oid, context, pos).map(Some),
            _ => Ok(None),
        }
    }

    fn row_as(&mut self, given: &[Expr], to: Oid, context: CastContext, pos: Pos) -> Result<Expr> {
        let wrong = |detail: String| {
            let message = format!("cannot cast type record to {}", type_name(to));
            Error::new(state::CANNOT_COERCE, message)
                .detail(detail)
                .position(pos + 1)
        };
        let Some(def) = self.catalog().composite(to) else {
            return Err(Error::internal("a composite type that is not there"));
        };
        let wanted: Vec<&ColumnDef> = fields(&def).collect();
        match given.len().cmp(&wanted.len()) {
            std::cmp::Ordering::Less => return Err(wrong("Input has too few columns.".into())),
            std::cmp::Ordering::Greater => {
                return Err(wrong("Input has too many columns.".into()));
            }
            std::cmp::Ordering::Equal => {}
        }
        let mut values = Vec::with_capacity(given.len());
        for (i, (value, field)) in given.iter().zip(&wanted).enumerate() {
            let value = untyped(value);
            let from = value.type_oid();
            let cast = self.try_coerce(value, field.ty, context, pos)?;
            let Some(cast) = cast else {
                return Err(wrong(format!(
                    "Cannot cast type {} to {} in column {}.",
                    type_name(from),
                    type_name(field.shown_type()),
                    i + 1
                )));
            };
            values.push(self.in_domain(cast, field.domain)?);
        }
        let names = wanted.iter().map(|f| Text::new(&f.name)).collect();
        let row = Expr::Row(values, Some(names));
        Ok(relabelled(row, to, context))
    }

    /// `(value).name`
    pub(in crate::binder) fn field(
        &mut self,
        arg: &ast::Expr,
        name: &str,
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        if let Node::Column(parts) = &arg.node
            && let [table] = &parts[..]
            && self.is_no_column(table, arg.pos, scope)
            && self.named_table(None, table, arg.pos, scope).is_ok()
        {
            return self.column(&[table.clone(), name.to_string()], pos, scope);
        }
        let bound = self.expr(arg, scope)?;
        let missing = |of: &str| {
            let message = format!("column \"{name}\" not found in data type {of}");
            Err(Error::new(state::UNDEFINED_COLUMN, message).position(arg.pos + 1))
        };
        match bound.type_oid() {
            oid::RECORD => match self.fields_of(&bound)?.into_iter().find(|(n, _)| n == name) {
                Some((_, field)) => Ok(field),
                None => {
                    if let Some(value) = self.called_as_field(name, arg.clone(), pos, scope) {
                        return value;
                    }
                    let message =
                        format!("could not identify column \"{name}\" in record data type");
                    Err(Error::new(state::UNDEFINED_COLUMN, message).position(arg.pos + 1))
                }
            },
            ty if made::is_composite(ty) => {
                let found = self.fields_of(&bound)?.into_iter().find(|(n, _)| n == name);
                match found {
                    Some((_, field)) => Ok(field),
                    None => self
                        .called_as_field(name, arg.clone(), pos, scope)
                        .unwrap_or_else(|| missing(&type_name(ty))),
                }
            }
            other => {
                if let Some(value) = self.called_as_field(name, arg.clone(), pos, scope) {
                    return value;
                }
                let message = format!(
                    "column notation .{name} applied to type {}, which is not a composite type",
                    type_name(other)
                );
                Err(Error::new(state::WRONG_OBJECT_TYPE, message).position(arg.pos + 1))
            }
        }
    }

    /// Whether a name alone is no column's: then it may be a table's.
    fn is_no_column(&self, name: &str, _pos: Pos, scope: &Scope<'_>) -> bool {
        !scope.names.columns.iter().any(|c| c.name == name)
    }

    /// The fields of a row, by name; none of a record that only running it would tell.
    pub(in crate::binder) fn fields_of(&mut self, row: &Expr) -> Result<Vec<(String, Expr)>> {
        // Columns of a row that is not there are NULL by themselves.
        if let Some((row, _)) = row.row_if_there() {
            return self.fields_of(row);
        }
        if let Some((values, names)) = row_fields(row) {
            let name = |i: usize| match names {
                Some(names) => names[i].to_string(),
                None => format!("f{}", i + 1),
            };
            let named = values.iter().enumerate();
            return Ok(named.map(|(i, v)| (name(i), v.clone())).collect());
        }
        if let Expr::Param(slot, _) = row
            && let Some(fields) = self.fields_of_param(*slot)
        {
            let field = |((name, ty), index): (&(String, SqlType), u16)| {
                let value = Expr::Field {
                    row: Box::new(row.clone()),
                    index,
                    ty: *ty,
                };
                (name.clone(), value)
            };
            return Ok(fields.iter().zip(0..).map(field).collect());
        }
        let columns = row.row_columns();
        if !columns.is_empty() {
            let field = |(column, index): (RelColumn, u16)| {
                let value = Expr::Field {
                    row: Box::new(row.clone()),
                    index,
                    ty: column.ty,
                };
                (column.name, value)
            };
            return Ok(columns.into_iter().zip(0..).map(field).collect());
        }
        let known = |var: &Var| {
            let mut records = self.records.iter();
            records.find(|(rel, column, _)| (*rel, *column) == (var.rel, var.column))
        };
        if let Expr::Var(var) = row
            && let Some((.., fields)) = known(var)
        {
            let fields = fields.iter().enumerate().map(|(i, (name, ty))| {
                let value = Expr::Field {
                    row: Box::new(row.clone()),
                    index: i as u16,
                    ty: *ty,
                };
                (name.clone(), value)
            });
            return Ok(fields.collect());
        }
        let Some(def) = self.catalog().composite(row.type_oid()) else {
            return Ok(vec![]);
        };
        Ok(fields(&def)
            .enumerate()
            .map(|(i, field)| {
                let value = Expr::Field {
                    row: Box::new(row.clone()),
                    index: i as u16,
                    ty: field.ty,
                };
                (field.name.clone(), value)
            })
            .collect())
    }

    /// Which of a subquery's columns are records, and of what fields, where that can be seen.
    pub(in crate::binder) fn record_shapes(&self, query: &Query) -> Vec<(i16, Shape)> {
        let Body::Select(select) = &query.body else {
            return vec![];
        };
        let numbered = select.targets.iter().zip(1..);
        let shapes = numbered.filter_map(|(target, number)| match target.expr.row_alone() {
            Expr::Row(values, names) => {
                let name = |i: usize| match names {
                    Some(names) => names[i].to_string(),
                    None => format!("f{}", i + 1),
                };
                let fields = values.iter().enumerate();
                Some((number, fields.map(|(i, v)| (name(i), v.ty())).collect()))
            }
            Expr::Var(var) => {
                let mut records = self.records.iter();
                let known =
                    records.find(|(rel, column, _)| (*rel, *column) == (var.rel, var.column))?;
                Some((number, known.2.clone()))
            }
            call if call.type_oid() == oid::RECORD => {
                let columns = call.row_columns().into_iter();
                let shape: Shape = columns.map(|c| (c.name, c.ty)).collect();
                Some((number, shape)).filter(|(_, shape)| !shape.is_empty())
            }
            _ => None,
        });
        shapes.collect()
    }

    pub(in crate::binder) fn note_records(&mut self, item: &FromItem, shapes: Vec<(i16, Shape)>) {
        if let FromItem::Rel(rel) = item {
            let shapes = shapes.into_iter();
            self.records
                .extend(shapes.map(|(column, shape)| (rel.id, column, shape)));
        }
    }

    /// `(value).*`
    pub(in crate::binder) fn spread(
        &mut self,
        arg: &ast::Expr,
        scope: &Scope<'_>,
    ) -> Result<Vec<(String, Expr)>> {
        let bound = self.expr(arg, scope)?;
        let ty = bound.type_oid();
        let fields = self.fields_of(&bound)?;
        if fields.is_empty() && !made::is_composite(ty) {
            let message = match ty {
                oid::RECORD => "record type has not been registered".to_owned(),
                ty => format!("type {} is not composite", type_name(ty)),
            };
            return Err(Error::new(state::WRONG_OBJECT_TYPE, message).position(arg.pos + 1));
        }
        Ok(fields)
    }

    /// The `i`th of `count` items of a row, `t.*` and `(value).*` spread out; none where there are
    /// not as many.
    pub(in crate::binder) fn item_of_row<'e>(
        &mut self,
        fields: &'e [ast::Expr],
        i: usize,
        count: usize,
        scope: &Scope<'_>,
    ) -> Result<Option<RowItem<'e>>> {
        let (mut found, mut at) = (None, 0);
        for field in fields {
            if let Node::Star(_) | Node::FieldStar(_) = field.node {
                let mut items = self.row_items(std::slice::from_ref(field), scope)?;
                let width = items.len();
                if (at..at + width).contains(&i) {
                    let (expr, pos) = items.swap_remove(i - at);
                    found = Some(RowItem::Spread(expr, pos));
                }
                at += width;
                continue;
            }
            if at == i {
                found = Some(RowItem::Written(field));
            }
            at += 1;
        }
        Ok(found.filter(|_| at == count))
    }

    fn new_field(&mut self, ast: &ast::ColumnDef) -> Result<ColumnDef> {
        let Declared { ty, domain } = self.declared_for_new(&ast.ty)?;
        check_storable(&ast.name, ty.oid)?;
        let mut field = ColumnDef::new(&ast.name, ty);
        field.domain = domain;
        if let Some(collation) = &ast.collation {
            field.collation = self.column_collation(collation, ty)?;
        }
        Ok(field)
    }

    pub(in crate::binder) fn create_composite(
        &mut self,
        name: &ast::Name,
        columns: &[ast::ColumnDef],
    ) -> Result<Ddl> {
        // It is a relation's type.
        let (schema, _) = self.place(name, false)?;
        let mut made: Vec<ColumnDef> = Vec::with_capacity(columns.len());
        for column in columns {
            if made.iter().any(|f| f.name == column.name) {
                let message = format!("column \"{}\" specified more than once", column.name);
                return Err(Error::new(state::DUPLICATE_COLUMN, message));
            }
            made.push(self.new_field(column)?);
        }
        Ok(Ddl::CreateComposite(TypeDef {
            oid: Oid::NONE,
            schema,
            name: name.last().to_owned(),
            owner: self.ctx.user,
            labels: vec![],
            domain: None,
            fields: Some(made),
            array_name: None,
            range: None,
        }))
    }

    pub(in crate::binder) fn alter_composite(
        &mut self,
        name: &ast::Name,
        changes: &[FieldChange],
    ) -> Result<Ddl> {
        // It is sought among relations, and a relation that is more than a type is none.
        if let Some(relation) = self.find_relation(name)? {
            if let ([FieldChange::Rename { from, to }], Relation::Table(table)) =
                (changes, &relation)
            {
                return self.rename_as_attribute(table, from, to);
            }
            let message = format!("\"{}\" is not a composite type", relation.name());
            return Err(Error::new(state::WRONG_OBJECT_TYPE, message));
        }
        if let Some(schema) = name.schema() {
            self.schema(schema)?;
        }
        let def = self.made_type(name);
        let Some(def) = def.filter(|d| d.fields.is_some()) else {
            let message = format!("relation \"{name}\" does not exist");
            return Err(Error::new(state::UNDEFINED_TABLE, message));
        };
        self.must_own(def.owner, "type", &def.name)?;
        let mut new = (*def).clone();
        let list = new.fields.get_or_insert_default();
        let find = |list: &[ColumnDef], field: &str| {
            list.iter()
                .position(|f| !f.dropped && f.name == field)
                .ok_or_else(|| {
                    let message = format!(
                        "column \"{field}\" of relation \"{}\" does not exist",
                        def.name
                    );
                    Error::new(state::UNDEFINED_COLUMN, message)
                })
        };
        let taken = |list: &[ColumnDef], field: &str| match find(list, field) {
            Err(_) => Ok(()),
            Ok(_) => {
                let message = format!(
                    "column \"{field}\" of relation \"{}\" already exists",
                    def.name
                );
                Err(Error::new(state::DUPLICATE_COLUMN, message))
            }
        };
        for change in changes {
            match change {
                FieldChange::Add(column) => {
                    taken(list, &column.name)?;
                    let field = self.new_field(column)?;
                    self.must_not_contain(field.shown_type(), def.oid)?;
                    list.push(field);
                }
                FieldChange::Drop { name, if_exists } => match find(list, name) {
                    Ok(place) => list[place].dropped = true,
                    Err(e) if *if_exists => {
                        let message = format!("{}, skipping", e.message());
                        self.notice(Error::new(state::SUCCESSFUL_COMPLETION, message));
                    }
                    Err(e) => return Err(e),
                },
                FieldChange::SetType { name, ty } => {
                    let place = find(list, name)?;
                    let Declared { ty, domain } = self.declared_for_new(ty)?;
                    self.must_not_contain(domain.unwrap_or(ty.oid), def.oid)?;
                    (list[place].ty, list[place].domain) = (ty, domain);
                }
                FieldChange::Rename { from, to } => {
                    let place = find(list, from)?;
                    taken(list, to)?;
                    list[place].name.clone_from(to);
                }
            }
        }
        Ok(Ddl::AlterComposite(new))
    }

    /// A table's column, which its row type has as an attribute.
    fn rename_as_attribute(&self, table: &TableDef, from: &str, to: &str) -> Result<Ddl> {
        let word = if table.is_materialized() {
            "materialized view"
        } else {
            "table"
        };
        self.must_own(table.owner, word, &table.name)?;
        let Some(attnum) = table.attnum(from) else {
            let message = format!("column \"{from}\" does not exist");
            return Err(Error::new(state::UNDEFINED_COLUMN, message));
        };
        Ok(Ddl::Rename {
            target: Target {
                kind: TargetKind::Column(attnum),
                oid: table.oid,
            },
            name: to.to_owned(),
            only: false,
            said: Some(TargetKind::Type),
        })
    }

    /// 2BP01 for a type that is a relation's rows'.
    pub(in crate::binder) fn not_a_row_type(&self, def: &TypeDef) -> Result<()> {
        if self.catalog().made_type(def.oid).is_some() {
            return Ok(());
        }
        let kind = match made::serial(def.oid).and_then(|oid| self.catalog().view(oid)) {
            Some(_) => "view",
            None => "table",
        };
        let name = &def.name;
        let message = format!("cannot drop type {name} because {kind} {name} requires it");
        Err(Error::new(state::DEPENDENT_OBJECTS_STILL_EXIST, message)
            .hint(format!("You can drop {kind} {name} instead.")))
    }

    pub(in crate::binder) fn composite_target(&self, def: &TypeDef) -> Target {
        let kind = match def.domain {
            Some(_) => TargetKind::Domain,
            None => TargetKind::Type,
        };
        Target { kind, oid: def.oid }
    }

    /// Two rows of types made by users are compared only where they are of the same type.
    pub(in crate::binder) fn comparable(&self, left: &Expr, right: &Expr, pos: Pos) -> Result<()> {
        let (l, r) = (left.type_oid(), right.type_oid());
        let both = made::is_composite(l) && made::is_composite(r);
        if !both || l == r {
            return Ok(());
        }
        let types = |b: &Self, ty| {
            let def = b.catalog().composite(ty);
            def.map(|def| fields(&def).map(|f| f.ty.oid).collect::<Vec<_>>())
        };
        match types(self, l) == types(self, r) {
            true => Ok(()),
            false => Err(at(
                Error::unsupported("comparing rows of different types"),
                pos,
            )),
        }
    }
}

/// A constant that was made text for want of a type goes into a field as if it had none.
fn untyped(value: &Expr) -> Expr {
    match value {
        Expr::Const(constant, ty)
            if *ty == SqlType::TEXT
                && matches!(
                    constant,
                    throng_types::Datum::Text(_) | throng_types::Datum::Null
                ) =>
        {
            Expr::Const(constant.clone(), SqlType::UNKNOWN)
        }
        value => value.clone(),
    }
}
