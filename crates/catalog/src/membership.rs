//! Which roles a role is in, and what that is good for.
//!
//! ```text
//!            member of         rights of (INHERIT)     SET ROLE (SET)
//! a ─▶ b     a, b, c           a, b                    a, b, c
//! b ─▶ c WITH INHERIT FALSE
//! ```
//! A superuser is in every role, the owner of the database in `pg_database_owner`.

use std::sync::Arc;

use throng_types::Oid;

use super::{Catalog, MembershipDef, builtin};

/// Which memberships count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Through {
    Any,
    /// Those that give the role's rights.
    Inherit,
    /// Those that let become it.
    Set,
}

impl Through {
    fn counts(self, membership: &MembershipDef) -> bool {
        match self {
            Through::Any => true,
            Through::Inherit => membership.inherit,
            Through::Set => membership.set,
        }
    }
}

impl Catalog {
    pub fn is_superuser(&self, role: Oid) -> bool {
        self.role(role).is_some_and(|r| r.superuser)
    }

    /// The grants that put a role into others.
    pub fn memberships_of(&self, member: Oid) -> &[Arc<MembershipDef>] {
        self.memberships.get(&member).map_or(&[], |all| all)
    }

    /// A role and every one it is in, directly or through others, the nearest first.
    pub fn held_roles(&self, role: Oid, through: Through) -> Vec<Oid> {
        self.held_and_admin(role, through, Oid::NONE).0
    }

    /// And the first of them that may grant `admin_of`.
    fn held_and_admin(
        &self,
        role: Oid,
        through: Through,
        admin_of: Oid,
    ) -> (Vec<Oid>, Option<Oid>) {
        let database_owner = self.current_database().map(|d| d.owner);
        let mut held = vec![role];
        let mut admin = None;
        let mut next = 0;
        while next < held.len() {
            let member = held[next];
            next += 1;
            for membership in self.memberships_of(member) {
                if membership.role == admin_of && membership.admin {
                    admin = admin.or(Some(member));
                }
                if through.counts(membership) && !held.contains(&membership.role) {
                    held.push(membership.role);
                }
            }
            if Some(member) == database_owner && !held.contains(&builtin::PG_DATABASE_OWNER) {
                held.push(builtin::PG_DATABASE_OWNER);
            }
        }
        (held, admin)
    }

    /// Whether a role is another, in it, or a superuser.
    pub fn in_role(&self, role: Oid, of: Oid, through: Through) -> bool {
        role == of || self.is_superuser(role) || self.held_roles(role, through).contains(&of)
    }

    /// Whether a role has what another has: it may do with what that one owns as it likes.
    pub fn acts_as(&self, role: Oid, owner: Oid) -> bool {
        self.in_role(role, owner, Through::Inherit)
    }

    /// Whether a role may grant another.
    pub fn is_admin_of(&self, member: Oid, role: Oid) -> bool {
        self.is_superuser(member)
            || member != role && self.held_and_admin(member, Through::Any, role).1.is_some()
    }

    /// As whom a role grants another: itself, or a role whose rights it has.
    pub fn best_admin(&self, member: Oid, role: Oid) -> Option<Oid> {
        match member == role {
            true => None,
            false => self.held_and_admin(member, Through::Inherit, role).1,
        }
    }
}
