//! Numbers that are nearly equal, and points.

use std::cmp::Ordering;

use throng_types::error::state;
use throng_types::{Error, Result};

/// How far numbers are apart that are taken for equal.
pub const EPSILON: f64 = 1e-6;

#[cold]
fn overflow() -> Error {
    Error::new(
        state::NUMERIC_VALUE_OUT_OF_RANGE,
        "value out of range: overflow",
    )
}
#[cold]
fn underflow() -> Error {
    Error::new(
        state::NUMERIC_VALUE_OUT_OF_RANGE,
        "value out of range: underflow",
    )
}
#[cold]
fn division_by_zero() -> Error {
    Error::new(state::DIVISION_BY_ZERO, "division by zero")
}

fn finite(value: f64, a: f64, b: f64) -> Result<f64> {
    match value.is_infinite() && !a.is_infinite() && !b.is_infinite() {
        true => Err(overflow()),
        false => Ok(value),
    }
}

pub fn add(a: f64, b: f64) -> Result<f64> {
    finite(a + b, a, b)
}

pub fn sub(a: f64, b: f64) -> Result<f64> {
    finite(a - b, a, b)
}

pub fn mul(a: f64, b: f64) -> Result<f64> {
    match a * b {
        0.0 if a != 0.0 && b != 0.0 => Err(underflow()),
        value => finite(value, a, b),
    }
}

pub fn div(a: f64, b: f64) -> Result<f64> {
    if b == 0.0 && !a.is_nan() {
        return Err(division_by_zero());
    }
    match a / b {
        0.0 if a != 0.0 && !b.is_infinite() => Err(underflow()),
        value if value.is_infinite() && !a.is_infinite() => Err(overflow()),
        value => Ok(value),
    }
}

/// The length of the hypotenuse.
pub fn hypotenuse(x: f64, y: f64) -> Result<f64> {
    if x.is_infinite() || y.is_infinite() {
        return Ok(f64::INFINITY);
    }
    if x.is_nan() || y.is_nan() {
        return Ok(f64::NAN);
    }
    let (x, y) = (x.abs(), y.abs());
    let (long, short) = if x < y { (y, x) } else { (x, y) };
    if short == 0.0 {
        return Ok(long);
    }
    let ratio = short / long;
    match long * (1.0 + ratio * ratio).sqrt() {
        0.0 => Err(underflow()),
        value if value.is_infinite() => Err(overflow()),
        value => Ok(value),
    }
}

/// NaN above everything.
fn order(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b)
        .unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

pub fn above(a: f64, b: f64) -> bool {
    order(a, b).is_gt()
}

pub fn larger(a: f64, b: f64) -> f64 {
    if above(b, a) { b } else { a }
}

pub fn smaller(a: f64, b: f64) -> f64 {
    if above(a, b) { b } else { a }
}

/// 0 for -0.
pub fn without_sign_of_zero(value: f64) -> f64 {
    if value == 0.0 { 0.0 } else { value }
}

// Comparisons of numbers that are nearly equal

pub fn is_zero(a: f64) -> bool {
    a.abs() <= EPSILON
}
pub fn equal(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= EPSILON
}
/// Not the contrary of equal: neither is true of NaN.
pub fn unequal(a: f64, b: f64) -> bool {
    a != b && (a - b).abs() > EPSILON
}
pub fn less(a: f64, b: f64) -> bool {
    a + EPSILON < b
}
pub fn at_most(a: f64, b: f64) -> bool {
    a <= b + EPSILON
}
pub fn greater(a: f64, b: f64) -> bool {
    a > b + EPSILON
}
pub fn at_least(a: f64, b: f64) -> bool {
    a + EPSILON >= b
}

/// Equal to the bit, NaN to itself.
pub fn identical(a: f64, b: f64) -> bool {
    order(a, b).is_eq()
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub x: f64,
    pub y: f64,
}

impl Point {
    pub fn new(x: f64, y: f64) -> Point {
        Point { x, y }
    }

    pub fn equals(self, other: Point) -> bool {
        let numbers = [self.x, self.y, other.x, other.y];
        match numbers.iter().any(|n| n.is_nan()) {
            true => identical(self.x, other.x) && identical(self.y, other.y),
            false => equal(self.x, other.x) && equal(self.y, other.y),
        }
    }

    pub fn distance(self, other: Point) -> Result<f64> {
        hypotenuse(sub(self.x, other.x)?, sub(self.y, other.y)?)
    }

    /// The slope of the line through both.
    pub fn slope(self, other: Point) -> Result<f64> {
        if equal(self.x, other.x) {
            return Ok(f64::INFINITY);
        }
        if equal(self.y, other.y) {
            return Ok(0.0);
        }
        div(sub(self.y, other.y)?, sub(self.x, other.x)?)
    }

    /// The slope of what is perpendicular to that line.
    pub fn inverse_slope(self, other: Point) -> Result<f64> {
        if equal(self.x, other.x) {
            return Ok(0.0);
        }
        if equal(self.y, other.y) {
            return Ok(f64::INFINITY);
        }
        div(sub(self.x, other.x)?, sub(other.y, self.y)?)
    }

    pub fn plus(self, other: Point) -> Result<Point> {
        Ok(Point::new(add(self.x, other.x)?, add(self.y, other.y)?))
    }

    pub fn minus(self, other: Point) -> Result<Point> {
        Ok(Point::new(sub(self.x, other.x)?, sub(self.y, other.y)?))
    }

    /// The product of complex numbers: turned and stretched.
    pub fn times(self, other: Point) -> Result<Point> {
        Ok(Point::new(
            sub(mul(self.x, other.x)?, mul(self.y, other.y)?)?,
            add(mul(self.x, other.y)?, mul(self.y, other.x)?)?,
        ))
    }

    pub fn over(self, other: Point) -> Result<Point> {
        let norm = add(mul(other.x, other.x)?, mul(other.y, other.y)?)?;
        Ok(Point::new(
            div(add(mul(self.x, other.x)?, mul(self.y, other.y)?)?, norm)?,
            div(sub(mul(self.y, other.x)?, mul(self.x, other.y)?)?, norm)?,
        ))
    }

    pub fn middle(self, other: Point) -> Result<Point> {
        let half = |a: f64, b: f64| div(add(a, b)?, 2.0);
        Ok(Point::new(half(self.x, other.x)?, half(self.y, other.y)?))
    }
}
