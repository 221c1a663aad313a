//! [`Routing`]: a table of routes, ready to be served. All workers share it.
//!
//! A program makes one when it has read its configuration, before it serves by it, so that a
//! directory that is not there is a mistake of the configuration and not of a request. `routed.rs`
//! answers requests by it. A reload makes a new one; requests that began by the old one end by it.

use crate::document_root::DocumentRoot;
use selvedge_site::rate::Limiter;
use selvedge_site::{Route, RouteAction, RouteTable, Rules, ServedDirectory};
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The addresses of which a rate is kept for each route.
const ADDRESSES_MAX: usize = 16 << 10;

/// A table of routes with the directories that it names.
pub struct Routing {
    pub(crate) table: RouteTable,
    /// By host and route.
    places: Vec<Vec<RoutePlace>>,
    /// The directories, each once.
    pub(crate) directories: Vec<DocumentRoot>,
}

/// The parts of a route that are made before it is served.
#[derive(Default)]
pub(crate) struct RoutePlace {
    /// The directory of its files.
    pub(crate) files: Option<usize>,
    /// Whether its files are sent as they are, and no rule asks for more.
    pub(crate) is_bare: bool,
    /// The directory of its pages for errors.
    pub(crate) error_pages: Option<usize>,
    /// The buckets of its rate.
    pub(crate) limiter: Option<Mutex<Limiter>>,
}

/// A directory of a route that cannot be served.
#[derive(Debug)]
pub struct RoutingError {
    /// The line of the configuration on which the route begins.
    pub line: usize,
    /// The error, with the path.
    pub error: io::Error,
}

impl fmt::Display for RoutingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for RoutingError {}

impl Routing {
    /// Opens the directories of `table`.
    ///
    /// # Errors
    /// The first that is not there or cannot be searched.
    pub fn new(table: RouteTable) -> Result<Arc<Routing>, RoutingError> {
        let mut routing =
            Routing { table: RouteTable::default(), places: Vec::new(), directories: Vec::new() };
        let mut known = HashMap::new();
        for host in &table.hosts {
            let places = host.routes.iter().map(|route| routing.place(route, &mut known));
            let places = places.collect::<Result<_, _>>()?;
            routing.places.push(places);
        }
        Ok(Arc::new(Routing { table, ..routing }))
    }

    fn place(
        &mut self,
        route: &Route,
        known: &mut HashMap<PathBuf, usize>,
    ) -> Result<RoutePlace, RoutingError> {
        let naming = |error| RoutingError { line: route.line, error };
        let files = match &route.action {
            RouteAction::Directory(directory) => {
                Some(self.directory(&directory.path, known).map_err(naming)?)
            }
            _ => None,
        };
        let error_pages = match &route.rules.error_pages {
            Some(path) => Some(self.directory(path, known).map_err(naming)?),
            None => None,
        };
        let limiter = route.rules.rate.map(|rate| Mutex::new(Limiter::new(rate, ADDRESSES_MAX)));
        Ok(RoutePlace { files, is_bare: is_bare(route), error_pages, limiter })
    }

    fn directory(&mut self, path: &Path, known: &mut HashMap<PathBuf, usize>) -> io::Result<usize> {
        if let Some(&at) = known.get(path) {
            return Ok(at);
        }
        self.directories.push(DocumentRoot::new(path)?);
        let at = self.directories.len() - 1;
        known.insert(path.to_owned(), at);
        Ok(at)
    }

    /// The table.
    pub fn table(&self) -> &RouteTable {
        &self.table
    }

    pub(crate) fn place_of(&self, (host, route): (usize, usize)) -> &RoutePlace {
        &self.places[host][route]
    }
}

/// Whether a route sends the files of a directory as they are, by their paths, and has no rule that
/// concerns a file that is there.
fn is_bare(route: &Route) -> bool {
    let RouteAction::Directory(directory) = &route.action else { return false };
    // All fields are named, so that a new one is thought of here.
    let ServedDirectory { path: _, index: _, listing: _, try_files, precompressed, compression, language } =
        directory;
    let Rules { access, auth, rate, headers, cache_control, cors, error_pages: _ } = &route.rules;
    let is_by_path = try_files.is_empty() && !precompressed && compression.is_none() && language.is_none();
    let is_open = access.allow.is_empty() && access.deny.is_empty() && auth.is_none() && rate.is_none();
    is_by_path && is_open && headers.is_empty() && cache_control.is_empty() && cors.is_none()
}

impl fmt::Debug for Routing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Routing").field(&self.table).finish()
    }
}
