//! Random numbers, PostgreSQL's own for those that `setseed` has begun.
//!
//! The generator is xoroshiro128**, seeded by SplitMix64: Blackman and Vigna, "Scrambled linear
//! pseudorandom number generators" (2018), and Steele, Lea and Flood, "Fast splittable pseudorandom
//! number generators" (2014).

use throng_types::error::state;
use throng_types::numeric::{Groups, WireSign};
use throng_types::{Datum, Error, Numeric, interrupt, oid::*};

use crate::eval::EvalHost;
use crate::func::number::{float, int, numeric};
use crate::func::{EvalContext, EvalResult, Function};

/// A session's generator.
#[derive(Clone, Copy, Debug)]
pub struct Random(u64, u64);

impl Random {
    /// From a number between -1 and 1.
    pub fn seeded(seed: f64) -> Random {
        const LARGEST: f64 = ((1u64 << 52) - 1) as f64;
        let mut sum = (LARGEST * seed) as i64 as u64;
        let mut split = || {
            sum = sum.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (sum ^ (sum >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        };
        Random(split(), split())
    }

    /// Which none else knows.
    pub fn unknown() -> Random {
        // All zeros would give nothing else.
        Random(rand::random(), rand::random::<u64>() | 1)
    }

    pub fn bits(&mut self) -> u64 {
        let Random(first, second) = *self;
        let mixed = first ^ second;
        *self = Random(
            first.rotate_left(24) ^ mixed ^ (mixed << 16),
            mixed.rotate_left(37),
        );
        first.wrapping_mul(5).rotate_left(7).wrapping_mul(9)
    }
}

/// At least 0 and less than 1.
fn share(host: &dyn EvalHost) -> f64 {
    (host.random_bits() >> 12) as f64 / (1u64 << 52) as f64
}

/// A number up to `most`, each as likely; `bits` gives 64 random ones.
fn up_to(most: u64, bits: &mut dyn FnMut() -> u64) -> u64 {
    if most == 0 {
        return 0;
    }
    loop {
        let number = bits() >> most.leading_zeros();
        if number <= most {
            return number;
        }
    }
}

#[cold]
fn wrong_bounds() -> Error {
    Error::new(
        state::INVALID_PARAMETER_VALUE,
        "lower bound must be less than or equal to upper bound",
    )
}

fn between(ctx: &EvalContext<'_>, args: &[Datum]) -> Result<i64, Error> {
    let (low, high) = (int(&args[0]), int(&args[1]));
    match low <= high {
        false => Err(wrong_bounds()),
        true => {
            let above = up_to(high.wrapping_sub(low) as u64, &mut || {
                ctx.host.random_bits()
            });
            Ok(low.wrapping_add(above as i64))
        }
    }
}

fn drandom(ctx: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(share(ctx.host).into())
}
fn int4random(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::Int4(between(ctx, args)? as i32))
}
fn int8random(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(between(ctx, args)?.into())
}

fn finite<'a>(bound: &'a Datum, which: &str) -> Result<&'a Numeric, Error> {
    let value = numeric(bound);
    let what = match value {
        value if value.is_nan() => "NaN",
        value if value.is_infinite() => "infinity",
        _ => return Ok(value),
    };
    let message = format!("{which} bound cannot be {what}");
    Err(Error::new(state::INVALID_PARAMETER_VALUE, message))
}

/// A number of as many decimals as the bounds have.
///
/// It is made of groups of four digits as the bounds' distance has them: the first four at once,
/// the others after them, until what comes is not above the distance.
fn numeric_between(
    low: &Numeric,
    high: &Numeric,
    bits: &mut dyn FnMut() -> u64,
) -> Result<Numeric, Error> {
    const BASE: u64 = 10_000;
    let distance = high.sub(low)?;
    if distance.signum() < 0 {
        return Err(wrong_bounds());
    }
    let scale = low.scale().max(high.scale());
    if distance.is_zero() {
        return Ok(low.round(scale));
    }
    let Groups { weight, digits, .. } = distance.to_groups();
    let decimals = (scale as usize).div_ceil(4);
    let length = (i64::from(weight) + 1 + decimals as i64).max(1) as usize;
    // The last group counts in steps of this.
    let step = 10u64.pow((decimals * 4) as u32 - scale as u32);
    let first = length.min(4);
    let digit = |at: usize| digits.get(at).copied().unwrap_or_default() as u64;
    let head = (0..first).fold(0, |sum, at| sum * BASE + digit(at));
    loop {
        interrupt::poll()?;
        let mut groups = vec![0; length];
        let mut set = |from: usize, count: usize, mut number: u64, last_first: bool| {
            for place in 0..count {
                let at = if last_first { count - 1 - place } else { place };
                groups[from + at] = (number % BASE) as i16;
                number /= BASE;
            }
        };
        let number = match first == length && step != 1 {
            true => up_to(head / step, bits) * step,
            false => up_to(head, bits),
        };
        set(0, first, number, true);
        let whole = length - usize::from(step != 1);
        let mut at = first;
        while at + 4 <= whole {
            set(at, 4, up_to(BASE.pow(4) - 1, bits), false);
            at += 4;
        }
        while at < whole {
            set(at, 1, up_to(BASE - 1, bits), false);
            at += 1;
        }
        if at < length {
            set(at, 1, up_to(BASE / step - 1, bits) * step, false);
        }
        let number = Numeric::from_groups(&Groups {
            sign: WireSign::Positive,
            weight,
            scale: scale as u16,
            digits: groups,
        });
        let number = number.ok_or_else(|| Error::internal("digits that are no number"))?;
        if number.compare(&distance).is_le() {
            return Ok(number.add(low)?.round(scale));
        }
    }
}

fn numeric_random(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (low, high) = (finite(&args[0], "lower")?, finite(&args[1], "upper")?);
    Ok(numeric_between(low, high, &mut || ctx.host.random_bits())?.into())
}

/// By the method of Box and Muller.
fn random_normal(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let mean = args.first().map_or(0.0, float);
    let deviation = args.get(1).map_or(1.0, float);
    let (radius, angle) = (1.0 - share(ctx.host), 1.0 - share(ctx.host));
    let angle = (std::f64::consts::TAU * angle).sin();
    let value = (-2.0 * radius.ln()).sqrt() * angle;
    Ok((deviation * value + mean).into())
}

fn setseed(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let seed = float(&args[0]);
    if !(-1.0..=1.0).contains(&seed) {
        let mut shown = Vec::new();
        crate::io::scalar::write_float8(seed, 0, &mut shown);
        let shown = String::from_utf8_lossy(&shown);
        let message = format!("setseed parameter {shown} is out of allowed range [-1,1]");
        return Err(Error::new(state::INVALID_PARAMETER_VALUE, message).into());
    }
    ctx.host.seed_random(seed)?;
    Ok(Datum::VOID)
}

pub static FUNCTIONS: &[Function] = &[
    Function::new(1598, "random", &[], FLOAT8, drandom).volatile(),
    Function::new(6339, "random", &[INT4, INT4], INT4, int4random).volatile(),
    Function::new(6340, "random", &[INT8, INT8], INT8, int8random).volatile(),
    Function::new(6341, "random", &[NUMERIC, NUMERIC], NUMERIC, numeric_random).volatile(),
    Function::new(
        6212,
        "random_normal",
        &[FLOAT8, FLOAT8],
        FLOAT8,
        random_normal,
    )
    .volatile()
    .defaults(2),
    Function::new(1599, "setseed", &[FLOAT8], VOID, setseed).volatile(),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numerics_that_follow_a_seed_are_postgres() {
        let mut random = Random::seeded(0.5);
        let mut next = |low: &str, high: &str| {
            let [low, high] = [low, high].map(|text| text.parse::<Numeric>().expect("a number"));
            let mut bits = || random.bits();
            let number = numeric_between(&low, &high, &mut bits).expect("bounds");
            number.to_string()
        };
        assert_eq!(next("1.0", "2.00"), "1.16");
        assert_eq!(next("0", "100"), "20");
        let far = "1000000000000000000000000000000";
        let number = next(&format!("-{far}"), far);
        assert_eq!(number, "822884344079913904883124262530");
        assert_eq!(next("1.5", "1.5"), "1.5");
        assert_eq!(next("0.000001", "0.00001"), "0.000003");
        assert_eq!(next("0.12345", "99999999999.999"), "57930110807.37062");
        assert_eq!(next("1.00", "1.02"), "1.01");
        assert_eq!(
            next("0", "100000000000000000000000000000000000000000000000000"),
            "75801199728647683082871180793799825801564408176046"
        );
    }
}
