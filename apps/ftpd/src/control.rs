//! [`Control`]: the control connection of a client. Lines come in, replies go out, in the clear or
//! over TLS.

use crate::reply::Reply;
use crate::telnet::{ControlLine, LineDecoder};
use crate::tls::{Identity, SecureStream};
use futures_util::io::{AsyncRead, AsyncWriteExt};
use selvedge::net::TcpStream;
use selvedge::{Time, yield_now};
use selvedge_compat::Compat;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// The number of bytes that one read takes. The lines of one read take little memory, so a
/// client that sends without end takes little.
const READ_MAX: usize = 1024;

/// The most lines that wait for the end of a transfer.
const DEFERRED_MAX: usize = 16;

/// The control connection of a client.
#[derive(Debug)]
pub(crate) struct Control {
    stream: Arc<TcpStream>,
    channel: Channel,
    decoder: LineDecoder,
    /// Lines that were decoded, and that the session has not seen.
    arrived: VecDeque<ControlLine>,
    /// Lines that the session has seen during a transfer, and put off to its end.
    deferred: VecDeque<ControlLine>,
    /// How long a client may leave a reply without taking a byte of it.
    patience: Duration,
}

/// What goes over the stream.
#[derive(Debug)]
enum Channel {
    Clear(Compat<Arc<TcpStream>>),
    Secure(SecureStream),
}

impl Control {
    pub(crate) fn new(stream: TcpStream, patience: Duration) -> Control {
        // A client sends the Synch in front of ABOR as urgent data. In its place among the other
        // bytes, the decoder takes it out. A socket that refuses this loses that byte only.
        let _ = rustix::net::sockopt::set_socket_oobinline(&stream, true);
        let (decoder, arrived, deferred) = Default::default();
        let stream = Arc::new(stream);
        let channel = Channel::Clear(Compat::new(Arc::clone(&stream)));
        Control { stream, channel, decoder, arrived, deferred, patience }
    }

    /// Whether it goes over TLS.
    pub(crate) fn is_secure(&self) -> bool {
        matches!(self.channel, Channel::Secure(_))
    }

    /// Goes over to TLS. What has come in the clear and was not read yet is thrown away: an
    /// attacker may have put it behind the client's AUTH.
    ///
    /// # Errors
    /// Those of the handshake. Then the connection is of no use any more.
    pub(crate) async fn secure(&mut self, identity: &Identity) -> io::Result<()> {
        self.channel = Channel::Secure(identity.accept(&self.stream, self.patience).await?);
        (self.decoder, self.arrived, self.deferred) = Default::default();
        Ok(())
    }

    /// Waits for the next line; `None` when the client has closed its side. It loses nothing when
    /// it is dropped.
    ///
    /// # Errors
    /// Those of the connection.
    pub(crate) async fn next(&mut self) -> io::Result<Option<ControlLine>> {
        match self.deferred.pop_front() {
            Some(line) => Ok(Some(line)),
            None => self.arrival().await,
        }
    }

    /// As [`next`](Self::next), but for a line that was not deferred.
    ///
    /// # Errors
    /// Those of the connection.
    pub(crate) async fn arrival(&mut self) -> io::Result<Option<ControlLine>> {
        loop {
            if let Some(line) = self.arrived.pop_front() {
                return Ok(Some(line));
            }
            if poll_fn(|cx| self.poll_arrival(cx)).await? == 0 {
                return Ok(None);
            }
            self.answer_options().await?;
        }
    }

    /// Whether the client has closed its side by now. Lines that have come meanwhile are kept.
    pub(crate) async fn is_closed(&mut self) -> bool {
        // A stream that was read often lets other threads run first, as if nothing had come.
        for _ in 0..2 {
            match poll_fn(|cx| Poll::Ready(self.poll_arrival(cx))).await {
                Poll::Ready(Ok(read)) => return read == 0,
                Poll::Ready(Err(_)) => return true,
                Poll::Pending => yield_now().await,
            }
        }
        false
    }

    /// Reads bytes and decodes them at once, so none is lost. Returns their number.
    fn poll_arrival(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut buffer = [0; READ_MAX];
        let read = ready!(match &mut self.channel {
            Channel::Clear(stream) => Pin::new(stream).poll_read(cx, &mut buffer),
            Channel::Secure(stream) => Pin::new(stream).poll_read(cx, &mut buffer),
        })?;
        self.decoder.decode(&buffer[..read], &mut self.arrived);
        Poll::Ready(Ok(read))
    }

    /// Whether one more line can be deferred.
    pub(crate) fn has_room(&self) -> bool {
        self.deferred.len() < DEFERRED_MAX
    }

    /// Puts a line off: [`next`](Self::next) gives it again, in its order.
    pub(crate) fn defer(&mut self, line: ControlLine) {
        self.deferred.push_back(line);
    }

    /// Sends a reply.
    ///
    /// # Errors
    /// Those of the connection; `TimedOut` if the client takes nothing.
    pub(crate) async fn say(&mut self, reply: &Reply) -> io::Result<()> {
        self.send(&reply.to_bytes()).await
    }

    /// Tells a client over TLS that nothing follows.
    ///
    /// # Errors
    /// Those of the connection.
    pub(crate) async fn close(&mut self) -> io::Result<()> {
        match &mut self.channel {
            Channel::Clear(_) => Ok(()),
            Channel::Secure(stream) => stream.close().await,
        }
    }

    async fn answer_options(&mut self) -> io::Result<()> {
        let refusals = self.decoder.take_refusals();
        if refusals.is_empty() { Ok(()) } else { self.send(&refusals).await }
    }

    async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.set_write_deadline(Some(Time::now() + self.patience));
        match &mut self.channel {
            Channel::Clear(stream) => stream.write_all(bytes).await,
            Channel::Secure(stream) => {
                stream.write_all(bytes).await?;
                stream.flush().await
            }
        }
    }
}
