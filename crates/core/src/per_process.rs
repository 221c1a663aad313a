//! A value that a process has once: [`PerProcess`]. The child of a `fork(2)` makes its own.
//!
//! The deadlock ledger (`quiet.rs`) and the pools of the crates above lie in one.

use std::process;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A value that each process makes at its first use.
///
/// The child of a `fork(2)` has a copy of the parent's memory, but only one of the parent's OS
/// threads: the calling one. So a lock, a job, or a count that belongs to the parent's other OS
/// threads stays for ever as it was. Therefore the child leaves the parent's value alone, and makes
/// a value of its own. It notices the fork by the process id.
#[derive(Debug)]
#[doc(hidden)]
pub struct PerProcess<T: 'static>(AtomicPtr<Made<T>>);

#[derive(Debug)]
struct Made<T> {
    by: u32,
    value: T,
}

impl<T: Send + Sync> PerProcess<T> {
    /// A place in which no value has been made.
    #[expect(clippy::new_without_default, reason = "it is for statics, where `default` cannot be called")]
    pub const fn new() -> PerProcess<T> {
        PerProcess(AtomicPtr::new(ptr::null_mut()))
    }

    /// The value of this process. When several OS threads make it at the same time, all of them get
    /// the first value.
    ///
    /// # Complexity
    /// A `getpid(2)`: about 50 ns.
    pub fn get(&self, make: impl FnOnce() -> T) -> &'static T {
        let me = process::id();
        let made = self.0.load(Ordering::Acquire);
        // SAFETY: the pointer is null, or leaked by `set`, which alone stores here.
        match unsafe { made.as_ref() } {
            Some(made) if made.by == me => &made.value,
            _ => self.set(made, Made { by: me, value: make() }),
        }
    }

    #[cold]
    fn set(&self, old: *mut Made<T>, new: Made<T>) -> &'static T {
        let new = Box::into_raw(Box::new(new));
        let set = self.0.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire);
        let made = match set {
            Ok(_) => new,
            Err(other) => {
                // SAFETY: `new` was boxed above and is not shared, because the exchange has failed.
                drop(unsafe { Box::from_raw(new) });
                other
            }
        };
        // SAFETY: a `set` of this process has leaked the pointer: this `set`, or an earlier one.
        // The pointer is never freed.
        unsafe { &(*made).value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn it_is_made_once() {
        static VALUE: PerProcess<AtomicU32> = PerProcess::new();
        VALUE.get(AtomicU32::default).fetch_add(1, Ordering::Relaxed);
        assert_eq!(VALUE.get(|| unreachable!("there is one")).load(Ordering::Relaxed), 1);
    }
}
