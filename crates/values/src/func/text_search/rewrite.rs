//! `ts_rewrite`: a part of a query replaced wherever it occurs.

use super::super::{EvalContext, EvalResult};
use super::{from_query, query};
use throng_types::text_search::{Node, TsQuery};
use throng_types::{Datum, Result, interrupt, stack};

/// A query as a tree whose chains of one operator are lists, in a settled order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Tree {
    Operand(String, u8, bool),
    Not(Box<Tree>),
    And(Vec<Tree>),
    Or(Vec<Tree>),
    Phrase(Box<Tree>, Box<Tree>, u16),
}

fn tree(query: &TsQuery, at: u32) -> Result<Tree> {
    stack::check()?;
    Ok(match *query.node(at) {
        Node::Operand(ref o) => Tree::Operand(o.lexeme.clone(), o.weights, o.prefix),
        Node::Not(a) => Tree::Not(Box::new(tree(query, a)?)),
        Node::Phrase(a, b, distance) => Tree::Phrase(
            Box::new(tree(query, a)?),
            Box::new(tree(query, b)?),
            distance,
        ),
        Node::And(a, b) => {
            let mut all = Vec::new();
            for side in [a, b] {
                match tree(query, side)? {
                    Tree::And(more) => all.extend(more),
                    one => all.push(one),
                }
            }
            Tree::And(settled(all))
        }
        Node::Or(a, b) => {
            let mut all = Vec::new();
            for side in [a, b] {
                match tree(query, side)? {
                    Tree::Or(more) => all.extend(more),
                    one => all.push(one),
                }
            }
            Tree::Or(settled(all))
        }
    })
}

/// In order, each once.
fn settled(mut all: Vec<Tree>) -> Vec<Tree> {
    all.sort();
    all.dedup();
    all
}

/// The tree with the part replaced; None where nothing is left.
fn replaced(whole: Tree, part: &Tree, by: Option<&Tree>) -> Result<Option<Tree>> {
    stack::check()?;
    interrupt::poll()?;
    if whole == *part {
        return Ok(by.cloned());
    }
    Ok(match whole {
        Tree::And(all) => joined(within(all, part, by, true)?, true),
        Tree::Or(all) => joined(within(all, part, by, false)?, false),
        Tree::Not(a) => replaced(*a, part, by)?.map(|a| Tree::Not(Box::new(a))),
        Tree::Phrase(a, b, distance) => match (replaced(*a, part, by)?, replaced(*b, part, by)?) {
            (Some(a), Some(b)) => Some(Tree::Phrase(Box::new(a), Box::new(b), distance)),
            (one, other) => one.or(other),
        },
        operand => Some(operand),
    })
}

/// The members of a chain. A part that is a chain of the same operator may be some of them.
fn within(all: Vec<Tree>, part: &Tree, by: Option<&Tree>, is_and: bool) -> Result<Vec<Tree>> {
    let mut members = Vec::new();
    let some = match part {
        Tree::And(some) if is_and => Some(some),
        Tree::Or(some) if !is_and => Some(some),
        _ => None,
    };
    match some.filter(|some| some.iter().all(|member| all.contains(member))) {
        Some(some) => {
            members.extend(by.cloned());
            members.extend(all.into_iter().filter(|member| !some.contains(member)));
        }
        None => {
            for member in all {
                members.extend(replaced(member, part, by)?);
            }
        }
    }
    Ok(members)
}

fn joined(members: Vec<Tree>, is_and: bool) -> Option<Tree> {
    let mut all = Vec::new();
    for member in members {
        match (member, is_and) {
            (Tree::And(more), true) | (Tree::Or(more), false) => all.extend(more),
            (one, _) => all.push(one),
        }
    }
    let mut all = settled(all);
    match all.len() {
        0 | 1 => all.pop(),
        _ if is_and => Some(Tree::And(all)),
        _ => Some(Tree::Or(all)),
    }
}

fn write(tree: &Tree, query: &mut TsQuery) -> Result<u32> {
    stack::check()?;
    let chain = |all: &[Tree], query: &mut TsQuery, join: fn(u32, u32) -> Node| {
        let mut last = None;
        for member in all {
            let at = write(member, query)?;
            last = Some(match last {
                Some(before) => query.push(join(before, at)),
                None => at,
            });
        }
        Ok(last.unwrap_or(0))
    };
    match tree {
        Tree::Operand(lexeme, weights, prefix) => Ok(query.push(Node::Operand(
            throng_types::text_search::Operand {
                lexeme: lexeme.clone(),
                weights: *weights,
                prefix: *prefix,
            },
        ))),
        Tree::Not(a) => {
            let a = write(a, query)?;
            Ok(query.push(Node::Not(a)))
        }
        Tree::And(all) => chain(all, query, Node::And),
        Tree::Or(all) => chain(all, query, Node::Or),
        Tree::Phrase(a, b, distance) => {
            let (a, b) = (write(a, query)?, write(b, query)?);
            Ok(query.push(Node::Phrase(a, b, *distance)))
        }
    }
}

pub fn rewrite(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (whole, part, by) = (query(&args[0]), query(&args[1]), query(&args[2]));
    let (Some(root), Some(sought)) = (whole.root(), part.root()) else {
        return Ok(args[0].clone());
    };
    let by = by.root().map(|root| tree(&by, root)).transpose()?;
    let left = replaced(tree(&whole, root)?, &tree(&part, sought)?, by.as_ref())?;
    let mut rewritten = TsQuery::default();
    if let Some(left) = left {
        write(&left, &mut rewritten)?;
    }
    Ok(from_query(&rewritten))
}
