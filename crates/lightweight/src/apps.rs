//! The three applications, each in direct style, in indirect style and with `await`; and their
//! answers by plain sequential code.
//!
//! Each is one text for each style, over the traits of [the interface](crate). A program runs
//! within one `start`, and gives what it has found together with what `start` tells.

pub mod answers;
pub mod kpn;
pub mod sieve;
pub mod sorter;

use crate::RunEnd;
use std::sync::{Arc, Mutex, PoisonError};

/// What a program has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppFound {
    /// The numbers that it would print.
    pub numbers: Vec<u64>,
    /// How many threads it has created.
    pub threads: u64,
    /// What `start` has told.
    pub ended: RunEnd,
}

/// The numbers that threads print, and the threads that they create.
#[derive(Debug, Clone, Default)]
struct Printed(Arc<Mutex<(Vec<u64>, u64)>>);

impl Printed {
    fn with<A>(&self, with: impl FnOnce(&mut (Vec<u64>, u64)) -> A) -> A {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Prints a number, and gives how many there are.
    fn print(&self, number: u64) -> usize {
        self.with(|(numbers, _)| {
            numbers.push(number);
            numbers.len()
        })
    }

    fn created(&self, threads: u64) {
        self.with(|(_, all)| *all += threads);
    }

    fn found(&self, ended: RunEnd) -> AppFound {
        let (numbers, threads) = self.with(std::mem::take);
        AppFound { numbers, threads, ended }
    }
}
