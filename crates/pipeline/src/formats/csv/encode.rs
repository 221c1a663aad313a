//! `encode`: records as a text.

use super::Fields;
use super::records::MARK;
use crate::item::{Flow, GO_ON};
use crate::role::Transducer;
use crate::stage::{Sink, Transduce};
use memchr::memchr;

/// The stage of [`encode`].
#[derive(Debug, Clone)]
struct Encode {
    delimiter: u8,
    text: Vec<u8>,
}

/// Yields the text of each record, with `delimiter` between its fields and `\n` after it. A field
/// is quoted where [`records`](super::records) would read something else without quotes.
///
/// A record without fields yields nothing: CSV has no such record.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{csv, from_iter};
///
/// let records = [["1", "a \"warp\""], ["", "weft"]];
/// let records = records.map(|fields| fields.into_iter().collect::<csv::Fields>());
/// let text = (from_iter(records) >> csv::encode(b',')).collect();
/// assert_eq!(text, b"1,\"a \"\"warp\"\"\"\n,weft\n");
/// ```
pub fn encode(delimiter: u8) -> Transducer<Fields, u8, impl Transduce<Fields, u8> + Clone> {
    Transducer::new(Encode { delimiter, text: Vec::new() })
}

impl Transduce<Fields, u8> for Encode {
    fn put<S: Sink<u8>>(&mut self, record: &Fields, out: &mut S) -> Flow {
        let Encode { delimiter, text } = self;
        text.clear();
        for (index, mut field) in record.iter().enumerate() {
            if index > 0 {
                text.push(*delimiter);
            }
            let special = |byte: &u8| [*delimiter, b'"', b'\n', b'\r'].contains(byte);
            let alone = field.is_empty() && record.len() == 1;
            // Without quotes it would be the mark of the text.
            let marked = index == 0 && field.starts_with(MARK);
            if !alone && !marked && !field.iter().any(special) {
                text.extend_from_slice(field);
                continue;
            }
            text.push(b'"');
            while let Some(at) = memchr(b'"', field) {
                text.extend_from_slice(&field[..=at]);
                text.push(b'"');
                field = &field[at + 1..];
            }
            text.extend_from_slice(field);
            text.push(b'"');
        }
        if record.is_empty() {
            return GO_ON;
        }
        text.push(b'\n');
        out.put_chunk(text)
    }

    fn end<S: Sink<u8>>(&mut self, _out: &mut S) -> Flow {
        GO_ON
    }
}
