//! The figure about FTP servers: one client fetches a file of 1 GB that is in memory. `main.rs`
//! calls it, and the client is `child/ftp_load.rs`.

use crate::child::FAULT;
use crate::child::ftp_load::{BLOCK, FILE, mark};
use crate::contender::{inner, table};
use crate::effort::Effort;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::{Better, Contender, MeasureError, Metric, Report, in_turn, rows, run, values};
use crate::peers::{built, program_path};
use crate::pinned::{BOTH_CPUS, CLIENT_CPU, SERVER_CPU};
use crate::table::Table;
use crate::web::server::{Log, SetUp, start_as};
use crate::web::site::Site;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

/// The figure of this file.
pub(crate) const FIGURES: &[Figure] =
    &[Figure { name: "ftp", about: "FTP servers: a file of 1 GB", measure: ftp }];

const METRICS: [(&str, Metric); 2] = [
    ("rate", Metric { key: "rate", unit: "MB/s", better: Better::Higher }),
    ("CPU of the server", Metric { key: "cpu", unit: "ms CPU/GB", better: Better::Lower }),
];

/// The blocks of the file, and how many when small numbers are enough.
const BLOCKS: (u64, u64) = (1 << 14, 64);

/// `ftp`.
pub(crate) fn ftp(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let blocks = if effort.is_small() { BLOCKS.1 } else { BLOCKS.0 };
    let site = Site::create(0)?;
    let entrants = ["selvedge-ftpd", "vsftpd"].map(entrant);
    let mut round = 0;
    let mut written = None;
    let samples = in_turn("ftp", &entrants, effort, |entrant| {
        round += 1;
        let is_wrong = entrant.environment.iter().any(|(name, _)| *name == FAULT);
        if written != Some(is_wrong) {
            write_file(&site.root(), blocks, is_wrong).map_err(MeasureError::Failed)?;
            written = Some(is_wrong);
        }
        measured(entrant, &format!("{} {round}", entrant.system), &site, blocks)
    })?;
    let mut all = Vec::new();
    for (name, metric) in METRICS {
        all.extend(rows(&format!("RETR: {name}"), &entrants, metric, &values(&samples, metric.key)));
    }
    let megabytes = blocks * BLOCK as u64 / 1_000_000;
    let title = format!(
        "RETR of {megabytes} MB in memory by an anonymous client; the server on CPU 0, the client on CPU 1"
    );
    let mut table = table("ftp", &title, machine, all);
    table.notes = vec![
        "the client compares the begin of each block of 64 KiB".to_owned(),
        "vsftpd: sendfile as by default, a process for the client".to_owned(),
    ];
    Ok(table)
}

fn entrant(system: &str) -> Contender {
    let ours = system == "selvedge-ftpd";
    let program = if ours { built(system, system) } else { program_path(system) };
    Contender {
        ours,
        command: program.map(|program| vec![program]),
        cpus: &BOTH_CPUS[..1],
        ..inner(system, "ftp", &[])
    }
}

/// Writes the file. With a fault, each block has the mark of another one.
fn write_file(directory: &std::path::Path, blocks: u64, is_wrong: bool) -> Result<(), String> {
    let path: PathBuf = directory.join(FILE);
    let write = || {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(&path)?);
        let mut block = vec![b'f'; BLOCK];
        for number in 0..blocks {
            block[..8].copy_from_slice(&mark(number + u64::from(is_wrong)));
            file.write_all(&block)?;
        }
        file.flush()?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644))
    };
    write().map_err(|error: std::io::Error| format!("{}: {error}", path.display()))
}

/// One transfer from a server that is started for it. A transfer before it is not measured: it
/// brings the file into memory.
fn measured(entrant: &Contender, name: &str, site: &Site, blocks: u64) -> Result<Report, MeasureError> {
    let program = entrant.command.as_ref().map_err(|why| MeasureError::Absent(why.clone()))?[0].clone();
    let server =
        start_as(name, Log::Off, site, &[SERVER_CPU], |set_up| configured(entrant, &program, set_up));
    let server = server.map_err(MeasureError::Failed)?;
    let bytes = blocks * BLOCK as u64;
    let client = || {
        let client = inner("client", "ftp-load", &[server.port().into(), server.id().into(), blocks]);
        let client = Contender { cpus: &[CLIENT_CPU], ..client }.answers("bytes", bytes).answers("wrong", 0);
        run(&client, &["rate", "cpu"], Duration::from_secs(30))
    };
    client()?;
    client()
}

/// The command of a server, with its configuration written.
fn configured(entrant: &Contender, program: &str, set_up: &SetUp) -> Result<Vec<String>, String> {
    if entrant.ours {
        let listen = format!("127.0.0.1:{}", set_up.port);
        let words = [program, "--listen", &listen, "--workers", "1", &set_up.root];
        return Ok(words.map(str::to_owned).to_vec());
    }
    let text = format!(
        "listen=YES\nlisten_address=127.0.0.1\nlisten_port={}\nbackground=NO\nanonymous_enable=YES\n\
         local_enable=NO\nanon_root={}\nno_anon_password=NO\nxferlog_enable=NO\nconnect_from_port_20=NO\n\
         secure_chroot_dir={}\nseccomp_sandbox=NO\n",
        set_up.port,
        set_up.root,
        set_up.empty_directory()?,
    );
    let configuration = set_up.write("vsftpd.conf", &text)?;
    Ok([program, &configuration].map(str::to_owned).to_vec())
}
