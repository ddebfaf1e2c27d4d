//! An engine in a directory of its own, and sessions on it.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use throng_analytics::{AnalyticsPool, PoolConfig};
use throng_exec::client::{Client, ClientFuture, Format, RowShape};
use throng_session::{Engine, EngineConfig, GivenSettings, Login, Passwords, Session};
use throng_types::{Datum, Error, Result};
use throng_values::func::EvalContext;

pub struct Database {
    pub engine: Arc<Engine>,
    pub pool: Arc<AnalyticsPool>,
    pub directory: tempfile::TempDir,
}

impl Database {
    /// With a small buffer pool, and as little memory for jobs as a sort can do with.
    pub fn new() -> Database {
        let directory = tempfile::tempdir().expect("a directory");
        let engine = Engine::open(EngineConfig {
            data: directory.path().join("data"),
            cores: vec![0],
            pool_bytes: 16 << 20,
            settings: GivenSettings {
                command_line: vec![("fsync".into(), "off".into())],
                ..GivenSettings::default()
            },
            passwords: Passwords {
                of_password: |password, _| password.to_owned(),
                opens: |_, _| None,
            },
            storage_failed: Box::new(|_| {}),
        })
        .expect("an engine");
        let pool = AnalyticsPool::start(PoolConfig {
            workers: 2,
            cores: Vec::new(),
            concurrency: 1,
            temporary: directory.path().join("tmp"),
            least_memory: 4 << 20,
            column_cache: 1 << 20,
        });
        let pool = Arc::new(pool.expect("a pool"));
        engine.set_analytics(pool.clone());
        Database {
            engine,
            pool,
            directory,
        }
    }

    pub fn session(&self) -> Session {
        let login = Login {
            user: "postgres".into(),
            database: "postgres".into(),
            application_name: "test".into(),
            options: Vec::new(),
            client: "[local]".into(),
            encryption: None,
        };
        Session::new(self.engine.clone(), login).expect("a session")
    }

    pub fn spilled_now(&self) -> bool {
        has_files(&self.directory.path().join("tmp"))
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.engine.close().expect("a clean stop");
    }
}

fn has_files(path: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(path) else {
        return false;
    };
    entries
        .flatten()
        .any(|e| e.path().is_file() || has_files(&e.path()))
}

/// Runs a future as an event loop would.
pub fn on_a_loop<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, future)
}

/// Keeps the rows of what runs.
#[derive(Default)]
pub struct Rows(pub Vec<Vec<Datum>>);

impl Client for Rows {
    fn row_description(&mut self, _: &RowShape) {}
    fn row(&mut self, row: &[Datum], _: &RowShape, _: &EvalContext<'_>) -> Result<()> {
        self.0.push(row.to_vec());
        Ok(())
    }
    fn command_complete(&mut self, _: &str) {}
    fn empty_query(&mut self) {}
    fn portal_suspended(&mut self) {}
    fn notice(&mut self, _: &Error) {}
    fn parameter_status(&mut self, _: &str, _: &str) {}
    fn notification(&mut self, _: i32, _: &throng_exec::client::Notification) {}
    fn copy_in_start(&mut self, _: Format, _: usize) {}
    fn copy_read<'a>(&'a mut self, _: &'a mut Vec<u8>) -> ClientFuture<'a, bool> {
        Box::pin(async { Ok(false) })
    }
    fn copy_out_start(&mut self, _: Format, _: usize) {}
    fn copy_data(&mut self, _: &[u8]) {}
    fn copy_out_done(&mut self) {}
    fn backlog(&self) -> usize {
        0
    }
    fn flush(&mut self) -> ClientFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}

pub async fn query(session: &mut Session, sql: &str) -> Result<Vec<Vec<Datum>>> {
    let mut rows = Rows::default();
    let outcome = session.simple_query(sql, &mut rows).await;
    outcome.map(|_| rows.0)
}

pub async fn execute(session: &mut Session, sql: &str) {
    query(session, sql)
        .await
        .unwrap_or_else(|e| panic!("{sql}: {e:?}"));
}

/// The same statement on the row operators.
pub async fn by_rows(session: &mut Session, sql: &str) -> Result<Vec<Vec<Datum>>> {
    execute(session, "SET analytics_above_cost = -1").await;
    query(session, sql).await
}

/// The same statement on the analytics pool.
pub async fn by_pool(session: &mut Session, sql: &str) -> Result<Vec<Vec<Datum>>> {
    execute(session, "SET analytics_above_cost = 0").await;
    query(session, sql).await
}
