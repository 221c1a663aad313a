//! What may leave its OS thread and what must not. An auto trait that appears by accident is a hole in soundness.

use selvedge_core::{Local, Shared};
use selvedge_sync::{Fifo, Guard, MVar, Mutex};
use std::marker::PhantomData;
use std::ops::Deref;

/// Finds out whether a type has an auto trait: the inherent method is there only if it has, else the one behind `Deref` is found.
struct Has<T: ?Sized>(Neither<T>);
struct Neither<T: ?Sized>(PhantomData<*const T>);

impl<T: ?Sized> Deref for Has<T> {
    type Target = Neither<T>;
    fn deref(&self) -> &Neither<T> {
        &self.0
    }
}

impl<T: ?Sized + Send> Has<T> {
    fn send(&self) -> bool {
        true
    }
}
impl<T: ?Sized + Sync> Has<T> {
    fn sync(&self) -> bool {
        true
    }
}
impl<T: ?Sized> Neither<T> {
    fn send(&self) -> bool {
        false
    }
    fn sync(&self) -> bool {
        false
    }
}

macro_rules! has {
    ($t:ty) => {{
        let has = Has::<$t>(Neither(PhantomData));
        (has.send(), has.sync())
    }};
}

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
