//! Circles of imports between the top modules of a crate: an import is one where what it names
//! leads back, by whatever way, to where it stands. The measure is the files that have it.

use std::collections::{BTreeMap, BTreeSet};

use crate::{File, Offence};

/// The files of a module that name another of the same crate.
type Imports<'a> = BTreeMap<(&'a str, String), usize>;

pub fn offences(files: &[File]) -> Vec<Offence> {
    let mut crates: BTreeMap<&str, Imports<'_>> = BTreeMap::new();
    for file in files {
        let Some((of, module)) = place(&file.path) else {
            continue;
        };
        let imports = crates.entry(of).or_default();
        for named in named(&file.text) {
            if named != module {
                *imports.entry((module, named)).or_default() += 1;
            }
        }
    }
    crates
        .iter()
        .flat_map(|(of, imports)| circles(of, imports))
        .collect()
}

fn circles(of: &str, imports: &Imports<'_>) -> Vec<Offence> {
    let circular = imports
        .iter()
        .filter(|((from, to), _)| leads(imports, to, from));
    circular
        .map(|((from, to), files)| Offence {
            rule: "circle",
            path: format!("crates/{of}/src"),
            item: format!("{from}->{to}"),
            measure: *files,
        })
        .collect()
}

/// A source's crate and its top module; none for tests and for the crate's own file.
fn place(path: &str) -> Option<(&str, &str)> {
    let (of, inside) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let inside = inside.strip_suffix(".rs")?;
    let last = inside.rsplit('/').next().unwrap_or(inside);
    let is_test = ["test", "schedules", "model", "loom"]
        .iter()
        .any(|word| last.contains(word))
        || inside.contains("tests/");
    let module = inside.split('/').next().unwrap_or(inside);
    (!is_test && module != "lib" && module != "main").then_some((of, module))
}

/// The top modules of its own crate that a text names, outside comments and inline tests.
fn named(text: &str) -> BTreeSet<String> {
    let text = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or(text);
    let lines = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or(line));
    let code: String = lines.flat_map(|line| [line, "\n"]).collect();
    let after = code.split("crate::").skip(1);
    let found = after.flat_map(|rest| match rest.strip_prefix('{') {
        Some(list) => of_list(list),
        None => vec![leading_name(rest).to_owned()],
    });
    found.filter(|name| !name.is_empty()).collect()
}

/// The name in lower case that a text begins with.
fn leading_name(text: &str) -> &str {
    let ends = text.find(|c: char| c != '_' && !c.is_ascii_lowercase() && !c.is_ascii_digit());
    &text[..ends.unwrap_or(text.len())]
}

/// The names that the parts of a list in braces begin with; the list's own brace is open.
fn of_list(text: &str) -> Vec<String> {
    let mut names = vec![leading_name(text.trim_start()).to_owned()];
    let mut depth = 1;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => names.push(leading_name(text[at + 1..].trim_start()).to_owned()),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    names
}

/// Whether imports lead from one module to another.
fn leads(imports: &Imports<'_>, from: &str, to: &str) -> bool {
    let mut seen = BTreeSet::from([from]);
    let mut waiting = vec![from];
    while let Some(at) = waiting.pop() {
        if at == to {
            return true;
        }
        for (of, next) in imports.keys() {
            if *of == at && seen.insert(next.as_str()) {
                waiting.push(next);
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File {
            path: path.into(),
            text: text.into(),
        }
    }

    #[test]
    fn an_import_that_leads_back_is_told() {
        let files = [
            file("crates/x/src/a.rs", "use crate::b::B;\nuse crate::d;\n"),
            file(
                "crates/x/src/b/mod.rs",
                "use crate::{\n    Q,\n    c::{g, h},\n};\n",
            ),
            file("crates/x/src/c.rs", "use crate::a::{A, Z};\n"),
            file(
                "crates/x/src/d.rs",
                "// crate::a\n#[cfg(test)]\nmod tests { use crate::a; }\n",
            ),
            file("crates/y/src/a.rs", "use crate::b;\n"),
        ];
        let told: Vec<String> = offences(&files).iter().map(Offence::to_string).collect();
        let circle = ["a->b", "b->c", "c->a"];
        assert_eq!(
            told,
            circle.map(|edge| format!("circle crates/x/src {edge} 1"))
        );
    }
}
