//! A small figure for the tests of this directory: the JSON as `figures --json` writes it, and the
//! same as a `Figure`. Only the tests of `figures.rs`, `measured.rs`, `plot.rs` and `publish.rs`
//! call it.
//!
//! It has each kind of row once: a peer in two variants, a bound, a peer that is missing, and
//! missed aims. A new kind of row is added here first.

use super::measured::{self, Figure};
use serde_json::{Value, json};

/// Two cases, with a peer in two variants, a bound, a peer that is missing, and missed aims.
pub(super) fn json() -> Value {
    json!({
        "figure": "threads-switch", "title": "a yield", "machine": "2 cores", "commit": "0a1b2c3",
        "load_average": "0.1", "notes": ["a note"],
        "rows": [
            {"case": "1", "system": "selvedge", "unit": "ns", "value": 4.567, "low": 4.5,
             "high": 4.7, "ratio": 1.0, "command": "selvedge 1", "absent": null},
            {"case": "1", "system": "tokio", "unit": "ns", "value": 58.1, "ratio": 12.72,
             "required_ratio": 15.0, "reached": false},
            {"case": "1", "system": "tokio, in its own way", "unit": "ns", "value": 100.0,
             "ratio": 21.9},
            {"case": "1", "system": "limit", "unit": "ns", "value": 1.0, "ratio": 0.2},
            {"case": "1", "system": "C++20 <queue>", "unit": "ns", "value": 2.0, "ratio": 0.44},
            {"case": "1", "system": "GHC", "unit": "ns", "absent": "missing <ghc>"},
            {"case": "2", "system": "selvedge", "unit": "B", "value": 16.0,
             "required_at_most": 16.0, "reached": true},
            {"case": "2", "system": "selvedge MVar", "unit": "B", "value": 24.0,
             "required_at_most": 16.0, "reached": false, "reason": "it is larger"},
        ],
    })
}

pub(super) fn figure() -> Figure {
    let text = Value::Array(vec![json()]).to_string();
    measured::figures("sample", &text).expect("the sample is a figure").remove(0)
}

/// A figure with one row of ours and one peer's for each size, and the cases named by `case`.
pub(super) fn sizes(sizes: &[u64], case: impl Fn(u64) -> String) -> Figure {
    let rows = sizes.iter().flat_map(|&size| {
        let (ours, peer) = (10.0 + size as f64 / 1e6, 50.0);
        [
            json!({"case": case(size), "system": "selvedge", "unit": "ns", "value": ours}),
            json!({"case": case(size), "system": "tokio", "unit": "ns", "value": peer,
                "ratio": peer / ours, "required_ratio": 4.0, "reached": true}),
        ]
    });
    let figure = json!([{
        "figure": "sizes", "title": "t", "machine": "m", "commit": "c", "rows": rows.collect::<Vec<_>>()
    }]);
    measured::figures("sample", &figure.to_string()).expect("the sample is a figure").remove(0)
}
