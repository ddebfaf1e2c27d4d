//! `docs/settings.md`, made from the registry. `THRONG_DOCS=record` writes it anew.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::inert::{INERT, Inert};
use super::registry::{Context, SETTINGS, Setting};
use super::value::{Kind, Unit};

/// Columns of a line.
const WIDTH: usize = 120;

const HEAD: &str = "\
# Settings

Made from the server's own definitions (`crates/values/src/settings`); not edited by hand. `SHOW`, `SET` and
`pg_settings` work on all of them. Values are given on the command line (`--set NAME=VALUE`), in `DIR/throng.toml`, by
`ALTER ROLE` or `ALTER DATABASE ... SET`, and by `SET`; [operating.md](operating.md) tells which counts.

Who may change a setting stands in brackets behind its default: *user* anybody, at any time; *superuser*; *sighup* the
configuration file, when it is read again; *backend* the client, at connection start; *postmaster* a restart; *internal*
nobody. A setting marked *(told)* has one value that says how the server is.
";

const INERT_HEAD: &str = "
## Settings of PostgreSQL without effect

Each is known, shown and checked. One that is *free* tunes what there is not: any value is taken, with a notice. One
that is *fixed* would promise something: only its one value is taken, others are refused with 0A000.

";

/// Words in lines of at most [`WIDTH`] columns, those after the first indented.
fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut column = 0;
    for word in text.split(' ') {
        if column > 0 && column + 1 + word.len() > WIDTH {
            lines.push_str("\n ");
            column = 1;
        }
        if column > 0 {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        column += word.len();
    }
    lines + "\n"
}

fn domain(kind: Kind) -> Option<String> {
    let unit = |unit: Unit| {
        unit.name()
            .map(|name| format!(", in {name}"))
            .unwrap_or_default()
    };
    match kind {
        Kind::Int { min, max, unit: of } => Some(format!("{min} to {max}{}", unit(of))),
        Kind::Real { min, max } if max >= 1e300 => Some(format!("from {min}")),
        Kind::Real { min, max } => Some(format!("{min} to {max}")),
        Kind::Pause { min, max } => Some(format!("{min} to {max}, in ms")),
        Kind::Enum(words) if words.len() > 1 => {
            let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            Some(words.join(", ").replace("``", "empty"))
        }
        _ => None,
    }
}

fn entry(setting: &Setting) -> String {
    let default = match setting.default {
        "" => "empty".to_owned(),
        default => format!("`{default}`"),
    };
    let context = setting.context.name();
    let values = domain(setting.kind).map(|values| format!(" Values: {values}."));
    let description = match setting.description.ends_with(['.', ')']) {
        true => setting.description.to_owned(),
        false => format!("{}.", setting.description),
    };
    wrapped(&format!(
        "- `{}`: {default} ({context}). {description}{}",
        setting.name,
        values.unwrap_or_default(),
    ))
}

fn document() -> String {
    let mut by_category: BTreeMap<&str, Vec<&Setting>> = BTreeMap::new();
    for setting in SETTINGS {
        by_category
            .entry(setting.category)
            .or_default()
            .push(setting);
    }
    let mut text = HEAD.to_owned();
    for (category, mut settings) in by_category {
        settings.sort_by_key(|setting| setting.name.to_ascii_lowercase());
        text += &format!("\n## {category}\n\n");
        settings.iter().for_each(|setting| text += &entry(setting));
    }
    text += INERT_HEAD;
    let mut by_reason: BTreeMap<(&str, bool), Vec<&Inert>> = BTreeMap::new();
    for inert in INERT.iter().filter(|inert| inert.is_listed()) {
        by_reason
            .entry((inert.reason, inert.free))
            .or_default()
            .push(inert);
    }
    for ((_, free), inert) in by_reason {
        let class = if free { "free" } else { "fixed" };
        let is_internal = inert.iter().all(|i| i.setting.context == Context::Internal);
        let class = if is_internal { "internal" } else { class };
        let because = inert[0].because();
        let names: Vec<String> = inert
            .iter()
            .map(|i| format!("`{}`", i.setting.name))
            .collect();
        let because = because.trim_end_matches('.');
        text += &wrapped(&format!("- {because} (*{class}*): {}.", names.join(", ")));
    }
    text
}

#[test]
fn the_document_is_of_the_registry() {
    let path = Path::new("../../docs/settings.md");
    let made = document();
    if std::env::var("THRONG_DOCS").is_ok_and(|word| word == "record") {
        fs::write(path, made).expect("the document can be written");
        return;
    }
    let kept = fs::read_to_string(path).unwrap_or_default();
    let first = made
        .lines()
        .zip(kept.lines())
        .find(|(made, kept)| made != kept);
    assert_eq!(
        first, None,
        "THRONG_DOCS=record writes docs/settings.md anew"
    );
    assert_eq!(made.len(), kept.len());
}
