//! How other programs answer for a route: [`Balancing`] over several servers and their
//! [`HealthRule`], how long one may take ([`GatewayTerms`]), and how many programs run at once
//! ([`ProgramRule`]). The defaults are those of the configuration's keys.

use std::time::Duration;

/// How a server is chosen for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balancing {
    /// One after the other.
    #[default]
    RoundRobin,
    /// The one with the fewest requests under way.
    LeastConnections,
    /// The same for the same client.
    Client,
    /// The same for the same path.
    Path,
}

/// The names of the ways to choose, as the configuration has them.
pub const BALANCINGS: [(&str, Balancing); 4] = [
    ("round_robin", Balancing::RoundRobin),
    ("least_connections", Balancing::LeastConnections),
    ("client", Balancing::Client),
    ("path", Balancing::Path),
];

/// Which servers get requests.
#[derive(Clone, Debug, PartialEq)]
pub struct HealthRule {
    /// The path that each server is asked for regularly; without it none is asked.
    pub path: Option<String>,
    /// The time between two such questions.
    pub period: Duration,
    /// After this number of failures in a row a server gets no request for a while; 0 is never.
    pub failures: u32,
    /// That while.
    pub pause: Duration,
}

impl Default for HealthRule {
    fn default() -> HealthRule {
        HealthRule { path: None, period: Duration::from_secs(5), failures: 3, pause: Duration::from_secs(10) }
    }
}

/// How long another server may take, and whether it works for a client that has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatewayTerms {
    /// Until a connection is made.
    pub connect: Duration,
    /// Without taking a byte of the request.
    pub send: Duration,
    /// From the end of the request to the head of the answer.
    pub answer: Duration,
    /// Between two parts of the answer's body.
    pub read: Duration,
    /// Whether a request goes on when its client has left.
    pub outlives_client: bool,
}

impl Default for GatewayTerms {
    fn default() -> GatewayTerms {
        let seconds = Duration::from_secs;
        GatewayTerms {
            connect: seconds(5),
            send: seconds(30),
            answer: seconds(60),
            read: seconds(60),
            outlives_client: false,
        }
    }
}

/// How many programs run at once, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramRule {
    /// The most programs at once.
    pub at_once: u32,
    /// The most requests that wait for one of them to end.
    pub queue: usize,
    /// The longest time that a request waits.
    pub patience: Duration,
    /// The longest time that a program may take.
    pub time: Duration,
    /// Whether a program runs on when its client has left.
    pub outlives_client: bool,
}

impl Default for ProgramRule {
    fn default() -> ProgramRule {
        let seconds = Duration::from_secs;
        ProgramRule {
            at_once: 64,
            queue: 128,
            patience: seconds(10),
            time: seconds(60),
            outlives_client: false,
        }
    }
}
