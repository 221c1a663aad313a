//! [`Answer`], the sections of an answer; [`compose`], which writes it for a client; and
//! [`compose_part`], which writes a message of a zone transfer.

use super::asked::Asked;
use super::{TCP_MAX, UDP_MAX};
use crate::record::ZoneRecord;
use domain::base::MessageBuilder;
use domain::base::iana::{ExtendedErrorCode, Opcode, OptRcode};
use domain::base::message_builder::{AdditionalBuilder, PushError, StaticCompressor};
use domain::base::opt::ExtendedError;
use std::iter::Peekable;

/// How many bytes an OPT record without options takes.
const OPT_BYTES: usize = 11;

/// How many bytes the option with an error takes.
const ERROR_BYTES: usize = 6;

/// What the server answers.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The code. One above 15 needs a client that knows EDNS.
    pub rcode: OptRcode,
    /// Whether the server is an authority for the name.
    pub is_authoritative: bool,
    /// Whether the client may ask this server for names of other servers.
    pub has_resolver: bool,
    /// Whether the client has to ask again over TCP.
    pub is_truncated: bool,
    /// Whether all records were validated, and the client wants to know it.
    pub is_authentic: bool,
    /// Why there is no answer, for a client that knows EDNS (RFC 8914).
    pub error: Option<ExtendedErrorCode>,
    /// The records that are asked for, behind the aliases that lead to them.
    pub answer: Vec<ZoneRecord>,
    /// The SOA of a negative answer, or the NS records of a delegation.
    pub authority: Vec<ZoneRecord>,
    /// The addresses of servers in a delegation.
    pub additional: Vec<ZoneRecord>,
}

impl Answer {
    /// An answer without records.
    pub fn empty(rcode: OptRcode) -> Answer {
        Answer {
            rcode,
            is_authoritative: false,
            has_resolver: false,
            is_truncated: false,
            is_authentic: false,
            error: None,
            answer: Vec::new(),
            authority: Vec::new(),
            additional: Vec::new(),
        }
    }
}

/// Writes an answer that has at most `limit` bytes. If the records do not fit, there are none, and
/// the answer is marked as truncated.
pub fn compose(asked: &Asked, answer: &Answer, limit: u16) -> Vec<u8> {
    try_compose(asked, answer, limit).unwrap_or_else(|_| {
        let cut = Answer {
            is_truncated: true,
            answer: Vec::new(),
            authority: Vec::new(),
            additional: Vec::new(),
            ..*answer
        };
        try_compose(asked, &cut, limit).expect("a question and an OPT record have below 512 bytes")
    })
}

/// At how many bytes a message of a zone transfer ends: names are compressed up to there (RFC 1035
/// §4.1.4).
const PART_BYTES: usize = 16 << 10;

/// Writes a message with the next records of a zone transfer (RFC 5936 §2.2). `None` if there are
/// no more, or if the next one fits into no message.
pub fn compose_part(
    asked: &Asked,
    records: &mut Peekable<impl Iterator<Item = ZoneRecord>>,
) -> Option<Vec<u8>> {
    let target = StaticCompressor::new(Vec::with_capacity(PART_BYTES));
    let mut builder = MessageBuilder::from_target(target).ok()?;
    builder.set_push_limit(TCP_MAX.into());
    let header = builder.header_mut();
    header.set_id(asked.header.id());
    header.set_qr(true);
    header.set_opcode(Opcode::QUERY);
    header.set_aa(true);
    header.set_rd(asked.header.rd());
    let mut builder = builder.question();
    builder.push((&asked.name, asked.rtype, asked.class)).ok()?;
    let mut builder = builder.answer();
    let mut count = 0;
    while builder.as_slice().len() < PART_BYTES
        && records.peek().is_some_and(|record| builder.push(record).is_ok())
    {
        records.next();
        count += 1;
    }
    (count > 0).then(|| builder.finish().into_target())
}

fn try_compose(asked: &Asked, answer: &Answer, limit: u16) -> Result<Vec<u8>, PushError> {
    let target = StaticCompressor::new(Vec::with_capacity(UDP_MAX.into()));
    let mut builder = MessageBuilder::from_target(target).expect("a vector has room for a header");
    let of_error = if answer.error.is_some() { ERROR_BYTES } else { 0 };
    let reserved = if asked.edns.is_some() { OPT_BYTES + of_error } else { 0 };
    builder.set_push_limit(usize::from(limit) - reserved);
    let header = builder.header_mut();
    header.set_id(asked.header.id());
    header.set_qr(true);
    header.set_opcode(Opcode::QUERY);
    header.set_aa(answer.is_authoritative);
    header.set_tc(answer.is_truncated);
    header.set_rd(asked.header.rd());
    header.set_ra(answer.has_resolver);
    header.set_ad(answer.is_authentic);
    header.set_cd(asked.header.cd());
    header.set_rcode(answer.rcode.rcode());
    let mut builder = builder.question();
    builder.push((&asked.name, asked.rtype, asked.class))?;
    let mut builder = builder.answer();
    for record in &answer.answer {
        builder.push(record)?;
    }
    let mut builder = builder.authority();
    for record in &answer.authority {
        builder.push(record)?;
    }
    let mut builder = builder.additional();
    for record in &answer.additional {
        builder.push(record)?;
    }
    if let Some(edns) = asked.edns {
        builder.clear_push_limit();
        push_opt(&mut builder, answer, edns.dnssec_ok)?;
    }
    Ok(builder.finish().into_target())
}

fn push_opt(
    builder: &mut AdditionalBuilder<StaticCompressor<Vec<u8>>>,
    answer: &Answer,
    dnssec_ok: bool,
) -> Result<(), PushError> {
    builder.opt(|opt| {
        opt.set_udp_payload_size(UDP_MAX);
        opt.set_rcode(answer.rcode);
        opt.set_dnssec_ok(dnssec_ok);
        answer.error.map_or(Ok(()), |code| opt.push(&ExtendedError::<Vec<u8>>::from(code)))
    })
}
