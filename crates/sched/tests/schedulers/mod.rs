//! Every scheduler behind the trait [`Scheduler`].

mod scheduler;

use crate::naps::Naps;
pub(crate) use scheduler::Scheduler;
use selvedge_core::RunError;
use selvedge_sched::{per_core, priority, round_robin_with, work_stealing};
use std::future::Future;
use std::sync::Mutex;

/// Makes a test of each function for each scheduler. Under Miri, which is slow, only for two of
/// them.
#[allow(unused_macros, reason = "some tests name their schedulers one by one")]
macro_rules! under_every_scheduler {
    ($($test:ident)*) => {
        under_every_scheduler! { @ round_robin $crate::schedulers::RoundRobin; $($test)* }
        #[cfg(not(miri))]
        under_every_scheduler! { @ per_core $crate::schedulers::PerCore; $($test)* }
        #[cfg(not(miri))]
        under_every_scheduler! { @ priority $crate::schedulers::Priorities; $($test)* }
        #[cfg(not(miri))]
        under_every_scheduler! { @ work_stealing_1 $crate::schedulers::Stealing<1>; $($test)* }
        under_every_scheduler! { @ work_stealing_2 $crate::schedulers::Stealing<2>; $($test)* }
        #[cfg(not(miri))]
        under_every_scheduler! { @ work_stealing_4 $crate::schedulers::Stealing<4>; $($test)* }
    };
    (@ $name:ident $scheduler:ty; $($test:ident)*) => {
        mod $name {
            $(#[test] fn $test() { super::$test::<$scheduler>(); })*
        }
    };
}

pub(crate) struct RoundRobin;

impl Scheduler for RoundRobin {
    fn run<F: Future + Send + 'static>(main: F) -> Result<F::Output, RunError> {
        round_robin_with(&mut Naps::new(), main)
    }
}

/// `per_core` with two workers. The main thread runs on the first; the main thread of the other
/// ends at once.
pub(crate) struct PerCore;

impl Scheduler for PerCore {
    fn run<F>(main: F) -> Result<F::Output, RunError>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let main = Mutex::new(Some(main));
        let ended = per_core(
            2,
            |_| Ok(Naps::new()),
            |worker| {
                let main = if worker == 0 { main.lock().unwrap().take() } else { None };
                async {
                    match main {
                        Some(main) => Some(main.await),
                        None => None,
                    }
                }
            },
        );
        let outputs = ended.map_err(|failure| failure.error)?;
        Ok(outputs.into_iter().flatten().next().expect("the first worker's"))
    }
}

pub(crate) struct Priorities;

impl Scheduler for Priorities {
    fn run<F: Future + Send + 'static>(main: F) -> Result<F::Output, RunError> {
        priority(&mut Naps::new(), main)
    }
}

pub(crate) struct Stealing<const WORKERS: usize>;

impl<const WORKERS: usize> Scheduler for Stealing<WORKERS> {
    fn run<F>(main: F) -> Result<F::Output, RunError>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        work_stealing(WORKERS, |_| Ok(Naps::new()), main).map_err(|failure| failure.error)
    }
}
