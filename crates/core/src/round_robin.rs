//! The reference scheduler: round-robin, to be read in one look.

use crate::{Cpu, Events, NoEvents, RunError, RunQueue, Trace, spawn};
use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;

/// Runs `main` and the threads it creates, one step each in turn, until `main` has ended; returns its result. The threads
/// that are left are cancelled.
///
/// It serves threads that wait only for one another; [`round_robin_with`] takes an event loop too.
///
/// # Errors
/// See [`RunError`]; a deadlock above all.
///
/// # Panics
/// If `main` panics.
pub fn round_robin<F: Future + 'static>(main: F) -> Result<F::Output, RunError> {
    round_robin_with(&mut NoEvents::new(), main)
}

/// As [`round_robin`], with an event source for descriptors and time.
///
/// # Errors
/// See [`RunError`].
///
/// # Panics
/// If `main` panics.
///
/// # Paper
/// [LZ07 Figure 13] `worker_main`.
pub fn round_robin_with<F: Future + 'static>(
    events: &mut impl Events,
    main: F,
) -> Result<F::Output, RunError> {
    let mut cpu = Cpu::new()?;
    let result = Rc::new(Cell::new(None));
    let to = Rc::clone(&result);
    let mut ready = RunQueue::new();
    ready.push(cpu.thread(async move { to.set(Some(spawn(main).await)) })?);
    loop {
        let mut turn = std::mem::take(&mut ready);
        while let Some(thread) = turn.pop() {
            match thread.step(&mut cpu) {
                Trace::Yield(thread) => ready.push(thread),
                Trace::Fork { child, parent } => ready.extend([child, parent]),
                Trace::Nbio(action) => ready.push(action.perform()),
                Trace::Blocked | Trace::Ret => {}
                Trace::Panic(panic) => eprintln!("{panic}"),
                request => events.submit(&mut cpu, request)?,
            }
            while let Some(thread) = cpu.woken() {
                ready.push(thread);
            }
        }
        match result.take() {
            Some(Ok(output)) => return Ok(output),
            Some(Err(crate::JoinError::Panicked(exception))) => exception.rethrow(),
            Some(Err(crate::JoinError::Cancelled)) => return Err(RunError::MainExited),
            None => {}
        }
        cpu.poll(events, ready.is_empty())?;
    }
}
