//! The programs that are measured: ours and tokio's. `figures child NAME NUMBERS..` runs one as a
//! process of its own, and `main.rs` calls `run` for it. `contender.rs` makes these command lines.
//!
//! Each program prints `name value` lines, like the peers in `figures/peers`. The names are those
//! of the metrics and answers of its figure. With `FIGURES_FAULT` in the environment a program
//! gives a wrong answer, so that each figure's check is checked.

mod abstractions;
mod app;
mod clock;
pub(crate) mod cnc;
pub(crate) mod cores;
mod disk;
pub(crate) mod dns_load;
mod echo;
mod faulty;
pub(crate) mod ftp_load;
mod handmade;
mod hello;
pub(crate) mod jobs;
mod lazy;
mod load;
mod log_designs;
mod log_server;
mod lossy;
mod lwc;
pub(crate) mod make;
mod mapped;
pub(crate) mod mpi;
mod numbers;
mod ours;
mod pipes;
pub(crate) mod projects;
mod reloading;
mod requests;
mod ring;
mod runtime;
mod session;
mod simulation;
pub(crate) mod stamp;
mod starts;
pub(crate) mod stm;
pub(crate) mod streams;
mod timers;
mod tokio_peer;

use selvedge_io::fs::Driver;

pub(crate) use self::faulty::FAULT;
use self::faulty::fault;
use self::load::Talk;

/// Runs a program of a module with its numbers. `false` if the module has no program of this name.
type Programs = fn(&str, &[u64]) -> Result<bool, String>;

/// The modules that have several programs.
const MODULES: [Programs; 15] = [
    abstractions::run,
    app::run,
    cores::run,
    echo::run,
    hello::run,
    jobs::run,
    make::run,
    ours::run,
    pipes::run,
    simulation::run,
    single,
    stamp::run,
    starts::run,
    timers::run,
    tokio_peer::run,
];

/// Runs a program with its numbers.
type Family = fn(&str, &[u64]) -> Result<(), String>;

/// The modules that own all names with a prefix. They get the rest of the name.
const FAMILIES: [(&str, Family); 6] = [
    ("cnc-", cnc::run),
    ("lazy-", lazy::run),
    ("lwc-", |program, numbers| lwc::ours(program, numbers, fault())),
    ("mpi-", |program, numbers| mpi::run(program, numbers, fault())),
    ("stm-", stm::run),
    ("tokio-lwc-", |program, numbers| lwc::theirs(program, numbers, fault())),
];

/// Runs the program `words[0]` with the numbers that follow.
///
/// # Errors
///
/// There is no program with this name, or an argument is not a number.
pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let (name, arguments) =
        words.split_first().map_or(("", words), |(name, arguments)| (name.as_str(), arguments));
    if let Some(ran) = with_words(name, arguments) {
        return ran;
    }
    let numbers: Vec<u64> = arguments.iter().map(|word| number(word)).collect::<Result<_, _>>()?;
    let family = |(prefix, run): &(&str, Family)| Some((name.strip_prefix(prefix)?, *run));
    if let Some((program, run)) = FAMILIES.iter().find_map(family) {
        return run(program, &numbers);
    }
    for run in MODULES {
        if run(name, &numbers)? {
            return Ok(());
        }
    }
    Err(format!("no such program: {}", words.join(" ")))
}

fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("not a number: {word}"))
}

/// Runs a program that has names or paths among its arguments. `None` if it is none of these.
fn with_words(name: &str, arguments: &[String]) -> Option<Result<(), String>> {
    // The programs `pipe-..` have words as arguments too.
    if let Some(program) = name.strip_prefix("pipe-") {
        return Some(streams::run(program, arguments));
    }
    Some(match (name, arguments) {
        // A build runner starts it.
        ("make-compile", [steps, output, imports @ ..]) => number(steps).and_then(|steps| {
            make::compile(steps, output, imports).map_err(|error| format!("{output}: {error}"))
        }),
        ("log-design", [design, port, path]) => log_server::serve(design, port, path),
        ("log-process", [memory, path]) => {
            log_designs::log_process(memory, path).map_err(|error| format!("{path}: {error}"))
        }
        _ => return None,
    })
}

/// The modules that have one program each, or one for each kind of server. For most programs the
/// first number is a port or the number of workers. 0 workers stand for the scheduler with one OS
/// thread, which moves no thread.
fn single(name: &str, numbers: &[u64]) -> Result<bool, String> {
    match (name, numbers) {
        ("make-project", &[runner, project]) => projects::project(runner, project)?,
        ("make-session", &[modules, percent]) => session::session(modules, percent),
        ("disk", &[blocks, n, milliseconds]) => disk::random(blocks, n, milliseconds, Driver::Ring),
        ("disk-pool", &[blocks, n, milliseconds]) => disk::random(blocks, n, milliseconds, Driver::Pool),
        ("web-session", &[port, process, peer, milliseconds]) => {
            reloading::session(port, process, peer, milliseconds)?;
        }
        ("dns-load", &[port, names, window, milliseconds]) => {
            dns_load::load(port, names, window, milliseconds)?;
        }
        ("lossy-stack", &[number, lost, seed, bytes]) => {
            lossy::ours(number, lost, seed, bytes, fault())?;
        }
        ("lossy-relay", &[number, lost, seed]) => lossy::between(number, lost, seed)?,
        ("lossy-server", &[bytes]) => lossy::theirs(bytes)?,
        ("ftp-load", &[port, session, blocks]) => ftp_load::load(port, session, blocks)?,
        ("requests", &[port, connections, total]) => requests::requests(port, connections, total)?,
        ("echo-load", &[port, process, connections, millis, busy]) => {
            load::load(Talk::Echo, port, process, connections, millis, busy)?;
        }
        ("hello-load", &[port, process, connections, millis, busy]) => {
            load::load(Talk::Http, port, process, connections, millis, busy)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}
