//! Uploads with progress: a form with a file comes piece by piece, and another request hears of its
//! progress by server-sent events.
//!
//! # Prints
//! ```text
//! event: 25 %
//! event: 50 %
//! event: 75 %
//! event: 100 %
//! 400000 bytes of cloth.png
//! ```

use selvedge::http::{Config, Site, Stop};
use selvedge::net::{TcpStream, bind, connect};
use selvedge::spawn_local;
use selvedge::sync::{Setter, watch};
use selvedge::web::{EventStream, HeaderMap, Multipart, Rejection, Router, ServerEvent, State};
use std::convert::Infallible;
use std::error::Error;
use std::rc::Rc;

/// How many bytes of how many have come.
type Progress = (usize, usize);

type Uploads = Rc<Setter<Progress>>;

async fn upload(
    State(uploads): State<Uploads>,
    fields: HeaderMap,
    mut form: Multipart,
) -> Result<String, Rejection> {
    let whole = fields.get("x-file-length").and_then(|value| value.to_str().ok()?.parse().ok());
    let (mut bytes, mut name) = (0, String::new());
    while let Some(mut part) = form.next().await? {
        name = part.file_name().unwrap_or_default().into();
        while let Some(piece) = part.next().await? {
            bytes += piece.len();
            uploads.set((bytes, whole.unwrap_or(bytes)));
        }
    }
    Ok(format!("{bytes} bytes of {name}"))
}

async fn progress(State(uploads): State<Uploads>) -> EventStream {
    EventStream::produce(async move |mut out| {
        let (mut watcher, mut told) = (uploads.watcher(), 0);
        out.put(ServerEvent::new("ready")).await;
        while told < 100 {
            let Ok(()) = watcher.changed().await else { break };
            let (bytes, whole) = *watcher.latest();
            let quarter = bytes * 4 / whole * 25;
            while told < quarter {
                told += 25;
                out.put(ServerEvent::new(&format!("{told} %"))).await;
            }
        }
        Ok::<(), Infallible>(())
    })
}

/// Prints the events of a response, behind the first of them.
async fn hear(stream: TcpStream) -> std::io::Result<()> {
    let mut lines = stream.lines();
    while let Some(line) = lines.next().await? {
        if let Some(text) = line.strip_prefix("data: ").filter(|text| *text != "ready") {
            println!("event: {text}");
        }
    }
    Ok(())
}

#[selvedge::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let router =
        Router::with_state(Rc::new(watch((0, 1)).0)).post("/upload", upload).get("/progress", progress);
    let site = Site::with_handler(router, Config::default(), None);
    let listener = bind("127.0.0.1:0").await?;
    let address = listener.local_addr().to_string();
    let stop = Stop::new();
    let server = spawn_local({
        let (site, stop) = (site.clone(), stop.clone());
        async move { site.serve_tcp(listener, &stop).await }
    });

    let events = connect(&address).await?;
    events.write_all(b"GET /progress HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await?;
    let hearing = spawn_local(hear(events));

    let part = "--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"cloth.png\"\r\n\r\n";
    let (cloth, end) = (vec![7; 100_000], "\r\n--x--\r\n");
    let length = part.len() + 4 * cloth.len() + end.len();
    let form = connect(&address).await?;
    let head = "POST /upload HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-File-Length: 400000\r\n";
    let kind = format!("Content-Type: multipart/form-data; boundary=x\r\nContent-Length: {length}\r\n\r\n");
    form.write_all([head, &kind, part].concat().as_bytes()).await?;
    for _ in 0..4 {
        form.write_all(&cloth).await?;
    }
    form.write_all(end.as_bytes()).await?;
    let answer = String::from_utf8(form.read_to_end().await?)?;
    hearing.await??;
    println!("{}", answer.lines().last().unwrap_or_default());
    stop.request();
    server.await??;
    site.drain().await;
    Ok(())
}
