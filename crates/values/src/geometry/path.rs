//! Paths and polygons: points, and the segments between them.

use super::line::Closest;
use super::number::*;
use super::{Circle, Rectangle, Segment};
use throng_types::error::state;
use throng_types::{Error, Result, interrupt, stack};

#[derive(Clone, Debug)]
pub struct Path {
    /// From the last point to the first, too.
    pub closed: bool,
    pub points: Vec<Point>,
}

#[derive(Clone, Debug)]
pub struct Polygon {
    pub points: Vec<Point>,
}

/// The most points of a polygon that is made.
const MOST_POINTS: i32 = (1 << 30) / 16 - 1;

/// The segments between points; first the one that closes them.
fn segments(points: &[Point], closed: bool) -> impl Iterator<Item = Segment> {
    let closing = match (points.first(), points.last()) {
        (Some(first), Some(last)) if closed => Some(Segment::new(*last, *first)),
        _ => None,
    };
    let pairs = points.windows(2).map(|pair| Segment::new(pair[0], pair[1]));
    closing.into_iter().chain(pairs)
}

/// The smallest distance of two that are made of segments; none where one has no segment.
fn closest_segments(a: (&[Point], bool), b: (&[Point], bool)) -> Result<Option<f64>> {
    let mut closest: Option<f64> = None;
    for one in segments(a.0, a.1) {
        for two in segments(b.0, b.1) {
            interrupt::poll()?;
            let (distance, _) = one.closest_to_segment(two)?;
            closest = Some(closest.map_or(distance, |closest| smaller(closest, distance)));
        }
    }
    Ok(closest)
}

fn any_meet(a: (&[Point], bool), b: (&[Point], bool)) -> Result<bool> {
    for one in segments(a.0, a.1) {
        for two in segments(b.0, b.1) {
            interrupt::poll()?;
            if one.meets(two)?.is_some() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The smallest distance of a point; 0 where there is no segment.
fn closest_of(segments: impl Iterator<Item = Segment>, point: Point) -> Result<f64> {
    let mut closest: Option<f64> = None;
    for segment in segments {
        interrupt::poll()?;
        let (distance, _): Closest = segment.closest_to(point)?;
        closest = Some(closest.map_or(distance, |closest| smaller(closest, distance)));
    }
    Ok(closest.unwrap_or(0.0))
}

impl Path {
    pub fn area(&self) -> Result<Option<f64>> {
        if !self.closed {
            return Ok(None);
        }
        let mut area = 0.0;
        let next = self.points.iter().cycle().skip(1);
        for (a, b) in self.points.iter().zip(next) {
            area = add(area, mul(a.x, b.y)?)?;
            area = sub(area, mul(a.y, b.x)?)?;
        }
        Ok(Some(div(area.abs(), 2.0)?))
    }

    pub fn length(&self) -> Result<f64> {
        segments(&self.points, self.closed)
            .try_fold(0.0, |length, segment| add(length, segment.length()?))
    }

    pub fn distance(&self, other: &Path) -> Result<Option<f64>> {
        closest_segments((&self.points, self.closed), (&other.points, other.closed))
    }

    pub fn meets(&self, other: &Path) -> Result<bool> {
        let around = |path: &Path| Rectangle::around(path.points.iter().copied());
        match (around(self), around(other)) {
            (Some(a), Some(b)) if a.overlaps(b) => {}
            _ => return Ok(false),
        }
        any_meet((&self.points, self.closed), (&other.points, other.closed))
    }

    /// A point is on it or, where it is closed, within it.
    pub fn has(&self, point: Point) -> Result<bool> {
        if self.closed {
            return is_within(point, &self.points);
        }
        for segment in segments(&self.points, false) {
            interrupt::poll()?;
            if segment.has(point)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// 0 where it has no segment.
    pub fn distance_of(&self, point: Point) -> Result<f64> {
        closest_of(segments(&self.points, self.closed), point)
    }

    pub fn changed(mut self, change: impl Fn(Point) -> Result<Point>) -> Result<Path> {
        for point in &mut self.points {
            *point = change(*point)?;
        }
        Ok(self)
    }

    /// One behind the other; none where one is closed.
    pub fn followed_by(mut self, other: Path) -> Option<Path> {
        if self.closed || other.closed {
            return None;
        }
        self.points.extend(other.points);
        Some(self)
    }

    pub fn polygon(self) -> Result<Polygon> {
        if !self.closed {
            let message = "open path cannot be converted to polygon";
            return Err(Error::new(state::INVALID_PARAMETER_VALUE, message));
        }
        let points = self.points;
        Ok(Polygon { points })
    }
}

impl Polygon {
    pub fn around(&self) -> Rectangle {
        let zero = Point::new(0.0, 0.0);
        Rectangle::around(self.points.iter().copied()).unwrap_or(Rectangle {
            high: zero,
            low: zero,
        })
    }

    /// The same points in the same order, from another one on or the other way round.
    pub fn equals(&self, other: &Polygon) -> Result<bool> {
        let (points, others) = (&self.points, &other.points);
        let count = points.len();
        if count != others.len() {
            return Ok(false);
        }
        for start in 0..count {
            interrupt::poll()?;
            if !points[0].equals(others[start]) {
                continue;
            }
            let forwards = (1..count).all(|i| points[i].equals(others[(start + i) % count]));
            let back = |i: usize| others[(start + count - i) % count];
            if forwards || (1..count).all(|i| points[i].equals(back(i))) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub fn overlaps(&self, other: &Polygon) -> Result<bool> {
        if !self.around().overlaps(other.around()) {
            return Ok(false);
        }
        Ok(any_meet((&self.points, true), (&other.points, true))?
            || is_within(self.points[0], &other.points)?
            || is_within(other.points[0], &self.points)?)
    }

    pub fn has(&self, point: Point) -> Result<bool> {
        is_within(point, &self.points)
    }

    pub fn contains(&self, other: &Polygon) -> Result<bool> {
        if !self.around().contains(other.around()) {
            return Ok(false);
        }
        for segment in segments(&other.points, true) {
            if !self.contains_segment(segment, 0)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a segment is within, looking at the sides from one on.
    fn contains_segment(&self, tested: Segment, from: usize) -> Result<bool> {
        stack::check()?;
        let mut crosses = false;
        for (at, side) in segments(&self.points, true).enumerate().skip(from) {
            interrupt::poll()?;
            let within = if side.has(tested.p[0])? {
                if side.has(tested.p[1])? {
                    return Ok(true);
                }
                self.contains_touching(tested, side, at + 1)?
            } else if side.has(tested.p[1])? {
                let turned = Segment::new(tested.p[1], tested.p[0]);
                self.contains_touching(turned, side, at + 1)?
            } else if let Some(crossing) = tested.meets(side)? {
                crosses = true;
                let part = |end| Segment::new(end, crossing);
                self.contains_segment(part(tested.p[0]), at + 1)?
                    && self.contains_segment(part(tested.p[1]), at + 1)?
            } else {
                continue;
            };
            if !within {
                return Ok(false);
            }
        }
        match crosses {
            true => Ok(true),
            false => is_within(tested.p[0].middle(tested.p[1])?, &self.points),
        }
    }

    /// The same of a segment whose first end is on a side, and the other one is not.
    fn contains_touching(&self, tested: Segment, side: Segment, from: usize) -> Result<bool> {
        let [first, second] = side.p;
        let rest = if tested.p[0].equals(first) {
            tested.has(second)?.then_some(second)
        } else if tested.p[0].equals(second) || tested.has(first)? {
            tested.has(first)?.then_some(first)
        } else {
            tested.has(second)?.then_some(second)
        };
        match rest {
            Some(end) => self.contains_segment(Segment::new(tested.p[1], end), from),
            None => Ok(true),
        }
    }

    pub fn distance(&self, other: &Polygon) -> Result<Option<f64>> {
        match self.overlaps(other)? {
            true => Ok(Some(0.0)),
            false => closest_segments((&self.points, true), (&other.points, true)),
        }
    }

    pub fn distance_of(&self, point: Point) -> Result<f64> {
        if self.has(point)? {
            return Ok(0.0);
        }
        closest_of(segments(&self.points, true), point)
    }

    /// Around the middle of its points, at their mean distance.
    pub fn circle(&self) -> Result<Circle> {
        let count = self.points.len() as f64;
        let zero = Point::new(0.0, 0.0);
        let sum = self.points.iter().try_fold(zero, |sum, p| sum.plus(*p))?;
        let center = Point::new(div(sum.x, count)?, div(sum.y, count)?);
        let distances = self
            .points
            .iter()
            .try_fold(0.0, |sum, point| add(sum, point.distance(center)?))?;
        let radius = div(distances, count)?;
        Ok(Circle { center, radius })
    }

    pub fn of_circle(circle: Circle, count: i32) -> Result<Polygon> {
        if is_zero(circle.radius) {
            let message = "cannot convert circle with radius zero to polygon";
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
        }
        if count < 2 {
            let message = "must request at least 2 points";
            return Err(Error::new(state::INVALID_PARAMETER_VALUE, message));
        }
        if count > MOST_POINTS {
            let message = "too many points requested";
            return Err(Error::new(state::PROGRAM_LIMIT_EXCEEDED, message));
        }
        let step = div(2.0 * std::f64::consts::PI, count.into())?;
        let mut points = Vec::new();
        for at in 0..count {
            interrupt::poll()?;
            let angle = mul(step, at.into())?;
            points.push(Point::new(
                sub(circle.center.x, mul(circle.radius, angle.cos())?)?,
                add(circle.center.y, mul(circle.radius, angle.sin())?)?,
            ));
        }
        Ok(Polygon { points })
    }
}

/// How a side passes the ray to the right of the origin.
enum Crossing {
    /// The origin is on it.
    On,
    /// Half of it is passed, or all of it, upwards or downwards.
    Halves(i32),
}

fn crossing(point: Point, before: Point) -> Crossing {
    use Crossing::{Halves, On};
    if is_zero(point.y) {
        return if is_zero(point.x) {
            On
        } else if greater(point.x, 0.0) {
            match (is_zero(before.y), greater(before.x, 0.0)) {
                (true, true) => Halves(0),
                (true, false) => On,
                (false, _) => Halves(if less(before.y, 0.0) { 1 } else { -1 }),
            }
        } else if is_zero(before.y) && !less(before.x, 0.0) {
            On
        } else {
            Halves(0)
        };
    }
    let sign = if greater(point.y, 0.0) { 1 } else { -1 };
    let has_sign = |value: f64| match sign {
        1 => greater(value, 0.0),
        _ => less(value, 0.0),
    };
    if is_zero(before.y) {
        return Halves(if less(before.x, 0.0) { 0 } else { sign });
    }
    if has_sign(before.y) {
        return Halves(0);
    }
    if at_least(point.x, 0.0) && greater(before.x, 0.0) {
        return Halves(2 * sign);
    }
    if less(point.x, 0.0) && at_most(before.x, 0.0) {
        return Halves(0);
    }
    let side = (point.x - before.x) * point.y - (point.y - before.y) * point.x;
    if is_zero(side) {
        On
    } else if has_sign(side) {
        Halves(0)
    } else {
        Halves(2 * sign)
    }
}

/// Whether a point is within or on the polygon of these points: a ray from it passes the sides
/// upwards and downwards unequally often.
fn is_within(point: Point, points: &[Point]) -> Result<bool> {
    let mut before = points[0].minus(point)?;
    let mut total = 0;
    for next in points[1..].iter().chain(points.first()) {
        interrupt::poll()?;
        let next = next.minus(point)?;
        match crossing(next, before) {
            Crossing::On => return Ok(true),
            Crossing::Halves(halves) => total += halves,
        }
        before = next;
    }
    Ok(total != 0)
}
