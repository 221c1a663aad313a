//! The tests of this crate in one program, because linking is what takes long.

mod against_the_listings;
mod messages;
#[path = "../../../pipeline/tests/misuses/mod.rs"]
mod misuses;
mod no_allocation;
mod parallel;
mod suspensions;
mod transcripts;
