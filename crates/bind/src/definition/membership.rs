//! GRANT and REVOKE of roles.
//!
//! Each membership is granted by someone, who must be able to grant the role: the bootstrap
//! superuser or one with the ADMIN option. Who loses that option loses, with CASCADE, what it
//! granted by it.

use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use super::Run;
use crate::command::{GrantRole, RoleOptions};
use throng_catalog::{MembershipDef, Through, builtin};

/// What a grant says of a membership; None leaves it as it is or at its default.
#[derive(Clone, Copy, Default)]
struct Options {
    admin: Option<bool>,
    inherit: Option<bool>,
    set: Option<bool>,
}

fn denied(message: String, detail: String) -> Error {
    Error::new(state::INSUFFICIENT_PRIVILEGE, message).detail(detail)
}

impl Run<'_> {
    pub(super) fn grant_role(&mut self, grant: &GrantRole) -> Result<()> {
        let options = Options {
            admin: grant.admin,
            inherit: grant.inherit,
            set: grant.set,
        };
        let user = self.host.current_user();
        for role in &grant.roles {
            self.may_change_members(user, *role, !grant.revoke)?;
            let grantor = self.membership_grantor(user, *role, grant.grantor, !grant.revoke)?;
            match grant.revoke {
                false => self.add_members(*role, &grant.members, grantor, options)?,
                true => {
                    for member in &grant.members {
                        self.revoke_member(*role, *member, grantor, options, grant.cascade)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// CREATE ROLE's IN ROLE, ROLE and ADMIN; a role that is no superuser may grant what it makes.
    pub(super) fn join_new_role(&mut self, role: Oid, options: &RoleOptions) -> Result<()> {
        let user = self.host.current_user();
        for group in &options.in_roles {
            self.may_change_members(user, *group, true)?;
            let grantor = self.membership_grantor(user, *group, None, true)?;
            self.add_members(*group, &[role], grantor, Options::default())?;
        }
        if !self.catalog().is_superuser(user) {
            let own = Options {
                admin: Some(true),
                inherit: Some(false),
                set: Some(false),
            };
            self.add_members(role, &[user], builtin::SUPERUSER, own)?;
        }
        let grantor = match self.catalog().is_superuser(user) {
            true => builtin::SUPERUSER,
            false => user,
        };
        let admin = Options {
            admin: Some(true),
            ..Options::default()
        };
        self.add_members(role, &options.admins, grantor, admin)?;
        self.add_members(role, &options.members, grantor, Options::default())
    }

    fn role_called(&self, role: Oid) -> String {
        let def = self.catalog().role(role);
        def.map_or_else(|| role.to_string(), |r| r.name.clone())
    }

    /// Who may say who is in a role: superusers of superusers, else those with the ADMIN option.
    fn may_change_members(&self, user: Oid, role: Oid, granting: bool) -> Result<()> {
        let catalog = self.catalog();
        let name = self.role_called(role);
        if granting && role == builtin::PG_DATABASE_OWNER {
            let message = format!("role \"{name}\" cannot have explicit members");
            return Err(Error::new(state::INVALID_GRANT_OPERATION, message));
        }
        let verb = if granting { "grant" } else { "revoke" };
        let message = format!("permission denied to {verb} role \"{name}\"");
        if catalog.is_superuser(role) && !catalog.is_superuser(user) {
            let detail = format!(
                "Only roles with the SUPERUSER attribute may {verb} roles with the SUPERUSER attribute."
            );
            return Err(denied(message, detail));
        }
        if !catalog.is_superuser(role) && !catalog.is_admin_of(user, role) {
            let detail = format!(
                "Only roles with the ADMIN option on role \"{name}\" may {verb} this role."
            );
            return Err(denied(message, detail));
        }
        Ok(())
    }

    /// As whom members are added or removed.
    fn membership_grantor(
        &self,
        user: Oid,
        role: Oid,
        given: Option<Oid>,
        granting: bool,
    ) -> Result<Oid> {
        let catalog = self.catalog();
        let Some(grantor) = given else {
            if catalog.is_superuser(user) {
                return Ok(builtin::SUPERUSER);
            }
            return catalog.best_admin(user, role).ok_or_else(|| {
                let message = format!(
                    "no possible grantors for role \"{}\"",
                    self.role_called(role)
                );
                Error::internal(message)
            });
        };
        let name = self.role_called(grantor);
        let acts = catalog.acts_as(user, grantor);
        if !granting {
            if acts {
                return Ok(grantor);
            }
            let message =
                format!("permission denied to revoke privileges granted by role \"{name}\"");
            let detail = format!(
                "Only roles with privileges of role \"{name}\" may revoke privileges granted by this role."
            );
            return Err(denied(message, detail));
        }
        let message = format!("permission denied to grant privileges as role \"{name}\"");
        if !acts {
            let detail = format!(
                "Only roles with privileges of role \"{name}\" may grant privileges as this role."
            );
            return Err(denied(message, detail));
        }
        if grantor != builtin::SUPERUSER && catalog.best_admin(grantor, role) != Some(grantor) {
            let detail = format!(
                "The grantor must have the ADMIN option on role \"{}\".",
                self.role_called(role)
            );
            return Err(denied(message, detail));
        }
        Ok(grantor)
    }

    fn add_members(
        &mut self,
        role: Oid,
        members: &[Oid],
        grantor: Oid,
        options: Options,
    ) -> Result<()> {
        for member in members {
            let names = (self.role_called(role), self.role_called(*member));
            let wrong = |message: String| Err(Error::new(state::INVALID_GRANT_OPERATION, message));
            if *member == builtin::PG_DATABASE_OWNER {
                let message = format!("role \"{}\" cannot be a member of any role", names.1);
                return wrong(message);
            }
            if self
                .catalog()
                .held_roles(role, Through::Any)
                .contains(member)
            {
                let (role, member) = names;
                return wrong(format!("role \"{role}\" is a member of role \"{member}\""));
            }
            if options.admin == Some(true) && self.admin_comes_from(role, *member, grantor) {
                return wrong("ADMIN option cannot be granted back to your own grantor".into());
            }
        }
        for member in members {
            self.add_member(role, *member, grantor, options)?;
        }
        Ok(())
    }

    fn add_member(&mut self, role: Oid, member: Oid, grantor: Oid, options: Options) -> Result<()> {
        let Some(old) = self.membership(role, member, grantor) else {
            let inherits = self.role(member)?.inherit;
            let oid = self.host.next_oid();
            self.edit.put(MembershipDef {
                oid,
                role,
                member,
                grantor,
                admin: options.admin.unwrap_or(false),
                inherit: options.inherit.unwrap_or(inherits),
                set: options.set.unwrap_or(true),
            });
            return Ok(());
        };
        let new = MembershipDef {
            admin: options.admin.unwrap_or(old.admin),
            inherit: options.inherit.unwrap_or(old.inherit),
            set: options.set.unwrap_or(old.set),
            ..old.clone()
        };
        if new == old {
            let message = format!(
                "role \"{}\" has already been granted membership in role \"{}\" by role \"{}\"",
                self.role_called(member),
                self.role_called(role),
                self.role_called(grantor)
            );
            self.notice(Error::new(state::SUCCESSFUL_COMPLETION, message));
            return Ok(());
        }
        self.edit.put(new);
        Ok(())
    }

    fn membership(&self, role: Oid, member: Oid, grantor: Oid) -> Option<MembershipDef> {
        let all = self.catalog().memberships_of(member).iter();
        let mut like = all.filter(|m| (m.role, m.grantor) == (role, grantor));
        like.next().map(|m| (**m).clone())
    }

    /// Whether the grantor could not grant the role if the member could not.
    fn admin_comes_from(&self, role: Oid, member: Oid, grantor: Oid) -> bool {
        if grantor == builtin::SUPERUSER {
            return false;
        }
        let grants = self.grants_of(role);
        let mut gone: Vec<Oid> = vec![member];
        let mut next = 0;
        while next < gone.len() {
            let lost = gone[next];
            next += 1;
            for grant in grants.iter().filter(|g| g.grantor == lost && g.admin) {
                let by_another = grants
                    .iter()
                    .any(|g| g.member == grant.member && g.admin && !gone.contains(&g.grantor));
                if !by_another && !gone.contains(&grant.member) {
                    gone.push(grant.member);
                }
            }
        }
        gone.contains(&grantor)
    }

    /// Every grant of a role.
    fn grants_of(&self, role: Oid) -> Vec<MembershipDef> {
        let all = self.catalog().memberships().into_iter();
        all.filter(|m| m.role == role)
            .map(|m| (**m).clone())
            .collect()
    }

    fn revoke_member(
        &mut self,
        role: Oid,
        member: Oid,
        grantor: Oid,
        options: Options,
        cascade: bool,
    ) -> Result<()> {
        let Some(old) = self.membership(role, member, grantor) else {
            let message = format!(
                "role \"{}\" has not been granted membership in role \"{}\" by role \"{}\"",
                self.role_called(member),
                self.role_called(role),
                self.role_called(grantor)
            );
            self.warning(Error::new(state::WARNING, message));
            return Ok(());
        };
        let one_option =
            options.admin.is_some() || options.inherit.is_some() || options.set.is_some();
        match one_option {
            false => self.edit.delete(old.oid),
            true => self.edit.put(MembershipDef {
                admin: old.admin && options.admin.is_none(),
                inherit: old.inherit && options.inherit.is_none(),
                set: old.set && options.set.is_none(),
                ..old.clone()
            }),
        }
        if old.admin && (!one_option || options.admin.is_some()) {
            self.revoke_granted_by(role, member, cascade)?;
        }
        Ok(())
    }

    /// What a role that cannot grant another any more granted of it.
    fn revoke_granted_by(&mut self, role: Oid, grantor: Oid, cascade: bool) -> Result<()> {
        let mut lost = vec![grantor];
        while let Some(grantor) = lost.pop() {
            let grants = self.grants_of(role);
            if grants.iter().any(|g| g.member == grantor && g.admin) {
                continue;
            }
            for grant in grants.iter().filter(|g| g.grantor == grantor) {
                if !cascade {
                    let message = "dependent privileges exist";
                    return Err(Error::new(state::DEPENDENT_OBJECTS_STILL_EXIST, message)
                        .hint("Use CASCADE to revoke them too."));
                }
                self.edit.delete(grant.oid);
                if grant.admin {
                    lost.push(grant.member);
                }
            }
        }
        Ok(())
    }

    /// A role is going: nobody is in it, and it is in none.
    pub(super) fn leave_memberships(&mut self, role: Oid) {
        let all = self.catalog().memberships().into_iter();
        let gone: Vec<Oid> = all
            .filter(|m| m.role == role || m.member == role)
            .map(|m| m.oid)
            .collect();
        gone.into_iter().for_each(|oid| self.edit.delete(oid));
    }
}
