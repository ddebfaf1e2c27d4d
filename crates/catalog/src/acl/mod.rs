//! Who may do what: rights on objects as lists of grants.
//!
//! A right is a bit; its grant option is the same bit 16 higher. Where nothing was ever granted or
//! revoked no list is kept and what the object was born with holds ([`defaults`]). The owner
//! may always grant everything, superusers may do everything.
//!
//! ```text
//! {alice=arwdDxtm/alice,bob=r*/alice,=r/bob}     grantee = rights, * with grant option / grantor
//! ```

mod edit;

pub use edit::{Revoke, Update, best_grantor, changed_owner, merged, same, updated};

use throng_types::{Datum, Oid};
use throng_values::acl::{Kind, NamedItem, right};

use super::{AclItem, Catalog, DefaultPrivilegesDef, PrivilegesDef, Relation, RoutineDef, builtin};

/// The grants that a thing of this owner is born with.
pub fn defaults(kind: Kind, owner: Oid) -> Vec<AclItem> {
    let (public, own) = kind.defaults();
    let item = |grantee: Oid, rights: u32| AclItem {
        grantee,
        grantor: owner,
        rights,
    };
    let items = [item(Oid::NONE, public), item(owner, own)];
    items.into_iter().filter(|i| i.rights != 0).collect()
}

/// A grant as it is written, roles by their names.
pub fn item_text(catalog: &Catalog, item: &AclItem) -> String {
    let name = |role: Oid| match catalog.role(role) {
        _ if role == Oid::NONE => String::new(),
        Some(def) => def.name.clone(),
        None => role.to_string(),
    };
    let named = NamedItem {
        grantee: name(item.grantee),
        rights: item.rights,
        grantor: Some(name(item.grantor)),
    };
    named.text()
}

impl Relation {
    /// The kind of thing that rights on it are on.
    pub fn acl_kind(&self) -> Kind {
        match self {
            Relation::Sequence(_) => Kind::Sequence,
            _ => Kind::Relation,
        }
    }

    /// What messages about rights call it.
    pub fn privilege_name(&self) -> &'static str {
        match self {
            Relation::Virtual(table) if table.relkind() != b'v' => "table",
            _ => self.word(),
        }
    }
}

/// System relations that are not for everybody to read.
const CONFIDENTIAL: [&str; 8] = [
    "pg_authid",
    "pg_shadow",
    "pg_statistic",
    "pg_largeobject",
    "pg_user_mapping",
    "pg_hba_file_rules",
    "pg_file_settings",
    "pg_subscription",
];

impl Catalog {
    /// What was granted on an object or (`column` not 0) on a column; None: what it was born with
    /// holds.
    pub fn stored_acl(&self, class: Oid, object: Oid, column: u16) -> Option<&PrivilegesDef> {
        let of_object = self.privileges.get(&(class, object))?;
        of_object.get(&column).map(|def| &**def)
    }

    /// Whether anything was ever granted on any object.
    pub fn has_grants(&self) -> bool {
        !self.privileges.is_empty()
    }

    /// Everything granted on an object and its columns, by column.
    pub fn stored_acls(
        &self,
        class: Oid,
        object: Oid,
    ) -> impl Iterator<Item = (u16, &PrivilegesDef)> {
        let of_object = self.privileges.get(&(class, object)).into_iter();
        of_object.flat_map(|columns| columns.iter().map(|(column, def)| (*column, &**def)))
    }

    /// The grants on a relation.
    pub fn relation_acl(&self, relation: &Relation) -> Vec<AclItem> {
        match self.stored_acl(builtin::class::RELATION, relation.oid(), 0) {
            Some(def) => def.items.clone(),
            None => self.relation_acl_born(relation),
        }
    }

    /// The grants that a relation is born with.
    pub fn relation_acl_born(&self, relation: &Relation) -> Vec<AclItem> {
        let mut items = defaults(relation.acl_kind(), relation.owner(self));
        if let Relation::Virtual(table) = relation
            && !CONFIDENTIAL.contains(&table.name)
        {
            items.push(AclItem {
                grantee: Oid::NONE,
                grantor: builtin::SUPERUSER,
                rights: right::SELECT,
            });
        }
        items
    }

    /// Whether a schema lets everybody look into it from the start.
    fn is_open_schema(schema: Oid) -> bool {
        [
            builtin::PG_CATALOG,
            builtin::INFORMATION_SCHEMA,
            builtin::PUBLIC,
            builtin::THRONG,
        ]
        .contains(&schema)
    }

    pub fn schema_acl(&self, schema: Oid) -> Vec<AclItem> {
        if let Some(def) = self.stored_acl(builtin::class::NAMESPACE, schema, 0) {
            return def.items.clone();
        }
        self.schema_acl_born(schema)
    }

    /// The grants that a schema is born with.
    pub fn schema_acl_born(&self, schema: Oid) -> Vec<AclItem> {
        let owner = self.schema(schema).map_or(Oid::NONE, |s| s.owner);
        let mut items = defaults(Kind::Schema, owner);
        if Catalog::is_open_schema(schema) {
            items.push(AclItem {
                grantee: Oid::NONE,
                grantor: owner,
                rights: right::USAGE,
            });
        }
        items
    }

    pub fn database_acl(&self, database: Oid) -> Vec<AclItem> {
        match self.stored_acl(builtin::class::DATABASE, database, 0) {
            Some(def) => def.items.clone(),
            None => {
                let owner = self.database(database).map_or(Oid::NONE, |d| d.owner);
                defaults(Kind::Database, owner)
            }
        }
    }

    /// The grants on a type that a user made.
    pub fn type_acl(&self, ty: Oid, owner: Oid) -> Vec<AclItem> {
        match self.stored_acl(builtin::class::TYPE, ty, 0) {
            Some(def) => def.items.clone(),
            None => defaults(Kind::Type, owner),
        }
    }

    /// Which of the rights and grant options in `wanted` a role has by these grants on something
    /// that `owner` owns.
    pub fn granted(&self, role: Oid, items: &[AclItem], owner: Oid, wanted: u32) -> u32 {
        let mut held = 0;
        let options = wanted & right::options(right::ALL);
        if options != 0 && self.acts_as(role, owner) {
            held |= options;
        }
        let mut open: Vec<&AclItem> = Vec::new();
        for item in items.iter().filter(|i| i.rights & wanted != 0) {
            match item.grantee == Oid::NONE || item.grantee == role {
                true => held |= item.rights & wanted,
                false => open.push(item),
            }
        }
        if held != wanted && !open.is_empty() {
            let roles = self.held_roles(role, super::Through::Inherit);
            for item in open {
                if roles.contains(&item.grantee) {
                    held |= item.rights & wanted;
                }
            }
        }
        held
    }

    /// Which of `wanted` a role has on a relation as a whole.
    pub fn relation_rights(&self, role: Oid, relation: &Relation, wanted: u32) -> u32 {
        if self.is_superuser(role) {
            return wanted;
        }
        let owner = relation.owner(self);
        let stored = self.stored_acl(builtin::class::RELATION, relation.oid(), 0);
        if stored.is_none() && owner == role && !matches!(relation, Relation::Virtual(_)) {
            let all = relation.acl_kind().all();
            return wanted & (all | right::options(all));
        }
        let mut held = self.granted(role, &self.relation_acl(relation), owner, wanted);
        let writes = right::INSERT | right::UPDATE | right::DELETE;
        if matches!(relation, Relation::Virtual(_)) {
            held &= !(writes | right::TRUNCATE | right::USAGE);
        }
        for (predefined, rights) in [
            (builtin::PG_READ_ALL_DATA, right::SELECT),
            (builtin::PG_WRITE_ALL_DATA, writes),
            (builtin::PG_MAINTAIN, right::MAINTAIN),
        ] {
            let missing = wanted & rights & !held;
            if missing != 0 && self.acts_as(role, predefined) {
                held |= missing;
            }
        }
        held
    }

    /// Whether a role has any right on a relation or on a column of it.
    pub fn any_right(&self, role: Oid, relation: &Relation) -> bool {
        let all = relation.acl_kind().all();
        let owner = relation.owner(self);
        self.acts_as(role, owner)
            || self.relation_rights(role, relation, all) != 0
            || self
                .stored_acls(builtin::class::RELATION, relation.oid())
                .any(|(column, def)| {
                    column != 0 && self.granted(role, &def.items, owner, right::COLUMN) != 0
                })
    }

    /// Which of `wanted` a role has on a column by grants on the column alone.
    pub fn column_rights(&self, role: Oid, relation: &Relation, column: u16, wanted: u32) -> u32 {
        if self.is_superuser(role) {
            return wanted;
        }
        let stored = self.stored_acl(builtin::class::RELATION, relation.oid(), column);
        let items = stored.map_or(&[][..], |def| &def.items);
        self.granted(role, items, relation.owner(self), wanted)
    }

    pub fn schema_rights(&self, role: Oid, schema: Oid, wanted: u32) -> u32 {
        if self.is_superuser(role) {
            return wanted;
        }
        let owner = self.schema(schema).map_or(Oid::NONE, |s| s.owner);
        let mut held = self.granted(role, &self.schema_acl(schema), owner, wanted);
        let reads_all = [builtin::PG_READ_ALL_DATA, builtin::PG_WRITE_ALL_DATA];
        if wanted & right::USAGE & !held != 0
            && reads_all.into_iter().any(|r| self.acts_as(role, r))
        {
            held |= right::USAGE;
        }
        held
    }

    /// Whether a role may see what is in a schema.
    pub fn may_look_into(&self, role: Oid, schema: Oid) -> bool {
        let never_changed = || {
            self.stored_acl(builtin::class::NAMESPACE, schema, 0)
                .is_none()
                && Catalog::is_open_schema(schema)
        };
        never_changed() || self.schema_rights(role, schema, right::USAGE) != 0
    }

    /// Rights on the database whose definitions these are.
    pub fn database_rights(&self, role: Oid, wanted: u32) -> u32 {
        self.rights_on_database(role, self.current_database_oid(), wanted)
    }

    pub fn rights_on_database(&self, role: Oid, database: Oid, wanted: u32) -> u32 {
        if self.is_superuser(role) {
            return wanted;
        }
        let owner = self.database(database).map_or(Oid::NONE, |d| d.owner);
        self.granted(role, &self.database_acl(database), owner, wanted)
    }

    pub fn type_rights(&self, role: Oid, ty: Oid, owner: Oid, wanted: u32) -> u32 {
        match self.is_superuser(role) {
            true => wanted,
            false => self.granted(role, &self.type_acl(ty, owner), owner, wanted),
        }
    }

    /// The grants on a function that a user made.
    pub fn routine_acl(&self, routine: &RoutineDef) -> Vec<AclItem> {
        match self.stored_acl(builtin::class::PROCEDURE, routine.oid, 0) {
            Some(def) => def.items.clone(),
            None => defaults(Kind::Function, routine.owner),
        }
    }

    pub fn routine_rights(&self, role: Oid, routine: &RoutineDef, wanted: u32) -> u32 {
        match self.is_superuser(role) {
            true => wanted,
            false => self.granted(role, &self.routine_acl(routine), routine.owner, wanted),
        }
    }

    /// What ALTER DEFAULT PRIVILEGES said, for a role's objects of a kind in a schema (NONE: in
    /// every schema).
    pub fn default_acl(&self, role: Oid, schema: Oid, kind: u8) -> Option<&DefaultPrivilegesDef> {
        let mut all = self.default_acls.iter().map(|def| &**def);
        all.find(|d| (d.role, d.schema, d.kind) == (role, schema, kind))
    }

    /// The grants a new object of a role's gets; None where they are those it would have anyway.
    pub fn new_object_acl(&self, owner: Oid, schema: Oid, kind: Kind) -> Option<Vec<AclItem>> {
        if self.default_acls.is_empty() {
            return None;
        }
        let letter = match kind {
            Kind::Relation => b'r',
            Kind::Sequence => b'S',
            Kind::Function => b'f',
            Kind::Type => b'T',
            Kind::Schema => b'n',
            Kind::Column | Kind::Database | Kind::Language => return None,
        };
        let global = self.default_acl(owner, Oid::NONE, letter);
        let local = self
            .default_acl(owner, schema, letter)
            .filter(|_| schema != Oid::NONE);
        let born = defaults(kind, owner);
        let base = global.map_or_else(|| born.clone(), |def| def.items.clone());
        let items = match local {
            None => base,
            Some(local) => edit::merged(&base, &local.items),
        };
        (!edit::same(&items, &born)).then_some(items)
    }
}

/// Grants as an array of `aclitem`; NULL for None.
pub fn datum(catalog: &Catalog, items: Option<&[AclItem]>) -> Datum {
    let Some(items) = items else {
        return Datum::Null;
    };
    let items = items.iter().map(|i| item_text(catalog, i).into()).collect();
    Datum::array(throng_types::Array::from_items(
        throng_types::oid::ACLITEM,
        items,
    ))
}

#[cfg(test)]
mod tests;
