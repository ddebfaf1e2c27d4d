//! Functions and procedures that users made.

use serde::{Deserialize, Serialize};
pub use throng_syntax::vocabulary::{ArgMode, RoutineKind};
use throng_types::sqltype::made;
use throng_types::{Oid, SqlType};
use throng_values::func::is_polymorphic;

use super::{AggregateDef, AggregateKind, ViewUse, id};
use throng_values::func::{Function, Volatility};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArgDef {
    /// Empty: none.
    pub name: String,
    #[serde(with = "id")]
    pub ty: Oid,
    /// The domain, or array of one, over that type that it is declared as.
    #[serde(default, with = "id", skip_serializing_if = "Option::is_none")]
    pub domain: Option<Oid>,
    pub mode: ArgMode,
    /// SQL text of the default, cast to the argument's type.
    pub default: Option<String>,
}

impl ArgDef {
    /// The type that it is declared as.
    pub fn declared(&self) -> Oid {
        self.domain.unwrap_or(self.ty)
    }
}

/// What a routine does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum RoutineBody {
    /// Statements that are read when it is called, under the caller's search path.
    Text(String),
    /// The same, read when it was made: names are sought in the schemas of then. `atomic`: written
    /// with BEGIN ATOMIC.
    Standard {
        text: String,
        atomic: bool,
        #[serde(with = "id")]
        path: Vec<Oid>,
    },
    /// A block in PL/pgSQL, read when it is first called.
    Plpgsql(String),
    /// What an extension of this server computes, by the symbol of its description.
    Native { extension: String, symbol: String },
    /// An aggregate's functions.
    Aggregate(Box<AggregateDef>),
}

impl RoutineBody {
    /// As it was written.
    pub fn text(&self) -> &str {
        match self {
            RoutineBody::Text(text)
            | RoutineBody::Standard { text, .. }
            | RoutineBody::Plpgsql(text) => text,
            RoutineBody::Native { symbol, .. } => symbol,
            RoutineBody::Aggregate(_) => "aggregate_dummy",
        }
    }
    pub fn language(&self) -> &'static str {
        match self {
            RoutineBody::Plpgsql(_) => "plpgsql",
            RoutineBody::Native { .. } => "c",
            RoutineBody::Aggregate(_) => "internal",
            RoutineBody::Text(_) | RoutineBody::Standard { .. } => "sql",
        }
    }
}

/// A function or a procedure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoutineDef {
    #[serde(with = "id")]
    pub oid: Oid,
    #[serde(with = "id")]
    pub schema: Oid,
    pub name: String,
    #[serde(with = "id")]
    pub owner: Oid,
    pub kind: RoutineKind,
    pub args: Vec<ArgDef>,
    /// `record` where it gives rows of several columns.
    #[serde(with = "id")]
    pub ret: Oid,
    /// The domain, or array of one, over that type that it returns.
    #[serde(default, with = "id", skip_serializing_if = "Option::is_none")]
    pub ret_domain: Option<Oid>,
    /// The table whose rows it returns.
    #[serde(with = "id")]
    pub row_of: Option<Oid>,
    /// SETOF or TABLE.
    pub set: bool,
    pub strict: bool,
    pub volatility: Volatility,
    pub security_definer: bool,
    pub leakproof: bool,
    /// `u`, `r` or `s`.
    pub parallel: char,
    pub cost: f64,
    /// 0 where it returns no set.
    pub rows: f64,
    /// `SET name TO value`: in force while it runs.
    pub settings: Vec<(String, String)>,
    pub body: RoutineBody,
    /// What its types, its defaults and a body that was read name: they cannot go while it is
    /// there.
    pub uses: Vec<ViewUse>,
}

impl RoutineDef {
    /// The function of an extension that it is.
    pub fn native(&self) -> Option<&'static Function> {
        match &self.body {
            RoutineBody::Native { extension, symbol } => {
                throng_values::func::extension::native(extension, symbol)
            }
            _ => None,
        }
    }
    pub fn inputs(&self) -> impl Iterator<Item = &ArgDef> {
        self.args.iter().filter(|a| a.mode.is_input())
    }
    /// The arguments a call writes down: CALL those that come back, too.
    pub fn call_args(&self) -> impl Iterator<Item = &ArgDef> {
        let procedure = self.kind == RoutineKind::Procedure;
        let args = self.args.iter();
        args.filter(move |a| a.mode.is_input() || procedure && a.mode == ArgMode::Out)
    }
    pub fn outputs(&self) -> impl Iterator<Item = &ArgDef> {
        self.args.iter().filter(|a| a.mode.is_output())
    }
    /// The types that tell it from others of its name.
    pub fn input_types(&self) -> Vec<Oid> {
        self.inputs().map(ArgDef::declared).collect()
    }
    /// The types of the values that it is given.
    pub fn value_types(&self) -> Vec<SqlType> {
        self.inputs().map(|a| SqlType::plain(a.ty)).collect()
    }
    /// The type that it is declared to return.
    pub fn declared_ret(&self) -> Oid {
        let row_type = self.row_of.and_then(made::composite_oid);
        row_type.or(self.ret_domain).unwrap_or(self.ret)
    }
    /// How many of its last arguments may be left out.
    pub fn defaults(&self) -> usize {
        self.inputs().filter(|a| a.default.is_some()).count()
    }
    /// The last argument takes any number of values.
    pub fn is_variadic(&self) -> bool {
        self.args.iter().any(|a| a.mode == ArgMode::Variadic)
    }
    pub fn aggregate(&self) -> Option<&AggregateDef> {
        match &self.body {
            RoutineBody::Aggregate(aggregate) => Some(aggregate),
            _ => None,
        }
    }
    /// What messages call it.
    pub fn noun(&self) -> &'static str {
        match self.kind {
            RoutineKind::Function => "function",
            RoutineKind::Procedure => "procedure",
            RoutineKind::Aggregate => "aggregate",
        }
    }
    /// The same in statements.
    pub fn word(&self) -> &'static str {
        match self.kind {
            RoutineKind::Function => "FUNCTION",
            RoutineKind::Procedure => "PROCEDURE",
            RoutineKind::Aggregate => "AGGREGATE",
        }
    }
    /// The same, whatever kind of aggregate it is.
    pub fn article(&self) -> &'static str {
        match self.kind {
            RoutineKind::Aggregate => "an aggregate function",
            _ => self.described(),
        }
    }
    /// What it is, with an article.
    pub fn described(&self) -> &'static str {
        match (self.kind, self.aggregate().map(|a| a.kind)) {
            (RoutineKind::Procedure, _) => "a procedure",
            (_, None) => "a function",
            (_, Some(AggregateKind::Normal)) => "an ordinary aggregate function",
            (_, Some(AggregateKind::OrderedSet)) => "an ordered-set aggregate",
            (_, Some(AggregateKind::Hypothetical)) => "a hypothetical-set aggregate",
        }
    }
    /// Some argument's type, or the result's, is decided by each call.
    pub fn is_polymorphic(&self) -> bool {
        self.args.iter().any(|a| is_polymorphic(a.ty)) || is_polymorphic(self.ret)
    }
}
