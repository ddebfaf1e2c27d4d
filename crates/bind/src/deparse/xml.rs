//! SQL/XML, as it is written.

use super::Writer;
use crate::tree::expr::Expr;
use throng_types::Datum;
use throng_types::lexical::quote_ident;
use throng_values::func::{Function, xml::GRAMMAR};

fn name(arg: &Expr) -> Option<&str> {
    match arg {
        Expr::Cast { arg, .. } => name(arg),
        Expr::Const(Datum::Text(name), _) => Some(name),
        _ => None,
    }
}

/// The names of attributes or elements.
fn names(arg: &Expr) -> Vec<&str> {
    match arg {
        Expr::Cast { arg, .. } => names(arg),
        Expr::Array(items, _) => items.iter().filter_map(name).collect(),
        Expr::Const(Datum::Array(array), _) => {
            array.items.iter().filter_map(Datum::as_str).collect()
        }
        _ => Vec::new(),
    }
}

fn extent(arg: &Expr) -> &'static str {
    match arg {
        Expr::Const(Datum::Bool(true), _) => "DOCUMENT ",
        _ => "CONTENT ",
    }
}

impl Writer<'_> {
    /// What the grammar has words for; false for any other call.
    pub(super) fn xml_call(&mut self, func: &Function, args: &[Expr]) -> bool {
        if !GRAMMAR.contains(&func.oid.0) {
            return false;
        }
        match (func.name, args) {
            ("is_document", [value]) => {
                self.push("(");
                self.expr(value);
                self.push(" IS DOCUMENT)");
                return true;
            }
            ("xmlelement", [element, attributes, values @ ..]) => {
                self.push("XMLELEMENT(NAME ");
                self.xml_name(element);
                let count = names(attributes).len();
                let (attached, content) = values.split_at(count.min(values.len()));
                if !attached.is_empty() {
                    self.push(", XMLATTRIBUTES(");
                    self.xml_named(attributes, attached);
                    self.push(")");
                }
                for value in content {
                    self.push(", ");
                    self.expr(value);
                }
            }
            ("xmlforest", [labels, values @ ..]) => {
                self.push("XMLFOREST(");
                self.xml_named(labels, values);
            }
            ("xmlparse", [of, value]) => {
                self.push("XMLPARSE(");
                self.push(extent(of));
                self.expr(value);
                self.push(" STRIP WHITESPACE");
            }
            ("xmlserialize", [of, value]) => {
                self.push("XMLSERIALIZE(");
                self.push(extent(of));
                self.expr(value);
                self.push(" AS text");
            }
            ("xmlpi", [target, content @ ..]) => {
                self.push("XMLPI(NAME ");
                self.xml_name(target);
                for value in content {
                    self.push(", ");
                    self.expr(value);
                }
            }
            ("xmlroot", [value, version, standalone]) => {
                self.push("XMLROOT(");
                self.expr(value);
                self.push(", VERSION ");
                match version {
                    Expr::Const(Datum::Null, _) => self.push("NO VALUE"),
                    version => self.expr(version),
                }
                self.push(match standalone {
                    Expr::Const(Datum::Int4(0), _) => ", STANDALONE YES",
                    Expr::Const(Datum::Int4(1), _) => ", STANDALONE NO",
                    Expr::Const(Datum::Int4(2), _) => ", STANDALONE NO VALUE",
                    _ => "",
                });
            }
            (_, values) => {
                self.push("XMLCONCAT(");
                for (at, value) in values.iter().enumerate() {
                    self.push(if at > 0 { ", " } else { "" });
                    self.expr(value);
                }
            }
        }
        self.push(")");
        true
    }

    fn xml_name(&mut self, arg: &Expr) {
        let name = name(arg).unwrap_or("?");
        self.push(&quote_ident(name));
    }

    fn xml_named(&mut self, labels: &Expr, values: &[Expr]) {
        let labels = names(labels);
        for (at, (value, label)) in values.iter().zip(labels).enumerate() {
            self.push(if at > 0 { ", " } else { "" });
            self.expr(value);
            self.push(" AS ");
            self.push(&quote_ident(label));
        }
    }
}
