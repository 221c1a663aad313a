//! [`Forwarders`]: other resolvers that find the answers. `resolve.rs` calls them.
//!
//! The server that has answered last is asked first. If it is silent for a second, the next one is
//! asked, and in the second round each has two seconds.

use super::budget::Budget;
use super::judge::{Said, Verdict, judge, proofs};
use super::upstream::Upstream;
use crate::record::NameKey;
use domain::base::Rtype;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How long a server has to answer, in each round.
const ROUNDS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(2)];

/// Resolvers, of which one that answers is asked.
#[derive(Debug)]
pub struct Forwarders {
    servers: Vec<SocketAddr>,
    /// The index of the server that answered last.
    preferred: AtomicUsize,
}

impl Forwarders {
    /// These servers.
    pub fn new(servers: Vec<SocketAddr>) -> Forwarders {
        Forwarders { servers, preferred: AtomicUsize::new(0) }
    }

    /// Asks one after the other. `None` if none of them helps.
    pub(super) async fn ask(
        &self,
        upstream: &Upstream,
        name: &NameKey,
        rtype: Rtype,
        budget: &mut Budget,
    ) -> Option<Said> {
        // Relaxed: any server may be the first.
        let first = self.preferred.load(Ordering::Relaxed);
        for limit in ROUNDS {
            for step in 0..self.servers.len() {
                let index = (first + step) % self.servers.len();
                let until = budget.question(limit)?;
                let heard = upstream.ask(self.servers[index], name, rtype, true, until).await;
                // A server that does not answer is no error as long as another one does.
                let Ok(heard) = heard else { continue };
                let proofs = proofs(&heard, None);
                match judge(heard, name, rtype, None) {
                    Verdict::Useless | Verdict::Referral(_) => {}
                    verdict => {
                        self.preferred.store(index, Ordering::Relaxed);
                        return Some(Said { verdict, proofs });
                    }
                }
            }
        }
        None
    }
}
