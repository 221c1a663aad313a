//! A spreadsheet: each cell is a lazy value of the cells that it names. Two readers ask for cells,
//! each cell is computed once, and a cell that depends on itself says so.
//!
//! # Prints
//! ```text
//! total 10, twice 20, computed 5 of 8 cells
//! <<loop>> between 2 cells
//! ```

use selvedge::lazy::Lazy;
use selvedge::spawn;
use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

type Cells = Arc<OnceLock<HashMap<&'static str, Lazy<i64>>>>;

/// A cell that is the sum of others and a number.
fn sum_of(
    cells: &Cells,
    computed: &Arc<AtomicUsize>,
    names: &'static [&'static str],
    plus: i64,
) -> Lazy<i64> {
    let (cells, computed) = (cells.clone(), computed.clone());
    Lazy::future(async move {
        computed.fetch_add(1, Ordering::Relaxed);
        let mut sum = plus;
        for name in names {
            sum += cells.get().expect("the sheet is complete")[name].force().await;
        }
        sum
    })
}

fn sheet(computed: &Arc<AtomicUsize>) -> Cells {
    let cells = Cells::default();
    let cell = |names, plus| sum_of(&cells, computed, names, plus);
    let all = HashMap::from([
        ("a1", cell(&[], 1)),
        ("a2", cell(&["a1"], 1)),
        ("a3", cell(&["a2", "a1"], 4)),
        ("total", cell(&["a1", "a2", "a3"], 0)),
        ("twice", cell(&["total", "total"], 0)),
        ("unused", cell(&["a1"], 100)),
        ("egg", cell(&["hen"], 0).named("egg")),
        ("hen", cell(&["egg"], 0).named("hen")),
    ]);
    assert!(cells.set(all).is_ok());
    cells
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        let computed = Arc::new(AtomicUsize::new(0));
        let cells = sheet(&computed);
        let read = |name: &'static str| {
            let cells = cells.clone();
            spawn(async move { *cells.get().expect("the sheet is complete")[name].force().await })
        };
        let (total, twice) = (read("total"), read("twice"));
        let (total, twice) = (total.await?, twice.await?);
        println!("total {total}, twice {twice}, computed {} of 8 cells", computed.load(Ordering::Relaxed));
        let hen = cells.get().expect("the sheet is complete")["hen"].clone();
        let failed = hen.try_force().await.expect_err("the hen needs the egg");
        println!("<<loop>> between {} cells", failed.message().matches(" needs ").count());
        Ok(())
    })
}
