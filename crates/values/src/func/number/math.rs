//! Mathematical functions.

use crate::func::number::{
    W2, W4, W8, bigint_out_of_range, checked_float, checked_product, float, float_abs,
    float_overflow, float_underflow, int, int_abs, int_rem, integer_out_of_range, numeric,
    numeric_abs, numeric_mod, numeric_power,
};
use crate::func::{EvalContext, EvalResult, Function};
use std::cmp::Ordering;
use throng_types::error::state;
use throng_types::{Datum, Error, Numeric, oid::*};

#[cold]
fn out_of_input_range() -> Error {
    Error::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "input is out of range")
}
#[cold]
fn power_error(message: &str) -> Error {
    Error::new(state::INVALID_ARGUMENT_FOR_POWER, message)
}
#[cold]
fn log_error(zero: bool) -> Error {
    let what = if zero { "zero" } else { "a negative number" };
    Error::new(
        state::INVALID_ARGUMENT_FOR_LOG,
        format!("cannot take logarithm of {what}"),
    )
}

/// Beyond this a double's square has no room for one more.
const LARGE: f64 = 1e9;

/// Functions of one double that cannot fail.
macro_rules! plain {
    ($($name:ident |$x:ident| $value:expr;)*) => { $(
        fn $name(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
            let $x = float(&args[0]);
            Ok(Datum::Float8($value))
        }
    )* };
}
plain! {
    dceil |x| x.ceil();
    dfloor |x| x.floor();
    dround |x| x.round_ties_even();
    dtrunc |x| x.trunc();
    dsign |x| if x > 0.0 { 1.0 } else if x < 0.0 { -1.0 } else { 0.0 };
    datan |x| x.atan();
    dtanh |x| x.tanh();
    dsinh |x| x.sinh();
    dcosh |x| x.cosh();
    dasinh |x| if x.abs() > LARGE { (x.abs().ln() + std::f64::consts::LN_2).copysign(x) } else { x.asinh() };
}

/// Functions of one double with a domain: outside of it `input is out of range`.
macro_rules! limited {
    ($($name:ident |$x:ident| $allowed:expr, $value:expr;)*) => { $(
        fn $name(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
            let $x = float(&args[0]);
            if $x.is_nan() {
                return Ok(Datum::Float8(f64::NAN));
            }
            let allowed: bool = $allowed;
            if !allowed {
                return Err(out_of_input_range().into());
            }
            checked_float($value, $x.is_finite())
        }
    )* };
}
limited! {
    dsin |x| x.is_finite(), x.sin();
    dcos |x| x.is_finite(), x.cos();
    dtan |x| x.is_finite(), x.tan();
    dasin |x| (-1.0..=1.0).contains(&x), x.asin();
    dacos |x| (-1.0..=1.0).contains(&x), x.acos();
    dacosh |x| x >= 1.0, if x > LARGE { x.ln() + std::f64::consts::LN_2 } else { x.acosh() };
    dsind |x| x.is_finite(), sind(x);
    dcosd |x| x.is_finite(), sind(90.0 - x.rem_euclid(360.0)) + 0.0;
    dasind |x| (-1.0..=1.0).contains(&x), asind(x.abs()).copysign(x);
    dacosd |x| (-1.0..=1.0).contains(&x), if x >= 0.0 { acosd(x) } else { 90.0 + asind(-x) };
    degrees |x| true, x / (std::f64::consts::PI / 180.0);
}

/// Exact at the angles where the sine is 0, ½ or 1.
fn sind(degrees: f64) -> f64 {
    let mut x = degrees % 360.0;
    let mut sign = 1.0;
    if x < 0.0 {
        x = -x;
        sign = -sign;
    }
    if x > 180.0 {
        x -= 180.0;
        sign = -sign;
    }
    if x > 90.0 {
        x = 180.0 - x;
    }
    let quarter = if x <= 30.0 {
        // Scaled so that 30 degrees give one half.
        x.to_radians().sin() / 30f64.to_radians().sin() / 2.0
    } else {
        let y = 90.0 - x;
        if y == 0.0 {
            1.0
        } else {
            1.0 - (1.0 - y.to_radians().cos()) / (1.0 - 60f64.to_radians().cos()) / 2.0
        }
    };
    sign * quarter
}

/// Inverse functions on 0 to 1, scaled so that one half gives its angle exactly.
fn asind(x: f64) -> f64 {
    if x <= 0.5 {
        x.asin() / 0.5f64.asin() * 30.0
    } else {
        90.0 - x.acos() / 0.5f64.acos() * 60.0
    }
}
fn acosd(x: f64) -> f64 {
    if x <= 0.5 {
        90.0 - x.asin() / 0.5f64.asin() * 30.0
    } else {
        x.acos() / 0.5f64.acos() * 60.0
    }
}

fn radians(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let x = float(&args[0]);
    checked_product(x * (std::f64::consts::PI / 180.0), x.is_finite(), x != 0.0)
}
fn datan2(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(float(&args[0]).atan2(float(&args[1])).into())
}
fn dcot(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let x = float(&args[0]);
    if x.is_infinite() {
        return Err(out_of_input_range().into());
    }
    Ok((1.0 / x.tan()).into())
}
fn dtand(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let x = float(&args[0]);
    if x.is_infinite() {
        return Err(out_of_input_range().into());
    }
    let (x, sign) = first_quadrant(x);
    let value = sign * (sind(x) / sind(90.0 - x));
    // No minus before a zero.
    Ok(if value == 0.0 { 0.0 } else { value }.into())
}

/// The angle between 0 and 90 degrees that has the same tangent and cotangent but for the sign,
/// and the sign.
fn first_quadrant(degrees: f64) -> (f64, f64) {
    let mut x = degrees % 360.0;
    let mut sign = 1.0;
    if x < 0.0 {
        x = -x;
        sign = -sign;
    }
    if x > 180.0 {
        x = 360.0 - x;
        sign = -sign;
    }
    if x > 90.0 {
        x = 180.0 - x;
        sign = -sign;
    }
    (x, sign)
}

fn datand(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok((float(&args[0]).atan() / std::f64::consts::FRAC_PI_4 * 45.0).into())
}
fn datan2d(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let angle = float(&args[0]).atan2(float(&args[1]));
    Ok((angle / std::f64::consts::FRAC_PI_4 * 45.0).into())
}
fn dcotd(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let x = float(&args[0]);
    if x.is_infinite() {
        return Err(out_of_input_range().into());
    }
    let (x, sign) = first_quadrant(x);
    let of_half = sind(90.0 - 45.0) / sind(45.0);
    let value = sign * (sind(90.0 - x) / sind(x) / of_half);
    // No minus before a zero.
    Ok(if value == 0.0 { 0.0 } else { value }.into())
}
fn derf(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(libm::erf(float(&args[0])).into())
}
fn derfc(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(libm::erfc(float(&args[0])).into())
}
/// Out of range at the poles too, and where it comes too close to zero.
fn dgamma(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let x = float(&args[0]);
    if x.is_nan() || x == f64::INFINITY {
        return Ok(x.into());
    }
    let value = libm::tgamma(x);
    if !value.is_finite() {
        return Err(float_overflow().into());
    }
    checked_product(value, true, true)
}
fn dlgamma(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let x = float(&args[0]);
    checked_float(libm::lgamma(x), x.is_finite())
}
fn datanh(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let x = float(&args[0]);
    if !(-1.0..=1.0).contains(&x) && !x.is_nan() {
        return Err(out_of_input_range().into());
    }
    Ok(x.atanh().into())
}

pub fn dsqrt(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let x = float(&args[0]);
    if x < 0.0 {
        return Err(power_error("cannot take square root of a negative number").into());
    }
    Ok(x.sqrt().into())
}
pub fn dcbrt(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(float(&args[0]).cbrt().into())
}
fn dexp(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let x = float(&args[0]);
    checked_product(x.exp(), x.is_finite(), x.is_finite())
}
fn logarithm(x: f64, log: fn(f64) -> f64) -> EvalResult {
    if x <= 0.0 {
        return Err(log_error(x == 0.0).into());
    }
    Ok(log(x).into())
}
fn dlog1(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    logarithm(float(&args[0]), f64::ln)
}
fn dlog10(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    logarithm(float(&args[0]), f64::log10)
}
fn dpi(_: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(std::f64::consts::PI.into())
}

pub fn dpow(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (x, y) = (float(&args[0]), float(&args[1]));
    // 1 to anything and anything to 0 are 1, NaN included.
    if x == 1.0 || y == 0.0 {
        return Ok(1.0.into());
    }
    if x.is_nan() || y.is_nan() {
        return Ok(f64::NAN.into());
    }
    if x == 0.0 && y < 0.0 {
        return Err(power_error("zero raised to a negative power is undefined").into());
    }
    if x < 0.0 && y.is_finite() && y.fract() != 0.0 {
        return Err(power_error(
            "a negative number raised to a non-integer power yields a complex result",
        )
        .into());
    }
    let value = x.powf(y);
    if x.is_finite() && y.is_finite() {
        if value.is_infinite() {
            return Err(float_overflow().into());
        }
        if value == 0.0 && x != 0.0 {
            return Err(float_underflow().into());
        }
    }
    Ok(value.into())
}

fn gcd(a: i64, b: i64) -> u64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
fn int4gcd(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let value = gcd(int(&args[0]), int(&args[1]));
    Ok(i32::try_from(value)
        .map_err(|_| integer_out_of_range())?
        .into())
}
fn int8gcd(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let value = gcd(int(&args[0]), int(&args[1]));
    Ok(i64::try_from(value)
        .map_err(|_| bigint_out_of_range())?
        .into())
}
fn lcm(a: i64, b: i64) -> Option<i64> {
    if a == 0 || b == 0 {
        return Some(0);
    }
    let whole = (a.unsigned_abs() / gcd(a, b)).checked_mul(b.unsigned_abs());
    whole.and_then(|v| i64::try_from(v).ok())
}
fn int4lcm(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let value = lcm(int(&args[0]), int(&args[1])).and_then(|v| i32::try_from(v).ok());
    Ok(value.ok_or_else(integer_out_of_range)?.into())
}
fn int8lcm(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(lcm(int(&args[0]), int(&args[1]))
        .ok_or_else(bigint_out_of_range)?
        .into())
}

/// Functions of numerics.
macro_rules! numerics {
    ($($name:ident |$($x:ident),+| $value:expr;)*) => { $(
        fn $name(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
            let [$($x),+] = args else { unreachable!("arity is checked by resolution") };
            $(let $x = numeric($x);)+
            Ok(Datum::from($value))
        }
    )* };
}
numerics! {
    numeric_ceil |x| x.ceil();
    numeric_floor |x| x.floor();
    numeric_round0 |x| x.round(0);
    numeric_trunc0 |x| x.trunc(0);
    numeric_sign |x| x.sign();
    numeric_sqrt |x| x.sqrt()?;
    numeric_exp |x| x.exp()?;
    numeric_ln |x| x.ln()?;
    numeric_log10 |x| x.log(&Numeric::new(10, 0))?;
    numeric_log |base, x| x.log(base)?;
    numeric_div_trunc |a, b| a.div_trunc(b)?;
    numeric_gcd |a, b| a.gcd(b)?;
    numeric_lcm |a, b| a.lcm(b)?;
    numeric_trim_scale |x| x.trim_scale();
    numeric_scale |x| x.is_finite().then(|| x.scale());
    numeric_min_scale |x| x.is_finite().then(|| x.min_scale());
}
fn numeric_round(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let value = numeric(&args[0]);
    let rounded = value.round(int(&args[1]) as i32);
    if value.is_finite() && !rounded.is_finite() {
        let message = "value overflows numeric format";
        return Err(Error::new(state::NUMERIC_VALUE_OUT_OF_RANGE, message).into());
    }
    Ok(rounded.into())
}
fn numeric_trunc(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(numeric(&args[0]).trunc(int(&args[1]) as i32).into())
}
fn numeric_fac(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Numeric::factorial(int(&args[0]))?.into())
}

#[cold]
fn bucket_error(message: &str) -> Error {
    Error::new(throng_types::SqlState::new("2201G"), message)
}
/// The bucket of an operand between two bounds, by its share of the way; the shares are exact in
/// `numeric`.
fn bucket(
    count: i64,
    order: Ordering,
    below: bool,
    above: bool,
    inside: impl FnOnce() -> Result<i64, Error>,
) -> EvalResult {
    if count <= 0 {
        return Err(bucket_error("count must be greater than zero").into());
    }
    let number = match order {
        Ordering::Equal => return Err(bucket_error("lower bound cannot equal upper bound").into()),
        _ if below => 0,
        _ if above => count + 1,
        _ => inside()?,
    };
    Ok(i32::try_from(number)
        .map_err(|_| integer_out_of_range())?
        .into())
}
pub(in crate::func) fn width_bucket_float8(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (x, low, high) = (float(&args[0]), float(&args[1]), float(&args[2]));
    if x.is_nan() || low.is_nan() || high.is_nan() {
        return Err(bucket_error("operand, lower bound, and upper bound cannot be NaN").into());
    }
    if low.is_infinite() || high.is_infinite() {
        return Err(bucket_error("lower and upper bounds must be finite").into());
    }
    let count = int(&args[3]);
    let rising = low < high;
    let (below, above) = if rising {
        (x < low, x >= high)
    } else {
        (x > low, x <= high)
    };
    bucket(
        count,
        low.partial_cmp(&high).unwrap_or(Ordering::Equal),
        below,
        above,
        || {
            let width = high - low;
            let share = match width.is_finite() {
                true => (x - low) / width,
                false => (x / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0),
            };
            Ok(((count as f64 * share) as i64 + 1).min(count))
        },
    )
}
fn width_bucket_numeric(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (x, low, high) = (numeric(&args[0]), numeric(&args[1]), numeric(&args[2]));
    if x.is_nan() || low.is_nan() || high.is_nan() {
        return Err(bucket_error("operand, lower bound, and upper bound cannot be NaN").into());
    }
    if low.is_infinite() || high.is_infinite() {
        return Err(bucket_error("lower and upper bounds must be finite").into());
    }
    let count = int(&args[3]);
    let order = low.compare(high);
    let (to_low, to_high) = (x.compare(low), x.compare(high));
    let (below, above) = if order.is_lt() {
        (to_low.is_lt(), to_high.is_ge())
    } else {
        (to_low.is_gt(), to_high.is_le())
    };
    bucket(count, order, below, above, || {
        let share = x.sub(low)?.mul(&Numeric::new(count, 0))?;
        Ok(share.div_trunc(&high.sub(low)?)?.to_i64().unwrap_or(count) + 1)
    })
}

/// One row a function: oid, name, arguments, result, what computes it.
macro_rules! functions {
    ($($oid:literal $name:ident($($arg:ident),*) $ret:ident $eval:expr $(, $change:ident)?;)*) => {
        pub static FUNCTIONS: &[Function] = &[
            $(Function::new($oid, stringify!($name), &[$($arg),*], $ret, $eval)$(.$change())?,)*
        ];
    };
}

functions! {
    1394 abs(FLOAT4) FLOAT4 float_abs;
    1395 abs(FLOAT8) FLOAT8 float_abs;
    1396 abs(INT8) INT8 int_abs::<W8>;
    1397 abs(INT4) INT4 int_abs::<W4>;
    1398 abs(INT2) INT2 int_abs::<W2>;
    1705 abs(NUMERIC) NUMERIC numeric_abs;
    1601 acos(FLOAT8) FLOAT8 dacos;
    2732 acosd(FLOAT8) FLOAT8 dacosd;
    2466 acosh(FLOAT8) FLOAT8 dacosh;
    1600 asin(FLOAT8) FLOAT8 dasin;
    2731 asind(FLOAT8) FLOAT8 dasind;
    2465 asinh(FLOAT8) FLOAT8 dasinh;
    1602 atan(FLOAT8) FLOAT8 datan;
    1603 atan2(FLOAT8, FLOAT8) FLOAT8 datan2;
    2733 atand(FLOAT8) FLOAT8 datand;
    2734 atan2d(FLOAT8, FLOAT8) FLOAT8 datan2d;
    2467 atanh(FLOAT8) FLOAT8 datanh;
    1345 cbrt(FLOAT8) FLOAT8 dcbrt;
    1711 ceil(NUMERIC) NUMERIC numeric_ceil;
    2308 ceil(FLOAT8) FLOAT8 dceil;
    2167 ceiling(NUMERIC) NUMERIC numeric_ceil;
    2320 ceiling(FLOAT8) FLOAT8 dceil;
    1605 cos(FLOAT8) FLOAT8 dcos;
    2736 cosd(FLOAT8) FLOAT8 dcosd;
    2463 cosh(FLOAT8) FLOAT8 dcosh;
    1607 cot(FLOAT8) FLOAT8 dcot;
    2738 cotd(FLOAT8) FLOAT8 dcotd;
    1608 degrees(FLOAT8) FLOAT8 degrees;
    1973 div(NUMERIC, NUMERIC) NUMERIC numeric_div_trunc;
    6219 erf(FLOAT8) FLOAT8 derf;
    6220 erfc(FLOAT8) FLOAT8 derfc;
    6383 gamma(FLOAT8) FLOAT8 dgamma;
    6384 lgamma(FLOAT8) FLOAT8 dlgamma;
    1347 exp(FLOAT8) FLOAT8 dexp;
    1732 exp(NUMERIC) NUMERIC numeric_exp;
    233 dexp(FLOAT8) FLOAT8 dexp;
    234 dlog1(FLOAT8) FLOAT8 dlog1;
    1339 dlog10(FLOAT8) FLOAT8 dlog10;
    228 dround(FLOAT8) FLOAT8 dround;
    229 dtrunc(FLOAT8) FLOAT8 dtrunc;
    1980 numeric_div_trunc(NUMERIC, NUMERIC) NUMERIC numeric_div_trunc;
    1733 numeric_exp(NUMERIC) NUMERIC numeric_exp;
    1735 numeric_ln(NUMERIC) NUMERIC numeric_ln;
    1737 numeric_log(NUMERIC, NUMERIC) NUMERIC numeric_log;
    1731 numeric_sqrt(NUMERIC) NUMERIC numeric_sqrt;
    1376 factorial(INT8) NUMERIC numeric_fac;
    1712 floor(NUMERIC) NUMERIC numeric_floor;
    2309 floor(FLOAT8) FLOAT8 dfloor;
    5044 gcd(INT4, INT4) INT4 int4gcd;
    5045 gcd(INT8, INT8) INT8 int8gcd;
    5048 gcd(NUMERIC, NUMERIC) NUMERIC numeric_gcd;
    5046 lcm(INT4, INT4) INT4 int4lcm;
    5047 lcm(INT8, INT8) INT8 int8lcm;
    5049 lcm(NUMERIC, NUMERIC) NUMERIC numeric_lcm;
    1341 ln(FLOAT8) FLOAT8 dlog1;
    1734 ln(NUMERIC) NUMERIC numeric_ln;
    1340 log(FLOAT8) FLOAT8 dlog10;
    1736 log(NUMERIC, NUMERIC) NUMERIC numeric_log;
    1741 log(NUMERIC) NUMERIC numeric_log10;
    1194 log10(FLOAT8) FLOAT8 dlog10;
    1481 log10(NUMERIC) NUMERIC numeric_log10;
    5042 min_scale(NUMERIC) INT4 numeric_min_scale;
    940 mod(INT2, INT2) INT2 int_rem::<W2>;
    941 mod(INT4, INT4) INT4 int_rem::<W4>;
    947 mod(INT8, INT8) INT8 int_rem::<W8>;
    1728 mod(NUMERIC, NUMERIC) NUMERIC numeric_mod;
    1610 pi() FLOAT8 dpi;
    1346 pow(FLOAT8, FLOAT8) FLOAT8 dpow;
    1738 pow(NUMERIC, NUMERIC) NUMERIC numeric_power;
    1368 power(FLOAT8, FLOAT8) FLOAT8 dpow;
    2169 power(NUMERIC, NUMERIC) NUMERIC numeric_power;
    1609 radians(FLOAT8) FLOAT8 radians;
    1342 round(FLOAT8) FLOAT8 dround;
    1707 round(NUMERIC, INT4) NUMERIC numeric_round;
    1708 round(NUMERIC) NUMERIC numeric_round0;
    3281 scale(NUMERIC) INT4 numeric_scale;
    1706 sign(NUMERIC) NUMERIC numeric_sign;
    2310 sign(FLOAT8) FLOAT8 dsign;
    1604 sin(FLOAT8) FLOAT8 dsin;
    2735 sind(FLOAT8) FLOAT8 dsind;
    2462 sinh(FLOAT8) FLOAT8 dsinh;
    1344 sqrt(FLOAT8) FLOAT8 dsqrt;
    1730 sqrt(NUMERIC) NUMERIC numeric_sqrt;
    1606 tan(FLOAT8) FLOAT8 dtan;
    2737 tand(FLOAT8) FLOAT8 dtand;
    2464 tanh(FLOAT8) FLOAT8 dtanh;
    5043 trim_scale(NUMERIC) NUMERIC numeric_trim_scale;
    1343 trunc(FLOAT8) FLOAT8 dtrunc;
    1709 trunc(NUMERIC, INT4) NUMERIC numeric_trunc;
    1710 trunc(NUMERIC) NUMERIC numeric_trunc0;
    320 width_bucket(FLOAT8, FLOAT8, FLOAT8, INT4) INT4 width_bucket_float8;
    2170 width_bucket(NUMERIC, NUMERIC, NUMERIC, INT4) INT4 width_bucket_numeric;
}
