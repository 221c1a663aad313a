//! [`Resolver`]: answers from other servers, with a cache. `server/mod.rs` calls
//! [`Resolver::resolve`] for each query of a near client that is not about the server's own zones.
//!
//! | file | what is in it |
//! |---|---|
//! | `upstream.rs` | one question to one server |
//! | `judge.rs` | what an answer means, and which of its records are believed |
//! | `forward.rs` | the servers of `--forward` |
//! | `iterate.rs`, `delegation.rs` | from the root servers on |
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
mod forward;
mod iterate;

pub use forward::Forwarders;
pub use iterate::Iteration;

use crate::record::{Data, NameKey, ZoneRecord, with_ttl};
use budget::Budget;
use cache::{Cache, CacheKey};
use domain::base::Rtype;
use domain::base::iana::OptRcode;
use domain::base::rdata::ComposeRecordData;
use judge::{ALIASES_MAX, Verdict};
use selvedge::Time;
use selvedge::sync::OnceCell;
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
    /// The SOA record of a negative answer.
    pub authority: Vec<ZoneRecord>,
    /// How many seconds the whole may be kept.
    ttl: u32,
}

impl Resolution {
    /// The records that were asked for.
    fn records(answer: Vec<ZoneRecord>) -> Resolution {
        let ttl = least_ttl(&answer);
        Resolution { rcode: OptRcode::NOERROR, answer, authority: Vec::new(), ttl }
    }

    /// There are none. Without an SOA record no server says for how long (RFC 2308 §5).
    fn negative(is_missing: bool, answer: Vec<ZoneRecord>, soa: Option<ZoneRecord>) -> Resolution {
        let rcode = if is_missing { OptRcode::NXDOMAIN } else { OptRcode::NOERROR };
        let authority: Vec<ZoneRecord> = soa.as_ref().map(negative_soa).into_iter().collect();
        let ttl = soa.map_or(0, |_| least_ttl(&answer).min(least_ttl(&authority)));
        Resolution { rcode, answer, authority, ttl }
    }

    /// No server has helped.
    fn failure() -> Resolution {
        let (answer, authority) = (Vec::new(), Vec::new());
        Resolution { rcode: OptRcode::SERVFAIL, answer, authority, ttl: FAILURE_TTL }
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
        Resolution { rcode: self.rcode, answer, authority, ttl: self.ttl.saturating_sub(seconds) }
    }
}

fn least_ttl(records: &[ZoneRecord]) -> u32 {
    records.iter().map(|record| record.ttl().as_secs()).min().unwrap_or(u32::MAX)
}

/// Where the resolver's answers come from.
#[derive(Debug)]
pub enum Source {
    /// From other resolvers.
    Forward(Forwarders),
    /// From the servers of the zones themselves.
    Iterate(Iteration),
}

/// A cell that the threads with one question share.
type Flight = Arc<OnceCell<Arc<Resolution>>>;

/// A caching resolver.
#[derive(Debug)]
pub struct Resolver {
    source: Source,
    upstream: Upstream,
    cache: Mutex<Cache<Arc<Resolution>>>,
    flights: Mutex<HashMap<CacheKey, Flight>>,
}

impl Resolver {
    /// A resolver with a cache of at most this number of bytes.
    pub fn new(source: Source, bytes_max: usize) -> Resolver {
        Resolver {
            source,
            upstream: Upstream::default(),
            cache: Mutex::new(Cache::new(bytes_max)),
            flights: Mutex::new(HashMap::new()),
        }
    }

    /// Finds the records of a type of a name. If no server helps in time, the result is `SERVFAIL`.
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
        let mut answer = Vec::new();
        let mut name = key.name.clone();
        for _ in 0..ALIASES_MAX {
            let verdict = match &self.source {
                Source::Forward(servers) => {
                    servers.ask(&self.upstream, &name, key.rtype, &mut budget).await?
                }
                Source::Iterate(iteration) => {
                    iteration.find(&self.upstream, &name, key.rtype, &mut budget, 0).await?
                }
            };
            match verdict {
                Verdict::Records(records) => {
                    answer.extend(records);
                    return Some(Resolution::records(answer));
                }
                Verdict::Alias(records, target) => {
                    answer.extend(records);
                    name = NameKey::new(&target);
                }
                Verdict::Negative(is_missing, records, soa) => {
                    answer.extend(records);
                    return Some(Resolution::negative(is_missing, answer, soa));
                }
                Verdict::Referral(_) | Verdict::Useless => return None,
            }
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
