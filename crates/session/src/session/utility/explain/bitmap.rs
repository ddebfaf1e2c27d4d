//! A bitmap scan as it is shown: what it looks up, and how that is put together.

use throng_bind::expr::Expr;
use throng_plan::{Bitmap, BitmapScan, Cost};

use super::deparse::Names;
use super::write::Shown;
use super::{View, on_table};

/// The title of a bitmap scan, what its columns are called; its details and what is below it are
/// added.
pub(super) fn scan<'c>(
    scan: &BitmapScan,
    view: View<'c>,
    details: &mut Vec<(&'static str, String)>,
    children: &mut Vec<Shown>,
) -> (String, Names<'c>) {
    let names = Names::of_columns(&scan.table, &scan.columns, view.eval);
    children.push(shown(&scan.bitmap, &names));
    let (said, others) = scan.conditions();
    for (label, conditions) in [("Recheck Cond", said), ("Filter", others)] {
        let all = Expr::all_of(conditions.to_vec());
        details.extend(names.condition(label, all.as_ref()));
    }
    let title = on_table("Bitmap Heap Scan", &scan.table.name, &scan.alias);
    (title, names.under(view.of(&scan.alias)))
}

fn shown(bitmap: &Bitmap, names: &Names<'_>) -> Shown {
    let (title, details, parts) = match bitmap {
        Bitmap::And(parts) => ("BitmapAnd".to_owned(), None, &parts[..]),
        Bitmap::Or(parts) => ("BitmapOr".to_owned(), None, &parts[..]),
        Bitmap::LookUp(look_up) => (
            format!("Bitmap Index Scan on {}", look_up.index.name),
            names.condition("Index Cond", look_up.condition.as_ref()),
            &[][..],
        ),
    };
    Shown {
        title,
        details: details.into_iter().collect(),
        cost: cost_of(bitmap),
        counters: None,
        children: parts.iter().map(|part| shown(part, names)).collect(),
        label: None,
    }
}

/// Of finding the entries.
fn cost_of(bitmap: &Bitmap) -> Cost {
    let mut cost = Cost::default();
    bitmap.look_ups(&mut |look_up| {
        cost.total += look_up.cost.total;
        cost.rows = look_up.cost.rows;
    });
    cost
}
