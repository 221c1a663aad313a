//! A client of an FTP server that fetches one large file. Each block of the file begins with its
//! number, so that what comes is checked without reading all of it. The figure is in
//! `figures/src/ftp.rs`.

use crate::machine::session_cpu_ns;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

/// The bytes of a block.
pub(crate) const BLOCK: usize = 64 << 10;

/// The name of the file.
pub(crate) const FILE: &str = "large.bin";

/// The begin of a block by its number.
pub(crate) fn mark(number: u64) -> [u8; 8] {
    (number ^ 0x5e1f_ed9e).to_le_bytes()
}

/// Fetches the file of `blocks` blocks from the server at `port`. The processes of `session` are
/// the server's. Their CPU time is taken while the client is connected, because a server may have a
/// process for each client.
///
/// # Errors
/// The server refuses, or a connection breaks.
pub(super) fn load(port: u64, session: u64, blocks: u64) -> Result<(), String> {
    fetch(port as u16, session, blocks).map_err(|error| error.to_string())
}

fn fetch(port: u16, session: u64, blocks: u64) -> io::Result<()> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    let mut control = BufReader::new(stream);
    expect(&mut control, 220)?;
    for (line, code) in [("USER anonymous", 331), ("PASS figures@localhost", 230), ("TYPE I", 200)] {
        say(&mut control, line)?;
        expect(&mut control, code)?;
    }
    say(&mut control, "EPSV")?;
    let offer = expect(&mut control, 229)?;
    let port = offer.split('|').nth(3).and_then(|port| port.parse::<u16>().ok());
    let port = port.ok_or_else(|| io::Error::other(format!("no port: {offer}")))?;
    let mut data = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    let (before, begin) = (session_cpu_ns(session)?, Instant::now());
    say(&mut control, &format!("RETR {FILE}"))?;
    expect(&mut control, 150)?;
    let (bytes, wrong) = check(&mut data, blocks)?;
    let seconds = begin.elapsed().as_secs_f64();
    expect(&mut control, 226)?;
    let used = session_cpu_ns(session)?.saturating_sub(before);
    say(&mut control, "QUIT")?;
    println!("cpu {}", used as f64 / 1e6 / (bytes as f64 / 1e9));
    println!("bytes {bytes}");
    println!("wrong {wrong}");
    println!("rate {}", bytes as f64 / 1e6 / seconds);
    Ok(())
}

fn say(control: &mut BufReader<TcpStream>, line: &str) -> io::Result<()> {
    control.get_mut().write_all(format!("{line}\r\n").as_bytes())
}

/// The reply with this code. No reply of these commands has several lines.
fn expect(control: &mut BufReader<TcpStream>, code: u16) -> io::Result<String> {
    let mut line = String::new();
    control.read_line(&mut line)?;
    match line.starts_with(&format!("{code} ")) {
        true => Ok(line),
        false => Err(io::Error::other(format!("{code} is wanted, and came {line:?}"))),
    }
}

/// Reads to the end, and counts the bytes, and the blocks that begin wrongly or are missing.
fn check(data: &mut TcpStream, blocks: u64) -> io::Result<(u64, u64)> {
    let mut block = vec![0; BLOCK];
    let (mut bytes, mut wrong) = (0, 0);
    for number in 0.. {
        let mut filled = 0;
        while filled < BLOCK {
            match data.read(&mut block[filled..])? {
                0 => break,
                read => filled += read,
            }
        }
        if filled == 0 {
            return Ok((bytes, wrong + blocks.saturating_sub(number)));
        }
        bytes += filled as u64;
        wrong += u64::from(number >= blocks || !block.starts_with(&mark(number)));
    }
    unreachable!("a file has an end");
}
