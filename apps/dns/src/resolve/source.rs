//! [`Source`]: where answers come from; and [`Lookup`], one question to it within a budget.

use super::budget::Budget;
use super::forward::Forwarders;
use super::iterate::Iteration;
use super::judge::Said;
use super::upstream::Upstream;
use crate::record::NameKey;
use domain::base::Rtype;

/// Where the resolver's answers come from.
#[derive(Debug)]
pub enum Source {
    /// From other resolvers.
    Forward(Forwarders),
    /// From the servers of the zones themselves.
    Iterate(Iteration),
}

/// The questions that one client's question leads to. They share its budget.
#[derive(Debug)]
pub(super) struct Lookup<'a> {
    pub(super) source: &'a Source,
    pub(super) upstream: &'a Upstream,
    pub(super) budget: &'a mut Budget,
}

impl Lookup<'_> {
    /// Asks for the records of a type of a name. `None` if no server helps.
    pub(super) async fn find(&mut self, name: &NameKey, rtype: Rtype) -> Option<Said> {
        match self.source {
            Source::Forward(servers) => servers.ask(self.upstream, name, rtype, self.budget).await,
            Source::Iterate(iteration) => iteration.find(self.upstream, name, rtype, self.budget, 0).await,
        }
    }
}
