//! Walking a path: each step is done for a value, and what follows it for each value it gives.
//!
//! Where nobody asks for the values but only whether there is one, a walk ends with the first
//! ([`Found::wanted`]). In lax mode arrays are unwrapped and structural errors are no errors; in
//! strict mode a question whether there is a value is answered only when all have been looked at,
//! as there may be an error among them.
//!
//! A failure is soft where `silent` and predicates pass it over, hard where it ends the statement
//! whatever is around it. A walk's depth, steps and values held at once are bounded, beyond which
//! it fails hard.

use super::arena::{Arena, Tail};
use super::value::Value;
use super::*;
use crate::func::EvalContext;
use throng_types::error::{SqlState, state};
use throng_types::jsonb::{JsonRef, View, too_deep};
use throng_types::{Error, Jsonb, interrupt};

/// Levels of calls, of a path's steps and a document's containers together: what a stack of 8 MiB
/// has room for without optimization.
const MAX_LEVELS: usize = 1500;
/// Steps, which is some seconds.
const MAX_STEPS: u64 = if cfg!(test) { 1 << 20 } else { 1 << 28 };
/// Values held at once.
const MAX_VALUES: usize = if cfg!(test) { 1 << 16 } else { 1 << 23 };

/// Why a walk stopped.
#[derive(Debug)]
pub enum Failure {
    Soft(Error),
    Hard(Error),
}
pub type Walk<T = bool> = std::result::Result<T, Failure>;

impl From<Error> for Failure {
    fn from(e: Error) -> Failure {
        Failure::Hard(e)
    }
}

#[cold]
pub fn soft(code: SqlState, message: impl Into<String>) -> Failure {
    Failure::Soft(Error::new(code, message))
}

/// What a path's variables are.
#[derive(Clone, Copy)]
pub enum Variables<'a> {
    /// The members of an object.
    Object(JsonRef<'a>),
    /// Names and values, as PASSING gives them.
    Passed(&'a [(Text, Value<'a>)]),
}

impl<'a> Variables<'a> {
    /// What it is, and the number of the object it is among those that `keyvalue()` counts.
    fn get(&self, name: &str) -> Option<(Value<'a>, i64)> {
        match self {
            Variables::Object(object) => {
                let value = object.member(name)?;
                Some((Value::Part(value), 1))
            }
            Variables::Passed(all) => {
                let at = all.iter().position(|(n, _)| n == name)?;
                Some((all[at].1.clone(), at as i64 + 1))
            }
        }
    }
    fn count(&self) -> i64 {
        match self {
            Variables::Object(_) => 1,
            Variables::Passed(all) => all.len() as i64,
        }
    }
}

/// The values found so far.
pub struct Found<'a> {
    /// Otherwise it only matters whether there is one.
    pub wanted: bool,
    pub values: Vec<Value<'a>>,
}

impl Found<'_> {
    pub fn all() -> Self {
        Found {
            wanted: true,
            values: Vec::new(),
        }
    }
    pub fn any() -> Self {
        Found {
            wanted: false,
            values: Vec::new(),
        }
    }
}

/// What is asked of a path.
pub enum Answer {
    Exists,
    Values,
}

pub struct Walker<'a> {
    pub ctx: &'a EvalContext<'a>,
    pub lax: bool,
    /// Whether values without a zone may be taken as of the session's.
    pub use_zone: bool,
    variables: Variables<'a>,
    made: Tail<'a>,
    root: Value<'a>,
    current: Value<'a>,
    /// What `keyvalue()` counts its offsets from, and its number.
    pub base: (Option<JsonRef<'a>>, i64),
    pub last_number: i64,
    /// How long the array is whose subscript is evaluated.
    array_size: Option<usize>,
    ignore_structure: bool,
    levels: usize,
    pub steps: u64,
    pub held: usize,
}

/// Walks a path over a document and gives what `use_found` makes of the values and of whether there
/// are any, or the soft error that the walk ended with after those. What is hard it is not asked
/// about.
pub fn run<T>(
    ctx: &EvalContext<'_>,
    path: &Path,
    document: &Jsonb,
    variables: Variables<'_>,
    use_zone: bool,
    answer: Answer,
    use_found: impl FnOnce(Result<bool>, &[Value<'_>]) -> Result<T>,
) -> Result<T> {
    let mut arena = Arena::default();
    let root = Value::Part(document.root());
    let mut walker = Walker {
        ctx,
        lax: path.lax,
        use_zone,
        variables,
        made: arena.tail(),
        current: root.clone(),
        base: (None, 0),
        last_number: 1 + variables.count(),
        root: root.clone(),
        array_size: None,
        ignore_structure: path.lax,
        levels: 0,
        steps: 0,
        held: 0,
    };
    // Whether there are errors shows only when all is walked.
    let mut found = match answer {
        Answer::Exists if path.lax => Found::any(),
        _ => Found::all(),
    };
    let exists = match walker.item(&path.root, &root, &mut found) {
        Ok(_) if found.wanted => Ok(!found.values.is_empty()),
        Ok(any) => Ok(any),
        Err(Failure::Soft(e)) => Err(e),
        Err(Failure::Hard(e)) => return Err(e),
    };
    use_found(exists, &found.values)
}

#[cold]
fn too_much(what: &str) -> Failure {
    Failure::Hard(Error::new(
        state::PROGRAM_LIMIT_EXCEEDED,
        format!("evaluation of jsonpath needs too many {what}"),
    ))
}

/// Children of a container: elements, or members' values.
fn children<'a>(container: JsonRef<'a>) -> Box<dyn Iterator<Item = JsonRef<'a>> + 'a> {
    match container.view() {
        View::Array(elements) => Box::new(elements.iter()),
        View::Object(members) => Box::new(members.iter().map(|(_, value)| value)),
        _ => Box::new(std::iter::empty()),
    }
}

/// Which levels below a container are wanted, and how they are walked.
#[derive(Clone, Copy)]
struct Levels {
    first: u32,
    last: u32,
    ignore_structure: bool,
    unwrap: bool,
}

impl<'a> Walker<'a> {
    pub fn ignores_structure(&self) -> bool {
        self.ignore_structure
    }
    pub fn keep(&self, value: Jsonb) -> JsonRef<'a> {
        self.made.keep(value)
    }

    fn push(&mut self, value: Value<'a>, found: &mut Found<'a>) -> Walk {
        if found.wanted {
            self.held += 1;
            if self.held > MAX_VALUES {
                return Err(too_much("values"));
            }
            found.values.push(value);
        }
        Ok(true)
    }
    /// Counts a step.
    pub fn spend(&mut self) -> Walk<()> {
        self.steps += 1;
        interrupt::poll()?;
        match self.steps > MAX_STEPS {
            true => Err(too_much("steps")),
            false => Ok(()),
        }
    }
    /// Values that nobody needs any longer.
    pub fn release(&mut self, found: &Found<'a>) {
        self.held -= found.values.len().min(self.held);
    }

    pub fn item(&mut self, chain: &[Item], value: &Value<'a>, found: &mut Found<'a>) -> Walk {
        self.target(chain, value, found, self.lax)
    }

    /// What follows a step, for a value the step gave.
    pub fn next(&mut self, rest: &[Item], value: Value<'a>, found: &mut Found<'a>) -> Walk {
        if rest.is_empty() {
            self.push(value, found)
        } else {
            self.item(rest, &value, found)
        }
    }

    /// The walk of a chain that gives a whole sequence, arrays in it unwrapped in lax mode where
    /// told.
    pub fn sequence(&mut self, chain: &[Item], value: &Value<'a>, unwrap: bool) -> Walk<Found<'a>> {
        let mut found = Found::all();
        self.item(chain, value, &mut found)?;
        if !(unwrap && self.lax && found.values.iter().any(Value::is_array)) {
            return Ok(found);
        }
        self.release(&found);
        let mut flat = Found::all();
        for value in found.values {
            match value.array() {
                Some(array) => {
                    for element in children(array) {
                        self.push(Value::Part(element), &mut flat)?;
                    }
                }
                None => {
                    self.push(value, &mut flat)?;
                }
            }
        }
        Ok(flat)
    }

    /// One step; `unwrap`: an array that a step is not made for is replaced by its elements.
    fn target(
        &mut self,
        chain: &[Item],
        value: &Value<'a>,
        found: &mut Found<'a>,
        unwrap: bool,
    ) -> Walk {
        self.spend()?;
        if self.levels >= MAX_LEVELS {
            return Err(too_deep().into());
        }
        self.levels += 1;
        let result = self.step(chain, value, found, unwrap);
        self.levels -= 1;
        result
    }

    fn step(
        &mut self,
        chain: &[Item],
        value: &Value<'a>,
        found: &mut Found<'a>,
        unwrap: bool,
    ) -> Walk {
        let Some((item, rest)) = chain.split_first() else {
            return self.push(value.clone(), found);
        };
        match item {
            Item::Null => self.constant(Value::Null, rest, found),
            Item::Bool(v) => self.constant(Value::Bool(*v), rest, found),
            Item::Number(v) => self.constant(Value::Number(v.clone()), rest, found),
            Item::String(v) => self.constant(Value::String(v.clone()), rest, found),
            Item::Variable(name) => self.variable(name, rest, found),
            Item::Root => {
                let root = self.root.clone();
                self.based(root.container(), 0, |w| w.next(rest, root.clone(), found))
            }
            Item::Current => {
                let current = self.current.clone();
                self.next(rest, current, found)
            }
            Item::Last => self.last(rest, found),
            Item::And(_)
            | Item::Or(_)
            | Item::Not(_)
            | Item::IsUnknown(_)
            | Item::Compare(..)
            | Item::Exists(_)
            | Item::StartsWith(_)
            | Item::LikeRegex(_) => self.truth_value(item, rest, value, found),
            Item::Arithmetic(operator, pair) => {
                self.arithmetic(*operator, pair, rest, value, found)
            }
            Item::Sign(sign, inner) => self.sign(*sign, inner, rest, value, found),
            Item::Key(name) => self.key(name, chain, value, found, unwrap),
            Item::AnyKey => self.any_key(chain, value, found, unwrap),
            Item::AnyElement => self.any_element(rest, value, found),
            Item::Subscripts(all) => self.subscripts(all, rest, value, found),
            Item::AnyLevel { first, last } => self.any_level(*first, *last, rest, value, found),
            Item::Filter(predicate) => {
                if unwrap && let Some(array) = value.array() {
                    return self.unwrapped(chain, array, found, false);
                }
                if self.holds(predicate, value)? {
                    return self.next(rest, value.clone(), found);
                }
                Ok(false)
            }
            Item::Method(method) => {
                if unwrap
                    && method.unwraps()
                    && let Some(array) = value.array()
                {
                    return self.unwrapped(chain, array, found, false);
                }
                self.method(method, rest, value, found)
            }
        }
    }

    /// Runs with another object as the one that `keyvalue()` counts from.
    pub fn based<T>(
        &mut self,
        base: Option<JsonRef<'a>>,
        number: i64,
        work: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let around = std::mem::replace(&mut self.base, (base, number));
        let result = work(self);
        self.base = around;
        result
    }

    fn constant(&mut self, value: Value<'a>, rest: &[Item], found: &mut Found<'a>) -> Walk {
        self.next(rest, value, found)
    }

    fn variable(&mut self, name: &str, rest: &[Item], found: &mut Found<'a>) -> Walk {
        let Some((value, number)) = self.variables.get(name) else {
            return Err(Failure::Hard(Error::new(
                state::UNDEFINED_OBJECT,
                format!("could not find jsonpath variable \"{name}\""),
            )));
        };
        let base = match (value.container(), self.variables) {
            (Some(_), Variables::Object(object)) => Some(object),
            (base, _) => base,
        };
        self.based(base, number, |w| w.next(rest, value, found))
    }

    fn last(&mut self, rest: &[Item], found: &mut Found<'a>) -> Walk {
        let Some(size) = self.array_size else {
            let message = "evaluating jsonpath LAST outside of array subscript";
            return Err(Error::new(state::INTERNAL_ERROR, message).into());
        };
        self.next(rest, Value::Number((size as i64 - 1).into()), found)
    }

    /// The step for each element of an array.
    fn unwrapped(
        &mut self,
        chain: &[Item],
        array: JsonRef<'a>,
        found: &mut Found<'a>,
        unwrap: bool,
    ) -> Walk {
        let levels = Levels {
            first: 1,
            last: 1,
            ignore_structure: false,
            unwrap,
        };
        self.below(chain, array, 1, levels, found)
    }

    /// The chain for what lies below a container, at a level of it and perhaps deeper ones.
    fn below(
        &mut self,
        chain: &[Item],
        container: JsonRef<'a>,
        level: u32,
        levels: Levels,
        found: &mut Found<'a>,
    ) -> Walk {
        if self.levels >= MAX_LEVELS {
            return Err(too_deep().into());
        }
        self.levels += 1;
        let result = self.each_below(chain, container, level, levels, found);
        self.levels -= 1;
        result
    }

    fn each_below(
        &mut self,
        chain: &[Item],
        container: JsonRef<'a>,
        level: u32,
        levels: Levels,
        found: &mut Found<'a>,
    ) -> Walk {
        let mut any = false;
        if level > levels.last {
            return Ok(false);
        }
        let only_leaves = levels.first == LEAVES && levels.last == LEAVES;
        for child in children(container) {
            let inner = child.is_container();
            if level >= levels.first || (only_leaves && !inner) {
                let value = Value::Part(child);
                any = if chain.is_empty() {
                    self.push(value, found)?
                } else if levels.ignore_structure {
                    let around = std::mem::replace(&mut self.ignore_structure, true);
                    let result = self.target(chain, &value, found, levels.unwrap);
                    self.ignore_structure = around;
                    result?
                } else {
                    self.target(chain, &value, found, levels.unwrap)?
                };
                if any && !found.wanted {
                    return Ok(true);
                }
            }
            if inner && level < levels.last {
                any = self.below(chain, child, level + 1, levels, found)?;
                if any && !found.wanted {
                    return Ok(true);
                }
            }
        }
        Ok(any)
    }

    fn key(
        &mut self,
        name: &str,
        chain: &[Item],
        value: &Value<'a>,
        found: &mut Found<'a>,
        unwrap: bool,
    ) -> Walk {
        if let Some(object) = value.object() {
            return match object.member(name) {
                Some(member) => self.next(&chain[1..], Value::Part(member), found),
                None if self.ignore_structure => Ok(false),
                None => Err(soft(
                    state::SQL_JSON_MEMBER_NOT_FOUND,
                    format!("JSON object does not contain key \"{name}\""),
                )),
            };
        }
        if unwrap && let Some(array) = value.array() {
            return self.unwrapped(chain, array, found, false);
        }
        if self.ignore_structure {
            return Ok(false);
        }
        Err(soft(
            state::SQL_JSON_MEMBER_NOT_FOUND,
            "jsonpath member accessor can only be applied to an object",
        ))
    }

    fn any_key(
        &mut self,
        chain: &[Item],
        value: &Value<'a>,
        found: &mut Found<'a>,
        unwrap: bool,
    ) -> Walk {
        if let Some(object) = value.object() {
            return self.unwrapped(&chain[1..], object, found, self.lax);
        }
        if unwrap && let Some(array) = value.array() {
            return self.unwrapped(chain, array, found, false);
        }
        if self.ignore_structure {
            return Ok(false);
        }
        Err(soft(
            state::SQL_JSON_OBJECT_NOT_FOUND,
            "jsonpath wildcard member accessor can only be applied to an object",
        ))
    }

    fn any_element(&mut self, rest: &[Item], value: &Value<'a>, found: &mut Found<'a>) -> Walk {
        if let Some(array) = value.array() {
            return self.unwrapped(rest, array, found, self.lax);
        }
        if self.lax {
            return self.next(rest, value.clone(), found);
        }
        if self.ignore_structure {
            return Ok(false);
        }
        Err(soft(
            state::SQL_JSON_ARRAY_NOT_FOUND,
            "jsonpath wildcard array accessor can only be applied to an array",
        ))
    }

    fn any_level(
        &mut self,
        first: u32,
        last: u32,
        rest: &[Item],
        value: &Value<'a>,
        found: &mut Found<'a>,
    ) -> Walk {
        let mut any = false;
        if first == 0 {
            let around = std::mem::replace(&mut self.ignore_structure, true);
            let result = self.next(rest, value.clone(), found);
            self.ignore_structure = around;
            any = result?;
            if any && !found.wanted {
                return Ok(true);
            }
        }
        let Some(container) = value.container() else {
            return Ok(any);
        };
        let levels = Levels {
            first,
            last,
            ignore_structure: true,
            unwrap: self.lax,
        };
        self.below(rest, container, 1, levels, found)
    }

    fn subscripts(
        &mut self,
        all: &[(Chain, Option<Chain>)],
        rest: &[Item],
        value: &Value<'a>,
        found: &mut Found<'a>,
    ) -> Walk {
        let array = value.array();
        if array.is_none() && !self.lax {
            if self.ignore_structure {
                return Ok(false);
            }
            return Err(soft(
                state::SQL_JSON_ARRAY_NOT_FOUND,
                "jsonpath array accessor can only be applied to an array",
            ));
        }
        let size = match array.map(JsonRef::view) {
            Some(View::Array(elements)) => elements.len(),
            _ => 1,
        };
        let around = self.array_size.replace(size);
        let result = self.each_subscript(all, rest, value, size, found);
        self.array_size = around;
        result
    }

    fn each_subscript(
        &mut self,
        all: &[(Chain, Option<Chain>)],
        rest: &[Item],
        value: &Value<'a>,
        size: usize,
        found: &mut Found<'a>,
    ) -> Walk {
        let mut any = false;
        for (from, to) in all {
            let from = self.index(from, value)?;
            let to = match to {
                Some(to) => self.index(to, value)?,
                None => from,
            };
            if !self.ignore_structure && (from < 0 || from > to || to >= size as i64) {
                return Err(soft(
                    state::INVALID_SQL_JSON_SUBSCRIPT,
                    "jsonpath array subscript is out of bounds",
                ));
            }
            any = false;
            for index in from.max(0)..=to.min(size as i64 - 1) {
                let element = match value.array() {
                    Some(array) => match array.element(index) {
                        Some(element) => Value::Part(element),
                        None => continue,
                    },
                    None => value.clone(),
                };
                any = self.next(rest, element, found)?;
                if any && !found.wanted {
                    return Ok(true);
                }
            }
        }
        Ok(any)
    }

    fn index(&mut self, chain: &[Item], value: &Value<'a>) -> Walk<i64> {
        let found = self.sequence(chain, value, false)?;
        self.release(&found);
        let [single] = &found.values[..] else {
            return Err(no_index());
        };
        let number = single.number().ok_or_else(no_index)?.trunc(0);
        let index = number.to_i64().and_then(|i| i32::try_from(i).ok());
        index.map(i64::from).ok_or_else(|| {
            soft(
                state::INVALID_SQL_JSON_SUBSCRIPT,
                "jsonpath array subscript is out of integer range",
            )
        })
    }

    fn arithmetic(
        &mut self,
        operator: Arithmetic,
        pair: &(Chain, Chain),
        rest: &[Item],
        value: &Value<'a>,
        found: &mut Found<'a>,
    ) -> Walk {
        let left = self.sequence(&pair.0, value, true)?;
        let right = self.sequence(&pair.1, value, true)?;
        self.release(&left);
        self.release(&right);
        let single = |found: &Found<'a>, side: &str| {
            match &found.values[..] {
                [value] => value.number(),
                _ => None,
            }
            .ok_or_else(|| {
                soft(
                    state::SINGLETON_SQL_JSON_ITEM_REQUIRED,
                    format!(
                        "{side} operand of jsonpath operator {} is not a single numeric value",
                        operator.symbol()
                    ),
                )
            })
        };
        let (left, right) = (single(&left, "left")?, single(&right, "right")?);
        let result = match operator {
            Arithmetic::Add => left.add(&right),
            Arithmetic::Subtract => left.sub(&right),
            Arithmetic::Multiply => left.mul(&right),
            Arithmetic::Divide => left.div(&right),
            Arithmetic::Modulo => left.rem(&right),
        };
        let result = result.map_err(Failure::Soft)?;
        self.next(rest, Value::Number(result), found)
    }

    fn sign(
        &mut self,
        sign: Sign,
        inner: &[Item],
        rest: &[Item],
        value: &Value<'a>,
        found: &mut Found<'a>,
    ) -> Walk {
        let operands = self.sequence(inner, value, true)?;
        self.release(&operands);
        let only_asked = !found.wanted && rest.is_empty();
        let mut any = false;
        for operand in &operands.values {
            let Some(number) = operand.number() else {
                if only_asked {
                    continue;
                }
                return Err(soft(
                    state::SQL_JSON_NUMBER_NOT_FOUND,
                    format!(
                        "operand of unary jsonpath operator {} is not a numeric value",
                        sign.symbol()
                    ),
                ));
            };
            let number = match sign {
                Sign::Plus => number,
                Sign::Minus => number.neg(),
            };
            if self.next(rest, Value::Number(number), found)? {
                any = true;
                if !found.wanted {
                    return Ok(true);
                }
            }
        }
        Ok(any)
    }

    /// A predicate's value as a value.
    fn truth_value(
        &mut self,
        predicate: &Item,
        rest: &[Item],
        value: &Value<'a>,
        found: &mut Found<'a>,
    ) -> Walk {
        let truth = self.predicate(predicate, value)?;
        let truth = truth.map_or(Value::Null, Value::Bool);
        self.next(rest, truth, found)
    }

    /// Whether a filter lets a value pass.
    fn holds(&mut self, predicate: &[Item], value: &Value<'a>) -> Walk {
        let around = std::mem::replace(&mut self.current, value.clone());
        let result = self.truth(predicate, value);
        self.current = around;
        Ok(result? == Some(true))
    }
}

#[cold]
fn no_index() -> Failure {
    soft(
        state::INVALID_SQL_JSON_SUBSCRIPT,
        "jsonpath array subscript is not a single numeric value",
    )
}
