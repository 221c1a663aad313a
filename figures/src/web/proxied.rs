//! The figure about reverse proxies: a small answer and a large one, over kept connections to one
//! server behind. The proxy has CPU 0. The server behind and the load generator share CPU 1.

use super::load::Load;
use super::server::{Log, SetUp, start_as};
use super::site::{File, Site};
use super::{Candidate, compete, rate_and_cpu};
use crate::effort::{Effort, Purpose};
use crate::figure::Figure;
use crate::machine::Machine;
use crate::peers::program_path;
use crate::pinned::{BOTH_CPUS, CLIENT_CPU, SERVER_CPU};
use crate::table::Table;

/// The figure of this file.
pub(crate) const FIGURES: &[Figure] =
    &[Figure { name: "web-proxy", about: "a reverse proxy, small and large answers", measure: proxied }];

const KIBIBYTE: File = File { path: "/1k.html", bytes: 1 << 10 };
const MEBIBYTE: File = File { path: "/1m.html", bytes: 1 << 20 };

/// `web-proxy`.
pub(crate) fn proxied(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let faults = effort.purpose == Purpose::Faults;
    let seconds = if effort.is_small() { 1 } else { effort.seconds };
    let mut all = Vec::new();
    for (case, file, connections) in [("1 KiB: ", KIBIBYTE, 64), ("1 MiB: ", MEBIBYTE, 16)] {
        let site = Site::create(u64::from(faults))?;
        site.add(file, u64::from(faults))?;
        // The server behind is the same for all, and none of the compared servers.
        let behind = start_as("behind", Log::Off, &site, &[CLIENT_CPU], |set_up| {
            set_up.configured(&format!("workers = 1\n[[route]]\ndirectory = '{}'\n", set_up.root))
        })?;
        let upstream = behind.port();
        let load = Load::new(file, 1, seconds)?.connections(connections).asleep();
        let candidate =
            |system: &str, ours: bool, configure: &dyn Fn(&SetUp) -> Result<Vec<String>, String>| {
                Candidate::start(system, ours, &BOTH_CPUS[..1], effort, || {
                    let mut server = start_as(system, Log::Off, &site, &[SERVER_CPU], configure)?;
                    server.check(file, &site)?;
                    Ok(server)
                })
            };
        let candidates = vec![
            candidate("selvedge-httpd", true, &|set_up| {
                set_up.configured(&format!("workers = 1\n[[route]]\nproxy = '127.0.0.1:{upstream}'\n"))
            }),
            candidate("nginx", false, &|set_up| {
                let http = format!(
                    "  access_log off;\n  upstream behind {{ server 127.0.0.1:{upstream}; keepalive 64; \
                     keepalive_requests 1000000000; }}\n  server {{ listen 127.0.0.1:{}; location / {{ \
                     proxy_pass http://behind; proxy_http_version 1.1; proxy_set_header Connection \"\"; }} }}\n",
                    set_up.port
                );
                set_up.nginx_with(1, &http)
            }),
            candidate("haproxy", false, &|set_up| {
                let text = format!(
                    "global\n  nbthread 1\n  maxconn 4000\ndefaults\n  mode http\n  timeout connect 5s\n  \
                     timeout client 60s\n  timeout server 60s\n  option http-keep-alive\n  \
                     http-reuse always\nfrontend front\n  bind 127.0.0.1:{}\n  default_backend behind\n\
                     backend behind\n  server one 127.0.0.1:{upstream}\n",
                    set_up.port
                );
                let configuration = set_up.write("haproxy.cfg", &text)?;
                Ok(vec![program_path("haproxy")?, "-db".to_owned(), "-f".to_owned(), configuration])
            }),
        ];
        let (contenders, samples) = compete("web-proxy", file, &load, candidates, effort)?;
        all.extend(rate_and_cpu(case, &contenders, &samples));
    }
    Ok(Table {
        name: "web-proxy",
        title: "a reverse proxy with one worker on CPU 0, over kept connections, 64 clients (1 KiB) and 16 (1 MiB)"
            .to_owned(),
        machine,
        rows: all,
        notes: vec![
            "the server behind is selvedge-httpd; it and the load generator, which sleeps while no reply comes, share CPU 1, so the CPU of the proxy says more than the rate".to_owned(),
            "nginx: keepalive 64, HTTP/1.1 to the server behind, buffering as by default; haproxy: http-reuse always; no access log".to_owned(),
        ],
    })
}
