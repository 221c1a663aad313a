//! Short links: a web application of axum's on our threads. Its handlers share an `MVar` and
//! `TVar`s, and its clients are in the same program.
//!
//! # Prints
//! ```text
//! 20 of 20 links lead to where they should
//! no link 99: 404 Not Found
//! no address: 400 Bad Request
//! 40 visits
//! the server cancels what is left
//! the hundredth never came: ""
//! ```

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Redirect;
use axum::routing::{get, post};
use selvedge::net::{TcpListener, connect};
use selvedge::scope::{CancelToken, Threads};
use selvedge::stm::{TVar, atomically};
use selvedge::{MVar, spawn};
use selvedge_compat::axum::ServeError;
use std::collections::BTreeMap;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// What all handlers share.
#[derive(Clone)]
struct Links {
    /// The addresses by their numbers. A handler takes the map, and puts it back.
    addresses: Arc<MVar<BTreeMap<usize, String>>>,
    /// How many links were followed. A handler can wait until a given number has been followed.
    visits: TVar<u64>,
    /// How many requests have asked to wait for visits.
    patient: TVar<u64>,
}

async fn make(State(links): State<Links>, address: String) -> Result<String, StatusCode> {
    if !address.starts_with("https://") {
        return Err(StatusCode::BAD_REQUEST);
    }
    let mut addresses = links.addresses.take().await;
    let number = addresses.len();
    addresses.insert(number, address);
    links.addresses.put(addresses).await;
    Ok(number.to_string())
}

async fn follow(State(links): State<Links>, Path(number): Path<usize>) -> Result<Redirect, StatusCode> {
    let addresses = links.addresses.take().await;
    let address = addresses.get(&number).cloned();
    links.addresses.put(addresses).await;
    let address = address.ok_or(StatusCode::NOT_FOUND)?;
    add_one(&links.visits).await;
    Ok(Redirect::temporary(&address))
}

async fn add_one(count: &TVar<u64>) {
    let add = atomically(|tx| {
        let before = *count.read(tx)?;
        count.write(tx, before + 1);
        Ok(())
    });
    add.await
}

/// Waits until a count has come so far.
async fn reach(count: &TVar<u64>, enough: u64) -> u64 {
    let reached = atomically(|tx| {
        let now = *count.read(tx)?;
        tx.check(now >= enough)?;
        Ok(now)
    });
    reached.await
}

/// Answers when this number of links have been followed.
async fn visited(State(links): State<Links>, Path(enough): Path<u64>) -> String {
    add_one(&links.patient).await;
    reach(&links.visits, enough).await.to_string()
}

/// A request on a connection of its own; the whole answer.
async fn ask(server: &str, method: &str, path: &str, body: &str) -> io::Result<String> {
    let stream = connect(server).await?;
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n");
    let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await?;
    Ok(String::from_utf8_lossy(&stream.read_to_end().await?).into_owned())
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap_or_default().1
}

/// The status of an answer, without the version of the protocol.
fn status(answer: &str) -> &str {
    answer.lines().next().and_then(|line| line.split_once(' ')).unwrap_or_default().1
}

/// Makes a link and follows it twice; whether it led to where it should.
async fn client(server: String, n: usize) -> io::Result<bool> {
    let address = format!("https://example.org/{n}");
    let link = format!("/l/{}", body(&ask(&server, "POST", "/links", &address).await?));
    let mut good = true;
    for _ in 0..2 {
        let answer = ask(&server, "GET", &link, "").await?;
        good &= answer.to_lowercase().contains(&format!("\r\nlocation: {address}\r\n"));
    }
    Ok(good)
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        let listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
        let server = listener.local_addr().to_string();
        let links = Links {
            addresses: Arc::new(MVar::new(BTreeMap::new())),
            visits: TVar::new(0),
            patient: TVar::new(0),
        };
        let patient = links.patient.clone();
        let router = Router::new()
            .route("/links", post(make))
            .route("/l/{number}", get(follow))
            .route("/visited/{enough}", get(visited))
            .with_state(links);
        let stop = CancelToken::new();
        let stopped = stop.clone();
        let serving = spawn(async move {
            selvedge_compat::axum::serve(listener, router)
                .max_connections(100)
                .grace_period(Duration::from_millis(50))
                .on_error(|error| match error {
                    ServeError::GraceEnded { .. } => println!("the server cancels what is left"),
                    other => println!("server: {other}"),
                })
                .with_graceful_shutdown(async move { stopped.cancelled().await })
                .await
        });

        // Both wait until others have followed links; the hundredth visit never comes.
        let waiting = [40, 100].map(|enough| {
            let server = server.clone();
            spawn(async move { ask(&server, "GET", &format!("/visited/{enough}"), "").await })
        });
        let mut clients = Threads::new();
        for n in 0..20 {
            clients.spawn(client(server.clone(), n));
        }
        let mut good = 0;
        while let Some(ended) = clients.next().await {
            good += usize::from(ended??);
        }
        println!("{good} of 20 links lead to where they should");
        let missing = ask(&server, "GET", "/l/99", "").await?;
        println!("no link 99: {}", status(&missing));
        let refused = ask(&server, "POST", "/links", "an address").await?;
        println!("no address: {}", status(&refused));
        let [forty, hundred] = waiting;
        println!("{} visits", body(&forty.await??));
        // Both requests have been read.
        reach(&patient, 2).await;
        stop.cancel();
        serving.await??;
        println!("the hundredth never came: {:?}", hundred.await?.unwrap_or_default());
        Ok(())
    })
}
