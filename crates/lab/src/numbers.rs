//! Numbers as text.

/// Two digits that mean something, without an exponent where one is not needed.
pub fn coefficient(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        v if v >= 0.001 => format!("{v:.3}"),
        v => format!("{v:.1e}"),
    }
}

/// Four digits or so, thousands set apart.
pub fn number(value: f64) -> String {
    if value.abs() >= 100.0 {
        thousands(value.round() as i64)
    } else if value.abs() >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

fn thousands(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut text = String::from(if value < 0 { "-" } else { "" });
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// So many of them.
pub fn clients(count: usize) -> String {
    match count {
        1 => "1 client".to_owned(),
        count => format!("{count} clients"),
    }
}

/// A share of 1.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p >= 10.0 => format!("{p:.0} %"),
        p => format!("{p:.2} %"),
    }
}

/// Nanoseconds in the unit that suits them.
pub fn duration(nanos: u64) -> String {
    match nanos {
        0..1_000 => format!("{nanos} ns"),
        1_000..1_000_000 => format!("{:.1} µs", nanos as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", nanos as f64 / 1e6),
        _ => format!("{:.2} s", nanos as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(number(1234567.4), "1,234,567");
        assert_eq!(number(-1000.0), "-1,000");
        assert_eq!(number(100.0), "100");
        assert_eq!(number(12.34), "12.3");
        assert_eq!(number(0.5), "0.50");
        assert_eq!(percent(0.987), "99 %");
        assert_eq!(percent(0.0021), "0.21 %");
        assert_eq!(duration(999), "999 ns");
        assert_eq!(duration(1_500), "1.5 µs");
        assert_eq!(duration(2_500_000_000), "2.50 s");
    }
}
