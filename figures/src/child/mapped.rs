//! [`MappedFile`]: a piece of a file in memory, which other processes may have mapped too. The log
//! designs that the paper compares append through it (`log_designs.rs`).
//!
//! The bytes are copied in and out, and no reference to them exists, because another process may
//! write them.
#![allow(unsafe_code, reason = "a mapping is what two of the compared designs are about")]

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ptr::NonNull;

/// A piece of a file in memory.
#[derive(Debug)]
pub(super) struct MappedFile {
    start: NonNull<u8>,
    len: usize,
}

impl MappedFile {
    /// Maps `len` bytes of `file` from `offset` on, a multiple of the page. A shorter file gets
    /// that length first.
    ///
    /// # Errors
    /// The file cannot be made longer, or be mapped.
    pub(super) fn map(file: &File, offset: u64, len: usize) -> io::Result<MappedFile> {
        if file.metadata()?.len() < offset + len as u64 {
            file.set_len(offset + len as u64)?;
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the place, so the mapping overlaps nothing that Rust owns.
        let start = unsafe { mmap(std::ptr::null_mut(), len, access, MapFlags::SHARED, file, offset) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(MappedFile { start, len })
    }

    /// The number of bytes.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Copies `bytes` to the place `at`.
    ///
    /// # Panics
    /// If they do not fit.
    pub(super) fn put(&mut self, at: usize, bytes: &[u8]) {
        assert!(at <= self.len && bytes.len() <= self.len - at, "the bytes fit");
        // SAFETY: the bytes lie within the mapping (the line above), which lives as long as `self`
        // (`map`), and `bytes` is no part of it, because no reference into it is ever made.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.as_ptr().add(at), bytes.len()) }
    }

    /// Copies `len` bytes from the place `from` to the place `at` of another mapping.
    ///
    /// # Panics
    /// If they are not there, or do not fit.
    pub(super) fn copy_to(&self, from: usize, len: usize, to: &mut MappedFile, at: usize) {
        assert!(from <= self.len && len <= self.len - from, "the bytes are there");
        assert!(at <= to.len && len <= to.len - at, "the bytes fit");
        // SAFETY: both places lie within their mappings (the lines above), which live as long as
        // `self` and `to` (`map`) and are two, because `to` is borrowed exclusively.
        unsafe {
            std::ptr::copy_nonoverlapping(self.start.as_ptr().add(from), to.start.as_ptr().add(at), len)
        }
    }
}

// SAFETY: a mapping belongs to the process and not to an OS thread, and `put` and `copy_to` borrow
// exclusively what they write.
unsafe impl Send for MappedFile {}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // SAFETY: `map` has made the mapping with this length, and nothing points into it any more,
        // because no method hands a pointer out.
        let _ = unsafe { munmap(self.start.as_ptr().cast::<c_void>(), self.len) };
    }
}
