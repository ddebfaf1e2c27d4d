//! Whom a session acts as: SET ROLE and SET SESSION AUTHORIZATION, transactional as every SET.
//!
//! ```text
//! login role ──SET SESSION AUTHORIZATION──▶ session role ──SET ROLE──▶ current role
//! ```

use std::rc::Rc;

use throng_sql::catalog::Through;
use throng_sql::settings::{Id, Value};
use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use super::{Role, Session};

/// Who a session acted as before a change.
struct RolesBefore {
    session: Rc<Role>,
    current: Rc<Role>,
    /// The change was for its transaction only.
    local: bool,
}

/// Who SET SESSION AUTHORIZATION made of who logged in, and who SET ROLE did.
pub(super) struct Roles {
    session: Rc<Role>,
    current: Rc<Role>,
    /// What was changed in the transaction under way.
    before: Vec<RolesBefore>,
}

impl Roles {
    pub fn new(role: Role) -> Roles {
        let role = Rc::new(role);
        Roles {
            session: role.clone(),
            current: role,
            before: Vec::new(),
        }
    }
}

impl Session {
    pub(super) fn role(&self) -> Rc<Role> {
        self.roles.borrow().current.clone()
    }

    pub(super) fn current_role_oid(&self) -> Oid {
        self.roles.borrow().current.oid
    }

    pub(super) fn session_role(&self) -> Rc<Role> {
        self.roles.borrow().session.clone()
    }

    /// Acts as somebody until further notice, whatever was set; who it was.
    pub(super) fn act_for(&self, role: Rc<Role>) -> Rc<Role> {
        std::mem::replace(&mut self.roles.borrow_mut().current, role)
    }

    /// 42501 inside a function that runs with its owner's rights.
    fn may_change_roles(&self, what: &str) -> Result<()> {
        if self.acting.get().is_none() {
            return Ok(());
        }
        let message = format!("cannot set parameter \"{what}\" within security-definer function");
        Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message))
    }

    /// SET ROLE; None for NONE.
    pub(super) fn set_role(&self, name: Option<&str>, local: bool) -> Result<()> {
        self.may_change_roles("role")?;
        let role = match name {
            None => self.session_role(),
            Some(name) => {
                let role = self.role_named(name)?;
                let catalog = self.catalog();
                let may = catalog.in_role(self.session_role().oid, role.oid, Through::Set);
                if !may {
                    let message = format!("permission denied to set role \"{name}\"");
                    return Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message));
                }
                role
            }
        };
        self.note_roles(local);
        self.act_as(self.session_role(), role);
        Ok(())
    }

    /// SET SESSION AUTHORIZATION; None for DEFAULT.
    pub(super) fn set_session_authorization(&self, name: Option<&str>, local: bool) -> Result<()> {
        self.may_change_roles("session_authorization")?;
        let role = match name {
            None => Rc::new(self.login_role.clone()),
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

    fn role_named(&self, name: &str) -> Result<Rc<Role>> {
        let catalog = self.catalog();
        match catalog.role_by_name(name) {
            Some(role) => Ok(Rc::new(role.as_ref().into())),
            None => {
                let message = format!("role \"{name}\" does not exist");
                Err(Error::new(state::INVALID_PARAMETER_VALUE, message))
            }
        }
    }

    fn note_roles(&self, local: bool) {
        let roles = &mut *self.roles.borrow_mut();
        roles.before.push(RolesBefore {
            session: roles.session.clone(),
            current: roles.current.clone(),
            local,
        });
    }

    fn act_as(&self, session: Rc<Role>, current: Rc<Role>) {
        let mut settings = self.settings.borrow_mut();
        settings.force(Id::SessionAuthorization, Value::Text(session.name.clone()));
        settings.force(Id::IsSuperuser, Value::Bool(current.superuser));
        let mut roles = self.roles.borrow_mut();
        roles.session = session;
        roles.current = current;
    }

    /// The place in the list of changes that a savepoint remembers.
    pub(super) fn roles_mark(&self) -> usize {
        self.roles.borrow().before.len()
    }

    /// Takes back every change since `mark`.
    pub(super) fn rollback_roles(&self, mark: usize) {
        let first = self.roles.borrow_mut().before.drain(mark..).next();
        if let Some(before) = first {
            self.act_as(before.session, before.current);
        }
    }

    /// The transaction committed: what was changed for it alone is taken back, the rest stays.
    pub(super) fn commit_roles(&self) {
        // Each change's outcome is what the next one found.
        let before = std::mem::take(&mut self.roles.borrow_mut().before);
        let mut log = before.into_iter();
        let Some(mut change) = log.next() else { return };
        let mut lasting = (change.session.clone(), change.current.clone());
        loop {
            let next = log.next();
            if !change.local {
                lasting = match &next {
                    Some(next) => (next.session.clone(), next.current.clone()),
                    None => (self.session_role(), self.role()),
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
