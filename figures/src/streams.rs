//! The figures about coroutine pipelines: over bytes in `streams/bytes.rs`, and over numbers in
//! `streams/items.rs`. `main.rs` calls those. This file has the functions that build their
//! contenders.
//!
//! The programs are in `child/streams`, under names that begin with `pipe-`. The figures about the
//! kernel's pipes are in `pipes.rs`.

pub(crate) mod bytes;
pub(crate) mod items;

use crate::contender::inner;
use crate::measure::Contender;
use crate::peers::Compiled;

/// A program of ours, with paths and numbers.
fn ours(system: &str, program: &str, words: &[&str]) -> Contender {
    with_words(inner(system, &format!("pipe-{program}"), &[]), words)
}

/// A program of this binary that needs nothing of ours.
fn theirs(system: &str, program: &str, words: &[&str]) -> Contender {
    Contender { ours: false, ..ours(system, program, words) }
}

/// A compiled peer, with paths and numbers.
fn peer(peer: Compiled, system: &str, words: &[&str]) -> Contender {
    let command = peer.executable().map(|path| vec![path]);
    with_words(Contender { command, ..theirs(system, "", &[]) }, words)
}

fn with_words(mut contender: Contender, words: &[&str]) -> Contender {
    if let Ok(command) = &mut contender.command {
        command.extend(words.iter().map(|&word| word.to_owned()));
    }
    contender
}
