//! Choosing among operators: as among functions ([`super::resolve`]), with users' beside those that
//! are built in.

use throng_types::error::state;
use throng_types::sqltype::type_name;
use throng_types::{Error, Oid, Result, oid};

use super::polymorphic::actualize;
use super::resolve::{Candidate, Choice, NO_CASTS, choose, must_be_ordered};
use super::{Operator, extension, operators_named};

/// An operator that a user made, as the choice among overloads needs it.
#[derive(Clone, Copy, Debug)]
pub struct OperatorSignature {
    /// Its schema's place in the search path.
    pub rank: usize,
    /// None of a prefix operator.
    pub left: Option<Oid>,
    pub right: Oid,
    pub ret: Oid,
}

/// An operator as it is written.
#[derive(Clone, Copy)]
pub struct GivenOperator<'a> {
    pub name: &'a str,
    pub left: Option<Oid>,
    pub right: Oid,
    /// Users' operators of that name.
    pub own: &'a [OperatorSignature],
    /// Those of extensions of that name, with their schemas' places in the path.
    pub extensions: &'a [(usize, &'static Operator)],
    /// Those of extensions whose types the operands have are found wherever they are.
    pub of_types: bool,
    /// The place of `pg_catalog` in the path; none: built-in ones are not asked for.
    pub builtin: Option<usize>,
    /// Whether a user's cast takes one type to another anywhere.
    pub casts: &'a dyn Fn(Oid, Oid) -> bool,
}

/// The operator that was meant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ChosenOperator {
    BuiltIn(ResolvedOperator),
    /// A user's: its place among those given, and what its operands must be cast to.
    Own {
        place: usize,
        left: Oid,
        right: Oid,
        ret: Oid,
    },
}

/// An operator chosen, with what its operands must be cast to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResolvedOperator {
    pub operator: &'static Operator,
    /// None for a prefix operator.
    pub left: Oid,
    pub right: Oid,
    pub ret: Oid,
}

/// Chooses the built-in operator for these operands; `left` is None for a prefix operator.
pub fn resolve_operator(name: &str, left: Option<Oid>, right: Oid) -> Result<ResolvedOperator> {
    let chosen = choose_operator(&GivenOperator {
        name,
        left,
        right,
        own: &[],
        extensions: &[],
        of_types: true,
        builtin: Some(0),
        casts: NO_CASTS,
    })?;
    match chosen {
        ChosenOperator::BuiltIn(found) => Ok(found),
        ChosenOperator::Own { .. } => Err(Error::internal("an operator that nobody gave")),
    }
}

/// The candidates of an operator: built in, or the place among those given.
fn operator_candidates(
    given: &GivenOperator<'_>,
    name: &str,
) -> Vec<Candidate<std::result::Result<&'static Operator, usize>>> {
    let operands =
        |left: Option<Oid>, right: Oid| -> Vec<Oid> { left.into_iter().chain([right]).collect() };
    let mut candidates = Vec::new();
    let mut tables: Vec<(usize, &'static Operator)> = Vec::new();
    if let Some(rank) = given.builtin {
        tables.extend(operators_named(name).iter().map(|o| (rank, *o)));
    }
    tables.extend(given.extensions);
    let is_plain = given.own.is_empty() && given.extensions.is_empty();
    if given.of_types {
        // Whoever has a value has its type's operators: after all those that the path finds.
        let of_types = extension::of_types(&operands(given.left, given.right));
        let of_types = of_types.into_iter().flat_map(|e| e.operators);
        let attached = of_types.filter(|o| o.name == name);
        let found: Vec<_> = attached.map(|o| (usize::MAX, o)).collect();
        tables.extend(found);
    }
    let fitting = tables.into_iter();
    let fitting = fitting.filter(|(_, o)| (o.left == Oid::NONE) == given.left.is_none());
    candidates.extend(fitting.map(|(rank, o)| {
        let left = given.left.map(|_| o.left);
        Candidate::plain(operands(left, o.right), None, Ok(o)).of_rank(rank)
    }));
    for (place, own) in given.own.iter().enumerate() {
        if own.left.is_some() != given.left.is_some() {
            continue;
        }
        let plain = Candidate::plain(operands(own.left, own.right), None, Err(place));
        candidates.push(plain.of_rank(own.rank));
    }
    if !is_plain {
        // Of those that take the same the first in the path is meant.
        candidates.sort_by_key(|candidate| candidate.rank);
        let mut seen: Vec<Vec<Oid>> = Vec::new();
        candidates.retain(|candidate| {
            let is_new = !seen.contains(&candidate.args);
            seen.push(candidate.args.clone());
            is_new
        });
    }
    candidates
}

/// Chooses the operator for these operands. 42883 where there is none, 42725 where it is not clear.
pub fn choose_operator(given: &GivenOperator<'_>) -> Result<ChosenOperator> {
    let GivenOperator {
        name, left, right, ..
    } = *given;
    // `<>` has an old spelling.
    let table_name = if name == "!=" { "<>" } else { name };
    let operands: Vec<Oid> = left.into_iter().chain([right]).collect();
    let candidates = operator_candidates(given, table_name);
    let exact = |types: &[Oid]| candidates.iter().position(|c| c.args == types);
    let mut found = exact(&operands);
    if found.is_none() && operands.len() == 2 {
        found = match (operands[0], operands[1]) {
            (oid::UNKNOWN, known) if known != oid::UNKNOWN => exact(&[known, known]),
            (known, oid::UNKNOWN) if known != oid::UNKNOWN => exact(&[known, known]),
            _ => None,
        };
    }
    let describe = || match left {
        Some(left) => format!("{} {name} {}", type_name(left), type_name(right)),
        None => format!("{name} {}", type_name(right)),
    };
    let undefined = || {
        Error::new(
            state::UNDEFINED_FUNCTION,
            format!("operator does not exist: {}", describe()),
        )
        .hint(if left.is_some() {
            "No operator matches the given name and argument types. You might need to add explicit type casts."
        } else {
            "No operator matches the given name and argument type. You might need to add an explicit type cast."
        })
    };
    let index = match found {
        Some(index) => index,
        None => match choose(&candidates, &operands, given.casts) {
            Choice::One(index) => index,
            Choice::None => return Err(undefined()),
            Choice::Many => {
                return Err(Error::new(
                    state::AMBIGUOUS_FUNCTION,
                    format!("operator is not unique: {}", describe()),
                )
                .hint(
                    "Could not choose a best candidate operator. You might need to add explicit type casts.",
                ));
            }
        },
    };
    let item = candidates[index].item;
    let mut types = candidates[index].args.clone();
    let declared = match item {
        Ok(operator) => operator.ret,
        Err(place) => given.own[place].ret,
    };
    let ret = actualize(&mut types, &operands, declared).ok_or_else(undefined)?;
    let right = types[types.len() - 1];
    let left = if types.len() == 2 {
        types[0]
    } else {
        Oid::NONE
    };
    let operator = match item {
        Ok(operator) => operator,
        Err(place) => {
            return Ok(ChosenOperator::Own {
                place,
                left,
                right,
                ret,
            });
        }
    };
    if matches!(
        operator.name,
        "=" | "<>" | "<" | "<=" | ">" | ">=" | "@>" | "<@" | "&&"
    ) {
        must_be_ordered(operator.name, &candidates[index].args, &types)?;
    }
    Ok(ChosenOperator::BuiltIn(ResolvedOperator {
        operator,
        left,
        right,
        ret,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(own: &[OperatorSignature], builtin: Option<usize>, name: &str) -> Option<usize> {
        let given = GivenOperator {
            name,
            left: Some(oid::INT4),
            right: oid::INT4,
            own,
            extensions: &[],
            of_types: false,
            builtin,
            casts: NO_CASTS,
        };
        match choose_operator(&given) {
            Ok(ChosenOperator::Own { place, .. }) => Some(place),
            _ => None,
        }
    }

    fn of_integers(rank: usize) -> OperatorSignature {
        OperatorSignature {
            rank,
            left: Some(oid::INT4),
            right: oid::INT4,
            ret: oid::INT4,
        }
    }

    #[test]
    fn of_operators_over_the_same_the_first_in_the_path_is_meant() {
        let own = [of_integers(2), of_integers(1)];
        assert_eq!(chosen(&own, Some(0), "#-#"), Some(1));
        assert_eq!(chosen(&own, Some(0), "+"), None);
        assert_eq!(chosen(&own, Some(3), "+"), Some(1));
        assert_eq!(chosen(&own[..1], None, "+"), Some(0));
    }

    #[test]
    fn an_operator_is_not_there_without_its_left_operand() {
        let prefix = OperatorSignature {
            left: None,
            ..of_integers(0)
        };
        assert_eq!(chosen(&[prefix], Some(1), "#-#"), None);
    }
}
