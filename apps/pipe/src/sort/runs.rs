//! [`Runs`]: sorted pieces of a stream in temporary files, and their merge.
//!
//! A temporary file has no name in its directory (`O_TMPFILE`; where that is missing, the file is
//! removed when it is open). So the system frees it when the process ends, also by a signal. The
//! directory is `$TMPDIR` or `/tmp`.
//!
//! An item of a file is its length, how often it comes in a row, and what [`Sorted::write`] makes
//! of it. So a stream with many lines that are the same makes small files, and the merge takes the
//! lines of a row without a look at the other runs: no item of another run is between two that are
//! the same and in one run. The two numbers are written in groups of seven bits, the low ones
//! first.

use super::{Gathered, Sorted, compare};
use crate::language::tree::Order;
use selvedge_pipeline::Store;
use std::cmp::Ordering;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, Write};

/// How many bytes one call reads or writes.
const BLOCK: usize = 128 << 10;

/// This number of runs of one generation are merged to one of the next generation.
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
    /// The item that was written last, and how often it has come.
    last: Vec<u8>,
    repeats: u64,
    /// The item that comes.
    next: Vec<u8>,
}

/// Writes a number in groups of seven bits. The last group has no eighth bit.
fn write_number(file: &mut impl Write, mut number: u64) -> io::Result<()> {
    let mut bytes = [0; 10];
    let mut length = 0;
    while number >= 0x80 {
        bytes[length] = number as u8 | 0x80;
        number >>= 7;
        length += 1;
    }
    bytes[length] = number as u8;
    file.write_all(&bytes[..=length])
}

/// Reads a number that [`write_number`] has written.
fn read_number(file: &mut BufReader<File>) -> io::Result<u64> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let mut byte = [0];
        match file.buffer().first() {
            Some(first) => {
                byte = [*first];
                file.consume(1);
            }
            None => file.read_exact(&mut byte)?,
        }
        number |= u64::from(byte[0] & 0x7f) << shift;
        if byte[0] < 0x80 {
            return Ok(number);
        }
        shift += 7;
    }
}

impl RunWriter {
    fn new() -> io::Result<RunWriter> {
        let file = BufWriter::with_capacity(BLOCK, tempfile::tempfile()?);
        Ok(RunWriter { file, last: Vec::new(), repeats: 0, next: Vec::new() })
    }

    /// Takes an item that comes `repeats` times in a row.
    fn write<A: Sorted + ?Sized>(&mut self, item: &A, repeats: u64) -> io::Result<()> {
        self.next.clear();
        item.write(&mut self.next);
        if self.next == self.last {
            self.repeats += repeats;
            return Ok(());
        }
        self.write_last()?;
        std::mem::swap(&mut self.last, &mut self.next);
        self.repeats = repeats;
        Ok(())
    }

    fn write_last(&mut self) -> io::Result<()> {
        if self.repeats == 0 {
            return Ok(());
        }
        write_number(&mut self.file, self.last.len() as u64)?;
        write_number(&mut self.file, self.repeats)?;
        self.file.write_all(&self.last)
    }

    fn finish(mut self, generation: u32) -> io::Result<Run> {
        self.write_last()?;
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
        items.iter::<A>().try_for_each(|item| writer.write(item, 1))?;
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
            writer.write(source.item(), source.repeats)?;
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
    /// How often the item comes yet.
    repeats: u64,
    bytes: Vec<u8>,
}

impl<A: Sorted + ?Sized> Source<A> {
    fn item(&self) -> &A {
        self.item.at(0)
    }

    /// Reads the next item. `false` if there is none.
    fn read(&mut self, order: Order) -> io::Result<bool> {
        // A run ends behind an item.
        if self.file.buffer().is_empty() && self.file.fill_buf()?.is_empty() {
            return Ok(false);
        }
        let length = read_number(&mut self.file)? as usize;
        self.repeats = read_number(&mut self.file)?;
        self.item.clear();
        if let Some(bytes) = self.file.buffer().get(..length) {
            A::keep_written(bytes, &mut self.item);
            self.file.consume(length);
        } else {
            self.bytes.resize(length, 0);
            self.file.read_exact(&mut self.bytes)?;
            A::keep_written(&self.bytes, &mut self.item);
        }
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
            let (item, bytes) = (A::Store::default(), Vec::new());
            let mut source = Source { file, number, item, rank: 0, repeats: 0, bytes };
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

    /// Goes on to the item behind the next one, which comes no more.
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
            let weight = source.item().weight();
            let fitting = ((room - copied) / weight.max(1) + 1) as u64;
            let repeats = source.repeats.min(fitting);
            (0..repeats).for_each(|_| out.keep(source.item()));
            copied += weight * repeats as usize;
            self.sources[0].repeats -= repeats;
            if self.sources[0].repeats == 0 {
                self.advance()?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_pipeline::ListStore;

    #[test]
    fn items_that_are_the_same_stand_once_in_a_run() {
        let (mut runs, mut items) = (Runs::default(), Gathered::<ListStore<u8>>::default());
        for run in 0..3 {
            for _ in 0..1000 {
                items.items().keep(b"weft\n");
                items.items().keep(if run == 1 { b"warp\n" } else { b"knot\n" });
            }
            items.sort::<[u8]>(Order::default());
            runs.add::<[u8]>(&mut items, Order::default()).unwrap();
        }
        let bytes = runs.runs.iter().map(|run| run.file.metadata().unwrap().len()).sum::<u64>();
        assert!(bytes < 64, "{bytes} bytes");
        let (mut merge, mut made) = (runs.merge::<[u8]>(Order::default()).unwrap(), ListStore::default());
        while {
            let before = Store::<[u8]>::count(&made);
            merge.copy_some(100, &mut made).unwrap();
            Store::<[u8]>::count(&made) > before
        } {}
        let expected = [("knot\n", 2000), ("warp\n", 1000), ("weft\n", 3000)];
        let expected = expected.iter().flat_map(|(line, count)| std::iter::repeat_n(line.as_bytes(), *count));
        assert!(made.iter().eq(expected));
    }
}
