//! [`MailLock`]: a value that one OS thread at a time holds, with mail that its holder carries out.
//!
//! `shared_driver.rs` has one, in which the value is the driver of MPI and the mail is the queue of
//! orders. No call of this file waits.
//!
//! # No mail is left
//! A thread puts something into its queue, marks the lock with `has_mail`, and then tries to take
//! the lock. If it gets the lock, it empties the queue itself. If another thread holds the lock,
//! the thread goes away. A holder looks at the mark after it has released the lock, and takes the
//! lock again when it finds the mark.
//!
//! Between the store and the load there is a sequentially consistent fence on both sides: the
//! thread stores the mark and then loads the lock, the holder stores the lock and then loads the
//! mark. So at least one of the two sees what the other has stored. Either the thread finds the
//! lock free, or the holder finds the mark. The mark is taken away under the lock, before the queue
//! is emptied, so what comes after that marks the lock again.

use super::primitives::{AtomicBool, Mutex, Ordering, TryLockError, fence};

/// A value with a lock, and a mark that there is mail.
#[derive(Debug)]
pub(crate) struct MailLock<T> {
    value: Mutex<T>,
    has_mail: AtomicBool,
}

impl<T> MailLock<T> {
    pub(crate) fn new(value: T) -> MailLock<T> {
        MailLock { value: Mutex::new(value), has_mail: AtomicBool::new(false) }
    }

    /// There is mail: the caller has put it where `serve` finds it. When this returns, `serve` has
    /// been called for it, or a holder will call its own.
    pub(crate) fn post(&self, serve: impl FnMut(&mut T)) {
        self.mark();
        fence(Ordering::SeqCst);
        self.serve(serve);
    }

    /// There is mail, and the caller sees to it that a holder comes.
    pub(crate) fn mark(&self) {
        self.has_mail.store(true, Ordering::Release);
    }

    /// Whether there is mail that no holder has begun to serve.
    pub(crate) fn is_marked(&self) -> bool {
        self.has_mail.load(Ordering::Relaxed)
    }

    /// Works with the value, after the mail that is there, and serves what has come meanwhile.
    /// `None` if another thread holds the value.
    pub(crate) fn hold<R>(&self, work: impl FnOnce(&mut T) -> R, mut serve: impl FnMut(&mut T)) -> Option<R> {
        let result = self.try_with(|value| {
            self.serve_marked(value, &mut serve);
            work(value)
        })?;
        self.serve(serve);
        Some(result)
    }

    fn serve(&self, mut serve: impl FnMut(&mut T)) {
        let has_mail = || self.has_mail.load(Ordering::Relaxed);
        while has_mail() && self.try_with(|value| self.serve_marked(value, &mut serve)).is_some() {}
    }

    /// Takes the mark away, if there is one, and then serves.
    fn serve_marked(&self, value: &mut T, serve: &mut impl FnMut(&mut T)) {
        // The load alone, because there is mostly none.
        if self.has_mail.load(Ordering::Relaxed) && self.has_mail.swap(false, Ordering::AcqRel) {
            serve(value);
        }
    }

    /// The fence comes after the lock is released.
    fn try_with<R>(&self, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        let result = match self.value.try_lock() {
            Ok(mut value) => work(&mut value),
            Err(TryLockError::WouldBlock) => return None,
            Err(TryLockError::Poisoned(_)) => unreachable!("a panic of a holder ends the process"),
        };
        fence(Ordering::SeqCst);
        Some(result)
    }
}
