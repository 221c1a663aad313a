//! Generators and streams of Rust crates, and a parser of XML.
//!
//! ```text
//! usage: streams-rust genawaiter N | async-stream N | quick-xml FILE
//! ```
//! The first two pass N numbers through five coroutines, the last one counts the elements with an
//! attribute `ply`. The programs print `name value` lines, as those of `figures` do; what each of
//! them does is said there, in `figures/src/child/streams`.
#![forbid(unsafe_code)]

use async_stream::stream;
use futures::executor::block_on;
use futures::{Stream, StreamExt, pin_mut};
use genawaiter::rc::Gen;
use nix::time::{ClockId, clock_gettime};
use quick_xml::Reader;
use quick_xml::events::Event;
use std::fs::File;
use std::io::BufReader;
use std::process::ExitCode;
use std::time::Instant;

fn cpu_ns() -> f64 {
    let cpu = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("Linux has this clock");
    cpu.tv_sec() as f64 * 1e9 + cpu.tv_nsec() as f64
}

fn spread(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn is_kept(n: u64) -> bool {
    n >> 62 != 0
}

fn fold_bits(n: u64) -> u64 {
    n ^ n >> 7
}

fn is_odd_mix(n: u64) -> bool {
    n & 7 != 0
}

/// A generator that takes numbers of `items`, and yields what `f` makes of them.
fn generator(items: impl Iterator<Item = u64>, f: impl Fn(u64) -> Option<u64>) -> impl Iterator<Item = u64> {
    Gen::new(|co| async move {
        for n in items {
            if let Some(n) = f(n) {
                co.yield_(n).await;
            }
        }
    })
    .into_iter()
}

fn genawaiter(n: u64) -> u64 {
    let numbers = generator(0..n, |n| Some(spread(n)));
    let numbers = generator(numbers, |n| is_kept(n).then_some(n));
    let numbers = generator(numbers, |n| Some(fold_bits(n)));
    let numbers = generator(numbers, |n| is_odd_mix(n).then_some(n));
    let numbers = generator(numbers, |n| Some(n.wrapping_add(3)));
    numbers.fold(0, |sum, n| sum.wrapping_add(n))
}

/// A stream that takes numbers of `items`, and yields what `f` makes of them.
fn streaming(items: impl Stream<Item = u64>, f: impl Fn(u64) -> Option<u64>) -> impl Stream<Item = u64> {
    stream! {
        pin_mut!(items);
        while let Some(n) = items.next().await {
            if let Some(n) = f(n) {
                yield n;
            }
        }
    }
}

fn async_stream(n: u64) -> u64 {
    let numbers = streaming(futures::stream::iter(0..n), |n| Some(spread(n)));
    let numbers = streaming(numbers, |n| is_kept(n).then_some(n));
    let numbers = streaming(numbers, |n| Some(fold_bits(n)));
    let numbers = streaming(numbers, |n| is_odd_mix(n).then_some(n));
    let numbers = streaming(numbers, |n| Some(n.wrapping_add(3)));
    block_on(numbers.fold(0, |sum: u64, n| async move { sum.wrapping_add(n) }))
}

fn numbers(n: u64, run: impl FnOnce(u64) -> u64) {
    let (first, wall) = (cpu_ns(), Instant::now());
    let sum = run(n);
    println!("ns {:.4}", (cpu_ns() - first) / n as f64);
    println!("wall_ns {:.4}", wall.elapsed().as_nanos() as f64 / n as f64);
    println!("sum {}", sum >> 16);
}

/// A loop over the events of a document.
fn quick_xml(path: &str) -> Result<(), Box<dyn std::error::Error>> {
    let length = std::fs::metadata(path)?.len();
    let wall = Instant::now();
    let mut reader = Reader::from_reader(BufReader::with_capacity(128 << 10, File::open(path)?));
    let (mut block, mut count) = (Vec::new(), 0u64);
    loop {
        match reader.read_event_into(&mut block)? {
            Event::Start(tag) | Event::Empty(tag) => {
                count += u64::from(tag.try_get_attribute("ply")?.is_some());
            }
            Event::Eof => break,
            _ => {}
        }
        block.clear();
    }
    println!("rate {:.3}", length as f64 / 1e6 / wall.elapsed().as_secs_f64());
    println!("count {count}");
    Ok(())
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |word: &str| word.parse::<u64>();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["genawaiter", n] if number(n).is_ok() => numbers(number(n).unwrap_or_default(), genawaiter),
        ["async-stream", n] if number(n).is_ok() => numbers(number(n).unwrap_or_default(), async_stream),
        ["quick-xml", path] => {
            if let Err(error) = quick_xml(path) {
                eprintln!("streams-rust: {path}: {error}");
                return ExitCode::FAILURE;
            }
        }
        _ => {
            eprintln!("streams-rust: no such program: {words:?}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
