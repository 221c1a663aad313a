//! The build runner from outside: its parsers, its logs, and its builds beside ninja's.

mod beside_ninja;
mod depfiles;
mod manifests;
mod projects;
