//! An expression as a nondeterministic automaton, run over a text with all its states at once: no
//! way through it is tried twice.
//!
//! What a group refers back to is here anything that the group could match; who needs more looks at
//! what it did match.

use std::cell::Cell;
use std::sync::Arc;

use throng_types::{Result, interrupt};

use super::node::{Assert, Node, Set};
use super::too_complex;

/// What an expression's programs may cost together: a bound on what `{m,n}` inside each other and
/// references back make.
pub(super) struct Budget {
    states: usize,
    depth: usize,
}

impl Budget {
    pub fn new() -> Budget {
        Budget {
            states: 200_000,
            depth: 1_000,
        }
    }
}

enum Inst {
    /// One character, and what comes behind it.
    Set(Arc<Set>, u32),
    Split(u32, u32),
    Assert(Assert, u32),
    Look(Box<Look>, u32),
    Match,
}

struct Look {
    ahead: bool,
    negative: bool,
    program: Program,
}

/// An expression read from its beginning on, or from its end back.
pub(super) struct Program {
    insts: Vec<Inst>,
    start: u32,
    backward: bool,
}

impl Program {
    pub fn forward(node: &Node, budget: &mut Budget) -> Result<Program> {
        Program::new(node, false, budget)
    }
    pub fn backward(node: &Node, budget: &mut Budget) -> Result<Program> {
        Program::new(node, true, budget)
    }

    fn new(node: &Node, backward: bool, budget: &mut Budget) -> Result<Program> {
        let mut program = Program {
            insts: vec![Inst::Match],
            start: 0,
            backward,
        };
        program.start = program.emit(node, 0, budget)?;
        Ok(program)
    }

    fn push(&mut self, inst: Inst) -> u32 {
        self.insts.push(inst);
        self.insts.len() as u32 - 1
    }

    /// The state where the node begins that goes on at `next`.
    fn emit(&mut self, node: &Node, next: u32, budget: &mut Budget) -> Result<u32> {
        if budget.states == 0 || budget.depth == 0 {
            return Err(too_complex());
        }
        budget.states -= 1;
        budget.depth -= 1;
        let entry = self.emit_inner(node, next, budget);
        budget.depth += 1;
        entry
    }

    fn emit_inner(&mut self, node: &Node, next: u32, budget: &mut Budget) -> Result<u32> {
        match node {
            Node::Empty => Ok(next),
            Node::Set(set) => Ok(self.push(Inst::Set(set.clone(), next))),
            Node::Assert(assert) => Ok(self.push(Inst::Assert(*assert, next))),
            Node::Look {
                ahead,
                negative,
                inner,
            } => {
                let look = Look {
                    ahead: *ahead,
                    negative: *negative,
                    program: Program::new(inner, !ahead, budget)?,
                };
                Ok(self.push(Inst::Look(Box::new(look), next)))
            }
            Node::Concat(items) => {
                let backward = self.backward;
                let emit = |next, item| self.emit(item, next, budget);
                match backward {
                    true => items.iter().try_fold(next, emit),
                    false => items.iter().rev().try_fold(next, emit),
                }
            }
            Node::Alternatives(items) => {
                let mut entry = None;
                for item in items {
                    let branch = self.emit(item, next, budget)?;
                    entry = Some(match entry {
                        None => branch,
                        Some(before) => self.push(Inst::Split(before, branch)),
                    });
                }
                Ok(entry.unwrap_or(next))
            }
            Node::Group(_, inner) | Node::Back(_, inner) => self.emit(inner, next, budget),
            Node::Repeat {
                inner, least, most, ..
            } => {
                let mut entry = next;
                match most {
                    None => {
                        let again = self.push(Inst::Split(next, next));
                        let body = self.emit(inner, again, budget)?;
                        self.insts[again as usize] = Inst::Split(body, next);
                        entry = again;
                    }
                    Some(most) => {
                        for _ in *least..*most {
                            let body = self.emit(inner, entry, budget)?;
                            entry = self.push(Inst::Split(body, next));
                        }
                    }
                }
                for _ in 0..*least {
                    entry = self.emit(inner, entry, budget)?;
                }
                Ok(entry)
            }
        }
    }
}

/// The states that are reached at a place.
struct States {
    reached: Vec<u32>,
    known: Vec<bool>,
    matched: bool,
}

impl States {
    fn new(program: &Program) -> States {
        States {
            reached: Vec::new(),
            known: vec![false; program.insts.len()],
            matched: false,
        }
    }
    fn clear(&mut self) {
        for state in self.reached.drain(..) {
            self.known[state as usize] = false;
        }
        self.matched = false;
    }
}

/// Places between the characters of a part of a text.
pub(super) struct Places {
    base: usize,
    bits: Vec<u64>,
}

impl Places {
    pub fn new(from: usize, to: usize) -> Places {
        Places {
            base: from,
            bits: vec![0; (to - from) / 64 + 1],
        }
    }
    pub fn only(from: usize, to: usize, place: usize) -> Places {
        let mut places = Places::new(from, to);
        places.add(place);
        places
    }
    pub fn add(&mut self, place: usize) {
        let bit = place - self.base;
        self.bits[bit / 64] |= 1 << (bit % 64);
    }
    pub fn has(&self, place: usize) -> bool {
        let Some(bit) = place.checked_sub(self.base) else {
            return false;
        };
        self.bits
            .get(bit / 64)
            .is_some_and(|bits| bits >> (bit % 64) & 1 == 1)
    }
}

/// A text that programs are run over.
pub(super) struct Scan<'t> {
    pub text: &'t str,
    /// States gone through so far.
    pub steps: Cell<u64>,
    /// The search was broken off: what was found since means nothing.
    pub broken: Cell<bool>,
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

impl<'t> Scan<'t> {
    pub fn new(text: &'t str) -> Scan<'t> {
        Scan {
            text,
            steps: Cell::new(0),
            broken: Cell::new(false),
        }
    }

    /// Whether to go on with the next character.
    fn goes_on(&self) -> bool {
        if interrupt::poll().is_err() {
            self.broken.set(true);
        }
        !self.broken.get()
    }
}

impl Scan<'_> {
    /// Where the first of the matches ends that begin at `from` or behind it. All are looked for at
    /// once.
    pub fn first_end(&self, program: &Program, from: usize) -> Option<usize> {
        let mut states = States::new(program);
        let mut next = States::new(program);
        let mut at = from;
        while self.goes_on() {
            self.reach(program, &mut states, program.start, at);
            if states.matched {
                return Some(at);
            }
            let c = self.behind(at)?;
            at += c.len_utf8();
            self.step(program, &states, &mut next, c, at);
            std::mem::swap(&mut states, &mut next);
        }
        None
    }

    fn before(&self, at: usize) -> Option<char> {
        self.text[..at].chars().next_back()
    }
    fn behind(&self, at: usize) -> Option<char> {
        self.text[at..].chars().next()
    }

    fn holds(&self, assert: Assert, at: usize) -> bool {
        let word_before = || self.before(at).is_some_and(is_word);
        let word_behind = || self.behind(at).is_some_and(is_word);
        match assert {
            Assert::TextStart => at == 0,
            Assert::TextEnd => at == self.text.len(),
            Assert::LineStart => self.before(at).is_none_or(|c| c == '\n'),
            Assert::LineEnd => self.behind(at).is_none_or(|c| c == '\n'),
            Assert::WordStart => !word_before() && word_behind(),
            Assert::WordEnd => word_before() && !word_behind(),
            Assert::WordEdge => word_before() != word_behind(),
            Assert::NoWordEdge => word_before() == word_behind(),
        }
    }

    fn sees(&self, look: &Look, at: usize) -> bool {
        let mut found = false;
        let mut note = |_| {
            found = true;
            false
        };
        match look.ahead {
            true => self.ends(&look.program, at, self.text.len(), &mut note),
            false => self.starts(&look.program, &Places::only(at, at, at), at, 0, &mut note),
        }
        found != look.negative
    }

    /// Takes in a state and all that it leads to without a character.
    fn reach(&self, program: &Program, states: &mut States, state: u32, at: usize) {
        let first = states.reached.len();
        let mut place = first;
        let take = |states: &mut States, state: u32| {
            if !std::mem::replace(&mut states.known[state as usize], true) {
                states.reached.push(state);
            }
        };
        take(states, state);
        while let Some(state) = states.reached.get(place) {
            place += 1;
            match &program.insts[*state as usize] {
                Inst::Set(..) => {}
                Inst::Match => states.matched = true,
                Inst::Split(a, b) => {
                    take(states, *a);
                    take(states, *b);
                }
                Inst::Assert(assert, next) if self.holds(*assert, at) => take(states, *next),
                Inst::Look(look, next) if self.sees(look, at) => take(states, *next),
                Inst::Assert(..) | Inst::Look(..) => {}
            }
        }
        self.steps
            .set(self.steps.get() + (states.reached.len() - first) as u64 + 1);
    }

    fn step(&self, program: &Program, from: &States, to: &mut States, c: char, at: usize) {
        to.clear();
        for state in &from.reached {
            if let Inst::Set(set, next) = &program.insts[*state as usize]
                && set.has(c)
            {
                self.reach(program, to, *next, at);
            }
        }
    }

    /// Where matches that begin at `from` end, not behind `limit`, in ascending order; until
    /// `found` says false.
    pub fn ends(
        &self,
        program: &Program,
        from: usize,
        limit: usize,
        found: &mut dyn FnMut(usize) -> bool,
    ) {
        let mut states = States::new(program);
        let mut next = States::new(program);
        self.reach(program, &mut states, program.start, from);
        let mut at = from;
        while self.goes_on() {
            if states.matched && !found(at) || at >= limit || states.reached.is_empty() {
                return;
            }
            let Some(c) = self.behind(at) else { return };
            at += c.len_utf8();
            self.step(program, &states, &mut next, c, at);
            std::mem::swap(&mut states, &mut next);
        }
    }

    /// Where matches begin that end in one of `ends`, of which `last` is the last, not before
    /// `limit`; in descending order, until `found` says false. The program is one that reads
    /// backward.
    pub fn starts(
        &self,
        program: &Program,
        ends: &Places,
        last: usize,
        limit: usize,
        found: &mut dyn FnMut(usize) -> bool,
    ) {
        let mut states = States::new(program);
        let mut next = States::new(program);
        let mut at = last;
        while self.goes_on() {
            if ends.has(at) {
                self.reach(program, &mut states, program.start, at);
            }
            if states.matched && !found(at) || at <= limit {
                return;
            }
            let Some(c) = self.before(at) else { return };
            at -= c.len_utf8();
            if states.reached.is_empty() && at < ends.base {
                return;
            }
            self.step(program, &states, &mut next, c, at);
            std::mem::swap(&mut states, &mut next);
        }
    }

    /// Whether all of a part of the text is a match.
    pub fn is_exactly(&self, program: &Program, from: usize, to: usize) -> bool {
        let mut exactly = false;
        self.ends(program, from, to, &mut |end| {
            exactly = end == to;
            !exactly
        });
        exactly
    }
}
