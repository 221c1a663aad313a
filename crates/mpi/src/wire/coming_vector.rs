//! [`ComingVector`]: a message that is a vector of numbers, of which the numbers go straight into
//! the vector.
//!
//! `payload.rs` lends it to an engine as a [`ReceiveRoom`](crate::receive_room::ReceiveRoom). The
//! engine says how many bytes the message has. So the number of elements is known before the bytes
//! are there, and the vector gets memory for them. What stands before the numbers goes elsewhere,
//! and is compared afterwards with what it has to be.

use super::error::WireError;
use super::numbers::LENGTH_MAX;
use super::writer::WireWriter;
use super::{HEAD, begin};
use crate::receive_room::{RoomPieces, VectorRoom};
use crate::spare_memory::spare;
use std::any::{Any, TypeId};
use std::mem::MaybeUninit;

/// A vector of numbers that a message becomes.
pub(crate) struct ComingVector<T> {
    /// What stands before the numbers of the message.
    head: Vec<u8>,
    /// What has to stand there.
    wanted: Vec<u8>,
    /// The vector, which is empty and has room for `count` elements.
    vector: Option<T>,
    count: usize,
    /// Whether head and vector have the bytes of a message.
    is_filled: bool,
}

macro_rules! vectors_of {
    ($($number:ty),*) => {
        /// The size of an element in bytes, if the type is a vector of numbers.
        fn element_size<T: 'static>() -> Option<usize> {
            let vector = TypeId::of::<T>();
            $(if vector == TypeId::of::<Vec<$number>>() {
                return Some(size_of::<$number>());
            })*
            None
        }

        /// An empty vector with room for this number of elements.
        fn with_room<T: 'static>(count: usize) -> Option<T> {
            let mut vector: Option<T> = None;
            let place: &mut dyn Any = &mut vector;
            $(if let Some(place) = place.downcast_mut::<Option<Vec<$number>>>() {
                let mut numbers = spare().room::<$number>(count);
                numbers.try_reserve_exact(count).ok()?;
                *place = Some(numbers);
            })*
            vector
        }

        /// The memory of the first `count` elements of an empty vector that has room for them.
        fn memory<T: 'static>(vector: &mut T, count: usize) -> &mut [MaybeUninit<u8>] {
            let vector: &mut dyn Any = vector;
            $(if vector.is::<Vec<$number>>() {
                let vector = vector.downcast_mut::<Vec<$number>>().expect("it is one");
                let room = &mut vector.spare_capacity_mut()[..count];
                let bytes = size_of_val(room);
                // SAFETY: these are the bytes of `room`, without a value in both types.
                return unsafe { std::slice::from_raw_parts_mut(room.as_mut_ptr().cast(), bytes) };
            })*
            &mut []
        }

        /// Gives an empty vector its first `count` elements.
        ///
        /// # Safety
        /// The vector has room for them, and all their bytes have been written.
        unsafe fn give_length<T: 'static>(vector: &mut T, count: usize) {
            let vector: &mut dyn Any = vector;
            $(if let Some(vector) = vector.downcast_mut::<Vec<$number>>() {
                // SAFETY: the caller promises it. Any bytes are a number.
                unsafe { vector.set_len(count) };
            })*
        }
    };
}

vectors_of!(u8, i8, u16, i16, u32, i32, u64, i64, u128, i128, f32, f64, usize, isize);

/// The number of elements of this size of which a message of `bytes` bytes consists, behind a head
/// that says this number; and the length of the head. `None` if there is no such number.
fn count_of(bytes: usize, element: usize) -> Option<(usize, usize)> {
    (HEAD + 1..=HEAD + LENGTH_MAX).find_map(|head| {
        let numbers = bytes.checked_sub(head).filter(|numbers| numbers.is_multiple_of(element))?;
        let count = numbers / element;
        let length = (usize::BITS - (count | 1).leading_zeros()).div_ceil(7);
        (head == HEAD + length as usize).then_some((count, head))
    })
}

impl<T: 'static> ComingVector<T> {
    /// `None` if the type is no vector of numbers.
    pub(crate) fn new() -> Option<ComingVector<T>> {
        element_size::<T>()?;
        let (head, wanted) = (Vec::new(), Vec::new());
        Some(ComingVector { head, wanted, vector: None, count: 0, is_filled: false })
    }

    /// The vector, after an engine has filled the room.
    ///
    /// # Errors
    /// If the message holds another value.
    ///
    /// # Panics
    /// If no engine has filled it.
    pub(crate) fn value(self) -> Result<T, WireError> {
        let ComingVector { head, wanted, vector, count, is_filled } = self;
        let mut vector = vector.filter(|_| is_filled).expect("the engine has filled the room");
        if head[..HEAD] != wanted[..HEAD] {
            return Err(WireError::new("the value was written as another type"));
        }
        if head != wanted {
            return Err(WireError::new("the bytes are not those of a vector of this length"));
        }
        // SAFETY: `pieces` has made the vector with room for `count` elements, and has lent the
        // memory of all of them. `RoomPieces` has set `is_filled` after all of it was written.
        unsafe { give_length(&mut vector, count) };
        Ok(vector)
    }
}

impl<T: 'static> VectorRoom for ComingVector<T> {
    fn pieces(&mut self, bytes: usize) -> Option<RoomPieces<'_>> {
        let (count, head) = count_of(bytes, element_size::<T>()?)?;
        // A loan that has failed may have been there before.
        self.vector = None;
        self.is_filled = false;
        self.wanted.clear();
        begin::<T>(&mut self.wanted);
        WireWriter(&mut self.wanted).number(count as u64);
        self.head.clear();
        self.head.resize(head, 0);
        self.count = count;
        let vector = self.vector.insert(with_room(count)?);
        let (head, numbers) = (&mut self.head[..], memory(vector, count));
        Some(RoomPieces::of_vector(head, numbers, &mut self.is_filled))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::wire::{encode, vector_in_pieces};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde::Serialize;
    use std::fmt::Debug;

    /// The vector that these bytes of a message become.
    fn come<T: 'static>(bytes: &[u8]) -> Option<Result<T, WireError>> {
        let mut coming = ComingVector::new().unwrap();
        coming.pieces(bytes.len())?.copy_from(bytes);
        Some(coming.value())
    }

    fn comes<N: Serialize + Clone + PartialEq + Debug + 'static>(numbers: Vec<N>) {
        let bytes = encode(&numbers).unwrap();
        assert_eq!(come::<Vec<N>>(&bytes), Some(Ok(numbers.clone())));
        let mut head = Vec::new();
        let pieces = vector_in_pieces(&numbers, 0, &mut head).unwrap();
        assert_eq!(pieces.concat(), bytes);
        // A message that ends before is no vector, or not one of this length.
        for end in 0..bytes.len().min(40) {
            assert!(matches!(come::<Vec<N>>(&bytes[..end]), None | Some(Err(_))));
        }
    }

    proptest! {
        #[test]
        fn a_message_becomes_the_vector_that_it_holds(
            bytes in vec(any::<u8>(), 0..300),
            shorts in vec(any::<i16>(), 0..300),
            floats in vec(any::<f64>().prop_filter("it equals itself", |it| !it.is_nan()), 0..300),
            large in vec(any::<u128>(), 0..40),
        ) {
            comes(bytes);
            comes(shorts);
            comes(floats);
            comes(large);
        }
    }

    #[test]
    fn the_length_of_a_message_says_how_many_numbers_it_holds() {
        for element in [1, 2, 4, 8, 16] {
            for count in [0_usize, 1, 127, 128, 129, 16_383, 16_384, 2_097_151, 2_097_152, 1 << 40] {
                let mut head = vec![0; HEAD];
                WireWriter(&mut head).number(count as u64);
                assert_eq!(count_of(head.len() + count * element, element), Some((count, head.len())));
            }
        }
        assert_eq!(count_of(HEAD + 1 + 7, 8), None);
        assert_eq!(count_of(HEAD, 8), None);
    }

    #[test]
    fn a_value_of_another_type_is_an_error() {
        let bytes = encode(&vec![1_u64, 2]).unwrap();
        let error = come::<Vec<f64>>(&bytes).unwrap().unwrap_err();
        assert!(error.to_string().contains("another type"), "{error}");
        let mut longer = bytes.clone();
        longer[HEAD] = 3;
        assert!(come::<Vec<u64>>(&longer).unwrap().is_err());
        assert!(ComingVector::<Vec<bool>>::new().is_none());
    }

    #[test]
    fn what_was_filled_in_part_comes_again() {
        let mut coming = ComingVector::<Vec<u32>>::new().unwrap();
        assert!(coming.pieces(HEAD + 1 + 4).is_some());
        let bytes = encode(&vec![5_u32, 6]).unwrap();
        coming.pieces(bytes.len()).unwrap().copy_from(&bytes);
        assert_eq!(coming.value(), Ok(vec![5, 6]));
    }

    #[test]
    fn a_vector_for_which_there_is_no_memory_is_not_made() {
        let mut coming = ComingVector::<Vec<u8>>::new().unwrap();
        assert!(coming.pieces(usize::MAX >> 1).is_none());
    }
}
