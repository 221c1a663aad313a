//! Formats of Rust crates: how long it takes to make bytes of a value and a value of the bytes.
//!
//! usage: formats-rust postcard | bitcode | rkyv
//! Prints `name value` lines: the median of nine blocks for each value, in nanoseconds, and how
//! many values came back changed.

use std::hint::black_box;
use std::time::Instant;

const BLOCKS: usize = 9;

type Small = (bool, u64, String, [u32; 3]);
type Row = (u32, f64, String, bool);

fn small() -> Small {
    (true, 1 << 40, "a short text".to_owned(), [1, 2, 3])
}

fn numbers() -> Vec<i64> {
    (0..50_001).map(|number| number * 7919).collect()
}

fn floats() -> Vec<f64> {
    vec![0.5; 1 << 17]
}

fn rows() -> Vec<Row> {
    let row = |number: u32| (number, f64::from(number) / 2.0, format!("row {number}"), number % 3 == 0);
    (0..5000).map(row).collect()
}

/// Prints the time of one value's way, and gives 1 if it comes back changed.
fn measured<T: PartialEq>(name: &str, value: T, times: u64, way: impl Fn(&T) -> T) -> u64 {
    let mut blocks: Vec<f64> = (0..BLOCKS)
        .map(|_| {
            let began = Instant::now();
            for _ in 0..times {
                black_box(way(black_box(&value)));
            }
            began.elapsed().as_nanos() as f64 / times as f64
        })
        .collect();
    blocks.sort_by(f64::total_cmp);
    println!("{name} {:.4}", blocks[BLOCKS / 2]);
    u64::from(way(&value) != value)
}

/// Measures all values by one format.
macro_rules! all {
    ($value:ident => $back:expr) => {
        measured("small", small(), 2000, |$value| $back)
            + measured("numbers", numbers(), 5, |$value| $back)
            + measured("floats", floats(), 5, |$value| $back)
            + measured("rows", rows(), 5, |$value| $back)
    };
}

const BYTES: &str = "the bytes are those of a value";

fn main() {
    let wrong = match std::env::args().nth(1).as_deref() {
        Some("postcard") => all!(value => {
            let bytes = postcard::to_allocvec(value).expect("memory is enough");
            postcard::from_bytes(&bytes).expect(BYTES)
        }),
        Some("bitcode") => all!(value => bitcode::decode(&bitcode::encode(value)).expect(BYTES)),
        Some("rkyv") => all!(value => {
            let bytes = rkyv::to_bytes::<rkyv::rancor::Error>(value).expect("memory is enough");
            rkyv::from_bytes::<_, rkyv::rancor::Error>(&bytes).expect(BYTES)
        }),
        other => panic!("no such format: {other:?}"),
    };
    println!("wrong {wrong}");
}
