//! How two worlds of different processes meet: the roots exchange a few bytes through a socket.
//!
//! 1. The root that connects sends [`GREETING`] and its number of ranks.
//! 2. The root that accepts makes a segment for the ranks of both, and sends its own number of
//!    ranks and the path of the segment.
//! 3. Every rank of both opens the segment: `joined.rs`.

use crate::error::{CallSite, Error, ErrorClass};
use crate::joined::JoinWay;
use crate::processes::{JobSegment, RANKS_MAX};
use selvedge_io::net::{UnixListener, UnixStream};
use std::io;
use std::sync::Arc;

/// What a world that connects says first.
const GREETING: &[u8; 16] = b"selvedge-mpi 1\n\0";

/// No path of a segment is longer.
const PATH_MAX: u64 = 200;

/// Waits for a world that connects to the socket.
pub(super) async fn accepted(
    call: CallSite,
    listener: &UnixListener,
    ranks: usize,
) -> Result<JoinWay, Error> {
    loop {
        let stream = listener.accept().await.map_err(|error| failed(call, &error))?;
        // A stranger that says something else is left, and the next one is heard.
        if let Ok(others) = greeted(&stream).await {
            let segment = JobSegment::create(ranks + others).map_err(|error| failed(call, &error))?;
            if answer(&stream, ranks, &segment.path()).await.is_ok() {
                return Ok(JoinWay::Segment { segment: Arc::new(segment), first: ranks, leader: 0 });
            }
        }
    }
}

/// The number of ranks of the world that connects.
async fn greeted(stream: &UnixStream) -> io::Result<usize> {
    let mut greeting = [0; GREETING.len()];
    stream.read_exact(&mut greeting).await?;
    let ranks = number(stream).await?;
    match usize::try_from(ranks) {
        Ok(ranks @ 1..=RANKS_MAX) if greeting == *GREETING => Ok(ranks),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

async fn answer(stream: &UnixStream, ranks: usize, path: &str) -> io::Result<()> {
    let mut bytes = (ranks as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(&(path.len() as u64).to_le_bytes());
    bytes.extend_from_slice(path.as_bytes());
    stream.write_all(&bytes).await
}

/// Connects to the socket with this path, and waits until a world accepts this one.
pub(super) async fn connected(call: CallSite, path: &str, ranks: usize) -> Result<JoinWay, Error> {
    let met = async {
        let stream = UnixStream::connect(path).await?;
        stream.write_all(&[&GREETING[..], &(ranks as u64).to_le_bytes()].concat()).await?;
        let first = number(&stream).await?;
        let length = number(&stream).await?;
        if length > PATH_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut path = vec![0; length as usize];
        stream.read_exact(&mut path).await?;
        let path = String::from_utf8(path).map_err(|_| io::ErrorKind::InvalidData)?;
        Ok((JobSegment::open(path)?, first as usize))
    };
    let (segment, first) = met.await.map_err(|error: io::Error| failed(call, &error))?;
    if segment.size().checked_sub(ranks) != Some(first) {
        return Err(call.error(ErrorClass::Join, "the port offers a job of another size"));
    }
    Ok(JoinWay::Segment { segment: Arc::new(segment), first, leader: 0 })
}

async fn number(stream: &UnixStream) -> io::Result<u64> {
    let mut bytes = [0; 8];
    stream.read_exact(&mut bytes).await?;
    Ok(u64::from_le_bytes(bytes))
}

fn failed(call: CallSite, error: &io::Error) -> Error {
    call.error(ErrorClass::Join, error.to_string()).with_errno(error.raw_os_error())
}
