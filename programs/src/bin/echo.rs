//! An echo server, and a hundred clients that talk to it at once.
//!
//! # Prints
//! ```text
//! 100 clients sent 10 messages each, and all came back
//! ```

use selvedge::net::{TcpListener, connect};
use selvedge::spawn;
use std::io;
use std::process::ExitCode;

async fn serve(listener: TcpListener) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        drop(spawn(async move {
            let mut buffer = [0; 1024];
            loop {
                match stream.read(&mut buffer).await? {
                    0 => return io::Result::Ok(()),
                    length => stream.write_all(&buffer[..length]).await?,
                }
            }
        }));
    }
}

async fn talk(address: String, number: u32) -> io::Result<u32> {
    let stream = connect(&address).await?;
    let mut right = 0;
    for turn in 0..10 {
        let message = format!("{number:04} {turn:04}");
        stream.write_all(message.as_bytes()).await?;
        let mut answer = [0; 9];
        stream.read_exact(&mut answer).await?;
        right += u32::from(answer == message.as_bytes());
    }
    Ok(right)
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        let listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
        let address = listener.local_addr().to_string();
        drop(spawn(serve(listener)));
        let clients: Vec<_> = (0..100).map(|number| spawn(talk(address.clone(), number))).collect();
        let (count, mut right) = (clients.len(), 0);
        for client in clients {
            right += client.await??;
        }
        println!(
            "{count} clients sent 10 messages each, and {} came back",
            if right == 1000 { "all" } else { "not all" }
        );
        Ok(())
    })
}
