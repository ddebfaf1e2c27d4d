//! What definitions of an earlier form become when a server starts on them.

use std::sync::Arc;

use throng_sql::catalog::{CatalogEdit, MembershipDef, RoleDef, builtin};
use throng_types::Result;

use super::Session;
use crate::engine::Engine;

/// Makes grants of the memberships that roles kept themselves. To be called before there are sessions.
///
/// # Errors
/// What keeps a session from beginning, or definitions from being written.
pub async fn adopt_memberships(engine: &Arc<Engine>) -> Result<()> {
    let catalog = engine.catalog();
    let kept = |role: &&&Arc<RoleDef>| !role.member_of.is_empty();
    let roles = catalog.roles();
    if !roles.iter().any(|role| kept(&role)) {
        return Ok(());
    }
    let mut session = Session::of_superuser(engine)?;
    session.begin_if_idle();
    let mut edit = CatalogEdit::new(&catalog);
    for role in roles.iter().filter(kept) {
        for of in role.member_of.iter().copied() {
            if catalog.role(of).is_none() {
                continue;
            }
            edit.put(MembershipDef {
                oid: engine.sys.new_oid(),
                role: of,
                member: role.oid,
                grantor: builtin::SUPERUSER,
                admin: false,
                inherit: role.inherit,
                set: true,
            });
        }
        edit.put(RoleDef {
            member_of: Vec::new(),
            ..(***role).clone()
        });
    }
    let (edited, changes) = edit.finish();
    let transaction = session.transaction_mut()?;
    transaction.changes.borrow_mut().extend(changes);
    *transaction.catalog.borrow_mut() = Some(Arc::new(edited));
    session.commit().await?;
    session.close().await;
    Ok(())
}
