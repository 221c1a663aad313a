//! The bytes of a simulated file: as programs see them, and as a crash may leave them.
//!
//! Bytes are in pages, which clones share until one of them is written. What a page was when the file was last synced is kept from its
//! first change on, so that syncing costs what was changed since, not the length of the file.

use crate::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How many bytes a page has; what the disk writes at once, or does not.
pub(super) const PAGE: u64 = 4096;
/// How many bytes the disk never writes half.
const SECTOR: usize = 512;

type Page = [u8; PAGE as usize];

#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    /// Those that were written; the others are zeros. What is behind the end is zeros too.
    pages: BTreeMap<u64, Arc<Page>>,
    len: u64,
    unsynced: Option<Box<Unsynced>>,
}

/// What has happened to a file since it was synced.
#[derive(Clone, Debug)]
struct Unsynced {
    /// Its length then.
    len: u64,
    /// The smallest length it has had since.
    lowest: u64,
    /// What the pages were that have changed since.
    before: BTreeMap<u64, Option<Arc<Page>>>,
    /// Those that a sync which failed did not write, and no later one will.
    failed: BTreeSet<u64>,
}

impl Content {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// How many pages it takes.
    pub(super) fn pages(&self) -> u64 {
        self.pages.len() as u64
    }

    /// Reads from a place; how much, which is 0 at the end only.
    pub(super) fn read(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let length = self.len.saturating_sub(offset).min(buffer.len() as u64) as usize;
        for (page, from, part) in pages_of(offset, length) {
            let target = &mut buffer[part];
            match self.pages.get(&page) {
                Some(bytes) => target.copy_from_slice(&bytes[from..][..target.len()]),
                None => target.fill(0),
            }
        }
        length
    }

    /// How many of these bytes can be written with so many pages more.
    pub(super) fn fits(&self, offset: u64, length: usize, mut pages_left: u64) -> usize {
        for (page, _, part) in pages_of(offset, length) {
            if !self.pages.contains_key(&page) {
                if pages_left == 0 {
                    return part.start;
                }
                pages_left -= 1;
            }
        }
        length
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        for (page, from, part) in pages_of(offset, bytes.len()) {
            self.keep(page);
            let target = self.pages.entry(page).or_insert_with(|| Arc::new([0; PAGE as usize]));
            Arc::make_mut(target)[from..][..part.len()].copy_from_slice(&bytes[part]);
        }
        if !bytes.is_empty() {
            self.len = self.len.max(offset + bytes.len() as u64);
        }
    }

    pub(super) fn truncate(&mut self, len: u64) {
        let unsynced = self.unsynced();
        unsynced.lowest = unsynced.lowest.min(len);
        if len < self.len {
            let cut: Vec<u64> = self.pages.range(len / PAGE..).map(|(&page, _)| page).collect();
            cut.iter().for_each(|&page| self.keep(page));
            cut_off(&mut self.pages, len);
        }
        self.len = len;
    }

    fn unsynced(&mut self) -> &mut Unsynced {
        let len = self.len;
        self.unsynced.get_or_insert_with(|| {
            Box::new(Unsynced { len, lowest: len, before: BTreeMap::new(), failed: BTreeSet::new() })
        })
    }

    /// A page is about to change.
    fn keep(&mut self, page: u64) {
        let before = self.pages.get(&page).cloned();
        let unsynced = self.unsynced();
        unsynced.before.entry(page).or_insert(before);
        unsynced.failed.remove(&page);
    }

    /// Everything is on the disk now, but what an earlier sync has failed to write.
    pub(super) fn sync(&mut self) {
        let len = self.len;
        let Some(unsynced) = &mut self.unsynced else { return };
        let Unsynced { before, failed, .. } = &mut **unsynced;
        before.retain(|page, _| failed.contains(page));
        unsynced.len = len;
        unsynced.lowest = len;
        if unsynced.before.is_empty() {
            self.unsynced = None;
        }
    }

    /// A sync fails: what it was to write counts as written from now on, and is not.
    pub(super) fn fail_to_sync(&mut self) {
        if let Some(unsynced) = &mut self.unsynced {
            unsynced.failed = unsynced.before.keys().copied().collect();
        }
    }

    /// What a crash leaves.
    pub(super) fn after_crash(mut self, random: &mut Random) -> Content {
        let Some(unsynced) = self.unsynced.take() else { return self };
        let Unsynced { len, lowest, before, .. } = *unsynced;
        let luck = random.below(4);
        let was_cut = lowest < len;
        let cutting_is_lost = match luck {
            0 => was_cut,
            1 => false,
            _ => was_cut && random.below(2) == 0,
        };
        if cutting_is_lost {
            // What was written behind the new end has gone to other blocks, which nothing leads to.
            for (&page, old) in before.range(lowest.div_ceil(PAGE)..) {
                put(&mut self.pages, page, old.clone());
            }
            self.len = len;
        } else {
            let [old, new] = [lowest, self.len];
            let between = (old + random.below(new - old + 1)) / PAGE * PAGE;
            self.len = match luck {
                0 => old,
                1 => new,
                _ => [old, new, between.max(old)][random.below(3) as usize],
            };
        }
        // Up to here there was something before.
        let old_pages = lowest.div_ceil(PAGE);
        for (&page, old) in &before {
            let mut old = old.clone().filter(|_| page < old_pages);
            let end = lowest.saturating_sub(page * PAGE);
            if let Some(bytes) = &mut old
                && !cutting_is_lost
                && end < PAGE
            {
                Arc::make_mut(bytes)[end as usize..].fill(0);
            }
            if page < old_pages || !cutting_is_lost {
                self.settle(page, old, luck, random);
            }
        }
        cut_off(&mut self.pages, self.len);
        self
    }

    /// Decides whether a page is on the disk, or how much of it.
    fn settle(&mut self, page: u64, old: Option<Arc<Page>>, luck: u64, random: &mut Random) {
        let fate = match luck {
            0 => 0,
            1 => 1,
            _ => random.below(3),
        };
        let settled = match (fate, old) {
            (0, old) => old,
            (1, _) => return,
            (_, old) => {
                let mut torn = old.unwrap_or_else(|| Arc::new([0; PAGE as usize]));
                let new = self.pages.get(&page).map_or([0; PAGE as usize], |new| **new);
                let sectors = Arc::make_mut(&mut torn).chunks_mut(SECTOR);
                for (target, source) in sectors.zip(new.chunks(SECTOR)) {
                    if random.below(2) == 0 {
                        target.copy_from_slice(source);
                    }
                }
                Some(torn)
            }
        };
        put(&mut self.pages, page, settled);
    }
}

fn put(pages: &mut BTreeMap<u64, Arc<Page>>, page: u64, bytes: Option<Arc<Page>>) {
    match bytes {
        Some(bytes) => pages.insert(page, bytes),
        None => pages.remove(&page),
    };
}

/// Makes zeros of everything from a length on.
fn cut_off(pages: &mut BTreeMap<u64, Arc<Page>>, len: u64) {
    pages.split_off(&len.div_ceil(PAGE));
    let inside = (len % PAGE) as usize;
    if inside > 0
        && let Some(last) = pages.get_mut(&(len / PAGE))
    {
        Arc::make_mut(last)[inside..].fill(0);
    }
}

/// The pages of a stretch: each with where in it the stretch goes on, and with what of the stretch.
fn pages_of(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let from = (at % PAGE) as usize;
        let part = done..(done + PAGE as usize - from).min(length);
        done = part.end;
        (!part.is_empty()).then_some((at / PAGE, from, part))
    })
}
