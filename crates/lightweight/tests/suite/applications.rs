//! The three applications under every implementation, against plain sequential code.

use selvedge_lightweight::apps::answers::{hamming, primes, sorted};
use selvedge_lightweight::apps::sorter::comparators;
use selvedge_lightweight::implementations::{ALL, Application, Implementation, Style, named, run};

/// Miri knows no stacks, and starts OS threads slowly.
fn those_that_run() -> impl Iterator<Item = &'static Implementation> {
    ALL.iter().filter(|by| !cfg!(miri) || by.style != Style::Direct)
}

const SMALL: usize = if cfg!(miri) { 4 } else { 30 };

#[test]
fn kpn_finds_the_numbers_and_stops() {
    let numbers = hamming(5 * SMALL);
    for by in those_that_run() {
        let found = (by.kpn)(numbers.len());
        assert_eq!(found.numbers, numbers, "{}", by.name);
        assert!(found.ended.stopped && found.ended.panicked == 0, "{}: {:?}", by.name, found.ended);
    }
}

#[test]
fn sieve_finds_the_primes_with_a_thread_for_each() {
    for by in those_that_run() {
        let last = 5 * SMALL as u64;
        let (found, primes) = ((by.sieve)(last), primes(last));
        assert_eq!(found.numbers, primes, "{}", by.name);
        assert!(found.ended.stopped && found.ended.panicked == 0, "{}: {:?}", by.name, found.ended);
        let filters = found.threads - 3;
        assert!(filters.abs_diff(primes.len() as u64) <= 1, "{}: {filters}", by.name);
    }
}

#[test]
fn sorter_sorts_and_leaves_no_thread_behind() {
    for by in those_that_run() {
        let found = (by.sorter)(SMALL, false);
        assert_eq!(found.numbers, sorted(SMALL), "{}", by.name);
        assert_eq!(found.ended, Default::default(), "{}", by.name);
        assert_eq!(found.threads, comparators(SMALL) + 2);
    }
}

#[test]
fn sorter_of_0_1_and_2_numbers() {
    for by in those_that_run() {
        for n in 0..3 {
            assert_eq!((by.sorter)(n, false).numbers, sorted(n), "{}", by.name);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "it reads the size of the process")]
fn a_run_is_checked() {
    fn torn(_: u64) -> selvedge_lightweight::apps::AppFound {
        let tramp = named("tramp").expect("it is in the list");
        let mut found = (tramp.sieve)(20);
        found.numbers.swap(0, 1);
        found
    }
    let tramp = named("tramp").expect("it is in the list");
    let ran = run(Application::Sieve(20), tramp, 2).expect("the answer is right");
    assert_eq!(ran.threads, 3 + primes(20).len() as u64);
    assert!(run(Application::Sieve(20), &Implementation { sieve: torn, ..*tramp }, 1).is_err());
}
