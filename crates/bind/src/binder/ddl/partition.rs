//! Partition keys and bounds: what was written, into what the catalog keeps.

use std::collections::HashSet;

use throng_types::error::state;
use throng_types::sqltype::type_name;
use throng_types::{Datum, Error, Result, SqlType};

use crate::binder::ddl::view::STORED_PATH;
use crate::binder::dml::generated::kept_text;
use crate::binder::query::scope::Scope;
use crate::binder::{Binder, Clause};
use crate::command::{Ddl, Detach};
use crate::tree::expr::{Expr, RelId};
use throng_catalog::partition::check::{Fault, check_bound};
use throng_catalog::partition::{
    KeyPart, PartitionBound, PartitionKey, PartitionStrategy, RangeEnd, bound_text,
};
use throng_catalog::{Relation, TableDef};
use throng_syntax::parse;
use throng_syntax::parse::ast::{self, Node, Pos};
use throng_syntax::parse::partition::{BoundKind, BoundSpec, PartitionBy, PartitionPart};
use throng_values::func::{CastContext, Volatility};

const SYSTEM_COLUMNS: [&str; 6] = ["ctid", "xmin", "cmin", "xmax", "cmax", "tableoid"];

impl Binder<'_> {
    pub(in crate::binder) fn partition_key(
        &mut self,
        ast: &PartitionBy,
        table: &TableDef,
    ) -> Result<PartitionKey> {
        let strategy = match ast.strategy.as_str() {
            "list" => PartitionStrategy::List,
            "range" => PartitionStrategy::Range,
            "hash" => PartitionStrategy::Hash,
            other => {
                let message = format!("unrecognized partitioning strategy \"{other}\"");
                return Err(
                    Error::new(state::INVALID_PARAMETER_VALUE, message).position(ast.pos + 1)
                );
            }
        };
        const MOST_PARTS: usize = 32;
        if ast.parts.len() > MOST_PARTS {
            let message = format!("cannot partition using more than {MOST_PARTS} columns");
            return Err(Error::new(state::TOO_MANY_COLUMNS, message));
        }
        if strategy == PartitionStrategy::List && ast.parts.len() > 1 {
            let message = "cannot use \"list\" partition strategy with more than one column";
            return Err(Error::new(state::INVALID_OBJECT_DEFINITION, message));
        }
        let mut parts = Vec::with_capacity(ast.parts.len());
        for part in &ast.parts {
            parts.push(self.key_part(part, strategy, table)?);
        }
        Ok(PartitionKey { strategy, parts })
    }

    fn key_part(
        &mut self,
        ast: &PartitionPart,
        strategy: PartitionStrategy,
        table: &TableDef,
    ) -> Result<KeyPart> {
        if let Some(collation) = &ast.collation
            && !["default", "C", "POSIX"].contains(&collation.last())
        {
            let message = format!(
                "collation \"{}\" for encoding \"UTF8\" does not exist",
                collation.last()
            );
            return Err(Error::new(state::UNDEFINED_OBJECT, message).position(collation.pos + 1));
        }
        let mut part = match &ast.column {
            Some(name) => self.key_column(name, ast.pos, table)?,
            None => self.key_expression(ast, table)?,
        };
        if part.attnum == 0
            && let Some(Expr::Var(var)) = self.key_in_parentheses(&ast.source.expr, table)?
        {
            part.attnum = var.column as u16;
            part.expr = None;
            part.uses.clear();
        }
        if let Some(class) = &ast.class {
            let plain = class.last().strip_suffix("_ops");
            let known = plain
                .map(|t| t.strip_suffix("_pattern").unwrap_or(t))
                .is_some_and(|t| throng_types::sqltype::type_by_name(t).is_some());
            if !known {
                return Err(
                    Error::unsupported(format!("operator class \"{}\"", class.last()))
                        .position(class.pos + 1),
                );
            }
        }
        if !throng_values::func::compare::is_ordered(part.ty.oid)
            || !throng_types::key::supported(part.ty.oid)
        {
            let method = match strategy {
                PartitionStrategy::Hash => "hash",
                _ => "btree",
            };
            let message = format!(
                "data type {} has no default operator class for access method \"{method}\"",
                type_name(part.ty.oid)
            );
            return Err(Error::new(state::UNDEFINED_OBJECT, message).hint(format!(
                "You must specify a {method} operator class or define a default {method} operator class for the data type."
            )));
        }
        Ok(part)
    }

    fn key_column(&self, name: &str, pos: Pos, table: &TableDef) -> Result<KeyPart> {
        if SYSTEM_COLUMNS.contains(&name) {
            let message = format!("cannot use system column \"{name}\" in partition key");
            return Err(Error::new(state::INVALID_OBJECT_DEFINITION, message).position(pos + 1));
        }
        let attnum = table.attnum(name).ok_or_else(|| {
            let message = format!("column \"{name}\" named in partition key does not exist");
            Error::new(state::UNDEFINED_COLUMN, message).position(pos + 1)
        })?;
        Ok(KeyPart {
            attnum,
            expr: None,
            uses: vec![],
            ty: table.column(attnum).ty,
        })
    }

    /// `(a)` is the column.
    fn key_in_parentheses(&mut self, ast: &ast::Expr, table: &TableDef) -> Result<Option<Expr>> {
        let bound = self.expr_over_table(ast, table, None)?;
        Ok(match &bound {
            Expr::Var(var) if var.column > 0 => Some(bound),
            _ => None,
        })
    }

    fn key_expression(&mut self, ast: &PartitionPart, table: &TableDef) -> Result<KeyPart> {
        let wrong = |message: &str| Error::new(state::INVALID_OBJECT_DEFINITION, message);
        let table_row = std::sync::Arc::new(table.clone());
        let rel = self.new_rel();
        let names = crate::binder::dml::row_names(&table_row, &table.name, rel);
        let scope = Scope::within(&names, None);
        let clause = Clause::Other("partition key expressions");
        let bound = self.in_clause(clause, |b| b.expr(&ast.source.expr, &scope))?;
        if bound.any(&mut |e| matches!(e, Expr::Subquery(_))) {
            let message = "cannot use subquery in partition key expression";
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message).position(ast.pos + 1));
        }
        let mut uses: Vec<u16> = Vec::new();
        let mut system = false;
        bound.for_each_var(&mut |var| match u16::try_from(var.column) {
            Ok(column) if column > 0 => {
                if !uses.contains(&column) {
                    uses.push(column);
                }
            }
            _ => system = true,
        });
        if system {
            return Err(wrong(
                "partition key expressions cannot contain system column references",
            ));
        }
        let mutable = bound.any(&mut |e| match e {
            Expr::Call { func, .. } => func.volatility != Volatility::Immutable,
            Expr::Op { op, .. } => op.volatility != Volatility::Immutable,
            _ => false,
        });
        if mutable {
            return Err(wrong(
                "functions in partition key expression must be marked IMMUTABLE",
            ));
        }
        if uses.is_empty() {
            return Err(wrong("cannot use constant expression as partition key"));
        }
        if throng_types::sqltype::type_info(bound.type_oid()).is_none_or(|t| t.is_pseudo()) {
            let message = format!(
                "partition key column 1 has pseudo-type {}",
                type_name(bound.type_oid())
            );
            return Err(Error::new(state::INVALID_TABLE_DEFINITION, message));
        }
        Ok(KeyPart {
            attnum: 0,
            expr: Some(self.key_text(&bound, &table_row, rel, &ast.source)),
            uses,
            ty: bound.ty(),
        })
    }

    /// The text to keep of an expression over the row of an entry: PostgreSQL's words for it, if
    /// they are read as the same.
    fn key_text(
        &mut self,
        bound: &Expr,
        table: &std::sync::Arc<TableDef>,
        rel: RelId,
        source: &ast::Source,
    ) -> String {
        let text = kept_text(bound, table, rel, self.catalog(), self.ctx.eval);
        let Ok(ast) = parse::parse_expr(&text) else {
            return source.text.clone();
        };
        let names = crate::binder::dml::row_names(table, &table.name, rel);
        let scope = Scope::within(&names, None);
        let seen = self.seen.len();
        let path = std::mem::replace(&mut self.search_path, STORED_PATH.to_vec());
        let clause = Clause::Other("partition key expressions");
        let again = self.in_clause(clause, |b| b.expr(&ast, &scope));
        self.search_path = path;
        self.seen.truncate(seen);
        match again {
            Ok(again) if again == *bound => text,
            _ => source.text.clone(),
        }
    }

    /// The partitioned table that a partition is to be of.
    pub(in crate::binder) fn partitioned(
        &self,
        name: &ast::Name,
    ) -> Result<std::sync::Arc<TableDef>> {
        let found = self
            .relation(name)
            .map_err(crate::binder::ddl::table::no_position)?;
        match found {
            Relation::Table(table) if table.is_partitioned() => {
                self.must_own(table.owner, "table", &table.name)?;
                Ok(table)
            }
            other => {
                let message = format!("\"{}\" is not partitioned", other.name());
                Err(Error::new(state::INVALID_OBJECT_DEFINITION, message))
            }
        }
    }

    /// The bound of the partition `name` of `parent`; `own`: the partition itself, where it is
    /// there already.
    pub(in crate::binder) fn partition_bound(
        &mut self,
        ast: &BoundSpec,
        parent: &TableDef,
        name: &str,
    ) -> Result<PartitionBound> {
        let Some(key) = parent.partitioned.clone() else {
            return Err(Error::internal("a table that is not partitioned"));
        };
        let bound = self.bound_of(ast, &key, parent)?;
        let complaint = check_bound(parent, name, &bound, self.catalog(), None, self.ctx.eval)?;
        let Some((error, fault)) = complaint else {
            return Ok(bound);
        };
        let pos = match (&ast.kind, fault) {
            (BoundKind::In(values), Fault::Value(at)) => values.get(at).map(|v| v.pos),
            (BoundKind::Range { from, .. }, Fault::Value(at)) => from.get(at).map(|v| v.pos),
            (BoundKind::Range { to, .. }, Fault::Upper(at)) => to.get(at).map(|v| v.pos),
            _ => None,
        };
        Err(error.position(pos.unwrap_or(ast.pos) + 1))
    }

    fn bound_of(
        &mut self,
        ast: &BoundSpec,
        key: &PartitionKey,
        parent: &TableDef,
    ) -> Result<PartitionBound> {
        let bad = |message: &str| Error::new(state::INVALID_TABLE_DEFINITION, message);
        let misfit = || {
            let message = format!(
                "invalid bound specification for a {} partition",
                key.strategy.name()
            );
            Err(bad(&message).position(ast.pos + 1))
        };
        match (&ast.kind, key.strategy) {
            (BoundKind::Default, PartitionStrategy::Hash) => Err(bad(
                "a hash-partitioned table may not have a default partition",
            )),
            (BoundKind::Default, _) => Ok(PartitionBound::Default),
            (BoundKind::With { modulus, remainder }, PartitionStrategy::Hash) => {
                if *modulus <= 0 {
                    return Err(bad(
                        "modulus for hash partition must be an integer value greater than zero",
                    ));
                }
                if *remainder < 0 {
                    return Err(bad(
                        "remainder for hash partition must be an integer value greater than or equal to zero",
                    ));
                }
                if remainder >= modulus {
                    return Err(bad(
                        "remainder for hash partition must be less than modulus",
                    ));
                }
                let small = |n: i64| {
                    i32::try_from(n)
                        .map_err(|_| bad("modulus for hash partition must be an integer value"))
                };
                Ok(PartitionBound::Hash {
                    modulus: small(*modulus)?,
                    remainder: small(*remainder)?,
                })
            }
            (BoundKind::In(values), PartitionStrategy::List) => {
                let mut list: Vec<Option<String>> = Vec::new();
                let mut named = HashSet::new();
                for value in values {
                    let value = self.bound_value(value, key, 0, parent)?;
                    let text = value.map(|v| bound_text(&v, key.parts[0].ty, self.ctx.eval));
                    if named.insert(text.clone()) {
                        list.push(text);
                    }
                }
                Ok(PartitionBound::List(list))
            }
            (BoundKind::Range { from, to }, PartitionStrategy::Range) => {
                for (what, ends) in [("FROM", from), ("TO", to)] {
                    if ends.len() != key.parts.len() {
                        let message = format!(
                            "{what} must specify exactly one value per partitioning column"
                        );
                        return Err(bad(&message));
                    }
                }
                Ok(PartitionBound::Range {
                    from: self.range_ends(from, key, parent)?,
                    to: self.range_ends(to, key, parent)?,
                })
            }
            _ => misfit(),
        }
    }

    fn range_ends(
        &mut self,
        ends: &[ast::Expr],
        key: &PartitionKey,
        parent: &TableDef,
    ) -> Result<Vec<RangeEnd>> {
        let mut bound: Vec<RangeEnd> = Vec::with_capacity(ends.len());
        for (at, end) in ends.iter().enumerate() {
            let word = match &end.node {
                Node::Column(parts) if parts.len() == 1 => parts[0].as_str(),
                _ => "",
            };
            let next = match word {
                "minvalue" => RangeEnd::Min,
                "maxvalue" => RangeEnd::Max,
                _ => match self.bound_value(end, key, at, parent)? {
                    Some(value) => {
                        RangeEnd::Value(bound_text(&value, key.parts[at].ty, self.ctx.eval))
                    }
                    None => {
                        let message = "cannot specify NULL in range bound";
                        return Err(Error::new(state::INVALID_OBJECT_DEFINITION, message));
                    }
                },
            };
            let said = match bound.last() {
                Some(RangeEnd::Min) if next != RangeEnd::Min => "MINVALUE",
                Some(RangeEnd::Max) if next != RangeEnd::Max => "MAXVALUE",
                _ => "",
            };
            if !said.is_empty() {
                let message = format!("every bound following {said} must also be {said}");
                return Err(Error::new(state::DATATYPE_MISMATCH, message).position(end.pos + 1));
            }
            bound.push(next);
        }
        Ok(bound)
    }

    /// A value of a bound, computed now; none: NULL.
    fn bound_value(
        &mut self,
        ast: &ast::Expr,
        key: &PartitionKey,
        at: usize,
        parent: &TableDef,
    ) -> Result<Option<Datum>> {
        let unsupported = |message: &str, pos: Pos| {
            Error::new(state::FEATURE_NOT_SUPPORTED, message).position(pos + 1)
        };
        let part = &key.parts[at];
        let clause = Clause::Other("partition bound");
        let bound = self
            .in_clause(clause, |b| b.expr(ast, &Scope::empty()))
            .map_err(|e| match e.code() {
                state::UNDEFINED_COLUMN | state::UNDEFINED_TABLE => unsupported(
                    "cannot use column reference in partition bound expression",
                    e.fields().position.map_or(ast.pos, |p| p - 1),
                ),
                _ => e,
            })?;
        if bound.any(&mut |e| matches!(e, Expr::Subquery(_))) {
            return Err(unsupported(
                "cannot use subquery in partition bound",
                ast.pos,
            ));
        }
        let column = match part.attnum {
            0 => part.expr.clone().unwrap_or_default(),
            n => parent.column(n).name.clone(),
        };
        let plain = SqlType::plain(part.ty.oid);
        let cast = self.try_coerce(bound, plain, CastContext::Assignment, ast.pos)?;
        let Some(cast) = cast else {
            let message = format!(
                "specified value cannot be cast to type {} for column \"{column}\"",
                type_name(part.ty.oid)
            );
            return Err(Error::new(state::DATATYPE_MISMATCH, message).position(ast.pos + 1));
        };
        let cast = match part.ty.typmod {
            -1 => cast,
            _ => Expr::Cast {
                arg: Box::new(cast),
                cast: None,
                to: part.ty,
                context: CastContext::Assignment,
            },
        };
        match crate::fold::constant_value(cast, &self.ctx.eval)? {
            Some(Datum::Null) => Ok(None),
            Some(value) => Ok(Some(value)),
            None => Err(unsupported(
                "this expression in a partition bound is not supported",
                ast.pos,
            )),
        }
    }

    /// ALTER TABLE … ATTACH PARTITION.
    pub(in crate::binder) fn attach_partition(
        &mut self,
        table: &ast::Name,
        if_exists: bool,
        partition: &ast::Name,
        bound: &BoundSpec,
    ) -> Result<Ddl> {
        let Some(found) = self.owned_table(table, if_exists)? else {
            return Ok(Ddl::Nothing { tag: "ALTER TABLE" });
        };
        let parent = self.must_be_partitioned(found, "ATTACH")?;
        let child = match self
            .relation(partition)
            .map_err(crate::binder::ddl::table::no_position)?
        {
            Relation::Table(child) if !child.is_materialized() => child,
            other => {
                let message = format!(
                    "ALTER action ATTACH PARTITION cannot be performed on relation \"{}\"",
                    other.name()
                );
                return Err(Error::new(state::WRONG_OBJECT_TYPE, message));
            }
        };
        self.must_own(child.owner, "table", &child.name)?;
        if child.bound.is_some() {
            let message = format!("\"{}\" is already a partition", child.name);
            return Err(Error::new(state::WRONG_OBJECT_TYPE, message));
        }
        let bound = self.partition_bound(bound, &parent, &child.name)?;
        Ok(Ddl::AttachPartition {
            table: parent.oid,
            partition: child.oid,
            bound,
        })
    }

    fn must_be_partitioned(
        &self,
        table: std::sync::Arc<TableDef>,
        verb: &str,
    ) -> Result<std::sync::Arc<TableDef>> {
        if table.is_partitioned() {
            return Ok(table);
        }
        let message = format!(
            "ALTER action {verb} PARTITION cannot be performed on relation \"{}\"",
            table.name
        );
        Err(Error::new(state::WRONG_OBJECT_TYPE, message)
            .detail("This operation is not supported for tables."))
    }

    /// ALTER TABLE … DETACH PARTITION.
    pub(in crate::binder) fn detach_partition(
        &mut self,
        table: &ast::Name,
        if_exists: bool,
        partition: &ast::Name,
        step: Detach,
    ) -> Result<Ddl> {
        let Some(found) = self.owned_table(table, if_exists)? else {
            return Ok(Ddl::Nothing { tag: "ALTER TABLE" });
        };
        let parent = self.must_be_partitioned(found, "DETACH")?;
        let child = self
            .relation(partition)
            .map_err(crate::binder::ddl::table::no_position)?;
        let of_it = match &child {
            Relation::Table(child) => {
                child.bound.is_some() && child.parents.first() == Some(&parent.oid)
            }
            _ => false,
        };
        if !of_it {
            let message = format!(
                "relation \"{}\" is not a partition of relation \"{}\"",
                child.name(),
                parent.name
            );
            return Err(Error::new(state::UNDEFINED_TABLE, message));
        }
        if step == Detach::Concurrently {
            let default = self.catalog().children_of(parent.oid).iter().any(|c| {
                let child = self.catalog().table(*c);
                child.is_some_and(|c| c.bound == Some(PartitionBound::Default))
            });
            if default {
                let message =
                    "cannot detach partitions concurrently when a default partition exists";
                return Err(Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
            }
        }
        Ok(Ddl::DetachPartition {
            table: parent.oid,
            partition: child.oid(),
            step,
        })
    }

    /// ALTER INDEX … ATTACH PARTITION.
    pub(in crate::binder) fn attach_index(
        &mut self,
        index: &ast::Name,
        partition: &ast::Name,
    ) -> Result<Ddl> {
        let whole = self
            .relation(index)
            .map_err(crate::binder::ddl::table::no_position)?;
        let partitioned = |index: &throng_catalog::IndexDef| {
            self.catalog()
                .table(index.table)
                .is_some_and(|t| t.is_partitioned())
        };
        let whole = match &whole {
            Relation::Index(def) if partitioned(def) => def.clone(),
            other => {
                let message = format!(
                    "ALTER action ATTACH PARTITION cannot be performed on relation \"{}\"",
                    other.name()
                );
                let kind = match other {
                    Relation::Index(_) => "indexes",
                    _ => "tables",
                };
                return Err(Error::new(state::WRONG_OBJECT_TYPE, message)
                    .detail(format!("This operation is not supported for {kind}.")));
            }
        };
        match self
            .relation(partition)
            .map_err(crate::binder::ddl::table::no_position)?
        {
            Relation::Index(part) => Ok(Ddl::AttachIndex {
                index: whole.oid,
                partition: part.oid,
            }),
            other => {
                let message = format!("\"{}\" is not an index", other.name());
                Err(Error::new(state::WRONG_OBJECT_TYPE, message))
            }
        }
    }
}
