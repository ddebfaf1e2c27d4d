//! Random numbers, PostgreSQL's own for those that `setseed` has begun.
//!
//! The generator is xoroshiro128**, seeded by SplitMix64: Blackman and Vigna, "Scrambled linear pseudorandom number generators"
//! (2018), and Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014).

use throng_types::error::state;
use throng_types::{Datum, Error, oid::*};

use super::context::Host;
use super::number::{float, int};
use super::{EvalContext, EvalResult, Function};

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
fn share(host: &dyn Host) -> f64 {
    (host.random_bits() >> 12) as f64 / (1u64 << 52) as f64
}

/// A number up to `most`, each as likely.
fn up_to(most: u64, host: &dyn Host) -> u64 {
    if most == 0 {
        return 0;
    }
    loop {
        let number = host.random_bits() >> most.leading_zeros();
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
            let above = up_to(high.wrapping_sub(low) as u64, ctx.host);
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

/// By the method of Box and Muller.
fn random_normal(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (radius, angle) = (1.0 - share(ctx.host), 1.0 - share(ctx.host));
    let angle = (std::f64::consts::TAU * angle).sin();
    let value = (-2.0 * radius.ln()).sqrt() * angle;
    Ok((float(&args[1]) * value + float(&args[0])).into())
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
    Function::new(
        6212,
        "random_normal",
        &[FLOAT8, FLOAT8],
        FLOAT8,
        random_normal,
    )
    .volatile(),
    Function::new(1599, "setseed", &[FLOAT8], VOID, setseed).volatile(),
];
