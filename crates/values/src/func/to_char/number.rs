//! `to_char` of numbers and `to_number`.
//!
//! The template has places for digits (`9`, `0`), a point, and decorations. A number is laid into
//! it from the right: places before its first digit are blank, or zeros from the first `0` on; a
//! number that does not fit shows `#` in every place.

use crate::func::string::text;
use crate::func::to_char::{Case, ordinal};
use crate::func::{EvalContext, EvalResult};
use throng_types::error::state;
use throng_types::{Datum, Error, Numeric, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Nine,
    Zero,
    Point,
    Group,
    Sign,
    Minus,
    Plus,
    SignPlace,
    Currency,
    Ordinal(Case),
    /// What only sets a flag.
    Silent,
    Literal(char),
}

/// A template read, with what it says as a whole.
#[derive(Default)]
struct Template {
    marks: Vec<Mark>,
    /// Places before and behind the point.
    before: usize,
    after: usize,
    point: bool,
    fill: bool,
    /// The first place (from 0) that shows a zero; one behind the point shows its digit in any
    /// case.
    zero_from: Option<usize>,
    /// The place behind the last `0`.
    zero_to: Option<usize>,
    /// S, and whether it stands behind the places.
    sign: Option<bool>,
    minus: bool,
    plus: bool,
    brackets: bool,
    roman: Option<Case>,
    exponent: bool,
    /// V: digits by which the number is multiplied.
    shift: Option<usize>,
}

#[cold]
fn syntax(message: &str) -> Error {
    Error::new(state::SYNTAX_ERROR, message)
}

fn read(format: &str) -> Result<Template> {
    const WORDS: [&str; 20] = [
        "EEEE", "FM", "MI", "PL", "PR", "RN", "SG", "SP", "TH", "th", ",", ".", "0", "9", "B", "C",
        "D", "G", "L", "S",
    ];
    let mut t = Template::default();
    let mut rest = format;
    while let Some(c) = rest.chars().next() {
        if t.exponent && !rest.starts_with('"') && WORDS.iter().any(|w| rest.starts_with(w)) {
            return Err(syntax("\"EEEE\" must be the last pattern used"));
        }
        let head: String = rest.chars().take(4).collect();
        let upper = head.to_ascii_uppercase();
        let two = upper.get(..2).unwrap_or("");
        let (mark, len) = match (c.to_ascii_uppercase(), two) {
            _ if upper == "EEEE" => {
                t.exponent = true;
                (Mark::Silent, 4)
            }
            (_, "FM") => {
                t.fill = true;
                (Mark::Silent, 2)
            }
            (_, "MI") => {
                t.minus = true;
                (Mark::Minus, 2)
            }
            (_, "PL") => {
                t.plus = true;
                (Mark::Plus, 2)
            }
            (_, "PR") => {
                t.brackets = true;
                (Mark::Silent, 2)
            }
            (_, "RN") => {
                t.roman = Some(if c == 'r' { Case::Lower } else { Case::Upper });
                (Mark::Silent, 2)
            }
            (_, "SG") => {
                (t.minus, t.plus) = (true, true);
                (Mark::SignPlace, 2)
            }
            (_, "SP") => (Mark::Silent, 2),
            (_, "TH") => (
                Mark::Ordinal(if c == 't' { Case::Lower } else { Case::Upper }),
                2,
            ),
            ('9', _) => {
                place(&mut t)?;
                (Mark::Nine, 1)
            }
            ('0', _) => {
                place(&mut t)?;
                if !t.point {
                    t.zero_from.get_or_insert(t.before - 1);
                }
                t.zero_to = Some(t.before + t.after);
                (Mark::Zero, 1)
            }
            ('.' | 'D', _) => {
                if t.point {
                    return Err(syntax("multiple decimal points"));
                }
                if t.shift.is_some() {
                    return Err(syntax("cannot use \"V\" and decimal point together"));
                }
                t.point = true;
                (Mark::Point, 1)
            }
            ('S', _) => {
                if t.sign.is_some() {
                    return Err(syntax("cannot use \"S\" twice"));
                }
                if t.plus || t.minus || t.brackets {
                    return Err(syntax(
                        "cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together",
                    ));
                }
                t.sign = Some(t.before + t.after > 0);
                (Mark::Sign, 1)
            }
            ('V', _) => {
                if t.point {
                    return Err(syntax("cannot use \"V\" and decimal point together"));
                }
                t.shift = Some(0);
                (Mark::Silent, 1)
            }
            (',' | 'G', _) => (Mark::Group, 1),
            ('L', _) => (Mark::Currency, 1),
            ('B' | 'C', _) => (Mark::Silent, 1),
            ('"', _) => {
                rest = quoted(&rest[1..], &mut t.marks);
                continue;
            }
            ('\\', _) if rest.starts_with("\\\"") => {
                rest = &rest[1..];
                (Mark::Literal('"'), 1)
            }
            _ => (Mark::Literal(c), c.len_utf8()),
        };
        t.marks.push(mark);
        rest = &rest[len..];
    }
    if t.exponent
        && (t.fill || t.sign.is_some() || t.brackets || t.plus || t.minus || t.shift.is_some())
    {
        return Err(syntax("\"EEEE\" is incompatible with other formats"));
    }
    Ok(t)
}
/// The text up to the next quote, in which a backslash takes the character after it as it is; gives
/// what follows.
fn quoted<'a>(text: &'a str, marks: &mut Vec<Mark>) -> &'a str {
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => marks.extend(chars.next().map(Mark::Literal)),
            c => marks.push(Mark::Literal(c)),
        }
    }
    chars.as_str()
}

/// One more digit.
fn place(t: &mut Template) -> Result<()> {
    if t.brackets {
        return Err(syntax("\"9\" must be ahead of \"PR\""));
    }
    match (&mut t.shift, t.point) {
        (Some(shift), _) => {
            *shift += 1;
            t.before += 1;
        }
        (None, true) => t.after += 1,
        (None, false) => t.before += 1,
    }
    Ok(())
}

/// The digits to be laid out.
struct Digits {
    negative: bool,
    /// With a point where the template has one.
    shown: Vec<u8>,
    /// Digits before the point.
    before: usize,
}

/// The number times `10 ^ shift`, with so many digits behind the point. A float is rounded as C's
/// printf does it: from the binary value, and half to even.
fn rounded(value: &Datum, shift: usize, after: usize) -> Result<String> {
    let shift = shift.min(18);
    let float = match value {
        Datum::Float4(v) if v.is_finite() => f64::from(v * 10f32.powi(shift as i32)),
        Datum::Float8(v) if v.is_finite() => v * 10f64.powi(shift as i32),
        exact => {
            let value = as_numeric(exact).mul(&Numeric::from(10i64.pow(shift as u32)))?;
            return Ok(value.round(after as i32).to_string());
        }
    };
    Ok(if float.is_finite() {
        format!("{float:.after$}")
    } else {
        Numeric::from_f64(float).to_string()
    })
}

/// `after`: how many digits behind the point are to be told.
fn digits(value: &Datum, t: &Template, after: usize) -> Result<Digits> {
    let mut plain = rounded(value, t.shift.unwrap_or(0), after)?;
    let negative = plain.starts_with('-');
    if negative {
        plain.remove(0);
    }
    let before = plain.find('.').unwrap_or(plain.len());
    if before > t.before {
        // It does not fit: every place shows so.
        let mut shown = vec![b'#'; t.before];
        if t.point {
            shown.push(b'.');
            shown.resize(t.before + 1 + after, b'#');
        }
        return Ok(Digits {
            negative,
            shown,
            before: t.before,
        });
    }
    // A point with nothing behind it is not shown.
    Ok(Digits {
        negative,
        shown: plain.into_bytes(),
        before,
    })
}

/// Lays the digits into the template.
struct DigitLayout<'a> {
    t: &'a Template,
    number: &'a Digits,
    out: String,
    /// Places that are ahead of the first digit.
    blank: usize,
    /// The place now at.
    at: usize,
    /// The next digit.
    next: usize,
    /// With FM: the last character of the number that is shown.
    last: Option<usize>,
    signed: bool,
    inside: bool,
    sign_behind: Option<bool>,
    brackets: bool,
    /// The bracket behind the number is there.
    closed: bool,
    short: bool,
}

impl DigitLayout<'_> {
    fn run(mut self) -> String {
        for &mark in &self.t.marks {
            let is_place = matches!(mark, Mark::Nine | Mark::Zero | Mark::Point);
            if is_place && self.next >= self.number.shown.len() && self.short {
                // PostgreSQL ends where it has no digits left: a float has only so many.
                break;
            }
            match mark {
                Mark::Nine | Mark::Zero | Mark::Point => self.place(mark),
                Mark::Group if self.inside => self.out.push(','),
                Mark::Group | Mark::Currency if self.t.fill => {}
                Mark::Group | Mark::Currency => self.out.push(' '),
                Mark::Minus if self.number.negative => self.out.push('-'),
                Mark::Plus if !self.number.negative => self.out.push('+'),
                Mark::Minus | Mark::Plus if self.t.fill => {}
                Mark::Minus | Mark::Plus => self.out.push(' '),
                Mark::SignPlace => self.out.push(if self.number.negative { '-' } else { '+' }),
                Mark::Ordinal(case) => {
                    let whole = &self.number.shown[..self.number.before];
                    if !self.number.negative && !self.t.point && whole.first() != Some(&b'#') {
                        self.out
                            .push_str(&ordinal(&String::from_utf8_lossy(whole), case));
                    }
                }
                Mark::Sign | Mark::Silent => {}
                Mark::Literal(c) => self.out.push(c),
            }
        }
        self.out
    }

    /// The zero before the point is not shown where there are places behind it.
    fn idle_zero(&self) -> bool {
        self.t.zero_from.is_none()
            && self.next == 0
            && self.number.shown.first() == Some(&b'0')
            && self.t.after != 0
    }
    fn ends_with_point(&self) -> bool {
        self.last
            .is_some_and(|last| self.number.shown.get(last) == Some(&b'.'))
    }

    fn place(&mut self, mark: Mark) {
        self.inside = false;
        let zero_from = self.t.zero_from;
        let starts = self.at >= self.blank || zero_from == Some(self.at);
        if !self.signed && starts && (!self.idle_zero() || self.ends_with_point()) {
            self.leading_sign();
        }
        let zero_here = zero_from.is_some_and(|first| first <= self.at);
        if self.at < self.blank && !zero_here {
            if !self.t.fill {
                self.out.push(' ');
            }
        } else if self.at < self.blank {
            self.out.push('0');
            self.inside = true;
        } else {
            self.digit(mark);
        }
        self.trailing_sign();
        self.at += 1;
    }
    fn leading_sign(&mut self) {
        let negative = self.number.negative;
        let sign = match (self.sign_behind, self.brackets, negative) {
            (Some(true), ..) => return,
            (Some(false), _, negative) => Some(if negative { '-' } else { '+' }),
            (None, true, negative) => Some(if negative { '<' } else { ' ' }),
            (None, false, true) => Some('-'),
            (None, false, false) => (!self.t.fill).then_some(' '),
        };
        self.out.extend(sign);
        self.signed = true;
    }
    fn digit(&mut self, mark: Mark) {
        let Some(&digit) = self.number.shown.get(self.next) else {
            return;
        };
        let beyond = self.last.is_some_and(|last| self.next > last);
        if digit == b'.' {
            if !self.ends_with_point() || self.t.fill {
                self.out.push('.');
            }
        } else if beyond && mark != Mark::Zero {
            // Not shown.
        } else if self.idle_zero() {
            if !self.t.fill {
                self.out.push(' ');
            } else if self.ends_with_point() {
                self.out.push('0');
            }
        } else {
            self.out.push(digit.into());
            self.inside = true;
        }
        self.next += 1;
    }
    /// The sign or bracket behind the last place.
    fn trailing_sign(&mut self) {
        let places = self.t.before + self.t.after + usize::from(self.t.point);
        let shown_all =
            self.last.is_some_and(|last| last + 1 == self.next) && self.at >= self.blank;
        if self.at + 1 != places && !shown_all {
            return;
        }
        if self.signed && self.brackets {
            if !std::mem::replace(&mut self.closed, true) {
                self.out.push(if self.number.negative { '>' } else { ' ' });
            }
        } else if self.sign_behind == Some(true) && !self.signed {
            self.out.push(if self.number.negative { '-' } else { '+' });
            self.signed = true;
        }
    }
}

/// `short`: the number may have fewer digits than the template has places.
fn laid_out(t: &Template, number: &Digits, short: bool) -> String {
    let blank = t.before.saturating_sub(number.before);
    let mut last = None;
    if t.fill && t.point && number.shown.contains(&b'.') {
        // Up to the last digit that is not zero, and all that a `0` of the template asks for.
        let relevant = number.shown.iter().rposition(|&b| b != b'0');
        let point = number.shown.iter().position(|&b| b == b'.');
        last = relevant.max(point);
        if let (Some(end), Some(zeros)) = (last, t.zero_to)
            && zeros > blank
        {
            // Counted in places, of which the point is one.
            let asked = (zeros - blank).min(number.shown.len() - 1);
            last = Some(end.max(asked));
        }
    }
    let silent_sign = t.plus || t.minus;
    let layout = DigitLayout {
        t,
        number,
        out: String::new(),
        blank,
        at: 0,
        next: 0,
        last,
        // Where the sign has a place of its own, the digits carry none.
        signed: silent_sign && (t.minus || !t.plus)
            || (!number.negative && t.fill && t.sign.is_none()),
        inside: false,
        sign_behind: t.sign,
        // Without blanks there is nothing that stands for a bracket around a number that has none.
        brackets: t.brackets && (number.negative || !t.fill || silent_sign),
        closed: false,
        short,
    };
    layout.run()
}

fn roman(value: i64) -> Option<String> {
    const NUMERALS: [(i64, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let mut left = (1..4000).contains(&value).then_some(value)?;
    let mut out = String::new();
    for (worth, numeral) in NUMERALS {
        while left >= worth {
            out.push_str(numeral);
            left -= worth;
        }
    }
    Some(out)
}

/// `d.dde+xx`
fn scientific(number: &Datum, t: &Template) -> Result<String> {
    let value = as_numeric(number);
    if !value.is_finite() {
        let places = "#".repeat(t.before.max(1));
        return Ok(format!(" {places}.{}", "#".repeat(t.after + 4)));
    }
    if let Some(float) = float(number) {
        let text = format!("{float:.*e}", t.after);
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ('-', exponent),
            None => ('+', exponent),
        };
        let lead = if float.is_sign_negative() { "" } else { " " };
        return Ok(format!("{lead}{mantissa}e{sign}{exponent:0>2}"));
    }
    let mut exponent = value.exponent();
    if value.is_zero() {
        exponent = 0;
    }
    let scaled = |exponent: i64| -> Result<Numeric> {
        // Without the digits that will not be shown, each step is exact; a numeric has no more than
        // 16383 places.
        let mut scaled = value.round((t.after as i64 - exponent) as i32);
        let mut left = exponent;
        while left != 0 {
            let step = left.clamp(-16_000, 16_000);
            let shift = format!("1e{}", -step).parse::<Numeric>();
            let shift = shift.map_err(|_| Error::internal("no power of ten"))?;
            scaled = scaled.mul(&shift)?;
            left -= step;
        }
        Ok(scaled.round(t.after as i32))
    };
    let mut mantissa = scaled(exponent)?;
    if mantissa.abs().compare(&Numeric::from(10i64)).is_ge() {
        exponent += 1;
        mantissa = scaled(exponent)?;
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    let lead = if value.signum() < 0 { "" } else { " " };
    Ok(format!("{lead}{mantissa}e{sign}{:02}", exponent.abs()))
}

/// The value of a float.
fn float(value: &Datum) -> Option<f64> {
    match value {
        Datum::Float4(v) => Some(f64::from(*v)),
        Datum::Float8(v) => Some(*v),
        _ => None,
    }
}

fn as_numeric(value: &Datum) -> Numeric {
    match value {
        Datum::Numeric(n) => n.clone(),
        Datum::Float4(v) => Numeric::from_f32(*v),
        Datum::Float8(v) => Numeric::from_f64(*v),
        other => Numeric::from(crate::func::number::int(other)),
    }
}

pub(in crate::func) fn number_to_char(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (value, format) = (&args[0], text(&args[1]));
    let t = read(format)?;
    if t.exponent {
        return Ok(scientific(value, &t)?.into());
    }
    if let Some(case) = t.roman {
        let numeral = rounded(value, 0, 0)?
            .parse()
            .ok()
            .and_then(roman)
            .unwrap_or_else(|| "#".repeat(15));
        let numeral = case.apply(&numeral);
        return Ok(if t.fill {
            numeral
        } else {
            format!("{numeral:>15}")
        }
        .into());
    }
    // A float's digits are told as far as they mean something.
    let told = match value {
        Datum::Float4(_) => Some(6),
        Datum::Float8(_) => Some(15),
        _ => None,
    };
    let mut after = t.after;
    if let Some(told) = told {
        let whole = rounded(value, t.shift.unwrap_or(0), 0)?;
        let whole = whole.trim_start_matches('-').len();
        after = after.min(usize::saturating_sub(told, whole));
    }
    let number = digits(value, &t, after)?;
    let short = after < t.after || !as_numeric(value).is_finite();
    Ok(laid_out(&t, &number, short).into())
}

/// The number in a text of a template's shape.
pub(in crate::func) fn to_number(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (s, format) = (text(&args[0]), text(&args[1]));
    if format.is_empty() {
        return Ok(Datum::Null);
    }
    let t = read(format)?;
    if t.exponent {
        return Err(Error::unsupported("\"EEEE\" for input").into());
    }
    let mut rest = s.chars().peekable();
    let (mut negative, mut shown, mut point) = (false, String::new(), false);
    for &mark in &t.marks {
        match mark {
            Mark::Nine | Mark::Zero | Mark::Point => {
                while rest.next_if(|c| *c == ' ').is_some() {}
                if shown.is_empty() {
                    match rest.peek() {
                        Some('-' | '<') => {
                            negative = true;
                            rest.next();
                        }
                        Some('+') => {
                            rest.next();
                        }
                        _ => {}
                    }
                }
                match rest.peek() {
                    Some(c) if c.is_ascii_digit() && mark != Mark::Point => {
                        shown.extend(rest.next())
                    }
                    Some('.') if t.point && !point => {
                        point = true;
                        shown.push('.');
                        rest.next();
                        if mark != Mark::Point {
                            shown.extend(rest.next_if(char::is_ascii_digit));
                        }
                    }
                    _ => {}
                }
            }
            Mark::Group => {
                rest.next_if_eq(&',');
            }
            Mark::Sign | Mark::Minus | Mark::Plus | Mark::SignPlace => match rest.peek() {
                Some('-') => {
                    negative = true;
                    rest.next();
                }
                Some('+') => {
                    rest.next();
                }
                Some(' ') if mark != Mark::Sign => {
                    rest.next();
                }
                _ => {}
            },
            Mark::Ordinal(_) => {
                for _ in 0..2 {
                    rest.next_if(char::is_ascii_alphabetic);
                }
            }
            Mark::Silent => {}
            Mark::Currency | Mark::Literal(_) => {
                // Any character stands for a decoration, what a number is written with aside.
                rest.next_if(|c| !"0123456789.,+-".contains(*c));
            }
        }
    }
    let sign = if negative { "-" } else { "" };
    let value: Numeric = format!("{sign}{shown}")
        .trim_end_matches('.')
        .parse()
        .map_err(|_| crate::io::invalid_syntax(throng_types::oid::NUMERIC, " "))?;
    let value = match t.shift {
        Some(shift) => {
            let shift = Numeric::from(-(shift as i64));
            value.mul(&Numeric::from(10i64).power(&shift)?)?
        }
        None => value,
    };
    Ok(value.into())
}
