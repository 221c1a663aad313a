//! The auto traits of the objects and guards: which types may leave their OS thread. An auto trait
//! that appears by accident is a hole in soundness.

use selvedge_sync::*;

const BOTH: (bool, bool) = (true, true);
const NONE: (bool, bool) = (false, false);

type NotSync = std::cell::Cell<u8>;
type NotSend = std::rc::Rc<u8>;
type OnlySync = std::sync::MutexGuard<'static, u8>;

#[test]
fn shared_objects_go_where_their_values_may() {
    assert_eq!([has!(MVar<NotSync>), has!(Fifo<NotSync>), has!(Mutex<NotSync>)], [BOTH; 3]);
    assert_eq!([has!(MVar<NotSend>), has!(Fifo<NotSend>), has!(Mutex<NotSend>)], [NONE; 3]);
}

#[test]
fn local_objects_stay() {
    assert_eq!([has!(MVar<u8, Local>), has!(Fifo<u8, Local>), has!(Mutex<u8, Local>)], [NONE; 3]);
    assert_eq!(has!(Guard<'static, u8, Local>), NONE);
}

#[test]
fn a_guard_is_as_good_as_a_reference_to_its_value() {
    assert_eq!(has!(Guard<'static, u8, Shared>), BOTH);
    assert_eq!(has!(Guard<'static, NotSync, Shared>), (true, false));
    assert_eq!(has!(Guard<'static, NotSend, Shared>), NONE);
    assert!(!has!(Guard<'static, OnlySync, Shared>).0);
}

type Sem<M> = Semaphore<M>;

#[test]
fn so_do_the_others() {
    assert_eq!([has!(BoundedFifo<NotSync>), has!(Putter<NotSync>), has!(Taker<NotSync>)], [BOTH; 3]);
    assert_eq!([has!(BoundedFifo<NotSend>), has!(Putter<NotSend>), has!(Taker<NotSend>)], [NONE; 3]);
    // A shared lock gives out `&T`.
    assert_eq!([has!(RwLock<u8>), has!(RwLock<NotSync>), has!(RwLock<NotSend>)], [BOTH, (true, false), NONE]);
    assert_eq!(
        [has!(OnceCell<u8>), has!(OnceCell<NotSync>), has!(OnceCell<NotSend>)],
        [BOTH, (true, false), NONE]
    );
    assert_eq!([has!(Promise<u8>), has!(Promise<NotSync>), has!(Promise<NotSend>)], [BOTH, NONE, NONE]);
    assert_eq!([has!(Fulfiller<u8>), has!(Fulfiller<NotSync>), has!(Fulfiller<NotSend>)], [BOTH, NONE, NONE]);
    assert_eq!([has!(Broadcaster<u8>), has!(Listener<u8>), has!(Setter<u8>), has!(Watcher<u8>)], [BOTH; 4]);
    assert_eq!([has!(Broadcaster<NotSync>), has!(Listener<NotSync>), has!(Setter<NotSync>)], [NONE; 3]);
    assert_eq!([has!(Sem<Shared>), has!(Condition), has!(Barrier), has!(Event), has!(Latch)], [BOTH; 5]);
}

#[test]
fn the_other_local_objects_stay() {
    assert_eq!([has!(BoundedFifo<u8, Local>), has!(Putter<u8, Local>), has!(Taker<u8, Local>)], [NONE; 3]);
    assert_eq!([has!(RwLock<u8, Local>), has!(OnceCell<u8, Local>), has!(Promise<u8, Local>)], [NONE; 3]);
    assert_eq!(
        [has!(Fulfiller<u8, Local>), has!(Broadcaster<u8, Local>), has!(Watcher<u8, Local>)],
        [NONE; 3]
    );
    assert_eq!(
        [has!(Sem<Local>), has!(Condition<Local>), has!(Barrier<Local>), has!(Event<Local>)],
        [NONE; 4]
    );
    assert_eq!([has!(ReadGuard<'static, u8, Local>), has!(WriteGuard<'static, u8, Local>)], [NONE; 2]);
    assert_eq!([has!(OwnedGuard<u8, Local>), has!(Permit<'static, Local>)], [NONE; 2]);
}

#[test]
fn the_other_guards_are_as_good_as_references() {
    assert_eq!(
        [has!(ReadGuard<'static, u8>), has!(WriteGuard<'static, u8>), has!(OwnedGuard<u8>)],
        [BOTH; 3]
    );
    assert_eq!(has!(OwnedGuard<NotSync>), (true, false));
    assert_eq!([has!(ReadGuard<'static, NotSync>), has!(ReadGuard<'static, NotSend>)], [NONE; 2]);
    assert!(!has!(WriteGuard<'static, NotSync>).1);
    assert_eq!([has!(WriteGuard<'static, NotSend>), has!(OwnedGuard<NotSend>)], [NONE; 2]);
    // Otherwise the guard could be dropped, and so the value unlocked, on another OS thread; and
    // the value could be moved out there.
    assert!(!has!(WriteGuard<'static, OnlySync>).0 && !has!(OwnedGuard<OnlySync>).0);
    assert_eq!([has!(Permit<'static>), has!(OwnedPermit<std::sync::Arc<Semaphore>>)], [BOTH; 2]);
}

/// The futures may move with their threads from one CPU to another.
#[test]
fn waits_move_with_their_threads() {
    fn moves<T: Send>(_: T) {}
    let (mutex, lock, semaphore) = (Mutex::new(0), RwLock::new(0), Semaphore::new(1));
    moves(mutex.lock());
    let owner = Owner::new();
    moves(mutex.checked_lock(&owner));
    moves(lock.read());
    moves(lock.write());
    moves(semaphore.acquire());
    moves(Semaphore::acquire_owned(&semaphore, 1));
    let (condition, barrier, event, cell) =
        (Condition::new(), Barrier::new(1), Event::new(), OnceCell::<u8>::new());
    moves(condition.wait(mutex.try_lock().unwrap()));
    moves(barrier.wait());
    moves(event.wait());
    moves(cell.get_or_init(|| async { 1 }));
    let (fifo, var, bounded) = (Fifo::<u8>::new(), MVar::<u8>::empty(), BoundedFifo::<u8>::new(1));
    moves((fifo.take(), var.take(), var.put(1), bounded.take(), bounded.put(1)));
    let (_fulfiller, promise) = Promise::<u8>::new();
    moves(promise.claim());
    let ((_broadcaster, mut listener), (_setter, mut watcher)) = (broadcast::<u8>(1), watch(0u8));
    moves(listener.listen());
    moves(watcher.changed());
}
