//! [`Runs`]: sorted pieces of a stream in temporary files, and their merge.
//!
//! A temporary file has no name in its directory (`O_TMPFILE`; where that is missing, the file is
//! removed when it is open). So the system frees it when the process ends, also by a signal. The
//! directory is `$TMPDIR` or `/tmp`.
//!
//! An item of a file is its length in eight bytes, and what [`Sorted::write`] makes of it.

use super::{Gathered, Sorted, compare};
use crate::language::tree::Order;
use selvedge_coroutine::pipeline::Store;
use std::cmp::Ordering;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};

/// How many bytes one call reads or writes.
const BLOCK: usize = 128 << 10;

/// So many runs of one generation are merged to one of the next generation.
const MOST: usize = 16;

/// The sorted pieces of a stream, in the order in which the pieces came.
#[derive(Debug, Default)]
pub(super) struct Runs {
    runs: Vec<Run>,
}

#[derive(Debug)]
struct Run {
    file: File,
    /// How often its items were written.
    generation: u32,
}

/// Writes items to a temporary file.
struct RunWriter {
    file: BufWriter<File>,
    bytes: Vec<u8>,
}

impl RunWriter {
    fn new() -> io::Result<RunWriter> {
        Ok(RunWriter { file: BufWriter::with_capacity(BLOCK, tempfile::tempfile()?), bytes: Vec::new() })
    }

    fn write<A: Sorted + ?Sized>(&mut self, item: &A) -> io::Result<()> {
        self.bytes.clear();
        item.write(&mut self.bytes);
        self.file.write_all(&(self.bytes.len() as u64).to_le_bytes())?;
        self.file.write_all(&self.bytes)
    }

    fn finish(self, generation: u32) -> io::Result<Run> {
        let mut file = self.file.into_inner()?;
        file.rewind()?;
        Ok(Run { file, generation })
    }
}

impl Runs {
    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Writes sorted items as the next run, and removes them.
    ///
    /// # Errors
    /// Those of the temporary files.
    pub(super) fn add<A: Sorted + ?Sized>(
        &mut self,
        items: &mut Gathered<A::Store>,
        order: Order,
    ) -> io::Result<()> {
        let mut writer = RunWriter::new()?;
        items.iter::<A>().try_for_each(|item| writer.write(item))?;
        items.clear::<A>();
        self.runs.push(writer.finish(0)?);
        while let Some(first) = self.full_generation() {
            self.merge_from::<A>(first, order)?;
        }
        Ok(())
    }

    /// Where the last [`MOST`] runs begin, if they are of one generation.
    fn full_generation(&self) -> Option<usize> {
        let first = self.runs.len().checked_sub(MOST)?;
        let newest = self.runs.last()?.generation;
        (self.runs[first].generation == newest).then_some(first)
    }

    /// Merges the runs from `first` on to one.
    fn merge_from<A: Sorted + ?Sized>(&mut self, first: usize, order: Order) -> io::Result<()> {
        let generation = self.runs[first].generation + 1;
        let mut merge = Merge::<A>::new(self.runs.drain(first..), order)?;
        let mut writer = RunWriter::new()?;
        while let Some(source) = merge.least() {
            writer.write(source.item())?;
            merge.advance()?;
        }
        self.runs.push(writer.finish(generation)?);
        Ok(())
    }

    /// All runs as one sorted stream.
    ///
    /// # Errors
    /// Those of the temporary files.
    pub(super) fn merge<A: Sorted + ?Sized>(mut self, order: Order) -> io::Result<Merge<A>> {
        // There are at most `MOST - 1` runs of each generation. So this happens for huge streams.
        while self.runs.len() > 4 * MOST {
            self.merge_from::<A>(self.runs.len() - MOST, order)?;
        }
        Merge::new(self.runs.drain(..), order)
    }
}

/// A run that is read.
struct Source<A: Sorted + ?Sized> {
    file: BufReader<File>,
    /// The place of the run among all. An item of an earlier run comes before one that is equal.
    number: usize,
    /// The item that is next, and its rank.
    item: A::Store,
    rank: u64,
    bytes: Vec<u8>,
}

impl<A: Sorted + ?Sized> Source<A> {
    fn item(&self) -> &A {
        self.item.at(0)
    }

    /// Reads the next item. `false` if there is none.
    fn read(&mut self, order: Order) -> io::Result<bool> {
        let mut length = [0; 8];
        // A run ends behind an item.
        if self.file.buffer().is_empty() && io::BufRead::fill_buf(&mut self.file)?.is_empty() {
            return Ok(false);
        }
        self.file.read_exact(&mut length)?;
        self.bytes.resize(u64::from_le_bytes(length) as usize, 0);
        self.file.read_exact(&mut self.bytes)?;
        self.item.clear();
        A::keep_written(&self.bytes, &mut self.item);
        self.rank = self.item().rank(order);
        Ok(true)
    }

    fn compare(&self, other: &Source<A>, order: Order) -> Ordering {
        let ordering = compare((self.rank, self.item()), (other.rank, other.item()), order);
        ordering.then(self.number.cmp(&other.number))
    }
}

/// Runs that are merged.
pub(super) struct Merge<A: Sorted + ?Sized> {
    order: Order,
    /// A heap: no source is before the one at half of its place.
    sources: Vec<Source<A>>,
}

impl<A: Sorted + ?Sized> Merge<A> {
    fn new(runs: impl Iterator<Item = Run>, order: Order) -> io::Result<Merge<A>> {
        let mut merge = Merge { order, sources: Vec::new() };
        for (number, run) in runs.enumerate() {
            let file = BufReader::with_capacity(BLOCK, run.file);
            let mut source = Source { file, number, item: A::Store::default(), rank: 0, bytes: Vec::new() };
            if source.read(order)? {
                merge.sources.push(source);
            }
        }
        for at in (0..merge.sources.len() / 2).rev() {
            merge.sink(at);
        }
        Ok(merge)
    }

    /// The source with the next item.
    fn least(&self) -> Option<&Source<A>> {
        self.sources.first()
    }

    /// Goes on to the item behind the next one.
    fn advance(&mut self) -> io::Result<()> {
        if !self.sources[0].read(self.order)? {
            self.sources.swap_remove(0);
        }
        self.sink(0);
        Ok(())
    }

    /// Moves a source down the heap, until no source below is before it.
    fn sink(&mut self, mut at: usize) {
        let is_before = |sources: &[Source<A>], a: usize, b: usize| {
            b >= sources.len() || sources[a].compare(&sources[b], self.order).is_lt()
        };
        loop {
            let left = 2 * at + 1;
            if left >= self.sources.len() {
                return;
            }
            let child = if is_before(&self.sources, left, left + 1) { left } else { left + 1 };
            if is_before(&self.sources, at, child) {
                return;
            }
            self.sources.swap(at, child);
            at = child;
        }
    }

    /// Copies the next items to `out`, until they are some `room` bytes. None is left after a call
    /// that copies none.
    ///
    /// # Errors
    /// Those of the temporary files.
    pub(super) fn copy_some(&mut self, room: usize, out: &mut A::Store) -> io::Result<()> {
        let mut copied = 0;
        while copied < room
            && let Some(source) = self.least()
        {
            copied += source.item().weight();
            out.keep(source.item());
            self.advance()?;
        }
        Ok(())
    }
}
