//! What a data directory is brought to when a server starts on it: definitions of an earlier form
//! are made those of today, and databases that it should have are made.

use std::sync::Arc;

use throng_bind::command::{CreateDatabase, DatabaseChanges, Ddl};
use throng_catalog::builtin::{self, class};
use throng_catalog::{AclItem, CatalogEdit, CommentDef, MembershipDef, PrivilegesDef, RoleDef};
use throng_types::{Oid, Result};
use throng_values::acl::right;

use crate::engine::Engine;
use crate::session::Session;

/// What PostgreSQL says of the databases that are there from the start.
const DATABASES: [(Oid, &str); 3] = [
    (
        builtin::DATABASE,
        "default administrative connection database",
    ),
    (builtin::TEMPLATE1, "default template for new databases"),
    (builtin::TEMPLATE0, "unmodifiable empty database"),
];

/// A session for what is to be put in order before there are clients.
fn session(engine: &Arc<Engine>) -> Result<Session> {
    let first = engine.shared().current_database_name().to_owned();
    let mut session = Session::worker(engine.clone(), first)?;
    session.begin_if_idle();
    Ok(session)
}

fn keep(session: &Session, edit: CatalogEdit) -> Result<()> {
    let before = session.definitions().version();
    let (edited, changes) = edit.finish();
    session.keep_definitions(Arc::new(edited), changes, before)
}

/// Brings definitions to their form of today. To be called before there are sessions.
///
/// # Errors
/// What keeps a session from beginning, or definitions from being written.
pub async fn adopt(engine: &Arc<Engine>) -> Result<()> {
    adopt_memberships(engine).await?;
    make_templates(engine).await
}

/// Makes grants of the memberships that roles kept themselves.
async fn adopt_memberships(engine: &Arc<Engine>) -> Result<()> {
    let catalog = engine.shared();
    let kept = |role: &&&Arc<RoleDef>| !role.member_of.is_empty();
    let roles = catalog.roles();
    if !roles.iter().any(|role| kept(&role)) {
        return Ok(());
    }
    let mut session = session(engine)?;
    let mut edit = CatalogEdit::new(&session.definitions());
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
    keep(&session, edit)?;
    session.commit().await?;
    session.close().await;
    Ok(())
}

/// Makes the template databases, where a data directory never had any.
async fn make_templates(engine: &Arc<Engine>) -> Result<()> {
    let catalog = engine.shared();
    let templates = [
        (builtin::TEMPLATE1, "template1", true),
        (builtin::TEMPLATE0, "template0", false),
    ];
    let comment = |oid: Oid| catalog.comment(class::DATABASE, oid, 0);
    // A superuser may have dropped one; what was said of the first database tells that they were
    // made.
    if comment(builtin::DATABASE).is_some() || catalog.databases().len() > 1 {
        return Ok(());
    }
    let mut session = session(engine)?;
    for (oid, name, allow_connections) in templates {
        let create = CreateDatabase {
            oid: Some(oid),
            name: name.to_owned(),
            owner: builtin::SUPERUSER,
            template: Oid::NONE,
            changes: DatabaseChanges {
                is_template: Some(true),
                allow_connections: Some(allow_connections),
                connection_limit: None,
            },
        };
        session
            .define(&Ddl::CreateDatabase(Box::new(create)))
            .await?;
    }
    let mut edit = CatalogEdit::new(&session.definitions());
    for (oid, text) in DATABASES {
        edit.put(CommentDef {
            oid: engine.sys.new_oid(),
            class: class::DATABASE,
            object: oid,
            column: 0,
            text: text.to_owned(),
        });
    }
    for (oid, ..) in templates {
        edit.put(only_to_connect(engine.sys.new_oid(), oid));
    }
    keep(&session, edit)?;
    session.commit().await?;
    session.close().await;
    Ok(())
}

/// Everybody may look at a template, and only its owner may make something in it.
fn only_to_connect(oid: Oid, database: Oid) -> PrivilegesDef {
    let granted = |grantee, rights| AclItem {
        grantee,
        grantor: builtin::SUPERUSER,
        rights,
    };
    PrivilegesDef {
        oid,
        class: class::DATABASE,
        object: database,
        column: 0,
        items: vec![
            granted(Oid::NONE, right::CONNECT),
            granted(builtin::SUPERUSER, right::DATABASE),
        ],
    }
}
