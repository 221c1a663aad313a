//! The server of the figure about designs of a log: two workers that answer every request with one
//! page, and log by one of the designs. `child.rs` calls [`serve`].

use super::log_designs::{LogDesign, WorkerLines, open};
use crate::web::SMALL;
use selvedge_core::{detach_local, round_robin_over};
use selvedge_http::date::{self, Clock};
use selvedge_http::log::Line;
use selvedge_http::status::Status;
use selvedge_http::{Config, LogFile, Site, Stop};
use selvedge_io::EventLoop;
use selvedge_io::net::{ListenOptions, TcpListener};
use selvedge_io::signal::{Signal, signals};
use selvedge_io::time::{sleep, timeout};
use selvedge_sched::per_core;
use selvedge_web::Request;
use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// The workers, one on each CPU.
const WORKERS: usize = 2;

/// How long the clients may take to close.
const DRAIN: Duration = Duration::from_secs(2);

/// The line of each request, as the shipped log has it.
const LINE: Line<'static> = Line {
    peer: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
    request: b"GET /small.html HTTP/1.1",
    status: Status::OK,
    content_bytes: SMALL.bytes as u64,
    referer: b"",
    user_agent: b"selvedge-load",
    host: b"",
};

/// Serves at `port` and logs to `path` until it is asked to end.
///
/// # Errors
/// There is no such design, it cannot be opened, or the port is taken.
pub(super) fn serve(design: &str, port: &str, path: &str) -> Result<(), String> {
    let design = LogDesign::named(design)?;
    let port: u16 = port.parse().map_err(|_| format!("no port: {port}"))?;
    let text = |error: io::Error| format!("{path}: {error}");
    let sink = open(design, Path::new(path)).map_err(text)?;
    let shipped = (design == LogDesign::Shipped).then(|| LogFile::open(path).map(Arc::new));
    let shipped = shipped.transpose().map_err(text)?;
    let options = ListenOptions::new().reuse_port(true);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let listeners = (0..WORKERS).map(|_| Ok(Mutex::new(Some(options.bind(address)?))));
    let listeners: Vec<Mutex<Option<TcpListener>>> = listeners.collect::<io::Result<_>>().map_err(text)?;
    let stop = Stop::new();
    let asked = stop.clone();
    std::thread::spawn(move || {
        let mut events = EventLoop::new().expect("an event loop");
        let ask = async move {
            let mut heard = signals(&[Signal::TERM]).expect("signals");
            heard.next().await.expect("a signal");
            asked.request();
        };
        round_robin_over(&mut events, ask).expect("it runs");
    });
    let ended = per_core(
        WORKERS,
        |_| EventLoop::new(),
        |index| {
            let listener = listeners[index].lock().unwrap_or_else(PoisonError::into_inner).take();
            let lines = sink.clone().map(|sink| WorkerLines::new(design, sink));
            worker(listener, lines, shipped.clone(), stop.clone())
        },
    );
    let ended = ended.map_err(|error| error.to_string())?;
    if let Some(sink) = sink {
        sink.finish();
    }
    ended.into_iter().collect::<io::Result<()>>().map_err(text)
}

async fn worker(
    listener: Option<TcpListener>,
    lines: Option<WorkerLines>,
    shipped: Option<Arc<LogFile>>,
    stop: Stop,
) -> io::Result<()> {
    let page: &'static str = "x".repeat(SMALL.bytes).leak();
    let clock = Rc::new(RefCell::new(Clock::now()));
    detach_local({
        let clock = clock.clone();
        async move {
            loop {
                clock.borrow_mut().set(date::seconds(SystemTime::now()));
                sleep(Duration::from_secs(1)).await;
            }
        }
    });
    let lines = lines.map(|lines| Rc::new(RefCell::new(lines)));
    let logged = lines.clone();
    let handler = move |_: Request| {
        if let Some(lines) = &logged {
            lines.borrow_mut().log(&LINE, &clock.borrow());
        }
        async move { page }
    };
    let site = Site::with_handler(handler, Config::default(), shipped);
    let listener = listener.ok_or(io::ErrorKind::NotFound)?;
    site.serve_tcp(listener, &stop).await?;
    // The load generator has closed its connections; whatever is left is broken off.
    let _ = timeout(DRAIN, site.drain()).await;
    site.break_off().await;
    site.flush_log().await;
    if let Some(lines) = lines {
        lines.borrow_mut().flush();
    }
    Ok(())
}
