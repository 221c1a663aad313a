//! The figure about programs that answer: a small C program by CGI, and one application by FastCGI
//! behind each server. The servers have CPU 0, with the programs that they start. The load
//! generator has CPU 1, which it shares with the FastCGI application.

use super::load::Load;
use super::server::{Log, SetUp, start_as};
use super::site::{File, Site};
use super::{Candidate, RATE, compete, rate_and_cpu};
use crate::contender::inner;
use crate::effort::{Effort, Purpose};
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::rows;
use crate::peers::{C_CGI, program_of, program_path};
use crate::pinned::{BOTH_CPUS, CLIENT_CPU, SERVER_CPU};
use crate::table::{Row, Table};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// The figure of this file.
pub(crate) const FIGURES: &[Figure] =
    &[Figure { name: "web-cgi", about: "CGI and FastCGI", measure: programs }];

const CGI: File = File { path: "/cgi-bin/answer?1000", bytes: 1000 };
const FAST_CGI: File = File { path: "/answer.app", bytes: 1000 };

/// Where Debian has Apache's modules.
const MODULES: &str = "/usr/lib/apache2/modules";

/// What the two parts of the figure share.
struct Trial {
    site: Site,
    effort: Effort,
    seconds: u64,
}

impl Trial {
    /// The file that the load asks for. A fault is a file that is longer than the answer.
    fn asked(&self, file: File) -> File {
        File { bytes: file.bytes + usize::from(self.effort.purpose == Purpose::Faults), ..file }
    }

    /// A server. Each has a directory of its own, so the protocol is a part of its name.
    fn by(
        &self,
        protocol: &str,
        system: &'static str,
        ours: bool,
        configure: &dyn Fn(&SetUp) -> Result<Vec<String>, String>,
    ) -> Candidate {
        Candidate::start(system, ours, &BOTH_CPUS[..1], self.effort, || {
            start_as(&format!("{system} {protocol}"), Log::Off, &self.site, &[SERVER_CPU], configure)
        })
    }
}

/// `web-cgi`.
pub(crate) fn programs(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let seconds = if effort.is_small() { 1 } else { effort.seconds };
    let trial = Trial { site: Site::create(0)?, effort, seconds };
    let mut all = by_cgi(&trial)?;
    all.extend(by_fast_cgi(&trial)?);
    Ok(Table {
        name: "web-cgi",
        title: "answers of 1000 bytes by other programs: a C program by CGI, an application by FastCGI".to_owned(),
        machine,
        rows: all,
        notes: vec![
            "CGI: the server and its programs on CPU 0, the busy-polling client on CPU 1; Apache with the event MPM and cgid".to_owned(),
            "FastCGI: the application is ours for both, on CPU 1 beside the client; kept connections".to_owned(),
        ],
    })
}

/// The rows of a C program that a server starts for each request.
fn by_cgi(trial: &Trial) -> Result<Vec<Row>, String> {
    let program = C_CGI.executable()?;
    let bin = trial.site.root().join("cgi-bin");
    let place = |error: std::io::Error| format!("{}: {error}", bin.display());
    fs::create_dir_all(&bin).map_err(place)?;
    fs::copy(&program, bin.join("answer")).map_err(place)?;
    for path in [bin.clone(), bin.join("answer")] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(place)?;
    }
    let bin = bin.display().to_string();
    let file = trial.asked(CGI);
    let load = Load::new(file, 1, trial.seconds)?.connections(8);
    let candidates = vec![
        trial.by("CGI", "selvedge-httpd", true, &|set_up| {
            set_up.configured(&format!("workers = 1\n[[route]]\npath = '/cgi-bin/'\ncgi = '{bin}'\n"))
        }),
        trial.by("CGI", "lighttpd", false, &|set_up| lighttpd(set_up, &bin)),
        trial.by("CGI", "Apache", false, &|set_up| apache(set_up, &bin)),
    ];
    let (contenders, samples) = compete("web-cgi: CGI", file, &load, candidates, trial.effort)?;
    let rates: Vec<Result<Vec<f64>, String>> = samples
        .iter()
        .map(|sample| sample.clone().map(|pairs| pairs.iter().map(|pair| pair.0).collect()))
        .collect();
    Ok(rows("CGI, 8 connections: request rate", &contenders, RATE, &rates))
}

/// The rows of an application of ours behind each server.
fn by_fast_cgi(trial: &Trial) -> Result<Vec<Row>, String> {
    let file = trial.asked(FAST_CGI);
    fs::write(trial.site.root().join("answer.app"), "").map_err(|error| format!("answer.app: {error}"))?;
    let behind = start_as("application", Log::Off, &trial.site, &[CLIENT_CPU], |set_up| {
        inner("application", "fastcgi-app", &[u64::from(set_up.port), FAST_CGI.bytes as u64]).command
    })?;
    let upstream = behind.port();
    let load = Load::new(file, 1, trial.seconds)?.connections(8).asleep();
    let candidates = vec![
        trial.by("FastCGI", "selvedge-httpd", true, &|set_up| {
            set_up.configured(&format!(
                "workers = 1\n[[route]]\nfastcgi = '127.0.0.1:{upstream}'\nroot = '{}'\nindex = ['index.app']\n",
                set_up.root
            ))
        }),
        trial.by("FastCGI", "nginx", false, &|set_up| nginx(set_up, upstream)),
    ];
    let (contenders, samples) = compete("web-cgi: FastCGI", file, &load, candidates, trial.effort)?;
    Ok(rate_and_cpu("FastCGI, 8 connections: ", &contenders, &samples))
}

/// What nginx tells the application of a request.
const PARAMETERS: [(&str, &str); 18] = [
    ("SCRIPT_FILENAME", "$document_root$fastcgi_script_name"),
    ("QUERY_STRING", "$query_string"),
    ("REQUEST_METHOD", "$request_method"),
    ("CONTENT_TYPE", "$content_type"),
    ("CONTENT_LENGTH", "$content_length"),
    ("SCRIPT_NAME", "$fastcgi_script_name"),
    ("REQUEST_URI", "$request_uri"),
    ("DOCUMENT_URI", "$document_uri"),
    ("DOCUMENT_ROOT", "$document_root"),
    ("SERVER_PROTOCOL", "$server_protocol"),
    ("REQUEST_SCHEME", "$scheme"),
    ("GATEWAY_INTERFACE", "CGI/1.1"),
    ("SERVER_SOFTWARE", "nginx/$nginx_version"),
    ("REMOTE_ADDR", "$remote_addr"),
    ("REMOTE_PORT", "$remote_port"),
    ("SERVER_ADDR", "$server_addr"),
    ("SERVER_PORT", "$server_port"),
    ("SERVER_NAME", "$server_name"),
];

fn nginx(set_up: &SetUp, upstream: u16) -> Result<Vec<String>, String> {
    let lines: String =
        PARAMETERS.iter().map(|(name, value)| format!("    fastcgi_param {name} {value};\n")).collect();
    let http = format!(
        "  access_log off;\n  upstream behind {{ server 127.0.0.1:{upstream}; keepalive 64; }}\n\
         \x20 server {{ listen 127.0.0.1:{}; root {}; location / {{\n{lines}    \
         fastcgi_pass behind; fastcgi_keep_conn on; }} }}\n",
        set_up.port, set_up.root
    );
    set_up.nginx_with(1, &http)
}

fn lighttpd(set_up: &SetUp, bin: &str) -> Result<Vec<String>, String> {
    let text = format!(
        "server.modules = (\"mod_alias\", \"mod_cgi\")\nserver.document-root = \"{root}\"\n\
         server.bind = \"127.0.0.1\"\nserver.port = {port}\nserver.max-worker = 0\n\
         server.max-keep-alive-requests = 65535\nserver.max-keep-alive-idle = 75\n\
         server.errorlog = \"{errors}\"\nalias.url = (\"/cgi-bin/\" => \"{bin}/\")\n\
         $HTTP[\"url\"] =~ \"^/cgi-bin/\" {{ cgi.assign = (\"\" => \"\") }}\n",
        root = set_up.root,
        port = set_up.port,
        errors = set_up.shown("errors.log"),
    );
    let configuration = set_up.write("lighttpd.conf", &text)?;
    Ok([program_path("lighttpd")?, "-D".to_owned(), "-f".to_owned(), configuration].into())
}

fn apache(set_up: &SetUp, bin: &str) -> Result<Vec<String>, String> {
    let program = program_of("apache2-bin", "apache2")?;
    let modules: String = ["mpm_event", "authz_core", "alias", "env", "cgid"]
        .map(|name| format!("LoadModule {name}_module {MODULES}/mod_{name}.so\n"))
        .concat();
    let text = format!(
        "{modules}ServerRoot {directory}\nDefaultRuntimeDir {directory}\nPidFile {directory}/apache.pid\n\
         ErrorLog {directory}/errors.log\nScriptSock {directory}/cgid.sock\nListen 127.0.0.1:{port}\n\
         ServerName localhost\nSetEnv ap_trust_cgilike_cl yes\nUser www-data\nGroup www-data\nStartServers 1\nServerLimit 1\n\
         ThreadsPerChild 64\nMaxRequestWorkers 64\nMaxKeepAliveRequests 0\nKeepAliveTimeout 75\n\
         ScriptAlias /cgi-bin/ {bin}/\n<Directory {bin}>\n  Require all granted\n</Directory>\n",
        directory = set_up.shown("."),
        port = set_up.port,
    );
    let configuration = set_up.write("apache.conf", &text)?;
    Ok([program, "-DFOREGROUND".to_owned(), "-f".to_owned(), configuration].into())
}
