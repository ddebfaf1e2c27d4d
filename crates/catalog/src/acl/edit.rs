//! Granting and revoking on a list of grants.
//!
//! A grant option that goes takes along, with CASCADE, what was granted by it: a list of things to
//! take is worked off, so that a long chain of grants is no deep recursion.

use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use super::{AclItem, Catalog};
use throng_values::acl::right;

/// What a REVOKE does about grants that others made by what is revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revoke {
    Cascade,
    Restrict,
}

/// A change of what one role granted another.
#[derive(Clone, Copy, Debug)]
pub enum Update {
    /// Adds rights and grant options.
    Grant(AclItem),
    /// Takes them away.
    Revoke(AclItem, Revoke),
}

/// As whom a role grants or revokes rights, and the grant options that one has of them: the owner
/// where the role may act as it, else the role that has most of them.
pub fn best_grantor(
    catalog: &Catalog,
    role: Oid,
    rights: u32,
    items: &[AclItem],
    owner: Oid,
) -> (Oid, u32) {
    let needed = right::options(rights);
    if role == owner || catalog.is_superuser(role) {
        return (owner, needed);
    }
    let mut best = (role, 0u32);
    for held in catalog.held_roles(role, crate::Through::Inherit) {
        let own = items.iter().filter(|i| i.grantee == held);
        let mut options = own.fold(0, |sum, i| sum | i.rights & needed);
        if held == owner {
            options = needed;
        }
        if options == needed {
            return (held, options);
        }
        if options.count_ones() > best.1.count_ones() {
            best = (held, options);
        }
    }
    best
}

/// The list after a change. 2BP01 where rights depend on what RESTRICT would revoke, 0LP01 for a
/// grant option given back to whom it comes from.
pub fn updated(
    catalog: &Catalog,
    items: &[AclItem],
    update: Update,
    owner: Oid,
) -> Result<Vec<AclItem>> {
    let mut items = items.to_vec();
    match update {
        Update::Grant(item) => {
            if right::of_options(item.rights) != 0 {
                check_circularity(catalog, &items, &item, owner)?;
            }
            match entry(&mut items, &item) {
                Some(found) => found.rights |= item.rights,
                None => items.push(item),
            }
            items.retain(|i| i.rights != 0);
        }
        Update::Revoke(item, behavior) => revoke(catalog, &mut items, item, owner, behavior)?,
    }
    Ok(items)
}

fn entry<'a>(items: &'a mut [AclItem], like: &AclItem) -> Option<&'a mut AclItem> {
    let mut all = items.iter_mut();
    all.find(|i| (i.grantee, i.grantor) == (like.grantee, like.grantor))
}

fn revoke(
    catalog: &Catalog,
    items: &mut Vec<AclItem>,
    first: AclItem,
    owner: Oid,
    behavior: Revoke,
) -> Result<()> {
    let mut queue = vec![first];
    while let Some(taken) = queue.pop() {
        let Some(found) = entry(items, &taken) else {
            continue;
        };
        let lost = found.rights & taken.rights & right::options(right::ALL);
        found.rights &= !taken.rights;
        items.retain(|i| i.rights != 0);
        if lost == 0 || taken.grantee == owner {
            continue;
        }
        // It may have the option from another as well.
        let lost = lost & !catalog.granted(taken.grantee, items, owner, lost);
        let lost = right::of_options(lost);
        for dependent in items.iter() {
            if dependent.grantor != taken.grantee || dependent.rights & lost == 0 {
                continue;
            }
            if behavior == Revoke::Restrict {
                let message = "dependent privileges exist";
                return Err(Error::new(state::DEPENDENT_OBJECTS_STILL_EXIST, message)
                    .hint("Use CASCADE to revoke them too."));
            }
            queue.push(AclItem {
                rights: lost | right::options(lost),
                ..*dependent
            });
        }
    }
    Ok(())
}

/// A grant option must not come from whom it is given to.
fn check_circularity(
    catalog: &Catalog,
    items: &[AclItem],
    new: &AclItem,
    owner: Oid,
) -> Result<()> {
    if new.grantor == owner {
        return Ok(());
    }
    let mut without = items.to_vec();
    let of_grantee = |i: &&AclItem| i.grantee == new.grantee && right::of_options(i.rights) != 0;
    while let Some(item) = without.iter().find(of_grantee).copied() {
        revoke(catalog, &mut without, item, owner, Revoke::Cascade)?;
    }
    let needed = new.rights & right::options(right::ALL);
    match catalog.granted(new.grantor, &without, owner, needed) == needed {
        true => Ok(()),
        false => {
            let message = "grant options cannot be granted back to your own grantor";
            Err(Error::new(state::INVALID_GRANT_OPERATION, message))
        }
    }
}

/// Both lists' grants.
pub fn merged(a: &[AclItem], b: &[AclItem]) -> Vec<AclItem> {
    let mut all = a.to_vec();
    for item in b {
        match entry(&mut all, item) {
            Some(found) => found.rights |= item.rights,
            None => all.push(*item),
        }
    }
    all
}

/// Whether two lists say the same, in whatever order.
pub fn same(a: &[AclItem], b: &[AclItem]) -> bool {
    a.len() == b.len() && a.iter().all(|item| b.contains(item))
}

/// The list after the object got another owner: what the old one had and gave is the new one's.
pub fn changed_owner(items: &[AclItem], old: Oid, new: Oid) -> Vec<AclItem> {
    let other = |role: Oid| if role == old { new } else { role };
    let moved: Vec<AclItem> = items
        .iter()
        .map(|i| AclItem {
            grantee: other(i.grantee),
            grantor: other(i.grantor),
            rights: i.rights,
        })
        .collect();
    merged(&[], &moved)
}
