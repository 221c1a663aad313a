//! A reverse proxy with a rule of its own: two servers share the work, and a client that has asked
//! too often is refused before any of them sees the request.
//!
//! # Prints
//! ```text
//! 6 of 8 requests were answered
//! loom 1 had 3 and loom 2 had 3
//! the client's address went through: for=127.0.0.1
//! its operator reads: no connection to the server
//! a server that is gone is left out: 200 OK from loom 2
//! ```

use selvedge::client::{Address, Client};
use selvedge::gateway::{ErrorLog, Proxy, Upstreams};
use selvedge::http::{Config, DynHandler, Handler, IntoResponse, Request, Response, Site, StatusCode};
use selvedge::net::TcpListener;
use selvedge::{JoinHandle, spawn_local};
use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

/// Serves a handler on a free port.
fn serve(handler: impl Handler) -> io::Result<(SocketAddr, JoinHandle<()>)> {
    let listener = TcpListener::bind("127.0.0.1:0".parse().expect("an address"))?;
    let address = listener.local_addr();
    let handler: Rc<dyn DynHandler> = Rc::new(handler);
    let server = spawn_local(async move {
        while let Ok((stream, peer)) = listener.accept().await {
            let site = Site::with_handler(handler.clone(), Config::default(), None);
            drop(spawn_local(site.serve(stream.into(), Some(peer.ip()))));
        }
    });
    Ok((address, server))
}

/// A server that says its name and what it is told of the client.
fn loom(number: u32) -> impl Handler {
    move |request: Request| async move {
        let forwarded = request.headers()["forwarded"].to_str().unwrap_or_default().to_owned();
        format!("{number} {}", forwarded.split(';').next().unwrap_or_default())
    }
}

/// The rule: a number of requests, and no more.
struct Budget {
    left: Cell<u32>,
    proxy: Proxy,
}

impl Handler for Budget {
    async fn call(&self, request: Request) -> Response {
        match self.left.get().checked_sub(1) {
            None => (StatusCode::TOO_MANY_REQUESTS, "come back tomorrow\n").into_response(),
            Some(left) => {
                self.left.set(left);
                self.proxy.call(request).await
            }
        }
    }
}

#[selvedge::main(local)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (first, first_server) = serve(loom(1))?;
    let (second, _second_server) = serve(loom(2))?;
    let upstreams = Upstreams::new([first, second].map(|address| Address::tcp(address.to_string())));
    // Each request has a connection of its own, so that a server that goes away is gone at once.
    let proxy = Proxy::new(upstreams).client(Client::builder().idle_connections_max(0).build());
    let (front, _front_server) = serve(Budget { left: Cell::new(6), proxy: proxy.clone() })?;

    let client = Client::new();
    let mut answers = Vec::new();
    for _ in 0..8 {
        let answer = client.get(format!("http://{front}/")).await?;
        if answer.status() == StatusCode::OK {
            answers.push(answer.into_body().text(1000).await?);
        }
    }
    println!("{} of 8 requests were answered", answers.len());
    let of = |loom: &str| answers.iter().filter(|answer| answer.starts_with(loom)).count();
    println!("loom 1 had {} and loom 2 had {}", of("1 "), of("2 "));
    println!("the client's address went through: {}", &answers[0][2..]);

    // Each line has the server's address in front, which is another one in each run.
    let log = ErrorLog::new(|_, line| {
        println!("its operator reads: {}", line.split(": ").next().unwrap_or_default());
    });
    // The port of the server that goes away must not become that of the proxy.
    let (front, _front_server) = serve(proxy.error_log(log))?;
    first_server.cancel();
    let _ = first_server.await;
    let answer = client.get(format!("http://{front}/")).await?;
    let (status, text) = (answer.status(), answer.into_body().text(1000).await?);
    println!("a server that is gone is left out: {status} from loom {}", &text[..1]);
    Ok(())
}
