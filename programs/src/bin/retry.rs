//! Trying again: with longer and longer pauses, a time limit for each attempt and one for all, and
//! an error that names the operation that failed.
//!
//! # Prints
//! ```text
//! the third attempt succeeded
//! the service that never answers was given up
//! Error: connect to 127.0.0.1:..: Connection refused
//! ```
//!
//! # Status
//! 1, because the last service refuses.
//!
//! # CPU time
//! 150 ms.

use selvedge::net::{TcpListener, TcpStream, connect};
use selvedge::time::timeout;
use selvedge::{sleep, spawn};
use std::io;
use std::process::ExitCode;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// Makes attempts of 40 ms each until one succeeds, and counts them.
async fn retry(address: &str, attempts: &mut u32) -> String {
    let mut pause = MS;
    loop {
        *attempts += 1;
        if let Ok(Ok(answer)) = timeout(40 * MS, ask(address)).await {
            return answer;
        }
        sleep(pause).await;
        pause *= 2;
    }
}

async fn ask(address: &str) -> io::Result<String> {
    let stream: TcpStream = connect(address).await?;
    stream.lines().next().await?.ok_or(io::ErrorKind::UnexpectedEof.into())
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        let listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
        let flaky = listener.local_addr().to_string();
        drop(spawn(async move {
            for visit in 1.. {
                let (stream, _) = listener.accept().await?;
                if visit >= 3 {
                    stream.write_all(b"third\n").await?;
                }
            }
            io::Result::Ok(())
        }));
        let mut attempts = 0;
        println!("the {} attempt succeeded", retry(&flaky, &mut attempts).await);

        // The kernel accepts the connection, and no thread answers.
        let silent = TcpListener::bind("127.0.0.1:0".parse()?)?;
        let address = silent.local_addr().to_string();
        let mut attempts = 0;
        let all = timeout(70 * MS, retry(&address, &mut attempts)).await;
        println!("the service that never answers {}", if all.is_err() { "was given up" } else { "answered" });

        drop(silent);
        ask(&address).await?;
        Ok(())
    })
}
