//! Loops that go through values: integers, rows, items of an array.

use std::rc::Rc;
use std::sync::Arc;

use throng_syntax::plpgsql::{Destination, Held, Rows, Slot, Target};
use throng_types::error::state;
use throng_types::sqltype::element_of;
use throng_types::{Array, Datum, Error, Result, SqlType};
use throng_values::func::RelColumn;

use super::super::Session;
use super::Machine;
use super::rows::Query;
use throng_exec::run::Row;

/// A loop under way.
pub(super) enum Loop {
    Ints {
        next: Option<i32>,
        until: i32,
        step: i32,
        reverse: bool,
        found: bool,
    },
    Rows {
        query: Box<Query>,
        found: bool,
    },
    /// The cursor's name.
    Cursor {
        name: String,
        found: bool,
    },
    Items {
        array: Arc<Array>,
        ty: SqlType,
        at: usize,
        slice: u32,
        found: bool,
    },
}

impl Loop {
    pub fn found(&self) -> bool {
        match self {
            Loop::Ints { found, .. }
            | Loop::Rows { found, .. }
            | Loop::Cursor { found, .. }
            | Loop::Items { found, .. } => *found,
        }
    }

    /// The transaction is about to end, and the loop goes on.
    pub async fn survive(&mut self, session: &Session) -> Result<()> {
        match self {
            Loop::Rows { query, .. } => session.store_rest(query).await,
            Loop::Cursor { .. } => Err(Error::unsupported(
                "COMMIT and ROLLBACK inside a loop over a cursor",
            )),
            _ => Ok(()),
        }
    }
}

impl Session {
    async fn bound(&self, m: &mut Machine, id: usize, what: &str) -> Result<i32> {
        let held = Held {
            ty: SqlType::INT4,
            domain: None,
        };
        match self.value(m, id, Some(held)).await? {
            (Datum::Int4(n), _) => Ok(n),
            _ => {
                let message = format!("{what} of FOR loop cannot be null");
                Err(Error::new(state::NULL_VALUE_NOT_ALLOWED, message))
            }
        }
    }

    pub(super) async fn for_int(
        &self,
        m: &mut Machine,
        _: Slot,
        from: usize,
        until: usize,
        step: Option<usize>,
        reverse: bool,
    ) -> Result<()> {
        let from = self.bound(m, from, "lower bound").await?;
        let until = self.bound(m, until, "upper bound").await?;
        let step = match step {
            None => 1,
            Some(step) => self.bound(m, step, "BY value").await?,
        };
        if step <= 0 {
            let message = "BY value of FOR loop must be greater than zero";
            return Err(Error::new(state::INVALID_PARAMETER_VALUE, message));
        }
        m.loops.push(Loop::Ints {
            next: Some(from),
            until,
            step,
            reverse,
            found: false,
        });
        Ok(())
    }

    pub(super) fn next_int(&self, m: &mut Machine, slot: Slot) -> Result<bool> {
        let Some(Loop::Ints {
            next,
            until,
            step,
            reverse,
            found,
        }) = m.loops.last_mut()
        else {
            return Err(Error::internal("a loop over integers that is none"));
        };
        let within = |n: &i32| match reverse {
            true => *n >= *until,
            false => *n <= *until,
        };
        let Some(value) = next.filter(within) else {
            return Ok(false);
        };
        *next = match reverse {
            true => value.checked_sub(*step),
            false => value.checked_add(*step),
        };
        *found = true;
        m.values[usize::from(slot)] = Datum::Int4(value);
        Ok(true)
    }

    pub(super) async fn for_rows(
        &self,
        m: &mut Machine,
        rows: &Rows,
        _: &Destination,
    ) -> Result<()> {
        if let Rows::Cursor { slot, args } = rows {
            let name = self.open_bound(m, *slot, args).await?;
            m.loops.push(Loop::Cursor { name, found: false });
            return Ok(());
        }
        let query = self.open_rows(m, rows).await?;
        m.loops.push(Loop::Rows {
            query: Box::new(query),
            found: false,
        });
        Ok(())
    }

    /// The next row into the loop's variables; where there was none at all, they are NULL.
    pub(super) async fn next_of_rows(&self, m: &mut Machine, into: &Destination) -> Result<bool> {
        let Some(mut state) = m.loops.pop() else {
            return Err(Error::internal("a loop over rows that is none"));
        };
        let next = self.row_of_loop(m, &mut state, into).await;
        m.loops.push(state);
        next
    }

    async fn row_of_loop(
        &self,
        m: &mut Machine,
        state: &mut Loop,
        into: &Destination,
    ) -> Result<bool> {
        match state {
            Loop::Rows { query, found } => {
                let mut row = Row::new();
                if !self.next_row(query, &mut row).await? {
                    if !*found {
                        let (columns, shape) = (query.columns.clone(), query.shape.clone());
                        self.put_into(m, into, None, &columns, &shape).await?;
                    }
                    return Ok(false);
                }
                *found = true;
                let (columns, shape) = (query.columns.clone(), query.shape.clone());
                self.put_into(m, into, Some(&row), &columns, &shape).await?;
                Ok(true)
            }
            Loop::Cursor { name, found } => {
                let (rows, columns) = self.fetched(name, next_one()).await?;
                let shape = super::record::shape_of(&columns);
                let row = rows.first().map(Vec::as_slice);
                if row.is_some() || !*found {
                    self.put_into(m, into, row, &columns, &shape).await?;
                }
                *found |= row.is_some();
                Ok(row.is_some())
            }
            _ => Err(Error::internal("a loop over rows that is none")),
        }
    }

    /// A loop is over, or was left.
    pub(super) fn loop_ended(&self, ended: &Loop) {
        if let Loop::Cursor { name, .. } = ended {
            self.portals.borrow_mut().remove(name);
        }
    }

    pub(super) async fn for_each(
        &self,
        m: &mut Machine,
        into: &Destination,
        slice: u32,
        id: usize,
    ) -> Result<()> {
        let (value, ty) = self.value(m, id, None).await?;
        let array = match value {
            Datum::Null => {
                let message = "FOREACH expression must not be null";
                return Err(Error::new(state::NULL_VALUE_NOT_ALLOWED, message));
            }
            Datum::Array(array) => array,
            _ => {
                let message = format!(
                    "FOREACH expression must yield an array, not type {}",
                    throng_types::sqltype::type_name(ty.oid)
                );
                return Err(Error::new(state::DATATYPE_MISMATCH, message));
            }
        };
        let dims = array.dims.len() as u32;
        if slice > dims {
            let message = format!("slice dimension ({slice}) is out of the valid range 0..{dims}");
            return Err(Error::new(state::ARRAY_SUBSCRIPT_ERROR, message));
        }
        let now = self.now(m);
        let is_array = match into {
            Destination::List(targets) if targets.len() == 1 => {
                let (held, _) = self.place_of(m, &targets[0], &now.catalog)?;
                held.ty.info().is_some_and(|t| t.is_array())
            }
            _ => false,
        };
        if slice > 0 && !is_array {
            let message = "FOREACH ... SLICE loop variable must be of an array type";
            return Err(Error::new(state::DATATYPE_MISMATCH, message));
        }
        if slice == 0 && is_array {
            let message = "FOREACH loop variable must not be of an array type";
            return Err(Error::new(state::DATATYPE_MISMATCH, message));
        }
        m.loops.push(Loop::Items {
            array,
            ty,
            at: 0,
            slice,
            found: false,
        });
        Ok(())
    }

    pub(super) async fn next_item(&self, m: &mut Machine, into: &Destination) -> Result<bool> {
        let Some(Loop::Items {
            array,
            ty,
            at,
            slice,
            found,
        }) = m.loops.last_mut()
        else {
            return Err(Error::internal("a loop over an array that is none"));
        };
        let slice = *slice as usize;
        let width: usize = match slice {
            0 => 1,
            slice => {
                let from = array.dims.len() - slice;
                array.dims[from..].iter().map(|d| d.len as usize).product()
            }
        };
        if *at >= array.items.len() || width == 0 {
            return Ok(false);
        }
        let items = &array.items[*at..(*at + width).min(array.items.len())];
        let (value, from) = match slice {
            0 => {
                let element = element_of(ty.oid).unwrap_or(ty.oid);
                (items[0].clone(), SqlType::plain(element))
            }
            slice => {
                let dims = array.dims[array.dims.len() - slice..].to_vec();
                let part = Array {
                    element: array.element,
                    dims,
                    items: items.to_vec(),
                };
                (Datum::array(part), *ty)
            }
        };
        *at += width;
        *found = true;
        match into {
            Destination::Record(slot) => self.put(m, &Target::of(*slot), value, from).await?,
            Destination::List(targets) if targets.len() == 1 => {
                self.put(m, &targets[0], value, from).await?
            }
            Destination::List(_) => self.spread(m, into, value).await?,
        }
        Ok(true)
    }

    /// Puts the fields of a row into a list of places.
    async fn spread(&self, m: &mut Machine, into: &Destination, value: Datum) -> Result<()> {
        let record = match value {
            Datum::Null => return self.put_into(m, into, None, &[], &Rc::from([])).await,
            Datum::Record(record) => record,
            _ => {
                let message = "cannot assign non-composite value to a row variable";
                return Err(Error::new(state::DATATYPE_MISMATCH, message));
            }
        };
        let shape = super::record::shape_of_record(&record);
        let column = |(name, ty): &(String, SqlType)| RelColumn {
            name: name.clone(),
            ty: *ty,
        };
        let columns: Vec<RelColumn> = shape.iter().map(column).collect();
        self.put_into(m, into, Some(&record.values), &columns, &shape)
            .await
    }
}

pub(super) fn next_one() -> throng_bind::command::FetchDirection {
    throng_bind::command::FetchDirection::Forward(1)
}
