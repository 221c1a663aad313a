//! What the fuzz targets run: messages, proofs and zone files of any bytes. They panic if an
//! invariant does not hold. `fuzz/fuzz_targets` has the targets. The module is public and hidden
//! for that.

use crate::dnssec::anchor_file::{parse, text};
use crate::dnssec::denial::Denials;
use crate::dnssec::signed::sets;
use crate::dnssec::work::Work;
use crate::record::{DomainName, NameKey, ZoneRecord};
use crate::resolve::judge::{judge, proofs};
use crate::wire::answer::{Answer, compose};
use crate::wire::asked::{self, Unanswerable};
use crate::wire::heard::{self, Heard};
use crate::zone::{Found, Zone, Zones, file};
use crate::{authority, zone::Node};
use domain::base::iana::OptRcode;
use domain::base::{Message, Rtype};
use std::io;
use std::path::Path;

/// Reads a message as a query and as an answer, and goes on with what it says.
///
/// # Panics
/// If an invariant does not hold.
pub fn messages(bytes: &[u8]) {
    if let Some(reply) = reply(bytes) {
        let header = Message::from_slice(&reply).expect("an answer has a header").header();
        assert!(header.qr() && reply[..2] == bytes[..2] && reply.len() <= 1232);
    }
    let Some((heard, name, rtype)) = answer_in(bytes) else { return };
    let root = NameKey::root();
    let parent = name.parent().unwrap_or_else(NameKey::root);
    for zone in [None, Some(&root), Some(&parent), Some(&name)] {
        let inside =
            |owner: &DomainName| zone.is_none_or(|zone| NameKey::new(owner).is_within(zone.as_bytes()));
        let denying = proofs(&heard, zone);
        assert!(denying.iter().all(|record| inside(record.owner())));
        prove(&denying, zone.unwrap_or(&root), &name, rtype);
        let _ = judge(heard.clone(), &name, rtype, zone);
    }
}

/// The server's answer to a message, with what the message has in its own sections.
fn reply(bytes: &[u8]) -> Option<Vec<u8>> {
    match asked::read(bytes) {
        Ok(asked) => {
            let records = answer_in(&answering(bytes)).map(|(heard, ..)| heard);
            let mut answer = Answer::empty(OptRcode::NOERROR);
            if let Some(heard) = records {
                (answer.answer, answer.authority) = (heard.answer, heard.authority);
            }
            Some(compose(&asked, &answer, asked.udp_max()))
        }
        Err(Unanswerable::Refused(answer)) => Some(answer),
        Err(Unanswerable::Silent) => None,
    }
}

/// A query as if it were an answer.
fn answering(bytes: &[u8]) -> Vec<u8> {
    let mut answer = bytes.to_vec();
    answer[2] |= 0x80;
    answer
}

/// The answer in a message to the question in it.
fn answer_in(bytes: &[u8]) -> Option<(Heard, NameKey, Rtype)> {
    let message = Message::from_slice(bytes).ok()?;
    let question = message.sole_question().ok()?;
    let (name, rtype) = (NameKey::new(&question.qname()), question.qtype());
    let heard = heard::read(bytes, message.header().id(), &name, rtype)?;
    Some((heard, name, rtype))
}

/// Proves something with the NSEC and NSEC3 records of a zone file for a name, as if their
/// signatures were right. The first byte says for which one.
///
/// # Panics
/// If the records prove that a name does not exist and that it exists.
pub fn denials(bytes: &[u8]) {
    let Some((&which, text)) = bytes.split_first() else { return };
    let Ok(zone) = zone_of(text, b"") else { return };
    let records: Vec<_> = zone.nodes().flat_map(Node::records).collect();
    let names: Vec<NameKey> = zone.nodes().map(|node| NameKey::new(node.name())).collect();
    let name = &names[usize::from(which) % names.len()];
    let below = name.child(&[b'a' + which % 26]);
    for name in [Some(name), below.as_ref()].into_iter().flatten() {
        prove(&records, &NameKey::new(zone.top().name()), name, Rtype::A);
    }
}

fn prove(records: &[ZoneRecord], zone: &NameKey, name: &NameKey, rtype: Rtype) {
    let (mut denials, mut work) = (Denials::default(), Work::default());
    for set in sets(records) {
        set.records.iter().for_each(|record| denials.add(zone, &set.owner, record.data()));
    }
    let parent = name.parent().unwrap_or_else(NameKey::root);
    let _ = denials.no_data(name, rtype, &mut work);
    let _ = denials.no_cut(name, &mut work);
    let _ = denials.no_closer(name, &parent, &mut work);
    let is_missing = denials.no_name(name, &mut work).is_ok();
    let is_there =
        records.iter().any(|record| record.rtype() == Rtype::NSEC && NameKey::new(record.owner()) == *name);
    // Records that contradict each other prove both, but no record alone does.
    assert!(!(is_missing && is_there && records.len() == 1), "{name:?} does not exist, and does");
}

/// Reads a zone file that may include its second half, and asks for each of its names. The same
/// bytes are read as a file of followed trust anchors.
///
/// # Panics
/// If a record of the zone is not found again, or if the anchors are written otherwise.
pub fn zone_files(bytes: &[u8]) {
    anchor_files(bytes);
    let (first, second) = bytes.split_at(bytes.len() / 2);
    let zone = match zone_of(first, second) {
        Ok(zone) => zone,
        Err(error) => {
            assert!(error.line().is_none_or(|line| line > 0) && error.to_string().contains(": "));
            return;
        }
    };
    let mut zones = Zones::default();
    let names: Vec<DomainName> = zone.nodes().map(|node| node.name().clone()).collect();
    for name in &names {
        let found = zone.find(&NameKey::new(name), Rtype::SOA);
        assert!(!matches!(found, Found::NoName), "{name}");
    }
    zones.insert(zone);
    for name in &names {
        for rtype in [Rtype::A, Rtype::DS, Rtype::TXT, Rtype::ANY] {
            assert!(authority::answer(&zones, name, rtype, true).is_some(), "{name}");
        }
    }
}

/// Reads a file of followed trust anchors.
///
/// # Panics
/// If the file that is written of it is another one.
fn anchor_files(bytes: &[u8]) {
    let Ok(zones) = str::from_utf8(bytes).map_err(drop).and_then(|text| parse(text).map_err(drop)) else {
        return;
    };
    assert_eq!(parse(&text(&zones)).as_ref(), Ok(&zones));
}

/// The zone of a text behind the records that a zone must have. Each file it includes is `other`.
fn zone_of(text: &[u8], other: &[u8]) -> Result<Zone, file::ZoneError> {
    let whole = [b"@ SOA ns host 1 2 3 4 5\n@ NS ns\n", text].concat();
    let name = DomainName::vec_from_str("example").expect("a name");
    let mut left = 4;
    file::read_by(&name, Path::new("zone"), &mut |path| {
        left -= 1;
        match path == Path::new("zone") {
            true if left == 3 => Ok(whole.clone()),
            _ if left > 0 => Ok(other.to_vec()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    })
}

#[cfg(test)]
mod tests;
