//! [`Upstreams`]: the servers behind a proxy, which one gets a request, and which are in order.
//!
//! `proxy.rs` [picks](Upstreams::pick) a server, and tells how it went. All state is in atomic
//! numbers, because the workers of a process share it. A number that is a little old makes a choice
//! a little worse, and never wrong.

use selvedge_client::{Address, Client, Request, RequestBody};
use selvedge_core::{Time, now};
use selvedge_io::time::interval;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// How a server is chosen for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Balance {
    /// One after the other.
    #[default]
    RoundRobin,
    /// The server with the fewest requests that are under way.
    LeastConnections,
    /// The same server for the same client address, as long as it is in order. When a server is
    /// added or lost, only the clients of that server change theirs.
    #[doc(alias = "consistent hash")]
    ByClient,
    /// The same server for the same path, in the same way.
    ByPath,
}

/// The servers behind a proxy. A clone shares their state.
///
/// # Health
/// A server that has [failed](Upstreams::failures) several times in a row gets no request for a
/// [while](Upstreams::pause). Then one request tries it: if that fails too, it gets none for
/// another while. [`watch`](Upstreams::watch) asks each server regularly besides, and a server that
/// does not answer gets no request until it answers again.
///
/// # Examples
/// ```
/// use selvedge::client::Address;
/// use selvedge::gateway::{Balance, Upstreams};
/// use std::time::Duration;
///
/// let upstreams = Upstreams::new([Address::tcp("10.0.0.1:80"), Address::tcp("10.0.0.2:80")])
///     .policy(Balance::LeastConnections)
///     .failures(3)
///     .pause(Duration::from_secs(10));
/// assert_eq!(upstreams.in_order(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct Upstreams {
    members: Arc<[UpstreamState]>,
    next: Arc<AtomicUsize>,
    policy: Balance,
    failures: u32,
    pause: Duration,
}

#[derive(Debug)]
struct UpstreamState {
    address: Address,
    /// A number by which the hashes of this server differ from those of others.
    salt: u64,
    under_way: AtomicUsize,
    /// Failures in a row.
    failures: AtomicU32,
    /// The time until which it gets no request, in nanoseconds.
    paused_until: AtomicU64,
    /// The last regular question was not answered.
    is_silent: AtomicBool,
}

/// A server that was chosen for one request. The request counts as under way until this is dropped.
#[derive(Debug)]
pub(crate) struct Picked {
    members: Arc<[UpstreamState]>,
    failures: u32,
    pause: Duration,
    pub(crate) index: usize,
}

impl Upstreams {
    /// Servers in turn. With no server, each request is answered `503 Service Unavailable`.
    pub fn new(addresses: impl IntoIterator<Item = Address>) -> Upstreams {
        let member = |address: Address| UpstreamState {
            salt: hash(address.to_string().as_bytes()),
            address,
            under_way: AtomicUsize::new(0),
            failures: AtomicU32::new(0),
            paused_until: AtomicU64::new(0),
            is_silent: AtomicBool::new(false),
        };
        Upstreams {
            members: addresses.into_iter().map(member).collect(),
            next: Arc::default(),
            policy: Balance::RoundRobin,
            failures: 3,
            pause: Duration::from_secs(10),
        }
    }

    /// How a server is chosen. [`Balance::RoundRobin`] if not set.
    #[must_use]
    pub fn policy(mut self, policy: Balance) -> Upstreams {
        self.policy = policy;
        self
    }

    /// The number of failures in a row after which a server gets no request for a while. 3 if not
    /// set; with 0 failures do not count.
    #[must_use]
    pub fn failures(mut self, in_a_row: u32) -> Upstreams {
        self.failures = in_a_row;
        self
    }

    /// That while. 10 s if not set.
    #[must_use]
    pub fn pause(mut self, pause: Duration) -> Upstreams {
        self.pause = pause;
        self
    }

    /// The number of servers that get requests now.
    pub fn in_order(&self) -> usize {
        let now = Time::now();
        self.members.iter().filter(|member| member.is_in_order(now)).count()
    }

    /// The servers, each with whether it gets requests now and how many are under way.
    pub fn states(&self) -> impl Iterator<Item = (&Address, bool, usize)> {
        let now = Time::now();
        self.members
            .iter()
            .map(move |member| (&member.address, member.is_in_order(now), member.under_way.load(Relaxed)))
    }

    /// Asks each server for `path` every `period`, for ever. A server that gives no answer, or one
    /// with a status of 500 or more, gets no requests until it answers again. A program runs this
    /// in a thread of its own.
    ///
    /// # Panics
    /// If the period is zero, or `path` does not begin with a slash.
    pub async fn watch(&self, client: &Client, path: &str, period: Duration) {
        assert!(path.starts_with('/'), "a path begins with a slash");
        let mut beat = interval(period);
        loop {
            for member in &*self.members {
                let answers = member.answers(client, path).await;
                member.is_silent.store(!answers, Relaxed);
                if answers {
                    member.failures.store(0, Relaxed);
                    member.paused_until.store(0, Relaxed);
                }
            }
            beat.tick().await;
        }
    }

    /// A server for a request with this key, other than the `tried` ones. `None` if no other is in
    /// order.
    pub(crate) fn pick(&self, key: u64, tried: &[usize]) -> Option<Picked> {
        let now = now();
        let count = self.members.len();
        let usable = |&index: &usize| !tried.contains(&index) && self.members[index].is_in_order(now);
        let index = match self.policy {
            Balance::RoundRobin => {
                let start = self.next.fetch_add(1, Relaxed);
                (0..count).map(|step| start.wrapping_add(step) % count).find(usable)
            }
            Balance::LeastConnections => {
                // Servers with the same number take turns.
                let start = self.next.fetch_add(1, Relaxed);
                let turns = (0..count).map(|step| start.wrapping_add(step) % count).filter(usable);
                turns.min_by_key(|&index| self.members[index].under_way.load(Relaxed))
            }
            // Each server has a number for each key, and the highest wins: a server that leaves
            // moves no key but its own.
            Balance::ByClient | Balance::ByPath => {
                (0..count).filter(usable).max_by_key(|&index| mix(self.members[index].salt ^ key))
            }
        }?;
        let member = &self.members[index];
        member.under_way.fetch_add(1, Relaxed);
        if member.paused_until.load(Relaxed) != 0 {
            // Its pause is over: this request tries it, and no other does meanwhile.
            member.paused_until.store((now + self.pause).as_nanos(), Relaxed);
        }
        let Upstreams { members, failures, pause, .. } = self;
        Some(Picked { members: members.clone(), failures: *failures, pause: *pause, index })
    }

    /// The key of a request, as the policy asks.
    pub(crate) fn key(&self, client: Option<std::net::IpAddr>, path: &[u8]) -> u64 {
        match (self.policy, client) {
            (Balance::ByPath, _) => hash(path),
            (Balance::ByClient, Some(std::net::IpAddr::V4(address))) => hash(&address.octets()),
            (Balance::ByClient, Some(std::net::IpAddr::V6(address))) => hash(&address.octets()),
            _ => 0,
        }
    }

    /// The number of servers.
    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }
}

impl UpstreamState {
    fn is_in_order(&self, now: Time) -> bool {
        !self.is_silent.load(Relaxed) && self.paused_until.load(Relaxed) <= now.as_nanos()
    }

    async fn answers(&self, client: &Client, path: &str) -> bool {
        let request = Request::get(path).header("host", host_of(&self.address)).body(RequestBody::default());
        let Ok(request) = request else { return false };
        match client.send_to(&self.address, request).await {
            Ok(answer) => answer.status().as_u16() < 500,
            Err(_) => false,
        }
    }
}

impl Picked {
    pub(crate) fn address(&self) -> &Address {
        &self.member().address
    }

    /// The server has answered.
    pub(crate) fn succeeded(&self) {
        let member = self.member();
        // Most requests succeed, and then nothing is written.
        if member.failures.load(Relaxed) != 0 {
            member.failures.store(0, Relaxed);
        }
        if member.paused_until.load(Relaxed) != 0 {
            member.paused_until.store(0, Relaxed);
        }
    }

    /// The server could not be reached, or has not answered.
    pub(crate) fn failed(&self) {
        let member = self.member();
        let in_a_row = member.failures.fetch_add(1, Relaxed).saturating_add(1);
        if self.failures != 0 && in_a_row >= self.failures {
            member.paused_until.store((Time::now() + self.pause).as_nanos(), Relaxed);
        }
    }

    fn member(&self) -> &UpstreamState {
        &self.members[self.index]
    }
}

impl Drop for Picked {
    fn drop(&mut self) {
        self.member().under_way.fetch_sub(1, Relaxed);
    }
}

/// A value for `Host` when a request has none.
pub(crate) fn host_of(address: &Address) -> String {
    let text = address.to_string();
    if text.starts_with("unix:") { "localhost".into() } else { text }
}

/// FNV-1a. It is the same in every process, so processes side by side choose alike.
fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Spreads the bits of a number (the last step of SplitMix64).
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstreams(count: usize, policy: Balance) -> Upstreams {
        Upstreams::new((0..count).map(|n| Address::tcp(format!("10.0.0.{n}:80")))).policy(policy)
    }

    #[test]
    fn round_robin_takes_turns_and_leaves_out_what_was_tried() {
        let upstreams = upstreams(3, Balance::RoundRobin);
        let picked: Vec<_> = (0..6).map(|_| upstreams.pick(0, &[]).unwrap().index).collect();
        assert_eq!(picked, [0, 1, 2, 0, 1, 2]);
        assert_eq!(upstreams.pick(0, &[0, 2]).unwrap().index, 1);
        assert!(upstreams.pick(0, &[0, 1, 2]).is_none());
        assert!(self::upstreams(0, Balance::RoundRobin).pick(0, &[]).is_none());
    }

    #[test]
    fn the_server_with_the_fewest_requests_is_chosen() {
        let upstreams = upstreams(3, Balance::LeastConnections);
        let held: Vec<_> = (0..6).map(|_| upstreams.pick(0, &[]).unwrap()).collect();
        let loads = |upstreams: &Upstreams| upstreams.states().map(|(_, _, load)| load).collect::<Vec<_>>();
        assert_eq!(loads(&upstreams), [2, 2, 2]);
        let freed = held.into_iter().filter(|picked| picked.index != 1).collect::<Vec<_>>();
        assert_eq!(upstreams.pick(0, &[]).unwrap().index, 1);
        drop(freed);
        assert_eq!(loads(&upstreams), [0, 0, 0]);
    }

    #[test]
    fn a_server_that_leaves_moves_no_key_but_its_own() {
        let upstreams = upstreams(5, Balance::ByPath);
        let choice = |tried: &[usize]| {
            (0..1000)
                .map(|n| {
                    upstreams.pick(upstreams.key(None, format!("/{n}").as_bytes()), tried).unwrap().index
                })
                .collect::<Vec<_>>()
        };
        let (all, without) = (choice(&[]), choice(&[3]));
        assert_eq!(all, choice(&[]));
        for server in 0..5 {
            let share = all.iter().filter(|&&index| index == server).count();
            assert!((100..300).contains(&share), "server {server} has {share} of 1000 keys");
        }
        assert!(all.iter().zip(&without).all(|(before, after)| before == after || *before == 3));
    }

    #[test]
    fn a_server_that_fails_pauses_and_is_tried_by_one_request() {
        selvedge_sim::simulate(0..1, || async {
            let upstreams = upstreams(1, Balance::RoundRobin).failures(2).pause(Duration::from_secs(5));
            let pick = || upstreams.pick(0, &[]);
            pick().unwrap().failed();
            pick().unwrap().succeeded();
            pick().unwrap().failed();
            assert_eq!(upstreams.in_order(), 1, "failures count in a row");
            pick().unwrap().failed();
            assert!(pick().is_none());
            selvedge_io::time::sleep(Duration::from_secs(6)).await;
            let trial = pick().unwrap();
            assert!(pick().is_none(), "one request tries it");
            trial.succeeded();
            assert!(pick().is_some());
        });
    }
}
