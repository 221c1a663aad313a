//! All interleavings of an owner and thieves on a ring: every item goes to exactly one of them, and
//! no slot has two users.

use loom::thread;
use selvedge_sched::{RunRing, Stealer};

type Item = Box<u32>;

fn all<const N: usize>(mut ring: RunRing<Item, N>) -> Vec<u32> {
    std::iter::from_fn(|| ring.pop()).map(|item| *item).collect()
}

fn steal_once<const N: usize>(victim: Stealer<Item, N>) -> thread::JoinHandle<Vec<u32>> {
    thread::spawn(move || {
        let mut mine = RunRing::<Item, N>::new();
        let first = victim.steal_into(&mut mine).map(|item| *item);
        first.into_iter().chain(all(mine)).collect()
    })
}

fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(check);
}

#[test]
fn the_owner_pushes_and_pops_while_a_thief_steals() {
    model(|| {
        let mut ring = RunRing::<Item, 4>::new();
        ring.push(Box::new(0)).unwrap();
        ring.push(Box::new(1)).unwrap();
        let thief = steal_once(ring.stealer());
        let mut popped = Vec::new();
        for item in 2..5 {
            if let Err(refused) = ring.push(Box::new(item)) {
                popped.push(*refused);
            }
            popped.extend(ring.pop().map(|item| *item));
        }
        popped.extend(all(ring));
        popped.extend(thief.join().unwrap());
        popped.sort();
        assert_eq!(popped, [0, 1, 2, 3, 4]);
    });
}

#[test]
fn a_full_ring_is_not_written_to_where_a_thief_still_reads() {
    model(|| {
        let mut ring = RunRing::<Item, 2>::new();
        ring.push(Box::new(0)).unwrap();
        ring.push(Box::new(1)).unwrap();
        let thief = steal_once(ring.stealer());
        let mut seen = Vec::new();
        for item in 2..5 {
            match ring.push(Box::new(item)) {
                Ok(()) => {}
                Err(refused) => seen.push(*refused),
            }
        }
        seen.extend(all(ring));
        seen.extend(thief.join().unwrap());
        seen.sort();
        assert_eq!(seen, [0, 1, 2, 3, 4]);
    });
}

#[test]
fn two_thieves_share_what_is_there() {
    model(|| {
        let mut ring = RunRing::<Item, 4>::new();
        (0..4).for_each(|i| ring.push(Box::new(i)).unwrap());
        let thieves = [steal_once(ring.stealer()), steal_once(ring.stealer())];
        let mut seen: Vec<u32> = ring.pop().map(|item| *item).into_iter().collect();
        for thief in thieves {
            seen.extend(thief.join().unwrap());
        }
        seen.extend(all(ring));
        seen.sort();
        assert_eq!(seen, [0, 1, 2, 3]);
    });
}

#[test]
fn what_a_claim_has_taken_is_written_over_only_when_it_is_read() {
    model(|| {
        let mut ring = RunRing::<Item, 4>::new();
        (0..4).for_each(|i| ring.push(Box::new(i)).unwrap());
        assert_eq!(ring.claim(2).taken, 2);
        let thief = steal_once(ring.stealer());
        let mut seen = Vec::new();
        for item in 4..6 {
            if let Err(refused) = ring.push(Box::new(item)) {
                seen.push(*refused);
            }
        }
        seen.extend(ring.take().map(|item| *item));
        seen.extend(all(ring));
        seen.extend(thief.join().unwrap());
        seen.sort();
        assert_eq!(seen, (0..6).collect::<Vec<_>>());
    });
}
