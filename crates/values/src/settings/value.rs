//! What a setting's value may be, and how it is written: units as PostgreSQL spells them, names
//! canonicalised.

use throng_types::error::state;
use throng_types::lexical::is_space;
use throng_types::{Error, Lsn, Result};

pub use throng_types::lexical::quantity::{Unit, parse_quantity};

use crate::io::datetime::interval;
use crate::io::{Charset, IntervalStyle, Zone};

/// A setting's type with its limits.
#[derive(Clone, Copy)]
pub enum Kind {
    Bool,
    Int {
        min: i64,
        max: i64,
        unit: Unit,
    },
    Real {
        min: f64,
        max: f64,
    },
    /// Milliseconds with a fraction.
    Pause {
        min: f64,
        max: f64,
    },
    Enum(&'static [&'static str]),
    /// Any text that the function accepts, in the form it gives. An error is the reason, as DETAIL.
    Text(fn(&str) -> Result<String, String>),
    /// What clients speak.
    Charset,
    /// As a text, but what is not said stays as it is in the value in force, which comes second.
    Parts(fn(&str, &str) -> Result<String, String>),
}

/// A value in force.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Bool(bool),
    Int(i64),
    Real(f64),
    /// Of an enum or a text setting.
    Text(String),
}

/// As who knows the setting's kind reads it.
impl Value {
    pub(super) fn int(&self) -> i64 {
        match self {
            Value::Int(n) => *n,
            other => unreachable!("{other:?} is no integer"),
        }
    }
    pub(super) fn real(&self) -> f64 {
        match self {
            Value::Real(n) => *n,
            other => unreachable!("{other:?} is no number"),
        }
    }
    pub(super) fn bool(&self) -> bool {
        match self {
            Value::Bool(b) => *b,
            other => unreachable!("{other:?} is no boolean"),
        }
    }
    pub(super) fn text(&self) -> &str {
        match self {
            Value::Text(text) => text,
            other => unreachable!("{other:?} is no text"),
        }
    }
}

fn invalid(name: &str, text: &str) -> Error {
    Error::new(
        state::INVALID_PARAMETER_VALUE,
        format!("invalid value for parameter \"{name}\": \"{text}\""),
    )
}

/// PostgreSQL's spellings of a boolean, any unambiguous prefix of them.
pub fn parse_bool(text: &str) -> Option<bool> {
    let text = text.trim().to_ascii_lowercase();
    let is = |word: &str, least: usize| text.len() >= least && word.starts_with(&text);
    if is("true", 1) || is("yes", 1) || is("on", 2) || text == "1" {
        Some(true)
    } else if is("false", 1) || is("no", 1) || is("off", 2) || text == "0" {
        Some(false)
    } else {
        None
    }
}

impl Kind {
    /// Understands `text` as a value for the setting `name`.
    pub fn parse(&self, name: &str, text: &str) -> Result<Value> {
        self.parse_over(name, text, None)
    }

    /// The same, where `current` is in force.
    pub fn parse_over(&self, name: &str, text: &str, current: Option<&Value>) -> Result<Value> {
        let checked = |checked: Result<String, String>| {
            checked.map(Value::Text).map_err(|detail| {
                let e = invalid(name, text);
                if detail.is_empty() {
                    e
                } else {
                    e.detail(detail)
                }
            })
        };
        match *self {
            Kind::Bool => parse_bool(text).map(Value::Bool).ok_or_else(|| {
                Error::new(
                    state::INVALID_PARAMETER_VALUE,
                    format!("parameter \"{name}\" requires a Boolean value"),
                )
            }),
            Kind::Int { min, max, unit } => {
                let value = parse_quantity(text, unit).map_err(|hint| {
                    let e = invalid(name, text);
                    if hint.is_empty() { e } else { e.hint(hint) }
                })?;
                let value = value.round();
                if value < min as f64 || value > max as f64 {
                    let unit = unit.name().map(|u| format!(" {u}")).unwrap_or_default();
                    return Err(Error::new(
                        state::INVALID_PARAMETER_VALUE,
                        format!(
                            "{value}{unit} is outside the valid range for parameter \"{name}\" ({min}{unit} .. {max}{unit})"
                        ),
                    ));
                }
                Ok(Value::Int(value as i64))
            }
            Kind::Real { min, max } => {
                let value = parse_quantity(text, Unit::None).map_err(|_| invalid(name, text))?;
                if !(min..=max).contains(&value) {
                    return Err(Error::new(
                        state::INVALID_PARAMETER_VALUE,
                        format!(
                            "{value} is outside the valid range for parameter \"{name}\" ({min} .. {max})"
                        ),
                    ));
                }
                Ok(Value::Real(value))
            }
            Kind::Pause { min, max } => {
                let value = parse_quantity(text, Unit::Milliseconds).map_err(|hint| {
                    let e = invalid(name, text);
                    if hint.is_empty() { e } else { e.hint(hint) }
                })?;
                if !(min..=max).contains(&value) {
                    return Err(Error::new(
                        state::INVALID_PARAMETER_VALUE,
                        format!(
                            "{value} ms is outside the valid range for parameter \"{name}\" ({min} ms .. {max} ms)"
                        ),
                    ));
                }
                Ok(Value::Real(value))
            }
            Kind::Enum(words) => words
                .iter()
                .find(|w| w.eq_ignore_ascii_case(text.trim()))
                .or_else(|| {
                    // An enum that has on and off takes a boolean's other spellings too.
                    let word = if parse_bool(text)? { "on" } else { "off" };
                    words.iter().find(|w| **w == word)
                })
                .map(|w| Value::Text((*w).to_owned()))
                .ok_or_else(|| {
                    invalid(name, text).hint(format!("Available values: {}.", words.join(", ")))
                }),
            Kind::Text(check) => checked(check(text)),
            Kind::Charset => charset(name, text).map(Value::Text),
            Kind::Parts(check) => {
                let current = match current {
                    Some(Value::Text(current)) => current.as_str(),
                    _ => "",
                };
                checked(check(text, current))
            }
        }
    }

    /// As `pg_settings.vartype` spells it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Kind::Bool => "bool",
            Kind::Int { .. } => "integer",
            Kind::Real { .. } | Kind::Pause { .. } => "real",
            Kind::Enum(_) => "enum",
            Kind::Text(_) | Kind::Parts(_) | Kind::Charset => "string",
        }
    }

    /// As SHOW prints it: integers in the largest unit that divides them.
    pub fn show(&self, value: &Value) -> String {
        match (self, value) {
            (Kind::Int { unit, .. }, Value::Int(n)) if *n > 0 && *unit != Unit::None => {
                let (family, base) = unit.family();
                let total = *n as f64 * base;
                for (name, size) in family {
                    if total >= *size && total % size == 0.0 {
                        return format!("{}{name}", total / size);
                    }
                }
                n.to_string()
            }
            (Kind::Pause { .. }, Value::Real(ms)) if *ms > 0.0 => {
                let (family, base) = Unit::Milliseconds.family();
                // As far as a quotient of decimal fractions can tell whole numbers.
                let whole = |n: f64| (n - n.round()).abs() < 1e-8 * n.abs();
                let fits = family.iter().find(|(_, size)| whole(ms * base / size));
                match fits {
                    Some((name, size)) => format!("{}{name}", (ms * base / size).round()),
                    None => format!("{}us", ms * base),
                }
            }
            _ => raw(value),
        }
    }
}

/// The value in the setting's own unit, as `pg_settings.setting` has it.
pub fn raw(value: &Value) -> String {
    match value {
        Value::Bool(b) => if *b { "on" } else { "off" }.to_owned(),
        Value::Int(n) => n.to_string(),
        Value::Real(n) => n.to_string(),
        Value::Text(s) => s.clone(),
    }
}

pub fn any_text(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

/// Nothing, or that recovery ends as soon as it may.
pub fn recovery_target(text: &str) -> Result<String, String> {
    match text {
        "" | "immediate" => Ok(text.to_owned()),
        _ => Err("The only allowed value is \"immediate\".".to_owned()),
    }
}

pub fn recovery_target_lsn(text: &str) -> Result<String, String> {
    let is_position = text.is_empty() || Lsn::from_halves(text).is_some();
    is_position.then(|| text.to_owned()).ok_or_else(String::new)
}

/// A restore point's name, of less than 64 bytes.
pub fn recovery_target_name(text: &str) -> Result<String, String> {
    match text.len() {
        0..64 => Ok(text.to_owned()),
        _ => Err("\"recovery_target_name\" is too long (maximum 63 characters).".to_owned()),
    }
}

pub fn recovery_target_xid(text: &str) -> Result<String, String> {
    let is_number = text.is_empty() || text.parse::<u64>().is_ok();
    is_number.then(|| text.to_owned()).ok_or_else(String::new)
}

pub fn recovery_target_timeline(text: &str) -> Result<String, String> {
    let is_one = matches!(text, "latest" | "current") || text.parse::<u32>().is_ok_and(|n| n > 0);
    is_one
        .then(|| text.to_owned())
        .ok_or_else(|| "\"recovery_target_timeline\" is not a valid number.".to_owned())
}

/// A character set that there is a conversion for: 22023 for others, 0A000 for those that have
/// none.
fn charset(name: &str, text: &str) -> Result<String> {
    let charset = Charset::named(text).ok_or_else(|| invalid(name, text))?;
    if !charset.is_converted() {
        let detail = format!(
            "Conversion between {} and UTF8 is not supported.",
            charset.name()
        );
        let message = invalid(name, text).message().to_owned();
        return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message).detail(detail));
    }
    Ok(charset.name().to_owned())
}

/// Aspects of a connection, or a boolean for those that PostgreSQL told of before there were
/// aspects.
pub fn log_connections(text: &str) -> Result<String, String> {
    const ASPECTS: [&str; 4] = ["receipt", "authentication", "authorization", "all"];
    if text.trim().is_empty() || parse_bool(text) == Some(false) {
        return Ok(String::new());
    }
    if parse_bool(text) == Some(true) {
        return Ok("on".to_owned());
    }
    let names = split_names(text).ok_or("Invalid list syntax in parameter \"log_connections\".")?;
    let unknown = names.iter().find(|name| !ASPECTS.contains(&name.as_str()));
    match unknown {
        Some(name) => Err(format!("Invalid option \"{name}\".")),
        None => Ok(names.join(", ")),
    }
}

/// A style and a field order, in either order; what is not said stays, but that German dates begin
/// with the day.
pub fn date_style(text: &str, current: &str) -> Result<String, String> {
    let (mut style, mut order) = (None, None);
    let mut conflicting = false;
    for word in text.split(',').map(|w| w.trim().to_ascii_lowercase()) {
        let (part, value) = match word.as_str() {
            "iso" => (&mut style, "ISO"),
            "sql" => (&mut style, "SQL"),
            "german" => (&mut style, "German"),
            w if w.starts_with("postgres") => (&mut style, "Postgres"),
            "ymd" => (&mut order, "YMD"),
            "dmy" => (&mut order, "DMY"),
            w if w.starts_with("euro") => (&mut order, "DMY"),
            "mdy" | "us" => (&mut order, "MDY"),
            w if w.starts_with("noneuro") => (&mut order, "MDY"),
            "default" => {
                style.get_or_insert("ISO");
                order.get_or_insert("MDY");
                continue;
            }
            _ => return Err(format!("Unrecognized key word: \"{word}\".")),
        };
        conflicting |= part.replace(value).is_some_and(|before| before != value);
    }
    if conflicting {
        return Err("Conflicting \"DateStyle\" specifications.".to_owned());
    }
    let (current_style, current_order) = current.split_once(", ").unwrap_or(("ISO", "MDY"));
    let order = order.unwrap_or(match style {
        Some("German") => "DMY",
        _ => current_order,
    });
    Ok(format!("{}, {order}", style.unwrap_or(current_style)))
}

/// A configuration of text search by its name, qualified as `regconfig` shows it in no search path.
pub fn text_search_configuration(text: &str) -> Result<String, String> {
    let name = text
        .strip_prefix("pg_catalog.")
        .unwrap_or(text)
        .trim_matches('"');
    match crate::text_search::Configuration::by_name(name) {
        Some(configuration) => Ok(format!("pg_catalog.{}", configuration.name)),
        None => Err(String::new()),
    }
}

/// A zone by its IANA name, hours east of Greenwich, an interval (`INTERVAL '05:30'`), or POSIX's
/// form, whose sign goes the other way.
pub fn time_zone(text: &str) -> Result<String, String> {
    if text.eq_ignore_ascii_case("default") || text.eq_ignore_ascii_case("local") {
        return Ok("GMT".to_owned());
    }
    let starts_as_interval = text.get(..8).filter(|t| t.eq_ignore_ascii_case("interval"));
    if starts_as_interval.is_some() {
        return interval_east(&text[8..]);
    }
    if let Some(zone) = chrono_tz::TZ_VARIANTS
        .iter()
        .find(|z| z.name().eq_ignore_ascii_case(text))
    {
        return Ok(zone.name().to_owned());
    }
    if let Ok(hours) = text.trim_start().parse::<f64>() {
        return seconds_east(hours * 3600.0);
    }
    // As PostgreSQL spells what is no name of a file.
    let name = text.to_ascii_uppercase();
    match Zone::by_name(&name) {
        Some(_) => Ok(name),
        None => Err(String::new()),
    }
}

/// The zone of an interval that is written in quotes.
fn interval_east(text: &str) -> Result<String, String> {
    let quoted = text.trim_start().strip_prefix('\'');
    let inside = quoted.and_then(|text| text.strip_suffix('\''));
    let style = IntervalStyle::Postgres;
    let parsed = inside.and_then(|text| interval::parse(text, style, -1).ok());
    let interval = parsed.ok_or_else(String::new)?;
    if interval.months != 0 {
        return Err("Cannot specify months in time zone interval.".to_owned());
    }
    if interval.days != 0 {
        return Err("Cannot specify days in time zone interval.".to_owned());
    }
    seconds_east((interval.micros / 1_000_000) as f64)
}

/// POSIX's form of so many seconds east: `<+05:30>-05:30`.
fn seconds_east(seconds: f64) -> Result<String, String> {
    const MOST_HOURS: f64 = 167.0;
    if seconds.is_nan() || seconds.abs() > MOST_HOURS * 3600.0 {
        return Err("UTC timezone offset is out of range.".to_owned());
    }
    let east = seconds >= 0.0;
    let seconds = seconds.abs() as u32;
    let mut shown = format!("{:02}", seconds / 3600);
    if !seconds.is_multiple_of(3600) {
        shown += &format!(":{:02}", seconds / 60 % 60);
    }
    if !seconds.is_multiple_of(60) {
        shown += &format!(":{:02}", seconds % 60);
    }
    let (ahead, behind) = if east { ('+', '-') } else { ('-', '+') };
    Ok(format!("<{ahead}{shown}>{behind}{shown}"))
}

/// A list of schema names; kept as it is written.
pub fn search_path(text: &str) -> Result<String, String> {
    match split_names(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err("List syntax is invalid.".to_owned()),
    }
}

/// Bytes of a name: what is longer is cut.
const LONGEST_NAME: usize = 63;

fn cut(name: &mut String) {
    if name.len() > LONGEST_NAME {
        let end = (0..=LONGEST_NAME)
            .rev()
            .find(|at| name.is_char_boundary(*at));
        name.truncate(end.unwrap_or(0));
    }
}

/// The names of a comma-separated list, as PostgreSQL's `SplitIdentifierString` finds them:
/// unquoted ones end at a space and are folded to lower case.
pub fn split_names(text: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    if rest.is_empty() {
        return Some(names);
    }
    loop {
        let mut name;
        if let Some(quoted) = rest.strip_prefix('"') {
            name = String::new();
            let mut chars = quoted.char_indices();
            let end = loop {
                match chars.next()? {
                    (at, '"') if !quoted[at + 1..].starts_with('"') => break at + 1,
                    (_, '"') => {
                        chars.next();
                        name.push('"');
                    }
                    (_, c) => name.push(c),
                }
            };
            rest = &quoted[end..];
        } else {
            let end = rest.find(|c: char| c == ',' || is_space(c));
            let end = end.unwrap_or(rest.len());
            if end == 0 {
                return None;
            }
            name = rest[..end].to_ascii_lowercase();
            rest = &rest[end..];
        }
        cut(&mut name);
        names.push(name);
        rest = rest.trim_start_matches(is_space);
        match rest.strip_prefix(',') {
            Some(more) => rest = more.trim_start_matches(is_space),
            None if rest.is_empty() => return Some(names),
            None => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KB: Kind = Kind::Int {
        min: 64,
        max: i32::MAX as i64,
        unit: Unit::Kilobytes,
    };

    #[test]
    fn units_convert_and_print() {
        assert_eq!(KB.parse("work_mem", "4MB").ok(), Some(Value::Int(4096)));
        assert_eq!(KB.parse("work_mem", "100").ok(), Some(Value::Int(100)));
        assert_eq!(KB.show(&Value::Int(4096)), "4MB");
        assert_eq!(KB.show(&Value::Int(100)), "100kB");
        let e = KB.parse("work_mem", "4 XB").expect_err("no such unit");
        assert_eq!(
            e.message(),
            "invalid value for parameter \"work_mem\": \"4 XB\""
        );
        let e = KB.parse("work_mem", "1kB").expect_err("too small");
        assert!(
            e.message().starts_with("1 kB is outside the valid range"),
            "{e}"
        );
    }

    #[test]
    fn booleans() {
        for (text, value) in [
            ("on", Some(true)),
            ("of", Some(false)),
            ("o", None),
            ("T", Some(true)),
            ("0", Some(false)),
            ("", None),
        ] {
            assert_eq!(
                parse_bool(text).filter(|_| !text.is_empty()),
                value,
                "{text}"
            );
        }
    }

    #[test]
    fn name_lists() {
        assert_eq!(
            split_names("\"$user\", Public,\"a\"\"b\""),
            Some(vec!["$user".into(), "public".into(), "a\"b".into()])
        );
        assert_eq!(split_names(" A , b "), Some(vec!["a".into(), "b".into()]));
        assert_eq!(split_names("a b"), None);
        assert_eq!(
            split_names("\"a b\" , \"\""),
            Some(vec!["a b".into(), "".into()])
        );
        assert_eq!(split_names("a,,b"), None);
        assert_eq!(split_names("\"open"), None);
        assert_eq!(split_names(""), Some(vec![]));
    }

    #[test]
    fn date_styles() {
        let after = |text, current| date_style(text, current).ok();
        assert_eq!(after("sql, dmy", "ISO, MDY"), Some("SQL, DMY".into()));
        assert_eq!(after("postgres", "ISO, YMD"), Some("Postgres, YMD".into()));
        assert_eq!(after("european", "German, YMD"), Some("German, DMY".into()));
        assert_eq!(after("german", "ISO, MDY"), Some("German, DMY".into()));
        assert_eq!(after("mdy, german", "ISO, DMY"), Some("German, MDY".into()));
        assert_eq!(after("iso, sql", "ISO, MDY"), None);
        assert_eq!(after("roman", "ISO, MDY"), None);
    }

    #[test]
    fn zones() {
        assert_eq!(time_zone("europe/berlin"), Ok("Europe/Berlin".into()));
        assert_eq!(time_zone("+02"), Ok("<+02>-02".into()));
        assert_eq!(time_zone("-5.5"), Ok("<-05:30>+05:30".into()));
        assert_eq!(time_zone("utc+3"), Ok("UTC+3".into()));
        assert_eq!(
            time_zone("INTERVAL '05:30:00'"),
            Ok("<+05:30>-05:30".into())
        );
        assert!(time_zone("INTERVAL '1 day'").is_err());
        assert!(time_zone("200").is_err());
        for (text, east) in [
            ("-5.5", -19_800),
            ("UTC+3", -10_800),
            ("-05:30", 19_800),
            ("0", 0),
        ] {
            let zone = Zone::by_name(&time_zone(text).expect(text)).expect(text);
            assert_eq!(zone.east_at(0), east, "{text}");
        }
        assert!(time_zone("Mars/Olympus").is_err());
    }
}
