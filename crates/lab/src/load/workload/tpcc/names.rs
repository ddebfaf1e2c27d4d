//! Last names of customers: three syllables, one for each digit of a number (clause 4.3.2.3).

const SYLLABLES: [&str; 10] = [
    "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
];

/// The name of `number`, 0 to 999.
pub fn last_name(number: i64) -> String {
    let digit = |place: i64| SYLLABLES[(number / place % 10) as usize];
    [digit(100), digit(10), digit(1)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_specifications_own_examples() {
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(40), "BARPRESBAR");
        assert_eq!(last_name(0), "BARBARBAR");
        assert_eq!(last_name(999), "EINGEINGEING");
    }
}
