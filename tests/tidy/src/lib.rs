//! Style as a test: what the project's rules forbid, and what still breaks them.
//!
//! Each rule looks at the files that git knows and names its offences. Those that were there when a
//! rule came are listed in `offenders.txt`, with a measure. The list is a ratchet: an offence that is
//! not on it, or is worse than it says, fails the test; so does a line that is no longer needed.
//!
//! ```text
//!   files ──► rules ──► offences ─┬─ not listed, or worse ──► fail: mend it
//!                                 ├─ as listed ─────────────► pass
//!   offenders.txt ────────────────┴─ listed and better ─────► fail: shrink the list
//! ```
//!
//! Nothing imports this crate; it imports nothing of the project.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

mod circles;
mod code;
mod documents;

/// A file of the project, as text.
pub struct File {
    /// From the root of the repository.
    pub path: String,
    pub text: String,
}

/// One thing that a rule forbids.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Offence {
    pub rule: &'static str,
    pub path: String,
    /// What in the file it is about; empty where it is the file.
    pub item: String,
    /// How bad it is, in the rule's unit: lines, or how often.
    pub measure: usize,
}

impl fmt::Display for Offence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Offence {
            rule,
            path,
            item,
            measure,
        } = self;
        match item.is_empty() {
            true => write!(f, "{rule} {path} {measure}"),
            false => write!(f, "{rule} {path} {item} {measure}"),
        }
    }
}

/// The root of the repository. Tests run in their crate's folder; where that was when they were
/// compiled may be another checkout.
pub fn root() -> PathBuf {
    PathBuf::from("../..")
}

/// The text files that git knows, and those that it would take.
pub fn files() -> Vec<File> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git runs");
    assert!(listed.status.success(), "git lists the files");
    let listed = String::from_utf8(listed.stdout).expect("names are UTF-8");
    let read = |path: &str| {
        let text = fs::read_to_string(root().join(path)).ok()?;
        Some(File {
            path: path.to_owned(),
            text,
        })
    };
    listed.lines().filter_map(read).collect()
}

/// All offences, in order.
pub fn offences(files: &[File]) -> Vec<Offence> {
    let mut found = code::offences(files);
    found.extend(circles::offences(files));
    found.extend(documents::offences(files));
    found.sort();
    found
}

type Key<'a> = (&'a str, &'a str, &'a str);

fn key(offence: &Offence) -> Key<'_> {
    (offence.rule, &offence.path, &offence.item)
}

/// The lines of a list of offenders: rule, path, item if there is one, measure.
pub fn listed(text: &str) -> BTreeMap<Key<'_>, usize> {
    let lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |word: &str| word.parse().expect("a line ends with a number");
            match words[..] {
                [rule, path, measure] => ((rule, path, ""), number(measure)),
                [rule, path, item, measure] => ((rule, path, item), number(measure)),
                _ => panic!("not a line of the list: {line}"),
            }
        })
        .collect()
}

/// What is wrong with `found`, given the list, a line each.
pub fn complaints(found: &[Offence], list: &str) -> Vec<String> {
    let mut listed = listed(list);
    let mut complaints = Vec::new();
    for offence in found {
        match listed.remove(&key(offence)) {
            Some(measure) if measure == offence.measure => {}
            Some(measure) if measure > offence.measure => {
                complaints.push(format!(
                    "{offence}: the list says {measure}; write it smaller"
                ));
            }
            Some(measure) => complaints.push(format!("{offence}: worse than {measure}")),
            None => complaints.push(format!("{offence}: new")),
        }
    }
    let gone = listed
        .keys()
        .map(|(rule, path, item)| format!("{rule} {path} {item}: mended; take it off the list"));
    complaints.extend(gone);
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offence(item: &str, measure: usize) -> Offence {
        Offence {
            rule: "long-function",
            path: "a.rs".into(),
            item: item.into(),
            measure,
        }
    }

    #[test]
    fn the_list_may_only_shrink() {
        let list = "# a remark\nlong-function a.rs f 120\nlong-function a.rs gone 130\n";
        assert_eq!(
            complaints(&[offence("f", 120), offence("gone", 130)], list),
            Vec::<String>::new()
        );
        assert_eq!(
            complaints(&[offence("f", 121), offence("g", 101)], list),
            [
                "long-function a.rs f 121: worse than 120",
                "long-function a.rs g 101: new",
                "long-function a.rs gone: mended; take it off the list",
            ]
        );
        assert_eq!(
            complaints(&[offence("f", 110), offence("gone", 130)], list),
            ["long-function a.rs f 110: the list says 120; write it smaller"]
        );
    }
}
