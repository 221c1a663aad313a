//! The figure about TCP on a way that loses packets, and the network devices for it and for the
//! figure about web servers (`web/stacked.rs`).
//!
//! ```text
//!   client ─ kernel ─ TAP a ─ relay ─ TAP b ─ kernel of a namespace ─ server
//!   client ─ kernel ─ TAP a ─ relay ─ stack of ours ─ server
//! ```
//! The relay (`child/lossy.rs`) is the same program for both, and loses packets on their way to the
//! client. Devices and namespaces need rights. Without them each row says so.

use crate::contender::{OURS, inner};
use crate::effort::Effort;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::{Better, Contender, MeasureError, Metric, in_turn, rows};
use crate::serving::Serving;
use crate::table::Table;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

/// The figure of this file.
pub(crate) const FIGURES: &[Figure] =
    &[Figure { name: "stack-loss", about: "a transfer on a way that loses packets", measure: loss }];

const RATE: Metric = Metric { key: "rate", unit: "MB/s", better: Better::Higher };

/// The cases: how many of a thousand packets are lost, and the bytes of a transfer.
const CASES: [(u64, u64); 3] = [(1, 8 << 20), (10, 4 << 20), (50, 1 << 20)];

/// The systems: the kernel as the machine has it set, and with Reno, which slows down for losses as
/// Cubic does and which each namespace may choose.
const SYSTEMS: [&str; 3] = [OURS, "Linux", WITH_RENO];
const WITH_RENO: &str = "Linux, Reno";

/// Which congestion control the kernel uses in a namespace.
const CONGESTION: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// How long a transfer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs `ip`.
///
/// # Errors
/// What it says.
pub(crate) fn ip(words: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(words).output().map_err(|error| format!("ip: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() { Ok(()) } else { Err(format!("ip {}: {said}", words.join(" "))) }
}

/// A network namespace, which goes with this value.
pub(crate) struct Namespace(String);

impl Namespace {
    /// A namespace of this process with its loopback device.
    ///
    /// # Errors
    /// Why there are none here.
    pub(crate) fn new(what: &str) -> Result<Namespace, String> {
        let name = format!("selvedge-figures-{what}-{}", std::process::id());
        ip(&["netns", "add", &name]).map_err(|why| format!("no network namespaces here: {why}"))?;
        let namespace = Namespace(name);
        ip(&["-n", &namespace.0, "link", "set", "lo", "up"])?;
        Ok(namespace)
    }

    pub(crate) fn name(&self) -> &str {
        &self.0
    }

    /// The words that run a command in it.
    pub(crate) fn words(&self) -> Vec<String> {
        ["ip", "netns", "exec", &self.0].map(str::to_owned).into()
    }

    /// Gives a device there an address, and switches it on.
    ///
    /// # Errors
    /// What `ip` says.
    pub(crate) fn begin(&self, device: &str, address: &str) -> Result<(), String> {
        ip(&["-n", &self.0, "addr", "add", address, "dev", device])?;
        ip(&["-n", &self.0, "link", "set", device, "up"])
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // It goes with the machine at the latest.
        let _ = ip(&["netns", "del", &self.0]);
    }
}

/// Gives a device of this namespace an address, and switches it on.
///
/// # Errors
/// What `ip` says.
pub(crate) fn begin(device: &str, address: &str) -> Result<(), String> {
    ip(&["addr", "add", address, "dev", device])?;
    ip(&["link", "set", device, "up"])
}

/// `stack-loss`.
fn loss(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let number = u64::from(std::process::id()) % 100_000;
    let mut all = Vec::new();
    for (lost, bytes) in CASES {
        let bytes = if effort.is_small() { bytes / 16 } else { bytes };
        let entrants = SYSTEMS.map(|system| entrant(system, &[number, lost, 1, bytes]));
        let case = format!("{} % of the packets lost", lost as f64 / 10.0);
        let samples = match Namespace::new("probe") {
            Ok(_) => {
                let mut seeds = BTreeMap::new();
                in_turn(&format!("stack-loss: {case}"), &entrants, effort, |contender| {
                    // The same losses for all in a round, and others in the next one.
                    let seed = seeds.entry(contender.system.clone()).or_insert(0);
                    *seed += 1;
                    let command = entrant(&contender.system, &[number, lost, *seed, bytes]).command;
                    transfer(&Contender { command, ..contender.clone() }, number, bytes)
                })?
            }
            Err(why) => entrants.iter().map(|_| Err(why.clone())).collect(),
        };
        all.extend(rows(&case, &entrants, RATE, &samples));
    }
    Ok(Table {
        name: "stack-loss",
        title: "a transfer over one connection, a round trip of 10 ms, packets lost on their way to the client"
            .to_owned(),
        machine,
        rows: all,
        notes: vec![
            "the relay takes the place of tc netem, which not each kernel has: one for both, of ours, between the client's TAP device and a TAP device of the kernel or the stack; the same packets in number are lost"
                .to_owned(),
            format!(
                "selvedge: BBR, SACK and RACK, no time stamps; Linux: as the machine has it set, with {}",
                fs::read_to_string(CONGESTION).map_or_else(|error| error.to_string(), |name| name.trim().to_owned())
            ),
        ],
    })
}

/// The relay before our stack with its server, or the one before the kernel of a namespace. The
/// numbers: the devices, how many of a thousand packets are lost, the seed, and the bytes.
fn entrant(system: &str, numbers: &[u64; 4]) -> Contender {
    match system {
        OURS => inner(OURS, "lossy-stack", numbers),
        kernels => Contender { ours: false, ..inner(kernels, "lossy-relay", &numbers[..3]) },
    }
}

/// One transfer from a server that is started for it: the rate in megabytes a second.
fn transfer(entrant: &Contender, number: u64, bytes: u64) -> Result<f64, MeasureError> {
    let failed = |why: String| MeasureError::Failed(why);
    let relay = Serving::start(entrant)?;
    begin(&format!("sf{number}a"), "10.217.3.1/24").map_err(failed)?;
    let mut kernels = None;
    if !entrant.ours {
        let namespace = Namespace::new("loss").map_err(failed)?;
        let device = format!("sf{number}b");
        ip(&["link", "set", &device, "netns", namespace.name()]).map_err(failed)?;
        namespace.begin(&device, "10.217.3.2/24").map_err(failed)?;
        if entrant.system == WITH_RENO {
            let set = format!("echo reno > {CONGESTION}");
            ip(&["netns", "exec", namespace.name(), "sh", "-c", &set]).map_err(failed)?;
        }
        let server = Serving::start_under(&namespace.words(), &inner("Linux", "lossy-server", &[bytes]))?;
        kernels = Some((server, namespace));
    }
    let rate = read(relay.port as u16, bytes);
    drop(kernels);
    rate
}

/// Reads all bytes of a server, and returns the rate.
fn read(port: u16, bytes: u64) -> Result<f64, MeasureError> {
    let told = |error: std::io::Error| MeasureError::Failed(format!("the transfer: {error}"));
    let server = ([10, 217, 3, 2], port).into();
    let mut stream = TcpStream::connect_timeout(&server, PATIENCE).map_err(told)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(told)?;
    let start = Instant::now();
    let mut came = Vec::with_capacity(bytes as usize);
    (&mut stream).take(bytes).read_to_end(&mut came).map_err(told)?;
    let took = start.elapsed();
    let right = came.iter().enumerate().all(|(place, byte)| *byte == (place % 251) as u8);
    match came.len() as u64 == bytes && right {
        true => Ok(bytes as f64 / 1e6 / took.as_secs_f64()),
        false => {
            Err(MeasureError::Wrong(format!("{} bytes came, or other bytes than were sent", came.len())))
        }
    }
}
