//! Applications, with and without a connection.

mod frames;
mod router;
mod server;
mod simulated;
mod two_ways;
mod websocket;
