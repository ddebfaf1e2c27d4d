//! Settings that sessions begin with: of a role, of a database, of both, of everybody.

use throng_types::error::state;
use throng_types::{Error, Result};

use crate::binder::Binder;
use crate::command::Ddl;
use throng_syntax::parse::ast::SetTo;
use throng_syntax::vocabulary::SettingsOf;

impl Binder<'_> {
    pub(in crate::binder) fn alter_role_set(
        &mut self,
        (role, database): (&SettingsOf<String>, Option<&str>),
        (name, value): (Option<&str>, &SetTo),
    ) -> Result<Ddl> {
        let role = match role {
            SettingsOf::Role(name) => SettingsOf::Role(self.role(name)?),
            SettingsOf::Everyone => SettingsOf::Everyone,
            SettingsOf::Database => SettingsOf::Database,
        };
        let database = database.map(|name| self.database(name));
        let database = database.transpose()?.map(|def| def.oid);
        if database.is_none()
            && role == SettingsOf::Everyone
            && !self.catalog().is_superuser(self.user)
        {
            let message = "permission denied to alter setting";
            let error = Error::new(state::INSUFFICIENT_PRIVILEGE, message);
            return Err(error
                .detail("Only roles with the SUPERUSER attribute may alter settings globally."));
        }
        let set = name.map(|name| self.stored_setting(name, value));
        let (name, value) = set.transpose()?.unzip();
        Ok(Ddl::AlterRoleSet {
            role,
            database,
            name,
            value: value.flatten(),
        })
    }
}
