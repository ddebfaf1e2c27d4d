//! Findings of a bench as one HTML page that opens without a network.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::findings::{Findings, KNEE, Point, Target};
use super::waits::meaning;
use crate::html::{escape, page};
use crate::numbers::{clients, duration, number, percent};
use crate::print::law;
use crate::report::plot::{COLOURS, Mark, Plot, Series};
use crate::report::sentence;
use crate::stats::Spread;
use crate::usl::Law;

/// Of a point's waits, how many the table has.
const SHOWN_WAITS: usize = 3;

// Writing to a string cannot fail, here and below.

pub fn findings(found: &Findings) -> String {
    let mut body = String::new();
    head(found, &mut body);
    words(found, &mut body);
    times(found, &mut body);
    section(
        found,
        &mut body,
        "Transactions a second",
        number,
        |p| Some(p.throughput.clone()),
        true,
    );
    body.push_str(
        "<p class=\"quiet\">Points are medians, bars reach from the least to the most round, dotted lines are the \
         fitted scalability law. A line that goes on rising has room; one that falls loses work as the crowd grows.</p>\n",
    );
    if found
        .targets
        .iter()
        .flat_map(|t| &t.points)
        .any(|p| p.tpmc.is_some())
    {
        section(
            found,
            &mut body,
            "New orders a minute (tpmC)",
            number,
            |p| p.tpmc.clone(),
            false,
        );
    }
    let millis = |x: f64| duration(x as u64);
    section(
        found,
        &mut body,
        "Latency, the slowest in a hundred",
        millis,
        |p| Spread::of(&[p.latency.p99 as f64]),
        false,
    );
    let _ = writeln!(
        body,
        "<p class=\"quiet\">Latency is from {}.</p>",
        escape(found.latency_from)
    );
    latencies(found, &mut body);
    waits(found, &mut body);
    checks(found, &mut body);
    method(found, &mut body);
    page(&format!("throng bench {}", found.workload), &body)
}

fn head(found: &Findings, body: &mut String) {
    let machine = &found.machine;
    let _ = writeln!(
        body,
        "<h1>{} on {}</h1>\n<p class=\"quiet\"><code>throng bench {}</code>, scale {}, {} protocol, on {} cores, {} ({}), \
         Linux {}; the client is on the same machine unless a target is elsewhere.</p>",
        escape(found.workload),
        match found.targets.len() {
            1 => "one server".to_owned(),
            count => format!("{count} servers"),
        },
        escape(found.workload),
        found.scale,
        found.mode,
        machine.cores,
        escape(&machine.processor),
        machine.architecture,
        escape(&machine.kernel),
    );
    if let Some(warning) = found.warning() {
        let _ = writeln!(
            body,
            "<div class=\"verdict other_way\"><strong>Do not trust these figures</strong>: {}.</div>",
            escape(&warning)
        );
    }
    body.push_str("<ul class=\"legend\">\n");
    for (colour, target) in found.targets.iter().enumerate() {
        let _ = writeln!(
            body,
            "<li class=\"c{}\"><i></i><code>{}</code> <span class=\"quiet\">{}</span></li>",
            colour % COLOURS,
            escape(&target.name),
            escape(&target.description())
        );
    }
    body.push_str("</ul>\n");
}

/// What a reader wants to know first.
fn words(found: &Findings, body: &mut String) {
    for (colour, target) in found.targets.iter().enumerate() {
        let knee = match target.at_knee().zip(target.points.last()) {
            Some((_, last)) => format!(
                "does at best {} transactions a second; with {} it does {}",
                number(target.best()),
                clients(last.clients),
                number(last.throughput.median)
            ),
            None => "did nothing".to_owned(),
        };
        let _ = writeln!(
            body,
            "<div class=\"verdict of c{}\"><strong>{}</strong> {knee}. {}.</div>",
            colour % COLOURS,
            escape(&target.name),
            escape(&sentence(&target.limit))
        );
    }
    body.push_str(
        "<p class=\"quiet\">More clients than a server needs to come near its best only wait longer. What limits it is said \
         for that number of clients: the bench's own client, the cores, or what most of its sessions wait for; where none \
         of these stands out, that is said.</p>\n",
    );
    let Some((first, others)) = found.targets.split_first() else {
        return;
    };
    for other in others {
        let last = first.points.last().zip(other.points.last());
        if let Some((one, two)) = last {
            let _ = writeln!(
                body,
                "<p>With {} <code>{}</code> does {} times what <code>{}</code> does.</p>",
                clients(one.clients),
                escape(&other.name),
                number(two.throughput.median / one.throughput.median),
                escape(&first.name)
            );
        }
    }
}

/// Where the cores' and the sessions' time went, a bar each, for as many clients as each needs.
fn times(found: &Findings, body: &mut String) {
    let at_knee = |t: &'_ Target| !t.is_answerer && t.knee.is_some();
    if !found.targets.iter().any(at_knee) {
        return;
    }
    body.push_str("<h2>Where the time went</h2>\n");
    for target in found.targets.iter().filter(|t| at_knee(t)) {
        let Some(point) = target.at_knee() else {
            continue;
        };
        let _ = writeln!(
            body,
            "<h3><code>{}</code>, {}</h3>",
            escape(&target.name),
            clients(point.clients)
        );
        let others = (point.busy - point.own).max(0.0);
        let cores = [
            ("the bench's client", point.own),
            ("the server and all else", others),
        ];
        bar("The machine's cores", cores.into_iter(), "idle", body);
        let waits = point.waits.iter().map(|w| (w.what.as_str(), w.share));
        match target.telling.tells {
            true => bar(
                &format!("Shares {}", target.telling.of),
                waits,
                "other",
                body,
            ),
            false => {
                let _ = writeln!(
                    body,
                    "<p class=\"quiet\">It {}.</p>",
                    escape(target.telling.how)
                );
            }
        }
    }
}

/// Parts of a whole side by side. What is left, and what is too small for a name, is the rest.
fn bar<'a>(
    title: &str,
    parts: impl Iterator<Item = (&'a str, f64)>,
    rest: &str,
    body: &mut String,
) {
    /// A part of this share has room for a name.
    const NAMED: f64 = 0.04;
    let (mut left, mut said) = (1.0, Vec::new());
    body.push_str("<div class=\"bar\">");
    for (shade, (name, share)) in parts.filter(|(_, share)| *share >= NAMED).enumerate() {
        let _ = write!(
            body,
            "<i class=\"s{}\" style=\"width:{:.1}%\" title=\"{name} {}\">{name}</i>",
            shade % 4,
            share * 100.0,
            percent(share),
            name = escape(name)
        );
        said.push(format!("{} {}", escape(name), percent(share)));
        left -= share;
    }
    if left >= NAMED / 4.0 {
        said.push(format!("{rest} {}", percent(left)));
    }
    let _ = writeln!(
        body,
        "</div>\n<p class=\"quiet\">{}: {}.</p>",
        escape(title),
        said.join(", ")
    );
}

/// A plot and a table of one quantity.
fn section(
    found: &Findings,
    body: &mut String,
    title: &str,
    show: fn(f64) -> String,
    of: impl Fn(&Point) -> Option<Spread>,
    with_law: bool,
) {
    let series = |(colour, target): (usize, &'_ Target)| {
        let mark = |point: &Point| {
            let spread = of(point)?;
            Some(Mark {
                x: point.clients as f64,
                y: spread.median,
                least: spread.least,
                most: spread.most,
            })
        };
        (
            colour,
            target.points.iter().filter_map(mark).collect::<Vec<Mark>>(),
        )
    };
    let lines: Vec<(usize, Vec<Mark>)> = found.targets.iter().enumerate().map(series).collect();
    let plot = Plot {
        title,
        x: "clients",
        show,
        most: None,
        series: (lines.into_iter().zip(&found.targets))
            .filter(|((_, points), _)| !points.is_empty())
            .map(|((colour, points), target)| Series {
                name: &target.name,
                colour,
                dashed: target.is_answerer,
                points,
                curve: if with_law { curve(target) } else { Vec::new() },
            })
            .collect(),
    };
    let _ = writeln!(body, "<h2>{}</h2>\n{}", escape(title), plot.draw());
    let cell = |point: &Point| {
        let spread = of(point)?;
        Some(match spread.rounds.len() {
            1 => show(spread.median),
            _ => format!(
                "{} <span class=\"quiet\">{} to {}</span>",
                show(spread.median),
                show(spread.least),
                show(spread.most)
            ),
        })
    };
    table(found, body, cell);
}

/// The fitted law between the first point and the last, in even steps of the logarithm.
fn curve(target: &Target) -> Vec<(f64, f64)> {
    const STEPS: i32 = 60;
    let ends = target.points.first().zip(target.points.last());
    let (Law::Fitted(fit), Some((first, last))) = (&target.law, ends) else {
        return Vec::new();
    };
    let (first, last) = (first.clients as f64, last.clients as f64);
    let at = |step: i32| first * (last / first).powf(f64::from(step) / f64::from(STEPS));
    (0..=STEPS)
        .map(|step| (at(step), fit.coefficients.throughput(at(step))))
        .collect()
}

/// A row a number of clients, a column a target. Cells are HTML.
fn table(found: &Findings, body: &mut String, cell: impl Fn(&Point) -> Option<String>) {
    body.push_str("<div class=\"wide\"><table>\n<tr><th>clients</th>");
    for target in &found.targets {
        let _ = write!(body, "<th>{}</th>", escape(&target.name));
    }
    body.push_str("</tr>\n");
    let rows = found.targets.first().map_or(&[][..], |t| &t.points);
    for (row, point) in rows.iter().enumerate() {
        let _ = write!(body, "<tr><td>{}</td>", point.clients);
        for target in &found.targets {
            let text = target.points.get(row).and_then(&cell);
            let _ = write!(body, "<td>{}</td>", text.as_deref().unwrap_or("–"));
        }
        body.push_str("</tr>\n");
    }
    body.push_str("</table></div>\n");
}

fn latencies(found: &Findings, body: &mut String) {
    body.push_str("<h2>Latency and fairness</h2>\n<p>Half of the transactions took no longer than the first figure, 99 of 100 \
                   no longer than the second; then the longest, and the slowest client's share of the mean client's work.</p>\n");
    table(found, body, |point| {
        let l = &point.latency;
        let [p50, p99, most] = [l.p50, l.p99, l.most].map(duration);
        Some(format!(
            "{p50} · {p99} · {most} · {}",
            percent(point.fairness.median)
        ))
    });
}

fn waits(found: &Findings, body: &mut String) {
    body.push_str("<h2>What the sessions waited for</h2>\n<p>As far as each server tells, the three that took most. Then how busy the \
                   machine's cores were, and the share of them that the client itself used.</p>\n<ul>\n");
    for target in found.targets.iter().filter(|t| !t.is_answerer) {
        let _ = writeln!(
            body,
            "<li><code>{}</code> {}.</li>",
            escape(&target.name),
            escape(target.telling.how)
        );
    }
    body.push_str("</ul>\n");
    table(found, body, |point| {
        let named = point.waits.iter().take(SHOWN_WAITS);
        let named: Vec<String> = named
            .map(|w| format!("{} {}", escape(&w.what), percent(w.share)))
            .collect();
        let cores = format!(
            "cores {} busy, client {}",
            percent(point.busy),
            percent(point.own)
        );
        Some(format!(
            "{}<br><span class=\"quiet\">{cores}</span>",
            named.join("<br>")
        ))
    });
    let points = found.targets.iter().flat_map(|t| &t.points);
    let shown: BTreeSet<&str> = points
        .flat_map(|p| p.waits.iter().take(SHOWN_WAITS).map(|w| w.what.as_str()))
        .collect();
    body.push_str("<ul class=\"quiet\">\n");
    for (what, meaning) in shown.iter().filter_map(|w| Some((w, meaning(w)?))) {
        let _ = writeln!(body, "<li>{}: {meaning}</li>", escape(what));
    }
    body.push_str("</ul>\n");
}

fn checks(found: &Findings, body: &mut String) {
    let any = found.targets.iter().any(|t| !t.conditions.is_empty());
    if any {
        body.push_str("<h2>Whether the results are right</h2>\n");
    }
    for target in &found.targets {
        for checked in &target.conditions {
            let outcome = match &checked.fault {
                None => "holds".to_owned(),
                Some(fault) => format!("<strong>violated</strong>: {}", escape(fault)),
            };
            let _ = writeln!(
                body,
                "<p><code>{}</code>: {} – {outcome}</p>",
                escape(&target.name),
                escape(&checked.condition)
            );
        }
        for point in &target.points {
            for (class, (count, first)) in &point.failures {
                let _ = writeln!(
                    body,
                    "<p><code>{}</code>, {} clients: {count} transactions failed with {}: {}</p>",
                    escape(&target.name),
                    point.clients,
                    escape(class),
                    escape(first)
                );
            }
        }
    }
}

fn method(found: &Findings, body: &mut String) {
    body.push_str("<h2>How this was measured</h2>\n");
    let _ = writeln!(
        body,
        "<p>Targets took turns of {} s, {} rounds, in an order that rotates from round to round; figures are medians over \
         rounds. The knee is the fewest clients with {} of the best throughput.</p>",
        found.seconds,
        found.rounds,
        percent(KNEE)
    );
    for target in &found.targets {
        let _ = writeln!(
            body,
            "<p><code>{}</code>: {}</p>",
            escape(&target.name),
            escape(&law(&target.law, "clients"))
        );
    }
}
