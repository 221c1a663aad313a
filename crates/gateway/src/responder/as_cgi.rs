//! [`serve_cgi`]: a handler as a CGI program.

use super::known_length::KnownLength;
use super::request::{put_head, request};
use crate::proxy::plain;
use http::{Method, StatusCode};
use selvedge_handler::{Body, BodyError, Cause, Handler};
use selvedge_io::stdio::{stdin, stdout};
use std::io;
use std::os::unix::ffi::OsStrExt;

/// Answers the one request that this process was started for, by CGI/1.1: the request is in the
/// environment and on standard input, and the answer goes to standard output.
///
/// A handler that upgrades the connection is answered with 500, because CGI has no such thing.
/// Interim responses are dropped.
///
/// # Errors
/// If the environment describes no request, or the answer cannot be written. The error of a body
/// that could not be made is one too, so that the server sees an exit status.
pub async fn serve_cgi(handler: impl Handler) -> io::Result<()> {
    let variables: Vec<_> = std::env::vars_os().collect();
    let pairs = variables.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let (mut asked, length) =
        request(pairs).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))?;
    if length > 0 {
        *asked.body_mut() = Body::new(KnownLength::new(input(length), length));
    }
    let is_head = asked.method() == Method::HEAD;
    let mut response = handler.call(asked).await;
    if response.status().is_informational() {
        response = plain(StatusCode::INTERNAL_SERVER_ERROR);
    }
    let (parts, mut body) = response.into_parts();
    let (mut out, output) = (Vec::new(), stdout()?);
    put_head(&parts, body.len(), &mut out);
    output.write_all(&out).await?;
    if is_head {
        return Ok(());
    }
    while let Some(piece) = body.next().await.transpose()? {
        output.write_all(&piece).await?;
    }
    Ok(())
}

/// Standard input, up to the length of the body.
fn input(length: u64) -> Body {
    Body::produce(async move |mut out| {
        let (mut input, mut left) = (stdin()?, length);
        let mut piece = vec![0; 16 << 10];
        while left > 0 {
            let room = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
            match input.read(&mut piece[..room]).await? {
                0 => return Err(BodyError::new(Cause::Disconnected)),
                read => {
                    left -= read as u64;
                    out.put(piece[..read].to_vec()).await;
                }
            }
        }
        Ok(())
    })
}
