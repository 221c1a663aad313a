//! [`read_numbers`]: reads a vector of numbers within a value in one piece.
//!
//! `reader.rs` asks here before each sequence. serde does not tell a deserialiser what it reads: it
//! hands over a visitor, which takes the elements one by one. But serde's own visitor for a
//! `Vec<f64>` makes the vector of the elements as they come, so the vector can be made without it.
//! Which visitor that is tells [`VisitorProbe`]. Visitors of a program, which may do more, are left
//! alone, and so are those of other types.
//!
//! Types are compared by [`TypeId`], also types with lifetimes: those are left out there. It is
//! known when the program is compiled how each comparison ends.

use super::error::WireError;
use super::reader::WireReader;
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::forward_to_deserialize_any;
use std::any::TypeId;
use std::fmt;
use std::marker::PhantomData;
use std::mem::{self, ManuallyDrop};

/// The identity of a type, without its lifetimes.
#[inline]
fn identity<T: ?Sized>() -> TypeId {
    trait HasIdentity {
        fn identity(&self) -> TypeId
        where
            Self: 'static;
    }

    impl<T: ?Sized> HasIdentity for PhantomData<T> {
        #[inline]
        fn identity(&self) -> TypeId
        where
            Self: 'static,
        {
            TypeId::of::<T>()
        }
    }

    let place = PhantomData::<T>;
    let object: &dyn HasIdentity = &place;
    // SAFETY: the type stays, but for its lifetimes. `identity` uses nothing that has one of them:
    // the object has no bytes, and a `TypeId` is the same for all lifetimes.
    let object = unsafe { mem::transmute::<&dyn HasIdentity, &(dyn HasIdentity + 'static)>(object) };
    object.identity()
}

/// A deserialiser that reads nothing. Its error is the identity of the visitor that it is given for
/// a sequence.
struct VisitorProbe;

/// The visitor of a sequence, if it was one.
#[derive(Debug)]
struct VisitorFoundError(Option<TypeId>);

impl fmt::Display for VisitorFoundError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing is read")
    }
}

impl std::error::Error for VisitorFoundError {}

impl de::Error for VisitorFoundError {
    #[inline]
    fn custom<T: fmt::Display>(_: T) -> VisitorFoundError {
        VisitorFoundError(None)
    }
}

impl<'de> Deserializer<'de> for VisitorProbe {
    type Error = VisitorFoundError;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, VisitorFoundError> {
        Err(VisitorFoundError(None))
    }

    #[inline]
    fn deserialize_seq<V: Visitor<'de>>(self, _: V) -> Result<V::Value, VisitorFoundError> {
        Err(VisitorFoundError(Some(identity::<V>())))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// Whether a visitor is that with which serde reads a `T`, and gives a `T`.
#[inline]
fn reads<'de, V: Visitor<'de>, T: Deserialize<'static> + 'static>() -> bool {
    let is_its_visitor = match T::deserialize(VisitorProbe) {
        Ok(_) => false,
        Err(VisitorFoundError(found)) => found == Some(identity::<V>()),
    };
    is_its_visitor && identity::<V::Value>() == TypeId::of::<T>()
}

macro_rules! vectors_of {
    ($($number:ty),*) => {
        /// Reads the sequence for this visitor, if it is serde's for a vector of numbers.
        #[inline]
        pub(super) fn read_numbers<'de, V: Visitor<'de>>(
            reader: &mut WireReader<'de>,
        ) -> Option<Result<V::Value, WireError>> {
            $(if reads::<V, Vec<$number>>() {
                return Some(reader.numbers().map(|numbers: Vec<$number>| {
                    let numbers = ManuallyDrop::new(numbers);
                    // SAFETY: `reads` has compared the types. They are the same but for lifetimes,
                    // and a vector of numbers has none. `ManuallyDrop` keeps the vector from being
                    // dropped here, so it is moved.
                    unsafe { mem::transmute_copy::<Vec<$number>, V::Value>(&numbers) }
                }));
            })*
            None
        }
    };
}

vectors_of!(u8, i8, u16, i16, u32, i32, u64, i64, u128, i128, f32, f64, usize, isize);

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::wire::writer::WireWriter;
    use crate::wire::{decode, encode};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde::Serialize;
    use serde::de::SeqAccess;

    /// What a visitor of a program makes of a sequence: at each place the sum of all numbers so
    /// far.
    #[derive(Debug, PartialEq)]
    struct Sums(Vec<f64>);

    impl<'de> Deserialize<'de> for Sums {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Sums, D::Error> {
            struct SumsVisitor;

            impl<'de> Visitor<'de> for SumsVisitor {
                type Value = Vec<f64>;

                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("numbers")
                }

                fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<f64>, A::Error> {
                    let (mut sum, mut sums) = (0.0, Vec::new());
                    while let Some(number) = seq.next_element::<f64>()? {
                        sum += number;
                        sums.push(sum);
                    }
                    Ok(sums)
                }
            }

            deserializer.deserialize_seq(SumsVisitor).map(Sums)
        }
    }

    #[test]
    fn the_visitor_of_a_program_reads_each_element() {
        let bytes = {
            let mut bytes = Vec::new();
            vec![1.0, 2.0, 4.0].serialize(&mut WireWriter(&mut bytes)).unwrap();
            bytes
        };
        let mut reader = WireReader::new(&bytes);
        assert_eq!(Sums::deserialize(&mut reader).unwrap(), Sums(vec![1.0, 3.0, 7.0]));
        assert_eq!(reader.left(), 0);
    }

    #[test]
    fn only_vectors_of_numbers_are_read_in_one_piece() {
        /// Reads a `T`, and says whether it was in one piece.
        fn is_whole<T: Deserialize<'static>>() -> bool {
            struct AsksReader<'a>(&'a mut Option<bool>);

            impl<'de> Deserializer<'de> for AsksReader<'_> {
                type Error = WireError;

                fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, WireError> {
                    Err(WireError::new("it is no sequence"))
                }

                fn deserialize_seq<V: Visitor<'de>>(self, _: V) -> Result<V::Value, WireError> {
                    *self.0 = Some(read_numbers::<V>(&mut WireReader::new(&[0])).is_some());
                    Err(WireError::new("nothing is read"))
                }

                forward_to_deserialize_any! {
                    bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
                    option unit unit_struct newtype_struct tuple tuple_struct map struct enum identifier
                    ignored_any
                }
            }

            let mut answer = None;
            assert!(T::deserialize(AsksReader(&mut answer)).is_err());
            answer.unwrap()
        }

        assert!(is_whole::<Vec<f64>>() && is_whole::<Vec<u8>>() && is_whole::<Vec<i128>>());
        assert!(!is_whole::<Vec<bool>>() && !is_whole::<Vec<&'static str>>());
        assert!(!is_whole::<Vec<Vec<f64>>>() && !is_whole::<Sums>());
        assert!(!is_whole::<std::collections::VecDeque<f64>>());
        assert!(!is_whole::<std::collections::BTreeSet<u8>>());
    }

    #[test]
    fn vectors_within_a_value_are_moved_out() {
        let value = (7_u8, vec![1.5, 2.5], vec![vec![1_u16], Vec::new()], String::from("weft"));
        let bytes = encode(&value).unwrap();
        assert_eq!(decode::<(u8, Vec<f64>, Vec<Vec<u16>>, String)>(&bytes).unwrap(), value);
    }

    proptest! {
        #[test]
        fn values_with_vectors_come_back(
            value in (
                vec(any::<u8>(), 0..300),
                vec(vec(any::<i32>(), 0..5), 0..5),
                any::<Option<String>>(),
                vec((any::<u16>(), vec(any::<u64>(), 0..3)), 0..5),
            ),
        ) {
            let bytes = encode(&value).unwrap();
            for end in 0..bytes.len() {
                prop_assert!(decode::<(Vec<u8>, Vec<Vec<i32>>, Option<String>, Vec<(u16, Vec<u64>)>)>(
                    &bytes[..end]
                ).is_err());
            }
            prop_assert_eq!(decode::<(Vec<u8>, Vec<Vec<i32>>, Option<String>, Vec<(u16, Vec<u64>)>)>(
                &bytes
            ).unwrap(), value);
        }
    }
}
