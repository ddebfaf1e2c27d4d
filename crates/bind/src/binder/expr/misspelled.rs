//! What a column that is not there was most likely meant to be.
//!
//! PostgreSQL's rule: of all columns around, those whose names are the fewest changes of a letter
//! away, [`FARTHEST`] at most and no more than half as many as the name has letters; where a table
//! is named, the changes that make it the column's count, too. One such column or two are told of;
//! more are none.

use std::cmp::Ordering;

use strsim::levenshtein;
use throng_types::Error;

use crate::binder::query::scope::{NamedTable, Scope};

/// Changes of a letter.
const FARTHEST: usize = 3;

/// The nearest columns met so far.
struct Nearest<'s> {
    changes: usize,
    /// Tables and columns, two at most; none where there were more.
    columns: Vec<(&'s str, &'s str)>,
}

impl<'s> Nearest<'s> {
    fn look_at(&mut self, table: &'s NamedTable, penalty: usize, name: &str) {
        if penalty > self.changes {
            return;
        }
        for column in &table.columns {
            let changes = levenshtein(&column.name, name);
            if changes > name.len() / 2 {
                continue;
            }
            let found = (&*table.name, &*column.name);
            match ((changes + penalty).cmp(&self.changes), self.columns.len()) {
                (Ordering::Less, _) => {
                    self.changes = changes + penalty;
                    self.columns = vec![found];
                }
                (Ordering::Equal, 1) => self.columns.push(found),
                (Ordering::Equal, 2) => self.columns.clear(),
                _ => {}
            }
        }
    }
}

/// The error with what it says of the column that may have been meant.
pub(in crate::binder) fn what_was_meant(
    error: Error,
    table: Option<&str>,
    name: &str,
    scope: &Scope<'_>,
) -> Error {
    let mut nearest = Nearest {
        changes: FARTHEST + 1,
        columns: Vec::new(),
    };
    for level in scope.levels() {
        let barred = level.barred.map_or(&[][..], |names| &names.tables);
        let has = |t: &&NamedTable| t.columns.iter().any(|c| c.name == name);
        if let (Some(beside), None) = (barred.iter().find(has), table) {
            let detail = format!(
                "There is a column named \"{name}\" in table \"{}\", but it cannot be referenced from this part of the query.",
                beside.name
            );
            return error
                .detail(detail)
                .hint("To reference that column, you must mark this subquery with LATERAL.");
        }
        // OLD and NEW, whose columns are not seen without them, are a table once more.
        let tables = match level.names.columns.is_empty() {
            true => &[][..],
            false => &level.names.tables,
        };
        for beside in tables {
            let penalty = table.map_or(0, |table| levenshtein(table, &beside.name));
            nearest.look_at(beside, penalty, name);
        }
    }
    match nearest.columns[..] {
        [(table, column)] => error.hint(format!(
            "Perhaps you meant to reference the column \"{table}.{column}\"."
        )),
        [first, second] => error.hint(format!(
            "Perhaps you meant to reference the column \"{}.{}\" or the column \"{}.{}\".",
            first.0, first.1, second.0, second.1
        )),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Workbench;

    /// PostgreSQL 18's hints.
    #[test]
    fn the_nearest_columns_are_told() {
        let bench = Workbench::new(
            "create table orders(order_id int, customer text, total numeric, x1 int, x2 int, x3 int);
             create table lines(line_id int, order_id int, amount int)",
        );
        let meant = |columns: &str| {
            Some(format!(
                "Perhaps you meant to reference the column {columns}."
            ))
        };
        let lateral = "To reference that column, you must mark this subquery with LATERAL.";
        let cases = [
            ("select custmer from orders", meant("\"orders.customer\"")),
            ("select o.custmer from orders o", meant("\"o.customer\"")),
            (
                "select ordr_id from orders o, lines l",
                meant("\"o.order_id\" or the column \"l.order_id\""),
            ),
            (
                "select l.line_d from orders o join lines l using (order_id)",
                meant("\"l.line_id\""),
            ),
            (
                "select l.totel from orders o join lines l using (order_id)",
                meant("\"o.total\""),
            ),
            (
                "select 1 from orders where exists (select from lines where ammount = 1)",
                meant("\"lines.amount\""),
            ),
            (
                "insert into orders(order_id) values (1) returning custome",
                meant("\"orders.customer\""),
            ),
            (
                "select * from orders, (select total) s",
                Some(lateral.to_owned()),
            ),
            // Three are as near; a name of two letters may differ in one; nothing is near.
            ("select x4 from orders", None),
            ("select ab from orders", None),
            ("select nothing_like_it from orders", None),
        ];
        for (sql, hint) in cases {
            let error = bench.bind_one(sql).expect_err(sql);
            assert_eq!(error.fields().hint, hint, "{sql}");
        }
    }
}
