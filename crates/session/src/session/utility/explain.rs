//! EXPLAIN: a plan as PostgreSQL lays it out, in text or JSON; with ANALYZE, with what each
//! operator did.

mod bitmap;
mod deparse;
mod markup;
mod write;

use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_bind::command::{ExplainFormat, ExplainOptions};
use throng_bind::expr::{Expr, RelId};
use throng_bind::query::{BoundQuery, JoinKind, SetOp};
use throng_plan::{
    Append, AppendInput, Cost, IndexScan, InheritedTarget, Node, Plan, PlannedStatement,
    StatementTag, prune,
};
use throng_types::lexical::quote_ident;
use throng_types::{Datum, Oid, Result, SqlType};
use throng_values::func::EvalContext;

use crate::session::Session;
use crate::session::statement::query::{Rows, as_text};
use deparse::Names;
use throng_exec::client::{Client, ClientFuture, Field, Format, RowShape};
use throng_exec::run::context::NodeCounters;
use write::{Shown, millis, write_json, write_text, write_triggers};

/// The oid of the type `json`, known to clients; there are no values of it to compute with.
const JSON: Oid = Oid(114);
/// So is that of `xml`.
const XML: Oid = Oid(142);

/// What is written as JSON in the words of another format.
fn marked_up(json: String, format: ExplainFormat) -> Datum {
    match format {
        ExplainFormat::Xml => Datum::from(markup::xml(&json)),
        ExplainFormat::Yaml => Datum::from(markup::yaml(&json)),
        ExplainFormat::Text | ExplainFormat::Json => Datum::Json(json.into()),
    }
}

impl Session {
    pub(in crate::session) async fn explain(
        &self,
        options: &ExplainOptions,
        query: BoundQuery,
        client: &mut dyn Client,
    ) -> Result<()> {
        let shape = self.explain_shape(options);
        client.row_description(&shape);
        self.explain_rows(options, query, &shape, client).await?;
        client.command_complete("EXPLAIN");
        Ok(())
    }

    /// The columns of EXPLAIN's result.
    pub(in crate::session) fn explain_shape(&self, options: &ExplainOptions) -> Arc<RowShape> {
        let ty = match options.format {
            ExplainFormat::Text | ExplainFormat::Yaml => SqlType::TEXT,
            ExplainFormat::Json => SqlType::plain(JSON),
            ExplainFormat::Xml => SqlType::plain(XML),
        };
        let name = "QUERY PLAN".to_owned();
        as_text(vec![Field {
            name,
            table: Oid::NONE,
            column: 0,
            ty,
            size: -1,
        }])
    }

    pub(in crate::session) async fn explain_rows(
        &self,
        options: &ExplainOptions,
        query: BoundQuery,
        shape: &RowShape,
        client: &mut dyn Client,
    ) -> Result<()> {
        let planning = Instant::now();
        let planned = Arc::new(self.plan(query).await?);
        let planning = planning.elapsed();
        self.lock_plan(&planned, &[]).await?;
        self.explain_plan(options, planned, planning, shape, client)
            .await
    }

    async fn shown(
        &self,
        planned: Arc<PlannedStatement>,
        counters: Option<Vec<NodeCounters>>,
    ) -> Result<Shown> {
        let pooled = self.pooled_operators(&planned);
        let shown = self.aside(move |eval| {
            let plans = planned.subplans.iter().chain([&planned.root]);
            let view = View {
                counters: counters.as_deref(),
                qualified: plans.map(relations).sum::<usize>() > 1,
                pooled: &pooled,
                eval,
            };
            Ok(statement(&planned, view))
        });
        shown.await
    }

    /// Shows a plan whose tables are locked; `planning`: how long it took to make.
    pub(in crate::session) async fn explain_plan(
        &self,
        options: &ExplainOptions,
        planned: Arc<PlannedStatement>,
        planning: Duration,
        shape: &RowShape,
        client: &mut dyn Client,
    ) -> Result<()> {
        let mut counters = None;
        let mut execution = None;
        let mut triggers = Vec::new();
        if options.analyze {
            let values = self.command_values.take();
            let mut run = self.start(planned.clone(), values, Rows::Given)?;
            run.execution.count();
            self.deferred.triggers.count();
            let started = Instant::now();
            let given = {
                let result_shape = crate::session::statement::query::columns(&planned);
                let mut nobody = Discard;
                self.run_to(&mut run, result_shape.as_deref(), u64::MAX, &mut nobody)
                    .await?
            };
            execution = Some(started.elapsed());
            counters = run.take_counters();
            triggers = self.deferred.triggers.take_counts();
            triggers.sort_by(|(a, ..), (b, ..)| (a.table, &a.name).cmp(&(b.table, &b.name)));
            if planned.tag != StatementTag::Select
                && let Some(top) = counters
                    .as_mut()
                    .and_then(|c| c.get_mut(planned.root.id as usize))
            {
                top.loops = 1;
                top.rows = if planned.output.is_empty() {
                    0
                } else {
                    given.rows
                };
                top.nanos = started.elapsed().as_nanos() as u64;
            }
        }
        let execution = execution.filter(|_| options.summary);
        let tree = self.shown(planned, counters).await?;
        let catalog = self.catalog();
        let host = self.host(&catalog);
        let ctx = host.eval();
        let give = |line: String| client.row(&[Datum::from(line)], shape, &ctx);
        if options.format != ExplainFormat::Text {
            let mut json = String::from("[\n  {\n    \"Plan\": ");
            write_json(&tree, options, 2, &mut json);
            if options.summary {
                json.push_str(&format!(
                    ",\n    \"Planning Time\": {:.3}",
                    millis(planning)
                ));
            }
            if execution.is_some() {
                write_triggers(&triggers, options, &catalog, &mut json);
            }
            if let Some(execution) = execution {
                json.push_str(&format!(
                    ",\n    \"Execution Time\": {:.3}",
                    millis(execution)
                ));
            }
            json.push_str("\n  }\n]");
            return client.row(&[marked_up(json, options.format)], shape, &ctx);
        }
        let mut lines = Vec::new();
        write_text(&tree, options, 0, &mut lines);
        if options.summary {
            lines.push(format!("Planning Time: {:.3} ms", millis(planning)));
        }
        let mut pairs = triggers.windows(2);
        let several = pairs.any(|pair| pair[0].0.table != pair[1].0.table);
        for (def, calls, time) in &triggers {
            let relation = catalog.relation(def.table);
            let on = relation.filter(|_| several || options.verbose);
            let on = on.map(|r| format!(" on {}", quote_ident(r.name())));
            let name = match (&def.constraint, options.verbose) {
                (None, _) => format!(" {}", quote_ident(&def.name)),
                (Some(_), false) => format!(" for constraint {}", quote_ident(&def.name)),
                (Some(_), true) => format!(" {0} for constraint {0}", quote_ident(&def.name)),
            };
            let on = on.unwrap_or_default();
            let time = match options.timing {
                true => format!("time={:.3} ", millis(*time)),
                false => String::new(),
            };
            lines.push(format!("Trigger{name}{on}: {time}calls={calls}"));
        }
        if let Some(execution) = execution {
            lines.push(format!("Execution Time: {:.3} ms", millis(execution)));
        }
        lines.into_iter().try_for_each(give)
    }
}

fn statement(planned: &PlannedStatement, view: View<'_>) -> Shown {
    let mut root = show(&planned.root, view).0;
    for (number, plan) in planned.subplans.iter().enumerate() {
        let mut shown = show(plan, view).0;
        shown.label = Some(format!("SubPlan {}", number + 1));
        root.children.push(shown);
    }
    root.name_params(&[]);
    root
}

/// How plans are shown.
#[derive(Clone, Copy)]
struct View<'c> {
    counters: Option<&'c [NodeCounters]>,
    /// Above scans, columns go by the names of their relations too, as there are several.
    qualified: bool,
    /// Operators that run on the analytics pool, with all that is below them.
    pooled: &'c [u32],
    /// What constants are written by.
    eval: EvalContext<'c>,
}

impl View<'_> {
    fn of<'a>(&self, alias: &'a str) -> Option<&'a str> {
        self.qualified.then_some(alias)
    }
}

/// The entries of a plan that are read or written.
fn relations(plan: &Plan) -> usize {
    let own = match &plan.node {
        // The parent, and its tables.
        Node::Append(append) => return 1 + append.inputs.len(),
        Node::SeqScan(_)
        | Node::IndexScan(_)
        | Node::BitmapScan(_)
        | Node::VirtualScan { .. }
        | Node::FunctionScan(_)
        | Node::RoutineScan(_)
        | Node::RowsFrom { .. }
        | Node::CteScan { .. }
        | Node::WorkTableScan { .. }
        | Node::Insert(_)
        | Node::Merge(_) => 1,
        _ => 0,
    };
    own + plan.children().into_iter().map(relations).sum::<usize>()
}

fn on_the_pool() -> (&'static str, String) {
    ("Runs On", "analytics pool".to_owned())
}

fn join_name(method: &str, kind: JoinKind) -> String {
    match (method, kind) {
        ("Hash", JoinKind::Inner) => "Hash Join".to_owned(),
        ("Hash", kind) => format!("Hash {} Join", kind_name(kind)),
        (method, JoinKind::Inner) => method.to_owned(),
        (method, kind) => format!("{method} {} Join", kind_name(kind)),
    }
}

fn kind_name(kind: JoinKind) -> &'static str {
    match kind {
        JoinKind::Inner => "Inner",
        JoinKind::Left => "Left",
        JoinKind::Right => "Right",
        JoinKind::Full => "Full",
        JoinKind::Semi => "Semi",
        JoinKind::Anti => "Anti",
    }
}

fn on_table(verb: &str, name: &str, alias: &str) -> String {
    if name == alias {
        format!("{verb} on {name}")
    } else {
        format!("{verb} on {name} {alias}")
    }
}

/// An operator with those below it, and the names of its output columns.
fn show<'c>(plan: &Plan, view: View<'c>) -> (Shown, Names<'c>) {
    let numbered = || Names::numbered(plan.types.len(), view.eval);
    let mut details = Vec::new();
    let mut children = Vec::new();
    let mut below = |plan: &Plan| {
        let (shown, names) = show(plan, view);
        children.push(shown);
        names
    };
    let (title, names) = match &plan.node {
        Node::Values { rows } if rows.is_empty() => {
            details.push(("One-Time Filter", "false".to_owned()));
            ("Result".to_owned(), numbered())
        }
        Node::Values { rows } => {
            let title = if rows.len() == 1 {
                "Result"
            } else {
                "Values Scan on \"*VALUES*\""
            };
            (title.to_owned(), numbered())
        }
        Node::SeqScan(scan) => {
            let names = Names::of_columns(&scan.table, &scan.columns, view.eval);
            if let Some(sample) = &scan.sample {
                let mut text =
                    format!("{} ({})", sample.method.name(), names.text(&sample.percent));
                if let Some(seed) = &sample.seed {
                    text += &format!(" REPEATABLE ({})", names.text(seed));
                }
                details.push(("Sampling", text));
            }
            let verb = match &scan.place {
                None if scan.sample.is_some() => "Sample Scan",
                None => "Seq Scan",
                Some(place) => {
                    details.push((
                        "TID Cond",
                        match &place.cursor {
                            Some(cursor) => format!("CURRENT OF {}", quote_ident(cursor)),
                            None => format!("(ctid = {})", names.text(&place.value)),
                        },
                    ));
                    "Tid Scan"
                }
            };
            details.extend(names.condition("Filter", scan.filter.as_ref()));
            let title = on_table(verb, &scan.table.name, &scan.alias);
            (title, names.under(view.of(&scan.alias)))
        }
        Node::IndexScan(scan) => index_scan(plan, scan, view, &mut details, &mut children),
        Node::BitmapScan(scan) => bitmap::scan(scan, view, &mut details, &mut children),
        Node::VirtualScan {
            alias,
            table,
            columns,
            filter,
            ..
        } => {
            let names = Names::of_virtual(table, columns, view.eval);
            details.extend(names.condition("Filter", filter.as_ref()));
            let title = on_table("Seq Scan", table.name, alias);
            (title, names.under(view.of(alias)))
        }
        Node::FunctionScan(scan) => {
            let names = Names::repeated(&scan.alias, plan.types.len(), view.eval);
            details.extend(names.condition("Filter", scan.filter.as_ref()));
            (
                on_table("Function Scan", scan.func.name, &scan.alias),
                names,
            )
        }
        Node::RowsFrom { alias, .. } => {
            let names = Names::repeated(alias, plan.types.len(), view.eval);
            (format!("Function Scan on {alias}"), names)
        }
        Node::RoutineScan(scan) => {
            let names = Names::repeated(&scan.alias, plan.types.len(), view.eval);
            details.extend(names.condition("Filter", scan.filter.as_ref()));
            let name = &scan.call.def.name;
            (on_table("Function Scan", name, &scan.alias), names)
        }
        Node::CteScan { alias, filter, .. } => {
            let names = Names::repeated(alias, plan.types.len(), view.eval);
            details.extend(names.condition("Filter", filter.as_ref()));
            (format!("CTE Scan on {alias}"), names)
        }
        Node::WorkTableScan { alias, filter, .. } => {
            let names = Names::repeated(alias, plan.types.len(), view.eval);
            details.extend(names.condition("Filter", filter.as_ref()));
            (format!("WorkTable Scan on {alias}"), names)
        }
        Node::RecursiveUnion(union) => {
            let names = below(&union.init);
            below(&union.term);
            ("Recursive Union".to_owned(), names)
        }
        Node::Filter {
            input,
            condition,
            once,
        } => {
            let names = below(input);
            let label = if *once { "One-Time Filter" } else { "Filter" };
            details.extend(names.condition(label, Some(condition)));
            ("Result".to_owned(), names)
        }
        Node::Project { input, exprs } => {
            // A projection is part of what is below it, as PostgreSQL shows it.
            let (mut shown, names) = show(input, view);
            shown.cost = plan.cost;
            if view.pooled.contains(&plan.id) {
                shown.details.push(on_the_pool());
            }
            return (shown, names.project(exprs));
        }
        Node::ProjectSet { input, .. } => {
            below(input);
            ("ProjectSet".to_owned(), numbered())
        }
        Node::NestedLoop(join) => {
            let left = below(&join.left);
            let right = below(&join.right);
            let named = join.params.iter().map(|(id, e)| (id.0, left.text(e)));
            let named: Vec<(u32, String)> = named.collect();
            if let (Some(inner), false) = (children.last_mut(), named.is_empty()) {
                inner.name_params(&named);
            }
            let width = left.len();
            let both = left.join(right);
            details.extend(both.condition("Join Filter", join.on.as_ref()));
            details.extend(both.condition("Filter", join.filter.as_ref()));
            (
                join_name("Nested Loop", join.kind),
                both.joined(join.kind, width),
            )
        }
        Node::HashJoin(join) => {
            let left = below(&join.left);
            let right = below(&join.right);
            let pairs = join.left_keys.iter().zip(&join.right_keys);
            let keys: Vec<String> = pairs
                .map(|(l, r)| format!("({} = {})", left.text(l), right.text(r)))
                .collect();
            let keys = match &keys[..] {
                [one] => one.clone(),
                many => format!("({})", many.join(" AND ")),
            };
            details.push(("Hash Cond", keys));
            let width = left.len();
            let both = left.join(right);
            details.extend(both.condition("Join Filter", join.on.as_ref()));
            details.extend(both.condition("Filter", join.filter.as_ref()));
            (join_name("Hash", join.kind), both.joined(join.kind, width))
        }
        Node::Sort { input, keys } => {
            let names = below(input);
            let keys: Vec<String> = keys.iter().map(|key| names.sort_key(key)).collect();
            details.push(("Sort Key", keys.join(", ")));
            ("Sort".to_owned(), names)
        }
        Node::Limit { input, .. } => {
            let names = below(input);
            ("Limit".to_owned(), names)
        }
        Node::Aggregate(aggregate) => {
            let names = below(&aggregate.input);
            let of_all = aggregate.sets.iter().any(Vec::is_empty);
            let title = if of_all {
                "MixedAggregate"
            } else if aggregate.group.is_empty() {
                "Aggregate"
            } else {
                "HashAggregate"
            };
            for set in aggregate.sets.iter().filter(|set| !set.is_empty()) {
                let keys = set
                    .iter()
                    .map(|at| names.text(&aggregate.group[*at as usize]));
                details.push(("Hash Key", keys.collect::<Vec<_>>().join(", ")));
            }
            if of_all {
                details.push(("Group Key", "()".to_owned()));
            }
            if !aggregate.group.is_empty() && aggregate.sets.is_empty() {
                let keys: Vec<String> = aggregate.group.iter().map(|e| names.text(e)).collect();
                details.push(("Group Key", keys.join(", ")));
            }
            let output = names.aggregate(aggregate);
            details.extend(output.condition("Filter", aggregate.having.as_ref()));
            (title.to_owned(), output)
        }
        Node::Window(window) => {
            let names = below(&window.input);
            details.push(("Window", names.window(window)));
            ("WindowAgg".to_owned(), names.windowed(window))
        }
        Node::Distinct { input, keys, .. } => {
            let names = below(input);
            let keys: Vec<String> = keys.iter().map(|e| names.text(e)).collect();
            details.push(("Group Key", keys.join(", ")));
            ("HashAggregate".to_owned(), names)
        }
        Node::SetOp {
            op,
            all,
            left,
            right,
        } => {
            let names = below(left);
            below(right);
            let title = match (op, all) {
                (SetOp::Union, true) => "Append",
                (SetOp::Union, false) => "HashSetOp Union",
                (SetOp::Intersect, true) => "HashSetOp Intersect All",
                (SetOp::Intersect, false) => "HashSetOp Intersect",
                (SetOp::Except, true) => "HashSetOp Except All",
                (SetOp::Except, false) => "HashSetOp Except",
            };
            (title.to_owned(), names)
        }
        Node::Append(append) => {
            if let [input] = &append.inputs[..] {
                let (mut shown, names) = show(&input.plan, view);
                shown.cost = plan.cost;
                return (shown, names.picked(&input.slots));
            }
            let mut names = numbered();
            let read = inputs_read(append, view, &mut details);
            for (at, input) in read.into_iter().enumerate() {
                let own = below(&input.plan).picked(&input.slots);
                if at == 0 {
                    names = own;
                }
            }
            ("Append".to_owned(), names)
        }
        Node::LockRows(node) => {
            let names = below(&node.input);
            ("LockRows".to_owned(), names)
        }
        Node::Materialize { input } => {
            let names = below(input);
            ("Materialize".to_owned(), names)
        }
        Node::Insert(node) => {
            below(&node.input);
            (format!("Insert on {}", node.table.name), numbered())
        }
        Node::Update(node) => {
            below(&node.input);
            targets("Update", &node.input, node.family.as_deref(), &mut details);
            (format!("Update on {}", node.table.name), numbered())
        }
        Node::Merge(node) => {
            below(&node.input);
            let alias = node.alias.iter().filter(|alias| **alias != node.table.name);
            let alias: String = alias.map(|alias| format!(" {alias}")).collect();
            (format!("Merge on {}{alias}", node.table.name), numbered())
        }
        Node::Delete(node) => {
            below(&node.input);
            targets("Delete", &node.input, node.family.as_deref(), &mut details);
            (format!("Delete on {}", node.table.name), numbered())
        }
    };
    let counters = view.counters.and_then(|c| c.get(plan.id as usize)).copied();
    if view.pooled.contains(&plan.id) {
        details.push(on_the_pool());
    }
    (
        Shown {
            title,
            details,
            cost: plan.cost,
            counters,
            children,
            label: None,
        },
        names,
    )
}

/// What a scan's filter asks that its condition does not say.
fn asked_beside(scan: &IndexScan) -> Option<Expr> {
    let parts = |of: &Option<Expr>| {
        let mut parts = Vec::new();
        of.iter().for_each(|e| e.clone().conjuncts(&mut parts));
        parts
    };
    let said = parts(&scan.condition);
    let mut asked = parts(&scan.filter);
    asked.retain(|part| !said.contains(part));
    Expr::all_of(asked)
}

/// The title of an index scan, what its columns are called; its details and what finds the entries,
/// where that is shown by itself, are added.
fn index_scan<'c>(
    plan: &Plan,
    scan: &IndexScan,
    view: View<'c>,
    details: &mut Vec<(&'static str, String)>,
    children: &mut Vec<Shown>,
) -> (String, Names<'c>) {
    let names = Names::of_columns(&scan.table, &scan.columns, view.eval);
    let condition = names.condition("Index Cond", scan.condition.as_ref());
    let verb = if scan.by_place {
        details.extend(names.condition("Recheck Cond", scan.condition.as_ref()));
        children.push(Shown {
            title: format!("Bitmap Index Scan on {}", scan.index.name),
            details: condition.into_iter().collect(),
            cost: Cost {
                startup: 0.0,
                total: plan.cost.startup,
                width: 0,
                ..plan.cost
            },
            counters: None,
            children: Vec::new(),
            label: None,
        });
        "Bitmap Heap Scan".to_owned()
    } else {
        details.extend(condition);
        let direction = if scan.reverse { " Backward" } else { "" };
        format!("Index Scan{direction} using {}", scan.index.name)
    };
    details.extend(names.condition("Filter", asked_beside(scan).as_ref()));
    let title = on_table(&verb, &scan.table.name, &scan.alias);
    (title, names.under(view.of(&scan.alias)))
}

/// The inputs of an Append that are read if it runs now; how many are not.
fn inputs_read<'p>(
    append: &'p Append,
    view: View<'_>,
    details: &mut Vec<(&'static str, String)>,
) -> Vec<&'p AppendInput> {
    let pruning = append.pruning.as_ref();
    let kept = pruning.and_then(|pruning| prune::leaves_now(pruning, &view.eval));
    let is_read = |input: &&AppendInput| kept.as_ref().is_none_or(|k| k.contains(&input.leaf));
    let read: Vec<&AppendInput> = append.inputs.iter().filter(is_read).collect();
    let removed = append.inputs.len() - read.len();
    if removed > 0 {
        details.push(("Subplans Removed", removed.to_string()));
    }
    read
}

/// The tables behind the target that are read, each on a line of its own.
fn targets(
    verb: &str,
    input: &Plan,
    family: Option<&InheritedTarget>,
    details: &mut Vec<(&'static str, String)>,
) {
    for member in family.iter().flat_map(|family| &family.members) {
        if let Some(alias) = alias_of(input, member.rel) {
            details.push(("", on_table(verb, &member.leaf.table.name, alias)));
        }
    }
}

/// What an entry's scan goes by.
fn alias_of(plan: &Plan, rel: RelId) -> Option<&str> {
    match &plan.node {
        Node::SeqScan(scan) if scan.rel == rel => Some(&scan.alias),
        Node::IndexScan(scan) if scan.rel == rel => Some(&scan.alias),
        Node::BitmapScan(scan) if scan.rel == rel => Some(&scan.alias),
        _ => plan
            .children()
            .into_iter()
            .find_map(|child| alias_of(child, rel)),
    }
}

/// Takes a statement's rows and does nothing with them: EXPLAIN ANALYZE shows only how they came to
/// be.
pub(in crate::session) struct Discard;

impl Client for Discard {
    fn row_description(&mut self, _: &RowShape) {}
    fn row(
        &mut self,
        _: &[Datum],
        _: &RowShape,
        _: &throng_values::func::EvalContext<'_>,
    ) -> Result<()> {
        Ok(())
    }
    fn command_complete(&mut self, _: &str) {}
    fn empty_query(&mut self) {}
    fn portal_suspended(&mut self) {}
    fn notice(&mut self, _: &throng_types::Error) {}
    fn hears_at_once(&self) -> bool {
        false
    }
    fn parameter_status(&mut self, _: &str, _: &str) {}
    fn notification(&mut self, _: i32, _: &throng_exec::client::Notification) {}
    fn copy_in_start(&mut self, _: Format, _: usize) {}
    fn copy_read<'a>(&'a mut self, _: &'a mut Vec<u8>) -> ClientFuture<'a, bool> {
        Box::pin(std::future::ready(Ok(false)))
    }
    fn copy_out_start(&mut self, _: Format, _: usize) {}
    fn copy_data(&mut self, _: &[u8]) {}
    fn copy_out_done(&mut self) {}
    fn backlog(&self) -> usize {
        0
    }
    fn flush(&mut self) -> ClientFuture<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }
}
