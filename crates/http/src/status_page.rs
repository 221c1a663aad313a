//! [`StatusPage`] and [`PrometheusText`]: what a server counts, as handlers for routers.
//!
//! A site with routes answers with the same texts, without a handler (`routed.rs`).

use crate::date::Clock;
use crate::metrics::Metrics;
use crate::own_page;
use crate::plain;
use crate::responder::Terms;
use crate::response::Persistence;
use crate::static_files::page;
use selvedge_core::now;
use selvedge_handler::{Handler, Request, Response};
use std::sync::Arc;

/// The media type of the status page.
pub(crate) const PAGE_KIND: &str = "text/html; charset=utf-8";

/// The media type of the text for Prometheus.
pub(crate) const PROMETHEUS_KIND: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The live status page of a server, as a handler: requests, times, connections and what they wait
/// for. The page is plain HTML, and loads itself again every five seconds.
///
/// It tells what is counted in the [`Metrics`]. A site with routes counts all; an application is
/// counted by [`Site::with_counted_handler`](crate::Site::with_counted_handler).
///
/// # Examples
/// ```
/// use selvedge::http::{Metrics, PrometheusText, StatusPage};
/// use selvedge::web::{Router, testing::get};
///
/// selvedge::run_local(async {
///     let metrics = Metrics::new();
///     let router = Router::new()
///         .nest("/status", StatusPage::new(&metrics))
///         .nest("/metrics", PrometheusText::new(&metrics));
///     assert!(get(&router, "/status").await.text().contains("<h1>Server status</h1>"));
///     assert!(get(&router, "/metrics").await.text().contains("selvedge_connections 0\n"));
/// })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[derive(Clone, Debug)]
pub struct StatusPage(Arc<Metrics>);

impl StatusPage {
    /// The page of these counters.
    pub fn new(metrics: &Arc<Metrics>) -> StatusPage {
        StatusPage(metrics.clone())
    }
}

impl Handler for StatusPage {
    async fn call(&self, request: Request) -> Response {
        respond(&request, PAGE_KIND, &self.0.page(None))
    }
}

/// The counters of a server in the text format of Prometheus, version 0.0.4, as a handler.
///
/// It tells what is counted in the [`Metrics`]. [`StatusPage`] has an example.
#[derive(Clone, Debug)]
pub struct PrometheusText(Arc<Metrics>);

impl PrometheusText {
    /// The text of these counters.
    pub fn new(metrics: &Arc<Metrics>) -> PrometheusText {
        PrometheusText(metrics.clone())
    }
}

impl Handler for PrometheusText {
    async fn call(&self, request: Request) -> Response {
        respond(&request, PROMETHEUS_KIND, &self.0.prometheus())
    }
}

fn respond(request: &Request, kind: &str, text: &str) -> Response {
    let (clock, head) = (Clock::now(), plain::head(request));
    let request = match plain::parse(&head) {
        Ok(request) => request,
        Err(status) => return page(status, &clock),
    };
    let terms = Terms { now: now(), clock: &clock, persistence: Persistence::Implied, client: None };
    let mut out = Vec::with_capacity(512 + text.len());
    own_page::put(kind, text, &request, &terms, &mut out);
    plain::response(&out, None, None)
}
