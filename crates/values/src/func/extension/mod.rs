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

mod hash;
mod pgcrypto;
mod uuid_ossp;

use crate::func::{Body, EvalContext, EvalFn, EvalResult, Function, SetFn, Volatility};
use foldhash::fast::FixedState;
use std::collections::HashMap;
use std::sync::LazyLock;
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

/// Every extension but PL/pgSQL, by name.
pub static EXTENSIONS: &[&Extension] = &[&pgcrypto::EXTENSION, &uuid_ossp::EXTENSION];

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

/// What computes a kept function; None where its extension is not known any more.
pub fn native(extension: &str, symbol: &str) -> Option<&'static Function> {
    NATIVES.get(extension)?.get(symbol)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            for required in extension.requires {
                assert!(known(required).is_some(), "{required}");
            }
        }
    }
}
