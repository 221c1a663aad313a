//! Names for threads: [`named`].
//!
//! The name lies in the future, which tells it to the observer at each poll. If the program is not
//! observed, two things hear it: the report of a deadlock, and the line that `panics.rs` writes.
//! For that line the name is in a thread-local during the poll.

use pin_project_lite::pin_project;
use selvedge_core::observe;
use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Gives the thread that runs `future` a name, under which it appears in dumps and timelines.
///
/// The name is told with each step that runs the future, and only if the program is observed. The
/// report of a deadlock has it in any case, and so has the message of a
/// [panic](crate::name_panics). It adds 16 bytes to the thread, and the name itself on the heap; a
/// thread without a name pays nothing.
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
    Named { name: Some(name.into()), future }
}

pin_project! {
    /// The future of [`named`].
    #[must_use = "nothing happens until it is awaited"]
    pub struct Named<F> {
        // While the future is polled, the name around it.
        name: Option<Arc<str>>,
        #[pin]
        future: F,
    }
}

std::thread_local! {
    /// The name of the innermost future with a name that is polled on this OS thread.
    static NAME: Cell<Option<Arc<str>>> = const { Cell::new(None) };
}

/// The name of the innermost future with a name that polls the caller.
pub(crate) fn this_name() -> Option<Arc<str>> {
    let exchange = |new| NAME.try_with(|name| name.replace(new)).ok().flatten();
    let name = exchange(None);
    exchange(name.clone());
    name
}

/// Keeps a name in [`NAME`] until this is dropped, also by a panic.
struct InPlace<'a>(&'a mut Option<Arc<str>>);

impl<'a> InPlace<'a> {
    fn enter(name: &'a mut Option<Arc<str>>) -> InPlace<'a> {
        let mut entered = InPlace(name);
        entered.swap();
        entered
    }

    fn swap(&mut self) {
        let _ = NAME.try_with(|name| *self.0 = name.replace(self.0.take()));
    }
}

impl Drop for InPlace<'_> {
    fn drop(&mut self) {
        self.swap();
    }
}

impl<F: Future> Future for Named<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        if let Some(name) = this.name {
            observe::named(name);
        }
        let _in_place = InPlace::enter(this.name);
        this.future.poll(cx)
    }
}

impl<F> fmt::Debug for Named<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Named").field("name", &self.name).finish_non_exhaustive()
    }
}
