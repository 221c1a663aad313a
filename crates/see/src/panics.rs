//! Panic messages that name the thread ([`name_panics`]), and the words for it ([`this_thread`]).
//!
//! The message of the standard library names the OS thread alone, which is a worker here. The
//! runners of the façade and `apps/httpd` call [`name_panics`] when they start.

use crate::named;
use selvedge_core::observe::ThreadId;
use std::io::{self, Write};
use std::panic;
use std::sync::Once;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// The time that a panic waits until its line is written.
const LINE_MAX: Duration = Duration::from_secs(1);

/// From now on the message of a panic within a thread is followed by a line that names the thread:
/// its number, its [name](crate::named()) if it has one, and the function or the type that its
/// future comes from.
///
/// The runners of the façade call this. It wraps the panic hook that is there at the first call,
/// and later calls do nothing. A hook that the program has set before is called as ever, and the
/// line comes after it. A hook that the program sets later has no line after it; such a hook may
/// write [`this_thread`] itself. A panic outside of a thread has no line.
///
/// # Examples
/// ```
/// selvedge::see::name_panics();
/// selvedge::round_robin(async {
///     let baker = selvedge::see::named("baker", async { panic!("no bread") });
///     // Standard error has: thread 134217729 "baker" (rust_out::main) panicked
///     assert!(selvedge::spawn_local(baker).await.is_err());
/// })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub fn name_panics() {
    static ONCE: Once = Once::new();
    // An OS thread that panics may not set a hook.
    if thread::panicking() {
        return;
    }
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            before(panic);
            if let Some(thread) = this_thread() {
                write_line(format!("{thread} panicked"));
            }
        }));
    });
}

/// The running thread in words, as in `thread 134217729 "baker" (bakery::bake)`. `None` outside of
/// a thread.
pub fn this_thread() -> Option<String> {
    let thread = ThreadId::current()?;
    let info = thread.info()?;
    Some(match named::this_name() {
        Some(name) => format!("thread {thread} \"{name}\" ({})", info.name()),
        None => format!("thread {thread} ({})", info.name()),
    })
}

/// Writes a line to standard error, or to where the test harness collects it.
///
/// Only `eprintln!` writes to the harness, and it panics where standard error is closed. Within a
/// panic hook that would be the end of the process, so another OS thread calls it.
fn write_line(line: String) {
    let (written, wait) = mpsc::channel::<()>();
    let writer = thread::Builder::new().name("panic-line".into());
    let text = line.clone();
    let started = writer.spawn(move || {
        eprintln!("{text}");
        drop(written);
    });
    match started {
        // The sender is dropped in any case. But a panic of that OS thread waits for the lock of
        // the hook, if another OS thread is about to set a hook.
        Ok(_) => _ = wait.recv_timeout(LINE_MAX),
        Err(_) => _ = writeln!(io::stderr(), "{line}"),
    }
}
