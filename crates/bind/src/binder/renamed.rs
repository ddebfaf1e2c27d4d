//! Kept texts after something they name got another name: bound by the definitions before, written
//! by those after.
//!
//! ```text
//! text ── definitions before ──► bound: objects and values, without names ── definitions after ──► text
//! ```
//! A label of an enum is a name too: [`Named`] has values written by the definitions after.

use std::sync::Arc;

use throng_types::{Datum, Error, Oid, Result, SqlType};

use super::BindContext;
use super::ddl::domain::check_again;
use super::ddl::view::{STORED_PATH, stored_context, stored_format};
use super::routine::body::{body_statement, body_statements, routine_body_again};
use super::stored_expression::{StoredKind, value_again};
use crate::deparse::Style;
use throng_catalog::{ArgDef, Catalog, RoutineBody, RoutineDef, TableDef};
use throng_syntax::parse;
use throng_types::lexical::quote_ident;
use throng_values::func::{
    EvalContext, EvalHost, EvalResult, EvalStop, ObjectKind, TransitionTable, UserType, WrittenType,
};
use throng_values::io::{input_text, output_text};

/// Does something with the style in which definitions are kept, by the names that a catalog has.
pub(in crate::binder) fn with_stored_style<T>(
    catalog: &Catalog,
    eval: EvalContext<'_>,
    write: impl FnOnce(&Style<'_>) -> T,
) -> T {
    let format = stored_format();
    let host = Named::by(catalog, eval);
    write(&Style {
        kept: true,
        catalog,
        search_path: STORED_PATH,
        pretty: false,
        eval: EvalContext {
            format: &format,
            host: &host,
        },
    })
}

/// A session that knows types by a catalog of its own.
pub(crate) struct Named<'a> {
    host: &'a dyn EvalHost,
    catalog: &'a Catalog,
}

impl<'a> Named<'a> {
    pub fn by(catalog: &'a Catalog, eval: EvalContext<'a>) -> Named<'a> {
        Named {
            host: eval.host,
            catalog,
        }
    }
}

impl EvalHost for Named<'_> {
    fn transaction_timestamp(&self) -> i64 {
        self.host.transaction_timestamp()
    }
    fn statement_timestamp(&self) -> i64 {
        self.host.statement_timestamp()
    }
    fn current_user(&self) -> String {
        self.host.current_user()
    }
    fn session_user(&self) -> String {
        self.host.session_user()
    }
    fn current_database(&self) -> String {
        self.host.current_database()
    }
    fn current_schemas(&self, implicit: bool) -> Vec<String> {
        self.host.current_schemas(implicit)
    }
    fn backend_pid(&self) -> i32 {
        self.host.backend_pid()
    }
    fn show_setting(&self, name: &str) -> Option<String> {
        self.host.show_setting(name)
    }
    fn set_setting(
        &self,
        name: &str,
        value: Option<&str>,
        local: bool,
    ) -> Result<String, EvalStop> {
        self.host.set_setting(name, value, local)
    }
    fn transaction_id(&self, assign: bool) -> Result<Option<u64>, EvalStop> {
        self.host.transaction_id(assign)
    }
    fn nextval(&self, sequence: Oid) -> Result<i64, EvalStop> {
        self.host.nextval(sequence)
    }
    fn next_of_identity(&self, sequence: Oid) -> Result<i64, EvalStop> {
        self.host.next_of_identity(sequence)
    }
    fn currval(&self, sequence: Oid) -> Result<i64, EvalStop> {
        self.host.currval(sequence)
    }
    fn lastval(&self) -> Result<i64, EvalStop> {
        self.host.lastval()
    }
    fn setval(&self, sequence: Oid, value: i64, is_called: bool) -> Result<i64, EvalStop> {
        self.host.setval(sequence, value, is_called)
    }
    fn parse_type(&self, name: &str) -> Result<WrittenType> {
        self.host.parse_type(name)
    }
    fn object_oid(&self, kind: ObjectKind, name: &str) -> Result<Oid, EvalStop> {
        self.host.object_oid(kind, name)
    }
    fn object_name(&self, kind: ObjectKind, oid: Oid) -> Option<String> {
        self.host.object_name(kind, oid)
    }
    fn user_type(&self, oid: Oid) -> Option<Arc<dyn UserType>> {
        let made = self.catalog.made_type(oid).cloned();
        Some(made.or_else(|| self.catalog.composite(oid))?)
    }
    fn check_in_domain(&self, domain: Oid, value: &Datum) -> Result<()> {
        self.host.check_in_domain(domain, value)
    }
    fn transition_table(&self, name: &str) -> Option<TransitionTable> {
        self.host.transition_table(name)
    }
    fn warn(&self, error: Error) {
        self.host.warn(error);
    }
    fn system_function(&self, name: &str, args: &[Datum]) -> EvalResult {
        self.host.system_function(name, args)
    }
}

/// What got another name, and the definitions before and after.
#[derive(Clone, Copy)]
pub struct Renamed<'a> {
    pub from: &'a str,
    pub to: &'a str,
    /// The schema that it was moved to.
    pub moved_to: Option<&'a str>,
    pub before: &'a Catalog,
    pub after: &'a Catalog,
    pub eval: EvalContext<'a>,
}

impl Renamed<'_> {
    /// Whether a text may say the old name, if only by chance.
    pub fn is_in(&self, text: &str) -> bool {
        text.contains(self.from)
            || [('\'', "''"), ('"', "\"\"")]
                .into_iter()
                .filter(|(quote, _)| self.from.contains(*quote))
                .any(|(quote, twice)| text.contains(&self.from.replace(quote, twice)))
    }

    /// A text over a table's row.
    pub fn over_row(
        &self,
        text: &str,
        of: StoredKind<'_>,
        table: &Arc<TableDef>,
    ) -> Result<String> {
        super::stored_expression::kept_again((text, of), table, self.before, self.after, self.eval)
    }

    /// A domain's default.
    pub fn domain_default(&self, text: &str, ty: SqlType) -> Result<String> {
        value_again(text, ty, self.before, self.after, self.eval)
    }

    /// A domain's check.
    pub fn domain_check(&self, text: &str, base: SqlType) -> Result<String> {
        check_again(text, base, self.before, self.after, self.eval)
    }

    /// A value as text, such as a partition's bound.
    pub fn value(&self, text: &str, ty: SqlType) -> Result<String> {
        let value = input_text(&self.eval, text, ty)?;
        let host = Named::by(self.after, self.eval);
        let eval = EvalContext {
            host: &host,
            ..self.eval
        };
        let mut out = Vec::new();
        output_text(&eval, &value, ty, &mut out);
        String::from_utf8(out).map_err(|_| Error::internal("a value that is no text"))
    }

    /// A routine's argument defaults and its body, if it was read when it was made. What of a body
    /// cannot be written anew stays as it was.
    pub fn routine(&self, def: &RoutineDef) -> Result<RoutineDef> {
        let mut now = def.clone();
        for arg in &mut now.args {
            let ArgDef { ty, default, .. } = arg;
            if let Some(text) = default.as_mut().filter(|text| self.is_in(text)) {
                *text = value_again(
                    text,
                    SqlType::plain(*ty),
                    self.before,
                    self.after,
                    self.eval,
                )?;
            }
        }
        if let RoutineBody::Standard { text, .. } = &def.body
            && self.is_in(text)
            && let Some(again) = routine_body_again(def, self)
            && let RoutineBody::Standard { text, .. } = &mut now.body
        {
            *text = again;
        }
        Ok(now)
    }

    /// A statement of a body that there is no writing of: where its text does not fit the
    /// definitions after, the old name becomes the new one.
    pub(super) fn mended(&self, def: &RoutineDef, text: &str) -> String {
        let mut text = text.to_owned();
        let host = Named::by(self.after, self.eval);
        let format = stored_format();
        let ctx = BindContext {
            eval: EvalContext {
                host: &host,
                format: &format,
            },
            ..stored_context(self.after, self.eval)
        };
        let types = def.value_types();
        /// A statement says a name only so often.
        const MOST: usize = 1000;
        for _ in 0..MOST {
            let mut one = def.clone();
            if let RoutineBody::Standard { text: body, .. } = &mut one.body {
                body.clone_from(&text);
            }
            let bound = body_statements(&one).and_then(|statements| {
                statements
                    .iter()
                    .try_for_each(|s| body_statement(&ctx, &one, &types, s, None).map(drop))
            });
            let Err(error) = bound else {
                break;
            };
            let Some(mended) = self.mended_at(&text, &error) else {
                break;
            };
            text = mended;
        }
        text
    }

    /// The text with the name renamed at the place that an error is about.
    fn mended_at(&self, text: &str, error: &Error) -> Option<String> {
        let at = error.fields().position?.checked_sub(1)? as usize;
        let symbols = parse::symbols(text).ok()?;
        let quoted = |name: &str| format!("'{}'", name.replace('\'', "''"));
        // A qualified name begins where the error says; its parts follow.
        let first = symbols.iter().position(|s| s.end > at)?;
        let names = |s: &parse::Symbol<'_>| {
            s.name.as_deref() == Some(self.from) || s.text == quoted(self.from)
        };
        let place = first + symbols[first..].iter().take(5).position(names)?;
        let found = &symbols[place];
        let new = match found.text.starts_with('\'') {
            true => quoted(self.to),
            false => quote_ident(self.to),
        };
        let Some(schema) = self.moved_to else {
            return Some(format!(
                "{}{new}{}",
                &text[..found.start],
                &text[found.end..]
            ));
        };
        let qualified = place > first + 1 && symbols[place - 1].text == ".";
        let start = if qualified {
            symbols[place - 2].start
        } else {
            found.start
        };
        let schema = quote_ident(schema);
        let mended = format!("{}{schema}.{new}{}", &text[..start], &text[found.end..]);
        (mended != text).then_some(mended)
    }
}
