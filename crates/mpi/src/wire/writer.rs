//! [`WireWriter`]: serde's serialiser for the form of `wire.rs`.
//!
//! `encode` calls it. A sequence or map without a known length is refused, because its length
//! stands before it.

use super::error::WireError;
use serde::{Serialize, ser};

/// Appends a value to the bytes.
pub(super) struct WireWriter<'a>(pub(super) &'a mut Vec<u8>);

impl WireWriter<'_> {
    /// A length or the number of a variant: seven bits in each byte, the low ones first.
    pub(super) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn length(&mut self, length: Option<usize>) -> Result<(), WireError> {
        let length = length.ok_or_else(|| WireError::new("a sequence of unknown length"))?;
        self.number(length as u64);
        Ok(())
    }
}

/// Methods that write a number with its own width.
macro_rules! numbers {
    ($($name:ident: $type:ty),*) => {$(
        fn $name(self, value: $type) -> Result<(), WireError> {
            self.0.extend_from_slice(&value.to_le_bytes());
            Ok(())
        }
    )*};
}

impl ser::Serializer for &mut WireWriter<'_> {
    type Ok = ();
    type Error = WireError;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    numbers! {
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64, serialize_i128: i128,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_u128: u128,
        serialize_f32: f32, serialize_f64: f64
    }

    fn serialize_bool(self, value: bool) -> Result<(), WireError> {
        self.serialize_u8(u8::from(value))
    }

    fn serialize_char(self, value: char) -> Result<(), WireError> {
        self.serialize_u32(u32::from(value))
    }

    fn serialize_str(self, value: &str) -> Result<(), WireError> {
        self.serialize_bytes(value.as_bytes())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), WireError> {
        self.number(value.len() as u64);
        self.0.extend_from_slice(value);
        Ok(())
    }

    fn serialize_none(self) -> Result<(), WireError> {
        self.serialize_u8(0)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), WireError> {
        self.0.push(1);
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), WireError> {
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), WireError> {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, variant: u32, _: &'static str) -> Result<(), WireError> {
        self.number(u64::from(variant));
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), WireError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        variant: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), WireError> {
        self.number(u64::from(variant));
        value.serialize(self)
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Self, WireError> {
        self.length(length)?;
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, WireError> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, WireError> {
        Ok(self)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        variant: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, WireError> {
        self.number(u64::from(variant));
        Ok(self)
    }

    fn serialize_map(self, length: Option<usize>) -> Result<Self, WireError> {
        self.length(length)?;
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, WireError> {
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        variant: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, WireError> {
        self.number(u64::from(variant));
        Ok(self)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// The parts of a compound are written one after another.
macro_rules! compounds {
    ($($trait:ident::$method:ident($($name:ty)?)),*) => {$(
        impl ser::$trait for &mut WireWriter<'_> {
            type Ok = ();
            type Error = WireError;

            fn $method<T: Serialize + ?Sized>(&mut self, $(_: $name,)? value: &T) -> Result<(), WireError> {
                value.serialize(&mut **self)
            }

            fn end(self) -> Result<(), WireError> {
                Ok(())
            }
        }
    )*};
}

compounds! {
    SerializeSeq::serialize_element(),
    SerializeTuple::serialize_element(),
    SerializeTupleStruct::serialize_field(),
    SerializeTupleVariant::serialize_field(),
    SerializeStruct::serialize_field(&'static str),
    SerializeStructVariant::serialize_field(&'static str)
}

impl ser::SerializeMap for &mut WireWriter<'_> {
    type Ok = ();
    type Error = WireError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), WireError> {
        key.serialize(&mut **self)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), WireError> {
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), WireError> {
        Ok(())
    }
}
