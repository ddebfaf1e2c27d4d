//! Texts that were bound: what is kept of them, and how long it is good.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use throng_bind::binder::{self, BindContext, PlTarget, PlValue, Variables, Visible};
use throng_bind::command::{Bound, BoundStatement};
use throng_bind::expr::Expr;
use throng_catalog::Catalog;
use throng_exec::drive::wait;
use throng_plan::PlannedStatement;
use throng_syntax::plpgsql::{Held, Slot, Source, SourceId, SourceKind, Target};
use throng_types::error::state;
use throng_types::sqltype::made;
use throng_types::{Datum, Error, Result, SqlType, oid};
use throng_values::func::RelColumn;

use super::super::statement::plans::{CachedPlan, PlanKey};
use super::super::statement::understand::about;
use super::super::{Session, SharedCatalog};
use super::{Machine, Now};
use throng_exec::run::context::Cx;
use throng_exec::run::eval::eval;

/// A text that was bound.
pub(super) struct BoundText {
    key: PlanKey,
    catalog: SharedCatalog,
    /// The rows in sight, and what they were like.
    rows: Vec<(Slot, SqlType, Option<binder::RowShape>)>,
    pub what: Meant,
}

pub(super) enum Meant {
    /// An expression, and whether functions that users made are called in it.
    Value {
        expr: Expr,
        calls: bool,
    },
    Query(Planned),
}

pub(super) struct Planned {
    pub known: CachedPlan,
    pub columns: Vec<RelColumn>,
}

impl BoundText {
    pub fn query(&self) -> Result<&Planned> {
        match &self.what {
            Meant::Query(planned) => Ok(planned),
            Meant::Value { .. } => Err(Error::internal("an expression where a query is wanted")),
        }
    }
}

impl Planned {
    pub fn plan(&self) -> Result<&Arc<PlannedStatement>> {
        let plan = self.known.plan.as_ref();
        plan.ok_or_else(|| Error::internal("a statement without a plan"))
    }
}

/// What a text is bound to be.
#[derive(Clone, Copy)]
pub(super) enum As<'t> {
    /// A value of that type, if it has to be of one.
    Value(Option<Held>),
    Assigned(&'t Target),
    Statement,
}

impl Machine {
    pub(super) fn source(&self, id: SourceId) -> &Source {
        &self.compiled.code.sources[id]
    }

    fn fits(&self, kept: &BoundText, now: &Now) -> bool {
        kept.key == now.key
            && Rc::ptr_eq(&kept.catalog, &now.catalog)
            && kept.rows.iter().all(|(slot, ty, shape)| {
                let at = usize::from(*slot);
                self.types[at] == *ty && same_shape(&self.shapes[at], shape)
            })
    }

    /// The variables that a text sees.
    pub(super) fn visible_of(&self, source: &Source) -> Rc<Variables> {
        let code = &self.compiled.code;
        let list = code.in_sight(source).into_iter();
        let list = list.map(|(label, name, slot)| Visible {
            label: label.map(str::to_owned),
            name: name.to_owned(),
            slot,
            ty: self.types[usize::from(slot)],
            fields: self.shapes[usize::from(slot)].clone(),
        });
        Rc::new(Variables {
            list: list.collect(),
            types: self.types.clone(),
            conflict: code.conflict,
        })
    }

    fn rows_in_sight(&self, source: &Source) -> Vec<(Slot, SqlType, Option<binder::RowShape>)> {
        let code = &self.compiled.code;
        let seen = code.in_sight(source).into_iter().map(|(_, _, slot)| slot);
        let changes = |slot: &Slot| {
            let at = usize::from(*slot);
            let ty = self.types[at].oid;
            ty == oid::RECORD || made::is_composite(ty) || code.variables[at].any_type
        };
        let seen = seen.filter(changes);
        seen.map(|slot| {
            let at = usize::from(slot);
            (slot, self.types[at], self.shapes[at].clone())
        })
        .collect()
    }
}

fn same_shape(a: &Option<binder::RowShape>, b: &Option<binder::RowShape>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => Rc::ptr_eq(a, b) || a == b,
        _ => false,
    }
}

/// A statement that is no query where its rows are wanted.
fn gives_no_rows(text: &str) -> Error {
    let word = text.split_whitespace().next().unwrap_or_default();
    let word = match word.to_uppercase() {
        select if select == "SELECT" => "SELECT INTO".to_owned(),
        other => other,
    };
    let message = format!("{word} query does not return tuples");
    Error::new(state::SYNTAX_ERROR, message)
}

impl Session {
    pub(super) fn now(&self, m: &mut Machine) -> Now {
        if let Some(now) = &m.now {
            return now.clone();
        }
        let catalog = self.catalog();
        let key = self.plan_key_of(&catalog);
        let now = Now { catalog, key };
        m.now = Some(now.clone());
        now
    }

    /// A text as it was bound, or is now.
    #[inline]
    pub(super) async fn kept(
        &self,
        m: &mut Machine,
        id: SourceId,
        wanted: As<'_>,
    ) -> Result<Rc<BoundText>> {
        match self.kept_now(m, id, wanted) {
            Err(e) if !e.fields().relations.is_empty() => {
                Box::pin(self.kept_again(m, id, wanted)).await
            }
            kept => kept,
        }
    }

    #[cold]
    async fn kept_again(
        &self,
        m: &mut Machine,
        id: SourceId,
        wanted: As<'_>,
    ) -> Result<Rc<BoundText>> {
        self.by_lasting_definitions(async |_| {
            m.stale();
            self.kept_now(m, id, wanted).map(Some)
        })
        .await
    }

    fn kept_now(&self, m: &mut Machine, id: SourceId, wanted: As<'_>) -> Result<Rc<BoundText>> {
        if m.now.is_none() {
            self.now(m);
        }
        if let (Some(kept), Some(now)) = (&*m.compiled.kept[id].borrow(), &m.now)
            && m.fits(kept, now)
        {
            let outgrown = match &kept.what {
                Meant::Query(planned) => planned.known.is_outgrown(&self.engine.store),
                Meant::Value { .. } => false,
            };
            if !outgrown {
                return Ok(kept.clone());
            }
        }
        let now = self.now(m);
        let made = self.bind_text(m, id, wanted, &now);
        let kept = Rc::new(made.map_err(|e| about_text(e, m.source(id)))?);
        *m.compiled.kept[id].borrow_mut() = Some(kept.clone());
        Ok(kept)
    }

    /// A statement of a body, as it is meant by definitions that somebody may still change.
    pub(super) async fn bound_source(&self, m: &mut Machine, source: &Source) -> Result<Bound> {
        self.by_lasting_definitions(async |_| {
            m.stale();
            self.bind_source(m, source).map(Some)
        })
        .await
    }

    pub(super) fn bind_source(&self, m: &mut Machine, source: &Source) -> Result<Bound> {
        let now = self.now(m);
        let variables = m.visible_of(source);
        let bound = self.with_context(&now.catalog, |ctx| {
            binder::pl_statement(ctx, &variables, &source.text)
        });
        bound.map_err(|e| about_text(e, source))
    }

    #[cold]
    fn bind_text(
        &self,
        m: &mut Machine,
        id: SourceId,
        wanted: As<'_>,
        now: &Now,
    ) -> Result<BoundText> {
        let source = m.source(id);
        let variables = m.visible_of(source);
        let mut rows = m.rows_in_sight(source);
        let what = self.with_context(&now.catalog, |ctx| {
            Ok(match wanted {
                As::Value(held) => binder::pl_expression(ctx, &variables, &source.text, held)?,
                As::Assigned(target) => {
                    let slot = usize::from(target.slot);
                    rows.push((target.slot, m.types[slot], m.shapes[slot].clone()));
                    let (held, base) = self.place_of(m, target, &now.catalog)?;
                    let place = PlTarget {
                        name: m.name(target.slot),
                        base: &base,
                        held,
                        parts: &target.parts,
                    };
                    binder::pl_assignment(ctx, &variables, &source.text, &place)?
                }
                As::Statement => {
                    let Bound { statement, notices } =
                        binder::pl_statement(ctx, &variables, &source.text)?;
                    for notice in notices {
                        self.tell(notice)?;
                    }
                    let BoundStatement::Query(query) = statement else {
                        return Err(gives_no_rows(&source.text));
                    };
                    PlValue::Query(query)
                }
            })
        })?;
        let what = match what {
            PlValue::Simple(expr) => Meant::Value {
                calls: expr.any(&mut |e| matches!(e, Expr::Routine(_))),
                expr,
            },
            PlValue::Query(query) => Meant::Query(self.planned(*query, &now.catalog)?),
        };
        Ok(BoundText {
            key: now.key,
            catalog: now.catalog.clone(),
            rows,
            what,
        })
    }

    pub(super) fn planned(
        &self,
        query: throng_bind::query::BoundQuery,
        catalog: &Catalog,
    ) -> Result<Planned> {
        let plan = Arc::new(self.plan_in(query, catalog)?);
        let columns = plan.output.iter().map(|c| RelColumn {
            name: c.name.clone(),
            ty: c.ty,
        });
        let columns = columns.collect();
        let known = CachedPlan::new("", None, Vec::new(), None);
        Ok(Planned {
            known: known.planned(plan, &self.engine.store, catalog),
            columns,
        })
    }

    /// Whatever is bound in a body is bound in this.
    pub(in crate::session) fn with_context<T>(
        &self,
        catalog: &Catalog,
        f: impl FnOnce(&BindContext<'_>) -> Result<T>,
    ) -> Result<T> {
        self.with_parameters(catalog, &[], f)
    }

    pub(super) fn with_parameters<T>(
        &self,
        catalog: &Catalog,
        params: &[SqlType],
        f: impl FnOnce(&BindContext<'_>) -> Result<T>,
    ) -> Result<T> {
        let host = self.host(catalog);
        let search_path = self.search_path(catalog);
        let path_setting = self.path_setting();
        let role = self.role();
        let named = RefCell::default();
        let bound = f(&BindContext {
            catalog,
            search_path: &search_path,
            creation_schema: catalog.creation_schema(&path_setting, &role.name),
            temporary_schema: self.temporary.schema(catalog),
            user: role.oid,
            params,
            eval: host.eval(),
            prepared: &|name| self.parameters_of(name),
            named: Some(&named),
        });
        bound.map_err(|e| about(e, named))
    }

    /// The value of an expression, and its type.
    pub(super) async fn value(
        &self,
        m: &mut Machine,
        id: SourceId,
        wanted: Option<Held>,
    ) -> Result<(Datum, SqlType)> {
        self.value_as(m, id, As::Value(wanted), wanted).await
    }

    pub(super) async fn value_as(
        &self,
        m: &mut Machine,
        id: SourceId,
        bound_as: As<'_>,
        wanted: Option<Held>,
    ) -> Result<(Datum, SqlType)> {
        let kept = self.kept(m, id, bound_as).await?;
        if let Meant::Value { expr, calls } = &kept.what {
            let value = self.evaluate(m, expr, *calls).await?;
            return Ok((value, expr.ty()));
        }
        let found = Box::pin(self.value_of_query(m, id, &kept)).await;
        let (value, ty) = found.map_err(|e| within_text(e, m.source(id)))?;
        match wanted {
            Some(held) => Ok((self.coerce(m, value, ty, held).await?, held.ty)),
            None => Ok((value, ty)),
        }
    }

    /// Whether a text that was bound is no mere expression.
    pub(super) fn is_kept_query(&self, m: &Machine, id: SourceId) -> bool {
        let kept = m.compiled.kept[id].borrow();
        kept.as_ref()
            .is_some_and(|kept| matches!(kept.what, Meant::Query(_)))
    }

    /// As [`Session::value`] of a condition: NULL is not true.
    pub(super) async fn is_true(&self, m: &mut Machine, id: SourceId) -> Result<bool> {
        let held = Held {
            ty: SqlType::BOOL,
            domain: None,
        };
        let (value, _) = self.value(m, id, Some(held)).await?;
        Ok(matches!(value, Datum::Bool(true)))
    }

    /// The value of an expression over the variables.
    pub(super) async fn evaluate(
        &self,
        m: &mut Machine,
        expr: &Expr,
        calls: bool,
    ) -> Result<Datum> {
        let now = self.now(m);
        if calls && m.caller.is_none() {
            self.transaction()?.txn.next_command()?;
            m.snapshot = None;
        }
        if m.snapshot.is_none() {
            m.snapshot = Some(match &m.caller {
                Some(caller) => caller.clone(),
                None => self.transaction()?.txn.snapshot(),
            });
        }
        let Some(snapshot) = &m.snapshot else {
            return Err(Error::internal("no snapshot for an expression"));
        };
        let host = self.host(&now.catalog);
        let env = self.env(&now.catalog, &host, snapshot, &m.values);
        let mut patience = throng_buffer::Patience::default();
        let value = loop {
            env.effects.again();
            match eval(expr, &[], &mut Cx::new(env, &mut m.memory)) {
                Ok(value) => {
                    env.effects.done();
                    break value;
                }
                Err(stop) => Box::pin(wait(stop, env, &mut patience)).await?,
            }
        };
        if calls {
            m.stale();
        }
        Ok(value)
    }

    /// The one value of a query that stands where an expression does; NULL where it gives no row.
    async fn value_of_query(
        &self,
        m: &mut Machine,
        id: SourceId,
        kept: &Rc<BoundText>,
    ) -> Result<(Datum, SqlType)> {
        let Meant::Query(planned) = &kept.what else {
            return Err(Error::internal("an expression that is no query"));
        };
        let [column] = &planned.columns[..] else {
            let count = planned.columns.len();
            let plural = if count == 1 { "" } else { "s" };
            let message = format!("query returned {count} column{plural}");
            return Err(Error::new(state::SYNTAX_ERROR, message));
        };
        let ty = column.ty;
        let source = m.source(id);
        let written = source.whole.as_ref().unwrap_or(&source.text).clone();
        let mut query = self
            .open_planned(m, id, As::Value(None), kept.clone())
            .await?;
        let mut row = throng_exec::run::Row::new();
        if !self.next_row(&mut query, &mut row).await? {
            m.stale();
            return Ok((Datum::Null, ty));
        }
        let value = row.pop().unwrap_or_default();
        if self.next_row(&mut query, &mut row).await? {
            let message = "query returned more than one row";
            let error = Error::new(state::CARDINALITY_VIOLATION, message);
            return Err(error.context(format!("query: {written}")));
        }
        m.stale();
        Ok((value, ty))
    }
}

/// An error in understanding a text: its place is told in the text that the body has.
pub(super) fn about_text(mut e: Error, source: &Source) -> Error {
    let fields = e.fields_mut();
    match fields.position.take() {
        Some(position) => {
            let (text, lead) = match &source.whole {
                Some(whole) => {
                    let lead = whole.chars().count() - source.text.chars().count();
                    (whole, lead as u32)
                }
                None => (&source.text, 0),
            };
            fields.internal_position = Some(position + lead);
            fields.internal_query = Some(text.clone());
            e
        }
        None if fields.internal_query.is_some() => e,
        None => within_text(e, source),
    }
}

/// An error that came up while a text ran.
pub(super) fn within_text(mut e: Error, source: &Source) -> Error {
    let line = match (&source.whole, source.kind) {
        (Some(whole), _) => format!("PL/pgSQL assignment \"{whole}\""),
        (_, SourceKind::Expression | SourceKind::Assignment) => {
            format!("PL/pgSQL expression \"{}\"", source.text)
        }
        (_, SourceKind::Statement) => format!("SQL statement \"{}\"", source.text),
    };
    e.add_context(&line);
    e
}

/// An error that came up while a statement ran that has this text.
pub(super) fn within_statement(mut e: Error, text: &str) -> Error {
    e.add_context(&format!("SQL statement \"{text}\""));
    e
}
