//! [`serve`]: clients over TCP, a thread for each. A client's queries are answered in their order
//! (RFC 7766).

use super::shared::{Shared, TcpAnswer};
use crate::frame;
use crate::say::complain;
use futures_util::io::{AsyncRead, AsyncWrite};
use selvedge::net::{Stream, TcpListener, TcpStream};
use selvedge::{Time, sleep, try_spawn};
use selvedge_compat::Compat;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// How long the thread waits after an error of the listener.
const PAUSE: Duration = Duration::from_millis(100);

/// Accepts clients for ever.
pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    accept_all(listener, |stream, client| client_thread(stream, shared.clone(), client)).await;
}

/// Starts a thread for each client that comes.
pub(super) async fn accept_all<T>(listener: TcpListener, thread: impl Fn(TcpStream, SocketAddr) -> T)
where
    T: Future<Output = ()> + Send + 'static,
{
    loop {
        match listener.accept().await {
            // Without room for a thread the client is closed.
            Ok((stream, client)) => drop(try_spawn(thread(stream, client))),
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
    let _ = answer_all(&mut Compat::new(&*stream), &stream, &shared, client).await;
}

/// Answers a client's queries until there is none any more. `link` carries the messages over
/// `stream`.
pub(super) async fn answer_all(
    link: &mut (impl AsyncRead + AsyncWrite + Unpin),
    stream: &Stream,
    shared: &Shared,
    client: SocketAddr,
) -> io::Result<()> {
    loop {
        // For the whole message, so that a client cannot send it byte by byte for ever.
        stream.set_read_deadline(Some(Time::now() + shared.idle));
        let Some(query) = frame::read(&mut *link).await? else { return Ok(()) };
        let permit = shared.queries.acquire().await;
        let answer = shared.answer_tcp(&query, client.ip()).await;
        drop(permit);
        // What is no query ends the connection.
        let Some(answer) = answer else { return Ok(()) };
        match answer {
            TcpAnswer::Message(answer) => {
                stream.set_write_deadline(Some(Time::now() + shared.idle));
                frame::write(&mut *link, &answer).await?;
            }
            TcpAnswer::Zone(transfer) => transfer.send(link, stream, shared.idle).await?,
        }
    }
}
