//! A supervisor of processes: it starts one again that fails, gives up after three times, and stops
//! the others when it ends.
//!
//! # Prints
//! ```text
//! fails: ended with exit status: 3, started again
//! fails: ended with exit status: 3, started again
//! fails: ended with exit status: 3, given up
//! sleeps: asked to end, signal: 15 (SIGTERM)
//! deaf: killed, signal: 9 (SIGKILL)
//! ```

use selvedge::process::{Child, Command};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

async fn start(script: &str) -> io::Result<Child> {
    Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).kill_on_drop(true).spawn().await
}

async fn supervise(name: &str, script: &str) -> io::Result<()> {
    for attempt in 1..=3 {
        let status = start(script).await?.wait().await?;
        if status.success() {
            break;
        }
        println!("{name}: ended with {status}, {}", if attempt < 3 { "started again" } else { "given up" });
    }
    Ok(())
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        supervise("fails", "exit 3").await?;

        let mut sleeps = start("exec sleep 3600").await?;
        // A program that takes no heed of SIGTERM. It says so before it is asked.
        let mut deaf = start("trap '' TERM; echo ready; exec 2>&-; while :; do sleep 1; done").await?;
        let said = deaf.stdout.take().expect("it is piped");
        said.read_exact(&mut [0; 6]).await?;

        let status = sleeps.stop(Duration::from_secs(5)).await?;
        println!("sleeps: {}, {status}", if status.signal() == Some(15) { "asked to end" } else { "?" });
        let status = deaf.stop(Duration::from_millis(50)).await?;
        println!("deaf: {}, {status}", if status.signal() == Some(9) { "killed" } else { "?" });
        Ok(())
    })
}
