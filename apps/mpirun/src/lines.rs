//! [`forward`]: what a rank writes, in whole lines.

use selvedge::io::{BufReader, Read};
use std::io;

/// The longest piece that is written at once. A longer line comes in several, each with the number.
const LINE_MAX: usize = 1 << 20;

/// Gives each line of the input to `write`, with `prefix` before it, until the input ends: several
/// lines at once, and never a part of a line. A last line without an end gets one if there is a
/// prefix.
pub(crate) async fn forward(
    from: impl Read,
    prefix: &str,
    mut write: impl AsyncFnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut reader = BufReader::new(from);
    let mut lines = Vec::new();
    let mut is_over = false;
    while !is_over {
        is_over = reader.fill().await? == 0;
        let ahead = reader.buffer();
        // Whole lines, and what is left at the end or becomes too long.
        let whole = match ahead.iter().rposition(|&byte| byte == b'\n') {
            Some(last) => last + 1,
            None if ahead.len() >= LINE_MAX => ahead.len(),
            None => 0,
        };
        let whole = if is_over { ahead.len() } else { whole };
        for line in ahead[..whole].split_inclusive(|&byte| byte == b'\n') {
            lines.extend_from_slice(prefix.as_bytes());
            lines.extend_from_slice(line);
            if !prefix.is_empty() && !line.ends_with(b"\n") {
                lines.push(b'\n');
            }
        }
        reader.consume(whole);
        write(&lines).await?;
        lines.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forwarded(text: &'static str, prefix: &'static str) -> String {
        let forwarded = async move {
            let mut written = Vec::new();
            let write = async |bytes: &[u8]| {
                written.extend_from_slice(bytes);
                Ok(())
            };
            forward(text.as_bytes(), prefix, write).await.unwrap();
            written
        };
        String::from_utf8(selvedge::round_robin(forwarded).unwrap()).unwrap()
    }

    #[test]
    fn each_line_gets_the_number() {
        assert_eq!(forwarded("a\n\nb", "[1] "), "[1] a\n[1] \n[1] b\n");
        assert_eq!(forwarded("", "[1] "), "");
        assert_eq!(forwarded("a\nb", ""), "a\nb");
    }
}
