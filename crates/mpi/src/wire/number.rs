//! [`NumberWriter`]: serde's serialiser for one number. `writer.rs` writes the elements of a
//! sequence with it, as long as all of them are numbers of one width.
//!
//! serde does not tell a serialiser of which type the elements of a sequence are. But each element
//! says it when it is serialised, and the compiler sees what it says: of the calls below one is
//! left, which is a store. So a loop of them copies the numbers several at a time.

use serde::ser::{self, Impossible, Serialize};
use std::fmt;

/// The most bytes that a number has.
pub(super) const NUMBER_MAX: usize = 16;

/// Writes a number, with the form that `WireWriter` gives it, to the beginning of these bytes.
/// Gives its width.
pub(super) struct NumberWriter<'a>(pub(super) &'a mut [u8]);

/// The value is no number, or the bytes are too few for it.
#[derive(Debug)]
pub(super) struct NoNumberError;

impl fmt::Display for NoNumberError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it is no number")
    }
}

impl std::error::Error for NoNumberError {}

impl ser::Error for NoNumberError {
    fn custom<T: fmt::Display>(_: T) -> NoNumberError {
        NoNumberError
    }
}

impl NumberWriter<'_> {
    #[inline]
    fn store<const N: usize>(self, number: [u8; N]) -> Result<usize, NoNumberError> {
        *self.0.first_chunk_mut().ok_or(NoNumberError)? = number;
        Ok(N)
    }
}

/// Methods that write a number.
macro_rules! numbers {
    ($($name:ident: $type:ty),*) => {$(
        #[inline]
        fn $name(self, value: $type) -> Result<usize, NoNumberError> {
            self.store(value.to_le_bytes())
        }
    )*};
}

/// Methods for what is no number.
macro_rules! no_numbers {
    ($($name:ident($($argument:ty),*) $(of $value:ident)? -> $given:ty;)*) => {$(
        #[inline]
        fn $name$(<$value: Serialize + ?Sized>)?(
            self,
            $(_: $argument),*
        ) -> Result<$given, NoNumberError> {
            Err(NoNumberError)
        }
    )*};
}

impl ser::Serializer for NumberWriter<'_> {
    type Ok = usize;
    type Error = NoNumberError;
    type SerializeSeq = Impossible<usize, NoNumberError>;
    type SerializeTuple = Impossible<usize, NoNumberError>;
    type SerializeTupleStruct = Impossible<usize, NoNumberError>;
    type SerializeTupleVariant = Impossible<usize, NoNumberError>;
    type SerializeMap = Impossible<usize, NoNumberError>;
    type SerializeStruct = Impossible<usize, NoNumberError>;
    type SerializeStructVariant = Impossible<usize, NoNumberError>;

    numbers! {
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64, serialize_i128: i128,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_u128: u128,
        serialize_f32: f32, serialize_f64: f64
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<usize, NoNumberError> {
        value.serialize(self)
    }

    no_numbers! {
        serialize_bool(bool) -> usize;
        serialize_char(char) -> usize;
        serialize_str(&str) -> usize;
        serialize_bytes(&[u8]) -> usize;
        serialize_none() -> usize;
        serialize_some(&T) of T -> usize;
        serialize_unit() -> usize;
        serialize_unit_struct(&'static str) -> usize;
        serialize_unit_variant(&'static str, u32, &'static str) -> usize;
        serialize_newtype_variant(&'static str, u32, &'static str, &T) of T -> usize;
        serialize_seq(Option<usize>) -> Self::SerializeSeq;
        serialize_tuple(usize) -> Self::SerializeTuple;
        serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Self::SerializeTupleVariant;
        serialize_map(Option<usize>) -> Self::SerializeMap;
        serialize_struct(&'static str, usize) -> Self::SerializeStruct;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Self::SerializeStructVariant;
    }

    #[inline]
    fn is_human_readable(&self) -> bool {
        false
    }
}
