//! A chat server: all clients get the lines that each of them sends. Each client has a thread that
//! reads and one that writes.
//!
//! # Prints
//! ```text
//! warp heard: weft: good morning
//! weft heard: warp: hello
//! selvedge heard both: true
//! ```

use selvedge::net::{TcpListener, TcpStream, connect};
use selvedge::spawn;
use selvedge::sync::{Broadcaster, broadcast};
use std::io;
use std::process::ExitCode;
use std::sync::Arc;

type Said = (String, String);

async fn serve(listener: TcpListener, hall: Broadcaster<Said>) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        drop(spawn(talk(Arc::new(stream), hall.clone())));
    }
}

async fn talk(stream: Arc<TcpStream>, hall: Broadcaster<Said>) -> io::Result<()> {
    let mut lines = stream.lines();
    let Some(name) = lines.next().await? else { return Ok(()) };
    let (mut listener, to, own) = (hall.listener(), stream.clone(), name.clone());
    let writer = spawn(async move {
        while let Ok((name, text)) = listener.listen().await {
            if name != own {
                to.write_all(format!("{name}: {text}\n").as_bytes()).await?;
            }
        }
        io::Result::Ok(())
    });
    stream.write_all(b"welcome\n").await?;
    while let Some(text) = lines.next().await? {
        hall.send((name.clone(), text));
    }
    writer.cancel();
    Ok(())
}

/// Enters the hall, and returns once the server listens for it.
async fn enter(address: &str, name: &str) -> io::Result<TcpStream> {
    let stream = connect(address).await?;
    stream.write_all(format!("{name}\n").as_bytes()).await?;
    let mut welcome = [0; 8];
    stream.read_exact(&mut welcome).await?;
    Ok(stream)
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        let listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
        let address = listener.local_addr().to_string();
        drop(spawn(serve(listener, broadcast(16).0)));

        let (warp, weft) = (enter(&address, "warp").await?, enter(&address, "weft").await?);
        let selvedge = enter(&address, "selvedge").await?;
        weft.write_all(b"good morning\n").await?;
        println!("warp heard: {}", warp.lines().next().await?.unwrap_or_default());
        warp.write_all(b"hello\n").await?;
        println!("weft heard: {}", weft.lines().next().await?.unwrap_or_default());
        let mut heard = selvedge.lines();
        let both = (heard.next().await?, heard.next().await?);
        println!(
            "selvedge heard both: {}",
            both == (Some("weft: good morning".into()), Some("warp: hello".into()))
        );
        Ok(())
    })
}
