//! Choosing among overloads, and common types: chapter 10 of PostgreSQL's manual.
//!
//! An untyped literal or parameter has type `unknown` here. The steps, for functions and operators
//! alike:
//! 1. An exact match of all types wins. (For an operator, an unknown operand is first taken to be
//!    of the other one's type.)
//! 2. Candidates that the arguments cannot be implicitly coerced to are dropped; unknown goes
//!    everywhere.
//! 3. Most exact matches win; then most exact or preferred ones.
//! 4. Unknown positions choose a category (string if any candidate has it, else the one all agree
//!    on), preferring preferred types.
//! 5. If all known arguments are of one type, the unknown ones are taken to be of it too.

use super::cast::CastContext;
use super::coerce::{can_coerce, category, is_array, is_preferred};
use super::polymorphic::{actualize, is_compatible_family, is_polymorphic, polymorphic_element};
use super::{
    Aggregate, Function, WindowFunction, aggregates_named, extension, functions_named, named,
    windows_named,
};
use throng_types::error::state;
use throng_types::sqltype::{array_of, element_of, type_name};
use throng_types::{Error, Oid, Result, oid};

/// What a call turned out to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Callee {
    Scalar(&'static Function),
    /// Returns rows.
    Set(&'static Function),
    /// Made by a user: its place among those given.
    Routine(usize),
    Aggregate(&'static Aggregate),
    Window(&'static WindowFunction),
}

/// A call with its overload chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    pub callee: Callee,
    /// What each given argument must be cast to, polymorphic types made actual. `"any"` arguments
    /// keep their own type.
    pub arg_types: Vec<Oid>,
    /// The same as they are declared.
    pub declared: Vec<Oid>,
    /// Where each parameter comes from; empty: from the arguments as they are given.
    pub fill: Vec<Filler>,
    pub ret: Oid,
    /// From this argument on they fill the variadic parameter, spread out (the function takes them
    /// so).
    pub variadic_from: Option<usize>,
}

/// Where a parameter's value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filler {
    Given(usize),
    /// The default of this parameter.
    Default(usize),
}

/// A call as it is written.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    pub name: &'a str,
    pub args: &'a [Oid],
    /// Those given by name, which are the last, by their places.
    pub names: &'a [(usize, String)],
    /// VARIADIC before the last.
    pub variadic: bool,
    /// Users' functions of that name.
    pub routines: &'a [Signature],
    /// The place of `pg_catalog` in the path; none: built-in ones are not asked for.
    pub builtin: Option<usize>,
    /// Whether a user's cast takes one type to another anywhere.
    pub casts: &'a dyn Fn(Oid, Oid) -> bool,
}

/// Whether a user's cast takes one type to another anywhere.
pub(super) type Casts<'a> = &'a dyn Fn(Oid, Oid) -> bool;

/// No cast of a user's.
pub const NO_CASTS: &dyn Fn(Oid, Oid) -> bool = &|_, _| false;

/// A function that a user made, as the choice among overloads needs it.
#[derive(Clone, Debug)]
pub struct Signature {
    /// Its schema's place in the search path.
    pub rank: usize,
    /// The types of the arguments that a call gives, and their names.
    pub types: Vec<Oid>,
    pub names: Vec<String>,
    /// How many of the last may be left out.
    pub defaults: usize,
    /// The last takes any number of values.
    pub is_variadic: bool,
    pub ret: Oid,
}

/// One way to call a name with so many arguments.
pub(super) struct Candidate<T> {
    /// For each given argument.
    pub args: Vec<Oid>,
    variadic_from: Option<usize>,
    pub item: T,
    fill: Vec<Filler>,
    /// Its schema's place in the search path.
    pub rank: usize,
    /// How many parameters have their defaults.
    defaulted: usize,
}

impl<T> Candidate<T> {
    pub fn of_rank(self, rank: usize) -> Candidate<T> {
        Candidate { rank, ..self }
    }

    pub fn plain(args: Vec<Oid>, variadic_from: Option<usize>, item: T) -> Candidate<T> {
        Candidate {
            args,
            variadic_from,
            item,
            fill: vec![],
            rank: 0,
            defaulted: 0,
        }
    }
}

/// The parameters of a function for matching: their types, names (where any are given by name) and
/// how many have defaults.
struct Parameters<'a> {
    types: &'a [Oid],
    names: &'a dyn Fn(usize) -> Option<&'a str>,
    defaults: usize,
}

/// Which parameter each argument is, in mixed notation too; None where that does not fit.
fn matched(params: &Parameters<'_>, given: &Given<'_>) -> Option<(Vec<Oid>, Vec<Filler>)> {
    let (count, n) = (params.types.len(), given.args.len());
    if n > count {
        return None;
    }
    let mut slots: Vec<Option<usize>> = vec![None; count];
    let mut places = Vec::with_capacity(n);
    for i in 0..n {
        let name = given.names.iter().find(|(at, _)| *at == i);
        let place = match name {
            None => i,
            Some((_, name)) => {
                (0..count).find(|place| (params.names)(*place) == Some(name.as_str()))?
            }
        };
        if slots[place].replace(i).is_some() {
            return None;
        }
        places.push(params.types[place]);
    }
    let first_default = count - params.defaults;
    let fill = slots
        .into_iter()
        .enumerate()
        .map(|(place, slot)| match slot {
            Some(i) => Some(Filler::Given(i)),
            None => (place >= first_default).then_some(Filler::Default(place)),
        });
    Some((places, fill.collect::<Option<Vec<_>>>()?))
}

fn routine_candidate(
    place: usize,
    routine: &Signature,
    given: &Given<'_>,
) -> Option<Candidate<Callee>> {
    let Signature { rank, types, .. } = routine;
    let (rank, item) = (*rank, Callee::Routine(place));
    let variadic = routine.is_variadic;
    if given.variadic && !variadic {
        return None;
    }
    if variadic && !given.variadic {
        if !given.names.is_empty() {
            return None;
        }
        if given.args.len() >= types.len() {
            let fixed = types.len() - 1;
            let element = match types[fixed] {
                oid::ANY => oid::ANY,
                array => polymorphic_element(array).or_else(|| element_of(array))?,
            };
            let mut args = types[..fixed].to_vec();
            args.resize(given.args.len(), element);
            return Some(Candidate {
                rank,
                ..Candidate::plain(args, Some(fixed), item)
            });
        }
    }
    let params = Parameters {
        types,
        names: &|place| routine.names.get(place).map(String::as_str),
        defaults: routine.defaults,
    };
    let (args, fill) = matched(&params, given)?;
    Some(Candidate {
        rank,
        defaulted: types.len() - args.len(),
        fill,
        ..Candidate::plain(args, None, item)
    })
}

/// A built-in function for a call with names or with VARIADIC.
fn unusual_candidate(f: &'static Function, given: &Given<'_>) -> Option<Candidate<Callee>> {
    let item = match f.returns_set() {
        true => Callee::Set(f),
        false => Callee::Scalar(f),
    };
    let mut types = f.args.to_vec();
    if given.variadic {
        if f.variadic == Oid::NONE {
            return None;
        }
        let last = types.last_mut()?;
        *last = match f.variadic {
            oid::ANY => oid::ANY,
            element => array_of(element)?,
        };
    } else if f.variadic != Oid::NONE {
        return None;
    }
    let names = named::arguments(f.oid);
    let params = Parameters {
        types: &types,
        names: &|place| names.get(place).copied(),
        defaults: f.defaults.into(),
    };
    let (args, fill) = matched(&params, given)?;
    // What is left out at the end, such a function does without.
    let given_last = fill
        .iter()
        .rposition(|f| matches!(f, Filler::Given(_)))
        .map_or(0, |i| i + 1);
    Some(Candidate {
        defaulted: fill.len() - args.len(),
        fill: fill[..given_last].to_vec(),
        ..Candidate::plain(args, None, item)
    })
}

/// Of candidates that take the same types only one stays: the first in the path, then the one that
/// needs nothing added. None: there is no telling between some.
fn without_doubles<T>(candidates: Vec<Candidate<T>>) -> Vec<Candidate<T>> {
    let mut kept: Vec<Candidate<T>> = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        let rival = kept.iter().position(|k| k.args == candidate.args);
        let Some(rival) = rival else {
            kept.push(candidate);
            continue;
        };
        let key = |c: &Candidate<T>| (c.rank, c.variadic_from.is_some(), c.defaulted > 0);
        if key(&candidate) < key(&kept[rival]) {
            kept[rival] = candidate;
        } else if key(&candidate) == key(&kept[rival]) {
            kept.push(candidate);
        }
    }
    kept
}

/// The parameter types for a call with `n` arguments, and from where they are variadic; None where
/// the count does not fit.
fn spread(
    args: &[Oid],
    variadic: Oid,
    defaults: usize,
    n: usize,
) -> Option<(Vec<Oid>, Option<usize>)> {
    if variadic == Oid::NONE {
        return (n <= args.len() && n + defaults >= args.len()).then(|| (args[..n].to_vec(), None));
    }
    let fixed = args.len() - 1;
    if n <= fixed {
        return None;
    }
    let mut spread = args[..fixed].to_vec();
    spread.resize(n, variadic);
    Some((spread, Some(fixed)))
}

/// Chooses the built-in function or aggregate that `name(args)` calls. 42883 where there is none,
/// 42725 where it is not clear.
pub fn resolve_function(name: &str, args: &[Oid]) -> Result<Resolved> {
    resolve_call(&Given {
        name,
        args,
        names: &[],
        variadic: false,
        routines: &[],
        builtin: Some(0),
        casts: NO_CASTS,
    })
}

/// The built-in candidates of a call.
fn builtin_candidates(given: &Given<'_>, candidates: &mut Vec<Candidate<Callee>>) {
    let Given { name, args, .. } = *given;
    let unusual = given.variadic || !given.names.is_empty();
    for f in functions_named(name) {
        if unusual {
            candidates.extend(unusual_candidate(f, given));
        } else if let Some((types, variadic_from)) =
            spread(f.args, f.variadic, f.defaults.into(), args.len())
        {
            let item = if f.returns_set() {
                Callee::Set(f)
            } else {
                Callee::Scalar(f)
            };
            candidates.push(Candidate::plain(types, variadic_from, item));
        }
    }
    if unusual {
        return;
    }
    for w in windows_named(name) {
        if w.args.len() == args.len() {
            candidates.push(Candidate::plain(w.args.to_vec(), None, Callee::Window(w)));
        }
    }
    let of_extensions = extension::of_types(args).into_iter();
    let of_extensions = of_extensions
        .flat_map(|e| e.aggregates)
        .filter(|a| a.name == name);
    for a in aggregates_named(name).iter().copied().chain(of_extensions) {
        if let Some((types, variadic_from)) = spread(a.args, a.variadic, 0, args.len()) {
            candidates.push(Candidate::plain(types, variadic_from, Callee::Aggregate(a)));
        }
    }
}

/// Chooses what a call calls. 42883 where there is nothing, 42725 where it is not clear.
pub fn resolve_call(given: &Given<'_>) -> Result<Resolved> {
    let Given { name, args, .. } = *given;
    let mut candidates = Vec::new();
    if let Some(rank) = given.builtin {
        builtin_candidates(given, &mut candidates);
        candidates.iter_mut().for_each(|c| c.rank = rank);
    }
    if !given.routines.is_empty() {
        let routines = given.routines.iter().enumerate();
        candidates.extend(routines.filter_map(|(place, r)| routine_candidate(place, r, given)));
        candidates = without_doubles(candidates);
    }
    let undefined = || {
        Error::new(
            state::UNDEFINED_FUNCTION,
            format!("function {} does not exist", call_signature(given)),
        )
        .hint(
            "No function matches the given name and argument types. You might need to add explicit type casts.",
        )
    };
    let ambiguous = || {
        Error::new(
            state::AMBIGUOUS_FUNCTION,
            format!("function {} is not unique", call_signature(given)),
        )
        .hint(
            "Could not choose a best candidate function. You might need to add explicit type casts.",
        )
    };
    // A variadic form that spreads to the same types gives way to a plain one.
    let exact = candidates
        .iter()
        .position(|c| c.args == args && c.variadic_from.is_none());
    let exact = exact.or_else(|| candidates.iter().position(|c| c.args == args));
    let index = match exact {
        Some(index) => index,
        None => match choose(&candidates, args, given.casts) {
            Choice::One(index) => index,
            Choice::None => return Err(undefined()),
            Choice::Many => return Err(ambiguous()),
        },
    };
    let is_routine = |c: &Candidate<Callee>| matches!(c.item, Callee::Routine(_));
    let twice = |c: &Candidate<Callee>| c.args == candidates[index].args && is_routine(c);
    if is_routine(&candidates[index]) && candidates.iter().filter(|c| twice(c)).count() > 1 {
        return Err(ambiguous());
    }
    let chosen = candidates.swap_remove(index);
    let ret = match &chosen.item {
        Callee::Scalar(f) | Callee::Set(f) => f.ret,
        Callee::Aggregate(a) => a.ret,
        Callee::Window(w) => w.ret,
        Callee::Routine(place) => given.routines[*place].ret,
    };
    let declared = chosen.args;
    let mut arg_types = declared.clone();
    let ends_in_array = |args: &[Oid]| {
        args.last()
            .is_some_and(|&a| a == oid::UNKNOWN || is_array(a))
    };
    if given.variadic && declared.last() == Some(&oid::ANY) && !ends_in_array(args) {
        let message = "VARIADIC argument must be an array";
        return Err(Error::new(state::DATATYPE_MISMATCH, message));
    }
    // JSON of a constant without a type would be a string or the JSON it looks like: it is refused.
    if name.contains("json") && arg_types == [oid::ANYELEMENT] && args == [oid::UNKNOWN] {
        return Err(unknown_polymorphic());
    }
    let ret = actualize(&mut arg_types, args, ret).ok_or_else(undefined)?;
    let unknown = match &chosen.item {
        Callee::Window(w) => w
            .args
            .first()
            .is_some_and(|a| *a == oid::ANYELEMENT && args[0] == oid::UNKNOWN),
        Callee::Routine(_) => {
            let family = |&(declared, _): &(&Oid, &Oid)| {
                is_polymorphic(*declared) && !is_compatible_family(*declared)
            };
            let mut members = declared.iter().zip(args).filter(family).peekable();
            members.peek().is_some() && members.all(|(_, given)| *given == oid::UNKNOWN)
        }
        _ => false,
    };
    if unknown || is_undetermined(ret) {
        return Err(unknown_polymorphic());
    }
    if COMPARES_ITEMS.contains(&name) {
        must_be_ordered(name, &declared, &arg_types)?;
    }
    Ok(Resolved {
        callee: chosen.item,
        arg_types,
        declared,
        fill: chosen.fill,
        ret,
        variadic_from: chosen.variadic_from,
    })
}

/// Whether a call's result has no type yet.
fn is_undetermined(ret: Oid) -> bool {
    matches!(
        ret,
        oid::ANYELEMENT | oid::ANYARRAY | oid::ANYRANGE | oid::ANYMULTIRANGE
    )
}

/// Functions that compare the items of the arrays given to them.
const COMPARES_ITEMS: &[&str] = &[
    "array_eq",
    "array_ge",
    "array_gt",
    "array_le",
    "array_lt",
    "array_ne",
    "array_position",
    "array_positions",
    "array_remove",
    "array_replace",
    "array_sort",
    "arraycontained",
    "arraycontains",
    "arrayoverlap",
    "btarraycmp",
    "max",
    "min",
    "width_bucket",
];

/// 42883 where arrays of any type were asked for, and given are arrays of items that nothing
/// compares.
pub(super) fn must_be_ordered(name: &str, declared: &[Oid], given: &[Oid]) -> Result<()> {
    for (declared, given) in declared.iter().zip(given) {
        let any_array = matches!(*declared, oid::ANYARRAY | oid::ANYCOMPATIBLEARRAY);
        let items = element_of(*given).filter(|_| any_array);
        if let Some(items @ (oid::JSON | oid::JSONPATH)) = items {
            let sorts = ["<", "<=", ">", ">=", "max", "min", "width_bucket"].contains(&name);
            let what = match sorts || name.ends_with("sort") || name.ends_with("cmp") {
                true => "a comparison function",
                false => "an equality operator",
            };
            let message = format!("could not identify {what} for type {}", type_name(items));
            return Err(Error::new(state::UNDEFINED_FUNCTION, message));
        }
    }
    Ok(())
}

/// `name(type, name => type)` for messages.
fn call_signature(given: &Given<'_>) -> String {
    let args = given.args.iter().enumerate().map(|(i, &ty)| {
        let name = given.names.iter().find(|(at, _)| *at == i);
        match name {
            Some((_, name)) => format!("{name} => {}", type_name(ty)),
            None => type_name(ty),
        }
    });
    format!("{}({})", given.name, args.collect::<Vec<_>>().join(", "))
}

#[cold]
fn unknown_polymorphic() -> Error {
    Error::new(
        state::DATATYPE_MISMATCH,
        "could not determine polymorphic type because input has type unknown",
    )
}

pub(super) enum Choice {
    None,
    One(usize),
    Many,
}

/// Steps 2 to 5. Gives an index into `candidates`.
pub(super) fn choose<T>(candidates: &[Candidate<T>], given: &[Oid], casts: Casts<'_>) -> Choice {
    let can_coerce = |from, to| can_coerce(from, to, CastContext::Implicit) || casts(from, to);
    // 2. Coercible at all.
    let mut left: Vec<usize> = (0..candidates.len())
        .filter(|&i| {
            let pairs = given.iter().zip(&candidates[i].args);
            pairs.into_iter().all(|(&g, &a)| can_coerce(g, a))
        })
        .collect();
    // A polymorphic candidate must also have one consistent answer.
    left.retain(|&i| actualize(&mut candidates[i].args.clone(), given, oid::VOID).is_some());
    match left.len() {
        0 => return Choice::None,
        1 => return Choice::One(left[0]),
        _ => {}
    }
    // 3. Most exact matches; then most exact or preferred.
    let known: Vec<usize> = (0..given.len())
        .filter(|&p| given[p] != oid::UNKNOWN)
        .collect();
    keep_best(&mut left, |i| {
        known
            .iter()
            .filter(|&&p| candidates[i].args[p] == given[p])
            .count()
    });
    if let [one] = left[..] {
        return Choice::One(one);
    }
    keep_best(&mut left, |i| {
        known
            .iter()
            .filter(|&&p| {
                let want = candidates[i].args[p];
                want == given[p] || (is_preferred(want) && category(want) == category(given[p]))
            })
            .count()
    });
    if let [one] = left[..] {
        return Choice::One(one);
    }
    let unknown: Vec<usize> = (0..given.len())
        .filter(|&p| given[p] == oid::UNKNOWN)
        .collect();
    if unknown.is_empty() {
        return Choice::Many;
    }
    // 4. Categories at the unknown positions.
    let mut chosen: Vec<(usize, u8, bool)> = Vec::new();
    let mut agreed = true;
    for &p in &unknown {
        let options = || left.iter().map(|&i| candidates[i].args[p]);
        let want = if options().any(|t| category(t) == b'S') {
            b'S'
        } else {
            let first = options().next().map_or(b'X', category);
            if options().any(|t| category(t) != first) {
                agreed = false;
                break;
            }
            first
        };
        let preferred = options().any(|t| category(t) == want && is_preferred(t));
        chosen.push((p, want, preferred));
    }
    if agreed {
        let kept: Vec<usize> = left
            .iter()
            .copied()
            .filter(|&i| {
                chosen.iter().all(|&(p, want, preferred)| {
                    let t = candidates[i].args[p];
                    category(t) == want && (!preferred || is_preferred(t))
                })
            })
            .collect();
        if !kept.is_empty() {
            left = kept;
        }
        if let [one] = left[..] {
            return Choice::One(one);
        }
    }
    // 5. Unknowns are like the knowns, if those are all alike.
    let mut kinds = known.iter().map(|&p| given[p]);
    if let Some(first) = kinds.next().filter(|first| kinds.all(|k| k == *first)) {
        let alike = vec![first; given.len()];
        let like: Vec<usize> = left
            .iter()
            .copied()
            .filter(|&i| {
                let args = &candidates[i].args;
                unknown.iter().all(|&p| can_coerce(first, args[p]))
                    // `integer[] || '{3}'` joins arrays: an array is no item of itself.
                    && actualize(&mut args.clone(), &alike, oid::VOID).is_some()
            })
            .collect();
        if let [one] = like[..] {
            return Choice::One(one);
        }
    }
    Choice::Many
}

fn keep_best(left: &mut Vec<usize>, score: impl Fn(usize) -> usize) {
    let best = left.iter().map(|&i| score(i)).max().unwrap_or(0);
    left.retain(|&i| score(i) == best);
}
