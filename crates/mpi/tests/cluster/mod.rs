//! [`Cluster`]: two hosts on one machine, with a bad line between them, on which `launched.rs` runs
//! jobs over the MPIs of the machine.
//!
//! A host is a network namespace. Its processes see no others, share no memory with others, and
//! have a name of the host. Each host has one network device, a TAP device, and a relay carries the
//! frames between the two. The relay is a process of this program. It holds each frame for
//! [`DELAY`], and loses one of [`LOST_OF`]. (`tc netem` does the same where the kernel has it. The
//! relay needs no module of the kernel.)
//!
//! ```text
//!   mpirun, rank 0 ─ TAP ─ relay ─ TAP ─ daemon of the MPI, rank 1
//! ```
//!
//! An MPI starts its daemon on another host by a program such as ssh. Here this is a script that
//! enters the namespace. Namespaces and devices need the rights of root. Without them the jobs are
//! not run, and a line says why.

use super::installed::Installed;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// How long a frame is on its way.
const DELAY: Duration = Duration::from_micros(500);
/// One frame of this number is lost.
const LOST_OF: u64 = 500;
/// The addresses of the hosts, and of their network.
const HOSTS: [&str; 2] = ["10.217.9.1", "10.217.9.2"];
const NETWORK: &str = "10.217.9.0/24";

/// The words that give a command the processes, the memory and the name of a host.
const APART: [&str; 7] = ["unshare", "--uts", "--ipc", "--pid", "--fork", "--mount-proc", "--kill-child"];
/// How the shell of a host begins. Its name follows.
const BEGIN: &str = "mount -t tmpfs tmpfs /dev/shm; hostname";

/// Two hosts, which go with this value.
pub(crate) struct Cluster {
    names: [String; 2],
    relay: Option<Child>,
    directory: tempfile::TempDir,
}

impl Cluster {
    /// Makes two hosts. `relay` is a command that calls [`relay`] with two names of devices.
    ///
    /// # Errors
    /// Why there can be none here.
    pub(crate) fn new(mut relay: Command) -> Result<Cluster, String> {
        let names = ["a", "b"].map(|end| format!("selvedge-mpi-{}{end}", std::process::id()));
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let mut cluster = Cluster { names, relay: None, directory };
        for name in &cluster.names {
            ip(&["netns", "add", name])?;
            ip(&["-n", name, "link", "set", "lo", "up"])?;
        }
        let devices = ["a", "b"].map(|end| format!("sm{}{end}", std::process::id()));
        let relay = relay.args(&devices).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let relay = cluster.relay.insert(relay.map_err(|error| error.to_string())?);
        let mut said = String::new();
        let output = relay.stdout.take().expect("it is a pipe");
        BufReader::new(output).read_line(&mut said).map_err(|error| error.to_string())?;
        if said.trim() != READY {
            return Err(format!("the relay says: {said:?}"));
        }
        for ((name, device), host) in cluster.names.iter().zip(&devices).zip(HOSTS) {
            ip(&["link", "set", device, "netns", name])?;
            ip(&["-n", name, "addr", "add", &format!("{host}/24"), "dev", device])?;
            ip(&["-n", name, "link", "set", device, "up"])?;
            // The line is short, so TCP need not wait for 200 ms before it sends again.
            ip(&["-n", name, "route", "change", NETWORK, "dev", device, "rto_min", "5ms"])?;
        }
        let agent = cluster.agent();
        std::fs::write(&agent, cluster.script()).map_err(|error| error.to_string())?;
        let executable = PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&agent, executable).map_err(|error| error.to_string())?;
        Ok(cluster)
    }

    /// The program that an MPI calls as it calls ssh: with options, a host, and words for its
    /// shell.
    fn agent(&self) -> PathBuf {
        self.directory.path().join("agent")
    }

    fn script(&self) -> String {
        let [first, second] = &self.names;
        let there = HOSTS[0];
        format!(
            "#!/bin/sh\n\
             while [ \"${{1#-}}\" != \"$1\" ]; do shift; done\n\
             case \"$1\" in {there}) name={first} ;; *) name={second} ;; esac\n\
             shift\n\
             exec ip netns exec \"$name\" {} sh -c \"{BEGIN} $name; $*\"\n",
            APART.join(" "),
        )
    }

    /// Whether jobs of this MPI are run here. MPICH over UCX hangs in `MPI_Finalize` on a line that
    /// takes time (4.0.2), or in long messages (5.0.2). So MPICH must have libfabric.
    pub(crate) fn runs(mpi: &Installed) -> bool {
        if mpi.is_open_mpi {
            return true;
        }
        let version = mpi.beside("mpichversion").and_then(|path| Command::new(path).output().ok());
        version.is_some_and(|version| String::from_utf8_lossy(&version.stdout).contains("ofi"))
    }

    /// A job with a rank on each host, which is to be given the program.
    pub(crate) fn job(&self, mpi: &Installed) -> Command {
        let agent = self.agent();
        let agent = agent.to_str().expect("the path is a text");
        let hosts = HOSTS.join(",");
        let on_line = "btl_tcp_if_include";
        let options = match mpi.is_open_mpi {
            true if mpi.bears_deaths.is_some() => vec![
                "--prtemca",
                "plm_ssh_agent",
                agent,
                "--prtemca",
                "oob_tcp_if_include",
                NETWORK,
                "--mca",
                "pml",
                "ob1",
                "--mca",
                "btl",
                "tcp,self",
                "--mca",
                on_line,
                NETWORK,
                "--host",
                &hosts,
                "--map-by",
                "node",
            ],
            true => vec![
                "--mca",
                "plm_rsh_agent",
                agent,
                "--mca",
                "oob_tcp_if_include",
                NETWORK,
                "--mca",
                "btl",
                "tcp,self",
                "--mca",
                on_line,
                NETWORK,
                "--host",
                &hosts,
            ],
            false => vec!["-launcher", "ssh", "-launcher-exec", agent, "-hosts", &hosts],
        };
        let job = mpi.job(2, &options);
        let mut whole = Command::new("ip");
        let name = &self.names[0];
        whole.args(["netns", "exec", name, "unshare", "--uts", "sh", "-c"]);
        // MPICH may have UCX besides, which hangs on this line: see `runs`.
        whole.envs([("MPIR_CVAR_CH4_NETMOD", "ofi"), ("FI_PROVIDER", "tcp")]);
        whole.args(["hostname \"$0\"; exec \"$@\"", name]).arg(job.get_program()).args(job.get_args());
        for (variable, value) in job.get_envs() {
            match value {
                Some(value) => whole.env(variable, value),
                None => whole.env_remove(variable),
            };
        }
        whole
    }

    /// How many frames have come to the first host.
    pub(crate) fn frames(&self) -> u64 {
        let device = format!("/sys/class/net/sm{}a/statistics/rx_packets", std::process::id());
        let read = Command::new("ip").args(["netns", "exec", &self.names[0], "cat", &device]).output();
        let read = String::from_utf8(read.expect("ip has run before").stdout).expect("a number");
        read.trim().parse().expect("a number")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(relay) = &mut self.relay {
            let _ = relay.kill();
            let _ = relay.wait();
        }
        for name in &self.names {
            // A namespace goes with the machine at the latest.
            let _ = ip(&["netns", "del", name]);
        }
    }
}

/// Runs `ip`.
fn ip(words: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(words).output().map_err(|error| format!("ip: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() { Ok(()) } else { Err(format!("ip {}: {said}", words.join(" "))) }
}

/// What the relay says when both devices are there.
const READY: &str = "ready";

/// Carries frames between the two devices that the arguments name, until it is killed.
pub(crate) fn relay() {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let (first, second) = match [&names[0], &names[1]].map(|name| tap(name)) {
        [Ok(first), Ok(second)] => (first, second),
        [Err(error), _] | [_, Err(error)] => return println!("{error}"),
    };
    println!("{READY}");
    io::stdout().flush().expect("the parent process reads it");
    thread::scope(|scope| {
        scope.spawn(|| carry(&first, &second));
        carry(&second, &first);
    });
}

/// Carries the frames of one direction. Each takes [`DELAY`], and one of [`LOST_OF`] is lost.
fn carry(mut from: &File, mut to: &File) {
    let (line, far) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::scope(|scope| {
        scope.spawn(move || {
            for (due, frame) in far {
                thread::sleep(due.saturating_duration_since(Instant::now()));
                // A device that is not switched on takes no frames.
                let _ = to.write(&frame);
            }
        });
        let mut frame = [0; 2048];
        for count in 1_u64.. {
            let Ok(length) = from.read(&mut frame) else { return };
            if !count.is_multiple_of(LOST_OF) {
                let sent = line.send((Instant::now() + DELAY, frame[..length].to_vec()));
                sent.expect("the other OS thread takes all");
            }
        }
    });
}

/// Makes a TAP device of that name.
#[expect(unsafe_code, reason = "a request to the device's driver")]
fn tap(name: &str) -> io::Result<File> {
    let device = File::options().read(true).write(true).open("/dev/net/tun")?;
    let kind = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    let ifr_ifru = libc::__c_anonymous_ifr_ifru { ifru_flags: kind };
    let mut request = libc::ifreq { ifr_name: [0; libc::IFNAMSIZ], ifr_ifru };
    for (to, from) in request.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: `TUNSETIFF` reads and writes one `ifreq`. `request` is one, which this function has
    // filled, and it lives until the call returns; `device` is open, by `open` above.
    match unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) } {
        0 => Ok(device),
        _ => Err(io::Error::last_os_error()),
    }
}
