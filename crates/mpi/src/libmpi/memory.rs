//! [`MpiMemory`]: numbers that stay at their place while MPI reads or writes them.
//!
//! A thread hands an `MpiMemory` over to the driver with each call, and gets it back when MPI has
//! done with it. So what MPI reads and writes belongs to the call in the driver's list, never to
//! the future that waits for it, and no thread can see it before MPI has done.

use super::scalar::{Scalar, ScalarType};
use std::alloc::{Layout, dealloc};
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// The numbers of a `Vec<T>` without their type: an allocation and the [`Scalar`] that lies in it.
///
/// # Examples
/// ```
/// use selvedge_mpi::libmpi::MpiMemory;
///
/// let memory = MpiMemory::from(vec![1.5, 2.5]);
/// assert_eq!(memory.len(), 2);
/// assert_eq!(memory.into_vec::<f64>(), Ok(vec![1.5, 2.5]));
/// ```
pub struct MpiMemory {
    start: NonNull<u8>,
    /// The numbers that are there.
    len: usize,
    scalar: Scalar,
    /// The numbers for which there is room, or `None` if the memory belongs to the caller of
    /// [`MpiMemory::borrowed`].
    capacity: Option<usize>,
}

/// An address that is aligned for each kind of numbers.
static NOWHERE: u64 = 0;

// SAFETY: it owns numbers, which any OS thread may read and drop. Of borrowed memory the contract
// of `borrowed` says the same.
unsafe impl Send for MpiMemory {}
// SAFETY: a shared `MpiMemory` can only be read.
unsafe impl Sync for MpiMemory {}

impl MpiMemory {
    /// `len` zeros.
    ///
    /// # Panics
    /// If they take more than `isize::MAX` bytes.
    pub fn zeroed(scalar: Scalar, len: usize) -> MpiMemory {
        match scalar {
            Scalar::I8 => vec![0_i8; len].into(),
            Scalar::I16 => vec![0_i16; len].into(),
            Scalar::I32 => vec![0_i32; len].into(),
            Scalar::I64 => vec![0_i64; len].into(),
            Scalar::U8 => vec![0_u8; len].into(),
            Scalar::U16 => vec![0_u16; len].into(),
            Scalar::U32 => vec![0_u32; len].into(),
            Scalar::U64 => vec![0_u64; len].into(),
            Scalar::F32 => vec![0_f32; len].into(),
            Scalar::F64 => vec![0_f64; len].into(),
        }
    }

    /// Numbers that belong to the caller, so that MPI reads or writes them where they lie.
    ///
    /// # Safety
    /// Until this `MpiMemory` is dropped, wherever it has gone by then, `start` points to `len`
    /// numbers that any OS thread may read and write, and no other code writes them. It reads them
    /// only if the `MpiMemory` was given to a call that does not write them. A future that is
    /// dropped does not drop it.
    pub unsafe fn borrowed<T: ScalarType>(start: NonNull<T>, len: usize) -> MpiMemory {
        MpiMemory { start: start.cast(), len, scalar: T::SCALAR, capacity: None }
    }

    /// The count of numbers.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The size in bytes.
    pub fn bytes(&self) -> usize {
        self.len * self.scalar.bytes()
    }

    /// The kind of the numbers.
    pub fn scalar(&self) -> Scalar {
        self.scalar
    }

    /// The numbers, if they are of this type.
    pub fn as_slice<T: ScalarType>(&self) -> Option<&[T]> {
        // SAFETY: `len` numbers of this kind lie at `start`, by `from` or by the contract of
        // `borrowed`, and are not written while `self` is borrowed: only its owner can hand it to a
        // call.
        (self.scalar == T::SCALAR)
            .then(|| unsafe { std::slice::from_raw_parts(self.start.cast().as_ptr(), self.len) })
    }

    /// The numbers, in the allocation that they came in. Borrowed numbers are copied.
    ///
    /// # Errors
    /// Gives the memory back if the numbers are of another type.
    pub fn into_vec<T: ScalarType>(self) -> Result<Vec<T>, MpiMemory> {
        if self.scalar != T::SCALAR {
            return Err(self);
        }
        let Some(capacity) = self.capacity else {
            return Ok(self.as_slice().expect("the kinds agree").to_vec());
        };
        let whole = ManuallyDrop::new(self);
        // SAFETY: `from` took `start` and `capacity` from a vector of numbers of this kind. `len`
        // of them are written, by the contract of `unwritten` too. `whole` does not free them.
        Ok(unsafe { Vec::from_raw_parts(whole.start.cast().as_ptr(), whole.len, capacity) })
    }

    /// Where MPI finds the numbers. MPI may write there while this crate owns the `MpiMemory`.
    pub(super) fn start(&self) -> *mut u8 {
        // The pointer of an empty vector is a small number, and so is the address by which MPI is
        // told to work in place. Without numbers nothing is written at the other address.
        if self.len == 0 { (&raw const NOWHERE).cast_mut().cast() } else { self.start.as_ptr() }
    }

    /// `len` bytes that have not been written.
    ///
    /// # Safety
    /// Before they are written, the memory goes only to MPI, or is dropped.
    pub(super) unsafe fn unwritten(len: usize) -> MpiMemory {
        let mut memory = MpiMemory::from(Vec::<u8>::with_capacity(len));
        memory.len = len;
        memory
    }
}

impl<T: ScalarType> From<Vec<T>> for MpiMemory {
    /// Moves no number.
    fn from(numbers: Vec<T>) -> MpiMemory {
        let mut numbers = ManuallyDrop::new(numbers);
        let start = NonNull::new(numbers.as_mut_ptr()).expect("a vector's pointer is never null");
        MpiMemory {
            start: start.cast(),
            len: numbers.len(),
            scalar: T::SCALAR,
            capacity: Some(numbers.capacity()),
        }
    }
}

impl Drop for MpiMemory {
    fn drop(&mut self) {
        let Some(capacity) = self.capacity.filter(|&capacity| capacity > 0) else { return };
        let bytes = self.scalar.bytes();
        let layout = Layout::from_size_align(capacity * bytes, bytes).expect("it is the layout of a vector");
        // SAFETY: `from` took the allocation from a vector with this capacity of numbers of this
        // size and alignment, and `into_vec`, which gives it away, forgets the `MpiMemory`.
        unsafe { dealloc(self.start.as_ptr(), layout) };
    }
}

impl fmt::Debug for MpiMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MpiMemory({} {})", self.len, self.scalar.name())
    }
}

impl PartialEq for MpiMemory {
    /// Whether kind and bytes are the same.
    fn eq(&self, other: &MpiMemory) -> bool {
        // SAFETY: as in `as_slice`, and each number is made of bytes without padding.
        let bytes =
            |memory: &MpiMemory| unsafe { std::slice::from_raw_parts(memory.start(), memory.bytes()) };
        self.scalar == other.scalar && bytes(self) == bytes(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_comes_back_in_its_own_allocation() {
        let mut numbers = Vec::with_capacity(10);
        numbers.extend([1_i32, 2, 3]);
        let place = numbers.as_ptr();
        let memory = MpiMemory::from(numbers);
        assert_eq!(memory.bytes(), 12);
        let memory = memory.into_vec::<f32>().unwrap_err();
        let numbers = memory.into_vec::<i32>().unwrap();
        assert_eq!((numbers.as_ptr(), numbers.capacity()), (place, 10));
        assert_eq!(numbers, [1, 2, 3]);
    }

    #[test]
    fn it_frees_what_it_owns_and_nothing_else() {
        let mut mine = [7_u16; 5];
        // SAFETY: `mine` outlives the memory, and is not used meanwhile.
        let memory = unsafe { MpiMemory::borrowed(NonNull::from(&mut mine).cast::<u16>(), 5) };
        assert_eq!(memory.into_vec::<u16>(), Ok(vec![7; 5]));
        drop(MpiMemory::from(Vec::<u64>::new()));
        for &scalar in Scalar::ALL {
            let memory = MpiMemory::zeroed(scalar, 3);
            assert_eq!((memory.len(), memory.bytes(), memory.scalar()), (3, 3 * scalar.bytes(), scalar));
        }
        assert_eq!(mine, [7; 5]);
    }
}
