//! A key-value store over TCP: a line is a command, and all connections share one map.
//!
//! # Prints
//! ```text
//! > set warp wool: ok
//! > get warp: wool
//! > get weft: none
//! > add count 1, by 10 clients 10 times each: 100
//! > fly: error: no such command
//! ```

use selvedge::net::{TcpListener, TcpStream, connect};
use selvedge::spawn;
use selvedge::sync::Mutex;
use std::collections::HashMap;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;

type Store = Arc<Mutex<HashMap<String, String>>>;

async fn answer(command: &str, store: &Store) -> String {
    let mut map = store.lock().await;
    match command.split(' ').collect::<Vec<_>>()[..] {
        ["get", key] => map.get(key).cloned().unwrap_or("none".to_string()),
        ["set", key, value] => {
            map.insert(key.to_string(), value.to_string());
            "ok".to_string()
        }
        ["add", key, number] => {
            let value = map.entry(key.to_string()).or_insert("0".to_string());
            match (value.parse::<i64>(), number.parse::<i64>()) {
                (Ok(old), Ok(number)) => *value = (old + number).to_string(),
                _ => return "error: no number".to_string(),
            }
            value.clone()
        }
        _ => "error: no such command".to_string(),
    }
}

async fn serve(listener: TcpListener) -> io::Result<()> {
    let store = Store::default();
    loop {
        let (stream, _) = listener.accept().await?;
        let store = store.clone();
        drop(spawn(async move {
            let mut lines = stream.lines();
            while let Some(command) = lines.next().await? {
                stream.write_all((answer(&command, &store).await + "\n").as_bytes()).await?;
            }
            io::Result::Ok(())
        }));
    }
}

async fn ask(stream: &TcpStream, command: &str) -> io::Result<String> {
    stream.write_all(format!("{command}\n").as_bytes()).await?;
    Ok(stream.lines().next().await?.unwrap_or_default())
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        let listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
        let address = listener.local_addr().to_string();
        drop(spawn(serve(listener)));
        let stream = connect(&address).await?;
        for command in ["set warp wool", "get warp", "get weft"] {
            println!("> {command}: {}", ask(&stream, command).await?);
        }
        let clients: Vec<_> = (0..10)
            .map(|_| {
                let address = address.clone();
                spawn(async move {
                    let stream = connect(&address).await?;
                    for _ in 0..10 {
                        ask(&stream, "add count 1").await?;
                    }
                    io::Result::Ok(())
                })
            })
            .collect();
        for client in clients {
            client.await??;
        }
        println!("> add count 1, by 10 clients 10 times each: {}", ask(&stream, "get count").await?);
        println!("> fly: {}", ask(&stream, "fly").await?);
        Ok(())
    })
}
