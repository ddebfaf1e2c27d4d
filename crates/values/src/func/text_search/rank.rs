//! How well a vector answers a query: `ts_rank` by frequency, `ts_rank_cd` by the cover density of
//! Clarke, Cormack and Tudhope, "Relevance Ranking for One to Three Term Queries" (1999).

use super::super::{EvalContext, EvalResult, EvalStop};
use super::{query, vector};
use throng_types::error::state;
use throng_types::text_search::matching::{Answer, Document, Unknown, search};
use throng_types::text_search::vector::MAX_PLACE;
use throng_types::text_search::{Lexeme, Node, Operand, Position, TsQuery, TsVector};
use throng_types::{Datum, Error, Result, interrupt};

/// What positions of weight D, C, B and A count, unless told otherwise.
const DEFAULT_WEIGHTS: [f32; 4] = [0.1, 0.2, 0.4, 1.0];

/// How a document's length lowers its rank: bits of an argument.
mod normalization {
    pub const LOG_LENGTH: i32 = 1;
    pub const LENGTH: i32 = 2;
    pub const EXTENT_DISTANCE: i32 = 4;
    pub const UNIQUE: i32 = 8;
    pub const LOG_UNIQUE: i32 = 16;
    pub const RANK_PLUS_ONE: i32 = 32;
}

struct Arguments<'a> {
    weights: [f32; 4],
    vector: TsVector<'a>,
    query: TsQuery,
    normalization: i32,
}

fn arguments(args: &[Datum]) -> Result<Arguments<'_>, EvalStop> {
    let (weights, args) = match args {
        [array @ Datum::Array(_), rest @ ..] => (weights(array)?, rest),
        _ => (DEFAULT_WEIGHTS, args),
    };
    Ok(Arguments {
        weights,
        vector: vector(&args[0]),
        query: query(&args[1]),
        normalization: match args.get(2) {
            Some(Datum::Int4(bits)) => *bits,
            _ => 0,
        },
    })
}

fn weights(array: &Datum) -> Result<[f32; 4], EvalStop> {
    let bad = |code, message: &str| EvalStop::from(Error::new(code, message));
    let Datum::Array(array) = array else {
        return Ok(DEFAULT_WEIGHTS);
    };
    if array.dims.len() != 1 {
        return Err(bad(
            state::ARRAY_SUBSCRIPT_ERROR,
            "array of weight must be one-dimensional",
        ));
    }
    if array.items.len() < 4 {
        return Err(bad(
            state::ARRAY_SUBSCRIPT_ERROR,
            "array of weight is too short",
        ));
    }
    let mut weights = DEFAULT_WEIGHTS;
    for (weight, item) in weights.iter_mut().zip(&array.items) {
        match item {
            Datum::Float4(told) if *told > 1.0 => {
                let message = "weight out of range";
                return Err(bad(state::INVALID_PARAMETER_VALUE, message));
            }
            Datum::Float4(told) if *told >= 0.0 => *weight = *told,
            Datum::Float4(_) => {}
            _ => {
                return Err(bad(
                    state::NULL_VALUE_NOT_ALLOWED,
                    "array of weight must not contain nulls",
                ));
            }
        }
    }
    Ok(weights)
}

/// Words of a document.
fn length(vector: TsVector<'_>) -> i32 {
    let words = vector.iter().map(|entry| entry.count().max(1) as i32);
    words.fold(0, i32::saturating_add)
}

/// Each operand once.
fn distinct(query: &TsQuery) -> Vec<&Operand> {
    let mut operands: Vec<&Operand> = query.operands().collect();
    operands.sort_by(|a, b| a.lexeme.cmp(&b.lexeme));
    operands.dedup_by(|next, kept| next.lexeme == kept.lexeme);
    operands
}

/// A lexeme's positions; one without any is taken to stand at the end.
struct Places {
    at: Vec<Position>,
    known: bool,
}

impl Places {
    fn of(entry: Lexeme<'_>) -> Places {
        match entry.count() {
            0 => Places {
                at: vec![Position::new(MAX_PLACE, 0)],
                known: false,
            },
            _ => Places {
                at: entry.positions().collect(),
                known: true,
            },
        }
    }
}

fn word_distance(places: i32) -> f32 {
    if places > 100 {
        return 1e-30;
    }
    (1.0 / (1.005 + 0.05 * libm::exp(f64::from(places) / 1.5 - 2.0))) as f32
}

fn rank_of_all(args: &Arguments<'_>) -> Result<f32> {
    let operands = distinct(&args.query);
    if operands.len() < 2 {
        return rank_of_any(args);
    }
    let mut rank = -1.0f32;
    let mut before: Vec<Option<Places>> = Vec::new();
    for operand in operands {
        let mut last = None;
        for entry in args.vector.matching(&operand.lexeme, operand.prefix) {
            interrupt::poll()?;
            let places = Places::of(entry);
            for other in before.iter().flatten() {
                for a in &places.at {
                    for b in &other.at {
                        let mut apart = i32::from(a.place()).abs_diff(b.place().into()) as i32;
                        if apart == 0 {
                            if places.known && other.known {
                                continue;
                            }
                            apart = i32::from(MAX_PLACE) + 1;
                        }
                        let weight = |p: &Position| args.weights[usize::from(p.weight())];
                        let both =
                            libm::sqrt(f64::from(weight(a) * weight(b) * word_distance(apart)))
                                as f32;
                        rank = match rank < 0.0 {
                            true => both,
                            false => {
                                let (rank, both) = (f64::from(rank), f64::from(both));
                                (1.0 - (1.0 - rank) * (1.0 - both)) as f32
                            }
                        };
                    }
                }
            }
            last = Some(places);
        }
        before.push(last);
    }
    Ok(rank)
}

fn rank_of_any(args: &Arguments<'_>) -> Result<f32> {
    /// The sum of 1/n² over all n: π²/6.
    const SQUARES: f64 = 1.64493406685;
    let operands = distinct(&args.query);
    let mut rank = 0.0f32;
    for operand in &operands {
        for entry in args.vector.matching(&operand.lexeme, operand.prefix) {
            interrupt::poll()?;
            let (mut sum, mut most, mut most_at) = (0.0f32, -1.0f32, 0);
            for (nth, position) in Places::of(entry).at.iter().enumerate() {
                let weight = args.weights[usize::from(position.weight())];
                sum += weight / ((nth + 1) * (nth + 1)) as f32;
                if weight > most {
                    (most, most_at) = (weight, nth);
                }
            }
            let square = ((most_at + 1) * (most_at + 1)) as f32;
            rank = (f64::from(rank) + f64::from(most + sum - most / square) / SQUARES) as f32;
        }
    }
    match operands.len() {
        0 => Ok(rank),
        count => Ok(rank / count as f32),
    }
}

pub fn rank(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let args = arguments(args)?;
    let Some(root) = args.query.root() else {
        return Ok(0.0f32.into());
    };
    if args.vector.count() == 0 {
        return Ok(0.0f32.into());
    }
    let mut rank = match args.query.node(root) {
        Node::And(..) | Node::Phrase(..) => rank_of_all(&args)?,
        _ => rank_of_any(&args)?,
    };
    if rank < 0.0 {
        rank = 1e-20;
    }
    let by = args.normalization;
    let words = f64::from(length(args.vector));
    let lexemes = args.vector.count() as f64;
    if by & normalization::LOG_LENGTH != 0 {
        rank = (f64::from(rank) / (libm::log(words + 1.0) / libm::log(2.0))) as f32;
    }
    if by & normalization::LENGTH != 0 && words > 0.0 {
        rank /= words as f32;
    }
    if by & normalization::UNIQUE != 0 {
        rank /= lexemes as f32;
    }
    if by & normalization::LOG_UNIQUE != 0 {
        rank = (f64::from(rank) / (libm::log(lexemes + 1.0) / libm::log(2.0))) as f32;
    }
    if by & normalization::RANK_PLUS_ONE != 0 {
        rank /= rank + 1.0;
    }
    Ok(rank.into())
}

/// A place of the document where operands stand.
struct Stand {
    position: Position,
    /// Nodes of the query that are found here.
    nodes: Vec<u32>,
}

/// Places where the query's operands stand, in order.
fn stands(query: &TsQuery, vector: TsVector<'_>) -> Result<Vec<Stand>> {
    let mut stands: Vec<Stand> = Vec::new();
    for (at, node) in query.nodes().iter().enumerate() {
        let Node::Operand(operand) = node else {
            continue;
        };
        for entry in vector.matching(&operand.lexeme, operand.prefix) {
            interrupt::poll()?;
            for position in entry.positions() {
                if operand.allows(position.weight()) {
                    stands.push(Stand {
                        position,
                        nodes: vec![at as u32],
                    });
                }
            }
        }
    }
    stands.sort_by_key(|stand| (stand.position.place(), stand.position.weight()));
    stands.dedup_by(|next, kept| {
        let same = next.position == kept.position;
        if same {
            kept.nodes.append(&mut next.nodes);
        }
        same
    });
    Ok(stands)
}

/// The operands of some places, as a document.
struct Seen {
    places: Vec<Vec<i32>>,
}

impl Seen {
    fn nothing(query: &TsQuery) -> Seen {
        Seen {
            places: vec![Vec::new(); query.len()],
        }
    }
    fn add(&mut self, stand: &Stand) {
        for node in &stand.nodes {
            let places = &mut self.places[*node as usize];
            let place = i32::from(stand.position.place());
            if let Err(at) = places.binary_search(&place) {
                places.insert(at, place);
            }
        }
    }
}

impl Document for Seen {
    fn holds(&mut self, _: &Operand, nth: u32) -> Result<Answer> {
        Ok(Answer::from(!self.places[nth as usize].is_empty()))
    }
    fn places(&mut self, _: &Operand, nth: u32, at: &mut Vec<i32>) -> Result<Answer> {
        at.extend(&self.places[nth as usize]);
        Ok(Answer::from(!at.is_empty()))
    }
}

/// The shortest stretch of the stands from `from` on that answers the query.
fn cover(query: &TsQuery, stands: &[Stand], from: usize) -> Result<Option<(usize, usize)>> {
    let answered =
        |seen: &mut Seen| -> Result<bool> { Ok(search(query, seen, Unknown::IsNo)? != Answer::No) };
    let mut from = from;
    while from < stands.len() {
        interrupt::poll()?;
        let mut seen = Seen::nothing(query);
        let mut end = None;
        for (at, stand) in stands.iter().enumerate().skip(from) {
            seen.add(stand);
            if answered(&mut seen)? {
                end = Some(at);
                break;
            }
        }
        let Some(end) = end else {
            return Ok(None);
        };
        let mut seen = Seen::nothing(query);
        for at in (from..=end).rev() {
            seen.add(&stands[at]);
            if answered(&mut seen)? {
                return Ok(Some((at, end)));
            }
        }
        from += 1;
    }
    Ok(None)
}

pub fn rank_by_covers(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let args = arguments(args)?;
    let by = args.normalization;
    let costs = args.weights.map(|weight| 1.0 / f64::from(weight));
    let stands = stands(&args.query, args.vector)?;
    let (mut rank, mut distances, mut extents) = (0.0f64, 0.0f64, 0);
    let (mut from, mut middle_before) = (0, 0.0);
    while let Some((begin, end)) = cover(&args.query, &stands, from)? {
        let cost: f64 = stands[begin..=end]
            .iter()
            .map(|stand| costs[usize::from(stand.position.weight())])
            .sum();
        let density = (end - begin + 1) as f64 / cost;
        let (first, last) = (
            i32::from(stands[begin].position.place()),
            i32::from(stands[end].position.place()),
        );
        // Places are bounded: where they no longer tell, half of the cover is taken for noise.
        let between = (end - begin) as i32;
        let noise = match (last - first) - between {
            noise @ 0.. => noise,
            _ => between / 2,
        };
        rank += density / f64::from(1 + noise);
        let middle = f64::from(first + last) / 2.0;
        if extents > 0 && middle > middle_before {
            distances += 1.0 / (middle - middle_before);
        }
        middle_before = middle;
        extents += 1;
        from = begin + 1;
    }
    let words = f64::from(length(args.vector));
    let lexemes = args.vector.count() as f64;
    if by & normalization::LOG_LENGTH != 0 && lexemes > 0.0 {
        rank /= libm::log(words + 1.0);
    }
    if by & normalization::LENGTH != 0 && words > 0.0 {
        rank /= words;
    }
    if by & normalization::EXTENT_DISTANCE != 0 && extents > 0 && distances > 0.0 {
        rank /= f64::from(extents) / distances;
    }
    if by & normalization::UNIQUE != 0 && lexemes > 0.0 {
        rank /= lexemes;
    }
    if by & normalization::LOG_UNIQUE != 0 && lexemes > 0.0 {
        rank /= libm::log(lexemes + 1.0) / libm::log(2.0);
    }
    if by & normalization::RANK_PLUS_ONE != 0 {
        rank /= rank + 1.0;
    }
    Ok((rank as f32).into())
}
