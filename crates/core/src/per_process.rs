//! What a process has one of, and what the child of a `fork(2)` makes anew.

use std::process;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A value that each process makes at its first use.
///
/// The child of a `fork(2)` has a copy of the parent's memory, but of the parent's OS threads only the one that called. So
/// what the parent's OS threads hold (a lock, a job, a count of themselves) stays for ever as it was. The child therefore
/// leaves the parent's value alone, which it notices by the process id, and makes one of its own.
#[derive(Debug)]
#[doc(hidden)]
pub struct PerProcess<T: 'static>(AtomicPtr<Made<T>>);

#[derive(Debug)]
struct Made<T> {
    by: u32,
    value: T,
}

impl<T: Send + Sync> PerProcess<T> {
    /// Nothing is made yet.
    #[expect(clippy::new_without_default, reason = "it is for statics, where `default` cannot be called")]
    pub const fn new() -> PerProcess<T> {
        PerProcess(AtomicPtr::new(ptr::null_mut()))
    }

    /// This process's value. When several OS threads make it at the same time, they all get the first one.
    ///
    /// # Complexity
    /// A `getpid(2)`: some 50 ns.
    pub fn get(&self, make: impl FnOnce() -> T) -> &'static T {
        let me = process::id();
        let made = self.0.load(Ordering::Acquire);
        // SAFETY: null, or leaked by `set`, which is the only one to store here.
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
                // SAFETY: it is ours, because the exchange has failed.
                drop(unsafe { Box::from_raw(new) });
                other
            }
        };
        // SAFETY: what is stored here is leaked: that of an OS thread of this process just now.
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
