//! Applications, with and without a connection.

mod router;
mod server;
mod simulated;
mod websocket;
