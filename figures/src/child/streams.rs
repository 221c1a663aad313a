//! The programs of the figures about coroutine pipelines: over the bytes of a file, over numbers,
//! and over documents. `child.rs` calls `run` for the names that begin with `pipe-`, because
//! their arguments are paths as well as numbers.
//!
//! The figures are in `figures/src/streams`. The programs about the kernel's pipes are in
//! `child/pipes.rs`.

mod bytes;
pub(crate) mod items;
mod sorter;
pub(crate) mod text;

/// Runs the program `name`, with paths and numbers.
///
/// # Errors
/// When there is no such program, or an argument that has to be a number is none.
pub(super) fn run(name: &str, words: &[String]) -> Result<(), String> {
    let number = |word: &String| word.parse().map_err(|_| format!("not a number: {word}"));
    match (name, words) {
        ("tool", [output, input, tool @ ..]) => return bytes::tool(output, input, tool),
        ("grep", [input, output]) => bytes::grep(input, output),
        ("grep-n", [input, output]) => bytes::grep_numbered(input, output),
        ("grep-select", [input, output]) => bytes::grep_select(input, output),
        ("grep-parts", [threads, input, output]) => {
            bytes::grep_in_parts(number(threads)? as u32, input, output);
        }
        ("grep-n-parts", [threads, input, output]) => {
            bytes::grep_numbered_in_parts(number(threads)? as u32, input, output);
        }
        ("grep-iterator", [input, output]) => bytes::grep_iterator(input, output, false),
        ("grep-n-iterator", [input, output]) => bytes::grep_iterator(input, output, true),
        ("rewrite", [needle, input, output]) => bytes::rewrite(needle, input, output),
        ("lines", [input]) => bytes::lines(input),
        ("lines-read-until", [input]) => bytes::lines_read_until(input),
        ("xml", [input]) => bytes::xml(input),
        ("sort", [input, output]) => bytes::sort(input, output),
        ("sorter", [input, output]) => sorter::sort(input, output),
        ("stages", [n]) => items::stages(number(n)?),
        ("stages-iterator", [n]) => items::stages_iterator(number(n)?),
        ("stages-futures", [n]) => items::stages_futures(number(n)?),
        ("bodies", [n]) => items::bodies(number(n)?),
        ("hop", [n, edges]) => items::hop(number(n)?, number(edges)?),
        ("branch", [n]) => items::branch(number(n)?),
        ("plain", [n]) => items::plain(number(n)?),
        ("ahead", [workers, n]) => items::ahead(number(workers)?, number(n)?),
        ("memory-threads", [n]) => items::memory_of_threads(number(n)?),
        ("memory", [n]) => items::memory(number(n)?),
        _ => return Err(format!("no such program of pipelines: {name} {words:?}")),
    }
    Ok(())
}
