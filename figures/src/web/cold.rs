//! The figure about a site that is larger than memory: random ones of many files, read from the
//! disk, through the kernel's page cache and past it. The server is in a control group with little
//! memory, so that the kernel keeps few of the files. Before each run the kernel forgets all of
//! them.

use super::load::Load;
use super::server::{Log, SetUp, start_as};
use super::site::{File, Site};
use super::{Candidate, compete, rate_and_cpu};
use crate::effort::{Effort, Purpose};
use crate::figure::Figure;
use crate::machine::Machine;
use crate::pinned::{BOTH_CPUS, SERVER_CPU};
use crate::table::Table;
use std::fs;
use std::path::Path;

/// The figure of this file.
pub(crate) const FIGURES: &[Figure] =
    &[Figure { name: "web-disk", about: "files that are not in memory", measure: cold }];

/// The files, each of 16 KiB, and how many when small numbers are enough.
const FILES: (usize, usize) = (128 << 10, 256);
const BYTES: usize = 16 << 10;

/// The memory of a server and of the files that the kernel keeps for it.
const MEMORY_BYTES: u64 = 256 << 20;

/// The server's own cache, where it reads past the kernel's: that of the paper.
const CACHE_BYTES: u64 = 100 << 20;

/// The control group of the servers.
const GROUP: &str = "/sys/fs/cgroup/memory/selvedge-figures";

fn selvedge(set_up: &SetUp) -> Result<Vec<String>, String> {
    set_up.configured(&format!("workers = 1\n[[route]]\ndirectory = '{}'\n", set_up.root))
}

fn with_own_cache(set_up: &SetUp) -> Result<Vec<String>, String> {
    set_up.configured(&format!(
        "workers = 1\ncache.direct = {CACHE_BYTES}\n[[route]]\ndirectory = '{}'\n",
        set_up.root
    ))
}

fn nginx_with_threads(set_up: &SetUp) -> Result<Vec<String>, String> {
    let http = format!(
        "  sendfile on; aio threads; access_log off;\n\
         \x20 open_file_cache max=1000 inactive=60s;\n  server {{ listen 127.0.0.1:{}; root {}; }}\n",
        set_up.port, set_up.root
    );
    set_up.nginx_with(1, &http)
}

/// `web-disk`.
pub(crate) fn cold(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let faults = effort.purpose == Purpose::Faults;
    let small = effort.is_small();
    let files = if small { FILES.1 } else { FILES.0 };
    let site = Site::create(0)?;
    let list = many(&site, files)?;
    let is_limited = !small && limit();
    let mut all = Vec::new();
    let points: &[usize] = if small { &[16] } else { &[1, 16, 128, 1024] };
    for &connections in points {
        let file = File { path: "/files/0/0.html", bytes: BYTES + usize::from(faults) };
        let seconds = if small { 1 } else { effort.seconds * 2 };
        let load =
            Load::new(file, 1, seconds)?.connections(connections).files(list.clone()).forgetting(!small);
        let candidate =
            |system: &str, ours: bool, configure: &dyn Fn(&SetUp) -> Result<Vec<String>, String>| {
                Candidate::start(system, ours, &BOTH_CPUS[..1], effort, || {
                    let name = format!("{system} {connections}");
                    start_as(&name, Log::Off, &site, &[SERVER_CPU], |set_up| {
                        let words = configure(set_up)?;
                        Ok(if is_limited { within_group(words) } else { words })
                    })
                })
            };
        let candidates = vec![
            candidate("selvedge-httpd", true, &selvedge),
            candidate("selvedge-httpd, own cache", true, &with_own_cache),
            candidate("nginx, aio threads", false, &nginx_with_threads),
        ];
        let (contenders, samples) = compete("web-disk", file, &load, candidates, effort)?;
        let word = if connections == 1 { "connection" } else { "connections" };
        all.extend(rate_and_cpu(&format!("{connections} {word}: "), &contenders, &samples));
    }
    // The group is empty when the servers have ended.
    let _ = fs::remove_dir(GROUP);
    let memory = match is_limited {
        true => format!("a control group gives the server and its page cache {} MiB", MEMORY_BYTES >> 20),
        false => {
            "the server's memory is not limited, because there is no control group for it here".to_owned()
        }
    };
    Ok(Table {
        name: "web-disk",
        title: format!(
            "random ones of {files} files of 16 KiB, not in memory at the beginning; one worker on CPU 0, client on CPU 1"
        ),
        machine,
        rows: all,
        notes: vec![
            memory,
            format!(
                "own cache: `cache.direct` of {} MiB; files are read past the page cache, by io_uring",
                CACHE_BYTES >> 20
            ),
            "the disk is that of the machine: see `disk-random` for what it gives".to_owned(),
        ],
    })
}

/// Writes the files, and a list of their paths. Returns where the list is.
fn many(site: &Site, files: usize) -> Result<String, String> {
    const PER_DIRECTORY: usize = 1024;
    let content: Vec<u8> = (0..BYTES).map(|byte| b'a' + (byte % 26) as u8).collect();
    let mut list = String::new();
    for number in 0..files {
        let path = format!("files/{}/{}.html", number / PER_DIRECTORY, number % PER_DIRECTORY);
        let place = site.root().join(&path);
        let failed = |error: std::io::Error| format!("{}: {error}", place.display());
        if number % PER_DIRECTORY == 0 {
            fs::create_dir_all(place.parent().unwrap_or(Path::new("/"))).map_err(failed)?;
        }
        fs::write(&place, &content).map_err(failed)?;
        list.push_str(&format!("/{path}\n"));
    }
    site.write("list", &list)
}

/// Makes the group. Whether there is one.
fn limit() -> bool {
    let made = fs::create_dir_all(GROUP);
    made.and_then(|()| fs::write(format!("{GROUP}/memory.limit_in_bytes"), MEMORY_BYTES.to_string())).is_ok()
}

/// The command `words`, in the group.
fn within_group(words: Vec<String>) -> Vec<String> {
    let enter = format!("echo $$ >{GROUP}/cgroup.procs && exec \"$@\"");
    ["sh", "-c", &enter, "sh"].map(str::to_owned).into_iter().chain(words).collect()
}
