//! Sizes and times with a unit, as settings and options are written: `64MB`, `1.5h`.

/// What an integer counts; text with another unit of the same family is converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    None,
    Bytes,
    Kilobytes,
    Megabytes,
    /// 8 KB pages.
    Pages,
    Milliseconds,
    Seconds,
    Minutes,
}

impl Unit {
    /// As `pg_settings.unit` spells it.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Unit::None => None,
            Unit::Bytes => Some("B"),
            Unit::Kilobytes => Some("kB"),
            Unit::Megabytes => Some("MB"),
            Unit::Pages => Some("8kB"),
            Unit::Milliseconds => Some("ms"),
            Unit::Seconds => Some("s"),
            Unit::Minutes => Some("min"),
        }
    }

    /// Spellings with their size in bytes or microseconds, and the size of this unit.
    pub fn family(self) -> (&'static [(&'static str, f64)], f64) {
        const BYTES: &[(&str, f64)] = &[
            ("TB", (1u64 << 40) as f64),
            ("GB", (1u64 << 30) as f64),
            ("MB", (1u64 << 20) as f64),
            ("kB", 1024.0),
            ("B", 1.0),
        ];
        const MICROS: &[(&str, f64)] = &[
            ("d", 86_400e6),
            ("h", 3600e6),
            ("min", 60e6),
            ("s", 1e6),
            ("ms", 1e3),
            ("us", 1.0),
        ];
        match self {
            Unit::None => (&[], 1.0),
            Unit::Bytes => (BYTES, 1.0),
            Unit::Kilobytes => (BYTES, 1024.0),
            Unit::Megabytes => (BYTES, (1u64 << 20) as f64),
            Unit::Pages => (BYTES, 8192.0),
            Unit::Milliseconds => (MICROS, 1e3),
            Unit::Seconds => (MICROS, 1e6),
            Unit::Minutes => (MICROS, 60e6),
        }
    }
}

/// A number, perhaps with a unit, in `unit`. The error is a hint, empty if there is none to give.
pub fn parse_quantity(text: &str, unit: Unit) -> Result<f64, String> {
    let text = text.trim();
    if let Some(hex) = text.strip_prefix("0x") {
        return i64::from_str_radix(hex, 16)
            .map(|n| n as f64)
            .map_err(|_| String::new());
    }
    let digits = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+')))
        .unwrap_or(text.len());
    let number: f64 = text[..digits].parse().map_err(|_| String::new())?;
    let suffix = text[digits..].trim();
    if suffix.is_empty() {
        return Ok(number);
    }
    let (family, base) = unit.family();
    match family.iter().find(|(name, _)| *name == suffix) {
        Some((_, size)) => Ok(number * size / base),
        None if family.is_empty() => Err(String::new()),
        None => {
            let mut names: Vec<String> = family
                .iter()
                .rev()
                .map(|(name, _)| format!("\"{name}\""))
                .collect();
            let last = names.pop().unwrap_or_default();
            Err(format!(
                "Valid units for this parameter are {}, and {last}.",
                names.join(", ")
            ))
        }
    }
}
