//! Rows in variables: their shapes, and how one row becomes another.

use std::rc::Rc;
use std::sync::Arc;

use throng_bind::binder::{self, RowShape};
use throng_bind::expr::Expr;
use throng_catalog::Catalog;
use throng_exec::drive::wait;
use throng_syntax::plpgsql::{Held, Slot, Target};
use throng_types::datum::Record;
use throng_types::error::state;
use throng_types::sqltype::made;
use throng_types::{Datum, Error, Oid, Result, SqlType, Text, oid};
use throng_values::func::RelColumn;

use super::super::Session;
use super::Machine;
use throng_exec::run::context::Cx;
use throng_exec::run::eval::eval;

#[cold]
fn unassigned(name: &str) -> Error {
    let message = format!("record \"{name}\" is not assigned yet");
    Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
        .detail("The tuple structure of a not-yet-assigned record is indeterminate.")
}

pub(super) fn shape_of(columns: &[RelColumn]) -> RowShape {
    columns.iter().map(|c| (c.name.clone(), c.ty)).collect()
}

pub(super) fn record(shape: &[(String, SqlType)], values: Vec<Datum>) -> Datum {
    let types: Box<[Oid]> = shape.iter().map(|(_, ty)| ty.oid).collect();
    let names: Arc<[Text]> = shape.iter().map(|(name, _)| Text::new(name)).collect();
    Datum::Record(Arc::new(Record {
        types: types.into(),
        names: Some(names),
        values,
    }))
}

/// What a record's fields are called and of which types they are.
pub(super) fn shape_of_record(record: &Record) -> RowShape {
    let name = |i: usize| match &record.names {
        Some(names) => names.get(i).map_or_else(String::new, |n| n.to_string()),
        None => format!("f{}", i + 1),
    };
    let types = record.types.iter().enumerate();
    types
        .map(|(i, ty)| (name(i), SqlType::plain(*ty)))
        .collect()
}

impl Session {
    /// The fields of a variable that holds a row, with what they hold.
    pub(super) fn fields(
        &self,
        m: &Machine,
        slot: Slot,
        catalog: &Catalog,
    ) -> Result<Vec<(String, Held)>> {
        let at = usize::from(slot);
        let ty = m.types[at];
        if ty.oid != oid::RECORD {
            return binder::composite_shape(catalog, ty.oid)
                .ok_or_else(|| Error::internal("a variable of a type that is gone"));
        }
        let shape = m.shapes[at]
            .as_ref()
            .ok_or_else(|| unassigned(m.name(slot)))?;
        let held = |ty: SqlType| Held { ty, domain: None };
        Ok(shape
            .iter()
            .map(|(name, ty)| (name.clone(), held(*ty)))
            .collect())
    }

    /// What a target holds, and its value as an expression, but for the parts of it.
    pub(super) fn place_of(
        &self,
        m: &Machine,
        target: &Target,
        catalog: &Catalog,
    ) -> Result<(Held, Expr)> {
        let whole = Expr::Param(target.slot, m.types[usize::from(target.slot)]);
        let Some(field) = &target.field else {
            return Ok((m.held(target.slot), whole));
        };
        let fields = self.fields(m, target.slot, catalog)?;
        let Some(index) = fields.iter().position(|(name, _)| name == field) else {
            let message = format!(
                "record \"{}\" has no field \"{field}\"",
                m.name(target.slot)
            );
            return Err(Error::new(state::UNDEFINED_COLUMN, message));
        };
        let held = fields[index].1;
        let value = Expr::Field {
            row: Box::new(whole),
            index: index as u16,
            ty: held.ty,
        };
        Ok((held, value))
    }

    /// Puts a value of the right type into a target.
    pub(super) async fn store(
        &self,
        m: &mut Machine,
        target: &Target,
        value: Datum,
        ty: SqlType,
    ) -> Result<()> {
        let at = usize::from(target.slot);
        let Some(field) = &target.field else {
            return self.store_whole(m, target.slot, value, ty).await;
        };
        let now = self.now(m);
        let fields = self.fields(m, target.slot, &now.catalog)?;
        let Some(index) = fields.iter().position(|(name, _)| name == field) else {
            let message = format!(
                "record \"{}\" has no field \"{field}\"",
                m.name(target.slot)
            );
            return Err(Error::new(state::UNDEFINED_COLUMN, message));
        };
        let value = match fields[index].1 {
            held if is_row(held.ty) => Box::pin(self.as_row_of(m, value, ty, held)).await?,
            _ => value,
        };
        if let Datum::Record(record) = &mut m.values[at]
            && record.values.len() == fields.len()
        {
            throng_types::height::check(std::slice::from_ref(&value))?;
            let record = Arc::make_mut(record);
            record.values[index] = value;
            return m.weigh(at);
        }
        let shape: Vec<(String, SqlType)> = fields
            .into_iter()
            .map(|(name, held)| (name, held.ty))
            .collect();
        let mut values = vec![Datum::Null; shape.len()];
        values[index] = value;
        m.values[at] = record(&shape, values);
        m.weigh(at)
    }

    /// Puts a value into a variable.
    pub(super) async fn store_whole(
        &self,
        m: &mut Machine,
        slot: Slot,
        value: Datum,
        ty: SqlType,
    ) -> Result<()> {
        let at = usize::from(slot);
        let variable = &m.compiled.code.variables[at];
        if variable.not_null && value.is_null() {
            let message = format!(
                "null value cannot be assigned to variable \"{}\" declared NOT NULL",
                variable.name
            );
            return Err(Error::new(state::NULL_VALUE_NOT_ALLOWED, message));
        }
        let held = m.held(slot);
        if !is_row(held.ty) {
            m.values[at] = value;
            return m.weigh(at);
        }
        if held.ty.oid != oid::RECORD {
            m.values[at] = Box::pin(self.as_row_of(m, value, ty, held)).await?;
            return m.weigh(at);
        }
        match &value {
            Datum::Record(given) => {
                let shape = shape_of_record(given);
                let same = m.shapes[at].as_ref().is_some_and(|had| **had == *shape);
                if !same {
                    m.shapes[at] = Some(shape.clone());
                }
                m.values[at] = match given.names {
                    Some(_) => value,
                    None => record(&shape, given.values.clone()),
                };
            }
            Datum::Null => {
                m.shapes[at] = match made::is_composite(ty.oid) {
                    true => {
                        let now = self.now(m);
                        let fields = binder::composite_shape(&now.catalog, ty.oid);
                        fields.map(|f| f.into_iter().map(|(n, held)| (n, held.ty)).collect())
                    }
                    false => None,
                };
                m.values[at] = Datum::Null;
            }
            _ => return Err(no_row()),
        }
        m.weigh(at)
    }

    /// A value as a row of a composite type, field by field.
    pub(super) async fn as_row_of(
        &self,
        m: &mut Machine,
        value: Datum,
        ty: SqlType,
        held: Held,
    ) -> Result<Datum> {
        let given = match &value {
            Datum::Null => return Ok(Datum::Null),
            Datum::Record(_) if ty.oid == held.ty.oid => return Ok(value),
            Datum::Record(given) => given.clone(),
            _ => return Err(no_row()),
        };
        let types: Vec<SqlType> = given.types.iter().map(|ty| SqlType::plain(*ty)).collect();
        self.row_of(m, &given.values, &types, held).await
    }

    /// Values as a row of a composite type: those that are missing are NULL, those past the last
    /// are left out.
    async fn row_of(
        &self,
        m: &mut Machine,
        values: &[Datum],
        types: &[SqlType],
        held: Held,
    ) -> Result<Datum> {
        let now = self.now(m);
        let fields = binder::composite_shape(&now.catalog, held.ty.oid)
            .ok_or_else(|| Error::internal("a variable of a type that is gone"))?;
        let mut row = Vec::with_capacity(fields.len());
        let mut shape = Vec::with_capacity(fields.len());
        for (i, (name, field)) in fields.into_iter().enumerate() {
            let given = values.get(i).cloned().unwrap_or_default();
            let from = types.get(i).copied().unwrap_or(field.ty);
            row.push(match is_row(field.ty) {
                true => Box::pin(self.as_row_of(m, given, from, field)).await?,
                false => self.coerce(m, given, from, field).await?,
            });
            shape.push((name, field.ty));
        }
        Ok(record(&shape, row))
    }

    /// Puts a row into a variable; no values: there was no row.
    pub(super) async fn store_row(
        &self,
        m: &mut Machine,
        slot: Slot,
        values: Option<&[Datum]>,
        columns: &[RelColumn],
        shape: &RowShape,
    ) -> Result<()> {
        let at = usize::from(slot);
        let held = m.held(slot);
        if held.ty.oid != oid::RECORD {
            m.values[at] = match values {
                None => Datum::Null,
                Some(values) => {
                    let types: Vec<SqlType> = columns.iter().map(|c| c.ty).collect();
                    // A row that is one value of the type.
                    if let ([Datum::Record(_)], [ty]) = (values, &types[..])
                        && ty.oid == held.ty.oid
                    {
                        values[0].clone()
                    } else {
                        self.row_of(m, values, &types, held).await?
                    }
                }
            };
        } else {
            if !m.shapes[at]
                .as_ref()
                .is_some_and(|had| Rc::ptr_eq(had, shape))
            {
                m.shapes[at] = Some(shape.clone());
            }
            let nulls = || vec![Datum::Null; shape.len()];
            m.values[at] = record(shape, values.map_or_else(nulls, <[Datum]>::to_vec));
        }
        let variable = &m.compiled.code.variables[at];
        if variable.not_null && m.values[at].is_null() {
            return self.store_whole(m, slot, Datum::Null, held.ty).await;
        }
        m.weigh(at)
    }

    /// A value as one of another type, as an assignment makes it.
    pub(super) async fn coerce(
        &self,
        m: &mut Machine,
        value: Datum,
        from: SqlType,
        to: Held,
    ) -> Result<Datum> {
        let plain = to.domain.is_none() && (from.oid == to.ty.oid && to.ty.typmod == -1);
        if plain || value.is_null() && to.domain.is_none() || is_row(to.ty) {
            return Ok(value);
        }
        let key = (from, to.ty, to.domain);
        let known = m.compiled.casts.borrow().get(&key).cloned();
        let now = self.now(m);
        let cast = match known {
            Some(cast) => cast,
            None => {
                let cast = self.with_context(&now.catalog, |ctx| binder::pl_cast(ctx, from, to))?;
                let cast = cast.map(Rc::new);
                // A domain may be altered.
                if to.domain.is_none() {
                    m.compiled.casts.borrow_mut().insert(key, cast.clone());
                }
                cast
            }
        };
        let Some(cast) = cast else {
            return Ok(value);
        };
        let snapshot = match &m.caller {
            Some(caller) => caller.clone(),
            None => self.transaction()?.txn.snapshot(),
        };
        let host = self.host(&now.catalog);
        let values = [value];
        let env = self.env(&now.catalog, &host, &snapshot, &values);
        let mut patience = throng_buffer::Patience::default();
        loop {
            env.effects.again();
            match eval(&cast, &[], &mut Cx::new(env, &mut m.memory)) {
                Ok(value) => {
                    env.effects.done();
                    return Ok(value);
                }
                Err(stop) => Box::pin(wait(stop, env, &mut patience)).await?,
            }
        }
    }
}

pub(in super::super) fn is_row(ty: SqlType) -> bool {
    ty.oid == oid::RECORD || made::is_composite(ty.oid)
}

#[cold]
fn no_row() -> Error {
    let message = "cannot assign non-composite value to a record variable";
    Error::new(state::DATATYPE_MISMATCH, message)
}
