//! A server that stops well: it accepts no more connections, and answers every request before it
//! ends.
//!
//! # Prints
//! ```text
//! the request under way was answered: done
//! a client that comes later is refused
//! ```

use selvedge::net::{TcpListener, TcpStream, connect};
use selvedge::scope::{CancelToken, Threads, select};
use selvedge::{sleep, spawn};
use std::io;
use std::process::ExitCode;
use std::time::Duration;

async fn serve(listener: TcpListener, stop: CancelToken) -> io::Result<()> {
    let mut connections = Threads::new();
    loop {
        select! {
            accepted = listener.accept() => drop(connections.spawn(answer(accepted?.0))),
            () = stop.cancelled() => break,
        }
    }
    drop(listener);
    while let Some(ended) = connections.next().await {
        if let Ok(Err(error)) = ended {
            eprintln!("{error}");
        }
    }
    Ok(())
}

async fn answer(stream: TcpStream) -> io::Result<()> {
    let mut lines = stream.lines();
    while lines.next().await?.is_some() {
        sleep(Duration::from_millis(20)).await;
        stream.write_all(b"done\n").await?;
    }
    Ok(())
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        let listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
        let (address, stop) = (listener.local_addr().to_string(), CancelToken::new());
        let server = spawn(serve(listener, stop.clone()));

        let client = connect(&address).await?;
        client.write_all(b"work\n").await?;
        sleep(Duration::from_millis(5)).await; // the server is at work
        stop.cancel();
        println!("the request under way was answered: {}", client.lines().next().await?.unwrap_or_default());
        drop(client);
        server.await??;
        let later = if connect(&address).await.is_err() { "refused" } else { "served" };
        println!("a client that comes later is {later}");
        Ok(())
    })
}
