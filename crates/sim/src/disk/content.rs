//! The bytes of a simulated file, as programs see them and as a crash may leave them.
//!
//! The bytes are in pages, which clones share until a clone writes one. From the first change of a
//! page on, the file keeps the page as it was at the last sync. So the cost of a sync depends on
//! the changes since the last sync, not on the length of the file.

use crate::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The bytes of a page, the unit that the disk writes or does not write.
pub(super) const PAGE: u64 = 4096;
/// The bytes of a sector, which the disk never writes in part.
const SECTOR: usize = 512;

type Page = [u8; PAGE as usize];

#[derive(Clone, Debug, Default)]
pub(super) struct FileContent {
    /// The pages that were written; the other pages are zeros. Bytes behind the end are zeros too.
    pages: BTreeMap<u64, Arc<Page>>,
    len: u64,
    unsynced: Option<Box<Unsynced>>,
}

/// The changes of a file since it was synced.
#[derive(Clone, Debug)]
struct Unsynced {
    /// The length at that sync.
    len: u64,
    /// The smallest length since that sync.
    lowest: u64,
    /// The pages that have changed since, as they were at that sync.
    before: BTreeMap<u64, Option<Arc<Page>>>,
    /// The pages that a failed sync did not write. No later sync writes them.
    failed: BTreeSet<u64>,
}

impl FileContent {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// How many pages the file takes on the disk.
    pub(super) fn pages(&self) -> u64 {
        self.pages.len() as u64
    }

    /// Reads from a place. Returns the number of bytes, which is 0 at the end only.
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

    /// How many bytes of a write fit if the file may take this number of pages more.
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

    /// Keeps a page that is about to change.
    fn keep(&mut self, page: u64) {
        let before = self.pages.get(&page).cloned();
        let unsynced = self.unsynced();
        unsynced.before.entry(page).or_insert(before);
        unsynced.failed.remove(&page);
    }

    /// Syncs the file: everything is on the disk, except the pages that a failed sync did not
    /// write.
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

    /// Fails to sync the file: from now on its changes count as written, and are not.
    pub(super) fn fail_to_sync(&mut self) {
        if let Some(unsynced) = &mut self.unsynced {
            unsynced.failed = unsynced.before.keys().copied().collect();
        }
    }

    /// The content that a crash leaves.
    pub(super) fn after_crash(mut self, random: &mut Random) -> FileContent {
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
            // Bytes that were written behind the new end are in blocks that no file has.
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
        // Up to this page the file had content before.
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

    /// Draws whether a page is on the disk, or which sectors of it.
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

/// Makes all bytes zeros from a length on.
fn cut_off(pages: &mut BTreeMap<u64, Arc<Page>>, len: u64) {
    pages.split_off(&len.div_ceil(PAGE));
    let inside = (len % PAGE) as usize;
    if inside > 0
        && let Some(last) = pages.get_mut(&(len / PAGE))
    {
        Arc::make_mut(last)[inside..].fill(0);
    }
}

/// The pages of a range of bytes: each with the offset in the page, and with the part of the range
/// that is in the page.
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
