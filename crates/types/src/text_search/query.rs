//! A `tsquery`: operands joined by `!`, `&`, `|` and `<N>`.
//!
//! In memory its nodes lie in one list, operands before what joins them and the root last, so that
//! no depth of a client's makes a deep structure. As bytes:
//!
//! ```text
//! count u32 | nodes
//! node: 0 | weights u8 | prefix u8 | length u16 | lexeme
//!       1 ! | operand u32          2 & 3 | : | left u32 | right u32
//!       4 <N> | left u32 | right u32 | distance u16
//! ```

use std::borrow::Cow;

use crate::text_search::Weight;

/// A lexeme that is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operand {
    pub lexeme: String,
    /// One bit a weight that a position may have, D the lowest; 0 for any.
    pub weights: u8,
    /// Lexemes that begin so are meant.
    pub prefix: bool,
}

impl Operand {
    pub fn allows(&self, weight: Weight) -> bool {
        self.weights == 0 || self.weights & 1 << weight != 0
    }
}

/// Operands are the places of nodes before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    Operand(Operand),
    Not(u32),
    And(u32, u32),
    Or(u32, u32),
    /// The right one so many places after the left one.
    Phrase(u32, u32, u16),
}

impl Node {
    /// How tightly it holds what it joins.
    pub fn priority(&self) -> u8 {
        match self {
            Node::Or(..) => 1,
            Node::And(..) => 2,
            Node::Phrase(..) => 3,
            Node::Not(_) => 4,
            Node::Operand(_) => 5,
        }
    }
    /// PostgreSQL's number of the operator.
    pub fn operator_code(&self) -> Option<u8> {
        match self {
            Node::Operand(_) => None,
            Node::Not(_) => Some(1),
            Node::And(..) => Some(2),
            Node::Or(..) => Some(3),
            Node::Phrase(..) => Some(4),
        }
    }
    fn moved(&self, by: u32) -> Node {
        match *self {
            Node::Operand(ref operand) => Node::Operand(operand.clone()),
            Node::Not(a) => Node::Not(a + by),
            Node::And(a, b) => Node::And(a + by, b + by),
            Node::Or(a, b) => Node::Or(a + by, b + by),
            Node::Phrase(a, b, distance) => Node::Phrase(a + by, b + by, distance),
        }
    }
}

/// A query; without nodes it matches nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TsQuery {
    nodes: Vec<Node>,
}

impl TsQuery {
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
    pub fn len(&self) -> usize {
        self.nodes.len()
    }
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }
    pub fn node(&self, at: u32) -> &Node {
        &self.nodes[at as usize]
    }
    pub fn root(&self) -> Option<u32> {
        self.nodes.len().checked_sub(1).map(|last| last as u32)
    }
    /// Adds a node, which becomes the root.
    pub fn push(&mut self, node: Node) -> u32 {
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }
    /// Adds another query's nodes; their root's place, or None where it has none.
    pub fn append(&mut self, other: &TsQuery) -> Option<u32> {
        let by = self.nodes.len() as u32;
        self.nodes
            .extend(other.nodes.iter().map(|node| node.moved(by)));
        other.root().map(|root| root + by)
    }
    /// Two queries joined. An empty one gives way to the other.
    pub fn joined(a: &TsQuery, b: &TsQuery, join: impl FnOnce(u32, u32) -> Node) -> TsQuery {
        let mut query = TsQuery::default();
        let (left, right) = (query.append(a), query.append(b));
        if let (Some(left), Some(right)) = (left, right) {
            query.push(join(left, right));
        }
        query
    }
    /// The operands, in the order in which they are written.
    pub fn operands(&self) -> impl Iterator<Item = &Operand> {
        self.nodes.iter().filter_map(|node| match node {
            Node::Operand(operand) => Some(operand),
            _ => None,
        })
    }
    /// The same, with the places of their nodes.
    pub fn operands_with_places(&self) -> impl Iterator<Item = (u32, &Operand)> {
        self.nodes
            .iter()
            .enumerate()
            .filter_map(|(at, node)| match node {
                Node::Operand(operand) => Some((at as u32, operand)),
                _ => None,
            })
    }
    /// Takes back the nodes that came last.
    pub fn truncate(&mut self, len: usize) {
        self.nodes.truncate(len);
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&(self.nodes.len() as u32).to_le_bytes());
        for node in &self.nodes {
            out.push(node.operator_code().unwrap_or(0));
            match node {
                Node::Operand(operand) => {
                    out.extend_from_slice(&[operand.weights, u8::from(operand.prefix)]);
                    out.extend_from_slice(&(operand.lexeme.len() as u16).to_le_bytes());
                    out.extend_from_slice(operand.lexeme.as_bytes());
                }
                Node::Not(a) => out.extend_from_slice(&a.to_le_bytes()),
                Node::And(a, b) | Node::Or(a, b) | Node::Phrase(a, b, _) => {
                    out.extend_from_slice(&a.to_le_bytes());
                    out.extend_from_slice(&b.to_le_bytes());
                    if let Node::Phrase(_, _, distance) = node {
                        out.extend_from_slice(&distance.to_le_bytes());
                    }
                }
            }
        }
        out
    }

    /// Bytes that are none of ours make a query that is shorter, and matches less.
    pub fn from_bytes(bytes: &[u8]) -> TsQuery {
        let mut query = TsQuery::default();
        let mut rest = Rest(bytes);
        let count = rest.take().map_or(0, u32::from_le_bytes);
        for _ in 0..count {
            match rest.node(query.nodes.len() as u32) {
                Some(node) => query.push(node),
                None => break,
            };
        }
        query
    }
}

/// Bytes not read yet.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }
    /// A node before this one.
    fn place(&mut self, before: u32) -> Option<u32> {
        let place = u32::from_le_bytes(self.take()?);
        (place < before).then_some(place)
    }
    fn node(&mut self, at: u32) -> Option<Node> {
        let [code] = self.take()?;
        Some(match code {
            0 => {
                let [weights, prefix] = self.take()?;
                let len = usize::from(u16::from_le_bytes(self.take()?));
                let (lexeme, rest) = self.0.split_at_checked(len)?;
                self.0 = rest;
                Node::Operand(Operand {
                    lexeme: std::str::from_utf8(lexeme).ok()?.to_owned(),
                    weights,
                    prefix: prefix != 0,
                })
            }
            1 => Node::Not(self.place(at)?),
            2 => Node::And(self.place(at)?, self.place(at)?),
            3 => Node::Or(self.place(at)?, self.place(at)?),
            4 => {
                let (left, right) = (self.place(at)?, self.place(at)?);
                Node::Phrase(left, right, u16::from_le_bytes(self.take()?))
            }
            _ => return None,
        })
    }
}

/// Bytes in whose order queries are: those with fewer nodes first, then shorter ones.
pub fn ordered_form(bytes: &[u8]) -> Cow<'_, [u8]> {
    let count = bytes.get(..4).unwrap_or(&[0; 4]);
    let mut form: Vec<u8> = count.iter().rev().copied().collect();
    form.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    form.extend_from_slice(bytes.get(4..).unwrap_or(&[]));
    Cow::Owned(form)
}
