//! Formats of streams: parsers and encoders as stages, and `read` for one value from the front of a
//! stream. Each of them is a public module of the crate.

pub mod binary;
pub mod csv;
#[cfg(feature = "gzip")]
pub mod gzip;
pub mod json;
pub mod read;
pub mod xml;
#[cfg(feature = "zstd")]
pub mod zstd;
