//! `synchronous_standby_names`: `a, b`, `2 (a, b)`, `FIRST 2 (a, b)`, `ANY 1 (a, "B c", *)`.

/// Standbys that commits wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandbyNames {
    /// The first so many of those that are there; else any so many.
    pub by_priority: bool,
    pub count: usize,
    pub names: Vec<String>,
}

/// What a text means; None for one that is empty.
///
/// # Errors
/// Why it means nothing.
pub fn parse(text: &str) -> Result<Option<StandbyNames>, String> {
    let words = words(text)?;
    let mut rest = words.as_slice();
    if rest.is_empty() {
        return Ok(None);
    }
    let mut by_priority = true;
    if let [Word::Bare(method), Word::Bare(_), Word::Open, ..] = rest {
        by_priority = match method.to_ascii_lowercase().as_str() {
            "first" => true,
            "any" => false,
            _ => return Err(syntax()),
        };
        rest = &rest[1..];
    }
    let mut count = 1;
    if let [Word::Bare(number), Word::Open, list @ .., Word::Close] = rest {
        count = number.parse().map_err(|_| syntax())?;
        rest = list;
    }
    if count == 0 {
        return Err("number of synchronous standbys (0) must be greater than zero".to_owned());
    }
    let mut names = Vec::new();
    for (at, word) in rest.iter().enumerate() {
        match (at % 2, word) {
            (0, Word::Bare(name) | Word::Quoted(name)) => names.push(name.clone()),
            (1, Word::Comma) => {}
            _ => return Err(syntax()),
        }
    }
    match rest.len() % 2 {
        1 => Ok(Some(StandbyNames {
            by_priority,
            count,
            names,
        })),
        _ => Err(syntax()),
    }
}

/// The text, if it means something.
pub fn checked(text: &str) -> Result<String, String> {
    parse(text).map(|_| text.to_owned())
}

fn syntax() -> String {
    "\"synchronous_standby_names\" parser failed.".to_owned()
}

#[derive(Debug)]
enum Word {
    Bare(String),
    Quoted(String),
    Open,
    Close,
    Comma,
}

fn words(text: &str) -> Result<Vec<Word>, String> {
    let mut words = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        words.push(match c {
            c if c.is_ascii_whitespace() => continue,
            '(' => Word::Open,
            ')' => Word::Close,
            ',' => Word::Comma,
            '"' => {
                let mut name = String::new();
                loop {
                    match chars.next() {
                        Some('"') if chars.next_if_eq(&'"').is_some() => name.push('"'),
                        Some('"') => break Word::Quoted(name),
                        Some(c) => name.push(c),
                        None => return Err(syntax()),
                    }
                }
            }
            c => {
                let mut name = String::from(c);
                let goes_on = |c: &char| !c.is_ascii_whitespace() && !"(),\"".contains(*c);
                while let Some(c) = chars.next_if(goes_on) {
                    name.push(c);
                }
                Word::Bare(name)
            }
        });
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_mean_what_they_do_in_postgresql() {
        let read = |text| {
            let names = parse(text).expect("valid").expect("some");
            (names.by_priority, names.count, names.names.join("|"))
        };
        assert_eq!(read("a, b"), (true, 1, "a|b".into()));
        assert_eq!(read("2 (a,b ,c)"), (true, 2, "a|b|c".into()));
        assert_eq!(read("FIRST 1 (any)"), (true, 1, "any".into()));
        assert_eq!(read("any 2 (*, \"B \"\"c\")"), (false, 2, "*|B \"c".into()));
        assert_eq!(read("first"), (true, 1, "first".into()));
        assert_eq!(parse("  "), Ok(None));
        for wrong in [
            "a,",
            ",",
            "0 (a)",
            "x (a)",
            "ANY 1",
            "2 (a",
            "a b",
            "LAST 1 (a)",
            "\"a",
            "1 ()",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
