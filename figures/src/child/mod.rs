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
mod ours;
mod pipes;
pub(crate) mod projects;
mod reloading;
mod requests;
mod runtime;
mod session;
mod simulation;
pub(crate) mod stamp;
mod starts;
pub(crate) mod stm;
pub(crate) mod streams;
mod timers;
mod tokio_peer;

use std::env;

use selvedge_io::fs::Driver;

use self::handmade::HandMade;
use self::load::Talk;
use self::runtime::{Ours, Runtime, Tokio};
use self::stamp::genome::{self, Sequence};
use self::stamp::intruder::{self, Traffic};
use self::stamp::kmeans::{self, Cloud};
use self::stamp::labyrinth::{self, Maze};
use self::stamp::maps::{Trees, Tries};
use self::stamp::vacation::{self, TravelMix};

/// The environment variable that tells a program of ours to give a wrong answer, so that a figure's
/// own check is checked.
pub(crate) const FAULT: &str = "FIGURES_FAULT";

/// 1 if this run must give a wrong answer, else 0.
fn fault() -> u64 {
    u64::from(env::var_os(FAULT).is_some())
}

/// Runs the program `words[0]` with the numbers that follow.
///
/// # Errors
///
/// There is no program with this name, or an argument is not a number.
pub(crate) fn run(words: &[String]) -> Result<(), String> {
    // `make-compile` has paths as arguments, because a build runner starts it.
    if let [program, steps, output, imports @ ..] = words
        && program == "make-compile"
    {
        let steps = steps.parse().map_err(|_| format!("not a number: {steps}"))?;
        return make::compile(steps, output, imports).map_err(|error| format!("{output}: {error}"));
    }
    match words {
        [program, design, port, path] if program == "log-design" => {
            return log_server::serve(design, port, path);
        }
        [program, memory, path] if program == "log-process" => {
            return log_designs::log_process(memory, path).map_err(|error| format!("{path}: {error}"));
        }
        _ => {}
    }
    // The programs `pipe-..` have words as arguments too.
    if let [program, words @ ..] = words
        && let Some(program) = program.strip_prefix("pipe-")
    {
        return streams::run(program, words);
    }
    let numbers: Vec<u64> = words
        .iter()
        .skip(1)
        .map(|word| word.parse().map_err(|_| format!("not a number: {word}")))
        .collect::<Result<_, _>>()?;
    let name = words.first().map(String::as_str).unwrap_or_default();
    match (name, numbers.as_slice()) {
        ("make-null", &[runner, n]) => make::null(runner, n),
        ("make-dry", &[runner, n]) => make::dry(runner, n),
        ("make-commands", &[runner, n]) => make::commands(runner, n, false),
        ("make-shell", &[runner, n]) => make::commands(runner, n, true),
        ("make-project", &[runner, project]) => projects::project(runner, project)?,
        ("make-session", &[modules, percent]) => session::session(modules, percent),
        ("make-modules", &[runner, modules, percent]) => make::speed_up(runner, modules, percent),
        ("memory", &[n]) => ours::memory(n),
        ("alive", &[n]) => ours::alive(n),
        ("switch", &[n, total]) => ours::switch(n, total),
        ("spawn", &[total]) => ours::spawn(total),
        ("spawn-event", &[total]) => ours::spawn_event(total),
        ("spawn-handle", &[total]) => ours::spawn_handle(total),
        ("ring", &[k, hops]) => ours::ring(k, hops),
        ("ring-shared", &[k, hops]) => ours::ring_shared(k, hops),
        ("ring-handmade", &[k, hops]) => ours::ring_handmade(k, hops),
        ("disk", &[blocks, n, milliseconds]) => disk::random(blocks, n, milliseconds, Driver::Ring),
        ("disk-pool", &[blocks, n, milliseconds]) => disk::random(blocks, n, milliseconds, Driver::Pool),
        ("simulated-yields", &[threads, yields]) => simulation::yields(threads, yields),
        ("simulated-echo", &[clients, messages]) => simulation::echo(clients, messages),
        ("web-app", &[port]) => app::ours(port),
        ("fastcgi-app", &[port, bytes]) => app::fastcgi(port, bytes),
        ("tokio-web-app", &[port]) => app::theirs(port),
        ("web-session", &[port, process, peer, milliseconds]) => {
            reloading::session(port, process, peer, milliseconds)?;
        }
        ("dns-load", &[port, names, window, milliseconds]) => {
            dns_load::load(port, names, window, milliseconds)?;
        }
        ("ftp-load", &[port, session, blocks]) => ftp_load::load(port, session, blocks)?,
        ("lossy-stack", &[number, lost, seed, bytes]) => lossy::ours(number, lost, seed, bytes)?,
        ("lossy-relay", &[number, lost, seed]) => lossy::between(number, lost, seed)?,
        ("lossy-server", &[bytes]) => lossy::theirs(bytes)?,
        ("requests", &[port, connections, total]) => requests::requests(port, connections, total)?,
        ("tokio-memory", &[n]) => tokio_peer::memory(n),
        ("tokio-switch-self-wake", &[n, total]) => tokio_peer::switch_self_wake(n, total),
        ("tokio-switch-yield-now", &[n, total]) => tokio_peer::switch_yield_now(n, total),
        ("tokio-spawn", &[total]) => tokio_peer::spawn(total),
        ("tokio-spawn-handle", &[total]) => tokio_peer::spawn_handle(total),
        ("tokio-ring-mpsc", &[k, hops]) => tokio_peer::ring_mpsc(k, hops),
        ("tokio-ring-handmade", &[k, hops]) => tokio_peer::ring_handmade(k, hops),
        _ => return on_several_cpus(name, &numbers, words),
    }
    Ok(())
}

/// Runs a program of the figures about several workers, pipes, connections or time. For most
/// programs the first number is the number of workers. 0 means the scheduler with one OS thread,
/// which moves no thread.
fn on_several_cpus(name: &str, numbers: &[u64], words: &[String]) -> Result<(), String> {
    if let Some(program) = name.strip_prefix("lwc-") {
        return lwc::ours(program, numbers, fault());
    }
    if let Some(program) = name.strip_prefix("tokio-lwc-") {
        return lwc::theirs(program, numbers, fault());
    }
    if let Some(program) = name.strip_prefix("stm-") {
        return stm::run(program, numbers);
    }
    if let Some(program) = name.strip_prefix("cnc-") {
        return cnc::run(program, numbers);
    }
    if let Some(program) = name.strip_prefix("mpi-") {
        return mpi::run(program, numbers, fault());
    }
    if let Some(program) = name.strip_prefix("lazy-") {
        return lazy::run(program, numbers);
    }
    match (name, numbers) {
        ("compute", &[w, threads, bursts, steps]) => cores::compute::<Ours>(w, threads, bursts, steps),
        ("cores-switch", &[w, n, per]) => cores::switch::<Ours, _>(w, n, per, Ours::yield_now),
        ("cores-spawn", &[w, total]) => cores::spawn::<Ours>(w, total),
        ("cores-ring", &[w, k, tokens, hops]) => cores::ring_mvar(w, k, tokens, hops),
        ("cores-ring-handmade", &[w, k, tokens, hops]) => cores::ring_handmade::<Ours>(w, k, tokens, hops),
        ("skynet", &[w, leaves]) => cores::skynet::<Ours>(w, leaves),
        ("counter-mutex", &[w, threads, total]) => cores::counter_mutex(w, threads, total),
        ("counter-atomic", &[w, threads, total]) => cores::counter_atomic(w, threads, total),
        ("counter-os-mutex", &[threads, total]) => cores::counter_os_mutex(threads, total),
        ("counter-std-mutex", &[threads, total]) => cores::counter_std_mutex(threads, total),
        ("fifo", &[w, pairs, idle, times]) => pipes::fifo::<Ours>(w, pairs, idle, times),
        ("fifo-mvars", &[w, pairs, idle, times]) => pipes::fifo_mvars(w, pairs, idle, times),
        ("vacation", &[w, queries, range, users, rows, actions]) => {
            vacation::vacation::<Tries>(w, TravelMix { queries, range, users, rows, actions });
        }
        ("vacation-tree", &[w, queries, range, users, rows, actions]) => {
            vacation::vacation::<Trees>(w, TravelMix { queries, range, users, rows, actions });
        }
        ("intruder", &[w, attacks, longest, flows]) => {
            intruder::intruder::<Tries>(w, Traffic { attacks, longest, flows });
        }
        ("intruder-tree", &[w, attacks, longest, flows]) => {
            intruder::intruder::<Trees>(w, Traffic { attacks, longest, flows });
        }
        ("genome", &[w, gene, segment, segments]) => {
            genome::genome(w, Sequence { gene, segment, segments });
        }
        ("kmeans", &[w, clusters, points]) => kmeans::kmeans(w, Cloud { clusters, points }),
        ("labyrinth", &[w, side, layers, pairs]) => labyrinth::labyrinth(w, Maze { side, layers, pairs }),
        ("echo", &[w]) => echo::ours(w),
        ("echo-per-core", &[w]) => echo::ours_per_core(w),
        ("echo-load", &[port, process, connections, millis, busy]) => {
            load::load(Talk::Echo, port, process, connections, millis, busy)?;
        }
        ("hello", &[w]) => hello::ours(w, fault()),
        ("tokio-hello", &[w]) => hello::theirs(w, fault()),
        ("hello-load", &[port, process, connections, millis, busy]) => {
            load::load(Talk::Http, port, process, connections, millis, busy)?;
        }
        ("jobs", &[w, number, sync]) => jobs::ours(w, number, sync != 0),
        ("tokio-jobs", &[w, number, sync]) => jobs::theirs(w, number, sync != 0),
        ("jobs-load", &[port, process, connections, jobs]) => {
            jobs::load(port, process, connections, jobs)?;
        }
        ("join-ready", &[n]) => abstractions::join_ready::<Ours>(n),
        ("join-later", &[n]) => abstractions::join_later::<Ours>(n),
        ("select-ready", &[n]) => abstractions::select_ready::<Ours>(n),
        ("select-later", &[n]) => abstractions::select_later::<Ours>(n),
        ("timeout-ready", &[n]) => abstractions::timeout_ready::<Ours>(n),
        ("timeout-later", &[n]) => abstractions::timeout_later::<Ours>(n),
        ("oneshot", &[n]) => abstractions::oneshot::<Ours>(n),
        ("tokio-join-ready", &[n]) => abstractions::join_ready::<Tokio>(n),
        ("tokio-join-later", &[n]) => abstractions::join_later::<Tokio>(n),
        ("tokio-select-ready", &[n]) => abstractions::select_ready::<Tokio>(n),
        ("tokio-select-later", &[n]) => abstractions::select_later::<Tokio>(n),
        ("tokio-timeout-ready", &[n]) => abstractions::timeout_ready::<Tokio>(n),
        ("tokio-timeout-later", &[n]) => abstractions::timeout_later::<Tokio>(n),
        ("tokio-oneshot", &[n]) => abstractions::oneshot::<Tokio>(n),
        ("blocking-call", &[w, threads, calls]) => starts::blocking_call::<Ours>(w, threads, calls, fault()),
        ("runner-start", &[w, runs, calls]) => starts::runner_start::<Ours>(w, runs, calls, fault()),
        ("tokio-blocking-call", &[w, threads, calls]) => {
            starts::blocking_call::<Tokio>(w, threads, calls, fault())
        }
        ("tokio-runner-start", &[w, runs, calls]) => starts::runner_start::<Tokio>(w, runs, calls, fault()),
        ("timers-cancel", &[n]) => timers::cancel::<Ours>(n),
        ("timers-fire", &[n, millis]) => timers::fire::<Ours>(n, millis),
        ("timers-threads", &[n, millis]) => timers::threads::<Ours>(n, millis),
        ("timers-cancel-threads", &[n]) => timers::cancel_threads::<Ours>(n),
        ("tokio-timers-cancel-threads", &[n]) => timers::cancel_threads::<Tokio>(n),
        ("tokio-compute", &[w, threads, bursts, steps]) => {
            cores::compute::<Tokio>(w, threads, bursts, steps);
        }
        ("tokio-cores-switch-self-wake", &[w, n, per]) => cores::switch::<Tokio, _>(w, n, per, Tokio::pause),
        ("tokio-cores-switch-yield-now", &[w, n, per]) => {
            cores::switch::<Tokio, _>(w, n, per, Tokio::yield_now)
        }
        ("tokio-cores-spawn", &[w, total]) => cores::spawn::<Tokio>(w, total),
        ("tokio-cores-ring-handmade", &[w, k, tokens, hops]) => {
            cores::ring_handmade::<Tokio>(w, k, tokens, hops);
        }
        ("tokio-cores-ring-mpsc", &[w, k, tokens, hops]) => cores::ring_mpsc(w, k, tokens, hops),
        ("tokio-skynet", &[w, leaves]) => cores::skynet::<Tokio>(w, leaves),
        ("tokio-counter-mutex", &[w, threads, total]) => cores::tokio_counter_mutex(w, threads, total),
        ("tokio-fifo", &[w, pairs, idle, times]) => pipes::fifo::<Tokio>(w, pairs, idle, times),
        ("tokio-echo", &[w]) => echo::tokio(w),
        ("tokio-timers-cancel", &[n]) => timers::cancel::<Tokio>(n),
        ("tokio-timers-fire", &[n, millis]) => timers::fire::<Tokio>(n, millis),
        ("tokio-timers-threads", &[n, millis]) => timers::threads::<Tokio>(n, millis),
        _ => return Err(format!("no such program: {}", words.join(" "))),
    }
    Ok(())
}

/// Sends the token off, waits until all stations of the ring have ended, and prints the time of one
/// hop. Gives the results of the stations.
async fn around<T, E: std::fmt::Debug>(
    hops: u64,
    start: impl Future<Output = ()>,
    stations: Vec<impl Future<Output = Result<T, E>>>,
) -> Vec<T> {
    let mut ends = Vec::new();
    let first = clock::Times::now();
    start.await;
    for station in stations {
        ends.push(station.await.expect("a station does not panic"));
    }
    first.print_until(clock::Times::now(), hops);
    ends
}

/// A station of a ring over the hand-made MVar: the same code under both runtimes.
async fn station(from: HandMade<u64>, to: HandMade<u64>, rounds: u64) {
    for _ in 0..rounds {
        let token = from.take().await;
        to.put(token + 1).await;
    }
}
