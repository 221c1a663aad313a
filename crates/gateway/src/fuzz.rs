//! What the fuzz targets run: each function takes any bytes and panics if an invariant does not
//! hold. `fuzz/fuzz_targets` has one target for each function. The module is public and hidden for
//! that.

use crate::cgi::head::{HEAD_BYTES_MAX, ProgramHead, length, parse};
use crate::fastcgi::record::{self, RecordDecoder};

/// The parser of programs' heads: every prefix of a head is incomplete, and what it accepts can be
/// sent to a client.
pub fn program_heads(data: &[u8]) {
    let Ok(Some(end)) = length(data) else { return };
    assert!(end <= data.len() && end <= HEAD_BYTES_MAX);
    for cut in 0..end {
        assert_eq!(length(&data[..cut]), Ok(None), "a prefix of {cut} bytes");
    }
    for is_raw in [false, true] {
        match parse(&data[..end], is_raw) {
            Ok(ProgramHead::Document { status, fields, .. }) => {
                assert!((200..600).contains(&status.as_u16()));
                for (name, value) in &fields {
                    assert!(!value.as_bytes().iter().any(|byte| b"\r\n\0".contains(byte)));
                    assert!(
                        !["connection", "transfer-encoding", "status"].contains(&name.as_str()) || is_raw
                    );
                }
            }
            Ok(ProgramHead::LocalRedirect(path)) => assert!(path.starts_with('/')),
            Err(_) => {}
        }
    }
}

/// The decoder of records: `data` in one piece and byte by byte gives the same records and error.
pub fn records(data: &[u8]) {
    let run = |piece_bytes: usize| {
        let (mut records, mut all, mut open) = (RecordDecoder::default(), Vec::new(), Vec::new());
        for input in data.chunks(piece_bytes.max(1)) {
            let mut at = 0;
            while at < input.len() {
                let piece = records.decode(&input[at..])?;
                assert!(piece.consumed > 0 && piece.consumed <= input.len() - at);
                at += piece.consumed;
                if let Some(part) = piece.part {
                    assert!(!part.content.is_empty() || part.is_last);
                    open.extend_from_slice(part.content);
                    if part.is_last {
                        all.push((part.kind, part.request, std::mem::take(&mut open)));
                    }
                }
            }
        }
        Ok::<_, record::BadRecord>((all, open))
    };
    let whole = run(data.len());
    assert_eq!(whole, run(1));
    assert_eq!(whole, run(3));
    if let Ok(pairs) = record::pairs(data) {
        let mut again = Vec::new();
        pairs.iter().for_each(|(name, value)| record::put_pair(name, value, &mut again));
        assert_eq!(record::pairs(&again), Ok(pairs));
    }
    let _ = (record::begin(data), record::end(data));
}
