//! The threads that wait: how a CPU takes them into its keeping, and resumes them.
//!
//! `conclude.rs` and `run.rs` call it at the end of a step that waits. Wakers, the inbox and
//! granters of wait queues call [`CpuInner::resume`] and [`CpuInner::resume_own`].

use super::inner::CpuInner;
use crate::arena::{self, Key};
use crate::header::{FINISHED, FREE, MOBILE, OWNED, STATE, WAITING, WAITING_HERE};
use crate::state::{self, Woken};
use crate::thread::Thread;
use crate::wait_site::WaitSite;
use crate::{ThreadInfo, directory};

impl CpuInner {
    /// Makes the thread at `key` run: wakes it if it waits, and marks the step if it is running.
    #[inline(always)]
    pub(crate) fn resume(&self, key: Key) {
        if let Some(thread) = self.release(key) {
            self.push_woken(thread);
        } else if self.runs(key) {
            self.step.notify();
        }
    }

    /// Makes the thread at `key` ready if it waits and may run here; false if not. A stale key does
    /// no harm. This runs no code of the program. It takes no lock but that of a full outlet, under
    /// which nothing else is locked.
    #[inline(always)]
    pub(crate) fn resume_own(&self, key: Key) -> bool {
        let head = self.base.header(key).head();
        if self.take_local(key, head) {
            // SAFETY: taken above.
            self.push_woken(unsafe { Thread::from_key(key) });
            return true;
        }
        head & MOBILE != 0 && self.resume_mobile(key, head)
    }

    #[inline(never)]
    fn resume_mobile(&self, key: Key, head: u32) -> bool {
        if self.runs(key)
            || !self.is_home_to(key)
            || state::wake(&arena::header(key).head, head) != Woken::Ours
        {
            return false;
        }
        self.step.in_state(WAITING).add(-1);
        // SAFETY: the wake has made it ours, and it is mobile.
        unsafe { self.push_mobile(key) };
        true
    }

    /// Takes the thread at `key` out of the keeping of the CPU or the group, if it waits. A stale
    /// key does no harm.
    #[inline(always)]
    pub(super) fn release(&self, key: Key) -> Option<Thread> {
        let head = self.base.header(key).head();
        if head & MOBILE != 0 {
            return self.release_mobile(key, head);
        }
        self.release_local(key, head)
    }

    /// As [`release`](CpuInner::release), of a thread that is not mobile.
    #[inline(always)]
    fn release_local(&self, key: Key, head: u32) -> Option<Thread> {
        // SAFETY: taken above.
        self.take_local(key, head).then(|| unsafe { Thread::from_key(key) })
    }

    /// As [`release_local`](CpuInner::release_local). If the result is true, the caller owns the
    /// thread.
    #[inline(always)]
    fn take_local(&self, key: Key, head: u32) -> bool {
        // A thread in a waiting state belongs to the owner of its chunk, which is this CPU. If it
        // is not mobile, only this OS thread writes its state.
        let state = head & (STATE | MOBILE);
        let takes = matches!(state, WAITING_HERE | WAITING) && self.owns(key);
        if takes {
            self.step.in_state(state).add(-1);
            self.base.header(key).set_head(head & !STATE | OWNED);
        }
        takes
    }

    #[inline(always)]
    fn release_mobile(&self, key: Key, head: u32) -> Option<Thread> {
        if self.runs(key) {
            return None;
        }
        if self.group == 0 || arena::group(key) != self.group {
            directory::post_mobile(arena::owner(key), self.step.id, key.get());
            return None;
        }
        if state::wake(&arena::header(key).head, head) != Woken::Ours {
            return None;
        }
        self.step.in_state(WAITING).add(-1);
        // SAFETY: the wake has made it ours.
        Some(unsafe { Thread::from_key(key) })
    }

    /// Takes a pending thread into the CPU's keeping.
    #[inline(always)]
    pub(super) fn keep(&self, key: Key, head: u32, state: u32, site: WaitSite) {
        // Only the owner of its chunk could ever release it. That CPU may be at work on another OS
        // thread.
        if !self.owns(key) {
            // SAFETY: the caller holds the thread, and gives it up.
            strayed(unsafe { Thread::from_key(key) });
        }
        self.keep_own(key, head, state, site);
    }

    /// As [`keep`](CpuInner::keep), of a thread in a chunk of this CPU.
    #[inline(always)]
    pub(super) fn keep_own(&self, key: Key, head: u32, state: u32, site: WaitSite) {
        self.step.in_state(state).add(1);
        let header = self.base.header(key);
        header.set_link(site.0);
        header.set_head(head & !STATE | state);
    }

    /// Gives up a pending mobile thread until a waker resumes it. False if it was woken already, so
    /// that it must run again.
    #[inline(always)]
    pub(super) fn keep_mobile(&self, key: Key, head: u32, site: WaitSite) -> bool {
        if arena::group(key) != self.group {
            // SAFETY: the caller holds the thread, and gives it up.
            strayed(unsafe { Thread::from_key(key) });
        }
        let header = arena::header(key);
        header.set_link(site.0);
        // It is counted first, because another OS thread may resume it before `park` returns.
        self.step.in_state(WAITING).add(1);
        let parked = state::park(&header.head, head);
        if !parked {
            self.step.in_state(WAITING).add(-1);
            state::take_notification(&header.head);
        }
        parked
    }

    /// Whether the thread at `joiner` waits on this CPU, and only for the end of the thread at
    /// `key`.
    pub(crate) fn joins_here(&self, joiner: Key, key: Key) -> bool {
        let header = arena::header(joiner);
        arena::owner(joiner) == self.step.id
            && header.head() & STATE == WAITING_HERE
            && header.link() == WaitSite::join(key).0
    }

    /// The description of the thread at `key`, which lies in a chunk of this CPU.
    pub(super) fn look_at(&self, key: Key) -> Option<ThreadInfo> {
        let header = arena::header(key);
        let head = header.head();
        if head == FREE || head & STATE == FINISHED {
            return None;
        }
        if head & (MOBILE | STATE) != MOBILE | WAITING {
            return Some(ThreadInfo::of(key, head, header.link()));
        }
        // Another CPU may be about to run the thread, and to queue it through its link. Only the
        // owner of the thread may read the link, so this takes the thread first.
        match self.release_mobile(key, head) {
            Some(thread) => {
                let (key, site) = (thread.into_key(), WaitSite(header.link()));
                let info = ThreadInfo::of(key, head, site.0);
                if !self.keep_mobile(key, head, site) {
                    // SAFETY: `keep_mobile` has failed, so the thread is still ours.
                    self.push_woken(unsafe { Thread::from_key(key) });
                }
                Some(info)
            }
            None => Some(ThreadInfo::of(key, head & !STATE | OWNED, 0)),
        }
    }
}

/// Cancels a thread that may not run here, and panics.
#[cold]
#[inline(never)]
pub(super) fn strayed(thread: Thread) -> ! {
    panic!("{thread:?} was created by another CPU: only that one can step it")
}
