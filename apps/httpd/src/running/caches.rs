//! The sizes of the caches of each worker: [`sized`] at the start, [`resized`] and [`begin`] at a
//! reload.

use crate::descriptors;
use crate::options::Options;
use crate::startup_error::StartupError;
use selvedge_http::{BlockCache, Config};

/// The configuration of each of `workers` workers, with the process's descriptors shared out among
/// them. Its cache of blocks is `blocks`, or a new one.
///
/// # Errors
/// The process may have too few descriptors.
pub(super) fn sized(
    options: &Options,
    workers: usize,
    blocks: Option<BlockCache>,
) -> Result<Config, StartupError> {
    let is_direct = options.cache_direct > 0;
    // A file that is read past the page cache has a second descriptor.
    let for_each = if is_direct { 2 } else { 1 };
    let cached = options.cache_files.saturating_mul(for_each);
    let shares = descriptors::shares(options.listen.len(), workers, cached)?;
    let blocks = blocks.or_else(|| is_direct.then(|| BlockCache::new(options.cache_direct)));
    Ok(Config {
        validity: options.validity,
        cache_files: shares.cache_files / for_each,
        cache_bytes: options.cache_bytes,
        blocks,
        connections: shares.connections,
        ..Config::default()
    })
}

/// The configuration with the caches of `later`, if they differ from the caches `before`. It has
/// the same `blocks`. `None` also if `cache.direct` is turned on or off, because then another part
/// of the server answers for files.
///
/// # Errors
/// The process may have too few descriptors.
pub(super) fn resized(
    before: &Options,
    later: &Options,
    workers: usize,
    blocks: Option<BlockCache>,
) -> Result<Option<Config>, StartupError> {
    let sizes = |of: &Options| (of.cache_files, of.cache_bytes, of.cache_direct, of.validity);
    let is_direct = |of: &Options| of.cache_direct > 0;
    if sizes(before) == sizes(later) || is_direct(before) != is_direct(later) {
        return Ok(None);
    }
    sized(later, workers, blocks).map(Some)
}

/// Gives the blocks of `config` the room that `later` names, and notes in `started` that the caches
/// are as `later` says. Each worker makes its caches of files anew with its routes.
pub(super) fn begin(config: &Config, started: &mut Options, later: &Options) {
    if let Some(blocks) = &config.blocks {
        blocks.resize(later.cache_direct);
    }
    (started.cache_files, started.cache_bytes) = (later.cache_files, later.cache_bytes);
    (started.cache_direct, started.validity) = (later.cache_direct, later.validity);
}
