//! An idle server: it listens, sleeps, and waits for a client that does not come. It uses no
//! CPU time meanwhile.
//!
//! # Prints
//! ```text
//! nothing came in 500 ms
//! ```
//!
//! # CPU time
//! 60 ms.

use selvedge::net::TcpListener;
use selvedge::signal::{Signal, signals};
use selvedge::sync::Fifo;
use selvedge::{pipe, sleep, spawn};
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    selvedge::run_main(async {
        let listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
        drop(spawn(async move { listener.accept().await.map(drop) }));
        let (_sender, receiver) = pipe::pipe()?;
        drop(spawn(async move { receiver.read(&mut [0; 16]).await }));
        let mut hangup = signals(&[Signal::HUP])?;
        drop(spawn(async move { hangup.next().await }));
        for _ in 0..100 {
            drop(spawn(async { Fifo::<u8>::new().take().await }));
            drop(spawn(sleep(Duration::from_secs(3600))));
        }
        sleep(Duration::from_millis(500)).await;
        println!("nothing came in 500 ms");
        Ok(())
    })
}
