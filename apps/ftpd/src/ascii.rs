//! Line ends of TYPE A: [`to_network`] and [`FromNetwork`] convert, [`file_offset`] finds where a
//! transfer that begins in the middle begins in the file.
//!
//! A line of a file ends with LF, and a line on the network with CR LF. Each LF of a file becomes
//! CR LF, whatever stands before it, and each CR LF becomes LF. So a file that goes out and comes
//! back is the same file, also one that has CR LF in it. `transfer.rs` calls these functions.

use std::io::{self, Read};

/// Appends the bytes of a file to `out` as the network has them. Each byte is converted by itself,
/// so a file may be cut anywhere.
pub(crate) fn to_network(file: &[u8], out: &mut Vec<u8>) {
    for line in file.split_inclusive(|&byte| byte == b'\n') {
        match line.strip_suffix(b"\n") {
            Some(text) => {
                out.extend_from_slice(text);
                out.extend_from_slice(b"\r\n");
            }
            None => out.extend_from_slice(line),
        }
    }
}

/// Converts bytes of the network to bytes of a file. It holds back a CR at the end of a piece,
/// because the LF behind it may come with the next piece.
#[derive(Debug, Default)]
pub(crate) struct FromNetwork {
    holds_cr: bool,
}

impl FromNetwork {
    /// Appends the next bytes to `out`, as the file has them.
    pub(crate) fn convert(&mut self, network: &[u8], out: &mut Vec<u8>) {
        if std::mem::take(&mut self.holds_cr) && !network.starts_with(b"\n") {
            if network.is_empty() {
                self.holds_cr = true;
                return;
            }
            out.push(b'\r');
        }
        let body = network.strip_suffix(b"\r").unwrap_or(network);
        self.holds_cr = body.len() < network.len();
        for line in body.split_inclusive(|&byte| byte == b'\n') {
            match line.strip_suffix(b"\r\n") {
                Some(text) => {
                    out.extend_from_slice(text);
                    out.push(b'\n');
                }
                None => out.extend_from_slice(line),
            }
        }
    }

    /// Appends what was held back: the transfer is over.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.holds_cr) {
            out.push(b'\r');
        }
    }
}

/// The offset in a file of the byte that is byte `wanted` on the network, where each LF counts as
/// two (RFC 3659 §5.3). `None` if that lies between CR and LF, or behind the file's end. The call
/// reads the file up to there, and blocks.
///
/// # Errors
/// Those of `file`.
pub(crate) fn file_offset(mut file: impl Read, wanted: u64) -> io::Result<Option<u64>> {
    let (mut network, mut offset) = (0, 0);
    let mut buffer = vec![0; 64 << 10];
    while network < wanted {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(None);
        }
        for &byte in &buffer[..read] {
            if network >= wanted {
                break;
            }
            network += if byte == b'\n' { 2 } else { 1 };
            offset += 1;
        }
    }
    Ok((network == wanted).then_some(offset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The slow and obvious conversions.
    fn slow_to_network(file: &[u8]) -> Vec<u8> {
        file.iter().flat_map(|&byte| if byte == b'\n' { vec![b'\r', b'\n'] } else { vec![byte] }).collect()
    }

    fn slow_from_network(network: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut at = 0;
        while at < network.len() {
            if network[at..].starts_with(b"\r\n") {
                at += 1;
            }
            out.push(network[at]);
            at += 1;
        }
        out
    }

    /// `bytes` in pieces of these lengths, and then the rest.
    fn pieces<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
        let mut rest = bytes;
        let mut pieces = Vec::new();
        for &cut in cuts {
            let (piece, after) = rest.split_at(cut.min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        pieces.push(rest);
        pieces
    }

    fn out_and_in(bytes: &[u8], cuts: &[usize]) -> (Vec<u8>, Vec<u8>) {
        let (mut outward, mut inward, mut from) = (Vec::new(), Vec::new(), FromNetwork::default());
        for piece in pieces(bytes, cuts) {
            to_network(piece, &mut outward);
            from.convert(piece, &mut inward);
        }
        from.finish(&mut inward);
        (outward, inward)
    }

    #[test]
    fn line_ends() {
        assert_eq!(out_and_in(b"a\nb", &[]).0, b"a\r\nb");
        assert_eq!(out_and_in(b"a\r\n\rb\r", &[2, 0, 1]).1, b"a\n\rb\r");
        assert_eq!(out_and_in(b"\r\r\n", &[1, 1]).1, b"\r\n");
    }

    fn text() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'a'), any::<u8>()], 0..60)
    }

    proptest! {
        #[test]
        fn conversion_at_any_cut(bytes in text(), cuts in prop::collection::vec(0usize..5, 0..40)) {
            let (outward, inward) = out_and_in(&bytes, &cuts);
            prop_assert_eq!(&outward, &slow_to_network(&bytes));
            prop_assert_eq!(inward, slow_from_network(&bytes));
            prop_assert_eq!(out_and_in(&outward, &cuts).1, bytes, "there and back");
        }

        #[test]
        fn the_offset_splits_the_file_where_the_network_is_split(bytes in text(), wanted in 0usize..90) {
            let network = slow_to_network(&bytes);
            let expected = (0..=bytes.len()).find(|&at| slow_to_network(&bytes[..at]).len() == wanted);
            let found = file_offset(&bytes[..], wanted as u64).unwrap();
            prop_assert_eq!(found, expected.map(|at| at as u64));
            if let Some(at) = found {
                prop_assert_eq!(slow_to_network(&bytes[at as usize..]), &network[wanted..]);
            }
        }
    }
}
