//! Child processes: their output, their input, and how they end. A child that takes too long is
//! stopped.
//!
//! # Prints
//! ```text
//! 8 children said 0 1 2 3 4 5 6 7
//! sort said weft, warp, selvedge
//! false ended with exit status: 1
//! sleep took too long
//! ```

use selvedge::process::Command;
use selvedge::scope::join_all;
use selvedge::time::timeout;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

fn main() -> ExitCode {
    selvedge::run_main(async {
        let said =
            join_all((0..8).map(|n| async move { Command::new("echo").arg(n.to_string()).output().await }))
                .await;
        let mut words = Vec::new();
        for output in said {
            words.push(String::from_utf8(output?.stdout)?.trim().to_string());
        }
        println!("8 children said {}", words.join(" "));

        let mut sort =
            Command::new("sort").arg("-r").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().await?;
        let input = sort.stdin.take().expect("it is piped");
        input.write_all(b"warp\nselvedge\nweft\n").await?;
        drop(input);
        let sorted = String::from_utf8(sort.wait_with_output().await?.stdout)?;
        println!("sort said {}", sorted.lines().collect::<Vec<_>>().join(", "));

        println!("false ended with {}", Command::new("false").status().await?);

        let mut sleep = Command::new("sleep").arg("3600").spawn().await?;
        if timeout(Duration::from_millis(50), sleep.wait()).await.is_err() {
            sleep.kill().await?;
            println!("sleep took too long");
        }
        Ok(())
    })
}
