//! When a deadlock is told: the argument that no report is false, and that each deadlock is told.
//!
//! # Words
//! An OS thread is **quiet** while it holds a [`Quiet`], or while another holds one for it. It says
//! by this: "I do nothing that could make a thread go on until an OS thread of this process gives
//! me something to do." A pool's idle OS thread is quiet, and so is a scheduler's that has no
//! thread to run and awaits nothing from the kernel, and one that waits for a future without a time
//! limit. All others are **active**: those that run, those that wait for the kernel or the clock,
//! and all of which this module knows nothing.
//!
//! The [`Ledger`] is one word: how many OS threads are quiet, and how often a quiet has ended.
//!
//! # Steps
//! - **B**, begin: the ledger counts one more. The OS thread itself takes this step, when it has
//!   done all that was its to do. (The idle OS threads of a pool take it for one another, because
//!   it does not matter which of them gets the next job.)
//! - **E**, end: the ledger counts one less, and one end more. **The OS thread that gives a quiet
//!   one something to do takes this step for it**, and only then may become quiet, or end, itself.
//!   An OS thread also takes it on its own when it stops waiting.
//! - **D**, detect: a scheduler that is quiet reads the ledger (D1), asks the kernel how many OS
//!   threads the process has (D2) and reads the ledger again (D3). If both readings are equal and
//!   say as many as the kernel, there is a deadlock.
//!
//! Where E is taken: `Inbox::post` and `Inbox::call` for the OS thread of a CPU; the submitter of a
//! job for one of a pool; the waker for one that waits for a future (`blocking.rs`: in `block_on`,
//! or in a blocking operation of `sync` without a time limit); the maker of a request for that of
//! the loop outside schedulers; the last worker to end for the one that waits in `per_core`.
//!
//! # No report is false
//! 1. *Between D1 and D3 the same OS threads were quiet all the time.* A step B adds 1 to the word,
//!    and a step E adds 2³² - 1. No sum of fewer than 2³² of them is 0, so equal readings mean that
//!    there was none.
//! 2. *At D2 all OS threads of the process were quiet.* The quiet ones exist, for they wait; each
//!    counts once; and the kernel counts as many. It counts one that starts from before its first
//!    instruction to after its last.
//! 3. *From then on nothing happens.* A quiet OS thread goes on only after another has taken E for
//!    it. The first to take E would have to be active; at D2 there was none, and no OS thread
//!    starts but by an active one.
//!
//! An OS thread that gives work and ends at once takes E before the kernel forgets it. The kernel
//! forgets it under a lock that D2 takes too. So if D2 does not count it any more, D3 sees its E.
//!
//! # Each deadlock is told
//! Let all OS threads be quiet from some moment on; the last to become so took the last step B.
//! - *It was a scheduler's.* It takes D afterwards, and 1 to 3 hold.
//! - *It was another.* Then it [calls](crate::directory::call_one) a CPU whose OS thread is quiet,
//!   if the CPUs are all asleep; that one takes E and B for itself, and D.
//! - *It was none, but an active OS thread has ended.* Of those nothing is known. So a quiet
//!   scheduler takes D again, first after a millisecond, then less and less often, four times a
//!   second in the end.
//!
//! A scheduler that awaits something from the kernel is active, and so a deadlock of others is told
//! only when it is over.
//!
//! `tests/loom_quiet.rs` checks the steps with models of two and three OS threads.

use crate::directory;
use crate::per_process::PerProcess;
use crate::primitives::{AtomicU64, Ordering};

/// How many OS threads are quiet, and how often a quiet has ended (in the upper half).
#[derive(Debug)]
#[doc(hidden)]
pub struct Ledger(AtomicU64);

impl Default for Ledger {
    fn default() -> Ledger {
        Ledger(AtomicU64::new(0))
    }
}

impl Ledger {
    /// Step B.
    pub fn begin(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    /// Step E.
    pub fn end(&self) {
        self.0.fetch_add((1 << 32) - 1, Ordering::SeqCst);
    }

    /// Step D: whether all OS threads are quiet, of which `os_threads` says how many there are.
    pub fn are_all_quiet(&self, os_threads: impl FnOnce() -> Option<u32>) -> bool {
        let before = self.0.load(Ordering::SeqCst);
        let quiet = before as u32;
        os_threads() == Some(quiet) && self.0.load(Ordering::SeqCst) == before
    }
}

fn ledger() -> &'static Ledger {
    static LEDGER: PerProcess<Ledger> = PerProcess::new();
    LEDGER.get(Ledger::default)
}

/// For as long as it lives, one OS thread is **quiet**: it does nothing that could make a thread go
/// on until an OS thread of this process gives it something to do. When all are quiet there is a
/// deadlock, which a scheduler then reports.
///
/// Helper threads of an event source hold one while they idle, or else no deadlock can be told.
/// What they promise:
/// - The OS thread waits for neither the kernel nor the clock, unless it does nothing then but end.
/// - The giver of something to do drops this *before* it gives, or at least before it waits or
///   ends. So it lies where the giver finds it, and not on the stack of the OS thread that waits.
///
/// # Examples
/// An OS thread that waits for its first job:
/// ```
/// use selvedge::Quiet;
/// use std::sync::{Arc, Condvar, Mutex};
///
/// #[derive(Default)]
/// struct State { job: Option<u32>, quiet: Option<Quiet> }
///
/// let place = Arc::new((Mutex::<State>::default(), Condvar::new()));
/// let there = place.clone();
/// let helper = std::thread::spawn(move || {
///     let mut state = there.0.lock().unwrap();
///     while state.job.is_none() {
///         state.quiet.get_or_insert_with(Quiet::new);
///         state = there.1.wait(state).unwrap();
///     }
///     state.job.take()
/// });
/// let mut state = place.0.lock().unwrap();
/// state.job = Some(42);
/// state.quiet = None;
/// drop(state);
/// place.1.notify_one();
/// assert_eq!(helper.join().unwrap(), Some(42));
/// ```
#[derive(Debug)]
#[must_use = "the OS thread is quiet only for as long as this lives"]
pub struct Quiet(&'static Ledger);

impl Quiet {
    /// One OS thread more is quiet from now on. If it may have been the last, a scheduler looks
    /// whether it was.
    #[expect(clippy::new_without_default, reason = "it is a declaration, not a value")]
    pub fn new() -> Quiet {
        let quiet = Quiet::of_scheduler();
        directory::call_one();
        quiet
    }

    /// The OS thread of a scheduler is quiet from now on, which looks itself whether it was the
    /// last.
    pub(crate) fn of_scheduler() -> Quiet {
        let ledger = ledger();
        ledger.begin();
        Quiet(ledger)
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Whether all OS threads of the process are quiet.
pub(crate) fn are_all_quiet() -> bool {
    ledger().are_all_quiet(os_threads)
}

/// How many OS threads the process has. (A listing of `/proc/self/task` is no measure: it ends at
/// an entry whose OS thread is just ending.)
fn os_threads() -> Option<u32> {
    if cfg!(miri) {
        return None; // Miri's OS threads are one to the kernel.
    }
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the program's name, in brackets; it may have brackets and blanks in it.
    const AFTER_NAME: usize = 20 - 3;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(AFTER_NAME)?.parse().ok()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "it cannot see how many OS threads there are")]
    fn the_kernel_counts_the_os_threads() {
        let before = os_threads().unwrap();
        let (send, receive) = std::sync::mpsc::channel::<()>();
        let waits = std::thread::spawn(move || receive.recv());
        assert!(os_threads().unwrap() > 1 && before >= 1);
        drop(send);
        waits.join().unwrap().unwrap_err();
    }

    #[test]
    fn all_are_quiet_only_if_as_many_as_there_are_and_nothing_has_changed() {
        let ledger = Ledger::default();
        ledger.begin();
        ledger.begin();
        assert!(ledger.are_all_quiet(|| Some(2)));
        assert!(!ledger.are_all_quiet(|| Some(3)));
        assert!(!ledger.are_all_quiet(|| None));
        let changes = || {
            ledger.end();
            ledger.begin();
            Some(2)
        };
        assert!(!ledger.are_all_quiet(changes), "one was active in between");
        assert!(ledger.are_all_quiet(|| Some(2)));
    }
}
