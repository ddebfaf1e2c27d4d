//! Triggers: made, replaced, renamed, switched on and off; those of a partitioned table's rows are
//! had by its partitions too.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use super::Run;
use super::names::rename_in_text;
use crate::binder;
use crate::command::EnableTriggers;
use throng_catalog::partition::columns_in_child;
use throng_catalog::{Catalog, Enabled, TableDef, TriggerCondition, TriggerDef};
use throng_types::lexical::quote_ident;

fn exists_already(name: &str, relation: &str) -> Error {
    let message = format!("trigger \"{name}\" for relation \"{relation}\" already exists");
    Error::new(state::DUPLICATE_OBJECT, message)
}

impl Run<'_> {
    pub(super) fn create_trigger(
        &mut self,
        def: &TriggerDef,
        old: Option<&Arc<TriggerDef>>,
    ) -> Result<()> {
        self.trigger_still_means(def)?;
        let mut def = def.clone();
        match old {
            Some(old) if self.catalog().trigger(old.oid) == Some(old) => {}
            Some(old) => {
                let message = format!("trigger \"{}\" was changed meanwhile", old.name);
                return Err(Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
            }
            None => {
                self.trigger_name_is_free(def.table, &def.name)?;
                def.oid = self.host.next_oid();
            }
        }
        self.edit.put(def.clone());
        self.give_to_partitions(&def)
    }

    /// Others may have changed what it was bound over while its locks were waited for.
    fn trigger_still_means(&self, def: &TriggerDef) -> Result<()> {
        let catalog = self.catalog();
        let gone = |what: &str| {
            let message = format!("{what} was changed meanwhile");
            Err(Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message))
        };
        let function = def.function < Oid::FIRST_USER || catalog.routine(def.function).is_some();
        if !function || catalog.relation(def.table).is_none() {
            return gone("what a trigger names");
        }
        let used = def.when.iter().flat_map(|when| &when.columns);
        let mut columns = def.columns.iter().chain(used);
        let Some(table) = catalog.table(def.table) else {
            return Ok(());
        };
        let is_there = |attnum: &u16| {
            let column = table.columns.get(usize::from(*attnum) - 1);
            column.is_some_and(|c| !c.dropped)
        };
        match columns.all(is_there) {
            true => Ok(()),
            false => gone("a column that a trigger names"),
        }
    }

    fn trigger_name_is_free(&self, relation: Oid, name: &str) -> Result<()> {
        match self.catalog().trigger_by_name(relation, name) {
            None => Ok(()),
            Some(_) => {
                let of = self.catalog().relation(relation);
                Err(exists_already(name, of.as_ref().map_or("", |r| r.name())))
            }
        }
    }

    /// A partitioned table's trigger for each row on all its partitions.
    fn give_to_partitions(&mut self, def: &TriggerDef) -> Result<()> {
        if !def.for_each_row() {
            return Ok(());
        }
        let Some(table) = self.catalog().table(def.table).cloned() else {
            return Ok(());
        };
        if !table.is_partitioned() {
            return Ok(());
        }
        for child in self.catalog().children_of(table.oid).to_vec() {
            self.clone_trigger(&table, child, def)?;
        }
        Ok(())
    }

    /// What a new partition has of its table's triggers.
    pub(super) fn adopt_triggers(&mut self, child: Oid, parent: &Arc<TableDef>) -> Result<()> {
        for trigger in self.catalog().triggers_of(parent.oid).to_vec() {
            if trigger.for_each_row() {
                self.clone_trigger(parent, child, &trigger)?;
            }
        }
        Ok(())
    }

    fn clone_trigger(
        &mut self,
        parent: &Arc<TableDef>,
        child: Oid,
        def: &TriggerDef,
    ) -> Result<()> {
        let table = self.table(child)?;
        let places = columns_in_child(parent, &table);
        let mapped = |columns: &[u16]| -> Vec<u16> {
            let place = |attnum: &u16| places[usize::from(*attnum) - 1];
            columns.iter().map(place).collect()
        };
        let mut part = TriggerDef {
            table: child,
            columns: mapped(&def.columns),
            when: def.when.as_ref().map(|when| TriggerCondition {
                columns: mapped(&when.columns),
                ..when.clone()
            }),
            parent: Some(def.oid),
            ..def.clone()
        };
        let had = self.catalog().trigger_by_name(child, &def.name);
        match had.cloned() {
            Some(had) if had.parent == Some(def.oid) => part.oid = had.oid,
            Some(_) => return Err(exists_already(&def.name, &table.name)),
            None => part.oid = self.host.next_oid(),
        }
        self.touch(child);
        self.edit.put(part.clone());
        self.give_to_partitions(&part)
    }

    /// A partition becomes a table of its own: its table's triggers are no more its.
    pub(super) fn part_triggers(&mut self, child: Oid) {
        for trigger in self.catalog().triggers_of(child).to_vec() {
            if trigger.parent.is_some() {
                self.delete_trigger(&trigger);
            }
        }
    }

    fn delete_trigger(&mut self, trigger: &TriggerDef) {
        for part in self.parts_of_trigger(trigger) {
            self.delete_trigger(&part);
        }
        self.drop_comments(trigger.oid, None);
        self.edit.delete(trigger.oid);
    }

    /// A trigger's parts in the partitions directly below its table.
    pub(super) fn parts_of_trigger(&self, trigger: &TriggerDef) -> Vec<Arc<TriggerDef>> {
        let catalog = self.catalog();
        let children = catalog.children_of(trigger.table).iter();
        let triggers = children.flat_map(|child| catalog.triggers_of(*child));
        let parts = triggers.filter(|part| part.parent == Some(trigger.oid));
        parts.cloned().collect()
    }

    pub(super) fn rename_trigger(&mut self, oid: Oid, name: &str) -> Result<()> {
        let Some(def) = self.catalog().trigger(oid).cloned() else {
            let message = "the trigger was changed meanwhile";
            return Err(Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
        };
        self.trigger_name_is_free(def.table, name)?;
        for part in self.parts_of_trigger(&def) {
            self.touch(part.table);
            self.rename_trigger(part.oid, name)?;
        }
        self.edit.put(TriggerDef {
            name: name.to_owned(),
            ..(*def).clone()
        });
        Ok(())
    }

    /// ALTER TABLE … ENABLE or DISABLE TRIGGER.
    pub(super) fn enable_triggers(&mut self, table: Oid, change: &EnableTriggers) {
        if change.keys {
            let mut tables = vec![table];
            if !change.only {
                tables.extend(self.catalog().descendants(table));
            }
            for oid in tables {
                if let Some(def) = self.catalog().table(oid).cloned() {
                    self.touch(oid);
                    self.enable_keys(&def, change);
                }
            }
        }
        for trigger in self.catalog().triggers_of(table).to_vec() {
            if change
                .name
                .as_ref()
                .is_none_or(|name| *name == trigger.name)
            {
                self.enable_trigger(&trigger, change);
            }
        }
    }

    /// Switches a table's part of its foreign keys off or on.
    fn enable_keys(&mut self, def: &TableDef, change: &EnableTriggers) {
        let catalog = self.catalog();
        let mut keys_off = Vec::new();
        if change.enabled == Enabled::Disabled {
            let own = catalog.constraints_of(def.oid).iter();
            let above = catalog.ancestors(def);
            let incoming = std::iter::once(def.oid)
                .chain(above)
                .flat_map(|oid| catalog.referencing(oid));
            let keys = own.chain(incoming).filter(|c| c.foreign_key().is_some());
            keys_off.extend(keys.map(|c| c.oid));
            keys_off.sort();
            keys_off.dedup();
        }
        if keys_off != def.keys_off {
            self.put_table(TableDef {
                keys_off,
                ..def.clone()
            });
        }
    }

    fn enable_trigger(&mut self, trigger: &TriggerDef, change: &EnableTriggers) {
        if !change.only {
            for part in self.parts_of_trigger(trigger) {
                self.touch(part.table);
                self.enable_trigger(&part, change);
            }
        }
        self.edit.put(TriggerDef {
            enabled: change.enabled,
            ..trigger.clone()
        });
    }

    /// Triggers that have to do with a column.
    pub(super) fn triggers_naming(&self, table: Oid, attnum: u16) -> Vec<Arc<TriggerDef>> {
        let triggers = self.catalog().triggers_of(table).iter();
        triggers.filter(|t| t.names(attnum)).cloned().collect()
    }

    /// Triggers that run a function or whose conditions name an object; of those in partitions the
    /// ones they are parts of.
    pub(super) fn triggers_using(&self, object: Oid) -> Vec<Arc<TriggerDef>> {
        let uses = |t: &TriggerDef| {
            t.function == object || t.when.iter().any(|when| when.uses.contains(&object))
        };
        let users = self.catalog().users_of(object).into_iter();
        let all = users.filter_map(|oid| self.catalog().trigger(oid));
        let own = all.filter(|t| t.parent.is_none() && uses(t));
        own.cloned().collect()
    }

    /// Constraint triggers that were made FROM a table.
    pub(super) fn triggers_from(&self, table: Oid) -> Vec<Oid> {
        let from = |t: &TriggerDef| t.constraint.is_some_and(|c| c.other == Some(table));
        let users = self.catalog().users_of(table).into_iter();
        let all = users.filter_map(|oid| self.catalog().trigger(oid));
        all.filter(|t| from(t)).map(|t| t.oid).collect()
    }

    /// Conditions are kept as text over names.
    pub(super) fn rename_in_conditions(&mut self, table: Oid, columns: (&str, &str)) {
        for trigger in self.catalog().triggers_of(table).to_vec() {
            let Some(when) = &trigger.when else {
                continue;
            };
            let text = rename_in_text(&when.text, ("old", "old"), columns);
            let text = rename_in_text(&text, ("new", "new"), columns);
            if text != when.text {
                self.put_condition(&trigger, text);
            }
        }
    }

    fn put_condition(&mut self, trigger: &TriggerDef, text: String) {
        let when = trigger
            .when
            .clone()
            .map(|when| TriggerCondition { text, ..when });
        self.edit.put(TriggerDef {
            when,
            ..trigger.clone()
        });
    }

    /// After something got another name: the conditions that say it are written anew.
    pub(super) fn rewrite_conditions(
        &mut self,
        before: &Catalog,
        after: &Catalog,
        table: &Arc<TableDef>,
        names: super::stored_expression::Names<'_>,
    ) -> Result<()> {
        for trigger in before.triggers_of(table.oid) {
            let renamed = self.renamed(before, after, names);
            let Some(when) = trigger.when.as_ref().filter(|w| renamed.is_in(&w.text)) else {
                continue;
            };
            let Some(now) = self.catalog().trigger(trigger.oid).cloned() else {
                continue;
            };
            // What was renamed in the text already stays as it is.
            if now.when.as_ref().map(|w| &w.text) != Some(&when.text) {
                continue;
            }
            let again = binder::trigger_condition_again(
                &when.text,
                table,
                before,
                self.catalog(),
                self.host.eval(),
            )?;
            self.put_condition(&now, again);
        }
        Ok(())
    }
}

/// `trigger t on table x`
pub(super) fn described(name: &str, relation: &str) -> String {
    format!("trigger {} on {relation}", quote_ident(name))
}
