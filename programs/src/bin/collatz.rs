//! A graph as a stage of a pipeline: the lengths of Collatz chains. The numbers come from a file, a
//! line each. The graph computes the length for each number that any chain meets, once. The answers
//! go on in the order of the lines.
//!
//! # Prints
//! ```text
//! 27 111
//! 82 110
//! 41 109
//! 97 118
//! 1 0
//! 27 111
//! through_graph: item 1, offset 0: step length((0, 0)) failed: no chain begins at 0
//! ```
//!
//! # CPU time
//! 200 milliseconds

use selvedge::cnc::schedulers::Stealing;
use selvedge::flow::{self, GraphEnds, through_graph};
use selvedge::fs;
use selvedge::pipeline::*;
use std::process::ExitCode;

/// The number after `n` in its chain.
fn next(n: u64) -> u64 {
    if n.is_multiple_of(2) { n / 2 } else { 3 * n + 1 }
}

async fn print_lengths(path: &std::path::Path) -> Result<(), StageError> {
    let numbers = flow::file(path)
        >> group_by(line())
        >> try_lift121(|line: &[u8]| str::from_utf8(line).unwrap_or_default().parse::<u64>())
            .named("numbers");
    let lengths = through_graph(100, Stealing::new(2), |graph| {
        // A tag that was put before has no effect.
        let met = graph.memoised_tags::<u64>("met");
        let asked = graph.tags::<(u64, u64)>("asked");
        let (known, answers) = (graph.items::<u64, u32>("known"), graph.items("answers"));
        graph.prescribe(
            met,
            "go on",
            move |n, step| if n == 1 { Ok(()) } else { step.put_tag(met, next(n)) },
        );
        graph.prescribe(met, "count", move |n, step| {
            let length = if n == 1 { 0 } else { step.get(known, next(n))? + 1 };
            step.put(known, n, length)
        });
        graph.prescribe(asked, "length", move |(number, n), step| {
            if n == 0 {
                return Err(std::io::Error::other("no chain begins at 0").into());
            }
            let length = *step.get(known, n)?;
            step.put(answers, number, (n, length))
        });
        GraphEnds::new(
            move |env, number, n: &u64| {
                if *n > 0 {
                    env.put_tag(met, *n)?;
                }
                env.put_tag(asked, (number, *n))
            },
            answers,
        )
    });
    let print = |(): &mut (), (n, length): &(u64, u32)| println!("{n} {length}");
    (numbers >> lengths >> fold((), print)).run().await
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        let path = std::env::temp_dir().join(format!("collatz-{}", std::process::id()));
        fs::write(&path, "27\n82\n41\n97\n1\n27\n").await?;
        print_lengths(&path).await?;
        fs::write(&path, "0\n").await?;
        if let Err(failure) = print_lengths(&path).await {
            println!("{failure}");
        }
        fs::remove_file(path).await?;
        Ok(())
    })
}
