//! DROP, with what goes along and what stands in the way.
//!
//! Some things are parts (a table's indexes, a serial's sequence): they go silently. Others merely
//! depend (a foreign key on the table it references): they need CASCADE. The collector walks from
//! the targets over both kinds and only then is anything deleted.

mod table;

use std::collections::{BTreeSet, HashSet};

use throng_types::error::state;
use throng_types::sqltype::made;
use throng_types::{Error, Oid, Result};

use super::{Run, Work};
use crate::command::{Target, TargetKind};
use throng_catalog::system::extension;
use throng_catalog::{
    ConstraintDef, ExtensionDef, IndexDef, Object, OperatorDef, RoutineDef, ViewDef, builtin,
};
use throng_types::lexical::quote_ident;
use throng_values::func::extension::known;

/// What a drop takes along.
#[derive(Default)]
struct Collector {
    /// Objects to delete.
    gone: BTreeSet<Oid>,
    /// Defaults to forget: table and attribute number.
    defaults: Vec<(Oid, u16)>,
    /// Columns to drop, for their type goes.
    columns: Vec<(Oid, u16)>,
    /// Attributes to drop, likewise: of which type, and their places.
    fields: Vec<(Oid, usize)>,
    /// Dependents that need CASCADE: what they are, and what of.
    dependents: Vec<(String, String)>,
    /// Views still to be looked at, the next one last, with what they depend on: each is told of
    /// before those that depend on it.
    views: Vec<(Oid, String)>,
    /// What would have to change in values that lie in rows: it keeps everything.
    kept_by: Option<String>,
    /// Those dropped by name; no complaint about them.
    named: BTreeSet<Oid>,
    queue: Vec<Oid>,
}

impl Collector {
    fn part(&mut self, oid: Oid) {
        if self.gone.insert(oid) {
            self.queue.push(oid);
        }
    }

    /// It goes anyway, or was named.
    fn is_known(&self, oid: Oid) -> bool {
        self.gone.contains(&oid) || self.named.contains(&oid)
    }
}

impl Run<'_> {
    pub(super) fn drop_targets(&mut self, targets: &[Target], cascade: bool) -> Result<()> {
        let mut found = Collector::default();
        for target in targets {
            self.may_drop(*target)?;
            found.named.insert(target.oid);
        }
        for target in targets {
            // Parts of named objects are no surprise to them.
            found.part(target.oid);
        }
        self.collect(&mut found);
        let what = match targets {
            [one] => format!(
                "cannot drop {} because other objects depend on it",
                self.describe(one.oid)
            ),
            _ => "cannot drop desired object(s) because other objects depend on them".to_string(),
        };
        self.finish_drop(found, cascade, what)
    }

    /// Things that go only with what they belong to.
    fn may_drop(&self, target: Target) -> Result<()> {
        let requires = |what: String, owner: String| {
            let message = format!("cannot drop {what} because {owner} requires it");
            Err(Error::new(state::DEPENDENT_OBJECTS_STILL_EXIST, message)
                .hint(format!("You can drop {owner} instead.")))
        };
        if let Some(extension) = self.catalog().extension_of(target.oid) {
            return requires(self.describe(target.oid), self.describe(extension.oid));
        }
        if target.oid == extension::EXTENSION {
            return Err(Error::unsupported("DROP EXTENSION plpgsql"));
        }
        if target.kind == TargetKind::Schema && builtin::SYSTEM_SCHEMAS.contains(&target.oid) {
            let message = format!(
                "cannot drop {} because it is required by the database system",
                self.describe(target.oid)
            );
            return Err(Error::new(state::DEPENDENT_OBJECTS_STILL_EXIST, message));
        }
        if let Some(IndexDef {
            constraint: Some(constraint),
            ..
        }) = self.catalog().index(target.oid).map(|d| &**d)
        {
            return requires(self.describe(target.oid), self.describe(*constraint));
        }
        if made::is_multirange(target.oid) {
            let range = made::range_of(target.oid);
            return requires(self.describe(target.oid), self.describe(range));
        }
        let trigger = self.catalog().trigger(target.oid);
        if let Some(parent) = trigger.and_then(|trigger| trigger.parent) {
            return requires(self.describe(target.oid), self.describe(parent));
        }
        if let Some(index) = self.catalog().index(target.oid)
            && let Some(parent) = index.parent
        {
            return requires(self.describe(target.oid), self.describe(parent));
        }
        if let Some(sequence) = self.catalog().sequence(target.oid)
            && sequence.identity
            && let Some((table, attnum)) = sequence.owned_by
        {
            let owner = self.describe_column(table, attnum);
            return requires(self.describe(target.oid), owner);
        }
        Ok(())
    }

    fn describe_column(&self, table: Oid, attnum: u16) -> String {
        let name = self
            .catalog()
            .table(table)
            .map_or("?", |t| &t.column(attnum).name);
        format!("column {} of {}", quote_ident(name), self.describe(table))
    }

    fn collect(&self, found: &mut Collector) {
        while let Some(oid) = self.next_part(found) {
            match self.catalog().object(oid).cloned() {
                Some(Object::Schema(schema)) => self.collect_schema(schema.oid, found),
                Some(Object::Table(table)) => self.collect_table(&table, found),
                Some(Object::View(_)) => {
                    self.collect_triggers(oid, found);
                    self.collect_policies(oid, found);
                    self.collect_views(oid, found);
                    self.collect_routines(oid, found);
                    self.collect_row_type(oid, found);
                }
                Some(Object::Operator(def)) => {
                    self.collect_written(&def, found);
                    self.collect_users(oid, found);
                    self.collect_views(oid, found);
                    self.collect_routines(oid, found);
                }
                Some(Object::Cast(_)) => {
                    self.collect_views(oid, found);
                    self.collect_routines(oid, found);
                }
                Some(Object::Routine(def)) => {
                    self.collect_callers(&def, found);
                    self.collect_users(oid, found);
                    self.collect_policies(oid, found);
                    self.collect_views(oid, found);
                    self.collect_routines(oid, found);
                }
                Some(Object::Constraint(constraint)) => {
                    if let Some(index) = constraint.index() {
                        found.part(index);
                    }
                    for child in self.catalog().children_of(constraint.table) {
                        let own = self.catalog().constraints_of(*child).iter();
                        own.filter(|c| c.lineage.parent == Some(oid))
                            .for_each(|c| found.part(c.oid));
                    }
                    self.collect_policies(oid, found);
                    self.collect_views(oid, found);
                }
                Some(Object::Index(index)) => {
                    for child in self.catalog().children_of(index.table) {
                        let own = self.catalog().indexes_of(*child).iter();
                        for part in own.filter(|i| i.parent == Some(oid)) {
                            part.constraint.iter().for_each(|c| found.part(*c));
                            found.part(part.oid);
                        }
                    }
                    for fk in self.catalog().referencing(index.table) {
                        if fk.foreign_key().is_some_and(|k| k.ref_index == oid) {
                            self.dependent(fk, oid, found);
                        }
                    }
                }
                Some(Object::Sequence(_)) => {
                    self.collect_defaults(oid, found);
                    self.collect_policies(oid, found);
                    self.collect_views(oid, found);
                    self.collect_routines(oid, found);
                }
                Some(Object::Extension(extension)) => {
                    extension.members.iter().for_each(|m| found.part(*m));
                    self.collect_requiring(oid, found);
                    self.collect_operator_users(&extension, found);
                    self.collect_views(oid, found);
                    self.collect_routines(oid, found);
                }
                Some(Object::Trigger(trigger)) => {
                    let parts = self.parts_of_trigger(&trigger);
                    parts.iter().for_each(|part| found.part(part.oid));
                }
                Some(Object::Type(_)) => {
                    if made::is_range(oid) {
                        found.part(made::multirange_of(oid));
                    }
                    self.collect_parts(oid, found);
                    self.collect_columns(oid, found);
                    self.collect_users(oid, found);
                    self.collect_policies(oid, found);
                    self.collect_views(oid, found);
                    self.collect_routines(oid, found);
                }
                _ => {}
            }
        }
    }

    /// A relation's triggers are parts of it.
    fn collect_triggers(&self, relation: Oid, found: &mut Collector) {
        let own = self.catalog().triggers_of(relation).iter();
        own.for_each(|trigger| found.part(trigger.oid));
        let from = self.triggers_from(relation).into_iter();
        from.for_each(|trigger| found.part(trigger));
    }

    /// A table's policies are parts of it; those of tables that stay depend on what they name.
    fn collect_policies(&self, object: Oid, found: &mut Collector) {
        let own = self.catalog().policies_of(object).iter();
        own.for_each(|policy| found.part(policy.oid));
        for policy in self.policies_using(object) {
            let gone = found.gone.contains(&policy.oid) || found.gone.contains(&policy.table);
            if !gone {
                let dependent = self.describe(policy.oid);
                found.dependents.push((dependent, self.describe(object)));
            }
            found.part(policy.oid);
        }
    }

    /// Triggers of relations that stay which use a function or a type.
    fn collect_users(&self, object: Oid, found: &mut Collector) {
        for trigger in self.triggers_using(object) {
            let gone = found.gone.contains(&trigger.oid) || found.gone.contains(&trigger.table);
            if !gone {
                let dependent = self.describe(trigger.oid);
                found.dependents.push((dependent, self.describe(object)));
            }
            found.part(trigger.oid);
        }
    }

    /// What is next: parts of what goes, then the views that depend on it.
    fn next_part(&self, found: &mut Collector) -> Option<Oid> {
        loop {
            if let Some(part) = found.queue.pop() {
                return Some(part);
            }
            let (view, on) = found.views.pop()?;
            if !found.gone.contains(&view) && !found.named.contains(&view) {
                found.dependents.push((self.describe(view), on));
            }
            found.part(view);
        }
    }

    /// Partitions are parts of their table; other children depend on it. Each is told of before its
    /// younger brothers, and after it its own children; one of several parents after the last of
    /// them.
    fn collect_children(&self, table: Oid, found: &mut Collector) {
        enum Visit {
            Enter(Oid, Oid),
            Leave(Oid, Oid),
        }
        let below = |table: Oid| {
            let detaching = self.catalog().detaching_of(table).map(|t| t.oid);
            let children = self.catalog().children_of(table).iter().copied();
            children
                .chain(detaching)
                .map(move |child| Visit::Enter(child, table))
        };
        let mut visits: Vec<Visit> = below(table).collect();
        let (mut entered, mut left) = (HashSet::new(), Vec::new());
        while let Some(visit) = visits.pop() {
            match visit {
                Visit::Enter(child, of) if entered.insert(child) => {
                    visits.push(Visit::Leave(child, of));
                    let def = self.catalog().table(child);
                    let partition = def.is_some_and(|c| c.bound.is_some());
                    if !partition && !found.is_known(child) {
                        visits.extend(below(child));
                    }
                }
                Visit::Enter(..) => {}
                Visit::Leave(child, of) => left.push((child, of)),
            }
        }
        for (child, of) in left.into_iter().rev() {
            let def = self.catalog().table(child);
            let partition = def.is_some_and(|c| c.bound.is_some());
            if !partition && !found.is_known(child) {
                let dependent = self.describe(child);
                found.dependents.push((dependent, self.describe(of)));
            }
            found.part(child);
        }
    }

    /// A foreign key that depends on `on`.
    fn dependent(&self, fk: &ConstraintDef, on: Oid, found: &mut Collector) {
        let mut with_its_table = false;
        // A partition's part of a key goes with the key, and with that one's table.
        let mut own = Some(fk);
        while let Some(fk) = own.filter(|_| !with_its_table) {
            with_its_table = found.is_known(fk.table) || found.is_known(fk.oid);
            let above = fk.lineage.parent.and_then(|p| self.catalog().constraint(p));
            own = above.map(|above| &**above);
        }
        if !with_its_table {
            found
                .dependents
                .push((self.describe(fk.oid), self.describe(on)));
        }
        found.part(fk.oid);
    }

    /// Views that name a relation or a type.
    fn collect_views(&self, object: Oid, found: &mut Collector) {
        let on = self.describe(object);
        let views = self.catalog().views_of(object).iter().rev();
        found.views.extend(views.map(|view| (*view, on.clone())));
    }

    /// Functions that name an object.
    fn collect_routines(&self, object: Oid, found: &mut Collector) {
        for routine in self.catalog().routines_using(object) {
            if !found.gone.contains(routine) && !found.named.contains(routine) {
                let def = self.catalog().routine(*routine);
                let mut on = self.describe(object);
                let row_type = made::composite_oid(object);
                let takes = |def: &RoutineDef| {
                    def.row_of == Some(object)
                        || def.args.iter().any(|arg| Some(arg.ty) == row_type)
                };
                if def.is_some_and(|def| takes(def)) {
                    // It names the type of the relation's rows.
                    on = on
                        .replacen("table ", "type ", 1)
                        .replacen("materialized view ", "type ", 1)
                        .replacen("view ", "type ", 1);
                }
                found.dependents.push((self.describe(*routine), on));
            }
            found.part(*routine);
        }
    }

    /// Defaults and conditions, of tables that stay, that call a function.
    fn collect_callers(&self, def: &RoutineDef, found: &mut Collector) {
        let callers = self.callers_of(def);
        self.collect_texts(callers, def.oid, found);
    }

    /// Those that use an operator.
    fn collect_written(&self, def: &OperatorDef, found: &mut Collector) {
        let users = self.writers_of(def);
        self.collect_texts(users, def.oid, found);
    }

    /// Those that have an operator or an operator class of an extension.
    fn collect_operator_users(&self, extension: &ExtensionDef, found: &mut Collector) {
        let schema = self.catalog().schema(extension.schema);
        let known = known(&extension.name).filter(|known| !known.operators.is_empty());
        if let (Some(schema), Some(known)) = (schema, known) {
            let users = self.operator_users(&schema.name, known.operators);
            self.collect_texts(users, extension.oid, found);
        }
        self.collect_class_users(extension, found);
    }

    /// Indexes by an operator class of an extension.
    fn collect_class_users(&self, extension: &ExtensionDef, found: &mut Collector) {
        for index in self.catalog().indexes() {
            let mut classes = index.classes_of_extensions();
            let class = classes.find(|class| class.extension == Some(&extension.name));
            if let Some(class) = class.filter(|_| !found.gone.contains(&index.oid)) {
                let class = format!("operator class {} for access method gin", class.name);
                found.dependents.push((self.describe(index.oid), class));
                found.part(index.oid);
            }
        }
    }

    /// Defaults and conditions, of tables that stay, that depend on an object.
    fn collect_texts(&self, texts: (Vec<(Oid, u16)>, Vec<Oid>), on: Oid, found: &mut Collector) {
        let (defaults, callers) = texts;
        for (table, attnum) in defaults {
            if let Some(view) = self.catalog().view(table) {
                self.collect_view_default(view, attnum, on, found);
                continue;
            }
            let Some(of) = self
                .catalog()
                .table(table)
                .filter(|_| !found.gone.contains(&table))
            else {
                continue;
            };
            let column = format!(
                "column {} of {}",
                quote_ident(&of.column(attnum).name),
                self.describe(table)
            );
            if of.column(attnum).generated.is_some() {
                found.dependents.push((column, self.describe(on)));
                found.columns.push((table, attnum));
                continue;
            }
            let dependent = format!("default value for {column}");
            found.dependents.push((dependent, self.describe(on)));
            found.defaults.push((table, attnum));
        }
        for caller in callers {
            if !found.gone.contains(&caller) {
                let dependent = self.describe(caller);
                found.dependents.push((dependent, self.describe(on)));
                found.part(caller);
            }
        }
    }

    /// Extensions that need another.
    fn collect_requiring(&self, extension: Oid, found: &mut Collector) {
        for user in self.catalog().users_of(extension) {
            if self.catalog().extension(user).is_some() && !found.is_known(user) {
                let dependent = self.describe(user);
                found.dependents.push((dependent, self.describe(extension)));
                found.part(user);
            }
        }
    }

    fn collect_schema(&self, schema: Oid, found: &mut Collector) {
        let catalog = self.catalog();
        // A partition goes with its table, and a sequence with the column it belongs to.
        let is_in_schema = |table: Option<Oid>| {
            table
                .and_then(|t| catalog.table(t))
                .is_some_and(|t| t.schema == schema)
        };
        let comes_with_another = |oid: &Oid| match catalog.object(*oid) {
            Some(Object::Table(t)) => {
                is_in_schema(t.parents.first().copied().filter(|_| t.bound.is_some()))
            }
            Some(Object::Sequence(s)) => is_in_schema(s.owned_by.map(|(table, _)| table)),
            _ => false,
        };
        let mut all = catalog.members_of(schema);
        all.retain(|oid| !comes_with_another(oid));
        // So does what came with an extension.
        all.retain(|oid| catalog.extension_of(*oid).is_none());
        let extensions = catalog.extensions().into_iter();
        all.extend(extensions.filter(|e| e.schema == schema).map(|e| e.oid));
        // By age; a type's number does not tell its own.
        all.sort_by_key(|oid| (!made::is_made(*oid), *oid));
        for oid in all {
            if !found.gone.contains(&oid) {
                found
                    .dependents
                    .push((self.describe(oid), self.describe(schema)));
            }
            found.part(oid);
        }
    }

    /// What depends on the type of a relation's rows.
    fn collect_row_type(&self, relation: Oid, found: &mut Collector) {
        if let Some(ty) = made::composite_oid(relation) {
            self.collect_parts(ty, found);
            self.collect_columns(ty, found);
            self.collect_views(ty, found);
            self.collect_routines(ty, found);
        }
    }

    /// Domains over a type or over arrays of it, and attributes of it in other types.
    fn collect_parts(&self, ty: Oid, found: &mut Collector) {
        let is = |of: Oid| of == ty || of == made::array_oid(ty);
        let types = self.catalog().types_over(ty).into_iter();
        for def in types.filter_map(|oid| self.catalog().made_type(oid)) {
            if found.gone.contains(&def.oid) || found.named.contains(&def.oid) {
                continue;
            }
            let over = def.domain.as_ref().and_then(|d| d.over);
            let subtype = def.range.as_ref().map(|range| range.subtype);
            if over.or(subtype).is_some_and(is) {
                let dependent = self.describe(def.oid);
                found.dependents.push((dependent, self.describe(ty)));
                found.part(def.oid);
            }
            let fields = def.fields.iter().flatten().enumerate();
            for (place, field) in fields.filter(|(_, f)| !f.dropped && is(f.shown_type())) {
                let name = quote_ident(&field.name);
                let dependent = format!("column {name} of composite {}", self.describe(def.oid));
                // Values of the type lie in rows as they were made.
                let used = || !self.catalog().views_of(def.oid).is_empty();
                if self.column_of(def.oid, 0).is_some() || used() {
                    found.kept_by.get_or_insert_with(|| dependent.clone());
                }
                found.fields.push((def.oid, place));
                found.dependents.push((dependent, self.describe(ty)));
            }
        }
    }

    /// Columns of a type, of tables that stay, and conditions that name it.
    fn collect_columns(&self, ty: Oid, found: &mut Collector) {
        let mut forms = vec![made::array_oid(ty), ty];
        if made::is_range(ty) {
            let multirange = made::multirange_of(ty);
            forms.splice(1..1, [made::array_oid(multirange), multirange]);
        } else if made::is_multirange(ty) && found.gone.contains(&made::range_of(ty)) {
            // They are among those of the range type.
            return;
        }
        for ty in forms {
            for (table, attnum) in self.columns_of_type(ty) {
                if !found.gone.contains(&table) {
                    let column = self.describe_column(table, attnum);
                    found.dependents.push((column, self.describe(ty)));
                    found.columns.push((table, attnum));
                }
            }
        }
        for constraint in self.mentions_of_type(ty) {
            if !found.gone.contains(&constraint) {
                let dependent = self.describe(constraint);
                found.dependents.push((dependent, self.describe(ty)));
                found.part(constraint);
            }
        }
    }

    /// Defaults that take a sequence's next value, of columns that stay.
    fn collect_defaults(&self, sequence: Oid, found: &mut Collector) {
        let users = self.catalog().users_of(sequence);
        for view in users.iter().filter_map(|oid| self.catalog().view(*oid)) {
            let of_sequence = view
                .defaults
                .iter()
                .filter(|d| d.sequence == Some(sequence));
            for own in of_sequence {
                self.collect_view_default(view, own.attnum, sequence, found);
            }
        }
        let users = users.into_iter();
        for table in users.filter_map(|oid| self.catalog().table(oid)) {
            if found.gone.contains(&table.oid) {
                continue;
            }
            for (attnum, column) in table.live_columns() {
                if column.sequence != Some(sequence) {
                    continue;
                }
                let name = quote_ident(&column.name);
                let of = format!(
                    "default value for column {name} of {}",
                    self.describe(table.oid)
                );
                found.dependents.push((of, self.describe(sequence)));
                found.defaults.push((table.oid, attnum));
            }
        }
    }

    /// A view's default that names what goes.
    fn collect_view_default(&self, view: &ViewDef, attnum: u16, of: Oid, found: &mut Collector) {
        if found.gone.contains(&view.oid) {
            return;
        }
        let column = view.columns.get(usize::from(attnum) - 1);
        let dependent = format!(
            "default value for column {} of {}",
            quote_ident(column.map_or("?", |c| &c.name)),
            self.describe(view.oid)
        );
        found.dependents.push((dependent, self.describe(of)));
        found.defaults.push((view.oid, attnum));
    }

    fn finish_drop(&mut self, found: Collector, cascade: bool, what: String) -> Result<()> {
        let lines = |f: &dyn Fn(&(String, String)) -> String| {
            found
                .dependents
                .iter()
                .map(f)
                .collect::<Vec<_>>()
                .join("\n")
        };
        if !found.dependents.is_empty() && !cascade {
            return Err(Error::new(state::DEPENDENT_OBJECTS_STILL_EXIST, what)
                .detail(lines(&|(a, b)| format!("{a} depends on {b}")))
                .hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        if let Some(kept_by) = found.kept_by {
            let what = format!("dropping the type of {kept_by}");
            return Err(Error::unsupported(what));
        }
        match found.dependents.as_slice() {
            [] => {}
            [(one, _)] => {
                let message = format!("drop cascades to {one}");
                self.notice(Error::new(state::SUCCESSFUL_COMPLETION, message));
            }
            many => {
                let message = format!("drop cascades to {} other objects", many.len());
                let detail = lines(&|(a, _)| format!("drop cascades to {a}"));
                self.notice(Error::new(state::SUCCESSFUL_COMPLETION, message).detail(detail));
            }
        }
        for (table, attnum) in &found.defaults {
            if let Some(view) = self.catalog().view(*table) {
                let mut view = (**view).clone();
                view.defaults.retain(|own| own.attnum != *attnum);
                self.edit.put(view);
                continue;
            }
            let mut def = (*self.table(*table)?).clone();
            let column = &mut def.columns[*attnum as usize - 1];
            column.sequence = None;
            column.default = None;
            self.touch(*table);
            self.put_table(def);
        }
        for oid in found.gone {
            if self.catalog().table(oid).is_some() && !found.named.contains(&oid) {
                self.touch(oid);
            }
            self.remove(oid);
        }
        for (ty, place) in found.fields {
            if let Some(def) = self.catalog().made_type(ty) {
                let mut def = (**def).clone();
                let fields = def.fields.iter_mut().flatten();
                fields.skip(place).take(1).for_each(|f| f.dropped = true);
                self.edit.put(def);
            }
        }
        for (table, attnum) in found.columns {
            if self
                .catalog()
                .table(table)
                .is_some_and(|t| !t.column(attnum).dropped)
            {
                self.touch(table);
                self.drop_column(table, attnum, true)?;
            }
        }
        Ok(())
    }

    /// Deletes one object and what is only about it.
    fn remove(&mut self, oid: Oid) {
        let file = match self.catalog().object(oid) {
            Some(Object::Table(d)) => Some(d.file),
            Some(Object::Index(d)) => Some(d.file),
            Some(Object::Sequence(d)) => Some(d.file),
            Some(Object::Constraint(d)) => {
                let table = d.table;
                self.touch(table);
                None
            }
            Some(Object::Trigger(d)) => {
                let table = d.table;
                self.touch(table);
                None
            }
            Some(Object::Policy(d)) => {
                let table = d.table;
                self.touch(table);
                None
            }
            _ => None,
        };
        if let Some(file) = file {
            self.work(Work::DropFile(file));
        }
        self.drop_comments(oid, None);
        self.forget_operator(oid);
        if let Some(relation) = made::serial(oid).filter(|_| made::is_composite(oid)) {
            self.drop_comments(relation, None);
        }
        // A schema takes the default privileges in it along.
        let defaults = self.catalog().all_default_privileges().iter();
        let within: Vec<Oid> = defaults
            .filter(|d| d.schema == oid)
            .map(|d| d.oid)
            .collect();
        within.into_iter().for_each(|d| self.edit.delete(d));
        self.edit.delete(oid);
    }

    pub(super) fn remove_sequence(&mut self, oid: Oid) {
        self.remove(oid);
    }

    /// ALTER TABLE … DROP COLUMN: the column stays as a gap; its indexes, constraints and sequences
    /// go.
    pub(super) fn drop_column(&mut self, table: Oid, attnum: u16, cascade: bool) -> Result<()> {
        let mut found = Collector::default();
        let catalog = self.catalog();
        for index in catalog.indexes_of(table) {
            if index.names(attnum) {
                index.constraint.iter().for_each(|c| found.part(*c));
                found.part(index.oid);
            }
        }
        for constraint in catalog.constraints_of(table) {
            let uses = match &constraint.kind {
                throng_catalog::ConstraintKind::Check { columns, .. } => columns.contains(&attnum),
                throng_catalog::ConstraintKind::ForeignKey(fk) => fk.columns.contains(&attnum),
                _ => false,
            };
            if uses {
                found.part(constraint.oid);
            }
        }
        let column = self.describe_column(table, attnum);
        let def = self.table(table)?;
        for (computed, _) in def.generated_from(attnum) {
            let dependent = self.describe_column(table, computed);
            found.dependents.push((dependent, column.clone()));
            found.columns.push((table, computed));
        }
        let views = self.views_over_column(table, attnum);
        // The column's own default goes with it; it is nothing that depends on its sequence.
        let mut def = (*self.table(table)?).clone();
        let sequences: Vec<Oid> = catalog
            .sequences_of(table)
            .iter()
            .copied()
            .filter(|s| {
                catalog
                    .sequence(*s)
                    .is_some_and(|s| s.owned_by == Some((table, attnum)))
            })
            .collect();
        let gap = &mut def.columns[attnum as usize - 1];
        gap.name = format!("........pg.dropped.{attnum}........");
        gap.dropped = true;
        gap.drop_not_null();
        gap.default = None;
        gap.sequence = None;
        gap.identity = None;
        gap.missing = None;
        gap.generated = None;
        self.put_table(def);
        sequences.into_iter().for_each(|s| found.part(s));
        self.collect(&mut found);
        // What is said to be depended on is the column.
        for (_, on) in &mut found.dependents {
            *on = column.clone();
        }
        for trigger in self.triggers_naming(table, attnum) {
            let dependent = self.describe(trigger.oid);
            found.dependents.push((dependent, column.clone()));
            found.part(trigger.oid);
        }
        for policy in self.policies_naming(table, attnum) {
            let dependent = self.describe(policy.oid);
            found.dependents.push((dependent, column.clone()));
            found.part(policy.oid);
        }
        let views = views.into_iter().rev();
        found.views.extend(views.map(|view| (view, column.clone())));
        self.collect(&mut found);
        let what = format!("cannot drop {column} because other objects depend on it");
        self.finish_drop(found, cascade, what)?;
        self.drop_comments(table, Some(attnum));
        Ok(())
    }
}
