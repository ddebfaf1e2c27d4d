//! Rules about documents: how wide, how long a paragraph, and that what they name is there.

use std::collections::BTreeSet;

use crate::{File, Offence};

/// Columns of a line.
const WIDTH: usize = 120;
/// Lines of a paragraph.
const PARAGRAPH: usize = 8;

pub fn offences(files: &[File]) -> Vec<Offence> {
    let known: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        let mut of = |rule, item: &str, measure| {
            let (path, item) = (file.path.clone(), item.to_owned());
            found.push(Offence {
                rule,
                path,
                item,
                measure,
            });
        };
        match file
            .text
            .lines()
            .filter(|line| line.chars().count() > WIDTH)
            .count()
        {
            0 => {}
            wide => of("wide-document", "", wide),
        }
        match paragraphs(&file.text)
            .filter(|lines| *lines > PARAGRAPH)
            .count()
        {
            0 => {}
            long => of("long-paragraph", "", long),
        }
        let dead: BTreeSet<String> = named_paths(&file.text)
            .filter(|path| !exists(path, &known))
            .chain(links(&file.path, &file.text).filter(|path| !exists(path, &known)))
            .collect();
        dead.iter().for_each(|path| of("dead-path", path, 1));
    }
    found
}

fn exists(path: &str, known: &BTreeSet<&str>) -> bool {
    let folder = format!("{}/", path.trim_end_matches('/'));
    known.contains(path) || known.iter().any(|known| known.starts_with(&folder))
}

/// Lines outside blocks of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    text.lines().map(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        // Such a line ends a paragraph.
        if in_code || is_fence { "" } else { line }
    })
}

/// How many lines each paragraph has: a stretch of prose, or one item of a list.
fn paragraphs(text: &str) -> impl Iterator<Item = usize> {
    let mut lengths = vec![0];
    for line in prose(text) {
        let trimmed = line.trim_start();
        let is_item = trimmed.starts_with("- ")
            || trimmed.starts_with("* ")
            || trimmed
                .split_once(". ")
                .is_some_and(|(n, _)| n.parse::<u32>().is_ok());
        let is_other = trimmed.is_empty() || trimmed.starts_with('|') || trimmed.starts_with('#');
        if is_item || is_other {
            lengths.push(0);
        }
        if !is_other && let Some(last) = lengths.last_mut() {
            *last += 1;
        }
    }
    lengths.into_iter()
}

/// Paths of the repository that stand in backticks.
fn named_paths(text: &str) -> impl Iterator<Item = String> {
    let spans = prose(text).flat_map(|line| line.split('`').skip(1).step_by(2));
    let folders = ["crates/", "tests/", "docs/", ".ci/", ".github/"];
    spans
        .filter(move |span| folders.iter().any(|folder| span.starts_with(folder)))
        .filter(|span| !span.contains(['*', '{', '<', '…', ' ', '$']))
        .map(|span| span.trim_end_matches('/').to_owned())
}

/// Where a document's relative links lead, from the root.
fn links<'a>(from: &'a str, text: &'a str) -> impl Iterator<Item = String> + 'a {
    let targets = prose(text).flat_map(|line| line.split("](").skip(1));
    targets.filter_map(move |rest| {
        let target = rest.split([')', '#', ' ']).next().unwrap_or_default();
        if target.is_empty() || target.contains(':') {
            return None;
        }
        let mut path: Vec<&str> = from.split('/').collect();
        path.pop();
        for step in target.split('/') {
            match step {
                ".." => drop(path.pop()),
                "." | "" => {}
                step => path.push(step),
            }
        }
        Some(path.join("/"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_end_at_blank_lines_and_items() {
        let text = "# Title\na\nb\n\n- one\n  more\n- two\n\n```\nx\ny\n```\n| a |\nlast\n";
        let lengths: Vec<usize> = paragraphs(text).filter(|n| *n > 0).collect();
        assert_eq!(lengths, [2, 2, 1, 1]);
    }

    #[test]
    fn what_is_named_is_looked_for() {
        let text =
            "`crates/a/src/b.rs` and `crates/*/c`, [there](../README.md#x), [web](https://a.b)\n";
        assert_eq!(named_paths(text).collect::<Vec<_>>(), ["crates/a/src/b.rs"]);
        assert_eq!(links("docs/a.md", text).collect::<Vec<_>>(), ["README.md"]);
        let known = BTreeSet::from(["crates/a/src/b.rs"]);
        assert!(exists("crates/a", &known) && !exists("crates/b", &known));
    }
}
