//! Messages on a connection, each behind its length in two bytes (RFC 1035 §4.2.2): [`read`] and
//! [`write()`]. The server calls them for TCP and for TLS, and `resolve/upstream.rs` for TCP.

use futures_util::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use std::io;

/// Reads a message. `None` if the connection ends before one begins.
///
/// # Errors
/// Those of the connection. `UnexpectedEof` if it ends within a message.
pub async fn read(mut stream: impl AsyncRead + Unpin) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 2];
    let begun = stream.read(&mut length).await?;
    if begun == 0 {
        return Ok(None);
    }
    stream.read_exact(&mut length[begun..]).await?;
    let mut message = vec![0; u16::from_be_bytes(length).into()];
    stream.read_exact(&mut message).await?;
    Ok(Some(message))
}

/// Writes a message in one piece with its length.
///
/// # Errors
/// Those of the connection.
///
/// # Panics
/// If the message is longer than 65,535 bytes.
pub async fn write(mut stream: impl AsyncWrite + Unpin, message: &[u8]) -> io::Result<()> {
    let length = u16::try_from(message.len()).expect("a message has at most 65,535 bytes");
    let framed = [&length.to_be_bytes(), message].concat();
    stream.write_all(&framed).await?;
    stream.flush().await
}
