//! The extensions that CREATE EXTENSION knows, each by one description.
//!
//! An [`Extension`] lists what it brings as SQL would declare it, beside what computes it; a new
//! one is a file here and a line in [`EXTENSIONS`]. CREATE EXTENSION makes catalog objects of the
//! list, in the extension's schema and with oids of that database: names, rights, search paths,
//! overloads and dumps are those of a user's functions.
//!
//! ```text
//! "digest(text, text) returns bytea immutable strict"      the declaration
//!  ───── symbol ─────                                      by which a kept function finds its code
//! ```
//! A symbol never changes its meaning: functions of old data directories are found by it.

mod citext;
mod fuzzystrmatch;
mod hash;
pub(crate) mod hstore;
pub(crate) mod pg_trgm;
mod pgcrypto;
mod unaccent;
mod uuid_ossp;
mod vector;

use crate::func::{
    Aggregate, Body, Cast, EvalContext, EvalFn, EvalResult, Function, Operator, SetFn, Volatility,
};
use foldhash::fast::FixedState;
use std::collections::HashMap;
use std::sync::LazyLock;
use throng_types::sqltype::{element_of, made};
use throng_types::{Datum, Error, Oid};

/// PL/pgSQL is the extension that every database is born with.
pub const NAME: &str = "plpgsql";
pub const VERSION: &str = "1.0";
pub const DESCRIPTION: &str = "PL/pgSQL procedural language";

/// What an extension is and brings.
pub struct Extension {
    pub name: &'static str,
    pub version: &'static str,
    pub comment: &'static str,
    /// It may be moved to another schema.
    pub relocatable: bool,
    /// Whoever may create in the database may install it.
    pub trusted: bool,
    /// Extensions that must be there.
    pub requires: &'static [&'static str],
    pub functions: &'static [Native],
    pub types: &'static [ExtensionType],
    pub operators: &'static [Operator],
    pub casts: &'static [Cast],
    pub aggregates: &'static [Aggregate],
}

impl Extension {
    /// What has no requirements, and nothing but functions.
    const PLAIN: Extension = Extension {
        name: "",
        version: "",
        comment: "",
        relocatable: true,
        trusted: true,
        requires: &[],
        functions: &[],
        types: &[],
        operators: &[],
        casts: &[],
        aggregates: &[],
    };

    /// Its casts with their oids, which are those of operators that it has not.
    pub fn cast_oids(&self) -> impl Iterator<Item = (Oid, &'static Cast)> + use<> {
        const FIRST_CAST: u32 = OPERATORS_EACH / 2;
        let place = EXTENSIONS.iter().position(|e| e.name == self.name);
        let first = operator_oid(place.unwrap_or(0) as u32, FIRST_CAST);
        (first..).map(Oid).zip(self.casts)
    }
}

/// A base type of an extension: its oid is one of those that [`made`] lists, and its forms are told
/// in `io`.
pub struct ExtensionType {
    pub oid: Oid,
    pub name: &'static str,
}

/// A function of an extension.
pub struct Native {
    /// As CREATE FUNCTION has it, from its name to its attributes.
    pub declaration: &'static str,
    pub body: Body,
}

const fn scalar(declaration: &'static str, eval: EvalFn) -> Native {
    Native {
        declaration,
        body: Body::Scalar(eval),
    }
}

const fn rows(declaration: &'static str, rows: SetFn) -> Native {
    Native {
        declaration,
        body: Body::Set(rows),
    }
}

/// The bytes of an argument that is a byte string.
fn bytes(value: &Datum) -> &[u8] {
    match value {
        Datum::Bytea(bytes) => bytes,
        _ => &[],
    }
}

/// Every extension but PL/pgSQL, in an order that stays: their places are in oids.
pub static EXTENSIONS: &[&Extension] = &[
    &citext::EXTENSION,
    &hstore::EXTENSION,
    &pg_trgm::EXTENSION,
    &fuzzystrmatch::EXTENSION,
    &pgcrypto::EXTENSION,
    &unaccent::EXTENSION,
    &vector::EXTENSION,
    &uuid_ossp::EXTENSION,
];

/// The extension of that name.
pub fn known(name: &str) -> Option<&'static Extension> {
    EXTENSIONS.iter().copied().find(|e| e.name == name)
}

impl Native {
    /// What it is found by: its name and arguments.
    pub fn symbol(&self) -> &'static str {
        let end = self.declaration.find(" returns ");
        &self.declaration[..end.unwrap_or(self.declaration.len())]
    }

    fn name(&self) -> &'static str {
        let end = self.declaration.find('(');
        &self.declaration[..end.unwrap_or(self.declaration.len())]
    }

    fn has(&self, word: &str) -> bool {
        self.declaration.split_whitespace().any(|w| w == word)
    }

    /// Its types are those of the kept function: the catalog's.
    fn function(&self, number: u32) -> Function {
        let volatility = match (self.has("immutable"), self.has("stable")) {
            (true, _) => Volatility::Immutable,
            (_, true) => Volatility::Stable,
            _ => Volatility::Volatile,
        };
        Function {
            strict: self.has("strict"),
            volatility,
            body: self.body,
            ..Function::new(number, self.name(), &[], Oid::NONE, unbound)
        }
    }
}

/// Stands where a native's own body comes.
fn unbound(_: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Err(Error::internal("a native function without its body").into())
}

/// Numbers that tell native functions apart in memory; no catalog has them.
const FIRST_NUMBER: u32 = 0xff00_0000;

type Named<T> = HashMap<&'static str, T, FixedState>;

/// Functions by their extensions and symbols.
static NATIVES: LazyLock<Named<Named<Function>>> = LazyLock::new(|| {
    let mut number = FIRST_NUMBER;
    let mut all: Named<Named<Function>> = HashMap::default();
    for extension in EXTENSIONS {
        let own = all.entry(extension.name).or_default();
        for native in extension.functions {
            own.insert(native.symbol(), native.function(number));
            number += 1;
        }
    }
    all
});

/// The oids of operators: an extension's place here is the first of its own, and never another's.
const FIRST_OPERATOR: u32 = made::FIRST - (1 << 16);
const OPERATORS_EACH: u32 = 1 << 8;

/// The oid of an operator, by its extension's number and its own.
const fn operator_oid(extension: u32, number: u32) -> u32 {
    FIRST_OPERATOR + extension * OPERATORS_EACH + number
}

/// The oid of an operator class or family, by its extension's number and its own: behind those of
/// operators and casts.
pub(crate) const fn class_oid(extension: u32, number: u32) -> u32 {
    const FIRST_CLASS: u32 = OPERATORS_EACH / 4 * 3;
    operator_oid(extension, FIRST_CLASS + number)
}

/// An operator as the tables of extensions write it; 0 in the place of an operator that is none.
const fn operator(
    (extension, number): (u32, u32),
    name: &'static str,
    (left, right, ret): (Oid, Oid, Oid),
    code: &'static str,
    (commutator, negator): (u32, u32),
    eval: EvalFn,
) -> Operator {
    const fn related(extension: u32, number: u32) -> u32 {
        match number {
            0 => 0,
            number => operator_oid(extension, number),
        }
    }
    let oid = operator_oid(extension, number);
    Operator::new(oid, name, left, right, ret, (0, code), eval)
        .related(related(extension, commutator), related(extension, negator))
}

/// The extension that an operator is of.
pub fn extension_of_operator(oid: Oid) -> Option<&'static Extension> {
    if !(FIRST_OPERATOR..made::FIRST).contains(&oid.0) {
        return None;
    }
    let mut all = EXTENSIONS.iter().copied();
    all.find(|e| e.operators.iter().any(|o| o.oid == oid))
}

/// The cast of an extension with this oid.
pub fn cast_by_oid(oid: Oid) -> Option<&'static Cast> {
    let mut all = EXTENSIONS.iter().flat_map(|e| e.cast_oids());
    all.find(|(known, _)| *known == oid).map(|(_, cast)| cast)
}

/// The extension that a type, or a type of arrays of it, is of.
pub fn extension_of_type(ty: Oid) -> Option<&'static Extension> {
    let ty = element_of(ty).unwrap_or(ty);
    if !made::is_base(ty) {
        return None;
    }
    let mut all = EXTENSIONS.iter().copied();
    all.find(|e| e.types.iter().any(|t| t.oid == ty))
}

/// The extensions whose types are among these: whoever has a value has its type's operators.
pub(super) fn of_types(types: &[Oid]) -> Vec<&'static Extension> {
    let mut found: Vec<&'static Extension> = Vec::new();
    for extension in types.iter().filter_map(|ty| extension_of_type(*ty)) {
        if !found.iter().any(|f| f.name == extension.name) {
            found.push(extension);
        }
    }
    found
}

/// What computes a kept function; None where its extension is not known any more.
pub fn native(extension: &str, symbol: &str) -> Option<&'static Function> {
    NATIVES.get(extension)?.get(symbol)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_have_the_numbers_of_their_extensions() {
        let mut known = std::collections::BTreeSet::new();
        for (place, extension) in EXTENSIONS.iter().enumerate() {
            for operator in extension.operators {
                let number = operator.oid.0 - FIRST_OPERATOR;
                assert_eq!(number / OPERATORS_EACH, place as u32, "{}", extension.name);
                assert!(number % OPERATORS_EACH < OPERATORS_EACH / 2);
                assert!(known.insert(operator.oid), "{}", operator.name);
                for related in [operator.commutator, operator.negator] {
                    let mut own = extension.operators.iter();
                    assert!(related == Oid::NONE || own.any(|o| o.oid == related));
                }
            }
        }
    }

    #[test]
    fn every_function_has_a_symbol_of_its_own() {
        let count: usize = EXTENSIONS.iter().map(|e| e.functions.len()).sum();
        assert_eq!(NATIVES.values().map(HashMap::len).sum::<usize>(), count);
        for extension in EXTENSIONS {
            for native in extension.functions {
                assert!(
                    native.declaration.contains(" returns "),
                    "{}",
                    native.declaration
                );
                let found = super::native(extension.name, native.symbol());
                assert_eq!(found.map(|f| f.name), Some(native.name()));
            }
            for operator in extension.operators {
                let mut natives = extension.functions.iter();
                let code = natives.find(|native| native.name() == operator.code_name);
                assert!(code.is_some(), "{}", operator.code_name);
            }
            for required in extension.requires {
                assert!(known(required).is_some(), "{required}");
            }
        }
    }
}
