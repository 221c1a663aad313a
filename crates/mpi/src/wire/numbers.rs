//! Vectors of numbers: their elements are written and read in one piece, and not one by one. The
//! form is the same, because the machine has numbers in little-endian too.
//!
//! `encode` and `decode` of `wire.rs` ask here first. It is known when the program is compiled
//! whether a type is such a vector.

use super::error::WireError;
use super::reader::WireReader;
use super::writer::WireWriter;
use crate::job_header::HeaderTail;
use crate::spare_memory::spare;
use std::any::Any;

const _: () = assert!(cfg!(target_endian = "little"), "numbers lie in memory as they are written");

/// The longest form of a length in bytes.
pub(super) const LENGTH_MAX: usize = 10;

/// Makes room for further bytes.
fn make_room(bytes: &mut Vec<u8>, further: usize) {
    let mut room = spare().room(bytes.len() + further);
    if room.capacity() == 0 {
        bytes.reserve_exact(further);
    } else {
        room.extend_from_slice(bytes);
        *bytes = room;
    }
}

/// Appends the value, if it is a vector of numbers, and leaves room for what an engine appends.
/// Whether it was one.
pub(super) fn write<T: 'static>(value: &T, bytes: &mut Vec<u8>) -> bool {
    let Some((count, elements)) = elements(value) else { return false };
    make_room(bytes, LENGTH_MAX + elements.len() + HeaderTail::BYTES_MAX);
    WireWriter(bytes).number(count as u64);
    bytes.extend_from_slice(elements);
    true
}

macro_rules! vectors_of {
    ($($number:ty),*) => {
        /// The number of elements and their bytes, if the value is a vector of numbers.
        #[inline]
        pub(super) fn elements<T: 'static>(value: &T) -> Option<(usize, &[u8])> {
            let value: &dyn Any = value;
            $(if let Some(numbers) = value.downcast_ref::<Vec<$number>>() {
                return Some((numbers.len(), bytemuck::cast_slice(numbers)));
            })*
            None
        }

        /// Reads the value, if its type is a vector of numbers. `None` for another type.
        pub(super) fn read<T: 'static>(reader: &mut WireReader<'_>) -> Option<Result<T, WireError>> {
            let mut value: Option<T> = None;
            let place: &mut dyn Any = &mut value;
            $(if let Some(place) = place.downcast_mut::<Option<Vec<$number>>>() {
                return match reader.numbers() {
                    Ok(numbers) => {
                        *place = Some(numbers);
                        value.map(Ok)
                    }
                    Err(error) => Some(Err(error)),
                };
            })*
            None
        }
    };
}

vectors_of!(u8, i8, u16, i16, u32, i32, u64, i64, u128, i128, f32, f64, usize, isize);

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde::{Deserialize, Serialize, Serializer};
    use std::fmt::Debug;
    use std::num::Wrapping;

    /// The vector goes as serde would have it element by element, and comes back from there.
    fn goes<N>(numbers: Vec<N>)
    where
        N: Serialize + for<'a> Deserialize<'a> + PartialEq + Debug + 'static,
    {
        let (mut whole, mut parts) = (vec![7], vec![7]);
        assert!(write(&numbers, &mut whole));
        numbers.serialize(&mut WireWriter(&mut parts)).unwrap();
        assert_eq!(whole, parts);
        let mut reader = WireReader::new(&whole[1..]);
        assert_eq!(read(&mut reader), Some(Ok(numbers)));
        assert_eq!(reader.left(), 0);
        for end in 1..whole.len() {
            assert!(read::<Vec<N>>(&mut WireReader::new(&whole[1..end])).unwrap().is_err());
        }
    }

    #[test]
    fn a_vector_of_numbers_has_the_form_of_any_sequence() {
        goes(vec![0_u8, 255]);
        goes(vec![-1_i8; 200]);
        goes(vec![u16::MAX, 1]);
        goes(vec![i16::MIN]);
        goes(vec![1_u32, 2, 3]);
        goes(vec![i32::MIN; 130]);
        goes(vec![u64::MAX, 0]);
        goes(vec![i64::MIN, 5]);
        goes(vec![u128::MAX - 5]);
        goes(vec![i128::MIN + 5]);
        goes(vec![1.5_f32, f32::MAX]);
        goes(vec![-0.25_f64; 20]);
        goes(vec![usize::MAX]);
        goes(vec![isize::MIN]);
        goes(Vec::<f64>::new());
    }

    /// A number of a width that its value chooses.
    #[derive(Debug, PartialEq)]
    struct Chosen(u32);

    impl Serialize for Chosen {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            match self.0 {
                0 => serializer.serialize_str("none"),
                small @ 1..=255 => serializer.serialize_u8(small as u8),
                large => serializer.serialize_u32(large),
            }
        }
    }

    /// A vector within a value has the form of its elements one after another.
    fn has_the_form_of_its_elements<N: Serialize>(numbers: Vec<N>) {
        let (mut whole, mut parts) = (vec![7], vec![7]);
        ("warp", &numbers, 5_u8).serialize(&mut WireWriter(&mut whole)).unwrap();
        let mut writer = WireWriter(&mut parts);
        "warp".serialize(&mut writer).unwrap();
        writer.number(numbers.len() as u64);
        numbers.iter().for_each(|number| number.serialize(&mut writer).unwrap());
        5_u8.serialize(&mut writer).unwrap();
        assert_eq!(whole, parts);
    }

    proptest! {
        #[test]
        fn sequences_have_the_form_of_their_elements(
            floats in vec(any::<f64>(), 0..300),
            bytes in vec(any::<u8>(), 0..300),
            shorts in vec(any::<i16>(), 0..9),
            words in vec(any::<u32>(), 0..9),
            large in vec(any::<i128>(), 0..9),
            texts in vec(any::<String>(), 0..9),
            flags in vec(any::<Option<bool>>(), 0..9),
            chosen in vec((0..600_u32).prop_map(Chosen), 0..20),
        ) {
            has_the_form_of_its_elements(floats.clone());
            has_the_form_of_its_elements(floats.into_iter().map(Wrapping).collect());
            has_the_form_of_its_elements(bytes);
            has_the_form_of_its_elements(shorts);
            has_the_form_of_its_elements(words);
            has_the_form_of_its_elements(large);
            has_the_form_of_its_elements(texts);
            has_the_form_of_its_elements(flags);
            has_the_form_of_its_elements(chosen);
        }
    }

    #[test]
    fn a_sequence_that_says_its_length_wrongly_has_no_elements_that_are_not_there() {
        struct Short;

        impl Serialize for Short {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_seq(Claims(vec![1_u16, 2].into_iter()))
            }
        }

        struct Claims(std::vec::IntoIter<u16>);

        impl Iterator for Claims {
            type Item = u16;

            fn next(&mut self) -> Option<u16> {
                self.0.next()
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                (4, Some(4))
            }
        }

        let mut bytes = Vec::new();
        Short.serialize(&mut WireWriter(&mut bytes)).unwrap();
        assert_eq!(bytes, [4, 1, 0, 2, 0]);
    }

    #[test]
    fn other_values_are_left_to_serde() {
        let mut bytes = Vec::new();
        assert!(!write(&vec![true], &mut bytes) && !write(&(1, vec![2.0]), &mut bytes));
        assert!(bytes.is_empty());
        assert!(read::<Vec<bool>>(&mut WireReader::new(&[0])).is_none());
    }

    #[test]
    fn a_length_that_is_not_there_asks_for_no_memory() {
        // 2^63 elements of 16 bytes.
        let length = [[0x80; 9].as_slice(), &[1]].concat();
        assert!(read::<Vec<u128>>(&mut WireReader::new(&length)).unwrap().is_err());
    }
}
