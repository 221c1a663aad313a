//! Streams of bytes of any kind: the traits [`Read`] and [`Write`] that they share, reading by
//! lines, and copying one stream to another.
//!
//! | | reads | writes |
//! |---|---|---|
//! | [`TcpStream`](crate::net::TcpStream), [`UnixStream`](crate::net::UnixStream), [`Stream`](crate::net::Stream) and `&` of them | ✓ | ✓ |
//! | [`pipe::Receiver`](crate::pipe::Receiver), [`pipe::Sender`](crate::pipe::Sender) and `&` of them | ✓ | ✓ |
//! | [`fs::File`](crate::fs::File), from its position on | ✓ | ✓ |
//! | [`stdio::Stdin`](crate::stdio::Stdin), [`stdio::Output`](crate::stdio::Output) and `&` of it | ✓ | ✓ |
//! | [`BufReader`] | ✓ | |
//! | `&[u8]`, `Vec<u8>` | ✓ | ✓ |
//! | `&mut` of each | ✓ | ✓ |
//!
//! Streams have methods of their own for all that a program does with one stream. So a program
//! needs [`Read`] and [`Write`] only in signatures, as in `async fn greet(stream: impl Write)`, and
//! need not import them otherwise.
//!
//! # Why the traits are not for trait objects
//! A method of these traits returns its future by value: a call allocates nothing, and the compiler
//! can inline it. So there is no `dyn Read`. A program that chooses between kinds of streams while
//! it runs makes an `enum` of them.
//!
//! The futures are `Send`, so that a thread with code over any stream can move between workers.
//!
//! # Examples
//! A conversation over any kind of stream:
//! ```
//! use selvedge::io::{BufReader, Read, Write};
//!
//! async fn greet(from: impl Read, mut to: impl Write) -> std::io::Result<()> {
//!     let mut lines = BufReader::new(from).lines();
//!     while let Some(name) = lines.next().await? {
//!         to.write_all(format!("hello, {name}\n").as_bytes()).await?;
//!     }
//!     Ok(())
//! }
//!
//! let mut said = Vec::new();
//! selvedge::run_local(async move {
//!     greet(&b"warp\nweft\n"[..], &mut said).await?;
//!     assert_eq!(said, b"hello, warp\nhello, weft\n");
//!     std::io::Result::Ok(())
//! })??;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod buf_reader;
mod copy;
mod streams;
mod traits;

pub use buf_reader::{BufReader, Lines};
pub use copy::{copy, copy_bidirectional};
pub use traits::{Read, Write};
