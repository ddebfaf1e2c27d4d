//! Row security policies: made, changed, renamed, kept true to the names of what they read, and
//! gone with what they are of or for.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use super::Run;
use super::stored_expression::Names;
use crate::binder;
use crate::command::PolicyDdl;
use throng_catalog::{Catalog, PolicyCondition, PolicyDef};
use throng_types::lexical::quote_ident;

fn changed_meanwhile(what: &str) -> Error {
    let message = format!("{what} was changed meanwhile");
    Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
}

/// `policy p on table t`
pub(super) fn described(name: &str, table: &str) -> String {
    format!("policy {} on {table}", quote_ident(name))
}

impl Run<'_> {
    pub(super) fn put_policy(&mut self, ddl: &PolicyDdl) -> Result<()> {
        let mut def = ddl.def.clone();
        let table = self.table(def.table)?;
        for condition in def.conditions() {
            self.are_there(&condition.uses)?;
            let gone = |attnum: &u16| {
                let column = table.columns.get(usize::from(*attnum) - 1);
                column.is_none_or(|c| c.dropped)
            };
            let own = condition.uses.iter().filter(|u| u.object == table.oid);
            if own.flat_map(|u| &u.columns).any(gone) {
                return Err(changed_meanwhile("a column that a policy names"));
            }
        }
        match &ddl.old {
            Some(old) if self.catalog().policy(old.oid) == Some(old) => {}
            Some(old) => return Err(changed_meanwhile(&format!("policy \"{}\"", old.name))),
            None => {
                self.policy_name_is_free(def.table, &def.name)?;
                def.oid = self.host.next_oid();
            }
        }
        self.edit.put(def);
        Ok(())
    }

    fn policy_name_is_free(&self, table: Oid, name: &str) -> Result<()> {
        if self.catalog().policy_by_name(table, name).is_none() {
            return Ok(());
        }
        let of = self.table(table)?;
        let message = format!("policy \"{name}\" for table \"{}\" already exists", of.name);
        Err(Error::new(state::DUPLICATE_OBJECT, message))
    }

    pub(super) fn rename_policy(&mut self, oid: Oid, name: &str) -> Result<()> {
        let Some(def) = self.catalog().policy(oid).cloned() else {
            return Err(changed_meanwhile("the policy"));
        };
        self.policy_name_is_free(def.table, name)?;
        self.edit.put(PolicyDef {
            name: name.to_owned(),
            ..(*def).clone()
        });
        Ok(())
    }

    /// Policies of other tables that name an object.
    pub(super) fn policies_using(&self, object: Oid) -> Vec<Arc<PolicyDef>> {
        let users = self.catalog().users_of(object).into_iter();
        let all = users.filter_map(|oid| self.catalog().policy(oid));
        all.filter(|p| p.uses(object)).cloned().collect()
    }

    /// Policies that name a column.
    pub(super) fn policies_naming(&self, table: Oid, attnum: u16) -> Vec<Arc<PolicyDef>> {
        let users = self.catalog().users_of(table).into_iter();
        let all = users.filter_map(|oid| self.catalog().policy(oid));
        all.filter(|p| p.names(table, attnum)).cloned().collect()
    }

    /// 0A000 for another type of a column that a policy names.
    pub(super) fn policies_keep_type(&self, table: Oid, attnum: u16) -> Result<()> {
        let Some(policy) = self.policies_naming(table, attnum).into_iter().next() else {
            return Ok(());
        };
        let message = "cannot alter type of a column used in a policy definition";
        let column = self.table(table)?.column(attnum).name.clone();
        let detail = format!(
            "{} depends on column \"{column}\"",
            self.describe(policy.oid)
        );
        Err(Error::new(state::FEATURE_NOT_SUPPORTED, message).detail(detail))
    }

    /// After something got another name: the policies that say it are written anew.
    pub(super) fn rewrite_policies(&mut self, before: &Catalog, names: Names<'_>) -> Result<()> {
        let policies = match before.saying(names.from) {
            None => before.policies(),
            Some(all) => all.iter().filter_map(|oid| before.policy(*oid)).collect(),
        };
        self.write_policies(before, &policies)
    }

    /// After a table has got columns or lost some.
    pub(super) fn policies_see_columns(&mut self, before: &Catalog, table: Oid) -> Result<()> {
        let users = before.users_of(table).into_iter();
        let policies: Vec<_> = users.filter_map(|oid| before.policy(oid)).collect();
        self.write_policies(before, &policies)
    }

    fn write_policies(&mut self, before: &Catalog, policies: &[&Arc<PolicyDef>]) -> Result<()> {
        for old in policies {
            let Some(now) = self.catalog().policy(old.oid).cloned() else {
                continue;
            };
            let Some(table) = before.table(old.table) else {
                continue;
            };
            let again = |condition: &Option<PolicyCondition>| -> Result<Option<PolicyCondition>> {
                let Some(condition) = condition else {
                    return Ok(None);
                };
                let text = binder::policy_condition_again(
                    &condition.text,
                    table,
                    before,
                    self.catalog(),
                    self.host.eval(),
                )?;
                Ok(Some(PolicyCondition {
                    text,
                    ..condition.clone()
                }))
            };
            let def = PolicyDef {
                using: again(&old.using)?,
                check: again(&old.check)?,
                ..(*now).clone()
            };
            if def != *now {
                self.edit.put(def);
            }
        }
        Ok(())
    }

    /// DROP OWNED: policies that are for a role alone go, others are no more for it.
    pub(super) fn forget_policy_role(&mut self, role: Oid) {
        let policies: Vec<_> = self.catalog().policies().into_iter().cloned().collect();
        for policy in policies.iter().filter(|p| p.roles.contains(&role)) {
            let mut def = (**policy).clone();
            def.roles.retain(|of| *of != role);
            self.touch(def.table);
            match def.roles.is_empty() {
                true => {
                    self.drop_comments(def.oid, None);
                    self.edit.delete(def.oid);
                }
                false => self.edit.put(def),
            }
        }
    }
}
