//! The notice of a standstill: all threads of the process wait, and no deadlock is reported,
//! because an OS thread that this crate does not know could still wake one.
//!
//! `Cpu::poll` (`events.rs`) calls [`notice`] each time that it has found no deadlock and waits
//! once more. The notice is written once in a process, because a program may wait for such an OS
//! thread for long, and rightly.

use crate::quietly::quietly;
use crate::{Time, directory, quiet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The time after which the notice is written, in nanoseconds.
static AFTER: AtomicU64 = AtomicU64::new(10_000_000_000);
static IS_WRITTEN: AtomicBool = AtomicBool::new(false);

/// Sets how long all threads of the process have waited when a notice says so on standard error:
/// that no deadlock is reported, and why. Without this call it is 10 seconds; with `None` there is
/// no notice. It is written once in a process.
///
/// All threads wait, and none of them for the kernel or the clock. But the process has an OS thread
/// that is not known to be idle ([`Quiet`](crate::Quiet)), and that could wake one of them. While
/// the blocking pool makes a call, there is no notice.
///
/// # Examples
/// ```
/// // This program waits for its other OS threads, for as long as they take.
/// selvedge::observe::notice_standstill_after(None);
/// ```
pub fn notice_standstill_after(time: Option<Duration>) {
    let nanos = time.map_or(u64::MAX, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    AFTER.store(nanos, Ordering::Relaxed);
}

/// Writes the notice, if it is time. The caller's CPU has been without threads to run since
/// `since`, and has declared that it is quiet.
#[cold]
pub(crate) fn notice(since: Time) {
    let waited = Time::now().since(since);
    if waited.as_nanos() < u128::from(AFTER.load(Ordering::Relaxed)) || IS_WRITTEN.load(Ordering::Relaxed) {
        return;
    }
    if quiet::is_call_under_way() {
        return;
    }
    let Some(active) = quiet::active_os_threads().filter(|_| directory::are_all_quiet()) else { return };
    if active > 0 && !IS_WRITTEN.swap(true, Ordering::Relaxed) {
        let (threads, verb) = if active == 1 { ("OS thread", "is") } else { ("OS threads", "are") };
        let message = format!(
            "selvedge: all threads have waited for {waited:.1?}, and none for the kernel or the clock. No deadlock is \
             reported, because {active} {threads} of the process {verb} not known to be idle, and could wake a thread"
        );
        quietly(|| eprintln!("{message}"));
    }
}
