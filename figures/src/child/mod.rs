//! The programs that are measured: ours and tokio's. Each runs as a process of its own and prints `name value`
//! lines, like the peers in `figures/peers`.

mod clock;
mod disk;
mod handmade;
mod ours;
mod tokio_peer;

use selvedge_io::fs::Driver;

use self::handmade::HandMade;

/// Runs the program `words[0]` with the numbers that follow.
///
/// # Errors
///
/// When there is no such program, or its arguments are no numbers.
pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let numbers: Vec<u64> = words
        .iter()
        .skip(1)
        .map(|word| word.parse().map_err(|_| format!("not a number: {word}")))
        .collect::<Result<_, _>>()?;
    let name = words.first().map(String::as_str).unwrap_or_default();
    match (name, numbers.as_slice()) {
        ("memory", &[n]) => ours::memory(n),
        ("alive", &[n]) => ours::alive(n),
        ("switch", &[n, total]) => ours::switch(n, total),
        ("spawn", &[total]) => ours::spawn(total),
        ("spawn-event", &[total]) => ours::spawn_event(total),
        ("spawn-handle", &[total]) => ours::spawn_handle(total),
        ("ring", &[k, hops]) => ours::ring(k, hops),
        ("ring-shared", &[k, hops]) => ours::ring_shared(k, hops),
        ("ring-handmade", &[k, hops]) => ours::ring_handmade(k, hops),
        ("disk", &[n, milliseconds]) => disk::random(n, milliseconds, Driver::Ring),
        ("disk-pool", &[n, milliseconds]) => disk::random(n, milliseconds, Driver::Pool),
        ("tokio-memory", &[n]) => tokio_peer::memory(n),
        ("tokio-switch-self-wake", &[n, total]) => tokio_peer::switch_self_wake(n, total),
        ("tokio-switch-yield-now", &[n, total]) => tokio_peer::switch_yield_now(n, total),
        ("tokio-spawn", &[total]) => tokio_peer::spawn(total),
        ("tokio-spawn-handle", &[total]) => tokio_peer::spawn_handle(total),
        ("tokio-ring-mpsc", &[k, hops]) => tokio_peer::ring_mpsc(k, hops),
        ("tokio-ring-handmade", &[k, hops]) => tokio_peer::ring_handmade(k, hops),
        _ => return Err(format!("no such program: {}", words.join(" "))),
    }
    Ok(())
}

/// A station of a ring over the hand-made MVar: the same code under both runtimes.
async fn station(from: HandMade<u64>, to: HandMade<u64>, rounds: u64) {
    for _ in 0..rounds {
        let token = from.take().await;
        to.put(token + 1).await;
    }
}
