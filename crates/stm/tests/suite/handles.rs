//! Handles: weak handles, handles as keys, and default handles.

use selvedge_stm::{
    Engine, TArray, TBQueue, TChan, TCounter, TMVar, TMap, TNode, TQueue, TSem, TSet, TVar, TWord,
    TWordArray, Tried, Tx, WeakTVar, atomically_under, reclaim,
};
use selvedge_sync::wait_blocking;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

fn run<E: Engine, R>(body: impl FnMut(&Tx<E>) -> Tried<R>) -> R {
    wait_blocking(atomically_under::<E, R>(body))
}

/// Reclaims until the condition holds: another test may be in a transaction meanwhile.
fn reclaim_until(holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(60), "it does not become true");
        reclaim();
        thread::yield_now();
    }
}

fn a_weak_handle_leads_to_the_variable_as_long_as_that_has_a_handle<E: Engine>() {
    let var = TVar::<_, E>::with_engine("warp".to_string());
    let (weak, word) = (var.downgrade(), TWord::<u8, E>::named_with_engine("stock", 3));
    let weak_word = word.downgrade();
    let other = weak.upgrade().expect("it has a handle");
    assert!(other == var && weak == var.downgrade() && weak == weak.clone());
    drop(var);
    run::<E, _>(|tx| weak.upgrade().expect("it has a handle").modify(tx, |text| format!("{text}, weft")));
    assert_eq!(other.read_now(String::clone), "warp, weft");
    assert_eq!(weak_word.upgrade().expect("it has a handle").name().as_deref(), Some("stock"));
    drop((other, word));
    assert!(weak.upgrade().is_none() && weak_word.upgrade().is_none());
    reclaim_until(|| weak.upgrade().is_none());
}

/// The value goes, and the weak handle keeps nothing of it.
fn a_weak_handle_keeps_no_value<E: Engine>() {
    let value = Arc::new(());
    let var = TVar::<_, E>::with_engine(value.clone());
    let weak = var.downgrade();
    drop(var);
    reclaim_until(|| Arc::strong_count(&value) == 1);
    assert!(weak.upgrade().is_none());
}

/// The handle in a replaced value counts until the value is dropped.
fn a_variable_in_garbage_ends_with_the_garbage<E: Engine>() {
    let inner = TVar::<u32, E>::with_engine(7);
    let weak = inner.downgrade();
    let outer = TVar::<Option<TVar<u32, E>>, E>::with_engine(Some(inner));
    run::<E, _>(|tx| {
        outer.write(tx, None);
        let still = weak.upgrade().expect("the old value has a handle");
        still.modify(tx, |n| n + 1)
    });
    if let Some(still) = weak.upgrade() {
        assert_eq!(still.read_now(|n| *n), 8);
    }
    reclaim_until(|| weak.upgrade().is_none());
}

struct Node<E: Engine> {
    parent: Option<WeakTVar<Node<E>, E>>,
    children: Vec<TVar<Node<E>, E>>,
    mark: Arc<()>,
}

impl<E: Engine> Clone for Node<E> {
    fn clone(&self) -> Self {
        Node { parent: self.parent.clone(), children: self.children.clone(), mark: self.mark.clone() }
    }
}

/// A parent owns its children, and these know their parent.
fn a_tree_with_ways_back_is_dropped<E: Engine>() {
    let mark = Arc::new(());
    let new = |parent| TVar::<_, E>::with_engine(Node { parent, children: Vec::new(), mark: mark.clone() });
    let root = new(None);
    for _ in 0..3 {
        let child = new(Some(root.downgrade()));
        run::<E, _>(|tx| root.modify_mut(tx, |node| node.children.push(child.clone())));
    }
    let parent = run::<E, _>(|tx| {
        let child = root.read(tx)?.children[2].read(tx)?;
        Ok(child.parent.as_ref().and_then(WeakTVar::upgrade))
    });
    assert!(parent == Some(root.clone()));
    drop((parent, root));
    reclaim_until(|| Arc::strong_count(&mark) == 1);
}

/// The destructor of a value upgrades the weak handle to the variable of that value.
fn a_destructor_finds_no_handle_to_its_own_variable<E: Engine>() {
    struct Looks<E: Engine>(Option<WeakTVar<Looks<E>, E>>, Arc<AtomicBool>);
    impl<E: Engine> Drop for Looks<E> {
        fn drop(&mut self) {
            if let Some(weak) = &self.0 {
                self.1.store(weak.upgrade().is_none(), Ordering::SeqCst);
            }
        }
    }
    let finds_none = Arc::new(AtomicBool::new(false));
    let var = TVar::<_, E>::with_engine(Looks(None, finds_none.clone()));
    run::<E, _>(|tx| {
        var.write(tx, Looks(Some(var.downgrade()), finds_none.clone()));
        Ok(())
    });
    drop(var);
    reclaim_until(|| finds_none.load(Ordering::SeqCst));
}

/// Waiting transactions and weak handles share a box.
fn waiters_and_weak_handles_do_not_disturb_each_other<E: Engine>() {
    let var = TWord::<u32, E>::with_engine(0);
    let mut context = Context::from_waker(Waker::noop());
    let waits = || {
        atomically_under::<E, _>(|tx| {
            let n = var.read(tx)?;
            tx.check(n > 0).map(|()| n)
        })
    };
    let (mut first, mut given_up) = (pin!(waits()), Box::pin(waits()));
    assert_eq!(first.as_mut().poll(&mut context), Poll::Pending);
    let weak = var.downgrade();
    assert_eq!(given_up.as_mut().poll(&mut context), Poll::Pending);
    drop(given_up);
    let mut second = pin!(waits());
    assert_eq!(second.as_mut().poll(&mut context), Poll::Pending);
    assert!(weak.upgrade().is_some_and(|other| other == var));
    var.write_now(5);
    assert_eq!(first.as_mut().poll(&mut context), Poll::Ready(5));
    assert_eq!(second.as_mut().poll(&mut context), Poll::Ready(5));
    assert!(weak == var.downgrade());
    assert!(weak.upgrade().is_some_and(|other| other == var));
}

/// OS threads upgrade while the last handle goes and the variable is freed.
fn an_upgrade_meets_the_end_of_the_variable<E: Engine>() {
    for _ in 0..if cfg!(miri) { 5 } else { 300 } {
        let value = Arc::new(41);
        let seen: Weak<i32> = Arc::downgrade(&value);
        let var = TVar::<_, E>::with_engine(value);
        let weak = var.downgrade();
        thread::scope(|scope| {
            let looks = || {
                for _ in 0..20 {
                    let Some(var) = weak.upgrade() else { return };
                    run::<E, _>(|tx| var.modify_mut(tx, |n| *n = Arc::new(**n)));
                    assert_eq!(var.read_now(|n| **n), 41);
                    reclaim();
                }
            };
            scope.spawn(looks);
            scope.spawn(looks);
            drop(var);
            reclaim();
        });
        reclaim_until(|| seen.upgrade().is_none());
        assert!(weak.upgrade().is_none());
    }
}

fn each_operation_gives_what_its_name_says<E: Engine>() {
    let (text, word) = (TVar::<_, E>::with_engine("a".to_string()), TWord::<u8, E>::with_engine(1));
    let (texts, words) =
        (TArray::<String, E>::with_engine(["a".to_string()]), TWordArray::<u8, E>::with_engine([1]));
    let given = run::<E, _>(|tx| {
        let lens = (
            text.state(tx, |old| (old.len(), format!("{old}b")))?,
            texts.state(tx, 0, |old| (old.len(), format!("{old}b")))?,
        );
        let last = (text.modify_mut(tx, |text| text.pop())?, texts.modify_mut(tx, 0, |text| text.pop())?);
        let words = (word.state(tx, |n| (n + 10, n + 1))?, words.state(tx, 0, |n| (n + 10, n + 1))?);
        Ok((lens, last, words))
    });
    assert_eq!(given, ((1, 1), (Some('b'), Some('b')), (11, 11)));
    assert_eq!((text.read_now(String::clone), word.read_now()), ("a".to_string(), 2));
    assert_eq!((texts.read_now(0, String::clone), words.read_now(0)), ("a".to_string(), 2));
}

/// A clone is the same key, and another one with an equal value is not.
fn is_key<H: Eq + Hash + Clone>(make: impl Fn() -> H) {
    let (one, other) = (make(), make());
    let keys: HashSet<H> = [one.clone(), other.clone(), one.clone()].into_iter().collect();
    assert_eq!(keys.len(), 2);
    assert!(keys.contains(&one) && keys.contains(&other) && !keys.contains(&make()));
}

#[expect(clippy::mutable_key_type, reason = "the key is the identity, which does not change")]
fn handles_are_keys_by_identity<E: Engine>() {
    is_key(|| TVar::<u8, E>::with_engine(1));
    is_key(|| TWord::<u8, E>::with_engine(1));
    is_key(|| TMVar::<u8, E>::with_engine(Some(1)));
    is_key(TQueue::<u8, E>::with_engine);
    is_key(|| TBQueue::<u8, E>::with_engine(1));
    is_key(TChan::<u8, E>::with_engine);
    is_key(TChan::<u8, E>::broadcast_with_engine);
    is_key(|| TSem::<E>::with_engine(1));
    is_key(TCounter::<E>::with_engine);
    is_key(|| TArray::<u8, E>::with_engine([1]));
    is_key(|| TWordArray::<u8, E>::with_engine([1]));
    is_key(|| TNode::<u8, 1, E>::new(1, [None]));
    let word = TWord::<u8, E>::with_engine(1);
    let weak = HashMap::from([(word.downgrade(), "one")]);
    assert_eq!(weak.get(&word.downgrade()), Some(&"one"));
}

struct All<E: Engine> {
    var: TVar<String, E>,
    word: TWord<u8, E>,
    place: TMVar<u8, E>,
    queue: TQueue<u8, E>,
    channel: TChan<u8, E>,
    counter: TCounter<E>,
    map: TMap<u8, u8, E>,
    set: TSet<u8, E>,
}

fn defaults_are_empty<E: Engine>() {
    let all = All::<E> {
        var: TVar::default(),
        word: TWord::default(),
        place: TMVar::default(),
        queue: TQueue::default(),
        channel: TChan::default(),
        counter: TCounter::default(),
        map: TMap::default(),
        set: TSet::default(),
    };
    run::<E, _>(|tx| {
        assert!(all.var.read(tx)?.is_empty() && all.word.read(tx)? == 0 && all.place.is_empty(tx)?);
        assert!(all.queue.is_empty(tx)? && all.channel.is_empty(tx)? && all.counter.read(tx)? == 0);
        assert!(all.map.is_empty(tx)? && all.set.is_empty(tx)?);
        Ok(())
    });
}

under_each_engine! {
    a_weak_handle_leads_to_the_variable_as_long_as_that_has_a_handle
    a_weak_handle_keeps_no_value
    a_variable_in_garbage_ends_with_the_garbage
    a_tree_with_ways_back_is_dropped
    a_destructor_finds_no_handle_to_its_own_variable
    waiters_and_weak_handles_do_not_disturb_each_other
    an_upgrade_meets_the_end_of_the_variable
    each_operation_gives_what_its_name_says
    handles_are_keys_by_identity
    defaults_are_empty
}
