//! The handlers of routes that are answered by other programs: [`WorkerHandlers`] makes them for a
//! worker, of the [`SharedParts`] that all workers of the process have.
//!
//! What the workers share is what counts for a route as a whole: which of its servers are in order
//! and how many programs run. A worker has connections of its own to the servers, because they
//! belong to its event loop. Both are kept when a configuration is read again in which the route is
//! the same, so a reload closes no connection and forgets no server that has failed.
//!
//! The rules of a route stand around its handler (`routed/guarded.rs` in `selvedge-http`), and give
//! the request of a proxy its path.

use crate::configuration::OpenArchives;
use selvedge_client::{Address, Client};
use selvedge_gateway::{Balance, Cgi, FastCgi, ProgramSlots, Proxy, Upstreams};
use selvedge_http::{
    DynHandler, Handler, IntoResponse, Mount, OwnMetric, Request, Response, StatusCode, ZipStore, answer_from,
};
use selvedge_site::{Balancing, GatewayTerms, PathPattern, Route, RouteAction, RouteTable};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What a route's handler is known by: the action, and the front of the paths.
type HandlerKey = String;

fn key(route: &Route) -> HandlerKey {
    format!("{}\0{:?}", prefix(&route.pattern), route.action)
}

/// The part of a handler that all workers share.
#[derive(Clone, Debug)]
enum SharedPart {
    Upstreams { upstreams: Upstreams, health: Option<(String, Duration)>, times: GatewayTerms },
    Programs(ProgramSlots),
    Archive(ZipStore),
}

/// The parts of all handlers that the workers of a process share, by the newest configuration.
#[derive(Debug, Default)]
pub(crate) struct SharedParts {
    parts: Mutex<HashMap<HandlerKey, SharedPart>>,
    /// A number that grows with each configuration.
    generation: AtomicU64,
}

/// Servers that are to be asked regularly whether they are in order.
#[derive(Clone, Debug)]
pub(crate) struct WatchedServers {
    upstreams: Upstreams,
    client: Client,
    path: String,
    period: Duration,
}

impl WatchedServers {
    /// Asks them for ever.
    pub(crate) async fn watch(self) {
        self.upstreams.watch(&self.client, &self.path, self.period).await;
    }
}

impl SharedParts {
    /// Makes the parts for the routes of `table`. The parts of routes that stay the same are
    /// kept. The caller does this before a worker makes handlers for the table.
    pub(crate) fn renew(&self, table: &RouteTable, archives: &OpenArchives) {
        let mut parts = self.lock();
        let mut before = std::mem::take(&mut *parts);
        for (_, route) in table.routes() {
            let key = key(route);
            if parts.contains_key(&key) {
                continue;
            }
            let kept = before.remove(&key);
            let part = match &route.action {
                // Another file may be in the archive's place.
                RouteAction::Archive(path) => archives.get(path).cloned().map(SharedPart::Archive),
                action => kept.or_else(|| SharedPart::new(action)),
            };
            if let Some(part) = part {
                parts.insert(key, part);
            }
        }
        self.generation.fetch_add(1, Relaxed);
    }

    /// The servers that are to be watched, by the names of their handlers.
    pub(crate) fn watched(&self) -> HashMap<HandlerKey, WatchedServers> {
        let watched = |(key, part): (&HandlerKey, &SharedPart)| match part {
            SharedPart::Upstreams { upstreams, health: Some((path, period)), times } => {
                let client = client(times);
                let (upstreams, path, period) = (upstreams.clone(), path.clone(), *period);
                Some((key.clone(), WatchedServers { upstreams, client, path, period }))
            }
            _ => None,
        };
        self.lock().iter().filter_map(watched).collect()
    }

    /// How the servers behind are, and the programs that run, by route. Routes with the same front
    /// of their paths are told together.
    pub(crate) fn told(&self) -> Vec<OwnMetric> {
        let mut servers: BTreeMap<(String, String), (bool, u64)> = BTreeMap::new();
        let mut programs: BTreeMap<(String, &str), u64> = BTreeMap::new();
        for (key, part) in self.lock().iter() {
            let route = key.split('\0').next().filter(|front| !front.is_empty()).unwrap_or("/");
            match part {
                SharedPart::Upstreams { upstreams, .. } => {
                    for (address, is_in_order, under_way) in upstreams.states() {
                        let server = servers.entry((route.to_owned(), address.to_string()));
                        let (all_in_order, all_under_way) = server.or_insert((true, 0));
                        *all_in_order &= is_in_order;
                        *all_under_way += under_way as u64;
                    }
                }
                SharedPart::Programs(slots) => {
                    let counts =
                        [("running", u64::from(slots.running())), ("waiting", slots.waiting() as u64)];
                    for (state, count) in counts {
                        *programs.entry((route.to_owned(), state)).or_default() += count;
                    }
                }
                SharedPart::Archive(_) => {}
            }
        }
        let of_servers = |value: fn(&(bool, u64)) -> u64| {
            let labels = |(route, server): &(String, String)| {
                vec![("route", route.clone()), ("server", server.clone())]
            };
            servers.iter().map(|(of, state)| (labels(of), value(state))).collect()
        };
        let of_programs = programs
            .iter()
            .map(|((route, state), count)| {
                (vec![("route", route.clone()), ("state", (*state).to_owned())], *count)
            })
            .collect();
        let metrics = [
            (
                "upstream_up",
                "Whether a server behind gets requests: 0 if it is out of order.",
                of_servers(|state| u64::from(state.0)),
            ),
            (
                "upstream_requests",
                "Requests that are under way at a server behind.",
                of_servers(|state| state.1),
            ),
            ("programs", "CGI programs, and requests that wait for one.", of_programs),
        ];
        let metrics = metrics.map(|(name, help, samples)| OwnMetric { name, help, samples });
        metrics.into_iter().filter(|metric| !metric.samples.is_empty()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<HandlerKey, SharedPart>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharedPart {
    fn new(action: &RouteAction) -> Option<SharedPart> {
        match action {
            RouteAction::Proxy { upstreams, balancing, health, times, .. } => {
                let policy = match balancing {
                    Balancing::RoundRobin => Balance::RoundRobin,
                    Balancing::LeastConnections => Balance::LeastConnections,
                    Balancing::Client => Balance::ByClient,
                    Balancing::Path => Balance::ByPath,
                };
                let upstreams = Upstreams::new(upstreams.iter().map(|one| address(one)))
                    .policy(policy)
                    .failures(health.failures)
                    .pause(health.pause);
                let health = health.path.clone().map(|path| (path, health.period));
                Some(SharedPart::Upstreams { upstreams, health, times: *times })
            }
            RouteAction::Cgi { programs, .. } => {
                let slots = ProgramSlots::new(programs.at_once);
                Some(SharedPart::Programs(slots.queue(programs.queue).patience(programs.patience)))
            }
            _ => None,
        }
    }
}

/// The handlers of one worker.
pub(crate) struct WorkerHandlers {
    shared: Arc<SharedParts>,
    made: RefCell<MadeHandlers>,
}

#[derive(Default)]
struct MadeHandlers {
    /// The configuration for which `now` is.
    generation: u64,
    now: HashMap<HandlerKey, Rc<dyn DynHandler>>,
    /// The handlers of the configuration before it, as far as `now` does not have them.
    before: HashMap<HandlerKey, Rc<dyn DynHandler>>,
}

impl WorkerHandlers {
    pub(crate) fn new(shared: Arc<SharedParts>) -> WorkerHandlers {
        WorkerHandlers { shared, made: RefCell::default() }
    }

    /// The handler of `route`, if another program answers for it.
    pub(crate) fn make(&self, route: &Route) -> Option<Rc<dyn DynHandler>> {
        let mut made = self.made.borrow_mut();
        let generation = self.shared.generation.load(Relaxed);
        if made.generation != generation {
            made.generation = generation;
            made.before = std::mem::take(&mut made.now);
        }
        let key = key(route);
        if let Some(handler) = made.now.get(&key) {
            return Some(handler.clone());
        }
        let kept = made.before.remove(&key);
        // An archive is in the part, so its handler is made anew.
        let handler = match kept.filter(|_| !matches!(route.action, RouteAction::Archive(_))) {
            Some(handler) => handler,
            None => {
                // The routes may be those of a configuration that was replaced meanwhile.
                let part = self.shared.lock().get(&key).cloned();
                handler(route, part.or_else(|| SharedPart::new(&route.action)).as_ref())?
            }
        };
        made.now.insert(key, handler.clone());
        Some(handler)
    }
}

fn handler(route: &Route, part: Option<&SharedPart>) -> Option<Rc<dyn DynHandler>> {
    let prefix = prefix(&route.pattern);
    match (&route.action, part) {
        (RouteAction::Proxy { .. }, Some(SharedPart::Upstreams { upstreams, times, .. })) => {
            let proxy = Proxy::new(upstreams.clone()).client(client(times));
            Some(Rc::new(proxy.outlives_client(times.outlives_client)))
        }
        (RouteAction::Cgi { directory, index, programs }, Some(SharedPart::Programs(slots))) => {
            let cgi = Cgi::new(directory).prefix(prefix).slots(slots.clone()).time_limit(programs.time);
            let cgi = cgi.outlives_client(programs.outlives_client);
            Some(Rc::new(match index {
                Some(index) => cgi.index(index),
                None => cgi,
            }))
        }
        (RouteAction::Archive(_), Some(SharedPart::Archive(store))) => {
            Some(Rc::new(MountedArchive { store: store.clone(), prefix }))
        }
        (RouteAction::FastCgi { address: at, root, index, times }, _) => {
            // The end of the index says what is a script.
            let suffix = index.rfind('.').map_or("", |dot| &index[dot..]);
            let scripts = FastCgi::scripts(address(at), root, suffix).prefix(prefix).index(index);
            let scripts = scripts.connect_limit(times.connect).send_limit(times.send).read_limit(times.read);
            Some(Rc::new(scripts.outlives_client(times.outlives_client)))
        }
        _ => None,
    }
}

/// An archive with names that begin behind the front of a route's paths.
struct MountedArchive {
    store: ZipStore,
    prefix: String,
}

impl Handler for MountedArchive {
    async fn call(&self, mut request: Request) -> Response {
        let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
        if let Some(rest) = target.strip_prefix(&self.prefix) {
            let rest = if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") };
            match rest.parse() {
                Ok(uri) => *request.uri_mut() = uri,
                Err(_) => return StatusCode::BAD_REQUEST.into_response(),
            }
            request.extensions_mut().insert(Mount(self.prefix.clone()));
        }
        answer_from(&self.store, request).await
    }
}

fn client(times: &GatewayTerms) -> Client {
    let builder = Client::builder().connect_limit(times.connect).send_limit(times.send);
    builder.answer_limit(times.answer).read_limit(times.read).build()
}

fn prefix(pattern: &PathPattern) -> String {
    match pattern {
        PathPattern::Below(path) => String::from_utf8_lossy(path).trim_end_matches('/').to_owned(),
        PathPattern::Exact(_) | PathPattern::Glob(_) => String::new(),
    }
}

/// An address as the configuration has it: `host:port` or `unix:path`.
fn address(text: &str) -> Address {
    match text.strip_prefix("unix:") {
        Some(path) => Address::unix(path),
        None => Address::tcp(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn table(text: &str) -> RouteTable {
        selvedge_site::read("site.toml", text, Path::new("/"), |_| unreachable!()).unwrap().1
    }

    fn all(table: &RouteTable, worker: &WorkerHandlers) -> Vec<Rc<dyn DynHandler>> {
        table.routes().filter_map(|(_, route)| worker.make(route)).collect()
    }

    #[test]
    fn what_stays_the_same_is_kept() {
        let (shared, none) = (Arc::new(SharedParts::default()), OpenArchives::new());
        let worker = WorkerHandlers::new(shared.clone());
        let other = WorkerHandlers::new(shared.clone());
        let proxy = "[[route]]\npath = '/a/'\nproxy = 'a:1'\nhealth = { path = '/up' }\n";
        let (cgi, static_files) = ("[[route]]\npath = '/c/'\ncgi = 'bin'\n", "[[route]]\ndirectory = '.'\n");
        let first = table(&[proxy, cgi, static_files].concat());
        shared.renew(&first, &none);
        let handlers = all(&first, &worker);
        assert_eq!((handlers.len(), all(&first, &other).len(), shared.watched().len()), (2, 2, 1));
        // A route changes its place and its rules, and the other one its action.
        let second = table(&[cgi, "programs = { at_once = 3 }\n", proxy, "deny = ['all']\n"].concat());
        shared.renew(&second, &none);
        let later = all(&second, &worker);
        assert!(Rc::ptr_eq(&handlers[0], &later[1]) && !Rc::ptr_eq(&handlers[1], &later[0]));
        assert_eq!(shared.lock().len(), 2);
        let told = shared.told();
        let told = told.iter().flat_map(|metric| metric.samples.iter().map(|sample| (metric.name, sample)));
        let told: Vec<_> = told.map(|(name, (labels, value))| (name, labels[0].1.as_str(), *value)).collect();
        assert_eq!(
            told,
            [
                ("upstream_up", "/a", 1),
                ("upstream_requests", "/a", 0),
                ("programs", "/c", 0),
                ("programs", "/c", 0)
            ]
        );
        // What is gone for one configuration is made anew.
        let third = table(static_files);
        shared.renew(&third, &none);
        assert!(all(&third, &worker).is_empty() && shared.watched().is_empty());
        assert!(worker.made.borrow().now.is_empty());
        shared.renew(&second, &none);
        assert!(!Rc::ptr_eq(&later[1], &all(&second, &worker)[1]));
    }
}
