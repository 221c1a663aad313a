//! [`worker`]: one worker of the server, with a site of its own.

use super::limits::limited;
use super::listening::accept;
use super::lock::lock;
use super::server::{Changeable, Server, SiteKind};
use crate::handlers::WorkerHandlers;
use crate::stacked::Acceptor;
use crate::startup_error::StartupError;
use crate::systemd;
use selvedge_core::{detach_local, spawn_local};
use selvedge_http::{Config, LogFile, Reload, Routes, Severity, Site, Stop, report};
use selvedge_io::time::{sleep, timeout};
use selvedge_scope::{Selected, select};
use selvedge_site::Route;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How long what is logged may take to be written when the server ends.
const LOG_FLUSH: Duration = Duration::from_secs(5);

/// How often a worker that retires looks whether it is to stop.
const RETIRE_LOOK: Duration = Duration::from_millis(500);

/// One worker, to its end.
///
/// # Errors
/// A listener or the stack has failed.
pub(super) async fn worker(server: Server, index: usize) -> Result<(), StartupError> {
    let Server { site, config, stop, reload, nudge, shared } = server.clone();
    let log = lock(&shared.log).clone();
    let site = match site {
        SiteKind::Directory(tree) => Site::new(tree, config.clone(), log.clone()),
        SiteKind::Routes { metrics, .. } => {
            let gate = lock(&shared.gate).clone();
            let routing = lock(&shared.routing).clone().expect("a site with routes has them");
            let handlers = WorkerHandlers::new(shared.parts.clone());
            let handlers = Box::new(move |route: &Route| handlers.make(route));
            Site::with_routes(Routes { routing, metrics, gate, handlers }, config.clone(), log.clone())
        }
    };
    detach_local(renew(site.clone(), config, log, shared.clone(), reload));
    detach_local(notice(nudge));
    if let (Some(period), Some(_)) = (systemd::watchdog(), shared.beats.get(index)) {
        detach_local(beat(shared.clone(), index, period));
    }
    let (mut acceptors, mut stack) = (Vec::new(), None);
    let first = lock(&shared.listening).take(index);
    for (mut listeners, closed) in first {
        if let Some(own) = listeners.stack.take() {
            let (started, more) = own.start(&site, &stop)?;
            acceptors.extend(more);
            stack = Some(started);
        }
        acceptors.extend(accept(&site, listeners, &closed, &stop));
    }
    let later = spawn_local(accept_later(server, index, site.clone()));
    let result = accepted(acceptors, &stop).await;
    // All addresses of the start may be gone, and the server goes on at others.
    let later = later.await.map_err(StartupError::other);
    let result = match later {
        Ok(later) => result.and(accepted(later, &stop).await),
        Err(error) => result.and(Err(error)),
    };
    while shared.retires.load(Relaxed) {
        if timeout(RETIRE_LOOK, site.retire()).await.is_ok() {
            break;
        }
    }
    let drain = lock(&shared.started).as_ref().map_or(Duration::ZERO, |(options, _)| options.drain);
    if timeout(drain, site.drain()).await.is_err() {
        report(Severity::Warning, format_args!("{} connections were cut off", site.connections()));
        site.break_off().await;
    }
    if let Some(stack) = stack {
        stack.finish(drain).await;
    }
    if timeout(LOG_FLUSH, site.flush_log()).await.is_err() {
        report(
            Severity::Error,
            format_args!("the log takes too long to be written: its last lines are lost"),
        );
    }
    result
}

/// Accepts from the sockets that the worker with the number `index` gets later, until the server
/// stops. Then it closes all addresses. Returns the threads that accept.
async fn accept_later(server: Server, index: usize, site: Rc<Site>) -> Vec<Acceptor> {
    let (mut heard, mut acceptors) = (0, Vec::new());
    loop {
        let is_over = match select((server.reload.requested(&mut heard), server.stop.requested())).await {
            Selected::First(()) => false,
            Selected::Second(()) => true,
        };
        let more = lock(&server.shared.listening).take(index);
        for (listeners, closed) in more {
            acceptors.extend(accept(&site, listeners, &closed, &server.stop));
        }
        if is_over {
            lock(&server.shared.listening).close();
            return acceptors;
        }
    }
}

/// Gives the site new limits and routes, or none of its old contents, and a new log, after each
/// reload. `config` and `log` are those of the site at first.
async fn renew(
    site: Rc<Site>,
    config: Config,
    mut log: Option<Arc<LogFile>>,
    shared: Arc<Changeable>,
    reload: Reload,
) {
    let mut heard = 0;
    loop {
        reload.requested(&mut heard).await;
        if let Some((options, _)) = &*lock(&shared.started) {
            site.set_limits(&limited(config.clone(), options));
        }
        site.set_gate(lock(&shared.gate).clone());
        site.set_caches(&lock(&shared.caches));
        let routing = lock(&shared.routing).clone();
        match routing {
            Some(routing) => site.set_routing(routing),
            None => site.forget(),
        }
        let later = lock(&shared.log).clone();
        if later.as_ref().map(Arc::as_ptr) != log.as_ref().map(Arc::as_ptr) {
            site.set_log(later.clone()).await;
            log = later;
        }
    }
}

/// Makes the worker run now and then, so that it takes notice of an observer.
async fn notice(nudge: Reload) {
    let mut heard = 0;
    loop {
        nudge.requested(&mut heard).await;
    }
}

/// Counts as long as the worker runs.
async fn beat(shared: Arc<Changeable>, index: usize, period: Duration) {
    loop {
        shared.beats[index].fetch_add(1, Relaxed);
        sleep(period / 2).await;
    }
}

/// Waits until no acceptor runs, and gives the first failure.
async fn accepted(acceptors: Vec<Acceptor>, stop: &Stop) -> Result<(), StartupError> {
    let mut result = Ok(());
    for acceptor in acceptors {
        let accepted = acceptor.await.map_err(StartupError::other);
        let accepted = accepted.and_then(|accepted| accepted.map_err(StartupError::from));
        if accepted.is_err() {
            // A listener that has failed is no reason to serve by halves.
            stop.request();
        }
        result = result.and(accepted);
    }
    result
}
