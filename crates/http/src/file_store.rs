//! [`FileStore`]: where files may lie besides a directory, and [`answer_from`], which answers for
//! them as the server of a directory does.

use crate::conditional::ETag;
use crate::date::{self, Clock};
use crate::error_page::{self, Extra};
use crate::file_body::multipart;
use crate::mime;
use crate::plain;
use crate::representation::{Answer, Content, Representation};
use crate::response::Persistence;
use crate::status::Status;
use crate::target;
use bytes::Bytes;
use selvedge_handler::{Body, Mount, Request, Response, Severity, report};
use selvedge_io::fs::Handle;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

/// The file that stands for its directory.
const INDEX: &str = "index.html";

/// A place where files lie: memory, an archive, a database.
///
/// Names are relative to the top: `css/loom.css`. They have no component that is empty, `.`, `..`
/// or hidden. The type of a file follows from the end of its name.
///
/// # Paper
/// \[Mighty\] "Evolution": the HTTP logic makes no assumption about the storage behind it.
pub trait FileStore: 'static {
    /// The file with this name, if there is one.
    ///
    /// # Errors
    /// The request is answered with 503.
    fn find(&self, name: &str) -> impl Future<Output = io::Result<Option<StoredFile>>>;

    /// Whether there are files below this name, so that a request for it is redirected to the name
    /// with a `/` at its end.
    ///
    /// # Errors
    /// The request is answered with 503.
    fn is_directory(&self, name: &str) -> impl Future<Output = io::Result<bool>>;
}

/// A file of a [`FileStore`].
#[derive(Clone, Debug)]
pub struct StoredFile {
    /// Its content.
    pub content: StoredContent,
    /// When it was modified last.
    pub modified: SystemTime,
    /// A number that no other content of this file has: for its entity tag.
    pub version: u64,
}

/// The content of a [`StoredFile`].
#[derive(Clone, Debug)]
pub enum StoredContent {
    /// Bytes in memory.
    Bytes(Bytes),
    /// A span of an open file.
    File(Arc<Handle>, Range<u64>),
}

impl StoredContent {
    fn len(&self) -> u64 {
        match self {
            StoredContent::Bytes(bytes) => bytes.len() as u64,
            StoredContent::File(_, span) => span.end - span.start,
        }
    }

    fn body(&self, start: u64, end: u64) -> Body {
        match self {
            StoredContent::Bytes(bytes) => bytes.slice(start as usize..end as usize).into(),
            StoredContent::File(file, span) => Body::file(file.clone(), span.start + start..span.start + end),
        }
    }
}

impl From<Bytes> for StoredContent {
    fn from(bytes: Bytes) -> StoredContent {
        StoredContent::Bytes(bytes)
    }
}

/// Answers `request` from `store`, with conditions, ranges and redirects to directories.
pub async fn answer_from(store: &impl FileStore, request: Request) -> Response {
    let (head, mount) = (plain::head(&request), request.extensions().get::<Mount>());
    let (clock, mut out, mut body) = (Clock::now(), Vec::with_capacity(1024), None);
    match plain::parse(&head) {
        Err(status) => {
            let method = crate::request::Method::Get;
            error_page::put(status, Extra::None, method, Persistence::Implied, &clock, &mut out);
        }
        Ok(request) => {
            let answered = match error_page::instead_of_file(&request) {
                Some(status) => Err(status),
                None => look_up(store, request.path).await,
            };
            let page = |status, extra, out: &mut Vec<u8>| {
                error_page::put(status, extra, request.method, Persistence::Implied, &clock, out);
            };
            match answered {
                Err(status) => page(status, Extra::None, &mut out),
                Ok(StoredName::Directory(name)) => {
                    let mut location = Vec::new();
                    target::directory_location(name.as_bytes(), request.query, &mut location);
                    page(Status::MOVED_PERMANENTLY, Extra::Location(&location), &mut out);
                }
                Ok(StoredName::File(name, file)) => {
                    let (len, now) = (file.content.len(), clock.second());
                    let modified = date::seconds(file.modified);
                    let etag = ETag::of_file(file.version, (0, 0), len, now);
                    let kind = mime::by_name(name.as_bytes());
                    let seconds = i64::try_from(modified).unwrap_or(-1);
                    let representation = Representation::new(kind, len, seconds, etag, now);
                    let Answer { content, .. } =
                        representation.answer(&request, Persistence::Implied, &clock, &mut out);
                    body = match content {
                        Content::Nothing => None,
                        Content::Span(span) => Some(file.content.body(span.start, span.end)),
                        Content::Parts(parts) => {
                            let spans = parts.spans().iter();
                            let bodies = spans.map(|span| file.content.body(span.start, span.end)).collect();
                            Some(multipart(parts, bodies))
                        }
                    };
                }
            }
        }
    }
    plain::response(&out, body, mount)
}

enum StoredName {
    File(String, StoredFile),
    Directory(String),
}

async fn look_up(store: &impl FileStore, path: &[u8]) -> Result<StoredName, Status> {
    let mut name = Vec::new();
    target::resolve(path, &mut name)?;
    let mut name = String::from_utf8(name).map_err(|_| Status::NOT_FOUND)?;
    if name.is_empty() || name.ends_with('/') {
        name.push_str(INDEX);
    }
    let unavailable = |error: io::Error| {
        report(Severity::Error, format_args!("/{name}: {error}", name = name.escape_debug()));
        Status::SERVICE_UNAVAILABLE
    };
    match store.find(&name).await.map_err(unavailable)? {
        Some(file) => Ok(StoredName::File(name, file)),
        None if store.is_directory(&name).await.map_err(unavailable)? => Ok(StoredName::Directory(name)),
        None => Err(Status::NOT_FOUND),
    }
}
