//! `du`: how much is in a tree of directories, with a thread for each directory.
//!
//! # Prints
//! ```text
//! 12 directories, 24 files, 4104 bytes
//! ```

use selvedge::fs;
use selvedge::scope::Threads;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Default)]
struct Sum {
    directories: u64,
    files: u64,
    bytes: u64,
}

/// The size of the files in one directory, and the directories in it.
async fn look(directory: PathBuf) -> io::Result<(Sum, Vec<PathBuf>)> {
    let (mut sum, mut below) = (Sum { directories: 1, ..Sum::default() }, Vec::new());
    for entry in fs::read_dir(&directory).await? {
        if entry.file_type()?.is_dir() {
            below.push(entry.path());
        } else {
            sum.files += 1;
            sum.bytes += entry.metadata().await?.len();
        }
    }
    Ok((sum, below))
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        let root = std::env::temp_dir().join(format!("du-{}", std::process::id()));
        for directory in ["a/b/c", "a/b/d", "a/e", "f/g", "f/h", "i/j/k"] {
            fs::create_dir_all(root.join(directory)).await?;
        }
        for directory in ["", "a", "a/b", "a/b/c", "a/b/d", "a/e", "f", "f/g", "f/h", "i", "i/j", "i/j/k"] {
            fs::write(root.join(directory).join("one"), [b'1'; 339]).await?;
            fs::symlink("one", root.join(directory).join("two")).await?;
        }

        let (mut threads, mut sum) = (Threads::new(), Sum::default());
        threads.spawn(look(root.clone()));
        while let Some(found) = threads.next().await {
            let (found, below) = found??;
            sum.directories += found.directories;
            sum.files += found.files;
            sum.bytes += found.bytes;
            for directory in below {
                threads.spawn(look(directory));
            }
        }
        fs::remove_dir_all(root).await?;
        println!("{} directories, {} files, {} bytes", sum.directories, sum.files, sum.bytes);
        Ok(())
    })
}
