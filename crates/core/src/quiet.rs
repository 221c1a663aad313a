//! The ledger of quiet OS threads, by which a scheduler finds a deadlock: [`Ledger`], [`Quiet`],
//! and the argument that no report is false and that each deadlock is reported.
//!
//! `Cpu::poll` in `events.rs` asks [`are_all_quiet`]. Event sources and pools hold a [`Quiet`] for
//! each of their idle OS threads.
//!
//! # Words
//! An OS thread is **quiet** while it holds a [`Quiet`], or while another OS thread holds one for
//! it. A quiet OS thread promises: "I do nothing that could make a thread go on until an OS thread
//! of this process gives me something to do." An idle OS thread of a pool is quiet. The OS thread
//! of a scheduler is quiet when the scheduler has no thread to run and awaits nothing from the
//! kernel. An OS thread that waits for a future without a time limit (`blocking.rs`) is quiet. All
//! other OS threads are **active**: OS threads that run, OS threads that wait for the kernel or the
//! clock, and all OS threads that this module does not know.
//!
//! The [`Ledger`] has one word for them: the number of quiet OS threads, and the number of quiets
//! that have ended. Beside it stands the number of calls that are under way: see below.
//!
//! # Steps
//! - **B**, begin: the ledger counts one quiet OS thread more. The OS thread itself takes this
//!   step, when it has done all its work. (The idle OS threads of a pool take it for one another,
//!   because it does not matter which of them gets the next job.)
//! - **E**, end: the ledger counts one quiet OS thread less, and one end more. **The OS thread that
//!   gives a quiet one something to do takes this step for it**, and only then may become quiet, or
//!   end, itself. An OS thread also takes this step for itself when it stops waiting.
//! - **D**, detect: a scheduler that is quiet reads the ledger (D1), asks the kernel for the number
//!   of OS threads of the process (D2) and reads the ledger again (D3). If both readings are equal,
//!   and the number of quiet OS threads in them is the kernel's number, there is a deadlock.
//!
//! E is taken by `Inbox::post` and `Inbox::call` for the OS thread of a CPU; by the submitter of a
//! job for an OS thread of a pool; by the waker for an OS thread that waits for a future (in
//! `block_on`, or in a blocking operation of `sync`); by the maker of a request for the OS thread
//! of the loop outside schedulers; by the last worker to end for the OS thread that waits in
//! `per_core`.
//!
//! # No report is false
//! 1. *Between D1 and D3 the same OS threads were quiet all the time.* A step B adds 1 to the word,
//!    and a step E adds 2³² - 1. No sum of fewer than 2³² such steps is 0, so equal readings mean
//!    that there was no step.
//! 2. *At D2 all OS threads of the process were quiet.* The quiet OS threads exist, because they
//!    wait. Each counts once, and the kernel counts as many. The kernel counts an OS thread from
//!    before its first instruction to after its last.
//! 3. *From then on nothing happens.* A quiet OS thread goes on only after another has taken E for
//!    it. The first OS thread to take E would have to be active. At D2 there was no active one, and
//!    only an active OS thread starts another.
//!
//! An OS thread that gives work and ends at once takes E before the kernel forgets it. The kernel
//! forgets it under a lock that D2 takes too. So if D2 does not count it any more, D3 sees its E.
//!
//! # Each deadlock is reported
//! Let all OS threads be quiet from some moment on. The last event before that moment is one of
//! three:
//! - *The OS thread of a scheduler took a step B.* It takes D afterwards, and 1 to 3 hold.
//! - *Another OS thread took a step B.* If the CPUs are all asleep, this OS thread
//!   [calls](crate::directory::call_one) a CPU with a quiet OS thread. That OS thread
//!   takes E and B for itself, and then D.
//! - *An active OS thread ended.* This module does not see that. So a quiet scheduler takes D
//!   again, first after a millisecond, then less and less often, four times a second in the end.
//!
//! A scheduler that awaits an event from the kernel is active. So a deadlock of other threads is
//! reported only after that wait.
//!
//! # A group of CPUs
//! A scheduler that is quiet leaves D out while another CPU of its group is awake. To leave D out
//! makes no report false. The other CPU is active, and takes B and D itself before it sleeps. If
//! two CPUs fall asleep at once, each of them first announces that it sleeps, then takes B, and
//! then looks whether the other sleeps. All these steps are SeqCst. The last of them to take B
//! finds that the other sleeps, and the ledger that it reads in D1 counts both.
//!
//! # Calls under way
//! D2 reads a file of the kernel, which takes some 20 µs. So a scheduler leaves D2 and D3 out while
//! an OS thread of a pool makes a call for a thread, because that OS thread is active. A
//! [`CallUnderWay`] counts the call, from before its job is given until the call has ended. To
//! leave D2 out is to report nothing, so it makes no report false. Deadlocks are reported all the
//! same:
//! - The OS thread that has made the call takes the call off the count, and then takes its own
//!   step B or ends. So the count is 0 when the last event of the list above has happened.
//! - The scheduler reads the count after D1. If D1 counts the quiet of that OS thread, the
//!   scheduler also sees that the call has ended, because both steps on the ledger and on the count
//!   are SeqCst. Otherwise that OS thread takes its step B later, and calls a CPU.
//!
//! `tests/loom/quiet.rs` checks the steps with models of two and three OS threads.

use crate::per_process::PerProcess;
use crate::primitives::{AtomicU32, AtomicU64, Ordering};

/// The quiet OS threads of a process, and the calls under way in it.
#[derive(Debug)]
#[doc(hidden)]
pub struct Ledger {
    /// The number of quiet OS threads (in the lower half), and the number of quiets that have ended
    /// (in the upper half).
    quiet: AtomicU64,
    /// The number of calls under way.
    calls: AtomicU32,
}

impl Default for Ledger {
    fn default() -> Ledger {
        Ledger { quiet: AtomicU64::new(0), calls: AtomicU32::new(0) }
    }
}

impl Ledger {
    /// Step B.
    pub fn begin(&self) {
        self.quiet.fetch_add(1, Ordering::SeqCst);
    }

    /// Step E.
    pub fn end(&self) {
        self.quiet.fetch_add((1 << 32) - 1, Ordering::SeqCst);
    }

    /// The number of quiet OS threads.
    pub fn quiet(&self) -> u32 {
        self.quiet.load(Ordering::SeqCst) as u32
    }

    /// A call begins: an OS thread will be active until the call has ended.
    pub fn begin_call(&self) {
        self.calls.fetch_add(1, Ordering::SeqCst);
    }

    /// A call has ended. Its OS thread has not taken its next step B.
    pub fn end_call(&self) {
        self.calls.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether a call has begun and has not ended.
    pub fn is_call_under_way(&self) -> bool {
        self.calls.load(Ordering::SeqCst) > 0
    }

    /// Step D: whether all OS threads are quiet. `os_threads` gives their number.
    pub fn are_all_quiet(&self, os_threads: impl FnOnce() -> Option<u32>) -> bool {
        let before = self.quiet.load(Ordering::SeqCst);
        if self.is_call_under_way() {
            return false;
        }
        let quiet = before as u32;
        os_threads() == Some(quiet) && self.quiet.load(Ordering::SeqCst) == before
    }
}

fn ledger() -> &'static Ledger {
    static LEDGER: PerProcess<Ledger> = PerProcess::new();
    LEDGER.get(Ledger::default)
}

/// While it lives, one OS thread is **quiet**: it does nothing that could make a thread go on until
/// an OS thread of this process gives it something to do. When all OS threads are quiet there is a
/// deadlock, which a scheduler then reports.
///
/// The helper threads of an event source hold one while they idle, because otherwise no deadlock
/// can be reported. They promise:
/// - The OS thread waits for neither the kernel nor the clock, unless it only ends after that.
/// - The OS thread that gives it something to do drops this *before* it gives, or at least before
///   it waits or ends itself. So this value lies where the giver finds it, and not on the stack of
///   the OS thread that waits.
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
#[doc(alias = "termination detection")]
#[derive(Debug)]
#[must_use = "the OS thread is quiet only for as long as this lives"]
pub struct Quiet(&'static Ledger);

impl Quiet {
    /// The OS thread of a scheduler is quiet from now on. The scheduler checks for a deadlock
    /// itself.
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

/// While it lives, a call is under way that an OS thread of a pool makes for a thread, or will
/// make.
///
/// The giver of the job makes it before the OS thread's quiet ends. The OS thread drops it after
/// the call, before it becomes quiet or ends. The call may rightly take long, so there is no notice
/// of a standstill meanwhile.
#[derive(Debug)]
#[doc(hidden)]
#[must_use = "the call is under way only for as long as this lives"]
pub struct CallUnderWay(&'static Ledger);

impl CallUnderWay {
    /// A call begins.
    #[expect(clippy::new_without_default, reason = "it is a declaration, not a value")]
    pub fn new() -> CallUnderWay {
        let ledger = ledger();
        ledger.begin_call();
        CallUnderWay(ledger)
    }
}

impl Drop for CallUnderWay {
    fn drop(&mut self) {
        self.0.end_call();
    }
}

/// Whether an OS thread of a pool makes a call now.
pub(crate) fn is_call_under_way() -> bool {
    ledger().is_call_under_way()
}

/// The number of OS threads of the process that are not quiet, at about this moment. `None` where
/// the kernel does not say how many there are.
pub(crate) fn active_os_threads() -> Option<u32> {
    Some(os_threads()?.saturating_sub(ledger().quiet()))
}

/// Whether all OS threads of the process are quiet.
pub(crate) fn are_all_quiet() -> bool {
    ledger().are_all_quiet(os_threads)
}

/// The number of OS threads of the process. (The length of a listing of `/proc/self/task` is no
/// measure, because the listing ends at the entry of an OS thread that is ending.)
fn os_threads() -> Option<u32> {
    if cfg!(miri) {
        return None; // Miri runs all its OS threads in one of the kernel's.
    }
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the program's name in brackets. The name may contain brackets and blanks.
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

    #[test]
    fn the_kernel_is_not_asked_while_a_call_is_under_way() {
        let ledger = Ledger::default();
        ledger.begin();
        ledger.begin_call();
        ledger.begin_call();
        ledger.end_call();
        assert!(!ledger.are_all_quiet(|| unreachable!("an OS thread makes a call")));
        ledger.end_call();
        assert!(ledger.are_all_quiet(|| Some(1)));
    }
}
