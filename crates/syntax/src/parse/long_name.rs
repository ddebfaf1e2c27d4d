//! Names that are longer than what can be stored, which are cut and told.

use throng_types::Error;
use throng_types::error::state;

use super::lexer::{Kind, MAX_NAME, is_ident, tokenize, truncate_name};

/// A notice for each name of a text that is cut, in their order.
pub fn cut_names(sql: &str) -> Vec<Error> {
    if !may_have_long_name(sql.as_bytes()) {
        return Vec::new();
    }
    let tokens = tokenize(sql).unwrap_or_default();
    let names = tokens.into_iter().filter_map(|token| {
        let written = &sql[token.start as usize..token.end as usize];
        match token.kind {
            Kind::Word(_) => Some(written.to_ascii_lowercase()),
            Kind::Quoted(_) => {
                let bare = written.strip_prefix('"')?.strip_suffix('"')?;
                Some(bare.replace("\"\"", "\""))
            }
            _ => None,
        }
    });
    names
        .filter(|name| name.len() > MAX_NAME)
        .map(cut)
        .collect()
}

fn cut(name: String) -> Error {
    let message = format!("identifier \"{name}\" will be truncated to ");
    let short = truncate_name(name);
    Error::new(state::NAME_TOO_LONG, format!("{message}\"{short}\""))
}

/// Whether a word or what is in double quotes is long, string literals taken for code.
fn may_have_long_name(sql: &[u8]) -> bool {
    let mut rest = sql;
    while rest.len() > MAX_NAME {
        let run = rest.iter().take_while(|b| is_ident(**b)).count();
        if run > MAX_NAME {
            return true;
        }
        rest = &rest[run..];
        if let Some(quoted) = rest.strip_prefix(b"\"") {
            let Some(length) = quoted.iter().position(|b| *b == b'"') else {
                return false;
            };
            if length > MAX_NAME {
                return true;
            }
            // A quote inside of a literal may be the first of a name.
        }
        rest = rest.get(1..).unwrap_or_default();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::cut_names;

    #[test]
    fn names_that_are_cut_are_told_as_they_were_written() {
        let long = "A".repeat(64);
        let told = |sql: &str| {
            let notices = cut_names(sql);
            let texts = notices.iter().map(|n| n.message().to_owned());
            texts.collect::<Vec<_>>()
        };
        let small = "a".repeat(64);
        let expected = format!(
            "identifier \"{small}\" will be truncated to \"{}\"",
            &small[1..]
        );
        assert_eq!(told(&format!("select 1 as {long}")), [expected]);
        let expected = format!(
            "identifier \"{long}\" will be truncated to \"{}\"",
            &long[1..]
        );
        assert_eq!(told(&format!("select 1 as \"{long}\"")), [expected]);
        assert!(told(&format!("select '{long}', \"b\"")).is_empty());
        assert!(told(&format!("select {}", &long[1..])).is_empty());
    }
}
