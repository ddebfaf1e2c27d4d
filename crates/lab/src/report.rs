//! The report: findings as one HTML page that opens without a network.
//!
//! Plots and flame graphs are in the page, as inline SVG.

use std::fmt::Write;

use crate::findings::{Findings, Measured, Point};
use crate::html::{escape, page};
use crate::numbers::{coefficient, duration, number, percent};
use crate::profile::{self, Sampled};
use crate::stats::{Outcome, Spread};
use crate::usl::{Interval, Law};

use plot::{COLOURS, Mark, Plot, Series};

pub mod plot;

/// The page of a case's findings.
pub fn findings(found: &Findings) -> String {
    let mut body = String::new();
    head(found, &mut body);
    verdicts(found, &mut body);
    throughput(found, &mut body);
    shares(found, &mut body);
    latencies(found, &mut body);
    laws(found, &mut body);
    numbers(found, &mut body);
    flames(found, &mut body);
    method(found, &mut body);
    page(
        &format!("throng lab {}: {}", found.case, found.about.title),
        &body,
    )
}

// Writing to a string cannot fail, here and below.

fn head(found: &Findings, body: &mut String) {
    let machine = &found.machine;
    let _ = write!(
        body,
        "<h1>{}</h1>\n<p class=\"quiet\"><code>throng lab {}</code> with Throng {} on {} cores, {} ({}), Linux {}</p>\n\
         <p>{}</p>\n<p class=\"quiet\">Published for: {}.</p>\n",
        escape(&sentence(found.about.title)),
        found.case,
        machine.throng,
        machine.cores,
        escape(&machine.processor),
        machine.architecture,
        escape(&machine.kernel),
        escape(found.about.text),
        escape(found.about.source),
    );
}

/// With a capital at its beginning.
pub fn sentence(title: &str) -> String {
    let mut letters = title.chars();
    let first = letters.next().map(|c| c.to_uppercase().collect::<String>());
    first.unwrap_or_default() + letters.as_str()
}

fn verdicts(found: &Findings, body: &mut String) {
    for verdict in &found.verdicts {
        let class = match verdict.outcome {
            Outcome::Reproduced => "reproduced",
            Outcome::TooSmall => "too_small",
            Outcome::OtherWay => "other_way",
        };
        let line = verdict.line(found.axis);
        let (outcome, rest) = line.split_once(": ").unwrap_or((&line, ""));
        let _ = writeln!(
            body,
            "<div class=\"verdict {class}\"><strong>{}</strong>: {}.</div>",
            escape(&sentence(outcome)),
            escape(rest)
        );
    }
}

fn legend(found: &Findings, body: &mut String) {
    body.push_str("<ul class=\"legend\">\n");
    for (colour, variant) in found.variants.iter().enumerate() {
        let role = match variant.role.name() {
            "" => String::new(),
            role => format!(" <span class=\"quiet\">({role})</span>"),
        };
        let _ = writeln!(
            body,
            "<li class=\"c{}\"><i></i><code>{}</code>{role} <span class=\"quiet\">{}</span></li>",
            colour % COLOURS,
            escape(variant.name),
            escape(variant.about)
        );
    }
    body.push_str("</ul>\n");
}

/// One line a variant, of what `of` finds in its points.
fn series<'a>(found: &'a Findings, of: impl Fn(&Point) -> Option<Spread>) -> Vec<Series<'a>> {
    (found.variants.iter().enumerate())
        .map(|(colour, variant)| Series {
            name: variant.name,
            colour,
            dashed: false,
            points: (variant.points.iter())
                .filter_map(|point| {
                    let spread = of(point)?;
                    Some(Mark {
                        x: point.clients as f64,
                        y: spread.median,
                        least: spread.least,
                        most: spread.most,
                    })
                })
                .collect(),
            curve: Vec::new(),
        })
        .filter(|series| !series.points.is_empty())
        .collect()
}

fn throughput(found: &Findings, body: &mut String) {
    let mut lines = series(found, |point| Some(point.throughput.clone()));
    for (line, variant) in lines.iter_mut().zip(&found.variants) {
        line.curve = curve(variant);
    }
    let title = format!("{} a second", sentence(found.about.operations));
    let _ = writeln!(body, "<h2>{}</h2>", escape(&title));
    legend(found, body);
    body.push_str(
        &Plot {
            title: &title,
            x: found.axis,
            show: short,
            most: None,
            series: lines,
        }
        .draw(),
    );
    let fitted = found
        .variants
        .iter()
        .any(|v| matches!(v.law, Law::Fitted(_)));
    let dotted = match fitted {
        true => "; dotted lines are the fitted scalability law",
        false => "",
    };
    let _ = writeln!(
        body,
        "<p class=\"quiet\">Points are medians, bars reach from the least to the most round{dotted}.</p>"
    );
    table(found, body, |point| Some(spread(&point.throughput, number)));
}

/// The fitted law between the first point and the last, in even steps of the logarithm.
fn curve(variant: &Measured) -> Vec<(f64, f64)> {
    const STEPS: i32 = 60;
    let ends = variant.points.first().zip(variant.points.last());
    let (Law::Fitted(fit), Some((first, last))) = (&variant.law, ends) else {
        return Vec::new();
    };
    let (first, last) = (first.clients as f64, last.clients as f64);
    (0..=STEPS)
        .map(|step| {
            let clients = first * (last / first).powf(f64::from(step) / f64::from(STEPS));
            (clients, fit.coefficients.throughput(clients))
        })
        .collect()
}

/// A row a number of clients, a column a variant.
fn table(found: &Findings, body: &mut String, cell: impl Fn(&Point) -> Option<String>) {
    let _ = write!(
        body,
        "<div class=\"wide\"><table>\n<tr><th>{}</th>",
        escape(found.axis)
    );
    for variant in &found.variants {
        let _ = write!(body, "<th>{}</th>", escape(variant.name));
    }
    body.push_str("</tr>\n");
    let rows = found.variants.first().map_or(&[][..], |v| &v.points);
    for (row, point) in rows.iter().enumerate() {
        let _ = write!(body, "<tr><td>{}</td>", point.clients);
        for variant in &found.variants {
            let text = variant.points.get(row).and_then(&cell);
            let _ = write!(body, "<td>{}</td>", text.as_deref().unwrap_or("–"));
        }
        body.push_str("</tr>\n");
    }
    body.push_str("</table></div>\n");
}

/// The median, and the least and most more quietly. HTML.
fn spread(spread: &Spread, show: fn(f64) -> String) -> String {
    format!(
        "{} <span class=\"quiet\">{}–{}</span>",
        show(spread.median),
        show(spread.least),
        show(spread.most)
    )
}

fn shares(found: &Findings, body: &mut String) {
    let points = || found.variants.iter().flat_map(|variant| &variant.points);
    if points().any(|point| point.inside.is_some()) {
        let title = format!("Share of {}", found.about.inside);
        share_plot(found, body, &title, |point| point.inside.clone());
        table(found, body, |point| {
            Some(spread(point.inside.as_ref()?, percent))
        });
    }
    if points().any(|point| point.sampled.is_some()) {
        share_plot(
            found,
            body,
            "Share of samples in the structure, on the cores",
            |point| Spread::of(&[point.sampled?]),
        );
        table(found, body, |point| point.sampled.map(percent));
        let names: Vec<String> = (found.functions.iter())
            .map(|name| format!("<code>{}</code>", escape(name)))
            .collect();
        let _ = writeln!(
            body,
            "<p class=\"quiet\">Stacks with {} in them, from a round of its own.</p>",
            names.join(" or ")
        );
    }
}

fn share_plot(
    found: &Findings,
    body: &mut String,
    title: &str,
    of: impl Fn(&Point) -> Option<Spread>,
) {
    let _ = writeln!(body, "<h2>{}</h2>", escape(title));
    legend(found, body);
    body.push_str(
        &Plot {
            title,
            x: found.axis,
            show: |share| format!("{:.0} %", share * 100.0),
            most: Some(1.0),
            series: series(found, of),
        }
        .draw(),
    );
}

fn latencies(found: &Findings, body: &mut String) {
    let points = || found.variants.iter().flat_map(|variant| &variant.points);
    if points().all(|point| point.latency.is_none()) {
        return;
    }
    let quantile = |point: &Point, nanos: fn(crate::findings::Latency) -> u64| {
        let latency = point.latency?;
        Spread::of(&[nanos(latency) as f64])
    };
    let mut lines = series(found, |point| quantile(point, |latency| latency.p50));
    let tails = series(found, |point| quantile(point, |latency| latency.p99));
    lines.extend(tails.into_iter().map(|line| Series {
        dashed: true,
        ..line
    }));
    body.push_str("<h2>Latency</h2>\n");
    legend(found, body);
    body.push_str(
        &Plot {
            title: "Latency",
            x: found.axis,
            show: |nanos| duration(nanos as u64),
            most: None,
            series: lines,
        }
        .draw(),
    );
    body.push_str("<p class=\"quiet\">Solid: the median; dashed: the 99th percentile. Each within 25 %.</p>\n");
    table(found, body, |point| {
        let latency = point.latency?;
        Some(format!(
            "{} <span class=\"quiet\">p99 {}, most {}</span>",
            duration(latency.p50),
            duration(latency.p99),
            duration(latency.most)
        ))
    });
}

fn laws(found: &Findings, body: &mut String) {
    body.push_str("<h2>The scalability law</h2>\n");
    let absent = found
        .variants
        .iter()
        .find_map(|variant| match &variant.law {
            Law::Absent(why) => Some(why),
            Law::Fitted(_) => None,
        });
    if let Some(why) = absent {
        let _ = writeln!(body, "<p>Not fitted: {}.</p>", escape(why));
        return;
    }
    let _ = writeln!(
        body,
        "<p>X(N) = λN / (1 + σ(N − 1) + κN(N − 1)), after Gunther: σ is contention, what is done one at a time; κ is \
         coherence, what each pays to agree with every other. On {} cores, more clients than cores show as contention \
         too. In quiet letters: the middle 95 % of fits to resampled rounds.</p>",
        found.machine.cores
    );
    body.push_str(
        "<div class=\"wide\"><table>\n<tr><th>variant</th><th>λ, one client's throughput</th><th>σ, contention</th>\
         <th>κ, coherence</th><th>peak</th><th>typical deviation</th></tr>\n",
    );
    for variant in &found.variants {
        let Law::Fitted(fit) = &variant.law else {
            continue;
        };
        let with = |value: f64, interval: &Interval, show: fn(f64) -> String| {
            let (low, high) = (show(interval.low), show(interval.high));
            format!("{} <span class=\"quiet\">{low}–{high}</span>", show(value))
        };
        let c = &fit.coefficients;
        let peak = fit.peak.map_or_else(|| "none".to_owned(), number);
        let poor = if fit.is_poor() { ": a poor fit" } else { "" };
        let _ = writeln!(
            body,
            "<tr><td><code>{}</code></td><td>{}</td><td>{}</td><td>{}</td><td>{peak}</td><td>{}{poor}</td></tr>",
            escape(variant.name),
            with(c.lambda, &fit.lambda_95, number),
            with(c.sigma, &fit.sigma_95, coefficient),
            with(c.kappa, &fit.kappa_95, coefficient),
            percent(fit.misfit),
        );
    }
    body.push_str("</table></div>\n");
}

/// What else the case measured.
fn numbers(found: &Findings, body: &mut String) {
    let mut names: Vec<(&str, &str)> = Vec::new();
    for point in found.variants.iter().flat_map(|variant| &variant.points) {
        for number in &point.numbers {
            if !names.contains(&(number.name, number.unit)) {
                names.push((number.name, number.unit));
            }
        }
    }
    for (name, unit) in names {
        let unit = match unit {
            "" => String::new(),
            unit => format!(", {unit}"),
        };
        let _ = writeln!(
            body,
            "<h2>{}{}</h2>",
            escape(&sentence(name)),
            escape(&unit)
        );
        table(found, body, |point| {
            let wanted = point.numbers.iter().find(|number| number.name == name)?;
            Some(spread(&wanted.spread, number))
        });
    }
}

fn flames(found: &Findings, body: &mut String) {
    body.push_str("<h2>Where the time goes</h2>\n");
    if let Some(why) = &found.unsampled {
        let _ = writeln!(body, "<p>No stacks were sampled: {}.</p>", escape(why));
        return;
    }
    let most = found
        .variants
        .iter()
        .flat_map(|v| &v.points)
        .map(|p| p.clients)
        .max();
    let _ = writeln!(
        body,
        "<p>Stacks with {} {}: on the cores, by samples of computing threads, and off them, by the time between a \
         thread's leaving its core and its coming back. Frames of the structure under test are red, the kernel's grey. \
         A click on a frame widens it, a click on <code>all</code> shows everything again.</p>",
        most.unwrap_or(0),
        escape(found.axis)
    );
    for variant in &found.variants {
        for sampled in [&variant.on_cpu, &variant.off_cpu].into_iter().flatten() {
            flame(variant, sampled, found.functions, body);
        }
    }
}

fn flame(variant: &Measured, sampled: &Sampled, functions: &[&str], body: &mut String) {
    let Some(svg) = profile::draw(&sampled.profile, functions) else {
        return;
    };
    let off = sampled.profile.off_cpu;
    let inside = sampled.inside.map_or_else(String::new, |share| {
        format!(", {} in the structure", percent(share))
    });
    let lost = match sampled.profile.lost {
        0 => String::new(),
        n => format!(", {n} records lost"),
    };
    let _ = writeln!(
        body,
        "<details{}><summary><code>{}</code> {} <span class=\"quiet\">{}{inside}{lost}</span></summary>\n{svg}\
         <div class=\"wide\"><table>\n<tr><th>innermost function</th><th>share</th></tr>",
        if off { "" } else { " open" },
        escape(variant.name),
        if off { "off the cores" } else { "on the cores" },
        match off {
            true => duration(sampled.profile.total),
            false => format!("{} samples", sampled.profile.total),
        },
    );
    for hot in &sampled.hottest {
        let _ = writeln!(
            body,
            "<tr><td class=\"name\"><code>{}</code></td><td>{}</td></tr>",
            escape(&hot.function),
            percent(hot.share)
        );
    }
    body.push_str("</table></div></details>\n");
}

fn method(found: &Findings, body: &mut String) {
    let _ = write!(
        body,
        "<h2>How this was measured</h2>\n<p>{} rounds; in each, for each number of {}, every variant had a turn of \
         {:.2} s, in an order that rotates from round to round. Tables give the median and, more quietly, the least and \
         the most. Verdicts: {}.</p>\n",
        found.pace.rounds,
        escape(found.axis),
        found.pace.seconds,
        escape(found.rule)
    );
}

/// A number as short as an axis wants it.
fn short(value: f64) -> String {
    let (value, unit) = match value.abs() {
        v if v >= 1e9 => (value / 1e9, " G"),
        v if v >= 1e6 => (value / 1e6, " M"),
        v if v >= 1e3 => (value / 1e3, " k"),
        _ => (value, ""),
    };
    let text = format!("{value:.1}");
    format!("{}{unit}", text.trim_end_matches(".0"))
}

#[cfg(test)]
mod tests;
