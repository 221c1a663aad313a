//! Items in dashmap, beside those of the graphs of steps.
//!
//! ```text
//! usage: items-rust dashmap THREADS N
//! ```
//! The OS threads put N items under pairs of numbers, and after that they get them. It prints how
//! many million items were put and got in a second, and the sum of the items.
#![forbid(unsafe_code)]

use dashmap::DashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::process::ExitCode;
use std::thread;
use std::time::Instant;

/// The hash function of the Rust compiler, as `rustc-hash` 1 has it.
#[derive(Default)]
struct Fx(u64);

impl Fx {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for Fx {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.add(u64::from(byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.add(u64::from(number));
    }
}

fn key(number: u32) -> (u32, u32) {
    (number / 1024, number % 1024)
}

fn dashmap(threads: u32, n: u32) {
    let items: DashMap<(u32, u32), u64, BuildHasherDefault<Fx>> = DashMap::default();
    let part = |thread: u32| {
        let end = if thread + 1 == threads { n } else { n / threads * (thread + 1) };
        n / threads * thread..end
    };
    let first = Instant::now();
    thread::scope(|scope| {
        for thread in 0..threads {
            let items = &items;
            scope.spawn(move || {
                for number in part(thread) {
                    items.insert(key(number), u64::from(number));
                }
            });
        }
    });
    let sum: u64 = thread::scope(|scope| {
        let all: Vec<_> = (0..threads)
            .map(|thread| {
                let items = &items;
                // The items that another thread has put, if there is another thread.
                let numbers = part((thread + 1) % threads);
                let get = |number| *items.get(&key(number)).expect("it was put");
                scope.spawn(move || numbers.map(get).sum::<u64>())
            })
            .collect();
        all.into_iter().map(|part| part.join().expect("no thread panics")).sum()
    });
    println!("rate {:.4}", f64::from(n) / 1e6 / first.elapsed().as_secs_f64());
    println!("sum {sum}");
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<u32> = words.iter().skip(1).filter_map(|word| word.parse().ok()).collect();
    match (words.first().map(String::as_str), numbers.as_slice()) {
        (Some("dashmap"), &[threads, n]) => dashmap(threads, n),
        _ => return ExitCode::from(2),
    }
    ExitCode::SUCCESS
}
