//! The limits of a server: [`limited`] at the start, and [`adopt`] when a reload changes them.

use super::lock::lock;
use super::server::Changeable;
use crate::configuration::Loaded;
use crate::options::Options;
use selvedge_http::request::Limits;
use selvedge_http::{Config, ConnectionGate, HandlerLimits};

/// `config` with the limits and times of `options` that hold for each connection.
pub(super) fn limited(config: Config, options: &Options) -> Config {
    Config {
        limits: Limits {
            head_bytes: options.head_bytes,
            target_bytes: options.head_bytes / 2,
            body_bytes: options.body_bytes,
        },
        idle: options.idle,
        head: options.head,
        body: options.body,
        write: options.write,
        handlers: HandlerLimits { body_bytes: options.body_bytes, ..HandlerLimits::default() },
        ..config
    }
}

/// Makes the limits of `loaded` those of the server. The workers take them over with the routes.
pub(super) fn adopt(shared: &Changeable, loaded: &Loaded) {
    let (later, process) = (&loaded.options, &loaded.process);
    if let Some((options, started)) = &mut *lock(&shared.started) {
        (options.idle, options.head) = (later.idle, later.head);
        (options.body, options.write, options.drain) = (later.body, later.write, later.drain);
        (options.head_bytes, options.body_bytes) = (later.head_bytes, later.body_bytes);
        started.connections_per_address = process.connections_per_address;
        started.balancers.clone_from(&process.balancers);
    }
    let mut gate = lock(&shared.gate);
    *gate = ConnectionGate::after(gate.as_deref(), process.networks(), process.connections_per_address);
}
