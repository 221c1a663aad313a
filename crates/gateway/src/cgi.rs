//! [`Cgi`]: the handler that has programs answer, by CGI/1.1 (RFC 3875).
//!
//! A request goes this way. [`Cgi::call`](Handler::call) finds the program that the path names and
//! waits for a slot. `running.rs` starts the program; two threads look after it, one for its end
//! and one for its error output. The request's body flows into the program while the head of its
//! answer is awaited, and goes on flowing while the answer's body is sent. `head.rs` and
//! `variables.rs` do no I/O.

pub(crate) mod claimed_length;
pub(crate) mod head;
pub(crate) mod place;
pub(crate) mod redirects;
mod running;
pub(crate) mod spool;
pub(crate) mod variables;

use crate::departure::attended;
use crate::error_log::ErrorLog;
use crate::proxy::plain;
use crate::slots::ProgramSlots;
use head::ProgramHead;
use http::header::RETRY_AFTER;
use http::{HeaderValue, Method, StatusCode};
use place::Place;
use redirects::LocalRedirects;
use running::{Orders, ProgramFailure, Running};
use selvedge_handler::{Body, Caller, DynHandler, Handler, Request, Response};
use selvedge_io::process::Launch;
use spool::{Spool, SpoolFailure};
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use variables::{ServerNames, ToldRequest, each_variable, search_words};

/// Programs in a directory, which answer requests by CGI/1.1.
///
/// The first name of a path that is a file is the program; what follows is its `PATH_INFO`. A path
/// is decoded and cleaned before, and a name with a leading dot is never found.
///
/// - A program begins in its own directory, with the meta-variables of RFC 3875 and `PATH` as its
///   whole environment, in a process group of its own.
/// - Its input is the request's body, of any size, as it comes. A body of unknown length is read
///   first, into [a file](Cgi::spool_directory) if it is long, because a program has to know the
///   length.
/// - It answers with a document, a local redirect (which the server follows), a redirect for the
///   client, or, if its name begins with `nph-`, with a whole HTTP answer. Such an answer is passed
///   on as what it says, with a framing of the server's own.
/// - When the client is gone, or the [time limit](Cgi::time_limit) has passed, the whole process
///   group is ended: first asked (SIGTERM), and killed after two seconds. A client that closes its
///   direction of the connection is gone, unless the program [is to run
///   on](Cgi::outlives_client).
/// - The number of programs that run [at once](Cgi::slots) has a limit.
///
/// The answer is 404 if no file has that name, 403 if the file is no program, 500 if the program
/// ends without a valid answer, 503 if there is no slot, and 504 if it answers too late.
///
/// # Examples
/// ```
/// use selvedge::gateway::{Cgi, ProgramSlots};
/// use std::time::Duration;
///
/// let cgi = Cgi::new("/srv/cgi-bin")
///     .prefix("/cgi-bin")
///     .slots(ProgramSlots::new(20))
///     .time_limit(Duration::from_secs(30))
///     .variable("LANG", "C.UTF-8");
/// # let _ = cgi;
/// ```
#[derive(Clone)]
pub struct Cgi {
    place: Place,
    server: ServerNames,
    slots: ProgramSlots,
    time_limit: Duration,
    spool: Spool,
    outlives_client: bool,
    log: ErrorLog,
    redirects: LocalRedirects,
}

impl Cgi {
    /// The programs in a directory and in the directories below it. A relative path counts from the
    /// directory that is the current one at this call.
    pub fn new(directory: impl AsRef<Path>) -> Cgi {
        let mut server = ServerNames::default();
        server.set("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into());
        Cgi {
            place: Place::new(directory.as_ref().to_path_buf()),
            server,
            slots: ProgramSlots::new(64),
            time_limit: Duration::from_secs(60),
            spool: Spool::default(),
            outlives_client: false,
            log: ErrorLog::default(),
            redirects: LocalRedirects::default(),
        }
    }

    /// The front of the paths that lead to the directory. If not set, it is `/`.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Cgi {
        self.place.set_prefix(prefix.into());
        self
    }

    /// The program for a path that names a directory. If not set, such a path is answered 404.
    #[must_use]
    pub fn index(mut self, name: impl Into<String>) -> Cgi {
        self.place.index = Some(name.into());
        self
    }

    /// How many programs run at once. 64 if not set.
    #[must_use]
    pub fn slots(mut self, slots: ProgramSlots) -> Cgi {
        self.slots = slots;
        self
    }

    /// The longest time from the start of a program to the end of its answer. 60 s if not set. If a
    /// process has left the program's group and holds its output, the answer ends three seconds
    /// later.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Cgi {
        self.time_limit = limit;
        self
    }

    /// The most bytes of a body of unknown length. A longer one is answered
    /// `413 Content Too Large`. 1 GiB if not set.
    #[must_use]
    pub fn unsized_body_max(mut self, bytes: u64) -> Cgi {
        self.spool.bytes_max = bytes;
        self
    }

    /// Where bodies of unknown length are kept, if they have more than 256 KiB. If not set, it is
    /// the system's directory for such files: that in the variable `TMPDIR`, or `/tmp`.
    #[must_use]
    pub fn spool_directory(mut self, directory: impl Into<PathBuf>) -> Cgi {
        self.spool.directory = Some(directory.into());
        self
    }

    /// Whether a program runs on when its client has left: for clients that close their direction
    /// of the connection and still read. `false` if not set.
    #[must_use]
    pub fn outlives_client(mut self, outlives: bool) -> Cgi {
        self.outlives_client = outlives;
        self
    }

    /// Adds a variable to the environment of all programs, or replaces one, even one of a request.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Cgi {
        self.server.set(name.into(), value.into());
        self
    }

    /// The port in `SERVER_PORT`. If not set, it is the port that the client names, or 80.
    #[must_use]
    pub fn server_port(mut self, port: u16) -> Cgi {
        self.server.port = Some(port);
        self
    }

    /// Where error output and failures go.
    #[must_use]
    pub fn error_log(mut self, log: ErrorLog) -> Cgi {
        self.log = log;
        self
    }

    /// The handler that answers local redirects: that of the whole server, so that a program can
    /// redirect to a file. If not set, a program can redirect to another program here.
    #[must_use]
    pub fn local_redirects(mut self, handler: impl DynHandler) -> Cgi {
        self.redirects = LocalRedirects::to(handler);
        self
    }

    async fn answer(&self, request: Request) -> Result<Response, StatusCode> {
        let (parts, body) = request.into_parts();
        let target = self.place.find(parts.uri.path()).await?;
        let program = String::from_utf8_lossy(target.name()).into_owned();
        let file = PathBuf::from(OsStr::from_bytes(target.file()));
        let is_raw = file.file_name().is_some_and(|name| name.as_bytes().starts_with(b"nph-"));
        let (length, body) = self.spool.with_length(body).await.map_err(|why| {
            if let SpoolFailure::File(error) = &why {
                self.log.say(&program, &error.to_string());
            }
            why.status()
        })?;
        let peer = parts.extensions.get::<Caller>().and_then(Caller::peer);
        let mut launch = Launch::new(&file);
        launch.directory(file.parent().unwrap_or(Path::new("/")));
        let (root, server) = (&self.place.root, &self.server);
        let told = ToldRequest::of(&parts, peer, Some(length));
        each_variable(&told, &target, root, server, |name, value| {
            launch.env(name, OsStr::from_bytes(value));
        });
        if parts.method == Method::GET || parts.method == Method::HEAD {
            search_words(parts.uri.query()).iter().for_each(|word| {
                launch.arg(OsStr::from_bytes(word));
            });
        }
        let slot = self.slots.take().await.ok_or(StatusCode::SERVICE_UNAVAILABLE)?;
        let orders = Orders { program: program.clone(), limit: self.time_limit, log: self.log.clone(), slot };
        let mut running = Running::start(&launch, orders, body).map_err(|error| {
            self.log.say(&program, &error.to_string());
            StatusCode::SERVICE_UNAVAILABLE
        })?;
        match running.head(is_raw).await {
            Ok(ProgramHead::Document { status, fields, length }) => {
                let has_body = parts.method != Method::HEAD
                    && status != StatusCode::NO_CONTENT
                    && status != StatusCode::NOT_MODIFIED;
                let body = if has_body {
                    running.into_body(length)
                } else {
                    running.run_on();
                    Body::empty()
                };
                let mut response = Response::new(body);
                *response.status_mut() = status;
                *response.headers_mut() = fields;
                Ok(response)
            }
            Ok(ProgramHead::LocalRedirect(path)) => {
                running.run_on();
                self.redirects.follow(self, parts, &path).await
            }
            Err(unanswered) => {
                self.log.say(&program, &unanswered.to_string());
                Err(unanswered.status())
            }
        }
    }
}

impl Handler for Cgi {
    async fn call(&self, request: Request) -> Response {
        let answer = async |request| {
            self.answer(request).await.unwrap_or_else(|status| {
                let mut response = plain(status);
                if status == StatusCode::SERVICE_UNAVAILABLE {
                    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
                }
                response
            })
        };
        if self.outlives_client { answer(request).await } else { attended(request, answer).await }
    }
}

impl ProgramFailure {
    fn status(&self) -> StatusCode {
        match self {
            ProgramFailure::TooLate => StatusCode::GATEWAY_TIMEOUT,
            ProgramFailure::Client(error) => error.status(),
            ProgramFailure::NotLoaded(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                StatusCode::FORBIDDEN
            }
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl fmt::Debug for Cgi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cgi").field("place", &self.place).field("slots", &self.slots).finish_non_exhaustive()
    }
}
