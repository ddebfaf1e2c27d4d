//! What holds between objects: `pg_constraint`, `pg_depend`, and the comments on them.

use throng_types::range::{is_multirange, is_range};
use throng_types::sqltype::made;
use throng_types::{Array, Datum, Oid, oid};

use super::{Rows, SystemState, definition, listed, row, user_operator};
use crate::builtin::class;
use crate::{
    Catalog, ColumnDef, ConstraintDef, ConstraintKind, Deferral, FkAction, ForeignKey, Lineage,
    TableDef, TypeDef, ViewDef, builtin,
};
use throng_values::func::operators_named;
use throng_values::func::resolve_operator;

/// Attribute numbers as an `int2[]`.
fn numbers(columns: &[u16]) -> Datum {
    let items = columns.iter().map(|n| (*n as i16).into()).collect();
    Datum::array(Array::from_items(oid::INT2, items))
}

fn action(action: FkAction) -> u8 {
    match action {
        FkAction::NoAction => b'a',
        FkAction::Restrict => b'r',
        FkAction::Cascade => b'c',
        FkAction::SetNull => b'n',
        FkAction::SetDefault => b'd',
    }
}

/// The operator that finds equal values of two types, or none.
fn equality(left: Oid, right: Oid) -> Oid {
    // Strings but for char(n) compare as text.
    let compared = |ty| if ty == oid::VARCHAR { oid::TEXT } else { ty };
    let types = (compared(left), compared(right));
    let found = operators_named("=")
        .iter()
        .find(|o| (o.left, o.right) == types);
    found.map_or(Oid::NONE, |o| o.oid)
}

/// The equality operators of a foreign key's column pairs, the last one's of a PERIOD that tells
/// whether they overlap; `sides` picks the operands' types.
fn equalities(
    pairs: &[(Oid, Oid)],
    period: bool,
    sides: impl Fn(&(Oid, Oid)) -> (Oid, Oid),
) -> Datum {
    let operators = pairs.iter().enumerate().map(|(at, pair)| {
        let (left, right) = sides(pair);
        let name = match period && at + 1 == pairs.len() {
            true => "&&",
            false => "=",
        };
        match is_range(left) || is_multirange(left) {
            true => resolve_operator(name, Some(left), right)
                .map_or(Oid::NONE, |found| found.operator.oid)
                .into(),
            false => equality(left, right).into(),
        }
    });
    Datum::array(Array::from_items(oid::OID, operators.collect()))
}

/// What differs between constraints in `pg_constraint`.
struct Constraint<'a> {
    oid: Oid,
    name: &'a str,
    table: &'a TableDef,
    kind: u8,
    validated: bool,
    deferral: Deferral,
    index: Oid,
    columns: Vec<u16>,
    lineage: Lineage,
    expr: Option<&'a str>,
    key: Option<&'a ForeignKey>,
    /// The operators of an exclusion constraint, or of a key WITHOUT OVERLAPS.
    exclusion: Option<&'a [Oid]>,
}

impl Constraint<'_> {
    fn row(&self, catalog: &Catalog) -> Vec<Datum> {
        let (update, delete, matching) = match self.key {
            Some(key) => (
                action(key.on_update),
                action(key.on_delete),
                if key.match_full { b'f' } else { b's' },
            ),
            None => (b' ', b' ', b' '),
        };
        // The types of each pair of columns: the referencing and the referenced one.
        let pairs: Option<Vec<(Oid, Oid)>> = self.key.and_then(|key| {
            let referenced = catalog.table(key.ref_table)?;
            let types = key.columns.iter().zip(&key.ref_columns);
            Some(
                types
                    .map(|(a, b)| (self.table.column(*a).ty.oid, referenced.column(*b).ty.oid))
                    .collect(),
            )
        });
        let operators = |sides: fn(&(Oid, Oid)) -> (Oid, Oid)| {
            pairs.as_ref().map_or(Datum::Null, |pairs| {
                equalities(pairs, self.is_period(), sides)
            })
        };
        row![
            self.oid,
            self.name,
            self.table.schema,
            Datum::Char(self.kind),
            self.deferral.is_deferrable(),
            self.deferral.is_deferred(),
            self.deferral.is_enforced(),
            self.validated,
            self.table.oid,
            Oid::NONE,
            self.index,
            self.lineage.parent.unwrap_or(Oid::NONE),
            self.key.map_or(Oid::NONE, |key| key.ref_table),
            Datum::Char(update),
            Datum::Char(delete),
            Datum::Char(matching),
            self.lineage.local,
            self.lineage.inherited as i16,
            self.lineage.no_inherit,
            self.is_period(),
            numbers(&self.columns),
            self.key.map(|key| numbers(&key.ref_columns)),
            operators(|&(referencing, referenced)| (referenced, referencing)),
            operators(|&(_, referenced)| (referenced, referenced)),
            operators(|&(referencing, _)| (referencing, referencing)),
            Datum::Null,
            match self.exclusion {
                Some(operators) => {
                    let items = operators.iter().map(|op| Datum::from(*op)).collect();
                    Datum::array(Array::from_items(oid::OID, items))
                }
                None => Datum::Null,
            },
            self.expr,
        ]
    }

    /// Whether it is a key WITHOUT OVERLAPS, or a foreign key with a PERIOD.
    fn is_period(&self) -> bool {
        match self.key {
            Some(key) => key.period,
            None => self.kind != b'x' && self.exclusion.is_some(),
        }
    }
}

/// The columns a constraint is about, in its order.
pub(super) fn constrained_columns(catalog: &Catalog, constraint: &ConstraintDef) -> Vec<u16> {
    match &constraint.kind {
        ConstraintKind::PrimaryKey { index }
        | ConstraintKind::Unique { index }
        | ConstraintKind::Exclusion { index } => {
            let index = catalog.index(*index);
            index.map_or_else(Vec::new, |i| i.columns.iter().map(|c| c.attnum).collect())
        }
        ConstraintKind::Check { columns, .. } => columns.clone(),
        ConstraintKind::ForeignKey(key) => key.columns.clone(),
    }
}

fn stored<'a>(catalog: &'a Catalog, table: &'a TableDef, c: &'a ConstraintDef) -> Constraint<'a> {
    let (kind, index, expr) = match &c.kind {
        ConstraintKind::PrimaryKey { index } => (b'p', *index, None),
        ConstraintKind::Unique { index } => (b'u', *index, None),
        ConstraintKind::Exclusion { index } => (b'x', *index, None),
        ConstraintKind::Check { expr, .. } => (b'c', Oid::NONE, Some(expr.as_str())),
        ConstraintKind::ForeignKey(key) => (b'f', key.ref_index, None),
    };
    Constraint {
        oid: c.oid,
        name: &c.name,
        table,
        kind,
        validated: c.validated,
        deferral: c.deferral,
        index,
        columns: constrained_columns(catalog, c),
        lineage: Lineage {
            // Keys are not inherited but by partitions.
            no_inherit: match kind {
                b'c' => c.lineage.no_inherit,
                _ => !table.is_partitioned(),
            },
            ..c.lineage
        },
        expr,
        key: c.foreign_key(),
        exclusion: c
            .index()
            .and_then(|index| catalog.index(index))
            .map(|index| &index.terms.exclusion[..])
            .filter(|operators| !operators.is_empty()),
    }
}

pub(super) fn pg_constraint(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let mut rows = match catalog.has_built_in() {
        true => listed::pg_constraint(),
        false => Rows::new(),
    };
    for table in catalog.tables() {
        for constraint in catalog.constraints_of(table.oid) {
            rows.push(stored(catalog, table, constraint).row(catalog));
        }
        for trigger in super::trigger::constraint_triggers(catalog, table) {
            let constraint = Constraint {
                oid: trigger.oid,
                name: &trigger.name,
                table,
                kind: b't',
                validated: true,
                deferral: trigger.deferral(),
                index: Oid::NONE,
                columns: vec![],
                lineage: Lineage {
                    no_inherit: true,
                    ..Lineage::default()
                },
                expr: None,
                key: None,
                exclusion: None,
            };
            rows.push(constraint.row(catalog));
        }
        for (attnum, column) in definition::not_nulls(table) {
            let above = |parent: &&Oid| {
                let parent = catalog.table(**parent);
                parent.is_some_and(|p| {
                    let of_parent = p.attnum(&column.name).map(|n| p.column(n));
                    of_parent.is_some_and(ColumnDef::hands_on_not_null)
                })
            };
            let inherited = table.parents.iter().filter(above).count() as u16;
            let not_null = Constraint {
                oid: definition::not_null_oid(table.oid, attnum),
                name: &definition::not_null_name(table, column),
                table,
                kind: b'n',
                validated: true,
                deferral: Deferral::NotDeferrable,
                index: Oid::NONE,
                columns: vec![attnum],
                lineage: Lineage {
                    inherited,
                    local: inherited == 0 || column.local,
                    no_inherit: column.not_null_alone,
                    ..Lineage::default()
                },
                expr: None,
                key: None,
                exclusion: None,
            };
            rows.push(not_null.row(catalog));
        }
    }
    super::domain::constraint_rows(catalog, &mut rows);
    rows
}

/// An object or a part of it: catalog, oid, column or 0.
pub(super) type Address = (Oid, Oid, u16);

fn relation(oid: Oid, column: u16) -> Address {
    (class::RELATION, oid, column)
}

/// How a dependency came to be: `n` plain, `a` goes with the other, `i` is a part of the other.
pub(super) fn dependency(from: Address, to: Address, how: u8) -> Vec<Datum> {
    row![
        from.0,
        from.1,
        i32::from(from.2),
        to.0,
        to.1,
        i32::from(to.2),
        Datum::Char(how),
    ]
}

fn constraint_dependencies(catalog: &Catalog, c: &ConstraintDef, rows: &mut Rows) {
    let own = (class::CONSTRAINT, c.oid, 0);
    for column in constrained_columns(catalog, c) {
        rows.push(dependency(own, relation(c.table, column), b'a'));
    }
    if let Some(index) = c.index() {
        rows.push(dependency(relation(index, 0), own, b'i'));
    }
    if let Some(key) = c.foreign_key() {
        for column in &key.ref_columns {
            rows.push(dependency(own, relation(key.ref_table, *column), b'n'));
        }
        rows.push(dependency(own, relation(key.ref_index, 0), b'n'));
    }
}

/// A partition's index or constraint, which is there because of the whole's, and goes with its
/// table.
fn part_dependencies(kind: Oid, part: Oid, whole: Oid, table: Oid, rows: &mut Rows) {
    rows.push(dependency((kind, part, 0), (kind, whole, 0), b'P'));
    rows.push(dependency((kind, part, 0), relation(table, 0), b'S'));
}

fn table_dependencies(catalog: &Catalog, table: &TableDef, rows: &mut Rows) {
    let own = relation(table.oid, 0);
    rows.push(dependency(own, (class::NAMESPACE, table.schema, 0), b'n'));
    let part = table.bound.is_some();
    for parent in &table.parents {
        let how = if part { b'a' } else { b'n' };
        rows.push(dependency(own, relation(*parent, 0), how));
    }
    for (attnum, column) in table.live_columns() {
        let shown = column.shown_type();
        if made::is_made(shown) {
            let ty = (class::TYPE, shown, 0);
            rows.push(dependency(relation(table.oid, attnum), ty, b'n'));
        }
        if definition::column_default(catalog, column).is_some() {
            let default = (
                class::ATTRDEF,
                definition::default_oid(table.oid, attnum),
                0,
            );
            rows.push(dependency(default, relation(table.oid, attnum), b'a'));
            if let Some(sequence) = column.sequence {
                rows.push(dependency(default, relation(sequence, 0), b'n'));
            }
        }
    }
    for (attnum, _) in definition::not_nulls(table) {
        let not_null = (
            class::CONSTRAINT,
            definition::not_null_oid(table.oid, attnum),
            0,
        );
        rows.push(dependency(not_null, relation(table.oid, attnum), b'a'));
    }
    for constraint in catalog.constraints_of(table.oid) {
        constraint_dependencies(catalog, constraint, rows);
        if let Some(parent) = constraint.lineage.parent {
            let (part, whole) = (constraint.oid, parent);
            part_dependencies(class::CONSTRAINT, part, whole, table.oid, rows);
        }
    }
    for index in catalog.indexes_of(table.oid) {
        if let Some(parent) = index.parent {
            part_dependencies(class::RELATION, index.oid, parent, table.oid, rows);
        }
    }
    for index in catalog
        .indexes_of(table.oid)
        .iter()
        .filter(|i| i.constraint.is_none())
    {
        for (attnum, _) in table.live_columns().filter(|(n, _)| index.names(*n)) {
            rows.push(dependency(
                relation(index.oid, 0),
                relation(table.oid, attnum),
                b'a',
            ));
        }
    }
}

/// A view is a rule, which depends on what its query names.
fn view_dependencies(catalog: &Catalog, view: &ViewDef, rows: &mut Rows) {
    let own = relation(view.oid, 0);
    let rule = (class::REWRITE, definition::rule_oid(view.oid), 0);
    rows.push(dependency(own, (class::NAMESPACE, view.schema, 0), b'n'));
    rows.push(dependency(rule, own, b'i'));
    for used in &view.uses {
        if made::is_made(used.object) {
            rows.push(dependency(rule, (class::TYPE, used.object, 0), b'n'));
        } else if catalog.extension(used.object).is_some() {
            rows.push(dependency(rule, (class::EXTENSION, used.object, 0), b'n'));
        } else if catalog.routine(used.object).is_some() {
            rows.push(dependency(rule, (class::PROCEDURE, used.object, 0), b'n'));
        } else if catalog.constraint(used.object).is_some() {
            rows.push(dependency(rule, (class::CONSTRAINT, used.object, 0), b'n'));
        } else if used.columns.is_empty() {
            rows.push(dependency(rule, relation(used.object, 0), b'n'));
        }
        for column in &used.columns {
            rows.push(dependency(rule, relation(used.object, *column), b'n'));
        }
    }
}

/// The columns of a composite type's relation depend on their types, and the relation is a part of
/// the type.
fn field_dependencies(def: &TypeDef, rows: &mut Rows) {
    let (Some(fields), Some(serial)) = (&def.fields, made::serial(def.oid)) else {
        return;
    };
    rows.push(dependency(
        relation(serial, 0),
        (class::TYPE, def.oid, 0),
        b'i',
    ));
    for (field, attnum) in fields.iter().zip(1..) {
        if made::is_made(field.ty.oid) {
            let ty = (class::TYPE, field.ty.oid, 0);
            rows.push(dependency(relation(serial, attnum), ty, b'n'));
        }
    }
}

pub(super) fn pg_depend(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let mut rows = match catalog.has_built_in() {
        true => super::extension::members(catalog),
        false => Rows::new(),
    };
    for table in catalog.tables() {
        table_dependencies(catalog, table, &mut rows);
    }
    for view in catalog.rules() {
        view_dependencies(catalog, &view, &mut rows);
    }
    for def in catalog.made_types() {
        let own = (class::TYPE, def.oid, 0);
        rows.push(dependency(own, (class::NAMESPACE, def.schema, 0), b'n'));
        let array = (class::TYPE, made::array_oid(def.oid), 0);
        rows.push(dependency(array, own, b'i'));
        field_dependencies(def, &mut rows);
        if let Some(domain) = &def.domain {
            if let Some(over) = domain.over {
                rows.push(dependency(own, (class::TYPE, over, 0), b'n'));
            }
            for check in &domain.checks {
                rows.push(dependency((class::CONSTRAINT, check.oid, 0), own, b'a'));
            }
        }
    }
    for def in catalog.routines() {
        let own = (class::PROCEDURE, def.oid, 0);
        rows.push(dependency(own, (class::NAMESPACE, def.schema, 0), b'n'));
        for used in &def.uses {
            let of = match catalog.routine(used.object) {
                Some(_) => (class::PROCEDURE, used.object, 0),
                None if made::is_made(used.object) => (class::TYPE, used.object, 0),
                None if catalog.extension(used.object).is_some() => {
                    (class::EXTENSION, used.object, 0)
                }
                None => relation(used.object, 0),
            };
            rows.push(dependency(own, of, b'n'));
        }
    }
    for [(class, own), (of_class, of)] in user_operator::dependencies(catalog) {
        rows.push(dependency((class, own, 0), (of_class, of, 0), b'n'));
    }
    super::trigger::dependencies(catalog, &mut rows);
    super::policy::dependencies(catalog, &mut rows);
    for sequence in catalog.sequences() {
        let own = relation(sequence.oid, 0);
        rows.push(dependency(
            own,
            (class::NAMESPACE, sequence.schema, 0),
            b'n',
        ));
        if let Some((table, column)) = sequence.owned_by {
            let how = if sequence.identity { b'i' } else { b'a' };
            rows.push(dependency(own, relation(table, column), how));
        }
    }
    rows
}

fn is_shared(comment_class: Oid) -> bool {
    matches!(
        comment_class,
        class::ROLE | class::DATABASE | class::TABLESPACE
    )
}

pub(super) fn pg_description(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let comments = catalog
        .comments()
        .into_iter()
        .filter(|c| !is_shared(c.class));
    let mut rows: Rows = comments
        .map(|c| row![c.object, c.class, i32::from(c.column), c.text.as_str()])
        .collect();
    let commented = catalog
        .comment(class::NAMESPACE, builtin::PUBLIC, 0)
        .is_some();
    if !commented && catalog.schema(builtin::PUBLIC).is_some() {
        let standard = definition::comment(catalog, class::NAMESPACE, builtin::PUBLIC, 0);
        rows.push(row![builtin::PUBLIC, class::NAMESPACE, 0, standard]);
    }
    let built_in = super::extension::descriptions().into_iter();
    let built_in = built_in.chain(super::text_search::descriptions());
    let replaced = |row: &[Datum]| rows.iter().any(|r| r[..2] == row[..2]);
    let built_in: Rows = built_in.filter(|row| !replaced(row)).collect();
    rows.extend(built_in);
    rows
}

pub(super) fn pg_shdescription(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let comments = catalog
        .comments()
        .into_iter()
        .filter(|c| is_shared(c.class));
    comments
        .map(|c| row![c.object, c.class, c.text.as_str()])
        .collect()
}
