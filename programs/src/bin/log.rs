//! A log: several threads append to it, each line is on the disk before its thread goes on, and it
//! is rotated when it has become long. At the end all parts are read by lines.
//!
//! # Prints
//! ```text
//! 4 parts: 120 lines, 30 of each thread, each in its order
//! the first part is full, and the last one begins with a whole line
//! ```

use selvedge::fs::{self, File};
use selvedge::scope::Threads;
use selvedge::sync::Mutex;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// The log begins a new part when it has this number of bytes.
const PART: u64 = 600;

/// The file that lines are appended to, and the number of parts before it.
struct Log {
    path: PathBuf,
    file: File,
    parts: usize,
}

impl Log {
    async fn open(path: PathBuf) -> io::Result<Log> {
        let file = Log::append_to(&path).await?;
        Ok(Log { path, file, parts: 0 })
    }

    async fn append_to(path: &Path) -> io::Result<File> {
        File::options().append(true).create(true).open(path).await
    }

    /// Appends a line. When this returns, the line is on the disk.
    async fn append(&mut self, line: &str) -> io::Result<()> {
        self.file.write_all(format!("{line}\n").as_bytes()).await?;
        self.file.sync_data().await?;
        if self.file.metadata().await?.len() >= PART {
            self.rotate().await?;
        }
        Ok(())
    }

    /// Gives the file the name of an old part, and begins a new one.
    async fn rotate(&mut self) -> io::Result<()> {
        let old = part(&self.path, self.parts);
        assert!(!fs::exists(&old).await?, "no part is overwritten");
        fs::rename(&self.path, old).await?;
        self.file = Log::append_to(&self.path).await?;
        self.parts += 1;
        // The new names are on the disk when their directory is.
        let directory = self.path.parent().unwrap_or(Path::new("."));
        File::open(directory).await?.sync_all().await
    }
}

/// The path of an old part of a log.
fn part(path: &Path, number: usize) -> PathBuf {
    path.with_extension(format!("{number}"))
}

async fn lines_of(path: &Path) -> io::Result<Vec<String>> {
    let (mut lines, mut all) = (File::open(path).await?.lines(), Vec::new());
    while let Some(line) = lines.next().await? {
        all.push(line);
    }
    Ok(all)
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        let home = std::env::temp_dir().join(format!("log-{}", std::process::id()));
        fs::create_dir(&home).await?;
        let path = home.join("log");
        let log = Arc::new(Mutex::new(Log::open(path.clone()).await?));

        let mut writers = Threads::new();
        for writer in 0..4 {
            let log = log.clone();
            writers.spawn(async move {
                for number in 0..30 {
                    log.lock().await.append(&format!("thread {writer}, line {number:02}")).await?;
                }
                io::Result::Ok(())
            });
        }
        while let Some(writer) = writers.next().await {
            writer??;
        }

        let parts = log.lock().await.parts;
        let mut lines = Vec::new();
        for number in 0..parts {
            lines.extend(lines_of(&part(&path, number)).await?);
        }
        let last = lines_of(&path).await?;
        lines.extend(last.iter().cloned());
        for writer in 0..4 {
            let expected: Vec<_> = (0..30).map(|n| format!("thread {writer}, line {n:02}")).collect();
            let of_writer = lines.iter().filter(|line| line.starts_with(&format!("thread {writer},")));
            assert!(of_writer.eq(&expected));
        }
        println!("{} parts: {} lines, 30 of each thread, each in its order", parts + 1, lines.len());

        let first = fs::metadata(part(&path, 0)).await?.len();
        let state = if first >= PART { "full" } else { "short" };
        let begins = if last[0].starts_with("thread ") { "a whole line" } else { "a part of a line" };
        println!("the first part is {state}, and the last one begins with {begins}");
        fs::remove_dir_all(home).await?;
        Ok(())
    })
}
