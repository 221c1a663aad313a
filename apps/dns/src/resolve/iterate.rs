//! [`Iteration`]: finding an answer from the root servers on. `resolve.rs` calls it.
//!
//! Each server either answers or names the servers of a zone nearer to the name (a referral). A
//! referral is kept in a cache, so that the next question begins near its end. The servers of a
//! zone are asked in an order that is drawn anew, those with known addresses first. The address of
//! another server is a question of its own, which [`Iteration::find`] asks within itself; the
//! resolver's questions in flight are not waited for here, because two of them could wait for each
//! other.

use super::budget::Budget;
use super::cache::{Cache, CacheKey};
use super::delegation::{Delegation, NameServer, address, roots};
use super::judge::{ALIASES_MAX, Said, Verdict, judge, proofs};
use super::upstream::Upstream;
use crate::record::NameKey;
use domain::base::Rtype;
use selvedge::Time;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How many referrals lead to a name at most.
const REFERRALS_MAX: usize = 20;

/// How deeply questions for addresses of servers may lie in each other.
const DEPTH_MAX: usize = 4;

/// How long a server has to answer.
const LIMIT: Duration = Duration::from_millis(1200);

/// The port of all servers.
const PORT: u16 = 53;

/// What [`Iteration::find`] returns: it calls itself.
type Finding<'a> = Pin<Box<dyn Future<Output = Option<Said>> + Send + 'a>>;

/// Resolution from the root.
#[derive(Debug)]
pub struct Iteration {
    roots: Arc<Delegation>,
    known: Mutex<Cache<Arc<Delegation>>>,
}

impl Iteration {
    /// An iteration from the root servers of the Internet, with a cache of this number of bytes for
    /// the servers of zones.
    pub fn new(bytes_max: usize) -> Iteration {
        Iteration::from_roots(roots(), bytes_max)
    }

    /// An iteration from other servers of the root.
    pub fn from_roots(roots: Delegation, bytes_max: usize) -> Iteration {
        Iteration { roots: Arc::new(roots), known: Mutex::new(Cache::new(bytes_max)) }
    }

    /// Asks from zone to zone. `None` if no server helps.
    pub(super) fn find<'a>(
        &'a self,
        upstream: &'a Upstream,
        name: &'a NameKey,
        rtype: Rtype,
        budget: &'a mut Budget,
        depth: usize,
    ) -> Finding<'a> {
        Box::pin(async move {
            let mut delegation = self.nearest(name, rtype);
            for _ in 0..REFERRALS_MAX {
                let said = self.ask_zone(upstream, &delegation, name, rtype, budget, depth).await?;
                let Verdict::Referral(next) = said.verdict else { return Some(said) };
                delegation = Arc::new(next);
                self.keep(&delegation);
            }
            None
        })
    }

    /// The deepest zone with the name in it of which the servers are known. What the zone above
    /// says of a name, its own servers do not know.
    fn nearest(&self, name: &NameKey, rtype: Rtype) -> Arc<Delegation> {
        let now = Time::now();
        let mut known = self.known.lock().expect("no code panics under this lock");
        let mut zones = name.suffixes().skip(usize::from(rtype == Rtype::DS));
        let found = zones.find_map(|zone| known.get(&key(NameKey::new(name_of(zone))), now));
        found.map_or_else(|| self.roots.clone(), |(delegation, _)| delegation)
    }

    fn keep(&self, delegation: &Arc<Delegation>) {
        let mut known = self.known.lock().expect("no code panics under this lock");
        let (ttl, bytes) = (delegation.ttl, delegation.bytes());
        known.insert(key(delegation.zone.clone()), delegation.clone(), ttl, bytes, Time::now());
    }

    /// Asks the servers of a zone until one helps.
    async fn ask_zone(
        &self,
        upstream: &Upstream,
        delegation: &Delegation,
        name: &NameKey,
        rtype: Rtype,
        budget: &mut Budget,
        depth: usize,
    ) -> Option<Said> {
        let mut servers: Vec<&NameServer> = delegation.servers.iter().collect();
        servers.sort_by_cached_key(|_| upstream.draw());
        let (known, unknown): (Vec<_>, Vec<_>) =
            servers.into_iter().partition(|server| !server.addresses.is_empty());
        for server in known.into_iter().chain(unknown) {
            let mut addresses = server.addresses.clone();
            if addresses.is_empty() && depth < DEPTH_MAX {
                addresses = self.addresses(upstream, server, budget, depth + 1).await;
            }
            // A host without IPv6 fails at once there, and the next address is asked.
            addresses.sort_by_key(IpAddr::is_ipv6);
            for address in addresses {
                let until = budget.question(LIMIT)?;
                let server = SocketAddr::new(address, PORT);
                let Ok(heard) = upstream.ask(server, name, rtype, false, until).await else { continue };
                let proofs = proofs(&heard, Some(&delegation.zone));
                match judge(heard, name, rtype, Some(&delegation.zone)) {
                    Verdict::Useless => {}
                    verdict => return Some(Said { verdict, proofs }),
                }
            }
        }
        None
    }

    /// Finds the addresses of a server that its zone's parent has not told.
    async fn addresses(
        &self,
        upstream: &Upstream,
        server: &NameServer,
        budget: &mut Budget,
        depth: usize,
    ) -> Vec<IpAddr> {
        for rtype in [Rtype::A, Rtype::AAAA] {
            let mut name = NameKey::new(&server.name);
            for _ in 0..ALIASES_MAX {
                match self.find(upstream, &name, rtype, budget, depth).await.map(|said| said.verdict) {
                    Some(Verdict::Records(records)) => return records.iter().filter_map(address).collect(),
                    Some(Verdict::Alias(_, target)) => name = NameKey::new(&target),
                    _ => break,
                }
            }
        }
        Vec::new()
    }
}

fn key(zone: NameKey) -> CacheKey {
    CacheKey { name: zone, rtype: Rtype::NS }
}

/// The name of a key's end.
fn name_of(suffix: &[u8]) -> &domain::base::Name<[u8]> {
    domain::base::Name::from_slice(suffix).expect("an end of a name is a name")
}
