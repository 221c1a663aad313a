//! Adapters on our threads, on foreign executors and in simulated worlds, in one program, because
//! linking is what takes long.

mod common;

#[cfg(feature = "hyper")]
mod auto_traits;
#[cfg(feature = "hyper")]
mod hyper;
#[cfg(feature = "axum")]
mod serve;
#[cfg(feature = "hyper")]
mod simulated;
#[cfg(all(feature = "futures-io", feature = "tokio"))]
mod streams;
#[cfg(feature = "futures-io")]
mod tls;
#[cfg(feature = "tokio-runtime")]
mod tokio_runtime;
#[cfg(feature = "tower")]
mod tower;
mod transactions;
