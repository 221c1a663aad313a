//! A web server that answers all requests by one graph, which lives as long as the server: how many
//! ways lead through a table, from corner to corner. An OS thread is the environment of the graph.
//! For each request it puts a tag, and forks a step that sends the answer when the item is there. A
//! later request gets the items that earlier requests have made.
//!
//! # Prints
//! ```text
//! 3 by 3: 6 ways
//! 20 by 20: 35345263800 ways
//! 5 by 9: 495 ways
//! no table: 400 Bad Request
//! 399 items
//! ```
//!
//! # CPU time
//! 100 milliseconds

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use selvedge::cnc::{GraphError, graph, schedulers::Stealing};
use selvedge::net::{TcpListener, connect};
use selvedge::sync::{Replier, one_shot};
use selvedge::{blocking, spawn};
use selvedge_compat::hyper::serve;
use std::process::ExitCode;
use std::sync::{Mutex, mpsc};
use std::{io, thread};

/// A table, and where to send the number of ways.
type Question = ((u32, u32), Replier<u64>);

/// Answers until there are no more questions. Returns the number of items.
fn answer_all(questions: mpsc::Receiver<Question>) -> Result<usize, GraphError> {
    graph(|graph| {
        // A tag that was put before has no effect.
        let wanted = graph.memoised_tags::<(u32, u32)>("wanted");
        let ways = graph.items::<(u32, u32), u64>("ways");
        graph.prescribe(wanted, "want", move |(i, j), step| {
            if i == 1 || j == 1 {
                return Ok(());
            }
            step.put_tag(wanted, (i - 1, j))?;
            step.put_tag(wanted, (i, j - 1))
        });
        graph.prescribe(wanted, "count", move |(i, j), step| {
            let sum = if i == 1 || j == 1 {
                1
            } else {
                step.get(ways, (i - 1, j))?.saturating_add(*step.get(ways, (i, j - 1))?)
            };
            step.put(ways, (i, j), sum)
        });
        let live = graph.live();
        thread::scope(|scope| {
            scope.spawn(move || {
                for (table, replier) in questions {
                    let replier = Mutex::new(Some(replier));
                    let put = live.puts(|env| {
                        env.put_tag(wanted, table)?;
                        env.fork(move |step| {
                            let ways = *step.get(ways, table)?;
                            if let Some(replier) = replier.lock().expect("no step panics").take() {
                                // The client may be gone.
                                let _ = replier.reply(ways);
                            }
                            Ok(())
                        })
                    });
                    if put.is_err() {
                        // The run has failed, and tells why.
                        return;
                    }
                }
            });
            // The run ends when the environment has dropped `live`.
            Ok(graph.run(&Stealing::new(2))?.finalize(|view| view.iter(ways).count()))
        })
    })
}

/// The table of a path such as `/3/4`.
fn table_of(path: &str) -> Option<(u32, u32)> {
    let (rows, columns) = path.strip_prefix('/')?.split_once('/')?;
    let (rows, columns) = (rows.parse().ok()?, columns.parse().ok()?);
    ((1..=100).contains(&rows) && (1..=100).contains(&columns)).then_some((rows, columns))
}

async fn answer(
    request: Request<Incoming>,
    questions: mpsc::Sender<Question>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let (status, text) = match table_of(request.uri().path()) {
        Some(table) => {
            let (replier, mut reply) = one_shot();
            let ways = if questions.send((table, replier)).is_ok() { reply.take().await.ok() } else { None };
            match ways {
                Some(ways) => (StatusCode::OK, format!("{ways} ways")),
                None => (StatusCode::INTERNAL_SERVER_ERROR, String::new()),
            }
        }
        None => (StatusCode::BAD_REQUEST, String::new()),
    };
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    Ok(response)
}

/// The content of the answer, or the status without one.
async fn get(address: &str, path: &str) -> io::Result<String> {
    let stream = connect(address).await?;
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    let answer = String::from_utf8_lossy(&stream.read_to_end().await?).into_owned();
    let (head, content) = answer.split_once("\r\n\r\n").unwrap_or_default();
    let status = head.lines().next().unwrap_or_default().trim_start_matches("HTTP/1.1 ");
    Ok(if content.is_empty() { status } else { content }.to_string())
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        let (ask, questions) = mpsc::channel();
        let graph = spawn(async move { blocking(move || answer_all(questions)).await });
        let listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
        let address = listener.local_addr().to_string();
        let (stop, mut stopped) = one_shot();
        let server = spawn(async move {
            let stopped = async move { stopped.take().await.unwrap_or(()) };
            serve(listener, service_fn(move |request| answer(request, ask.clone())), stopped).await
        });
        println!("3 by 3: {}", get(&address, "/3/3").await?);
        println!("20 by 20: {}", get(&address, "/20/20").await?);
        println!("5 by 9: {}", get(&address, "/5/9").await?);
        println!("no table: {}", get(&address, "/0/9").await?);
        let _ = stop.reply(());
        server.await??;
        // The server has dropped the sender, so the environment has closed. No step has asked for
        // the item (1, 1).
        println!("{} items", graph.await???);
        Ok(())
    })
}
