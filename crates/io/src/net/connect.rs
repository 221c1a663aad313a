//! `connect`: connects by name, and tries all addresses of the name. Programs call it;
//! `TcpStream::connect` makes each attempt.
//!
//! The attempts are futures within the one future of `first_of`, not threads, so dropping that
//! future gives all of them up.

use super::TcpStream;
use super::addresses::{Places, ToSocketAddrs};
use crate::error::doing;
use crate::time::sleep;
use selvedge_core::SleepUntil;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

/// How long the latest attempt runs before the next address is tried beside it.
const HEAD_START: Duration = Duration::from_millis(250);

/// Connects to the address that answers first: of a name, as in `connect("example.org:80")`, or of
/// several addresses. See [`ToSocketAddrs`].
///
/// The addresses are tried in the resolver's order. The next address is tried when the attempt
/// before it has failed, or has not answered for 250 ms. The earlier attempts go on meanwhile; all
/// of them are given up once one attempt has succeeded.
///
/// # Errors
/// With the name in the message, and the reason why the last address failed: unknown, refused,
/// unreachable, timed out after the system's own time-out, which is minutes.
///
/// # Examples
/// ```no_run
/// use selvedge::net::connect;
///
/// selvedge::run_local(async {
///     let stream = connect("localhost:8080").await?;
///     stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await?;
///     println!("{}", String::from_utf8_lossy(&stream.read_to_end().await?));
///     std::io::Result::Ok(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn connect(to: impl ToSocketAddrs) -> io::Result<TcpStream> {
    let places = to.places();
    if let Places::One(address) = places {
        return TcpStream::connect(address).await;
    }
    let addresses = places.addresses().await?;
    first_of(&addresses).await.map_err(doing(format_args!("connect to {places}")))
}

type Attempt = Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>>;

/// Connects by the address that answers first.
async fn first_of(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut addresses = addresses.iter().copied();
    let mut attempts: Vec<Attempt> = Vec::new();
    let mut last_error = None;
    let mut head_start: Pin<&mut Option<SleepUntil>> = pin!(None);
    poll_fn(|cx| {
        loop {
            let mut connected = None;
            attempts.retain_mut(|attempt| match attempt.as_mut().poll(cx) {
                Poll::Pending => true,
                Poll::Ready(ended) => {
                    match ended {
                        Ok(stream) => connected = Some(stream),
                        Err(error) => last_error = Some(error),
                    }
                    false
                }
            });
            if let Some(stream) = connected {
                return Poll::Ready(Ok(stream));
            }
            if let Some(alarm) = head_start.as_mut().as_pin_mut()
                && !attempts.is_empty()
                && alarm.poll(cx).is_pending()
            {
                return Poll::Pending;
            }
            head_start.set(None);
            match addresses.next() {
                Some(address) => {
                    attempts.push(Box::pin(TcpStream::connect(address)));
                    head_start.set(Some(sleep(HEAD_START)));
                }
                None if attempts.is_empty() => {
                    let none = || io::Error::new(io::ErrorKind::NotFound, "it has no address");
                    return Poll::Ready(Err(last_error.take().unwrap_or_else(none)));
                }
                None => return Poll::Pending,
            }
        }
    })
    .await
}
