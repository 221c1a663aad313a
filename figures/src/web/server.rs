//! The servers of the web figures: how each is configured, started, accounted for and stopped.
//! `web.rs`, `web/load.rs` and `web/instructions.rs` call `start`, and the figures about DNS and
//! FTP servers `start_as`, which waits until the server accepts connections.
//!
//! A `Running` ends its server when it is dropped. Every server has one worker on one CPU and the
//! same files. A difference between the set-ups belongs into `notes`, because a reader must know
//! it.

use super::site::{self, Site};
use crate::machine::{busy_ns, processes_of, session_cpu_ns};
use crate::peers::{self, built, program_path};
use crate::pinned;
use rustix::process::{Pid, Signal, getuid, kill_process};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A server and the way it is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Ours.
    Selvedge,
    /// nginx as its guides tune it: `sendfile`, `tcp_nopush`, `open_file_cache`, buffered log.
    NginxTuned,
    /// nginx at its best for small files: the same without `sendfile`.
    NginxSmallFiles,
    /// lighttpd, one process.
    Lighttpd,
    /// h2o, one thread.
    H2o,
    /// Mighttpd, one process.
    Mighttpd,
    /// Not a server: epoll, recv and send of a constant reply, as a bound for every server.
    Limit,
}

/// Which CPU time is that of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Charged {
    /// That of its processes.
    Server,
    /// That of the whole machine: a part of the kernel's work for a server is done elsewhere.
    Machine,
}

/// The place of the access log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Log {
    /// No log.
    Off,
    /// The combined format, buffered where the server can do that.
    On,
    /// One write per line (nginx's default).
    Unbuffered,
}

/// The name of a server in a table.
pub(super) fn name(kind: Kind, log: Log) -> String {
    let name = match kind {
        Kind::Selvedge => "selvedge-httpd",
        Kind::NginxTuned => "nginx tuned",
        Kind::NginxSmallFiles => "nginx, sendfile off",
        Kind::Lighttpd => "lighttpd",
        Kind::H2o => "h2o",
        Kind::Mighttpd => "Mighttpd",
        Kind::Limit => "limit (no server)",
    };
    match log {
        Log::On => name.to_owned(),
        Log::Off => format!("{name}, no log"),
        Log::Unbuffered => format!("{name}, unbuffered log"),
    }
}

/// Facts about the set-up that a reader needs.
pub(super) fn notes() -> Vec<String> {
    vec![
        "nginx tuned: sendfile on, tcp_nopush on, open_file_cache, access_log buffer=64k flush=1s; one worker".to_owned(),
        "lighttpd: max-worker 0; h2o: num-threads 1, which writes its log line by line".to_owned(),
        "CPU is what the scheduler charged to the server's processes, kernel time of their system calls included".to_owned(),
    ]
}

/// The time that a server may take to start, and to end: a server under callgrind is slow.
const PATIENCE: Duration = Duration::from_secs(20);

/// A started server.
#[derive(Debug)]
pub(crate) struct Running {
    name: String,
    command: Vec<String>,
    process: Child,
    host: Ipv4Addr,
    port: u16,
    charged: Charged,
    output: PathBuf,
    log: Option<PathBuf>,
    /// Whether the log is a stream in which the server tells other things too.
    log_is_stream: bool,
    answered: u64,
    in_flight: u64,
}

/// Configures and starts a server, and waits until it accepts connections.
///
/// # Errors
///
/// The text that the table shows instead of numbers: a missing package, a failed start.
pub(super) fn start(kind: Kind, log: Log, site: &Site) -> Result<Running, String> {
    start_under(&[], kind, log, site)
}

/// The same under the program of `words`, such as callgrind's.
///
/// # Errors
///
/// As for [`start`].
pub(super) fn start_under(words: &[String], kind: Kind, log: Log, site: &Site) -> Result<Running, String> {
    let mut running = start_as(&name(kind, log), log, site, &[pinned::SERVER_CPU], |set_up| {
        let server = match kind {
            Kind::Selvedge => set_up.selvedge()?,
            Kind::NginxTuned => set_up.nginx(true)?,
            Kind::NginxSmallFiles => set_up.nginx(false)?,
            Kind::Lighttpd => set_up.lighttpd()?,
            Kind::H2o => set_up.h2o()?,
            Kind::Mighttpd => set_up.mighttpd()?,
            Kind::Limit => {
                vec![peers::LIMIT.executable()?, set_up.port.to_string(), site::SMALL.bytes.to_string()]
            }
        };
        Ok([words, &server].concat())
    })?;
    // It tells its address, its start and its end there.
    running.log_is_stream = kind == Kind::Mighttpd;
    Ok(running)
}

/// Starts the server that `configure` says, on `cpus`, and waits until it accepts connections.
///
/// # Errors
///
/// As for [`start`].
pub(crate) fn start_as(
    name: &str,
    log: Log,
    site: &Site,
    cpus: &[usize],
    configure: impl FnOnce(&SetUp) -> Result<Vec<String>, String>,
) -> Result<Running, String> {
    start_at(Ipv4Addr::LOCALHOST, name, log, site, cpus, configure)
}

/// The same for a server that is reached at this host.
///
/// # Errors
///
/// As for [`start`].
pub(super) fn start_at(
    host: Ipv4Addr,
    name: &str,
    log: Log,
    site: &Site,
    cpus: &[usize],
    configure: impl FnOnce(&SetUp) -> Result<Vec<String>, String>,
) -> Result<Running, String> {
    let port = free_port()?;
    let directory = site.directory_for(name)?;
    let set_up = SetUp { directory, root: site.root().display().to_string(), port, log };
    let command = configure(&set_up)?;
    let output = File::create(set_up.file("output")).map_err(|error| format!("output: {error}"))?;
    let errors = output.try_clone().map_err(|error| format!("output: {error}"))?;
    let process = pinned::command_on(cpus, &command)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .spawn()
        .map_err(|error| format!("did not start: {error}"))?;
    let log = (log != Log::Off).then(|| set_up.file("access.log"));
    let mut running = Running {
        name: name.to_owned(),
        command,
        process,
        host,
        port,
        charged: Charged::Server,
        output: set_up.file("output"),
        log,
        log_is_stream: false,
        answered: 0,
        in_flight: 0,
    };
    running.wait_until_up()?;
    Ok(running)
}

/// A port on which no process listens now.
fn free_port() -> Result<u16, String> {
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| format!("no free port: {error}"))?;
    Ok(listener.local_addr().map_err(|error| format!("no free port: {error}"))?.port())
}

/// The values from which every configuration is made.
pub(crate) struct SetUp {
    /// For its configuration, its log and its other files.
    directory: PathBuf,
    /// The directory that it serves.
    pub(crate) root: String,
    /// The port at which it is to listen.
    pub(crate) port: u16,
    log: Log,
}

impl SetUp {
    /// A file of this server.
    fn file(&self, what: &str) -> PathBuf {
        self.directory.join(what)
    }

    /// The path of a file of this server.
    pub(crate) fn shown(&self, what: &str) -> String {
        self.file(what).display().to_string()
    }

    /// Writes a file of this server, and returns its path.
    ///
    /// # Errors
    /// With the path.
    pub(crate) fn write(&self, what: &str, text: &str) -> Result<String, String> {
        let path = self.shown(what);
        fs::write(&path, text).map_err(|error| format!("{path}: {error}"))?;
        Ok(path)
    }

    /// Makes a directory in which nothing is, and returns its path.
    ///
    /// # Errors
    /// With the path.
    pub(crate) fn empty_directory(&self) -> Result<String, String> {
        let path = self.shown("empty");
        fs::create_dir(&path).map_err(|error| format!("{path}: {error}"))?;
        Ok(path)
    }

    fn selvedge(&self) -> Result<Vec<String>, String> {
        let log = if self.log == Log::Off { "off".to_owned() } else { self.shown("access.log") };
        let listen = format!("127.0.0.1:{}", self.port);
        let words = [&*self.root, "--listen", &listen, "--workers", "1", "--log", &log];
        Ok([built("selvedge-httpd", "selvedge-httpd")?].into_iter().chain(words.map(str::to_owned)).collect())
    }

    fn nginx(&self, sendfile: bool) -> Result<Vec<String>, String> {
        let log = match self.log {
            Log::Off => "off".to_owned(),
            Log::On => format!("{} combined buffer=64k flush=1s", self.shown("access.log")),
            Log::Unbuffered => format!("{} combined", self.shown("access.log")),
        };
        let copying = if sendfile { "sendfile on; tcp_nopush on;" } else { "sendfile off;" };
        let http = format!(
            "  {copying}\n  open_file_cache max=1000 inactive=60s;\n  open_file_cache_valid 60s;\n\
             \x20 access_log {log};\n  server {{ listen 127.0.0.1:{}; root {}; }}\n",
            self.port, self.root
        );
        self.nginx_with(1, &http)
    }

    /// nginx with these workers and these lines in its part `http`.
    ///
    /// # Errors
    /// It is not installed, or its configuration cannot be written.
    pub(super) fn nginx_with(&self, workers: usize, http: &str) -> Result<Vec<String>, String> {
        let program = program_path("nginx")?;
        let user = if getuid().is_root() { "user root;" } else { "" };
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("  {kind}_temp_path {};\n", self.shown(kind)))
            .concat();
        let text = format!(
            "daemon off;\n{user}\nworker_processes {workers};\nworker_rlimit_nofile 40000;\npid {pid};\n\
             error_log {errors} error;\nevents {{ worker_connections 20000; }}\n\
             http {{\n{temporary}  types {{ text/html html; }}\n\
             \x20 keepalive_requests 1000000000;\n  keepalive_timeout 75s;\n{http}}}\n",
            pid = self.shown("nginx.pid"),
            errors = self.shown("errors.log"),
        );
        let configuration = self.write("nginx.conf", &text)?;
        Ok([program, "-c".to_owned(), configuration, "-e".to_owned(), self.shown("errors.log")].into())
    }

    /// Ours by this configuration.
    ///
    /// # Errors
    /// It does not build, or its configuration cannot be written.
    pub(super) fn configured(&self, text: &str) -> Result<Vec<String>, String> {
        let text = format!("listen = ['127.0.0.1:{}']\n{text}", self.port);
        let configuration = self.write("site.toml", &text)?;
        Ok(vec![built("selvedge-httpd", "selvedge-httpd")?, configuration])
    }

    fn lighttpd(&self) -> Result<Vec<String>, String> {
        let program = program_path("lighttpd")?;
        let log = match self.log {
            Log::Off => String::new(),
            _ => format!(
                "server.modules = (\"mod_accesslog\")\naccesslog.filename = \"{}\"\n",
                self.shown("access.log")
            ),
        };
        let text = format!(
            "server.document-root = \"{root}\"\nserver.bind = \"127.0.0.1\"\nserver.port = {port}\n\
             server.max-worker = 0\nserver.max-keep-alive-requests = 65535\nserver.max-keep-alive-idle = 75\n\
             server.errorlog = \"{errors}\"\nmimetype.assign = (\".html\" => \"text/html\")\n{log}",
            root = self.root,
            port = self.port,
            errors = self.shown("errors.log"),
        );
        let configuration = self.write("lighttpd.conf", &text)?;
        Ok([program, "-D".to_owned(), "-f".to_owned(), configuration].into())
    }

    fn h2o(&self) -> Result<Vec<String>, String> {
        self.h2o_with(1)
    }

    /// h2o with this number of threads.
    ///
    /// # Errors
    /// It is not installed, or its configuration cannot be written.
    pub(super) fn h2o_with(&self, threads: usize) -> Result<Vec<String>, String> {
        let program = program_path("h2o")?;
        let log = if self.log == Log::Off {
            String::new()
        } else {
            format!("access-log: {}\n", self.shown("access.log"))
        };
        let user = if getuid().is_root() { "user: root\n" } else { "" };
        let text = format!(
            "{user}num-threads: {threads}\nmax-connections: 20000\npid-file: {pid}\nerror-log: {errors}\n{log}\
             listen:\n  host: 127.0.0.1\n  port: {port}\n\
             hosts:\n  default:\n    paths:\n      /:\n        file.dir: {root}\n",
            pid = self.shown("h2o.pid"),
            errors = self.shown("errors.log"),
            port = self.port,
            root = self.root,
        );
        let configuration = self.write("h2o.conf", &text)?;
        Ok([program, "-c".to_owned(), configuration].into())
    }

    /// Mighttpd in the foreground, where it logs to the standard output stream.
    fn mighttpd(&self) -> Result<Vec<String>, String> {
        let program = peers::program_of("mighttpd2", "mighty")?;
        let (logging, log) = match self.log {
            Log::Off => ("No", "/dev/null".to_owned()),
            _ => ("Yes", self.shown("access.log")),
        };
        let text = format!(
            "Port: {port}\nHost: 127.0.0.1\nDebug_Mode: Yes\nLogging: {logging}\nReport_File: {report}\n",
            port = self.port,
            report = self.shown("report"),
        );
        let configuration = self.write("mighty.conf", &text)?;
        let routes = self.write("mighty.route", &format!("[*]\n/ -> {}/\n", self.root))?;
        let script = "exec \"$0\" \"$1\" \"$2\" > \"$3\"".to_owned();
        Ok(["sh".to_owned(), "-c".to_owned(), script, program, configuration, routes, log].into())
    }
}

impl Running {
    /// Its name in the table.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The host at which it is reached.
    pub(super) fn host(&self) -> Ipv4Addr {
        self.host
    }

    /// Counts this CPU time as its own from now on.
    pub(super) fn charge(&mut self, charged: Charged) {
        self.charged = charged;
    }

    /// The port it listens on.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// The command it was started with.
    pub(super) fn command(&self) -> &[String] {
        &self.command
    }

    /// Notes that the server answered this number of requests more. It may have logged up to
    /// `in_flight` requests more than the client counted.
    pub(super) fn answered(&mut self, requests: u64, in_flight: usize) {
        self.answered += requests;
        self.in_flight += in_flight as u64;
    }

    /// Asks for a file once and compares the reply with the file on the disk.
    ///
    /// # Errors
    /// The difference between the reply and the file.
    pub(super) fn check(&mut self, file: site::File, site: &Site) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("the first reply: {error}");
        let mut stream = TcpStream::connect((self.host, self.port)).map_err(failed)?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).map_err(failed)?;
        let request = format!("GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", file.path);
        stream.write_all(request.as_bytes()).map_err(failed)?;
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).map_err(failed)?;
        let expected = fs::read(site.path(file)).map_err(failed)?;
        if !reply.starts_with(b"HTTP/1.1 200 ") || !reply.ends_with(&expected) {
            let first = String::from_utf8_lossy(&reply);
            return Err(format!(
                "the first reply is not the file: {}",
                first.lines().next().unwrap_or("it is empty")
            ));
        }
        self.answered(1, 0);
        Ok(())
    }

    /// The resident memory of all processes of its session, in bytes; pages that several share
    /// count in part for each.
    pub(super) fn resident_bytes(&self) -> Result<u64, String> {
        let mut sum = 0;
        for path in self.processes()? {
            // A process may be gone by the time its file is read.
            let text = fs::read_to_string(path.join("smaps_rollup")).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap_or("0 kB");
            sum += line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap_or(0) * 1024;
        }
        if sum == 0 { Err("no process of the server is left".to_owned()) } else { Ok(sum) }
    }

    /// The directories in `/proc` of all processes of its session.
    fn processes(&self) -> Result<Vec<PathBuf>, String> {
        processes_of(self.id().into()).map_err(|error| format!("/proc: {error}"))
    }

    /// The CPU time that all processes of its session have had so far, in nanoseconds, or that of
    /// the machine, if this is [charged](Self::charge).
    pub(crate) fn cpu_ns(&self) -> Result<u64, String> {
        if self.charged == Charged::Machine {
            return busy_ns();
        }
        let sum = session_cpu_ns(self.id().into()).map_err(|error| format!("/proc: {error}"))?;
        if sum == 0 { Err("no process of the server is left".to_owned()) } else { Ok(sum) }
    }

    /// Ends it, checks its access log as [`Running::stop`] does, and returns what it and its
    /// callgrind wrote.
    ///
    /// # Errors
    ///
    /// The fault in the log, or that the output cannot be read.
    pub(super) fn stop_and_read(self, file: site::File) -> Result<String, String> {
        let output = self.output.clone();
        self.stop(file)?;
        fs::read_to_string(&output).map_err(|error| format!("{}: {error}", output.display()))
    }

    /// Ends it and checks its access log: a line for every request, in the combined format.
    ///
    /// # Errors
    ///
    /// The fault in the log.
    pub(super) fn stop(mut self, file: site::File) -> Result<(), String> {
        self.end();
        let Some(path) = &self.log else { return Ok(()) };
        let log = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let request = format!("\"GET {} HTTP/1.1\" 200 {} \"", file.path, file.bytes);
        let mut lines = 0;
        for line in BufReader::new(log).lines() {
            let line = line.map_err(|error| format!("{}: {error}", path.display()))?;
            if self.log_is_stream && !line.contains('"') {
                continue;
            }
            if !line.contains(&request) {
                return Err(format!("its log has the line {line:?}"));
            }
            lines += 1;
        }
        if lines < self.answered || lines > self.answered + self.in_flight {
            return Err(format!("its log has {lines} lines for {} requests", self.answered));
        }
        Ok(())
    }

    /// Waits until the port is open.
    fn wait_until_up(&mut self) -> Result<(), String> {
        let start = Instant::now();
        let address = SocketAddr::from((self.host, self.port));
        loop {
            if TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_ok() {
                return Ok(());
            }
            let status = self.process.try_wait().map_err(|error| format!("lost: {error}"))?;
            if status.is_some() || start.elapsed() > PATIENCE {
                let said = fs::read_to_string(&self.output).unwrap_or_default();
                let said = said.lines().last().unwrap_or("it does not accept connections").to_owned();
                return Err(format!("did not start: {said}"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Asks it to end, and makes it end if it does not.
    fn end(&mut self) {
        if let Some(pid) = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let start = Instant::now();
        while matches!(self.process.try_wait(), Ok(None)) {
            if start.elapsed() > PATIENCE {
                let _ = self.process.kill();
                let _ = self.process.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}
