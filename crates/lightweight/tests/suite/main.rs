//! One suite, instantiated for each implementation: what the operations do, what `start` tells, and
//! that every implementation runs a program in the same order.

mod applications;
mod awaited;
mod direct;
mod indirect;
mod networks;

use std::sync::{Arc, Mutex};

/// What threads write down, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn say(&self, text: impl Into<String>) {
        self.0.lock().unwrap().push(text.into());
    }

    fn text(&self) -> String {
        self.0.lock().unwrap().join(" ")
    }

    /// The same words, where the kernel chooses the order.
    fn words(&self) -> Vec<String> {
        let mut words = self.0.lock().unwrap().clone();
        words.sort_unstable();
        words
    }

    /// A value that says when it is dropped.
    fn guard(&self, text: &str) -> SaysDropped {
        SaysDropped(self.clone(), text.to_owned())
    }
}

struct SaysDropped(Log, String);

impl Drop for SaysDropped {
    fn drop(&mut self) {
        self.0.say(format!("drop-{}", self.1));
    }
}

/// How many threads the test of many threads has.
const MANY: u64 = if cfg!(miri) { 20 } else { 2000 };
