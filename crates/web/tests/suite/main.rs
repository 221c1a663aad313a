//! Applications, with and without a connection.

mod frames;
mod router;
mod server;
mod simulated;
mod websocket;
