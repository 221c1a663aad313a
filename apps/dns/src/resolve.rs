//! [`Resolver`]: answers from other servers, with a cache. `server.rs` calls
//! [`Resolver::resolve`] for each query of a near client that is not about the server's own zones.
//!
//! | file | what is in it |
//! |---|---|
//! | `upstream.rs` | one question to one server |
//! | `judge.rs` | what an answer means, and which of its records are believed |
//! | `forward.rs` | the servers of `--forward` |
//! | `iterate.rs`, `delegation.rs` | from the root servers on |
//! | `source.rs` | one of the two |
//! | `validate.rs`, `trust.rs` | whether an answer is what its zone has signed |
//! | `follow.rs` | the keys of the trust anchors, as their zones replace them |
//! | `budget.rs` | what one question may cost |
//! | `cache.rs` | what is kept |
//!
//! Threads that ask the same question at the same time share one cell, in `Resolver::flights`.
//! The first of them asks the servers, and the others wait for the cell. If the first one is
//! cancelled, the next one asks.

pub mod cache;
pub mod delegation;
pub mod judge;
pub mod upstream;

mod budget;
mod follow;
mod forward;
mod iterate;
mod source;
mod trust;
mod validate;

pub use forward::Forwarders;
pub use iterate::Iteration;
pub use source::Source;
pub use validate::Validator;

use crate::dnssec::Security;
use crate::record::{Data, NameKey, ZoneRecord, with_ttl};
use budget::Budget;
use cache::{Cache, CacheKey};
use domain::base::Rtype;
use domain::base::iana::{ExtendedErrorCode, OptRcode};
use domain::base::rdata::ComposeRecordData;
use judge::{ALIASES_MAX, Verdict, is_of};
use selvedge::Time;
use selvedge::sync::OnceCell;
use source::Lookup;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use upstream::Upstream;

/// How long a negative answer is kept at most, in seconds (RFC 2308 §5: one to three hours).
const NEGATIVE_TTL_MAX: u32 = 3 * 3600;

/// How long a failure is kept, in seconds (RFC 9520 §3.2).
const FAILURE_TTL: u32 = 5;

/// What counts for data of which the library does not know the length before it writes them.
const DATA_BYTES: u16 = 512;

/// What is found for a question.
#[derive(Clone, Debug)]
pub struct Resolution {
    /// The code.
    pub rcode: OptRcode,
    /// The records, behind the aliases that lead to them.
    pub answer: Vec<ZoneRecord>,
    /// The SOA record of a negative answer, and proofs with their signatures.
    pub authority: Vec<ZoneRecord>,
    /// What is known of the records. Without a validator all are insecure.
    pub security: Security,
    /// How many seconds the whole may be kept.
    ttl: u32,
}

impl Resolution {
    /// The records that were asked for.
    fn records(answer: Vec<ZoneRecord>) -> Resolution {
        let ttl = least_ttl(&answer);
        Resolution::new(OptRcode::NOERROR, answer, Vec::new(), ttl)
    }

    /// There are none. Without an SOA record no server says for how long (RFC 2308 §5).
    fn negative(is_missing: bool, answer: Vec<ZoneRecord>, soa: Option<ZoneRecord>) -> Resolution {
        let rcode = if is_missing { OptRcode::NXDOMAIN } else { OptRcode::NOERROR };
        let authority: Vec<ZoneRecord> = soa.as_ref().map(negative_soa).into_iter().collect();
        let ttl = soa.map_or(0, |_| least_ttl(&answer).min(least_ttl(&authority)));
        Resolution::new(rcode, answer, authority, ttl)
    }

    /// No server has helped.
    fn failure() -> Resolution {
        Resolution::new(OptRcode::SERVFAIL, Vec::new(), Vec::new(), FAILURE_TTL)
    }

    fn new(rcode: OptRcode, answer: Vec<ZoneRecord>, authority: Vec<ZoneRecord>, ttl: u32) -> Resolution {
        Resolution { rcode, answer, authority, security: Security::Insecure, ttl }
    }

    /// The same with what validation has found, and with proofs.
    fn validated(mut self, security: Security, seconds: u32, proofs: Vec<ZoneRecord>) -> Resolution {
        let is_bogus = matches!(security, Security::Bogus(_));
        let seconds = if is_bogus { FAILURE_TTL } else { seconds };
        self.ttl = self.ttl.min(seconds);
        let shortened = |record: ZoneRecord| with_ttl(&record, record.ttl().as_secs().min(seconds));
        self.answer = self.answer.into_iter().map(shortened).collect();
        self.authority = self.authority.into_iter().chain(proofs).map(shortened).collect();
        self.security = security;
        self
    }

    /// What a client is told of why there is no answer.
    pub fn error(&self) -> Option<ExtendedErrorCode> {
        match self.security {
            Security::Bogus(flaw) => Some(flaw.code()),
            _ if self.rcode == OptRcode::SERVFAIL => Some(ExtendedErrorCode::NO_REACHABLE_AUTHORITY),
            _ => None,
        }
    }

    /// The same for a client that has not asked for signatures and proofs, but for these records.
    pub fn without_signatures(mut self, rtype: Rtype) -> Resolution {
        let stays = |record: &ZoneRecord| {
            let proves = [Rtype::RRSIG, Rtype::NSEC, Rtype::NSEC3].contains(&record.rtype());
            !proves || record.rtype() == rtype
        };
        self.answer.retain(stays);
        self.authority.retain(stays);
        self
    }

    /// About how many bytes it takes.
    fn bytes(&self) -> usize {
        let records = self.answer.iter().chain(&self.authority);
        let bytes = records.map(|record| {
            let data = record.data().rdlen(false).unwrap_or(DATA_BYTES);
            size_of::<ZoneRecord>() + record.owner().len() + usize::from(data)
        });
        size_of::<Resolution>() + bytes.sum::<usize>()
    }

    /// The same, some seconds later.
    fn aged(&self, seconds: u32) -> Resolution {
        let aged = |records: &[ZoneRecord]| {
            let left = |record: &ZoneRecord| record.ttl().as_secs().saturating_sub(seconds);
            records.iter().map(|record| with_ttl(record, left(record))).collect()
        };
        let (answer, authority) = (aged(&self.answer), aged(&self.authority));
        let ttl = self.ttl.saturating_sub(seconds);
        Resolution { rcode: self.rcode, answer, authority, security: self.security, ttl }
    }
}

fn least_ttl(records: &[ZoneRecord]) -> u32 {
    records.iter().map(|record| record.ttl().as_secs()).min().unwrap_or(u32::MAX)
}

/// A cell that the threads with one question share.
type Flight = Arc<OnceCell<Arc<Resolution>>>;

/// A caching resolver.
#[derive(Debug)]
pub struct Resolver {
    source: Source,
    upstream: Upstream,
    validator: Option<Validator>,
    cache: Mutex<Cache<Arc<Resolution>>>,
    flights: Mutex<HashMap<CacheKey, Flight>>,
}

impl Resolver {
    /// A resolver with a cache of at most this number of bytes. It validates nothing.
    pub fn new(source: Source, bytes_max: usize) -> Resolver {
        Resolver {
            source,
            upstream: Upstream::default(),
            validator: None,
            cache: Mutex::new(Cache::new(bytes_max)),
            flights: Mutex::new(HashMap::new()),
        }
    }

    /// The same, but answers are validated.
    pub fn validating(mut self, validator: Validator) -> Resolver {
        self.upstream.wants_signatures = true;
        self.validator = Some(validator);
        self
    }

    /// Finds the records of a type of a name. If no server helps in time, the result is `SERVFAIL`.
    /// An answer that is bogus is returned with this mark.
    pub async fn resolve(&self, name: &NameKey, rtype: Rtype) -> Resolution {
        let key = CacheKey { name: name.clone(), rtype };
        if let Some((found, age)) = self.cached(&key) {
            return found.aged(age);
        }
        let flight = self.flights().entry(key.clone()).or_default().clone();
        let ending = FlightEnd { resolver: self, key: &key, flight: &flight };
        let found = Resolution::clone(flight.get_or_init(|| self.find_and_keep(&key)).await);
        drop(ending);
        found
    }

    fn flights(&self) -> MutexGuard<'_, HashMap<CacheKey, Flight>> {
        self.flights.lock().expect("no code panics under this lock")
    }

    fn cached(&self, key: &CacheKey) -> Option<(Arc<Resolution>, u32)> {
        self.cache.lock().expect("no code panics under this lock").get(key, Time::now())
    }

    async fn find_and_keep(&self, key: &CacheKey) -> Arc<Resolution> {
        // Another thread may have kept it after this one had looked.
        if let Some((found, age)) = self.cached(key) {
            return Arc::new(found.aged(age));
        }
        let found = Arc::new(self.follow(key).await.unwrap_or_else(Resolution::failure));
        let (ttl, bytes) = (found.ttl, found.bytes());
        let mut cache = self.cache.lock().expect("no code panics under this lock");
        cache.insert(key.clone(), found.clone(), ttl, bytes, Time::now());
        found
    }

    /// Asks for the name, and for the names that it is an alias of. `None` if no server helps.
    async fn follow(&self, key: &CacheKey) -> Option<Resolution> {
        let mut budget = Budget::new();
        let (source, upstream) = (&self.source, &self.upstream);
        let mut lookup = Lookup { source, upstream, budget: &mut budget };
        let (mut answer, mut proofs) = (Vec::new(), Vec::new());
        let (mut security, mut seconds) = (Security::Secure, u32::MAX);
        let mut name = key.name.clone();
        for _ in 0..ALIASES_MAX {
            let said = lookup.find(&name, key.rtype).await?;
            if let Some(validator) = &self.validator {
                let found = validator.validate(&said, &name, key.rtype, &mut lookup).await;
                (security, seconds) = (security.and(found.security), seconds.min(found.seconds));
                proofs.extend(said.proofs);
            }
            let found = match said.verdict {
                Verdict::Alias(records, target) => {
                    answer.extend(records);
                    name = NameKey::new(&target);
                    // The SOA record of a zone that the name leads out of says nothing.
                    proofs.retain(|record| !is_of(record, Rtype::SOA));
                    continue;
                }
                Verdict::Records(records) => {
                    answer.extend(records);
                    proofs.retain(|record| !is_of(record, Rtype::SOA));
                    Resolution::records(answer)
                }
                Verdict::Negative(is_missing, records, soa) => {
                    answer.extend(records);
                    // The SOA record itself is in the answer already.
                    proofs.retain(|record| record.rtype() != Rtype::SOA);
                    Resolution::negative(is_missing, answer, soa)
                }
                Verdict::Referral(_) | Verdict::Useless => return None,
            };
            let is_validated = self.validator.is_some();
            return Some(if is_validated { found.validated(security, seconds, proofs) } else { found });
        }
        None
    }
}

/// Takes a flight out of the table when one of its threads has the answer, or is cancelled. A later
/// flight with the same question stays.
struct FlightEnd<'a> {
    resolver: &'a Resolver,
    key: &'a CacheKey,
    flight: &'a Flight,
}

impl Drop for FlightEnd<'_> {
    fn drop(&mut self) {
        let mut flights = self.resolver.flights();
        if flights.get(self.key).is_some_and(|current| Arc::ptr_eq(current, self.flight)) {
            flights.remove(self.key);
        }
    }
}

/// An SOA record with the time that a negative answer may be kept (RFC 2308 §5).
fn negative_soa(soa: &ZoneRecord) -> ZoneRecord {
    let minimum = match soa.data() {
        Data::Soa(data) => data.minimum().as_secs(),
        _ => 0,
    };
    with_ttl(soa, soa.ttl().as_secs().min(minimum).min(NEGATIVE_TTL_MAX))
}
