//! What definitions are called.

use super::{Ddl, Target, TargetKind};
use throng_syntax::vocabulary::SettingsOf;

impl Ddl {
    /// What it is called, where it cannot be part of a transaction.
    pub fn alone(&self) -> Option<&'static str> {
        match self {
            Ddl::CreateDatabase(_) => Some("CREATE DATABASE"),
            Ddl::DropDatabase { .. } => Some("DROP DATABASE"),
            _ => self.concurrently(),
        }
    }

    /// What it is called, where it lets others use a table until it is its turn.
    pub fn concurrently(&self) -> Option<&'static str> {
        match self {
            Ddl::CreateIndex(create) if create.concurrently => Some("CREATE INDEX CONCURRENTLY"),
            Ddl::DropIndexConcurrently(_) => Some("DROP INDEX CONCURRENTLY"),
            Ddl::Reindex {
                concurrently: true, ..
            } => Some("REINDEX CONCURRENTLY"),
            _ => None,
        }
    }

    /// The command, as errors call it.
    pub fn command(&self) -> String {
        match self {
            Ddl::CreateTable(create)
                if create.materialized.is_none() && create.source.is_some() =>
            {
                "CREATE TABLE AS".into()
            }
            _ => self.tag(),
        }
    }

    /// What CommandComplete says.
    pub fn tag(&self) -> String {
        let of = |verb: &str, target: &Target| format!("{verb} {}", target.kind.keyword());
        match self {
            Ddl::CreateSchema { .. } => "CREATE SCHEMA".into(),
            Ddl::CreateTable(create) if create.materialized.is_some() => {
                "CREATE MATERIALIZED VIEW".into()
            }
            Ddl::RefreshMaterialized { .. } => "REFRESH MATERIALIZED VIEW".into(),
            Ddl::CreateTable(create) => match &create.source {
                Some(source) if source.with_data => "SELECT".into(),
                Some(_) => "CREATE TABLE AS".into(),
                None => "CREATE TABLE".into(),
            },
            Ddl::AttachPartition { .. } | Ddl::DetachPartition { .. } => "ALTER TABLE".into(),
            Ddl::AlterTable { said, .. }
            | Ddl::AlterIndex { said, .. }
            | Ddl::AlterView { said, .. } => format!("ALTER {}", said.keyword()),
            Ddl::AttachIndex { .. } => "ALTER INDEX".into(),
            Ddl::CreateIndex(_) => "CREATE INDEX".into(),
            Ddl::CreateView(_) => "CREATE VIEW".into(),
            Ddl::CreateSequence { .. } => "CREATE SEQUENCE".into(),
            Ddl::AlterSequence { .. } => "ALTER SEQUENCE".into(),
            Ddl::Rename { target, said, .. }
            | Ddl::SetSchema { target, said, .. }
            | Ddl::SetOwner { target, said, .. } => match (said, target.kind) {
                (Some(said), _) => format!("ALTER {}", said.keyword()),
                (None, TargetKind::Column(_) | TargetKind::Constraint) => "ALTER TABLE".into(),
                (None, TargetKind::ViewColumn(_)) => "ALTER VIEW".into(),
                (None, _) => of("ALTER", target),
            },
            Ddl::Drop { targets, .. } => targets
                .first()
                .map_or("DROP TABLE".into(), |t| of("DROP", t)),
            Ddl::DropIndexConcurrently(_) => "DROP INDEX".into(),
            Ddl::Reindex { .. } => "REINDEX".into(),
            Ddl::Truncate { .. } => "TRUNCATE TABLE".into(),
            Ddl::Repack { order: Some(_), .. } => "CLUSTER".into(),
            Ddl::Repack { order: None, .. } => "VACUUM".into(),
            Ddl::CreateDatabase(_) => "CREATE DATABASE".into(),
            Ddl::AlterDatabase { .. } => "ALTER DATABASE".into(),
            Ddl::DropDatabase { .. } => "DROP DATABASE".into(),
            Ddl::CreateRole { .. } => "CREATE ROLE".into(),
            Ddl::AlterRoleSet {
                role: SettingsOf::Database,
                ..
            } => "ALTER DATABASE".into(),
            Ddl::AlterRole { .. } | Ddl::AlterRoleSet { .. } => "ALTER ROLE".into(),
            Ddl::DropRole { .. } => "DROP ROLE".into(),
            Ddl::GrantRole(grant) if grant.revoke => "REVOKE ROLE".into(),
            Ddl::GrantRole(_) => "GRANT ROLE".into(),
            Ddl::Grant(grant) if grant.revoke => "REVOKE".into(),
            Ddl::Grant(_) => "GRANT".into(),
            Ddl::AlterDefaultPrivileges(_) => "ALTER DEFAULT PRIVILEGES".into(),
            Ddl::ReassignOwned { .. } => "REASSIGN OWNED".into(),
            Ddl::DropOwned { .. } => "DROP OWNED".into(),
            Ddl::CreateEnum { .. } | Ddl::CreateRange { .. } => "CREATE TYPE".into(),
            Ddl::AlterEnum { .. } => "ALTER TYPE".into(),
            Ddl::CreateRoutine { def, .. } => format!("CREATE {}", def.word()),
            Ddl::CreateOperator(create) => create.tag().into(),
            Ddl::CreateCast(_) => "CREATE CAST".into(),
            Ddl::AlterRoutine { target, .. } => of("ALTER", target),
            Ddl::CreateTrigger { .. } => "CREATE TRIGGER".into(),
            Ddl::Policy(policy) => match policy.old {
                None => "CREATE POLICY".into(),
                Some(_) => "ALTER POLICY".into(),
            },
            Ddl::CreateDomain(_) => "CREATE DOMAIN".into(),
            Ddl::AlterDomain(_) => "ALTER DOMAIN".into(),
            Ddl::CreateComposite(_) => "CREATE TYPE".into(),
            Ddl::AlterComposite(_) => "ALTER TYPE".into(),
            Ddl::Comment { .. } => "COMMENT".into(),
            Ddl::Extension(ddl) => ddl.tag().into(),
            Ddl::Nothing { tag } => (*tag).into(),
        }
    }
}
