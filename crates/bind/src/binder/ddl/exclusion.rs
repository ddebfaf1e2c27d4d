//! Exclusion constraints, and keys WITHOUT OVERLAPS.
//!
//! Both are kept by an index with an operator for each of its keys (`IndexTerms::exclusion`): no
//! two rows may be there for which all of them hold.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::range::{is_multirange, is_range};
use throng_types::sqltype::type_name;
use throng_types::{Error, Oid, Result, oid};

use crate::binder::Binder;
use crate::binder::ddl::index_order::IndexShape;
use crate::binder::ddl::options;
use crate::binder::dml::updatable::WriteTarget;
use crate::binder::expr::operator::Found;
use crate::command::NewExclusion;
use throng_catalog::system::operator_class;
use throng_catalog::{IndexMethod, IndexTerms, KeyWords, OperatorDef, TableDef};
use throng_syntax::parse::ast::{self, Pos};
use throng_values::func::{Operator, Strategy};

#[cold]
fn wrong(message: String, detail: &str) -> Error {
    Error::new(state::WRONG_OBJECT_TYPE, message).detail(detail)
}

/// An operator's name with its operand types.
fn signature(op: &Operator) -> String {
    format!(
        "{}({},{})",
        op.name,
        type_name(op.left),
        type_name(op.right)
    )
}

/// 42809 for an operator that is in no family of the index's.
#[cold]
fn no_member(operator: &str, ty: Oid) -> Error {
    let message = format!(
        "operator {operator} is not a member of operator family \"{}\"",
        operator_class::family_name(ty)
    );
    let detail =
        "The exclusion operator must be related to the index operator class for the constraint.";
    wrong(message, detail)
}

/// Whether an index of this method finds the rows for which an operator holds. A GiST index finds
/// others among the rows that it reads.
fn serves(method: IndexMethod, op: &Operator) -> bool {
    let equal = op.strategy == Some(Strategy::Equal);
    let on_ranges = matches!(op.left, oid::ANYRANGE | oid::ANYMULTIRANGE);
    match method {
        IndexMethod::Gist if on_ranges => equal || matches!(op.name, "&&" | "-|-"),
        IndexMethod::Gist => equal || op.name == "<>",
        _ => equal,
    }
}

impl Binder<'_> {
    /// The table's index of that name.
    pub(in crate::binder) fn index_of(
        &self,
        table: &TableDef,
        name: &str,
        pos: Pos,
    ) -> Result<Oid> {
        let mut indexes = self.catalog().indexes_of(table.oid).iter();
        let found = indexes.find(|index| index.name == name);
        found.map(|index| index.oid).ok_or_else(|| {
            let message = format!("index \"{name}\" does not exist");
            Error::new(state::UNDEFINED_OBJECT, message).position(pos + 1)
        })
    }

    pub(in crate::binder) fn exclusion(
        &mut self,
        ast: &ast::Exclusion,
        table: &Arc<TableDef>,
        pos: Pos,
    ) -> Result<NewExclusion> {
        let method = self.method_named(ast.method.as_ref())?;
        let columns: Vec<ast::IndexColumn> = ast.elements.iter().map(|(c, _)| c.clone()).collect();
        let asked = IndexShape {
            unique: false,
            include: !ast.include.is_empty(),
            exclusion: true,
            columns: &columns,
        };
        asked.fits(method)?;
        let mut terms = IndexTerms {
            method,
            ..IndexTerms::default()
        };
        let mut keys = Vec::with_capacity(ast.elements.len());
        for (column, op) in &ast.elements {
            let (key, ty) = self.index_element(column, table, &mut terms)?;
            let op = self.exclusion_operator(op, ty, method)?;
            terms.exclusion.push(op);
            let name = (key.attnum > 0).then(|| table.column(key.attnum).name.clone());
            keys.push((name, key));
        }
        if terms.words.iter().all(|w| *w == KeyWords::default()) {
            terms.words.clear();
        }
        if let Some(predicate) = &ast.predicate {
            self.index_predicate(predicate, table, &mut terms)?;
        }
        let mut include = Vec::with_capacity(ast.include.len());
        for (name, _) in &ast.include {
            if table.attnum(name).is_none() {
                let message = format!("column \"{name}\" named in key does not exist");
                return Err(Error::new(state::UNDEFINED_COLUMN, message).position(pos + 1));
            }
            include.push(name.clone());
        }
        options::check(&ast.options, options::of_index(method))?;
        let uses = std::mem::take(&mut terms.uses);
        let name = |attnum: u16| table.column(attnum).name.clone();
        Ok(NewExclusion {
            keys,
            uses: uses.into_iter().map(name).collect(),
            terms,
            include,
            options: ast.options.clone(),
        })
    }

    /// The index of the constraint that ON CONFLICT ON CONSTRAINT names; `updates`: DO UPDATE.
    pub(in crate::binder) fn arbiter_named(
        &self,
        name: &str,
        target: &WriteTarget,
        updates: bool,
    ) -> Result<Oid> {
        let constraint = self.catalog().constraint_by_name(target.table.oid, name);
        // A view has none, though its table may.
        let Some(constraint) = constraint.filter(|_| !target.is_view()) else {
            let message = format!(
                "constraint \"{name}\" for table \"{}\" does not exist",
                target.name()
            );
            return Err(Error::new(state::UNDEFINED_OBJECT, message));
        };
        let Some(index) = constraint.index() else {
            let message = "constraint in ON CONFLICT clause has no associated index";
            return Err(Error::new(state::WRONG_OBJECT_TYPE, message));
        };
        let excludes = |index| {
            let index = self.catalog().index(index);
            index.is_some_and(|index| !index.terms.exclusion.is_empty())
        };
        if updates && excludes(index) {
            let message = "ON CONFLICT DO UPDATE not supported with exclusion constraints";
            return Err(Error::new(state::WRONG_OBJECT_TYPE, message));
        }
        Ok(index)
    }

    /// Why a user's operator cannot be one of an exclusion constraint: users make no operator
    /// families.
    fn excludes_not(&self, def: &OperatorDef, ty: Oid) -> Error {
        let shown = self.catalog().operator_signature(&self.search_path, def);
        if def.commutator != Some(def.oid) {
            return wrong(
                format!("operator {shown} is not commutative"),
                "Only commutative operators can be used in exclusion constraints.",
            );
        }
        no_member(&shown, ty)
    }

    fn exclusion_operator(
        &self,
        written: &ast::Operator,
        ty: Oid,
        method: IndexMethod,
    ) -> Result<Oid> {
        let schema = written.schema.as_deref();
        let op = match self.choose_operator(schema, &written.name, (Some(ty), ty), written.pos)? {
            Found::Table(found) => found.operator,
            Found::Own { def, .. } => return Err(self.excludes_not(&def, ty)),
        };
        if op.commutator != op.oid {
            return Err(wrong(
                format!("operator {} is not commutative", signature(op)),
                "Only commutative operators can be used in exclusion constraints.",
            ));
        }
        if !serves(method, op) {
            return Err(no_member(&signature(op), ty));
        }
        Ok(op.oid)
    }
}

/// WITHOUT OVERLAPS, where the last column can be meant so.
pub(in crate::binder) fn may_overlap_not(
    without_overlaps: bool,
    columns: &[(String, Pos)],
    table: &TableDef,
    pos: Pos,
) -> Result<bool> {
    let Some((last, first)) = columns.split_last().filter(|_| without_overlaps) else {
        return Ok(false);
    };
    let Some(attnum) = table.attnum(&last.0) else {
        return Ok(true);
    };
    let ty = table.column(attnum).ty.oid;
    if !is_range(ty) && !is_multirange(ty) {
        let name = &last.0;
        let message =
            format!("column \"{name}\" in WITHOUT OVERLAPS is not a range or multirange type");
        return Err(Error::new(state::DATATYPE_MISMATCH, message).position(pos + 1));
    }
    if first.is_empty() {
        let message = "constraint using WITHOUT OVERLAPS needs at least two columns";
        return Err(Error::new(state::SYNTAX_ERROR, message));
    }
    Ok(true)
}
