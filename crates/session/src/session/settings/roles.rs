//! Whom a session acts as: SET ROLE and SET SESSION AUTHORIZATION, transactional as every SET, and
//! owners whose code runs.
//!
//! ```text
//! login role ──SET SESSION AUTHORIZATION──▶ session role ──SET ROLE──▶ outer role ──an owner's code──▶ current role
//! ```
//! Rights are those of the current role alone. Code that an owner wrote and somebody else has run
//! (an index's expression, a materialized view's query) runs in a security-restricted operation:
//! with the owner's rights, a search path that nobody can plant names in, and without anything that
//! would stay in the session.

use std::rc::Rc;

use throng_catalog::Through;
use throng_types::error::state;
use throng_types::{Error, Oid, Result};
use throng_values::settings::{Id, Scope, Value};

use crate::session::{Role, Session};

/// Who a session acted as before a change.
struct RolesBefore {
    session: Rc<Role>,
    outer: Rc<Role>,
    /// The change was for its transaction only.
    local: bool,
}

/// What limits whoever acts for the outer role.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::session) struct Limits {
    /// Roles cannot be changed: the current role is not the session's own choice.
    local: bool,
    /// Nothing may stay in the session.
    restricted: bool,
}

/// Who SET SESSION AUTHORIZATION made of who logged in, who SET ROLE did, and who acts for them.
pub(in crate::session) struct Roles {
    session: Rc<Role>,
    outer: Rc<Role>,
    current: Rc<Role>,
    limits: Limits,
    /// What was changed in the transaction under way.
    before: Vec<RolesBefore>,
}

impl Roles {
    pub fn new(role: Role) -> Roles {
        let role = Rc::new(role);
        Roles {
            session: role.clone(),
            outer: role.clone(),
            current: role,
            limits: Limits::default(),
            before: Vec::new(),
        }
    }
}

/// A role that acts for another until this is dropped; settings made meanwhile are taken back then.
pub(in crate::session) struct Acting<'a> {
    session: &'a Session,
    before: (Rc<Role>, Limits),
    settings: Option<usize>,
}

impl Drop for Acting<'_> {
    fn drop(&mut self) {
        let (role, limits) = self.before.clone();
        self.session.act_again(role, limits);
        if let Some(mark) = self.settings {
            self.session.settings.borrow_mut().rollback_to(mark);
        }
    }
}

/// Where names are sought while somebody else's code runs: nowhere that a user could have put one.
const SAFE_PATH: &str = "pg_catalog, pg_temp";

impl Session {
    /// The role whose rights count.
    pub(in crate::session) fn role(&self) -> Rc<Role> {
        self.roles.borrow().current.clone()
    }

    pub(in crate::session) fn current_role_oid(&self) -> Oid {
        self.roles.borrow().current.oid
    }

    pub(in crate::session) fn session_role(&self) -> Rc<Role> {
        self.roles.borrow().session.clone()
    }

    /// The role that SET ROLE chose.
    pub(in crate::session) fn outer_role(&self) -> Rc<Role> {
        self.roles.borrow().outer.clone()
    }

    /// Acts as somebody, who cannot change roles, until [`act_again`](Self::act_again); who acted
    /// before.
    pub(in crate::session) fn act_for(&self, role: Rc<Role>) -> (Rc<Role>, Limits) {
        let roles = &mut *self.roles.borrow_mut();
        let limits = Limits {
            local: true,
            ..roles.limits
        };
        (
            std::mem::replace(&mut roles.current, role),
            std::mem::replace(&mut roles.limits, limits),
        )
    }

    pub(in crate::session) fn act_again(&self, role: Rc<Role>, limits: Limits) {
        let roles = &mut *self.roles.borrow_mut();
        (roles.current, roles.limits) = (role, limits);
    }

    /// Acts as a role that cannot change roles.
    pub(in crate::session) fn acting_as(&self, role: Oid) -> Result<Acting<'_>> {
        let role = self.role_of(role)?;
        Ok(Acting {
            session: self,
            before: self.act_for(role),
            settings: None,
        })
    }

    /// Begins a security-restricted operation, in which code of an owner runs for somebody else.
    pub(in crate::session) fn restricted(&self, owner: Oid) -> Result<Acting<'_>> {
        let role = self.role_of(owner)?;
        let before = {
            let roles = &mut *self.roles.borrow_mut();
            let limits = Limits {
                restricted: true,
                ..roles.limits
            };
            (
                std::mem::replace(&mut roles.current, role),
                std::mem::replace(&mut roles.limits, limits),
            )
        };
        let caller = self.caller();
        let mut settings = self.settings.borrow_mut();
        let acting = Acting {
            session: self,
            before,
            settings: Some(settings.mark()),
        };
        let set = settings.set("search_path", Some(SAFE_PATH), Scope::Local, caller);
        drop(settings);
        set?;
        Ok(acting)
    }

    fn role_of(&self, oid: Oid) -> Result<Rc<Role>> {
        let catalog = self.catalog();
        let role = catalog.role(oid);
        role.map(|role| Rc::new(role.as_ref().into()))
            .ok_or_else(|| Error::internal(format!("role with OID {oid} does not exist")))
    }

    /// Whether the current role is a superuser, as it is defined now.
    pub(in crate::session) fn is_superuser(&self) -> bool {
        self.catalog().is_superuser(self.current_role_oid())
    }

    /// Whether nothing may stay in the session.
    pub(in crate::session) fn is_restricted(&self) -> bool {
        self.roles.borrow().limits.restricted
    }

    /// 42501 for a command that is not for a security-restricted operation.
    pub(in crate::session) fn must_not_be_restricted(&self, command: &str) -> Result<()> {
        match self.is_restricted() {
            false => Ok(()),
            true => Err(refused(format!(
                "cannot execute {command} within security-restricted operation"
            ))),
        }
    }

    /// 42501 where the current role is not the session's own choice.
    fn may_change_roles(&self, what: &str) -> Result<()> {
        let limits = self.roles.borrow().limits;
        let within = match limits {
            Limits { local: true, .. } => "security-definer function",
            Limits {
                restricted: true, ..
            } => "security-restricted operation",
            _ => return Ok(()),
        };
        Err(refused(format!(
            "cannot set parameter \"{what}\" within {within}"
        )))
    }

    /// SET ROLE; None for NONE.
    pub(in crate::session) fn set_role(&self, name: Option<&str>, local: bool) -> Result<()> {
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
    pub(in crate::session) fn set_session_authorization(
        &self,
        name: Option<&str>,
        local: bool,
    ) -> Result<()> {
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
            outer: roles.outer.clone(),
            local,
        });
    }

    fn act_as(&self, session: Rc<Role>, outer: Rc<Role>) {
        let mut settings = self.settings.borrow_mut();
        settings.force(Id::SessionAuthorization, Value::Text(session.name.clone()));
        settings.force(Id::IsSuperuser, Value::Bool(outer.superuser));
        let mut roles = self.roles.borrow_mut();
        roles.session = session;
        roles.current = outer.clone();
        roles.outer = outer;
    }

    /// The place in the list of changes that a savepoint remembers.
    pub(in crate::session) fn roles_mark(&self) -> usize {
        self.roles.borrow().before.len()
    }

    /// Takes back every change since `mark`.
    pub(in crate::session) fn rollback_roles(&self, mark: usize) {
        let first = self.roles.borrow_mut().before.drain(mark..).next();
        if let Some(before) = first {
            self.act_as(before.session, before.outer);
        }
    }

    /// The transaction committed: what was changed for it alone is taken back, the rest stays.
    pub(in crate::session) fn commit_roles(&self) {
        // Each change's outcome is what the next one found.
        let before = std::mem::take(&mut self.roles.borrow_mut().before);
        let mut log = before.into_iter();
        let Some(mut change) = log.next() else { return };
        let mut lasting = (change.session.clone(), change.outer.clone());
        loop {
            let next = log.next();
            if !change.local {
                lasting = match &next {
                    Some(next) => (next.session.clone(), next.outer.clone()),
                    None => (self.session_role(), self.outer_role()),
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

/// 42501
fn refused(message: String) -> Error {
    Error::new(state::INSUFFICIENT_PRIVILEGE, message)
}
