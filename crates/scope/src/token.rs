//! [`CancelToken`]: a cancellation that threads look at themselves, at places that they choose.
//!
//! Programs make tokens, and pass them to the threads that are to stop. Scopes do not use them.

use selvedge_core::{Queue, Role, Shared, WaitQueue, Waiting};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

/// A flag that any holder of the token sets once, and that any number of threads on any OS thread
/// can wait for.
///
/// Tokens form a tree: cancelling one cancels those made by [`child`](CancelToken::child) from it,
/// and theirs; never its parent. A clone is the same token.
///
/// Where dropping a future is not what is wanted, because a server is to finish its requests, say,
/// a token is looked at in the right places. Raced with anything else it is a cancellation like
/// that of a thread.
///
/// # Examples
/// ```
/// use selvedge::{round_robin, spawn, yield_now};
/// use selvedge::scope::CancelToken;
///
/// let turns = round_robin(async {
///     let stop = CancelToken::new();
///     let token = stop.child();
///     let worker = spawn(async move {
///         let mut turns = 0;
///         while !token.is_cancelled() {
///             turns += 1;
///             yield_now().await;
///         }
///         turns
///     });
///     for _ in 0..10 {
///         yield_now().await;
///     }
///     stop.cancel();
///     worker.await.unwrap()
/// })?;
/// assert!(turns >= 10);
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[derive(Clone)]
#[doc(alias = "CancellationToken")]
pub struct CancelToken {
    node: Arc<TokenNode>,
}

struct TokenNode {
    /// To look at without the lock.
    cancelled: AtomicBool,
    queue: WaitQueue<Family, (), Shared>,
    /// Kept, so that a cancellation from further up reaches this token even if no other
    /// handle to the parent is left.
    parent: Option<Arc<TokenNode>>,
}

#[derive(Default)]
struct Family {
    cancelled: bool,
    children: Vec<Weak<TokenNode>>,
    /// When this number of tokens is listed, the dropped tokens are taken out.
    prune_at: usize,
}

impl CancelToken {
    /// A token that is not cancelled.
    pub fn new() -> CancelToken {
        CancelToken::with(None)
    }

    fn with(parent: Option<Arc<TokenNode>>) -> CancelToken {
        let queue = WaitQueue::new(Family::default());
        CancelToken { node: Arc::new(TokenNode { cancelled: AtomicBool::new(false), queue, parent }) }
    }

    /// A token that is cancelled when this one is, or by itself.
    pub fn child(&self) -> CancelToken {
        let child = CancelToken::with(Some(Arc::clone(&self.node)));
        let cancelled = self.node.queue.with(|family, _| {
            if !family.cancelled {
                if family.children.len() >= family.prune_at {
                    family.children.retain(|child| child.strong_count() > 0);
                    family.prune_at = (2 * family.children.len()).max(8);
                }
                family.children.push(Arc::downgrade(&child.node));
            }
            family.cancelled
        });
        if cancelled {
            child.cancel();
        }
        child
    }

    /// Sets the flag, here and in all tokens below, and wakes the threads that wait for it.
    ///
    /// # Complexity
    /// Linear in the number of tokens below and of waiting threads.
    pub fn cancel(&self) {
        let mut left = vec![Arc::clone(&self.node)];
        while let Some(node) = left.pop() {
            let children = node.queue.with(|family, queue| {
                node.cancelled.store(true, Ordering::Release);
                family.cancelled = true;
                while !queue.is_empty() {
                    queue.grant();
                }
                std::mem::take(&mut family.children)
            });
            left.extend(children.iter().filter_map(Weak::upgrade));
        }
    }

    /// Whether it was cancelled.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.node.cancelled.load(Ordering::Acquire)
    }

    /// Waits until it is cancelled. It can be dropped at any time.
    #[track_caller]
    pub fn cancelled(&self) -> Cancelled<'_> {
        Cancelled { waiting: self.node.queue.wait(()) }
    }
}

impl Default for CancelToken {
    fn default() -> CancelToken {
        CancelToken::new()
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelToken").field("is_cancelled", &self.is_cancelled()).finish_non_exhaustive()
    }
}

impl Drop for TokenNode {
    fn drop(&mut self) {
        // A long line of tokens goes one by one, not by recursion.
        let mut parent = self.parent.take();
        while let Some(mut node) = parent.and_then(Arc::into_inner) {
            parent = node.parent.take();
        }
    }
}

/// Waits for the flag.
enum AwaitCancel {}

impl Role<Family, ()> for AwaitCancel {
    type Output = ();

    fn attempt(family: &mut Family, _: &mut Queue<'_, ()>, (): &mut ()) -> Option<()> {
        family.cancelled.then_some(())
    }

    fn granted((): &mut ()) {}

    fn abandoned(_: &mut Family, _: &mut Queue<'_, ()>, (): &mut ()) {}
}

/// The future of [`CancelToken::cancelled`].
#[must_use = "nothing happens until it is awaited"]
pub struct Cancelled<'a> {
    waiting: Waiting<'a, Family, (), AwaitCancel, Shared>,
}

impl Future for Cancelled<'_> {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // SAFETY: the only field, pinned with us.
        unsafe { self.map_unchecked_mut(|this| &mut this.waiting) }.poll(cx)
    }
}

impl fmt::Debug for Cancelled<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancelled").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(token: &CancelToken) -> usize {
        token.node.queue.with(|family, _| family.children.len())
    }

    #[test]
    fn many_children_of_a_token_leave_nothing() {
        let root = CancelToken::new();
        let kept = [root.child(), root.child()];
        for _ in 0..if cfg!(miri) { 30 } else { 100_000 } {
            drop(root.child());
            // The dropped tokens are taken out when eight are listed.
            assert!(listed(&root) <= 8);
        }
        root.cancel();
        assert!(kept.iter().all(CancelToken::is_cancelled));
        assert_eq!(listed(&root), 0);
        drop(kept);
        assert_eq!((Arc::strong_count(&root.node), Arc::weak_count(&root.node)), (1, 0));
    }
}
