//! What a worker keeps so that it is not asked again: [`Verified`] passwords and [`Compressed`]
//! files.

use crate::cache::CachedFile;
use crate::document_root::Identity;
use selvedge_core::Time;
use selvedge_site::accept::Coding;
use selvedge_site::password::Users;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;
use std::time::Duration;

/// How long a password that was verified is not verified again.
const VALIDITY: Duration = Duration::from_secs(60);

/// The most passwords that are kept.
const MARKS_MAX: usize = 4096;

/// The most bytes of compressed files in one worker.
const COMPRESSED_BYTES_MAX: usize = 32 << 20;

/// Passwords that were verified lately. A mark is a hash of name and password with two random keys,
/// so no password is kept.
#[derive(Default)]
pub(super) struct Verified {
    keys: [RandomState; 2],
    until: HashMap<u128, Time>,
}

impl Verified {
    /// The mark of a name and a password among `users`.
    pub(super) fn mark(&self, users: &Users, name: &str, password: &[u8]) -> u128 {
        let [high, low] = [0, 1].map(|key| self.keys[key].hash_one((users.identity(), name, password)));
        u128::from(high) << 64 | u128::from(low)
    }

    pub(super) fn has(&self, mark: u128, now: Time) -> bool {
        self.until.get(&mark).is_some_and(|until| now < *until)
    }

    pub(super) fn insert(&mut self, mark: u128, now: Time) {
        if self.until.len() >= MARKS_MAX {
            self.until.retain(|_, until| now < *until);
            if self.until.len() >= MARKS_MAX {
                self.until.clear();
            }
        }
        self.until.insert(mark, now + VALIDITY);
    }
}

/// Directory, name and coding of a file.
type PackedKey = (usize, Vec<u8>, Coding);

/// Files as they are compressed, each for one state of the file.
#[derive(Default)]
pub(super) struct Compressed {
    /// `None` for a file that does not get shorter.
    files: HashMap<PackedKey, (Identity, Option<Rc<CachedFile>>)>,
    bytes: usize,
}

impl Compressed {
    /// The file in `coding`, if it is kept for this state of it.
    pub(super) fn get(
        &self,
        directory: usize,
        name: &[u8],
        coding: Coding,
        identity: Identity,
    ) -> Option<Option<Rc<CachedFile>>> {
        let (kept, packed) = self.files.get(&(directory, name.to_vec(), coding))?;
        (*kept == identity).then(|| packed.clone())
    }

    pub(super) fn insert(
        &mut self,
        directory: usize,
        name: &[u8],
        coding: Coding,
        identity: Identity,
        packed: Option<Rc<CachedFile>>,
    ) {
        let bytes = |packed: &Option<Rc<CachedFile>>| {
            packed.as_ref().map_or(0, |file| file.representation.len() as usize) + name.len() + 256
        };
        let added = bytes(&packed);
        if self.bytes + added > COMPRESSED_BYTES_MAX {
            *self = Compressed::default();
        }
        self.bytes += added;
        let replaced = self.files.insert((directory, name.to_vec(), coding), (identity, packed));
        if let Some((_, replaced)) = replaced {
            self.bytes -= bytes(&replaced);
        }
    }
}
