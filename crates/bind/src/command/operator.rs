//! CREATE OPERATOR, once its names mean something.

use throng_types::Oid;

use throng_catalog::OperatorDef;

/// An operator to make, or to change where it has a number.
#[derive(Clone, Debug)]
pub struct CreateOperator {
    pub def: OperatorDef,
    /// Not CREATE but ALTER.
    pub alters: bool,
    pub commutator: RelatedOperator,
    pub negator: RelatedOperator,
}

impl CreateOperator {
    pub fn tag(&self) -> &'static str {
        match self.alters {
            true => "ALTER OPERATOR",
            false => "CREATE OPERATOR",
        }
    }
}

/// What an operator names as its commutator or negator.
#[derive(Clone, Debug, PartialEq)]
pub enum RelatedOperator {
    /// Nothing.
    None,
    Itself,
    There(Oid),
    /// One that is still to be made: a shell stands for it until then.
    Shell {
        schema: Oid,
        name: String,
        left: Option<Oid>,
        right: Oid,
    },
}
