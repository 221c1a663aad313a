//! The reason why a value will never be there: [`NoValue`].
//!
//! `fail` in `node/typed.rs` makes it from the payload of a panic, and the table of `circle.rs`
//! makes it for a circle of values. The node keeps it, and each later force returns a clone, or
//! panics with its message.
//!
//! The payload itself is dropped, because many threads may fail with one reason. So only the text
//! of a panic is kept.

use std::any::Any;
use std::fmt;
use std::panic::resume_unwind;
use std::sync::Arc;

/// The reason why a lazy value will never be there: its body panicked, or needs its own value.
///
/// The reason is kept with the value, and each force of it fails with the same reason.
///
/// # Examples
/// ```
/// use selvedge::lazy::Lazy;
///
/// let broken = Lazy::<u32>::new(|| panic!("no warp"));
/// # std::panic::set_hook(Box::new(|_| {}));
/// for _ in 0..2 {
///     let failed = selvedge::block_on(broken.try_force()).unwrap_err();
///     assert_eq!(failed.message(), "no warp");
///     assert!(!failed.is_loop());
/// }
/// ```
#[derive(Clone)]
pub struct NoValue {
    message: Arc<str>,
}

/// The begin of the message of a value that needs its own value.
const LOOP: &str = "<<loop>>: ";

impl NoValue {
    /// The reason for a body that ended with this payload.
    pub(crate) fn from_payload(payload: &(dyn Any + Send)) -> NoValue {
        if let Some(failed) = payload.downcast_ref::<NoValue>() {
            return failed.clone();
        }
        let text = payload.downcast_ref::<&'static str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        NoValue { message: text.unwrap_or("an exception that is not text").into() }
    }

    /// The reason for a circle of values. `circle` has their names; each needs the next, and the
    /// last one needs the first.
    pub(crate) fn from_circle(circle: &[String]) -> NoValue {
        let first = circle.first().map_or("", String::as_str);
        let names = circle.iter().map(String::as_str).chain([first]);
        let names: Vec<&str> = names.collect();
        NoValue { message: format!("{LOOP}{}", names.join(" needs ")).into() }
    }

    /// The message of the panic. For a circle it names each value of the circle, with the place in
    /// the program that made the value.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the value needs its own value.
    pub fn is_loop(&self) -> bool {
        self.message.starts_with(LOOP)
    }

    /// Panics with the message. The panic hook is not called, because it was called when the body
    /// panicked.
    pub(crate) fn throw(self) -> ! {
        resume_unwind(Box::new(self.message.to_string()))
    }
}

impl fmt::Display for NoValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for NoValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NoValue({:?})", self.message)
    }
}

impl std::error::Error for NoValue {}
