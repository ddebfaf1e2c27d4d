//! CREATE of schemas, tables, indexes, sequences and constraints.

use throng_types::error::state;
use throng_types::sqltype::type_name;
use throng_types::{Error, Oid, Result, oid};

use super::exclusion::{KeyForm, overlap_operators};
use super::{Run, Work};
use crate::command::{
    Copied, CreateIndex, CreateTable, NewConstraint, NewConstraintKind, NewSequence,
    SequenceOptions, Target, TargetKind,
};
use throng_catalog::builtin::class;
use throng_catalog::{
    ConstraintDef, ConstraintKind, Deferral, IndexColumn, IndexDef, IndexMethod, IndexTerms,
    Lineage, SchemaDef, SequenceDef, TableDef, index_column_names,
};
use throng_values::acl::Kind;

pub(super) fn exists(name: &str) -> Error {
    Error::new(
        state::DUPLICATE_TABLE,
        format!("relation \"{name}\" already exists"),
    )
}

fn skipping(e: Error) -> Error {
    Error::new(e.code(), format!("{}, skipping", e.message()))
}

impl Run<'_> {
    pub(super) fn create_schema(
        &mut self,
        name: &str,
        owner: Oid,
        if_not_exists: bool,
    ) -> Result<()> {
        if !self.catalog().is_schema_name_free(name) {
            let e = Error::new(
                state::DUPLICATE_SCHEMA,
                format!("schema \"{name}\" already exists"),
            );
            if !if_not_exists {
                return Err(e);
            }
            self.notice(skipping(e));
            return Ok(());
        }
        let oid = self.host.next_oid();
        self.edit.put(SchemaDef {
            oid,
            name: name.to_string(),
            owner,
        });
        self.grant_defaults(class::NAMESPACE, oid, owner, Oid::NONE, Kind::Schema);
        Ok(())
    }

    /// Whether the name is free; with IF NOT EXISTS a notice where it is not.
    fn may_create(&mut self, schema: Oid, name: &str, if_not_exists: bool) -> Result<bool> {
        if self.catalog().relation_in(schema, name).is_none() {
            return Ok(true);
        }
        if !if_not_exists {
            return Err(exists(name));
        }
        self.notice(skipping(exists(name)));
        Ok(false)
    }

    pub(super) fn create_table(&mut self, create: &CreateTable) -> Result<()> {
        let schema = self.place(create.schema);
        if !self.may_create(schema, &create.name, create.if_not_exists)? {
            return Ok(());
        }
        self.row_type_is_free(schema, &create.name)?;
        if let Some(materialized) = &create.materialized {
            self.are_there(&materialized.uses)?;
        }
        let oid = self.host.next_oid();
        let mut table = TableDef {
            oid,
            schema,
            name: create.name.clone(),
            owner: create.owner,
            file: self.host.next_file(),
            persistence: create.persistence,
            options: create.options.clone(),
            parents: create.parents.clone(),
            partitioned: create.partitioned.clone(),
            bound: create.bound.clone(),
            materialized: create.materialized.clone(),
            ..TableDef::of_columns(create.columns.iter().map(|c| c.def.clone()).collect())
        };
        // The table first, so that its sequences' names avoid it.
        self.put_table(table.clone());
        self.grant_defaults(class::RELATION, oid, table.owner, schema, Kind::Relation);
        self.work(Work::CreateHeap(oid));
        for (i, column) in create.columns.iter().enumerate() {
            let Some(options) = &column.sequence else {
                continue;
            };
            let sequence = self.column_sequence(&table, i as u16 + 1, options)?;
            table.columns[i].sequence = Some(sequence);
        }
        self.put_table(table);
        // Keys before foreign keys, which may refer to them.
        let is_fk = |c: &&NewConstraint| matches!(c.kind, NewConstraintKind::ForeignKey { .. });
        for constraint in create.constraints.iter().filter(|c| !is_fk(c)) {
            self.add_constraint(oid, constraint, true)?;
        }
        if let (Some(bound), Some(parent)) = (&create.bound, create.parents.first()) {
            let parent = self.table(*parent)?;
            self.join_partitions(oid, &parent, bound, true)?;
        }
        for constraint in create.constraints.iter().filter(is_fk) {
            self.add_constraint(oid, constraint, true)?;
        }
        for copied in &create.copied {
            self.copy_like(oid, copied)?;
        }
        self.settle_not_null_names(oid, None)?;
        if let Some(source) = create.source.as_ref().filter(|s| s.with_data) {
            self.work(Work::Fill {
                table: oid,
                query: source.query.clone(),
            });
        }
        Ok(())
    }

    /// One of the things that LIKE copies to a new table.
    fn copy_like(&mut self, table: Oid, copied: &Copied) -> Result<()> {
        let comment = match copied {
            Copied::Key(new) => return self.add_constraint(table, new, true),
            Copied::Index(index) => {
                let index = CreateIndex {
                    table,
                    ..index.clone()
                };
                return self.create_index(&index);
            }
            Copied::ColumnComment { attnum, text } => {
                Some((TargetKind::Column(*attnum), table, text))
            }
            Copied::ConstraintComment { name, text } => {
                let named = self.catalog().constraint_by_name(table, name);
                named.map(|c| (TargetKind::Constraint, c.oid, text))
            }
            Copied::IndexComment(text) => {
                let newest = self.catalog().indexes_of(table).iter().map(|i| i.oid).max();
                newest.map(|oid| (TargetKind::Index, oid, text))
            }
        };
        match comment {
            Some((kind, oid, text)) => self.comment(Target { kind, oid }, Some(text)),
            None => Ok(()),
        }
    }

    /// The sequence behind a `serial` or identity column.
    pub(super) fn column_sequence(
        &mut self,
        table: &TableDef,
        attnum: u16,
        options: &SequenceOptions,
    ) -> Result<Oid> {
        let column = table.column(attnum);
        let (schema, name) = match &options.name {
            Some((schema, name)) => {
                self.may_create(*schema, name, false)?;
                (*schema, name.clone())
            }
            None => {
                let name = self.free_relation_name(table.schema, &table.name, &column.name, "seq");
                (table.schema, name)
            }
        };
        let new = NewSequence {
            schema,
            name,
            owner: table.owner,
            options: options.clone(),
            owned_by: Some((table.oid, attnum)),
        };
        self.put_sequence(&new, column.identity.is_some())
    }

    pub(super) fn create_sequence(&mut self, new: &NewSequence, if_not_exists: bool) -> Result<()> {
        let schema = self.place(new.schema);
        if self.may_create(schema, &new.name, if_not_exists)? {
            let new = NewSequence {
                schema,
                ..new.clone()
            };
            self.put_sequence(&new, false)?;
        }
        Ok(())
    }

    fn put_sequence(&mut self, new: &NewSequence, identity: bool) -> Result<Oid> {
        self.row_type_is_free(new.schema, &new.name)?;
        let oid = self.host.next_oid();
        let mut def = SequenceDef {
            oid,
            schema: new.schema,
            name: new.name.clone(),
            owner: new.owner,
            file: self.host.next_file(),
            ty: oid::INT8,
            start: 0,
            increment: 1,
            min: 0,
            max: 0,
            cache: 1,
            cycle: false,
            owned_by: new.owned_by,
            identity,
        };
        set_sequence(&mut def, &new.options, true)?;
        let (owner, schema) = (def.owner, def.schema);
        self.edit.put(def);
        self.grant_defaults(class::RELATION, oid, owner, schema, Kind::Sequence);
        self.work(Work::CreateSequence(oid));
        Ok(oid)
    }

    pub(super) fn create_index(&mut self, create: &CreateIndex) -> Result<()> {
        let table = self.table(create.table)?;
        let columns = index_column_names(&create.columns, &create.terms, &table);
        let name = match &create.name {
            Some(name) => name.clone(),
            None => self.free_relation_name(table.schema, &table.name, &columns.join("_"), "idx"),
        };
        if !self.may_create(table.schema, &name, create.if_not_exists)? {
            return Ok(());
        }
        if create.unique {
            let key: Vec<u16> = create.columns.iter().map(|c| c.attnum).collect();
            self.key_covers_partitions(&table, &key, "UNIQUE")?;
        }
        let oid = self.host.next_oid();
        self.edit.put(IndexDef {
            oid,
            schema: table.schema,
            name,
            table: table.oid,
            file: self.host.next_file(),
            columns: create.columns.clone(),
            unique: create.unique,
            primary: false,
            nulls_not_distinct: create.nulls_not_distinct,
            constraint: None,
            options: create.options.clone(),
            parent: None,
            clustered: false,
            terms: create.terms.clone(),
            targets: vec![],
        });
        self.work(Work::CreateIndex {
            index: oid,
            build: true,
        });
        match create.only {
            true => Ok(()),
            false => self.spread_index(oid, false),
        }
    }

    /// Adds a constraint; `fresh`: to a table without rows.
    pub(super) fn add_constraint(
        &mut self,
        table: Oid,
        new: &NewConstraint,
        fresh: bool,
    ) -> Result<()> {
        let def = self.table(table)?;
        let key = matches!(
            new.kind,
            NewConstraintKind::PrimaryKey { .. }
                | NewConstraintKind::Unique { .. }
                | NewConstraintKind::Exclude(_)
        );
        if let (Some(name), true) = (&new.name, key)
            && self.catalog().relation_in(def.schema, name).is_some()
        {
            return Err(exists(name));
        }
        if let Some(name) = &new.name
            && self.catalog().constraint_by_name(table, name).is_some()
        {
            let message = format!(
                "constraint \"{name}\" for relation \"{}\" already exists",
                def.name
            );
            return Err(Error::new(state::DUPLICATE_OBJECT, message));
        }
        match &new.kind {
            NewConstraintKind::PrimaryKey {
                columns,
                without_overlaps,
                include,
                options,
            } => {
                let key = self.key_columns(&def, columns)?;
                self.columns_not_null(table, &key, fresh)?;
                let include = self.key_columns(&def, include)?;
                let form = KeyForm {
                    primary: true,
                    nulls_not_distinct: false,
                    without_overlaps: *without_overlaps,
                };
                self.key_constraint(&def, new, (&key, include), form, options, fresh)
            }
            NewConstraintKind::Unique {
                columns,
                without_overlaps,
                include,
                nulls_not_distinct,
                options,
            } => {
                let key = self.key_columns(&def, columns)?;
                let include = self.key_columns(&def, include)?;
                let form = KeyForm {
                    primary: false,
                    nulls_not_distinct: *nulls_not_distinct,
                    without_overlaps: *without_overlaps,
                };
                self.key_constraint(&def, new, (&key, include), form, options, fresh)
            }
            NewConstraintKind::Exclude(exclusion) => self.exclude(&def, new, exclusion, fresh),
            NewConstraintKind::UsingIndex {
                index,
                primary,
                position,
            } => self.constraint_from_index(&def, new, (*index, *position), *primary),
            NewConstraintKind::Check { .. } => self.check_constraint(&def, new, fresh),
            NewConstraintKind::ForeignKey { .. } => self.foreign_key(&def, new, fresh),
        }
    }

    fn check_constraint(&mut self, def: &TableDef, new: &NewConstraint, fresh: bool) -> Result<()> {
        let NewConstraintKind::Check {
            expr,
            columns,
            bound,
        } = &new.kind
        else {
            return Err(Error::internal("no check"));
        };
        let table = def.oid;
        let key = columns.iter().filter_map(|c| def.attnum(c)).collect();
        let part = if columns.len() == 1 {
            columns[0].as_str()
        } else {
            ""
        };
        let name = match &new.name {
            Some(name) => name.clone(),
            None => self.free_constraint_name(def.schema, &def.name, part, "check"),
        };
        let kind = ConstraintKind::Check {
            expr: expr.clone(),
            columns: key,
        };
        self.put_constraint(
            table,
            name.clone(),
            kind,
            (fresh || !new.not_valid) && new.deferral.is_enforced(),
            (new.deferral, new.lineage),
        );
        if !fresh && new.is_checked() {
            self.work(Work::CheckRows {
                table,
                name,
                expr: bound.clone(),
            });
        }
        Ok(())
    }

    pub(super) fn put_constraint(
        &mut self,
        table: Oid,
        name: String,
        kind: ConstraintKind,
        validated: bool,
        (deferral, lineage): (Deferral, Lineage),
    ) -> Oid {
        let oid = self.host.next_oid();
        self.edit.put(ConstraintDef {
            oid,
            name,
            table,
            kind,
            validated,
            deferral,
            lineage,
        });
        oid
    }

    pub(super) fn key_columns(&self, table: &TableDef, names: &[String]) -> Result<Vec<u16>> {
        const MOST_KEYS: usize = 32;
        if names.len() > MOST_KEYS {
            let message = format!("cannot use more than {MOST_KEYS} columns in an index");
            return Err(Error::new(state::TOO_MANY_COLUMNS, message));
        }
        names
            .iter()
            .map(|name| {
                table.attnum(name).ok_or_else(|| {
                    let message = format!("column \"{name}\" named in key does not exist");
                    Error::new(state::UNDEFINED_COLUMN, message)
                })
            })
            .collect()
    }

    /// A primary key's columns are NOT NULL.
    pub(super) fn columns_not_null(&mut self, table: Oid, key: &[u16], fresh: bool) -> Result<()> {
        let mut def = (*self.table(table)?).clone();
        for attnum in key {
            let column = &mut def.columns[*attnum as usize - 1];
            if !column.not_null {
                column.not_null = true;
                if !fresh {
                    self.work(Work::CheckNotNull {
                        table,
                        attnum: *attnum,
                        value: None,
                    });
                }
            }
        }
        self.put_table(def);
        Ok(())
    }

    fn key_constraint(
        &mut self,
        table: &TableDef,
        new: &NewConstraint,
        (key, include): (&[u16], Vec<u16>),
        form: KeyForm,
        options: &[(String, String)],
        fresh: bool,
    ) -> Result<()> {
        let KeyForm {
            primary,
            nulls_not_distinct,
            without_overlaps,
        } = form;
        let columns: Vec<IndexColumn> = key
            .iter()
            .map(|attnum| IndexColumn {
                attnum: *attnum,
                descending: false,
                nulls_first: false,
            })
            .collect();
        let mut terms = IndexTerms {
            include,
            ..IndexTerms::default()
        };
        if without_overlaps {
            terms.method = IndexMethod::Gist;
            terms.exclusion = overlap_operators(table, key)?;
        }
        let names = index_column_names(&columns, &terms, table);
        let (part, label, what) = match primary {
            true => (String::new(), "pkey", "PRIMARY KEY"),
            false => (names.join("_"), "key", "UNIQUE"),
        };
        self.key_covers_partitions(table, key, what)?;
        let name = match &new.name {
            Some(name) => name.clone(),
            None => self.free_relation_name(table.schema, &table.name, &part, label),
        };
        for attnum in key {
            let ty = table.column(*attnum).ty.oid;
            if !throng_values::func::compare::is_ordered(ty) {
                let message = format!(
                    "data type {} has no default operator class for access method \"btree\"",
                    type_name(ty)
                );
                return Err(Error::new(state::UNDEFINED_OBJECT, message)
                    .hint("You must specify an operator class for the index or define a default operator class for the data type."));
            }
        }
        let index = self.host.next_oid();
        let kind = match primary {
            true => ConstraintKind::PrimaryKey { index },
            false => ConstraintKind::Unique { index },
        };
        let constraint = self.put_constraint(
            table.oid,
            name.clone(),
            kind,
            true,
            (new.deferral, new.lineage),
        );
        self.edit.put(IndexDef {
            oid: index,
            schema: table.schema,
            name,
            table: table.oid,
            file: self.host.next_file(),
            columns,
            // That no ranges overlap is more.
            unique: !without_overlaps,
            primary,
            nulls_not_distinct,
            constraint: Some(constraint),
            options: options.to_vec(),
            parent: None,
            clustered: false,
            terms,
            targets: vec![],
        });
        self.fill_index(index, fresh, new.only)
    }

    /// A constraint's index is filled, where its table has rows, and made for its partitions.
    pub(super) fn fill_index(&mut self, index: Oid, fresh: bool, only: bool) -> Result<()> {
        self.work(Work::CreateIndex {
            index,
            build: !fresh,
        });
        match only {
            true => Ok(()),
            false => self.spread_index(index, fresh),
        }
    }

    /// `ADD CONSTRAINT … USING INDEX`: the index takes the constraint's name.
    fn constraint_from_index(
        &mut self,
        table: &TableDef,
        new: &NewConstraint,
        (index, position): (Oid, u32),
        primary: bool,
    ) -> Result<()> {
        let Some(def) = self.catalog().index(index).cloned() else {
            return Err(Error::new(state::UNDEFINED_OBJECT, "index does not exist"));
        };
        let wrong = |message: String| {
            let detail = "Cannot create a primary key or unique constraint using such an index.";
            let error = Error::new(state::WRONG_OBJECT_TYPE, message).detail(detail);
            Err(error.position(position))
        };
        if def.constraint.is_some() {
            let name = &def.name;
            let message = format!("index \"{name}\" is already associated with a constraint");
            let error = Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message);
            return Err(error.position(position));
        }
        if !def.unique {
            return wrong(format!("\"{}\" is not a unique index", def.name));
        }
        if !def.terms.exprs.is_empty() {
            return wrong(format!("index \"{}\" contains expressions", def.name));
        }
        if def.terms.predicate.is_some() {
            return wrong(format!("\"{}\" is a partial index", def.name));
        }
        let is_unusual = |(place, column): (usize, &IndexColumn)| {
            let said = def.terms.words_of(place) != (None, None);
            said || column.descending || column.nulls_first
        };
        if let Some(place) = def.columns.iter().enumerate().position(is_unusual) {
            let (name, place) = (&def.name, place + 1);
            let what = "does not have default sorting behavior";
            return wrong(format!("index \"{name}\" column number {place} {what}"));
        }
        let name = new.name.clone().unwrap_or_else(|| def.name.clone());
        if name != def.name {
            if self.catalog().relation_in(def.schema, &name).is_some() {
                return Err(exists(&name));
            }
            let message = format!(
                "ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index \"{}\" to \"{name}\"",
                def.name
            );
            self.notice(Error::new(state::SUCCESSFUL_COMPLETION, message));
        }
        if primary {
            if def.nulls_not_distinct {
                let message = "primary keys cannot use NULLS NOT DISTINCT indexes";
                return Err(Error::new(state::INVALID_TABLE_DEFINITION, message));
            }
            let key: Vec<u16> = def.columns.iter().map(|c| c.attnum).collect();
            self.columns_not_null(table.oid, &key, false)?;
        }
        let kind = match primary {
            true => ConstraintKind::PrimaryKey { index },
            false => ConstraintKind::Unique { index },
        };
        let constraint = self.put_constraint(
            table.oid,
            name.clone(),
            kind,
            true,
            (new.deferral, new.lineage),
        );
        self.edit.put(IndexDef {
            name,
            primary,
            constraint: Some(constraint),
            ..(*def).clone()
        });
        Ok(())
    }
}

/// Smallest and largest value of an integer type.
fn type_range(ty: Oid) -> (i64, i64) {
    match ty {
        oid::INT2 => (i16::MIN.into(), i16::MAX.into()),
        oid::INT4 => (i32::MIN.into(), i32::MAX.into()),
        _ => (i64::MIN, i64::MAX),
    }
}

/// Applies options; `new`: everything not given takes its default.
pub(super) fn set_sequence(
    def: &mut SequenceDef,
    options: &SequenceOptions,
    new: bool,
) -> Result<()> {
    let bad = |message: String| Err(Error::new(state::INVALID_PARAMETER_VALUE, message));
    let old_range = type_range(def.ty);
    let mut follow = (false, false);
    if let Some(ty) = options.ty {
        // Bounds that were the old type's follow it.
        follow = (def.min == old_range.0, def.max == old_range.1);
        def.ty = ty;
    }
    let (least, most) = type_range(def.ty);
    def.increment = options.increment.unwrap_or(def.increment);
    def.cache = options.cache.unwrap_or(def.cache);
    def.cycle = options.cycle.unwrap_or(def.cycle);
    let up = def.increment > 0;
    match options.min {
        Some(Some(min)) => def.min = min,
        Some(None) => def.min = if up { 1 } else { least },
        None if new || follow.0 => def.min = if up { 1 } else { least },
        None => {}
    }
    match options.max {
        Some(Some(max)) => def.max = max,
        Some(None) => def.max = if up { most } else { -1 },
        None if new || follow.1 => def.max = if up { most } else { -1 },
        None => {}
    }
    let ty = type_name(def.ty);
    if !(least..=most).contains(&def.max) {
        return bad(format!(
            "MAXVALUE ({}) is out of range for sequence data type {ty}",
            def.max
        ));
    }
    if !(least..=most).contains(&def.min) {
        return bad(format!(
            "MINVALUE ({}) is out of range for sequence data type {ty}",
            def.min
        ));
    }
    if def.min >= def.max {
        return bad(format!(
            "MINVALUE ({}) must be less than MAXVALUE ({})",
            def.min, def.max
        ));
    }
    match options.start {
        Some(start) => def.start = start,
        None if new => def.start = if up { def.min } else { def.max },
        None => {}
    }
    let within = |what: &str, value: i64| {
        if value < def.min {
            return bad(format!(
                "{what} value ({value}) cannot be less than MINVALUE ({})",
                def.min
            ));
        }
        if value > def.max {
            return bad(format!(
                "{what} value ({value}) cannot be greater than MAXVALUE ({})",
                def.max
            ));
        }
        Ok(())
    };
    within("START", def.start)?;
    if let Some(Some(restart)) = options.restart {
        within("RESTART", restart)?;
    }
    Ok(())
}
