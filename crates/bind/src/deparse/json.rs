//! SQL/JSON, as it is written.

use std::sync::Arc;

use super::Writer;
use crate::tree::expr::Expr;
use throng_types::lexical::quote_literal;
use throng_types::{Datum, Oid, SqlType, oid};
use throng_values::func::sqljson::{
    Behavior, Column, JsonKind, JsonPathOp, PathSpec, Plan, Spec, TableSpec, Wrapper,
};

/// The specification that a call of JSON_TABLE has first.
fn table_spec(args: &[Expr]) -> Option<Arc<Spec>> {
    match args.first() {
        Some(Expr::Const(value @ Datum::Text(_), _)) => Spec::of(value).ok(),
        _ => None,
    }
}

/// What a value is under the cast that its place gives it.
fn raw(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast { arg, to, .. } if to.oid == oid::JSONB => arg,
        other => other,
    }
}

/// What PASSING was given.
fn passed(expr: &Expr) -> &Expr {
    match raw(expr) {
        inner if inner.type_oid() == oid::JSON => inner,
        _ => expr,
    }
}

fn returning((ty, typmod): (u32, i32)) -> SqlType {
    SqlType::new(Oid(ty), typmod)
}

/// IS JSON, of the calls.
pub(super) fn is_test(args: &[Expr]) -> bool {
    table_spec(args).is_some_and(|spec| matches!(*spec, Spec::Is { .. }))
}

impl Writer<'_> {
    /// A call of [`throng_values::func::sqljson::CALL`].
    pub(super) fn json(&mut self, args: &[Expr], whole: &Expr) {
        let Some(spec) = table_spec(args) else {
            return;
        };
        let args = &args[1..];
        match &*spec {
            Spec::Unique => self.json_around("JSON(", args, " WITH UNIQUE KEYS)"),
            Spec::Scalar => self.json_around("JSON_SCALAR(", args, ")"),
            Spec::Object {
                absent,
                unique,
                binary,
            } => {
                self.push("JSON_OBJECT(");
                for (i, pair) in args.chunks(2).enumerate() {
                    self.push(if i > 0 { ", " } else { "" });
                    match &pair[0] {
                        Expr::Const(Datum::Text(key), SqlType::TEXT) => {
                            self.push(&quote_literal(key));
                        }
                        key => self.expr(key),
                    }
                    self.push(" : ");
                    self.json_value(&pair[1]);
                }
                self.push(if *absent { " ABSENT ON NULL" } else { "" });
                self.push(if *unique { " WITH UNIQUE KEYS" } else { "" });
                self.json_made(*binary);
            }
            Spec::Array { absent, binary } => {
                self.push("JSON_ARRAY(");
                for (i, item) in args.iter().enumerate() {
                    self.push(if i > 0 { ", " } else { "" });
                    self.json_value(item);
                }
                self.push(if *absent { "" } else { " NULL ON NULL" });
                self.json_made(*binary);
            }
            Spec::Is { kind, unique } => self.wrapped(|w| {
                w.operand_of(&args[0], whole);
                w.push(" IS JSON");
                w.push(match kind {
                    JsonKind::Any => "",
                    JsonKind::Value => " VALUE",
                    JsonKind::Array => " ARRAY",
                    JsonKind::Object => " OBJECT",
                    JsonKind::Scalar => " SCALAR",
                });
                w.push(if *unique { " WITH UNIQUE KEYS" } else { "" });
            }),
            Spec::Path(spec) => self.json_path(spec, args),
            Spec::Table(_) => {}
        }
    }

    /// A value of an object or an array.
    fn json_value(&mut self, value: &Expr) {
        match value {
            Expr::Cast { arg, to, .. } if to.oid == oid::JSON && arg.type_oid() == oid::TEXT => {
                self.expr(arg);
                self.push(" FORMAT JSON");
            }
            value => self.expr(value),
        }
    }

    fn json_around(&mut self, before: &str, args: &[Expr], after: &str) {
        self.push(before);
        self.list(args);
        self.push(after);
    }

    fn json_made(&mut self, binary: bool) {
        self.push(match binary {
            true => " RETURNING jsonb)",
            false => " RETURNING json)",
        });
    }

    fn json_path(&mut self, spec: &PathSpec, args: &[Expr]) {
        self.push(spec.op.name());
        self.push("(");
        self.expr(raw(&args[0]));
        self.push(", ");
        match &args[1] {
            Expr::Const(Datum::Text(path), _) => self.push(&quote_literal(path)),
            path => self.expr(path),
        }
        if !spec.passing.is_empty() {
            self.push(" PASSING ");
            for (i, (name, value)) in spec.passing.iter().zip(&args[2..]).enumerate() {
                self.push(if i > 0 { ", " } else { "" });
                self.expr(passed(value));
                self.push(" AS ");
                self.ident(name);
            }
        }
        if spec.op != JsonPathOp::Exists {
            let name = self.type_name(spec.ty());
            self.push(&format!(" RETURNING {name}"));
        }
        self.json_options(spec, args);
        self.push(")");
    }

    /// Wrapper and quotes, and behaviors that are not what they would be anyway.
    fn json_options(&mut self, spec: &PathSpec, args: &[Expr]) {
        if spec.op == JsonPathOp::Query {
            self.push(match spec.wrapper {
                Wrapper::Unspecified | Wrapper::Without => " WITHOUT WRAPPER",
                Wrapper::Conditional => " WITH CONDITIONAL WRAPPER",
                Wrapper::Unconditional => " WITH UNCONDITIONAL WRAPPER",
            });
            self.push(match spec.omit_quotes {
                true => " OMIT QUOTES",
                false => " KEEP QUOTES",
            });
        }
        self.json_behavior(spec.on_empty, Behavior::Null, " ON EMPTY", args);
        self.json_behavior(
            spec.on_error,
            Behavior::otherwise(spec.op),
            " ON ERROR",
            args,
        );
    }

    fn json_behavior(
        &mut self,
        behavior: Option<Behavior>,
        otherwise: Behavior,
        clause: &str,
        args: &[Expr],
    ) {
        let Some(behavior) = behavior.filter(|b| *b != otherwise) else {
            return;
        };
        self.push(match behavior {
            Behavior::Null => " NULL",
            Behavior::Error => " ERROR",
            Behavior::EmptyArray => " EMPTY ARRAY",
            Behavior::EmptyObject => " EMPTY OBJECT",
            Behavior::True => " TRUE",
            Behavior::False => " FALSE",
            Behavior::Unknown => " UNKNOWN",
            Behavior::Default(_) => " DEFAULT ",
        });
        if let Behavior::Default(at) = behavior
            && let Some(value) = args.get(at)
        {
            self.expr(value);
        }
        self.push(clause);
    }

    /// JSON_TABLE in FROM; each level of columns is set in further.
    pub(super) fn json_table(&mut self, args: &[Expr]) {
        let Some(spec) = table_spec(args) else {
            return;
        };
        let Spec::Table(spec) = &*spec else {
            return;
        };
        let args = &args[1..];
        let indent = self.indent;
        self.push("JSON_TABLE(");
        self.indent += super::LIST;
        self.line("", 0, 0, 0);
        self.expr(raw(&args[0]));
        self.push(", ");
        self.json_row_path(&spec.root);
        if !spec.passing.is_empty() {
            self.line("", 0, 0, 0);
            self.push("PASSING");
            self.indent += super::LIST;
            for (i, (name, value)) in spec.passing.iter().zip(&args[1..]).enumerate() {
                self.push(if i > 0 { "," } else { "" });
                self.line("", 0, 0, 0);
                self.expr(passed(value));
                self.push(" AS ");
                self.ident(name);
            }
            self.indent -= super::LIST;
        }
        self.json_columns(spec, &spec.root, args);
        self.push(if spec.error_on_error {
            " ERROR ON ERROR"
        } else {
            ""
        });
        self.indent = indent;
        self.line("", 0, 0, 0);
        self.push(")");
    }

    fn json_row_path(&mut self, plan: &Plan) {
        self.push(&quote_literal(&plan.path));
        self.push(" AS ");
        self.ident(&plan.name);
    }

    fn json_columns(&mut self, spec: &TableSpec, plan: &Plan, args: &[Expr]) {
        self.line("", 0, 0, 0);
        self.push("COLUMNS (");
        self.indent += super::LIST;
        for (i, (at, column)) in plan.columns.iter().enumerate() {
            self.push(if i > 0 { "," } else { "" });
            self.line("", 0, 0, 0);
            let (name, ty) = &spec.columns[*at];
            self.ident(name);
            match column {
                Column::Ordinality => self.push(" FOR ORDINALITY"),
                Column::Value { path, how } => {
                    let ty = self.type_name(returning(*ty));
                    self.push(&format!(" {ty}"));
                    self.json_column(path, how, args);
                }
            }
        }
        for (i, nested) in plan.nested.iter().enumerate() {
            self.push(if i > 0 || !plan.columns.is_empty() {
                ","
            } else {
                ""
            });
            self.line("", 0, 0, 0);
            self.push("NESTED PATH ");
            self.json_row_path(nested);
            self.json_columns(spec, nested, args);
        }
        self.indent -= super::LIST;
        self.line("", 0, 0, 0);
        self.push(")");
    }

    fn json_column(&mut self, path: &str, how: &PathSpec, args: &[Expr]) {
        let string = how.ty().info().is_some_and(|info| info.category == b'S');
        match how.op {
            JsonPathOp::Exists => self.push(" EXISTS"),
            // Of a string type it is only by the format that it is JSON.
            JsonPathOp::Query if string => self.push(" FORMAT JSON"),
            _ => {}
        }
        self.push(" PATH ");
        self.push(&quote_literal(path));
        self.json_options(how, args);
    }
}
