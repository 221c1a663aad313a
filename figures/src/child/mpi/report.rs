//! What a program about message passing reports: times as medians of blocks, its answers, and a
//! wrong answer if it is told to give one. Each program of this directory calls it.

use selvedge_mpi::{Communicator, Error};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How many blocks a program measures. It shows their median, because one disturbance of the
/// machine lasts longer than a block. The number is odd.
pub(super) const BLOCKS: usize = 9;

static WRONG_BY: AtomicU64 = AtomicU64::new(0);

/// From now on the answers of this process are wrong by this number.
pub(super) fn be_wrong_by(fault: u64) {
    WRONG_BY.store(fault, Ordering::Relaxed);
}

/// By how much the answers of this process must be wrong.
pub(super) fn wrong_by() -> u64 {
    WRONG_BY.load(Ordering::Relaxed)
}

/// The messages or calls of a rank, and how many of them had a wrong answer.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) messages: u64,
    pub(super) wrong: u64,
}

impl Tally {
    pub(super) fn add(&mut self, is_right: bool) {
        self.messages += 1;
        self.wrong += u64::from(!is_right);
    }

    /// Rank 0 prints its answers.
    pub(super) fn print(&self, world: &Communicator) {
        if world.rank() == 0 {
            println!("messages {}", self.messages);
            println!("wrong {}", self.wrong);
        }
    }

    /// Rank 0 prints the wrong answers of all ranks.
    pub(super) async fn print_all(mut self, world: &Communicator) -> Result<(), Error> {
        self.wrong = world.allreduce(self.wrong, selvedge_mpi::op::sum).await?;
        self.print(world);
        Ok(())
    }
}

/// Rank 0 prints a number.
pub(super) fn print(world: &Communicator, name: &str, value: f64) {
    if world.rank() == 0 {
        println!("{name} {value:.4}");
    }
}

/// The median of the blocks' times, by the operations of a block, in nanoseconds.
pub(super) fn each(blocks: &[Duration], operations: u64) -> f64 {
    median(blocks.iter().map(|block| block.as_nanos() as f64).collect()) / operations as f64
}

/// The middle one of the blocks' values.
pub(super) fn median(mut blocks: Vec<f64>) -> f64 {
    blocks.sort_by(f64::total_cmp);
    blocks[blocks.len() / 2]
}

/// Writes the number of a message at its begin and its end.
pub(super) fn mark(memory: &mut [u8], number: u8) {
    let last = memory.len() - 1;
    (memory[0], memory[last]) = (number, number);
}

/// Whether a message has this number at its begin and its end.
pub(super) fn is_marked(memory: &[u8], number: u8) -> bool {
    [memory[0], memory[memory.len() - 1]] == [number; 2]
}

/// What a rank answers to a number: the next one, or another if this run must give a wrong answer.
pub(super) fn next(number: u64) -> u64 {
    number + 1 + wrong_by()
}
