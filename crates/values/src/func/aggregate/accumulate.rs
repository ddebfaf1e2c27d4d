//! The steps of sums, counts and averages as functions over states that are values: what users'
//! aggregates call.

use throng_types::oid::*;
use throng_types::{Array, Datum, Error, Numeric, error::state};

use super::AggState;
use crate::func::number::{bigint_out_of_range, float, int};
use crate::func::{EvalContext, EvalResult, EvalStop, Function};

fn counted(value: &Datum, by: i64) -> EvalResult {
    let sum = int(value).checked_add(by);
    Ok(sum.ok_or_else(bigint_out_of_range)?.into())
}
fn increment(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    counted(&args[0], 1)
}
fn decrement(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    counted(&args[0], -1)
}

fn both(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::Bool(args[0].is_true() && args[1].is_true()))
}
fn either(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::Bool(args[0].is_true() || args[1].is_true()))
}

/// A sum that NULLs add nothing to.
fn sum(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    match (&args[0], &args[1]) {
        (state, Datum::Null) => Ok(state.clone()),
        (Datum::Null, value) => Ok(int(value).into()),
        (state, value) => counted(state, int(value)),
    }
}

/// The numbers of a state of so many.
fn numbers<'a>(value: &'a Datum, count: usize, what: &str) -> Result<&'a [Datum], EvalStop> {
    match value {
        Datum::Array(array)
            if array.items.len() == count && array.items.iter().all(|item| !item.is_null()) =>
        {
            Ok(&array.items)
        }
        _ => Err(Error::new(
            state::INVALID_PARAMETER_VALUE,
            format!("expected {count}-element {what} array"),
        )
        .into()),
    }
}

/// Count and sum of integers.
fn pair_moved(args: &[Datum], sign: i64) -> EvalResult {
    let state = numbers(&args[0], 2, "int8")?;
    let count = int(&state[0]).wrapping_add(sign);
    let sum = int(&state[1]).wrapping_add(int(&args[1]).wrapping_mul(sign));
    let items = vec![count.into(), sum.into()];
    Ok(Datum::array(Array::from_items(INT8, items)))
}
fn pair_with(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    pair_moved(args, 1)
}
fn pair_without(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    pair_moved(args, -1)
}
fn pair_average(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let state = numbers(&args[0], 2, "int8")?;
    match int(&state[0]) {
        0 => Ok(Datum::Null),
        count => {
            let sum = Numeric::from(i128::from(int(&state[1])));
            Ok(sum.div(&Numeric::from(i128::from(count)))?.into())
        }
    }
}
fn pair_sum(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let state = numbers(&args[0], 2, "int8")?;
    Ok(match int(&state[0]) {
        0 => Datum::Null,
        _ => state[1].clone(),
    })
}

/// Count, sum and squares of floats.
fn spread(value: &Datum) -> Result<AggState, EvalStop> {
    let state = numbers(value, 3, "float8")?;
    Ok(AggState::Floats {
        count: float(&state[0]),
        sum: float(&state[1]),
        squares: float(&state[2]),
    })
}
fn spread_with(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let mut state = match spread(&args[0])? {
        AggState::Floats { count: 0.0, .. } => AggState::Empty,
        state => state,
    };
    super::float_step(ctx, &mut state, &args[1..])?;
    spread_value(state)
}
fn spread_joined(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let mut state = spread(&args[0])?;
    super::float_combine(ctx, &mut state, spread(&args[1])?)?;
    spread_value(state)
}
fn spread_value(state: AggState) -> EvalResult {
    let AggState::Floats {
        count,
        sum,
        squares,
    } = state
    else {
        return Err(super::mixed());
    };
    let items = [count, sum, squares].map(Datum::Float8).into();
    Ok(Datum::array(Array::from_items(FLOAT8, items)))
}
fn finished(args: &[Datum], finish: impl FnOnce(AggState) -> EvalResult) -> EvalResult {
    match spread(&args[0])? {
        AggState::Floats { count: 0.0, .. } => Ok(Datum::Null),
        state => finish(state),
    }
}
fn spread_average(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    finished(args, |state| super::float_average(ctx, state))
}
fn spread_var_pop(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    finished(args, |state| super::float_var_pop(ctx, state))
}
fn spread_var_samp(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    finished(args, |state| super::float_var_samp(ctx, state))
}
fn spread_stddev_pop(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    finished(args, |state| super::float_stddev_pop(ctx, state))
}
fn spread_stddev_samp(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    finished(args, |state| super::float_stddev_samp(ctx, state))
}

const COUNT: &[throng_types::Oid] = &[INT8];
const COUNT_ANY: &[throng_types::Oid] = &[INT8, ANY];
const BOOLS: &[throng_types::Oid] = &[BOOL, BOOL];
const PAIR: &[throng_types::Oid] = &[INT8_ARRAY];
const SPREAD: &[throng_types::Oid] = &[FLOAT8_ARRAY];

pub static FUNCTIONS: &[Function] = &[
    Function::new(1219, "int8inc", COUNT, INT8, increment),
    Function::new(3546, "int8dec", COUNT, INT8, decrement),
    Function::new(2804, "int8inc_any", COUNT_ANY, INT8, increment),
    Function::new(3547, "int8dec_any", COUNT_ANY, INT8, decrement),
    Function::new(2515, "booland_statefunc", BOOLS, BOOL, both),
    Function::new(2516, "boolor_statefunc", BOOLS, BOOL, either),
    Function::new(1840, "int2_sum", &[INT8, INT2], INT8, sum).lenient(),
    Function::new(1841, "int4_sum", &[INT8, INT4], INT8, sum).lenient(),
    Function::new(
        1962,
        "int2_avg_accum",
        &[INT8_ARRAY, INT2],
        INT8_ARRAY,
        pair_with,
    ),
    Function::new(
        1963,
        "int4_avg_accum",
        &[INT8_ARRAY, INT4],
        INT8_ARRAY,
        pair_with,
    ),
    Function::new(
        3570,
        "int2_avg_accum_inv",
        &[INT8_ARRAY, INT2],
        INT8_ARRAY,
        pair_without,
    ),
    Function::new(
        3571,
        "int4_avg_accum_inv",
        &[INT8_ARRAY, INT4],
        INT8_ARRAY,
        pair_without,
    ),
    Function::new(1964, "int8_avg", PAIR, NUMERIC, pair_average),
    Function::new(3572, "int2int4_sum", PAIR, INT8, pair_sum),
    Function::new(
        208,
        "float4_accum",
        &[FLOAT8_ARRAY, FLOAT4],
        FLOAT8_ARRAY,
        spread_with,
    ),
    Function::new(
        222,
        "float8_accum",
        &[FLOAT8_ARRAY, FLOAT8],
        FLOAT8_ARRAY,
        spread_with,
    ),
    Function::new(
        276,
        "float8_combine",
        &[FLOAT8_ARRAY, FLOAT8_ARRAY],
        FLOAT8_ARRAY,
        spread_joined,
    ),
    Function::new(1830, "float8_avg", SPREAD, FLOAT8, spread_average),
    Function::new(2512, "float8_var_pop", SPREAD, FLOAT8, spread_var_pop),
    Function::new(1831, "float8_var_samp", SPREAD, FLOAT8, spread_var_samp),
    Function::new(2513, "float8_stddev_pop", SPREAD, FLOAT8, spread_stddev_pop),
    Function::new(
        1832,
        "float8_stddev_samp",
        SPREAD,
        FLOAT8,
        spread_stddev_samp,
    ),
];
