//! The lazy programs of `suite.rs` over the standard library: `Arc<LazyLock<T, Box<dyn FnOnce() ->
//! T>>>`. `lazy.rs` calls `run` for the peer rows of `lazy-suite`.
//!
//! The functions have the names of those in `suite.rs` and give the same answers, because the
//! figure compares their rows. A change of one program belongs into both files.

use super::{CAPACITY, WHEEL, item_of, letter_of, timed};
use std::iter;
use std::sync::{Arc, LazyLock};

/// A lazy value of the standard library, shared.
struct Lock<T>(Arc<LazyLock<T, Box<dyn FnOnce() -> T + Send>>>);

impl<T> Clone for Lock<T> {
    fn clone(&self) -> Lock<T> {
        Lock(self.0.clone())
    }
}

impl<T: Clone> Lock<T> {
    fn new(body: impl FnOnce() -> T + Send + 'static) -> Lock<T> {
        Lock(Arc::new(LazyLock::new(Box::new(body))))
    }

    fn force(&self) -> T {
        LazyLock::force(&self.0).clone()
    }
}

/// A list of which each cell is a lazy value.
#[derive(Clone)]
struct LockList(Lock<Option<(u64, LockList)>>);

impl LockList {
    fn new(body: impl FnOnce() -> Option<(u64, LockList)> + Send + 'static) -> LockList {
        LockList(Lock::new(body))
    }

    fn force(&self) -> Option<(u64, LockList)> {
        self.0.force()
    }

    fn filter(self, keep: impl Fn(u64) -> bool + Clone + Send + 'static) -> LockList {
        LockList::new(move || {
            let mut at = self;
            loop {
                let (head, tail) = at.force()?;
                if keep(head) {
                    return Some((head, tail.filter(keep)));
                }
                at = tail;
            }
        })
    }

    fn map(self, f: impl Fn(u64) -> u64 + Clone + Send + 'static) -> LockList {
        LockList::new(move || {
            let (head, tail) = self.force()?;
            Some((f(head), tail.map(f)))
        })
    }

    fn into_iter(self) -> impl Iterator<Item = u64> {
        let mut at = self;
        iter::from_fn(move || {
            let (head, tail) = at.force()?;
            at = tail;
            Some(head)
        })
    }
}

/// Runs a lazy program; prints the time, and the answer.
///
/// # Errors
/// When there is no such program.
pub(super) fn run(program: &str, size: u64) -> Result<(), String> {
    let answer: fn(u64) -> u64 = match program {
        "fibs" => fibs,
        "sieve" => |size| sieve(integers(2)).into_iter().nth(size as usize - 1).unwrap_or(0),
        "knapsack" => knapsack,
        "quicksort" => |size| {
            let numbered = quicksort(scattered(size, 1)).into_iter().zip(1..);
            numbered.fold(0u64, |mixed, (n, at): (u64, u64)| mixed.wrapping_add(n.wrapping_mul(at)))
        },
        "tree" => |depth| leaves(&grown(depth)),
        "queens" => |size| queens(size, 0, 0),
        "exp3" => exp3,
        "tak" => |n| {
            let n = n as i64;
            tak(3 * n, 2 * n, Lock::new(move || n)) as u64
        },
        "wheel" => |size| primes().into_iter().nth(size as usize - 1).unwrap_or(0),
        "edit" => edit,
        "digits" => digits,
        _ => return Err(format!("no such lazy program: {program}")),
    };
    timed(|| answer(size));
    Ok(())
}

fn fibs(size: u64) -> u64 {
    let (mut before, mut last) = (Lock::new(|| 0u64), Lock::new(|| 1u64));
    for _ in 0..size {
        let (a, b) = (before, last.clone());
        let next = Lock::new(move || a.force().wrapping_add(b.force()));
        next.force();
        (before, last) = (last, next);
    }
    before.force() % 1_000_000_007
}

fn integers(from: u64) -> LockList {
    LockList::new(move || Some((from, integers(from + 1))))
}

fn sieve(candidates: LockList) -> LockList {
    LockList::new(move || {
        let (prime, rest) = candidates.force()?;
        Some((prime, sieve(rest.filter(move |n| n % prime != 0))))
    })
}

fn knapsack(items: u64) -> u64 {
    let mut row: Vec<Lock<u64>> = (0..=CAPACITY).map(|_| Lock::new(|| 0)).collect();
    for item in 1..=items {
        let (weight, value) = item_of(item);
        let entry = |at: usize| {
            let without = row[at].clone();
            match at.checked_sub(weight).map(|left| row[left].clone()) {
                None => Lock::new(move || without.force()),
                Some(with) => Lock::new(move || without.force().max(value + with.force())),
            }
        };
        row = (0..=CAPACITY).map(entry).collect();
    }
    row[CAPACITY].force()
}

fn scattered(left: u64, n: u64) -> LockList {
    LockList::new(move || {
        let next = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Some((n >> 40, scattered(left.checked_sub(1)?, next)))
    })
}

fn append(list: LockList, pivot: u64, rest: LockList) -> Option<(u64, LockList)> {
    Some(match list.force() {
        Some((head, tail)) => (head, LockList::new(move || append(tail, pivot, rest))),
        None => (pivot, rest),
    })
}

fn quicksort(list: LockList) -> LockList {
    LockList::new(move || {
        let (pivot, tail) = list.force()?;
        let small = quicksort(tail.clone().filter(move |n| n < pivot));
        let large = quicksort(tail.filter(move |n| n >= pivot));
        append(small, pivot, large)
    })
}

#[derive(Clone)]
struct LockTree(Lock<Option<(LockTree, LockTree)>>);

fn grown(depth: u64) -> LockTree {
    LockTree(Lock::new(move || {
        let below = depth.checked_sub(1)?;
        Some((grown(below), grown(below)))
    }))
}

fn leaves(tree: &LockTree) -> u64 {
    match tree.0.force() {
        None => 1,
        Some((left, right)) => leaves(&left) + leaves(&right),
    }
}

fn queens(size: u64, rows: u64, board: u64) -> u64 {
    if rows == size {
        return 1;
    }
    fn columns(column: u64, size: u64) -> LockList {
        LockList::new(move || (column < size).then(|| (column, columns(column + 1, size))))
    }
    let is_safe = move |column: u64| {
        (0..rows).all(|back| {
            let queen = board >> (4 * back) & 15;
            queen != column && queen.abs_diff(column) != back + 1
        })
    };
    let safe = columns(0, size).filter(is_safe);
    safe.into_iter().map(|column| queens(size, rows + 1, board << 4 | column)).sum()
}

fn number(n: u64) -> LockList {
    LockList::new(move || Some((0, number(n.checked_sub(1)?))))
}

fn add(a: LockList, b: LockList) -> Option<(u64, LockList)> {
    match a.force() {
        None => b.force(),
        Some((head, tail)) => Some((head, LockList::new(move || add(tail, b)))),
    }
}

fn multiply(a: LockList, b: LockList) -> LockList {
    LockList::new(move || {
        let (_, tail) = a.force()?;
        add(b.clone(), multiply(tail, b))
    })
}

fn exp3(size: u64) -> u64 {
    let three = number(3);
    let power = (0..size).fold(number(1), |power, _| multiply(three.clone(), power));
    power.into_iter().count() as u64
}

fn tak(x: i64, y: i64, z: Lock<i64>) -> i64 {
    if x <= y {
        return z.force();
    }
    let first = tak(x - 1, y, z.clone());
    let z = z.force();
    let second = tak(y - 1, z, Lock::new(move || x));
    let third = Lock::new(move || tak(z - 1, x, Lock::new(move || y)));
    tak(first, second, third)
}

fn primes() -> LockList {
    LockList::new(|| Some((2, LockList::new(after_two))))
}

fn after_two() -> Option<(u64, LockList)> {
    let from_seven = || next_prime((7, 0), primes());
    Some((3, LockList::new(move || Some((5, LockList::new(from_seven))))))
}

fn next_prime((mut n, mut spoke): (u64, usize), base: LockList) -> Option<(u64, LockList)> {
    let next = |n, spoke| (n + WHEEL[spoke], (spoke + 1) % WHEEL.len());
    let is_prime =
        |n| n < 49 || base.clone().into_iter().skip(3).take_while(|p| p * p <= n).all(|p| n % p != 0);
    while !is_prime(n) {
        (n, spoke) = next(n, spoke);
    }
    let at = next(n, spoke);
    Some((n, LockList::new(move || next_prime(at, base))))
}

fn edit(size: u64) -> u64 {
    let mut row: Vec<_> = (0..=size).map(|at| Lock::new(move || at)).collect();
    for i in 0..size {
        let mut left = Lock::new(move || i + 1);
        let mut next = vec![left.clone()];
        for j in 0..size {
            let (before, corner, above) = (left, row[j as usize].clone(), row[j as usize + 1].clone());
            left = Lock::new(move || match letter_of(i, 1) == letter_of(j, 2) {
                true => corner.force(),
                false => 1 + before.force().min(above.force()).min(corner.force()),
            });
            next.push(left.clone());
        }
        row = next;
    }
    row[size as usize].force()
}

fn ones() -> LockList {
    LockList::new(|| Some((1, ones())))
}

fn digits(size: u64) -> u64 {
    let (mut mixed, mut answer) = (ones(), 0);
    for _ in 0..size {
        let Some((digit, rest)) = carried(2, 0, mixed.map(|n| 10 * n)) else { break };
        answer = (10 * answer + digit) % 1_000_000_007;
        mixed = rest;
    }
    answer
}

fn carried(base: u64, digit: u64, list: LockList) -> Option<(u64, LockList)> {
    let (head, tail) = list.force()?;
    let rest = LockList::new(move || carried(base + 1, head, tail));
    let carry = if head % base + 9 < base { head / base } else { rest.force()?.0 / base };
    let tail = LockList::new(move || {
        let (head, tail) = rest.force()?;
        Some((head % base, tail))
    });
    Some((digit + carry, tail))
}
