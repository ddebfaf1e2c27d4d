//! Cursors of a body: they are the session's, under the name that the variable holds.

use throng_bind::command::{Bound, BoundStatement, CursorOptions, FetchDirection};
use throng_syntax::plpgsql::{Fetch, Held, Opened, Slot, SourceId, Target, Way};
use throng_types::error::state;
use throng_types::{Datum, Error, Result, SqlType};
use throng_values::func::RelColumn;

use super::super::Session;
use super::Machine;
use super::bound_text::within_statement;
use super::command::Gathered;
use throng_exec::run::Row;

impl Session {
    /// The name of the cursor that a variable holds.
    pub(super) fn cursor_name(&self, m: &Machine, slot: Slot) -> Result<String> {
        match &m.values[usize::from(slot)] {
            Datum::Text(name) => Ok(name.to_string()),
            _ => {
                let message = format!("cursor variable \"{}\" is null", m.name(slot));
                Err(Error::new(state::NULL_VALUE_NOT_ALLOWED, message))
            }
        }
    }

    /// The name that a cursor to be opened gets, which the variable holds from here on.
    fn name_cursor(&self, m: &mut Machine, slot: Slot) -> Result<String> {
        let at = usize::from(slot);
        let portals = self.portals.borrow();
        if let Datum::Text(name) = &m.values[at] {
            let name = name.to_string();
            if portals.get(&name).is_some() {
                let message = format!("cursor \"{name}\" already in use");
                return Err(Error::new(state::DUPLICATE_CURSOR, message));
            }
            return Ok(name);
        }
        let number = &self.procedures.cursors;
        let name = loop {
            number.set(number.get().wrapping_add(1));
            let name = format!("<unnamed portal {}>", number.get());
            if portals.get(&name).is_none() {
                break name;
            }
        };
        m.values[at] = Datum::text(&name);
        Ok(name)
    }

    pub(super) async fn open(
        &self,
        m: &mut Machine,
        slot: Slot,
        what: &Opened,
        scroll: Option<bool>,
    ) -> Result<()> {
        match what {
            Opened::Bound { args } => self.open_bound(m, slot, args).await.map(|_| ()),
            Opened::Query(id) => {
                let name = self.name_cursor(m, slot)?;
                self.open_source(m, name, *id, scroll).await
            }
            Opened::Dynamic(dynamic) => {
                let name = self.name_cursor(m, slot)?;
                let (text, values, types) = self.dynamic_text(m, dynamic).await?;
                let bound = self.by_lasting_definitions(async |_| {
                    m.stale();
                    self.bind_dynamic(m, &text, &types).map(Some)
                });
                let bound = bound.await?;
                self.open_bound_query(m, name, bound, &text, values, scroll)
                    .await
            }
        }
    }

    /// Opens a bound cursor; its name.
    pub(super) async fn open_bound(
        &self,
        m: &mut Machine,
        slot: Slot,
        args: &[SourceId],
    ) -> Result<String> {
        let variable = &m.compiled.code.variables[usize::from(slot)];
        let Some(cursor) = variable.cursor.clone() else {
            return Err(Error::internal("a cursor without a query"));
        };
        let name = self.name_cursor(m, slot)?;
        for (arg, id) in cursor.args.iter().zip(args) {
            let held = m.held(*arg);
            let (value, ty) = self.value(m, *id, Some(held)).await?;
            self.store(m, &Target::of(*arg), value, ty).await?;
        }
        self.open_source(m, name.clone(), cursor.query, cursor.scroll)
            .await?;
        Ok(name)
    }

    async fn open_source(
        &self,
        m: &mut Machine,
        name: String,
        id: SourceId,
        scroll: Option<bool>,
    ) -> Result<()> {
        let source = m.source(id).clone();
        let bound = self.bound_source(m, &source).await?;
        let values = m.values.clone();
        self.open_bound_query(m, name, Some(bound), &source.text, values, scroll)
            .await
    }

    async fn open_bound_query(
        &self,
        m: &mut Machine,
        name: String,
        bound: Option<Bound>,
        text: &str,
        values: Vec<Datum>,
        scroll: Option<bool>,
    ) -> Result<()> {
        let Some(Bound {
            statement: BoundStatement::Query(query),
            ..
        }) = bound
        else {
            let word = text.split_whitespace().next().unwrap_or("").to_uppercase();
            let message = format!("cannot open {word} query as cursor");
            return Err(Error::new(state::INVALID_CURSOR_DEFINITION, message));
        };
        if m.caller.is_none() {
            self.transaction()?.txn.next_command()?;
        }
        let options = CursorOptions {
            scroll,
            insensitive: false,
            hold: false,
            binary: false,
        };
        let outer = self.command_values.replace(values);
        let caller = m.caller.as_ref();
        let opening = self.open_cursor(name, *query, options, text, caller);
        let opened = Box::pin(opening).await;
        *self.command_values.borrow_mut() = outer;
        m.stale();
        opened.map_err(|e| within_statement(e, text))
    }

    /// Rows of a cursor, and their columns.
    pub(super) async fn fetched(
        &self,
        name: &str,
        direction: FetchDirection,
    ) -> Result<(Vec<Row>, Vec<RelColumn>)> {
        let mut client = Gathered::new(self);
        Box::pin(self.fetch(name, direction, false, &mut client)).await?;
        Ok((client.rows, client.columns))
    }

    pub(super) async fn fetch_into(&self, m: &mut Machine, fetch: &Fetch) -> Result<()> {
        let name = self.cursor_name(m, fetch.cursor)?;
        let mut count = fetch.count;
        if let Some(id) = fetch.count_of {
            let held = Held {
                ty: SqlType::INT4,
                domain: None,
            };
            count = match self.value(m, id, Some(held)).await? {
                (Datum::Int4(n), _) => n.into(),
                _ => {
                    let message = "relative or absolute cursor position is null";
                    return Err(Error::new(state::NULL_VALUE_NOT_ALLOWED, message));
                }
            };
        }
        let direction = match fetch.way {
            Way::Forward => FetchDirection::Forward(count),
            Way::Backward => FetchDirection::Backward(count),
            Way::Absolute => FetchDirection::Absolute(count),
            Way::Relative => FetchDirection::Relative(count),
        };
        let Some(into) = &fetch.into else {
            let mut client = Gathered::new(self);
            let moved = Box::pin(self.fetch(&name, direction, true, &mut client)).await?;
            m.row_count = moved;
            m.set_found(moved > 0);
            m.stale();
            return Ok(());
        };
        let (rows, columns) = self.fetched(&name, direction).await?;
        m.stale();
        let shape = super::record::shape_of(&columns);
        let row = rows.first().map(Vec::as_slice);
        self.put_into(m, into, row, &columns, &shape).await?;
        m.row_count = rows.len() as u64;
        m.set_found(row.is_some());
        Ok(())
    }
}
