//! `selvedge-dns`: a DNS server with a thread for each query. It is an authority for zones that it
//! reads from files, and a caching resolver.
//!
//! The binary in `main.rs` reads the command line. The other modules are public because the tests
//! in `tests/suite` call them one by one.
//!
//! | module | what is in it |
//! |---|---|
//! | [`record`] | names and records |
//! | [`zone`] | the records of a zone, the search in it, and its file |
//! | [`authority`] | what the server says of its own zones |
//! | [`resolve`] | what it finds at other servers, and keeps |
//! | [`dnssec`] | what zones have signed |
//! | [`wire`], [`frame`] | messages as bytes |
//! | [`tls`] | the certificate that the server shows |
//! | [`networks`], [`rate`] | which clients may do what, and how often |
//! | [`server`] | the sockets and the threads |
//! | [`notify`] | tells other servers that a zone has changed |
//! | [`options`], [`say`] | the command line, and lines for the operator |
//!
//! A query passes through them in this order: a thread of [`server`] has its bytes;
//! [`wire::asked`] reads them; [`authority`] searches the zones; [`resolve`] asks other servers;
//! [`wire::answer`] writes the bytes of the answer.
//!
//! Four rules hold everywhere:
//! - A name has one key, with small letters. Zones and caches know keys only, and answers keep the
//!   client's letters.
//! - A server is believed about names in the zone that it was asked as a server of, and about
//!   nothing else (`resolve/judge.rs`).
//! - Of a zone that is signed, nothing is believed that it has not signed (`resolve/validate.rs`).
//! - Threads wait for a question in flight, and a resolution within another one waits for none. So
//!   no circle of waits arises.

#![doc(test(attr(deny(warnings), allow(dead_code))))]
#![forbid(unsafe_code)]

pub mod authority;
pub mod dnssec;
pub mod frame;
#[doc(hidden)]
pub mod fuzz;
pub mod networks;
pub mod notify;
pub mod options;
pub mod rate;
pub mod record;
pub mod resolve;
#[cfg(test)]
mod samples;
pub mod say;
pub mod server;
pub mod tls;
pub mod wire;
pub mod zone;
