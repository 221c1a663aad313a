//! [`WireReader`]: serde's deserialiser for the form of `wire.rs`.
//!
//! `decode` calls it. The form does not describe itself, so a type that wants to see what comes
//! ([`Deserializer::deserialize_any`](de::Deserializer::deserialize_any)) is refused. No length is
//! believed: memory is asked for as the bytes come.

use super::error::WireError;
use super::number_vectors::read_numbers;
use bytemuck::Pod;
use serde::de::{self, DeserializeSeed, IntoDeserializer, Visitor};

/// The bytes that are not read yet.
pub(super) struct WireReader<'de> {
    rest: &'de [u8],
}

impl<'de> WireReader<'de> {
    #[inline]
    pub(super) fn new(bytes: &'de [u8]) -> WireReader<'de> {
        WireReader { rest: bytes }
    }

    /// How many bytes are not read yet.
    #[inline]
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or_else(cut_off)?;
        self.rest = rest;
        Ok(*bytes)
    }

    #[inline]
    fn number(&mut self) -> Result<u64, WireError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            let part = u64::from(byte & 0x7F);
            if part << shift >> shift != part {
                break;
            }
            number |= part << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(WireError::new("a length does not fit 64 bits"))
    }

    #[inline]
    fn length(&mut self) -> Result<usize, WireError> {
        usize::try_from(self.number()?).map_err(|_| cut_off())
    }

    /// A sequence of numbers.
    #[inline]
    pub(super) fn numbers<N: Pod>(&mut self) -> Result<Vec<N>, WireError> {
        let length = self.length()?.checked_mul(size_of::<N>()).ok_or_else(cut_off)?;
        Ok(self.of_length(length)?.chunks_exact(size_of::<N>()).map(bytemuck::pod_read_unaligned).collect())
    }

    #[inline]
    fn bytes(&mut self) -> Result<&'de [u8], WireError> {
        let length = self.length()?;
        self.of_length(length)
    }

    #[inline]
    fn of_length(&mut self, length: usize) -> Result<&'de [u8], WireError> {
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or_else(cut_off)?;
        self.rest = rest;
        Ok(bytes)
    }
}

#[inline]
fn cut_off() -> WireError {
    WireError::new("the bytes end within the value")
}

/// Methods that read a number with its own width.
macro_rules! numbers {
    ($($name:ident $visit:ident $type:ty),*) => {$(
        #[inline]
        fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
            visitor.$visit(<$type>::from_le_bytes(self.array()?))
        }
    )*};
}

impl<'de> de::Deserializer<'de> for &mut WireReader<'de> {
    type Error = WireError;

    numbers! {
        deserialize_i8 visit_i8 i8, deserialize_i16 visit_i16 i16, deserialize_i32 visit_i32 i32,
        deserialize_i64 visit_i64 i64, deserialize_i128 visit_i128 i128, deserialize_u8 visit_u8 u8,
        deserialize_u16 visit_u16 u16, deserialize_u32 visit_u32 u32, deserialize_u64 visit_u64 u64,
        deserialize_u128 visit_u128 u128, deserialize_f32 visit_f32 f32, deserialize_f64 visit_f64 f64
    }

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, WireError> {
        Err(WireError::new("the type asks what comes next, and the bytes do not say it"))
    }

    #[inline]
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        self.deserialize_any(visitor)
    }

    #[inline]
    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        match self.array()? {
            [0] => visitor.visit_bool(false),
            [1] => visitor.visit_bool(true),
            [byte] => Err(WireError::new(format!("{byte} stands where 0 or 1 does"))),
        }
    }

    #[inline]
    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        let number = u32::from_le_bytes(self.array()?);
        visitor
            .visit_char(char::from_u32(number).ok_or_else(|| WireError::new("no character has this number"))?)
    }

    #[inline]
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        let text = str::from_utf8(self.bytes()?).map_err(|_| WireError::new("a string is not UTF-8"))?;
        visitor.visit_borrowed_str(text)
    }

    #[inline]
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        self.deserialize_str(visitor)
    }

    #[inline]
    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        visitor.visit_borrowed_bytes(self.bytes()?)
    }

    #[inline]
    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        self.deserialize_bytes(visitor)
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        match self.array()? {
            [0] => visitor.visit_none(),
            [1] => visitor.visit_some(self),
            [byte] => Err(WireError::new(format!("{byte} stands where 0 or 1 does"))),
        }
    }

    #[inline]
    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        visitor.visit_unit()
    }

    #[inline]
    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, WireError> {
        visitor.visit_unit()
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, WireError> {
        visitor.visit_newtype_struct(self)
    }

    #[inline]
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        if let Some(numbers) = read_numbers::<V>(self) {
            return numbers;
        }
        let left = self.length()?;
        visitor.visit_seq(ReaderParts { reader: self, left })
    }

    #[inline]
    fn deserialize_tuple<V: Visitor<'de>>(self, left: usize, visitor: V) -> Result<V::Value, WireError> {
        visitor.visit_seq(ReaderParts { reader: self, left })
    }

    #[inline]
    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        left: usize,
        visitor: V,
    ) -> Result<V::Value, WireError> {
        self.deserialize_tuple(left, visitor)
    }

    #[inline]
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        let left = self.length()?;
        visitor.visit_map(ReaderParts { reader: self, left })
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, WireError> {
        self.deserialize_tuple(fields.len(), visitor)
    }

    #[inline]
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, WireError> {
        visitor.visit_enum(WireVariant { reader: self })
    }

    #[inline]
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        let number = self.number()?;
        visitor.visit_u64(number)
    }

    #[inline]
    fn is_human_readable(&self) -> bool {
        false
    }
}

/// The elements of a sequence, or the entries of a map.
struct ReaderParts<'a, 'de> {
    reader: &'a mut WireReader<'de>,
    left: usize,
}

impl ReaderParts<'_, '_> {
    /// A hint of the number of parts, which no more bytes than there are can make large.
    #[inline]
    fn hint(&self) -> usize {
        self.left.min(self.reader.left())
    }
}

impl<'de> de::SeqAccess<'de> for ReaderParts<'_, 'de> {
    type Error = WireError;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, WireError> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        seed.deserialize(&mut *self.reader).map(Some)
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        Some(self.hint())
    }
}

impl<'de> de::MapAccess<'de> for ReaderParts<'_, 'de> {
    type Error = WireError;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, WireError> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        seed.deserialize(&mut *self.reader).map(Some)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, WireError> {
        seed.deserialize(&mut *self.reader)
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        Some(self.hint())
    }
}

/// A variant of an enum: its number, and then what it holds.
struct WireVariant<'a, 'de> {
    reader: &'a mut WireReader<'de>,
}

impl<'de> de::EnumAccess<'de> for WireVariant<'_, 'de> {
    type Error = WireError;
    type Variant = Self;

    #[inline]
    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), WireError> {
        let number = u32::try_from(self.reader.number()?).map_err(|_| WireError::new("no such variant"))?;
        let variant = seed.deserialize(IntoDeserializer::<WireError>::into_deserializer(number))?;
        Ok((variant, self))
    }
}

impl<'de> de::VariantAccess<'de> for WireVariant<'_, 'de> {
    type Error = WireError;

    #[inline]
    fn unit_variant(self) -> Result<(), WireError> {
        Ok(())
    }

    #[inline]
    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, WireError> {
        seed.deserialize(self.reader)
    }

    #[inline]
    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, WireError> {
        de::Deserializer::deserialize_tuple(self.reader, length, visitor)
    }

    #[inline]
    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, WireError> {
        de::Deserializer::deserialize_tuple(self.reader, fields.len(), visitor)
    }
}
