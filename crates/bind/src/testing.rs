//! A catalog that tests make by running definitions, without a server.

use throng_types::{Error, FileId, Oid, Result, SqlType};

use crate::binder::{BindContext, bind};
use crate::command::{Bound, BoundStatement};
use crate::definition::{DdlHost, Outcome, apply};
use crate::tree::expr::Expr;
use throng_catalog::written_type;
use throng_catalog::{Catalog, CatalogEdit, Change, Object, builtin};
use throng_syntax::parse;
use throng_values::func::WrittenType;
use throng_values::func::testing::TestHost;
use throng_values::func::{EvalContext, EvalHost, EvalResult, EvalStop, ObjectKind};
use throng_values::io::FormatSettings;

pub struct Workbench {
    pub catalog: Catalog,
    pub changes: Vec<Change>,
    next: u32,
    format: FormatSettings,
}

/// Tables that the cases of the binder are about.
pub const SCHEMA: &str = "
    create table a(id int primary key, v text, n numeric(10,2), t timestamptz, b boolean, arr int[]);
    create table b(id bigint primary key, a_id int references a, name varchar(20), c char(3),
        f float8, d date, u uuid, i interval, s smallint, r real, ts timestamp, ti time, by bytea);
    create table p(x int, y int not null default 5, id serial,
        g int generated always as identity, unique (x, y));
    create table e()";

pub const PATH: [Oid; 2] = [builtin::PG_CATALOG, builtin::PUBLIC];

/// Knows the relations of a catalog; for the rest as [`TestHost`].
struct CatalogHost<'a>(&'a Catalog);

impl EvalHost for CatalogHost<'_> {
    fn transaction_timestamp(&self) -> i64 {
        TestHost.transaction_timestamp()
    }
    fn statement_timestamp(&self) -> i64 {
        TestHost.statement_timestamp()
    }
    fn current_user(&self) -> String {
        TestHost.current_user()
    }
    fn session_user(&self) -> String {
        TestHost.session_user()
    }
    fn current_database(&self) -> String {
        TestHost.current_database()
    }
    fn current_schemas(&self, implicit: bool) -> Vec<String> {
        TestHost.current_schemas(implicit)
    }
    fn backend_pid(&self) -> i32 {
        TestHost.backend_pid()
    }
    fn show_setting(&self, name: &str) -> Option<String> {
        TestHost.show_setting(name)
    }
    fn set_setting(&self, name: &str, v: Option<&str>, local: bool) -> Result<String, EvalStop> {
        TestHost.set_setting(name, v, local)
    }
    fn transaction_id(&self, assign: bool) -> Result<Option<u64>, EvalStop> {
        TestHost.transaction_id(assign)
    }
    fn nextval(&self, sequence: Oid) -> Result<i64, EvalStop> {
        TestHost.nextval(sequence)
    }
    fn currval(&self, sequence: Oid) -> Result<i64, EvalStop> {
        TestHost.currval(sequence)
    }
    fn lastval(&self) -> Result<i64, EvalStop> {
        TestHost.lastval()
    }
    fn setval(&self, sequence: Oid, value: i64, called: bool) -> Result<i64, EvalStop> {
        TestHost.setval(sequence, value, called)
    }
    fn parse_type(&self, name: &str) -> Result<WrittenType> {
        written_type(name)
    }
    fn object_oid(&self, kind: ObjectKind, name: &str) -> Result<Oid, EvalStop> {
        let parsed = parse::parse_name(name)?;
        match self.0.find_relation(&PATH, parsed.last()) {
            Some(relation) => Ok(relation.oid()),
            None => TestHost.object_oid(kind, name),
        }
    }
    fn object_name(&self, kind: ObjectKind, oid: Oid) -> Option<String> {
        TestHost.object_name(kind, oid)
    }
    fn system_function(&self, name: &str, args: &[throng_types::Datum]) -> EvalResult {
        TestHost.system_function(name, args)
    }
}

struct Ids {
    next: u32,
    format: FormatSettings,
}

impl DdlHost for Ids {
    fn next_oid(&mut self) -> Oid {
        self.next += 1;
        Oid(self.next)
    }
    fn next_file(&mut self) -> FileId {
        self.next += 1;
        FileId(self.next)
    }
    fn evaluate(&mut self, expr: &Expr) -> Result<Option<String>> {
        match expr {
            Expr::Const(throng_types::Datum::Null, _) => Ok(None),
            Expr::Const(value, _) => Ok(Some(format!("{value:?}"))),
            _ => Ok(Some("computed".into())),
        }
    }
    fn password_verifier(&mut self, password: &str) -> Result<String> {
        Ok(format!("verifier of {password}"))
    }
    fn opens(&self, secret: &str, password: &str) -> Option<bool> {
        Some(secret.strip_prefix("verifier of ")? == password)
    }
    fn is_being_named(&self, _: Oid, _: &str) -> bool {
        false
    }
    fn search_path(&self) -> &[Oid] {
        &PATH
    }
    fn current_user(&self) -> Oid {
        builtin::SUPERUSER
    }
    fn eval(&self) -> EvalContext<'_> {
        EvalContext {
            host: &TestHost,
            format: &self.format,
        }
    }
    fn temporary_schema(&self) -> String {
        "pg_temp_1".into()
    }
    fn needed_elsewhere(&self, _: Oid) -> Vec<(String, usize)> {
        Vec::new()
    }
}

impl Workbench {
    /// A fresh catalog with these definitions.
    pub fn new(sql: &str) -> Workbench {
        let mut bench = Workbench {
            catalog: Catalog::load(builtin::DATABASE, Catalog::initial_objects()),
            changes: vec![],
            next: 16384,
            format: FormatSettings::default(),
        };
        bench
            .run(sql)
            .expect("the test's own definitions are right");
        bench
    }

    pub fn bind(&self, statement: &parse::ast::Statement, sql: &str) -> Result<Bound> {
        self.bind_as(builtin::SUPERUSER, &[], statement, sql)
    }

    pub fn bind_as(
        &self,
        user: Oid,
        params: &[SqlType],
        statement: &parse::ast::Statement,
        sql: &str,
    ) -> Result<Bound> {
        let host = CatalogHost(&self.catalog);
        let ctx = BindContext {
            catalog: &self.catalog,
            search_path: &PATH,
            creation_schema: Some(builtin::PUBLIC),
            temporary_schema: None,
            user,
            params,
            eval: EvalContext {
                host: &host,
                format: &self.format,
            },
            prepared: &|name| (name == "known").then(|| vec![SqlType::INT4, SqlType::TEXT]),
            named: None,
        };
        bind(statement, sql, &ctx)
    }

    /// Does something with what constants are read and written with.
    pub fn evaluating<R>(
        &self,
        format: &FormatSettings,
        f: impl FnOnce(EvalContext<'_>) -> R,
    ) -> R {
        let host = CatalogHost(&self.catalog);
        f(EvalContext {
            host: &host,
            format,
        })
    }

    /// Adds an object that no statement makes.
    pub fn put(&mut self, make: impl FnOnce(Oid) -> Object) {
        self.next += 1;
        let mut edit = CatalogEdit::new(&self.catalog);
        edit.put(make(Oid(self.next)));
        self.catalog = edit.finish().0;
    }

    pub fn bind_one(&self, sql: &str) -> Result<Bound> {
        let parsed = parse::parse(sql)?;
        assert_eq!(parsed.len(), 1, "one statement: {sql}");
        self.bind(&parsed[0].statement, sql)
    }

    /// Runs definitions; everything else is only bound.
    pub fn run(&mut self, sql: &str) -> Result<Vec<Outcome>> {
        let mut outcomes = Vec::new();
        for parsed in parse::parse(sql)? {
            let bound = self.bind(&parsed.statement, sql)?;
            let mut outcome = Outcome {
                notices: bound.notices,
                ..Outcome::default()
            };
            if let BoundStatement::Ddl(ddl) = bound.statement {
                let mut edit = CatalogEdit::new(&self.catalog);
                let mut ids = Ids {
                    next: self.next,
                    format: self.format.clone(),
                };
                let done = apply(&mut edit, &ddl, &mut ids)?;
                self.next = ids.next;
                let (catalog, changes) = edit.finish();
                self.catalog = catalog;
                self.changes = changes;
                outcome.work = done.work;
                outcome.notices.extend(done.notices);
                outcome.touched = done.touched;
            }
            outcomes.push(outcome);
        }
        Ok(outcomes)
    }
}

/// An error on one line: code, message, place.
pub fn line(error: &Error) -> String {
    let place = error
        .fields()
        .position
        .map_or(String::new(), |p| format!(" @{p}"));
    format!("{} {}{place}", error.code().as_str(), error.message())
}

/// The statements of the binder's cases.
pub fn bound_cases() -> impl Iterator<Item = &'static str> {
    let lines = include_str!("binder/cases.txt").lines();
    lines.filter(|l| !l.is_empty()).step_by(2)
}
