//! The lazy programs of the figure `lazy-suite`: streams, sieves, trees, queens, a sort, tables,
//! digits and numbers as lists, each in a region, under each engine. `lazy.rs` calls `run`.
//!
//! Each program is generic over the engine's entry, so that all engines run one text. The program
//! prints its answer, which the figure knows. `locks.rs` has the same programs over the standard
//! library.

use super::{CAPACITY, WHEEL, item_of, letter_of, timed};
use selvedge_lazy::{
    ClaimAtYield, Cons, Grey, GreyClaimAtYield, LazyList, LockFree, Nursery, OneCas, Region, Thunk,
    ThunkEntry, TwoCas, Unsynchronised,
};

/// Runs a lazy program under an engine; prints the time, and the answer.
///
/// # Errors
/// When there is no such program or engine.
pub(super) fn run(program: &str, engine: &str, size: u64) -> Result<(), String> {
    match engine {
        "unsynchronised" => Region::<Unsynchronised>::with(|region| run_in(program, size, region)),
        "lockfree" => run_in(program, size, &Region::<LockFree>::new()),
        "claim" => run_in(program, size, &Region::<ClaimAtYield>::new()),
        "grey" => run_in(program, size, &Region::<Grey>::new()),
        "greyclaim" => run_in(program, size, &Region::<GreyClaimAtYield>::new()),
        "onecas" => run_in(program, size, &Region::<OneCas>::new()),
        "twocas" => run_in(program, size, &Region::<TwoCas>::new()),
        _ => Err(format!("no such engine: {engine}")),
    }
}

fn run_in<E: ThunkEntry>(program: &str, size: u64, region: &Region<E>) -> Result<(), String> {
    let nursery = &region.nursery();
    let answer: fn(&Nursery<'_, E>, u64) -> u64 = match program {
        "fibs" => fibs,
        "sieve" => |nursery, size| {
            let candidates = integers(2, nursery);
            let primes = nursery.thunk(move |nursery| sieve(candidates, nursery));
            primes.iter(nursery).nth(size as usize - 1).unwrap_or(0)
        },
        "knapsack" => knapsack,
        "quicksort" => |nursery, size| {
            let sorted = quicksort(scattered(size, nursery), nursery);
            let numbered = sorted.iter(nursery).zip(1..);
            numbered.fold(0u64, |mixed, (n, at): (u64, u64)| mixed.wrapping_add(n.wrapping_mul(at)))
        },
        "tree" => |nursery, depth| leaves(nursery, grown(nursery, depth)),
        "queens" => |nursery, size| queens(nursery, size, 0, 0),
        "exp3" => exp3,
        "tak" => |nursery, n| {
            let n = n as i64;
            tak(nursery, 3 * n, 2 * n, nursery.ready(n)) as u64
        },
        "wheel" => |nursery, size| primes(nursery).iter(nursery).nth(size as usize - 1).unwrap_or(0),
        "edit" => edit,
        "digits" => digits,
        _ => return Err(format!("no such lazy program: {program}")),
    };
    timed(|| answer(nursery, size));
    Ok(())
}

fn integers<'r, E: ThunkEntry>(from: u64, nursery: &Nursery<'r, E>) -> LazyList<'r, u64, E> {
    nursery.unfold(from, |n| Some((n, n + 1)))
}

/// The last of `size` numbers of the stream of Fibonacci numbers, each of which is a thunk of the
/// two before.
fn fibs<E: ThunkEntry>(nursery: &Nursery<'_, E>, size: u64) -> u64 {
    let (mut before, mut last) = (nursery.ready(0u64), nursery.ready(1u64));
    for _ in 0..size {
        let next = nursery.thunk(move |nursery| before.force(nursery).wrapping_add(last.force(nursery)));
        next.force(nursery);
        (before, last) = (last, next);
    }
    before.force(nursery) % 1_000_000_007
}

/// The first of the candidates, and a sieve of the rest.
fn sieve<'r, E: ThunkEntry>(
    candidates: LazyList<'r, u64, E>,
    nursery: &Nursery<'r, E>,
) -> Option<&'r Cons<'r, u64, E>> {
    let &Cons { head: prime, tail } = candidates.force(nursery)?;
    let rest = tail.filter(nursery, move |n| n % prime != 0);
    Some(nursery.cons(prime, move |nursery| sieve(rest, nursery)))
}

/// A tree of which the parts are made when they are needed: both parts, or none.
type ThunkTree<'r, E> = Thunk<'r, Option<&'r TreeFork<'r, E>>, E>;

struct TreeFork<'r, E: ThunkEntry> {
    left: ThunkTree<'r, E>,
    right: ThunkTree<'r, E>,
}

fn grown<'r, E: ThunkEntry>(nursery: &Nursery<'r, E>, depth: u64) -> ThunkTree<'r, E> {
    nursery.thunk(move |nursery| {
        let below = depth.checked_sub(1)?;
        Some(nursery.put(TreeFork { left: grown(nursery, below), right: grown(nursery, below) }))
    })
}

fn leaves<'r, E: ThunkEntry>(nursery: &Nursery<'r, E>, tree: ThunkTree<'r, E>) -> u64 {
    match tree.force(nursery) {
        None => 1,
        Some(fork) => leaves(nursery, fork.left) + leaves(nursery, fork.right),
    }
}

/// The ways to go on from rows of queens, each column of which is 4 bits.
fn queens<E: ThunkEntry>(nursery: &Nursery<'_, E>, size: u64, rows: u64, board: u64) -> u64 {
    if rows == size {
        return 1;
    }
    let columns = nursery.unfold(0, move |column| (column < size).then_some((column, column + 1)));
    let is_safe = move |column: u64| {
        (0..rows).all(|back| {
            let queen = board >> (4 * back) & 15;
            queen != column && queen.abs_diff(column) != back + 1
        })
    };
    let safe = columns.filter(nursery, is_safe);
    safe.iter(nursery).map(|column| queens(nursery, size, rows + 1, board << 4 | column)).sum()
}

/// `size` numbers in no order.
fn scattered<'r, E: ThunkEntry>(size: u64, nursery: &Nursery<'r, E>) -> LazyList<'r, u64, E> {
    nursery.unfold((size, 1u64), |(left, n)| {
        let next = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Some((n >> 40, (u64::checked_sub(left, 1)?, next)))
    })
}

fn append<'r, E: ThunkEntry>(
    list: LazyList<'r, u64, E>,
    pivot: u64,
    rest: LazyList<'r, u64, E>,
    nursery: &Nursery<'r, E>,
) -> Option<&'r Cons<'r, u64, E>> {
    Some(match list.force(nursery) {
        Some(&Cons { head, tail }) => nursery.cons(head, move |nursery| append(tail, pivot, rest, nursery)),
        None => nursery.put(Cons { head: pivot, tail: rest }),
    })
}

fn quicksort<'r, E: ThunkEntry>(
    list: LazyList<'r, u64, E>,
    nursery: &Nursery<'r, E>,
) -> LazyList<'r, u64, E> {
    nursery.thunk(move |nursery| {
        let cell = list.force(nursery)?;
        let pivot = cell.head;
        let small = quicksort(cell.tail.filter(nursery, move |n| n < pivot), nursery);
        let large = quicksort(cell.tail.filter(nursery, move |n| n >= pivot), nursery);
        append(small, pivot, large, nursery)
    })
}

/// The best value of a knapsack: a table of which each entry is a thunk of two entries above.
fn knapsack<E: ThunkEntry>(nursery: &Nursery<'_, E>, items: u64) -> u64 {
    let mut row: Vec<_> = (0..=CAPACITY).map(|_| nursery.ready(0u64)).collect();
    for item in 1..=items {
        let (weight, value) = item_of(item);
        let entry = |at: usize| {
            let without = row[at];
            match at.checked_sub(weight).map(|left| row[left]) {
                None => nursery.thunk(move |nursery| without.force(nursery)),
                Some(with) => {
                    nursery.thunk(move |nursery| without.force(nursery).max(value + with.force(nursery)))
                }
            }
        };
        row = (0..=CAPACITY).map(entry).collect();
    }
    row[CAPACITY].force(nursery)
}

/// A number as a list of this number of elements.
type Natural<'r, E> = LazyList<'r, (), E>;

fn number<'r, E: ThunkEntry>(nursery: &Nursery<'r, E>, n: u64) -> Natural<'r, E> {
    nursery.unfold(n, |n| Some(((), n.checked_sub(1)?)))
}

fn add<'r, E: ThunkEntry>(
    nursery: &Nursery<'r, E>,
    a: Natural<'r, E>,
    b: Natural<'r, E>,
) -> Option<&'r Cons<'r, (), E>> {
    match a.force(nursery) {
        None => b.force(nursery),
        Some(&Cons { tail, .. }) => Some(nursery.cons((), move |nursery| add(nursery, tail, b))),
    }
}

fn multiply<'r, E: ThunkEntry>(
    nursery: &Nursery<'r, E>,
    a: Natural<'r, E>,
    b: Natural<'r, E>,
) -> Natural<'r, E> {
    nursery.thunk(move |nursery| {
        let cell = a.force(nursery)?;
        add(nursery, b, multiply(nursery, cell.tail, b))
    })
}

/// 3 to the power of the size, in numbers of lazy successors.
fn exp3<E: ThunkEntry>(nursery: &Nursery<'_, E>, size: u64) -> u64 {
    let three = number(nursery, 3);
    let power = (0..size).fold(number(nursery, 1), |power, _| multiply(nursery, three, power));
    power.iter(nursery).count() as u64
}

/// Takeuchi's function, the last argument of which is evaluated when it is needed.
fn tak<'r, E: ThunkEntry>(nursery: &Nursery<'r, E>, x: i64, y: i64, z: Thunk<'r, i64, E>) -> i64 {
    if x <= y {
        return z.force(nursery);
    }
    let first = tak(nursery, x - 1, y, z);
    let z = z.force(nursery);
    let second = tak(nursery, y - 1, z, nursery.ready(x));
    let third = nursery.thunk(move |nursery| tak(nursery, z - 1, x, nursery.ready(y)));
    tak(nursery, first, second, third)
}

/// The primes. The primes that divide a candidate come from a list of their own, which needs
/// another list.
fn primes<'r, E: ThunkEntry>(nursery: &Nursery<'r, E>) -> LazyList<'r, u64, E> {
    nursery.thunk(|nursery| Some(nursery.cons(2, |nursery| after_two(nursery))))
}

fn after_two<'r, E: ThunkEntry>(nursery: &Nursery<'r, E>) -> Option<&'r Cons<'r, u64, E>> {
    let from_seven = |nursery: &Nursery<'r, E>| next_prime(nursery, (7, 0), primes(nursery));
    Some(nursery.cons(3, move |nursery| Some(nursery.cons(5, from_seven))))
}

/// The first prime from a number of the wheel on, and those behind it.
fn next_prime<'r, E: ThunkEntry>(
    nursery: &Nursery<'r, E>,
    (mut n, mut spoke): (u64, usize),
    base: LazyList<'r, u64, E>,
) -> Option<&'r Cons<'r, u64, E>> {
    let next = |n, spoke| (n + WHEEL[spoke], (spoke + 1) % WHEEL.len());
    let is_prime = |n| {
        // The base is not asked for its own first primes.
        n < 49 || base.iter(nursery).skip(3).take_while(|p| p * p <= n).all(|p| n % p != 0)
    };
    while !is_prime(n) {
        (n, spoke) = next(n, spoke);
    }
    let at = next(n, spoke);
    Some(nursery.cons(n, move |nursery| next_prime(nursery, at, base)))
}

/// The edit distance of two words: a table of which each entry is a thunk of one or three others.
fn edit<E: ThunkEntry>(nursery: &Nursery<'_, E>, size: u64) -> u64 {
    let mut row: Vec<_> = (0..=size).map(|at| nursery.ready(at)).collect();
    for i in 0..size {
        let mut left = nursery.ready(i + 1);
        let mut next = vec![left];
        for j in 0..size {
            let (corner, above) = (row[j as usize], row[j as usize + 1]);
            left = nursery.thunk(move |nursery| match letter_of(i, 1) == letter_of(j, 2) {
                true => corner.force(nursery),
                false => 1 + left.force(nursery).min(above.force(nursery)).min(corner.force(nursery)),
            });
            next.push(left);
        }
        row = next;
    }
    row[size as usize].force(nursery)
}

/// The digits of e behind the point, as a number modulo a prime: from the list 1, 1, 1, .. of a
/// number with the bases 2, 3, 4, .. (D. A. Turner).
fn digits<E: ThunkEntry>(nursery: &Nursery<'_, E>, size: u64) -> u64 {
    let mut mixed = nursery.unfold((), |()| Some((1, ())));
    let mut answer = 0;
    for _ in 0..size {
        let Some(cell) = carried(nursery, 2, 0, mixed.map(nursery, |n| 10 * n)) else { break };
        answer = (10 * answer + cell.head) % 1_000_000_007;
        mixed = cell.tail;
    }
    answer
}

/// `digit`, and the digits of the list behind it, in the bases from `base` on, with the carries.
fn carried<'r, E: ThunkEntry>(
    nursery: &Nursery<'r, E>,
    base: u64,
    digit: u64,
    list: LazyList<'r, u64, E>,
) -> Option<&'r Cons<'r, u64, E>> {
    let &Cons { head, tail } = list.force(nursery)?;
    let rest = nursery.thunk(move |nursery| carried(nursery, base + 1, head, tail));
    // No carry from behind makes a difference, or it has to be known.
    let carry = if head % base + 9 < base { head / base } else { rest.force(nursery)?.head / base };
    Some(nursery.cons(digit + carry, move |nursery| {
        let rest = rest.force(nursery)?;
        Some(nursery.put(Cons { head: rest.head % base, tail: rest.tail }))
    }))
}
