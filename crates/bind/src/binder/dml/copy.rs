//! COPY: what is copied, and its options checked as PostgreSQL checks them.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::{Error, Result, oid};

use crate::binder::ddl::privilege::right_on_columns;
use crate::binder::dml::row_names;
use crate::binder::dml::updatable::Verb;
use crate::binder::query::scope::Scope;
use crate::binder::{Binder, Clause, slots_of_row};
use crate::command::{
    ColumnSet, Copy, CopyFormat, CopyHeader, CopyOptions, CopySubject, CopyVerbosity,
};
use crate::route::Routing;
use crate::tree::expr::Expr;
use crate::tree::query::CheckExpr;
use crate::tree::query::QueryKind;
use throng_catalog::{Relation, TableDef};
use throng_syntax::parse::ast::{self, CopyOption, CopyValue, Pos};
use throng_syntax::parse::option_is_on;
use throng_values::acl::right;
use throng_values::io::Charset;

/// The options as written, before their defaults.
#[derive(Default)]
struct Given {
    format: Option<CopyFormat>,
    delimiter: Option<String>,
    null: Option<String>,
    default: Option<String>,
    header: Option<CopyHeader>,
    quote: Option<String>,
    escape: Option<String>,
    force_quote: Option<CopyValue>,
    force_not_null: Option<CopyValue>,
    force_null: Option<CopyValue>,
    freeze: Option<bool>,
    ignore_errors: Option<bool>,
    reject_limit: Option<i64>,
    verbosity: Option<CopyVerbosity>,
    encoding: Option<Charset>,
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(state::INVALID_PARAMETER_VALUE, message)
}

impl Binder<'_> {
    pub(in crate::binder) fn copy(&mut self, ast: &ast::Copy) -> Result<Copy> {
        let (subject, table, columns) = match &ast.subject {
            ast::CopySubject::Query(query) => {
                let query = Box::new(self.data(query)?);
                if query.kind.columns().is_empty() && !matches!(query.kind, QueryKind::Select(_)) {
                    let message = "COPY query must have a RETURNING clause";
                    return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
                }
                (CopySubject::To { query }, None, vec![])
            }
            ast::CopySubject::Table { name, columns } => self.copy_table(ast, name, columns)?,
        };
        let given = self.copy_options(&ast.options, ast.from)?;
        let names: Vec<String> = match (&table, &subject) {
            (Some(table), _) => columns
                .iter()
                .map(|n| table.column(*n).name.clone())
                .collect(),
            (None, CopySubject::To { query }) => {
                query.kind.columns().into_iter().map(|c| c.name).collect()
            }
            (None, _) => vec![],
        };
        let options = check(given, ast.from, table.as_deref(), &names)?;
        Ok(Copy {
            subject,
            target: ast.target.clone(),
            options,
        })
    }

    #[allow(clippy::type_complexity)] // Subject, table and columns, taken apart at once.
    fn copy_table(
        &mut self,
        ast: &ast::Copy,
        name: &ast::Name,
        columns: &[(String, Pos)],
    ) -> Result<(CopySubject, Option<Arc<TableDef>>, Vec<u16>)> {
        if !ast.from {
            return self.copy_table_to(name, columns);
        }
        let mut link = None;
        let table = match self.copied(name)? {
            Relation::Table(table) if table.is_materialized() => {
                let message = format!("cannot copy to materialized view \"{}\"", table.name);
                return Err(Error::new(state::WRONG_OBJECT_TYPE, message));
            }
            Relation::Table(table) => table,
            Relation::Sequence(s) => {
                let message = format!("cannot copy to sequence \"{}\"", s.name);
                return Err(Error::new(state::WRONG_OBJECT_TYPE, message));
            }
            Relation::View(view) if self.acts_instead(&view, Verb::Insert) => {
                // It has the view's columns and no rows: what is read is for the triggers.
                let target = self.write_target(name, None, Verb::Insert)?;
                link = target.links.into_iter().next();
                target.table
            }
            other => {
                let message = format!("cannot copy to view \"{}\"", other.name());
                return Err(Error::new(state::WRONG_OBJECT_TYPE, message)
                    .hint("To enable copying to a view, provide an INSTEAD OF INSERT trigger."));
            }
        };
        let listed = self.copy_columns(&table, columns)?;
        let link = link.unwrap_or_else(|| self.target_link(&table));
        self.writes(&[link], right::INSERT, &listed);
        self.check_accesses(None)?;
        if self.is_secured(&table)? {
            let message = "COPY FROM not supported with row-level security";
            let error = Error::new(state::FEATURE_NOT_SUPPORTED, message);
            return Err(error.hint("Use INSERT statements instead."));
        }
        let mut defaults = Vec::with_capacity(table.columns.len());
        for (i, column) in table.columns.iter().enumerate() {
            let computed = column.dropped || column.generated.is_some();
            let absent = !listed.contains(&(i as u16 + 1)) && !computed;
            // A listed column's default is for the DEFAULT marker.
            let wanted = absent || (!computed && has_default_marker(&ast.options));
            defaults.push(match wanted {
                true => Some(self.default_of(column)?),
                false => None,
            });
        }
        let row = self.new_rel();
        let checks = self
            .checks(&table, row)?
            .into_iter()
            .map(|c| CheckExpr {
                of: c.of,
                name: c.name,
                expr: slots_of_row(c.expr),
            })
            .collect();
        let filter = match &ast.filter {
            None => None,
            Some(filter) => {
                let names = row_names(&table, &table.name, row);
                let scope = Scope::within(&names, None);
                let clause = Clause::Other("COPY FROM WHERE conditions");
                let bound = self.in_clause(clause, |b| {
                    let bound = b.expr(filter, &scope)?;
                    b.condition(bound, "WHERE", filter.pos)
                })?;
                not_of_generated(&bound, &table)?;
                if bound.any(&mut |e| matches!(e, Expr::Subquery(_))) {
                    let message = "cannot use subquery in COPY FROM WHERE condition";
                    return Err(
                        Error::new(state::FEATURE_NOT_SUPPORTED, message).position(filter.pos + 1)
                    );
                }
                Some(slots_of_row(bound))
            }
        };
        let generated = self.stored_columns(&table, row)?.into_iter();
        let generated = generated.map(|(attnum, value)| (attnum, slots_of_row(value)));
        let domains = self.domain_columns(&table, &listed, row)?.into_iter();
        let domains = domains.map(|(attnum, value)| (attnum, slots_of_row(value)));
        let domains = domains.collect();
        let subject = CopySubject::From {
            table: table.oid,
            columns: listed.clone(),
            defaults,
            domains,
            generated: generated.collect(),
            checks,
            filter,
            routing: Routing::of(&table, self.catalog(), self.ctx.eval)?.map(Box::new),
        };
        Ok((subject, Some(table), listed))
    }

    #[allow(clippy::type_complexity)] // As above.
    fn copy_table_to(
        &mut self,
        name: &ast::Name,
        columns: &[(String, Pos)],
    ) -> Result<(CopySubject, Option<Arc<TableDef>>, Vec<u16>)> {
        let (table, listed) = match self.copied(name)? {
            Relation::Table(table) => {
                if table.is_unpopulated() {
                    let message = format!(
                        "cannot copy from unpopulated materialized view \"{}\"",
                        table.name
                    );
                    return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message)
                        .hint("Use the REFRESH MATERIALIZED VIEW command."));
                }
                if table.is_partitioned() {
                    let message = format!("cannot copy from partitioned table \"{}\"", table.name);
                    return Err(Error::new(state::WRONG_OBJECT_TYPE, message)
                        .hint("Try the COPY (SELECT ...) TO variant."));
                }
                let listed = self.copy_columns(&table, columns)?;
                let relation = Relation::Table(table.clone());
                let (catalog, user) = (self.catalog(), self.user);
                right_on_columns(catalog, user, &relation, right::SELECT, &listed)?;
                (Some(table), listed)
            }
            Relation::Virtual(_) => (None, vec![]),
            Relation::View(view) => {
                let message = format!("cannot copy from view \"{}\"", view.name);
                return Err(Error::new(state::WRONG_OBJECT_TYPE, message)
                    .hint("Try the COPY (SELECT ...) TO variant."));
            }
            other => {
                let kind = if other.relkind() == b'S' {
                    "sequence"
                } else {
                    "index"
                };
                let message = format!("cannot copy from {kind} \"{}\"", other.name());
                return Err(Error::new(state::WRONG_OBJECT_TYPE, message));
            }
        };
        let item = |expr: ast::Node| ast::SelectItem {
            expr: ast::Expr {
                node: expr,
                pos: name.pos,
            },
            alias: None,
        };
        let named: Vec<String> = match &table {
            Some(table) => listed
                .iter()
                .map(|n| table.column(*n).name.clone())
                .collect(),
            None => columns.iter().map(|(name, _)| name.clone()).collect(),
        };
        let targets = match named.is_empty() && table.is_none() {
            true => vec![item(ast::Node::Star(vec![]))],
            false => named
                .into_iter()
                .map(|n| item(ast::Node::Column(vec![n])))
                .collect(),
        };
        let select = ast::Select {
            distinct: None,
            targets,
            from: vec![ast::TableRef::Table {
                name: name.clone(),
                only: true,
                alias: None,
                sample: None,
            }],
            filter: None,
            group_by: vec![],
            group_distinct: false,
            having: None,
            windows: vec![],
        };
        let query = ast::Query {
            with: vec![],
            recursive: false,
            body: ast::Body::Select(Box::new(select)),
            order: vec![],
            limit: None,
            ties: false,
            offset: None,
            locks: vec![],
            pos: name.pos,
        };
        let query = self.query(&query, None)?;
        let bound = self.bound(QueryKind::Select(query))?;
        Ok((
            CopySubject::To {
                query: Box::new(bound),
            },
            table,
            listed,
        ))
    }

    /// The relation; what is wrong with its name is told without its place, as PostgreSQL does
    /// here.
    fn copied(&self, name: &ast::Name) -> Result<Relation> {
        self.relation(name).map_err(|mut e| {
            e.fields_mut().position = None;
            e
        })
    }

    fn copy_columns(&self, table: &TableDef, columns: &[(String, Pos)]) -> Result<Vec<u16>> {
        if columns.is_empty() {
            let given = table.live_columns().filter(|(_, c)| c.generated.is_none());
            return Ok(given.map(|(n, _)| n).collect());
        }
        let mut listed = Vec::with_capacity(columns.len());
        for (name, pos) in columns {
            let attnum = self.target_column(table, name, *pos).map_err(|mut e| {
                e.fields_mut().position = None;
                e
            })?;
            if table.column(attnum).generated.is_some() {
                let message = format!("column \"{name}\" is a generated column");
                return Err(Error::new(state::INVALID_COLUMN_REFERENCE, message)
                    .detail("Generated columns cannot be used in COPY."));
            }
            if listed.contains(&attnum) {
                let message = format!("column \"{name}\" specified more than once");
                return Err(Error::new(state::DUPLICATE_COLUMN, message));
            }
            listed.push(attnum);
        }
        Ok(listed)
    }

    fn copy_options(&self, list: &[CopyOption], from: bool) -> Result<Given> {
        let mut given = Given::default();
        let mut seen: Vec<&str> = Vec::new();
        for option in list {
            let name = option.name.as_str();
            if seen.contains(&name) {
                let message = "conflicting or redundant options";
                return Err(Error::new(state::SYNTAX_ERROR, message).position(option.pos + 1));
            }
            seen.push(name);
            given.take(option, from)?;
        }
        Ok(given)
    }
}

/// The condition is asked before columns are computed.
fn not_of_generated(condition: &Expr, table: &TableDef) -> Result<()> {
    let mut found = None;
    condition.for_each_var(&mut |var| {
        if let Ok(attnum @ 1..) = u16::try_from(var.column) {
            let column = table.column(attnum);
            found = found.or(column.generated.as_ref().map(|_| &column.name));
        }
    });
    let Some(name) = found else { return Ok(()) };
    let message = "generated columns are not supported in COPY FROM WHERE conditions";
    Err(Error::new(state::INVALID_COLUMN_REFERENCE, message)
        .detail(format!("Column \"{name}\" is a generated column.")))
}

fn has_default_marker(options: &[CopyOption]) -> bool {
    options.iter().any(|o| o.name == "default")
}

fn text(option: &CopyOption) -> Result<String> {
    match &option.value {
        CopyValue::Text(text) => Ok(text.clone()),
        _ => Err(Error::new(
            state::SYNTAX_ERROR,
            format!("{} requires a parameter", option.name),
        )),
    }
}

fn switch(option: &CopyOption) -> Result<bool> {
    match &option.value {
        CopyValue::None => Ok(true),
        CopyValue::Text(t) => match t.to_ascii_lowercase().as_str() {
            "true" | "false" | "on" | "off" | "1" | "0" => Ok(option_is_on(Some(t))),
            _ => Err(Error::new(
                state::SYNTAX_ERROR,
                format!("{} requires a Boolean value", option.name),
            )),
        },
        _ => Err(Error::new(
            state::SYNTAX_ERROR,
            format!("{} requires a Boolean value", option.name),
        )),
    }
}

impl Given {
    fn take(&mut self, option: &CopyOption, from: bool) -> Result<()> {
        let here = |e: Error| crate::binder::at(e, option.pos);
        match option.name.as_str() {
            "format" => {
                self.format = Some(match text(option)?.as_str() {
                    "text" => CopyFormat::Text,
                    "csv" => CopyFormat::Csv,
                    "binary" => CopyFormat::Binary,
                    other => {
                        let message = format!("COPY format \"{other}\" not recognized");
                        return Err(here(invalid(message)));
                    }
                })
            }
            "delimiter" => self.delimiter = Some(text(option)?),
            "null" => self.null = Some(text(option)?),
            "default" => self.default = Some(text(option)?),
            "quote" => self.quote = Some(text(option)?),
            "escape" => self.escape = Some(text(option)?),
            "header" => {
                let matching =
                    matches!(&option.value, CopyValue::Text(t) if t.eq_ignore_ascii_case("match"));
                self.header = Some(match switch(option) {
                    _ if matching => CopyHeader::Match,
                    Ok(true) => CopyHeader::Yes,
                    Ok(false) => CopyHeader::No,
                    Err(_) => {
                        let message = "header requires a Boolean value or \"match\"";
                        return Err(Error::new(state::SYNTAX_ERROR, message));
                    }
                });
            }
            "freeze" => self.freeze = Some(switch(option)?),
            "force_quote" => self.force_quote = Some(columns(option).map_err(here)?),
            "force_not_null" => self.force_not_null = Some(columns(option).map_err(here)?),
            "force_null" => self.force_null = Some(columns(option).map_err(here)?),
            "encoding" => {
                let name = text(option)?;
                let charset = Charset::named(&name).ok_or_else(|| {
                    here(invalid(
                        "argument to option \"encoding\" must be a valid encoding name",
                    ))
                })?;
                if !charset.is_converted() {
                    let what = format!("COPY with encoding {}", charset.name());
                    return Err(here(Error::unsupported(what)));
                }
                self.encoding = Some(charset);
            }
            "on_error" => {
                if !from {
                    return Err(here(invalid("COPY ON_ERROR cannot be used with COPY TO")));
                }
                self.ignore_errors = Some(match text(option)?.as_str() {
                    "stop" => false,
                    "ignore" => true,
                    other => {
                        let message = format!("COPY ON_ERROR \"{other}\" not recognized");
                        return Err(here(invalid(message)));
                    }
                })
            }
            "reject_limit" => {
                let limit = throng_values::io::scalar::parse_int(&text(option)?, oid::INT8)?;
                if limit <= 0 {
                    let message = format!("REJECT_LIMIT ({limit}) must be greater than zero");
                    return Err(invalid(message));
                }
                self.reject_limit = Some(limit);
            }
            "log_verbosity" => {
                self.verbosity = Some(match text(option)?.as_str() {
                    "silent" => CopyVerbosity::Silent,
                    "default" => CopyVerbosity::Default,
                    "verbose" => CopyVerbosity::Verbose,
                    other => {
                        let message = format!("COPY LOG_VERBOSITY \"{other}\" not recognized");
                        return Err(here(invalid(message)));
                    }
                })
            }
            other => {
                let message = format!("option \"{other}\" not recognized");
                return Err(here(Error::new(state::SYNTAX_ERROR, message)));
            }
        }
        Ok(())
    }
}

fn columns(option: &CopyOption) -> Result<CopyValue> {
    match &option.value {
        CopyValue::Star | CopyValue::List(_) => Ok(option.value.clone()),
        _ => Err(invalid(format!(
            "argument to option \"{}\" must be a list of column names",
            option.name
        ))),
    }
}

/// One byte, as DELIMITER, QUOTE and ESCAPE must be.
fn one_byte(what: &str, given: &str) -> Result<u8> {
    match given.as_bytes() {
        [b] => Ok(*b),
        _ => Err(Error::new(
            state::FEATURE_NOT_SUPPORTED,
            format!("COPY {what} must be a single one-byte character"),
        )),
    }
}

/// Fills in defaults and refuses what does not go together.
fn check(
    given: Given,
    from: bool,
    table: Option<&TableDef>,
    listed: &[String],
) -> Result<CopyOptions> {
    let format = given.format.unwrap_or(CopyFormat::Text);
    let (csv, binary) = (format == CopyFormat::Csv, format == CopyFormat::Binary);
    let syntax = |message: &str| Err(Error::new(state::SYNTAX_ERROR, message));
    let unsupported = |message: &str| Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
    if binary && given.delimiter.is_some() {
        return syntax("cannot specify DELIMITER in BINARY mode");
    }
    if binary && given.null.is_some() {
        return syntax("cannot specify NULL in BINARY mode");
    }
    if binary && given.default.is_some() {
        return syntax("cannot specify DEFAULT in BINARY mode");
    }
    let header = given.header.unwrap_or(CopyHeader::No);
    if binary && header != CopyHeader::No {
        return Err(Error::new(
            state::FEATURE_NOT_SUPPORTED,
            "cannot specify HEADER in BINARY mode",
        ));
    }
    if header == CopyHeader::Match && !from {
        return unsupported("cannot use \"match\" with HEADER in COPY TO");
    }
    if binary && given.ignore_errors == Some(true) {
        return syntax("only ON_ERROR STOP is allowed in BINARY mode");
    }
    if given.reject_limit.is_some() && given.ignore_errors != Some(true) {
        return Err(invalid(
            "COPY REJECT_LIMIT requires ON_ERROR to be set to IGNORE",
        ));
    }
    let only_csv: [(bool, &str); 5] = [
        (given.quote.is_some(), "QUOTE"),
        (given.escape.is_some(), "ESCAPE"),
        (given.force_quote.is_some(), "FORCE_QUOTE"),
        (given.force_not_null.is_some(), "FORCE_NOT_NULL"),
        (given.force_null.is_some(), "FORCE_NULL"),
    ];
    if let (false, Some((_, what))) = (csv, only_csv.iter().find(|(set, _)| *set)) {
        return Err(Error::new(
            state::FEATURE_NOT_SUPPORTED,
            format!("COPY {what} requires CSV mode"),
        ));
    }
    let wrong_way = [
        (
            given.force_quote.is_some() && from,
            "FORCE_QUOTE",
            "FROM",
            state::FEATURE_NOT_SUPPORTED,
        ),
        (
            given.force_not_null.is_some() && !from,
            "FORCE_NOT_NULL",
            "TO",
            state::INVALID_PARAMETER_VALUE,
        ),
        (
            given.force_null.is_some() && !from,
            "FORCE_NULL",
            "TO",
            state::INVALID_PARAMETER_VALUE,
        ),
        (
            given.freeze == Some(true) && !from,
            "FREEZE",
            "TO",
            state::INVALID_PARAMETER_VALUE,
        ),
        (
            given.default.is_some() && !from,
            "DEFAULT",
            "TO",
            state::FEATURE_NOT_SUPPORTED,
        ),
    ];
    if let Some((_, what, way, code)) = wrong_way.iter().find(|(wrong, ..)| *wrong) {
        return Err(Error::new(
            *code,
            format!("COPY {what} cannot be used with COPY {way}"),
        ));
    }
    let delimiter = given
        .delimiter
        .unwrap_or(if csv { ",".into() } else { "\t".into() });
    let delimiter = one_byte("delimiter", &delimiter)?;
    let null = given
        .null
        .unwrap_or(if csv { String::new() } else { "\\N".into() });
    if matches!(delimiter, b'\n' | b'\r') {
        return Err(invalid(
            "COPY delimiter cannot be newline or carriage return",
        ));
    }
    if null.contains(['\n', '\r']) {
        return Err(invalid(
            "COPY null representation cannot use newline or carriage return",
        ));
    }
    const RESERVED: &[u8] = b"\\.abcdefghijklmnopqrstuvwxyz0123456789";
    if !csv && RESERVED.contains(&delimiter) {
        let message = format!("COPY delimiter cannot be \"{}\"", delimiter as char);
        return Err(invalid(message));
    }
    let quote = one_byte("quote", given.quote.as_deref().unwrap_or("\""))?;
    let escape = match &given.escape {
        Some(escape) => one_byte("escape", escape)?,
        None => quote,
    };
    if csv && delimiter == quote {
        return Err(invalid("COPY delimiter and quote must be different"));
    }
    if !binary && null.as_bytes().contains(&delimiter) {
        return Err(invalid(
            "COPY delimiter character must not appear in the NULL specification",
        ));
    }
    if csv && null.as_bytes().contains(&quote) {
        return Err(invalid(
            "CSV quote character must not appear in the NULL specification",
        ));
    }
    if let Some(default) = &given.default {
        if default.contains(['\n', '\r']) {
            let message = "COPY default representation cannot use newline or carriage return";
            return Err(invalid(message));
        }
        if default.as_bytes().contains(&delimiter) {
            return unsupported(
                "COPY delimiter character must not appear in the DEFAULT specification",
            );
        }
        if csv && default.as_bytes().contains(&quote) {
            return unsupported("CSV quote character must not appear in the DEFAULT specification");
        }
        if *default == null {
            return unsupported("NULL specification and DEFAULT specification cannot be the same");
        }
    }
    Ok(CopyOptions {
        format,
        delimiter,
        null,
        default: given.default,
        header,
        quote,
        escape,
        force_quote: column_set(given.force_quote, "FORCE_QUOTE", table, listed)?,
        force_not_null: column_set(given.force_not_null, "FORCE_NOT_NULL", table, listed)?,
        force_null: column_set(given.force_null, "FORCE_NULL", table, listed)?,
        freeze: given.freeze.unwrap_or(false),
        ignore_errors: given.ignore_errors.unwrap_or(false),
        reject_limit: given.reject_limit,
        verbosity: given.verbosity.unwrap_or(CopyVerbosity::Default),
        encoding: given.encoding,
    })
}

/// The places of columns named by an option among those that are copied.
fn column_set(
    given: Option<CopyValue>,
    what: &str,
    table: Option<&TableDef>,
    listed: &[String],
) -> Result<ColumnSet> {
    let names = match given {
        None | Some(CopyValue::None | CopyValue::Text(_)) => return Ok(ColumnSet::None),
        Some(CopyValue::Star) => return Ok(ColumnSet::All),
        Some(CopyValue::List(names)) => names,
    };
    let mut set = Vec::with_capacity(names.len());
    for name in names {
        let Some(place) = listed.iter().position(|l| *l == name) else {
            return Err(match table {
                Some(table) if table.attnum(&name).is_none() => Error::new(
                    state::UNDEFINED_COLUMN,
                    format!(
                        "column \"{name}\" of relation \"{}\" does not exist",
                        table.name
                    ),
                ),
                Some(_) => Error::new(
                    state::INVALID_COLUMN_REFERENCE,
                    format!("{what} column \"{name}\" not referenced by COPY"),
                ),
                None => Error::new(
                    state::UNDEFINED_COLUMN,
                    format!("column \"{name}\" does not exist"),
                ),
            });
        };
        set.push(place as u16 + 1);
    }
    Ok(ColumnSet::Some(set))
}
