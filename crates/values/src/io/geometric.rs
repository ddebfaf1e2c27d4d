//! The geometric types: numbers between parentheses, brackets and commas.
//!
//! Kept as doubles, big endian: of a point x and y, of a segment both points, of a box the upper
//! right corner and the lower left one, of a line its coefficients, of a circle its center and
//! radius. A path begins with a byte that tells whether it is closed; a polygon has points only.

use super::base::BaseInputOutput;
use super::binary::{Reader, invalid};
use super::scalar::{is_space, parse_float8, write_float8};
use super::{EvalContext, invalid_syntax};
use crate::geometry::{Circle, Line, Path, Point, Polygon, Rectangle, Segment};
use std::ops::Range;
use throng_types::error::state;
use throng_types::sqltype::part_of;
use throng_types::{BaseValue, Datum, Error, Oid, Result, interrupt, oid};

/// A shape as the bytes of a value.
pub trait Shape: Sized {
    const TYPE: Oid;
    fn from_stored(bytes: &[u8]) -> Self;
    fn write_stored(&self, out: &mut Vec<u8>);

    fn of(value: &Datum) -> Self {
        match value {
            Datum::Base(value) => Self::from_stored(&value.bytes),
            _ => unreachable!("not a shape: {value:?}"),
        }
    }

    fn stored(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write_stored(&mut out);
        out
    }

    fn datum(&self) -> Datum {
        Datum::base(Self::TYPE, self.stored())
    }
}

/// Every NaN is one.
fn put(number: f64, out: &mut Vec<u8>) {
    let number = if number.is_nan() { f64::NAN } else { number };
    out.extend_from_slice(&number.to_be_bytes());
}

fn number_at(bytes: &[u8], at: usize) -> f64 {
    let word = bytes.get(8 * at..).and_then(|rest| rest.first_chunk());
    word.map_or(0.0, |word| f64::from_be_bytes(*word))
}

fn point_at(bytes: &[u8], at: usize) -> Point {
    Point::new(number_at(bytes, 2 * at), number_at(bytes, 2 * at + 1))
}

fn points_of(bytes: &[u8]) -> Vec<Point> {
    (0..bytes.len() / 16)
        .map(|at| point_at(bytes, at))
        .collect()
}

fn put_points(points: &[Point], out: &mut Vec<u8>) {
    out.reserve(16 * points.len());
    for point in points {
        put(point.x, out);
        put(point.y, out);
    }
}

impl Shape for Point {
    const TYPE: Oid = oid::POINT;
    fn from_stored(bytes: &[u8]) -> Point {
        point_at(bytes, 0)
    }
    fn write_stored(&self, out: &mut Vec<u8>) {
        put_points(&[*self], out);
    }
}

impl Shape for Segment {
    const TYPE: Oid = oid::LSEG;
    fn from_stored(bytes: &[u8]) -> Segment {
        Segment::new(point_at(bytes, 0), point_at(bytes, 1))
    }
    fn write_stored(&self, out: &mut Vec<u8>) {
        put_points(&self.p, out);
    }
}

impl Shape for Rectangle {
    const TYPE: Oid = oid::BOX;
    fn from_stored(bytes: &[u8]) -> Rectangle {
        Rectangle {
            high: point_at(bytes, 0),
            low: point_at(bytes, 1),
        }
    }
    fn write_stored(&self, out: &mut Vec<u8>) {
        put_points(&[self.high, self.low], out);
    }
}

impl Shape for Line {
    const TYPE: Oid = oid::LINE;
    fn from_stored(bytes: &[u8]) -> Line {
        Line {
            a: number_at(bytes, 0),
            b: number_at(bytes, 1),
            c: number_at(bytes, 2),
        }
    }
    fn write_stored(&self, out: &mut Vec<u8>) {
        for number in [self.a, self.b, self.c] {
            put(number, out);
        }
    }
}

impl Shape for Circle {
    const TYPE: Oid = oid::CIRCLE;
    fn from_stored(bytes: &[u8]) -> Circle {
        Circle {
            center: point_at(bytes, 0),
            radius: number_at(bytes, 2),
        }
    }
    fn write_stored(&self, out: &mut Vec<u8>) {
        put_points(&[self.center], out);
        put(self.radius, out);
    }
}

impl Shape for Path {
    const TYPE: Oid = oid::PATH;
    fn from_stored(bytes: &[u8]) -> Path {
        let (closed, points) = bytes.split_first().unwrap_or((&0, &[]));
        Path {
            closed: *closed == 1,
            points: points_of(points),
        }
    }
    fn write_stored(&self, out: &mut Vec<u8>) {
        out.push(self.closed.into());
        put_points(&self.points, out);
    }
}

impl Shape for Polygon {
    const TYPE: Oid = oid::POLYGON;
    fn from_stored(bytes: &[u8]) -> Polygon {
        let points = points_of(bytes);
        Polygon { points }
    }
    fn write_stored(&self, out: &mut Vec<u8>) {
        put_points(&self.points, out);
    }
}

/// A number or a point that a value is made of, counted from 0.
pub fn part(value: &BaseValue, at: i32) -> Option<Datum> {
    let ty = part_of(value.ty)?;
    let place = place_of(ty, at, value.bytes.len())?;
    Some(match ty {
        oid::POINT => Datum::base(ty, &value.bytes[place]),
        _ => number_at(&value.bytes[place], 0).into(),
    })
}

/// A value with another part; the same where the part is NULL.
///
/// # Errors
/// 2202E where it has no such part.
pub fn with_part(value: &BaseValue, at: i32, part: &Datum) -> Result<Datum> {
    let place = part_of(value.ty).and_then(|ty| place_of(ty, at, value.bytes.len()));
    let mut bytes = value.bytes.to_vec();
    let mut changed = Vec::new();
    match part {
        Datum::Null => return Ok(Datum::Base(value.clone())),
        Datum::Float8(number) => put(*number, &mut changed),
        Datum::Base(part) => changed.extend_from_slice(&part.bytes),
        _ => {}
    }
    match place {
        Some(place) if place.len() == changed.len() => bytes[place].copy_from_slice(&changed),
        _ => {
            let message = "array subscript out of range";
            return Err(Error::new(state::ARRAY_SUBSCRIPT_ERROR, message));
        }
    }
    Ok(Datum::base(value.ty, bytes))
}

fn place_of(part: Oid, at: i32, length: usize) -> Option<Range<usize>> {
    let width = if part == oid::POINT { 16 } else { 8 };
    let start = usize::try_from(at).ok()?.checked_mul(width)?;
    (start < length).then(|| start..start + width)
}

/// A text that is being read.
struct Scan<'t> {
    text: &'t str,
    rest: &'t str,
    ty: Oid,
}

impl<'t> Scan<'t> {
    fn new(text: &'t str, ty: Oid) -> Scan<'t> {
        let rest = text.trim_start_matches(is_space);
        Scan { text, rest, ty }
    }

    #[cold]
    fn invalid(&self) -> Error {
        invalid_syntax(self.ty, self.text)
    }

    /// A mark, where it is next, and the blanks behind it.
    fn mark(&mut self, mark: char) -> bool {
        match self.rest.strip_prefix(mark) {
            Some(rest) => {
                self.rest = rest.trim_start_matches(is_space);
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, mark: char) -> Result<()> {
        match self.mark(mark) {
            true => Ok(()),
            false => Err(self.invalid()),
        }
    }

    fn end(&self) -> Result<()> {
        match self.rest.is_empty() {
            true => Ok(()),
            false => Err(self.invalid()),
        }
    }

    fn number(&mut self) -> Result<f64> {
        let end = |c: char| {
            matches!(c, ',' | '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>') || is_space(c)
        };
        let length = self.rest.find(end).unwrap_or(self.rest.len());
        let (number, rest) = self.rest.split_at(length);
        let value = parse_float8(number).map_err(|error| {
            match error.code() == state::INVALID_TEXT_REPRESENTATION {
                true => self.invalid(),
                false => error,
            }
        })?;
        self.rest = rest.trim_start_matches(is_space);
        Ok(value)
    }

    /// Two numbers, perhaps in parentheses.
    fn point(&mut self) -> Result<Point> {
        let enclosed = self.mark('(');
        let x = self.number()?;
        self.expect(',')?;
        let y = self.number()?;
        if enclosed {
            self.expect(')')?;
        }
        Ok(Point::new(x, y))
    }

    /// Whether the parenthesis that is next is the only one.
    fn is_single(&self) -> bool {
        self.rest.rfind('(') == Some(0)
    }

    /// So many points within parentheses or brackets or none; whether it is brackets.
    fn points(&mut self, count: usize, may_be_open: bool) -> Result<(Vec<Point>, bool)> {
        let mut depth = 0;
        let mut open = false;
        if self.rest.starts_with('[') {
            if !may_be_open {
                return Err(self.invalid());
            }
            self.mark('[');
            (depth, open) = (1, true);
        } else if self.rest.starts_with('(') {
            let nested = self.rest[1..].trim_start_matches(is_space).starts_with('(');
            if nested || self.is_single() {
                self.mark('(');
                depth = 1;
            }
        }
        let mut points = Vec::new();
        for _ in 0..count {
            interrupt::poll()?;
            points.push(self.point()?);
            self.mark(',');
        }
        if depth > 0 && !self.mark(')') && !(open && self.mark(']')) {
            return Err(self.invalid());
        }
        Ok((points, open))
    }

    /// How many points there are, told by the commas.
    fn count(&self) -> Result<usize> {
        match self.text.matches(',').count() {
            commas if commas % 2 == 1 => Ok(commas.div_ceil(2)),
            _ => Err(self.invalid()),
        }
    }
}

fn parse_point(text: &str) -> Result<Point> {
    let mut scan = Scan::new(text, oid::POINT);
    let point = scan.point()?;
    scan.end()?;
    Ok(point)
}

fn parse_two(text: &str, ty: Oid, may_be_open: bool) -> Result<[Point; 2]> {
    let mut scan = Scan::new(text, ty);
    let (points, _) = scan.points(2, may_be_open)?;
    scan.end()?;
    match points[..] {
        [a, b] => Ok([a, b]),
        _ => Err(scan.invalid()),
    }
}

#[cold]
fn wrong_line(what: &str) -> Error {
    let message = format!("invalid line specification: {what}");
    Error::new(state::INVALID_TEXT_REPRESENTATION, message)
}

fn parse_line(text: &str) -> Result<Line> {
    let mut scan = Scan::new(text, oid::LINE);
    if !scan.mark('{') {
        let [a, b] = parse_two(text, oid::LINE, true)?;
        if a.equals(b) {
            return Err(wrong_line("must be two distinct points"));
        }
        return Line::through_both(a, b);
    }
    let a = scan.number()?;
    scan.expect(',')?;
    let b = scan.number()?;
    scan.expect(',')?;
    let c = scan.number()?;
    scan.expect('}')?;
    scan.end()?;
    let line = Line { a, b, c };
    match line.is_degenerate() {
        true => Err(wrong_line("A and B cannot both be zero")),
        false => Ok(line),
    }
}

fn parse_path(text: &str) -> Result<Path> {
    let mut scan = Scan::new(text, oid::PATH);
    let count = scan.count()?;
    let enclosed = scan.rest.starts_with('(') && scan.is_single();
    if enclosed {
        scan.mark('(');
    }
    let (points, open) = scan.points(count, true)?;
    if enclosed {
        scan.expect(')')?;
    }
    scan.end()?;
    let closed = !open;
    Ok(Path { closed, points })
}

fn parse_polygon(text: &str) -> Result<Polygon> {
    let mut scan = Scan::new(text, oid::POLYGON);
    let count = scan.count()?;
    let (points, _) = scan.points(count, false)?;
    scan.end()?;
    Ok(Polygon { points })
}

fn parse_circle(text: &str) -> Result<Circle> {
    let mut scan = Scan::new(text, oid::CIRCLE);
    let mut enclosed = scan.mark('<');
    if !enclosed && scan.rest.starts_with('(') {
        let nested = scan.rest[1..].trim_start_matches(is_space).starts_with('(');
        enclosed = nested && scan.mark('(');
    }
    let center = scan.point()?;
    scan.mark(',');
    let radius = scan.number()?;
    if radius < 0.0 {
        return Err(scan.invalid());
    }
    if enclosed && !scan.mark(')') && !scan.mark('>') {
        return Err(scan.invalid());
    }
    scan.end()?;
    Ok(Circle { center, radius })
}

/// Writes shapes with the digits that the session asks for.
struct Writer<'o> {
    digits: i32,
    out: &'o mut Vec<u8>,
}

impl Writer<'_> {
    fn number(&mut self, number: f64) {
        write_float8(number, self.digits, self.out);
    }

    fn point(&mut self, point: Point) {
        self.out.push(b'(');
        self.number(point.x);
        self.out.push(b',');
        self.number(point.y);
        self.out.push(b')');
    }

    fn points(&mut self, points: &[Point]) {
        for (at, point) in points.iter().enumerate() {
            if at > 0 {
                self.out.push(b',');
            }
            self.point(*point);
        }
    }

    fn enclosed(&mut self, points: &[Point], marks: [u8; 2]) {
        self.out.push(marks[0]);
        self.points(points);
        self.out.push(marks[1]);
    }
}

fn writer<'o>(ctx: &EvalContext<'_>, out: &'o mut Vec<u8>) -> Writer<'o> {
    let digits = ctx.format.extra_float_digits;
    Writer { digits, out }
}

fn numbers<const N: usize>(binary: &[u8]) -> Result<[f64; N]> {
    let mut reader = Reader(binary);
    let mut numbers = [0.0; N];
    for number in &mut numbers {
        *number = f64::from_be_bytes(reader.take()?);
    }
    reader.end()?;
    Ok(numbers)
}

fn receive_points(reader: &mut Reader<'_>, what: &str) -> Result<Vec<Point>> {
    let count = i32::from_be_bytes(reader.take()?);
    let count = usize::try_from(count).ok().filter(|count| *count > 0);
    let wrong = || {
        invalid(format!(
            "invalid number of points in external \"{what}\" value"
        ))
    };
    let bytes = reader.bytes(count.ok_or_else(wrong)?.saturating_mul(16))?;
    reader.end()?;
    Ok(points_of(bytes))
}

fn send_points(points: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&((points.len() / 16) as i32).to_be_bytes());
    out.extend_from_slice(points);
}

fn send_as_stored(_: &EvalContext<'_>, value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(value);
    Ok(())
}

pub(super) static POINT: BaseInputOutput = BaseInputOutput {
    ty: oid::POINT,
    input: |_, text, _| Ok(parse_point(text)?.stored()),
    output: |ctx, value, out| writer(ctx, out).point(Point::from_stored(value)),
    receive: |_, binary| {
        let [x, y] = numbers(binary)?;
        Ok(Point::new(x, y).stored())
    },
    send: send_as_stored,
    modifier: None,
};

pub(super) static LSEG: BaseInputOutput = BaseInputOutput {
    ty: oid::LSEG,
    input: |_, text, _| {
        let [a, b] = parse_two(text, oid::LSEG, true)?;
        Ok(Segment::new(a, b).stored())
    },
    output: |ctx, value, out| {
        let segment = Segment::from_stored(value);
        writer(ctx, out).enclosed(&segment.p, *b"[]");
    },
    receive: |_, binary| {
        let [a, b, c, d] = numbers(binary)?;
        Ok(Segment::new(Point::new(a, b), Point::new(c, d)).stored())
    },
    send: send_as_stored,
    modifier: None,
};

pub(super) static BOX: BaseInputOutput = BaseInputOutput {
    ty: oid::BOX,
    input: |_, text, _| {
        let [a, b] = parse_two(text, oid::BOX, false)?;
        Ok(Rectangle::new(a, b).stored())
    },
    output: |ctx, value, out| {
        let Rectangle { high, low } = Rectangle::from_stored(value);
        writer(ctx, out).points(&[high, low]);
    },
    receive: |_, binary| {
        let [a, b, c, d] = numbers(binary)?;
        Ok(Rectangle::new(Point::new(a, b), Point::new(c, d)).stored())
    },
    send: send_as_stored,
    modifier: None,
};

pub(super) static LINE: BaseInputOutput = BaseInputOutput {
    ty: oid::LINE,
    input: |_, text, _| Ok(parse_line(text)?.stored()),
    output: |ctx, value, out| {
        let line = Line::from_stored(value);
        let mut writer = writer(ctx, out);
        writer.out.push(b'{');
        writer.number(line.a);
        writer.out.push(b',');
        writer.number(line.b);
        writer.out.push(b',');
        writer.number(line.c);
        writer.out.push(b'}');
    },
    receive: |_, binary| {
        let [a, b, c] = numbers(binary)?;
        let line = Line { a, b, c };
        match line.is_degenerate() {
            true => Err(invalid(
                "invalid line specification: A and B cannot both be zero",
            )),
            false => Ok(line.stored()),
        }
    },
    send: send_as_stored,
    modifier: None,
};

pub(super) static CIRCLE: BaseInputOutput = BaseInputOutput {
    ty: oid::CIRCLE,
    input: |_, text, _| Ok(parse_circle(text)?.stored()),
    output: |ctx, value, out| {
        let circle = Circle::from_stored(value);
        let mut writer = writer(ctx, out);
        writer.out.push(b'<');
        writer.point(circle.center);
        writer.out.push(b',');
        writer.number(circle.radius);
        writer.out.push(b'>');
    },
    receive: |_, binary| {
        let [x, y, radius] = numbers(binary)?;
        if radius < 0.0 {
            return Err(invalid("invalid radius in external \"circle\" value"));
        }
        let center = Point::new(x, y);
        Ok(Circle { center, radius }.stored())
    },
    send: send_as_stored,
    modifier: None,
};

pub(super) static PATH: BaseInputOutput = BaseInputOutput {
    ty: oid::PATH,
    input: |_, text, _| Ok(parse_path(text)?.stored()),
    output: |ctx, value, out| {
        let path = Path::from_stored(value);
        let marks = if path.closed { *b"()" } else { *b"[]" };
        writer(ctx, out).enclosed(&path.points, marks);
    },
    receive: |_, binary| {
        let mut reader = Reader(binary);
        let [closed] = reader.take()?;
        let points = receive_points(&mut reader, "path")?;
        let closed = closed != 0;
        Ok(Path { closed, points }.stored())
    },
    send: |_, value, out| {
        let (closed, points) = value.split_first().unwrap_or((&0, &[]));
        out.push(*closed);
        send_points(points, out);
        Ok(())
    },
    modifier: None,
};

pub(super) static POLYGON: BaseInputOutput = BaseInputOutput {
    ty: oid::POLYGON,
    input: |_, text, _| Ok(parse_polygon(text)?.stored()),
    output: |ctx, value, out| {
        let points = Polygon::from_stored(value).points;
        writer(ctx, out).enclosed(&points, *b"()");
    },
    receive: |_, binary| {
        let points = receive_points(&mut Reader(binary), "polygon")?;
        Ok(Polygon { points }.stored())
    },
    send: |_, value, out| {
        send_points(value, out);
        Ok(())
    },
    modifier: None,
};
