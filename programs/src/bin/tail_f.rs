//! `tail -f`: follows a file that another thread writes to, and sees each line once it is whole.
//!
//! # Prints
//! ```text
//! 1: the loom is set up
//! 2: the warp is on
//! 3: the weft is in
//! ```
//!
//! # CPU time
//! 200 ms.

use selvedge::fs::{self, File};
use selvedge::{sleep, spawn};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

async fn write(path: PathBuf) -> io::Result<()> {
    let mut log = File::options().append(true).create(true).open(path).await?;
    for piece in ["the loom is set up\nthe ", "warp is on\n", "the weft", " is in\n"] {
        log.write_all(piece.as_bytes()).await?;
        sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        let path = std::env::temp_dir().join(format!("tail-f-{}", std::process::id()));
        fs::write(&path, "").await?;
        let writer = spawn(write(path.clone()));

        let mut reader = File::open(&path).await?.buffered();
        let (mut line, mut number) = (String::new(), 0);
        while number < 3 {
            // A line without its end is not whole yet, and a file that has ended may go on.
            reader.read_line(&mut line).await?;
            if !line.ends_with('\n') {
                sleep(Duration::from_millis(2)).await;
                continue;
            }
            number += 1;
            print!("{number}: {line}");
            line.clear();
        }
        writer.await??;
        fs::remove_file(path).await?;
        Ok(())
    })
}
