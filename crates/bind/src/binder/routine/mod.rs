//! CREATE, ALTER, DROP and COMMENT of functions, procedures and aggregates.

pub(super) mod aggregate;
pub(super) mod body;
pub(super) mod call;
pub(super) mod change;
pub(super) mod plpgsql;
mod polymorphic;

use std::sync::Arc;

use throng_types::error::state;
use throng_types::sqltype::{element_of, format_type, made, type_name};
use throng_types::{Error, Oid, Result, SqlType, oid};

use super::ddl::domain::Declared;
use super::{BindContext, Binder, Clause};
use crate::command::{Ddl, RoutineAttributes, Target, TargetKind};
use crate::tree::expr::Expr;
use body::{
    BodyResult, body_path, body_statement, body_statements, check_command, has_plan, no_result,
};
use polymorphic::check_polymorphic;
use throng_catalog::{
    ArgDef, ArgMode, CatalogEdit, Relation, RoutineBody, RoutineDef, RoutineKind, ViewUse,
};
use throng_syntax::parse::ast::{
    self, AtomicStatement, Returns, RoutineOption, RoutineType, Statement as S,
};
use throng_types::lexical::quote_ident;
use throng_values::func::Volatility;
use throng_values::func::is_polymorphic;

const MOST_ARGUMENTS: usize = 100;
/// Stands for the function that is being made.
const UNMADE: Oid = Oid(u32::MAX);

fn invalid(message: impl Into<String>) -> Error {
    Error::new(state::INVALID_FUNCTION_DEFINITION, message)
}

/// What a type in a definition turned out to be.
pub(super) struct Resolved {
    pub ty: Oid,
    /// The domain over that type.
    pub domain: Option<Oid>,
    /// The table whose row type it is.
    pub row_of: Option<Oid>,
    pub setof: bool,
}

impl Resolved {
    fn plain(ty: Oid) -> Resolved {
        Resolved {
            ty,
            domain: None,
            row_of: None,
            setof: false,
        }
    }

    /// The type that was written.
    pub fn declared(&self) -> Oid {
        self.domain.unwrap_or(self.ty)
    }

    /// A row as a value of the row type.
    pub fn into_value(self) -> Resolved {
        match self.row_of.and_then(made::composite_oid) {
            Some(ty) => Resolved {
                ty,
                row_of: None,
                ..self
            },
            None => self,
        }
    }
}

impl Binder<'_> {
    pub(super) fn routine_ddl(&mut self, statement: &S) -> Result<Ddl> {
        match statement {
            S::CreateRoutine(create) => self.create_routine(create),
            S::AlterRoutine {
                word,
                routine,
                change,
            } => self.alter_routine(*word, routine, change),
            S::DropRoutine {
                word,
                routines,
                if_exists,
                cascade,
            } => self.drop_routines(*word, routines, *if_exists, *cascade),
            S::CommentRoutine {
                word,
                routine,
                text,
            } => {
                let oid = self.commented_routine(*word, routine)?;
                let kind = TargetKind::Routine(*word);
                let target = Target { kind, oid };
                Ok(Ddl::Comment {
                    target,
                    text: text.clone(),
                })
            }
            _ => Err(Error::internal("not about a routine")),
        }
    }

    fn create_routine(&mut self, create: &ast::CreateRoutine) -> Result<Ddl> {
        let schema = self.place_beside_relations(&create.name).map_err(|mut e| {
            e.fields_mut().position = None;
            e
        })?;
        let attributes = self.attributes(&create.options, create.kind)?;
        let language = self.language(create)?;
        let procedural = language == "plpgsql";
        let mut uses: Vec<Oid> = Vec::new();
        let args = self.routine_args(create, procedural, &mut uses)?;
        let returned = self.returned(create, &args, procedural, &mut uses)?;
        if !matches!(language.as_str(), "sql" | "plpgsql") {
            return Err(Error::unsupported(format!("language {language}")));
        }
        let name = create.name.last();
        let body = self.written_body(create, procedural)?;
        if procedural {
            no_pseudo_types(&args, &returned)?;
        } else if returned.ty == oid::TRIGGER {
            return Err(invalid("SQL functions cannot return type trigger"));
        } else if args
            .iter()
            .any(|a| a.ty == oid::RECORD && a.mode.is_input())
        {
            let message = "SQL functions cannot have arguments of type record";
            return Err(invalid(message));
        }
        let volatility = attributes.volatility.unwrap_or(Volatility::Volatile);
        let mut def = RoutineDef {
            oid: Oid::NONE,
            schema,
            name: name.to_owned(),
            owner: self.ctx.user,
            kind: create.kind,
            args,
            ret: returned.ty,
            ret_domain: returned.domain,
            row_of: returned.row_of,
            set: returned.setof,
            strict: attributes.strict.unwrap_or(false),
            volatility,
            security_definer: attributes.security_definer.unwrap_or(false),
            leakproof: attributes.leakproof.unwrap_or(false),
            parallel: attributes.parallel.unwrap_or('u'),
            cost: attributes.cost.unwrap_or(100.0),
            rows: match (attributes.rows, returned.setof) {
                (Some(_), false) => {
                    let message = "ROWS is not applicable when function does not return a set";
                    return Err(Error::new(state::INVALID_PARAMETER_VALUE, message));
                }
                (Some(rows), true) => rows,
                (None, set) => f64::from(u16::from(set) * 1000),
            },
            settings: attributes.changed_settings(&[]),
            body,
            uses: vec![],
        };
        check_polymorphic(&def)?;
        let old = self.replaced_routine(create, &def)?;
        def.oid = old.as_ref().map_or(UNMADE, |old| old.oid);
        let mut named = vec![];
        self.check_body_as_called(create, &def, &mut named)?;
        if matches!(def.body, RoutineBody::Standard { .. }) {
            uses.extend_from_slice(&named);
        }
        // It may name itself.
        uses.retain(|oid| *oid != def.oid);
        uses.sort();
        uses.dedup();
        def.uses = uses
            .into_iter()
            .map(|object| ViewUse {
                object,
                columns: vec![],
            })
            .collect();
        if let Some(old) = &old {
            def.owner = old.owner;
        }
        named.retain(|oid| self.catalog().relation(*oid).is_some());
        Ok(Ddl::CreateRoutine {
            def: Box::new(def),
            old,
            reads: named,
        })
    }

    fn language(&self, create: &ast::CreateRoutine) -> Result<String> {
        let mut languages = create.options.iter().filter_map(|(o, _)| match o {
            RoutineOption::Language(name) => Some(name.as_str()),
            _ => None,
        });
        let standard = create.bodies.iter().any(|b| {
            matches!(
                b,
                ast::RoutineBody::Return(_) | ast::RoutineBody::Atomic { .. }
            )
        });
        let name = match languages.next() {
            Some(name) => name,
            None if standard => "sql",
            None => return Err(invalid("no language specified")),
        };
        match name.to_lowercase().as_str() {
            known @ ("sql" | "plpgsql" | "c" | "internal") => Ok(known.to_owned()),
            _ => {
                let message = format!("language \"{name}\" does not exist");
                Err(Error::new(state::UNDEFINED_OBJECT, message))
            }
        }
    }

    fn written_body(&self, create: &ast::CreateRoutine, procedural: bool) -> Result<RoutineBody> {
        if create.bodies.len() > 1 {
            return Err(invalid("duplicate function body specified"));
        }
        Ok(match create.bodies.first() {
            None => return Err(invalid("no function body specified")),
            Some(ast::RoutineBody::Symbol) => {
                let language = if procedural { "plpgsql" } else { "sql" };
                let message = format!("only one AS item needed for language \"{language}\"");
                return Err(invalid(message));
            }
            Some(ast::RoutineBody::Text { text, .. }) if procedural => {
                RoutineBody::Plpgsql(text.clone())
            }
            Some(_) if procedural => {
                let message = "inline SQL function body only valid for language SQL";
                return Err(invalid(message));
            }
            Some(ast::RoutineBody::Text { text, .. }) => RoutineBody::Text(text.clone()),
            Some(ast::RoutineBody::Return(source)) => RoutineBody::Standard {
                text: format!("RETURN {}", source.text),
                atomic: false,
                path: body_path(self),
            },
            Some(ast::RoutineBody::Atomic { text, .. }) => RoutineBody::Standard {
                text: text.clone(),
                atomic: true,
                path: body_path(self),
            },
        })
    }

    /// The type of an argument or a result.
    pub(super) fn routine_type(
        &mut self,
        ty: &RoutineType,
        uses: &mut Vec<Oid>,
    ) -> Result<Resolved> {
        let (name, setof) = match ty {
            RoutineType::Plain(name) => (name, name.setof),
            RoutineType::Column { column, setof } => {
                let ty = self.column_type(column)?;
                let message = format!(
                    "type reference {column}%TYPE converted to {}",
                    format_type(ty)
                );
                self.notice(Error::new(state::SUCCESSFUL_COMPLETION, message));
                return Ok(Resolved {
                    setof: *setof,
                    ..Resolved::plain(ty.oid)
                });
            }
        };
        let plain = ast::TypeName {
            setof: false,
            ..name.clone()
        };
        let found = match self.declared(&plain) {
            Ok(Declared { ty, domain })
                if domain.is_some()
                    || !made::is_composite(ty.oid)
                    || self.row_of(&name.name)?.is_none() =>
            {
                let declared = domain.unwrap_or(ty.oid);
                if made::is_made(declared) {
                    uses.push(element_of(declared).unwrap_or(declared));
                }
                Resolved {
                    domain,
                    setof,
                    ..Resolved::plain(ty.oid)
                }
            }
            found => {
                let Some(row_of) = self.row_of(&name.name)?.filter(|_| !name.array) else {
                    found?;
                    return Err(Error::internal("a row of no relation"));
                };
                uses.push(row_of);
                Resolved {
                    row_of: Some(row_of),
                    setof,
                    ..Resolved::plain(oid::RECORD)
                }
            }
        };
        Ok(found)
    }

    /// The table or view whose rows a type's name stands for.
    fn row_of(&self, name: &ast::Name) -> Result<Option<Oid>> {
        Ok(match self.find_relation(name)? {
            Some(Relation::Table(table)) => Some(table.oid),
            Some(Relation::View(view)) => Some(view.oid),
            _ => None,
        })
    }

    fn column_type(&mut self, column: &ast::Name) -> Result<SqlType> {
        let Some((name, table)) = column.parts.split_last().filter(|(_, t)| !t.is_empty()) else {
            let message = format!("improper %TYPE reference (too few dotted names): {column}");
            return Err(Error::new(state::SYNTAX_ERROR, message).position(column.pos + 1));
        };
        let table = ast::Name {
            parts: table.to_vec(),
            pos: column.pos,
        };
        let found = match self.relation(&table)? {
            Relation::Table(def) => def.attnum(name).map(|n| def.column(n).ty),
            Relation::View(def) => def.columns.iter().find(|c| c.name == *name).map(|c| c.ty),
            _ => None,
        };
        found.ok_or_else(|| {
            let message = format!("column \"{name}\" of relation \"{table}\" does not exist");
            Error::new(state::UNDEFINED_COLUMN, message).position(column.pos + 1)
        })
    }

    pub(super) fn routine_args(
        &mut self,
        create: &ast::CreateRoutine,
        procedural: bool,
        uses: &mut Vec<Oid>,
    ) -> Result<Vec<ArgDef>> {
        let mut args: Vec<ArgDef> = Vec::with_capacity(create.args.len());
        let mut has_default = false;
        if create.args.len() > MOST_ARGUMENTS {
            let message = format!("functions cannot have more than {MOST_ARGUMENTS} arguments");
            return Err(Error::new(state::TOO_MANY_ARGUMENTS, message));
        }
        for arg in &create.args {
            let mut resolved = self.routine_type(&arg.ty, uses).map_err(|mut e| {
                if let (state::UNDEFINED_OBJECT, RoutineType::Plain(ty)) = (e.code(), &arg.ty) {
                    let fields = e.fields_mut();
                    fields.message = format!("type {} does not exist", ty.name);
                }
                e
            })?;
            self.may_use_type(resolved.declared())?;
            if resolved.setof {
                let message = "functions cannot accept set arguments";
                return Err(invalid(message).position(arg.pos + 1));
            }
            if arg.mode.is_input() || procedural {
                resolved = resolved.into_value();
            }
            if resolved.row_of.is_some() {
                return Err(Error::unsupported("an OUT argument of a table's row type")
                    .position(arg.pos + 1));
            }
            if matches!(
                resolved.ty,
                oid::CSTRING | oid::INTERNAL | oid::ANY | oid::VOID | oid::UNKNOWN
            ) && !procedural
            {
                return Err(invalid(format!(
                    "SQL functions cannot have arguments of type {}",
                    type_name(resolved.ty)
                )));
            }
            let procedure = create.kind == RoutineKind::Procedure;
            let after_variadic = args.iter().any(|a| a.mode == ArgMode::Variadic);
            if after_variadic && (procedure || arg.mode.is_input()) {
                let message = match procedure {
                    true => "VARIADIC parameter must be the last parameter",
                    false => "VARIADIC parameter must be the last input parameter",
                };
                return Err(invalid(message).position(arg.pos + 1));
            }
            let is_array = element_of(resolved.ty).is_some()
                || matches!(resolved.ty, oid::ANYARRAY | oid::ANYCOMPATIBLEARRAY)
                || resolved.ty == oid::ANY && create.kind == RoutineKind::Aggregate;
            if arg.mode == ArgMode::Variadic && !is_array {
                return Err(invalid("VARIADIC parameter must be an array").position(arg.pos + 1));
            }
            let name = arg.name.clone().unwrap_or_default();
            // An input and an output may share a name.
            let clash = args.iter().any(|other| {
                !name.is_empty()
                    && other.name == name
                    && (other.mode.is_input() && arg.mode.is_input()
                        || other.mode.is_output() && arg.mode.is_output())
            });
            if clash {
                let message = format!("parameter name \"{name}\" used more than once");
                return Err(invalid(message).position(arg.pos + 1));
            }
            let default = match &arg.default {
                Some(_) if !arg.mode.is_input() => {
                    return Err(invalid("only input parameters can have default values")
                        .position(arg.pos + 1));
                }
                Some(source) => {
                    has_default = true;
                    Some(self.default_text(source, resolved.ty, uses)?)
                }
                None if has_default && arg.mode.is_input() => {
                    let message =
                        "input parameters after one with a default value must also have defaults";
                    return Err(invalid(message).position(arg.pos + 1));
                }
                None => None,
            };
            args.push(ArgDef {
                name,
                ty: resolved.ty,
                domain: resolved.domain,
                mode: arg.mode,
                default,
            });
        }
        Ok(args)
    }

    /// A default as SQL that means the same on any search path.
    fn default_text(
        &mut self,
        source: &ast::Source,
        ty: Oid,
        uses: &mut Vec<Oid>,
    ) -> Result<String> {
        let scope = super::query::scope::Scope::empty();
        let bound = self.in_clause(Clause::Default, |b| b.expr(&source.expr, &scope));
        let bound = bound?;
        let bound = match is_polymorphic(ty) {
            true => {
                let bound = self.settle(bound, source.expr.pos)?;
                let fits = throng_values::func::can_coerce(
                    bound.type_oid(),
                    ty,
                    throng_values::func::CastContext::Implicit,
                );
                match fits {
                    true => bound,
                    false => {
                        let message = format!(
                            "argument of DEFAULT must be type {}, not type {}",
                            type_name(ty),
                            type_name(bound.type_oid())
                        );
                        return Err(Error::new(state::DATATYPE_MISMATCH, message)
                            .position(source.expr.pos + 1));
                    }
                }
            }
            false => {
                let from = bound.type_oid();
                let context = throng_values::func::CastContext::Assignment;
                let cast = self.try_coerce(bound, SqlType::plain(ty), context, source.expr.pos)?;
                cast.ok_or_else(|| {
                    let message = format!(
                        "argument of DEFAULT must be type {}, not type {}",
                        type_name(ty),
                        type_name(from)
                    );
                    Error::new(state::DATATYPE_MISMATCH, message).position(source.expr.pos + 1)
                })?
            }
        };
        let (text, used) = self.stored_expr(&bound)?;
        uses.extend(used);
        Ok(text)
    }

    pub(super) fn returned(
        &mut self,
        create: &ast::CreateRoutine,
        args: &[ArgDef],
        procedural: bool,
        uses: &mut Vec<Oid>,
    ) -> Result<Resolved> {
        let outputs: Vec<&ArgDef> = args.iter().filter(|a| a.mode.is_output()).collect();
        if create.kind == RoutineKind::Procedure {
            return Ok(Resolved::plain(match outputs.is_empty() {
                true => oid::VOID,
                false => oid::RECORD,
            }));
        }
        let of_outputs = match &outputs[..] {
            [] => None,
            [one] => Some(Resolved {
                domain: one.domain,
                ..Resolved::plain(one.ty)
            }),
            _ => Some(Resolved::plain(oid::RECORD)),
        };
        match &create.returns {
            Some(Returns::Table) => {
                let mut args = create.args.iter();
                if let Some(arg) = args.find(|a| matches!(a.mode, ArgMode::Out | ArgMode::InOut)) {
                    let message = "OUT and INOUT arguments aren't allowed in TABLE functions";
                    return Err(Error::new(state::SYNTAX_ERROR, message).position(arg.pos + 1));
                }
                Ok(Resolved {
                    setof: true,
                    ..of_outputs.unwrap_or(Resolved::plain(oid::RECORD))
                })
            }
            Some(Returns::Type(ty)) => {
                let resolved = self.routine_type(ty, uses).map_err(|mut e| {
                    if e.code() == state::UNDEFINED_OBJECT {
                        e.fields_mut().position = None;
                    }
                    e
                })?;
                self.may_use_type(resolved.declared())?;
                if let Some(needed) = of_outputs.map(|r| r.declared())
                    && (resolved.declared() != needed || resolved.row_of.is_some())
                {
                    let message = format!(
                        "function result type must be {} because of OUT parameters",
                        type_name(needed)
                    );
                    return Err(invalid(message));
                }
                let wrong = matches!(
                    resolved.ty,
                    oid::CSTRING | oid::INTERNAL | oid::ANY | oid::UNKNOWN
                );
                if wrong && !procedural {
                    return Err(invalid(format!(
                        "SQL functions cannot return type {}",
                        type_name(resolved.ty)
                    )));
                }
                Ok(resolved)
            }
            None => match of_outputs {
                Some(resolved) => Ok(resolved),
                None => Err(invalid("function result type must be specified")),
            },
        }
    }

    /// What the options say, each at most once.
    pub(super) fn attributes(
        &mut self,
        options: &[(RoutineOption, ast::Pos)],
        kind: RoutineKind,
    ) -> Result<RoutineAttributes> {
        let mut found = RoutineAttributes::default();
        let mut language = None;
        fn set<T>(slot: &mut Option<T>, value: T, pos: ast::Pos) -> Result<()> {
            match slot.replace(value) {
                None => Ok(()),
                Some(_) => {
                    let message = "conflicting or redundant options";
                    Err(Error::new(state::SYNTAX_ERROR, message).position(pos + 1))
                }
            }
        }
        for (option, pos) in options {
            let pos = *pos;
            let not_procedures = matches!(
                option,
                RoutineOption::Volatility(_)
                    | RoutineOption::Strict(_)
                    | RoutineOption::Leakproof(_)
                    | RoutineOption::Window
                    | RoutineOption::Parallel(_)
                    | RoutineOption::Cost(_)
                    | RoutineOption::Rows(_)
                    | RoutineOption::Support
            );
            if kind == RoutineKind::Procedure && not_procedures {
                return Err(invalid("invalid attribute in procedure definition"));
            }
            match option {
                RoutineOption::Language(name) => set(&mut language, name, pos)?,
                RoutineOption::Volatility(v) => set(&mut found.volatility, *v, pos)?,
                RoutineOption::Strict(on) => set(&mut found.strict, *on, pos)?,
                RoutineOption::SecurityDefiner(on) => set(&mut found.security_definer, *on, pos)?,
                RoutineOption::Leakproof(on) => {
                    let superuser = self.catalog().role(self.user).is_some_and(|r| r.superuser);
                    if *on && !superuser {
                        let message = "only superuser can define a leakproof function";
                        return Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message));
                    }
                    set(&mut found.leakproof, *on, pos)?;
                }
                RoutineOption::Window => {
                    return Err(Error::unsupported("a window function of one's own"));
                }
                RoutineOption::Support => return Err(Error::unsupported("a support function")),
                RoutineOption::Transform => return Err(Error::unsupported("TRANSFORM")),
                RoutineOption::Parallel(word) => {
                    let letter = match word.as_str() {
                        "safe" => 's',
                        "restricted" => 'r',
                        "unsafe" => 'u',
                        _ => {
                            let message =
                                "parameter \"parallel\" must be SAFE, RESTRICTED, or UNSAFE";
                            return Err(Error::new(state::SYNTAX_ERROR, message));
                        }
                    };
                    set(&mut found.parallel, letter, pos)?;
                }
                RoutineOption::Cost(cost) if *cost <= 0.0 => {
                    let message = "COST must be positive";
                    return Err(Error::new(state::INVALID_PARAMETER_VALUE, message));
                }
                RoutineOption::Rows(rows) if *rows <= 0.0 => {
                    let message = "ROWS must be positive";
                    return Err(Error::new(state::INVALID_PARAMETER_VALUE, message));
                }
                RoutineOption::Cost(cost) => set(&mut found.cost, *cost, pos)?,
                RoutineOption::Rows(rows) => set(&mut found.rows, *rows, pos)?,
                RoutineOption::Set { name, value } => {
                    let set = name.as_ref().map(|name| self.stored_setting(name, value));
                    let (name, value) = set.transpose()?.unzip();
                    found.settings.push((name, value.flatten()));
                }
            }
        }
        Ok(found)
    }

    /// Reads the body by the settings that a call has.
    fn check_body_as_called(
        &mut self,
        create: &ast::CreateRoutine,
        def: &RoutineDef,
        named: &mut Vec<Oid>,
    ) -> Result<()> {
        if def.settings.is_empty() {
            return self.check_body(create, def, named);
        }
        let mut checked = Ok(());
        let host = self.ctx.eval.host;
        host.with_settings(&def.settings, &mut |eval, search_path| {
            let ctx = BindContext {
                eval,
                search_path,
                ..*self.ctx
            };
            checked = Binder::new(&ctx).check_body(create, def, named);
        })?;
        checked
    }

    /// Reads the body as a call would, where it can be read before one, and notes what it names.
    fn check_body(
        &mut self,
        create: &ast::CreateRoutine,
        def: &RoutineDef,
        named: &mut Vec<Oid>,
    ) -> Result<()> {
        let place = match create.bodies.first() {
            Some(ast::RoutineBody::Text { at, .. }) => *at,
            Some(ast::RoutineBody::Return(source)) => {
                Some(source.expr.pos.saturating_sub("RETURN ".len() as u32))
            }
            _ => None,
        };
        let standard = matches!(def.body, RoutineBody::Standard { .. });
        if standard && def.args.iter().any(|a| is_polymorphic(a.ty)) {
            return Err(invalid(
                "SQL function with unquoted function body cannot have polymorphic arguments",
            ));
        }
        let checks = self.ctx.eval.host.show_setting("check_function_bodies");
        if !standard && checks.as_deref() == Some("off") {
            return Ok(());
        }
        if let RoutineBody::Plpgsql(text) = &def.body {
            return self.check_plpgsql(def, text, place);
        }
        let checked = self.checked_body(create, def, named);
        checked.map_err(|mut e| {
            let written = matches!(
                create.bodies.first(),
                Some(ast::RoutineBody::Atomic { .. } | ast::RoutineBody::Return(_))
            );
            let fields = e.fields_mut();
            match (fields.position, place) {
                // Its places are those of the whole statement already.
                (Some(_), _) if written => {}
                (Some(position), Some(place)) => fields.position = Some(position + place),
                (position, _) => {
                    fields.position = position.filter(|_| written);
                    e.add_context(&format!("SQL function \"{}\"", def.name));
                }
            }
            e
        })
    }

    /// Reads a body in PL/pgSQL, which says what is wrong with its syntax.
    fn check_plpgsql(
        &mut self,
        def: &RoutineDef,
        text: &str,
        place: Option<ast::Pos>,
    ) -> Result<()> {
        // What a call decides is an integer until then.
        let open = |arg: &ArgDef| {
            SqlType::plain(match arg.ty {
                oid::ANYARRAY | oid::ANYCOMPATIBLEARRAY => oid::INT4_ARRAY,
                oid::ANYRANGE | oid::ANYCOMPATIBLERANGE => oid::INT4RANGE,
                oid::ANYMULTIRANGE | oid::ANYCOMPATIBLEMULTIRANGE => oid::INT4MULTIRANGE,
                ty if is_polymorphic(ty) => oid::INT4,
                ty => ty,
            })
        };
        let signature = plpgsql::plpgsql_signature(def, &open, def.ret);
        let ctx = BindContext {
            search_path: &self.search_path,
            params: &[],
            ..*self.ctx
        };
        let read = plpgsql::plpgsql_code(&ctx, text, &signature);
        read.map(|_| ()).map_err(|(e, line)| {
            let near = format!(
                "compilation of PL/pgSQL function \"{}\" near line {line}",
                def.name
            );
            body_error(e, text, place, near)
        })
    }

    fn checked_body(
        &mut self,
        create: &ast::CreateRoutine,
        def: &RoutineDef,
        named: &mut Vec<Oid>,
    ) -> Result<()> {
        let statements = match create.bodies.first() {
            Some(ast::RoutineBody::Atomic { statements, .. }) => statements.clone(),
            Some(ast::RoutineBody::Return(source)) => {
                vec![AtomicStatement::Return(source.expr.clone())]
            }
            _ => body_statements(def)?,
        };
        if def.is_polymorphic() {
            return Ok(());
        }
        let args = def.value_types();
        let result = self.declared_result(def);
        if statements.is_empty() && result != BodyResult::Nothing {
            return Err(no_result(def, self.catalog()));
        }
        // It may call itself.
        let mut edit = CatalogEdit::new(self.catalog());
        edit.put(def.clone());
        let ctx = BindContext {
            catalog: edit.catalog(),
            search_path: &self.search_path,
            params: &[],
            ..*self.ctx
        };
        for (i, statement) in statements.iter().enumerate() {
            let last = (i + 1 == statements.len()).then_some(&result);
            if !has_plan(statement) {
                check_command(statement)?;
                if matches!(def.body, RoutineBody::Standard { .. }) {
                    return Err(Error::unsupported("a command in a body without quotes"));
                }
                match last {
                    Some(result) if *result != BodyResult::Nothing => {
                        return Err(no_result(def, self.catalog()));
                    }
                    _ => continue,
                }
            }
            let bound = body_statement(&ctx, def, &args, statement, last)?;
            named.extend(super::ddl::view::objects_named(&bound, self.catalog()));
        }
        Ok(())
    }

    /// What a definition alone says of the result.
    fn declared_result(&self, def: &RoutineDef) -> BodyResult {
        let columns = self.routine_columns(def, &|ty| ty);
        match def.ret {
            oid::VOID => BodyResult::Nothing,
            ret if !columns.is_empty() => {
                let of = def.row_of.and_then(made::composite_oid).unwrap_or(ret);
                BodyResult::of_columns(of, &columns)
            }
            oid::RECORD => BodyResult::AnyRow,
            ty => BodyResult::Value(SqlType::plain(ty)),
        }
    }

    /// The routine of that name and those arguments that is there, which OR REPLACE may change.
    fn replaced_routine(
        &mut self,
        create: &ast::CreateRoutine,
        def: &RoutineDef,
    ) -> Result<Option<Arc<RoutineDef>>> {
        let inputs = def.input_types();
        let found = self.catalog().routines_in(def.schema, &def.name);
        let Some(old) = found
            .into_iter()
            .find(|r| r.input_types() == inputs)
            .cloned()
        else {
            return Ok(None);
        };
        if !create.or_replace {
            let message = format!(
                "function \"{}\" already exists with same argument types",
                def.name
            );
            return Err(Error::new(state::DUPLICATE_FUNCTION, message));
        }
        let noun = old.noun();
        self.must_own(old.owner, noun, &old.name)?;
        if old.kind != def.kind {
            return Err(
                Error::new(state::WRONG_OBJECT_TYPE, "cannot change routine kind").detail(format!(
                    "\"{}\" is {}.",
                    old.name,
                    old.article()
                )),
            );
        }
        let signature = signature(&old);
        let drop = format!("Use DROP {} {signature} first.", noun.to_uppercase());
        if old.declared_ret() != def.declared_ret()
            || old.set != def.set
            || old.row_of != def.row_of
        {
            let message = match old.kind {
                RoutineKind::Procedure => "cannot change whether a procedure has output parameters",
                _ => "cannot change return type of existing function",
            };
            return Err(invalid(message).hint(drop));
        }
        let outputs = |r: &RoutineDef| -> Vec<(String, Oid)> {
            r.outputs()
                .map(|a| (a.name.clone(), a.declared()))
                .collect()
        };
        if def.ret == oid::RECORD && outputs(&old) != outputs(def) {
            return Err(invalid("cannot change return type of existing function")
                .detail("Row type defined by OUT parameters is different.")
                .hint(drop));
        }
        for (was, is) in old.inputs().zip(def.inputs()) {
            if !was.name.is_empty() && was.name != is.name {
                let message = format!("cannot change name of input parameter \"{}\"", was.name);
                return Err(invalid(message).hint(drop));
            }
        }
        if old.defaults() > def.defaults() {
            let message = "cannot remove parameter defaults from existing function";
            return Err(invalid(message).hint(drop));
        }
        Ok(Some(old))
    }

    /// An expression as SQL that means the same on any search path, and the users' objects it
    /// names.
    fn stored_expr(&mut self, bound: &Expr) -> Result<(String, Vec<Oid>)> {
        super::ddl::view::stored_expr(self.ctx, bound)
    }
}

/// `f(integer,text)`, as messages and `regprocedure` write it.
pub fn signature(def: &RoutineDef) -> String {
    let types: Vec<String> = def.input_types().iter().map(|t| type_name(*t)).collect();
    format!("{}({})", quote_ident(&def.name), types.join(","))
}

/// An error about a body, told by its place in the statement that has the body, or in the body
/// alone.
pub fn body_error(mut e: Error, text: &str, place: Option<ast::Pos>, near: String) -> Error {
    let fields = e.fields_mut();
    match (fields.position, place) {
        (Some(position), Some(place)) => fields.position = Some(position + place),
        (Some(_), None) => {
            e = throng_syntax::parse::locate(e, text);
            let fields = e.fields_mut();
            fields.internal_position = fields.position.take();
            fields.internal_query = Some(text.to_owned());
        }
        (None, _) => e.add_context(&near),
    }
    e
}

/// 0A000: what PL/pgSQL can neither take nor give.
fn no_pseudo_types(args: &[ArgDef], returned: &Resolved) -> Result<()> {
    let wrong = |ty: Oid| {
        matches!(
            ty,
            oid::CSTRING
                | oid::INTERNAL
                | oid::LANGUAGE_HANDLER
                | oid::ANY
                | oid::UNKNOWN
                | oid::TRIGGER
                | oid::VOID
        )
    };
    if wrong(returned.ty) && !matches!(returned.ty, oid::VOID | oid::TRIGGER) {
        let message = format!(
            "PL/pgSQL functions cannot return type {}",
            type_name(returned.ty)
        );
        return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
    }
    if returned.ty == oid::TRIGGER && !args.is_empty() {
        let message = "trigger functions cannot have declared arguments";
        return Err(invalid(message).hint(
            "The arguments of the trigger can be accessed through TG_NARGS and TG_ARGV instead.",
        ));
    }
    if let Some(arg) = args.iter().find(|a| wrong(a.ty)) {
        let message = format!(
            "PL/pgSQL functions cannot accept type {}",
            type_name(arg.ty)
        );
        return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
    }
    Ok(())
}
