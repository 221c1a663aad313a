//! [`hear`]: what the server hears from outside: signals, commands, and systemd's watchdog. It runs
//! on an OS thread of its own.

use super::server::Server;
use crate::{control, prefork, systemd};
use selvedge_core::{JoinHandle, detach_local, spawn_local};
use selvedge_io::net::UnixListener;
use selvedge_io::signal::{Signal, Signals};
use selvedge_io::time::sleep;
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;

/// Hears signals and commands, and tells systemd that the workers run.
pub(super) async fn hear(signals: Signals, socket: Option<UnixListener>, server: Server) {
    if let Some(socket) = socket {
        let server = server.clone();
        detach_local(async move {
            // The process that takes over answers from then on.
            let handed_over = server.shared.handed_over.clone();
            control::answer(socket, &server, &handed_over).await
        });
    }
    if let Some(period) = systemd::watchdog() {
        let shared = server.shared.clone();
        detach_local(async move {
            let mut last: Vec<u64> = vec![0; shared.beats.len()];
            loop {
                sleep(period).await;
                let beats = shared.beats.iter().map(|beat| beat.load(Relaxed));
                if beats.clone().zip(&last).all(|(beat, last)| beat != *last) {
                    systemd::notify("WATCHDOG=1");
                }
                last = beats.collect();
            }
        });
    }
    let watching = server.clone();
    detach_local(async move { watch_servers(&watching).await });
    obey(signals, server).await;
}

/// Asks each server behind a proxy whether it is in order, as the configuration says.
async fn watch_servers(server: &Server) {
    let mut watched: HashMap<String, JoinHandle<()>> = HashMap::new();
    let mut heard = 0;
    loop {
        let wanted = server.shared.parts.watched();
        for (_, thread) in watched.extract_if(|key, _| !wanted.contains_key(key)) {
            thread.cancel();
        }
        for (key, servers) in wanted {
            watched.entry(key).or_insert_with(|| spawn_local(servers.watch()));
        }
        server.reload.requested(&mut heard).await;
    }
}

/// Does what signals ask for.
async fn obey(mut signals: Signals, server: Server) {
    while let Ok(signal) = signals.next().await {
        match signal {
            Signal::HUP => {
                // It reports a mistake itself.
                let _ = server.reload().await;
            }
            Signal::USR1 => server.reopen_log().await,
            // Its parent has handed over.
            Signal::USR2 if prefork::is_one_of_several() => server.retire(),
            Signal::USR2 => {
                // A failure is reported.
                if server.upgrade().await.is_ok() {
                    server.retire();
                }
            }
            _ if server.stop.is_requested() && !server.shared.retires.load(Relaxed) => std::process::exit(1),
            _ => server.stop(),
        }
    }
}
