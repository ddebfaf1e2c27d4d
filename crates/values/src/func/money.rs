//! Functions and operators of `money`.

use crate::func::cast::conversion::numeric_int8;
use crate::func::number::{bigint_out_of_range, division_by_zero, float, int, numeric};
use crate::func::table::{casts, functions, operators};
use crate::func::{Cast, CastContext, EvalContext, EvalResult, Function, Operator};
use crate::io::money::{datum, hundredths};
use throng_types::error::state;
use throng_types::{Datum, Error, Numeric, Result, oid::*};

#[cold]
fn out_of_range() -> Error {
    Error::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "money out of range")
}

fn amount(value: Option<i64>) -> EvalResult {
    Ok(datum(value.ok_or_else(out_of_range)?))
}

fn cash_pl(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(sum(&args[0], &args[1])?)
}
fn cash_mi(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    amount(hundredths(&args[0]).checked_sub(hundredths(&args[1])))
}
fn cash_mul_int(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    amount(hundredths(&args[0]).checked_mul(int(&args[1])))
}
fn int_mul_cash(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    amount(hundredths(&args[1]).checked_mul(int(&args[0])))
}
/// What is left over is dropped.
fn cash_div_int(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    match int(&args[1]) {
        0 => Err(division_by_zero().into()),
        divisor => amount(hundredths(&args[0]).checked_div(divisor)),
    }
}

/// To the nearest hundredth, halves to even.
fn rounded(value: f64) -> EvalResult {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    let value = value.round_ties_even();
    match (-LIMIT..LIMIT).contains(&value) {
        true => Ok(datum(value as i64)),
        false => Err(out_of_range().into()),
    }
}
fn cash_mul_float(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    rounded(hundredths(&args[0]) as f64 * float(&args[1]))
}
fn float_mul_cash(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    rounded(float(&args[0]) * hundredths(&args[1]) as f64)
}
fn cash_div_float(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    match float(&args[1]) {
        0.0 => Err(division_by_zero().into()),
        divisor => rounded(hundredths(&args[0]) as f64 / divisor),
    }
}
fn cash_div_cash(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    match hundredths(&args[1]) {
        0 => Err(division_by_zero().into()),
        divisor => Ok((hundredths(&args[0]) as f64 / divisor as f64).into()),
    }
}

pub(super) fn sum(a: &Datum, b: &Datum) -> Result<Datum> {
    let sum = hundredths(a).checked_add(hundredths(b));
    sum.map(datum).ok_or_else(out_of_range)
}

fn cash_numeric(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Numeric::from_i128(hundredths(&args[0]).into(), 2).into())
}
fn numeric_cash(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let value = numeric(&args[0]).mul(&Numeric::from(100i128))?;
    Ok(datum(int(&numeric_int8(ctx, &[value.into()])?)))
}
fn int_cash(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let value = int(&args[0]).checked_mul(100);
    Ok(datum(value.ok_or_else(bigint_out_of_range)?))
}

const SMALL: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 10] = [
    "", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
];

/// A number below 1,000 in words.
fn words(number: usize) -> String {
    let (hundreds, rest) = (number / 100, number % 100);
    let below = match (rest / 10, rest % 10) {
        (0 | 1, _) => SMALL[rest].to_owned(),
        (tens, 0) => TENS[tens].to_owned(),
        (tens, ones) => format!("{} {}", TENS[tens], SMALL[ones]),
    };
    match (hundreds, rest) {
        (0, _) => below,
        (_, 0) => format!("{} hundred", SMALL[hundreds]),
        (_, 1..20) => format!("{} hundred and {below}", SMALL[hundreds]),
        _ => format!("{} hundred {below}", SMALL[hundreds]),
    }
}

fn cash_words(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    const STEPS: [(u64, &str); 6] = [
        (1_000_000_000_000_000, "quadrillion "),
        (1_000_000_000_000, "trillion "),
        (1_000_000_000, "billion "),
        (1_000_000, "million "),
        (1_000, "thousand "),
        (1, ""),
    ];
    let value = hundredths(&args[0]);
    let (dollars, cents) = (value.unsigned_abs() / 100, value.unsigned_abs() % 100);
    let mut text = String::from(if value < 0 { "minus " } else { "" });
    for (step, name) in STEPS {
        let number = dollars / step % 1000;
        if number > 0 {
            text += &words(number as usize);
            text += if step > 1 { " " } else { "" };
            text += name;
        }
    }
    if dollars == 0 {
        text += "zero";
    }
    text += if dollars == 1 {
        " dollar and "
    } else {
        " dollars and "
    };
    text += &words(cents as usize);
    text += if cents == 1 { " cent" } else { " cents" };
    text[..1].make_ascii_uppercase();
    Ok(text.into())
}

functions! {
    935 "cash_words" (MONEY) TEXT cash_words;
    3811 "money" (INT4) MONEY int_cash, stable;
    3812 "money" (INT8) MONEY int_cash, stable;
    3823 "numeric" (MONEY) NUMERIC cash_numeric, stable;
    3824 "money" (NUMERIC) MONEY numeric_cash, stable;
}

operators! {
    843 "*" MONEY FLOAT4 MONEY 846 "cash_mul_flt4" cash_mul_float 845 0;
    844 "/" MONEY FLOAT4 MONEY 847 "cash_div_flt4" cash_div_float 0 0;
    845 "*" FLOAT4 MONEY MONEY 848 "flt4_mul_cash" float_mul_cash 843 0;
    906 "+" MONEY MONEY MONEY 894 "cash_pl" cash_pl 906 0;
    907 "-" MONEY MONEY MONEY 895 "cash_mi" cash_mi 0 0;
    908 "*" MONEY FLOAT8 MONEY 896 "cash_mul_flt8" cash_mul_float 916 0;
    909 "/" MONEY FLOAT8 MONEY 897 "cash_div_flt8" cash_div_float 0 0;
    912 "*" MONEY INT4 MONEY 864 "cash_mul_int4" cash_mul_int 917 0;
    913 "/" MONEY INT4 MONEY 865 "cash_div_int4" cash_div_int 0 0;
    914 "*" MONEY INT2 MONEY 866 "cash_mul_int2" cash_mul_int 918 0;
    915 "/" MONEY INT2 MONEY 867 "cash_div_int2" cash_div_int 0 0;
    916 "*" FLOAT8 MONEY MONEY 919 "flt8_mul_cash" float_mul_cash 908 0;
    917 "*" INT4 MONEY MONEY 862 "int4_mul_cash" int_mul_cash 912 0;
    918 "*" INT2 MONEY MONEY 863 "int2_mul_cash" int_mul_cash 914 0;
    3346 "*" MONEY INT8 MONEY 3344 "cash_mul_int8" cash_mul_int 3349 0;
    3347 "/" MONEY INT8 MONEY 3345 "cash_div_int8" cash_div_int 0 0;
    3349 "*" INT8 MONEY MONEY 3399 "int8_mul_cash" int_mul_cash 3346 0;
    3825 "/" MONEY MONEY FLOAT8 3822 "cash_div_cash" cash_div_cash 0 0;
}

casts! {
    MONEY NUMERIC assignment 3823 cash_numeric;
    NUMERIC MONEY assignment 3824 numeric_cash;
    INT4 MONEY assignment 3811 int_cash;
    INT8 MONEY assignment 3812 int_cash;
}
