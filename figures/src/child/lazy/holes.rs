//! The programs of the figure `black-hole-wake` for OS threads: how long an OS thread that waits
//! for a value takes to go on after the update, beside OS threads that wait for other values.
//! `lazy.rs` calls `wake_hole`, for thunks of a region, and `wake_lock`, for `LazyLock`.
//!
//! The values are leaked, because the process ends with the measurement.

use super::super::fault;
use selvedge_lazy::Region;
use std::sync::{Barrier, LazyLock, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// How long an evaluation takes. An OS thread that waits for it is asleep at its end.
const EVALUATION: Duration = Duration::from_millis(1);

/// What makes a value.
type MakesValue = &'static (dyn Fn() -> u64 + Sync);

fn body(make: impl Fn() -> u64 + Sync + 'static) -> MakesValue {
    Box::leak(Box::new(make))
}

pub(super) fn wake_hole(others: u64, rounds: u64) {
    let region: &'static Region = Box::leak(Box::default());
    let nursery = region.nursery();
    wake(others, rounds, |make| nursery.thunk(move |_| make()), |thunk| thunk.force(&region.nursery()));
}

pub(super) fn wake_lock(others: u64, rounds: u64) {
    let make = |make| -> &'static LazyLock<u64, MakesValue> { Box::leak(Box::new(LazyLock::new(make))) };
    wake(others, rounds, make, |lock| **lock);
}

/// Measures the updates of `rounds` values, while one OS thread awaits each, and while `others` OS
/// threads wait for other values.
fn wake<V: Copy + Send + Sync + 'static>(
    others: u64,
    rounds: u64,
    make: impl Fn(MakesValue) -> V,
    force: impl Fn(V) -> u64 + Copy + Send + Sync + 'static,
) {
    let (entered, end): (&Barrier, &Barrier) = (barrier(), barrier());
    // One OS thread evaluates the values of the others, one within the other.
    let innermost = make(body(move || {
        entered.wait();
        end.wait();
        0
    }));
    let mut values = vec![innermost];
    for _ in 1..others {
        let within = values[values.len() - 1];
        values.push(make(body(move || force(within))));
    }
    let (sum, time) = thread::scope(|scope| {
        let outermost = values[values.len() - 1];
        scope.spawn(move || force(outermost));
        entered.wait();
        for &value in values.iter().take(others as usize) {
            scope.spawn(move || force(value));
        }
        thread::sleep(EVALUATION * 20);
        let (mut sum, mut time) = (fault(), Duration::ZERO);
        for round in 0..rounds {
            let updated: &'static Mutex<Option<Instant>> = Box::leak(Box::default());
            let value = make(body(move || {
                entered.wait();
                thread::sleep(EVALUATION);
                *updated.lock().expect("it does not panic") = Some(Instant::now());
                round
            }));
            let waits = scope.spawn(move || {
                entered.wait();
                (force(value), Instant::now())
            });
            force(value);
            let (got, on) = waits.join().expect("it does not panic");
            sum += got;
            time += on - updated.lock().expect("it does not panic").expect("the value was made");
        }
        end.wait();
        (sum, time)
    });
    println!("wall_ns {:.1}", time.as_nanos() as f64 / rounds as f64);
    println!("sum {sum}");
}

/// A meeting of two OS threads.
fn barrier() -> &'static Barrier {
    Box::leak(Box::new(Barrier::new(2)))
}
