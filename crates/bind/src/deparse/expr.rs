//! Expressions, with PostgreSQL's parentheses.

use throng_types::sqltype::made;
use throng_types::{Datum, Oid, SqlType, interrupt, oid};

use super::json::is_test;
use super::row::ComparedRow;
use super::{LIST, Writer};
use crate::tree::expr::{AggCall, Expr, Subquery, SubqueryKind, ValuePart, Written};
use throng_types::lexical::quote_ident;
use throng_values::func::json::populate;
use throng_values::func::string::collate::COLLATE;
use throng_values::func::system::current::{self, CURRENT};
use throng_values::func::{CastContext, Function, sqljson, written};
use throng_values::io::output_text;

/// The part of an expression's kind that decides whether it needs parentheses inside another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Name, constant, call or something else that nothing can be read into.
    Simple,
    Operator,
    /// IS NULL, IS TRUE, IS DISTINCT FROM, subqueries.
    Test,
    And,
    Or,
    Not,
    /// `x::type`
    Cast,
    /// Brackets of its own, or other separators, around what is inside.
    Brackets,
    /// `x op ANY (array)`
    ArrayCompare,
    /// `x COLLATE "C"`
    Collate,
}

/// The keyword that a value is, and the precision behind it: `CURRENT_TIMESTAMP(3)`.
fn current_value(expr: &Expr) -> Option<(&'static str, i32)> {
    let is_current = |e: &Expr| matches!(e, Expr::Call { func, .. } if **func == CURRENT);
    let ty = match expr {
        Expr::Cast {
            arg, to, context, ..
        } if *context == CastContext::Explicit && is_current(arg) => *to,
        expr if is_current(expr) => SqlType::TIMESTAMPTZ,
        _ => return None,
    };
    Some((current::keyword(ty.oid)?, ty.typmod))
}

fn shape(expr: &Expr) -> Shape {
    match expr {
        _ if current_value(expr).is_some() => Shape::Simple,
        Expr::Op { .. } => Shape::Operator,
        Expr::Own(form) => match &form.written {
            Written::Operator(_) => Shape::Operator,
            Written::Cast(..) => Shape::Cast,
        },
        Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsBool { .. }
        | Expr::IsDistinct { .. }
        | Expr::Subquery(_) => Shape::Test,
        Expr::And(_) => Shape::And,
        Expr::Or(_) => Shape::Or,
        Expr::Not(_) => Shape::Not,
        Expr::Cast { .. } | Expr::ToDomain(..) => Shape::Cast,
        Expr::ArrayCompare { .. } => Shape::ArrayCompare,
        Expr::Call { func, args, .. } if **func == sqljson::CALL && is_test(args) => Shape::Test,
        Expr::Call { func, .. } if **func == COLLATE => Shape::Collate,
        Expr::Call { .. }
        | Expr::SetCall { .. }
        | Expr::Routine(_)
        | Expr::SetRoutine(_)
        | Expr::Coalesce(..)
        | Expr::NullIf { .. }
        | Expr::MinMax { .. }
        | Expr::Array(..)
        | Expr::Row(..)
        | Expr::Aggregate(_)
        | Expr::Window(_)
        | Expr::Grouping(_)
        | Expr::Subscript { .. }
        | Expr::Items { .. }
        | Expr::Case { .. } => Shape::Brackets,
        _ => Shape::Simple,
    }
}

/// The precedence of a binary operator that everybody knows: 2 for `* / %`, 1 for `+ -`, else none.
fn known_precedence(expr: &Expr) -> Option<u8> {
    let Expr::Op { op, args, .. } = expr else {
        return None;
    };
    match (op.name, args.len()) {
        ("+" | "-", 2) => Some(1),
        ("*" | "/" | "%", 2) => Some(2),
        _ => None,
    }
}

/// Whether `expr` inside `parent` is clear without parentheses.
fn is_clear(expr: &Expr, parent: &Expr) -> bool {
    let (inner, outer) = (shape(expr), shape(parent));
    match inner {
        Shape::Simple | Shape::Brackets => true,
        Shape::Cast => match expr {
            Expr::Cast { arg, .. } => is_clear(arg, expr),
            _ => true,
        },
        Shape::Operator if outer == Shape::Operator => {
            let (Some(own), Some(around)) = (known_precedence(expr), known_precedence(parent))
            else {
                return false;
            };
            let first = matches!(parent, Expr::Op { args, .. } if std::ptr::eq(&args[0], expr));
            own > around || (own == around && first)
        }
        Shape::Operator | Shape::Test => {
            matches!(outer, Shape::And | Shape::Or | Shape::Not | Shape::Brackets)
        }
        Shape::And | Shape::Not => matches!(outer, Shape::And | Shape::Or | Shape::Brackets),
        Shape::Or => matches!(outer, Shape::Or | Shape::Brackets),
        Shape::ArrayCompare => matches!(outer, Shape::Brackets),
        Shape::Collate => false,
    }
}

/// A text in quotes, in which a backslash is nothing special.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

impl Writer<'_> {
    /// An operand of `parent`.
    pub(super) fn operand_of(&mut self, expr: &Expr, parent: &Expr) {
        let parens = self.style.pretty && !is_clear(expr, parent);
        if parens {
            self.push("(");
        }
        self.expr(expr);
        if parens {
            self.push(")");
        }
    }

    /// The entry whose whole row an expression is, by its name.
    pub(super) fn whole_row(&self, expr: &Expr) -> Option<String> {
        let there = expr.row_if_there();
        let row = match there.map_or(expr, |(row, _)| row) {
            Expr::Cast {
                arg,
                cast: None,
                context: CastContext::Implicit,
                ..
            } => arg,
            other => other,
        };
        let Expr::Row(fields, named) = row else {
            return None;
        };
        let Some(Expr::Var(first)) = fields.first() else {
            return None;
        };
        if there.is_some_and(|(_, rel)| rel != first.rel) {
            return None;
        }
        let entry = self.named_entry(first.rel)?;
        if named.is_none() && !entry.is_row {
            return None;
        }
        let is = |(field, column): (&Expr, &i16)| matches!(field, Expr::Var(var) if var.rel == first.rel && var.column == *column);
        let all = fields.len() == entry.live.len() && fields.iter().zip(&entry.live).all(is);
        all.then(|| entry.name.clone())
    }

    /// After an expression where a star would be read as the columns: what keeps a whole row one
    /// value.
    pub(super) fn not_spread(&mut self, expr: &Expr) {
        if self.whole_row(expr).is_none() {
            return;
        }
        self.push("::");
        match expr.type_oid() {
            throng_types::oid::RECORD => self.push("record"),
            _ => {
                let name = self.type_name(expr.ty());
                self.push(&name);
            }
        }
    }

    /// In parentheses where these are not left out for the reader's sake.
    pub(super) fn wrapped(&mut self, body: impl FnOnce(&mut Self)) {
        if !self.style.pretty {
            self.push("(");
        }
        body(self);
        if !self.style.pretty {
            self.push(")");
        }
    }

    pub(super) fn list(&mut self, exprs: &[Expr]) {
        for (i, expr) in exprs.iter().enumerate() {
            if i > 0 {
                self.push(", ");
            }
            self.expr(expr);
        }
    }

    pub(super) fn expr(&mut self, expr: &Expr) {
        if let Some((keyword, precision)) = current_value(expr) {
            self.push(keyword);
            if precision >= 0 {
                self.push(&format!("({precision})"));
            }
            return;
        }
        match expr {
            Expr::Var(var) => self.var(var),
            Expr::Const(value, ty) => {
                let text = self.constant(value, *ty, false);
                self.push(&text);
            }
            Expr::Param(at, _) => self.param(*at),
            Expr::Call { func, args, .. } if **func == sqljson::CALL => self.json(args, expr),
            Expr::Call { func, args, .. } if **func == COLLATE => self.collate(args, expr),
            Expr::Call { func, args, .. } | Expr::SetCall { func, args, .. } => {
                self.function(func, populate::written(func, args));
            }
            Expr::Routine(call) | Expr::SetRoutine(call) => self.routine(call),
            Expr::Own(form) => self.own_form(form, expr),
            Expr::Variadic(arg) => {
                self.push("VARIADIC ");
                self.expr(arg);
            }
            Expr::Op { op, args, .. } => self.wrapped(|w| match &args[..] {
                [arg] => {
                    w.operator(op);
                    w.push(" ");
                    w.operand_of(arg, expr);
                }
                [left, right] => {
                    w.operand_of(left, expr);
                    w.push(" ");
                    w.operator(op);
                    w.push(" ");
                    w.operand_of(right, expr);
                }
                _ => {}
            }),
            Expr::Cast { arg, to, .. } => match self.whole_row(expr) {
                Some(table) => {
                    self.ident(&table);
                    self.push(".*");
                }
                None => self.cast(arg, *to, expr),
            },
            Expr::ToDomain(value, rules) => {
                // The cast to the base type goes without saying.
                let arg = match &**value {
                    Expr::Cast { arg, context, .. } if *context == CastContext::Explicit => arg,
                    _ => value,
                };
                self.cast(arg, SqlType::plain(rules.domain), expr);
            }
            Expr::And(parts) => self.joined(parts, " AND ", expr),
            Expr::Or(parts) => self.joined(parts, " OR ", expr),
            Expr::Not(arg) => self.wrapped(|w| {
                w.push("NOT ");
                w.operand_of(arg, expr);
            }),
            Expr::IsNull(arg) => self.test(arg, " IS NULL", expr),
            Expr::IsNotNull(arg) => self.test(arg, " IS NOT NULL", expr),
            Expr::IsBool {
                arg,
                value,
                negated,
            } => {
                let value = match value {
                    Some(true) => "TRUE",
                    Some(false) => "FALSE",
                    None => "UNKNOWN",
                };
                let not = if *negated { "NOT " } else { "" };
                self.test(arg, &format!(" IS {not}{value}"), expr);
            }
            Expr::IsDistinct {
                left,
                right,
                negated,
                ..
            } => self.wrapped(|w| {
                // PostgreSQL knows no other way to deny it.
                let open = *negated && !w.style.pretty;
                w.push(if *negated { "NOT " } else { "" });
                w.push(if open { "(" } else { "" });
                w.operand_of(left, expr);
                w.push(" IS DISTINCT FROM ");
                w.operand_of(right, expr);
                w.push(if open { ")" } else { "" });
            }),
            Expr::Case {
                operand,
                whens,
                default,
                ..
            } => match self.whole_row(expr) {
                Some(table) => {
                    self.ident(&table);
                    self.push(".*");
                }
                None => self.case(operand.as_deref(), whens, default),
            },
            Expr::Coalesce(args, _) => match (self.join_column(expr), self.merged_name(expr)) {
                (Some((join, column)), _) => {
                    self.ident(&join);
                    self.push(".");
                    self.ident(&column);
                }
                (None, Some(name)) => self.ident(&name),
                (None, None) => self.keyword_call("COALESCE", args),
            },
            Expr::NullIf { left, right, .. } => {
                self.push("NULLIF(");
                self.expr(left);
                self.push(", ");
                self.expr(right);
                self.push(")");
            }
            Expr::MinMax { greatest, args, .. } => {
                self.keyword_call(if *greatest { "GREATEST" } else { "LEAST" }, args);
            }
            Expr::ArrayCompare {
                op,
                left,
                array,
                all,
            } => self.wrapped(|w| {
                w.operand_of(left, expr);
                w.push(" ");
                w.operator(op);
                w.push(if *all { " ALL (" } else { " ANY (" });
                w.operand_of(array, expr);
                w.push(")");
            }),
            Expr::Array(items, ty) => {
                self.push("ARRAY[");
                self.list(items);
                self.push("]");
                if items.is_empty() {
                    let name = self.type_name(*ty);
                    self.push("::");
                    self.push(&name);
                }
            }
            Expr::Field { row, index, .. } => {
                self.push("(");
                self.expr(row);
                self.push(").");
                let def = self.style.catalog.composite(row.type_oid());
                let mut fields = def.iter().flat_map(|d| d.fields.iter().flatten());
                let field = fields
                    .by_ref()
                    .filter(|f| !f.dropped)
                    .nth(usize::from(*index));
                let columns = row.row_columns();
                let name = match columns.get(usize::from(*index)) {
                    Some(column) => column.name.clone(),
                    None => field.map_or("?", |f| &f.name).to_owned(),
                };
                self.ident(&name);
            }
            Expr::Items { array, place, .. } => self.items(array, place),
            Expr::Subscript { array, index, .. } => {
                let plain = matches!(**array, Expr::Var(_) | Expr::Subscript { .. });
                if !plain {
                    self.push("(");
                }
                self.expr(array);
                if !plain {
                    self.push(")");
                }
                self.push("[");
                self.expr(index);
                self.push("]");
            }
            Expr::Row(items, _) => match self.whole_row(expr) {
                Some(table) => {
                    self.ident(&table);
                    self.push(".*");
                }
                None => {
                    self.push("ROW(");
                    for (i, item) in items.iter().enumerate() {
                        if i > 0 {
                            self.push(", ");
                        }
                        self.expr(item);
                        self.not_spread(item);
                    }
                    self.push(")");
                }
            },
            Expr::Aggregate(call) => self.aggregate(call),
            Expr::Window(call) => self.window_call(call),
            Expr::Grouping(args) => self.keyword_call("GROUPING", args),
            Expr::Subquery(sub) => self.subquery(sub),
            // None of these is in a bound query that is read, outside the nodes written above.
            Expr::Replace { .. }
            | Expr::CaseOperand(_)
            | Expr::Slot(..)
            | Expr::Outer(..)
            | Expr::SubPlan(_)
            | Expr::Once(_) => self.push("?"),
        }
    }

    fn joined(&mut self, parts: &[Expr], word: &str, parent: &Expr) {
        self.wrapped(|w| {
            for (i, part) in parts.iter().enumerate() {
                if i > 0 {
                    w.push(word);
                }
                w.operand_of(part, parent);
            }
        });
    }

    fn test(&mut self, arg: &Expr, words: &str, parent: &Expr) {
        self.wrapped(|w| {
            w.operand_of(arg, parent);
            w.push(words);
        });
    }

    fn collate(&mut self, args: &[Expr], parent: &Expr) {
        let [arg, Expr::Const(Datum::Text(name), _)] = args else {
            return self.push("?");
        };
        self.wrapped(|w| {
            w.operand_of(arg, parent);
            w.push(" COLLATE ");
            w.ident(name);
        });
    }

    fn keyword_call(&mut self, name: &str, args: &[Expr]) {
        self.push(name);
        self.push("(");
        self.list(args);
        self.push(")");
    }

    /// A call, in the syntax PostgreSQL keeps for it where it has one.
    /// An argument of the function whose body this is, by its name where it has one.
    fn param(&mut self, at: u16) {
        let named = self.function.and_then(|(function, names)| {
            let name = names.get(usize::from(at)).filter(|n| !n.is_empty())?;
            Some((function, name))
        });
        let Some((function, name)) = named else {
            return self.push(&format!("${}", at + 1));
        };
        if self.scopes.iter().any(|scope| !scope.named.is_empty()) {
            self.ident(function);
            self.push(".");
        }
        self.ident(name);
    }

    /// A call of a user's function, with all its arguments.
    pub(super) fn function(&mut self, func: &Function, args: &[Expr]) {
        if self.range_constructor(func, args) {
            return;
        }
        let name = func.name;
        if let ("extract", [Expr::Const(Datum::Text(field), _), from]) = (name, args)
            && quote_ident(field) == field.as_str()
        {
            self.push("EXTRACT(");
            self.push(field);
            self.push(" FROM ");
            self.expr(from);
            return self.push(")");
        }
        if let ("current_user" | "session_user" | "current_schema", []) = (name, args) {
            let word = name.to_uppercase();
            return self.push(&word);
        }
        if self.xml_call(func, args) || written::has_words(func) && self.with_words(name, args) {
            return;
        }
        self.ident(name);
        self.push("(");
        // What is taken as it comes need not be said to be text.
        let any_from = match func.variadic == oid::ANY {
            true => func.args.len().saturating_sub(1),
            false => usize::MAX,
        };
        for (i, arg) in args.iter().enumerate() {
            if i > 0 {
                self.push(", ");
            }
            // Of values of any type an array may be one; what was given as all of them says so
            // itself.
            let listed = func.variadic != Oid::NONE && func.variadic != oid::ANY;
            let array = throng_types::sqltype::element_of(arg.type_oid()).is_some();
            let said = matches!(arg, Expr::Variadic(_));
            if listed && i + 1 == args.len() && array && !said {
                self.push("VARIADIC ");
            }
            match arg {
                Expr::Const(value @ Datum::Text(_), ty) if i >= any_from && ty.oid == oid::TEXT => {
                    let text = self.bare_constant(value, *ty);
                    self.push(&text);
                }
                _ => self.expr(arg),
            }
        }
        self.push(")");
    }

    /// A call as SQL writes it with words; false where these arguments have no such form.
    fn with_words(&mut self, name: &str, args: &[Expr]) -> bool {
        let number = |e: &Expr| e.type_oid() == oid::INT4;
        let word = |e: &Expr| match e {
            Expr::Const(Datum::Text(form), _) => Some(form.to_uppercase()),
            _ => None,
        };
        match (name, args) {
            ("timezone", [value]) => self.phrase(&["(", " AT LOCAL)"], &[value]),
            ("timezone", [zone, value]) => {
                self.phrase(&["(", " AT TIME ZONE ", ")"], &[value, zone])
            }
            ("position", [hay, needle]) => {
                self.phrase(&["POSITION((", ") IN (", "))"], &[needle, hay])
            }
            ("overlay", [value, new, from]) => {
                let words = ["OVERLAY(", " PLACING ", " FROM ", ")"];
                self.phrase(&words, &[value, new, from])
            }
            ("overlay", [value, new, from, length]) => {
                let words = ["OVERLAY(", " PLACING ", " FROM ", " FOR ", ")"];
                self.phrase(&words, &[value, new, from, length])
            }
            ("substring", [value, from]) if number(from) => {
                self.phrase(&["SUBSTRING(", " FROM ", ")"], &[value, from])
            }
            ("substring", [value, from, length]) if number(from) => {
                let words = ["SUBSTRING(", " FROM ", " FOR ", ")"];
                self.phrase(&words, &[value, from, length])
            }
            ("substring", [value, pattern, escape]) => {
                let words = ["SUBSTRING(", " SIMILAR ", " ESCAPE ", ")"];
                self.phrase(&words, &[value, pattern, escape])
            }
            ("btrim", args) => self.trim("TRIM(BOTH ", args),
            ("ltrim", args) => self.trim("TRIM(LEADING ", args),
            ("rtrim", args) => self.trim("TRIM(TRAILING ", args),
            ("normalize", [value]) => self.phrase(&["NORMALIZE(", ")"], &[value]),
            ("normalize", [value, form]) => word(form)
                .is_some_and(|form| self.phrase(&["NORMALIZE(", &format!(", {form})")], &[value])),
            ("is_normalized", [value]) => self.phrase(&["(", " IS NORMALIZED)"], &[value]),
            ("is_normalized", [value, form]) => word(form).is_some_and(|form| {
                self.phrase(&["(", &format!(" IS {form} NORMALIZED)")], &[value])
            }),
            ("overlaps", [a, b, c, d]) => {
                let words = ["((", ", ", ") OVERLAPS (", ", ", "))"];
                self.phrase(&words, &[a, b, c, d].map(as_given))
            }
            _ => false,
        }
    }

    fn trim(&mut self, begin: &str, args: &[Expr]) -> bool {
        match args {
            [value] => self.phrase(&[&format!("{begin}FROM "), ")"], &[value]),
            [value, what] => self.phrase(&[begin, " FROM ", ")"], &[what, value]),
            _ => false,
        }
    }

    /// Words with values between them.
    fn phrase(&mut self, words: &[&str], values: &[&Expr]) -> bool {
        for (at, word) in words.iter().enumerate() {
            self.push(word);
            let Some(value) = values.get(at) else {
                continue;
            };
            // Before words that bind closer than operators do.
            let simple = [Shape::Simple, Shape::Brackets, Shape::Cast].contains(&shape(value));
            let parens = self.style.pretty && !simple && words[0] == "(";
            if parens {
                self.push("(");
            }
            self.expr(value);
            if parens {
                self.push(")");
            }
        }
        true
    }

    fn items(&mut self, array: &Expr, place: &ValuePart) {
        let plain = matches!(array, Expr::Var(_));
        self.push(if plain { "" } else { "(" });
        self.expr(array);
        self.push(if plain { "" } else { ")" });
        match place {
            ValuePart::Item(at) => {
                for at in at {
                    self.push("[");
                    self.expr(at);
                    self.push("]");
                }
            }
            ValuePart::Slice { lower, upper } => {
                for (lower, upper) in lower.iter().zip(upper) {
                    self.push("[");
                    lower.iter().for_each(|e| self.expr(e));
                    self.push(":");
                    upper.iter().for_each(|e| self.expr(e));
                    self.push("]");
                }
            }
            ValuePart::Field { .. } => {}
        }
    }

    fn cast(&mut self, arg: &Expr, to: SqlType, parent: &Expr) {
        match arg {
            // A constant of the type already: its own decoration would say it twice.
            Expr::Const(value, ty) if ty.oid == to.oid && ty.typmod == -1 => {
                let text = self.bare_constant(value, *ty);
                self.push(&text);
            }
            // A row that becomes a composite type's value is written as one.
            Expr::Row(..) if made::is_composite(to.oid) && self.whole_row(arg).is_none() => {
                self.expr(arg);
            }
            _ => {
                self.wrapped(|w| w.operand_of(arg, parent));
            }
        }
        let name = self.type_name(to);
        self.push("::");
        self.push(&name);
    }

    fn case(&mut self, operand: Option<&Expr>, whens: &[(Expr, Expr)], default: &Expr) {
        self.line("CASE", 0, LIST, 0);
        if let Some(operand) = operand {
            self.push(" ");
            self.expr(operand);
        }
        for (when, then) in whens {
            self.line("WHEN ", 0, 0, 0);
            match (operand, when) {
                // `operand = value`, of which the value was written.
                (Some(_), Expr::Op { args, .. }) => match args.last() {
                    Some(value) => self.expr(value),
                    None => self.expr(when),
                },
                _ => self.expr(when),
            }
            self.push(" THEN ");
            self.expr(then);
        }
        self.line("ELSE ", 0, 0, 0);
        self.expr(default);
        self.line("END", -LIST, 0, 0);
    }

    fn aggregate(&mut self, call: &AggCall) {
        self.aggregate_name(&call.agg);
        self.push("(");
        if !call.agg.is_plain() {
            self.list(&call.direct);
            self.push(") WITHIN GROUP (");
        } else if call.args.is_empty() {
            self.push("*");
        } else {
            if call.distinct {
                self.push("DISTINCT ");
            }
            self.list(&call.args);
        }
        for (i, key) in call.written_order().iter().enumerate() {
            self.push(match (i, call.agg.is_plain()) {
                (0, true) => " ORDER BY ",
                (0, false) => "ORDER BY ",
                _ => ", ",
            });
            self.key_expr(&key.expr, Vec::new());
            self.direction(key);
        }
        self.push(")");
        self.filter_of(call.filter.as_ref());
    }

    pub(super) fn filter_of(&mut self, filter: Option<&Expr>) {
        if let Some(filter) = filter {
            self.push(" FILTER (WHERE ");
            self.expr(filter);
            self.push(")");
        }
    }

    fn subquery(&mut self, sub: &Subquery) {
        if let Some(compared) = ComparedRow::of(sub) {
            return self.compared_row(&compared);
        }
        let (left, compare, word) = match &sub.kind {
            SubqueryKind::Exists => {
                self.push("(EXISTS (");
                self.nested(&sub.query, false);
                return self.push("))");
            }
            SubqueryKind::Scalar | SubqueryKind::Array => {
                self.push(match sub.kind {
                    SubqueryKind::Array => "ARRAY(",
                    _ => "(",
                });
                self.nested(&sub.query, false);
                return self.push(")");
            }
            SubqueryKind::Any { left, compare } => (left, compare, " ANY "),
            SubqueryKind::All { left, compare } => (left, compare, " ALL "),
        };
        self.push("(");
        match &left[..] {
            [one] => self.expr(one),
            many => {
                self.push("(");
                self.list(many);
                self.push(")");
            }
        }
        let name = compare.first().map_or("=", |op| op.name);
        match (word, name) {
            (" ANY ", "=") => self.push(" IN "),
            _ => {
                self.push(" ");
                self.push(name);
                self.push(word);
            }
        }
        self.push("(");
        self.nested(&sub.query, false);
        self.push("))");
    }

    /// A constant's text without its type.
    fn bare_constant(&self, value: &Datum, ty: SqlType) -> String {
        if value.is_null() {
            return "NULL".to_owned();
        }
        if interrupt::expect_text(value).is_err() {
            return String::new();
        }
        if let (oid::REGCLASS, Datum::Oid(named)) = (ty.oid, value)
            && let Some(relation) = self.style.catalog.relation(Oid(*named))
        {
            let path = self.style.search_path;
            return literal(&self.style.catalog.display_name(path, &relation));
        }
        if let Datum::Enum(value) = value {
            let made = self.style.catalog.made_type(value.ty);
            let mut labels = made.iter().flat_map(|def| &def.labels);
            let label = labels.find(|label| label.place == value.place);
            return literal(label.map_or("", |label| &label.name));
        }
        let mut bytes = Vec::new();
        output_text(&self.style.eval, value, ty, &mut bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        match ty.oid {
            oid::BOOL => value.is_true().to_string(),
            oid::INT4 if !text.starts_with('-') => text,
            // With a point or an exponent it cannot be taken for an integer.
            oid::NUMERIC
                if text.starts_with(|c: char| c.is_ascii_digit()) && text.contains(['.', 'e']) =>
            {
                text
            }
            _ => literal(&text),
        }
    }

    /// A constant, with its type where the text alone would be taken for another. `always`: in any
    /// case.
    pub(super) fn constant(&self, value: &Datum, ty: SqlType, always: bool) -> String {
        let bare = self.bare_constant(value, ty);
        let labelled = match ty.oid {
            _ if value.is_null() => true,
            oid::BOOL => false,
            oid::INT4 | oid::NUMERIC => bare.starts_with('\'') || ty.typmod >= 0,
            oid::UNKNOWN => false,
            _ => true,
        };
        if !labelled && !always {
            return bare;
        }
        format!("{bare}::{}", self.type_name(ty))
    }
}

/// A date that goes as a moment without saying so.
fn as_given(value: &Expr) -> &Expr {
    match value {
        Expr::Cast { arg, context, .. }
            if *context != CastContext::Explicit && arg.type_oid() == oid::DATE =>
        {
            arg.as_ref()
        }
        _ => value,
    }
}
