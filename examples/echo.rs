//! A TCP echo server and a thousand clients, each a thread.

use selvedge::net::{TcpListener, TcpStream};
use selvedge::{fork, spawn};
use std::io;
use std::net::SocketAddr;

const CLIENTS: usize = 1_000;

/// Sends back all that it receives, until the client closes.
async fn echo(stream: TcpStream) -> io::Result<()> {
    let mut buffer = [0; 256];
    loop {
        let n = stream.read(&mut buffer).await?;
        if n == 0 {
            return Ok(());
        }
        stream.write_all(&buffer[..n]).await?;
    }
}

async fn serve(listener: TcpListener) -> io::Result<()> {
    loop {
        let (stream, peer) = listener.accept().await?;
        fork(async move {
            if let Err(error) = echo(stream).await {
                eprintln!("{peer}: {error}");
            }
        })
        .await;
    }
}

async fn client(address: SocketAddr, number: usize) -> io::Result<usize> {
    let stream = TcpStream::connect(address).await?;
    let sent = format!("client {number}");
    stream.write_all(sent.as_bytes()).await?;
    let mut received = vec![0; sent.len()];
    stream.read_exact(&mut received).await?;
    assert_eq!(received, sent.as_bytes());
    Ok(received.len())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
    let address = listener.local_addr();
    selvedge::run(async move {
        // Dropping the handle lets the server run on until main ends.
        drop(spawn(serve(listener)));
        let clients: Vec<_> = (0..CLIENTS).map(|number| spawn(client(address, number))).collect();
        let mut bytes = 0;
        for client in clients {
            bytes += client.await.map_err(io::Error::other)??;
        }
        println!("{CLIENTS} clients got their {bytes} bytes back from {address}");
        Ok::<(), io::Error>(())
    })??;
    Ok(())
}
