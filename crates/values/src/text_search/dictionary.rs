//! Dictionaries: what a word is found by.

use snowball_stemmers_rs::{Algorithm, Stemmer};
use std::collections::HashSet;
use std::sync::LazyLock;
use throng_types::Oid;
use throng_types::base::lower_case;

/// One of those that every database has.
pub struct Dictionary {
    pub oid: Oid,
    pub name: &'static str,
    /// The language whose endings are taken off; None for `simple`, which keeps words as they are.
    pub language: Option<Language>,
}

/// A language that there is a stemmer of.
#[derive(Clone, Copy)]
pub struct Language {
    pub name: &'static str,
    algorithm: fn() -> Algorithm,
}

/// The template `simple`.
pub const SIMPLE_TEMPLATE: Oid = Oid(3727);
/// The template `snowball`.
pub const SNOWBALL_TEMPLATE: Oid = Oid(12362);

/// Longer words are kept as they are.
const LONGEST_STEMMED: usize = 1000;

macro_rules! languages {
    ($($oid:literal $name:literal $stem:literal $algorithm:ident;)*) => {
        /// `simple` and one a language, by PostgreSQL's oids.
        pub static DICTIONARIES: &[Dictionary] = &[
            Dictionary { oid: Oid(3765), name: "simple", language: None },
            $(Dictionary {
                oid: Oid($oid),
                name: $stem,
                language: Some(Language { name: $name, algorithm: || Algorithm::$algorithm }),
            },)*
        ];
    };
}

languages! {
    12363 "arabic" "arabic_stem" Arabic;
    12365 "armenian" "armenian_stem" Armenian;
    12367 "basque" "basque_stem" Basque;
    12369 "catalan" "catalan_stem" Catalan;
    12371 "danish" "danish_stem" Danish;
    12373 "dutch" "dutch_stem" Dutch;
    12375 "english" "english_stem" English;
    12377 "estonian" "estonian_stem" Estonian;
    12379 "finnish" "finnish_stem" Finnish;
    12381 "french" "french_stem" French;
    12383 "german" "german_stem" German;
    12385 "greek" "greek_stem" Greek;
    12387 "hindi" "hindi_stem" Hindi;
    12389 "hungarian" "hungarian_stem" Hungarian;
    12391 "indonesian" "indonesian_stem" Indonesian;
    12393 "irish" "irish_stem" Irish;
    12395 "italian" "italian_stem" Italian;
    12397 "lithuanian" "lithuanian_stem" Lithuanian;
    12399 "nepali" "nepali_stem" Nepali;
    12401 "norwegian" "norwegian_stem" Norwegian;
    12403 "portuguese" "portuguese_stem" Portuguese;
    12405 "romanian" "romanian_stem" Romanian;
    12407 "russian" "russian_stem" Russian;
    12409 "serbian" "serbian_stem" Serbian;
    12411 "spanish" "spanish_stem" Spanish;
    12413 "swedish" "swedish_stem" Swedish;
    12415 "tamil" "tamil_stem" Tamil;
    12417 "turkish" "turkish_stem" Turkish;
    12419 "yiddish" "yiddish_stem" Yiddish;
}

/// A language's words that nothing is found by.
struct StopWords {
    language: &'static str,
    words: HashSet<&'static str>,
}

static STOP_WORDS: LazyLock<Vec<StopWords>> = LazyLock::new(|| {
    let lists = include_str!("stop_words.txt").split("\n[").skip(1);
    lists
        .filter_map(|list| {
            let (language, words) = list.split_once(']')?;
            Some(StopWords {
                language,
                words: words.split_whitespace().collect(),
            })
        })
        .collect()
});

fn stop_words(language: &str) -> Option<&'static HashSet<&'static str>> {
    let mut lists = STOP_WORDS.iter();
    lists
        .find(|list| list.language == language)
        .map(|list| &list.words)
}

impl Dictionary {
    pub fn by_oid(oid: Oid) -> Option<&'static Dictionary> {
        DICTIONARIES.iter().find(|dictionary| dictionary.oid == oid)
    }
    pub fn by_name(name: &str) -> Option<&'static Dictionary> {
        DICTIONARIES
            .iter()
            .find(|dictionary| dictionary.name == name)
    }
    pub fn template(&self) -> Oid {
        match self.language {
            Some(_) => SNOWBALL_TEMPLATE,
            None => SIMPLE_TEMPLATE,
        }
    }
    /// Its options, as `pg_ts_dict` shows them.
    pub fn options(&self) -> Option<String> {
        let language = self.language?.name;
        Some(match stop_words(language) {
            Some(_) => format!("language = '{language}', stopwords = '{language}'"),
            None => format!("language = '{language}'"),
        })
    }
    /// The lexemes that a word is found by: none of a stop word. Both kinds know every word.
    pub fn lexize(&self, word: &str) -> Vec<String> {
        let word = lower_case(word);
        let Some(language) = self.language else {
            return vec![word];
        };
        if word.len() > LONGEST_STEMMED {
            return vec![word];
        }
        if word.is_empty() || stop_words(language.name).is_some_and(|words| words.contains(&*word))
        {
            return Vec::new();
        }
        let stem = Stemmer::create((language.algorithm)())
            .stem(&word)
            .into_owned();
        vec![stem]
    }
}
