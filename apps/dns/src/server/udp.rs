//! [`serve`]: queries over UDP, a thread for each.

use super::shared::{QuerySource, Shared};
use crate::rate::Pace;
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

/// Receives queries for ever. A query that was answered in this second already is answered at once.
pub(super) async fn serve(socket: Arc<UdpSocket>, shared: Arc<Shared>) {
    let (mut buffer, mut known) = (vec![0; QUERY_MAX], Vec::new());
    loop {
        match socket.recv_from(&mut buffer).await {
            Ok((length, client)) => {
                let query = &buffer[..length];
                let from = shared.sender(client.ip());
                // A socket without room sends the answer from a thread.
                let is_sent =
                    shared.recall(query, from, &mut known) && socket.try_send_to(&known, client).is_ok();
                if !is_sent && from.pace != Pace::Drop {
                    let thread = answer(socket.clone(), shared.clone(), query.to_vec(), client, from);
                    // Without room for a thread the query is dropped.
                    drop(try_spawn(thread));
                }
            }
            Err(error) => {
                complain(format_args!("selvedge-dns: receive a query: {error}"));
                sleep(PAUSE).await;
            }
        }
    }
}

/// The thread of a query.
async fn answer(
    socket: Arc<UdpSocket>,
    shared: Arc<Shared>,
    query: Vec<u8>,
    client: SocketAddr,
    from: QuerySource,
) {
    // A server that has too much to do sends nothing, and the client asks again.
    let Some(_permit) = shared.queries.try_acquire(1) else { return };
    if let Some(answer) = shared.answer_udp(&query, client.ip(), from).await {
        // The client may have gone, and any host can give the address of one that refuses answers.
        // So this is no error of the server.
        let _ = socket.send_to(&answer, client).await;
    }
}
