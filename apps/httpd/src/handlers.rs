//! The handlers of routes that are answered by other programs: [`make`].
//!
//! Each worker makes its own when it takes a configuration over, so their pools and counts are the
//! worker's. The rules of a route stand around its handler (`routed/guarded.rs` in
//! `selvedge-http`), and give the request of a proxy its path.

use std::rc::Rc;

use selvedge_client::Address;
use selvedge_gateway::{Cgi, FastCgi, Proxy, Upstreams};
use selvedge_http::DynHandler;
use selvedge_site::{PathPattern, Route, RouteAction};

/// The handler of `route`, if another program answers for it.
pub(crate) fn make(route: &Route) -> Option<Rc<dyn DynHandler>> {
    let prefix = match &route.pattern {
        PathPattern::Below(path) => String::from_utf8_lossy(path).trim_end_matches('/').to_owned(),
        PathPattern::Exact(_) | PathPattern::Glob(_) => String::new(),
    };
    match &route.action {
        RouteAction::Proxy { upstreams, .. } => {
            Some(Rc::new(Proxy::new(Upstreams::new(upstreams.iter().map(|one| address(one))))))
        }
        RouteAction::Cgi { directory, index } => {
            let cgi = Cgi::new(directory).prefix(prefix);
            Some(Rc::new(match index {
                Some(index) => cgi.index(index),
                None => cgi,
            }))
        }
        RouteAction::FastCgi { address: at, root, index } => {
            // The end of the index says what is a script.
            let suffix = index.rfind('.').map_or("", |dot| &index[dot..]);
            Some(Rc::new(FastCgi::scripts(address(at), root, suffix).prefix(prefix).index(index)))
        }
        RouteAction::Directory(_)
        | RouteAction::Redirect { .. }
        | RouteAction::Status
        | RouteAction::Metrics
        | RouteAction::Answer(_) => None,
    }
}

/// An address as the configuration has it: `host:port` or `unix:path`.
fn address(text: &str) -> Address {
    match text.strip_prefix("unix:") {
        Some(path) => Address::unix(path),
        None => Address::tcp(text),
    }
}
