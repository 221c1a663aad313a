//! The shell from outside: its language, its recipes beside the tools of a system, its errors.

mod chunks;
mod data;
mod interactive;
mod language;
mod long_lines;
mod mended;
mod misfits;
mod numbers;
mod oracles;
mod parts;
mod recipes;
mod runs;
mod sections;
mod sorting;
