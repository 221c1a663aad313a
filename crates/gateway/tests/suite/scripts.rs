//! A directory of scripts, and requests to them without a socket.

use selvedge_core::round_robin_over;
use selvedge_gateway::{Cgi, ErrorLog};
use selvedge_handler::{Body, Caller, Handler, Request, Response};
use selvedge_io::EventLoop;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A directory with scripts.
pub(crate) struct Scripts {
    directory: tempfile::TempDir,
    /// What went to the error log.
    pub(crate) log: Arc<Mutex<Vec<String>>>,
}

impl Scripts {
    /// Scripts for `/bin/sh` with these names.
    pub(crate) fn new(scripts: &[(&str, &str)]) -> Scripts {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in scripts {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Scripts { directory, log: Arc::default() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn cgi(&self) -> Cgi {
        let log = self.log.clone();
        let log = ErrorLog::new(move |program, line| log.lock().unwrap().push(format!("{program}: {line}")));
        Cgi::new(self.path()).prefix("/cgi").error_log(log)
    }

    pub(crate) fn logged(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

pub(crate) fn request(method: &str, uri: &str, fields: &[(&str, &str)], body: impl Into<Body>) -> Request {
    let mut builder = Request::builder().method(method).uri(uri).header("host", "loom.example:8080");
    for (name, value) in fields {
        builder = builder.header(*name, *value);
    }
    builder.extension(Caller::new(Some("192.0.2.7".parse().unwrap()))).body(body.into()).unwrap()
}

pub(crate) fn get(uri: &str) -> Request {
    request("GET", uri, &[], Body::empty())
}

/// Status, fields and body of an answer, as text: `200 content-type=text/plain| body`.
pub(crate) async fn text_of(response: Response) -> String {
    let (parts, body) = response.into_parts();
    let line = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        format!("{name}={}|", value.to_str().unwrap())
    };
    let fields: String = parts.headers.iter().map(line).collect();
    match body.read_all(64 << 20).await {
        Ok(bytes) => format!("{} {fields} {}", parts.status.as_u16(), String::from_utf8_lossy(&bytes)),
        Err(error) => format!("{} {fields} broken: {error}", parts.status.as_u16()),
    }
}

/// Runs a thread with an event loop.
pub(crate) fn run<F: Future + 'static>(main: F) -> F::Output {
    round_robin_over(&mut EventLoop::new().unwrap(), main).unwrap()
}

/// What the handler answers.
pub(crate) fn ask(handler: impl Handler, request: Request) -> String {
    run(async move { text_of(handler.call(request).await).await })
}
