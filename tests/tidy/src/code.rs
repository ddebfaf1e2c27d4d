//! Rules about source files: how wide, how long, how named, how introduced.

use std::collections::BTreeMap;

use crate::{File, Offence};

/// Columns of a comment.
const COMMENT_WIDTH: usize = 100;
/// Lines of a function, signature and brackets included.
const FUNCTION_LENGTH: usize = 100;
/// Lines of a file.
const FILE_LENGTH: usize = 800;

/// Words that are nobody's but this project's: the field has others (`docs/glossary.md`).
const PRIVATE_WORDS: &[&str] = &[
    "Accept",
    "Ahead",
    "Alone",
    "Asked",
    "Clean",
    "Courtesy",
    "Custom",
    "Deal",
    "Departed",
    "Elsewhere",
    "Family",
    "Few",
    "Host",
    "Kept",
    "Known",
    "Latest",
    "Layout",
    "Once",
    "Rooms",
    "Running",
    "Serial",
    "Sieve",
    "Sought",
    "Stage",
    "Steps",
    "Stock",
    "Stop",
    "Telling",
    "Term",
    "Unsaid",
];

/// Names that say nothing where several types have them; one type of the workspace may.
const VAGUE_NAMES: &[&str] = &["State", "Place", "Part"];

pub fn offences(files: &[File]) -> Vec<Offence> {
    let sources = || files.iter().filter(|file| file.path.ends_with(".rs"));
    let mut found = Vec::new();
    for file in sources() {
        found.extend(wide_comments(file));
        found.extend(long_file(file));
        found.extend(long_functions(file));
        found.extend(private_words(file));
        found.extend(without_importers(file));
    }
    found.extend(vague_names(sources()));
    found.extend(unread_settings(files));
    found
}

fn offence(rule: &'static str, path: &str, item: &str, measure: usize) -> Offence {
    Offence {
        rule,
        path: path.to_owned(),
        item: item.to_owned(),
        measure,
    }
}

fn wide_comments(file: &File) -> Option<Offence> {
    let is_wide = |line: &&str| {
        let is_comment = line.trim_start().starts_with("//");
        is_comment && line.chars().count() > COMMENT_WIDTH
    };
    let wide = file.text.lines().filter(is_wide).count();
    (wide > 0).then(|| offence("wide-comments", &file.path, "", wide))
}

fn long_file(file: &File) -> Option<Offence> {
    let lines = file.text.lines().count();
    (lines > FILE_LENGTH).then(|| offence("long-file", &file.path, "", lines))
}

/// What an item's line says behind who may see it.
fn without_visibility(line: &str) -> &str {
    let line = line.trim_start();
    match line.strip_prefix("pub(") {
        Some(scoped) => scoped.split_once(") ").map_or(line, |(_, item)| item),
        None => line.strip_prefix("pub ").unwrap_or(line),
    }
}

/// The name of the function that begins on a line, if one does.
fn function_name(line: &str) -> Option<&str> {
    let mut rest = without_visibility(line);
    loop {
        if let Some(named) = rest.strip_prefix("fn ") {
            let end = named.find(|c: char| c != '_' && !c.is_alphanumeric());
            return Some(&named[..end.unwrap_or(named.len())]);
        }
        let (word, after) = rest.split_once(' ')?;
        let goes_before = ["const", "async", "unsafe", "extern"];
        rest = match goes_before.contains(&word) || word.starts_with('"') {
            true => after,
            false => return None,
        };
    }
}

/// Sources are formatted, so a function ends with the first bracket that stands under its beginning.
fn long_functions(file: &File) -> Vec<Offence> {
    let lines: Vec<&str> = file.text.lines().collect();
    let mut longest: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else {
            continue;
        };
        let indent = line.len() - line.trim_start().len();
        let ends = |line: &&str| line.len() == indent + 1 && line.ends_with('}');
        let is_declared = lines[at..].iter().take_while(|line| !line.ends_with('{'));
        if is_declared.clone().any(|line| line.ends_with(';')) {
            continue;
        }
        let Some(length) = lines[at..].iter().position(ends) else {
            continue;
        };
        let length = length + 1;
        if length > FUNCTION_LENGTH {
            let kept = longest.entry(name).or_default();
            *kept = length.max(*kept);
        }
    }
    let of = |(name, length)| offence("long-function", &file.path, name, length);
    longest.into_iter().map(of).collect()
}

/// The name of the type that is declared on a line, if one is.
fn type_name(line: &str) -> Option<&str> {
    let item = without_visibility(line);
    let mut words = item.strip_prefix("unsafe ").unwrap_or(item).split(' ');
    if !matches!(words.next()?, "struct" | "enum" | "trait" | "union") {
        return None;
    }
    let name = words.next()?;
    let end = name.find(|c: char| c != '_' && !c.is_alphanumeric());
    Some(&name[..end.unwrap_or(name.len())])
}

/// `snake_case` as a type would be named.
fn capitalised(module: &str) -> String {
    let words = module.split('_').filter(|word| !word.is_empty());
    words
        .map(|word| {
            let (first, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
            first.to_uppercase() + rest
        })
        .collect()
}

/// Types of that name alone, and modules: the file's own, or its folder's.
fn private_words(file: &File) -> Vec<Offence> {
    let types = file.text.lines().filter_map(type_name).map(str::to_owned);
    let path = file.path.trim_end_matches(".rs").trim_end_matches("/mod");
    let module = path.rsplit('/').next().unwrap_or_default();
    let module = (!path.ends_with("/lib")).then(|| capitalised(module));
    let mut named: BTreeMap<String, usize> = BTreeMap::new();
    for name in types.chain(module) {
        if PRIVATE_WORDS.contains(&name.as_str()) {
            *named.entry(name).or_default() += 1;
        }
    }
    let of = |(name, times): (String, usize)| offence("private-word", &file.path, &name, times);
    named.into_iter().map(of).collect()
}

fn vague_names<'a>(files: impl Iterator<Item = &'a File>) -> Vec<Offence> {
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for name in files.flat_map(|file| file.text.lines().filter_map(type_name)) {
        if VAGUE_NAMES.contains(&name) {
            *times.entry(name).or_default() += 1;
        }
    }
    let many = times.into_iter().filter(|(_, times)| *times > 1);
    many.map(|(name, times)| offence("vague-name", "crates", name, times))
        .collect()
}

/// Where settings that steer something are defined, a line each.
const REGISTRY: &str = "crates/values/src/settings/registry.rs";

/// Settings that are found by their names: a session's own, and the server's before it starts.
const READ_BY_NAME: &[&str] = &[
    "application_name",
    "check_function_bodies",
    "default_text_search_config",
    "session_replication_role",
    "ssl_cert_file",
    "ssl_key_file",
    "unix_socket_directories",
    "xmlbinary",
    "xmloption",
];

/// A setting that nothing reads would be taken and ignored. One that only tells how the server is
/// says so in its description.
fn unread_settings(files: &[File]) -> Vec<Offence> {
    let Some(registry) = files.iter().find(|file| file.path == REGISTRY) else {
        return Vec::new();
    };
    let is_code = |file: &&File| {
        let is_source = file.path.starts_with("crates/") && file.path.contains("/src/");
        is_source && file.path != REGISTRY
    };
    let others: Vec<&File> = files.iter().filter(is_code).collect();
    let defined = registry.text.lines().filter_map(|line| {
        let (id, rest) = line.trim_start().split_once(" \"")?;
        let (name, rest) = rest.split_once('"')?;
        let is_id = id.starts_with(char::is_uppercase) && !id.contains(' ');
        (is_id && !rest.contains("(told")).then_some((id, name))
    });
    let is_read = |(id, name): &(&str, &str)| {
        let id = format!("Id::{id}");
        let ends = |rest: &str| !rest.starts_with(char::is_alphanumeric);
        let says = |text: &str| {
            let mut found = text.match_indices(&id);
            found.any(|(at, _)| ends(&text[at + id.len()..]))
        };
        READ_BY_NAME.contains(name) || others.iter().any(|file| says(&file.text))
    };
    let unread = defined.filter(|setting| !is_read(setting));
    unread
        .map(|(_, name)| offence("unread-setting", REGISTRY, name, 1))
        .collect()
}

/// A crate's header says what it promises, and who may import it.
fn without_importers(file: &File) -> Option<Offence> {
    let is_crate = file.path.starts_with("crates/") && file.path.ends_with("/src/lib.rs");
    let mut header = file.text.lines().take_while(|line| line.starts_with("//!"));
    let told = header.any(|line| line.starts_with("//! Imported by"));
    (is_crate && !told).then(|| offence("crate-header", &file.path, "", 1))
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
    fn functions_are_measured_to_their_bracket() {
        let body = "        x;\n".repeat(99);
        let text = format!(
            "impl A {{\n    pub(in crate::b) async fn long<T>(\n        x: T,\n    ) {{\n{body}    }}\n\n    \
             fn short() {{}}\n    fn declared();\n}}\n"
        );
        assert_eq!(
            long_functions(&file("crates/a/src/b.rs", &text)),
            [offence("long-function", "crates/a/src/b.rs", "long", 103)]
        );
    }

    #[test]
    fn words_are_found_in_types_and_modules() {
        let text = "pub(in crate::a) struct Sieve<'a> {\nenum Sieved {\n// struct Few\n";
        let found = private_words(&file("crates/a/src/few.rs", text));
        assert_eq!(
            found,
            [
                offence("private-word", "crates/a/src/few.rs", "Few", 1),
                offence("private-word", "crates/a/src/few.rs", "Sieve", 1),
            ]
        );
        let found = private_words(&file("crates/a/src/rooms/mod.rs", ""));
        assert_eq!(
            found,
            [offence(
                "private-word",
                "crates/a/src/rooms/mod.rs",
                "Rooms",
                1
            )]
        );
    }

    #[test]
    fn one_type_may_be_called_state_and_not_two() {
        let files = [
            file("a.rs", "struct State {\nstruct Place;\n"),
            file("b.rs", "enum State {\n"),
        ];
        assert_eq!(
            vague_names(files.iter()),
            [offence("vague-name", "crates", "State", 2)]
        );
    }

    #[test]
    fn comments_end_at_their_column() {
        let text = format!("// {}\nlet x = \"{}\";\n", "é".repeat(97), "x".repeat(200));
        assert_eq!(wide_comments(&file("a.rs", &text)), None);
        let text = format!("    /// {}\n", "x".repeat(93));
        let found = wide_comments(&file("a.rs", &text));
        assert_eq!(found, Some(offence("wide-comments", "a.rs", "", 1)));
    }

    #[test]
    fn a_setting_is_read_or_only_told() {
        let registry = "    Fsync \"fsync\" BOOL, \"on\", Sighup; \"Log\", \"Forces.\"\n    \
                        Jit \"jit\" BOOL, \"off\", User; \"Other\", \"Compiles. (told)\"\n    \
                        Port \"port\" INT, \"1\", User; \"Other\", \"Where.\"\n";
        let code = "settings.bool(Id::FsyncMore); settings.int(Id::Port);";
        let files = [file(REGISTRY, registry), file("crates/a/src/b.rs", code)];
        let unread = offence("unread-setting", REGISTRY, "fsync", 1);
        assert_eq!(unread_settings(&files), [unread]);
    }

    #[test]
    fn a_crate_says_who_imports_it() {
        let told = "//! Pages.\n//!\n//! Imported by: `access`.\n";
        assert_eq!(without_importers(&file("crates/a/src/lib.rs", told)), None);
        let untold = "//! Pages.\n\n//! Imported by: `access`.\n";
        assert!(without_importers(&file("crates/a/src/lib.rs", untold)).is_some());
    }
}
