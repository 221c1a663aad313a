//! A wire that leads nowhere, for a stack that talks with itself.

use super::{Receiving, Wire};

/// The wire of a stack that has no other hosts around it.
///
/// On every wire a stack takes what it sends to its own addresses itself. What it sends to others,
/// this wire loses.
///
/// # Examples
/// ```
/// use selvedge::stack::{Loopback, Stack, StackOptions, TcpListener, TcpStream};
///
/// # fn main() -> Result<(), selvedge::SchedulerError> {
/// selvedge::run(async {
///     let options = StackOptions::new().address([127, 0, 0, 1].into(), 8).unwrap();
///     let stack = Stack::start(options, Loopback);
///     let listener = TcpListener::bind(&stack, "127.0.0.1:80".parse().unwrap()).unwrap();
///     let weaver = selvedge::spawn(async move {
///         let (stream, _) = listener.accept().await.unwrap();
///         stream.write_all(b"cloth").await.unwrap();
///     });
///     let stream = TcpStream::connect(&stack, "127.0.0.1:80".parse().unwrap()).await.unwrap();
///     let mut cloth = [0; 5];
///     stream.read_exact(&mut cloth).await.unwrap();
///     weaver.await.unwrap();
/// })
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Loopback;

impl Wire for Loopback {
    fn send(&self, _: &[u8]) {}

    fn receive(&self) -> Receiving<'_> {
        Box::pin(std::future::pending())
    }
}
