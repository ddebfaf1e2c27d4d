//! `throng serve`: from the configuration to the ready line, and from the signal to the last page
//! written.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use throng_analytics::{AnalyticsPool, LEAST_MEMORY, PoolConfig};
use throng_disk::descriptors;
use throng_exec::placement::Placement;
use throng_observe::heap;
use throng_session::{Engine, EngineConfig, Passwords};
use throng_types::error::state;
use throng_types::{Error, Result};

use crate::config::{self, Config};
use crate::net::auth::scram::Verifier;
use crate::net::listener::{Listeners, Loops};
use crate::net::tls::Tls;
use crate::restart::Restart;
use crate::standby::{self, Followed};

/// What long values may take together at least: PostgreSQL's longest one.
const LEAST_FOR_VALUES: usize = 1 << 30;

/// Sessions have so long to hear that storage has failed.
const FAREWELL: Duration = Duration::from_secs(5);

/// Serves until SIGTERM or SIGINT; starts anew where storage fails.
pub fn run(config: Config) -> Result<()> {
    if let Err(e) = descriptors::raise() {
        tracing::warn!(error = %e, "the limit of open files stays as it is");
    }
    if let Some(target) = standby::target(&config)? {
        match standby::follow(&config, &target)? {
            Followed::Promoted => {}
            Followed::Stopped => return Ok(()),
        }
    }
    let restart = Restart::of_this_process();
    let served = run_once(&config, &restart);
    match served {
        Ok(Ended::Stopped | Ended::StoppedAfterFailure) => Ok(()),
        Ok(Ended::StorageFailed) => restart.start_anew(),
        Err(e) if restart.is_due_after(&e) => {
            tracing::error!(error = %e, "could not recover");
            std::thread::sleep(restart.pause());
            restart.start_anew()
        }
        Err(e) => Err(e),
    }
}

fn run_once(config: &Config, restart: &Restart) -> Result<Ended> {
    let placement = Placement::new(&config.settings.settings()?, &config.cores)?;
    placement.confine();
    let engine = Engine::open(EngineConfig {
        data: config.data.clone(),
        cores: config.cores.clone(),
        pool_bytes: config.pool_bytes,
        settings: config.settings.clone(),
        passwords: Passwords {
            of_password: |password, iterations| {
                Verifier::of_password(password, iterations).to_string()
            },
            opens: |secret, password| Some(Verifier::parse(secret)?.is_of(password)),
        },
        storage_failed: restart.tell(),
    })?;
    // What is there by now is the server's own, for good.
    heap::set_limit(heap::held() + config.pool_bytes.max(LEAST_FOR_VALUES));
    let served = start_analytics(config, &placement, &engine)
        .and_then(|()| listen(config, &placement, &engine, restart));
    if let Ok(Ended::StorageFailed | Ended::StoppedAfterFailure) = served {
        // Nothing can be written, and what still runs goes with this image of the process.
        std::mem::forget(engine);
        return served;
    }
    // Whatever ended the serving, what was acknowledged is on disk already; closing makes the next
    // start quick.
    let closed = engine.close();
    served.and_then(|ended| closed.map(|()| ended))
}

/// Why serving ended.
enum Ended {
    Stopped,
    StorageFailed,
    /// A signal came while the server was about to start anew.
    StoppedAfterFailure,
}

/// Big queries that share the analytics pool, for each of its workers; each has memory of its own.
const JOBS_A_WORKER: usize = 4;

/// Gives the engine its pool for big queries: a worker a core, of lower priority than the event
/// loops there.
fn start_analytics(config: &Config, placement: &Placement, engine: &Engine) -> Result<()> {
    let workers = config.cores.len().max(1);
    let pool = AnalyticsPool::start(PoolConfig {
        workers,
        cores: placement.bound_cores().to_vec(),
        concurrency: workers * JOBS_A_WORKER,
        temporary: config.data.join("tmp"),
        least_memory: LEAST_MEMORY,
        column_cache: engine.column_cache_bytes(),
    })?;
    engine.set_analytics(Arc::new(pool));
    Ok(())
}

fn listen(
    config: &Config,
    placement: &Placement,
    engine: &Arc<Engine>,
    restart: &Restart,
) -> Result<Ended> {
    if !config.listen.ip().is_loopback() && !engine.any_password() {
        return Err(Error::new(
            state::CONFIG_FILE_ERROR,
            format!("refusing to listen on {} while no role has a password", config.listen),
        )
        .hint(
            "Start with --listen 127.0.0.1:5433, run \
             psql -h 127.0.0.1 -p 5433 -U postgres -c \"ALTER ROLE postgres PASSWORD '...'\", then start again.",
        ));
    }
    let tls = config
        .certificate
        .as_ref()
        .map(|(c, k)| tls_of(c, k))
        .transpose()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        throng_session::adopt(engine).await?;
        throng_session::drop_leftovers(engine).await?;
        let listeners = Listeners::bind(config.listen, &config.unix_sockets)?;
        let loops = Loops::start(engine, placement, tls)?;
        let address = listeners.address()?;
        // Whoever reads the ready line may stop us the moment after.
        let mut signals = Signals::catch()?;
        let ready = writeln!(
            io::stdout(),
            "throng {} is ready on {address} with {} cores: psql -h {} -p {} -U postgres",
            env!("CARGO_PKG_VERSION"),
            config.cores.len(),
            address.ip(),
            address.port()
        );
        if let Err(e) = ready {
            tracing::warn!(error = %e, "standard output takes no line that the server is ready");
        }
        let why = tokio::select! {
            biased;
            // It came while a standby was promoted.
            () = std::future::ready(()), if standby::stop_was_asked() => Some("SIGTERM"),
            _ = listeners.accept(&loops) => Some("listeners closed"),
            why = signals.until_stop(engine, config) => Some(why),
            () = restart.due() => None,
        };
        drop(listeners);
        let Some(why) = why else {
            loops.stop_within(FAREWELL);
            let stop = signals.until_stop(engine, config);
            return Ok(match tokio::time::timeout(restart.pause(), stop).await {
                Ok(_) => Ended::StoppedAfterFailure,
                Err(_) => Ended::StorageFailed,
            });
        };
        tracing::info!("{why}: shutting down");
        // Nothing else runs on this thread any more: it may wait for the loops.
        loops.stop();
        Ok(Ended::Stopped)
    })
}

/// The signals that the server answers to.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    /// From here on they no longer end the process by themselves.
    fn catch() -> Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for SIGTERM or SIGINT; rereads the configuration file at each SIGHUP.
    async fn until_stop(&mut self, engine: &Engine, config: &Config) -> &'static str {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return "SIGTERM",
                _ = self.interrupt.recv() => return "SIGINT",
                _ = self.hangup.recv() => {
                    let settings = config::file_settings(&config.data);
                    match settings.and_then(|settings| engine.reload(settings)) {
                        Ok(()) => tracing::info!("configuration file reread"),
                        Err(e) => tracing::error!(error = %e, "configuration file not applied"),
                    }
                }
            }
        }
    }
}

fn tls_of(certificate: &Path, key: &Path) -> Result<Tls> {
    let wrong = |path: &Path, e: &dyn std::fmt::Display| {
        Error::new(state::CONFIG_FILE_ERROR, format!("{}: {e}", path.display()))
    };
    let open = |path: &Path| {
        File::open(path)
            .map(BufReader::new)
            .map_err(|e| wrong(path, &e))
    };
    let certificates = rustls_pemfile::certs(&mut open(certificate)?)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| wrong(certificate, &e))?;
    let private = rustls_pemfile::private_key(&mut open(key)?)
        .map_err(|e| wrong(key, &e))?
        .ok_or_else(|| wrong(key, &"no private key in this file"))?;
    let own = certificates.first().cloned();
    let config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(certificates, private)
        .map_err(|e| wrong(certificate, &e))?;
    Ok(Tls::new(config, own.as_deref().unwrap_or_default()))
}
