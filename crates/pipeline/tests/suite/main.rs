//! The tests of this crate in one program, because linking is what takes long.

mod bodies;
mod boxed;
#[cfg(feature = "gzip")]
mod compressed;
#[cfg(feature = "zstd")]
mod compressed_zstd;
mod cycles;
mod every_cut;
mod exact;
mod faults;
mod idle_memory;
mod messages;
#[path = "../misuses/mod.rs"]
mod misuses;
mod parsers;
mod parts;
mod pipeline;
mod pipeline_sections;
mod reading;
