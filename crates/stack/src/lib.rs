//! TCP and UDP in the program itself.
//!
//! A [`Stack`] is an event loop. Its source is a [`Wire`] that carries Ethernet frames: a
//! [`Tap`] device or a [`PacketSocket`] of the kernel, a [`SimulatedWire`] in memory, or the
//! [`Loopback`] for a stack that talks with itself. Several stacks share a device by [`FlowWire`],
//! each with its own flows. Two threads drive a stack: one takes frames from the wire, the other
//! sleeps until the next timer. The sockets are like those of `selvedge_io::net`, but each is made
//! with its stack. [`SocketDescriptors`] makes a stream of a stack a socket of `selvedge_io::net`.
//!
//! The logic of the protocols is smoltcp's. Which frame is for which socket, the timers, the
//! backlog of a listener and its limits, cookies under a flood, what is lost and goes again, the
//! congestion window, the lengths of packets, the size of buffers, and which thread waits for what,
//! are this crate's.
//!
//! # Paper
//! [LZ07 §6]: the application-level TCP stack.
//!
//! # What there is not
//! Fragments of IP, urgent data, time stamps, and zero copies.

// # For readers of the source
//
// A stack is a `StackEngine` under one lock, with a `Wire` and two threads (`stack.rs`). Start at
// `engine.rs`, and below it `engine/connections.rs`. Each socket is a `SocketSet` of its own, so a
// frame costs one search (`flow.rs` says for which socket it is) and one socket's turn
// (`engine/turns.rs`). A listener has no socket: a segment that opens a connection makes one, and
// under a flood a segment that brings a cookie back does (`engine/admission.rs`). How long a
// connection waits for its peer is in `engine/limits.rs`, and no time limit is smoltcp's. smoltcp's
// sockets keep their buffers, so `engine/growing.rs` gives a connection with empty buffers another
// socket, which `engine/workshop.rs` makes. `segments.rs` changes what comes to a socket and what
// it sends, where smoltcp alone would stall, lose bytes, or tell a stranger the next sequence
// number. smoltcp sends each segment once and at once, as far as the peer has room: from
// `engine/sending.rs` on it is `engine/recovery.rs` that says whether it goes, and goes again, and
// `engine/control.rs` that says how much goes and when: by a window (`engine/congestion.rs`), or by
// a model of the path (`engine/bbr.rs`), which samples of `engine/delivery.rs` make. `frames.rs`
// has the device that a socket sees, and `outgoing.rs` what goes to the wire: what a segment
// carries lies in one frame of the socket from there until the peer has it.
// `descriptors.rs` stands above all of this: it makes streams sockets of an OS thread.
//
// Invariants:
// - Frames are sent, and wakers are woken, when the lock of the stack is released
//   (`StackState::operate` and `Stack::poll`). No code of a program runs under the lock.
// - A segment without contents has at least the sequence number for which the peer waits, and at
//   most that after the last segment that has gone (`StackConnection::note_sent`). Otherwise two
//   peers that both repeat something would drop each other's acknowledgements for ever.
// - What a socket acknowledges goes at once, also if its segment waits for the congestion control.
// - `StackConnection` has the numbers of the connection, and the socket has numbers of its own:
//   `shift_came` and `shift_gone` stand between them, around each turn of the socket.
// - A connection at rest has no buffer for writing, so it leaves its rest before its socket hears
//   contents or gets bytes to write (`engine/growing.rs`).
// - Strangers cannot make the stack keep more than the limits of its listeners: a connection that
//   a segment begins counts in its `ListenQueue`, or its peer has brought back a cookie.
#![deny(unsafe_op_in_unsafe_fn)]
#![doc(test(attr(deny(warnings), allow(dead_code))))]

mod descriptors;
mod engine;
mod flow;
mod frames;
#[doc(hidden)]
pub mod fuzz;
mod icmp;
mod options;
mod outgoing;
mod questions;
mod segments;
mod stack;
mod tcp;
mod tcp_options;
mod udp;
mod waiters;
mod wire;

pub use descriptors::SocketDescriptors;
pub use options::StackOptions;
pub use outgoing::OutgoingFrame;
pub use stack::Stack;
pub use tcp::{TcpListener, TcpStream};
pub use tcp_options::{Congestion, TcpOptions};
pub use udp::UdpSocket;
pub use wire::flows::FlowWire;
pub use wire::loopback::Loopback;
pub use wire::packet::PacketSocket;
pub use wire::simulated::{SimulatedWire, Weather};
pub use wire::tap::Tap;
pub use wire::{Receiving, Wire};
