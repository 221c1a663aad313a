//! What the configuration of a web site says, as types and as decisions: which route a request
//! takes, which address may ask, which headers a reply gets.
//!
//! Nothing here does I/O. A [`RouteTable`] has virtual hosts, each host has routes, and each route
//! has a [`RouteAction`] and [`Rules`]. The first route that matches wins. Two front ends make
//! tables, with the feature `config`: `settings` reads TOML, and `mighty` reads the
//! configuration and the route file of Mighttpd.
//!
//! | File | Content |
//! |---|---|
//! | `table.rs` | hosts, routes, actions, and how a request finds its route |
//! | `rules.rs` | what holds for a route besides its action: access, headers, CORS |
//! | `behind.rs` | how other programs answer: balance, health, times, how many at once |
//! | `path.rs` | the canonical form of a path, in which paths and patterns are compared |
//! | `pattern.rs` | patterns of paths |
//! | `template.rs` | texts with `$path` and the like, for redirects and rewriting |
//! | `network.rs` | ranges of addresses |
//! | `accept.rs` | what a client prefers: languages, content codings |
//! | `rate.rs` | rates and connections by address, in a table with a bound |
//! | `listing.rs` | a directory as a page and as JSON |
//! | `proxy_protocol.rs` | the head that a load balancer sends in front of a connection |
//! | `password.rs` | names and hashed passwords |
//! | `settings.rs`, `read.rs` | the configuration in TOML: its types, and how a table is made of it |
//! | `mighty.rs` | Mighttpd's configuration and route file |
//! | `reference.rs` | the page that documents each key |

// # For readers of the source
//
// Read `table.rs`, then `path.rs`, which says why a request has one spelling. The documentation of
// each key is on its field in `settings.rs`, and nowhere else. A new key is a field there, and a
// line in `read.rs`.
//
// Invariants:
// - Two spellings of one path take one route.
// - No table that clients fill grows without a bound.

#![doc(test(attr(deny(warnings), allow(dead_code))))]
#![forbid(unsafe_code)]

pub mod accept;
mod behind;
#[cfg(feature = "config")]
mod error;
#[doc(hidden)]
pub mod fuzz;
pub mod listing;
#[cfg(feature = "config")]
pub mod mighty;
mod network;
pub mod password;
pub mod path;
mod pattern;
pub mod proxy_protocol;
pub mod rate;
#[cfg(feature = "config")]
mod read;
#[cfg(feature = "config")]
pub mod reference;
mod rules;
#[cfg(feature = "config")]
pub mod settings;
mod table;
mod template;

pub use behind::{BALANCINGS, Balancing, GatewayTerms, HealthRule, ProgramRule};
#[cfg(feature = "config")]
pub use error::ConfigError;
pub use network::{Network, NetworkError};
pub use pattern::{Glob, PathPattern, PatternError};
#[cfg(feature = "config")]
pub use read::read;
pub use rules::{Access, BasicAuth, Cors, HeaderRule, Rules};
pub use table::{
    Compression, Host, Listing, Route, RouteAction, RouteMatch, RouteTable, ServedDirectory, without_port,
};
pub use template::{Template, TemplateError, Variables};
