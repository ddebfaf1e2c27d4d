//! Keys by which rows are ordered, joined and grouped.
//!
//! Values that a machine orders as SQL does are their own keys. All others are replaced by their
//! ordered key bytes (`throng_types::key`), in which the direction and the place of NULLs are told
//! already: compared as bytes they order as PostgreSQL does, and are equal where PostgreSQL's `=`
//! says so.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, LargeBinaryBuilder};
use datafusion::arrow::compute::{SortOptions, cast};
use datafusion::arrow::datatypes::DataType;
use throng_types::key::{self, KeyOrder};
use throng_types::{Result, SqlType, oid};

use crate::column::{Kind, Reader};
use crate::datafusion_plan::refused;

/// How values of one expression become a key column.
#[derive(Clone, Copy, Debug)]
pub struct KeyPlan {
    kind: Kind,
    order: KeyOrder,
    form: Form,
}

/// What a key column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The values themselves.
    Raw,
    /// Integers as the widest there are.
    Wide,
    /// Ordered key bytes.
    Bytes,
}

fn is_integer(kind: Kind) -> bool {
    matches!(kind, Kind::Int2 | Kind::Int4 | Kind::Int8)
}

impl KeyPlan {
    pub fn new(ty: SqlType, kind: Kind, descending: bool, nulls_first: bool) -> KeyPlan {
        let raw = match kind {
            Kind::Text => ty.oid != oid::BPCHAR,
            Kind::Float4 | Kind::Float8 | Kind::Packed(_) => false,
            _ => true,
        };
        KeyPlan {
            kind,
            order: KeyOrder::new(ty.oid, descending, nulls_first),
            form: if raw { Form::Raw } else { Form::Bytes },
        }
    }

    pub fn equality(ty: SqlType, kind: Kind) -> KeyPlan {
        KeyPlan::new(ty, kind, false, false)
    }

    /// For a join with keys of kind `other`, whose columns are to be of one type where their values
    /// may be equal.
    pub fn joined(ty: SqlType, kind: Kind, other: Kind) -> KeyPlan {
        let form = match kind == other {
            true => return KeyPlan::equality(ty, kind),
            false if !is_integer(kind) || !is_integer(other) => Form::Bytes,
            false if kind == Kind::Int8 => Form::Raw,
            false => Form::Wide,
        };
        KeyPlan {
            form,
            ..KeyPlan::equality(ty, kind)
        }
    }

    /// The kind of the key column's values, where they are not key bytes.
    pub fn key_kind(&self) -> Option<Kind> {
        match self.form {
            Form::Raw => Some(self.kind),
            Form::Wide => Some(Kind::Int8),
            Form::Bytes => None,
        }
    }

    /// The column itself is the key.
    pub fn is_raw(&self) -> bool {
        self.form == Form::Raw
    }

    pub fn data_type(&self) -> DataType {
        self.key_kind()
            .map_or(DataType::LargeBinary, Kind::data_type)
    }

    /// How the key column is to be sorted.
    pub fn sort_options(&self) -> SortOptions {
        match self.form != Form::Bytes {
            true => SortOptions {
                descending: self.order.descending,
                nulls_first: self.order.nulls_first,
            },
            false => SortOptions {
                descending: false,
                nulls_first: false,
            },
        }
    }

    /// The key column for sorting: no key is NULL unless it is raw.
    pub fn sort_column(&self, values: &ArrayRef) -> Result<ArrayRef> {
        self.column(values, false)
    }

    /// The key column for joining: NULL stays NULL, and so meets nobody.
    pub fn join_column(&self, values: &ArrayRef) -> Result<ArrayRef> {
        self.column(values, true)
    }

    fn column(&self, values: &ArrayRef, keep_null: bool) -> Result<ArrayRef> {
        match self.form {
            Form::Raw => return Ok(values.clone()),
            Form::Wide => return cast(values, &self.data_type()).map_err(|e| refused(e.into())),
            Form::Bytes => {}
        }
        let reader = Reader::new(self.kind, &**values);
        let mut out = LargeBinaryBuilder::new();
        let mut bytes = Vec::new();
        for i in 0..values.len() {
            if keep_null && values.is_null(i) {
                out.append_null();
                continue;
            }
            bytes.clear();
            key::encode_one(&reader.get(i)?, self.order, &mut bytes)?;
            out.append_value(&bytes);
        }
        Ok(Arc::new(out.finish()))
    }

    /// Appends one row's key bytes.
    pub fn append(&self, reader: &Reader<'_>, row: usize, out: &mut Vec<u8>) -> Result<()> {
        key::encode_one(&reader.get(row)?, self.order, out)
    }
}
