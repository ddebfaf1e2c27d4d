//! Findings as text: what a terminal shows.

use std::fmt::Write;

use crate::case::Case;
use crate::findings::{Findings, Measured, Point};
use crate::numbers::{coefficient, duration, number, percent};
use crate::profile::Sampled;
use crate::stats::Spread;
use crate::usl::{Interval, Law};

/// `throng lab list`.
pub fn list(cases: &[&dyn Case]) -> String {
    let mut text = String::new();
    for case in cases {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:<12}{}", case.name(), case.about().title);
        for variant in case.variants() {
            let role = variant.role.name();
            let _ = writeln!(text, "    {:<16}{role:<9}{}", variant.name, variant.about);
        }
    }
    text
}

/// What is said before the first number.
pub fn about(case: &dyn Case) -> String {
    let about = case.about();
    format!(
        "{}: {}\n{}\nFigures: {}.\n",
        case.name(),
        about.title,
        about.text,
        about.source
    )
}

pub fn findings(found: &Findings) -> String {
    let mut text = String::new();
    let machine = &found.machine;
    let _ = writeln!(
        text,
        "{} cores, {} ({}), Linux {}; medians (least to most) of {} rounds of {:.2} s a turn",
        machine.cores,
        machine.processor,
        machine.architecture,
        machine.kernel,
        found.pace.rounds,
        found.pace.seconds
    );
    for variant in &found.variants {
        let _ = writeln!(
            text,
            "\n{}  {}  {}",
            variant.name,
            variant.role.name(),
            variant.about
        );
        text.push_str(&table(found, variant));
        let _ = writeln!(text, "  {}", law(&variant.law, found.axis));
        for sampled in [&variant.on_cpu, &variant.off_cpu].into_iter().flatten() {
            let _ = writeln!(text, "  {}", hottest(sampled));
        }
    }
    text.push('\n');
    if let Some(why) = &found.unsampled {
        let _ = writeln!(text, "No stacks were sampled: {why}.");
    }
    for verdict in &found.verdicts {
        let _ = writeln!(text, "{}", verdict.line(found.axis));
    }
    if !found.verdicts.is_empty() {
        let _ = writeln!(text, "Rule: {}.", found.rule);
    }
    text
}

/// The scalability law in a line.
pub fn law(law: &Law, axis: &str) -> String {
    let fit = match law {
        Law::Fitted(fit) => fit,
        Law::Absent(why) => return format!("no fit: {why}"),
    };
    let c = &fit.coefficients;
    let interval = |i: &Interval| format!("{} to {}", coefficient(i.low), coefficient(i.high));
    let peak = match fit.peak {
        Some(peak) => format!("; peak at {} {axis}", number(peak)),
        None => "; no peak".to_owned(),
    };
    let poor = match fit.is_poor() {
        true => ", so the law describes this poorly",
        false => "",
    };
    format!(
        "fit: contention {} ({}), coherence {} ({}){peak}; off by {} on average{poor}",
        coefficient(c.sigma),
        interval(&fit.sigma_95),
        coefficient(c.kappa),
        interval(&fit.kappa_95),
        percent(fit.misfit),
    )
}

/// Where the time went, in a line.
fn hottest(sampled: &Sampled) -> String {
    let (which, unit) = match sampled.profile.off_cpu {
        true => ("off the cores", "of the time"),
        false => ("on the cores", "of samples"),
    };
    let mut text = format!("{which}:");
    if let Some(inside) = sampled.inside {
        let _ = write!(text, " {} {unit} in the structure;", percent(inside));
    }
    for hot in sampled.hottest.iter().take(3) {
        let _ = write!(text, " {} {}", percent(hot.share), hot.function);
    }
    if sampled.profile.lost > 0 {
        let _ = write!(text, " ({} records lost)", sampled.profile.lost);
    }
    text
}

fn table(found: &Findings, variant: &Measured) -> String {
    let mut rows = vec![header(found, variant)];
    rows.extend(variant.points.iter().map(|point| row(variant, point)));
    let columns = rows[0].len();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|c| width(c).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in &rows {
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(text, "  {cell:>width$}");
        }
        text.push('\n');
    }
    text
}

fn header(found: &Findings, variant: &Measured) -> Vec<String> {
    let mut cells = vec![
        found.axis.to_owned(),
        format!("{}/s", found.about.operations),
    ];
    let Some(point) = variant.points.first() else {
        return cells;
    };
    if point.inside.is_some() {
        cells.push("inside".to_owned());
    }
    if point.sampled.is_some() {
        cells.push("sampled".to_owned());
    }
    if point.latency.is_some() {
        cells.extend(["p50", "p99"].map(str::to_owned));
    }
    for number in &point.numbers {
        cells.push(match number.unit {
            "" => number.name.to_owned(),
            unit => format!("{} ({unit})", number.name),
        });
    }
    cells
}

fn row(variant: &Measured, point: &Point) -> Vec<String> {
    let mut cells = vec![point.clients.to_string(), spread(&point.throughput, number)];
    let Some(first) = variant.points.first() else {
        return cells;
    };
    let missing = || "-".to_owned();
    if first.inside.is_some() {
        cells.push(
            point
                .inside
                .as_ref()
                .map_or_else(missing, |s| percent(s.median)),
        );
    }
    if first.sampled.is_some() {
        cells.push(point.sampled.map_or_else(missing, percent));
    }
    if first.latency.is_some() {
        let of = |nanos: Option<u64>| nanos.map_or_else(missing, duration);
        cells.push(of(point.latency.map(|l| l.p50)));
        cells.push(of(point.latency.map(|l| l.p99)));
    }
    for wanted in &first.numbers {
        let found = point.numbers.iter().find(|n| n.name == wanted.name);
        cells.push(found.map_or_else(missing, |n| spread(&n.spread, number)));
    }
    cells
}

fn spread(spread: &Spread, show: fn(f64) -> String) -> String {
    format!(
        "{} ({} to {})",
        show(spread.median),
        show(spread.least),
        show(spread.most)
    )
}
