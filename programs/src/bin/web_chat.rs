//! A chat by WebSockets: each text that a client sends goes to all. A client is one thread, which
//! waits for the client and for the others at once.
//!
//! # Prints
//! ```text
//! warp: hello
//! warp: hello
//! weft: good morning
//! weft: good morning
//! ```

use selvedge::http::{Config, Site, Stop};
use selvedge::net::{bind, connect};
use selvedge::scope::{Selected, select};
use selvedge::spawn_local;
use selvedge::sync::{Broadcaster, broadcast};
use selvedge::web::{Message, Path, Response, Router, State, WebSocket, WebSocketUpgrade};
use std::error::Error;

async fn enter(
    State(hall): State<Broadcaster<String>>,
    Path(name): Path<String>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let mut listener = hall.listener();
    upgrade.on_upgrade(async move |mut socket| {
        if socket.send("welcome").await.is_err() {
            return;
        }
        loop {
            match select((socket.next(), listener.listen())).await {
                Selected::First(Ok(Some(Message::Text(text)))) => {
                    hall.send(format!("{name}: {text}"));
                }
                Selected::First(Ok(Some(_))) => {}
                Selected::Second(Ok(said)) => {
                    if socket.send(said).await.is_err() {
                        return;
                    }
                }
                // The client has left.
                _ => return,
            }
        }
    })
}

/// Enters the hall, and returns once the server listens for it.
async fn client(address: &str, name: &str) -> Result<WebSocket, Box<dyn Error>> {
    let stream = connect(address).await?;
    let mut socket = WebSocket::connect(stream, address, &format!("/hall/{name}")).await?;
    socket.next().await?;
    Ok(socket)
}

#[selvedge::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let router = Router::with_state(broadcast(16).0).get("/hall/{name}", enter);
    let site = Site::with_handler(router, Config::default(), None);
    let listener = bind("127.0.0.1:0").await?;
    let address = listener.local_addr().to_string();
    let stop = Stop::new();
    let server = spawn_local({
        let (site, stop) = (site.clone(), stop.clone());
        async move { site.serve_tcp(listener, &stop).await }
    });
    let (mut warp, mut weft) = (client(&address, "warp").await?, client(&address, "weft").await?);
    for (speaks, text) in [(0, "hello"), (1, "good morning")] {
        [&mut warp, &mut weft][speaks].send(text).await?;
        for socket in [&mut warp, &mut weft] {
            if let Some(Message::Text(said)) = socket.next().await? {
                println!("{said}");
            }
        }
    }
    warp.close().await?;
    weft.close().await?;
    stop.request();
    server.await??;
    site.drain().await;
    Ok(())
}
