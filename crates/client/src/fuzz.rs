//! What the fuzz target runs: the function takes any bytes and panics if an invariant does not
//! hold. The module is public and hidden for that.

use crate::answer_head::{Asked, Extent, length, parse, whole};
use crate::field_line::{FieldLine, TakeFields};
use bytes::Bytes;
use selvedge_http::body::Framing;

/// The names, in lower case, and the values.
impl TakeFields for Vec<(Vec<u8>, Vec<u8>)> {
    fn begin(&mut self) {
        self.clear();
    }

    fn take(&mut self, field: &FieldLine<'_>) {
        self.push((field.name.to_ascii_lowercase(), field.value.to_vec()));
    }
}

/// The parser of heads of answers: every prefix of a head is incomplete, and what it accepts has
/// line ends of CRLF alone. What is taken for a whole answer is one for the parser too.
pub fn answers(data: &[u8]) {
    const BYTES_MAX: usize = 1 << 10;
    let mut fields = Vec::new();
    if let Some(extent) = whole(data, BYTES_MAX, &mut fields) {
        assert_eq!(length(data, BYTES_MAX), Ok(Some(extent.head_bytes)));
        let head = Bytes::copy_from_slice(&data[..extent.head_bytes]);
        let parsed = parse(&head, Asked::default()).expect("the head of a whole answer");
        let content = (data.len() - extent.head_bytes) as u64;
        assert_eq!(parsed.extent, Extent::Framed(Framing::Length(content)));
        assert!(parsed.keeps && parsed.status == extent.status);
        // The map has the values of a name together.
        fields.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut expected: Vec<_> = parsed.fields.iter().collect();
        expected.sort_by(|(one, _), (other, _)| one.as_str().cmp(other.as_str()));
        let expected = expected.iter().map(|(name, value)| (name.as_str().into(), value.as_bytes().to_vec()));
        assert_eq!(fields, expected.collect::<Vec<(Vec<u8>, Vec<u8>)>>());
    }
    let Ok(Some(end)) = length(data, BYTES_MAX) else { return };
    assert!(end <= data.len() && end <= BYTES_MAX);
    for cut in 0..end {
        assert_eq!(length(&data[..cut], BYTES_MAX), Ok(None), "a prefix of {cut} bytes");
    }
    assert_eq!(length(&data[..end], BYTES_MAX), Ok(Some(end)), "what follows a head does not matter");
    let head = Bytes::copy_from_slice(&data[..end]);
    for (head_only, upgrade) in [(false, false), (true, false), (false, true)] {
        if let Ok(parsed) = parse(&head, Asked { head: head_only, upgrade }) {
            assert!(head.windows(2).all(|pair| pair[1] != b'\n' || pair[0] == b'\r'));
            assert!(parsed.fields.values().all(|value| !value.as_bytes().contains(&b'\r')));
        }
    }
}
