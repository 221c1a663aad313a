//! The state that a scope and its children share: the children that are left, the failure, and the
//! waker of the scope's owner.
//!
//! A child is counted from before its thread is created until after its future is dropped, by a
//! [`Membership`] that is the last thing in it to go. A scope that is dropped with children left
//! passes them on: it takes a place in the scope around it until they are over.
//!
//! Locks are taken from the inner scope to the outer one, never the other way.

use selvedge_core::internal::{TaskContext, exchange_task_context, quietly};
use selvedge_core::{Exception, JoinHandle};
use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;

/// The scope around the caller: the caller is polled as its body or as one of its children.
fn current() -> Option<Arc<ScopeState>> {
    selvedge_core::internal::task_context()?.downcast().ok()
}

/// What ended a scope before its time.
pub(crate) enum ChildFailure {
    Exception(Exception),
    /// The error of a `try_scope`, of its type.
    Error(Box<dyn Any + Send>),
}

pub(crate) struct ScopeState {
    inner: Mutex<Locked>,
    /// There is a failure, or was: to look at without the lock.
    failed: AtomicBool,
    outer: Option<Arc<ScopeState>>,
}

#[derive(Default)]
struct Locked {
    members: Vec<ChildEntry>,
    free: Vec<u32>,
    /// Members, and places that inner scopes have taken.
    live: usize,
    /// How many there ever were: the next one's number.
    ever: u64,
    /// The children that are there are cancelled, and so is each child that comes.
    cancelled: bool,
    /// The scope has returned.
    over: bool,
    failure: Option<ChildFailure>,
    /// The waker of the scope's owner, for a failure and for the end of the last child.
    owner: Option<Waker>,
    /// The outer scope, in which a place is kept for those left behind.
    left_behind: Option<Arc<ScopeState>>,
}

struct ChildEntry {
    number: u64,
    /// `None` while its thread is being created, and when it is over.
    thread: Option<JoinHandle<()>>,
}

impl ScopeState {
    /// A scope within the scope [around](current) the caller.
    pub(crate) fn new() -> Arc<ScopeState> {
        Arc::new(ScopeState { inner: Mutex::default(), failed: AtomicBool::new(false), outer: current() })
    }

    fn lock(&self) -> MutexGuard<'_, Locked> {
        // No code of others runs under it.
        self.inner.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The membership of a child. The caller creates the child's thread next.
    ///
    /// # Panics
    /// If the scope is over.
    pub(crate) fn enter(self: &Arc<ScopeState>) -> Membership {
        let mut inner = self.lock();
        let over = inner.over;
        let number = inner.ever;
        if !over {
            inner.live += 1;
            inner.ever += 1;
        }
        let member = ChildEntry { number, thread: None };
        let index = match inner.free.pop() {
            _ if over => 0,
            Some(index) => {
                inner.members[index as usize] = member;
                index
            }
            None => {
                inner.members.push(member);
                u32::try_from(inner.members.len() - 1).expect("fewer threads than there are keys")
            }
        };
        drop(inner);
        assert!(!over, "a thread was spawned in a scope that is over");
        Membership { state: Arc::clone(self), child: (index, number) }
    }

    /// The thread of a child that has entered. It may be over already.
    pub(crate) fn started(&self, (index, number): (u32, u64), thread: JoinHandle<()>) {
        let mut inner = self.lock();
        let cancelled = inner.cancelled;
        let member = &mut inner.members[index as usize];
        if member.number == number && !thread.is_finished() {
            if cancelled {
                thread.cancel();
            }
            member.thread = Some(thread);
        } else {
            drop(inner);
            drop(thread);
        }
    }

    /// Cancels one child, unless it is over.
    pub(crate) fn cancel(&self, (index, number): (u32, u64)) {
        let inner = self.lock();
        let member = &inner.members[index as usize];
        if member.number == number
            && let Some(thread) = &member.thread
        {
            thread.cancel();
        }
    }

    /// Cancels all children that there are.
    pub(crate) fn cancel_all(&self) {
        self.lock().cancel_members();
    }

    /// The first failure cancels all children and is kept for the owner; later ones are dropped.
    pub(crate) fn fail(&self, failure: ChildFailure) {
        let mut inner = self.lock();
        if inner.failure.is_some() {
            drop(inner);
            drop(failure);
            return;
        }
        inner.failure = Some(failure);
        inner.cancelled = true;
        inner.cancel_members();
        self.failed.store(true, Ordering::Release);
        let owner = inner.owner.take();
        drop(inner);
        wake(owner);
    }

    #[inline]
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Registers `owner`, which is woken at a failure. True if there is a failure already.
    pub(crate) fn watch(self: &Arc<ScopeState>, owner: &Waker) -> bool {
        // Children, and whatever can have one enter, hold the scope: its handle may be in the body,
        // or be with another thread. While only the owner does there is nothing to be told.
        if Arc::strong_count(self) == 1 {
            // What the others have done before they let go of it is seen.
            fence(Ordering::Acquire);
            return self.has_failed();
        }
        // Cloned before the lock and dropped after it, because it may be foreign, and the last that
        // holds a task with any destructor.
        let owner = owner.clone();
        let mut inner = self.lock();
        if inner.failure.is_some() {
            return true;
        }
        let replaced = inner.owner.replace(owner);
        drop(inner);
        drop(replaced);
        false
    }

    /// True if all children are over; from then on no child can enter. Otherwise `owner` is woken
    /// when they are over.
    pub(crate) fn close(&self, owner: &Waker) -> bool {
        // As in `watch`.
        let owner = owner.clone();
        let mut inner = self.lock();
        let over = inner.live == 0;
        inner.over = over;
        let replaced = if over { inner.owner.take().or(Some(owner)) } else { inner.owner.replace(owner) };
        drop(inner);
        drop(replaced);
        over
    }

    pub(crate) fn describe(&self, mut f: std::fmt::DebugStruct<'_, '_>) -> std::fmt::Result {
        let inner = self.lock();
        let (live, failed, over) = (inner.live, inner.failure.is_some(), inner.over);
        // The writer is code of the caller's.
        drop(inner);
        f.field("live", &live).field("failed", &failed).field("over", &over).finish()
    }

    pub(crate) fn take_failure(&self) -> Option<ChildFailure> {
        self.lock().failure.take()
    }

    /// The scope is given up: cancels its children, and leaves it to the scope around it to wait
    /// for them.
    pub(crate) fn abandon(&self) {
        let mut inner = self.lock();
        if inner.over {
            return;
        }
        inner.cancelled = true;
        inner.cancel_members();
        if inner.live > 0 {
            inner.left_behind = self.outer.clone().filter(|outer| outer.adopt());
        } else {
            inner.over = true;
        }
        let owner = inner.owner.take();
        drop(inner);
        // It may panic, and this is a destructor.
        quietly(|| drop(owner));
    }

    /// Takes a place that is no child's; false if this scope is over.
    fn adopt(&self) -> bool {
        let mut inner = self.lock();
        inner.live += usize::from(!inner.over);
        !inner.over
    }

    /// Gives a place up. If the scope then has no reason any more to keep one in the scope around
    /// it, that is to be given up next.
    #[must_use = "the outer scope waits for it"]
    fn leave(&self, child: Option<(u32, u64)>) -> Option<Arc<ScopeState>> {
        let mut inner = self.lock();
        let mut thread = None;
        if let Some((index, _)) = child {
            let member = &mut inner.members[index as usize];
            thread = member.thread.take();
            member.number = u64::MAX;
            inner.free.push(index);
        }
        inner.live -= 1;
        let (owner, left_behind) = match inner.live {
            0 => (inner.owner.take(), inner.left_behind.take()),
            _ => (None, None),
        };
        drop(inner);
        drop(thread);
        wake(owner);
        left_behind
    }
}

impl Drop for ScopeState {
    fn drop(&mut self) {
        // A long line of scopes goes one by one, not by recursion.
        let mut outer = self.outer.take();
        while let Some(mut scope) = outer.and_then(Arc::into_inner) {
            outer = scope.outer.take();
        }
    }
}

/// Tells the owner. A foreign one may panic, which ends there: this may be a destructor, and others
/// are still to be told.
fn wake(owner: Option<Waker>) {
    if let Some(owner) = owner {
        quietly(|| owner.wake());
    }
}

impl Locked {
    fn cancel_members(&self) {
        for thread in self.members.iter().filter_map(|member| member.thread.as_ref()) {
            thread.cancel();
        }
    }
}

/// A child that the scope waits for.
pub(crate) struct Membership {
    state: Arc<ScopeState>,
    /// Where it is listed.
    pub(crate) child: (u32, u64),
}

impl Membership {
    pub(crate) fn state(&self) -> &Arc<ScopeState> {
        &self.state
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let mut left = self.state.leave(Some(self.child));
        // One after another, because scopes may be nested deeply.
        while let Some(outer) = left {
            left = outer.leave(None);
        }
    }
}

/// Polls a child or the body: scopes that are created in it are within this one.
#[inline]
pub(crate) fn within<T>(state: &Arc<ScopeState>, poll: impl FnOnce() -> T) -> T {
    struct Restore(Option<TaskContext>);
    impl Drop for Restore {
        fn drop(&mut self) {
            exchange_task_context(self.0.take());
        }
    }
    let scope: TaskContext = Arc::<ScopeState>::clone(state);
    let _restore = Restore(exchange_task_context(Some(scope)));
    poll()
}
