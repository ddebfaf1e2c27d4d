//! A table's columns in `pg_attribute`.

use throng_types::sqltype::type_info;
use throng_types::{Array, Datum, Oid, SqlType, oid};

use super::relation::options_array;
use super::{Rows, row, types};
use crate::{Catalog, ColumnDef, Compression, Identity, Storage, TableDef, builtin};

/// Columns every table has besides its own.
const SYSTEM_COLUMNS: [(i16, &str, SqlType); 6] = [
    (-1, "ctid", SqlType::TID),
    (-2, "xmin", SqlType::XID),
    (-3, "cmin", SqlType::CID),
    (-4, "xmax", SqlType::XID),
    (-5, "cmax", SqlType::CID),
    (-6, "tableoid", SqlType::OID),
];

/// What differs between columns in `pg_attribute`.
pub(super) struct Attribute<'a> {
    pub relation: Oid,
    pub number: i16,
    pub name: &'a str,
    pub ty: SqlType,
    /// What `atttypid` and `atttypmod` say: a domain, where it is one's.
    pub shown: SqlType,
    pub not_null: bool,
    pub has_default: bool,
    pub missing: Option<&'a str>,
    pub identity: Option<Identity>,
    /// `attgenerated`
    pub generated: u8,
    pub dropped: bool,
    pub collation: Option<&'a str>,
    pub local: bool,
    pub inherited: u16,
    pub storage: Option<Storage>,
    pub compression: Option<Compression>,
    pub statistics_target: Option<i16>,
    pub options: &'a [(String, String)],
}

impl<'a> Attribute<'a> {
    pub fn plain(relation: Oid, number: i16, name: &'a str, ty: SqlType) -> Attribute<'a> {
        Attribute {
            relation,
            number,
            name,
            ty,
            shown: ty,
            not_null: false,
            has_default: false,
            missing: None,
            identity: None,
            generated: 0,
            dropped: false,
            collation: None,
            local: true,
            inherited: 0,
            storage: None,
            compression: None,
            statistics_target: None,
            options: &[],
        }
    }

    pub fn row(&self) -> Vec<Datum> {
        let info = type_info(self.ty.oid);
        let (len, by_value, align) =
            info.map_or((-1, false, b'i'), |t| (t.len, t.by_value, t.align));
        let identity = match self.identity {
            Some(Identity::Always) => b'a',
            Some(Identity::ByDefault) => b'd',
            None => 0,
        };
        let missing = self
            .missing
            .map(|text| Datum::array(Array::from_items(oid::TEXT, vec![text.into()])));
        row![
            self.relation,
            self.name,
            if self.dropped {
                Oid::NONE
            } else {
                self.shown.oid
            },
            len,
            self.number,
            self.shown.typmod,
            i16::from(info.is_some_and(|t| t.is_array())),
            by_value,
            Datum::Char(align),
            Datum::Char(
                self.storage
                    .unwrap_or(Storage::of_type(self.ty.oid))
                    .letter()
            ),
            Datum::Char(self.compression.map_or(0, Compression::letter)),
            self.not_null,
            self.has_default,
            self.missing.is_some(),
            Datum::Char(identity),
            Datum::Char(self.generated),
            self.dropped,
            self.local,
            self.inherited as i16,
            collation_oid(self.collation, self.ty.oid),
            self.statistics_target,
            Datum::Null,
            options_array(self.options),
            Datum::Null,
            missing,
        ]
    }
}

/// A column's collation: the one it names, or its type's.
pub(super) fn collation_oid(name: Option<&str>, ty: Oid) -> Oid {
    match name {
        Some("C") => builtin::C_COLLATION,
        Some("POSIX") => builtin::POSIX_COLLATION,
        _ => types::collation(ty),
    }
}

/// What a column's values are compared by, where that is not the default: its domain's, where it
/// has none of its own.
fn collation_of<'a>(catalog: &'a Catalog, column: &'a ColumnDef) -> Option<&'a str> {
    let of_domain = || {
        let domain = catalog.made_type(column.domain?)?.domain.as_ref()?;
        domain.collation.as_deref()
    };
    column.collation.as_deref().or_else(of_domain)
}

pub(super) fn column_attributes(catalog: &Catalog, table: &TableDef, rows: &mut Rows) {
    for (column, number) in table.columns.iter().zip(1..) {
        let dropped_name;
        let name = match column.dropped {
            true => {
                dropped_name = format!("........pg.dropped.{number}........");
                &dropped_name
            }
            false => &column.name,
        };
        let attribute = Attribute {
            shown: column.domain.map_or(column.ty, SqlType::plain),
            not_null: column.not_null,
            has_default: has_default(column),
            missing: column.missing.as_deref(),
            identity: column.identity,
            generated: match &column.generated {
                None => 0,
                Some(generated) if generated.stored => b's',
                Some(_) => b'v',
            },
            dropped: column.dropped,
            collation: collation_of(catalog, column),
            local: column.local,
            inherited: column.inherited,
            storage: column.storage,
            compression: column.compression,
            statistics_target: column.statistics_target,
            options: &column.options,
            ..Attribute::plain(table.oid, number, name, column.ty)
        };
        rows.push(attribute.row());
    }
    for (number, name, ty) in SYSTEM_COLUMNS {
        let attribute = Attribute {
            not_null: true,
            ..Attribute::plain(table.oid, number, name, ty)
        };
        rows.push(attribute.row());
    }
}

pub(super) fn has_default(column: &ColumnDef) -> bool {
    !column.dropped
        && (column.default.is_some()
            || column.generated.is_some()
            || column.sequence.is_some() && column.identity.is_none())
}
