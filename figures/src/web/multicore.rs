//! The figure about web servers on two CPUs: threads, processes, and the peers' workers. The load
//! generator shares the CPUs and sleeps while no reply comes, so the CPU time of a request says
//! more than the rate.

use super::load::Load;
use super::server::{Log, SetUp, start_as};
use super::site::{SMALL, Site};
use super::{Candidate, compete, rate_and_cpu};
use crate::effort::{Effort, Purpose};
use crate::figure::Figure;
use crate::machine::Machine;
use crate::pinned::BOTH_CPUS;
use crate::table::Table;

/// The figure of this file.
pub(crate) const FIGURES: &[Figure] =
    &[Figure { name: "web-multicore", about: "a 612-byte file by two workers", measure: multicore }];

/// `web-multicore`.
pub(crate) fn multicore(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let faults = effort.purpose == Purpose::Faults;
    let site = Site::create(u64::from(faults))?;
    let seconds = if effort.is_small() { 1 } else { effort.seconds };
    let load = Load::new(SMALL, 1, seconds)?.beside_the_server();
    let candidate = |system: &str, ours: bool, configure: &dyn Fn(&SetUp) -> Result<Vec<String>, String>| {
        Candidate::start(system, ours, &BOTH_CPUS, effort, || {
            let mut server = start_as(system, Log::Off, &site, &BOTH_CPUS, configure)?;
            server.check(SMALL, &site)?;
            Ok(server)
        })
    };
    let ours = |how: &'static str| {
        move |set_up: &SetUp| set_up.configured(&format!("{how}\n[[route]]\ndirectory = '{}'\n", set_up.root))
    };
    let candidates = vec![
        candidate("selvedge-httpd, threads", true, &ours("workers = 2")),
        candidate("selvedge-httpd, processes", true, &ours("processes = 2\nworkers = 1")),
        candidate("nginx tuned", false, &|set_up| {
            let http = format!(
                "  sendfile on; tcp_nopush on; access_log off;\n  open_file_cache max=1000 inactive=60s;\n\
                 \x20 server {{ listen 127.0.0.1:{} reuseport; root {}; }}\n",
                set_up.port, set_up.root
            );
            set_up.nginx_with(2, &http)
        }),
        candidate("h2o", false, &|set_up| set_up.h2o_with(2)),
    ];
    let (contenders, samples) = compete("web-multicore", SMALL, &load, candidates, effort)?;
    Ok(Table {
        name: "web-multicore",
        title:
            "612-byte file, 64 keep-alive connections, two workers on both CPUs, the client on the same CPUs"
                .to_owned(),
        machine,
        rows: rate_and_cpu("", &contenders, &samples),
        notes: vec![
            "no access log; nginx with a socket for each worker (reuseport); h2o with two threads".to_owned(),
        ],
    })
}
