//! Arithmetic operators of integers, floats and numerics.
//!
//! Integers of all widths share their functions: operands are widened, and the result is checked
//! against the width of its type.

pub(super) mod math;
pub mod random;

use super::{EvalContext, EvalResult, Operator};
use throng_types::error::state;
use throng_types::{Datum, Error, Numeric, oid::*};

#[cold]
pub fn division_by_zero() -> Error {
    Error::new(state::DIVISION_BY_ZERO, "division by zero")
}
#[cold]
pub fn smallint_out_of_range() -> Error {
    Error::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "smallint out of range")
}
#[cold]
pub fn integer_out_of_range() -> Error {
    Error::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range")
}
#[cold]
pub fn bigint_out_of_range() -> Error {
    Error::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range")
}
#[cold]
pub fn float_overflow() -> Error {
    Error::new(
        state::NUMERIC_VALUE_OUT_OF_RANGE,
        "value out of range: overflow",
    )
}
#[cold]
pub fn float_underflow() -> Error {
    Error::new(
        state::NUMERIC_VALUE_OUT_OF_RANGE,
        "value out of range: underflow",
    )
}

/// The argument as an integer, widened.
#[inline]
pub fn int(value: &Datum) -> i64 {
    match *value {
        Datum::Int4(v) => v.into(),
        Datum::Int8(v) => v,
        Datum::Int2(v) => v.into(),
        Datum::Oid(v) => v.into(),
        _ => unreachable!("not an integer: {value:?}"),
    }
}
/// The argument as a double, widened.
#[inline]
pub fn float(value: &Datum) -> f64 {
    match *value {
        Datum::Float8(v) => v,
        Datum::Float4(v) => v.into(),
        _ => unreachable!("not a float: {value:?}"),
    }
}
#[inline]
pub fn numeric(value: &Datum) -> &Numeric {
    match value {
        Datum::Numeric(v) => v,
        _ => unreachable!("not a numeric: {value:?}"),
    }
}

/// An integer result of a width, or that width's overflow error.
pub trait Width {
    fn fit(value: Option<i64>) -> EvalResult;
}
pub struct W2;
pub struct W4;
pub struct W8;
impl Width for W2 {
    #[inline]
    fn fit(value: Option<i64>) -> EvalResult {
        let narrow = value.and_then(|v| i16::try_from(v).ok());
        Ok(Datum::Int2(narrow.ok_or_else(smallint_out_of_range)?))
    }
}
impl Width for W4 {
    #[inline]
    fn fit(value: Option<i64>) -> EvalResult {
        let narrow = value.and_then(|v| i32::try_from(v).ok());
        Ok(Datum::Int4(narrow.ok_or_else(integer_out_of_range)?))
    }
}
impl Width for W8 {
    #[inline]
    fn fit(value: Option<i64>) -> EvalResult {
        Ok(Datum::Int8(value.ok_or_else(bigint_out_of_range)?))
    }
}

pub fn int_add<W: Width>(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    W::fit(int(&args[0]).checked_add(int(&args[1])))
}
pub fn int_sub<W: Width>(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    W::fit(int(&args[0]).checked_sub(int(&args[1])))
}
pub fn int_mul<W: Width>(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    W::fit(int(&args[0]).checked_mul(int(&args[1])))
}
pub fn int_div<W: Width>(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let divisor = int(&args[1]);
    if divisor == 0 {
        return Err(division_by_zero().into());
    }
    W::fit(int(&args[0]).checked_div(divisor))
}
pub fn int_rem<W: Width>(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let divisor = int(&args[1]);
    if divisor == 0 {
        return Err(division_by_zero().into());
    }
    W::fit(Some(int(&args[0]).wrapping_rem(divisor)))
}
pub fn int_neg<W: Width>(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    W::fit(int(&args[0]).checked_neg())
}
pub fn int_abs<W: Width>(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    W::fit(int(&args[0]).checked_abs())
}
fn int_and<W: Width>(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    W::fit(Some(int(&args[0]) & int(&args[1])))
}
fn int_or<W: Width>(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    W::fit(Some(int(&args[0]) | int(&args[1])))
}
fn int_xor<W: Width>(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    W::fit(Some(int(&args[0]) ^ int(&args[1])))
}
fn int_not<W: Width>(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    W::fit(Some(!int(&args[0])))
}
/// Shifts count modulo the width of the machine's word, and drop what leaves it.
fn int_shl(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let by = int(&args[1]) as u32;
    Ok(match args[0] {
        Datum::Int2(v) => Datum::Int2(i32::from(v).wrapping_shl(by) as i16),
        Datum::Int4(v) => Datum::Int4(v.wrapping_shl(by)),
        ref v => Datum::Int8(int(v).wrapping_shl(by)),
    })
}
fn int_shr(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let by = int(&args[1]) as u32;
    Ok(match args[0] {
        Datum::Int2(v) => Datum::Int2(i32::from(v).wrapping_shr(by) as i16),
        Datum::Int4(v) => Datum::Int4(v.wrapping_shr(by)),
        ref v => Datum::Int8(int(v).wrapping_shr(by)),
    })
}
/// Unary plus, of any type.
fn plus(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(args[0].clone())
}

/// A double result of operands: an infinity from finite ones is an error.
pub fn checked_float(result: f64, finite: bool) -> EvalResult {
    if result.is_infinite() && finite {
        Err(float_overflow().into())
    } else {
        Ok(result.into())
    }
}
/// The same; and a zero from what should not give one.
pub fn checked_product(result: f64, finite: bool, nonzero: bool) -> EvalResult {
    if result == 0.0 && nonzero {
        return Err(float_underflow().into());
    }
    checked_float(result, finite)
}

/// Two floats of one width give that width; doubles otherwise.
macro_rules! float_operator {
    ($name:ident, |$a:ident, $b:ident| $value:expr, $nonzero:expr) => {
        fn $name(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
            if let (&Datum::Float4($a), &Datum::Float4($b)) = (&args[0], &args[1]) {
                let value: f32 = $value;
                if value.is_infinite() && $a.is_finite() && $b.is_finite() {
                    return Err(float_overflow().into());
                }
                if value == 0.0 && $nonzero {
                    return Err(float_underflow().into());
                }
                return Ok(value.into());
            }
            let ($a, $b) = (float(&args[0]), float(&args[1]));
            checked_product($value, $a.is_finite() && $b.is_finite(), $nonzero)
        }
    };
}
float_operator!(float_add, |a, b| a + b, false);
float_operator!(float_sub, |a, b| a - b, false);
float_operator!(float_mul, |a, b| a * b, a != 0.0 && b != 0.0);
float_operator!(float_quotient, |a, b| a / b, a != 0.0 && b.is_finite());

fn float_div(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    if float(&args[1]) == 0.0 && !float(&args[0]).is_nan() {
        return Err(division_by_zero().into());
    }
    float_quotient(ctx, args)
}
fn float_neg(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(match args[0] {
        Datum::Float4(v) => Datum::Float4(-v),
        ref v => Datum::Float8(-float(v)),
    })
}
pub fn float_abs(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(match args[0] {
        Datum::Float4(v) => Datum::Float4(v.abs()),
        ref v => Datum::Float8(float(v).abs()),
    })
}

fn numeric_add(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(numeric(&args[0]).add(numeric(&args[1]))?.into())
}
fn numeric_sub(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(numeric(&args[0]).sub(numeric(&args[1]))?.into())
}
fn numeric_mul(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(numeric(&args[0]).mul(numeric(&args[1]))?.into())
}
fn numeric_div(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(numeric(&args[0]).div(numeric(&args[1]))?.into())
}
pub fn numeric_mod(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(numeric(&args[0]).rem(numeric(&args[1]))?.into())
}
pub fn numeric_power(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(numeric(&args[0]).power(numeric(&args[1]))?.into())
}
pub fn numeric_abs(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(numeric(&args[0]).abs().into())
}
fn numeric_uminus(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(numeric(&args[0]).neg().into())
}

/// One row an operator: oid, name, operand and result types, function's oid and name, what computes
/// it, commutator.
macro_rules! arithmetic {
    ($($oid:literal $name:literal $left:ident $right:ident $ret:ident $code:literal $code_name:ident $eval:expr, $commutator:literal;)*) => {
        pub static OPERATORS: &[Operator] = &[
            $(Operator::new($oid, $name, $left, $right, $ret, ($code, stringify!($code_name)), $eval)
                .related($commutator, 0),)*
        ];
    };
}
const NONE: throng_types::Oid = throng_types::Oid::NONE;

arithmetic! {
    1876 "#" INT2 INT2 INT2 1894 int2xor int_xor::<W2>, 1876;
    1882 "#" INT4 INT4 INT4 1900 int4xor int_xor::<W4>, 1882;
    1888 "#" INT8 INT8 INT8 1906 int8xor int_xor::<W8>, 1888;
    439 "%" INT8 INT8 INT8 945 int8mod int_rem::<W8>, 0;
    529 "%" INT2 INT2 INT2 155 int2mod int_rem::<W2>, 0;
    530 "%" INT4 INT4 INT4 156 int4mod int_rem::<W4>, 0;
    1762 "%" NUMERIC NUMERIC NUMERIC 1729 numeric_mod numeric_mod, 0;
    1874 "&" INT2 INT2 INT2 1892 int2and int_and::<W2>, 1874;
    1880 "&" INT4 INT4 INT4 1898 int4and int_and::<W4>, 1880;
    1886 "&" INT8 INT8 INT8 1904 int8and int_and::<W8>, 1886;
    514 "*" INT4 INT4 INT4 141 int4mul int_mul::<W4>, 514;
    526 "*" INT2 INT2 INT2 152 int2mul int_mul::<W2>, 526;
    544 "*" INT2 INT4 INT4 170 int24mul int_mul::<W4>, 545;
    545 "*" INT4 INT2 INT4 171 int42mul int_mul::<W4>, 544;
    589 "*" FLOAT4 FLOAT4 FLOAT4 202 float4mul float_mul, 589;
    594 "*" FLOAT8 FLOAT8 FLOAT8 216 float8mul float_mul, 594;
    686 "*" INT8 INT8 INT8 465 int8mul int_mul::<W8>, 686;
    690 "*" INT8 INT4 INT8 1276 int84mul int_mul::<W8>, 694;
    694 "*" INT4 INT8 INT8 1280 int48mul int_mul::<W8>, 690;
    820 "*" INT8 INT2 INT8 839 int82mul int_mul::<W8>, 824;
    824 "*" INT2 INT8 INT8 943 int28mul int_mul::<W8>, 820;
    1119 "*" FLOAT4 FLOAT8 FLOAT8 279 float48mul float_mul, 1129;
    1129 "*" FLOAT8 FLOAT4 FLOAT8 283 float84mul float_mul, 1119;
    1760 "*" NUMERIC NUMERIC NUMERIC 1726 numeric_mul numeric_mul, 1760;
    550 "+" INT2 INT2 INT2 176 int2pl int_add::<W2>, 550;
    551 "+" INT4 INT4 INT4 177 int4pl int_add::<W4>, 551;
    552 "+" INT2 INT4 INT4 178 int24pl int_add::<W4>, 553;
    553 "+" INT4 INT2 INT4 179 int42pl int_add::<W4>, 552;
    586 "+" FLOAT4 FLOAT4 FLOAT4 204 float4pl float_add, 586;
    591 "+" FLOAT8 FLOAT8 FLOAT8 218 float8pl float_add, 591;
    684 "+" INT8 INT8 INT8 463 int8pl int_add::<W8>, 684;
    688 "+" INT8 INT4 INT8 1274 int84pl int_add::<W8>, 692;
    692 "+" INT4 INT8 INT8 1278 int48pl int_add::<W8>, 688;
    818 "+" INT8 INT2 INT8 837 int82pl int_add::<W8>, 822;
    822 "+" INT2 INT8 INT8 841 int28pl int_add::<W8>, 818;
    1116 "+" FLOAT4 FLOAT8 FLOAT8 281 float48pl float_add, 1126;
    1126 "+" FLOAT8 FLOAT4 FLOAT8 285 float84pl float_add, 1116;
    1758 "+" NUMERIC NUMERIC NUMERIC 1724 numeric_add numeric_add, 1758;
    1916 "+" NONE INT8 INT8 1910 int8up plus, 0;
    1917 "+" NONE INT2 INT2 1911 int2up plus, 0;
    1918 "+" NONE INT4 INT4 1912 int4up plus, 0;
    1919 "+" NONE FLOAT4 FLOAT4 1913 float4up plus, 0;
    1920 "+" NONE FLOAT8 FLOAT8 1914 float8up plus, 0;
    1921 "+" NONE NUMERIC NUMERIC 1915 numeric_uplus plus, 0;
    484 "-" NONE INT8 INT8 462 int8um int_neg::<W8>, 0;
    554 "-" INT2 INT2 INT2 180 int2mi int_sub::<W2>, 0;
    555 "-" INT4 INT4 INT4 181 int4mi int_sub::<W4>, 0;
    556 "-" INT2 INT4 INT4 182 int24mi int_sub::<W4>, 0;
    557 "-" INT4 INT2 INT4 183 int42mi int_sub::<W4>, 0;
    558 "-" NONE INT4 INT4 212 int4um int_neg::<W4>, 0;
    559 "-" NONE INT2 INT2 213 int2um int_neg::<W2>, 0;
    584 "-" NONE FLOAT4 FLOAT4 206 float4um float_neg, 0;
    585 "-" NONE FLOAT8 FLOAT8 220 float8um float_neg, 0;
    587 "-" FLOAT4 FLOAT4 FLOAT4 205 float4mi float_sub, 0;
    592 "-" FLOAT8 FLOAT8 FLOAT8 219 float8mi float_sub, 0;
    685 "-" INT8 INT8 INT8 464 int8mi int_sub::<W8>, 0;
    689 "-" INT8 INT4 INT8 1275 int84mi int_sub::<W8>, 0;
    693 "-" INT4 INT8 INT8 1279 int48mi int_sub::<W8>, 0;
    819 "-" INT8 INT2 INT8 838 int82mi int_sub::<W8>, 0;
    823 "-" INT2 INT8 INT8 942 int28mi int_sub::<W8>, 0;
    1117 "-" FLOAT4 FLOAT8 FLOAT8 282 float48mi float_sub, 0;
    1127 "-" FLOAT8 FLOAT4 FLOAT8 286 float84mi float_sub, 0;
    1751 "-" NONE NUMERIC NUMERIC 1771 numeric_uminus numeric_uminus, 0;
    1759 "-" NUMERIC NUMERIC NUMERIC 1725 numeric_sub numeric_sub, 0;
    527 "/" INT2 INT2 INT2 153 int2div int_div::<W2>, 0;
    528 "/" INT4 INT4 INT4 154 int4div int_div::<W4>, 0;
    546 "/" INT2 INT4 INT4 172 int24div int_div::<W4>, 0;
    547 "/" INT4 INT2 INT4 173 int42div int_div::<W4>, 0;
    588 "/" FLOAT4 FLOAT4 FLOAT4 203 float4div float_div, 0;
    593 "/" FLOAT8 FLOAT8 FLOAT8 217 float8div float_div, 0;
    687 "/" INT8 INT8 INT8 466 int8div int_div::<W8>, 0;
    691 "/" INT8 INT4 INT8 1277 int84div int_div::<W8>, 0;
    695 "/" INT4 INT8 INT8 1281 int48div int_div::<W8>, 0;
    821 "/" INT8 INT2 INT8 840 int82div int_div::<W8>, 0;
    825 "/" INT2 INT8 INT8 948 int28div int_div::<W8>, 0;
    1118 "/" FLOAT4 FLOAT8 FLOAT8 280 float48div float_div, 0;
    1128 "/" FLOAT8 FLOAT4 FLOAT8 284 float84div float_div, 0;
    1761 "/" NUMERIC NUMERIC NUMERIC 1727 numeric_div numeric_div, 0;
    1878 "<<" INT2 INT4 INT2 1896 int2shl int_shl, 0;
    1884 "<<" INT4 INT4 INT4 1902 int4shl int_shl, 0;
    1890 "<<" INT8 INT4 INT8 1908 int8shl int_shl, 0;
    1879 ">>" INT2 INT4 INT2 1897 int2shr int_shr, 0;
    1885 ">>" INT4 INT4 INT4 1903 int4shr int_shr, 0;
    1891 ">>" INT8 INT4 INT8 1909 int8shr int_shr, 0;
    473 "@" NONE INT8 INT8 1230 int8abs int_abs::<W8>, 0;
    590 "@" NONE FLOAT4 FLOAT4 207 float4abs float_abs, 0;
    595 "@" NONE FLOAT8 FLOAT8 221 float8abs float_abs, 0;
    682 "@" NONE INT2 INT2 1253 int2abs int_abs::<W2>, 0;
    773 "@" NONE INT4 INT4 1251 int4abs int_abs::<W4>, 0;
    1763 "@" NONE NUMERIC NUMERIC 1704 numeric_abs numeric_abs, 0;
    965 "^" FLOAT8 FLOAT8 FLOAT8 232 dpow math::dpow, 0;
    1038 "^" NUMERIC NUMERIC NUMERIC 1739 numeric_power numeric_power, 0;
    1875 "|" INT2 INT2 INT2 1893 int2or int_or::<W2>, 1875;
    1881 "|" INT4 INT4 INT4 1899 int4or int_or::<W4>, 1881;
    1887 "|" INT8 INT8 INT8 1905 int8or int_or::<W8>, 1887;
    596 "|/" NONE FLOAT8 FLOAT8 230 dsqrt math::dsqrt, 0;
    597 "||/" NONE FLOAT8 FLOAT8 231 dcbrt math::dcbrt, 0;
    1877 "~" NONE INT2 INT2 1895 int2not int_not::<W2>, 0;
    1883 "~" NONE INT4 INT4 1901 int4not int_not::<W4>, 0;
    1889 "~" NONE INT8 INT8 1907 int8not int_not::<W8>, 0;
}
