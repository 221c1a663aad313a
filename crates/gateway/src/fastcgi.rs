//! [`FastCgi`]: the handler that has an application answer, by FastCGI.
//!
//! A request goes this way. [`FastCgi::call`](Handler::call) finds the script that the path names
//! and takes a connection from the pool. `talk.rs` writes the parameters and the request's body,
//! and reads the application's output, which is that of a CGI program: `cgi/head.rs` reads its
//! head.
//! `record.rs` does no I/O. `short_way.rs` does the same for a request that stays bytes.

pub(crate) mod keeping;
pub(crate) mod record;
mod scripts;
mod short_way;
mod talk;

use crate::cgi::head::{self, ProgramHead};
use crate::cgi::place::Place;
use crate::cgi::redirects::LocalRedirects;
use crate::cgi::spool::{Spool, SpoolFailure};
use crate::cgi::variables::{ProgramTarget, ServerNames, ToldRequest, each_fixed_variable, each_variable_of};
use crate::departure::attended;
use crate::error_log::ErrorLog;
use crate::proxy::{is_idempotent, plain};
use bytes::Bytes;
use http::request::Parts;
use http::{Method, StatusCode};
use keeping::ConnectionKeeping;
use scripts::KnownScripts;
use selvedge_client::Address;
use selvedge_handler::{
    Body, Caller, DynHandler, Handler, PlainCall, PlainRequest, Request, Response, has_content,
};
use std::cell::OnceCell;
use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use talk::{ApplicationFailure, Limits, OutgoingRequest, Scratch, Talk, TalkTerms};

/// An application behind FastCGI: PHP-FPM, or any program that speaks the protocol.
///
/// Either the application is [one program](FastCgi::new) that answers all paths, or it runs
/// [scripts](FastCgi::scripts) below a directory.
///
/// Connections are kept and used again. Bodies stream in both directions; a request's body of
/// unknown length is read first, into [a file](FastCgi::spool_directory) if it is long. When the
/// client is gone, the application is told to give the request up, and the connection is closed. A
/// client that closes its direction of the connection is gone, unless the application [is to go
/// on](FastCgi::outlives_client).
///
/// The answer is 404 if no script has that name, 502 if the application cannot be reached or gives
/// no valid answer, 503 if it says that it is overloaded, and 504 if a time limit has passed.
///
/// A clone shares the pool.
///
/// # Examples
/// PHP-FPM, with a script that answers what is no file:
/// ```
/// use selvedge::client::Address;
/// use selvedge::gateway::FastCgi;
///
/// let php = FastCgi::scripts(Address::unix("/run/php/php-fpm.sock"), "/srv/www", ".php")
///     .index("index.php")
///     .fallback("index.php");
/// # let _ = php;
/// ```
#[derive(Clone)]
pub struct FastCgi(Rc<ApplicationAccess>);

/// What all clones of a handler share.
#[derive(Clone)]
struct ApplicationAccess {
    address: Address,
    keeping: Arc<ConnectionKeeping>,
    place: Place,
    /// The end of the names of scripts; `None` if the application is one program.
    suffix: Option<String>,
    fallback: Option<String>,
    known: Rc<KnownScripts>,
    scratch: Scratch,
    server: ServerNames,
    /// The parameters that all requests share, when they have been made.
    fixed: OnceCell<Vec<u8>>,
    connect_limit: Duration,
    limits: Limits,
    spool: Spool,
    outlives_client: bool,
    log: ErrorLog,
    redirects: LocalRedirects,
}

impl FastCgi {
    /// An application that answers all paths: the whole path is its `PATH_INFO`.
    pub fn new(address: Address) -> FastCgi {
        FastCgi(Rc::new(ApplicationAccess {
            address,
            keeping: ConnectionKeeping::new(64, Duration::from_secs(1)),
            place: Place::new(PathBuf::new()),
            suffix: None,
            fallback: None,
            known: Rc::default(),
            scratch: Scratch::default(),
            server: ServerNames::default(),
            fixed: OnceCell::new(),
            connect_limit: Duration::from_secs(5),
            limits: Limits { send: Duration::from_secs(30), read: Duration::from_secs(60) },
            spool: Spool::default(),
            outlives_client: false,
            log: ErrorLog::default(),
            redirects: LocalRedirects::default(),
        }))
    }

    /// Its parts, to be changed while it is made.
    fn parts(&mut self) -> &mut ApplicationAccess {
        let access = Rc::make_mut(&mut self.0);
        access.fixed.take();
        access
    }

    /// An application that runs the scripts below a directory, which have names that end in
    /// `suffix`. The first such name of a path is the script; what follows is its `PATH_INFO`. Only
    /// what is a file in this directory is asked for; a file that was there is taken to stay for a
    /// second. A relative path counts from the directory
    /// that is the current one at this call.
    pub fn scripts(address: Address, directory: impl AsRef<Path>, suffix: impl Into<String>) -> FastCgi {
        let mut scripts = FastCgi::new(address);
        scripts.parts().place = Place::new(directory.as_ref().to_path_buf());
        scripts.parts().suffix = Some(suffix.into());
        scripts
    }

    /// The front of the paths that lead to the application. If not set, it is `/`.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> FastCgi {
        self.parts().place.set_prefix(prefix.into());
        self
    }

    /// The script for a path that ends in `/`. If not set, such a path is answered 404.
    #[must_use]
    pub fn index(mut self, name: impl Into<String>) -> FastCgi {
        self.parts().place.index = Some(name.into());
        self
    }

    /// The script, by its path below the directory, for all paths that name no script.
    #[must_use]
    pub fn fallback(mut self, script: impl Into<String>) -> FastCgi {
        self.parts().fallback = Some(script.into());
        self
    }

    /// The longest time for a connection to be made. 5 s if not set.
    #[must_use]
    pub fn connect_limit(mut self, limit: Duration) -> FastCgi {
        self.parts().connect_limit = limit;
        self
    }

    /// The longest time for which the application may take no byte of the request. 30 s if not set.
    #[must_use]
    pub fn send_limit(mut self, limit: Duration) -> FastCgi {
        self.parts().limits.send = limit;
        self
    }

    /// The longest time for which the application may be silent. 60 s if not set.
    #[must_use]
    pub fn read_limit(mut self, limit: Duration) -> FastCgi {
        self.parts().limits.read = limit;
        self
    }

    /// The most bytes of a body of unknown length. A longer one is answered
    /// `413 Content Too Large`. 1 GiB if not set.
    #[must_use]
    pub fn unsized_body_max(mut self, bytes: u64) -> FastCgi {
        self.parts().spool.bytes_max = bytes;
        self
    }

    /// Where bodies of unknown length are kept, if they have more than 256 KiB. If not set, it is
    /// the system's directory for such files: that in the variable `TMPDIR`, or `/tmp`.
    #[must_use]
    pub fn spool_directory(mut self, directory: impl Into<PathBuf>) -> FastCgi {
        self.parts().spool.directory = Some(directory.into());
        self
    }

    /// The most connections that are kept, and the longest time that one waits. 64 and 1 s if not
    /// set. A process of PHP-FPM serves no other connection while it has a kept one. So none is
    /// kept while a request on a new connection waits for its answer far longer than is usual, and
    /// once in a second one is closed.
    #[must_use]
    pub fn kept_connections(mut self, most: usize, idle: Duration) -> FastCgi {
        self.parts().keeping = ConnectionKeeping::new(most, idle);
        self
    }

    /// Whether the application goes on when its client has left: for clients that close their
    /// direction of the connection and still read. `false` if not set.
    #[must_use]
    pub fn outlives_client(mut self, outlives: bool) -> FastCgi {
        self.parts().outlives_client = outlives;
        self
    }

    /// Adds a parameter to all requests, or replaces one, even one of the request itself.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> FastCgi {
        self.parts().server.set(name.into(), value.into());
        self
    }

    /// The port in `SERVER_PORT`. If not set, it is the port that the client names, or 80.
    #[must_use]
    pub fn server_port(mut self, port: u16) -> FastCgi {
        self.parts().server.port = Some(port);
        self
    }

    /// Where error output and failures go.
    #[must_use]
    pub fn error_log(mut self, log: ErrorLog) -> FastCgi {
        self.parts().log = log;
        self
    }

    /// The handler that answers local redirects. If not set, it is this one.
    #[must_use]
    pub fn local_redirects(mut self, handler: impl DynHandler) -> FastCgi {
        self.parts().redirects = LocalRedirects::to(handler);
        self
    }
}

impl ApplicationAccess {
    /// The script that a path names, or the whole application; `None` if it names none. The script
    /// may be no file.
    fn named(&self, path: &str) -> Result<Option<ProgramTarget>, StatusCode> {
        let mut names = self.place.names(path)?;
        let Some(suffix) = &self.suffix else { return Ok(Some(self.place.whole(&names))) };
        if let Some(index) = self.place.index.as_ref().filter(|_| names.is_empty() || names.ends_with(b"/")) {
            names.to_mut().extend_from_slice(index.as_bytes());
        }
        let ends = names.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let end = ends.chain([names.len()]).find(|end| names[..*end].ends_with(suffix.as_bytes()));
        Ok(end.map(|end| self.place.target(&names, end)))
    }

    /// The script that answers for a path.
    async fn target(&self, path: &str) -> Result<ProgramTarget, StatusCode> {
        if let Some(target) = self.named(path)?
            && (self.suffix.is_none() || self.known.has(&target).await)
        {
            return Ok(target);
        }
        let fallback = self.fallback.as_ref().ok_or(StatusCode::NOT_FOUND)?;
        Ok(self.place.target(fallback.as_bytes(), fallback.len()))
    }

    /// The beginning of a request: all but its body. There is room for `more` bytes behind it.
    fn beginning(&self, request: &ToldRequest<'_>, target: &ProgramTarget, more: usize) -> Vec<u8> {
        let (root, server) = (&self.place.root, &self.server);
        let fixed = self.fixed.get_or_init(|| {
            let mut fixed = Vec::new();
            each_fixed_variable(root, server, |name, value| {
                record::put_pair(name.as_bytes(), value, &mut fixed);
            });
            fixed
        });
        let mut out = Vec::with_capacity(fixed.len() + request.variable_bytes(target) + more);
        record::put_begin(talk::REQUEST, &mut out);
        record::put_params(talk::REQUEST, &mut out, |out| {
            out.extend_from_slice(fixed);
            each_variable_of(request, target, root, server, |name, value| {
                record::put_pair(name.as_bytes(), value, out);
            });
        });
        out
    }

    async fn answer(self: &Rc<Self>, request: Request) -> Result<Response, StatusCode> {
        let (parts, body) = request.into_parts();
        let target = self.target(parts.uri.path()).await?;
        let program = String::from_utf8_lossy(target.name());
        let (length, body) = self.spool.with_length(body).await.map_err(|why| {
            if let SpoolFailure::File(error) = &why {
                self.log.say(&program, &error.to_string());
            }
            why.status()
        })?;
        let peer = parts.extensions.get::<Caller>().and_then(Caller::peer);
        let beginning = self.beginning(&ToldRequest::of(&parts, peer, Some(length)), &target, 0);
        let outgoing = OutgoingRequest::new(beginning, body);
        let asked = self.ask(&outgoing, is_idempotent(&parts), &program).await;
        let parsed = asked.and_then(|(talk, head)| {
            let head = head::parse(&head, false).map_err(ApplicationFailure::BadHead)?;
            Ok((talk, head))
        });
        let (talk, head) = parsed.map_err(|why| self.failed(&program, &why))?;
        let is_head = parts.method == Method::HEAD;
        self.respond(talk, head, is_head, || parts).await
    }

    /// Tells the log why there is no answer. Returns the status that says so to the client.
    fn failed(&self, program: &str, why: &ApplicationFailure) -> StatusCode {
        self.log.say(program, &why.to_string());
        why.status()
    }

    /// The response of an application with this head to the request that `parts` gives.
    async fn respond(
        self: &Rc<Self>,
        mut talk: Talk,
        head: ProgramHead,
        is_head: bool,
        parts: impl FnOnce() -> Parts,
    ) -> Result<Response, StatusCode> {
        match head {
            ProgramHead::Document { status, fields, length } => {
                let has_body = !is_head && has_content(status);
                let body = if has_body { talk.into_body(length) } else { Body::empty() };
                let mut response = Response::new(body);
                *response.status_mut() = status;
                *response.headers_mut() = fields;
                Ok(response)
            }
            ProgramHead::LocalRedirect(path) => {
                talk.run_on().await;
                self.redirects.follow(&FastCgi(self.clone()), parts(), &path).await
            }
        }
    }

    /// Sends a request, and reads the head of its answer. A kept connection that turns out to be
    /// closed is replaced once.
    async fn ask(
        &self,
        outgoing: &OutgoingRequest,
        may_repeat: bool,
        program: &str,
    ) -> Result<(Talk, Bytes), ApplicationFailure> {
        if let Some(stream) = self.keeping.pool().take(&self.address) {
            let mut talk = Talk::begin(stream, outgoing, self.terms(program));
            match self.keeping.on_kept(talk.head()).await {
                Ok(head) => return Ok((talk, head)),
                Err(ApplicationFailure::Closed(_)) if may_repeat && outgoing.is_whole() => {}
                Err(why) => return Err(why),
            }
        }
        // In a box, because most requests find a kept connection, and the whole future is copied
        // when it is made.
        Box::pin(self.ask_anew(outgoing, program)).await
    }

    /// Sends a request on a new connection, and reads the head of its answer.
    async fn ask_anew(
        &self,
        outgoing: &OutgoingRequest,
        program: &str,
    ) -> Result<(Talk, Bytes), ApplicationFailure> {
        let stream = self.address.connect(self.connect_limit).await;
        let stream = stream.map_err(ApplicationFailure::NotConnected)?;
        let mut talk = Talk::begin(stream, outgoing, self.terms(program));
        let head = self.keeping.on_new(talk.head()).await?;
        Ok((talk, head))
    }

    /// The terms of a request for this program.
    fn terms(&self, program: &str) -> TalkTerms {
        TalkTerms {
            limits: self.limits,
            back: talk::Back { keeping: self.keeping.clone(), address: self.address.clone() },
            scratch: self.scratch.clone(),
            log: self.log.clone(),
            program: program.to_owned(),
        }
    }
}

impl Handler for FastCgi {
    async fn call(&self, request: Request) -> Response {
        let answer = async |request| self.0.answer(request).await.unwrap_or_else(plain);
        if self.0.outlives_client { answer(request).await } else { attended(request, answer).await }
    }

    fn call_plain(&self, request: &PlainRequest<'_>) -> Option<PlainCall> {
        short_way::call(&self.0, request)
    }
}

impl fmt::Debug for FastCgi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FastCgi")
            .field("address", &self.0.address)
            .field("place", &self.0.place)
            .finish_non_exhaustive()
    }
}
