//! INSERT, UPDATE and DELETE of a view whose INSTEAD OF triggers do what is to be done.

use std::rc::Rc;

use throng_catalog::fires;
use throng_plan::{DeleteNode, InsertNode, Node, UpdateNode};
use throng_types::{Result, Tid};

use super::{Named, Triggers};
use crate::drive::{Returning, next};
use crate::run::Row;
use crate::run::build::Execution;
use crate::run::eval::eval;
use crate::write::arrival::push_new;
use crate::write::{Context, evaluate, give, push_system};

/// The rows that the triggers took.
pub async fn insert(
    execution: &mut Execution,
    node: &InsertNode,
    cx: &Context<'_>,
    returning: &mut Returning<'_>,
) -> Result<u64> {
    let triggers = Triggers::of(&node.table, cx)?;
    let named = Named::begin(triggers.as_ref(), &[fires::INSERT], &[], cx).await?;
    let mut row = Row::new();
    let mut count = 0;
    while next(execution, cx.env, cx.txn, &mut row).await? {
        let new = Some(std::mem::take(&mut row));
        let taken = instead(&triggers, fires::INSERT, None, new, cx).await?;
        if let Some(Some(mut new)) = taken {
            count += 1;
            push_new(&mut new, (Tid::NONE, node.table.oid), None, node, cx);
            give(execution, cx, &new, returning).await?;
        }
    }
    named.end(&[], cx).await?;
    Ok(count)
}

pub async fn update(
    execution: &mut Execution,
    node: &UpdateNode,
    cx: &Context<'_>,
    returning: &mut Returning<'_>,
) -> Result<u64> {
    let triggers = Triggers::of(&node.table, cx)?;
    let set: Vec<u16> = node.set.iter().map(|(attnum, _)| *attnum).collect();
    let named = Named::begin(triggers.as_ref(), &[fires::UPDATE], &set, cx).await?;
    let mut input = Row::new();
    let mut count = 0;
    while next(execution, cx.env, cx.txn, &mut input).await? {
        let slots = node.old.iter();
        let old: Row = slots.map(|slot| input[*slot as usize].clone()).collect();
        let mut new = old.clone();
        evaluate(execution, cx, |plan, cx| {
            let Node::Update(node) = &plan.node else {
                return Ok(());
            };
            for (attnum, expr) in &node.set {
                new[usize::from(*attnum) - 1] = eval(expr, &input, cx)?;
            }
            Ok(())
        })
        .await?;
        let taken = instead(&triggers, fires::UPDATE, Some(&old), Some(new), cx).await?;
        if let Some(Some(mut new)) = taken {
            count += 1;
            push_system(&mut new, Tid::NONE, false, cx);
            new.extend_from_slice(&input);
            give(execution, cx, &new, returning).await?;
        }
    }
    named.end(&set, cx).await?;
    Ok(count)
}

pub async fn delete(
    execution: &mut Execution,
    node: &DeleteNode,
    cx: &Context<'_>,
    returning: &mut Returning<'_>,
) -> Result<u64> {
    let triggers = Triggers::of(&node.table, cx)?;
    let named = Named::begin(triggers.as_ref(), &[fires::DELETE], &[], cx).await?;
    let mut input = Row::new();
    let mut count = 0;
    while next(execution, cx.env, cx.txn, &mut input).await? {
        let slots = node.old.iter();
        let old: Row = slots.map(|slot| input[*slot as usize].clone()).collect();
        let taken = instead(&triggers, fires::DELETE, Some(&old), None, cx).await?;
        if taken.is_some() {
            count += 1;
            give(execution, cx, &input, returning).await?;
        }
    }
    named.end(&[], cx).await?;
    Ok(count)
}

/// The new row as the triggers leave it; None where one of them does not take the row.
async fn instead(
    triggers: &Option<Rc<Triggers>>,
    event: i16,
    old: Option<&[throng_types::Datum]>,
    new: Option<Row>,
    cx: &Context<'_>,
) -> Result<Option<Option<Row>>> {
    match triggers {
        Some(triggers) => triggers.instead(event, old, new, cx).await,
        // They are switched off in this session.
        None => Ok(Some(new)),
    }
}
