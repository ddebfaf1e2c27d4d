//! What triggers the table that a statement names has for the statement as a whole.

use std::rc::Rc;
use std::sync::Arc;

use throng_catalog::{TableDef, fires};
use throng_types::{Datum, Result, Tid};

use super::queue::Capture;
use super::{Queued, Rows, Triggers, Updated};
use crate::write::Context;

/// A statement's table, while the statement runs.
pub struct Named {
    triggers: Option<Rc<Triggers>>,
    /// Where changed rows are kept, for each event whose triggers look at them.
    captures: Vec<(i16, Rc<Capture>)>,
    events: Vec<i16>,
}

impl Named {
    /// Runs BEFORE STATEMENT triggers on the events, in their order.
    pub async fn begin(
        triggers: Option<&Rc<Triggers>>,
        events: &[i16],
        set: &[u16],
        cx: &Context<'_>,
    ) -> Result<Named> {
        let Some(triggers) = triggers else {
            return Ok(Named {
                triggers: None,
                captures: Vec::new(),
                events: Vec::new(),
            });
        };
        let mut captures = Vec::new();
        for event in events {
            triggers.before_statement(*event, set, cx).await?;
            if triggers.keeps_rows(*event) {
                let queue = &cx.deferred.triggers;
                let capture = queue.capture(triggers.def.oid, *event, cx.work_mem);
                captures.push((*event, capture));
            }
        }
        Ok(Named {
            triggers: Some(triggers.clone()),
            captures,
            events: events.to_vec(),
        })
    }

    /// As [`Named::begin`], of a table whose rows lie in others.
    pub async fn begin_over(
        table: &Arc<TableDef>,
        events: &[i16],
        set: &[u16],
        cx: &Context<'_>,
    ) -> Result<Named> {
        let triggers = Triggers::of(table, cx)?;
        Named::begin(triggers.as_ref(), events, set, cx).await
    }

    /// Whether rows are to be told of, as the named table has them.
    #[inline]
    pub fn keeps_rows(&self) -> bool {
        !self.captures.is_empty()
    }

    /// A row changed, as the named table has it.
    #[inline]
    pub fn changed(&self, event: i16, old: Option<&[Datum]>, new: Option<&[Datum]>) -> Result<()> {
        if self.captures.is_empty() {
            return Ok(());
        }
        let capture = self.captures.iter().find(|(of, _)| *of == event);
        match (capture, &self.triggers) {
            (Some((_, capture)), Some(triggers)) => capture.add(triggers, Rows { old, new }),
            _ => Ok(()),
        }
    }

    /// Queues AFTER STATEMENT triggers, those of the last event first.
    pub async fn end(self, set: &[u16], cx: &Context<'_>) -> Result<()> {
        let Some(triggers) = &self.triggers else {
            return Ok(());
        };
        for event in self.events.iter().rev() {
            triggers.after_statement(*event, set, cx).await?;
        }
        Ok(())
    }
}

impl Triggers {
    fn keeps_rows(&self, event: i16) -> bool {
        let mut own = self.own.iter();
        own.any(|t| t.def.is_on(event) && t.def.has_transition_tables())
    }

    async fn before_statement(&self, event: i16, set: &[u16], cx: &Context<'_>) -> Result<()> {
        let updated = Some(Updated { set, columns: None });
        let on = |bits: i16| self.own.iter().any(|t| self.runs(t, bits, event, updated));
        if !on(fires::BEFORE) || !cx.deferred.triggers.begins(self.def.oid, event) {
            return Ok(());
        }
        let rows = Rows::default();
        for place in self
            .set_off(fires::BEFORE, event, updated, rows, cx)
            .await?
        {
            let ready = &self.own[usize::from(place)];
            self.call(ready, event, rows, Queued::default(), cx).await?;
        }
        Ok(())
    }

    async fn after_statement(
        self: &Rc<Self>,
        event: i16,
        set: &[u16],
        cx: &Context<'_>,
    ) -> Result<()> {
        let updated = Some(Updated { set, columns: None });
        let which = self.set_off(0, event, updated, Rows::default(), cx).await?;
        if which.is_empty() {
            return Ok(());
        }
        let queue = &cx.deferred.triggers;
        queue.take_back(self.def.oid, event);
        let places = (Tid::NONE, Tid::NONE);
        queue.add(self, event, which, places, cx)
    }
}
