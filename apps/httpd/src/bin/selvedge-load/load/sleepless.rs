//! `Sleepless`: an event loop that never sleeps in the kernel, for `--busy-poll`. `client.rs` runs
//! its scheduler over it in place of the ordinary loop.

use selvedge_core::{Cpu, Events, Trace, Unpark};
use selvedge_io::EventLoop;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The event loop of a program that has a CPU of its own: whatever the scheduler is ready to wait,
/// it only looks.
///
/// A client that sleeps makes the server pay for waking it, with each reply, so that a fast server
/// looks slower than it is; this one costs the server nothing.
#[derive(Debug)]
pub(crate) struct Sleepless(pub(crate) EventLoop);

impl Events for Sleepless {
    fn submit(&mut self, cpu: &mut Cpu, node: Trace) -> Result<(), Trace> {
        self.0.submit(cpu, node)
    }

    fn poll(&mut self, cpu: &mut Cpu, _timeout: Option<Duration>) -> io::Result<()> {
        self.0.poll(cpu, Some(Duration::ZERO))
    }

    fn cancel_all(&mut self, cpu: &mut Cpu) {
        self.0.cancel_all(cpu);
    }

    fn armed(&self) -> usize {
        self.0.armed()
    }

    fn unparker(&self) -> Arc<dyn Unpark> {
        self.0.unparker()
    }
}
