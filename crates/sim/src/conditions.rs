//! `Conditions`: the chances, delays and sizes that the simulated kernel draws from. A test gives
//! them to its [`World`](crate::World); `kernel.rs` and the files of `kernel/` read them at each
//! draw.
//!
//! A new field gets a value in `good` at which nothing fails, because tests under good conditions
//! fail no call.

use std::ops::Range;
use std::time::Duration;

/// The properties of the simulated network and disk. A field of type `u32` is a chance: the number
/// of cases in a million.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// How long sent bytes are under way. Connections overtake each other; the bytes of a
    /// connection do not.
    pub delay: Range<Duration>,
    /// How many bytes may be under way or unread in one direction of a connection; drawn for each
    /// connection.
    pub window: Range<usize>,
    /// The lengths of the pieces, in bytes, in which sent bytes arrive.
    pub segment: Range<usize>,
    /// How often a write is cut short, because the socket has no more room for a while.
    pub short_write: u32,
    /// How often a signal interrupts a call.
    pub interrupted: u32,
    /// How often accepting a connection fails: descriptors or memory have run out, or the peer has
    /// broken the connection off.
    pub accept_fails: u32,
    /// How often a connection is refused.
    pub refused: u32,
    /// How many connections break before their time.
    pub reset: u32,
    /// How often sent bytes are lost. The bytes after them wait until the lost bytes have been sent
    /// again, for up to two minutes.
    pub stalled: u32,
    /// How often a UDP datagram is lost.
    pub datagram_lost: u32,
    /// How often a UDP datagram comes twice.
    pub datagram_twice: u32,
    /// How long a call takes that can block.
    pub disk_delay: Range<Duration>,
    /// How often a call on files fails: with `EIO`, or, if the call takes room on the disk, with
    /// `ENOSPC`.
    pub disk_error: u32,
    /// How often a read or a write transfers less than the program asked for.
    pub disk_short: u32,
    /// How often the wanted part of a file is not in memory.
    pub disk_cold: u32,
    /// How many bytes the files on the disk may take; beyond that, writing fails with `ENOSPC`.
    pub disk_bytes: u64,
    /// How many descriptors may be open at once.
    pub descriptors_max: usize,
}

impl Conditions {
    /// Nothing fails. The order of the events, their delays, and the pieces in which bytes arrive
    /// vary.
    pub fn good() -> Conditions {
        Conditions {
            delay: Duration::from_micros(10)..Duration::from_millis(2),
            window: 4096..65_536,
            segment: 1..16_384,
            short_write: 0,
            interrupted: 0,
            accept_fails: 0,
            refused: 0,
            reset: 0,
            stalled: 0,
            datagram_lost: 0,
            datagram_twice: 0,
            disk_delay: Duration::ZERO..Duration::from_millis(10),
            disk_error: 0,
            disk_short: 0,
            disk_cold: 100_000,
            disk_bytes: u64::MAX,
            descriptors_max: 10_000,
        }
    }

    /// As [good](Conditions::good) conditions, but nothing takes time, and all bytes of a write
    /// arrive together. For [`Explorer::check_world`](crate::Explorer::check_world), which chooses
    /// the order of the arrivals.
    pub fn prompt() -> Conditions {
        Conditions {
            delay: Duration::ZERO..Duration::ZERO,
            window: 65_536..65_537,
            segment: usize::MAX - 1..usize::MAX,
            disk_delay: Duration::ZERO..Duration::ZERO,
            disk_cold: 0,
            ..Conditions::good()
        }
    }

    /// Everything that can fail fails now and then.
    pub fn bad() -> Conditions {
        Conditions {
            delay: Duration::from_micros(10)..Duration::from_millis(100),
            window: 1..20_000,
            segment: 1..4096,
            short_write: 100_000,
            interrupted: 20_000,
            accept_fails: 100_000,
            refused: 20_000,
            reset: 100_000,
            stalled: 2_000,
            datagram_lost: 100_000,
            datagram_twice: 50_000,
            disk_error: 10_000,
            disk_short: 100_000,
            disk_cold: 300_000,
            ..Conditions::good()
        }
    }
}
