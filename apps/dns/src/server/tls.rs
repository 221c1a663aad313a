//! [`serve`]: clients over TLS (RFC 7858), a thread for each. Behind the handshake they are as
//! clients over TCP.

use super::shared::Shared;
use super::tcp::{accept_all, answer_all};
use crate::tls::IdentityCell;
use futures_rustls::TlsAcceptor;
use futures_util::io::AsyncWriteExt;
use selvedge::Time;
use selvedge::net::{TcpListener, TcpStream};
use selvedge_compat::Compat;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// Accepts clients for ever.
pub(super) async fn serve(listener: TcpListener, identity: IdentityCell, shared: Arc<Shared>) {
    accept_all(listener, |stream, client| client_thread(stream, identity.clone(), shared.clone(), client))
        .await;
}

/// The thread of a client. A client that is one too many is closed at once.
async fn client_thread(stream: TcpStream, identity: IdentityCell, shared: Arc<Shared>, client: SocketAddr) {
    let Some(_permit) = shared.clients.try_acquire(1) else { return };
    // The client has closed the connection, speaks no TLS, or was idle for too long.
    let _ = serve_client(Arc::new(stream), &identity, &shared, client).await;
}

async fn serve_client(
    stream: Arc<TcpStream>,
    identity: &IdentityCell,
    shared: &Shared,
    client: SocketAddr,
) -> io::Result<()> {
    let config = identity.lock().expect("no code panics under this lock").config.clone();
    let until = Some(Time::now() + shared.idle);
    stream.set_read_deadline(until);
    stream.set_write_deadline(until);
    let mut link = TlsAcceptor::from(config).accept(Compat::new(stream.clone())).await?;
    let answered = answer_all(&mut link, &stream, shared, client).await;
    // Tells the client that this end is no attacker's.
    link.close().await?;
    answered
}
