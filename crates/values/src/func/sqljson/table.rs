//! JSON_TABLE: rows made of what a path finds, columns of what theirs find in each, nested paths
//! joined to them.

use super::path::{find, passed};
use super::{PathSpec, Spec};
use crate::func::jsonpath::{self, Answer, Value, Variables};
use crate::func::{EvalContext, EvalStop, SetIterator};
use crate::io::jsonpath::{Path, path};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use throng_types::error::state;
use throng_types::{Datum, Error, Jsonb, Oid, Record, Result, Text};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableSpec {
    pub root: Plan,
    /// Names of the values passed, to all paths.
    pub passing: Vec<String>,
    /// Otherwise a failing row path finds nothing.
    pub error_on_error: bool,
    /// Columns in their order: what they are called and their types.
    pub columns: Vec<(String, (u32, i32))>,
}

/// A row path, the columns that are its own, and the paths nested in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub path: String,
    pub name: String,
    /// With the place each column has in a row.
    pub columns: Vec<(usize, Column)>,
    pub nested: Vec<Plan>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Column {
    Ordinality,
    Value { path: String, how: PathSpec },
}

/// Rows that one call may give.
const MAX_ROWS: usize = 10_000_000;

struct Table<'a> {
    ctx: &'a EvalContext<'a>,
    spec: &'a TableSpec,
    passed: Vec<(Text, Value<'a>)>,
    args: &'a [Datum],
    types: Arc<[Oid]>,
    rows: Vec<Datum>,
}

/// Arguments: the specification, the document, values passed, defaults.
pub fn rows(ctx: &EvalContext<'_>, args: &[Datum]) -> std::result::Result<SetIterator, EvalStop> {
    let spec = Spec::of(&args[0])?;
    let Spec::Table(spec) = &*spec else {
        return Err(Error::internal("JSON_TABLE without its columns").into());
    };
    let args = &args[1..];
    let Datum::Jsonb(document) = &args[0] else {
        return Ok(Box::new(std::iter::empty()));
    };
    let types = spec.columns.iter().map(|(_, (ty, _))| Oid(*ty)).collect();
    let mut table = Table {
        ctx,
        spec,
        passed: passed(ctx, &spec.passing, &args[1..])?,
        args,
        types,
        rows: Vec::new(),
    };
    let mut row = vec![Datum::Null; spec.columns.len()];
    table.run(&spec.root, document, &mut row)?;
    Ok(Box::new(table.rows.into_iter().map(Ok)))
}

impl Table<'_> {
    fn path(text: &str) -> Result<Arc<Path>> {
        path(&text.into())
    }

    /// What a row path finds in an item.
    fn items(&self, plan: &Plan, item: &Jsonb) -> Result<Vec<Jsonb>> {
        let path = Self::path(&plan.path)?;
        let variables = Variables::Passed(&self.passed);
        jsonpath::run(
            self.ctx,
            &path,
            item,
            variables,
            true,
            Answer::Values,
            |ended, found| match ended {
                Ok(_) => found.iter().map(Value::to_jsonb).collect(),
                Err(e) if self.spec.error_on_error => Err(e),
                Err(_) => Ok(vec![]),
            },
        )
    }

    /// The rows of a plan over an item; `row` has the columns of the plans around. Whether there
    /// were any.
    fn run(&mut self, plan: &Plan, item: &Jsonb, row: &mut [Datum]) -> Result<bool> {
        let items = self.items(plan, item)?;
        for (i, item) in items.iter().enumerate() {
            for (at, column) in &plan.columns {
                row[*at] = match column {
                    Column::Ordinality => Datum::Int4(i as i32 + 1),
                    Column::Value { path, how } => {
                        let path = Self::path(path)?;
                        find(self.ctx, how, item, &path, &self.passed, self.args)?
                    }
                };
            }
            let mut any = false;
            for nested in &plan.nested {
                any |= self.run(nested, item, row)?;
            }
            if !any {
                self.emit(row)?;
            }
        }
        // Rows of the plans beside this one have nothing in its columns.
        for (at, _) in &plan.columns {
            row[*at] = Datum::Null;
        }
        Ok(!items.is_empty())
    }

    fn emit(&mut self, row: &[Datum]) -> Result<()> {
        if self.rows.len() >= MAX_ROWS {
            return Err(Error::new(
                state::PROGRAM_LIMIT_EXCEEDED,
                format!("JSON_TABLE gives more than {MAX_ROWS} rows"),
            ));
        }
        self.rows.push(match row {
            [single] => single.clone(),
            several => Datum::Record(Arc::new(Record {
                types: Arc::clone(&self.types),
                names: None,
                values: several.to_vec(),
            })),
        });
        Ok(())
    }
}
