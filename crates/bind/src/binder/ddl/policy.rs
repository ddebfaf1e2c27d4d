//! CREATE, ALTER, DROP and COMMENT of row security policies, and the texts of their conditions.

use std::sync::Arc;

use throng_types::error::{Severity, state};
use throng_types::{Error, Oid, Result};

use crate::binder::ddl::table::no_position;
use crate::binder::ddl::view::{STORED_PATH, named_by, normalize, stored_context};
use crate::binder::renamed::with_stored_style;
use crate::binder::{BindContext, Binder};
use crate::command::{AlterTable, Ddl, PolicyDdl, Target, TargetKind};
use crate::deparse::{self, Style};
use crate::tree::expr::{Expr, RelId};
use crate::tree::query::walk::QueryPart;
use crate::tree::query::{Body, BoundQuery, FromItem, QueryKind};
use throng_catalog::{
    Catalog, PolicyCommand, PolicyCondition, PolicyDef, Relation, RowSecurityState, TableDef,
};
use throng_syntax::parse::ast::{self, AlterAction, PolicyChange, RowSecurity};
use throng_values::func::EvalContext;

/// A policy's condition as a session with this search path would write it.
pub fn policy_condition_shown(
    condition: &PolicyCondition,
    table: &Arc<TableDef>,
    catalog: &Catalog,
    search_path: &[Oid],
    pretty: bool,
    eval: EvalContext<'_>,
) -> Result<String> {
    let ctx = stored_context(catalog, eval);
    let bound = kept_condition(&condition.text, table, &ctx)?;
    let style = Style {
        kept: false,
        catalog,
        search_path,
        pretty,
        eval,
    };
    text_of(&bound, table, &style)
}

/// A kept condition as it has to be after something it names got another name in `renamed`.
pub fn policy_condition_again(
    text: &str,
    table: &Arc<TableDef>,
    catalog: &Catalog,
    renamed: &Catalog,
    eval: EvalContext<'_>,
) -> Result<String> {
    let ctx = stored_context(catalog, eval);
    let bound = kept_condition(text, table, &ctx)?;
    let table = renamed.table(table.oid).unwrap_or(table);
    kept_text(&bound, table, renamed, eval)
}

/// The query of one column, the condition, over the table alone.
fn kept_condition(text: &str, table: &Arc<TableDef>, ctx: &BindContext<'_>) -> Result<BoundQuery> {
    let mut binder = Binder::defining(ctx);
    binder.definition = true;
    let ast = throng_syntax::parse::parse_expr(text)?;
    binder.policy_query(&ast, table)
}

fn condition_of(bound: &BoundQuery) -> Result<(&Expr, RelId)> {
    if let QueryKind::Select(query) = &bound.kind
        && let Body::Select(select) = &query.body
        && let ([target], [FromItem::Rel(rel)]) = (&select.targets[..], &select.from[..])
    {
        return Ok((&target.expr, rel.id));
    }
    Err(Error::internal("a policy without its condition"))
}

fn text_of(bound: &BoundQuery, table: &TableDef, style: &Style<'_>) -> Result<String> {
    let (expr, rel) = condition_of(bound)?;
    Ok(deparse::policy_condition(
        expr,
        &bound.ctes,
        table,
        rel,
        style,
    ))
}

fn kept_text(
    bound: &BoundQuery,
    table: &TableDef,
    catalog: &Catalog,
    eval: EvalContext<'_>,
) -> Result<String> {
    with_stored_style(catalog, eval, |style| text_of(bound, table, style))
}

fn no_such_policy(name: &str, table: &str) -> Error {
    let message = format!("policy \"{name}\" for table \"{table}\" does not exist");
    Error::new(state::UNDEFINED_OBJECT, message)
}

fn wrong(message: &str) -> Error {
    Error::new(state::SYNTAX_ERROR, message)
}

impl Binder<'_> {
    pub(in crate::binder) fn policy_statement(
        &mut self,
        statement: &ast::PolicyStatement,
    ) -> Result<Ddl> {
        let name = &statement.name;
        match &statement.change {
            PolicyChange::Create {
                permissive,
                command,
                roles,
                using,
                check,
            } => {
                let checks = matches!(command, PolicyCommand::Select | PolicyCommand::Delete);
                if checks && check.is_some() {
                    return Err(wrong("WITH CHECK cannot be applied to SELECT or DELETE"));
                }
                if *command == PolicyCommand::Insert && using.is_some() {
                    return Err(wrong("only WITH CHECK expression allowed for INSERT"));
                }
                let roles = self.policy_roles(roles)?;
                let table = self.policy_table(&statement.table)?;
                let (using, check) = self.kept_conditions(using, check, &table)?;
                if self.catalog().policy_by_name(table.oid, name).is_some() {
                    let message = format!(
                        "policy \"{name}\" for table \"{}\" already exists",
                        table.name
                    );
                    return Err(Error::new(state::DUPLICATE_OBJECT, message));
                }
                let def = PolicyDef {
                    oid: Oid::NONE,
                    name: name.clone(),
                    table: table.oid,
                    command: *command,
                    permissive: *permissive,
                    roles,
                    using,
                    check,
                };
                Ok(Ddl::Policy(Box::new(PolicyDdl { def, old: None })))
            }
            PolicyChange::Alter {
                roles,
                using,
                check,
            } => {
                let roles = match roles {
                    Some(roles) => Some(self.policy_roles(roles)?),
                    None => None,
                };
                let table = self.policy_table(&statement.table)?;
                let (using, check) = self.kept_conditions(using, check, &table)?;
                let old = self.catalog().policy_by_name(table.oid, name).cloned();
                let old = old.ok_or_else(|| no_such_policy(name, &table.name))?;
                let reads = matches!(old.command, PolicyCommand::Select | PolicyCommand::Delete);
                if reads && check.is_some() {
                    return Err(wrong("only USING expression allowed for SELECT, DELETE"));
                }
                if old.command == PolicyCommand::Insert && using.is_some() {
                    return Err(wrong("only WITH CHECK expression allowed for INSERT"));
                }
                let def = PolicyDef {
                    roles: roles.unwrap_or_else(|| old.roles.clone()),
                    using: using.or_else(|| old.using.clone()),
                    check: check.or_else(|| old.check.clone()),
                    ..(*old).clone()
                };
                let old = Some(old);
                Ok(Ddl::Policy(Box::new(PolicyDdl { def, old })))
            }
            PolicyChange::Rename(new) => {
                let table = self.policy_table(&statement.table)?;
                let old = self.catalog().policy_by_name(table.oid, name);
                let old = old.ok_or_else(|| no_such_policy(name, &table.name))?;
                Ok(Ddl::Rename {
                    target: target(old.oid),
                    name: new.clone(),
                    only: false,
                    said: None,
                })
            }
            PolicyChange::Drop { if_exists, cascade } => {
                let Some(oid) = self.owned_policy(statement, *if_exists)? else {
                    return Ok(Ddl::Nothing { tag: "DROP POLICY" });
                };
                Ok(Ddl::Drop {
                    targets: vec![target(oid)],
                    cascade: *cascade,
                })
            }
            PolicyChange::Comment(text) => match self.owned_policy(statement, false)? {
                None => Ok(Ddl::Nothing { tag: "COMMENT" }),
                Some(oid) => Ok(Ddl::Comment {
                    target: target(oid),
                    text: text.clone(),
                }),
            },
        }
    }

    /// A policy that is there, of a table that the role owns; None (and a notice) where it is
    /// missing and may be.
    fn owned_policy(
        &mut self,
        statement: &ast::PolicyStatement,
        may_miss: bool,
    ) -> Result<Option<Oid>> {
        let Some(relation) = self.trigger_relation(&statement.table, may_miss)? else {
            return Ok(None);
        };
        let found = self
            .catalog()
            .policy_by_name(relation.oid(), &statement.name)
            .map(|policy| policy.oid);
        let Some(oid) = found else {
            if may_miss {
                let message = format!(
                    "policy \"{}\" for relation \"{}\" does not exist, skipping",
                    statement.name, statement.table
                );
                self.notice(Error::new(state::SUCCESSFUL_COMPLETION, message));
                return Ok(None);
            }
            return Err(no_such_policy(&statement.name, relation.name()));
        };
        let owner = relation.owner(self.catalog());
        self.must_own(owner, "relation", relation.name())?;
        Ok(Some(oid))
    }

    /// The table that a policy is for.
    fn policy_table(&mut self, name: &ast::Name) -> Result<Arc<TableDef>> {
        let found = self.find_relation(name)?;
        let relation = found.ok_or_else(|| {
            let message = format!("relation \"{name}\" does not exist");
            Error::new(state::UNDEFINED_TABLE, message)
        })?;
        if let Relation::Virtual(table) = &relation {
            let message = format!("permission denied: \"{}\" is a system catalog", table.name);
            return Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message));
        }
        let owner = relation.owner(self.catalog());
        self.must_own(owner, relation.privilege_name(), relation.name())?;
        match relation {
            Relation::Table(table) if !table.is_materialized() => Ok(table),
            other => {
                let message = format!("\"{}\" is not a table", other.name());
                Err(Error::new(state::WRONG_OBJECT_TYPE, message))
            }
        }
    }

    fn policy_roles(&mut self, names: &[String]) -> Result<Vec<Oid>> {
        if names.iter().any(|name| name == "public") {
            if names.len() > 1 {
                let message = "ignoring specified roles other than PUBLIC";
                let warning = Error::new(state::INVALID_PARAMETER_VALUE, message)
                    .hint("All roles are members of the PUBLIC role.");
                self.notices.push(warning.severity(Severity::Warning));
            }
            return Ok(vec![Oid::NONE]);
        }
        match names.is_empty() {
            true => Ok(vec![Oid::NONE]),
            false => names.iter().map(|name| self.role(name)).collect(),
        }
    }

    fn kept_conditions(
        &mut self,
        using: &Option<ast::Source>,
        check: &Option<ast::Source>,
        table: &Arc<TableDef>,
    ) -> Result<(Option<PolicyCondition>, Option<PolicyCondition>)> {
        let mut kept = |source: &Option<ast::Source>| match source {
            None => Ok(None),
            Some(source) => self
                .checked_policy(&source.expr, table)
                .map(Some)
                .map_err(no_position),
        };
        Ok((kept(using)?, kept(check)?))
    }

    /// What is kept of a condition, after making sure that its text is read as what it was written
    /// from.
    fn checked_policy(
        &mut self,
        ast: &ast::Expr,
        table: &Arc<TableDef>,
    ) -> Result<PolicyCondition> {
        let params = self.params.len();
        let bound = self.as_written(|b| b.policy_query(ast, table))?;
        if self.params.len() > params {
            let message = format!("there is no parameter ${}", params + 1);
            return Err(Error::new(state::UNDEFINED_PARAMETER, message));
        }
        let text = kept_text(&bound, table, self.catalog(), self.ctx.eval)?;
        let ctx = BindContext {
            search_path: STORED_PATH,
            params: &[],
            ..*self.ctx
        };
        let same = match kept_condition(&text, table, &ctx) {
            Ok(mut again) => {
                let mut first = bound.clone();
                normalize(&mut first);
                normalize(&mut again);
                first.kind == again.kind && first.ctes == again.ctes
            }
            Err(_) => false,
        };
        if !same {
            return Err(Error::unsupported("a policy with such a condition")
                .detail(format!("Its text would be: {}", text.trim())));
        }
        let (expr, _) = condition_of(&bound)?;
        let mut queries = false;
        expr.walk(false, &mut |part| {
            queries |= matches!(part, QueryPart::Expr(Expr::Subquery(_)));
        });
        Ok(PolicyCondition {
            text,
            uses: named_by(&bound, self.catalog())?,
            queries,
        })
    }

    fn policy_query(&mut self, ast: &ast::Expr, table: &Arc<TableDef>) -> Result<BoundQuery> {
        let rel = self.new_rel();
        let accesses = self.accesses.len();
        let expr = self.over_policy_row(ast, table, rel)?;
        self.accesses.truncate(accesses);
        let target = crate::tree::query::Target {
            expr,
            name: "policy".to_owned(),
        };
        let from = vec![FromItem::of_table(table, rel, None, false)];
        let query = self.select_query(from, vec![target]);
        self.bound(QueryKind::Select(query))
    }

    /// ALTER TABLE that switches triggers or row security on or off.
    pub(in crate::binder) fn switched(
        &self,
        action: &AlterAction,
        table: &mut TableDef,
    ) -> Result<Option<AlterTable>> {
        Ok(match action {
            AlterAction::EnableTrigger(change) => {
                let change = self.enabled_triggers(table, change)?;
                Some(AlterTable::EnableTriggers(change))
            }
            AlterAction::RowSecurity(change) => {
                let RowSecurityState { enabled, forced } = &mut table.row_security;
                match change {
                    RowSecurity::Enable => *enabled = true,
                    RowSecurity::Disable => *enabled = false,
                    RowSecurity::Force => *forced = true,
                    RowSecurity::NoForce => *forced = false,
                }
                Some(AlterTable::RowSecurity(table.row_security))
            }
            _ => None,
        })
    }
}

fn target(oid: Oid) -> Target {
    Target {
        kind: TargetKind::Policy,
        oid,
    }
}
