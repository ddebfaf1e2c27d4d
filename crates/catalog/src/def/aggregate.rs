//! Aggregates that users made: the functions that compute them.

use serde::{Deserialize, Serialize};
use throng_types::Oid;

use super::id;
pub use throng_syntax::vocabulary::AggregateKind;

/// What `pg_aggregate` has of an aggregate; the rest of it is a routine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AggregateDef {
    pub kind: AggregateKind,
    /// Of an ordered set: how many of its arguments are direct; all of them where the last is
    /// repeated.
    pub direct: u16,
    /// How groups are computed.
    pub plain: TransitionDef,
    /// How frames that move are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moving: Option<TransitionDef>,
    /// For computing a group in parts: what joins two states, and their way through bytes.
    #[serde(default, with = "id", skip_serializing_if = "Option::is_none")]
    pub combine: Option<Oid>,
    #[serde(default, with = "id", skip_serializing_if = "Option::is_none")]
    pub serialize: Option<Oid>,
    #[serde(default, with = "id", skip_serializing_if = "Option::is_none")]
    pub deserialize: Option<Oid>,
    /// The operator whose order's first value is the result.
    #[serde(default, with = "id", skip_serializing_if = "Option::is_none")]
    pub sort_operator: Option<Oid>,
}

/// A state, what takes rows into it and what it becomes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransitionDef {
    #[serde(with = "id")]
    pub function: Oid,
    /// Takes rows out again.
    #[serde(default, with = "id", skip_serializing_if = "Option::is_none")]
    pub inverse: Option<Oid>,
    #[serde(default, with = "id", skip_serializing_if = "Option::is_none")]
    pub finish: Option<Oid>,
    /// `finish` is given NULLs for the aggregated arguments, too.
    pub finish_extra: bool,
    /// Whether `finish` changes the state: `r`, `s` or `w`.
    pub finish_modify: char,
    #[serde(with = "id")]
    pub state: Oid,
    /// About so many bytes; 0 where nobody said.
    pub space: i32,
    /// The state at first, as text.
    pub init: Option<String>,
}

impl AggregateDef {
    /// The functions that it calls.
    pub fn functions(&self) -> Vec<Oid> {
        let transitions = [Some(&self.plain), self.moving.as_ref()];
        let called = transitions
            .into_iter()
            .flatten()
            .flat_map(|t| [Some(t.function), t.inverse, t.finish]);
        let parts = [self.combine, self.serialize, self.deserialize];
        called.chain(parts).flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_read_as_it_was_written() {
        let plain = TransitionDef {
            function: Oid(20_000),
            inverse: None,
            finish: Some(Oid(20_001)),
            finish_extra: false,
            finish_modify: 'r',
            state: Oid(23),
            space: 0,
            init: Some("0".to_owned()),
        };
        let def = AggregateDef {
            kind: AggregateKind::Normal,
            direct: 0,
            moving: Some(TransitionDef {
                inverse: Some(Oid(20_002)),
                finish: None,
                ..plain.clone()
            }),
            plain,
            combine: Some(Oid(141)),
            serialize: None,
            deserialize: None,
            sort_operator: Some(Oid(521)),
        };
        let json = serde_json::to_string(&def).unwrap_or_default();
        assert_eq!(serde_json::from_str(&json).ok(), Some(def.clone()));
        let called = [20_000, 20_001, 20_000, 20_002, 141].map(Oid);
        assert_eq!(def.functions(), called);
    }
}
