//! A web application of ours under a foreign server: hyper, on tokio's runtime and tokio's sockets.

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1 as client;
use hyper::server::conn::http1 as server;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use selvedge::stm::{TVar, atomically};
use selvedge::web::{Path, Router, State};
use selvedge_compat::tower::ToTower;
use std::error::Error;
use std::net::SocketAddr;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::task::{LocalSet, spawn_local};

/// Weaves, and says how much there is. Transactions of ours wait in a task of tokio's too.
async fn weave(State(woven): State<TVar<u64>>, Path(ells): Path<u64>) -> String {
    let sum = atomically(|tx| {
        let sum = woven.read(tx)? + ells;
        woven.write(tx, sum);
        Ok(sum)
    });
    format!("{} ells", sum.await)
}

/// Waits until enough is woven.
async fn wait_for(State(woven): State<TVar<u64>>, Path(ells): Path<u64>) -> String {
    atomically(|tx| if *woven.read(tx)? < ells { tx.retry() } else { Ok(()) }).await;
    format!("at least {ells} ells")
}

fn application() -> Router<TVar<u64>> {
    Router::with_state(TVar::new(0))
        .post("/weave/{ells}", weave)
        .get("/wait/{ells}", wait_for)
        .post("/echo", async |body: selvedge::web::Bytes| body)
}

async fn serve(listener: TcpListener, application: ToTower) -> Result<(), Box<dyn Error>> {
    loop {
        let (stream, peer) = listener.accept().await?;
        let connection = server::Builder::new().serve_connection(TokioIo::new(stream), application.clone());
        // A handler of ours stays on its OS thread, and so does this task.
        spawn_local(async move {
            if let Err(error) = connection.await {
                eprintln!("{peer}: {error}");
            }
        });
    }
}

/// The answer to a request on a connection of its own.
async fn ask(address: SocketAddr, line: &str, body: &str) -> Result<(StatusCode, String), Box<dyn Error>> {
    let (method, path) = line.split_once(' ').ok_or("a method and a path")?;
    let stream = TcpStream::connect(address).await?;
    let (mut requests, connection) = client::handshake(TokioIo::new(stream)).await?;
    spawn_local(connection);
    let request = Request::builder().method(method).uri(path).header("host", address.to_string());
    let answer = requests.send_request(request.body(Full::<Bytes>::from(body.to_owned()))?).await?;
    let status = answer.status();
    let content = answer.into_body().collect().await?.to_bytes();
    Ok((status, String::from_utf8(content.into())?))
}

/// Asks the server, and compares each answer with what the application has to say.
async fn check(address: SocketAddr) -> Result<(), Box<dyn Error>> {
    // It is answered when all the others have been.
    let waits = spawn_local(async move {
        let answer = ask(address, "GET /wait/42", "").await;
        answer.map_err(|error| error.to_string())
    });
    let long = "warp and weft ".repeat(20_000);
    for (line, body, status, expected) in [
        ("POST /weave/12", "", 200, "12 ells"),
        ("GET /weave/12", "", 405, ""),
        ("GET /nothing", "", 404, ""),
        ("POST /echo", &long, 200, &long),
        ("POST /weave/30", "", 200, "42 ells"),
    ] {
        let (found, text) = ask(address, line, body).await?;
        println!("{line}: {found}, {} bytes", text.len());
        if (found.as_u16(), text.as_str()) != (status, expected) {
            return Err(format!("{line}: {found}, {text:?} instead of {status}, {expected:?}").into());
        }
    }
    let (_, text) = waits.await??;
    println!("GET /wait/42: {text}");
    if text == "at least 42 ells" { Ok(()) } else { Err(text.into()) }
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let application = ToTower::new(application());
        let serving =
            spawn_local(async move { serve(listener, application).await.map_err(|e| e.to_string()) });
        let checked = check(address).await;
        serving.abort();
        checked
    })
}
