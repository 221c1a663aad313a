//! A parallel `grep`: each file is searched by a thread, and the lines are printed in the order of
//! the files.
//!
//! # Prints
//! ```text
//! b.txt:2: the selvedge keeps the cloth
//! c.txt:1: selvedge: self-edge
//! c.txt:3: a selvedge cannot ravel
//! ```

use selvedge::fs::{self, File};
use selvedge::spawn;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

async fn search(path: PathBuf, wanted: &str) -> io::Result<Vec<String>> {
    let name = path.file_name().unwrap_or_default().display().to_string();
    let mut lines = File::open(path).await?.lines();
    let (mut found, mut number) = (Vec::new(), 0);
    while let Some(line) = lines.next().await? {
        number += 1;
        if line.contains(wanted) {
            found.push(format!("{name}:{number}: {line}"));
        }
    }
    Ok(found)
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        let home = std::env::temp_dir().join(format!("grep-{}", std::process::id()));
        fs::create_dir(&home).await?;
        for (name, text) in [
            ("a.txt", "warp\nweft\n"),
            ("b.txt", "on both sides\nthe selvedge keeps the cloth\n"),
            ("c.txt", "selvedge: self-edge\nold word\na selvedge cannot ravel"),
        ] {
            fs::write(home.join(name), text).await?;
        }
        let searches: Vec<_> = fs::read_dir(&home)
            .await?
            .into_iter()
            .map(|entry| spawn(search(entry.path(), "selvedge")))
            .collect();
        for search in searches {
            for line in search.await?? {
                println!("{line}");
            }
        }
        fs::remove_dir_all(home).await?;
        Ok(())
    })
}
