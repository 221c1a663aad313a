//! `selvedge-httpd`: serves the files of a directory. `--help` tells how.
//!
//! The process is N workers: OS threads, each with a [`Cpu`](selvedge_core::Cpu), an event loop,
//! listening sockets and a [`Site`] of its own. They share the log file and the word to stop,
//! nothing else.

#![forbid(unsafe_code)]

mod descriptors;
mod listeners;
mod options;

use std::io::Write;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use selvedge_core::{detach_local, round_robin_with, spawn_local};
use selvedge_http::request::Limits;
use selvedge_http::{Config, DocumentRoot, LogFile, Reload, Site, Stop};
use selvedge_io::signal::{Signal, Signals, signals};
use selvedge_io::time::timeout;
use selvedge_io::{EventLoop, blocking};
use selvedge_sched::per_core;

use listeners::Listeners;
use options::{Log, Options, Refusal, Request};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(Refusal { message, status }) => {
            eprintln!("selvedge-httpd: {message}");
            ExitCode::from(status)
        }
    }
}

fn run() -> Result<(), Refusal> {
    match options::parse(std::env::args_os().skip(1))? {
        Request::Help => println!("{}", options::HELP),
        Request::Version => println!("selvedge-httpd {}", env!("CARGO_PKG_VERSION")),
        Request::Serve(options) => serve(&options)?,
    }
    Ok(())
}

/// What all workers are made of.
#[derive(Clone)]
struct Server {
    tree: DocumentRoot,
    config: Config,
    log: Option<Arc<LogFile>>,
    drain: Duration,
    stop: Stop,
    reload: Reload,
}

/// How long what is logged may take to be written when the server ends.
const LOG_FLUSH: Duration = Duration::from_secs(5);

fn serve(options: &Options) -> Result<(), Refusal> {
    let workers = match options.workers {
        Some(workers) => workers,
        None => std::thread::available_parallelism()?.get(),
    };
    let server = Server {
        tree: DocumentRoot::new(&options.directory)?,
        config: config(options, workers)?,
        log: match &options.log {
            Log::Off => None,
            Log::Stdout => Some(Arc::new(LogFile::stdout()?)),
            Log::File(path) => Some(Arc::new(LogFile::open(path).map_err(naming("--log"))?)),
        },
        drain: options.drain,
        stop: Stop::new(),
        reload: Reload::new(),
    };
    selvedge_see::name_panics();
    let _seeing = selvedge_see::from_environment().map_err(|error| refusal(&error.to_string()))?;
    let bound = listeners::bind(&options.listen, options.unix_mode, workers);
    let mut bound = bound.map_err(naming("--listen"))?;
    let signals = signals(&[Signal::TERM, Signal::INT, Signal::QUIT, Signal::HUP, Signal::USR1])?;
    for url in &bound.urls {
        let line = format!("Serving {} at {url}", server.tree.path().display());
        // An error says that the stream has no reader. The server serves all the same.
        let _ = match options.log {
            Log::Stdout => writeln!(std::io::stderr(), "{line}"),
            Log::Off | Log::File(_) => writeln!(std::io::stdout(), "{line}"),
        };
    }
    // Signals are heard on an OS thread of their own, to the end of the process, whichever worker
    // ends first.
    let heard = server.clone();
    let hearing = move || match EventLoop::new() {
        Ok(mut events) => round_robin_with(&mut events, obey(signals, heard)).map_err(|e| e.to_string()),
        Err(error) => Err(error.to_string()),
    };
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        if let Err(error) = hearing() {
            eprintln!("selvedge-httpd: signals: {error}");
        }
    })?;
    let listeners: Vec<_> = bound.listeners.drain(..).map(|one| Mutex::new(Some(one))).collect();
    let ended = per_core(
        workers,
        |_| EventLoop::new(),
        |index| {
            let listeners = take(&listeners[index]).unwrap_or_default();
            worker(server.clone(), listeners)
        },
    );
    match ended {
        Ok(results) => results.into_iter().collect(),
        Err(failure) => Err(refusal(&failure.to_string())),
    }
}

fn take<T>(slot: &Mutex<Option<T>>) -> Option<T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// One worker, to its end.
async fn worker(server: Server, listeners: Listeners) -> Result<(), Refusal> {
    let Server { tree, config, log, drain, stop, reload } = server;
    let site = Site::new(tree, config, log);
    detach_local({
        let site = site.clone();
        async move {
            let mut heard = 0;
            loop {
                reload.requested(&mut heard).await;
                site.forget();
            }
        }
    });
    let mut acceptors = Vec::new();
    for listener in listeners.tcp {
        let (site, stop) = (site.clone(), stop.clone());
        acceptors.push(spawn_local(async move { site.serve_tcp(listener, &stop).await }));
    }
    for listener in listeners.unix {
        let (site, stop) = (site.clone(), stop.clone());
        acceptors.push(spawn_local(async move { site.serve_unix(listener, &stop).await }));
    }
    let mut result = Ok(());
    for acceptor in acceptors {
        let accepted = acceptor.await.map_err(|error| refusal(&error.to_string()));
        let accepted = accepted.and_then(|accepted| accepted.map_err(Refusal::from));
        if accepted.is_err() {
            // A listener that has failed is no reason to serve by halves.
            stop.request();
        }
        result = result.and(accepted);
    }
    if timeout(drain, site.drain()).await.is_err() {
        eprintln!("selvedge-httpd: {} connections were cut off", site.connections());
        site.break_off().await;
    }
    if timeout(LOG_FLUSH, site.flush_log()).await.is_err() {
        eprintln!("selvedge-httpd: the log takes too long to be written: its last lines are lost");
    }
    result
}

/// Does what signals ask for.
async fn obey(mut signals: Signals, server: Server) {
    while let Ok(signal) = signals.next().await {
        match signal {
            Signal::USR1 | Signal::HUP => {
                if signal == Signal::HUP {
                    server.reload.request();
                }
                let Some(log) = server.log.clone() else { continue };
                if let Ok(Err(error)) = blocking(move || log.reopen()).await {
                    eprintln!("selvedge-httpd: {error}");
                }
            }
            _ if server.stop.is_requested() => std::process::exit(1),
            _ => server.stop.request(),
        }
    }
}

fn refusal(message: &str) -> Refusal {
    Refusal { message: message.to_owned(), status: 1 }
}

/// Has a refusal name the option that it is about.
fn naming(option: &str) -> impl FnOnce(std::io::Error) -> Refusal {
    move |error| refusal(&format!("{option}: {error}"))
}

/// The configuration of each of `workers` workers, with the process's descriptors shared out among
/// them.
fn config(options: &Options, workers: usize) -> Result<Config, Refusal> {
    let defaults = Config::default();
    let shares = descriptors::shares(options.listen.len(), workers, defaults.cache_files)?;
    Ok(Config {
        limits: Limits {
            head_bytes: options.head_bytes,
            target_bytes: options.head_bytes / 2,
            body_bytes: options.body_bytes,
        },
        validity: options.validity,
        idle: options.idle,
        head: options.head,
        body: options.body,
        write: options.write,
        cache_files: shares.cache_files,
        connections: shares.connections,
        ..defaults
    })
}
