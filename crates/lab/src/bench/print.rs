//! Findings of a bench as text.

use std::fmt::Write;

use super::findings::{Findings, Point, Target};
use crate::numbers::{clients, duration, number, percent};
use crate::print::law;

// Writing to a string cannot fail, here and below.

pub fn findings(found: &Findings) -> String {
    let mut text = String::new();
    let machine = &found.machine;
    let _ = writeln!(
        text,
        "{} (scale {}), {} protocol; {} cores, {} ({}), Linux {}; medians (least to most) of {} rounds of {} s",
        found.workload,
        found.scale,
        found.mode,
        machine.cores,
        machine.processor,
        machine.architecture,
        machine.kernel,
        found.rounds,
        found.seconds
    );
    let _ = writeln!(text, "Latency is from {}.", found.latency_from);
    if let Some(warning) = found.warning() {
        let _ = writeln!(text, "Do not trust these figures: {warning}.");
    }
    for target in &found.targets {
        let _ = writeln!(text, "\n{}\n  {}", target.name, target.description());
        text.push_str(&table(target));
        let _ = writeln!(text, "  {}", law(&target.law, "clients"));
        let _ = writeln!(text, "  {}.", target.limit);
        if !target.telling.tells && !target.is_answerer {
            let _ = writeln!(text, "  It {}.", target.telling.how);
        }
        failures(target, &mut text);
        conditions(target, &mut text);
    }
    text.push_str(&comparison(found));
    text
}

fn table(target: &Target) -> String {
    let mut rows = vec![header(target)];
    rows.extend(target.points.iter().map(row));
    aligned(&rows)
}

fn header(target: &Target) -> Vec<String> {
    let mut cells = vec!["clients", "transactions/s"];
    if target.points.iter().any(|p| p.tpmc.is_some()) {
        cells.push("tpmC");
    }
    cells.extend([
        "p50",
        "p99",
        "most",
        "slowest client",
        "cores busy",
        "client's",
        "first wait",
    ]);
    cells.into_iter().map(str::to_owned).collect()
}

fn row(point: &Point) -> Vec<String> {
    let of = &point.throughput;
    let mut cells = vec![
        point.clients.to_string(),
        format!(
            "{} ({} to {})",
            number(of.median),
            number(of.least),
            number(of.most)
        ),
    ];
    cells.extend(point.tpmc.as_ref().map(|t| number(t.median)));
    cells.extend([point.latency.p50, point.latency.p99, point.latency.most].map(duration));
    cells.extend([point.fairness.median, point.busy, point.own].map(percent));
    cells.push(match point.waits.first() {
        Some(wait) => format!("{} {}", wait.what, percent(wait.share)),
        None => "-".to_owned(),
    });
    cells
}

fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(text, "  {cell:>width$}");
        }
        text.push('\n');
    }
    text
}

fn failures(target: &Target, text: &mut String) {
    for point in &target.points {
        for (class, (count, first)) in &point.failures {
            let _ = writeln!(
                text,
                "  {}: {count} failed with {class}: {first}",
                clients(point.clients)
            );
        }
        if point.retries > 0 {
            let _ = writeln!(
                text,
                "  {}: {} tries were repeated",
                clients(point.clients),
                point.retries
            );
        }
    }
}

fn conditions(target: &Target, text: &mut String) {
    for checked in &target.conditions {
        let _ = match &checked.fault {
            None => writeln!(text, "  holds: {}", checked.condition),
            Some(found) => writeln!(text, "  VIOLATED: {}: {found}", checked.condition),
        };
    }
}

/// Each target against the first, where there are several.
fn comparison(found: &Findings) -> String {
    let mut text = String::new();
    let Some((first, others)) = found.targets.split_first() else {
        return text;
    };
    for other in others {
        let _ = write!(text, "\n{} over {}:", other.name, first.name);
        for (one, two) in first.points.iter().zip(&other.points) {
            let ratio = two.throughput.median / one.throughput.median;
            let _ = write!(text, "  {} {}", clients(one.clients), number(ratio));
        }
        text.push('\n');
    }
    text
}
