//! Every scheduler as a [`Scheduler`].

mod scheduler;

use crate::naps::Naps;
use scheduler::Main;
pub(crate) use scheduler::{Scheduler, run};
use selvedge_core::RunError;
use std::sync::Mutex;

/// Makes a test of each function for each scheduler.
#[allow(unused_macros, reason = "some tests name their schedulers one by one")]
macro_rules! under_every_scheduler {
    ($($test:ident)*) => {
        under_every_scheduler! { @ round_robin $crate::schedulers::ROUND_ROBIN; $($test)* }
        under_every_scheduler! { @ per_core $crate::schedulers::PER_CORE; $($test)* }
        under_every_scheduler! { @ priority $crate::schedulers::PRIORITY; $($test)* }
        under_every_scheduler! { @ work_stealing_1 $crate::schedulers::stealing::<1>(); $($test)* }
        under_every_scheduler! { @ work_stealing_2 $crate::schedulers::stealing::<2>(); $($test)* }
        under_every_scheduler! { @ work_stealing_4 $crate::schedulers::stealing::<4>(); $($test)* }
    };
    (@ $name:ident $scheduler:expr; $($test:ident)*) => {
        mod $name {
            $(#[test] fn $test() { super::$test($scheduler); })*
        }
    };
}

pub(crate) const ROUND_ROBIN: Scheduler =
    Scheduler(|main| selvedge_sched::round_robin_over(&mut Naps::new(), main));
pub(crate) const PER_CORE: Scheduler = Scheduler(on_the_first_of_two);
pub(crate) const PRIORITY: Scheduler = Scheduler(|main| selvedge_sched::priority(&mut Naps::new(), main));

pub(crate) const fn stealing<const WORKERS: usize>() -> Scheduler {
    Scheduler(|main| {
        let ended = selvedge_sched::work_stealing(WORKERS, |_| Ok(Naps::new()), main);
        ended.map_err(|failure| failure.error)
    })
}

/// `per_core` with two workers. The main thread runs on the first; the main thread of the other
/// ends at once.
fn on_the_first_of_two(main: Main) -> Result<(), RunError> {
    let main = Mutex::new(Some(main));
    let ended = selvedge_sched::per_core(
        2,
        |_| Ok(Naps::new()),
        |worker| {
            let main = if worker == 0 { main.lock().unwrap().take() } else { None };
            async {
                if let Some(main) = main {
                    main.await;
                }
            }
        },
    );
    ended.map(drop).map_err(|failure| failure.error)
}
