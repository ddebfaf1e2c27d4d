//! Finding things: by oid, by name, along a search path.

use std::sync::Arc;

use throng_types::sqltype::made;
use throng_types::{Error, Oid};

use super::*;

/// Anything that has a name in a schema's relation name space.
#[derive(Clone, Debug, PartialEq)]
pub enum Relation {
    Table(Arc<TableDef>),
    View(Arc<ViewDef>),
    Index(Arc<IndexDef>),
    Sequence(Arc<SequenceDef>),
    Virtual(&'static VirtualTable),
}

/// A relation's oid and kind as `pg_class.relkind` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelationRef {
    pub oid: Oid,
    pub kind: u8,
}

impl Relation {
    pub fn oid(&self) -> Oid {
        match self {
            Relation::Table(d) => d.oid,
            Relation::View(d) => d.oid,
            Relation::Index(d) => d.oid,
            Relation::Sequence(d) => d.oid,
            Relation::Virtual(d) => d.oid,
        }
    }
    pub fn name(&self) -> &str {
        match self {
            Relation::Table(d) => &d.name,
            Relation::View(d) => &d.name,
            Relation::Index(d) => &d.name,
            Relation::Sequence(d) => &d.name,
            Relation::Virtual(d) => d.name,
        }
    }
    pub fn schema(&self) -> Oid {
        match self {
            Relation::Table(d) => d.schema,
            Relation::View(d) => d.schema,
            Relation::Index(d) => d.schema,
            Relation::Sequence(d) => d.schema,
            Relation::Virtual(d) => d.schema,
        }
    }
    /// Whose it is; an index is its table's owner's.
    pub fn owner(&self, catalog: &Catalog) -> Oid {
        match self {
            Relation::Table(d) => d.owner,
            Relation::View(d) => d.owner,
            Relation::Sequence(d) => d.owner,
            Relation::Index(d) => catalog.table(d.table).map_or(Oid::NONE, |t| t.owner),
            Relation::Virtual(_) => builtin::SUPERUSER,
        }
    }
    /// What messages call it.
    pub fn word(&self) -> &'static str {
        match self {
            Relation::Table(d) if d.is_materialized() => "materialized view",
            Relation::Table(_) => "table",
            Relation::Index(_) => "index",
            Relation::Sequence(_) => "sequence",
            Relation::View(_) => "view",
            Relation::Virtual(_) => "view",
        }
    }
    /// `r`, `m`, `i`, `S`, `v`.
    pub fn relkind(&self) -> u8 {
        match self {
            Relation::Table(d) if d.is_partitioned() => b'p',
            Relation::Table(d) if d.is_materialized() => b'm',
            Relation::Table(_) => b'r',
            Relation::View(_) => b'v',
            Relation::Index(_) => b'i',
            Relation::Sequence(_) => b'S',
            Relation::Virtual(d) => d.relkind(),
        }
    }
}

impl RoleDef {
    /// A role with no rights but to inherit.
    pub fn new(oid: Oid, name: &str) -> RoleDef {
        RoleDef {
            oid,
            name: name.into(),
            superuser: false,
            inherit: true,
            create_role: false,
            create_db: false,
            login: false,
            replication: false,
            bypass_rls: false,
            connection_limit: -1,
            password: None,
            valid_until: None,
            member_of: vec![],
            settings: vec![],
            everyones_settings: vec![],
        }
    }
}

macro_rules! by_oid {
    ($($name:ident, $all:ident, $variant:ident, $def:ident;)*) => {
        $(
            pub fn $name(&self, oid: Oid) -> Option<&Arc<$def>> {
                match self.objects.get(&oid) {
                    Some(Object::$variant(def)) => Some(def),
                    _ => None,
                }
            }
            /// All of them, by oid.
            pub fn $all(&self) -> Vec<&Arc<$def>> {
                let all = self.kinds[ObjectKind::$variant.place()].iter();
                all.filter_map(|oid| self.$name(*oid)).collect()
            }
        )*
    };
}

/// What a session calls its own temporary schema.
pub const TEMPORARY: &str = "pg_temp";
/// How the names of temporary schemas begin; the session's number follows.
pub const TEMPORARY_PREFIX: &str = "pg_temp_";

impl Catalog {
    by_oid! {
        schema, schemas, Schema, SchemaDef;
        table, tables, Table, TableDef;
        view, views, View, ViewDef;
        index, indexes, Index, IndexDef;
        constraint, constraints, Constraint, ConstraintDef;
        sequence, sequences, Sequence, SequenceDef;
        role, roles, Role, RoleDef;
        database, databases, Database, DatabaseDef;
        comment_def, comments, Comment, CommentDef;
        made_type, made_types, Type, TypeDef;
        routine, routines, Routine, RoutineDef;
        operator, operators, Operator, OperatorDef;
        cast, casts, Cast, CastDef;
        privileges_def, all_privileges, Privileges, PrivilegesDef;
        membership, memberships, Membership, MembershipDef;
        trigger, triggers, Trigger, TriggerDef;
        policy, policies, Policy, PolicyDef;
        extension, extensions, Extension, ExtensionDef;
    }

    /// A view, or a materialized view as one.
    pub fn rule_of(&self, oid: Oid) -> Option<Arc<ViewDef>> {
        match self.objects.get(&oid) {
            Some(Object::View(view)) => Some(view.clone()),
            Some(Object::Table(table)) => table.as_view().map(Arc::new),
            _ => None,
        }
    }
    /// All views, the materialized ones among them, by oid.
    pub fn rules(&self) -> Vec<Arc<ViewDef>> {
        let kinds = [ObjectKind::View, ObjectKind::Table];
        let oids = kinds
            .iter()
            .flat_map(|kind| self.kinds[kind.place()].iter());
        let mut all: Vec<Arc<ViewDef>> = oids.filter_map(|oid| self.rule_of(*oid)).collect();
        all.sort_by_key(|view| view.oid);
        all
    }
    /// Those of ALTER DEFAULT PRIVILEGES, by age.
    pub fn all_default_privileges(&self) -> &[Arc<DefaultPrivilegesDef>] {
        &self.default_acls
    }
    pub fn object(&self, oid: Oid) -> Option<&Object> {
        self.objects.get(&oid)
    }
    /// Every object, system schemas included, in no order.
    pub fn objects(&self) -> impl Iterator<Item = &Object> {
        self.objects.values()
    }

    /// `throng` is short for the system's schema of that, where no user's is called so.
    pub fn schema_by_name(&self, name: &str) -> Option<&Arc<SchemaDef>> {
        match self.schemas.get(name) {
            Some(oid) => self.schema(*oid),
            None if name == THRONG_SHORT => self.schema(builtin::THRONG),
            None => None,
        }
    }
    /// Whether a schema to be made may have the name.
    pub fn is_schema_name_free(&self, name: &str) -> bool {
        !self.schemas.contains_key(name)
    }
    pub fn extension_by_name(&self, name: &str) -> Option<&Arc<ExtensionDef>> {
        self.extensions().into_iter().find(|e| e.name == name)
    }
    /// The extension that an object came with.
    pub fn extension_of(&self, member: Oid) -> Option<&Arc<ExtensionDef>> {
        let users = self.users_of(member).into_iter();
        let mut extensions = users.filter_map(|oid| self.extension(oid));
        extensions.find(|e| e.members.contains(&member))
    }
    pub fn role_by_name(&self, name: &str) -> Option<&Arc<RoleDef>> {
        self.role(*self.roles.get(name)?)
    }
    pub fn database_by_name(&self, name: &str) -> Option<&Arc<DatabaseDef>> {
        self.database(*self.databases.get(name)?)
    }
    /// The database whose definitions these are.
    pub fn current_database(&self) -> Option<&Arc<DatabaseDef>> {
        self.database(self.database)
    }
    /// Its name; empty in a catalog of no database.
    pub fn current_database_name(&self) -> &str {
        self.current_database().map_or("", |d| &d.name)
    }
    pub fn current_database_oid(&self) -> Oid {
        self.database
    }
    /// Those that all databases have in common.
    pub fn shared_objects(&self) -> impl Iterator<Item = &Object> {
        self.objects().filter(|object| object.is_shared())
    }

    /// The relation of that name in that schema.
    pub fn relation_in(&self, schema: Oid, name: &str) -> Option<Relation> {
        if let Some(oid) = self.relations.get(&(schema, name.to_string())) {
            return self.relation(*oid);
        }
        system::find(schema, name).map(Relation::Virtual)
    }
    pub fn relation(&self, oid: Oid) -> Option<Relation> {
        match self.objects.get(&oid) {
            Some(Object::Table(d)) => Some(Relation::Table(d.clone())),
            Some(Object::View(d)) => Some(Relation::View(d.clone())),
            Some(Object::Index(d)) => Some(Relation::Index(d.clone())),
            Some(Object::Sequence(d)) => Some(Relation::Sequence(d.clone())),
            _ => system::by_oid(oid).map(Relation::Virtual),
        }
    }

    /// Schemas in which unqualified names are sought: `search_path`'s, those that exist and that
    /// the user may look into, with `pg_catalog` and before it the session's temporary one first
    /// unless they are named. `$user` is the session's user.
    pub fn search_path(&self, setting: &[String], user: &str, temporary: Option<Oid>) -> Vec<Oid> {
        let mut path = Vec::with_capacity(setting.len() + 2);
        let role = self.roles.get(user).copied().unwrap_or(Oid::NONE);
        for name in setting {
            let found = match name.as_str() {
                "$user" => self.schemas.get(user).copied(),
                TEMPORARY => temporary,
                // Another session's are not for us to see.
                name if name.starts_with(TEMPORARY_PREFIX) => None,
                name => self.schema_by_name(name).map(|schema| schema.oid),
            };
            let usable = |oid: &Oid| temporary == Some(*oid) || self.may_look_into(role, *oid);
            if let Some(oid) = found.filter(|oid| !path.contains(oid)).filter(usable) {
                path.push(oid);
            }
        }
        for implicit in [Some(builtin::PG_CATALOG), temporary] {
            if let Some(oid) = implicit.filter(|oid| !path.contains(oid)) {
                path.insert(0, oid);
            }
        }
        path
    }
    /// Where new objects go: the first schema of the path that was asked for.
    pub fn creation_schema(&self, setting: &[String], user: &str) -> Option<Oid> {
        let role = self.roles.get(user).copied().unwrap_or(Oid::NONE);
        setting.iter().find_map(|name| {
            let name = if name == "$user" { user } else { name };
            let found = self.schemas.get(name).copied();
            found.filter(|oid| self.may_look_into(role, *oid))
        })
    }
    /// The first relation of that name along the path.
    pub fn find_relation(&self, path: &[Oid], name: &str) -> Option<Relation> {
        path.iter()
            .find_map(|schema| self.relation_in(*schema, name))
    }
    /// Whether the name alone finds this relation.
    pub fn is_visible(&self, path: &[Oid], relation: &Relation) -> bool {
        self.find_relation(path, relation.name())
            .is_some_and(|r| r.oid() == relation.oid())
    }

    /// A type that is not built in, that of a relation's rows included.
    pub fn user_type(&self, ty: Oid) -> Option<Arc<TypeDef>> {
        let made = self.made_type(ty).cloned();
        made.or_else(|| self.composite(ty))
    }

    /// A composite type: one made as such, or that of a relation's rows.
    pub fn composite(&self, ty: Oid) -> Option<Arc<TypeDef>> {
        if !made::is_composite(ty) {
            return None;
        }
        if let Some(def) = self.made_type(ty) {
            return Some(def.clone());
        }
        let relation = self.relation(made::serial(ty)?)?;
        let (owner, fields) = match &relation {
            Relation::Table(table) => (table.owner, table.columns.clone()),
            Relation::View(view) => {
                let columns = view.columns.iter();
                let fields = columns.map(|c| ColumnDef::new(&c.name, c.ty)).collect();
                (view.owner, fields)
            }
            _ => return None,
        };
        Some(Arc::new(TypeDef {
            oid: ty,
            schema: relation.schema(),
            name: relation.name().to_owned(),
            owner,
            labels: vec![],
            domain: None,
            fields: Some(fields),
            array_name: None,
            range: None,
        }))
    }

    /// The type of that name that a user made in that schema.
    pub fn type_in(&self, schema: Oid, name: &str) -> Option<&Arc<TypeDef>> {
        self.made_type(*self.types.get(&(schema, name.to_string()))?)
    }
    /// The first of that name along the path.
    pub fn find_type(&self, path: &[Oid], name: &str) -> Option<&Arc<TypeDef>> {
        path.iter().find_map(|schema| self.type_in(*schema, name))
    }
    /// What a type that a user made is called: qualified where the path does not find it, `[]`
    /// after an array's element.
    pub fn type_display(&self, path: &[Oid], ty: Oid) -> Option<String> {
        use throng_types::lexical::quote_ident;
        if let Some(element) = throng_types::sqltype::element_of(ty).filter(|_| made::is_made(ty)) {
            return Some(self.type_display(path, element)? + "[]");
        }
        let Some(def) = self.made_type(ty) else {
            let rows_of = made::serial(ty).filter(|_| made::is_composite(ty));
            return Some(self.display_name(path, &self.relation(rows_of?)?));
        };
        let name = quote_ident(&def.name);
        let visible = self
            .find_type(path, &def.name)
            .is_some_and(|found| found.oid == ty);
        match self.schema(def.schema).filter(|_| !visible) {
            Some(schema) => Some(format!("{}.{name}", quote_ident(&schema.name))),
            None => Some(name),
        }
    }
    /// What a function is called: qualified where the path does not find it.
    pub fn routine_display(&self, path: &[Oid], def: &RoutineDef) -> String {
        use throng_types::lexical::quote_ident;
        let name = quote_ident(&def.name);
        let inputs = def.input_types();
        let found = path.iter().find_map(|schema| {
            let same = |r: &&Arc<RoutineDef>| r.input_types() == inputs;
            self.routines_in(*schema, &def.name).into_iter().find(same)
        });
        let visible = found.is_some_and(|found| found.oid == def.oid);
        match self.schema(def.schema).filter(|_| !visible) {
            Some(schema) => format!("{}.{name}", quote_ident(&schema.name)),
            None => name,
        }
    }
    /// `##(integer,text)`, as `regoperator` and messages write it.
    pub fn operator_signature(&self, path: &[Oid], def: &OperatorDef) -> String {
        use throng_types::lexical::quote_ident;
        use throng_types::sqltype::format_type;
        let shown = |ty: Oid| match self.type_display(path, ty) {
            Some(made) if made::is_made(ty) => made,
            _ => format_type(throng_types::SqlType::plain(ty)),
        };
        let left = def.left.map_or("NONE".to_owned(), shown);
        let name = match self.operator_display(path, def) {
            name if name == def.name => name,
            _ => {
                let schema = self.schema(def.schema).map_or("", |s| s.name.as_str());
                format!("{}.{}", quote_ident(schema), def.name)
            }
        };
        format!("{name}({left},{})", shown(def.right))
    }
    /// An operator as an expression writes it: qualified where the path does not find it. One that
    /// is built in comes first, like any in `pg_catalog`.
    pub fn operator_display(&self, path: &[Oid], def: &OperatorDef) -> String {
        use throng_types::lexical::quote_ident;
        let same = |o: &&Arc<OperatorDef>| o.left == def.left && o.right == def.right;
        let mut schemas = path.iter();
        let found = schemas.find_map(|s| self.operators_in(*s, &def.name).into_iter().find(same));
        let built_in = throng_values::func::operators_named(&def.name).iter();
        let left = def.left.unwrap_or(Oid::NONE);
        let hidden = built_in
            .into_iter()
            .any(|o| o.left == left && o.right == def.right);
        let visible = !hidden && found.is_some_and(|found| found.oid == def.oid);
        match self.schema(def.schema).filter(|_| !visible) {
            Some(schema) => format!("OPERATOR({}.{})", quote_ident(&schema.name), def.name),
            None => def.name.clone(),
        }
    }
    /// `f(integer,text)`, as `regprocedure` and messages write it.
    pub fn routine_signature(&self, path: &[Oid], def: &RoutineDef) -> String {
        use throng_types::SqlType;
        use throng_types::sqltype::format_type;
        let types = def.input_types();
        let types: Vec<String> = types
            .iter()
            .map(|t| match self.type_display(path, *t) {
                Some(made) if made::is_made(*t) => made,
                _ => format_type(SqlType::plain(*t)),
            })
            .collect();
        format!("{}({})", self.routine_display(path, def), types.join(","))
    }
    /// Puts types' names where a message has their marks. An error about a type tells its schema
    /// too.
    pub fn spell_types(&self, path: &[Oid], error: &mut Error) {
        let fields = error.fields_mut();
        if let Some(text) = &mut fields.data_type {
            let mut schema = None;
            let name = |ty| {
                let def = self.made_type(ty)?;
                schema = self.schema(def.schema);
                Some(def.name.clone())
            };
            if let Some(spelled) = made::spelled(text, name) {
                *text = spelled;
                fields.schema = schema.map(|schema| schema.name.clone());
            }
        }
        let texts = [
            Some(&mut fields.message),
            fields.detail.as_mut(),
            fields.hint.as_mut(),
        ];
        for text in texts.into_iter().flatten() {
            if let Some(spelled) = made::spelled(text, |ty| self.type_display(path, ty)) {
                *text = spelled;
            }
        }
    }

    /// A table's indexes, primary key first.
    pub fn indexes_of(&self, table: Oid) -> &[Arc<IndexDef>] {
        self.links.get(&table).map_or(&[], |l| &l.indexes)
    }
    /// A table's constraints, by name (the order in which CHECKs are tried).
    pub fn constraints_of(&self, table: Oid) -> &[Arc<ConstraintDef>] {
        self.links.get(&table).map_or(&[], |l| &l.constraints)
    }
    /// The constraints of that name, of all tables.
    pub fn constraints_named(&self, name: &str) -> &[Oid] {
        self.constraint_names.get(name).map_or(&[], |named| named)
    }
    /// A table's or view's triggers, by name.
    #[inline]
    pub fn triggers_of(&self, table: Oid) -> &[Arc<TriggerDef>] {
        if self.triggers == 0 {
            return &[];
        }
        self.links.get(&table).map_or(&[], |l| &l.triggers)
    }
    pub fn trigger_by_name(&self, table: Oid, name: &str) -> Option<&Arc<TriggerDef>> {
        self.triggers_of(table).iter().find(|t| t.name == name)
    }
    /// A table's policies, by name.
    pub fn policies_of(&self, table: Oid) -> &[Arc<PolicyDef>] {
        self.links.get(&table).map_or(&[], |l| &l.policies)
    }
    pub fn policy_by_name(&self, table: Oid, name: &str) -> Option<&Arc<PolicyDef>> {
        self.policies_of(table).iter().find(|p| p.name == name)
    }
    /// Whether a table's policies are asked of what this role reads and writes.
    pub fn has_row_security(&self, table: &TableDef, role: Oid) -> bool {
        table.row_security.enabled
            && !self.role(role).is_some_and(|r| r.superuser || r.bypass_rls)
            && (table.row_security.forced || !self.acts_as(role, table.owner))
    }
    /// Tables with columns of a type that a user made, by age.
    pub fn tables_with(&self, ty: Oid) -> &[Oid] {
        self.links.get(&ty).map_or(&[], |l| &l.typed)
    }
    /// Foreign keys that reference the table.
    pub fn referencing(&self, table: Oid) -> &[Arc<ConstraintDef>] {
        self.links.get(&table).map_or(&[], |l| &l.referenced_by)
    }
    /// Views that name the relation or type, by age.
    pub fn views_of(&self, object: Oid) -> &[Oid] {
        self.links.get(&object).map_or(&[], |l| &l.views)
    }
    /// Functions, procedures, operators and casts that name the object, by age.
    pub fn routines_using(&self, object: Oid) -> &[Oid] {
        self.links.get(&object).map_or(&[], |l| &l.routines)
    }
    /// The functions and procedures of that name in that schema, by age.
    pub fn routines_in(&self, schema: Oid, name: &str) -> Vec<&Arc<RoutineDef>> {
        if self.routines.is_empty() {
            return vec![];
        }
        let named = self.routines.get(&(schema, name.to_string()));
        let oids = named.into_iter().flatten();
        oids.filter_map(|oid| self.routine(*oid)).collect()
    }
    /// The operators of that name in that schema, by age.
    pub fn operators_in(&self, schema: Oid, name: &str) -> Vec<&Arc<OperatorDef>> {
        if self.operators.is_empty() {
            return vec![];
        }
        let named = self.operators.get(&(schema, name.to_string()));
        let oids = named.into_iter().flatten();
        oids.filter_map(|oid| self.operator(*oid)).collect()
    }
    /// Whether users made operators at all.
    pub fn has_operators(&self) -> bool {
        !self.operators.is_empty()
    }
    /// The cast that a user made from a type to another.
    pub fn cast_between(&self, from: Oid, to: Oid) -> Option<&Arc<CastDef>> {
        if self.casts.is_empty() {
            return None;
        }
        self.cast(*self.casts.get(&(from, to))?)
    }
    /// Tables that inherit from it, partitions included, by age.
    pub fn children_of(&self, table: Oid) -> &[Oid] {
        self.links.get(&table).map_or(&[], |l| &l.children)
    }
    /// Partitions that are being detached.
    pub fn detaching(&self) -> &[Oid] {
        &self.detaching
    }
    /// The table's partition that is being detached.
    pub fn detaching_of(&self, table: Oid) -> Option<&Arc<TableDef>> {
        let mut found = self.detaching.iter().filter_map(|oid| self.table(*oid));
        found.find(|part| part.parents.first() == Some(&table))
    }
    /// The same definitions with these tables' children taken to be others, as far as those exist.
    pub fn with_families(self: &Arc<Catalog>, families: &[FamilyOf]) -> Catalog {
        let mut catalog = (**self).clone();
        catalog.version = new_version();
        for (table, children) in families {
            let there = children.iter().filter(|oid| self.table(**oid).is_some());
            let links = catalog.links_mut(*table);
            links.children = there.copied().collect();
            links.partitions = partition::bounds::Known::default();
            if let Some(table) = self.table(*table) {
                catalog.touch_trees(table);
            }
        }
        catalog.base.get_or_insert_with(|| self.clone());
        catalog
    }
    /// With partitions that are being detached as if they were not.
    pub fn with_attached(self: &Arc<Catalog>, parts: &[Oid]) -> Catalog {
        self.with_families(&self.families_with(parts))
    }
    /// The families of these partitions as if they were not being detached.
    pub fn families_with(&self, parts: &[Oid]) -> Vec<FamilyOf> {
        let mut families: Vec<FamilyOf> = Vec::new();
        for part in parts.iter().filter_map(|oid| self.table(*oid)) {
            for parent in &part.parents {
                let mut children = self.children_of(*parent).to_vec();
                children.push(part.oid);
                children.sort();
                children.dedup();
                families.push((*parent, children));
            }
        }
        families
    }
    /// The definitions as they are, where this is a catalog with other families.
    pub fn base(&self) -> Option<&Arc<Catalog>> {
        self.base.as_ref()
    }
    /// Sequences owned by the table's columns.
    pub fn sequences_of(&self, table: Oid) -> &[Oid] {
        self.links.get(&table).map_or(&[], |l| &l.sequences)
    }
    pub fn stats_of(&self, table: Oid) -> Option<&Arc<StatsDef>> {
        self.links.get(&table)?.stats.as_ref()
    }
    pub fn primary_key(&self, table: Oid) -> Option<&Arc<IndexDef>> {
        self.indexes_of(table).first().filter(|i| i.primary)
    }
    /// Whether the index belongs to a constraint that need not hold row by row.
    pub fn is_deferrable(&self, index: Oid) -> bool {
        self.index(index)
            .and_then(|index| self.constraint(index.constraint?))
            .is_some_and(|constraint| constraint.deferral.is_deferrable())
    }
    /// Whether the index keeps a key WITHOUT OVERLAPS.
    pub fn is_without_overlaps(&self, index: &IndexDef) -> bool {
        let constraint = index.constraint.and_then(|oid| self.constraint(oid));
        !index.terms.exclusion.is_empty()
            && constraint.is_some_and(|c| !matches!(c.kind, ConstraintKind::Exclusion { .. }))
    }
    /// Whether an index of a partitioned table has a part on every partition; else it says nothing
    /// of the rows. Any other is.
    pub fn is_valid(&self, index: &IndexDef) -> bool {
        let parts_of = |child: &Oid| {
            let mut own = self.indexes_of(*child).iter();
            own.any(|part| part.parent == Some(index.oid) && self.is_valid(part))
        };
        let table = self.table(index.table);
        table.is_none_or(|t| !t.is_partitioned())
            || self.children_of(index.table).iter().all(parts_of)
    }
    pub fn constraint_by_name(&self, table: Oid, name: &str) -> Option<&Arc<ConstraintDef>> {
        self.constraints_of(table).iter().find(|c| c.name == name)
    }
    /// COMMENT ON's text; `class` as in [`builtin::class`], `column` 0 for the object itself.
    pub fn comment(&self, class: Oid, object: Oid, column: u16) -> Option<&Arc<CommentDef>> {
        self.comment_def(*self.comments.get(&(class, object, column))?)
    }
    /// Comments on an object and on its first `columns` columns.
    pub fn comments_on(&self, object: Oid, columns: u16) -> Vec<Oid> {
        if self.comments.is_empty() {
            return Vec::new();
        }
        let classes = builtin::class::ALL.iter();
        let keys = classes.flat_map(|class| (0..=columns).map(|n| (*class, object, n)));
        keys.filter_map(|key| self.comments.get(&key).copied())
            .collect()
    }
    /// A relation's name as messages give it: schema-qualified unless the path finds it.
    pub fn display_name(&self, path: &[Oid], relation: &Relation) -> String {
        use throng_types::lexical::quote_ident;
        match (
            self.is_visible(path, relation),
            self.schema(relation.schema()),
        ) {
            (false, Some(schema)) => {
                format!(
                    "{}.{}",
                    quote_ident(&schema.name),
                    quote_ident(relation.name())
                )
            }
            _ => quote_ident(relation.name()),
        }
    }
}
