//! [`Asked`]: a client's query. The server calls [`read`] for each message that it gets.

use super::{UDP_MAX, UDP_PLAIN_MAX};
use crate::record::DomainName;
use domain::base::iana::{Class, Opcode, Rcode};
use domain::base::{Header, Message, MessageBuilder, Rtype, ToName};

/// What a query is about.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The header's fields that the answer repeats.
    pub header: Header,
    /// The name, in the client's spelling.
    pub name: DomainName,
    /// The type.
    pub rtype: Rtype,
    /// The class.
    pub class: Class,
    /// What the client says of itself, if it knows EDNS (RFC 6891).
    pub edns: Option<Edns>,
}

/// The fields of a client's OPT record that count here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edns {
    /// The longest datagram that the client takes.
    pub udp_size: u16,
    /// The version of EDNS.
    pub version: u8,
    /// Whether the client wants signatures. The answer repeats it.
    pub dnssec_ok: bool,
}

impl Asked {
    /// Whether the client wants signatures and proofs.
    pub fn wants_signatures(&self) -> bool {
        self.edns.is_some_and(|edns| edns.dnssec_ok)
    }

    /// Whether the client wants to know that an answer was validated (RFC 6840 §5.7).
    pub fn wants_authentic(&self) -> bool {
        self.wants_signatures() || self.header.ad()
    }

    /// The longest answer that goes to this client in a datagram.
    pub fn udp_max(&self) -> u16 {
        self.edns.map_or(UDP_PLAIN_MAX, |edns| edns.udp_size.clamp(UDP_PLAIN_MAX, UDP_MAX))
    }
}

/// Why a message is no query that can be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unanswerable {
    /// The server sends nothing: the message has no header, or it is an answer itself. Two servers
    /// that answered each other's answers would do so for ever.
    Silent,
    /// The server sends this message, which has a header only.
    Refused(Vec<u8>),
}

/// Reads a query.
///
/// # Errors
/// If the message is no query, or not in the protocol's form.
pub fn read(bytes: &[u8]) -> Result<Asked, Unanswerable> {
    let message = Message::from_slice(bytes).map_err(|_| Unanswerable::Silent)?;
    let header = message.header();
    if header.qr() {
        return Err(Unanswerable::Silent);
    }
    let refused = |rcode| Unanswerable::Refused(bare(header, rcode));
    if header.opcode() != Opcode::QUERY {
        return Err(refused(Rcode::NOTIMP));
    }
    let question = message.sole_question().map_err(|_| refused(Rcode::FORMERR))?;
    let edns = edns(message).ok_or_else(|| refused(Rcode::FORMERR))?;
    Ok(Asked {
        header,
        name: question.qname().to_vec(),
        rtype: question.qtype(),
        class: question.qclass(),
        edns,
    })
}

/// The one OPT record of a message. `None` if the message is broken or has several of them.
fn edns(message: &Message<[u8]>) -> Option<Option<Edns>> {
    let mut found = None;
    for record in message.additional().ok()? {
        if record.ok()?.rtype() != Rtype::OPT {
            continue;
        }
        if found.is_some() {
            return None;
        }
        let opt = message.opt()?;
        found = Some(Edns {
            udp_size: opt.udp_payload_size(),
            version: opt.version(),
            dnssec_ok: opt.dnssec_ok(),
        });
    }
    Some(found)
}

/// An answer that has a header only.
fn bare(asked: Header, rcode: Rcode) -> Vec<u8> {
    let mut builder = MessageBuilder::new_vec();
    let header = builder.header_mut();
    header.set_id(asked.id());
    header.set_qr(true);
    header.set_opcode(asked.opcode());
    header.set_rd(asked.rd());
    header.set_rcode(rcode);
    builder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `example.org A`, with the recursion bit.
    const QUERY: &[u8] = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x07eXample\x03org\0\0\x01\0\x01";
    const OPT: &[u8] = b"\0\0\x29\x02\x58\0\0\x80\0\0\0";

    fn with(change: impl FnOnce(&mut Vec<u8>)) -> Result<Asked, Unanswerable> {
        let mut bytes = QUERY.to_vec();
        change(&mut bytes);
        read(&bytes)
    }

    fn refused(rcode: u8, change: impl FnOnce(&mut Vec<u8>)) {
        let Err(Unanswerable::Refused(answer)) = with(change) else { panic!("it is refused") };
        assert_eq!((answer.len(), &answer[..2], answer[3] & 15), (12, &QUERY[..2], rcode));
        assert_eq!(answer[2] & 0x81, 0x81, "an answer, with the client's recursion bit");
    }

    #[test]
    fn a_query_is_read() {
        let asked = with(|_| {}).unwrap();
        assert_eq!((asked.header.id(), asked.header.rd()), (0x1234, true));
        assert_eq!((asked.name.to_string().as_str(), asked.rtype), ("eXample.org", Rtype::A));
        assert_eq!((asked.class, asked.edns, asked.udp_max()), (Class::IN, None, 512));
    }

    #[test]
    fn edns_tells_the_size() {
        let asked = with(|bytes| {
            bytes[11] = 1;
            bytes.extend_from_slice(OPT);
        });
        let edns = Edns { udp_size: 600, version: 0, dnssec_ok: true };
        let mut asked = asked.unwrap();
        assert_eq!((asked.edns, asked.udp_max()), (Some(edns), 600));
        asked.edns = Some(Edns { udp_size: 100, ..edns });
        assert_eq!(asked.udp_max(), 512);
        asked.edns = Some(Edns { udp_size: 65_000, ..edns });
        assert_eq!(asked.udp_max(), 1232);
    }

    #[test]
    fn what_is_no_query_gets_an_error_or_nothing() {
        assert_eq!(read(&QUERY[..11]).unwrap_err(), Unanswerable::Silent);
        assert_eq!(with(|bytes| bytes[2] |= 0x80).unwrap_err(), Unanswerable::Silent);
        refused(4, |bytes| bytes[2] |= 0x28);
        refused(1, |bytes| bytes[5] = 0);
        refused(1, |bytes| bytes[5] = 2);
        refused(1, |bytes| bytes.truncate(20));
        refused(1, |bytes| bytes[11] = 1);
        refused(1, |bytes| {
            bytes[11] = 2;
            bytes.extend_from_slice(&[OPT, OPT].concat());
        });
    }

    #[test]
    fn a_name_that_points_at_itself_ends() {
        refused(1, |bytes| {
            bytes.truncate(12);
            bytes.extend_from_slice(b"\xc0\x0c\0\x01\0\x01");
        });
    }
}
