//! Names for threads: [`named`].
//!
//! The name lies in the future, which tells it to the observer at each poll. If the program is not
//! observed, nothing hears it, except for the report of a deadlock.

use pin_project_lite::pin_project;
use selvedge_core::observe;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Gives the thread that runs `future` a name, under which it appears in dumps and timelines.
///
/// The name is told with each step that runs the future, and only if the program is observed. The
/// report of a deadlock has it in any case. It adds 16 bytes to the thread, and the name itself on
/// the heap; a thread without a name pays nothing.
///
/// # Examples
/// ```
/// use selvedge::{round_robin, spawn_local, yield_now};
///
/// selvedge::see::on();
/// round_robin(async {
///     let reader = spawn_local(selvedge::see::named("reader", async {
///         yield_now().await;
///         let dump = selvedge::see::dump();
///         assert!(dump.threads.iter().any(|thread| thread.called.as_deref() == Some("reader")));
///     }));
///     reader.await.unwrap();
/// })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub fn named<F: Future>(name: impl Into<Arc<str>>, future: F) -> Named<F> {
    Named { name: name.into(), future }
}

pin_project! {
    /// The future of [`named`].
    #[must_use = "nothing happens until it is awaited"]
    pub struct Named<F> {
        name: Arc<str>,
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for Named<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        observe::named(this.name);
        this.future.poll(cx)
    }
}

impl<F> fmt::Debug for Named<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Named").field("name", &self.name).finish_non_exhaustive()
    }
}
