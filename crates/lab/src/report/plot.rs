//! Plots as inline SVG: lines over numbers of clients, with spreads and fitted curves.
//!
//! The horizontal axis is logarithmic, since clients are doubled from point to point; so is the
//! vertical one where values differ by more than a line of one scale can show. Colours are classes
//! (`c0` to `c7`) which the page's style fills in, one set for light and one for dark.

use std::fmt::Write;

use super::escape;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 44.0;
/// Colours that the style knows; more series begin again.
pub const COLOURS: usize = 8;
/// From this ratio of the most to the least on, the vertical axis is logarithmic.
const WIDE: f64 = 30.0;

/// What is drawn.
pub struct Plot<'a> {
    /// For readers that cannot see it.
    pub title: &'a str,
    pub x: &'a str,
    /// How a value on the vertical axis is written.
    pub show: fn(f64) -> String,
    /// The top of the vertical axis, where it is given: 1 for shares.
    pub most: Option<f64>,
    pub series: Vec<Series<'a>>,
}

/// One line.
pub struct Series<'a> {
    pub name: &'a str,
    /// Below [`COLOURS`], or taken around.
    pub colour: usize,
    pub dashed: bool,
    /// Ascending in x.
    pub points: Vec<Mark>,
    /// A smooth curve beside the points: (x, y).
    pub curve: Vec<(f64, f64)>,
}

/// A measured value with its spread.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    pub x: f64,
    pub y: f64,
    pub least: f64,
    pub most: f64,
}

impl Plot<'_> {
    /// An `<svg class="plot">` element; empty where there is nothing to draw.
    pub fn draw(&self) -> String {
        let Some(scale) = Scale::of(self) else {
            return String::new();
        };
        let mut svg = format!(
            "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n",
            escape(self.title)
        );
        self.draw_axes(&scale, &mut svg);
        for series in &self.series {
            draw_series(series, self, &scale, &mut svg);
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn draw_axes(&self, scale: &Scale, svg: &mut String) {
        // Writing to a string cannot fail, here and below.
        for y in scale.y_ticks() {
            let at = scale.y(y);
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.0}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
                 <text class=\"tick\" x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 8.0,
                at + 4.0,
                (self.show)(y)
            );
        }
        let bottom = HEIGHT - BOTTOM;
        for x in &scale.xs {
            let at = scale.x(*x);
            let _ = writeln!(
                svg,
                "<line class=\"axis\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{bottom}\" y2=\"{:.0}\"/>\
                 <text class=\"tick\" x=\"{at:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{x}</text>",
                bottom + 5.0,
                bottom + 19.0
            );
        }
        let _ = writeln!(
            svg,
            "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{:.0}\" y1=\"{bottom}\" y2=\"{bottom}\"/>\
             <text class=\"label\" x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{}</text>",
            WIDTH - RIGHT,
            f64::midpoint(LEFT, WIDTH - RIGHT),
            HEIGHT - 6.0,
            escape(self.x)
        );
    }
}

fn draw_series(series: &Series<'_>, plot: &Plot<'_>, scale: &Scale, svg: &mut String) {
    let colour = series.colour % COLOURS;
    let path = |points: &mut dyn Iterator<Item = (f64, f64)>| {
        let mut path = String::new();
        for (x, y) in points {
            let command = if path.is_empty() { 'M' } else { 'L' };
            let _ = write!(path, "{command}{:.1} {:.1}", scale.x(x), scale.y(y));
        }
        path
    };
    let _ = writeln!(svg, "<g class=\"series c{colour}\">");
    if !series.curve.is_empty() {
        let curve = path(&mut series.curve.iter().copied());
        let _ = writeln!(svg, "<path class=\"curve\" d=\"{curve}\"/>");
    }
    let dashed = if series.dashed { " dashed" } else { "" };
    let line = path(&mut series.points.iter().map(|mark| (mark.x, mark.y)));
    let _ = writeln!(svg, "<path class=\"line{dashed}\" d=\"{line}\"/>");
    for mark in &series.points {
        let (x, y) = (scale.x(mark.x), scale.y(mark.y));
        let _ = writeln!(
            svg,
            "<g><title>{}, {} {}: {} ({} to {})</title>\
             <line class=\"spread\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>\
             <circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"/></g>",
            escape(series.name),
            mark.x,
            escape(plot.x),
            (plot.show)(mark.y),
            (plot.show)(mark.least),
            (plot.show)(mark.most),
            scale.y(mark.least),
            scale.y(mark.most),
        );
    }
    svg.push_str("</g>\n");
}

/// From values to places.
struct Scale {
    /// Where the points are, ascending, each once.
    xs: Vec<f64>,
    y_least: f64,
    y_most: f64,
    logarithmic: bool,
}

impl Scale {
    fn of(plot: &Plot<'_>) -> Option<Scale> {
        let marks = || plot.series.iter().flat_map(|series| &series.points);
        let mut xs: Vec<f64> = marks().map(|mark| mark.x).collect();
        xs.sort_unstable_by(f64::total_cmp);
        xs.dedup();
        if xs.is_empty() {
            return None;
        }
        let most = marks().map(|mark| mark.most).fold(0.0, f64::max);
        let least = marks().map(|mark| mark.y).fold(f64::INFINITY, f64::min);
        let logarithmic = plot.most.is_none() && least > 0.0 && most / least > WIDE;
        let lowest = marks().map(|mark| mark.least).filter(|y| *y > 0.0);
        let lowest = lowest.fold(f64::INFINITY, f64::min);
        let (y_least, y_most) = match logarithmic {
            true => (lowest.log10().floor(), most.log10().ceil()),
            false => (0.0, plot.most.unwrap_or_else(|| round_up(most))),
        };
        Some(Scale {
            xs,
            y_least,
            y_most: if y_most > y_least {
                y_most
            } else {
                y_least + 1.0
            },
            logarithmic,
        })
    }

    fn x(&self, x: f64) -> f64 {
        let (first, last) = (self.xs[0], self.xs[self.xs.len() - 1]);
        let share = match last > first {
            true => (x / first).ln() / (last / first).ln(),
            false => 0.5,
        };
        LEFT + 12.0 + share * (WIDTH - LEFT - RIGHT - 24.0)
    }

    fn y(&self, y: f64) -> f64 {
        let value = match self.logarithmic {
            true => y.max(f64::MIN_POSITIVE).log10(),
            false => y,
        };
        let share = (value - self.y_least) / (self.y_most - self.y_least);
        HEIGHT - BOTTOM - share.clamp(0.0, 1.0) * (HEIGHT - TOP - BOTTOM)
    }

    fn y_ticks(&self) -> Vec<f64> {
        match self.logarithmic {
            true => {
                let (from, to) = (self.y_least as i32, self.y_most as i32);
                // Not more than fit above each other.
                let step = ((to - from) / 6 + 1) as usize;
                (from..=to)
                    .step_by(step)
                    .map(|power| 10_f64.powi(power))
                    .collect()
            }
            false => (0..=4).map(|i| self.y_most * f64::from(i) / 4.0).collect(),
        }
    }
}

/// The next of 1, 1.2, 1.6, 2, 2.4, 3.2, 4, 5, 6, 8 times a power of ten: what divides well by
/// four.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 1.2, 1.6, 2.0, 2.4, 3.2, 4.0, 5.0, 6.0, 8.0];
    let fitting = steps.iter().find(|step| **step * power >= value);
    fitting.map_or(10.0 * power, |step| step * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(values: &[(f64, f64)]) -> Plot<'static> {
        let mark = |&(x, y): &(f64, f64)| Mark {
            x,
            y,
            least: y * 0.9,
            most: y * 1.1,
        };
        Plot {
            title: "a <plot>",
            x: "clients",
            show: |y| format!("{y:.0}"),
            most: None,
            series: vec![Series {
                name: "a & b",
                colour: 9,
                dashed: false,
                points: values.iter().map(mark).collect(),
                curve: vec![(1.0, 10.0), (2.0, 20.0)],
            }],
        }
    }

    #[test]
    fn points_stand_in_order_within_the_frame() {
        let svg = plot(&[(1.0, 10.0), (2.0, 20.0), (8.0, 15.0)]).draw();
        let circles: Vec<f64> = (svg.split("cx=\"").skip(1))
            .map(|rest| {
                rest.split('"')
                    .next()
                    .expect("quoted")
                    .parse()
                    .expect("a number")
            })
            .collect();
        assert_eq!(circles.len(), 3);
        assert!(circles.is_sorted() && circles[0] > LEFT && circles[2] < WIDTH - RIGHT);
        // Doubled once and doubled twice more.
        let steps = (circles[1] - circles[0], circles[2] - circles[1]);
        assert!((steps.1 / steps.0 - 2.0).abs() < 0.01, "{circles:?}");
        assert!(svg.contains("a &lt;plot&gt;") && svg.contains("series c1"));
        assert!(svg.contains("a &amp; b, 2 clients: 20 (18 to 22)"));
    }

    #[test]
    fn odd_values_are_drawn_too() {
        assert_eq!(plot(&[]).draw(), "");
        for values in [&[(1.0, 0.0)][..], &[(4.0, 5.0)], &[(1.0, 1e-3), (2.0, 1e9)]] {
            let svg = plot(values).draw();
            assert!(
                svg.contains("<circle") && !svg.contains("NaN") && !svg.contains("inf"),
                "{svg}"
            );
        }
    }

    #[test]
    fn tops_divide_well() {
        for (value, top) in [
            (0.0, 1.0),
            (1.0, 1.0),
            (17.0, 20.0),
            (2_100.0, 2_400.0),
            (95.0, 100.0),
        ] {
            assert_eq!(round_up(value), top, "{value}");
        }
    }
}
