//! [`Counted`]: a handler of which the requests are counted, for a site without routes.
//!
//! The handlers of a site with routes are counted with their rules (`routed/guarded.rs`).

use crate::metrics::WorkerMetrics;
use selvedge_core::now;
use selvedge_handler::{Handler, PlainCall, PlainOutcome, PlainRequest, Request, Response};
use std::sync::Arc;

/// A handler of which each response is counted.
pub(crate) struct Counted<H> {
    pub(crate) inner: H,
    pub(crate) counters: Arc<WorkerMetrics>,
}

impl<H: Handler> Handler for Counted<H> {
    async fn call(&self, request: Request) -> Response {
        let began = now();
        let response = self.inner.call(request).await;
        let bytes = response.body().len().unwrap_or(0);
        self.counters.count(response.status().as_u16(), bytes, now().since(began));
        response
    }

    fn call_plain(&self, request: &PlainRequest<'_>) -> Option<PlainCall> {
        let began = now();
        let inner = self.inner.call_plain(request)?;
        let counters = self.counters.clone();
        Some(Box::pin(async move {
            let outcome = inner.await;
            let (status, bytes) = match &outcome {
                PlainOutcome::Plain(answer) => (answer.status, answer.content.len() as u64),
                PlainOutcome::Response(response) => (response.status(), response.body().len().unwrap_or(0)),
            };
            counters.count(status.as_u16(), bytes, now().since(began));
            outcome
        }))
    }
}
