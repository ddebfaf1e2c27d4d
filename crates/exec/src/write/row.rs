//! One row's constraints and index entries, with PostgreSQL's complaints.

use throng_access::Liveness;
use throng_access::TxContext;
use throng_access::btree::{Check, Conflict, Run};
use throng_bind::query::CheckOf;
use throng_buffer::{Try, retry};
use throng_catalog::{Catalog, ConstraintDef, TableDef};
use throng_txn::rows::wait_for_unique;
use throng_types::error::state;
use throng_types::{Datum, Error, Result, SqlType, Tid};
use throng_values::acl::right;
use throng_values::func::EvalContext;
use throng_values::inverted::Keys;
use throng_values::io::output_text;

use super::deferred::Due;
use super::exclusion::{self, Entering, Undecided};
use super::{Context, Target};
use crate::run::context::Env;
use crate::table::{COMPUTED, Index, Table};

/// Values longer than this are cut in error details, as in PostgreSQL.
const LONGEST_SHOWN: usize = 64;

fn text(value: &Datum, def: &TableDef, at: usize, ctx: &EvalContext<'_>) -> String {
    value_text(value, def.columns[at].ty, ctx)
}

fn value_text(value: &Datum, ty: SqlType, ctx: &EvalContext<'_>) -> String {
    if value.is_null() {
        return "null".to_owned();
    }
    let mut bytes = Vec::new();
    output_text(ctx, value, ty, &mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The columns that the role may read of a row, by place; None: all of them. Of a table whose rows
/// policies may hide from it, none.
fn readable(def: &TableDef, env: Env<'_>) -> Option<Vec<usize>> {
    let role = env.system.current_user();
    let relation = env.catalog.relation(def.oid)?;
    let above = env.catalog.ancestors(def).into_iter();
    let mut above = above.filter_map(|oid| env.catalog.table(oid));
    let hides = |table: &TableDef| env.catalog.has_row_security(table, role);
    if hides(def) || above.any(|table| hides(table)) {
        return Some(Vec::new());
    }
    if env.catalog.relation_rights(role, &relation, right::SELECT) != 0 {
        return None;
    }
    let may = |at: &usize| {
        let column = *at as u16 + 1;
        env.catalog
            .column_rights(role, &relation, column, right::SELECT)
            != 0
    };
    Some((0..def.columns.len()).filter(may).collect())
}

/// `Failing row contains (1, null, …).` Of the columns that the role may read, which are then
/// named; empty where it may read none.
pub fn failing_row(def: &TableDef, row: &[Datum], env: Env<'_>) -> String {
    let readable = readable(def, env);
    let shown: Vec<usize> = def
        .columns
        .iter()
        .enumerate()
        .filter(|(_, column)| !column.dropped)
        .map(|(at, _)| at)
        .filter(|at| readable.as_ref().is_none_or(|columns| columns.contains(at)))
        .collect();
    let values: Vec<String> = shown
        .iter()
        .map(|at| {
            let mut shown = match def.columns[*at].is_virtual() {
                true => "virtual".to_owned(),
                false => text(&row[*at], def, *at, &env.eval),
            };
            if shown.len() > LONGEST_SHOWN {
                shown.truncate(shown.floor_char_boundary(LONGEST_SHOWN));
                shown.push_str("...");
            }
            shown
        })
        .collect();
    let values = values.join(", ");
    if readable.is_none() {
        return format!("Failing row contains ({values}).");
    }
    let names: Vec<&str> = shown.iter().map(|at| &*def.columns[*at].name).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!("Failing row contains ({}) = ({values}).", names.join(", ")),
    }
}

/// The error with its detail, where there is one.
pub fn with_detail(error: Error, detail: String) -> Error {
    match detail.is_empty() {
        true => error,
        false => error.detail(detail),
    }
}

/// The key columns and a row's values of them, where the role may read these.
pub fn shown_key(def: &TableDef, columns: &[usize], row: &[Datum], env: Env<'_>) -> Option<String> {
    let readable = readable(def, env);
    let all = readable.is_none_or(|seen| columns.iter().all(|at| seen.contains(at)));
    all.then(|| key_text(def, columns, row, &env.eval))
}

/// The error, naming the table it is about.
pub fn about(error: Error, def: &TableDef, catalog: &Catalog) -> Error {
    let schema = catalog.schema(def.schema);
    error.table(schema.map_or("", |s| s.name.as_str()), &def.name)
}

/// 23502 for the first NULL that may not be.
pub fn check_not_null(def: &TableDef, row: &[Datum], env: Env<'_>) -> Result<()> {
    for (column, value) in def.columns.iter().zip(row) {
        if column.not_null && value.is_null() && !column.dropped && !column.is_virtual() {
            return Err(not_null_violation(def, &column.name, row, env));
        }
    }
    Ok(())
}

#[cold]
fn not_null_violation(def: &TableDef, column: &str, row: &[Datum], env: Env<'_>) -> Error {
    let message = format!(
        "null value in column \"{column}\" of relation \"{}\" violates not-null constraint",
        def.name
    );
    let error = Error::new(state::NOT_NULL_VIOLATION, message).column(column);
    about(
        with_detail(error, failing_row(def, row, env)),
        def,
        env.catalog,
    )
}

/// What a row broke: the constraint, the column or the view of this name.
#[cold]
pub fn violation(def: &TableDef, of: CheckOf, name: &str, row: &[Datum], env: Env<'_>) -> Error {
    match of {
        CheckOf::Constraint => check_violation(def, name, row, env),
        CheckOf::NotNull(_) => not_null_violation(def, name, row, env),
        CheckOf::View => view_violation(def, name, row, env),
        CheckOf::Policy(_) => refused(name),
    }
}

/// 42501: row security says so.
pub fn refused(message: &str) -> Error {
    Error::new(state::INSUFFICIENT_PRIVILEGE, message.to_owned())
}

/// 23514.
pub fn check_violation(def: &TableDef, name: &str, row: &[Datum], env: Env<'_>) -> Error {
    let message = format!(
        "new row for relation \"{}\" violates check constraint \"{name}\"",
        def.name
    );
    let error = Error::new(state::CHECK_VIOLATION, message).constraint(name);
    about(
        with_detail(error, failing_row(def, row, env)),
        def,
        env.catalog,
    )
}

/// 44000: the row would not be seen through the view it was written through.
fn view_violation(def: &TableDef, view: &str, row: &[Datum], env: Env<'_>) -> Error {
    let message = format!("new row violates check option for view \"{view}\"");
    let error = Error::new(state::WITH_CHECK_OPTION_VIOLATION, message);
    with_detail(error, failing_row(def, row, env))
}

/// `(a, b)=(1, 2)`: key columns and a row's values of them.
pub fn key_text(def: &TableDef, columns: &[usize], row: &[Datum], ctx: &EvalContext<'_>) -> String {
    let names: Vec<&str> = columns
        .iter()
        .map(|at| def.columns[*at].name.as_str())
        .collect();
    let values: Vec<String> = columns
        .iter()
        .map(|at| text(&row[*at], def, *at, ctx))
        .collect();
    format!("({})=({})", names.join(", "), values.join(", "))
}

/// As [`key_text`], of an index for whose expressions the row has these values.
pub fn index_key_text(
    def: &TableDef,
    index: &Index,
    row: &[Datum],
    computed: &[Datum],
    ctx: &EvalContext<'_>,
) -> String {
    if computed.is_empty() {
        return key_text(def, &index.columns, row, ctx);
    }
    let (mut names, mut values) = (Vec::new(), Vec::new());
    for ((_, expr), at) in index.def.keys().zip(&index.columns) {
        match (expr, at.checked_sub(COMPUTED)) {
            (Some(expr), Some(at)) => {
                names.push(expr.text.as_str());
                values.push(value_text(&computed[at], expr.ty, ctx));
            }
            _ => {
                names.push(def.columns[*at].name.as_str());
                values.push(text(&row[*at], def, *at, ctx));
            }
        }
    }
    format!("({})=({})", names.join(", "), values.join(", "))
}

/// As [`shown_key`], of an index for whose expressions the row has these values.
pub(super) fn shown_index_key(
    def: &TableDef,
    index: &Index,
    row: &[Datum],
    computed: &[Datum],
    env: Env<'_>,
) -> Option<String> {
    match computed.is_empty() {
        true => shown_key(def, &index.columns, row, env),
        false => readable(def, env)
            .is_none()
            .then(|| index_key_text(def, index, row, computed, &env.eval)),
    }
}

/// 23505.
pub fn unique_violation(
    target: &Target,
    index: &Index,
    row: &[Datum],
    computed: &[Datum],
    env: Env<'_>,
) -> Error {
    let message = format!(
        "duplicate key value violates unique constraint \"{}\"",
        index.def.name
    );
    let key = shown_index_key(target.def(), index, row, computed, env);
    let detail = key.map_or_else(String::new, |key| format!("Key {key} already exists."));
    let error = Error::new(state::UNIQUE_VIOLATION, message).constraint(&index.def.name);
    let error = with_detail(error, detail);
    about(error, target.def(), env.catalog)
}

/// What the heap says of another row with the same key.
pub fn conflict_with(
    table: &Table,
    root: Tid,
    own: Option<Tid>,
    ctx: &dyn TxContext,
) -> Try<Conflict> {
    if own == Some(root) {
        return Ok(Conflict::None);
    }
    Ok(match table.heap.liveness(root, ctx)? {
        Liveness::Dead => Conflict::None,
        Liveness::Live(tid) => Conflict::Live(tid),
        Liveness::InProgress(xid) => Conflict::Busy(xid),
    })
}

/// Makes a row's entries in all indexes.
///
/// # Errors
/// 23505 where a unique index has its key already; 54000 for a key too long.
pub async fn enter(target: &Target, row: &[Datum], tid: Tid, cx: &Context<'_>) -> Result<()> {
    enter_unless(target, row, tid, |_| false, cx)
        .await
        .map(drop)
}

/// As [`enter`], but false where an index that `gives_way` has the key already: what was entered is
/// then to be rolled back.
pub async fn enter_unless(
    target: &Target,
    row: &[Datum],
    tid: Tid,
    gives_way: impl Fn(&Index) -> bool,
    cx: &Context<'_>,
) -> Result<bool> {
    let mut key = Vec::new();
    let indexes = target.indexes.iter().zip(&target.deferrable);
    for (number, (index, deferrable)) in indexes.enumerate() {
        let Some(computed) = target.computed(number, row, cx).await? else {
            continue;
        };
        if let Some(classes) = &index.inverted {
            let mut keys = Keys::default();
            index.inverted_keys(classes, row, &computed, &mut keys)?;
            enter_keys(target, index, &keys, tid, cx).await?;
            continue;
        }
        key.clear();
        let any_null = index.append_key(row, &computed, &mut key)?;
        if !index.def.terms.exclusion.is_empty() {
            enter_run(target, index, &[(&key, tid)], false, cx).await?;
            let entering = Entering {
                row,
                computed: &computed,
                tid: Some(tid),
            };
            let undecided = match gives_way(index) {
                true => Undecided::GivesWay,
                false => Undecided::Waits,
            };
            if !exclusion::entered(target, number, entering, undecided, cx).await? {
                return Ok(false);
            }
            continue;
        }
        let unique = is_unique_for(index, any_null);
        if let Some(constraint) = deferrable.as_ref().filter(|_| unique) {
            enter_unchecked(index, &key, tid, constraint, target, cx).await?;
            continue;
        }
        match enter_run(target, index, &[(&key, tid)], unique, cx).await? {
            Run::Added(_) => {}
            _ if gives_way(index) => return Ok(false),
            _ => return Err(unique_violation(target, index, row, &computed, cx.env)),
        }
    }
    Ok(true)
}

/// Makes a row's entries in an inverted index.
async fn enter_keys(
    target: &Target,
    index: &Index,
    keys: &Keys,
    tid: Tid,
    cx: &Context<'_>,
) -> Result<()> {
    /// Runs of entries after which others have their turn.
    const TURN: usize = 200;
    let keys = keys.sorted().into_iter();
    let entries: Vec<(&[u8], Tid)> = keys.map(|key| (key, tid)).collect();
    let mut left = &entries[..];
    for step in 1.. {
        if left.is_empty() {
            break;
        }
        match enter_run(target, index, left, false, cx).await? {
            Run::Added(count) => left = &left[count..],
            Run::Duplicate(_) | Run::Busy(_) => {
                return Err(Error::internal(
                    "an entry that need not be unique is refused",
                ));
            }
        }
        if step % TURN == 0 {
            crate::turns::next_turn().await;
            cx.env.cancel.check()?;
        }
    }
    Ok(())
}

/// Makes an entry whether or not the key is there already; if it may be, that is checked later.
pub async fn enter_unchecked(
    index: &Index,
    key: &[u8],
    tid: Tid,
    constraint: &ConstraintDef,
    target: &Target,
    cx: &Context<'_>,
) -> Result<()> {
    let mut is_met = false;
    retry(|| {
        let mut check = |other| {
            is_met |= conflict_with(&target.table, other, Some(tid), cx.txn)? != Conflict::None;
            Ok(Conflict::None)
        };
        index
            .tree
            .insert_run(&[(key, tid)], cx.txn.xid(), Some(&mut check))
    })
    .await?;
    cx.txn.wrote_key(index.tree.file(), key)?;
    if is_met {
        cx.deferred.add(constraint, tid, Due::Unique);
    }
    Ok(())
}

/// 23505 if the row that the entry for `root` leads to is there and another has its key, 23P01 if
/// another is in conflict with it. Waits for those who may come to have it.
pub async fn check_unique(
    target: &Target,
    number: usize,
    root: Tid,
    cx: &Context<'_>,
) -> Result<()> {
    let index = &target.indexes[number];
    let (mut key, mut tids, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    let mut row = Vec::new();
    let heap = &target.table.heap;
    let snapshot = cx.txn.latest_snapshot();
    if retry(|| heap.fetch(root, &snapshot, &mut bytes))
        .await?
        .is_none()
    {
        return Ok(());
    }
    let columns = target.def().columns.len();
    target.table.decode(&bytes, columns, &mut row)?;
    target.table.read_external(&mut row).await?;
    if !index.def.terms.exclusion.is_empty() {
        let Some(computed) = target.computed(number, &row, cx).await? else {
            return Ok(());
        };
        let entering = Entering {
            row: &row,
            computed: &computed,
            tid: Some(root),
        };
        return match exclusion::find(target, number, entering, cx).await? {
            None => Ok(()),
            Some(other) => Err(exclusion::violation(target, index, entering, &other, cx)),
        };
    }
    index.key(&row, &mut key)?;
    'again: loop {
        retry(|| index.tree.get(&key, &mut tids)).await?;
        for &other in &tids {
            match retry(|| conflict_with(&target.table, other, Some(root), cx.txn)).await? {
                Conflict::Live(_) => {
                    return Err(unique_violation(target, index, &row, &[], cx.env));
                }
                Conflict::Busy(holder) => {
                    wait_for_unique(cx.txn, holder).await?;
                    continue 'again;
                }
                Conflict::None | Conflict::Dead => {}
            }
        }
        return Ok(());
    }
}

/// Whether the index lets in one row only with this key: NULLs are different from each other unless
/// it says otherwise.
pub fn is_unique_for(index: &Index, any_null: bool) -> bool {
    index.def.unique && (!any_null || index.def.nulls_not_distinct)
}

/// Enters the first of these entries, which ascend, and as many as go in with it; if they are
/// `unique` none whose key is there already, waiting for transactions on whose end that hangs.
pub async fn enter_run(
    target: &Target,
    index: &Index,
    entries: &[(&[u8], Tid)],
    unique: bool,
    cx: &Context<'_>,
) -> Result<Run> {
    loop {
        let run = retry(|| {
            let own = entries.first().map(|(_, tid)| *tid);
            let mut check = |other| conflict_with(&target.table, other, own, cx.txn);
            let check = unique.then_some(&mut check as Check<'_>);
            index.tree.insert_run(entries, cx.txn.xid(), check)
        })
        .await?;
        match run {
            Run::Busy(holder) => wait_for_unique(cx.txn, holder).await?,
            decided => {
                // Told of where it was refused too: that another has the key already may be what no
                // order explains.
                let told = match decided {
                    Run::Added(count) => count,
                    _ => 1,
                };
                for (key, _) in entries.iter().take(told) {
                    cx.txn.wrote_key(index.tree.file(), key)?;
                }
                return Ok(decided);
            }
        }
    }
}
