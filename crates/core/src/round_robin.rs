//! The reference scheduler: [`round_robin`]. The documentation of [`round_robin_over`] has its loop
//! in a plain form. The functions here do the same, and enter their CPU once for many steps.
//!
//! Programs call the first two; `per_core` of `sched` calls `round_robin_on` on each of its OS
//! threads. A change of the loop is a change of the plain form in the documentation too.

use crate::cpu::run::Brief;
use crate::{Cpu, Events, JoinError, NoEvents, RunError, Trace};
use std::future::Future;

/// Runs `main` and the threads that it creates, one step each in turn, until `main` has ended;
/// returns the result of `main`. The threads that are left are cancelled.
///
/// It serves threads that wait only for one another. [`round_robin_over`] takes an event loop too.
///
/// # Errors
/// See [`RunError`], above all the deadlock.
///
/// # Panics
/// If `main` panics.
pub fn round_robin<F: Future + 'static>(main: F) -> Result<F::Output, RunError> {
    round_robin_over(&mut NoEvents::new(), main)
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
///
/// # Differences
/// 1. The loop ends when `main` has ended. The paper's loop runs for ever.
/// 2. The loop polls its event source itself, after at most 256 steps. The paper has an OS thread
///    for each event loop, which writes to the ready queue (Figure 17).
/// 3. The loop passes each system call that it does not know to the event source. The paper's loop
///    knows all system calls.
///
/// # Examples
/// The scheduler in its plain form, as a program outside of this crate could have it:
/// ```
/// use selvedge::{Cpu, Events, NoEvents, RunError, Trace, fork, nbio, spawn, yield_now};
///
/// fn worker_main(cpu: &mut Cpu, events: &mut impl Events) -> Result<(), RunError> {
///     for _ in 0..256 {
///         let Some(thread) = cpu.woken() else { break };
///         match thread.step(cpu) {
///             Trace::Yield(thread) => cpu.make_ready(thread),
///             Trace::Blocked | Trace::Ret => {}
///             Trace::Fork { child, parent } => {
///                 cpu.make_ready(child);
///                 cpu.make_ready(parent);
///             }
///             Trace::Nbio(action) => cpu.make_ready(action.perform()),
///             Trace::Panic(panic) => panic.report(),
///             request => events.submit(cpu, request)?,
///         }
///     }
///     Ok(())
/// }
///
/// let (mut cpu, mut events) = (Cpu::new()?, NoEvents::new());
/// let mut main = cpu.spawn_local(async {
///     fork(yield_now()).await;
///     spawn(async { nbio(|| 6 * 7).await }).await.unwrap()
/// })?;
/// let output = loop {
///     worker_main(&mut cpu, &mut events)?;
///     if let Some(output) = main.try_join() {
///         break output;
///     }
///     cpu.poll(&mut events, true)?;
/// };
/// assert_eq!(output.unwrap(), 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "worker_main")]
pub fn round_robin_over<F: Future + 'static>(
    events: &mut impl Events,
    main: F,
) -> Result<F::Output, RunError> {
    round_robin_on(Cpu::new()?, events, main, || false).map(|output| output.expect("it is not stopped"))
}

/// As [`round_robin_over`], on this CPU, until `stop` returns true at the beginning of a turn; then
/// the result is `None`. The code that makes `stop` return true also calls the CPU's
/// [unparker](Cpu::unparker).
///
/// # Errors
/// See [`RunError`].
///
/// # Panics
/// If `main` panics.
pub fn round_robin_on<F: Future + 'static>(
    mut cpu: Cpu,
    events: &mut impl Events,
    main: F,
    stop: impl Fn() -> bool,
) -> Result<Option<F::Output>, RunError> {
    let mut main = cpu.spawn_main_local(main)?;
    main.stays();
    let result = loop {
        if stop() {
            break Ok(None);
        }
        if let Err(error) = steps(&mut cpu, events) {
            break Err(error);
        }
        if let Some(end) = main.try_join() {
            break Ok(Some(end));
        }
        if let Err(error) = cpu.poll(events, true) {
            break Err(error);
        }
    };
    events.cancel_all(&mut cpu);
    match result? {
        None => Ok(None),
        Some(Ok(output)) => Ok(Some(output)),
        Some(Err(JoinError::Panicked(exception))) => exception.rethrow(),
        Some(Err(JoinError::Cancelled)) => Err(RunError::MainExited),
    }
}

/// The number of steps in a turn, after which the scheduler polls the event source again.
const STEPS_PER_TURN: usize = 256;

/// The steps of one turn: threads run in the order in which they became ready.
///
/// This is `worker_main` in the example of [`round_robin_over`]. It enters the CPU once for all
/// steps, and looks at the brief end of each step instead of a whole [`Trace`].
///
/// # Errors
/// If a thread makes a request that the event source does not know.
#[inline]
pub fn steps(cpu: &mut Cpu, events: &mut impl Events) -> Result<(), RunError> {
    let mut here = cpu.enter();
    for _ in 0..STEPS_PER_TURN {
        let Some(thread) = here.woken() else {
            // Mail may create threads, which is done between steps.
            drop(here);
            if !cpu.has_woken() {
                return Ok(());
            }
            here = cpu.enter();
            continue;
        };
        match here.step(thread) {
            Brief::Yield(thread) => here.make_ready(thread),
            Brief::Blocked | Brief::Ret => {}
            Brief::Fork { child, parent } => {
                here.make_ready(child);
                here.make_ready(parent);
            }
            Brief::Other => {
                drop(here);
                act(cpu, events)?;
                here = cpu.enter();
            }
        }
    }
    Ok(())
}

/// Acts on a node of a rarer kind.
#[inline(never)]
fn act(cpu: &mut Cpu, events: &mut impl Events) -> Result<(), RunError> {
    match cpu.end_of_step() {
        Trace::Yield(thread) => cpu.make_ready(thread),
        Trace::Blocked | Trace::Ret => {}
        Trace::Fork { child, parent } => {
            cpu.make_ready(child);
            cpu.make_ready(parent);
        }
        Trace::Nbio(action) => cpu.make_ready(action.perform()),
        Trace::Panic(panic) => panic.report(),
        request => events.submit(cpu, request)?,
    }
    Ok(())
}
