//! The build runner from outside: its parsers, its logs, and its builds beside ninja's.

mod beside_ninja;
mod builds;
mod bytes;
mod depfiles;
mod dyndeps;
mod hostile;
mod jobs;
mod kills;
mod logs;
mod manifests;
mod projects;
mod shown;
mod small;
mod tools;
