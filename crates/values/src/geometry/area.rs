//! Rectangles along the axes (`box`) and circles.

use super::line::{Closest, closer};
use super::number::*;
use super::{Line, Segment};
use throng_types::Result;

#[derive(Clone, Copy, Debug)]
pub struct Rectangle {
    pub high: Point,
    pub low: Point,
}

#[derive(Clone, Copy, Debug)]
pub struct Circle {
    pub center: Point,
    pub radius: f64,
}

impl Rectangle {
    /// The one with these corners.
    pub fn new(a: Point, b: Point) -> Rectangle {
        let ordered = |a: f64, b: f64| if above(a, b) { (a, b) } else { (b, a) };
        let ((high_x, low_x), (high_y, low_y)) = (ordered(a.x, b.x), ordered(a.y, b.y));
        Rectangle {
            high: Point::new(high_x, high_y),
            low: Point::new(low_x, low_y),
        }
    }

    /// The smallest that holds all points.
    pub fn around(points: impl IntoIterator<Item = Point>) -> Option<Rectangle> {
        let single = points.into_iter().map(|p| Rectangle { high: p, low: p });
        single.reduce(Rectangle::with)
    }

    /// The smallest that holds both.
    pub fn with(self, other: Rectangle) -> Rectangle {
        Rectangle {
            high: Point::new(
                larger(self.high.x, other.high.x),
                larger(self.high.y, other.high.y),
            ),
            low: Point::new(
                smaller(self.low.x, other.low.x),
                smaller(self.low.y, other.low.y),
            ),
        }
    }

    pub fn width(self) -> Result<f64> {
        sub(self.high.x, self.low.x)
    }

    pub fn height(self) -> Result<f64> {
        sub(self.high.y, self.low.y)
    }

    pub fn area(self) -> Result<f64> {
        mul(self.width()?, self.height()?)
    }

    pub fn center(self) -> Result<Point> {
        self.high.middle(self.low)
    }

    pub fn overlaps(self, other: Rectangle) -> bool {
        at_most(self.low.x, other.high.x)
            && at_most(other.low.x, self.high.x)
            && at_most(self.low.y, other.high.y)
            && at_most(other.low.y, self.high.y)
    }

    pub fn contains(self, other: Rectangle) -> bool {
        at_least(self.high.x, other.high.x)
            && at_most(self.low.x, other.low.x)
            && at_least(self.high.y, other.high.y)
            && at_most(self.low.y, other.low.y)
    }

    pub fn has(self, point: Point) -> bool {
        self.high.x >= point.x
            && self.low.x <= point.x
            && self.high.y >= point.y
            && self.low.y <= point.y
    }

    /// What is in both.
    pub fn common(self, other: Rectangle) -> Option<Rectangle> {
        self.overlaps(other).then(|| Rectangle {
            high: Point::new(
                smaller(self.high.x, other.high.x),
                smaller(self.high.y, other.high.y),
            ),
            low: Point::new(
                larger(self.low.x, other.low.x),
                larger(self.low.y, other.low.y),
            ),
        })
    }

    /// Its sides, those of the upper left corner first.
    fn sides(self) -> [Segment; 4] {
        let upper_left = Point::new(self.low.x, self.high.y);
        let lower_right = Point::new(self.high.x, self.low.y);
        [
            Segment::new(self.low, upper_left),
            Segment::new(self.high, upper_left),
            Segment::new(self.low, lower_right),
            Segment::new(self.high, lower_right),
        ]
    }

    pub fn corners(self) -> [Point; 4] {
        [
            self.low,
            Point::new(self.low.x, self.high.y),
            self.high,
            Point::new(self.high.x, self.low.y),
        ]
    }

    pub fn meets_line(self, line: Line) -> Result<bool> {
        for side in self.sides() {
            if side.meets_line(line)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub fn meets(self, segment: Segment) -> Result<bool> {
        let around = Rectangle::new(segment.p[0], segment.p[1]);
        if !around.overlaps(self) {
            return Ok(false);
        }
        if self.has(segment.p[0]) || self.has(segment.p[1]) {
            return Ok(true);
        }
        for side in self.sides() {
            if side.meets(segment)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn closest_of_sides(self, of: impl Fn(Segment) -> Result<Closest>) -> Result<Closest> {
        let [first, others @ ..] = self.sides();
        others
            .into_iter()
            .try_fold(of(first)?, |closest, side| Ok(closer(closest, of(side)?)))
    }

    pub fn closest_to(self, point: Point) -> Result<Closest> {
        match self.has(point) {
            true => Ok((0.0, point)),
            false => self.closest_of_sides(|side| side.closest_to(point)),
        }
    }

    /// What of it is closest to a segment: of one that it meets the point that is closest to its
    /// center.
    pub fn closest_to_segment(self, segment: Segment) -> Result<Closest> {
        if self.meets(segment)? {
            let (_, closest) = segment.closest_to(self.center()?)?;
            return Ok((0.0, closest));
        }
        self.closest_of_sides(|side| side.closest_to_segment(segment))
    }

    /// With its corners changed.
    pub fn changed(self, change: impl Fn(Point) -> Result<Point>) -> Result<Rectangle> {
        Ok(Rectangle::new(change(self.high)?, change(self.low)?))
    }

    pub fn circle(self) -> Result<Circle> {
        let center = self.center()?;
        Ok(Circle {
            center,
            radius: center.distance(self.high)?,
        })
    }
}

impl Circle {
    pub fn area(self) -> Result<f64> {
        mul(mul(self.radius, self.radius)?, std::f64::consts::PI)
    }

    pub fn equals(self, other: Circle) -> bool {
        let same_radius =
            self.radius.is_nan() && other.radius.is_nan() || equal(self.radius, other.radius);
        same_radius && self.center.equals(other.center)
    }

    pub fn has(self, point: Point) -> Result<bool> {
        Ok(self.center.distance(point)? <= self.radius)
    }

    /// From its edge; 0 within.
    pub fn distance_to(self, distance_of_center: f64) -> Result<f64> {
        let distance = sub(distance_of_center, self.radius)?;
        Ok(if distance < 0.0 { 0.0 } else { distance })
    }

    pub fn rectangle(self) -> Result<Rectangle> {
        let half = div(self.radius, 2f64.sqrt())?;
        let corner = Point::new(half, half);
        Ok(Rectangle::new(
            self.center.plus(corner)?,
            self.center.minus(corner)?,
        ))
    }
}
