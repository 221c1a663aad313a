//! [`serve`]: queries over UDP, a thread for each.

use super::Shared;
use crate::say::complain;
use selvedge::net::UdpSocket;
use selvedge::{sleep, try_spawn};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Room for a query. A longer datagram is cut, and is then no query.
const QUERY_MAX: usize = 4096;

/// How long the thread waits after an error of the socket.
const PAUSE: Duration = Duration::from_millis(100);

/// Receives queries for ever.
pub(super) async fn serve(socket: Arc<UdpSocket>, shared: Arc<Shared>) {
    let mut buffer = vec![0; QUERY_MAX];
    loop {
        match socket.recv_from(&mut buffer).await {
            Ok((length, client)) => {
                let query = buffer[..length].to_vec();
                // Without room for a thread the query is dropped.
                drop(try_spawn(answer(socket.clone(), shared.clone(), query, client)));
            }
            Err(error) => {
                complain(format_args!("selvedge-dns: receive a query: {error}"));
                sleep(PAUSE).await;
            }
        }
    }
}

/// The thread of a query.
async fn answer(socket: Arc<UdpSocket>, shared: Arc<Shared>, query: Vec<u8>, client: SocketAddr) {
    // A server that has too much to do sends nothing, and the client asks again.
    let Some(_permit) = shared.queries.try_acquire(1) else { return };
    if let Some(answer) = shared.answer_udp(&query, client.ip()).await {
        // The client may have gone, and any host can give the address of one that refuses answers.
        // So this is no error of the server.
        let _ = socket.send_to(&answer, client).await;
    }
}
