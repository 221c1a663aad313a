//! `Load`: one run of the load generator `selvedge-load` against one server. The figures of
//! `web.rs` call `run` for each round.
//!
//! It returns requests per second and the server's CPU time of a request. A reply with another
//! status or length than the file's is an error, so a server that sends less is not faster.

use super::server::Running;
use super::site::File;
use crate::peers::built;
use crate::pinned;
use serde_json::Value;
use std::fs;
use std::process::{Command, Stdio};

/// Keep-alive connections of every run.
pub(super) const CONNECTIONS: usize = 64;

/// A load generator that is built and knows its request.
#[derive(Debug)]
pub(super) struct Load {
    program: String,
    file: File,
    depth: usize,
    seconds: u64,
    connections: usize,
    /// The file with the content of POST requests, if they are such.
    post: Option<String>,
    cpus: &'static [usize],
    /// The list of the paths, if there are several.
    files: Option<String>,
    /// Whether the kernel forgets all files before a run.
    forgets: bool,
    /// Whether the generator never sleeps, because it is alone on its CPU.
    polls: bool,
}

impl Load {
    /// Builds the load generator if need be.
    pub(super) fn new(file: File, depth: usize, seconds: u64) -> Result<Load, String> {
        let program = built("selvedge-httpd", "selvedge-load")?;
        let cpus = &[pinned::CLIENT_CPU];
        Ok(Load {
            program,
            file,
            depth,
            seconds,
            connections: CONNECTIONS,
            post: None,
            cpus,
            files: None,
            forgets: false,
            polls: true,
        })
    }

    /// With this number of connections.
    pub(super) fn connections(self, connections: usize) -> Load {
        Load { connections, ..self }
    }

    /// With POST requests. Their content is in this file.
    pub(super) fn post(self, file: String) -> Load {
        Load { post: Some(file), ..self }
    }

    /// With random ones of the paths in this file.
    pub(super) fn files(self, list: String) -> Load {
        Load { files: Some(list), ..self }
    }

    /// With files that the kernel has to read from the disk.
    pub(super) fn forgetting(self, forgets: bool) -> Load {
        Load { forgets, ..self }
    }

    /// On the CPUs of the server.
    pub(super) fn beside_the_server(self) -> Load {
        Load { cpus: &pinned::BOTH_CPUS, polls: false, ..self }
    }

    /// With a generator that sleeps while no reply comes, because it is not alone on its CPU.
    pub(super) fn asleep(self) -> Load {
        Load { polls: false, ..self }
    }

    /// Loads a server and returns its requests per second and its CPU time per request in
    /// microseconds.
    ///
    /// # Errors
    ///
    /// The fault: a reply with another status or length, a load generator that failed.
    pub(super) fn run(&self, server: &mut Running) -> Result<(f64, f64), String> {
        let mut words = vec![
            self.program.clone(),
            format!("http://{}:{}{}", server.host(), server.port(), self.file.path),
        ];
        words.extend(
            ["-c", &self.connections.to_string(), "-d", &self.seconds.to_string()].map(str::to_owned),
        );
        if self.depth > 1 {
            words.extend(["--pipeline".to_owned(), self.depth.to_string()]);
        }
        if let Some(list) = &self.files {
            words.extend(["--files".to_owned(), list.clone()]);
        }
        if self.forgets {
            forget_files();
        }
        if let Some(content) = &self.post {
            words.extend(["--post".to_owned(), content.clone()]);
        }
        if self.polls {
            words.push("--busy-poll".to_owned());
        }
        words.push("--json".to_owned());
        let before = server.cpu_ns()?;
        let output = pinned::command_on(self.cpus, &words)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| format!("{}: {error}", self.program))?;
        let used = server.cpu_ns()? - before;
        if !output.status.success() {
            return Err(format!("the load generator says: {}", output.status));
        }
        let report: Value = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("unreadable load report: {error}"))?;
        let number =
            |name: &str| report[name].as_f64().ok_or_else(|| format!("no {name} in the load report"));
        let requests = number("requests")?;
        if requests < 1.0 {
            return Err("no request was answered".to_owned());
        }
        let bytes = number("body_bytes")?;
        let expected = requests * self.file.bytes as f64;
        if bytes != expected {
            return Err(format!("{bytes} bytes of bodies instead of {expected}"));
        }
        server.answered(requests as u64, self.connections * self.depth);
        Ok((number("requests_per_second")?, used as f64 / 1e3 / requests))
    }
}

/// Makes the kernel write its dirty pages and forget all files. This needs root: without it, some
/// files stay in the kernel's cache.
fn forget_files() {
    let _ = Command::new("sync").status();
    let _ = fs::write("/proc/sys/vm/drop_caches", "3");
}
