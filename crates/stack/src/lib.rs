//! TCP and UDP in the program itself.
//!
//! A [`Stack`] is an event loop. Its source is a [`Wire`] that carries Ethernet frames: a
//! [`Tap`] device or a [`PacketSocket`] of the kernel, a [`SimulatedWire`] in memory, or the
//! [`Loopback`] for a stack that talks with itself. Two threads drive it: one takes
//! frames from the wire, the other sleeps until the next timer. The sockets are those that threads
//! know from `selvedge_io::net`, but each is made with its stack.
//!
//! The logic of the protocols is smoltcp's. Which frame is for which socket, the timers, the
//! backlog of a listener and its limits, and which thread waits for what, are this crate's.
//!
//! # Paper
//! [LZ07 §6]: the application-level TCP stack.
//!
//! # What there is not
//! Fragments of IP, SYN cookies, urgent data, path MTU discovery, and zero copies.
#![deny(unsafe_op_in_unsafe_fn)]
#![doc(test(attr(deny(warnings), allow(dead_code))))]

mod engine;
mod flow;
mod frames;
#[doc(hidden)]
pub mod fuzz;
mod options;
mod stack;
mod tcp;
mod tcp_options;
mod udp;
mod waiters;
mod wire;

pub use options::StackOptions;
pub use stack::Stack;
pub use tcp::{TcpListener, TcpStream};
pub use tcp_options::{Congestion, TcpOptions};
pub use udp::UdpSocket;
pub use wire::loopback::Loopback;
pub use wire::packet::PacketSocket;
pub use wire::simulated::{SimulatedWire, Weather};
pub use wire::tap::Tap;
pub use wire::{Receiving, Wire};
