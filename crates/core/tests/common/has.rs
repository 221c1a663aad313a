//! The auto traits of a type. The tests of `sync` use this file too.

use std::marker::PhantomData;
use std::ops::Deref;

/// Detects whether a type has an auto trait. The inherent method exists only if the type has the
/// trait; otherwise the method behind `Deref` is found.
pub(crate) struct Has<T: ?Sized>(Neither<T>);
pub(crate) struct Neither<T: ?Sized>(PhantomData<*const T>);

impl<T: ?Sized> Has<T> {
    pub(crate) fn new() -> Has<T> {
        Has(Neither(PhantomData))
    }
}

impl<T: ?Sized> Deref for Has<T> {
    type Target = Neither<T>;
    fn deref(&self) -> &Neither<T> {
        &self.0
    }
}

impl<T: ?Sized + Send> Has<T> {
    pub(crate) fn send(&self) -> bool {
        true
    }
}
impl<T: ?Sized + Sync> Has<T> {
    pub(crate) fn sync(&self) -> bool {
        true
    }
}
impl<T: ?Sized> Neither<T> {
    pub(crate) fn send(&self) -> bool {
        false
    }
    pub(crate) fn sync(&self) -> bool {
        false
    }
}

/// Whether a type is `Send`, and whether it is `Sync`.
macro_rules! has {
    ($t:ty) => {{
        let has = $crate::has::Has::<$t>::new();
        (has.send(), has.sync())
    }};
}
