//! A web server for a directory in a few lines, and a client that asks it for a file, a part of it,
//! and one that is not there.
//!
//! # Prints
//! ```text
//! /hello.txt: HTTP/1.1 200 OK, warp and weft
//! /hello.txt, bytes 9 to 12: HTTP/1.1 206 Partial Content, weft
//! /none: HTTP/1.1 404 Not Found
//! ```

use selvedge::http::{Config, DocumentRoot, Site, Stop};
use selvedge::net::{TcpListener, connect};
use selvedge::{fs, spawn_local};
use std::error::Error;
use std::io;

/// The first line of an answer, and its content.
async fn get(address: &str, path: &str, range: &str) -> io::Result<(String, String)> {
    let stream = connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{range}\r\n");
    stream.write_all(request.as_bytes()).await?;
    let answer = String::from_utf8_lossy(&stream.read_to_end().await?).into_owned();
    let (head, content) = answer.split_once("\r\n\r\n").unwrap_or_default();
    Ok((head.lines().next().unwrap_or_default().to_string(), content.to_string()))
}

// The server and its threads stay on one OS thread. `per_core` runs one such server on each core.
fn main() -> Result<(), Box<dyn Error>> {
    selvedge::run_local(async {
        let root = std::env::temp_dir().join(format!("static-files-{}", std::process::id()));
        fs::create_dir_all(&root).await?;
        fs::write(root.join("hello.txt"), "warp and weft").await?;

        let listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
        let (address, stop) = (listener.local_addr().to_string(), Stop::new());
        let (site, told) = (Site::new(DocumentRoot::new(&root)?, Config::default(), None), stop.clone());
        let server = spawn_local(async move { site.serve_tcp(listener, &told).await });

        let (line, content) = get(&address, "/hello.txt", "").await?;
        println!("/hello.txt: {line}, {content}");
        let (line, content) = get(&address, "/hello.txt", "Range: bytes=9-12\r\n").await?;
        println!("/hello.txt, bytes 9 to 12: {line}, {content}");
        println!("/none: {}", get(&address, "/none", "").await?.0);

        stop.request();
        server.await??;
        fs::remove_dir_all(root).await?;
        Ok(())
    })?
}
