//! `select!`: it is fair, has conditions and patterns that need not match, and an `else`.

use selvedge_core::{Cpu, round_robin, yield_now};
use selvedge_scope::select;
use std::cell::{Cell, RefCell};
use std::future::{IntoFuture, Ready, pending, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A fortieth of the rounds under Miri, which takes some microseconds for an instruction.
const ROUNDS: u32 = if cfg!(miri) { 100 } else { 4_000 };

/// How many rounds pass before the branch at `place`, of three that are always ready, is seen.
async fn rounds_until(place: usize, rounds_max: u32) -> Option<u32> {
    for round in 0..rounds_max {
        let seen = select! {
            () = ready(()) => 0,
            () = ready(()) => 1,
            () = ready(()) => 2,
        };
        if seen == place {
            return Some(round);
        }
    }
    None
}

#[test]
fn a_branch_behind_one_that_is_always_ready_is_seen() {
    for place in 0..3 {
        let rounds = round_robin(rounds_until(place, 100_000)).unwrap();
        assert!(rounds.is_some_and(|rounds| rounds < 100), "branch {place} in round {rounds:?}");
    }
}

#[test]
fn each_branch_wins_as_often_as_the_others() {
    let wins = round_robin(async {
        let mut wins = [0_u32; 4];
        for _ in 0..ROUNDS {
            select! {
                () = ready(()) => wins[0] += 1,
                () = ready(()) => wins[1] += 1,
                () = ready(()) => wins[2] += 1,
                () = ready(()) => wins[3] += 1,
            }
        }
        wins
    });
    let wins = wins.unwrap();
    let fair = ROUNDS / 4;
    assert!(wins.iter().all(|wins| (fair / 2..fair * 2).contains(wins)), "{wins:?}");
}

#[test]
fn two_threads_that_take_turns_are_served_fairly_too() {
    let wins = round_robin(async {
        let count = || async {
            let mut wins = [0_u32; 2];
            for _ in 0..ROUNDS {
                select! {
                    () = ready(()) => wins[0] += 1,
                    () = ready(()) => wins[1] += 1,
                }
                yield_now().await;
            }
            wins
        };
        let one = selvedge_core::spawn(count());
        let other = selvedge_core::spawn(count());
        [one.await.unwrap(), other.await.unwrap()]
    });
    for wins in wins.unwrap().as_flattened() {
        assert!((ROUNDS / 4..ROUNDS).contains(wins), "{wins}");
    }
}

#[test]
fn a_new_cpu_draws_what_the_one_before_drew() {
    let drawn = || {
        let _cpu = Cpu::new().unwrap();
        round_robin(async {
            let mut seen = Vec::new();
            for _ in 0..50 {
                seen.push(select! { () = ready(()) => 0, () = ready(()) => 1, () = ready(()) => 2 });
            }
            seen
        })
    };
    assert_eq!(drawn().unwrap(), drawn().unwrap());
}

#[test]
fn where_it_is_biased_the_first_that_is_ready_wins() {
    let order = round_robin(async {
        let mut polled = Vec::new();
        for _ in 0..1_000 {
            let won = select! {
                biased;
                () = pending::<()>() => 0,
                () = ready(()) => 1,
                () = ready(()) => 2,
            };
            polled.push(won);
        }
        polled
    });
    assert_eq!(order.unwrap(), [1; 1_000]);
}

#[test]
fn the_future_of_a_condition_that_is_false_is_not_made() {
    let made = Cell::new(0);
    let make = || {
        made.set(made.get() + 1);
        ready("made")
    };
    for (condition, expected) in [(false, "other"), (true, "made")] {
        let answer = futures::executor::block_on(async {
            select! {
                biased;
                word = make(), if condition => word,
                () = ready(()) => "other",
            }
        });
        assert_eq!(answer, expected);
    }
    assert_eq!(made.get(), 1);
}

#[test]
fn a_branch_whose_pattern_does_not_match_leaves_the_others_to_go_on() {
    let dropped = RefCell::new(Vec::new());
    struct Noted<'a>(&'a RefCell<Vec<&'static str>>, &'static str);
    impl Drop for Noted<'_> {
        fn drop(&mut self) {
            self.0.borrow_mut().push(self.1);
        }
    }
    let noted = |name| Noted(&dropped, name);
    let answer = futures::executor::block_on(async {
        let in_first = noted("future of the first");
        let first = async {
            let _kept = in_first;
            Err::<u8, _>(noted("output of the first"))
        };
        let mut turns = 0;
        let second = async {
            while turns < 3 {
                turns += 1;
                futures::pending!();
            }
            dropped.borrow().len()
        };
        // The waker of this `block_on` must be called for the second to go on.
        let wakes = async {
            loop {
                futures::future::poll_fn(|cx| {
                    cx.waker().wake_by_ref();
                    std::task::Poll::<()>::Pending
                })
                .await;
            }
        };
        select! {
            Ok(number) = first => usize::from(number) + 100,
            dropped_by_then = second => dropped_by_then,
            () = wakes => unreachable!(),
        }
    });
    assert_eq!(answer, 2, "the output and the future of the first go when it is disabled");
    assert_eq!(*dropped.borrow(), ["future of the first", "output of the first"]);
}

#[test]
fn else_is_what_happens_when_all_are_disabled() {
    let answer = |first: Option<u8>, second: Option<u8>, third: bool| {
        futures::executor::block_on(async move {
            select! {
                Some(number) = ready(first) => number,
                Some(number @ 10..=19) = ready(second) => number,
                () = ready(()), if third => 3,
                else => 0,
            }
        })
    };
    assert_eq!(answer(None, None, false), 0);
    assert_eq!(answer(Some(1), None, false), 1);
    assert_eq!(answer(None, Some(15), false), 15);
    assert_eq!(answer(None, Some(20), false), 0);
    assert_eq!(answer(None, Some(20), true), 3);
}

#[test]
fn without_else_it_panics_when_all_are_disabled() {
    let panic = catch_unwind(AssertUnwindSafe(|| {
        futures::executor::block_on(async {
            select! {
                Some(number) = ready(None::<u8>) => number,
                number = ready(1), if false => number,
            }
        })
    }));
    let message = *panic.unwrap_err().downcast::<&str>().unwrap();
    assert_eq!(message, "all branches of this select! are disabled, and it has no else");
}

struct Given(&'static str);

impl IntoFuture for Given {
    type Output = &'static str;
    type IntoFuture = Ready<&'static str>;

    fn into_future(self) -> Ready<&'static str> {
        ready(self.0)
    }
}

#[test]
fn patterns_and_expressions_are_those_of_a_match() {
    let text = || ready(Some("text".to_string()));
    let answers = futures::executor::block_on(async {
        let mut owned = String::new();
        let mut answers = Vec::new();
        // By value, from a type that is not `Copy`; and the body uses what a future has borrowed.
        answers.push(select! {
            Some(mut text) = async { owned.push('!'); text().await } => { text.push_str(&owned); text }
            () = pending() => String::new(),
        });
        answers.push(select! {
            Some(ref text) = text() => text.clone(),
            else => String::new(),
        });
        answers.push(select! {
            (&number, 1 | 2) = ready((&7, 2)) => number.to_string(),
            _ = pending::<()>() => String::new(),
        });
        answers.push(select! {
            Ok(word) | Err(word) = ready(Err::<&str, &str>("error")) => word.to_string(),
            else => { String::new() }
        });
        // A block without a comma, before a pattern that could go on with an expression.
        answers.push(select! {
            () = pending() => { String::new() }
            (one, other) = ready((1, 2)) => { format!("{one}{other}") }
            [one] = ready([1]), if false => { format!("{one}") }
        });
        answers.push(select! {
            given = Given("into") => given.to_uppercase(),
        });
        answers
    });
    assert_eq!(answers, ["text!", "text", "7", "error", "12", "INTO"]);
}

#[test]
fn what_makes_a_future_may_leave_the_function() {
    async fn first(number: Result<u8, &'static str>) -> Result<u8, &'static str> {
        loop {
            select! {
                number = ready(number?) => return Ok(number),
                () = pending::<()>() => continue,
            }
        }
    }
    assert_eq!(futures::executor::block_on(first(Ok(1))), Ok(1));
    assert_eq!(futures::executor::block_on(first(Err("none"))), Err("none"));
}

#[test]
fn a_select_of_futures_that_may_move_may_move() {
    fn may_move(_: impl Send) {}
    may_move(async {
        select! {
            Some(word) = ready(Some("word")) => assert_eq!(word, "word"),
            () = yield_now() => {}
            else => {}
        }
    });
}
