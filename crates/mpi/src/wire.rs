//! The form in which a value of the simple interface travels between processes: [`encode`] and
//! [`decode`].
//!
//! `payload.rs` calls them. A message begins with a byte that names this form, and a hash of the
//! name of the value's type, so that a receive of another type is an error and not garbage. Then
//! the value follows: numbers in little-endian with the width of their type, lengths and the
//! numbers of variants in groups of seven bits, and nothing for names. The sender and the receiver
//! are one program, so the form needs no version of a type.
//!
//! | File | |
//! |---|---|
//! | `wire/writer.rs` | the serialiser |
//! | `wire/reader.rs` | the deserialiser |
//! | `wire/number.rs` | the serialiser of one number, for sequences of them |
//! | `wire/number_vectors.rs` | vectors of numbers within a value, which are read in one piece |
//! | `wire/numbers.rs` | messages that are vectors of numbers, in one piece |
//! | `wire/coming_vector.rs` | such a message that goes straight into its vector |
//! | `wire/empty.rs` | the deserialiser of a message without a value |
//! | `wire/error.rs` | why a value was not written or read |

#[allow(unsafe_code, reason = "it makes a vector of memory that an engine has filled")]
mod coming_vector;
mod empty;
mod error;
mod number;
#[allow(unsafe_code, reason = "it makes a vector the value of the visitor that asks for it")]
mod number_vectors;
mod numbers;
mod reader;
mod writer;

use crate::byte_pieces::BytePieces;
pub(crate) use coming_vector::ComingVector;
use empty::EmptyReader;
pub(crate) use error::WireError;
use reader::WireReader;
use serde::{Deserialize, Serialize};
use std::any::type_name;
use writer::WireWriter;

/// The first byte of a message.
const FORM: u8 = 0xA1;

/// The length of what stands before the value.
const HEAD: usize = 9;

/// A hash of a type's name, the same in each process. It takes eight bytes at a time, because each
/// message pays for it twice.
fn schema<T>() -> u64 {
    let name = type_name::<T>().as_bytes();
    let (words, rest) = name.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let fold = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    let hash = words.iter().map(|word| u64::from_le_bytes(*word)).fold(name.len() as u64, fold);
    fold(hash, u64::from_le_bytes(last))
}

/// Writes the beginning of a message that holds a value of this type.
fn begin<T>(bytes: &mut Vec<u8>) {
    bytes.push(FORM);
    bytes.extend_from_slice(&schema::<T>().to_le_bytes());
}

/// The bytes of a value, if it is a vector of numbers of at least `min` bytes: these lie where the
/// vector has them, and what stands before is written to `head`, which is empty.
pub(crate) fn vector_in_pieces<'a, T: 'static>(
    value: &'a T,
    min: usize,
    head: &'a mut Vec<u8>,
) -> Option<BytePieces<'a>> {
    let (count, bytes) = numbers::elements(value).filter(|(_, bytes)| bytes.len() >= min)?;
    begin::<T>(head);
    WireWriter(head).number(count as u64);
    Some([head, bytes])
}

/// The bytes of a value.
pub(crate) fn encode<T: Serialize + 'static>(value: &T) -> Result<Vec<u8>, WireError> {
    let mut bytes = Vec::with_capacity(HEAD + size_of::<T>());
    begin::<T>(&mut bytes);
    if !numbers::write(value, &mut bytes) {
        value.serialize(&mut WireWriter(&mut bytes))?;
    }
    Ok(bytes)
}

/// The value with nothing in it, if the type has one.
pub(crate) fn empty<'a, T: Deserialize<'a>>() -> Result<T, WireError> {
    T::deserialize(EmptyReader)
}

/// The value of these bytes, which all belong to it.
pub(crate) fn decode<'a, T: Deserialize<'a> + 'static>(bytes: &'a [u8]) -> Result<T, WireError> {
    let Some((&[FORM, ref schema_bytes @ ..], rest)) = bytes.split_first_chunk::<HEAD>() else {
        return Err(WireError::new(format!(
            "its {} bytes were not written by the simple interface",
            bytes.len()
        )));
    };
    if *schema_bytes != schema::<T>().to_le_bytes() {
        return Err(WireError::new("the value was written as another type"));
    }
    let mut reader = WireReader::new(rest);
    let value = numbers::read(&mut reader).unwrap_or_else(|| T::deserialize(&mut reader))?;
    match reader.left() {
        0 => Ok(value),
        left => Err(WireError::new(format!("{left} bytes are left over"))),
    }
}
