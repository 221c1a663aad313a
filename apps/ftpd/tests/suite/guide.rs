//! The page of the guide: the options that it names, and the commands of clients that it shows.

use crate::harness::{files, serve_users};
use std::fs;
use std::process::Command;

const PAGE: &str = include_str!("../../../../docs/guide/ftp.md");

#[test]
fn the_page_names_options_that_there_are() {
    let help = Command::new(env!("CARGO_BIN_EXE_selvedge-ftpd")).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let known: Vec<&str> = help.split_whitespace().filter(|word| word.starts_with("--")).collect();
    let servers = PAGE.lines().filter(|line| line.starts_with("selvedge-ftpd "));
    let named: Vec<&str> =
        servers.flat_map(str::split_whitespace).filter(|word| word.starts_with("--")).collect();
    assert!(named.len() >= 5, "{named:?}");
    for option in named {
        assert!(known.contains(&option), "{option}");
    }
}

/// Runs each `curl` of the page in order.
#[test]
fn the_commands_of_the_page() {
    let root = files();
    fs::rename(root.path().join("lines.txt"), root.path().join("cloth.txt")).unwrap();
    let server = serve_users(root.path(), "r", &[]);
    let work = tempfile::tempdir().unwrap();
    fs::write(work.path().join("weft.txt"), "weft\n").unwrap();
    let commands: Vec<&str> = PAGE.lines().filter(|line| line.starts_with("curl ")).collect();
    assert!(commands.len() >= 4, "{commands:?}");
    for command in commands {
        let command = command.replace("localhost:2121", &server.address.to_string());
        let output = Command::new("sh").args(["-c", &command]).current_dir(&work).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(fs::read(work.path().join("cloth.txt")).unwrap(), b"warp\nweft\n");
    assert_eq!(fs::read(root.path().join("weft.txt")).unwrap(), b"weft\n");
}
