//! `copy` and `copy_bidirectional`, over any streams with `Read` and `Write`. Programs call them;
//! nothing in this crate does.
//!
//! The two directions of `copy_bidirectional` are two futures in one thread (`scope`'s `try_join`),
//! so an error of one drops the other.

use super::{Read, Write};
use selvedge_scope::try_join;
use std::io;

/// The number of bytes that one read asks for.
const PIECE: usize = 16 << 10;

/// Copies the bytes of `from` to `to`, until the end of `from`. Returns the number of bytes. It
/// does not [finish](Write::finish) `to`.
///
/// A program that uses a stream afterwards passes a reference: `copy(&stream, &mut file)`.
///
/// # Errors
/// Those of both. After an error the number of written bytes is unknown, and the bytes that were
/// read last are lost.
///
/// # Cancellation
/// Up to 16 KiB that were read and not written yet are lost.
///
/// # Complexity
/// One buffer of 16 KiB.
///
/// # Examples
/// ```
/// use selvedge::io::copy;
///
/// selvedge::run_local(async {
///     let mut to = Vec::new();
///     assert_eq!(copy(&b"warp and weft"[..], &mut to).await?, 13);
///     assert_eq!(to, b"warp and weft");
///     std::io::Result::Ok(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn copy<R: Read, W: Write>(mut from: R, mut to: W) -> io::Result<u64> {
    let mut piece = vec![0; PIECE];
    let mut copied = 0;
    loop {
        match from.read(&mut piece).await? {
            0 => return Ok(copied),
            read => {
                to.write_all(&piece[..read]).await?;
                copied += read as u64;
            }
        }
    }
}

/// Copies in both directions between two streams, until both have ended. Returns the number of
/// bytes from `one` to `other`, and the number of bytes back. At the end of one direction, the
/// stream that was written is [finished](Write::finish), so that its other side reads the end too.
///
/// # Errors
/// Those of both. The first error stops both directions.
///
/// # Cancel safety
/// A copy that is dropped, for example by a time limit, loses what it has read and not yet written.
/// If the streams are dropped then, each other side reads an ordinary end, and a reader without a
/// length of its own takes the part for the whole. A proxy that wants its peers to notice calls
/// [`TcpStream::set_linger`](crate::net::TcpStream::set_linger) with a duration of zero before it
/// drops the streams: the peers then read an error.
///
/// # Examples
/// A proxy:
/// ```
/// use selvedge::io::copy_bidirectional;
/// use selvedge::net::{TcpListener, connect};
/// use selvedge::spawn;
///
/// async fn proxy(listener: TcpListener, to: &'static str) -> std::io::Result<()> {
///     loop {
///         let (client, _) = listener.accept().await?;
///         drop(spawn(async move {
///             let server = connect(to).await?;
///             copy_bidirectional(&client, &server).await
///         }));
///     }
/// }
/// # let _ = proxy;
/// ```
pub async fn copy_bidirectional<'a, A, B>(one: &'a A, other: &'a B) -> io::Result<(u64, u64)>
where
    A: ?Sized,
    B: ?Sized,
    &'a A: Read + Write,
    &'a B: Read + Write,
{
    try_join((to_the_end(one, other), to_the_end(other, one))).await
}

async fn to_the_end<R: Read, W: Write>(from: R, mut to: W) -> io::Result<u64> {
    let copied = copy(from, &mut to).await?;
    to.finish().await?;
    Ok(copied)
}
