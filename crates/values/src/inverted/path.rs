//! `jsonb_path_ops`: the keys of a value are hashes of its scalars with the members' keys that lead
//! to them; and what a `jsonpath` asks for, of either class.
//!
//! ```text
//!   {"a": [1, {"b": 2}]}     hash(a, 1), hash(a, b, 2)
//!   @> {"a": [1]}            All [hash(a, 1)]
//!   @? $.a[*] ? (@.b == 2)   All [hash(a, b, 2)]
//! ```
//! Arrays leave no trace in a hash: the lax mode of paths walks through them unseen. A path's
//! condition is taken apart as far as it says that something must be there; the rest is taken for
//! everything.

use throng_types::jsonb::{JsonRef, View};
use throng_types::{Datum, Result, Text, interrupt, oid, stack};

use super::jsonb::{
    CONTAINS, CONTAINS_JSONB, EXISTS_PATH, MATCHES_PATH, PATH_EXISTS, PATH_MATCHES, write_scalar,
};
use super::{Keys, OperatorClass, Search};
use crate::func::EvalContext;
use crate::hash::hash_any_extended;
use crate::io::jsonpath::{self, Comparison, Item};

pub static PATH_OPS: OperatorClass = OperatorClass {
    oid: 10091,
    name: "jsonb_path_ops",
    family: 4037,
    input: oid::JSONB,
    key: oid::INT4,
    default: false,
    extension: None,
    strategies: &[CONTAINS_JSONB, EXISTS_PATH, MATCHES_PATH],
    support: &[
        (1, 351, "btint4cmp"),
        (2, 3485, "gin_extract_jsonb_path"),
        (3, 3486, "gin_extract_jsonb_query_path"),
        (4, 3487, "gin_consistent_jsonb_path"),
        (6, 3489, "gin_triconsistent_jsonb_path"),
    ],
    extract_value,
    extract_query,
};

/// The way to the whole value.
const ROOT: u64 = 0;

fn step_into(way: u64, key: &str) -> u64 {
    // Zero is no seed.
    hash_any_extended(key.as_bytes(), way.wrapping_add(1))
}

/// The key of a scalar at the end of a way.
fn hash(way: u64, value: &View<'_>) -> [u8; 4] {
    let mut bytes = Vec::new();
    write_scalar(value, &mut bytes);
    let hash = hash_any_extended(&bytes, way.wrapping_add(1));
    (hash as u32).to_be_bytes()
}

fn walk(value: JsonRef<'_>, way: u64, found: &mut dyn FnMut([u8; 4]) -> Result<()>) -> Result<()> {
    match value.view() {
        View::Array(elements) => {
            interrupt::poll()?;
            elements.iter().try_for_each(|e| walk(e, way, found))
        }
        View::Object(members) => {
            interrupt::poll()?;
            let mut members = members.iter();
            members.try_for_each(|(key, value)| walk(value, step_into(way, key), found))
        }
        scalar => found(hash(way, &scalar)),
    }
}

fn extract_value(value: &Datum, keys: &mut Keys) -> Result<()> {
    let Datum::Jsonb(value) = value else {
        return Ok(());
    };
    walk(value.root(), ROOT, &mut |hash| {
        keys.key(|out| {
            out.extend_from_slice(&hash);
            Ok(())
        })
    })
}

fn hash_search(hash: [u8; 4]) -> Result<Search> {
    Search::key(|out| {
        out.extend_from_slice(&hash);
        Ok(())
    })
}

fn extract_query(query: &Datum, strategy: i16, _: &EvalContext<'_>) -> Result<Search> {
    Ok(match (strategy, query) {
        (CONTAINS, Datum::Jsonb(value)) => {
            let mut keys = Vec::new();
            walk(value.root(), ROOT, &mut |hash| {
                keys.push(hash_search(hash)?);
                Ok(())
            })?;
            Search::All(keys)
        }
        (PATH_EXISTS, Datum::Text(path)) => exists(path, &ByWays)?,
        (PATH_MATCHES, Datum::Text(path)) => matches(path, &ByWays)?,
        _ => Search::Everything,
    })
}

/// What a path asks of a value that is known by the ways to its scalars.
struct ByWays;

impl Terms for ByWays {
    fn there(&self, _: &[Step<'_>]) -> Result<Search> {
        Ok(Search::Everything)
    }

    fn equal(&self, steps: &[Step<'_>], value: &View<'_>) -> Result<Search> {
        let mut way = ROOT;
        for step in steps {
            match step {
                Step::Key(key) => way = step_into(way, key),
                Step::Any => return Ok(Search::Everything),
            }
        }
        hash_search(hash(way, value))
    }
}

/// A step from a value to those inside it. Those into arrays are none.
#[derive(Clone, Copy)]
pub(super) enum Step<'p> {
    Key(&'p str),
    /// Through keys that are not known, perhaps several.
    Any,
}

/// What a class's keys can say.
pub(super) trait Terms {
    /// Something is there at the end of these steps.
    fn there(&self, steps: &[Step<'_>]) -> Result<Search>;
    /// Something equal to a scalar is.
    fn equal(&self, steps: &[Step<'_>], value: &View<'_>) -> Result<Search>;
}

/// What `@?` asks for: the path gives something.
pub(super) fn exists(path: &Text, terms: &dyn Terms) -> Result<Search> {
    let path = jsonpath::path(path)?;
    Reader { terms }.gives(&path.root, &[])
}

/// What `@@` asks for: the path gives true.
pub(super) fn matches(path: &Text, terms: &dyn Terms) -> Result<Search> {
    let path = jsonpath::path(path)?;
    let reader = Reader { terms };
    match &path.root[..] {
        [predicate] if !is_start(predicate) => reader.holds(predicate, &[]),
        chain => reader.compared(chain, Some(&View::Bool(true)), &[]),
    }
}

fn is_start(item: &Item) -> bool {
    matches!(item, Item::Root | Item::Current)
}

/// A chain as far as it was followed.
struct Followed<'p> {
    steps: Vec<Step<'p>>,
    /// What its filters ask for.
    filters: Vec<Search>,
    /// The values at its end are those at the end of the steps.
    exact: bool,
}

struct Reader<'t> {
    terms: &'t dyn Terms,
}

impl Reader<'_> {
    /// Follows a chain from where `@` stands; none where it does not begin in the value.
    fn follow<'p>(&self, chain: &'p [Item], current: &[Step<'p>]) -> Result<Option<Followed<'p>>> {
        stack::check()?;
        let steps = match chain.first() {
            Some(Item::Root) => Vec::new(),
            Some(Item::Current) => current.to_vec(),
            _ => return Ok(None),
        };
        let mut followed = Followed {
            steps,
            filters: Vec::new(),
            exact: true,
        };
        for item in &chain[1..] {
            match item {
                Item::Key(key) => followed.steps.push(Step::Key(key)),
                Item::AnyKey | Item::AnyLevel { .. } => followed.steps.push(Step::Any),
                Item::AnyElement | Item::Subscripts(_) => {}
                Item::Filter(condition) => {
                    let search = match &condition[..] {
                        [predicate] => self.holds(predicate, &followed.steps)?,
                        _ => Search::Everything,
                    };
                    followed.filters.push(search);
                }
                // Methods make other values.
                _ => {
                    followed.exact = false;
                    break;
                }
            }
        }
        Ok(Some(followed))
    }

    /// What must be there for a chain to give something.
    fn gives<'p>(&self, chain: &'p [Item], current: &[Step<'p>]) -> Result<Search> {
        self.compared(chain, None, current)
    }

    /// What must be there for a chain to give something, or something equal to a scalar.
    fn compared<'p>(
        &self,
        chain: &'p [Item],
        value: Option<&View<'_>>,
        current: &[Step<'p>],
    ) -> Result<Search> {
        let Some(followed) = self.follow(chain, current)? else {
            return Ok(Search::Everything);
        };
        let mut parts = followed.filters;
        parts.push(match value.filter(|_| followed.exact) {
            Some(value) => self.terms.equal(&followed.steps, value)?,
            None => self.terms.there(&followed.steps)?,
        });
        Ok(Search::All(parts))
    }

    /// What must be there for a predicate to hold.
    fn holds<'p>(&self, predicate: &'p Item, current: &[Step<'p>]) -> Result<Search> {
        stack::check()?;
        let of = |chain: &'p [Item]| match chain {
            [predicate] if !is_start(predicate) => self.holds(predicate, current),
            _ => Ok(Search::Everything),
        };
        Ok(match predicate {
            Item::And(pair) => Search::All(vec![of(&pair.0)?, of(&pair.1)?]),
            Item::Or(pair) => Search::Any(vec![of(&pair.0)?, of(&pair.1)?]),
            Item::Exists(chain) => self.gives(chain, current)?,
            Item::Compare(comparison, pair) => {
                let (left, right) = (&pair.0, &pair.1);
                let is_equal = *comparison == Comparison::Equal;
                let value = |chain| scalar_of(chain).filter(|_| is_equal);
                Search::All(vec![
                    self.compared(left, value(right).as_ref(), current)?,
                    self.compared(right, value(left).as_ref(), current)?,
                ])
            }
            Item::StartsWith(pair) => self.gives(&pair.0, current)?,
            Item::LikeRegex(like) => self.gives(&like.subject, current)?,
            _ => Search::Everything,
        })
    }
}

/// The scalar that a chain is.
fn scalar_of(chain: &[Item]) -> Option<View<'_>> {
    match chain {
        [Item::Null] => Some(View::Null),
        [Item::Bool(value)] => Some(View::Bool(*value)),
        [Item::Number(number)] => Some(View::Number(number.clone())),
        [Item::String(text)] => Some(View::String(text)),
        _ => None,
    }
}
