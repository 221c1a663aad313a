//! The crate `mpi` (rsmpi): the programs of message passing, as the ranks of a job.
//!
//! usage: mpi-rust latency ROUNDS | bandwidth BYTES | collectives CALLS | crowded CALLS
//!        mpi-rust trapezoid TRAPEZOIDS
//! Rank 0 prints `name value` lines: times in nanoseconds, and the answers that are checked. A time
//! is the median of nine blocks.

use mpi::collective::SystemOperation;
use mpi::request::{RequestCollection, multiple_scope};
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use std::f64::consts::PI;
use std::time::Instant;

const BLOCKS: usize = 9;

/// A rank, and what it has counted.
struct Rank {
    world: SimpleCommunicator,
    rank: i32,
    ranks: i32,
    messages: u64,
    wrong: u64,
}

impl Rank {
    fn print(&self, name: &str, value: f64) {
        if self.rank == 0 {
            println!("{name} {value:.4}");
        }
    }

    fn print_answers(&self) {
        if self.rank == 0 {
            println!("messages {}\nwrong {}", self.messages, self.wrong);
        }
    }

    fn answer(&mut self, is_right: bool) {
        self.messages += 1;
        self.wrong += u64::from(!is_right);
    }

    fn median(&mut self, mut block: impl FnMut(&mut Rank) -> f64) -> f64 {
        let mut blocks: Vec<f64> = (0..BLOCKS).map(|_| block(self)).collect();
        blocks.sort_by(f64::total_cmp);
        blocks[BLOCKS / 2]
    }

    /// Messages of one size to and fro.
    fn to_and_fro(&mut self, size: usize, rounds: u64) -> f64 {
        let (mut going, mut coming) = (vec![0_u8; size], vec![0_u8; size]);
        let last = size - 1;
        self.world.barrier();
        let other = self.world.process_at_rank(1 - self.rank);
        let mut right = 0;
        let begin = Instant::now();
        for round in 0..rounds {
            if self.rank == 0 {
                (going[0], going[last]) = (round as u8, round as u8);
                other.send(&going[..]);
                other.receive_into(&mut coming[..]);
                let expected = (round as u8).wrapping_add(1);
                right += u64::from([coming[0], coming[last]] == [expected; 2]);
            } else {
                other.receive_into(&mut coming[..]);
                (going[0], going[last]) = (coming[0].wrapping_add(1), coming[last].wrapping_add(1));
                other.send(&going[..]);
            }
        }
        let each = begin.elapsed().as_nanos() as f64 / (2 * rounds) as f64;
        self.messages += rounds;
        self.wrong += if self.rank == 0 { rounds - right } else { 0 };
        each
    }

    fn latency(&mut self, rounds: u64) {
        for (name, size, fewer) in [("bytes_1", 1, 1), ("bytes_1024", 1024, 1), ("bytes_65536", 65_536, 4)] {
            let each = self.median(|rank| rank.to_and_fro(size, rounds / fewer));
            self.print(name, each);
        }
        self.print_answers();
    }

    /// Messages of one size in one direction.
    fn stream(&mut self, size: usize, window: usize, windows: u64) -> f64 {
        // Ones, because zeros would be memory that the system has not given yet.
        let mut memory = vec![1_u8; size];
        self.world.barrier();
        let other = self.world.process_at_rank(1 - self.rank);
        let mut wrong = 0;
        let begin = Instant::now();
        for number in 0..windows {
            let mark = number as u8;
            if self.rank == 0 {
                (memory[0], memory[size - 1]) = (mark, mark);
                multiple_scope(window, |scope, requests: &mut RequestCollection<[u8]>| {
                    for _ in 0..window {
                        requests.add(other.immediate_send(scope, &memory[..]));
                    }
                    requests.wait_all(&mut Vec::new());
                });
                wrong += other.receive::<u64>().0;
            } else {
                let mut faults = 0_u64;
                for _ in 0..window {
                    other.receive_into(&mut memory[..]);
                    faults += u64::from([memory[0], memory[size - 1]] != [mark; 2]);
                }
                other.send(&faults);
            }
        }
        let rate = (size * window) as f64 * windows as f64 / begin.elapsed().as_nanos() as f64;
        self.messages += window as u64 * windows;
        self.wrong += wrong;
        rate
    }

    fn bandwidth(&mut self, bytes: u64) {
        let streams = [
            ("bytes_4096", 4096, 64),
            ("bytes_65536", 65_536, 32),
            ("bytes_1048576", 1 << 20, 8),
            ("bytes_4194304", 4 << 20, 4),
        ];
        for (name, size, window) in streams {
            let windows = (bytes / (size * window) as u64).max(1);
            let rate = self.median(|rank| rank.stream(size, window, windows));
            self.print(name, rate);
        }
        self.print_answers();
    }

    /// One call after the other.
    fn calls(&mut self, count: u64, mut call: impl FnMut(&Rank, u64) -> bool) -> f64 {
        self.world.barrier();
        let begin = Instant::now();
        for number in 0..count {
            let is_right = call(self, number);
            self.answer(is_right);
        }
        begin.elapsed().as_nanos() as f64 / count as f64
    }

    fn barrier_and_allreduce(&mut self, count: u64) {
        let barrier = self.median(|rank| {
            rank.calls(count, |rank, _| {
                rank.world.barrier();
                true
            })
        });
        self.print("barrier", barrier);
        let allreduce = self.median(|rank| {
            rank.calls(count, |rank, call| {
                let mut sum = 0_u64;
                rank.world.all_reduce_into(&(call + rank.rank as u64), &mut sum, SystemOperation::sum());
                let ranks = rank.ranks as u64;
                sum == ranks * call + ranks * (ranks - 1) / 2
            })
        });
        self.print("allreduce", allreduce);
    }

    fn print_all_answers(&mut self) {
        let own = self.wrong;
        self.world.all_reduce_into(&own, &mut self.wrong, SystemOperation::sum());
        self.print_answers();
    }

    fn collectives(&mut self, count: u64) {
        const EACH: usize = 512;
        self.barrier_and_allreduce(count);
        let mut memory = vec![0_u8; 65_536];
        let bcast = self.median(|rank| {
            rank.calls(count / 4, |rank, call| {
                let root = call as i32 % rank.ranks;
                if root == rank.rank {
                    (memory[0], memory[65_535]) = (call as u8, call as u8);
                }
                rank.world.process_at_rank(root).broadcast_into(&mut memory[..]);
                [memory[0], memory[65_535]] == [call as u8; 2]
            })
        });
        self.print("bcast", bcast);
        let mut going = vec![0_u64; EACH * self.ranks as usize];
        let mut coming = going.clone();
        let alltoall = self.median(|rank| {
            rank.calls(count / 2, |rank, call| {
                let (own, ranks) = (rank.rank as usize, rank.ranks as usize);
                for to in 0..ranks {
                    going[to * EACH] = call + (own + to) as u64;
                }
                rank.world.all_to_all_into(&going[..], &mut coming[..]);
                (0..ranks).all(|from| coming[from * EACH] == call + (from + own) as u64)
            })
        });
        self.print("alltoall", alltoall);
        self.print_all_answers();
    }

    /// The area under the sine from 0 to 999 pi.
    fn trapezoid(&mut self, count: u64) {
        let h = 999.0 * PI / count as f64;
        let (rank, ranks) = (self.rank as u64, self.ranks as u64);
        let (first, last) = (count * rank / ranks, count * (rank + 1) / ranks);
        let at = |i: u64| (i as f64 * h).sin();
        self.world.barrier();
        let begin = Instant::now();
        let sum = (first + 1..last).map(at).sum::<f64>() + (at(first) + at(last)) / 2.0;
        let mut area = 0.0;
        self.world.all_reduce_into(&(sum * h), &mut area, SystemOperation::sum());
        self.print("seconds", begin.elapsed().as_secs_f64());
        if self.rank == 0 {
            println!("micro_area {:.0}", area * 1e6);
        }
    }
}

fn main() {
    let universe = mpi::initialize().expect("MPI has not been started before");
    let world = universe.world();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [program, number] = &words[..] else { panic!("usage: mpi-rust PROGRAM NUMBER") };
    let number: u64 = number.parse().expect("a number");
    let (rank, ranks) = (world.rank(), world.size());
    let mut rank = Rank { world, rank, ranks, messages: 0, wrong: 0 };
    match program.as_str() {
        "latency" => rank.latency(number),
        "bandwidth" => rank.bandwidth(number),
        "collectives" => rank.collectives(number),
        "crowded" => {
            rank.barrier_and_allreduce(number);
            rank.print_all_answers();
        }
        "trapezoid" => rank.trapezoid(number),
        other => panic!("no such program: {other}"),
    }
}
