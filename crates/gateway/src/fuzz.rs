//! What the fuzz targets run: each function takes any bytes and panics if an invariant does not
//! hold. `fuzz/fuzz_targets` has one target for each function. The module is public and hidden for
//! that.

use crate::cgi::head::{HEAD_BYTES_MAX, ProgramHead, length, lines, parse};
use crate::fastcgi::record::{self, Ended, RecordDecoder, kind};
use selvedge_handler::FieldLines;

/// The parser of programs' heads: every prefix of a head is incomplete, and what it accepts can be
/// sent to a client. What is read as lines is a document for the parser.
pub fn program_heads(data: &[u8]) {
    let read = lines(data);
    let Ok(Some(end)) = length(data) else {
        assert_eq!(read, None, "a head without an end");
        return;
    };
    if let Some(read) = read {
        assert_eq!(read.head_bytes, end);
        let Ok(ProgramHead::Document { status, mut fields, length }) = parse(&data[..end], false) else {
            panic!("it is no document");
        };
        assert_eq!((read.status, read.length), (status, length));
        assert_eq!(read.names_server, fields.contains_key(http::header::SERVER));
        assert_eq!(read.names_date, fields.contains_key(http::header::DATE));
        // The engine writes it.
        fields.remove(http::header::CONTENT_LENGTH);
        let lines = FieldLines::new(&read.lines);
        let mut lines: Vec<_> = lines.map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
        let fields = fields.iter().map(|(name, value)| (name.as_str().into(), value.as_bytes()));
        let mut fields: Vec<_> = fields.collect();
        lines.sort();
        fields.sort();
        assert_eq!(lines, fields);
    }
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
    for request in [0, 1] {
        let mut moved = data.to_vec();
        let output = record::whole_output(&mut moved, request);
        // The last record is the only one that is no output.
        let expected = whole.as_ref().ok().filter(|(_, open)| open.is_empty()).and_then(|(all, _)| {
            let ((kind::END, id, end), output) = all.split_last()? else { return None };
            let is_output = |(of, id, _): &(u8, u16, Vec<u8>)| *of == kind::STDOUT && *id == request;
            let is_complete = *id == request && record::end(end) == Ok(Ended::Complete);
            (is_complete && output.iter().all(is_output))
                .then(|| output.iter().flat_map(|(.., content)| content.clone()).collect::<Vec<u8>>())
        });
        match output {
            Some(output) => assert_eq!(Some(&moved[output]), expected.as_deref()),
            // A padding may be cut off, or a head, behind the records that the decoder has seen.
            None => assert_eq!(moved, data),
        }
    }
    if let Ok(pairs) = record::pairs(data) {
        let mut again = Vec::new();
        pairs.iter().for_each(|(name, value)| record::put_pair(name, value, &mut again));
        assert_eq!(record::pairs(&again), Ok(pairs));
    }
    let _ = (record::begin(data), record::end(data));
}
