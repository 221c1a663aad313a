//! The figure about the web server over the kernel's TCP and over its own (`--stack`).
//!
//! Both have the same way to the client: the kernel's end of a pair of interfaces or of a TAP
//! device, and behind it a server that is a host of its own. The kernel's TCP works in a network
//! namespace. A part of its work is done in the client's system calls, so beside the CPU of the
//! server the CPU of the whole machine is measured, with a client that sleeps.

use super::load::Load;
use super::server::{Charged, Log, SetUp, start_at};
use super::site::{SIXTEEN_K, SMALL, Site};
use super::{Candidate, compete, rate_and_cpu};
use crate::effort::{Effort, Purpose};
use crate::figure::Figure;
use crate::machine::Machine;
use crate::peers::built;
use crate::pinned::SERVER_CPU;
use crate::stacks::{Namespace, begin, ip};
use crate::table::{Row, Table};

/// The figure of this file.
pub(crate) const FIGURES: &[Figure] = &[Figure {
    name: "stack-web",
    about: "the web server over the kernel's TCP and over its own, behind devices",
    measure: stacked,
}];

/// The hosts of the servers: over the stack, and over the kernel.
const OURS: [u8; 4] = [10, 217, 2, 2];
const KERNELS: [u8; 4] = [10, 217, 1, 2];

/// The devices of the figure, which go with this value.
struct WebDevices {
    namespace: Namespace,
    tap: String,
}

impl WebDevices {
    fn new() -> Result<WebDevices, String> {
        let number = std::process::id() % 100_000;
        let (near, far, tap) = (format!("sf{number}n"), format!("sf{number}f"), format!("sf{number}t"));
        let namespace = Namespace::new("web")?;
        ip(&["link", "add", &near, "type", "veth", "peer", "name", &far])?;
        ip(&["link", "set", &far, "netns", namespace.name()])?;
        namespace.begin(&far, "10.217.1.2/24")?;
        begin(&near, "10.217.1.1/24")?;
        ip(&["tuntap", "add", "dev", &tap, "mode", "tap"])?;
        let devices = WebDevices { namespace, tap };
        begin(&devices.tap, "10.217.2.1/24")?;
        Ok(devices)
    }
}

impl Drop for WebDevices {
    fn drop(&mut self) {
        // It goes with the machine at the latest; the pair goes with its namespace.
        let _ = ip(&["link", "del", &self.tap]);
    }
}

/// `stack-web`.
fn stacked(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let seconds = if effort.is_small() { 1 } else { effort.seconds };
    let faults = effort.purpose == Purpose::Faults;
    let devices = WebDevices::new();
    let mut all = Vec::new();
    for (case, file) in [("612 bytes: ", SMALL), ("16 KiB: ", SIXTEEN_K)] {
        for charged in [Charged::Server, Charged::Machine] {
            let devices = match &devices {
                Ok(devices) => devices,
                Err(why) => {
                    all.extend(absent(case, charged, why));
                    continue;
                }
            };
            let site = Site::create(u64::from(faults))?;
            let load = Load::new(file, 1, seconds)?;
            let load = if charged == Charged::Machine { load.asleep() } else { load };
            let stack = format!("{},10.217.2.2/24", devices.tap);
            let hosts = [
                ("over the stack", true, OURS, vec![], vec!["--stack".to_owned(), stack]),
                ("over the kernel", false, KERNELS, devices.namespace.words(), vec![]),
            ];
            let candidates = hosts.map(|(system, ours, host, before, behind)| {
                Candidate::start(system, ours, &[SERVER_CPU], effort, || {
                    let configure = |set_up: &SetUp| Ok([before, server(set_up, host)?, behind].concat());
                    let mut server = start_at(host.into(), system, Log::On, &site, &[SERVER_CPU], configure)?;
                    server.charge(charged);
                    server.check(file, &site)?;
                    Ok(server)
                })
            });
            let (contenders, samples) = compete("stack-web", file, &load, candidates.into(), effort)?;
            all.extend(of_charge(rate_and_cpu(case, &contenders, &samples), charged));
        }
    }
    let title = "selvedge-httpd over its own TCP behind a TAP device, and over the kernel's in a namespace behind a pair of interfaces, 64 keep-alive connections";
    Ok(Table {
        name: "stack-web",
        title: title.to_owned(),
        machine,
        rows: all,
        notes: vec![
            "one worker on CPU 0, client on CPU 1, combined log on; for the CPU of the machine the client sleeps while nothing comes".to_owned(),
            "published: mTCP (NSDI 2014) serves lighttpd 3.2 times as fast as Linux 3.10, past the kernel by a driver of its own; F-Stack tells of 5 million requests/s of nginx on a card of 40 Gbit/s by DPDK. A TAP device is a system call for each frame that comes and for each run of frames that goes".to_owned(),
        ],
    })
}

/// The command of a server with one worker at a host.
fn server(set_up: &SetUp, host: [u8; 4]) -> Result<Vec<String>, String> {
    let [a, b, c, d] = host;
    let listen = format!("{a}.{b}.{c}.{d}:{}", set_up.port);
    let log = set_up.shown("access.log");
    let words = [&*set_up.root, "--listen", &listen, "--workers", "1", "--log", &log];
    Ok([built("selvedge-httpd", "selvedge-httpd")?].into_iter().chain(words.map(str::to_owned)).collect())
}

/// Of the CPU of the machine there is no rate: the client sleeps.
fn of_charge(rows: Vec<Row>, charged: Charged) -> Vec<Row> {
    match charged {
        Charged::Server => rows,
        Charged::Machine => rows
            .into_iter()
            .filter(|row| row.case.ends_with("CPU of the server"))
            .map(|row| Row { case: row.case.replace("CPU of the server", "CPU of the machine"), ..row })
            .collect(),
    }
}

/// The rows of a machine without devices.
fn absent(case: &str, charged: Charged, why: &str) -> Vec<Row> {
    let whats: &[&str] = match charged {
        Charged::Server => &["request rate", "CPU of the server"],
        Charged::Machine => &["CPU of the machine"],
    };
    let row = |what: &str, system: &str| Row {
        value: Err(why.to_owned()),
        unit: if what == "request rate" { "requests/s" } else { "us CPU/request" },
        ..Row::plain(&format!("{case}{what}"), system)
    };
    whats.iter().flat_map(|what| [row(what, "over the stack"), row(what, "over the kernel")]).collect()
}
