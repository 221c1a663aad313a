//! Applications, with and without a connection.

mod router;
mod simulated;
mod websocket;
