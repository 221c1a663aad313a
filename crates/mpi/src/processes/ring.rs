//! A ring of bytes in shared memory, from one process to one other: [`RingWriter`], [`RingReader`].
//!
//! `rings.rs` sends messages through it, as a stream: each with its length before it, and a long
//! one in pieces, as the reader makes room. So a message may be longer than the ring.
//!
//! # Why a ring for each pair
//! A process may die at any instruction. In a ring with several writers, one that dies between its
//! reservation and its message leaves a hole at which the reader waits for ever. Here a message
//! that was not published is as if it had never been written.
//!
//! # The protocol
//! `written` and `read` count bytes since the beginning and never go back. The writer alone stores
//! `written`, the reader alone `read`. The bytes from `read` to `written` belong to the reader, all
//! others to the writer:
//! - the writer copies bytes in, and then stores `written` with `Release`. The reader loads it with
//!   `Acquire`, so it sees the bytes;
//! - the reader copies bytes out, and then stores `read` with `Release`. The writer loads it with
//!   `Acquire`, so it overwrites no byte that is still read.
//!
//! The counts lie in memory that another process writes. What is read from there limits how many
//! bytes are copied, never where: a position is a count modulo the capacity. So a process that
//! stores nonsense makes nonsense of the messages, and no more.
//!
//! # A writer that waits for room
//! It stores `starved`, looks for room again, and goes to sleep if there is none. The reader, after
//! it has made room, looks at `starved`. Between the store and the load there is a sequentially
//! consistent fence on both sides, so not both of them see the old state. `bell.rs` has the same
//! argument for a reader that waits for bytes. `tests/loom` checks both.

use super::primitives::{AtomicU32, AtomicU64, ByteCell, Ordering, copy_in, copy_out, fence};
use std::fmt;
use std::mem::MaybeUninit;

/// The counts of a ring. All zero is an empty ring. Each count has a cache line of its own.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct RingControl {
    written: AtomicU64,
    _line_of_written: [u64; 7],
    read: AtomicU64,
    _line_of_read: [u64; 7],
    starved: AtomicU32,
    _line_of_starved: [u32; 15],
}

impl RingControl {
    /// An empty ring in memory of this process: for models and tests.
    #[cfg(test)]
    pub(crate) fn new() -> RingControl {
        RingControl {
            written: AtomicU64::new(0),
            _line_of_written: [0; 7],
            read: AtomicU64::new(0),
            _line_of_read: [0; 7],
            starved: AtomicU32::new(0),
            _line_of_starved: [0; 15],
        }
    }

    /// Whether the writer waits for room: asked by the reader after [`RingReader::release`]. If it
    /// is true, the caller rings the writer's bell.
    pub(crate) fn is_writer_starved(&self) -> bool {
        fence(Ordering::SeqCst);
        self.starved.load(Ordering::Relaxed) != 0 && self.starved.swap(0, Ordering::Relaxed) != 0
    }

    /// Whether the reader has something to read, as any OS thread of its process may ask. `read` is
    /// the count that the reader has stored.
    pub(crate) fn has_bytes(&self) -> bool {
        self.written.load(Ordering::Acquire) != self.read.load(Ordering::Relaxed)
    }
}

/// Where the memory of a ring is.
pub(crate) trait RingMemory {
    /// The counts.
    fn control(&self) -> &RingControl;

    /// The bytes: always the same ones, a power of two of them.
    fn cells(&self) -> &[ByteCell];
}

/// The process that writes a ring.
pub(crate) struct RingWriter<M> {
    memory: M,
    written: u64,
    /// What `read` was when it was loaded last.
    read: u64,
}

/// The process that reads a ring.
pub(crate) struct RingReader<M> {
    memory: M,
    read: u64,
}

/// The two pieces of the ring from this position on, for this number of bytes.
fn pieces(cells: &[ByteCell], position: u64, length: usize) -> (&[ByteCell], &[ByteCell]) {
    let start = (position % cells.len() as u64) as usize;
    let first = length.min(cells.len() - start);
    (&cells[start..start + first], &cells[..length - first])
}

impl<M: RingMemory> RingWriter<M> {
    /// The writer of an empty ring.
    ///
    /// # Safety
    /// There is no other writer of this ring, in this process or in another.
    pub(crate) unsafe fn new(memory: M) -> RingWriter<M> {
        RingWriter { memory, written: 0, read: 0 }
    }

    /// How many bytes can be written now, if this many are asked for.
    fn room(&mut self, wanted: usize) -> usize {
        let capacity = self.memory.cells().len();
        let room = |read: u64| capacity.saturating_sub(self.written.wrapping_sub(read) as usize);
        if room(self.read) < wanted {
            self.read = self.memory.control().read.load(Ordering::Acquire);
        }
        room(self.read)
    }

    /// Whether there is room for this number of bytes.
    pub(crate) fn has_room(&mut self, length: usize) -> bool {
        self.room(length) >= length
    }

    /// Copies bytes into the ring, from the front, as many as there is room for. The reader sees
    /// them after [`publish`](Self::publish).
    pub(crate) fn write(&mut self, bytes: &[u8]) -> usize {
        let length = self.room(bytes.len()).min(bytes.len());
        let (first, second) = pieces(self.memory.cells(), self.written, length);
        let (before, after) = bytes[..length].split_at(first.len());
        // SAFETY: `new` was told that this is the only writer. The `length` bytes from `written` on
        // lie outside of `read..written`, because `room` has counted them, so the reader is not at
        // them: it has stored `read` after its last use of them, and `room` has loaded that with
        // `Acquire`.
        unsafe {
            copy_in(first, before);
            copy_in(second, after);
        }
        self.written += length as u64;
        length
    }

    /// Hands over what was written.
    pub(crate) fn publish(&mut self) {
        self.memory.control().written.store(self.written, Ordering::Release);
    }

    /// Asks for a ring of this process's bell when there is room. Returns whether there is some
    /// now; then no bell may come.
    pub(crate) fn starve(&mut self) -> bool {
        let control = self.memory.control();
        control.starved.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let read = control.read.load(Ordering::Acquire);
        let has_room = read != self.read;
        self.read = read;
        has_room
    }
}

impl<M: RingMemory> RingReader<M> {
    /// The reader of an empty ring.
    ///
    /// # Safety
    /// There is no other reader of this ring, in this process or in another.
    pub(crate) unsafe fn new(memory: M) -> RingReader<M> {
        RingReader { memory, read: 0 }
    }

    /// How many bytes can be read.
    pub(crate) fn available(&self) -> usize {
        let written = self.memory.control().written.load(Ordering::Acquire);
        (written.wrapping_sub(self.read) as usize).min(self.memory.cells().len())
    }

    /// Copies bytes out of the ring, and gives the number of them, which are then initialised.
    /// The writer gets the room after [`release`](Self::release).
    pub(crate) fn read(&mut self, into: &mut [MaybeUninit<u8>]) -> usize {
        let length = self.available().min(into.len());
        let (first, second) = pieces(self.memory.cells(), self.read, length);
        let (before, after) = into[..length].split_at_mut(first.len());
        // SAFETY: `new` was told that this is the only reader. The `length` bytes from `read` on
        // lie before `written`, which `available` has loaded with `Acquire`. The writer does not
        // write them before this reader has stored a larger `read`.
        unsafe {
            copy_out(first, before);
            copy_out(second, after);
        }
        self.read += length as u64;
        length
    }

    /// Gives the room of what was read back to the writer.
    pub(crate) fn release(&mut self) {
        self.memory.control().read.store(self.read, Ordering::Release);
    }

    /// The counts.
    pub(crate) fn control(&self) -> &RingControl {
        self.memory.control()
    }
}

impl<M> fmt::Debug for RingWriter<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RingWriter({} bytes written)", self.written)
    }
}

impl<M> fmt::Debug for RingReader<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RingReader({} bytes read)", self.read)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    struct HeapRing {
        control: RingControl,
        cells: Box<[ByteCell]>,
    }

    impl RingMemory for Arc<HeapRing> {
        fn control(&self) -> &RingControl {
            &self.control
        }

        fn cells(&self) -> &[ByteCell] {
            &self.cells
        }
    }

    fn ring(capacity: usize) -> (RingWriter<Arc<HeapRing>>, RingReader<Arc<HeapRing>>) {
        let cells = (0..capacity).map(|_| ByteCell::new()).collect();
        let ring = Arc::new(HeapRing { control: RingControl::new(), cells });
        // SAFETY: the ring is new, and these are its only writer and reader.
        unsafe { (RingWriter::new(ring.clone()), RingReader::new(ring)) }
    }

    fn read(reader: &mut RingReader<Arc<HeapRing>>, most: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(most);
        let count = reader.read(&mut bytes.spare_capacity_mut()[..most]);
        // SAFETY: `read` has initialised this number.
        unsafe { bytes.set_len(count) };
        bytes
    }

    #[test]
    fn bytes_come_after_they_were_published_and_room_after_it_was_released() {
        let (mut writer, mut reader) = ring(8);
        assert_eq!(writer.write(b"abcde"), 5);
        assert_eq!(reader.available(), 0);
        writer.publish();
        assert!(reader.control().has_bytes());
        assert_eq!(read(&mut reader, 4), b"abcd");
        assert!(!writer.has_room(4));
        assert_eq!(writer.write(b"fghij"), 3);
        writer.publish();
        assert!(!writer.starve());
        reader.release();
        assert!(reader.control().is_writer_starved());
        assert!(!reader.control().is_writer_starved());
        assert!(writer.has_room(4));
        assert_eq!(writer.write(b"ij"), 2);
        writer.publish();
        assert_eq!(read(&mut reader, 9), b"efghij");
        reader.release();
        assert!(!reader.control().has_bytes());
    }

    #[test]
    fn counts_that_make_no_sense_copy_no_byte_outside_of_the_ring() {
        let (mut writer, mut reader) = ring(8);
        reader.control().written.store(u64::MAX, Ordering::Relaxed);
        assert_eq!(read(&mut reader, 100).len(), 8);
        reader.control().read.store(1 << 40, Ordering::Relaxed);
        assert_eq!(writer.write(&[1; 100]), 0);
    }

    #[test]
    fn a_stream_between_two_threads() {
        let (mut writer, mut reader) = ring(16);
        let total: usize = if cfg!(miri) { 300 } else { 10_000 };
        let sends = thread::spawn(move || {
            let mut sent = 0;
            while sent < total {
                let length = (sent % 23 + 1).min(total - sent);
                let bytes: Vec<u8> = (sent..sent + length).map(|at| at as u8).collect();
                let written = writer.write(&bytes);
                writer.publish();
                sent += written;
                if written == 0 {
                    thread::yield_now();
                }
            }
        });
        let mut came = 0;
        while came < total {
            let bytes = read(&mut reader, came % 17 + 1);
            for byte in &bytes {
                assert_eq!(*byte, came as u8);
                came += 1;
            }
            reader.release();
            if bytes.is_empty() {
                thread::yield_now();
            }
        }
        sends.join().unwrap();
    }
}
