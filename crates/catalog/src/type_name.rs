//! Names in a schema's name space of types: types that users made, relations' row types, and the
//! array types of both.
//!
//! Each of these types has an array type, whose name the system chooses when the type gets its own:
//! `_` before it, and a number after it where that is taken. An array type gives way to whoever
//! wants its name, for users know it as `name[]`. A definition stores the name only where it is not
//! the plain one.

use std::sync::Arc;

use throng_syntax::parse::parse_type;
use throng_types::sqltype::made;
use throng_types::{Oid, Result};
use throng_values::func::WrittenType;

use super::{Catalog, CatalogEdit, Object};

/// Bytes of the longest name.
const LONGEST: usize = 63;

/// `_name`, or `_name_1` for the first numbered one, cut to what a name may be long.
fn array_name(name: &str, number: u32) -> String {
    let suffix = match number {
        0 => String::new(),
        n => format!("_{n}"),
    };
    let room = LONGEST - 1 - suffix.len();
    format!("_{}{suffix}", &name[..name.floor_char_boundary(room)])
}

/// A definition's name as a type.
struct TypeName<'o> {
    schema: Oid,
    name: &'o str,
    ty: Oid,
    array_name: &'o Option<String>,
}

impl TypeName<'_> {
    fn of(object: &Object) -> Option<TypeName<'_>> {
        let (schema, name, ty, array_name) = match object {
            Object::Type(d) => (d.schema, &d.name, d.oid, &d.array_name),
            Object::Table(d) => (
                d.schema,
                &d.name,
                made::composite_oid(d.oid)?,
                &d.array_name,
            ),
            Object::View(d) => (
                d.schema,
                &d.name,
                made::composite_oid(d.oid)?,
                &d.array_name,
            ),
            _ => return None,
        };
        Some(TypeName {
            schema,
            name,
            ty,
            array_name,
        })
    }

    fn of_array(&self) -> String {
        match self.array_name {
            Some(name) => name.clone(),
            None => array_name(self.name, 0),
        }
    }
}

fn set_array_name(object: &mut Object, name: Option<String>) {
    match object {
        Object::Type(d) if d.array_name != name => Arc::make_mut(d).array_name = name,
        Object::Table(d) if d.array_name != name => Arc::make_mut(d).array_name = name,
        Object::View(d) if d.array_name != name => Arc::make_mut(d).array_name = name,
        _ => {}
    }
}

impl Catalog {
    /// The type of that name in the schema, array types included.
    pub fn type_named_in(&self, schema: Oid, name: &str) -> Option<Oid> {
        let key = (schema, name.to_owned());
        if let Some(oid) = self.types.get(&key) {
            return Some(*oid);
        }
        let relation = self.relations.get(&key).and_then(|oid| self.object(*oid));
        if let Some(of_rows) = relation.and_then(TypeName::of) {
            return Some(of_rows.ty);
        }
        self.array_names.get(&key).map(|ty| made::array_oid(*ty))
    }

    /// The first of that name along the path.
    pub fn type_named(&self, path: &[Oid], name: &str) -> Option<Oid> {
        path.iter()
            .find_map(|schema| self.type_named_in(*schema, name))
    }

    /// The name of the array type over a type that a user made, or over a relation's rows.
    pub fn array_name(&self, element: Oid) -> Option<String> {
        let of_rows =
            || self.object(made::serial(element).filter(|_| made::is_composite(element))?);
        let object = self.object(element).or_else(of_rows)?;
        TypeName::of(object).map(|named| named.of_array())
    }

    /// Notes what an object's array type is called, and tells the process of a range type.
    pub(super) fn note_array_name(&mut self, object: &Object) {
        if let Object::Type(def) = object
            && let Some(range) = &def.range
        {
            throng_types::range::declare(def.oid, range.subtype);
        }
        if let Some(named) = TypeName::of(object) {
            let key = (named.schema, named.of_array());
            self.array_names.insert(key, named.ty);
        }
    }

    pub(super) fn forget_array_name(&mut self, object: &Object) {
        if let Some(named) = TypeName::of(object) {
            let key = (named.schema, named.of_array());
            if self.array_names.get(&key) == Some(&named.ty) {
                self.array_names.remove(&key);
            }
        }
    }

    /// What the array type over a type of that name would be called, where `own` is the name of a
    /// type about to be.
    fn free_array_name(&self, schema: Oid, name: &str, own: &str) -> Option<String> {
        let free = |candidate: &String| {
            candidate != own && self.type_named_in(schema, candidate).is_none()
        };
        (0..).map(|number| array_name(name, number)).find(free)
    }
}

impl CatalogEdit {
    /// Before an object is put: its array type gets a name where the object is new or gets another
    /// name, and an array type that has the object's name gets another.
    pub(super) fn settle_array_names(&mut self, object: &mut Object) {
        let oid = object.oid();
        let old = self.catalog.object(oid).cloned();
        if let Object::Sequence(sequence) = object {
            // No type, and yet it takes the name of one when it is made.
            if old.is_none() {
                let (schema, name) = (sequence.schema, sequence.name.clone());
                self.move_array_name(schema, &name, oid);
            }
            return;
        }
        let Some(new) = TypeName::of(object) else {
            return;
        };
        let (schema, name, own_type) = (new.schema, new.name.to_owned(), new.ty);
        let before = old.as_ref().and_then(TypeName::of);
        let chosen = match before {
            Some(before) if before.name == name => before.array_name.clone(),
            _ if self.catalog.array_names.get(&(schema, name.clone())) == Some(&own_type) => {
                self.catalog.free_array_name(schema, &name, &name)
            }
            _ => {
                self.move_array_name(schema, &name, oid);
                self.catalog.free_array_name(schema, &name, &name)
            }
        };
        let plain = array_name(&name, 0);
        set_array_name(object, chosen.filter(|chosen| *chosen != plain));
    }

    /// The array type that has the name, where one has it, gets another.
    fn move_array_name(&mut self, schema: Oid, name: &str, wanted_by: Oid) {
        let Some(ty) = self.catalog.array_names.get(&(schema, name.to_owned())) else {
            return;
        };
        let of_rows = |ty| self.catalog.object(made::serial(ty)?);
        let Some(object) = self.catalog.object(*ty).or_else(|| of_rows(*ty)) else {
            return;
        };
        let mut object = object.clone();
        if object.oid() == wanted_by {
            return;
        }
        let free = self.catalog.free_array_name(schema, name, name);
        set_array_name(&mut object, free);
        self.touch(object.oid(), object.is_shared());
        self.catalog.insert(object);
    }
}

/// Parses a type's name for [`EvalHost::parse_type`].
///
/// [`EvalHost::parse_type`]: throng_values::func::EvalHost::parse_type
pub fn written_type(name: &str) -> Result<WrittenType> {
    let written = parse_type(name)?;
    Ok(WrittenType {
        schema: written.name.schema().map(str::to_owned),
        name: written.name.last().to_owned(),
        is_array: written.array,
        modifiers: written.modifiers,
    })
}
