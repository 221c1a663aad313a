//! [`Lane`]: the two blocking pools that this crate has for its own calls.
//!
//! The operations on files, the look-up of host names and the start of child processes run on them.
//! The calls that a program makes by [`blocking`](super::blocking) have another pool.

use super::queue::{Job, lock};
use super::{Blocking, Limits, Pool};
use selvedge_core::internal::PerProcess;

/// The pools of the calls that this crate makes itself. Each has OS threads of its own. So no such
/// call waits for the end of a call that the program makes in [`blocking`](super::blocking), and no
/// call on files waits for a slow name server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lane {
    /// The calls on names of files, and the disk operations where there is no ring.
    Files,
    /// Host names, and the start of child processes.
    Lookups,
}

impl Lane {
    pub(super) fn pool(self) -> &'static Pool {
        static FILES: PerProcess<Pool> = PerProcess::new();
        static LOOKUPS: PerProcess<Pool> = PerProcess::new();
        let pool = match self {
            Lane::Files => &FILES,
            Lane::Lookups => &LOOKUPS,
        };
        pool.get(|| Pool::new(Limits::default()))
    }

    /// Runs `f` on an OS thread of this lane. Otherwise like
    /// [`blocking`](super::blocking).
    pub(crate) fn run<T, F>(self, f: F) -> Blocking<T, F>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.pool().run(f)
    }

    /// Runs `f` on an OS thread of this lane. No caller waits for it. `f` must not panic.
    ///
    /// # Errors
    /// If no OS thread could be started.
    pub(crate) fn aside(self, f: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        let job = Job::without_caller(f);
        let pool = &self.pool().shared;
        pool.submit(lock(&pool.state), job)
    }
}
