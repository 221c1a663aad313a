//! The buffers of operations: the trait `Buffer` (for programs), `AlignedBuf` (a buffer that direct
//! access accepts), and `Bytes` (the form that an operation keeps).
//!
//! `File` turns a program's buffer into `Bytes` and back (`file.rs`). `operation.rs` and `uring.rs`
//! hand the address of `Bytes` to the kernel, so the bytes must not move while an operation is
//! under way; they lie on the heap or in a `Region`. `Bytes::ToCome` has no memory yet: the
//! operation gets its buffer when it begins, so a million waiting reads take none. Each OS thread
//! keeps freed aligned buffers for its next ones, at most `KEPT_MAX` bytes of a size.

use super::region::{self, DiskRegion};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::RefCell;
use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// A buffer with an address and a capacity that are multiples of [`ALIGNMENT`](Self::ALIGNMENT).
/// Transfers of files that are opened for [direct](super::OpenOptions::direct) access need it.
///
/// Buffers up to 1 MiB are recycled: each OS thread keeps up to 2 MiB of each size, from the
/// buffers that were dropped there.
///
/// # Examples
/// ```
/// use selvedge::fs::AlignedBuf;
///
/// let mut buffer = AlignedBuf::new(512);
/// assert_eq!(buffer.as_ptr().addr() % AlignedBuf::ALIGNMENT, 0);
/// buffer[..5].copy_from_slice(b"hello");
/// buffer.set_len(5);
/// assert_eq!(&buffer[..], b"hello");
/// ```
pub struct AlignedBuf {
    start: NonNull<u8>,
    length: u32,
    /// The capacity, in units of [`ALIGNMENT`](Self::ALIGNMENT); 0 for a block of a region.
    pages: u32,
}

const _: () = assert!(size_of::<Bytes>() == 24, "a buffer in an operation takes no more than a Vec");

// SAFETY: an `AlignedBuf` alone owns its bytes, like a `Vec`.
unsafe impl Send for AlignedBuf {}
// SAFETY: a shared `AlignedBuf` lends its bytes for reading only.
unsafe impl Sync for AlignedBuf {}

/// The recycled sizes: 4 KiB doubled up to eight times.
const CLASSES: usize = 9;
/// The most bytes of each size that an OS thread keeps.
const KEPT_MAX: usize = 2 << 20;

/// The buffers that an OS thread keeps, by size.
struct FreeBuffers([Vec<NonNull<u8>>; CLASSES]);

thread_local! {
    static FREE: RefCell<FreeBuffers> = const { RefCell::new(FreeBuffers([const { Vec::new() }; CLASSES])) };
}

impl Drop for FreeBuffers {
    fn drop(&mut self) {
        for (class, kept) in self.0.iter().enumerate() {
            for start in kept {
                // SAFETY: `recycled` allocated the buffer with this layout, because the list has
                // only buffers of its class. `AlignedBuf::drop` gave the buffer to the list.
                unsafe { dealloc(start.as_ptr(), layout(1 << class)) };
            }
        }
    }
}

/// The recycled size that holds `length` bytes.
fn class(length: usize) -> Option<usize> {
    let class = length.div_ceil(AlignedBuf::ALIGNMENT).next_power_of_two().trailing_zeros() as usize;
    (class < CLASSES).then_some(class)
}

fn layout(pages: u32) -> Layout {
    Layout::from_size_align(pages as usize * AlignedBuf::ALIGNMENT, AlignedBuf::ALIGNMENT)
        .expect("a buffer is smaller than half the address space")
}

impl AlignedBuf {
    /// The address and the capacity are multiples of this: a page.
    pub const ALIGNMENT: usize = 4096;

    /// A buffer of `length` zeros.
    ///
    /// # Panics
    /// If `length` is 4 GiB or more.
    pub fn new(length: usize) -> AlignedBuf {
        let mut buffer = AlignedBuf::recycled(length);
        buffer.fill(0);
        buffer
    }

    /// A buffer with bytes of an earlier use, or zeros.
    pub(super) fn recycled(length: usize) -> AlignedBuf {
        let pages = match class(length) {
            Some(class) => 1 << class,
            None => length.div_ceil(AlignedBuf::ALIGNMENT) as u32,
        };
        let length = u32::try_from(length).expect("an aligned buffer has less than 4 GiB");
        let kept = class(length as usize)
            .and_then(|class| FREE.try_with(|free| free.borrow_mut().0[class].pop()).ok()?);
        let start = kept.unwrap_or_else(|| {
            // SAFETY: the size is not zero, because `pages` is at least 1.
            let start = unsafe { alloc_zeroed(layout(pages)) };
            NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout(pages)))
        });
        AlignedBuf { start, length, pages }
    }

    /// The number of bytes that the buffer has room for.
    pub fn capacity(&self) -> usize {
        self.pages.max(1) as usize * AlignedBuf::ALIGNMENT
    }

    /// Makes the buffer shorter, or longer by bytes that were in it before, or zeros.
    ///
    /// # Panics
    /// If `length` is more than its capacity, or 4 GiB.
    pub fn set_len(&mut self, length: usize) {
        assert!(length <= self.capacity(), "{length} bytes in a buffer of {}", self.capacity());
        self.length = u32::try_from(length).expect("an aligned buffer has less than 4 GiB");
    }
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        if self.pages == 0 {
            // SAFETY: `Bytes::come_from` took the buffer from a region, and this `AlignedBuf` alone
            // owns it.
            return unsafe { region::give_back(self.start) };
        }
        let keep = |class: usize| {
            FREE.try_with(|free| {
                let free = &mut free.borrow_mut().0[class];
                let room = free.len() * self.capacity() < KEPT_MAX;
                if room {
                    free.push(self.start);
                }
                room
            })
        };
        if !class(self.capacity()).is_some_and(|class| keep(class) == Ok(true)) {
            // SAFETY: `recycled` allocated the buffer with this layout, and this `AlignedBuf` alone
            // owns it.
            unsafe { dealloc(self.start.as_ptr(), layout(self.pages)) };
        }
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: all bytes of the capacity were initialised when they were allocated, and `length`
        // is at most the capacity (`recycled`, `set_len`).
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length as usize) }
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length as usize) }
    }
}

impl fmt::Debug for AlignedBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlignedBuf({} of {} bytes)", self.length, self.capacity())
    }
}

/// A vector of zeros, if there is memory for it. The length of a file alone does not show that the
/// file has this number of bytes.
pub(super) fn zeros(length: usize) -> io::Result<Vec<u8>> {
    Vec::<u8>::new().try_reserve_exact(length)?;
    // Not in that room: memory that comes from the kernel is zeros already.
    Ok(vec![0; length])
}

/// A buffer that [`File::read_at`](super::File::read_at) and
/// [`File::write_at`](super::File::write_at) take: bytes with an owner and a fixed address. The
/// operation owns the buffer until it is over.
pub trait Buffer: sealed::BytesOwner + Send + 'static {}

impl Buffer for Vec<u8> {}
impl Buffer for AlignedBuf {}

mod sealed {
    #[expect(unnameable_types, reason = "so that no other crate implements the trait")]
    pub trait BytesOwner {
        fn into_bytes(self) -> super::Bytes;
        fn from_bytes(bytes: super::Bytes) -> Self;
    }
}
pub(super) use sealed::BytesOwner;

/// A buffer of any kind, in an operation.
#[derive(Debug)]
#[expect(unnameable_types, reason = "only the trait above names it, and no other crate uses that trait")]
pub enum Bytes {
    Vec(Vec<u8>),
    Aligned(AlignedBuf),
    /// A buffer of this length, which the operation takes when it begins.
    ToCome(u32),
}

const _: () = assert!(region::BLOCK == AlignedBuf::ALIGNMENT);

impl Bytes {
    /// Takes a buffer that is still to come from the region, if the buffer fits into a block and
    /// the region has one.
    pub(super) fn come_from(&mut self, region: &DiskRegion) {
        if let Bytes::ToCome(length) = *self
            && length as usize <= region::BLOCK
            && let Some(start) = region.take()
        {
            *self = Bytes::Aligned(AlignedBuf { start, length, pages: 0 });
        }
    }

    /// The number of bytes that the buffer has, or will have.
    pub(super) fn len(&self) -> usize {
        match self {
            Bytes::Vec(bytes) => bytes.len(),
            Bytes::Aligned(bytes) => bytes.len(),
            Bytes::ToCome(length) => *length as usize,
        }
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [u8] {
        if let Bytes::ToCome(length) = *self {
            *self = Bytes::Aligned(AlignedBuf::recycled(length as usize));
        }
        match self {
            Bytes::Vec(bytes) => bytes,
            Bytes::Aligned(bytes) => bytes,
            Bytes::ToCome(_) => unreachable!("it has come"),
        }
    }
}

impl BytesOwner for Vec<u8> {
    fn into_bytes(self) -> Bytes {
        Bytes::Vec(self)
    }

    fn from_bytes(bytes: Bytes) -> Vec<u8> {
        match bytes {
            Bytes::Vec(bytes) => bytes,
            other => unreachable!("a Vec went in, {other:?} came out"),
        }
    }
}

impl BytesOwner for AlignedBuf {
    fn into_bytes(self) -> Bytes {
        Bytes::Aligned(self)
    }

    fn from_bytes(bytes: Bytes) -> AlignedBuf {
        match bytes {
            Bytes::Aligned(bytes) => bytes,
            // The operation never began.
            Bytes::ToCome(_) => AlignedBuf::recycled(0),
            other => unreachable!("an aligned buffer went in, {other:?} came out"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recycled_buffer_comes_back_and_a_new_one_is_zero() {
        let mut buffer = AlignedBuf::new(5000);
        assert_eq!((buffer.len(), buffer.capacity()), (5000, 8192));
        assert_eq!(buffer.as_ptr().addr() % AlignedBuf::ALIGNMENT, 0);
        buffer.fill(7);
        let address = buffer.as_ptr();
        drop(buffer);
        let again = AlignedBuf::new(8192);
        assert_eq!(again.as_ptr(), address);
        assert!(again.iter().all(|&b| b == 0));
    }

    #[test]
    fn sizes_from_none_to_more_than_is_recycled() {
        for (length, capacity) in
            [(0, 4096), (1, 4096), (4097, 8192), (1 << 20, 1 << 20), ((1 << 20) + 1, (1 << 20) + 4096)]
        {
            let buffer = AlignedBuf::new(length);
            assert_eq!((buffer.len(), buffer.capacity()), (length, capacity));
        }
    }

    #[test]
    fn what_an_os_thread_keeps_is_bounded() {
        let many: Vec<_> = (0..1000).map(|_| AlignedBuf::new(4096)).collect();
        drop(many);
        assert_eq!(FREE.with_borrow(|free| free.0[0].len()), KEPT_MAX / 4096);
    }
}
