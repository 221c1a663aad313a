//! [`Heard`]: the answer of another server. `resolve/upstream.rs` writes the question with
//! [`question`], and calls [`read`] for each datagram that comes back.

use super::UDP_MAX;
use crate::record::{Data, DomainName, NameKey, ZoneRecord};
use domain::base::iana::{Class, Rcode};
use domain::base::message::RecordSection;
use domain::base::name::{FlattenInto, ParsedName};
use domain::base::wire::ParseError;
use domain::base::{Message, MessageBuilder, Record, Rtype};
use domain::rdata::ZoneRecordData;

/// The longest time to live that is believed, in seconds (RFC 8767 §4: a day to a week).
const TTL_MAX: u32 = 86_400;

/// What another server has answered. Records of other classes than `IN`, and the OPT record, are
/// left out.
#[derive(Clone, Debug)]
pub struct Heard {
    /// The code.
    pub rcode: Rcode,
    /// Whether the server says that it is an authority for the name.
    pub is_authoritative: bool,
    /// Whether the answer is cut, and the whole one comes over TCP.
    pub is_truncated: bool,
    /// The answer section.
    pub answer: Vec<ZoneRecord>,
    /// The authority section.
    pub authority: Vec<ZoneRecord>,
    /// The additional section.
    pub additional: Vec<ZoneRecord>,
}

/// A question for another server. `recursive` asks it to find the whole answer.
pub fn question(id: u16, name: &NameKey, rtype: Rtype, recursive: bool, with_edns: bool) -> Vec<u8> {
    written(id, name, rtype, recursive, with_edns.then_some(false))
}

/// The same with a wish for signatures. A server that validates itself is asked not to do so
/// (RFC 6840 §5.9), because its failure would hide what is wrong.
pub fn signed_question(id: u16, name: &NameKey, rtype: Rtype, recursive: bool) -> Vec<u8> {
    written(id, name, rtype, recursive, Some(true))
}

/// A question, with EDNS if `dnssec_ok` says something.
fn written(id: u16, name: &NameKey, rtype: Rtype, recursive: bool, dnssec_ok: Option<bool>) -> Vec<u8> {
    let mut builder = MessageBuilder::new_vec();
    builder.header_mut().set_id(id);
    builder.header_mut().set_rd(recursive);
    builder.header_mut().set_cd(dnssec_ok == Some(true));
    let mut builder = builder.question();
    builder.push((name.to_name(), rtype)).expect("a vector has room for a name");
    let Some(dnssec_ok) = dnssec_ok else { return builder.finish() };
    let mut builder = builder.additional();
    let opt = builder.opt(|opt| {
        opt.set_udp_payload_size(UDP_MAX);
        opt.set_dnssec_ok(dnssec_ok);
        Ok(())
    });
    opt.expect("a vector has room for the record");
    builder.finish()
}

/// Reads the answer to a question. `None` if the message is no answer to it: another id, another
/// question, another spelling of the name, or broken.
pub fn read(bytes: &[u8], id: u16, name: &NameKey, rtype: Rtype) -> Option<Heard> {
    let message = Message::from_slice(bytes).ok()?;
    let header = message.header();
    if !header.qr() || header.id() != id {
        return None;
    }
    // Some servers repeat no question when they know no EDNS.
    let is_bare = header.rcode() == Rcode::FORMERR && message.header_counts().qdcount() == 0;
    if !is_bare {
        let question = message.sole_question().ok()?;
        let is_same = question.qname().iter().map(AsRef::<[u8]>::as_ref).eq(name.labels());
        if !is_same || question.qtype() != rtype || question.qclass() != Class::IN {
            return None;
        }
    }
    let mut heard = Heard {
        rcode: header.rcode(),
        is_authoritative: header.aa(),
        is_truncated: header.tc(),
        answer: Vec::new(),
        authority: Vec::new(),
        additional: Vec::new(),
    };
    if heard.is_truncated {
        // The records come over TCP. The last one here may be cut.
        return Some(heard);
    }
    heard.answer = records(message.answer().ok()?).ok()?;
    heard.authority = records(message.authority().ok()?).ok()?;
    heard.additional = records(message.additional().ok()?).ok()?;
    Some(heard)
}

/// The records of a section.
fn records(section: RecordSection<'_, [u8]>) -> Result<Vec<ZoneRecord>, ParseError> {
    let mut records = Vec::new();
    for record in section {
        let record = record?;
        if record.class() != Class::IN || record.rtype() == Rtype::OPT {
            continue;
        }
        let parsed = record.into_record::<ZoneRecordData<&[u8], ParsedName<&[u8]>>>()?;
        // `None` for types that are part of the protocol.
        let Some(parsed) = parsed else { continue };
        // The highest bit means zero (RFC 2181 §8).
        let seconds = parsed.ttl().as_secs();
        let seconds = if seconds >> 31 == 1 { 0 } else { seconds.min(TTL_MAX) };
        let owned: Record<DomainName, Data> = parsed.flatten_into();
        records.push(crate::record::with_ttl(&owned, seconds));
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::key;

    /// The question itself, as an answer without records.
    fn echo(change: impl FnOnce(&mut Vec<u8>)) -> Option<Heard> {
        let mut bytes = question(7, &key("www.example.org"), Rtype::A, true, true);
        bytes[2] |= 0x80;
        change(&mut bytes);
        read(&bytes, 7, &key("www.example.org"), Rtype::A)
    }

    #[test]
    fn an_answer_is_one_to_this_question() {
        let heard = echo(|_| {}).unwrap();
        assert_eq!((heard.rcode, heard.is_truncated, heard.answer.len()), (Rcode::NOERROR, false, 0));
        assert!(heard.additional.is_empty(), "the OPT record is no part of the answer");
        assert!(echo(|bytes| bytes[2] &= 0x7f).is_none(), "a question");
        assert!(echo(|bytes| bytes[1] ^= 1).is_none(), "another id");
        assert!(echo(|bytes| bytes[13] = b'v').is_none(), "another name");
        assert!(echo(|bytes| bytes[13] = b'W').is_none(), "another spelling");
        assert!(echo(|bytes| bytes[30] = 2).is_none(), "another type");
        assert!(echo(|bytes| bytes[32] = 3).is_none(), "another class");
        assert!(echo(|bytes| bytes.truncate(25)).is_none(), "cut");
        assert!(echo(|bytes| bytes[7] = 1).is_none(), "a record that is not there");
    }

    #[test]
    fn a_truncated_answer_has_no_records() {
        let heard = echo(|bytes| {
            bytes[2] |= 2;
            bytes[7] = 9;
        });
        assert!(heard.unwrap().is_truncated);
    }

    #[test]
    fn a_time_to_live_has_a_bound() {
        let ttl = |bytes: [u8; 4]| {
            let heard = echo(|message| {
                message[7] = 1;
                message[11] = 0;
                message.truncate(33);
                message.extend_from_slice(b"\xc0\x0c\0\x01\0\x01");
                message.extend_from_slice(&bytes);
                message.extend_from_slice(b"\0\x04\x7f\0\0\x01");
            });
            heard.unwrap().answer[0].ttl().as_secs()
        };
        assert_eq!(ttl([0, 0, 1, 0]), 256);
        assert_eq!(ttl([0x7f, 0, 0, 0]), TTL_MAX);
        assert_eq!(ttl([0x80, 0, 0, 1]), 0);
    }
}
