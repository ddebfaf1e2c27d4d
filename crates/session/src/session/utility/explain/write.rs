//! A plan as text and as JSON.

use std::sync::Arc;
use std::time::Duration;

use throng_bind::command::ExplainOptions;
use throng_catalog::{Catalog, TriggerDef};
use throng_exec::run::context::NodeCounters;
use throng_plan::Cost;

use super::deparse;

/// One operator as it is shown.
pub(super) struct Shown {
    pub title: String,
    pub details: Vec<(&'static str, String)>,
    pub cost: Cost,
    pub counters: Option<NodeCounters>,
    pub children: Vec<Shown>,
    /// Written before the operator where it is a subquery of an expression.
    pub label: Option<String>,
}

impl Shown {
    /// Writes what parameters are computed from in their place, by their numbers; of the others,
    /// once nobody knows more, the numbers.
    pub fn name_params(&mut self, known: &[(u32, String)]) {
        for (_, detail) in &mut self.details {
            *detail = deparse::with_params(detail, known, known.is_empty());
        }
        for child in &mut self.children {
            child.name_params(known);
        }
    }
}

pub(super) fn millis(duration: std::time::Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

pub(super) fn write_text(
    node: &Shown,
    options: &ExplainOptions,
    depth: usize,
    lines: &mut Vec<String>,
) {
    // Each level is six columns further in: two blanks, an arrow, two blanks.
    let (lead, rest) = match depth {
        0 => (String::new(), "  ".to_owned()),
        n => (
            format!("{}->  ", " ".repeat(6 * n - 4)),
            " ".repeat(6 * n + 2),
        ),
    };
    if let Some(label) = &node.label {
        lines.push(format!(
            "{}{label}",
            " ".repeat((6 * depth).saturating_sub(4))
        ));
    }
    let mut line = format!("{lead}{}", node.title);
    if options.costs {
        let cost = node.cost;
        line.push_str(&format!(
            "  (cost={:.2}..{:.2} rows={:.0} width={})",
            cost.startup, cost.total, cost.rows, cost.width
        ));
    }
    if let Some(counters) = &node.counters {
        line.push_str(&actual(counters, options));
    }
    lines.push(line);
    for (label, text) in &node.details {
        lines.push(match *label {
            "" => format!("{rest}{text}"),
            label => format!("{rest}{label}: {text}"),
        });
    }
    for child in &node.children {
        write_text(child, options, depth + 1, lines);
    }
}

fn actual(counters: &NodeCounters, options: &ExplainOptions) -> String {
    if counters.loops == 0 {
        return " (never executed)".to_owned();
    }
    let loops = counters.loops as f64;
    let rows = counters.rows as f64 / loops;
    let mut text = String::from(" (actual ");
    if options.timing {
        let first = counters.first_nanos as f64 / 1e6 / loops;
        let total = counters.nanos as f64 / 1e6 / loops;
        text.push_str(&format!("time={first:.3}..{total:.3} "));
    }
    text.push_str(&format!("rows={rows:.2} loops={})", counters.loops));
    text
}

fn json_string(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if (c as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

pub(super) fn write_json(node: &Shown, options: &ExplainOptions, depth: usize, out: &mut String) {
    let pad = "  ".repeat(depth + 1);
    let mut fields = vec![format!("\"Node Type\": {}", json_string(&node.title))];
    if let Some(label) = &node.label {
        fields.push(format!("\"Subplan Name\": {}", json_string(label)));
    }
    if options.costs {
        let cost = node.cost;
        fields.push(format!("\"Startup Cost\": {:.2}", cost.startup));
        fields.push(format!("\"Total Cost\": {:.2}", cost.total));
        fields.push(format!("\"Plan Rows\": {:.0}", cost.rows));
        fields.push(format!("\"Plan Width\": {}", cost.width));
    }
    if let Some(counters) = &node.counters {
        let loops = counters.loops.max(1) as f64;
        if options.timing {
            fields.push(format!(
                "\"Actual Total Time\": {:.3}",
                counters.nanos as f64 / 1e6 / loops
            ));
        }
        fields.push(format!(
            "\"Actual Rows\": {:.2}",
            counters.rows as f64 / loops
        ));
        fields.push(format!("\"Actual Loops\": {}", counters.loops));
    }
    fields.extend(
        node.details
            .iter()
            .filter(|(label, _)| !label.is_empty())
            .map(|(label, text)| format!("\"{label}\": {}", json_string(text))),
    );
    out.push_str("{\n");
    out.push_str(
        &fields
            .iter()
            .map(|f| format!("{pad}{f}"))
            .collect::<Vec<_>>()
            .join(",\n"),
    );
    if !node.children.is_empty() {
        out.push_str(&format!(",\n{pad}\"Plans\": ["));
        for (i, child) in node.children.iter().enumerate() {
            out.push_str(if i == 0 { "\n" } else { ",\n" });
            out.push_str(&"  ".repeat(depth + 2));
            write_json(child, options, depth + 2, out);
        }
        out.push_str(&format!("\n{pad}]"));
    }
    out.push_str(&format!("\n{}}}", "  ".repeat(depth)));
}

/// How often triggers ran, and how long.
pub(super) fn write_triggers(
    triggers: &[(Arc<TriggerDef>, u64, Duration)],
    options: &ExplainOptions,
    catalog: &Catalog,
    out: &mut String,
) {
    let shown = triggers.iter().map(|(def, calls, time)| {
        let mut fields = vec![format!("\"Trigger Name\": {}", json_string(&def.name))];
        if def.constraint.is_some() {
            fields.push(format!("\"Constraint Name\": {}", json_string(&def.name)));
        }
        if let Some(relation) = catalog.relation(def.table) {
            fields.push(format!("\"Relation\": {}", json_string(relation.name())));
        }
        if options.timing {
            fields.push(format!("\"Time\": {:.3}", millis(*time)));
        }
        fields.push(format!("\"Calls\": {calls}"));
        format!(
            "\n      {{\n        {}\n      }}",
            fields.join(",\n        ")
        )
    });
    let shown = shown.collect::<Vec<_>>().join(",");
    out.push_str(&format!(",\n    \"Triggers\": [{shown}\n    ]"));
}
