//! The HTTP/1.1 engine: sans-I/O parsing and framing, and connection threads on top.
