//! The reference scheduler: round-robin, to be read in one look.

use crate::{Cpu, Events, JoinError, NoEvents, RunError, Trace};
use std::future::Future;

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
    let mut main = cpu.spawn(main)?;
    loop {
        turn(&mut cpu, events)?;
        match main.try_join() {
            Some(Ok(output)) => return Ok(output),
            Some(Err(JoinError::Panicked(exception))) => exception.rethrow(),
            Some(Err(JoinError::Cancelled)) => return Err(RunError::MainExited),
            None => {}
        }
    }
}

/// How many steps a turn has before the event source is looked at again.
const STEPS_PER_TURN: usize = 256;

/// One turn of a round-robin scheduler: a number of steps, first come, first served; then a look at the event source, waiting for
/// it if no thread is ready. False when no thread is left.
///
/// # Errors
/// See [`RunError`].
pub fn turn(cpu: &mut Cpu, events: &mut impl Events) -> Result<bool, RunError> {
    for _ in 0..STEPS_PER_TURN {
        let Some(thread) = cpu.woken() else { break };
        match thread.step(cpu) {
            Trace::Yield(thread) => cpu.make_ready(thread),
            Trace::Fork { child, parent } => {
                cpu.make_ready(child);
                cpu.make_ready(parent);
            }
            Trace::Nbio(action) => cpu.make_ready(action.perform()),
            Trace::Blocked | Trace::Ret => {}
            Trace::Panic(panic) => eprintln!("{panic}"),
            request => events.submit(cpu, request)?,
        }
    }
    cpu.poll(events, true)
}
