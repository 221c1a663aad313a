//! A live page of a graph that runs: its picture with the numbers of the moment, and a bar for each
//! step. Half of the rows of a table wait for an item that comes from outside, when the page has
//! shown that. On a terminal, the bars are drawn there too.
//!
//! # Prints
//! ```text
//! half-way: 20 of 40, 20 wait
//! waiting for go[0]: step row(20)
//! at the end: 40 of 40
//! rows [####################]
//! ```

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response};
use selvedge::cnc::schedulers::TaskPool;
use selvedge::cnc::{GraphError, Items, Monitor, graph};
use selvedge::net::{TcpListener, connect};
use selvedge::see::graph_svg;
use selvedge::sync::one_shot;
use selvedge::{blocking, sleep, spawn};
use selvedge_compat::hyper::serve;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::{Mutex, mpsc};
use std::time::Duration;

/// Adds up the rows of a table. The rows from 20 on need an item that comes when `visitors` has
/// received something. `shown` receives the monitor of the graph.
fn sums(shown: &mpsc::Sender<Monitor>, visitors: mpsc::Receiver<()>) -> Result<u64, GraphError> {
    let visitors = Mutex::new(visitors);
    graph(|graph| {
        let (rows, doors) = (graph.tags::<u32>("numbers of rows"), graph.tags::<u32>("doors"));
        let go = graph.items_in("go", Items::<u32, ()>::dense(1));
        let sums = graph.items_in("sums", Items::<u32, u64>::dense(40));
        graph.prescribe(rows, "row", move |row, step| {
            if row >= 20 {
                step.get(go, 0)?;
            }
            step.put(sums, row, (0..1000).map(|column| u64::from(row) * column).sum())
        });
        let visitors = &visitors;
        graph.prescribe(doors, "door", move |door, step| {
            visitors.lock().expect("no other step has it").recv()?;
            step.put(go, door, ())
        });
        shown.send(graph.monitor()).expect("the page waits for it");
        graph.initialize(|env| {
            // One worker stands at the door, and the other one has the rows.
            env.put_tag(doors, 0)?;
            (0..40).try_for_each(|row| env.put_tag(rows, row))
        })?;
        Ok(graph.run(&TaskPool::fifo(2))?.finalize(|view| view.iter(sums).map(|(_, sum)| sum).sum()))
    })
}

/// The page, which a browser loads again each second.
fn page(monitor: &Monitor) -> String {
    let mut text = String::from("<!doctype html><meta http-equiv=refresh content=1><title>graph</title>\n");
    text.push_str(&graph_svg(&monitor.picture()));
    text.push_str("<pre>\n");
    for progress in monitor.progress() {
        text.push_str(&format!("{} {progress}\n", progress.bar(40)));
    }
    text + "</pre>\n"
}

/// Draws the bars over the last ones, on a terminal.
fn draw(monitor: &Monitor) -> io::Result<()> {
    let mut out = io::stderr();
    if out.is_terminal() {
        let bars = monitor.progress().into_iter().map(|of| format!("{} {of}", of.bar(20)));
        write!(out, "\r{}\x1b[K", bars.collect::<Vec<_>>().join("  "))?;
        out.flush()?;
    }
    Ok(())
}

async fn get(address: &str) -> io::Result<String> {
    let stream = connect(address).await?;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await?;
    Ok(String::from_utf8_lossy(&stream.read_to_end().await?).into_owned())
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        let (shown, monitors) = mpsc::channel();
        let (visit, visitors) = mpsc::channel();
        let graph = spawn(async move { blocking(move || sums(&shown, visitors)).await });
        let monitor = blocking(move || monitors.recv()).await??;

        let listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
        let address = listener.local_addr().to_string();
        let (stop, mut stopped) = one_shot();
        let of_page = monitor.clone();
        let server = spawn(async move {
            let answer = service_fn(move |_: Request<Incoming>| {
                let mut response = Response::new(Full::<Bytes>::from(page(&of_page)));
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html"));
                std::future::ready(Ok::<_, hyper::Error>(response))
            });
            serve(listener, answer, async move { stopped.take().await.unwrap_or(()) }).await
        });

        let half_way = "20 of 40, 20 wait";
        while !get(&address).await?.contains(half_way) {
            draw(&monitor)?;
            sleep(Duration::from_millis(5)).await;
        }
        println!("half-way: {half_way}");
        let waiting = &monitor.waiting().items[0];
        let (step, tag) = &waiting.steps[0];
        println!("waiting for {}[{}]: step {step}({tag})", waiting.collection, waiting.key);
        visit.send(())?;
        graph.await???;
        draw(&monitor)?;
        let last = get(&address).await?;
        assert!(last.contains("<svg") && last.contains("40 of 40"));
        println!("at the end: 40 of 40");
        println!("rows {}", monitor.progress()[0].bar(20));
        let _ = stop.reply(());
        server.await??;
        Ok(())
    })
}
