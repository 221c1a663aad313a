//! What a stack sends to itself: its frames for its own addresses go to no wire.

use super::StackEngine;
use crate::questions::{ask_itself, asked_for};
use smoltcp::time::Instant;
use std::net::{IpAddr, Ipv6Addr};

/// How many frames a turn takes, so that two sockets of a stack that talk cannot hold its lock for
/// long.
const MOST: usize = 256;

impl StackEngine {
    /// Takes frames that the stack has sent to itself. If some are left, there is an event at once.
    pub(crate) fn loop_back(&mut self, now: Instant) {
        self.keep_own(0);
        for _ in 0..MOST {
            let Some(mut frame) = self.own_frames.pop_front() else { return };
            if let Some(IpAddr::V6(asked @ Ipv6Addr::LOCALHOST)) = asked_for(&frame) {
                ask_itself(&mut frame, asked);
            }
            let gone = self.frames.to_go.len();
            self.take(frame, now);
            self.keep_own(gone);
        }
    }

    /// Keeps the frames for the stack itself, among the frames that are to go from this place on.
    fn keep_own(&mut self, from: usize) {
        let hardware = self.options.hardware.0;
        let interface = &self.interface;
        let own = self.frames.to_go.extract_if(from.., |frame| {
            let head = frame.head();
            head.starts_with(&hardware)
                // The first bit of an address for many stations is set: it may be a question for
                // the Ethernet address of an address of the stack.
                || head.first().is_some_and(|first| first & 1 == 1)
                    && asked_for(head).is_some_and(|address| interface.has_ip_addr(address))
        });
        own.for_each(|frame| frame.for_each(|one| self.own_frames.push_back(one.to_vec())));
    }
}
