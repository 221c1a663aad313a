//! A TCP proxy: it connects each client to the server behind it, and copies both ways until both
//! have ended.
//!
//! # Prints
//! ```text
//! 3 clients got their 100000 bytes back through the proxy
//! ```

use selvedge::io::{copy, copy_bidirectional};
use selvedge::net::{TcpListener, connect};
use selvedge::scope::{join, join_all};
use selvedge::spawn;
use std::io;
use std::net::Shutdown;
use std::process::ExitCode;

async fn echo(listener: TcpListener) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        drop(spawn(async move { copy(&stream, &stream).await }));
    }
}

async fn proxy(listener: TcpListener, server: String) -> io::Result<()> {
    loop {
        let (client, _) = listener.accept().await?;
        let server = server.clone();
        drop(spawn(async move { copy_bidirectional(&client, &connect(&server).await?).await }));
    }
}

async fn client(address: &str, byte: u8) -> io::Result<bool> {
    let (stream, bytes) = (connect(address).await?, vec![byte; 100_000]);
    let send = async {
        stream.write_all(&bytes).await?;
        stream.shutdown(Shutdown::Write)
    };
    let (sent, got) = join((send, stream.read_to_end())).await;
    sent?;
    Ok(got? == bytes)
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        let behind = TcpListener::bind("127.0.0.1:0".parse()?)?;
        let front = TcpListener::bind("127.0.0.1:0".parse()?)?;
        let address = front.local_addr().to_string();
        drop(spawn(proxy(front, behind.local_addr().to_string())));
        drop(spawn(echo(behind)));

        let mut right = 0;
        for is_right in join_all((1..=3).map(|byte| client(&address, byte))).await {
            right += u32::from(is_right?);
        }
        println!("{right} clients got their 100000 bytes back through the proxy");
        Ok(())
    })
}
