//! The columns that a statement writes to, as they were written.

use throng_types::error::state;
use throng_types::{Error, Result};

use super::generated::wrong_value;
use super::updatable::WriteTarget;
use throng_catalog::ColumnDef;
use throng_syntax::parse::ast::{self, Node, Pos};

/// The columns an INSERT names; several parts of one may be named.
pub(in crate::binder) fn named_columns(
    names: &[(String, Pos)],
    parts: &[Vec<ast::TargetPart>],
    target: &WriteTarget,
) -> Result<Vec<(u16, Pos)>> {
    let mut columns: Vec<(u16, Pos)> = Vec::with_capacity(names.len());
    let mut whole: Vec<u16> = Vec::with_capacity(names.len());
    for (i, (name, pos)) in names.iter().enumerate() {
        let attnum = target.column(name, *pos)?;
        let in_part = !ast::part(parts, i).is_empty();
        let before = columns.iter().any(|(n, _)| *n == attnum);
        if !in_part {
            whole.push(attnum);
        }
        if before && (!in_part || whole.contains(&attnum)) {
            let message = format!("column \"{name}\" specified more than once");
            return Err(Error::new(state::DUPLICATE_COLUMN, message).position(pos + 1));
        }
        columns.push((attnum, *pos));
    }
    Ok(columns)
}

/// The columns of a list, those of which several parts are written to once.
pub(super) fn written_columns(ast: &ast::Insert, columns: &[(u16, Pos)]) -> Vec<(u16, Pos)> {
    if ast.parts.is_empty() {
        return columns.to_vec();
    }
    let mut distinct: Vec<(u16, Pos)> = Vec::with_capacity(columns.len());
    for column in columns {
        if !distinct.iter().any(|(n, _)| *n == column.0) {
            distinct.push(*column);
        }
    }
    distinct
}

/// DEFAULT is for whole columns.
pub(super) fn part_is_given(value: &ast::Expr, part: &[ast::TargetPart], pos: Pos) -> Result<()> {
    if !matches!(value.node, Node::Default) {
        return Ok(());
    }
    let message = match part.first() {
        Some(ast::TargetPart::Field(..)) => "cannot set a subfield to DEFAULT",
        _ => "cannot set an array element to DEFAULT",
    };
    Err(Error::new(state::FEATURE_NOT_SUPPORTED, message).position(pos + 1))
}

pub(super) fn must_be_default(column: &ColumnDef) -> Result<()> {
    if column.generated.is_none() {
        return Ok(());
    }
    let name = &column.name;
    let message = format!("column \"{name}\" can only be updated to DEFAULT");
    Err(wrong_value(message, name))
}

/// How many columns a source has, where that can be seen in what was written.
pub(super) fn written_width(source: &ast::Query) -> Option<usize> {
    if let ast::Body::Values(rows) = &source.body {
        return rows.first().map(Vec::len);
    }
    let select = source.as_select()?;
    let star = |t: &ast::SelectItem| matches!(t.expr.node, Node::Star(_) | Node::FieldStar(_));
    (!select.targets.iter().any(star)).then_some(select.targets.len())
}
