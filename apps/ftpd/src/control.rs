//! [`Control`]: the control connection of a client. Lines come in, replies go out.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::time::Duration;

use selvedge::Time;
use selvedge::net::{Stream, TcpStream};

use crate::reply::Reply;
use crate::telnet::{ControlLine, LineDecoder};

/// The number of bytes that one read takes. The lines of one read take little memory, so a
/// client that sends without end takes little.
const READ_MAX: usize = 1024;

/// The most lines that wait for the end of a transfer.
const DEFERRED_MAX: usize = 16;

/// The control connection of a client.
#[derive(Debug)]
pub(crate) struct Control {
    stream: TcpStream,
    decoder: LineDecoder,
    /// Lines that were decoded, and that the session has not seen.
    arrived: VecDeque<ControlLine>,
    /// Lines that the session has seen during a transfer, and put off to its end.
    deferred: VecDeque<ControlLine>,
    /// How long a client may leave a reply without taking a byte of it.
    patience: Duration,
}

impl Control {
    pub(crate) fn new(stream: TcpStream, patience: Duration) -> Control {
        // A client sends the Synch in front of ABOR as urgent data. In its place among the other
        // bytes, the decoder takes it out. A socket that refuses this loses that byte only.
        let _ = rustix::net::sockopt::set_socket_oobinline(&stream, true);
        let (decoder, arrived, deferred) = Default::default();
        Control { stream, decoder, arrived, deferred, patience }
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
            let Control { stream, decoder, arrived, .. } = self;
            let mut state = Default::default();
            let read = poll_fn(|cx| {
                stream.poll_read_with(&mut state, cx, |stream| take_in(stream, decoder, arrived))
            });
            if read.await? == 0 {
                return Ok(None);
            }
            self.answer_options().await?;
        }
    }

    /// Whether the client has closed its side by now. Lines that have come meanwhile are kept.
    pub(crate) fn is_closed(&mut self) -> bool {
        let Control { stream, decoder, arrived, .. } = self;
        match take_in(stream, decoder, arrived) {
            Ok(read) => read == 0,
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        }
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
    pub(crate) async fn say(&self, reply: &Reply) -> io::Result<()> {
        self.send(&reply.to_bytes()).await
    }

    async fn answer_options(&mut self) -> io::Result<()> {
        let refusals = self.decoder.take_refusals();
        if refusals.is_empty() { Ok(()) } else { self.send(&refusals).await }
    }

    async fn send(&self, bytes: &[u8]) -> io::Result<()> {
        self.stream.set_write_deadline(Some(Time::now() + self.patience));
        self.stream.write_all(bytes).await
    }
}

/// Reads bytes that are there, and decodes them at once, so none is lost. Returns their number.
fn take_in(
    stream: &Stream,
    decoder: &mut LineDecoder,
    arrived: &mut VecDeque<ControlLine>,
) -> io::Result<usize> {
    let mut buffer = [0; READ_MAX];
    let read = stream.try_read(&mut buffer)?;
    decoder.decode(&buffer[..read], arrived);
    Ok(read)
}
