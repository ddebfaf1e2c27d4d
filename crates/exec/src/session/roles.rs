//! Whom a session acts as: SET ROLE and SET SESSION AUTHORIZATION, transactional as every SET.
//!
//! ```text
//! login role ──SET SESSION AUTHORIZATION──▶ session role ──SET ROLE──▶ current role
//! ```

use throng_sql::catalog::Through;
use throng_sql::settings::{Id, Value};
use throng_types::error::state;
use throng_types::{Error, Result};

use super::{Role, Session};

/// Who a session acted as before a change.
pub(super) struct RolesBefore {
    session: Role,
    current: Role,
    /// The change was for its transaction only.
    local: bool,
}

impl Session {
    /// SET ROLE; None for NONE.
    pub(super) fn set_role(&mut self, name: Option<&str>, local: bool) -> Result<()> {
        let role = match name {
            None => self.session_role.clone(),
            Some(name) => {
                let role = self.role_named(name)?;
                let catalog = self.catalog();
                let may = catalog.in_role(self.session_role.oid, role.oid, Through::Set);
                if !may {
                    let message = format!("permission denied to set role \"{name}\"");
                    return Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message));
                }
                role
            }
        };
        self.note_roles(local);
        self.act_as(self.session_role.clone(), role);
        Ok(())
    }

    /// SET SESSION AUTHORIZATION; None for DEFAULT.
    pub(super) fn set_session_authorization(
        &mut self,
        name: Option<&str>,
        local: bool,
    ) -> Result<()> {
        let role = match name {
            None => self.login_role.clone(),
            Some(name) => {
                let role = self.role_named(name)?;
                if role.oid != self.login_role.oid && !self.login_role.superuser {
                    let message =
                        format!("permission denied to set session authorization \"{name}\"");
                    return Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message));
                }
                role
            }
        };
        self.note_roles(local);
        self.act_as(role.clone(), role);
        Ok(())
    }

    fn role_named(&mut self, name: &str) -> Result<Role> {
        let catalog = self.catalog();
        match catalog.role_by_name(name) {
            Some(role) => Ok(role.as_ref().into()),
            None => {
                let message = format!("role \"{name}\" does not exist");
                Err(Error::new(state::INVALID_PARAMETER_VALUE, message))
            }
        }
    }

    fn note_roles(&mut self, local: bool) {
        self.roles_before.push(RolesBefore {
            session: self.session_role.clone(),
            current: self.role.clone(),
            local,
        });
    }

    fn act_as(&mut self, session: Role, current: Role) {
        let settings = self.settings.get_mut();
        settings.force(Id::SessionAuthorization, Value::Text(session.name.clone()));
        settings.force(Id::IsSuperuser, Value::Bool(current.superuser));
        self.session_role = session;
        self.role = current;
    }

    /// The place in the list of changes that a savepoint remembers.
    pub(super) fn roles_mark(&self) -> usize {
        self.roles_before.len()
    }

    /// Takes back every change since `mark`.
    pub(super) fn rollback_roles(&mut self, mark: usize) {
        let first = self.roles_before.drain(mark..).next();
        if let Some(before) = first {
            self.act_as(before.session, before.current);
        }
    }

    /// The transaction committed: what was changed for it alone is taken back, the rest stays.
    pub(super) fn commit_roles(&mut self) {
        // Each change's outcome is what the next one found.
        let mut log = std::mem::take(&mut self.roles_before).into_iter();
        let Some(mut change) = log.next() else { return };
        let mut lasting = (change.session.clone(), change.current.clone());
        loop {
            let next = log.next();
            if !change.local {
                lasting = match &next {
                    Some(next) => (next.session.clone(), next.current.clone()),
                    None => (self.session_role.clone(), self.role.clone()),
                };
            }
            match next {
                Some(next) => change = next,
                None => break,
            }
        }
        self.act_as(lasting.0, lasting.1);
    }
}
