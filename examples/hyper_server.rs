//! hyper on our threads: a server and a client of it in one program.

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1 as client;
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper::{Request, Response};
use selvedge::net::{TcpListener, TcpStream};
use selvedge::{sleep, spawn_local};
use selvedge_compat::Compat;
use selvedge_compat::hyper::Clock;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Takes a number and a while, and answers with its square.
async fn square(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Box<dyn Error + Send + Sync>> {
    let body = request.into_body().collect().await?.to_bytes();
    let number: u64 = std::str::from_utf8(&body)?.parse()?;
    // Our system calls work in a handler of hyper's.
    sleep(Duration::from_millis(number)).await;
    Ok(Response::new(Full::from((number * number).to_string())))
}

async fn serve(listener: TcpListener) -> io::Result<()> {
    let mut http = server::Builder::new();
    http.timer(Clock).header_read_timeout(Duration::from_secs(10));
    loop {
        let (stream, peer) = listener.accept().await?;
        let connection = http.serve_connection(Compat::new(stream), service_fn(square));
        drop(spawn_local(async move {
            if let Err(error) = connection.await {
                eprintln!("{peer}: {error}");
            }
        }));
    }
}

async fn ask(address: SocketAddr, numbers: impl Iterator<Item = u64>) -> Result<u64, Box<dyn Error>> {
    let stream = TcpStream::connect(address).await?;
    let (mut requests, connection) = client::handshake(Compat::new(stream)).await?;
    // The connection must be polled beside the requests. A thread of its own does that.
    drop(spawn_local(connection));
    let mut sum = 0;
    for number in numbers {
        let body = Full::<Bytes>::from(number.to_string());
        let request = Request::post("/square").header("host", address.to_string()).body(body)?;
        let answer = requests.send_request(request).await?.into_body().collect().await?.to_bytes();
        sum += std::str::from_utf8(&answer)?.parse::<u64>()?;
    }
    Ok(sum)
}

fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
    let address = listener.local_addr();
    selvedge::run_local(async move {
        drop(spawn_local(serve(listener)));
        let clients: Vec<_> = (0..10).map(|client| spawn_local(ask(address, client..client + 10))).collect();
        for (number, client) in clients.into_iter().enumerate() {
            let sum = client.await??;
            println!("client {number} got {sum} from {address}");
            let number = number as u64;
            assert_eq!(sum, (number..number + 10).map(|n| n * n).sum::<u64>());
        }
        Ok::<(), Box<dyn Error>>(())
    })?
}
