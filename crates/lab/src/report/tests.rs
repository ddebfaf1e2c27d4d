use super::*;
use crate::case::{About, Role};
use crate::findings::{Cut, Latency, Machine, NamedSpread, Verdict};
use crate::profile::Profile;
use crate::stats::RULE;
use crate::usl;

/// Two variants whose names and texts need escaping.
fn found() -> Findings {
    let point = |clients: usize, tps: f64| Point {
        clients,
        throughput: Spread::of(&[tps, tps * 1.1, tps * 0.95]).expect("rounds"),
        inside: Spread::of(&[0.2, 0.3]),
        sampled: Some(0.25),
        latency: Some(Latency {
            p50: 900,
            p95: 2_000,
            p99: 12_000,
            most: 3_000_000,
        }),
        numbers: vec![NamedSpread {
            name: "write <calls>",
            unit: "a second",
            spread: Spread::of(&[5.0]).expect("a round"),
        }],
    };
    let variant = |name, role, factor: f64| {
        let profile = Profile {
            off_cpu: false,
            total: 4,
            lost: 1,
            folded: vec![("lab;a<T>;spin".into(), 3), ("lab;b".into(), 1)],
        };
        Measured {
            name,
            role,
            about: "one & the <other>",
            points: vec![point(1, 100.0 * factor), point(8, 400.0 * factor)],
            law: usl::fit(&[]),
            on_cpu: Some(Sampled::of(profile, &["spin"])),
            off_cpu: None,
        }
    };
    Findings {
        case: "test",
        about: About {
            title: "a <case> & its test",
            text: "Two sentences. \"Quoted\".",
            source: "nobody",
            operations: "operations",
            inside: "the clients' time",
        },
        axis: "clients",
        machine: Machine {
            architecture: "x86_64",
            processor: "a processor".into(),
            cores: 2,
            kernel: "6".into(),
            throng: "0",
        },
        pace: Cut {
            rounds: 3,
            seconds: 0.5,
        },
        functions: &["spin"],
        variants: vec![
            variant("old", Role::Was, 1.0),
            variant("new<1>", Role::Became, 2.0),
        ],
        verdicts: vec![Verdict {
            was: "old",
            became: "new<1>",
            metric: "throughput",
            clients: 8,
            outcome: Outcome::Reproduced,
            ratio: Spread::of(&[2.0, 2.0, 1.9]).expect("rounds"),
            published: Some(2.5),
            figure: "twice & more",
        }],
        rule: RULE,
        unsampled: None,
    }
}

/// Fails on an element that is not closed, or closed out of order. Enough of HTML for what is
/// written here.
fn assert_well_formed(html: &str) {
    const VOID: &[&str] = &["meta", "!doctype"];
    let mut open: Vec<&str> = Vec::new();
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        rest = &rest[start + 1..];
        let end = rest.find('>').expect("a tag ends");
        let tag = &rest[..end];
        let name = tag
            .trim_start_matches('/')
            .split([' ', '\n', '/'])
            .next()
            .expect("a name");
        if tag.starts_with('/') {
            assert_eq!(
                open.pop(),
                Some(name),
                "closed before {}",
                &rest[..rest.len().min(80)]
            );
        } else if !tag.ends_with('/') && !VOID.contains(&name) {
            assert!(
                name.starts_with(|c: char| c.is_ascii_lowercase()),
                "<{tag}>"
            );
            open.push(name);
        }
        rest = &rest[end + 1..];
        // What stands in these is no HTML.
        if matches!(name, "script" | "style") && !tag.starts_with('/') {
            rest = &rest[rest.find(&format!("</{name}>")).expect("closed")..];
        }
    }
    assert!(open.is_empty(), "{open:?} stay open");
}

#[test]
fn the_page_is_whole_and_needs_nothing_from_outside() {
    let html = findings(&found());
    assert_well_formed(&html);
    for outside in [
        "http:", "https:", "//cdn", "url(", "@import", " src=", "<link", "<iframe",
    ] {
        assert!(!html.contains(outside), "{outside}");
    }
    for text in [
        "A &lt;case&gt; &amp; its test",
        "&quot;Quoted&quot;",
        "new&lt;1&gt;",
        "<strong>Reproduced here</strong>: new&lt;1&gt; over old is 2.00 times better in throughput with 8 clients",
        "prefers-color-scheme: dark",
        "the scalability law needs 4 different numbers of clients, 0 measured",
        "class=\"hit\"",
        "4 samples, 75 % in the structure, 1 records lost",
        "Write &lt;calls&gt;, a second",
    ] {
        assert!(html.contains(text), "no {text}");
    }
}

#[test]
fn what_was_not_measured_is_left_out_or_said() {
    let mut found = found();
    found.unsampled = Some("the kernel does not permit it".into());
    for variant in &mut found.variants {
        variant.on_cpu = None;
        for point in &mut variant.points {
            (point.inside, point.sampled, point.latency) = (None, None, None);
            point.numbers.clear();
        }
    }
    let html = findings(&found);
    assert_well_formed(&html);
    assert!(html.contains("No stacks were sampled: the kernel does not permit it."));
    for absent in ["<h2>Latency", "<h2>Share of", "class=\"flame\""] {
        assert!(!html.contains(absent), "{absent}");
    }
}

#[test]
fn numbers_on_axes_are_short() {
    for (value, text) in [
        (0.0, "0"),
        (950.0, "950"),
        (1_200.0, "1.2 k"),
        (3e6, "3 M"),
        (2.5e9, "2.5 G"),
    ] {
        assert_eq!(short(value), text);
    }
}
