//! Flame graphs (B. Gregg, *The Flame Graph*, CACM 2016), as SVG for a page of ours.
//!
//! ```text
//!              ┌ inner ┐                    a frame is as wide as its share of the weight,
//!       ┌───── b ──────┐┌ c ┐               stands on its caller,
//!  ┌─────────────── a ───────────┐┌ d ┐     and siblings are in the order of their names
//! ```
//!
//! The crate `inferno` draws such graphs too, but in colours of its own, which a page cannot turn
//! dark, and it changes the features of crates that DataFusion is built on. Colours here say
//! something: frames of the structure under test stand out, the kernel's are grey.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::Profile;
use super::symbol::is_kernel;
use crate::html::escape;

/// Units of the drawing's width; the page scales it.
const WIDTH: f64 = 1160.0;
const HEIGHT: usize = 18;
/// Of a letter, in the same units, at the size that the page's style gives it.
const LETTER: f64 = 6.3;
/// Frames that are narrower are left out, and what stands on them.
const NARROWEST: f64 = 0.4;
/// Shades that tell neighbours apart.
const SHADES: usize = 4;

#[derive(Default)]
struct Node<'a> {
    weight: u64,
    callees: BTreeMap<&'a str, Node<'a>>,
}

impl<'a> Node<'a> {
    fn add(&mut self, stack: &'a str, weight: u64) {
        let mut node = self;
        node.weight += weight;
        for name in stack.split(';') {
            node = node.callees.entry(name).or_default();
            node.weight += weight;
        }
    }

    /// Levels above this one that are wide enough to be drawn.
    fn depth(&self, scale: f64) -> usize {
        let drawn = self
            .callees
            .values()
            .filter(|callee| callee.width(scale) >= NARROWEST);
        drawn
            .map(|callee| 1 + callee.depth(scale))
            .max()
            .unwrap_or(0)
    }

    fn width(&self, scale: f64) -> f64 {
        self.weight as f64 * scale
    }
}

/// An `<svg class="flame">` element; frames with one of `functions` in their names are marked. None
/// of an empty profile.
pub fn draw(profile: &Profile, functions: &[&str]) -> Option<String> {
    let mut root = Node::default();
    for (stack, weight) in &profile.folded {
        root.add(stack, *weight);
    }
    if root.weight == 0 {
        return None;
    }
    let scale = WIDTH / root.weight as f64;
    let depth = root.depth(scale);
    let height = (depth + 1) * HEIGHT;
    let mut svg = format!(
        "<svg class=\"flame\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"flame graph\">\n"
    );
    let mut drawing = Drawing {
        svg: &mut svg,
        scale,
        levels: depth,
        total: root.weight,
        off_cpu: profile.off_cpu,
        functions,
    };
    drawing.frame("all", &root, 0.0, 0);
    svg.push_str("</svg>\n");
    Some(svg)
}

struct Drawing<'a> {
    svg: &'a mut String,
    scale: f64,
    levels: usize,
    total: u64,
    off_cpu: bool,
    functions: &'a [&'a str],
}

impl Drawing<'_> {
    /// Draws a frame and what stands on it.
    fn frame(&mut self, name: &str, node: &Node<'_>, x: f64, level: usize) {
        let width = node.width(self.scale);
        if width < NARROWEST {
            return;
        }
        let y = (self.levels - level) * HEIGHT;
        let share = node.weight as f64 / self.total as f64 * 100.0;
        let amount = match self.off_cpu {
            true => format!("{:.3} ms off the core", node.weight as f64 / 1e6),
            false => format!("{} samples", node.weight),
        };
        let letters = ((width - 4.0) / LETTER).max(0.0) as usize;
        // Writing to a string cannot fail.
        let _ = writeln!(
            self.svg,
            "<g class=\"{}\" data-x=\"{x:.2}\" data-w=\"{width:.2}\"><title>{name}: {amount}, {share:.2} %</title>\
             <rect x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{}\"/>\
             <text x=\"{:.2}\" y=\"{}\">{}</text></g>",
            self.class(name),
            HEIGHT - 1,
            x + 3.0,
            y + 13,
            escape(&short(name, letters)),
            name = escape(name),
        );
        let mut at = x;
        for (name, callee) in &node.callees {
            self.frame(name, callee, at, level + 1);
            at += callee.width(self.scale);
        }
    }

    fn class(&self, name: &str) -> String {
        if self
            .functions
            .iter()
            .any(|function| name.contains(function))
        {
            return "hit".to_owned();
        }
        if is_kernel(name) || name.starts_with('[') {
            return "kernel".to_owned();
        }
        let sum: usize = name.bytes().map(usize::from).sum();
        format!("s{}", sum % SHADES)
    }
}

/// As much of the name as fits: without its path first, then cut.
fn short(name: &str, letters: usize) -> String {
    if letters < 3 {
        return String::new();
    }
    if name.chars().count() <= letters {
        return name.to_owned();
    }
    // The path ends before the last name; what follows a `<` belongs to the name.
    let head = name.find('<').filter(|at| *at > 0).unwrap_or(name.len());
    let path = name[..head].trim_end_matches("::");
    let last = path.rfind("::").map_or(0, |at| at + 2);
    let tail = &name[last..];
    match tail.chars().count() <= letters {
        true => tail.to_owned(),
        false => tail.chars().take(letters - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_as_wide_as_their_share() {
        let profile = Profile {
            off_cpu: false,
            total: 4,
            lost: 0,
            folded: vec![
                ("core;a;throng_sync::spin".into(), 3),
                ("core;c<T>".into(), 1),
            ],
        };
        let svg = draw(&profile, &["throng_sync"]).expect("not empty");
        let frame = |name: &str| {
            let line = svg
                .lines()
                .find(|line| line.contains(&format!("<title>{name}:")));
            line.unwrap_or_else(|| panic!("no {name} in {svg}"))
        };
        assert!(frame("core").contains("data-x=\"0.00\" data-w=\"1160.00\""));
        assert!(
            frame("throng_sync::spin").contains("class=\"hit\" data-x=\"0.00\" data-w=\"870.00\"")
        );
        assert!(frame("c&lt;T&gt;").contains("data-x=\"870.00\" data-w=\"290.00\""));
        assert!(frame("c&lt;T&gt;").contains("1 samples, 25.00 %"));
        let empty = Profile {
            folded: Vec::new(),
            total: 0,
            ..profile
        };
        assert!(draw(&empty, &[]).is_none());
    }

    #[test]
    fn names_that_do_not_fit_lose_their_path_first() {
        assert_eq!(
            short("throng_sync::spin::lock", 30),
            "throng_sync::spin::lock"
        );
        assert_eq!(short("throng_sync::spin::lock", 10), "lock");
        assert_eq!(short("throng_sync::spin::lock_contended", 8), "lock_co…");
        assert_eq!(short("a::b::<T as c::D>::e", 5), "b::<…");
        assert_eq!(short("anything", 2), "");
    }
}
