//! What computes each function: of shapes, not of values.

use crate::func::number::{float, int};
use crate::func::{EvalContext, EvalResult};
use crate::geometry::line::Closest;
use crate::geometry::number::*;
use crate::geometry::{Circle, Line, Path, Point, Polygon, Rectangle, Segment};
use crate::io::geometric::Shape;
use throng_types::Datum;

/// An argument, as it is computed with.
trait Argument {
    fn of(value: &Datum) -> Self;
}

/// What a function comes to.
trait Answer {
    fn datum(self) -> Datum;
}

impl<S: Shape> Answer for S {
    fn datum(self) -> Datum {
        Shape::datum(&self)
    }
}

macro_rules! shapes {
    ($($shape:ident)*) => { $(
        impl Argument for $shape {
            fn of(value: &Datum) -> $shape {
                Shape::of(value)
            }
        }
    )* };
}
shapes! { Point Segment Line Rectangle Circle Path Polygon }

impl Argument for f64 {
    fn of(value: &Datum) -> f64 {
        float(value)
    }
}
impl Argument for i32 {
    fn of(value: &Datum) -> i32 {
        int(value) as i32
    }
}

impl Answer for bool {
    fn datum(self) -> Datum {
        self.into()
    }
}
impl Answer for f64 {
    fn datum(self) -> Datum {
        self.into()
    }
}
impl Answer for i32 {
    fn datum(self) -> Datum {
        self.into()
    }
}
/// NULL where there is none.
impl<A: Answer> Answer for Option<A> {
    fn datum(self) -> Datum {
        self.map_or(Datum::Null, Answer::datum)
    }
}

/// What is closest, unless its distance cannot be told.
fn known((distance, point): Closest) -> Option<Point> {
    (!distance.is_nan()).then_some(point)
}

fn moved(circle: Circle, center: Point) -> Circle {
    Circle { center, ..circle }
}

/// One line a function: its arguments, and what it comes to.
macro_rules! computed {
    ($($name:ident($($arg:ident: $shape:ident),*) $answer:expr;)*) => { $(
        pub(super) fn $name(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
            let mut values = args.iter();
            $(let $arg = match values.next() {
                Some(value) => <$shape as Argument>::of(value),
                None => return Ok(Datum::Null),
            };)*
            Ok(Answer::datum($answer))
        }
    )* };
}

computed! {
    point_slope(a: Point, b: Point) a.slope(b)?;
    lseg_construct(a: Point, b: Point) Segment::new(a, b);
    point_vert(a: Point, b: Point) equal(a.x, b.x);
    point_horiz(a: Point, b: Point) equal(a.y, b.y);
    points_box(a: Point, b: Point) Rectangle::new(a, b);
    cr_circle(a: Point, b: f64) Circle { center: a, radius: b };
    line_construct_pp(a: Point, b: Point) Line::through_both(a, b)?;
    point_box(a: Point) Rectangle { high: a, low: a };
    point_above(a: Point, b: Point) greater(a.y, b.y);
    point_left(a: Point, b: Point) less(a.x, b.x);
    point_right(a: Point, b: Point) greater(a.x, b.x);
    point_below(a: Point, b: Point) less(a.y, b.y);
    point_eq(a: Point, b: Point) a.equals(b);
    on_pb(a: Point, b: Rectangle) b.has(a);
    on_ppath(a: Point, b: Path) b.has(a)?;
    point_distance(a: Point, b: Point) a.distance(b)?;
    dist_pl(a: Point, b: Line) b.closest_to(a)?.0;
    dist_ps(a: Point, b: Segment) b.closest_to(a)?.0;
    dist_pb(a: Point, b: Rectangle) b.closest_to(a)?.0;
    dist_ppath(a: Point, b: Path) b.distance_of(a)?;
    point_ne(a: Point, b: Point) !a.equals(b);
    point_add(a: Point, b: Point) a.plus(b)?;
    point_sub(a: Point, b: Point) a.minus(b)?;
    point_mul(a: Point, b: Point) a.times(b)?;
    point_div(a: Point, b: Point) a.over(b)?;
    pt_contained_poly(a: Point, b: Polygon) b.has(a)?;
    pt_contained_circle(a: Point, b: Circle) b.has(a)?;
    dist_pc(a: Point, b: Circle) b.distance_to(b.center.distance(a)?)?;
    on_pl(a: Point, b: Line) b.has(a)?;
    on_ps(a: Point, b: Segment) b.has(a)?;
    close_pl(a: Point, b: Line) known(b.closest_to(a)?);
    close_ps(a: Point, b: Segment) known(b.closest_to(a)?);
    close_pb(a: Point, b: Rectangle) known(b.closest_to(a)?);
    dist_ppoly(a: Point, b: Polygon) b.distance_of(a)?;
    lseg_parallel(a: Segment, b: Segment) equal(a.slope()?, b.slope()?);
    lseg_perp(a: Segment, b: Segment) equal(a.slope()?, b.inverse_slope()?);
    lseg_vertical(a: Segment) a.is_vertical();
    lseg_horizontal(a: Segment) a.is_horizontal();
    lseg_length(a: Segment) a.length()?;
    lseg_center(a: Segment) a.p[0].middle(a.p[1])?;
    dist_sl(a: Segment, b: Line) a.closest_to_line(b)?.0;
    dist_sb(a: Segment, b: Rectangle) b.closest_to_segment(a)?.0;
    lseg_distance(a: Segment, b: Segment) a.closest_to_segment(b)?.0;
    dist_sp(a: Segment, b: Point) a.closest_to(b)?.0;
    lseg_intersect(a: Segment, b: Segment) a.meets(b)?.is_some();
    lseg_eq(a: Segment, b: Segment) a.equals(b);
    lseg_interpt(a: Segment, b: Segment) a.meets(b)?;
    inter_sl(a: Segment, b: Line) a.meets_line(b)?.is_some();
    inter_sb(a: Segment, b: Rectangle) b.meets(a)?;
    on_sl(a: Segment, b: Line) b.has(a.p[0])? && b.has(a.p[1])?;
    on_sb(a: Segment, b: Rectangle) b.has(a.p[0]) && b.has(a.p[1]);
    close_sb(a: Segment, b: Rectangle) known(b.closest_to_segment(a)?);
    close_lseg(a: Segment, b: Segment) {
        if a.slope()? == b.slope()? {
            None
        } else {
            known(b.closest_to_segment(a)?)
        }
    };
    lseg_ne(a: Segment, b: Segment) !a.equals(b);
    lseg_lt(a: Segment, b: Segment) less(a.length()?, b.length()?);
    lseg_le(a: Segment, b: Segment) at_most(a.length()?, b.length()?);
    lseg_gt(a: Segment, b: Segment) greater(a.length()?, b.length()?);
    lseg_ge(a: Segment, b: Segment) at_least(a.length()?, b.length()?);
    line_parallel(a: Line, b: Line) a.meets(b)?.is_none();
    line_perp(a: Line, b: Line) a.is_perpendicular(b)?;
    line_vertical(a: Line) is_zero(a.b);
    line_horizontal(a: Line) is_zero(a.a);
    line_distance(a: Line, b: Line) a.distance(b)?;
    dist_lp(a: Line, b: Point) a.closest_to(b)?.0;
    dist_ls(a: Line, b: Segment) b.closest_to_line(a)?.0;
    inter_lb(a: Line, b: Rectangle) b.meets_line(a)?;
    close_ls(a: Line, b: Segment) {
        if b.slope()? == a.slope()? {
            None
        } else {
            known(b.closest_to_line(a)?)
        }
    };
    line_intersect(a: Line, b: Line) a.meets(b)?.is_some();
    line_eq(a: Line, b: Line) a.equals(b)?;
    line_interpt(a: Line, b: Line) a.meets(b)?;
    box_area(a: Rectangle) a.area()?;
    box_width(a: Rectangle) a.width()?;
    box_height(a: Rectangle) a.height()?;
    box_diagonal(a: Rectangle) Segment::new(a.high, a.low);
    box_poly(a: Rectangle) Polygon { points: a.corners().to_vec() };
    box_circle(a: Rectangle) a.circle()?;
    box_center(a: Rectangle) a.center()?;
    boxes_bound_box(a: Rectangle, b: Rectangle) a.with(b);
    box_contain_pt(a: Rectangle, b: Point) a.has(b);
    box_left(a: Rectangle, b: Rectangle) less(a.high.x, b.low.x);
    box_overleft(a: Rectangle, b: Rectangle) at_most(a.high.x, b.high.x);
    box_overright(a: Rectangle, b: Rectangle) at_least(a.low.x, b.low.x);
    box_right(a: Rectangle, b: Rectangle) greater(a.low.x, b.high.x);
    box_contained(a: Rectangle, b: Rectangle) b.contains(a);
    box_contain(a: Rectangle, b: Rectangle) a.contains(b);
    box_same(a: Rectangle, b: Rectangle) a.high.equals(b.high) && a.low.equals(b.low);
    box_overlap(a: Rectangle, b: Rectangle) a.overlaps(b);
    box_ge(a: Rectangle, b: Rectangle) at_least(a.area()?, b.area()?);
    box_gt(a: Rectangle, b: Rectangle) greater(a.area()?, b.area()?);
    box_eq(a: Rectangle, b: Rectangle) equal(a.area()?, b.area()?);
    box_lt(a: Rectangle, b: Rectangle) less(a.area()?, b.area()?);
    box_le(a: Rectangle, b: Rectangle) at_most(a.area()?, b.area()?);
    dist_bp(a: Rectangle, b: Point) a.closest_to(b)?.0;
    box_distance(a: Rectangle, b: Rectangle) a.center()?.distance(b.center()?)?;
    dist_bs(a: Rectangle, b: Segment) a.closest_to_segment(b)?.0;
    box_above_eq(a: Rectangle, b: Rectangle) at_least(a.low.y, b.high.y);
    box_below_eq(a: Rectangle, b: Rectangle) at_most(a.high.y, b.low.y);
    box_intersect(a: Rectangle, b: Rectangle) a.common(b);
    box_add(a: Rectangle, b: Point) a.changed(|point| point.plus(b))?;
    box_sub(a: Rectangle, b: Point) a.changed(|point| point.minus(b))?;
    box_mul(a: Rectangle, b: Point) a.changed(|point| point.times(b))?;
    box_div(a: Rectangle, b: Point) a.changed(|point| point.over(b))?;
    box_below(a: Rectangle, b: Rectangle) less(a.high.y, b.low.y);
    box_overbelow(a: Rectangle, b: Rectangle) at_most(a.high.y, b.high.y);
    box_overabove(a: Rectangle, b: Rectangle) at_least(a.low.y, b.low.y);
    box_above(a: Rectangle, b: Rectangle) greater(a.low.y, b.high.y);
    path_area(a: Path) a.area()?;
    path_isclosed(a: Path) a.closed;
    path_isopen(a: Path) !a.closed;
    path_close(a: Path) Path { closed: true, ..a };
    path_open(a: Path) Path { closed: false, ..a };
    path_poly(a: Path) a.polygon()?;
    path_length(a: Path) a.length()?;
    path_npoints(a: Path) a.points.len() as i32;
    path_distance(a: Path, b: Path) a.distance(&b)?;
    path_add(a: Path, b: Path) a.followed_by(b);
    path_add_pt(a: Path, b: Point) a.changed(|point| point.plus(b))?;
    path_sub_pt(a: Path, b: Point) a.changed(|point| point.minus(b))?;
    path_mul_pt(a: Path, b: Point) a.changed(|point| point.times(b))?;
    path_div_pt(a: Path, b: Point) a.changed(|point| point.over(b))?;
    path_contain_pt(a: Path, b: Point) a.has(b)?;
    dist_pathp(a: Path, b: Point) a.distance_of(b)?;
    path_n_eq(a: Path, b: Path) a.points.len() == b.points.len();
    path_n_lt(a: Path, b: Path) a.points.len() < b.points.len();
    path_n_gt(a: Path, b: Path) a.points.len() > b.points.len();
    path_n_le(a: Path, b: Path) a.points.len() <= b.points.len();
    path_n_ge(a: Path, b: Path) a.points.len() >= b.points.len();
    path_inter(a: Path, b: Path) a.meets(&b)?;
    poly_box(a: Polygon) a.around();
    poly_path(a: Polygon) Path { closed: true, points: a.points };
    poly_circle(a: Polygon) a.circle()?;
    poly_center(a: Polygon) a.circle()?.center;
    poly_npoints(a: Polygon) a.points.len() as i32;
    poly_left(a: Polygon, b: Polygon) a.around().high.x < b.around().low.x;
    poly_overleft(a: Polygon, b: Polygon) a.around().high.x <= b.around().high.x;
    poly_overright(a: Polygon, b: Polygon) a.around().low.x >= b.around().low.x;
    poly_right(a: Polygon, b: Polygon) a.around().low.x > b.around().high.x;
    poly_contained(a: Polygon, b: Polygon) b.contains(&a)?;
    poly_contain(a: Polygon, b: Polygon) a.contains(&b)?;
    poly_same(a: Polygon, b: Polygon) a.equals(&b)?;
    poly_overlap(a: Polygon, b: Polygon) a.overlaps(&b)?;
    poly_distance(a: Polygon, b: Polygon) a.distance(&b)?;
    poly_contain_pt(a: Polygon, b: Point) a.has(b)?;
    dist_polyc(a: Polygon, b: Circle) b.distance_to(a.distance_of(b.center)?)?;
    poly_below(a: Polygon, b: Polygon) a.around().high.y < b.around().low.y;
    poly_overbelow(a: Polygon, b: Polygon) a.around().high.y <= b.around().high.y;
    poly_overabove(a: Polygon, b: Polygon) a.around().low.y >= b.around().low.y;
    poly_above(a: Polygon, b: Polygon) a.around().low.y > b.around().high.y;
    dist_polyp(a: Polygon, b: Point) a.distance_of(b)?;
    circle_center(a: Circle) a.center;
    circle_area(a: Circle) a.area()?;
    circle_diameter(a: Circle) mul(a.radius, 2.0)?;
    circle_radius(a: Circle) a.radius;
    circle_box(a: Circle) a.rectangle()?;
    circle_poly_default(a: Circle) Polygon::of_circle(a, 12)?;
    circle_contain_pt(a: Circle, b: Point) a.has(b)?;
    circle_eq(a: Circle, b: Circle) equal(a.area()?, b.area()?);
    circle_ne(a: Circle, b: Circle) unequal(a.area()?, b.area()?);
    circle_lt(a: Circle, b: Circle) less(a.area()?, b.area()?);
    circle_gt(a: Circle, b: Circle) greater(a.area()?, b.area()?);
    circle_le(a: Circle, b: Circle) at_most(a.area()?, b.area()?);
    circle_ge(a: Circle, b: Circle) at_least(a.area()?, b.area()?);
    circle_left(a: Circle, b: Circle) less(add(a.center.x, a.radius)?, sub(b.center.x, b.radius)?);
    circle_overleft(a: Circle, b: Circle) at_most(add(a.center.x, a.radius)?, add(b.center.x, b.radius)?);
    circle_overright(a: Circle, b: Circle) at_least(sub(a.center.x, a.radius)?, sub(b.center.x, b.radius)?);
    circle_right(a: Circle, b: Circle) greater(sub(a.center.x, a.radius)?, add(b.center.x, b.radius)?);
    circle_contained(a: Circle, b: Circle) at_most(a.center.distance(b.center)?, sub(b.radius, a.radius)?);
    circle_contain(a: Circle, b: Circle) at_most(a.center.distance(b.center)?, sub(a.radius, b.radius)?);
    circle_same(a: Circle, b: Circle) a.equals(b);
    circle_overlap(a: Circle, b: Circle) at_most(a.center.distance(b.center)?, add(a.radius, b.radius)?);
    circle_above(a: Circle, b: Circle) greater(sub(a.center.y, a.radius)?, add(b.center.y, b.radius)?);
    circle_below(a: Circle, b: Circle) less(add(a.center.y, a.radius)?, sub(b.center.y, b.radius)?);
    circle_add_pt(a: Circle, b: Point) moved(a, a.center.plus(b)?);
    circle_sub_pt(a: Circle, b: Point) moved(a, a.center.minus(b)?);
    circle_mul_pt(a: Circle, b: Point) Circle { center: a.center.times(b)?, radius: mul(a.radius, hypotenuse(b.x, b.y)?)? };
    circle_div_pt(a: Circle, b: Point) Circle { center: a.center.over(b)?, radius: div(a.radius, hypotenuse(b.x, b.y)?)? };
    circle_distance(a: Circle, b: Circle) {
        let apart = sub(a.center.distance(b.center)?, add(a.radius, b.radius)?)?;
        if apart < 0.0 { 0.0 } else { apart }
    };
    dist_cpoly(a: Circle, b: Polygon) a.distance_to(b.distance_of(a.center)?)?;
    circle_overbelow(a: Circle, b: Circle) at_most(add(a.center.y, a.radius)?, add(b.center.y, b.radius)?);
    circle_overabove(a: Circle, b: Circle) at_least(sub(a.center.y, a.radius)?, sub(b.center.y, b.radius)?);
    dist_cpoint(a: Circle, b: Point) a.distance_to(a.center.distance(b)?)?;
    construct_point(a: f64, b: f64) Point::new(a, b);
    circle_poly(a: i32, b: Circle) Polygon::of_circle(b, a)?;
}
