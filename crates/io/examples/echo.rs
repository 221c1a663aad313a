//! An echo server: a thread for each connection, on the reference scheduler and one event loop.
//!
//! ```text
//! cargo run --release -p selvedge-io --example echo -- 127.0.0.1:7007
//! ```

use selvedge_core::{Time, round_robin_with, spawn};
use selvedge_io::EventLoop;
use selvedge_io::net::{TcpListener, TcpStream};
use std::time::Duration;

const IDLE: Duration = Duration::from_secs(60);

async fn echo(stream: TcpStream) -> std::io::Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        stream.set_read_deadline(Some(selvedge_core::now() + IDLE));
        match stream.read(&mut buffer).await? {
            0 => return Ok(()),
            n => stream.write_all(&buffer[..n]).await?,
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:7007".into()).parse()?;
    round_robin_with(&mut EventLoop::new()?, async move {
        let listener = TcpListener::bind(address)?;
        println!("listening at {}", listener.local_addr());
        loop {
            let (stream, peer) = listener.accept().await?;
            drop(spawn(async move {
                if let Err(error) = echo(stream).await {
                    eprintln!("{peer} at {:?}: {error}", Time::now());
                }
            }));
        }
    })?
}
