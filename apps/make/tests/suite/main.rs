//! The build runner from outside: its parsers, its logs, and its builds beside ninja's.

mod depfiles;
mod manifests;
