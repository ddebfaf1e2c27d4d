//! Lines and segments of them: where they meet, and what of them is closest.

use super::number::*;
use throng_types::error::state;
use throng_types::{Error, Result};

/// All points where Ax + By + C = 0.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub a: f64,
    pub b: f64,
    pub c: f64,
}

/// What is between two points, both included.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    pub p: [Point; 2],
}

/// The smaller distance, and its point.
pub type Closest = (f64, Point);

/// The closer of two; the first where neither is.
pub fn closer(a: Closest, b: Closest) -> Closest {
    if above(a.0, b.0) { b } else { a }
}

impl Line {
    pub fn through(point: Point, slope: f64) -> Result<Line> {
        Ok(if slope.is_infinite() {
            Line {
                a: -1.0,
                b: 0.0,
                c: point.x,
            }
        } else if slope == 0.0 {
            Line {
                a: 0.0,
                b: -1.0,
                c: point.y,
            }
        } else {
            Line {
                a: slope,
                b: -1.0,
                c: without_sign_of_zero(sub(point.y, mul(slope, point.x)?)?),
            }
        })
    }

    pub fn through_both(a: Point, b: Point) -> Result<Line> {
        if a.equals(b) {
            let message = "invalid line specification: must be two distinct points";
            return Err(Error::new(state::INVALID_PARAMETER_VALUE, message));
        }
        Line::through(a, a.slope(b)?)
    }

    /// Its coefficients tell no line.
    pub fn is_degenerate(self) -> bool {
        is_zero(self.a) && is_zero(self.b)
    }

    pub fn slope(self) -> Result<f64> {
        match (is_zero(self.a), is_zero(self.b)) {
            (true, _) => Ok(0.0),
            (_, true) => Ok(f64::INFINITY),
            _ => div(self.a, -self.b),
        }
    }

    pub fn inverse_slope(self) -> Result<f64> {
        match (is_zero(self.a), is_zero(self.b)) {
            (true, _) => Ok(f64::INFINITY),
            (_, true) => Ok(0.0),
            _ => div(self.b, self.a),
        }
    }

    pub fn is_perpendicular(self, other: Line) -> Result<bool> {
        Ok(if is_zero(self.a) {
            is_zero(other.b)
        } else if is_zero(other.a) {
            is_zero(self.b)
        } else if is_zero(self.b) {
            is_zero(other.a)
        } else if is_zero(other.b) {
            is_zero(self.a)
        } else {
            equal(div(mul(self.a, other.a)?, mul(self.b, other.b)?)?, -1.0)
        })
    }

    pub fn equals(self, other: Line) -> Result<bool> {
        let numbers = [self.a, self.b, self.c, other.a, other.b, other.c];
        if numbers.iter().any(|n| n.is_nan()) {
            let pairs = [(self.a, other.a), (self.b, other.b), (self.c, other.c)];
            return Ok(pairs.iter().all(|(a, b)| identical(*a, *b)));
        }
        let ratio = if !is_zero(other.a) {
            div(self.a, other.a)?
        } else if !is_zero(other.b) {
            div(self.b, other.b)?
        } else if !is_zero(other.c) {
            div(self.c, other.c)?
        } else {
            1.0
        };
        Ok(equal(self.a, mul(ratio, other.a)?)
            && equal(self.b, mul(ratio, other.b)?)
            && equal(self.c, mul(ratio, other.c)?))
    }

    /// Where they meet; none where they are parallel.
    pub fn meets(self, other: Line) -> Result<Option<Point>> {
        let (one, two) = if !is_zero(self.b) {
            if equal(other.a, mul(self.a, div(other.b, self.b)?)?) {
                return Ok(None);
            }
            (self, other)
        } else if !is_zero(other.b) {
            if equal(self.a, mul(other.a, div(self.b, other.b)?)?) {
                return Ok(None);
            }
            (other, self)
        } else {
            return Ok(None);
        };
        let x = div(
            sub(mul(one.b, two.c)?, mul(two.b, one.c)?)?,
            sub(mul(one.a, two.b)?, mul(two.a, one.b)?)?,
        )?;
        let y = div(-add(mul(one.a, x)?, one.c)?, one.b)?;
        Ok(Some(Point::new(
            without_sign_of_zero(x),
            without_sign_of_zero(y),
        )))
    }

    pub fn distance(self, other: Line) -> Result<f64> {
        if self.meets(other)?.is_some() {
            return Ok(0.0);
        }
        let usable = |a: f64, b: f64| [a, b].iter().all(|n| !is_zero(*n) && !n.is_nan());
        let ratio = if usable(self.a, other.a) {
            div(self.a, other.a)?
        } else if usable(self.b, other.b) {
            div(self.b, other.b)?
        } else {
            1.0
        };
        let apart = sub(self.c, mul(ratio, other.c)?)?.abs();
        div(apart, hypotenuse(self.a, self.b)?)
    }

    pub fn has(self, point: Point) -> Result<bool> {
        let sum = add(mul(self.a, point.x)?, mul(self.b, point.y)?)?;
        Ok(is_zero(add(sum, self.c)?))
    }

    /// What of it is closest to a point: at a distance of NaN where that cannot be told.
    pub fn closest_to(self, point: Point) -> Result<Closest> {
        let perpendicular = Line::through(point, self.inverse_slope()?)?;
        Ok(match perpendicular.meets(self)? {
            Some(closest) => (closest.distance(point)?, closest),
            None => (f64::NAN, point),
        })
    }
}

impl Segment {
    pub fn new(a: Point, b: Point) -> Segment {
        Segment { p: [a, b] }
    }

    pub fn length(self) -> Result<f64> {
        self.p[0].distance(self.p[1])
    }

    pub fn slope(self) -> Result<f64> {
        self.p[0].slope(self.p[1])
    }

    pub fn inverse_slope(self) -> Result<f64> {
        self.p[0].inverse_slope(self.p[1])
    }

    fn line(self) -> Result<Line> {
        Line::through(self.p[0], self.slope()?)
    }

    pub fn is_vertical(self) -> bool {
        equal(self.p[0].x, self.p[1].x)
    }

    pub fn is_horizontal(self) -> bool {
        equal(self.p[0].y, self.p[1].y)
    }

    pub fn equals(self, other: Segment) -> bool {
        self.p[0].equals(other.p[0]) && self.p[1].equals(other.p[1])
    }

    pub fn has(self, point: Point) -> Result<bool> {
        let way = point.distance(self.p[0])? + point.distance(self.p[1])?;
        Ok(equal(way, self.length()?))
    }

    pub fn meets_line(self, line: Line) -> Result<Option<Point>> {
        let Some(point) = self.line()?.meets(line)? else {
            return Ok(None);
        };
        if !self.has(point)? {
            return Ok(None);
        }
        let end = self.p.into_iter().find(|end| end.equals(point));
        Ok(Some(end.unwrap_or(point)))
    }

    pub fn meets(self, other: Segment) -> Result<Option<Point>> {
        let Some(point) = self.meets_line(other.line()?)? else {
            return Ok(None);
        };
        Ok(other.has(point)?.then_some(point))
    }

    /// What of it is closest to a line.
    pub fn closest_to_line(self, line: Line) -> Result<Closest> {
        if let Some(point) = self.meets_line(line)? {
            return Ok((0.0, point));
        }
        let distance = |end: Point| line.closest_to(end).map(|(distance, _)| distance);
        let (first, second) = (distance(self.p[0])?, distance(self.p[1])?);
        Ok(match first < second {
            true => (first, self.p[0]),
            false => (second, self.p[1]),
        })
    }

    pub fn closest_to(self, point: Point) -> Result<Closest> {
        let perpendicular = Line::through(point, self.inverse_slope()?)?;
        let (_, closest) = self.closest_to_line(perpendicular)?;
        Ok((closest.distance(point)?, closest))
    }

    /// What of it is closest to another segment.
    pub fn closest_to_segment(self, other: Segment) -> Result<Closest> {
        if let Some(point) = self.meets(other)? {
            return Ok((0.0, point));
        }
        let mut closest = self.closest_to(other.p[0])?;
        closest = closer(closest, self.closest_to(other.p[1])?);
        for end in self.p {
            closest = closer(closest, (other.closest_to(end)?.0, end));
        }
        Ok(closest)
    }
}
