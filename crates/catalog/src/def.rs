//! Definitions of catalog objects, as they are kept: each is one row (oid, kind, JSON) of a heap.
//!
//! A definition names others by oid only, so renaming touches one row. Expressions (defaults,
//! checks) are kept as SQL text and bound when they are used.

use std::sync::Arc;
pub use throng_syntax::vocabulary::{
    CheckOption, Deferral, DeferralSaid, FkAction, OnCommit, Persistence,
};

use serde::{Deserialize, Serialize};
use throng_types::{Error, FileId, Oid, Result, SqlType, Xid};

mod aggregate;
mod domain;
mod extension;
mod grant;
pub(super) mod id;
mod index;
mod operator;
mod policy;
mod routine;
mod sequence;
mod stats;
mod storage;
pub mod trigger;
mod user_type;

pub use trigger::{Enabled, TriggerCondition, TriggerConstraint, TriggerDef};

pub use aggregate::{AggregateDef, AggregateKind, TransitionDef};
pub use domain::{Domain, DomainCheck, DomainNotNull, EnumLabel};
pub use extension::ExtensionDef;
pub use grant::{AclItem, DefaultPrivilegesDef, MembershipDef, PrivilegesDef};
pub use index::{
    IndexColumn, IndexDef, IndexExpr, IndexMethod, IndexTerms, KeyWords, index_column_names,
};
pub use operator::{CastDef, OperatorDef, uses_of};
pub use policy::{PolicyCommand, PolicyCondition, PolicyDef, RowSecurityState};
pub use routine::{ArgDef, ArgMode, RoutineBody, RoutineDef, RoutineKind};
pub use sequence::SequenceDef;
pub use stats::{ColumnStats, FamilyStats, StatsDef};
pub use storage::{Compression, ReplicaIdentity, Storage};
pub use user_type::RangeDef;

use super::builtin;
use super::object_name::object_name;
use super::partition::{PartitionBound, PartitionKey};

/// A schema.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SchemaDef {
    #[serde(with = "id")]
    pub oid: Oid,
    pub name: String,
    #[serde(with = "id")]
    pub owner: Oid,
}

/// A table. `columns[i]` is attribute number `i + 1`; dropped columns keep their place, because
/// rows on disk do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableDef {
    #[serde(with = "id")]
    pub oid: Oid,
    #[serde(with = "id")]
    pub schema: Oid,
    pub name: String,
    #[serde(with = "id")]
    pub owner: Oid,
    /// The heap. A rewrite (TRUNCATE, a type change) gives a new one.
    #[serde(with = "id")]
    pub file: FileId,
    pub columns: Vec<ColumnDef>,
    pub persistence: Persistence,
    /// Storage parameters in the order given, as `name=value` parts.
    pub options: Vec<(String, String)>,
    /// The tables it inherits from, in order; of a partition: the one it is part of.
    #[serde(default, with = "id", skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<Oid>,
    /// It is divided by this key. Its own heap stays empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partitioned: Option<PartitionKey>,
    /// It is a partition, with these rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<PartitionBound>,
    /// DETACH CONCURRENTLY of it has begun, in this transaction, and not ended: who sees that
    /// transaction sees no partition.
    #[serde(default, with = "id", skip_serializing_if = "Option::is_none")]
    pub detaching: Option<Xid>,
    /// It is a materialized view: its rows are those of this query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub materialized: Option<Materialized>,
    /// Foreign keys whose triggers on this table are off: its rows may point at nothing, or go
    /// while others point at them.
    #[serde(default, with = "id", skip_serializing_if = "Vec::is_empty")]
    pub keys_off: Vec<Oid>,
    /// What its array type is called, where that is not `_` and its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array_name: Option<String>,
    #[serde(default, skip_serializing_if = "ReplicaIdentity::is_default")]
    pub replica_identity: ReplicaIdentity,
    #[serde(default, skip_serializing_if = "RowSecurityState::is_default")]
    pub row_security: RowSecurityState,
}

/// The query of a materialized view, as a view's definition has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Materialized {
    pub query: String,
    pub uses: Vec<ViewUse>,
    /// Its rows are there; otherwise it cannot be read.
    pub populated: bool,
}

/// A table's column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnDef {
    pub name: String,
    #[serde(with = "id")]
    pub ty: SqlType,
    pub not_null: bool,
    /// What its NOT NULL is called, where that is not what one made now would be; see
    /// [`TableDef::not_null_name`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_null_name: Option<String>,
    /// NOT NULL … NO INHERIT.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_null_alone: bool,
    /// SQL text of the default, fully qualified, or none.
    pub default: Option<String>,
    pub identity: Option<Identity>,
    /// The default is this sequence's next value: `serial`, identity, or `DEFAULT nextval('…')`.
    /// Then `default` is none.
    #[serde(with = "id")]
    pub sequence: Option<Oid>,
    /// What rows written before the column existed read as: the value's text form.
    pub missing: Option<String>,
    pub dropped: bool,
    /// `C`, or none for the default.
    pub collation: Option<String>,
    /// How many of the table's parents have it.
    #[serde(default)]
    pub inherited: u16,
    /// It was declared in the table itself.
    #[serde(default = "yes")]
    pub local: bool,
    /// The domain, or array of a domain, whose values these are; `ty` is what they are besides.
    #[serde(default, with = "id")]
    pub domain: Option<Oid>,
    /// GENERATED ALWAYS AS (…). Then there is no default.
    #[serde(default)]
    pub generated: Option<Generated>,
    /// None: as its type has it.
    #[serde(default)]
    pub storage: Option<Storage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<Compression>,
    /// SET STATISTICS: how many common values and bounds ANALYZE keeps at most; none:
    /// `default_statistics_target`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistics_target: Option<i16>,
    /// What `SET (n_distinct = …)` and the like said, in the order given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<(String, String)>,
}

fn yes() -> bool {
    true
}

/// How a column's value is made of the others of its row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Generated {
    /// SQL text over the table's column names.
    pub expr: String,
    /// Attribute numbers it uses, in order.
    pub columns: Vec<u16>,
    /// Computed when the row is written; else whenever it is read, and rows hold NULL in its place.
    pub stored: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Identity {
    Always,
    ByDefault,
}

/// A view.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ViewDef {
    #[serde(with = "id")]
    pub oid: Oid,
    #[serde(with = "id")]
    pub schema: Oid,
    pub name: String,
    #[serde(with = "id")]
    pub owner: Oid,
    pub columns: Vec<ViewColumn>,
    /// Its query as SQL in which every name has its schema; written anew when something it names is
    /// renamed.
    pub query: String,
    /// WITH CHECK OPTION: rows written through it must be rows of it.
    pub check: Option<CheckOption>,
    /// What the query names: it cannot go while the view is there.
    pub uses: Vec<ViewUse>,
    /// Storage parameters as given, `check_option` apart.
    #[serde(default)]
    pub options: Vec<(String, String)>,
    /// What INSERT and UPDATE through it put into columns that are given nothing; no column twice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub defaults: Vec<ViewDefault>,
    /// What its array type is called, where that is not `_` and its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array_name: Option<String>,
}

/// A view's own default of a column, as a table's: SQL text or a sequence whose next value it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ViewDefault {
    pub attnum: u16,
    pub text: Option<String>,
    #[serde(with = "id")]
    pub sequence: Option<Oid>,
}

impl ViewDef {
    /// Its columns as a table's, with its own defaults.
    pub fn columns_of_table(&self) -> Vec<ColumnDef> {
        let columns = self.columns.iter();
        let mut columns: Vec<_> = columns.map(|c| ColumnDef::new(&c.name, c.ty)).collect();
        for own in &self.defaults {
            if let Some(column) = columns.get_mut(usize::from(own.attnum) - 1) {
                column.default.clone_from(&own.text);
                column.sequence = own.sequence;
            }
        }
        columns
    }

    /// `security_invoker`: what it reads is read with the rights of who reads it, and not of its
    /// owner.
    pub fn is_invokers(&self) -> bool {
        self.is_on("security_invoker")
    }

    /// `security_barrier`: conditions that could tell of rows that it hides wait for its own.
    pub fn is_barrier(&self) -> bool {
        self.is_on("security_barrier")
    }

    fn is_on(&self, option: &str) -> bool {
        let given = self.options.iter().find(|(name, _)| name == option);
        given.is_some_and(|(_, value)| {
            throng_values::settings::value::parse_bool(value) == Some(true)
        })
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ViewColumn {
    pub name: String,
    #[serde(with = "id")]
    pub ty: SqlType,
}

/// What a view names: a relation, with which of its columns; a type; the primary key that its GROUP
/// BY leans on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ViewUse {
    #[serde(with = "id")]
    pub object: Oid,
    /// Attribute numbers, in order.
    pub columns: Vec<u16>,
}

/// A constraint of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConstraintDef {
    #[serde(with = "id")]
    pub oid: Oid,
    pub name: String,
    #[serde(with = "id")]
    pub table: Oid,
    pub kind: ConstraintKind,
    /// False after `NOT VALID`: rows that were there have not been checked.
    pub validated: bool,
    #[serde(default)]
    pub deferral: Deferral,
    #[serde(default)]
    pub lineage: Lineage,
}

/// How a constraint stands to those of the table's parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lineage {
    /// How many of the table's parents have it.
    pub inherited: u16,
    /// It was declared for the table itself.
    pub local: bool,
    /// Children do not get it.
    pub no_inherit: bool,
    /// The constraint of the partitioned table that it is a part of.
    #[serde(with = "id")]
    pub parent: Option<Oid>,
}

impl Default for Lineage {
    fn default() -> Lineage {
        Lineage {
            inherited: 0,
            local: true,
            no_inherit: false,
            parent: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ConstraintKind {
    PrimaryKey {
        #[serde(with = "id")]
        index: Oid,
    },
    Unique {
        #[serde(with = "id")]
        index: Oid,
    },
    Exclusion {
        #[serde(with = "id")]
        index: Oid,
    },
    /// `expr` is SQL text over the table's column names; `columns` are those it uses.
    Check {
        expr: String,
        columns: Vec<u16>,
    },
    ForeignKey(ForeignKey),
}

/// A foreign key: `columns` of this table match `ref_columns` of `ref_table`, found by `ref_index`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForeignKey {
    pub columns: Vec<u16>,
    #[serde(with = "id")]
    pub ref_table: Oid,
    pub ref_columns: Vec<u16>,
    /// The unique index on the referenced columns.
    #[serde(with = "id")]
    pub ref_index: Oid,
    pub on_update: FkAction,
    pub on_delete: FkAction,
    pub match_full: bool,
    /// The last column is a range that those of the referenced rows cover together.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub period: bool,
}

/// A role.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoleDef {
    #[serde(with = "id")]
    pub oid: Oid,
    pub name: String,
    pub superuser: bool,
    pub inherit: bool,
    pub create_role: bool,
    pub create_db: bool,
    pub login: bool,
    pub replication: bool,
    pub bypass_rls: bool,
    /// -1 for no limit.
    pub connection_limit: i32,
    /// A SCRAM-SHA-256 verifier, never the password.
    pub password: Option<String>,
    /// A timestamptz in text form.
    pub valid_until: Option<String>,
    /// Roles it is in, as definitions had it before there was [`MembershipDef`]; the next start
    /// makes those of it.
    #[serde(default, with = "id", skip_serializing_if = "Vec::is_empty")]
    pub member_of: Vec<Oid>,
    /// `ALTER ROLE … SET`: applied when a session starts.
    pub settings: Vec<(String, String)>,
    /// `ALTER ROLE ALL SET`, which the first role keeps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub everyones_settings: Vec<(String, String)>,
}

/// A database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DatabaseDef {
    #[serde(with = "id")]
    pub oid: Oid,
    pub name: String,
    #[serde(with = "id")]
    pub owner: Oid,
    /// The heap of its definitions.
    #[serde(default = "first_definitions", with = "id")]
    pub definitions: FileId,
    #[serde(default)]
    pub is_template: bool,
    #[serde(default = "yes")]
    pub allow_connections: bool,
    /// -1 for no limit.
    #[serde(default = "no_limit")]
    pub connection_limit: i32,
    pub settings: Vec<(String, String)>,
    /// `ALTER ROLE … IN DATABASE … SET`; no role twice, and none without settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub role_settings: Vec<RoleSettings>,
}

/// What a role's sessions in one database start with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoleSettings {
    #[serde(with = "id")]
    pub role: Oid,
    pub settings: Vec<(String, String)>,
}

/// Of a database that was made when there was one.
fn first_definitions() -> FileId {
    builtin::DEFINITIONS
}
fn no_limit() -> i32 {
    -1
}

impl DatabaseDef {
    /// One as CREATE DATABASE makes it, the superuser's.
    pub fn new(oid: Oid, name: &str, definitions: FileId) -> DatabaseDef {
        DatabaseDef {
            oid,
            name: name.to_owned(),
            owner: builtin::SUPERUSER,
            definitions,
            is_template: false,
            allow_connections: true,
            connection_limit: -1,
            settings: vec![],
            role_settings: vec![],
        }
    }
}

/// A type that a user made: an enum, a domain, a composite type or a range type. The multirange
/// type over a range type has a definition of its own, with no more than a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypeDef {
    /// See [`throng_types::sqltype::made`].
    #[serde(with = "id")]
    pub oid: Oid,
    #[serde(with = "id")]
    pub schema: Oid,
    pub name: String,
    #[serde(with = "id")]
    pub owner: Oid,
    /// Of an enum, in their order.
    pub labels: Vec<EnumLabel>,
    #[serde(default)]
    pub domain: Option<Domain>,
    /// Of a composite type; dropped ones keep their place.
    #[serde(default)]
    pub fields: Option<Vec<ColumnDef>>,
    /// What its array type is called, where that is not `_` and its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<RangeDef>,
}

/// COMMENT ON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommentDef {
    #[serde(with = "id")]
    pub oid: Oid,
    /// The object's catalog (`pg_class`, …), its oid, and column number or 0.
    #[serde(with = "id")]
    pub class: Oid,
    #[serde(with = "id")]
    pub object: Oid,
    pub column: u16,
    pub text: String,
}

macro_rules! objects {
    ($($variant:ident($def:ident) = $tag:literal;)*) => {
        /// Any catalog object.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Object { $($variant(Arc<$def>),)* }

        /// What an object is; its tag is how the stored row says it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ObjectKind { $($variant,)* }

        impl ObjectKind {
            pub fn tag(self) -> &'static str {
                match self { $(ObjectKind::$variant => $tag,)* }
            }
            /// How many kinds there are.
            pub const COUNT: usize = [$(ObjectKind::$variant,)*].len();
            /// Its place among them.
            pub fn place(self) -> usize {
                self as usize
            }
            pub fn from_tag(tag: &str) -> Option<ObjectKind> {
                match tag { $($tag => Some(ObjectKind::$variant),)* _ => None }
            }
        }

        impl Object {
            pub fn oid(&self) -> Oid {
                match self { $(Object::$variant(def) => def.oid,)* }
            }
            pub fn kind(&self) -> ObjectKind {
                match self { $(Object::$variant(_) => ObjectKind::$variant,)* }
            }
            pub fn to_json(&self) -> String {
                let json = match self { $(Object::$variant(def) => serde_json::to_string(&**def),)* };
                json.expect("definitions have only string keys")
            }
            /// XX001 when the stored text is not the definition its tag says.
            pub fn from_json(tag: &str, json: &str) -> Result<Object> {
                let bad = |e: &dyn std::fmt::Display| {
                    Error::corrupted(format!("catalog object of kind \"{tag}\" cannot be read: {e}"))
                };
                match tag {
                    $($tag => Ok(Object::$variant(Arc::new(
                        serde_json::from_str(json).map_err(|e| bad(&e))?,
                    ))),)*
                    _ => Err(bad(&"unknown kind")),
                }
            }
        }

        $(impl From<$def> for Object {
            fn from(def: $def) -> Object {
                Object::$variant(Arc::new(def))
            }
        })*
    };
}

objects! {
    Schema(SchemaDef) = "schema";
    Table(TableDef) = "table";
    View(ViewDef) = "view";
    Index(IndexDef) = "index";
    Constraint(ConstraintDef) = "constraint";
    Sequence(SequenceDef) = "sequence";
    Role(RoleDef) = "role";
    Database(DatabaseDef) = "database";
    Stats(StatsDef) = "stats";
    Comment(CommentDef) = "comment";
    Type(TypeDef) = "type";
    Routine(RoutineDef) = "routine";
    Privileges(PrivilegesDef) = "privileges";
    DefaultPrivileges(DefaultPrivilegesDef) = "default_privileges";
    Membership(MembershipDef) = "membership";
    Trigger(TriggerDef) = "trigger";
    Policy(PolicyDef) = "policy";
    Extension(ExtensionDef) = "extension";
    Operator(OperatorDef) = "operator";
    Cast(CastDef) = "cast";
}

impl Object {
    /// Whether it is every database's.
    pub fn is_shared(&self) -> bool {
        use builtin::class;
        let of_shared = |class| [class::ROLE, class::DATABASE, class::TABLESPACE].contains(&class);
        match self {
            Object::Role(_) | Object::Database(_) | Object::Membership(_) => true,
            Object::Comment(def) => of_shared(def.class),
            Object::Privileges(def) => of_shared(def.class),
            _ => false,
        }
    }
}

impl TableDef {
    /// The name of a column's NOT NULL constraint.
    pub fn not_null_name(&self, column: &ColumnDef) -> String {
        match &column.not_null_name {
            Some(name) => name.clone(),
            None => object_name(&self.name, &column.name, "not_null"),
        }
    }
    /// The column whose NOT NULL is called so.
    pub fn not_null_named(&self, name: &str) -> Option<u16> {
        let mut columns = self.live_columns();
        let found = columns.find(|(_, c)| c.not_null && self.not_null_name(c) == name);
        found.map(|(attnum, _)| attnum)
    }
    /// The table or a column is about to be called something else, its NOT NULL constraints are
    /// not.
    pub fn keep_not_null_names(&mut self) {
        let table = self.name.clone();
        for column in self.columns.iter_mut().filter(|c| c.not_null && !c.dropped) {
            let made = object_name(&table, &column.name, "not_null");
            let kept = column.not_null_name.take().unwrap_or(made);
            column.not_null_name = Some(kept);
        }
    }
    /// Whether it is a partition whose heap is elsewhere: in its own partitions.
    pub fn is_partitioned(&self) -> bool {
        self.partitioned.is_some()
    }
    /// Whether it is a table's, and not a view's columns as a table would have them.
    pub fn has_rows(&self) -> bool {
        self.file != FileId(0)
    }
    /// Columns that are no table's, to bind over.
    pub fn of_columns(columns: Vec<ColumnDef>) -> TableDef {
        TableDef {
            oid: Oid::NONE,
            schema: Oid::NONE,
            name: String::new(),
            owner: Oid::NONE,
            file: FileId(0),
            columns,
            persistence: Persistence::Permanent,
            options: vec![],
            parents: vec![],
            partitioned: None,
            bound: None,
            detaching: None,
            materialized: None,
            keys_off: vec![],
            array_name: None,
            replica_identity: ReplicaIdentity::Default,
            row_security: RowSecurityState::default(),
        }
    }
    pub fn is_materialized(&self) -> bool {
        self.materialized.is_some()
    }
    /// Whether its rows are not there yet.
    pub fn is_unpopulated(&self) -> bool {
        self.materialized.as_ref().is_some_and(|m| !m.populated)
    }
    /// A materialized view as the view that it would be without its rows.
    pub fn as_view(&self) -> Option<ViewDef> {
        let Materialized { query, uses, .. } = self.materialized.as_ref()?;
        let column = |(_, c): (u16, &ColumnDef)| ViewColumn {
            name: c.name.clone(),
            ty: c.ty,
        };
        Some(ViewDef {
            oid: self.oid,
            schema: self.schema,
            name: self.name.clone(),
            owner: self.owner,
            columns: self.live_columns().map(column).collect(),
            query: query.clone(),
            check: None,
            uses: uses.clone(),
            options: vec![],
            defaults: vec![],
            array_name: self.array_name.clone(),
        })
    }
    /// Columns that exist, with their attribute numbers.
    pub fn live_columns(&self) -> impl Iterator<Item = (u16, &ColumnDef)> {
        self.columns
            .iter()
            .enumerate()
            .filter(|(_, c)| !c.dropped)
            .map(|(i, c)| (i as u16 + 1, c))
    }
    /// Whether some column is computed when it is read.
    pub fn has_virtual(&self) -> bool {
        self.live_columns().any(|(_, c)| c.is_virtual())
    }
    /// The columns that are computed from this one.
    pub fn generated_from(&self, attnum: u16) -> impl Iterator<Item = (u16, &ColumnDef)> {
        let uses = move |c: &ColumnDef| {
            let generated = c.generated.as_ref();
            generated.is_some_and(|g| g.columns.contains(&attnum))
        };
        self.live_columns().filter(move |(_, c)| uses(c))
    }
    /// A column's attribute number by name.
    pub fn attnum(&self, name: &str) -> Option<u16> {
        self.live_columns()
            .find(|(_, c)| c.name == name)
            .map(|(n, _)| n)
    }
    /// The column with attribute number `attnum` (from 1).
    pub fn column(&self, attnum: u16) -> &ColumnDef {
        &self.columns[attnum as usize - 1]
    }
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.as_str())
    }
}

impl ConstraintDef {
    /// The index that enforces it, for a primary key, a unique or an exclusion constraint.
    pub fn index(&self) -> Option<Oid> {
        match self.kind {
            ConstraintKind::PrimaryKey { index }
            | ConstraintKind::Unique { index }
            | ConstraintKind::Exclusion { index } => Some(index),
            _ => None,
        }
    }
    pub fn foreign_key(&self) -> Option<&ForeignKey> {
        match &self.kind {
            ConstraintKind::ForeignKey(fk) => Some(fk),
            _ => None,
        }
    }
}

impl ColumnDef {
    pub fn new(name: impl Into<String>, ty: SqlType) -> ColumnDef {
        ColumnDef {
            name: name.into(),
            ty,
            not_null: false,
            not_null_name: None,
            not_null_alone: false,
            default: None,
            identity: None,
            sequence: None,
            missing: None,
            dropped: false,
            collation: None,
            inherited: 0,
            local: true,
            domain: None,
            generated: None,
            storage: None,
            compression: None,
            statistics_target: None,
            options: Vec::new(),
        }
    }
    /// Its NOT NULL goes, with all that was said of it.
    pub fn drop_not_null(&mut self) {
        self.not_null = false;
        self.not_null_name = None;
        self.not_null_alone = false;
    }
    /// A child's column is NOT NULL because this one is.
    pub fn hands_on_not_null(&self) -> bool {
        self.not_null && !self.not_null_alone
    }
    /// A number that the column's options give.
    pub fn option(&self, name: &str) -> Option<f64> {
        let given = self.options.iter().find(|(known, _)| known == name);
        given.and_then(|(_, value)| value.parse().ok())
    }
    /// The type the column is said to be of: its domain, where it has one.
    pub fn shown_type(&self) -> Oid {
        self.domain.unwrap_or(self.ty.oid)
    }
    /// Computed when it is read.
    pub fn is_virtual(&self) -> bool {
        self.generated.as_ref().is_some_and(|g| !g.stored)
    }
    /// Computed when the row is written.
    pub fn is_stored(&self) -> bool {
        self.generated.as_ref().is_some_and(|g| g.stored)
    }
}
