//! What may leave its OS thread, and what may be moved while it is polled.
#![cfg(feature = "hyper")]

use selvedge_compat::Compat;
use selvedge_compat::hyper::{Clock, FuturesIo, Spawn, SpawnLocal};
use selvedge_io::net::{Stream, TcpStream, UnixStream};
use selvedge_io::pipe::{Receiver, Sender};
use std::sync::Arc;

fn moves<T: Send + Sync + Unpin>() {}

#[test]
fn adapters_move_as_their_streams_do() {
    moves::<Compat<Stream>>();
    moves::<Compat<TcpStream>>();
    moves::<Compat<UnixStream>>();
    moves::<Compat<&'static TcpStream>>();
    moves::<Compat<Arc<TcpStream>>>();
    moves::<Compat<Receiver>>();
    moves::<Compat<Sender>>();
    moves::<FuturesIo<Compat<TcpStream>>>();
    moves::<(Clock, Spawn, SpawnLocal)>();
}
