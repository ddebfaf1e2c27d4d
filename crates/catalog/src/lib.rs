//! The catalog: every object there is, as one immutable value.
//!
//! A [`Catalog`] is a snapshot with a version. No two catalogs of a process that differ ever have
//! the same version, be it that of a change that was rolled back: what was made for a version holds
//! for that catalog alone. Maps are persistent: a copy shares all that an edit does not touch, so
//! that a change costs in proportion to itself. A transaction that changes definitions works on its
//! own copy ([`CatalogEdit`]), which yields the list of object rows to store; commit publishes it.
//! Definitions of built-in things (`pg_catalog`'s relations, types, functions) are not objects:
//! they are constants, see [`system`].
//!
//! Promises: a catalog never changes; nothing here binds an expression or waits.
//!
//! Imported by: `session`, `exec`, `plan`, `bind`.

pub mod acl;
mod def;
mod edit;
mod lookup;
mod membership;
mod mentions;
pub mod object_name;
pub mod partition;
pub mod system;
mod type_name;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::FixedState;
use throng_types::Oid;
use throng_types::sqltype::made;

pub use def::trigger::fires;
pub use def::{
    AclItem, AggregateDef, AggregateKind, ArgDef, ArgMode, CastDef, CheckOption, ColumnDef,
    ColumnStats, CommentDef, Compression, ConstraintDef, ConstraintKind, DatabaseDef,
    DefaultPrivilegesDef, Deferral, DeferralSaid, Domain, DomainCheck, DomainNotNull, Enabled,
    EnumLabel, ExtensionDef, FamilyStats, FkAction, ForeignKey, Generated, Identity, IndexColumn,
    IndexDef, IndexExpr, IndexMethod, IndexTerms, KeyWords, Lineage, Materialized, MembershipDef,
    Object, ObjectKind, OnCommit, OperatorDef, Persistence, PolicyCommand, PolicyCondition,
    PolicyDef, PrivilegesDef, RangeDef, ReplicaIdentity, RoleDef, RoleSettings, RoutineBody,
    RoutineDef, RoutineKind, RowSecurityState, SchemaDef, SequenceDef, StatsDef, Storage, TableDef,
    TransitionDef, TriggerCondition, TriggerConstraint, TriggerDef, TypeDef, ViewColumn, ViewDef,
    ViewDefault, ViewUse, index_column_names, uses_of,
};
pub use edit::{CatalogEdit, Change};
pub use lookup::{Relation, RelationRef, TEMPORARY, TEMPORARY_PREFIX};
pub use membership::Through;
pub use system::{Key, Left, SystemState, VirtualTable};
pub use type_name::written_type;

/// Oids PostgreSQL gives to what it is born with.
pub mod builtin {
    use throng_types::{FileId, Oid};

    pub const PG_CATALOG: Oid = Oid(11);
    pub const PG_TOAST: Oid = Oid(99);
    pub const PUBLIC: Oid = Oid(2200);
    pub const INFORMATION_SCHEMA: Oid = Oid(13206);
    /// Where relations are that PostgreSQL has not.
    pub const THRONG: Oid = Oid(15900);
    /// The schemas with virtual relations.
    pub const RELATION_SCHEMAS: [Oid; 3] = [PG_CATALOG, INFORMATION_SCHEMA, THRONG];
    /// The schemas that are not to be changed.
    pub const SYSTEM_SCHEMAS: [Oid; 4] = [PG_CATALOG, INFORMATION_SCHEMA, PG_TOAST, THRONG];
    /// The role `postgres`.
    pub const SUPERUSER: Oid = throng_values::acl::BOOTSTRAP_SUPERUSER;
    /// The roles that are there from the start, whose rights are not grants but what they are;
    /// `pg_monitor` is in the three after it.
    pub const PREDEFINED_ROLES: [(Oid, &str); 16] = [
        (PG_DATABASE_OWNER, "pg_database_owner"),
        (PG_READ_ALL_DATA, "pg_read_all_data"),
        (PG_WRITE_ALL_DATA, "pg_write_all_data"),
        (PG_MONITOR, "pg_monitor"),
        (PG_READ_ALL_SETTINGS, "pg_read_all_settings"),
        (PG_READ_ALL_STATS, "pg_read_all_stats"),
        (PG_STAT_SCAN_TABLES, "pg_stat_scan_tables"),
        (PG_READ_SERVER_FILES, "pg_read_server_files"),
        (PG_WRITE_SERVER_FILES, "pg_write_server_files"),
        (Oid(4571), "pg_execute_server_program"),
        (PG_SIGNAL_BACKEND, "pg_signal_backend"),
        (PG_CHECKPOINT, "pg_checkpoint"),
        (PG_MAINTAIN, "pg_maintain"),
        (PG_USE_RESERVED_CONNECTIONS, "pg_use_reserved_connections"),
        (Oid(6304), "pg_create_subscription"),
        (Oid(6392), "pg_signal_autovacuum_worker"),
    ];
    /// Whether a role is there from the start and cannot go.
    pub fn is_system_role(role: Oid) -> bool {
        role == SUPERUSER || PREDEFINED_ROLES.iter().any(|(oid, _)| *oid == role)
    }
    /// The owner of the database is in it, and nobody else.
    pub const PG_DATABASE_OWNER: Oid = Oid(6171);
    pub const PG_READ_ALL_DATA: Oid = Oid(6181);
    pub const PG_WRITE_ALL_DATA: Oid = Oid(6182);
    pub const PG_MONITOR: Oid = Oid(3373);
    pub const PG_READ_ALL_SETTINGS: Oid = Oid(3374);
    pub const PG_READ_ALL_STATS: Oid = Oid(3375);
    pub const PG_STAT_SCAN_TABLES: Oid = Oid(3377);
    pub const PG_READ_SERVER_FILES: Oid = Oid(4569);
    pub const PG_WRITE_SERVER_FILES: Oid = Oid(4570);
    pub const PG_SIGNAL_BACKEND: Oid = Oid(4200);
    pub const PG_CHECKPOINT: Oid = Oid(4544);
    pub const PG_USE_RESERVED_CONNECTIONS: Oid = Oid(4550);
    pub const PG_MAINTAIN: Oid = Oid(6337);
    /// The database `postgres`.
    pub const DATABASE: Oid = Oid(5);
    pub const TEMPLATE1: Oid = Oid(1);
    pub const TEMPLATE0: Oid = Oid(4);
    /// The heap of the definitions of the database `postgres`, and of what all databases share. Far
    /// above any number that is given out.
    pub const DEFINITIONS: FileId = FileId(u32::MAX - 1);
    pub const DEFAULT_TABLESPACE: Oid = Oid(1663);
    pub const GLOBAL_TABLESPACE: Oid = Oid(1664);
    pub const HEAP_AM: Oid = Oid(2);
    pub const BTREE_AM: Oid = Oid(403);
    pub const HASH_AM: Oid = Oid(405);
    pub const GIST_AM: Oid = Oid(783);
    pub const GIN_AM: Oid = Oid(2742);
    pub const DEFAULT_COLLATION: Oid = Oid(100);
    pub const C_COLLATION: Oid = Oid(950);
    pub const POSIX_COLLATION: Oid = Oid(951);

    /// The catalogs that comments and dependencies name objects by.
    pub mod class {
        use throng_types::Oid;

        pub const RELATION: Oid = Oid(1259);
        pub const CONSTRAINT: Oid = Oid(2606);
        pub const NAMESPACE: Oid = Oid(2615);
        pub const ROLE: Oid = Oid(1260);
        pub const DATABASE: Oid = Oid(1262);
        pub const TYPE: Oid = Oid(1247);
        pub const ATTRDEF: Oid = Oid(2604);
        pub const REWRITE: Oid = Oid(2618);
        pub const PROCEDURE: Oid = Oid(1255);
        pub const AUTH_MEMBERS: Oid = Oid(1261);
        pub const DEFAULT_ACL: Oid = Oid(826);
        pub const TRIGGER: Oid = Oid(2620);
        pub const EXTENSION: Oid = Oid(3079);
        pub const LANGUAGE: Oid = Oid(2612);
        pub const OPERATOR: Oid = Oid(2617);
        pub const OPERATOR_CLASS: Oid = Oid(2616);
        pub const OPERATOR_FAMILY: Oid = Oid(2753);
        pub const CAST: Oid = Oid(2605);
        pub const ACCESS_METHOD: Oid = Oid(2601);
        pub const COLLATION: Oid = Oid(3456);
        pub const TABLESPACE: Oid = Oid(1213);
        pub const POLICY: Oid = Oid(3256);
        /// All that users make objects of.
        pub const ALL: [Oid; 17] = [
            RELATION,
            CONSTRAINT,
            NAMESPACE,
            ROLE,
            DATABASE,
            TYPE,
            ATTRDEF,
            REWRITE,
            PROCEDURE,
            AUTH_MEMBERS,
            DEFAULT_ACL,
            TRIGGER,
            POLICY,
            EXTENSION,
            LANGUAGE,
            OPERATOR,
            CAST,
        ];
    }
}

/// Of an object (0) and of its columns.
type ColumnPrivileges = BTreeMap<u16, Arc<PrivilegesDef>>;

/// The oids of what predefined roles are in. PostgreSQL gives these out at initdb, from 10000 on.
const FIRST_PREDEFINED_MEMBERSHIP: u32 = 10_233;
/// The system's schema of what PostgreSQL has not; by a name like this one tools know that it is no
/// user's.
const THRONG_SCHEMA: &str = "pg_throng";
/// How it is mostly called.
const THRONG_SHORT: &str = "throng";

/// A copy shares all that is not changed in it.
type Map<K, V> = imbl::GenericHashMap<K, V, FixedState, imbl::shared_ptr::DefaultSharedPtr>;

/// Oids in order, shared as maps are.
type Oids = imbl::GenericOrdSet<Oid, imbl::shared_ptr::DefaultSharedPtr>;

/// A version that no catalog of this process has had, from 1 on.
fn new_version() -> u64 {
    static GIVEN_OUT: AtomicU64 = AtomicU64::new(0);
    // Only that it is another number matters; whoever reads a catalog got it by other
    // synchronisation.
    GIVEN_OUT.fetch_add(1, Ordering::Relaxed) + 1
}

/// An immutable snapshot of all definitions of one database, and of what all databases share.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// Whose definitions they are.
    database: Oid,
    version: u64,
    objects: Map<Oid, Object>,
    /// The oids of each kind's, by [`ObjectKind::place`].
    kinds: [Oids; ObjectKind::COUNT],
    /// What is built in is not listed: see [`system`].
    without_built_in: bool,
    /// Tables, indexes and sequences share one name space per schema.
    relations: Map<(Oid, String), Oid>,
    types: Map<(Oid, String), Oid>,
    /// Array types, by their elements' types.
    array_names: Map<(Oid, String), Oid>,
    /// By age.
    routines: Map<(Oid, String), Vec<Oid>>,
    /// By age.
    operators: Map<(Oid, String), Vec<Oid>>,
    /// By the types that they are from and to.
    casts: Map<(Oid, Oid), Oid>,
    schemas: Arc<BTreeMap<String, Oid>>,
    roles: Arc<BTreeMap<String, Oid>>,
    databases: Arc<BTreeMap<String, Oid>>,
    links: Map<Oid, Arc<Links>>,
    comments: Map<(Oid, Oid, u16), Oid>,
    /// By class and object: of the object (0) and of its columns.
    privileges: Map<(Oid, Oid), Arc<ColumnPrivileges>>,
    /// By age.
    default_acls: Arc<Vec<Arc<DefaultPrivilegesDef>>>,
    /// By member.
    memberships: Map<Oid, Arc<Vec<Arc<MembershipDef>>>>,
    /// Constraints by name, in all schemas.
    constraint_names: Map<String, Arc<Vec<Oid>>>,
    mentions: mentions::Mentions,
    /// How many triggers there are.
    triggers: usize,
    /// Partitions that DETACH CONCURRENTLY has taken from their tables' children, and is not
    /// through with.
    detaching: Arc<Vec<Oid>>,
    /// The catalog that this one differs from by what it takes for tables' children: see
    /// [`Catalog::with_families`].
    base: Option<Arc<Catalog>>,
}

/// A table, and its children as they are to be taken.
pub type FamilyOf = (Oid, Vec<Oid>);

/// What belongs to or points at a table, another relation or a type.
#[derive(Clone, Debug, Default)]
struct Links {
    /// Primary key first, then by name, as PostgreSQL lists them.
    indexes: Vec<Arc<IndexDef>>,
    constraints: Vec<Arc<ConstraintDef>>,
    /// Foreign keys of other tables (and its own) that reference it.
    referenced_by: Vec<Arc<ConstraintDef>>,
    sequences: Vec<Oid>,
    /// Views that name it, by age.
    views: Vec<Oid>,
    /// Tables that inherit from it, partitions included, by age.
    children: Vec<Oid>,
    partitions: partition::bounds::Known,
    /// Functions, procedures, operators and casts that name it, by age.
    routines: Vec<Oid>,
    stats: Option<Arc<StatsDef>>,
    /// By name, the order in which they run.
    triggers: Vec<Arc<TriggerDef>>,
    /// By name.
    policies: Vec<Arc<PolicyDef>>,
    /// Tables with columns of the type, by age.
    typed: Vec<Oid>,
}

/// The types that users made of a table's columns, each once.
fn made_types_of(table: &TableDef) -> Vec<Oid> {
    let columns = table.live_columns().map(|(_, column)| column.shown_type());
    let mut types: Vec<Oid> = columns.filter(|ty| made::is_made(*ty)).collect();
    types.sort_unstable();
    types.dedup();
    types
}

/// Adds to a list by age what is not in it.
fn add_in_order(list: &mut Vec<Oid>, oid: Oid) {
    if let Err(at) = list.binary_search(&oid) {
        list.insert(at, oid);
    }
}

/// Takes an object out of those of its name.
fn forget_named(all: &mut Map<(Oid, String), Vec<Oid>>, key: (Oid, String), oid: Oid) {
    if let Some(named) = all.get_mut(&key) {
        take_out(named, oid);
        if named.is_empty() {
            all.remove(&key);
        }
    }
}

fn take_out(list: &mut Vec<Oid>, oid: Oid) {
    if let Ok(at) = list.binary_search(&oid) {
        list.remove(at);
    }
}

impl Catalog {
    /// What a new database holds.
    pub fn public_schema() -> SchemaDef {
        SchemaDef {
            oid: builtin::PUBLIC,
            name: "public".into(),
            owner: builtin::PG_DATABASE_OWNER,
        }
    }

    /// What a new data directory holds: the schema `public`, the role and the database `postgres`.
    pub fn initial_objects() -> Vec<Object> {
        vec![
            Catalog::public_schema().into(),
            RoleDef {
                superuser: true,
                create_role: true,
                create_db: true,
                login: true,
                replication: true,
                bypass_rls: true,
                ..RoleDef::new(builtin::SUPERUSER, "postgres")
            }
            .into(),
            DatabaseDef::new(builtin::DATABASE, "postgres", builtin::DEFINITIONS).into(),
        ]
    }

    /// The catalog of a database that holds these objects.
    pub fn load(database: Oid, objects: impl IntoIterator<Item = Object>) -> Catalog {
        let mut catalog = Catalog {
            database,
            version: new_version(),
            ..Catalog::default()
        };
        catalog.add_system_schemas();
        catalog.add_predefined_roles();
        for routine in system::sql_routine::definitions() {
            catalog.insert(routine.into());
        }
        let mut later = Vec::new();
        for object in objects {
            match object.kind() {
                // Links of a table's parts need nothing but the table's oid; order is free.
                ObjectKind::Table | ObjectKind::Schema => catalog.insert(object),
                _ => later.push(object),
            }
        }
        later.into_iter().for_each(|object| catalog.insert(object));
        catalog
    }

    /// Its number among all catalogs of the process; not an order.
    pub fn version(&self) -> u64 {
        self.version
    }

    fn add_system_schemas(&mut self) {
        for (oid, name) in [
            (builtin::PG_CATALOG, "pg_catalog"),
            (builtin::INFORMATION_SCHEMA, "information_schema"),
            (builtin::PG_TOAST, "pg_toast"),
            (builtin::THRONG, THRONG_SCHEMA),
        ] {
            let schema = SchemaDef {
                oid,
                name: name.into(),
                owner: builtin::SUPERUSER,
            };
            self.insert(schema.into());
        }
    }

    fn add_predefined_roles(&mut self) {
        for (oid, name) in builtin::PREDEFINED_ROLES {
            self.insert(RoleDef::new(oid, name).into());
        }
        let seen_by_monitors = [
            builtin::PG_READ_ALL_SETTINGS,
            builtin::PG_READ_ALL_STATS,
            builtin::PG_STAT_SCAN_TABLES,
        ];
        for (i, role) in seen_by_monitors.into_iter().enumerate() {
            let membership = MembershipDef {
                oid: Oid(FIRST_PREDEFINED_MEMBERSHIP + i as u32),
                role,
                member: builtin::PG_MONITOR,
                grantor: builtin::SUPERUSER,
                admin: false,
                inherit: true,
                set: true,
            };
            self.insert(membership.into());
        }
    }

    /// Adds an object, or puts it in the place of the one with its oid.
    fn insert(&mut self, object: Object) {
        self.remove(object.oid());
        let oid = object.oid();
        match &object {
            Object::Schema(d) => {
                Arc::make_mut(&mut self.schemas).insert(d.name.clone(), oid);
            }
            Object::Role(d) => {
                Arc::make_mut(&mut self.roles).insert(d.name.clone(), oid);
            }
            Object::Database(d) => {
                Arc::make_mut(&mut self.databases).insert(d.name.clone(), oid);
            }
            Object::Table(d) => {
                self.relations.insert((d.schema, d.name.clone()), oid);
                self.touch_trees(d);
                if d.detaching.is_some() {
                    Arc::make_mut(&mut self.detaching).push(oid);
                }
                self.note_views(oid, d.materialized.iter().flat_map(|m| &m.uses));
                for ty in made_types_of(d) {
                    add_in_order(&mut self.links_mut(ty).typed, oid);
                }
                for parent in d.parents.iter().filter(|_| d.detaching.is_none()) {
                    let links = self.links_mut(*parent);
                    add_in_order(&mut links.children, oid);
                    links.partitions.touch(oid);
                }
            }
            Object::View(d) => {
                self.relations.insert((d.schema, d.name.clone()), oid);
                self.note_views(oid, d.uses.iter());
            }
            Object::Sequence(d) => {
                self.relations.insert((d.schema, d.name.clone()), oid);
                if let Some((table, _)) = d.owned_by {
                    self.links_mut(table).sequences.push(oid);
                }
            }
            Object::Index(d) => {
                self.relations.insert((d.schema, d.name.clone()), oid);
                let links = self.links_mut(d.table);
                links.indexes.push(d.clone());
                links
                    .indexes
                    .sort_by(|a, b| (!a.primary, &a.name).cmp(&(!b.primary, &b.name)));
            }
            Object::Constraint(d) => {
                let named = self.constraint_names.entry(d.name.clone()).or_default();
                Arc::make_mut(named).push(oid);
                let links = self.links_mut(d.table);
                links.constraints.push(d.clone());
                links.constraints.sort_by(|a, b| a.name.cmp(&b.name));
                if let Some(fk) = d.foreign_key() {
                    let links = self.links_mut(fk.ref_table);
                    links.referenced_by.push(d.clone());
                    // By age, as PostgreSQL lists them and lets them act.
                    links.referenced_by.sort_by_key(|d| d.oid);
                }
            }
            Object::Stats(d) => self.links_mut(d.table).stats = Some(d.clone()),
            Object::Type(d) => {
                self.types.insert((d.schema, d.name.clone()), oid);
            }
            Object::Routine(d) => self.note_named(&d.uses, (d.schema, &d.name), oid, true),
            Object::Operator(d) => self.note_named(&d.uses, (d.schema, &d.name), oid, false),
            Object::Cast(d) => {
                self.casts.insert((d.from, d.to), oid);
                self.note_users(oid, &d.uses);
            }
            Object::Comment(d) => {
                self.comments.insert((d.class, d.object, d.column), oid);
            }
            Object::Privileges(d) => {
                let all = &mut self.privileges;
                let of_object = all.entry((d.class, d.object)).or_default();
                Arc::make_mut(of_object).insert(d.column, d.clone());
            }
            Object::DefaultPrivileges(d) => {
                let all = Arc::make_mut(&mut self.default_acls);
                all.push(d.clone());
                all.sort_by_key(|d| d.oid);
            }
            Object::Membership(d) => {
                let of_member = Arc::make_mut(self.memberships.entry(d.member).or_default());
                of_member.push(d.clone());
                of_member.sort_by_key(|m| (m.role, m.grantor));
            }
            Object::Trigger(_) | Object::Policy(_) => self.add_part(&object),
            Object::Extension(_) => {}
        }
        self.note_array_name(&object);
        self.mentions.note(&object, true);
        self.kinds[object.kind().place()].insert(oid);
        self.objects.insert(oid, object);
    }

    fn remove(&mut self, oid: Oid) -> Option<Object> {
        if !self.objects.contains_key(&oid) {
            return None;
        }
        let object = self.objects.remove(&oid)?;
        self.kinds[object.kind().place()].remove(&oid);
        self.forget_array_name(&object);
        self.mentions.note(&object, false);
        match &object {
            Object::Schema(d) => {
                Arc::make_mut(&mut self.schemas).remove(&d.name);
            }
            Object::Role(d) => {
                Arc::make_mut(&mut self.roles).remove(&d.name);
            }
            Object::Database(d) => {
                Arc::make_mut(&mut self.databases).remove(&d.name);
            }
            Object::Table(d) => {
                self.forget_name(d.schema, &d.name, oid);
                if d.detaching.is_some() {
                    Arc::make_mut(&mut self.detaching).retain(|t| *t != oid);
                }
                for ty in made_types_of(d) {
                    take_out(&mut self.links_mut(ty).typed, oid);
                }
                self.touch_trees(d);
                for parent in &d.parents {
                    let links = self.links_mut(*parent);
                    take_out(&mut links.children, oid);
                    links.partitions.touch(oid);
                }
                for used in d.materialized.iter().flat_map(|m| &m.uses) {
                    take_out(&mut self.links_mut(used.object).views, oid);
                }
            }
            Object::View(d) => {
                self.forget_name(d.schema, &d.name, oid);
                for used in &d.uses {
                    take_out(&mut self.links_mut(used.object).views, oid);
                }
            }
            Object::Sequence(d) => {
                self.forget_name(d.schema, &d.name, oid);
                if let Some((table, _)) = d.owned_by {
                    self.links_mut(table).sequences.retain(|o| *o != oid);
                }
            }
            Object::Index(d) => {
                self.forget_name(d.schema, &d.name, oid);
                self.links_mut(d.table).indexes.retain(|i| i.oid != oid);
            }
            Object::Constraint(d) => {
                if let Some(named) = self.constraint_names.get_mut(&d.name) {
                    Arc::make_mut(named).retain(|c| *c != oid);
                    if named.is_empty() {
                        self.constraint_names.remove(&d.name);
                    }
                }
                self.links_mut(d.table).constraints.retain(|c| c.oid != oid);
                if let Some(fk) = d.foreign_key() {
                    self.links_mut(fk.ref_table)
                        .referenced_by
                        .retain(|c| c.oid != oid);
                }
            }
            Object::Stats(d) => self.links_mut(d.table).stats = None,
            Object::Type(d) => {
                self.types.remove(&(d.schema, d.name.clone()));
            }
            Object::Routine(d) => {
                forget_named(&mut self.routines, (d.schema, d.name.clone()), oid);
                self.forget_users(oid, &d.uses);
            }
            Object::Operator(d) => {
                forget_named(&mut self.operators, (d.schema, d.name.clone()), oid);
                self.forget_users(oid, &d.uses);
            }
            Object::Cast(d) => {
                self.casts.remove(&(d.from, d.to));
                self.forget_users(oid, &d.uses);
            }
            Object::Comment(d) => {
                self.comments.remove(&(d.class, d.object, d.column));
            }
            Object::Privileges(d) => {
                let all = &mut self.privileges;
                if let Some(of_object) = all.get_mut(&(d.class, d.object)) {
                    Arc::make_mut(of_object).remove(&d.column);
                    if of_object.is_empty() {
                        all.remove(&(d.class, d.object));
                    }
                }
            }
            Object::DefaultPrivileges(_) => {
                Arc::make_mut(&mut self.default_acls).retain(|d| d.oid != oid);
            }
            Object::Membership(d) => {
                if let Some(of_member) = self.memberships.get_mut(&d.member) {
                    Arc::make_mut(of_member).retain(|m| m.oid != oid);
                }
            }
            Object::Trigger(_) | Object::Policy(_) => self.take_part(&object),
            Object::Extension(_) => {}
        }
        Some(object)
    }

    /// A trigger or a policy has come to a relation.
    fn add_part(&mut self, part: &Object) {
        match part {
            Object::Trigger(d) => {
                self.triggers += 1;
                let triggers = &mut self.links_mut(d.table).triggers;
                triggers.push(d.clone());
                triggers.sort_by(|a, b| a.name.cmp(&b.name));
            }
            Object::Policy(d) => {
                let policies = &mut self.links_mut(d.table).policies;
                policies.push(d.clone());
                policies.sort_by(|a, b| a.name.cmp(&b.name));
            }
            _ => {}
        }
    }

    /// It has gone.
    fn take_part(&mut self, part: &Object) {
        match part {
            Object::Trigger(d) => {
                self.triggers -= 1;
                self.links_mut(d.table).triggers.retain(|t| t.oid != d.oid);
            }
            Object::Policy(d) => self.links_mut(d.table).policies.retain(|p| p.oid != d.oid),
            _ => {}
        }
    }

    /// A routine, an operator or a cast names these.
    fn note_users(&mut self, user: Oid, uses: &[ViewUse]) {
        for used in uses {
            add_in_order(&mut self.links_mut(used.object).routines, user);
        }
    }

    /// A routine, or an operator, has come.
    fn note_named(&mut self, uses: &[ViewUse], key: (Oid, &str), oid: Oid, routine: bool) {
        let all = match routine {
            true => &mut self.routines,
            false => &mut self.operators,
        };
        add_in_order(all.entry((key.0, key.1.to_owned())).or_default(), oid);
        self.note_users(oid, uses);
    }

    fn forget_users(&mut self, user: Oid, uses: &[ViewUse]) {
        for used in uses {
            take_out(&mut self.links_mut(used.object).routines, user);
        }
    }

    /// A view names these.
    fn note_views<'u>(&mut self, view: Oid, uses: impl Iterator<Item = &'u ViewUse>) {
        for used in uses {
            add_in_order(&mut self.links_mut(used.object).views, view);
        }
    }

    fn forget_name(&mut self, schema: Oid, name: &str, oid: Oid) {
        let key = (schema, name.to_string());
        if self.relations.get(&key) == Some(&oid) {
            self.relations.remove(&key);
        }
    }

    /// A table has come, gone or changed: trees that it may be in are to be made anew, also those
    /// that nobody has made yet of the catalogs that share them.
    fn touch_trees(&mut self, table: &TableDef) {
        let own = table.is_partitioned().then_some(table.oid);
        let mut above: Vec<Oid> = own.into_iter().collect();
        let mut parent = table.parents.first().copied();
        while let Some(oid) = parent {
            above.push(oid);
            parent = self.table(oid).and_then(|t| t.parents.first().copied());
        }
        for oid in above {
            if self.links.contains_key(&oid) {
                self.links_mut(oid).partitions.touch_tree();
            }
        }
    }

    fn links_mut(&mut self, table: Oid) -> &mut Links {
        Arc::make_mut(self.links.entry(table).or_default())
    }
}
