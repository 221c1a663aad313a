//! [`Within`], a future that is polled within the context of a tokio runtime, and the runtime of
//! the process, which is started at its first use.
//!
//! Programs call [`within`] and [`within_runtime`]. tokio looks for its runtime in a value of the
//! OS thread, so the context is entered at each poll anew, and left at its end: between two polls
//! the thread may have moved to another OS thread, and other threads of ours run on this one.

use pin_project_lite::pin_project;
use selvedge_core::internal::PerProcess;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::runtime::{Builder, Handle, Runtime};

/// Lets a future use what needs a tokio runtime, while a scheduler of ours, or any executor, polls
/// it: tokio's sockets, timers, files and tasks, and the libraries that are written on them.
///
/// If `within` is called in the context of a runtime, it takes that one. Otherwise it takes the
/// runtime of the process, which the first such call starts: one OS thread for tokio's tasks,
/// sockets and timers, and further ones for tokio's blocking calls. It is never stopped.
/// [`within_runtime`] takes another one.
///
/// Only the future itself is in the context. A thread that it spawns with our `spawn` is not, and
/// needs a `within` of its own. A task that it spawns with `tokio::spawn` runs on the runtime.
///
/// Most of tokio's functions look for the runtime when they are called and not when their future is
/// first polled. So they are called in the future: `within(async { tokio::time::sleep(d).await })`.
/// In `within(tokio::time::sleep(d))` the call comes too early, and tokio panics.
///
/// # Panics
/// If the system refuses an OS thread or a descriptor for the runtime of the process. The future
/// panics if it is polled again after its end.
///
/// # Differences
/// 1. A socket of tokio's that is always ready does not let other threads run first, because only
///    tasks of tokio's have its budget. A loop over such a socket calls
///    [`yield_now`](selvedge_core::yield_now) now and then.
/// 2. As long as a runtime has OS threads, a deadlock of our threads is no error of the program,
///    because a task could wake one of them.
/// 3. In the simulated world tokio's clock and sockets are those of the real world.
///
/// # Cost
/// Two writes to a value of the OS thread, and two atomic operations, for each poll and for the
/// drop. A wake-up comes from another OS thread.
///
/// # Examples
/// ```
/// use selvedge_compat::tokio::within;
/// use std::time::Duration;
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
/// use tokio::net::{TcpListener, TcpStream};
///
/// selvedge::run(async {
///     let listener = within(async { TcpListener::bind("127.0.0.1:0").await }).await?;
///     let address = listener.local_addr()?;
///     // Two threads of ours, on tokio's sockets.
///     let echo = selvedge::spawn(within(async move {
///         let (mut stream, _) = listener.accept().await?;
///         let mut line = [0; 5];
///         stream.read_exact(&mut line).await?;
///         tokio::time::sleep(Duration::from_millis(1)).await;
///         stream.write_all(&line).await
///     }));
///     let answer = within(async {
///         let mut stream = TcpStream::connect(address).await?;
///         stream.write_all(b"hello").await?;
///         let mut answer = String::new();
///         stream.read_to_string(&mut answer).await?;
///         Ok::<_, std::io::Error>(answer)
///     });
///     assert_eq!(answer.await?, "hello");
///     echo.await.unwrap()
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "Compat")]
pub fn within<F: Future>(future: F) -> Within<F> {
    let runtime = Handle::try_current().unwrap_or_else(|_| of_the_process().clone());
    Within { runtime, future: Some(future) }
}

/// As [`within`], with a runtime of the program's own.
///
/// The runtime must run: its own OS threads must drive it (`Builder::new_multi_thread`), or an OS
/// thread that is in its `block_on`. When nothing drives it, its sockets and timers wake no thread.
///
/// When the runtime stops, the future goes on, but what it waits for ends: a socket fails with an
/// error, the handle of a task returns tokio's `JoinError`, and a timer panics. So the program
/// stops its runtime after the threads that use it. The runtime itself must be dropped outside
/// of the future, because it waits for its blocking calls. Or `shutdown_background` stops it.
///
/// # Examples
/// ```
/// use selvedge_compat::tokio::within_runtime;
/// use std::time::Duration;
/// use tokio::runtime::Builder;
///
/// let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
/// let handle = runtime.handle().clone();
/// let sum = selvedge::run(async move {
///     let sum = within_runtime(&handle, async {
///         tokio::time::sleep(Duration::from_millis(1)).await;
///         tokio::spawn(async { 1 + 2 }).await.unwrap()
///     });
///     selvedge::spawn(sum).await.unwrap()
/// })?;
/// assert_eq!(sum, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn within_runtime<F: Future>(runtime: &Handle, future: F) -> Within<F> {
    Within { runtime: runtime.clone(), future: Some(future) }
}

/// The runtime for a future that is made in the context of none. The child of a `fork(2)` starts a
/// runtime of its own.
fn of_the_process() -> &'static Handle {
    static RUNTIME: PerProcess<Runtime> = PerProcess::new();
    let start = || {
        // One worker, because our schedulers run what is to be spread over the cores.
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("tokio").enable_all().build();
        runtime.unwrap_or_else(|error| panic!("tokio's runtime cannot be started: {error}"))
    };
    RUNTIME.get(start).handle()
}

pin_project! {
    /// A future within the context of a tokio runtime: what [`within`] and [`within_runtime`]
    /// return.
    ///
    /// It is `Send` if the future is. What the future owns is dropped within the context too: at
    /// its end, or when the `Within` is dropped before.
    #[must_use = "a future does nothing unless it is awaited"]
    pub struct Within<F> {
        runtime: Handle,
        // Until its end.
        #[pin]
        future: Option<F>,
    }

    impl<F> PinnedDrop for Within<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            let _entered = this.runtime.enter();
            this.future.set(None);
        }
    }
}

impl<F: Future> Future for Within<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        let _entered = this.runtime.enter();
        let future = this.future.as_mut().as_pin_mut();
        let output = ready!(future.expect("a `Within` was polled again after its end").poll(cx));
        this.future.set(None);
        Poll::Ready(output)
    }
}

impl<F> fmt::Debug for Within<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Within").field("ended", &self.future.is_none()).finish_non_exhaustive()
    }
}
