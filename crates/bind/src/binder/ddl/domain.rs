//! Domains: a type of values that are another's, with rules of their own.
//!
//! Nobody computes with a domain. A column or a cast that names one is of the type below it, with a
//! [`Expr::ToDomain`] where a value becomes the domain's; so operators, functions, indexes and rows
//! know only of base types. Which domain it was is kept beside a column's type and told by the
//! catalogs.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::sqltype::{array_of, element_of, made, type_info};
use throng_types::{Datum, Error, Oid, Result, SqlType};

use crate::binder::ddl::table::no_position;
use crate::binder::ddl::view::{STORED_PATH, stored_context};
use crate::binder::dml::generated::kept_text;
use crate::binder::query::scope::{NamedColumn, Names, Scope};
use crate::binder::{Binder, Clause, slots_of_row};
use crate::command::{AlterDomain, Ddl, DomainTest, Target, TargetKind};
use crate::deparse::{self, Style};
use crate::tree::expr::{DomainRule, DomainRules, Expr, RelId, Var};
use throng_catalog::{Catalog, ColumnDef, Domain, DomainCheck, DomainNotNull, TableDef, TypeDef};
use throng_syntax::parse;
use throng_syntax::parse::ast::{self, ColumnConstraintKind as C, DomainChange, Pos};
use throng_values::func::{CastContext, EvalContext};

/// A written type: what its values are, and the domain, or array of a domain, that they are of.
#[derive(Clone, Copy, Debug)]
pub(in crate::binder) struct Declared {
    pub ty: SqlType,
    pub domain: Option<Oid>,
}

/// VALUE as a check sees it.
fn value_names(rel: RelId, ty: SqlType) -> Names {
    let var = Var { rel, column: 1, ty };
    Names {
        tables: vec![],
        columns: vec![NamedColumn {
            name: "value".into(),
            expr: Expr::Var(var),
        }],
    }
}

/// The table whose only column VALUE is, for writing a check as text.
fn value_table(ty: SqlType) -> TableDef {
    let mut table = TableDef::of_columns(vec![ColumnDef::new("value", ty)]);
    "value".clone_into(&mut table.name);
    table
}

fn syntax(message: &str, pos: Pos) -> Error {
    Error::new(state::SYNTAX_ERROR, message).position(pos + 1)
}

/// VALUE is of the domain below, and goes as that one's base type.
fn as_base(value: &mut Expr, base: SqlType) {
    match value {
        Expr::Var(_) => {
            let arg = std::mem::replace(value, Expr::Const(Datum::Null, base));
            *value = Expr::Cast {
                arg: Box::new(arg),
                cast: None,
                to: SqlType::plain(base.oid),
                context: CastContext::Implicit,
            };
        }
        other => other.for_each_child_mut(&mut |child| as_base(child, base)),
    }
}

/// A domain's check as a session with this search path would write it; `pretty`: without needless
/// parentheses.
pub fn check_shown(
    check: &DomainCheck,
    domain: &Domain,
    catalog: &Catalog,
    search_path: &[Oid],
    pretty: bool,
    eval: EvalContext<'_>,
) -> Result<String> {
    let ctx = stored_context(catalog, eval);
    let mut binder = Binder::defining(&ctx);
    let rel = binder.new_rel();
    let ast = parse::parse_expr(&check.expr)?;
    let base = domain.base;
    let mut bound = binder.domain_condition(&ast, base, rel)?;
    if domain.over.is_some() {
        as_base(&mut bound, base);
    }
    let style = Style {
        kept: false,
        catalog,
        search_path,
        pretty,
        eval,
    };
    let text = deparse::row_expr(&bound, &value_table(base), rel, &style);
    Ok(throng_catalog::system::shown_check(&text))
}

/// A kept check as it has to be after something it names got another name in `renamed`.
pub(in crate::binder) fn check_again(
    text: &str,
    base: SqlType,
    catalog: &Catalog,
    renamed: &Catalog,
    eval: EvalContext<'_>,
) -> Result<String> {
    let ctx = stored_context(catalog, eval);
    let mut binder = Binder::defining(&ctx);
    let rel = binder.new_rel();
    let bound = binder.domain_condition(&parse::parse_expr(text)?, base, rel)?;
    Ok(kept_text(&bound, &value_table(base), rel, renamed, eval))
}

impl Binder<'_> {
    /// The type a written name means, domains included.
    pub(in crate::binder) fn declared(&self, name: &ast::TypeName) -> Result<Declared> {
        let builtin = self.builtin_type(&name.name).is_some();
        let mut array = name.array;
        let mut made = (!builtin).then(|| self.made_type(&name.name)).flatten();
        if made.is_none() && !builtin && !array {
            let element = self.array_type_named(&name.name).and_then(element_of);
            made = element.and_then(|ty| self.catalog().made_type(ty).cloned());
            array = made.is_some();
        }
        let Some(def) = made.filter(|def| def.domain.is_some()) else {
            let ty = self.type_of(name)?;
            return Ok(Declared { ty, domain: None });
        };
        if !name.modifiers.is_empty() {
            let message = format!("type modifier is not allowed for type \"{}\"", name.name);
            return Err(syntax(&message, name.name.pos));
        }
        self.of_domain(&def, array)
            .map_err(|e| crate::binder::at(e, name.name.pos))
    }

    /// The same of something new, which the role must be allowed to make of that type.
    pub(in crate::binder) fn declared_for_new(&self, name: &ast::TypeName) -> Result<Declared> {
        let declared = self.declared(name)?;
        self.may_use_type(declared.domain.unwrap_or(declared.ty.oid))?;
        Ok(declared)
    }

    /// A domain's values, or arrays of them.
    pub(in crate::binder) fn of_domain(&self, def: &TypeDef, array: bool) -> Result<Declared> {
        let Some(domain) = &def.domain else {
            return Err(Error::internal("a type that is no domain"));
        };
        if !array {
            return Ok(Declared {
                ty: domain.base,
                domain: Some(def.oid),
            });
        }
        let is_array = type_info(domain.base.oid).is_some_and(|t| t.is_array());
        match array_of(domain.base.oid).filter(|_| !is_array) {
            Some(array) => Ok(Declared {
                ty: SqlType::new(array, domain.base.typmod),
                domain: Some(made::array_oid(def.oid)),
            }),
            None => Err(Error::unsupported("an array of a domain over an array")),
        }
    }

    /// What a value must be to be of the domain, or an array of it.
    pub(in crate::binder) fn domain_rules(&mut self, domain: Oid) -> Result<Arc<DomainRules>> {
        if let Some(element) = throng_types::sqltype::element_of(domain) {
            let items = Some(self.domain_rules(element)?);
            return Ok(Arc::new(DomainRules {
                domain,
                not_null: false,
                checks: vec![],
                items,
            }));
        }
        let mut rules = DomainRules {
            domain,
            not_null: false,
            checks: vec![],
            items: None,
        };
        let mut chain = Vec::new();
        let mut at = Some(domain);
        while let Some(oid) = at {
            if throng_types::sqltype::element_of(oid).is_some() {
                rules.items = Some(self.domain_rules(oid)?.items.clone()).flatten();
                break;
            }
            let Some(def) = self.catalog().made_type(oid).cloned() else {
                break;
            };
            at = def
                .domain
                .as_ref()
                .and_then(|d| d.over)
                .filter(|o| made::is_domain(*o));
            chain.push(def);
        }
        // What the types below ask comes first.
        for def in chain.iter().rev() {
            let Some(of) = &def.domain else { continue };
            rules.not_null |= of.not_null.is_some();
            let mut checks: Vec<&DomainCheck> = of.checks.iter().collect();
            checks.sort_by(|a, b| a.name.cmp(&b.name));
            for check in checks {
                rules.checks.push(DomainRule {
                    name: check.name.clone(),
                    expr: self.stored_domain_check(&check.expr, of.base)?,
                });
            }
        }
        Ok(Arc::new(rules))
    }

    /// A value of the base type as one of the domain.
    pub(in crate::binder) fn in_domain(
        &mut self,
        value: Expr,
        domain: Option<Oid>,
    ) -> Result<Expr> {
        match domain {
            None => Ok(value),
            Some(domain) => {
                let rules = self.domain_rules(domain)?;
                Ok(Expr::ToDomain(Box::new(value), rules))
            }
        }
    }

    /// A value of the base type as one of the domain, made to fit the base type's length first.
    pub(in crate::binder) fn as_domain(
        &mut self,
        value: Expr,
        domain: Oid,
        pos: Pos,
    ) -> Result<Expr> {
        let array = throng_types::sqltype::element_of(domain);
        let def = self.catalog().made_type(array.unwrap_or(domain)).cloned();
        let Some(def) = def else {
            return Err(Error::internal("a domain that is gone"));
        };
        let base = self.of_domain(&def, array.is_some())?.ty;
        let value = self.coerce(value, base, pos)?;
        self.in_domain(value, Some(domain))
    }

    /// The domain that an expression's values are of, where that can be told.
    pub(in crate::binder) fn domain_of(&self, expr: &Expr) -> Option<Oid> {
        match expr {
            Expr::Routine(call) | Expr::SetRoutine(call) => call.def.ret_domain,
            Expr::ToDomain(_, rules) => Some(rules.domain),
            Expr::Var(var) => {
                let (_, table) = self.of_domains.iter().find(|(rel, _)| *rel == var.rel)?;
                let attnum = u16::try_from(var.column).ok().filter(|n| *n > 0)?;
                table.column(attnum).domain
            }
            _ => None,
        }
    }

    /// Notes an entry with columns of domains.
    pub(in crate::binder) fn note_domains(&mut self, rel: RelId, table: &Arc<TableDef>) {
        if table.live_columns().any(|(_, c)| c.domain.is_some()) {
            self.of_domains.push((rel, table.clone()));
        }
    }

    /// What a column of a domain gets without a default of its own: the text of the nearest
    /// default.
    pub(in crate::binder) fn domain_default(&self, domain: Option<Oid>) -> Option<String> {
        let mut at = domain;
        while let Some(oid) = at {
            let of = self.catalog().made_type(oid)?.domain.as_ref()?;
            if of.default.is_some() {
                return of.default.clone();
            }
            at = of.over.filter(|o| made::is_domain(*o));
        }
        None
    }

    /// Casts a value stored into a column, and makes it its domain's.
    pub(in crate::binder) fn assign_to(
        &mut self,
        expr: Expr,
        column: &ColumnDef,
        pos: Pos,
    ) -> Result<Expr> {
        if column.domain.is_some()
            && self.domain_of(&expr) == column.domain
            && matches!(expr, Expr::ToDomain(..))
        {
            return Ok(expr);
        }
        let shown = column.domain.unwrap_or(column.ty.oid);
        let value = self.assign_shown(expr, &column.name, column.ty, shown, pos)?;
        self.in_domain(value, column.domain)
    }

    /// A check over VALUE, which is `Slot(0)`.
    fn stored_domain_check(&mut self, text: &str, base: SqlType) -> Result<Expr> {
        let ast = parse::parse_expr(text)?;
        let path = std::mem::replace(&mut self.search_path, STORED_PATH.to_vec());
        let rel = self.new_rel();
        let bound = self.domain_condition(&ast, base, rel);
        self.search_path = path;
        bound.map(slots_of_row).map_err(no_position)
    }

    fn domain_condition(&mut self, ast: &ast::Expr, base: SqlType, rel: RelId) -> Result<Expr> {
        let names = value_names(rel, base);
        let scope = Scope::within(&names, None);
        let seen = std::mem::take(&mut self.seen);
        let bound = self.in_clause(Clause::Check, |b| {
            let bound = b.expr(ast, &scope)?;
            b.condition(bound, "CHECK", ast.pos)
        });
        self.seen = seen;
        bound
    }

    /// Checks a CHECK and gives its text, which means the same on any search path, and the
    /// condition over `Slot(0)`.
    fn new_domain_check(&mut self, source: &ast::Source, base: SqlType) -> Result<(String, Expr)> {
        let rel = self.new_rel();
        let bound = self.domain_condition(&source.expr, base, rel)?;
        if bound.any(&mut |e| matches!(e, Expr::Subquery(_))) {
            let message = "cannot use subquery in check constraint";
            let error = Error::new(state::FEATURE_NOT_SUPPORTED, message);
            return Err(error.position(source.expr.pos + 1));
        }
        let table = value_table(base);
        let text = kept_text(&bound, &table, rel, self.catalog(), self.ctx.eval);
        let bound = slots_of_row(bound);
        match self.stored_domain_check(&text, base) {
            Ok(again) if again == bound => Ok((text, bound)),
            _ => Ok((source.text.clone(), bound)),
        }
    }

    /// The text of a domain's default.
    fn new_domain_default(
        &mut self,
        source: &ast::Source,
        base: SqlType,
    ) -> Result<Option<String>> {
        let bound = self.default_expr(&source.expr)?;
        let from = bound.type_oid();
        let cast = self.try_coerce(bound, base, CastContext::Assignment, source.expr.pos)?;
        match cast {
            Some(value) if value.is_null_const() => Ok(None),
            Some(value) => Ok(Some(self.text_of_default(&value, base, source))),
            None => {
                let message = format!(
                    "column \"\" is of type {} but default expression is of type {}",
                    throng_types::sqltype::type_name(base.oid),
                    throng_types::sqltype::type_name(from)
                );
                Err(Error::new(state::DATATYPE_MISMATCH, message)
                    .hint("You will need to rewrite or cast the expression."))
            }
        }
    }

    pub(in crate::binder) fn create_domain(&mut self, ast: &ast::CreateDomain) -> Result<Ddl> {
        let schema = self.place_beside_relations(&ast.name)?;
        let name = ast.name.last().to_owned();
        let Declared { ty: base, domain } = self.declared_for_new(&ast.ty)?;
        let info = type_info(base.oid);
        if info.is_none_or(|t| t.is_pseudo()) {
            let message = format!("\"{}\" is not a valid base type for a domain", ast.ty.name);
            let error = Error::new(state::DATATYPE_MISMATCH, message);
            return Err(error.position(ast.ty.name.pos + 1));
        }
        let over = domain.or(made::is_made(base.oid).then_some(base.oid));
        let mut of = Domain {
            base,
            over,
            not_null: None,
            default: None,
            collation: None,
            checks: vec![],
        };
        if let Some(collation) = &ast.collation {
            of.collation = self.column_collation(collation, base)?;
        }
        let (mut said_null, mut has_default) = (false, false);
        for constraint in &ast.constraints {
            let pos = constraint.pos;
            match &constraint.kind {
                C::Default(source) => {
                    if std::mem::replace(&mut has_default, true) {
                        return Err(syntax("multiple default expressions", pos));
                    }
                    of.default = self.new_domain_default(source, base)?;
                }
                C::NotNull if said_null => {
                    return Err(syntax("conflicting NULL/NOT NULL constraints", pos));
                }
                C::NotNull if of.not_null.is_some() => {
                    let message = "redundant NOT NULL constraint definition";
                    return Err(
                        Error::new(state::INVALID_OBJECT_DEFINITION, message).position(pos + 1)
                    );
                }
                C::NotNull => {
                    let given = constraint.name.clone();
                    of.not_null = Some(DomainNotNull {
                        oid: Oid::NONE,
                        name: given.unwrap_or_else(|| format!("{name}_not_null")),
                    });
                }
                C::Null if of.not_null.is_some() => {
                    return Err(syntax("conflicting NULL/NOT NULL constraints", pos));
                }
                C::Null => said_null = true,
                C::Check(source) => {
                    let (expr, _) = self.new_domain_check(source, base).map_err(no_position)?;
                    let check = new_check(&of, &name, constraint.name.as_deref(), expr, true)?;
                    of.checks.push(check);
                }
                C::Unique { .. } => {
                    return Err(syntax("unique constraints not possible for domains", pos));
                }
                C::PrimaryKey { .. } => {
                    return Err(syntax(
                        "primary key constraints not possible for domains",
                        pos,
                    ));
                }
                C::References(_) => {
                    return Err(syntax(
                        "foreign key constraints not possible for domains",
                        pos,
                    ));
                }
                C::Identity { .. } | C::Generated { .. } => {
                    let message = "specifying GENERATED not supported for domains";
                    return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message).position(pos + 1));
                }
            }
        }
        if !has_default {
            of.default = self.domain_default(of.over);
        }
        Ok(Ddl::CreateDomain(TypeDef {
            oid: Oid::NONE,
            schema,
            name,
            owner: self.ctx.user,
            labels: vec![],
            domain: Some(of),
            fields: None,
            array_name: None,
            range: None,
        }))
    }

    pub(in crate::binder) fn alter_domain(
        &mut self,
        name: &ast::Name,
        change: &DomainChange,
    ) -> Result<Ddl> {
        let target = self.find_domain(name).map_err(|e| match e.code() {
            // ALTER says it without quotes.
            state::WRONG_OBJECT_TYPE => {
                Error::new(state::WRONG_OBJECT_TYPE, format!("{name} is not a domain"))
            }
            _ => e,
        })?;
        let Some(def) = self.catalog().made_type(target.oid).cloned() else {
            return Err(Error::internal("a domain that is not there"));
        };
        let mut new = (*def).clone();
        let mut tests = Vec::new();
        let Some(of) = &mut new.domain else {
            return Err(Error::internal("a type that is no domain"));
        };
        let missing = |constraint: &str| {
            let message = format!(
                "constraint \"{constraint}\" of domain \"{}\" does not exist",
                def.name
            );
            Error::new(state::UNDEFINED_OBJECT, message)
        };
        match change {
            DomainChange::SetDefault(source) => {
                of.default = match source {
                    Some(source) => self.new_domain_default(source, of.base)?,
                    None => None,
                };
            }
            DomainChange::SetNotNull => self.make_not_null(&def, of, None, &mut tests)?,
            DomainChange::DropNotNull => of.not_null = None,
            DomainChange::AddNotNull(name) => {
                self.make_not_null(&def, of, name.as_deref(), &mut tests)?;
            }
            DomainChange::AddCheck {
                name,
                source,
                not_valid,
            } => {
                let (expr, bound) = self
                    .new_domain_check(source, of.base)
                    .map_err(no_position)?;
                let check = new_check(of, &def.name, name.as_deref(), expr, !not_valid)?;
                of.checks.push(check);
                if !not_valid {
                    self.domain_tests(&def, Some(&bound), &mut tests)?;
                }
            }
            DomainChange::DropConstraint { name, if_exists } => {
                let before = of.checks.len();
                of.checks.retain(|c| c.name != *name);
                let is_not_null = of.not_null.as_ref().is_some_and(|n| n.name == *name);
                if is_not_null {
                    of.not_null = None;
                }
                if of.checks.len() == before && !is_not_null {
                    let error = missing(name);
                    if !if_exists {
                        return Err(error);
                    }
                    let message = format!("{}, skipping", error.message());
                    self.notice(Error::new(state::SUCCESSFUL_COMPLETION, message));
                }
            }
            DomainChange::RenameConstraint { from, to } => {
                must_be_free(of, &def.name, to)?;
                let checks = of.checks.iter_mut().map(|c| &mut c.name);
                let not_null = of.not_null.iter_mut().map(|n| &mut n.name);
                match checks.chain(not_null).find(|n| *n == from) {
                    Some(found) => found.clone_from(to),
                    None => return Err(missing(from)),
                }
            }
            DomainChange::Validate(name) => {
                let base = of.base;
                let Some(check) = of.checks.iter_mut().find(|c| c.name == *name) else {
                    if of.not_null.as_ref().is_some_and(|n| n.name == *name) {
                        let message = format!(
                            "constraint \"{name}\" of domain \"{}\" is not a check constraint",
                            def.name
                        );
                        return Err(Error::new(state::WRONG_OBJECT_TYPE, message));
                    }
                    return Err(missing(name));
                };
                if !std::mem::replace(&mut check.validated, true) {
                    let text = check.expr.clone();
                    let bound = self.stored_domain_check(&text, base)?;
                    self.domain_tests(&def, Some(&bound), &mut tests)?;
                }
            }
        }
        Ok(Ddl::AlterDomain(AlterDomain { def: new, tests }))
    }

    fn make_not_null(
        &mut self,
        def: &TypeDef,
        of: &mut Domain,
        name: Option<&str>,
        tests: &mut Vec<DomainTest>,
    ) -> Result<()> {
        if of.not_null.is_some() {
            return Ok(());
        }
        if let Some(name) = name {
            must_be_free(of, &def.name, name)?;
        }
        of.not_null = Some(DomainNotNull {
            oid: Oid::NONE,
            name: name.map_or_else(|| format!("{}_not_null", def.name), str::to_owned),
        });
        self.domain_tests(def, None, tests)
    }

    /// What the columns of a domain, and of domains over it, must now hold; no condition: NOT NULL.
    fn domain_tests(
        &self,
        def: &TypeDef,
        condition: Option<&Expr>,
        tests: &mut Vec<DomainTest>,
    ) -> Result<()> {
        let mut domains = vec![def.oid];
        let mut next = 0;
        while let Some(&domain) = domains.get(next) {
            next += 1;
            for other in self.catalog().made_types() {
                if other.domain.as_ref().and_then(|d| d.over) == Some(domain) {
                    domains.push(other.oid);
                }
            }
        }
        for table in self.catalog().tables() {
            for (attnum, column) in table.live_columns() {
                let of = column.domain.unwrap_or(column.ty.oid);
                if self.contains_domain(of, &domains, 0) {
                    let message = format!(
                        "cannot alter type \"{}\" because column \"{}.{}\" uses it",
                        def.name, table.name, column.name
                    );
                    return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
                }
                if !domains.contains(&of) {
                    continue;
                }
                tests.push(DomainTest {
                    table: table.oid,
                    attnum,
                    condition: condition.cloned(),
                });
            }
        }
        Ok(())
    }

    /// Whether values of a type have parts that are of one of these domains.
    fn contains_domain(&self, ty: Oid, domains: &[Oid], depth: u32) -> bool {
        const DEEPEST: u32 = 64;
        depth < DEEPEST
            && self.parts_of(ty).iter().any(|(part, below)| {
                // A domain over one of them is one of them.
                (!below && domains.contains(part))
                    || (!domains.contains(part) && self.contains_domain(*part, domains, depth + 1))
            })
    }

    /// The types that a type's values are made of; true: that it is a domain over.
    fn parts_of(&self, ty: Oid) -> Vec<(Oid, bool)> {
        if !made::is_made(ty) {
            return vec![];
        }
        if let Some(element) = throng_types::sqltype::element_of(ty) {
            return vec![(element, false)];
        }
        if let Some(def) = self.catalog().composite(ty) {
            let fields = def.fields.iter().flatten().filter(|f| !f.dropped);
            return fields.map(|f| (f.shown_type(), false)).collect();
        }
        let domain = self.catalog().made_type(ty).and_then(|d| d.domain.as_ref());
        let over = domain.and_then(|d| d.over);
        over.map(|over| (over, true)).into_iter().collect()
    }

    /// 42P16 where a composite type would have itself as a part.
    pub(in crate::binder) fn must_not_contain(&self, part: Oid, whole: Oid) -> Result<()> {
        let mut seen = vec![part];
        let mut next = 0;
        while let Some(&ty) = seen.get(next) {
            next += 1;
            if ty == whole {
                let name = throng_types::sqltype::type_name(whole);
                let message = format!("composite type {name} cannot be made a member of itself");
                return Err(Error::new(state::INVALID_TABLE_DEFINITION, message));
            }
            for (below, _) in self.parts_of(ty) {
                if !seen.contains(&below) {
                    seen.push(below);
                }
            }
        }
        Ok(())
    }

    /// A constraint of a domain, to speak of.
    pub(in crate::binder) fn domain_constraint(
        &mut self,
        name: &ast::Name,
        constraint: &str,
    ) -> Result<Target> {
        let domain = self.find_domain(name)?;
        let def = self.catalog().made_type(domain.oid);
        let of = def.and_then(|d| d.domain.as_ref());
        let check = of.and_then(|d| d.checks.iter().find(|c| c.name == constraint));
        let not_null = of
            .and_then(|d| d.not_null.as_ref())
            .filter(|n| n.name == constraint);
        match check.map(|c| c.oid).or(not_null.map(|n| n.oid)) {
            Some(oid) => Ok(Target {
                kind: TargetKind::Constraint,
                oid,
            }),
            None => {
                let message =
                    format!("constraint \"{constraint}\" for domain {name} does not exist");
                Err(Error::new(state::UNDEFINED_OBJECT, message))
            }
        }
    }

    pub(in crate::binder) fn find_domain(&mut self, name: &ast::Name) -> Result<Target> {
        if let Some(def) = self.made_type(name)
            && def.domain.is_none()
        {
            let message = format!("\"{name}\" is not a domain");
            return Err(Error::new(state::WRONG_OBJECT_TYPE, message));
        }
        self.find_type_object(name)
    }
}

fn must_be_free(of: &Domain, domain: &str, name: &str) -> Result<()> {
    let taken = of.checks.iter().any(|c| c.name == name)
        || of.not_null.as_ref().is_some_and(|n| n.name == name);
    if !taken {
        return Ok(());
    }
    let message = format!("constraint \"{name}\" for domain \"{domain}\" already exists");
    Err(Error::new(state::DUPLICATE_OBJECT, message))
}

fn new_check(
    of: &Domain,
    domain: &str,
    given: Option<&str>,
    expr: String,
    validated: bool,
) -> Result<DomainCheck> {
    let name = match given {
        Some(name) => {
            must_be_free(of, domain, name)?;
            name.to_owned()
        }
        None => {
            let numbers = std::iter::once(String::new()).chain((1u32..).map(|n| n.to_string()));
            let mut names = numbers.map(|n| format!("{domain}_check{n}"));
            let free = |name: &String| !of.checks.iter().any(|c| c.name == *name);
            names.find(free).unwrap_or_default()
        }
    };
    Ok(DomainCheck {
        oid: Oid::NONE,
        name,
        expr,
        validated,
    })
}
