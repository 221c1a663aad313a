//! A client of the web servers that makes a given number of requests. The figure in
//! `figures/src/web/instructions.rs` runs it beside a server under callgrind, so that the server's
//! instructions for each request can be counted. `child.rs` calls `requests`.
//!
//! It has blocking sockets and one request in flight for each connection. It prints the replies and
//! the bytes of their bodies, which the figure checks.

use crate::web::SMALL;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};

/// Makes `total` requests for the small file over `connections` keep-alive connections, each with
/// one in flight, and prints how many replies there were and the bytes of their bodies.
///
/// # Errors
///
/// The fault: a connection that broke, a reply without the status 200.
pub(super) fn requests(port: u64, connections: u64, total: u64) -> Result<(), String> {
    run(port as u16, connections, total).map_err(|error| error.to_string())
}

fn run(port: u16, connections: u64, total: u64) -> io::Result<()> {
    let request = format!("GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", SMALL.path);
    let mut all = Vec::new();
    for _ in 0..connections {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        all.push(BufReader::new(stream));
    }
    let (mut bytes, mut sent) = (0, 0);
    for connection in all.iter_mut().take(total as usize) {
        connection.get_mut().write_all(request.as_bytes())?;
        sent += 1;
    }
    // In turn, so that the server has had all other requests by the time a connection's next is
    // sent.
    for turn in 0..total {
        let connection = &mut all[(turn % connections) as usize];
        bytes += reply(connection)?;
        if sent < total {
            connection.get_mut().write_all(request.as_bytes())?;
            sent += 1;
        }
    }
    println!("requests {total}");
    println!("body_bytes {bytes}");
    Ok(())
}

/// Reads a reply and returns the bytes of its body.
fn reply(connection: &mut BufReader<TcpStream>) -> io::Result<u64> {
    let mut length = 0;
    let mut line = String::new();
    for number in 0.. {
        line.clear();
        connection.read_line(&mut line)?;
        if number == 0 && !line.starts_with("HTTP/1.1 200 ") {
            return Err(io::Error::other(format!("a reply begins with {line:?}")));
        }
        let Some((name, value)) = line.trim_end().split_once(':') else {
            if number > 0 {
                break;
            }
            continue;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    let mut body = vec![0; length as usize];
    connection.read_exact(&mut body)?;
    Ok(length)
}
