//! The deterministic scheduler: the same seed is the same run, every order is met, and what fails
//! can be seen again.

use selvedge_core::{Time, draw, fork_local, park, sleep, spawn_local, yield_now};
use selvedge_sim::{Explorer, Simulation, VirtualTime, Why, each_seed, simulated};
use selvedge_sync::MVar;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

/// Threads that yield, sleep, fork and join, and note each step.
async fn busy(noted: Rc<RefCell<Vec<u32>>>) -> u32 {
    let threads: Vec<_> = (0..8)
        .map(|i| {
            let noted = noted.clone();
            spawn_local(async move {
                for round in 0..5 {
                    noted.borrow_mut().push(i * 10 + round);
                    match (i + round) % 3 {
                        0 => yield_now().await,
                        1 => sleep(Duration::from_micros(u64::from(i))).await,
                        _ => fork_local(async { yield_now().await }).await,
                    }
                }
                i
            })
        })
        .collect();
    let mut sum = 0;
    for thread in threads {
        sum += thread.await.unwrap();
    }
    sum
}

fn run(simulation: Simulation) -> (u64, Vec<u32>) {
    let noted = Rc::new(RefCell::default());
    let run = simulation.run(&mut VirtualTime::new(), busy(Rc::clone(&noted))).unwrap();
    assert_eq!(run.output, 28);
    (run.digest, noted.take())
}

#[test]
fn the_same_seed_is_the_same_run_and_another_seed_is_another() {
    type Make = fn(u64) -> Simulation;
    let makes: [Make; 2] = [Simulation::new, |seed| Simulation::pct(seed, 3, 100)];
    for make in makes {
        let runs: Vec<_> = (0..200).map(|seed| run(make(seed))).collect();
        for (seed, first) in runs.iter().enumerate() {
            assert_eq!(&run(make(seed as u64)), first);
        }
        let digests: BTreeSet<u64> = runs.iter().map(|run| run.0).collect();
        let orders: BTreeSet<&[u32]> = runs.iter().map(|run| &*run.1).collect();
        assert!(digests.len() > 190, "{}", digests.len());
        assert!(orders.len() > 190, "{}", orders.len());
    }
}

/// Two threads of two steps each, and how they were interleaved.
async fn two_by_two(noted: Rc<RefCell<String>>) {
    let walk = |a: char, b: char| {
        let noted = noted.clone();
        async move {
            noted.borrow_mut().push(a);
            yield_now().await;
            noted.borrow_mut().push(b);
        }
    };
    let threads = [spawn_local(walk('a', 'b')), spawn_local(walk('x', 'y'))];
    for thread in threads {
        thread.await.unwrap();
    }
}

#[test]
fn the_explorer_meets_every_order_and_no_schedule_twice() {
    let orders = Rc::new(RefCell::new(BTreeSet::new()));
    let noted = Rc::new(RefCell::new(String::new()));
    let explored = Explorer::new().check(|| {
        let before = noted.take();
        if !before.is_empty() {
            orders.borrow_mut().insert(before);
        }
        two_by_two(noted.clone())
    });
    orders.borrow_mut().insert(noted.take());
    assert!(explored.unwrap().complete);
    let all = ["abxy", "axby", "axyb", "xaby", "xayb", "xyab"];
    assert_eq!(orders.take().into_iter().collect::<Vec<_>>(), all);
}

#[test]
fn fewer_preemptions_are_fewer_orders() {
    let schedules = |preemptions| {
        let explorer = Explorer::new().preemptions_max(preemptions);
        let explored = explorer.check(|| two_by_two(Rc::default())).unwrap();
        assert!(explored.complete);
        explored.schedules
    };
    let counts = [schedules(0), schedules(1), schedules(2)];
    assert!(counts.is_sorted_by(|a, b| a < b), "{counts:?}");
    assert_eq!(counts[2], schedules(100), "two is all there can be");
}

/// A wake-up that is lost when the waker comes between the look and the wait.
async fn lost_wake_up() {
    let (done, waiter) = (Rc::new(Cell::new(false)), Rc::new(RefCell::new(None)));
    let waker = {
        let (done, waiter) = (done.clone(), waiter.clone());
        spawn_local(async move {
            yield_now().await;
            done.set(true);
            if let Some(waker) = waiter.take() {
                std::task::Waker::wake(waker);
            }
        })
    };
    if !done.get() {
        yield_now().await; // the window
        park(|waker| *waiter.borrow_mut() = Some(waker)).await;
    }
    waker.await.unwrap();
}

#[test]
fn a_lost_wake_up_is_found_and_replayed() {
    let failed = Explorer::new().check(lost_wake_up).unwrap_err();
    assert!(matches!(failed.why(), Why::Deadlock(_)), "{failed}");
    let again = Simulation::replay(&failed.schedule()).run(&mut VirtualTime::new(), lost_wake_up());
    let again = again.unwrap_err();
    assert_eq!((again.schedule(), again.steps()), (failed.schedule(), failed.steps()));
    assert!(matches!(again.why(), Why::Deadlock(_)));
    let found = |make: fn(u64) -> Simulation| {
        (0..100).filter(|&seed| make(seed).run(&mut VirtualTime::new(), lost_wake_up()).is_err()).count()
    };
    let (random, pct) = (found(Simulation::new), found(|seed| Simulation::pct(seed, 2, 10)));
    assert!(random > 5 && pct > 5, "{random} of 100 at random, {pct} by priorities");
}

#[test]
fn time_passes_without_waiting_and_wakes_in_order() {
    let before = std::time::Instant::now();
    each_seed(0..100, |seed| {
        let hours = simulated(seed, &mut VirtualTime::new(), async {
            let start = Time::now();
            let order = Rc::new(RefCell::new(Vec::new()));
            let threads = [3, 1, 2].map(|hours| {
                let order = order.clone();
                spawn_local(async move {
                    sleep(Duration::from_secs(3600 * hours)).await;
                    assert!(Time::now().since(start) >= Duration::from_secs(3600 * hours));
                    order.borrow_mut().push(hours);
                })
            });
            for thread in threads {
                thread.await.unwrap();
            }
            order.take()
        });
        assert_eq!(hours.unwrap(), [1, 2, 3]);
    });
    assert!(before.elapsed() < Duration::from_secs(60));
}

#[test]
fn what_goes_wrong_is_told_with_the_seed() {
    let panics = async {
        fork_local(async { panic!("no such luck") }).await;
        std::future::pending::<()>().await
    };
    let failed = simulated(17, &mut VirtualTime::new(), panics).unwrap_err();
    assert!(matches!(failed.why(), Why::Panic { .. }), "{failed}");
    for text in ["seed 17", "no such luck", "SELVEDGE_SEED=17"] {
        assert!(failed.to_string().contains(text), "{failed}");
    }
    let stuck = park(|_| ());
    let failed = simulated(3, &mut VirtualTime::new(), stuck).unwrap_err();
    assert!(failed.to_string().contains("deadlock"), "{failed}");
    let spins = async {
        loop {
            yield_now().await;
        }
    };
    let failed = Simulation::new(0).steps_max(1000).run(&mut VirtualTime::new(), spins).unwrap_err();
    assert!(matches!(failed.why(), Why::TooManySteps) && failed.steps() == 1000, "{failed}");
}

#[test]
fn a_thread_that_yields_until_something_happens_does_not_keep_it_from_happening() {
    let spins = || async {
        let flag = Rc::new(Cell::new(false));
        let setter = flag.clone();
        fork_local(async move { setter.set(true) }).await;
        while !flag.get() {
            yield_now().await;
        }
    };
    for seed in 0..100 {
        Simulation::pct(seed, 1, 100).run(&mut VirtualTime::new(), spins()).unwrap();
    }
    Explorer::new().preemptions_max(0).check(spins).unwrap();
}

#[test]
fn threads_that_wake_each_other_do_not_keep_the_others_out() {
    let play = || async {
        let ball = Rc::new((MVar::empty_local(), MVar::empty_local()));
        for side in 0..2 {
            let ball = ball.clone();
            fork_local(async move {
                loop {
                    let (from, to) = if side == 0 { (&ball.0, &ball.1) } else { (&ball.1, &ball.0) };
                    let value: u32 = from.take().await;
                    to.put(value).await;
                }
            })
            .await;
        }
        ball.0.put(1).await;
        spawn_local(yield_now()).await.unwrap();
    };
    for seed in 0..100 {
        let simulation = Simulation::pct(seed, 1, 100).steps_max(100_000);
        simulation.run(&mut VirtualTime::new(), play()).unwrap();
    }
    Explorer::new().preemptions_max(0).schedules_max(1_000).check(play).unwrap();
}

#[test]
fn the_threads_that_are_left_are_told_and_cancelled() {
    let dropped = Rc::new(Cell::new(0));
    struct Counts(Rc<Cell<u32>>);
    impl Drop for Counts {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }
    let counts = dropped.clone();
    let main = async move {
        for _ in 0..3 {
            let counts = Counts(counts.clone());
            fork_local(async move {
                let _counts = counts;
                sleep(Duration::from_secs(1)).await;
            })
            .await;
        }
    };
    let run = Simulation::new(1).run(&mut VirtualTime::new(), main).unwrap();
    assert_eq!((run.left.len(), dropped.get()), (3, 3));
}

#[test]
fn programs_of_lazy_values_end_in_many_orders() {
    for seed in 0..30 {
        for program in crate::lazy_programs::programs() {
            simulated(seed, &mut VirtualTime::new(), program).unwrap();
        }
    }
}

#[test]
fn the_seed_determines_what_a_fair_choice_draws() {
    let drawn = |seed| {
        let main = async {
            let mut drawn = Vec::new();
            for _ in 0..20 {
                drawn.push(draw::below(5));
                yield_now().await;
            }
            drawn
        };
        simulated(seed, &mut VirtualTime::new(), main).unwrap()
    };
    let fresh: Vec<_> = (0..100).map(drawn).collect();
    // Here all runs share one CPU.
    each_seed(0..100, |seed| {
        assert_eq!(drawn(seed), fresh[seed as usize]);
        draw::below(2);
    });
    assert!(fresh.iter().collect::<BTreeSet<_>>().len() > 90);
}
