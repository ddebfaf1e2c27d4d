//! Who mentions whom, where a definition says it by the way: what a DROP or a rename would else
//! walk all definitions for.
//!
//! | asked by | found by |
//! | --- | --- |
//! | DROP SCHEMA, a session's end | what is in a schema |
//! | a rename, DROP FUNCTION, DROP TYPE | the words in kept texts: defaults, CHECKs, conditions, bodies |
//! | DROP SEQUENCE, DROP TYPE, triggers' functions and tables | the oids in definitions |
//! | CREATE TABLE | the names of NOT NULL constraints that are kept |

use throng_types::Oid;
use throng_types::sqltype::made;

use super::{Catalog, ConstraintKind, Map, Object, Oids, RoutineBody, TableDef, add_in_order};

/// What is mentioned, shared as maps are.
#[derive(Clone, Debug, Default)]
pub(super) struct Mentions {
    /// By schema: tables, views, sequences, types, routines, operators.
    members: Map<Oid, Oids>,
    /// By word, as [`words`] gives it: whose kept texts have it.
    words: Map<String, Oids>,
    /// By object: whose definitions have its oid.
    users: Map<Oid, Oids>,
    /// By schema and name: tables with a NOT NULL constraint whose name is kept.
    not_null_names: Map<(Oid, String), Oids>,
    /// By schema: temporary tables with which something happens at COMMIT.
    on_commit: Map<Oid, Oids>,
}

/// The words of a text, in lower case: an identifier is one, or several if it was quoted.
fn words(text: &str) -> Vec<String> {
    let within = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$' || !c.is_ascii();
    let words = text.split(|c| !within(c)).filter(|word| !word.is_empty());
    let mut words: Vec<String> = words.map(str::to_ascii_lowercase).collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// The texts of an object that name others and are kept as texts.
fn texts(object: &Object) -> Vec<&str> {
    match object {
        Object::Table(def) => {
            let columns = def.columns.iter();
            let computed =
                columns.flat_map(|c| [c.default.as_ref(), c.generated.as_ref().map(|g| &g.expr)]);
            let parts = def.partitioned.iter().flat_map(|key| &key.parts);
            let keys = parts.map(|part| part.expr.as_ref());
            computed.chain(keys).flatten().map(String::as_str).collect()
        }
        Object::View(def) => {
            let defaults = def.defaults.iter();
            defaults.filter_map(|own| own.text.as_deref()).collect()
        }
        Object::Constraint(def) => match &def.kind {
            ConstraintKind::Check { expr, .. } => vec![expr],
            _ => Vec::new(),
        },
        Object::Index(def) => {
            let exprs = def.terms.exprs.iter().map(|e| &e.text);
            exprs
                .chain(&def.terms.predicate)
                .map(String::as_str)
                .collect()
        }
        Object::Trigger(def) => def.when.iter().map(|when| when.text.as_str()).collect(),
        Object::Policy(def) => def.conditions().map(|c| c.text.as_str()).collect(),
        Object::Type(def) => {
            let domain = def.domain.iter();
            let texts =
                domain.flat_map(|d| d.default.iter().chain(d.checks.iter().map(|c| &c.expr)));
            texts.map(String::as_str).collect()
        }
        Object::Routine(def) => {
            let body = match &def.body {
                RoutineBody::Standard { text, .. } => Some(text),
                _ => None,
            };
            let defaults = def.args.iter().filter_map(|arg| arg.default.as_ref());
            defaults.chain(body).map(String::as_str).collect()
        }
        _ => Vec::new(),
    }
}

/// The objects that a definition has the oids of and no list of [`super::Links`] tells.
fn used(object: &Object) -> Vec<Oid> {
    let mut used: Vec<Oid> = match object {
        Object::Table(def) => def.columns.iter().filter_map(|c| c.sequence).collect(),
        Object::View(def) => def.defaults.iter().filter_map(|own| own.sequence).collect(),
        Object::Trigger(def) => {
            let other = def.constraint.and_then(|constraint| constraint.other);
            let when = def.when.iter().flat_map(|when| &when.uses).copied();
            when.chain(other).chain([def.function]).collect()
        }
        Object::Policy(def) => {
            let uses = def.conditions().flat_map(|c| &c.uses);
            uses.map(|used| used.object).collect()
        }
        Object::Type(def) => {
            let over = def.domain.iter().filter_map(|domain| domain.over);
            let fields = def.fields.iter().flatten().filter(|field| !field.dropped);
            let range = def.range.iter().flat_map(|r| [r.subtype, r.difference]);
            let range = range.filter(|oid| *oid != Oid::NONE);
            over.chain(fields.map(|field| field.shown_type()))
                .chain(range)
                .collect()
        }
        Object::Extension(def) => def.members.iter().chain(&def.requires).copied().collect(),
        _ => Vec::new(),
    };
    used.sort_unstable();
    used.dedup();
    used
}

fn schema_of(object: &Object) -> Option<Oid> {
    match object {
        Object::Table(def) => Some(def.schema),
        Object::View(def) => Some(def.schema),
        Object::Sequence(def) => Some(def.schema),
        Object::Type(def) => Some(def.schema),
        Object::Routine(def) => Some(def.schema),
        Object::Operator(def) => Some(def.schema),
        _ => None,
    }
}

/// The names of NOT NULL constraints that a table keeps.
fn not_null_names(table: &TableDef) -> impl Iterator<Item = (Oid, String)> {
    let columns = table.columns.iter().filter(|c| c.not_null && !c.dropped);
    columns.filter_map(|c| Some((table.schema, c.not_null_name.clone()?)))
}

/// Puts an object into a list, or takes it out; a list that is empty is none.
fn note<K: Clone + std::hash::Hash + Eq>(all: &mut Map<K, Oids>, key: K, oid: Oid, is_here: bool) {
    if is_here {
        all.entry(key).or_default().insert(oid);
        return;
    }
    if let Some(list) = all.get_mut(&key) {
        list.remove(&oid);
        if list.is_empty() {
            all.remove(&key);
        }
    }
}

impl Mentions {
    /// An object has come, or goes.
    pub fn note(&mut self, object: &Object, is_here: bool) {
        let oid = object.oid();
        if let Some(schema) = schema_of(object) {
            note(&mut self.members, schema, oid, is_here);
        }
        for word in texts(object).into_iter().flat_map(words) {
            note(&mut self.words, word, oid, is_here);
        }
        for used in used(object) {
            note(&mut self.users, used, oid, is_here);
        }
        if let Object::Table(table) = object {
            for name in not_null_names(table) {
                note(&mut self.not_null_names, name, oid, is_here);
            }
            if table.persistence.acts_on_commit() {
                note(&mut self.on_commit, table.schema, oid, is_here);
            }
        }
    }
}

fn listed<K: std::hash::Hash + Eq>(all: &Map<K, Oids>, key: &K) -> Vec<Oid> {
    all.get(key).into_iter().flatten().copied().collect()
}

impl Catalog {
    /// Tables, views, sequences, types, routines and operators of a schema, by oid.
    pub fn members_of(&self, schema: Oid) -> Vec<Oid> {
        listed(&self.mentions.members, &schema)
    }

    /// Objects whose kept texts may say a name, by oid; None where a name has no word in it, so
    /// that any may.
    pub fn saying(&self, name: &str) -> Option<Vec<Oid>> {
        let word = words(name).into_iter().max_by_key(String::len)?;
        Some(listed(&self.mentions.words, &word))
    }

    /// Tables and views whose columns a sequence numbers, triggers that a function, a table or what
    /// their conditions name is of, and types over a type; by oid.
    pub fn users_of(&self, object: Oid) -> Vec<Oid> {
        listed(&self.mentions.users, &object)
    }

    /// Domains over a type or over arrays of it, and composite types with fields of either, by oid.
    pub fn types_over(&self, ty: Oid) -> Vec<Oid> {
        let mut all = self.users_of(ty);
        for oid in self.users_of(made::array_oid(ty)) {
            add_in_order(&mut all, oid);
        }
        all.retain(|oid| self.made_type(*oid).is_some());
        all
    }

    /// Whether another table of a schema keeps this name for a NOT NULL constraint.
    pub fn keeps_not_null_name(&self, schema: Oid, name: &str, but: Oid) -> bool {
        let tables = self.mentions.not_null_names.get(&(schema, name.to_owned()));
        tables.into_iter().flatten().any(|table| *table != but)
    }

    /// Temporary tables of a session's schema with which something happens at COMMIT, by oid.
    pub fn on_commit(&self, schema: Oid) -> Vec<Oid> {
        listed(&self.mentions.on_commit, &schema)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_by_its_longest_word() {
        assert_eq!(
            words("nextval('t_id_seq'::regclass)"),
            ["nextval", "regclass", "t_id_seq"]
        );
        assert_eq!(words("\"My Table\".a > 0"), ["0", "a", "my", "table"]);
        assert_eq!(words("größe$1"), ["größe$1"]);
        assert!(words("\"+-\"").is_empty());
    }
}
