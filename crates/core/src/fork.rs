//! The system call that creates a thread.

use crate::cpu::{Ask, current, direct, retract};
use crate::thread::Thread;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Creates a thread: the scheduler gets it and the rest of the caller in one [`Trace::Fork`](crate::Trace::Fork) node, and
/// decides which goes first.
///
/// Nobody can join the new thread, and it is nothing but its future: see [`spawn`](crate::spawn) for one with a result.
/// It is born when the call is awaited; a call that is dropped before creates nothing.
///
/// # Panics
/// Outside of a thread of ours, and if the arena is full.
///
/// # Paper
/// [LZ07 Figure 10] `sys_fork`.
///
/// # Examples
/// ```
/// use selvedge_core::{fork, round_robin};
///
/// round_robin(async {
///     fork(async { println!("the child") }).await;
///     println!("the parent");
/// })?;
/// # Ok::<(), selvedge_core::RunError>(())
/// ```
#[doc(alias = "sys_fork")]
#[inline(always)]
pub fn fork(future: impl Future<Output = ()> + 'static) -> Fork {
    let cpu = current().expect("fork() is a system call of a thread: here is none");
    Fork { child: Some(cpu.forked(future).unwrap_or_else(|full| panic!("{full}"))), asked: false }
}

/// As [`fork`], for a future that must stay on its OS thread.
///
/// # Panics
/// As [`fork`].
#[inline(always)]
pub fn fork_local(future: impl Future<Output = ()> + 'static) -> Fork {
    fork(future)
}

/// The system call [`fork`].
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct Fork {
    child: Option<Thread>,
    asked: bool,
}

impl Future for Fork {
    type Output = ();

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(child) = self.child.take() else {
            self.asked = false;
            return Poll::Ready(());
        };
        let leaf = &raw const *self;
        match (direct(cx), current()) {
            (Some(cpu), _) if cpu.ask(leaf, Ask::Fork(child.key())) => {
                child.into_key();
                self.asked = true;
                Poll::Pending
            }
            (_, Some(cpu)) => {
                cpu.push_woken(child);
                Poll::Ready(())
            }
            (_, None) => panic!("fork() was begun in a thread, and awaited elsewhere"),
        }
    }
}

impl Drop for Fork {
    #[inline(always)]
    fn drop(&mut self) {
        if self.asked {
            retract(&raw const *self);
        }
    }
}
