//! In which order relations are joined: the cheapest tree over connected sets of them, bushy ones
//! included, by dynamic programming; greedily where there are too many.
//!
//! ```text
//! pairs of connected sets that an edge connects (Moerkotte and Neumann, "Analysis of Two Existing and One New Dynamic
//! Programming Algorithm", VLDB 2006)  ─► the cheapest join of each union  ─► parts without edges between them, as they come
//! ```
//! What a join costs, and whether it may be, is asked of [`Joins`].

use std::collections::HashMap;

use foldhash::fast::FixedState;
use throng_types::interrupt;

/// Relations by their numbers, as bits.
pub(super) type Set = u64;
/// More relations than that are not joined at once.
pub(super) const MOST_RELATIONS: usize = 60;
/// Pairs of sets beyond which the search would take longer than what it finds is worth.
const MOST_PAIRS: usize = 10_000;

/// How two sets of relations are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Hash,
    /// The right side, one relation, is read by key for each row of the left one.
    Keyed,
    /// All pairs are looked at.
    Loop,
}

/// The cheapest known way to a set's rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Best {
    pub rows: f64,
    pub cost: f64,
    /// None for one relation.
    pub join: Option<(Set, Set, Way)>,
}

/// The cheapest ways to sets of relations.
pub(super) type Table = HashMap<Set, Best, FixedState>;

/// What joins cost.
pub(super) trait Joins {
    /// Rows and cost of one relation.
    fn relation(&self, at: usize) -> (f64, f64);
    /// Rows of a set's join.
    fn rows(&mut self, set: Set) -> f64;
    /// The cost of a left side joined with a right one, both included, and how; None where that may
    /// not be.
    fn join(&mut self, left: (Set, Best), right: (Set, Best), rows: f64) -> Option<(f64, Way)>;
}

pub(super) fn bits(set: Set) -> impl Iterator<Item = usize> {
    let mut rest = set;
    std::iter::from_fn(move || {
        let at = rest.trailing_zeros() as usize;
        (rest != 0).then(|| {
            rest &= rest - 1;
            at
        })
    })
}

/// The cheapest tree over all relations: what each set in it is joined of. `edges`: of each
/// relation those that it has a condition with. None where no order is allowed.
pub(super) fn cheapest(edges: &[Set], joins: &mut dyn Joins) -> Option<Table> {
    let mut table = Table::default();
    for at in 0..edges.len() {
        let (rows, cost) = joins.relation(at);
        let best = Best {
            rows,
            cost,
            join: None,
        };
        table.insert(1 << at, best);
    }
    let mut parts = Vec::new();
    for part in connected_parts(edges) {
        if let Some(pairs) = pairs(edges, part) {
            search(pairs, joins, &mut table);
        }
        match table.contains_key(&part) {
            true => parts.push(part),
            // Too many, or no way but through what is not connected.
            false => parts.extend(bits(part).map(|at| 1 << at)),
        }
    }
    greedy(parts, edges, joins, &mut table).then_some(table)
}

fn search(mut pairs: Vec<(Set, Set)>, joins: &mut dyn Joins, table: &mut Table) {
    pairs.sort_by_key(|(a, b)| (a | b).count_ones());
    for (a, b) in pairs {
        // Who asked learns of it at the next look.
        if interrupt::poll().is_err() {
            return;
        }
        offer(a, b, joins, table);
    }
}

/// Takes the join of two sets where it is the cheapest known for both together.
fn offer(a: Set, b: Set, joins: &mut dyn Joins, table: &mut Table) {
    let (Some(x), Some(y)) = (table.get(&a).copied(), table.get(&b).copied()) else {
        return;
    };
    let rows = joins.rows(a | b);
    for (left, right) in [((a, x), (b, y)), ((b, y), (a, x))] {
        if let Some((cost, way)) = joins.join(left, right, rows) {
            let known = table.get(&(a | b));
            if known.is_none_or(|best| cost < best.cost) {
                let join = Some((left.0, right.0, way));
                table.insert(a | b, Best { rows, cost, join });
            }
        }
    }
}

/// Joins what gives the fewest rows, over and over (greedy operator ordering, Fegaras 1998): first
/// what is connected.
fn greedy(mut parts: Vec<Set>, edges: &[Set], joins: &mut dyn Joins, table: &mut Table) -> bool {
    while parts.len() > 1 {
        let mut next = closest(&parts, edges, joins, table, true);
        if next.is_none() {
            next = closest(&parts, edges, joins, table, false);
        }
        let Some((i, j)) = next else {
            return false;
        };
        let other = parts.swap_remove(j);
        parts[i] |= other;
    }
    true
}

/// The two parts whose join gives the fewest rows, of those with a condition between or of all.
fn closest(
    parts: &[Set],
    edges: &[Set],
    joins: &mut dyn Joins,
    table: &mut Table,
    connected: bool,
) -> Option<(usize, usize)> {
    let mut next: Option<((f64, f64), (usize, usize))> = None;
    for (i, a) in parts.iter().enumerate() {
        let around = neighbours(edges, *a);
        for (j, b) in parts.iter().enumerate().skip(i + 1) {
            if connected && around & b == 0 {
                continue;
            }
            if !table.contains_key(&(a | b)) {
                offer(*a, *b, joins, table);
            }
            let Some(best) = table.get(&(a | b)) else {
                continue;
            };
            let rank = (best.rows, best.cost);
            if next.as_ref().is_none_or(|(known, _)| rank < *known) {
                next = Some((rank, (i, j)));
            }
        }
    }
    next.map(|(_, pair)| pair)
}

fn neighbours(edges: &[Set], set: Set) -> Set {
    bits(set).fold(0, |all, at| all | edges[at]) & !set
}

fn connected_parts(edges: &[Set]) -> Vec<Set> {
    let mut left: Set = (0..edges.len()).fold(0, |all, at| all | 1 << at);
    let mut parts = Vec::new();
    while left != 0 {
        let mut part = left & left.wrapping_neg();
        loop {
            let more = neighbours(edges, part);
            if more == 0 {
                break;
            }
            part |= more;
        }
        parts.push(part);
        left &= !part;
    }
    parts
}

/// All pairs of connected sets within `part` that an edge connects, each once; None where they are
/// too many.
fn pairs(edges: &[Set], part: Set) -> Option<Vec<(Set, Set)>> {
    let mut pairs = Vec::new();
    let mut many = false;
    let members: Vec<usize> = bits(part).collect();
    for &at in members.iter().rev() {
        let first = 1 << at;
        let mut take = |set: Set| {
            many |= !partners(edges, part, set, &mut pairs);
            !many
        };
        if take(first) {
            grow(edges, part, first, up_to(at), &mut take);
        }
        if many {
            return None;
        }
    }
    Some(pairs)
}

/// The relations up to this one.
fn up_to(at: usize) -> Set {
    (2 << at) - 1
}

/// Gives all connected sets within `part` that hold `set` and none of `without`, but `set` itself;
/// false: it was stopped.
fn grow(
    edges: &[Set],
    part: Set,
    set: Set,
    without: Set,
    take: &mut dyn FnMut(Set) -> bool,
) -> bool {
    let around = neighbours(edges, set) & part & !without;
    let mut more: Set = 0;
    // All subsets of `around` but the empty one.
    loop {
        more = more.wrapping_sub(around) & around;
        if more == 0 {
            break;
        }
        if !take(set | more) {
            return false;
        }
    }
    loop {
        more = more.wrapping_sub(around) & around;
        if more == 0 {
            return true;
        }
        if !grow(edges, part, set | more, without | around, take) {
            return false;
        }
    }
}

/// Adds the pairs of `set` with connected sets that come after it; false where there are too many.
fn partners(edges: &[Set], part: Set, set: Set, pairs: &mut Vec<(Set, Set)>) -> bool {
    let before = up_to(set.trailing_zeros() as usize) | set;
    let around = neighbours(edges, set) & part & !before;
    let starts: Vec<usize> = bits(around).collect();
    for &at in starts.iter().rev() {
        let first = 1 << at;
        let mut take = |other: Set| {
            pairs.push((set, other));
            pairs.len() <= MOST_PAIRS
        };
        let without = before | (up_to(at) & around);
        if !take(first) || !grow(edges, part, first, without, &mut take) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Random(u64);

    impl Random {
        fn below(&mut self, n: u64) -> u64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % n
        }
    }

    /// Relations with sizes, pairs of which have shares; a join costs the rows of both sides and
    /// its own.
    struct Model {
        sizes: Vec<f64>,
        shares: Vec<(Set, f64)>,
    }

    impl Joins for Model {
        fn relation(&self, at: usize) -> (f64, f64) {
            (self.sizes[at], self.sizes[at])
        }
        fn rows(&mut self, set: Set) -> f64 {
            let sizes: f64 = bits(set).map(|at| self.sizes[at]).product();
            let held = self.shares.iter().filter(|(pair, _)| pair & set == *pair);
            (sizes * held.map(|(_, share)| share).product::<f64>()).max(1.0)
        }
        fn join(&mut self, left: (Set, Best), right: (Set, Best), rows: f64) -> Option<(f64, Way)> {
            let connected = |(pair, _): &(Set, f64)| pair & left.0 != 0 && pair & right.0 != 0;
            let work = match self.shares.iter().any(connected) {
                true => left.1.rows + 2.0 * right.1.rows,
                false => left.1.rows * right.1.rows,
            };
            Some((left.1.cost + right.1.cost + work + rows, Way::Hash))
        }
    }

    fn random_model(random: &mut Random, n: usize) -> (Model, Vec<Set>) {
        let sizes = (0..n)
            .map(|_| 10f64.powi(1 + random.below(6) as i32))
            .collect();
        let mut model = Model {
            sizes,
            shares: Vec::new(),
        };
        let mut edges = vec![0; n];
        let mut connect = |a: usize, b: usize, random: &mut Random| {
            let share = 10f64.powi(-(random.below(7) as i32));
            model.shares.push((1 << a | 1 << b, share));
            edges[a] |= 1 << b;
            edges[b] |= 1 << a;
        };
        for at in 1..n {
            connect(at, random.below(at as u64) as usize, random);
        }
        for _ in 0..random.below(n as u64) {
            let (a, b) = (
                random.below(n as u64) as usize,
                random.below(n as u64) as usize,
            );
            if a != b {
                connect(a, b, random);
            }
        }
        (model, edges)
    }

    fn connected(edges: &[Set], set: Set) -> bool {
        let mut reached = set & set.wrapping_neg();
        loop {
            let more = neighbours(edges, reached) & set;
            if more == 0 {
                return reached == set;
            }
            reached |= more;
        }
    }

    /// The cheapest tree without cross products, found by trying all.
    fn exhaustive(model: &mut Model, edges: &[Set]) -> f64 {
        let all: Set = (1 << edges.len()) - 1;
        let mut table = Table::default();
        for set in 1..=all {
            if !connected(edges, set) {
                continue;
            }
            if set.count_ones() == 1 {
                let (rows, cost) = model.relation(set.trailing_zeros() as usize);
                let join = None;
                table.insert(set, Best { rows, cost, join });
                continue;
            }
            let mut left = (set - 1) & set;
            while left != 0 {
                offer(left, set & !left, model, &mut table);
                left = (left - 1) & set;
            }
        }
        table[&all].cost
    }

    #[test]
    fn the_search_finds_the_cheapest_and_greed_nothing_cheaper() {
        let mut random = Random(7);
        let mut better = 0;
        for round in 0..300 {
            let n = 2 + round % 7;
            let (mut model, edges) = random_model(&mut random, n);
            let all: Set = (1 << n) - 1;
            let found = cheapest(&edges, &mut model).expect("every order is allowed");
            let truth = exhaustive(&mut model, &edges);
            assert!(
                (found[&all].cost - truth).abs() <= truth * 1e-9,
                "round {round}"
            );
            let mut table = Table::default();
            for at in 0..n {
                let (rows, cost) = model.relation(at);
                table.insert(
                    1 << at,
                    Best {
                        rows,
                        cost,
                        join: None,
                    },
                );
            }
            let parts = (0..n).map(|at| 1 << at).collect();
            assert!(greedy(parts, &edges, &mut model, &mut table));
            assert!(
                found[&all].cost <= table[&all].cost * (1.0 + 1e-9),
                "round {round}"
            );
            better += u32::from(found[&all].cost < table[&all].cost * 0.99);
        }
        assert!(better > 0);
    }

    #[test]
    fn chains_stars_and_cliques_have_so_many_pairs() {
        let n = 10;
        let chain: Vec<Set> = (0..n)
            .map(|at: usize| (1u64 << (at + 1) & ((1 << n) - 1)) | (1u64 << at) >> 1)
            .collect();
        let all: Set = (1 << n) - 1;
        assert_eq!(
            pairs(&chain, all).map(|p| p.len()),
            Some((n * n * n - n) / 6)
        );
        let star: Vec<Set> = (0..n)
            .map(|at| if at == 0 { all & !1 } else { 1 })
            .collect();
        assert_eq!(pairs(&star, all).map(|p| p.len()), Some((n - 1) << (n - 2)));
        let n = 8;
        let all: Set = (1 << n) - 1;
        let clique: Vec<Set> = (0..n).map(|at| all & !(1 << at)).collect();
        let expected = (3usize.pow(n as u32) - (1 << (n + 1))).div_ceil(2);
        assert_eq!(pairs(&clique, all).map(|p| p.len()), Some(expected));
    }

    #[test]
    fn too_many_and_unconnected_relations_are_joined_all_the_same() {
        let mut random = Random(3);
        let n = 40;
        let all: Set = (1 << n) - 1;
        let model = |random: &mut Random| Model {
            sizes: (0..n).map(|_| 1.0 + random.below(1000) as f64).collect(),
            shares: Vec::new(),
        };
        let clique: Vec<Set> = (0..n).map(|at| all & !(1 << at)).collect();
        assert!(cheapest(&clique, &mut model(&mut random)).is_some_and(|t| t.contains_key(&all)));
        let alone = vec![0; n];
        assert!(cheapest(&alone, &mut model(&mut random)).is_some_and(|t| t.contains_key(&all)));
    }
}
