//! What range types are over, and types as input, output and functions see them.

use serde::{Deserialize, Serialize};
use throng_types::{Oid, SqlType};
use throng_values::func::{Field, UserType};

use super::{ColumnDef, TypeDef, id};

/// What a range type that a user made is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RangeDef {
    #[serde(with = "id")]
    pub subtype: Oid,
    /// The operator class that orders the subtype's values.
    #[serde(with = "id")]
    pub class: Oid,
    /// That of the order, where the subtype has collations; none elsewhere.
    #[serde(with = "id")]
    pub collation: Oid,
    /// The function that tells how far two values are apart, or none.
    #[serde(with = "id")]
    pub difference: Oid,
}

impl UserType for TypeDef {
    fn oid(&self) -> Oid {
        self.oid
    }
    fn place_of(&self, label: &str) -> Option<f64> {
        let found = self.labels.iter().find(|l| l.name == label)?;
        Some(found.place)
    }
    fn label_at(&self, place: f64) -> Option<&str> {
        let found = self.labels.iter().find(|l| l.place == place)?;
        Some(&found.name)
    }
    fn places(&self) -> Vec<f64> {
        self.labels.iter().map(|l| l.place).collect()
    }
    fn fields(&self) -> Option<Vec<Field<'_>>> {
        let columns = self.fields.as_ref()?.iter().filter(|c| !c.dropped);
        let field = |column| {
            let ColumnDef {
                name, ty, domain, ..
            }: &ColumnDef = column;
            Field {
                name,
                ty: *ty,
                domain: *domain,
            }
        };
        Some(columns.map(field).collect())
    }
    fn domain_base(&self) -> Option<SqlType> {
        Some(self.domain.as_ref()?.base)
    }
}
