//! The values of pgbench's expressions and how they meet: integers stay integers until a float
//! comes in, null makes null, an overflow is an error (PostgreSQL's documentation, "pgbench",
//! "Built-in Operators" and "Functions").

use crate::load::sql::Arg;

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// Only from a query's result.
    Text(String),
}

pub type Evaluated = Result<Value, String>;

impl Value {
    /// What a query's column or a definition becomes: a number if it looks like one.
    pub fn of_text(text: &str) -> Value {
        if let Ok(n) = text.parse() {
            return Value::Int(n);
        }
        match text.parse() {
            Ok(x) => Value::Float(x),
            Err(_) => Value::Text(text.to_owned()),
        }
    }

    pub fn as_arg(&self) -> Arg<'_> {
        match self {
            Value::Null => Arg::Null,
            Value::Bool(true) => Arg::Text("true"),
            Value::Bool(false) => Arg::Text("false"),
            Value::Int(n) => Arg::Int(*n),
            Value::Float(x) => Arg::Float(*x),
            Value::Text(text) => Arg::Text(text),
        }
    }

    pub fn to_int(&self) -> Result<i64, String> {
        match self {
            Value::Int(n) => Ok(*n),
            Value::Float(x) if x.round().abs() < 9.3e18 => Ok(x.round_ties_even() as i64),
            other => Err(format!("{other:?} is no integer")),
        }
    }

    pub fn to_float(&self) -> Result<f64, String> {
        match self {
            Value::Int(n) => Ok(*n as f64),
            Value::Float(x) => Ok(*x),
            other => Err(format!("{other:?} is no number")),
        }
    }

    /// Whether a condition holds; null does not.
    pub fn holds(&self) -> Result<bool, String> {
        match self {
            Value::Bool(holds) => Ok(*holds),
            Value::Int(n) => Ok(*n != 0),
            Value::Null => Ok(false),
            other => Err(format!("{other:?} is no condition")),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// `left operator right`.
pub fn apply(operator: Operator, left: &Value, right: &Value) -> Evaluated {
    use Operator::*;
    if matches!((left, right), (Value::Null, _) | (_, Value::Null)) {
        return Ok(Value::Null);
    }
    match operator {
        Add => arithmetic(left, right, i64::checked_add, |a, b| a + b),
        Subtract => arithmetic(left, right, i64::checked_sub, |a, b| a - b),
        Multiply => arithmetic(left, right, i64::checked_mul, |a, b| a * b),
        Divide => {
            nonzero(right)?;
            arithmetic(left, right, i64::checked_div, |a, b| a / b)
        }
        Remainder => {
            nonzero(right)?;
            // The least integer modulo -1 is 0, not an overflow.
            ints(left, right, |a, b| Some(a.wrapping_rem(b)))
        }
        BitAnd => ints(left, right, |a, b| Some(a & b)),
        BitOr => ints(left, right, |a, b| Some(a | b)),
        BitXor => ints(left, right, |a, b| Some(a ^ b)),
        ShiftLeft => ints(left, right, |a, b| {
            u32::try_from(b).ok().and_then(|b| a.checked_shl(b))
        }),
        ShiftRight => ints(left, right, |a, b| {
            u32::try_from(b).ok().and_then(|b| a.checked_shr(b))
        }),
        Equal => compare(left, right, |o| o.is_eq()),
        NotEqual => compare(left, right, |o| o.is_ne()),
        Less => compare(left, right, |o| o.is_lt()),
        LessOrEqual => compare(left, right, |o| o.is_le()),
        Greater => compare(left, right, |o| o.is_gt()),
        GreaterOrEqual => compare(left, right, |o| o.is_ge()),
    }
}

fn arithmetic(
    left: &Value,
    right: &Value,
    of_ints: fn(i64, i64) -> Option<i64>,
    of_floats: fn(f64, f64) -> f64,
) -> Evaluated {
    match (left, right) {
        (Value::Int(_), Value::Int(_)) => ints(left, right, of_ints),
        _ => Ok(Value::Float(of_floats(left.to_float()?, right.to_float()?))),
    }
}

fn ints(left: &Value, right: &Value, operation: impl Fn(i64, i64) -> Option<i64>) -> Evaluated {
    let result = operation(left.to_int()?, right.to_int()?);
    result
        .map(Value::Int)
        .ok_or_else(|| "bigint out of range".to_owned())
}

fn nonzero(value: &Value) -> Result<(), String> {
    match value {
        Value::Int(0) => Err("division by zero".to_owned()),
        _ => Ok(()),
    }
}

fn compare(left: &Value, right: &Value, accepts: fn(std::cmp::Ordering) -> bool) -> Evaluated {
    let ordering = match (left, right) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Text(a), Value::Text(b)) => a.cmp(b),
        _ => left.to_float()?.total_cmp(&right.to_float()?),
    };
    Ok(Value::Bool(accepts(ordering)))
}
