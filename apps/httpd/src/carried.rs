//! Connections of a stack on their way to a site: a thread carries the bytes of each between the
//! stack's stream and one end of a pair of Unix sockets. The site has the other end.
//!
//! `stacked.rs` starts the threads. All threads of a worker use one buffer, and none while it
//! waits, so a connection at rest is small.

use selvedge_io::net::UnixStream;
use selvedge_io::time::timeout;
use selvedge_scope::Threads;
use selvedge_stack::TcpStream;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

/// How long a client may leave a connection open that the site has closed, until the thread looks
/// again whether the site has: the kernel tells that only when it is asked.
const LOOK: Duration = Duration::from_millis(500);

/// The bytes that are carried at a time.
const PIECE: usize = 16 << 10;

/// The threads of a worker that carry connections.
pub(crate) struct Carriers {
    threads: RefCell<Threads<()>>,
    /// Borrowed between two waits only.
    buffer: RefCell<Box<[u8]>>,
}

impl Carriers {
    pub(crate) fn new() -> Rc<Carriers> {
        let buffer = RefCell::new(vec![0; PIECE].into());
        Rc::new(Carriers { threads: RefCell::default(), buffer })
    }

    /// Starts a thread that carries `stream` to the other end of `near`.
    pub(crate) fn start(self: &Rc<Carriers>, stream: TcpStream, near: UnixStream) {
        let mut threads = self.threads.borrow_mut();
        // The results of the threads that have ended take room.
        while threads.try_next().is_some() {}
        threads.spawn_local(self.clone().carry(stream, near));
    }

    /// Waits until all threads have ended.
    pub(crate) async fn finish(&self) {
        let mut threads = self.threads.take();
        while threads.next().await.is_some() {}
    }

    /// Carries a connection to its end.
    async fn carry(self: Rc<Carriers>, stream: TcpStream, near: UnixStream) {
        // Errors of `shutdown` say that the end is gone already.
        let mut coming = pin!(async {
            let _ = match self.carry_in(&stream, &near).await {
                Ok(()) => near.shutdown(Shutdown::Write),
                // The site finds its connection broken.
                Err(CarryError::Client) => near.shutdown(Shutdown::Both),
                Err(CarryError::Site) => Ok(()),
            };
        });
        let mut has_come = false;
        {
            let mut going = pin!(async {
                let _ = match self.carry_out(&stream, &near).await {
                    Err(CarryError::Client) => near.shutdown(Shutdown::Both),
                    Ok(()) | Err(CarryError::Site) => stream.shutdown(Shutdown::Write),
                };
            });
            poll_fn(|cx| {
                has_come = has_come || coming.as_mut().poll(cx).is_ready();
                going.as_mut().poll(cx)
            })
            .await;
        }
        // The site may still read, or it may have closed its end.
        while !has_come && near.try_send(&[], false).is_ok() {
            has_come = timeout(LOOK, coming.as_mut()).await.is_ok();
        }
    }

    /// Carries what the client sends, to its end.
    async fn carry_in(&self, stream: &TcpStream, near: &UnixStream) -> Result<(), CarryError> {
        loop {
            let sent = {
                let buffer = &mut self.buffer.borrow_mut()[..];
                match stream.peek(buffer).map_err(|_| CarryError::Client)? {
                    Some(0) => return Ok(()),
                    Some(there) => Some(near.try_send(&buffer[..there], false)),
                    None => None,
                }
            };
            match sent {
                None => stream.readable().await.map_err(|_| CarryError::Client)?,
                Some(Ok(sent)) => stream.consume(sent),
                Some(Err(error)) if waits(&error)? => near.writable().await.map_err(|_| CarryError::Site)?,
                Some(Err(_)) => {}
            }
        }
    }

    /// Carries what the site sends, to its end.
    async fn carry_out(&self, stream: &TcpStream, near: &UnixStream) -> Result<(), CarryError> {
        let mut expected = 1;
        loop {
            let Some(room) = stream.room(expected).map_err(|_| CarryError::Client)? else {
                stream.writable(expected).await.map_err(|_| CarryError::Client)?;
                continue;
            };
            let came = {
                let buffer = &mut self.buffer.borrow_mut()[..room.min(PIECE)];
                let came = near.try_read(buffer);
                if let Ok(came @ 1..) = came {
                    stream.try_write(&buffer[..came]).map_err(|_| CarryError::Client)?;
                }
                // If there was more than room, the next write has much.
                expected = if came.as_ref().is_ok_and(|came| *came == buffer.len()) { PIECE } else { 1 };
                came
            };
            match came {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if waits(&error)? => near.readable().await.map_err(|_| CarryError::Site)?,
                Err(_) => {}
            }
        }
    }
}

/// Which end of a carried connection takes or gives no more.
enum CarryError {
    Client,
    Site,
}

/// Whether a call on the pair has to wait. If not, it was interrupted and is made again.
fn waits(error: &io::Error) -> Result<bool, CarryError> {
    match error.kind() {
        ErrorKind::WouldBlock => Ok(true),
        ErrorKind::Interrupted => Ok(false),
        _ => Err(CarryError::Site),
    }
}
