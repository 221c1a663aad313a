//! The page of the guide: its zone is read, its command lines are understood, and its table of
//! limits says the defaults.

use crate::common::*;
use selvedge_dns::options::{DnsRequest, parse};
use selvedge_dns::zone::file;
use std::ffi::OsString;
use std::path::Path;

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/dns.md");
    std::fs::read_to_string(path).unwrap()
}

/// The pieces of a text that stand between two others.
fn between<'a>(text: &'a str, start: &str, end: &str) -> Vec<&'a str> {
    text.split(start).skip(1).map(|rest| rest.split(end).next().unwrap()).collect()
}

#[test]
fn the_zone_of_the_page_is_right() {
    let page = page();
    let zones = between(&page, "```zone\n", "```");
    assert_eq!(zones.len(), 1);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("example.org.zone");
    std::fs::write(&path, zones[0]).unwrap();
    file::read(&name("example.org"), &path).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn the_command_lines_of_the_page_are_understood() {
    let page = page();
    let lines: Vec<&str> = page
        .lines()
        .filter_map(|line| line.split_once("selvedge-dns --").filter(|(before, _)| !before.contains('`')))
        .map(|(_, options)| options)
        .collect();
    assert!(lines.len() >= 6, "{lines:?}");
    let in_table = between(&page, "| `--", "` |")
        .into_iter()
        .filter(|options| options.contains(' ') && !options.contains('\n'));
    for options in lines.into_iter().chain(in_table) {
        let words = format!("--{options}");
        let request = parse(words.split_whitespace().map(OsString::from));
        request.unwrap_or_else(|error| panic!("{words}: {error}"));
    }
}

#[test]
fn the_defaults_of_the_page_are_those_of_the_program() {
    let Ok(DnsRequest::Serve(options)) = parse(["--iterate".into()]) else { panic!("a server") };
    for (value, option) in [
        ("50 a second".to_string(), "rate"),
        ("1,000; more are dropped".into(), "queries"),
        ("200; a further one is closed".into(), "clients"),
        (format!("{} seconds", options.idle.as_secs()), "idle"),
        (format!("{} MiB", options.cache_bytes >> 20), "cache"),
    ] {
        assert!(page().contains(&format!("| {value} | `--{option}` |")), "--{option}");
    }
    assert_eq!((options.rate, options.queries, options.tcp_clients), (50, 1000, 200));
}
