//! `cp`: a file by `fs::copy`, one through a pipe, and one by lines that are changed on the way.
//!
//! # Prints
//! ```text
//! 200000 bytes were copied, and the same through a pipe
//! the first of 1000 lines is LINE 0 OF WHAT IS COPIED
//! ```

use selvedge::fs::{self, File};
use selvedge::io::copy;
use selvedge::{pipe, spawn};
use std::process::ExitCode;

fn main() -> ExitCode {
    selvedge::run_main(async {
        let home = std::env::temp_dir().join(format!("file-copy-{}", std::process::id()));
        fs::create_dir_all(&home).await?;
        let (original, copied, piped, changed) =
            (home.join("original"), home.join("copied"), home.join("piped"), home.join("changed"));
        let lines =
            |count: u32| -> String { (0..count).map(|n| format!("line {n} of what is copied\n")).collect() };
        fs::write(&original, &lines(10_000)[..200_000]).await?;

        let bytes = fs::copy(&original, &copied).await?;
        let (sender, receiver) = pipe::pipe()?;
        let source = File::open(&original).await?;
        let writer = spawn(async move { copy(source, sender).await }); // and drops the pipe's end
        copy(receiver, File::create(&piped).await?).await?;
        let same = writer.await?? == bytes && fs::read(&piped).await? == fs::read(&copied).await?;
        println!(
            "{bytes} bytes were copied, and {} through a pipe",
            if same { "the same" } else { "others" }
        );

        fs::write(&original, lines(1000)).await?;
        let mut lines = File::open(&original).await?.lines();
        let mut to = File::create(&changed).await?;
        let mut count = 0;
        while let Some(line) = lines.next().await? {
            to.write_all((line.to_uppercase() + "\n").as_bytes()).await?;
            count += 1;
        }
        let changed = fs::read_to_string(changed).await?;
        println!("the first of {count} lines is {}", changed.lines().next().unwrap_or_default());
        fs::remove_dir_all(home).await?;
        Ok(())
    })
}
