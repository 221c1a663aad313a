//! The reason why a value will never be there: [`NoValueError`].
//!
//! `fail` in `node/typed.rs` makes it from the payload of a panic, and the table of `circle.rs`
//! makes it for a circle of values. The node keeps it, and each later force returns a clone, or
//! panics.
//!
//! A payload cannot be cloned, and many threads may fail for one reason. A text is copied for each
//! of them, as the type that it was. Any other payload goes to the first that throws or takes it,
//! and the others throw a message.

use selvedge_core::internal::quietly;
use std::any::Any;
use std::fmt;
use std::mem;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};

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
pub struct NoValueError {
    reason: Arc<Reason>,
}

enum Reason {
    /// The text of the program, of a panic that has it as its payload.
    Literal(&'static str),
    Text(String),
    Loop(String),
    Payload(KeptPayload),
}

/// A payload that is no text, until a thread throws or takes it.
struct KeptPayload(Mutex<Option<Box<dyn Any + Send>>>);

impl KeptPayload {
    fn take(&self) -> Option<Box<dyn Any + Send>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for KeptPayload {
    fn drop(&mut self) {
        // A node that is freed does not unwind.
        quietly(|| drop(mem::take(&mut self.0)));
    }
}

/// The message for a payload that is no text.
const NO_TEXT: &str = "an exception that is not text";

impl NoValueError {
    fn of(reason: Reason) -> NoValueError {
        NoValueError { reason: Arc::new(reason) }
    }

    /// The reason for a body that ended with this payload.
    pub(crate) fn from_payload(payload: Box<dyn Any + Send>) -> NoValueError {
        let payload = match payload.downcast::<NoValueError>() {
            Ok(failed) => return *failed,
            Err(payload) => payload,
        };
        let payload = match payload.downcast::<String>() {
            Ok(text) => return NoValueError::of(Reason::Text(*text)),
            Err(payload) => payload,
        };
        NoValueError::of(match payload.downcast::<&'static str>() {
            Ok(text) => Reason::Literal(*text),
            Err(payload) => Reason::Payload(KeptPayload(Mutex::new(Some(payload)))),
        })
    }

    /// The reason for a body that was unwound because its thread was cancelled, and that cannot go
    /// on.
    pub(crate) fn from_cancelled() -> NoValueError {
        NoValueError::of(Reason::Literal(
            "the thread that made the value was cancelled in the middle of its body",
        ))
    }

    /// The reason for a force that is refused because `depth` bodies nest on the native stack.
    #[cold]
    pub(crate) fn from_depth(depth: u32) -> NoValueError {
        NoValueError::of(Reason::Text(format!(
            "lazy values need one another {depth} deep, each behind a waker of its own (a combinator, block_on, or wait in \
             direct style), which nests on the native stack: let the bodies be futures that await one another"
        )))
    }

    /// The reason for a circle of values. `circle` has their names; each needs the next, and the
    /// last one needs the first.
    pub(crate) fn from_circle(circle: &[String]) -> NoValueError {
        let first = circle.first().map_or("", String::as_str);
        let names = circle.iter().map(String::as_str).chain([first]);
        let names: Vec<&str> = names.collect();
        NoValueError::of(Reason::Loop(format!("<<loop>>: {}", names.join(" needs "))))
    }

    /// The message of the panic. For a circle it names each value of the circle, with the place in
    /// the program that made the value. If the payload of the panic was no text, it says so.
    pub fn message(&self) -> &str {
        match &*self.reason {
            Reason::Literal(text) => text,
            Reason::Text(text) | Reason::Loop(text) => text,
            Reason::Payload(_) => NO_TEXT,
        }
    }

    /// Whether the value needs its own value.
    pub fn is_loop(&self) -> bool {
        match &*self.reason {
            Reason::Loop(_) => true,
            // It has gone through a body that needed the value of a circle, as a panic.
            Reason::Text(text) => text.starts_with("<<loop>>: "),
            Reason::Literal(_) | Reason::Payload(_) => false,
        }
    }

    /// The payload of the panic, if it is no text, and no thread has taken it or panicked with it
    /// before.
    ///
    /// # Examples
    /// ```
    /// use selvedge::lazy::Lazy;
    ///
    /// let broken = Lazy::<u32>::new(|| std::panic::panic_any(7u8));
    /// # std::panic::set_hook(Box::new(|_| {}));
    /// let failed = selvedge::block_on(broken.try_force()).unwrap_err();
    /// assert_eq!(*failed.take_payload().unwrap().downcast::<u8>().unwrap(), 7);
    /// assert!(failed.take_payload().is_none());
    /// ```
    pub fn take_payload(&self) -> Option<Box<dyn Any + Send>> {
        match &*self.reason {
            Reason::Payload(payload) => payload.take(),
            _ => None,
        }
    }

    /// Panics with the payload, or with the text. The panic hook is not called, because it was
    /// called when the body panicked.
    pub(crate) fn throw(self) -> ! {
        resume_unwind(match &*self.reason {
            Reason::Literal(text) => Box::new(*text),
            Reason::Text(text) | Reason::Loop(text) => Box::new(text.clone()),
            Reason::Payload(payload) => payload.take().unwrap_or_else(|| Box::new(String::from(NO_TEXT))),
        })
    }
}

impl fmt::Display for NoValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl fmt::Debug for NoValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NoValueError({:?})", self.message())
    }
}

impl std::error::Error for NoValueError {}
