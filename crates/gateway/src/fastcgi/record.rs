//! The records of FastCGI: written and read without I/O.
//!
//! Both roles use it: `fastcgi.rs` as the client of an application, `responder/fastcgi.rs` as the
//! application. [`RecordDecoder`] takes bytes as they come and gives the content of records as
//! slices of them. It has no buffer but for the eight bytes of a record's head.
//!
//! ```text
//!   head (8 bytes) ─▶ content (to 65,535 bytes) ─▶ padding (to 255 bytes) ─▶ head ..
//! ```

use std::ops::Range;

/// The only version of the protocol.
const VERSION: u8 = 1;

/// The most content that is put into one record: a multiple of eight.
const CONTENT_BYTES_MAX: usize = 65_528;

/// The length of the head of a record.
pub(crate) const HEAD_BYTES: usize = 8;

/// The kinds of records.
pub(crate) mod kind {
    pub(crate) const BEGIN: u8 = 1;
    pub(crate) const ABORT: u8 = 2;
    pub(crate) const END: u8 = 3;
    pub(crate) const PARAMS: u8 = 4;
    pub(crate) const STDIN: u8 = 5;
    pub(crate) const STDOUT: u8 = 6;
    pub(crate) const STDERR: u8 = 7;
    pub(crate) const GET_VALUES: u8 = 9;
    pub(crate) const GET_VALUES_RESULT: u8 = 10;
    pub(crate) const UNKNOWN: u8 = 11;
}

/// The role of an application that answers requests.
pub(crate) const RESPONDER: u16 = 1;

/// How a request has ended, as far as the protocol is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Complete,
    /// The application serves one request at a time on a connection.
    CannotMultiplex,
    Overloaded,
    UnknownRole,
}

/// The bytes are no records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadRecord(pub(crate) &'static str);

/// Takes records apart.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordDecoder {
    head: [u8; HEAD_BYTES],
    /// Bytes of the head that have come.
    have: usize,
    content_left: usize,
    padding_left: usize,
}

/// The part of the input that one call of [`RecordDecoder::decode`] has dealt with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordPiece<'b> {
    /// Bytes of the input that are dealt with.
    pub(crate) consumed: usize,
    /// A part of a record, or `None` if more input is needed.
    pub(crate) part: Option<RecordPart<'b>>,
}

/// A part of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordPart<'b> {
    pub(crate) kind: u8,
    /// The request that the record is about; 0 for none.
    pub(crate) request: u16,
    /// Content; empty only if the record has none, which ends a stream.
    pub(crate) content: &'b [u8],
    /// Whether this is the last part of the record.
    pub(crate) is_last: bool,
}

impl RecordDecoder {
    /// Takes bytes from the front of `input`, and stops after one run of content.
    ///
    /// # Errors
    /// If a record has an unknown version. What follows has no meaning then.
    pub(crate) fn decode<'b>(&mut self, input: &'b [u8]) -> Result<RecordPiece<'b>, BadRecord> {
        let mut at = 0;
        loop {
            if self.content_left > 0 {
                let take = self.content_left.min(input.len() - at);
                if take == 0 {
                    return Ok(RecordPiece { consumed: at, part: None });
                }
                self.content_left -= take;
                let part = self.part(&input[at..at + take]);
                return Ok(RecordPiece { consumed: at + take, part: Some(part) });
            }
            let skip = self.padding_left.min(input.len() - at);
            self.padding_left -= skip;
            at += skip;
            if self.padding_left > 0 || at == input.len() {
                return Ok(RecordPiece { consumed: at, part: None });
            }
            let take = (HEAD_BYTES - self.have).min(input.len() - at);
            self.head[self.have..self.have + take].copy_from_slice(&input[at..at + take]);
            self.have += take;
            at += take;
            if self.have < HEAD_BYTES {
                return Ok(RecordPiece { consumed: at, part: None });
            }
            self.have = 0;
            if self.head[0] != VERSION {
                return Err(BadRecord("a record has an unknown version"));
            }
            self.content_left = usize::from(u16::from_be_bytes([self.head[4], self.head[5]]));
            self.padding_left = usize::from(self.head[6]);
            if self.content_left == 0 {
                return Ok(RecordPiece { consumed: at, part: Some(self.part(&[])) });
            }
        }
    }

    fn part<'b>(&self, content: &'b [u8]) -> RecordPart<'b> {
        let request = u16::from_be_bytes([self.head[2], self.head[3]]);
        RecordPart { kind: self.head[1], request, content, is_last: self.content_left == 0 }
    }
}

/// Appends the head of a record.
fn put_head(kind: u8, request: u16, length: usize, out: &mut Vec<u8>) {
    let length = u16::try_from(length).expect("a record has at most 65,535 bytes of content");
    let ([id_high, id_low], [high, low]) = (request.to_be_bytes(), length.to_be_bytes());
    out.extend_from_slice(&[VERSION, kind, id_high, id_low, high, low, 0, 0]);
}

/// Appends content of a stream: as many records as it takes, and none for no content.
pub(crate) fn put_content(kind: u8, request: u16, content: &[u8], out: &mut Vec<u8>) {
    for part in content.chunks(CONTENT_BYTES_MAX) {
        put_head(kind, request, part.len(), out);
        out.extend_from_slice(part);
    }
}

/// Appends the parameters that `put` appends, and their end.
pub(crate) fn put_params(request: u16, out: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    put_head(kind::PARAMS, request, 0, out);
    let at = out.len();
    put(out);
    let length = out.len() - at;
    if let Some(length @ 1..) = u16::try_from(length).ok().filter(|_| length <= CONTENT_BYTES_MAX) {
        out[start + 4..start + 6].copy_from_slice(&length.to_be_bytes());
    } else {
        let params = out.split_off(at);
        out.truncate(start);
        put_content(kind::PARAMS, request, &params, out);
    }
    put_stream_end(kind::PARAMS, request, out);
}

/// Appends the end of a stream.
pub(crate) fn put_stream_end(kind: u8, request: u16, out: &mut Vec<u8>) {
    put_head(kind, request, 0, out);
}

/// Appends the begin of a request to a responder, on a connection that is to be kept.
pub(crate) fn put_begin(request: u16, out: &mut Vec<u8>) {
    put_head(kind::BEGIN, request, 8, out);
    let [high, low] = RESPONDER.to_be_bytes();
    out.extend_from_slice(&[high, low, 1, 0, 0, 0, 0, 0]);
}

/// Appends the request to give up a request.
pub(crate) fn put_abort(request: u16, out: &mut Vec<u8>) {
    put_head(kind::ABORT, request, 0, out);
}

/// Appends the end of a request.
pub(crate) fn put_end(request: u16, ended: Ended, out: &mut Vec<u8>) {
    put_head(kind::END, request, 8, out);
    let status = match ended {
        Ended::Complete => 0,
        Ended::CannotMultiplex => 1,
        Ended::Overloaded => 2,
        Ended::UnknownRole => 3,
    };
    out.extend_from_slice(&[0, 0, 0, 0, status, 0, 0, 0]);
}

/// The role and the wish to keep the connection, from the content of a begin.
pub(crate) fn begin(content: &[u8]) -> Result<(u16, bool), BadRecord> {
    match content {
        [high, low, flags, _, _, _, _, _] => Ok((u16::from_be_bytes([*high, *low]), flags & 1 != 0)),
        _ => Err(BadRecord("the begin of a request has another length")),
    }
}

/// How a request has ended, from the content of an end.
pub(crate) fn end(content: &[u8]) -> Result<Ended, BadRecord> {
    match content {
        [_, _, _, _, 0, _, _, _] => Ok(Ended::Complete),
        [_, _, _, _, 1, _, _, _] => Ok(Ended::CannotMultiplex),
        [_, _, _, _, 2, _, _, _] => Ok(Ended::Overloaded),
        [_, _, _, _, 3, _, _, _] => Ok(Ended::UnknownRole),
        _ => Err(BadRecord("the end of a request is none")),
    }
}

/// Where the output lies in `records`, if these bytes are the records of one answer to `request`
/// from the first byte to the last: output, and an end that is [complete](Ended::Complete). The
/// contents of several records are moved together for that. `None` says nothing about the bytes,
/// and leaves them as they are.
pub(crate) fn whole_output(records: &mut [u8], request: u16) -> Option<Range<usize>> {
    let content_at = |records: &[u8], at: usize| {
        let [VERSION, kind, id_high, id_low, high, low, padding, _] = *records.get(at..)?.first_chunk()?
        else {
            return None;
        };
        let start = at + HEAD_BYTES;
        let content = start..start + usize::from(u16::from_be_bytes([high, low]));
        let next = content.end + usize::from(padding);
        (u16::from_be_bytes([id_high, id_low]) == request).then_some((kind, content, next))
    };
    let mut at = 0;
    loop {
        let (kind, content, next) = content_at(records, at)?;
        match kind {
            kind::STDOUT => at = next,
            kind::END if next == records.len() && end(&records[content]) == Ok(Ended::Complete) => break,
            _ => return None,
        }
    }
    let mut output = HEAD_BYTES..HEAD_BYTES;
    at = 0;
    while let Some((kind::STDOUT, content, next)) = content_at(records, at) {
        let length = content.len();
        // A content moves to the front, over records that have been looked at.
        if content.start != output.end {
            records.copy_within(content, output.end);
        }
        output.end += length;
        at = next;
    }
    Some(output)
}

/// Appends a name and a value, as the parameters have them. It is inlined, because most names are
/// known where it is called, and are copied by moves then.
#[inline]
pub(crate) fn put_pair(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    if let (Ok(name_length @ 0..=127), Ok(value_length @ 0..=127)) =
        (u8::try_from(name.len()), u8::try_from(value.len()))
    {
        // Most pairs are short: one look at the room for both lengths.
        out.extend_from_slice(&[name_length, value_length]);
        out.extend_from_slice(name);
        out.extend_from_slice(value);
        return;
    }
    put_long_pair(name, value, out);
}

fn put_long_pair(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    for length in [name.len(), value.len()] {
        match u8::try_from(length) {
            Ok(short @ 0..=127) => out.push(short),
            _ => out.extend_from_slice(&(length as u32 | 1 << 31).to_be_bytes()),
        }
    }
    out.extend_from_slice(name);
    out.extend_from_slice(value);
}

/// A name and its value.
pub(crate) type NameValue<'b> = (&'b [u8], &'b [u8]);

/// The names and values in the whole content of a stream of parameters.
pub(crate) fn pairs(mut content: &[u8]) -> Result<Vec<NameValue<'_>>, BadRecord> {
    const CUT: BadRecord = BadRecord("a parameter is cut off");
    let mut all = Vec::new();
    while !content.is_empty() {
        let mut length = || -> Result<usize, BadRecord> {
            match content {
                [short @ 0..=127, rest @ ..] => {
                    content = rest;
                    Ok(usize::from(*short))
                }
                [a, b, c, d, rest @ ..] => {
                    content = rest;
                    Ok((u32::from_be_bytes([*a, *b, *c, *d]) & !(1 << 31)) as usize)
                }
                _ => Err(CUT),
            }
        };
        let (name, value) = (length()?, length()?);
        let (name, rest) = content.split_at_checked(name).ok_or(CUT)?;
        let (value, rest) = rest.split_at_checked(value).ok_or(CUT)?;
        content = rest;
        all.push((name, value));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All records of the input, which comes in pieces that end at `cuts`.
    fn run(input: &[u8], cuts: &[usize]) -> Result<Vec<(u8, u16, Vec<u8>)>, BadRecord> {
        let (mut records, mut all, mut start) = (RecordDecoder::default(), Vec::new(), 0);
        let mut open: Option<(u8, u16, Vec<u8>)> = None;
        for &cut in cuts.iter().chain([&input.len()]) {
            while start < cut {
                let piece = records.decode(&input[start..cut])?;
                start += piece.consumed;
                if let Some(part) = piece.part {
                    let record = open.get_or_insert((part.kind, part.request, Vec::new()));
                    record.2.extend_from_slice(part.content);
                    if part.is_last {
                        all.extend(open.take());
                    }
                }
            }
        }
        Ok(all)
    }

    #[test]
    fn a_request_of_the_standards_example() {
        let mut out = Vec::new();
        put_begin(1, &mut out);
        assert_eq!(out, [1, 1, 0, 1, 0, 8, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]);
        assert_eq!(begin(&out[8..]), Ok((RESPONDER, true)));
        out.clear();
        put_end(258, Ended::Overloaded, &mut out);
        assert_eq!(out, [1, 3, 1, 2, 0, 8, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(end(&out[8..]), Ok(Ended::Overloaded));
        assert!(end(&out).is_err() && begin(&[]).is_err());
    }

    #[test]
    fn parameters_of_any_length_are_a_stream() {
        for length in [0, 1, 100, CONTENT_BYTES_MAX, CONTENT_BYTES_MAX + 1, 200_000] {
            let params = vec![b'p'; length];
            let (mut direct, mut copied) = (b"before".to_vec(), b"before".to_vec());
            put_params(7, &mut direct, |out| out.extend_from_slice(&params));
            put_content(kind::PARAMS, 7, &params, &mut copied);
            put_stream_end(kind::PARAMS, 7, &mut copied);
            assert!(direct == copied, "{length}");
        }
    }

    #[test]
    fn long_names_and_values() {
        let (name, value) = (vec![b'n'; 127], vec![b'v'; 128]);
        let mut out = Vec::new();
        put_pair(&name, &value, &mut out);
        put_pair(b"A", b"", &mut out);
        assert_eq!(out[..5], [127, 0x80, 0, 0, 128]);
        assert_eq!(pairs(&out), Ok(vec![(&name[..], &value[..]), (&b"A"[..], &b""[..])]));
        for cut in 1..out.len() {
            let whole_pair = out.len() - 3;
            assert_eq!(pairs(&out[..cut]).is_ok(), cut == whole_pair, "{cut}");
        }
    }

    #[test]
    fn content_beyond_one_record_and_the_end_of_a_stream() {
        let mut out = Vec::new();
        put_content(kind::STDIN, 7, &vec![b'x'; 70_000], &mut out);
        put_content(kind::STDIN, 7, b"", &mut out);
        put_stream_end(kind::STDIN, 7, &mut out);
        let lengths: Vec<_> = run(&out, &[]).unwrap().iter().map(|(_, _, content)| content.len()).collect();
        assert_eq!(lengths, [65_528, 4_472, 0]);
    }

    #[test]
    fn another_version_is_refused() {
        assert_eq!(run(&[2, 1, 0, 1, 0, 0, 0, 0], &[]), Err(BadRecord("a record has an unknown version")));
    }

    #[test]
    fn a_whole_answer_is_output_and_a_complete_end() {
        let whole = |records: &[u8]| {
            let mut moved = records.to_vec();
            let output = whole_output(&mut moved, 1);
            assert!(output.is_some() || moved == records);
            output.map(|output| moved[output].to_vec())
        };
        let mut answer = Vec::new();
        for content in [&b"warp "[..], b"and ", b"weft"] {
            put_content(kind::STDOUT, 1, content, &mut answer);
        }
        put_stream_end(kind::STDOUT, 1, &mut answer);
        let output_bytes = answer.len();
        put_end(1, Ended::Complete, &mut answer);
        assert_eq!(whole(&answer).as_deref(), Some(&b"warp and weft"[..]));
        assert_eq!(whole(&answer[output_bytes..]).as_deref(), Some(&b""[..]), "no output");
        for cut in 0..answer.len() {
            assert_eq!(whole(&answer[..cut]), None, "{cut} bytes");
        }
        assert_eq!(whole(&[&answer[..], b"x"].concat()), None, "a byte behind the end");
        let mut other = answer.clone();
        other[3] = 2;
        assert_eq!(whole(&other), None, "of another request");
        let front = &answer[..output_bytes];
        let mut end = Vec::new();
        put_end(1, Ended::Overloaded, &mut end);
        assert_eq!(whole(&[front, &end].concat()), None);
        let mut error = front.to_vec();
        put_content(kind::STDERR, 1, b"torn", &mut error);
        put_end(1, Ended::Complete, &mut error);
        assert_eq!(whole(&error), None, "with error output");
    }

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(any::<u8>(), 0..150)
    }

    proptest! {
        #[test]
        fn records_are_the_same_at_every_split(
            records in prop::collection::vec(
                (1u8..12, any::<u16>(), prop::collection::vec(any::<u8>(), 0..40), 0u8..20), 0..6),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let mut input = Vec::new();
            for (kind, request, content, padding) in &records {
                let start = input.len();
                put_head(*kind, *request, content.len(), &mut input);
                input[start + 6] = *padding;
                input.extend_from_slice(content);
                input.resize(input.len() + usize::from(*padding), 0xff);
            }
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(input.len() + 1)).collect();
            cuts.sort_unstable();
            let expected = records.into_iter().map(|(kind, id, content, _)| (kind, id, content));
            let expected: Vec<_> = expected.collect();
            prop_assert_eq!(run(&input, &cuts), Ok(expected));
        }

        #[test]
        fn pairs_are_what_was_put(
            all in prop::collection::vec((bytes(), bytes()), 0..5),
        ) {
            let mut out = Vec::new();
            all.iter().for_each(|(name, value)| put_pair(name, value, &mut out));
            let expected: Vec<_> = all.iter().map(|(name, value)| (&name[..], &value[..])).collect();
            prop_assert_eq!(pairs(&out), Ok(expected));
        }
    }
}
