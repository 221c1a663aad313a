//! [`serve`]: clients over TCP, a thread for each. A client's queries are answered in their order
//! (RFC 7766).

use super::Shared;
use crate::frame;
use crate::say::complain;
use selvedge::net::{TcpListener, TcpStream};
use selvedge::{Time, sleep, try_spawn};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// How long the thread waits after an error of the listener.
const PAUSE: Duration = Duration::from_millis(100);

/// Accepts clients for ever.
pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        match listener.accept().await {
            // Without room for a thread the client is closed.
            Ok((stream, client)) => drop(try_spawn(client_thread(stream, shared.clone(), client))),
            Err(error) => {
                complain(format_args!("selvedge-dns: {error}"));
                sleep(PAUSE).await;
            }
        }
    }
}

/// The thread of a client. A client that is one too many is closed at once.
async fn client_thread(stream: TcpStream, shared: Arc<Shared>, client: SocketAddr) {
    let Some(_permit) = shared.clients.try_acquire(1) else { return };
    // The client has closed the connection, or was idle for too long: no error of the server.
    let _ = answer_all(&stream, &shared, client).await;
}

async fn answer_all(stream: &TcpStream, shared: &Shared, client: SocketAddr) -> io::Result<()> {
    loop {
        // For the whole message, so that a client cannot send it byte by byte for ever.
        stream.set_read_deadline(Some(Time::now() + shared.idle));
        let Some(query) = frame::read(stream).await? else { return Ok(()) };
        let permit = shared.queries.acquire().await;
        let answer = shared.answer_tcp(&query, client.ip()).await;
        drop(permit);
        // What is no query ends the connection.
        let Some(answer) = answer else { return Ok(()) };
        stream.set_write_deadline(Some(Time::now() + shared.idle));
        frame::write(stream, &answer).await?;
    }
}
