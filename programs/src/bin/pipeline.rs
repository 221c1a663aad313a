//! A pipeline: each stage is a thread that takes from one queue and puts into the next; the end of
//! one stage ends the next.
//!
//! # Prints
//! ```text
//! 1-warp 4-weft 7-selvedge
//! ```

use selvedge::spawn;
use selvedge::sync::BoundedFifo;
use std::process::ExitCode;

fn main() -> ExitCode {
    selvedge::run_main(async {
        let (lines_in, lines) = BoundedFifo::ends(2);
        let (words_in, words) = BoundedFifo::ends(2);
        let (long_in, long) = BoundedFifo::ends(2);

        let read = spawn(async move {
            for line in ["a warp", "is no weft", "but a selvedge is both"] {
                lines_in.put(line.to_string()).await?;
            }
            Ok::<(), selvedge::sync::ClosedError<String>>(())
        });
        let split = spawn(async move {
            while let Some(line) = lines.take().await {
                for word in line.split(' ') {
                    words_in.put(word.to_string()).await?;
                }
            }
            Ok::<(), selvedge::sync::ClosedError<String>>(())
        });
        let filter = spawn(async move {
            let mut number = 0;
            while let Some(word) = words.take().await {
                if word.len() >= 4 && word != "both" {
                    long_in.put(format!("{number}-{word}")).await?;
                }
                number += 1;
            }
            Ok::<(), selvedge::sync::ClosedError<String>>(())
        });

        let mut found = Vec::new();
        while let Some(word) = long.take().await {
            found.push(word);
        }
        for stage in [read, split, filter] {
            stage.await??;
        }
        println!("{}", found.join(" "));
        Ok(())
    })
}
