//! A server that says what a test tells it to say.

use selvedge_io::net::{TcpListener, TcpStream};
use std::io;

pub(crate) const ADDRESS: &str = "127.0.0.1:80";
pub(crate) const URI: &str = "http://127.0.0.1:80/";

pub(crate) fn listen() -> TcpListener {
    TcpListener::bind(ADDRESS.parse().unwrap()).unwrap()
}

/// Reads until `end` has come, and returns all that was read.
pub(crate) async fn read_until(stream: &TcpStream, end: &str) -> io::Result<String> {
    let (mut all, mut buffer) = (Vec::new(), [0; 1000]);
    while !String::from_utf8_lossy(&all).contains(end) {
        match stream.read(&mut buffer).await? {
            0 => break,
            read => all.extend_from_slice(&buffer[..read]),
        }
    }
    Ok(String::from_utf8(all).unwrap())
}

/// Takes a head, and answers with these bytes.
pub(crate) async fn answer(stream: &TcpStream, answer: &str) -> io::Result<String> {
    let head = read_until(stream, "\r\n\r\n").await?;
    stream.write_all(answer.as_bytes()).await?;
    Ok(head)
}
