//! [`EventStream`]: a stream of server-sent events (`text/event-stream`).

use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use selvedge_handler::{Body, IntoResponse, Out, Response};
use selvedge_io::time::timeout;
use std::error::Error;
use std::fmt::Write;
use std::time::Duration;

/// One event.
///
/// # Examples
/// ```
/// use selvedge::web::ServerEvent;
///
/// let event = ServerEvent::new("warp\nweft").id("7").name("cloth");
/// assert_eq!(event.to_string(), "event: cloth\nid: 7\ndata: warp\ndata: weft\n\n");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerEvent {
    fields: String,
}

impl ServerEvent {
    /// An event with this text, of as many lines as it has.
    pub fn new(data: &str) -> ServerEvent {
        let mut event = ServerEvent::default();
        for line in data.split(['\n', '\r']) {
            event.field("data", line);
        }
        event
    }

    /// The name of the event; `message` without it. Line ends in it are dropped.
    pub fn name(mut self, name: &str) -> ServerEvent {
        let fields = std::mem::take(&mut self.fields);
        self.field("event", &one_line(name));
        self.fields.push_str(&fields);
        self
    }

    /// The identity of the event, which a client that connects again sends as `Last-Event-ID`. Line
    /// ends and zero bytes in it are dropped.
    pub fn id(mut self, id: &str) -> ServerEvent {
        let fields = std::mem::take(&mut self.fields);
        self.field("id", &one_line(id));
        self.fields.push_str(&fields);
        self
    }

    /// How long the client waits before it connects again.
    pub fn retry(mut self, pause: Duration) -> ServerEvent {
        self.field("retry", &pause.as_millis().to_string());
        self
    }

    fn field(&mut self, name: &str, value: &str) {
        writeln!(self.fields, "{name}: {value}").expect("a string takes all texts");
    }
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r', '\0'], "")
}

impl std::fmt::Display for ServerEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.fields)
    }
}

/// A response that goes on: events, as the program puts them.
///
/// # Examples
/// ```
/// use selvedge::web::{ServerEvent, EventStream, Router, testing::get};
///
/// async fn count() -> EventStream {
///     EventStream::produce(async |mut out| {
///         for number in 1..=2 {
///             out.put(ServerEvent::new(&number.to_string())).await;
///         }
///         Ok::<(), std::io::Error>(())
///     })
/// }
///
/// selvedge::run_local(async {
///     let router = Router::new().get("/count", count);
///     assert_eq!(get(&router, "/count").await.text(), "data: 1\n\ndata: 2\n\n");
/// })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[derive(Debug)]
pub struct EventStream(Body);

/// Where the block of [`EventStream::produce`] puts its events.
#[derive(Debug)]
pub struct EventOut(Out);

impl EventOut {
    /// Puts an event. It waits until the one before has been taken.
    pub async fn put(&mut self, event: ServerEvent) {
        self.0.put(event.to_string()).await;
    }

    /// Waits for `wait`, and keeps the connection alive meanwhile: whenever `pause` has passed, the
    /// client gets a comment, which it ignores. So a proxy does not take the connection for dead,
    /// and a client that is gone is noticed.
    pub async fn alive<T>(&mut self, pause: Duration, wait: impl Future<Output = T>) -> T {
        let mut wait = std::pin::pin!(wait);
        loop {
            match timeout(pause, wait.as_mut()).await {
                Ok(output) => return output,
                Err(_) => self.0.put(":\n\n").await,
            }
        }
    }
}

impl EventStream {
    /// The events that `block` puts. The block is dropped when the client is gone.
    pub fn produce<E>(block: impl AsyncFnOnce(EventOut) -> Result<(), E> + 'static) -> EventStream
    where
        E: Into<Box<dyn Error + Send + Sync>> + 'static,
    {
        EventStream(Body::produce(async move |out| block(EventOut(out)).await))
    }
}

impl IntoResponse for EventStream {
    fn into_response(self) -> Response {
        let mut response = Response::new(self.0);
        let fields = response.headers_mut();
        fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}
