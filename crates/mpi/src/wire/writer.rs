//! [`WireWriter`]: serde's serialiser for the form of `wire.rs`.
//!
//! `encode` calls it. A sequence or map without a known length is refused, because its length
//! stands before it.

use super::error::WireError;
use super::number::{NUMBER_MAX, NumberWriter};
use serde::{Serialize, ser};

/// The bytes of a sequence of numbers that are written at once.
const BLOCK: usize = 512;

/// Appends a value to the bytes.
pub(super) struct WireWriter<'a>(pub(super) &'a mut Vec<u8>);

impl WireWriter<'_> {
    /// A length or the number of a variant: seven bits in each byte, the low ones first.
    #[inline]
    pub(super) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    #[inline]
    fn length(&mut self, length: Option<usize>) -> Result<(), WireError> {
        let length = length.ok_or_else(|| WireError::new("a sequence of unknown length"))?;
        self.number(length as u64);
        Ok(())
    }

    /// Writes items of a sequence one by one.
    #[inline]
    fn items<T: Serialize>(&mut self, mut items: impl Iterator<Item = T>) -> Result<(), WireError> {
        items.try_for_each(|item| item.serialize(&mut *self))
    }

    /// Writes the items of a sequence behind a first one, which was a number of `N` bytes. They are
    /// numbers of this width as a rule, and go to the bytes in blocks. From the first other one on
    /// they are written one by one.
    #[inline]
    fn items_of_width<const N: usize, T: Serialize>(
        &mut self,
        mut items: impl Iterator<Item = T>,
    ) -> Result<(), WireError> {
        self.0.reserve(items.size_hint().0.saturating_mul(N));
        let mut block = [0; BLOCK];
        loop {
            let mut written = 0;
            for (place, item) in block.as_chunks_mut::<N>().0.iter_mut().zip(items.by_ref()) {
                if !matches!(item.serialize(NumberWriter(place)), Ok(width) if width == N) {
                    self.0.extend_from_slice(&block[..written]);
                    item.serialize(&mut *self)?;
                    return self.items(items);
                }
                written += N;
            }
            self.0.extend_from_slice(&block[..written]);
            if written < BLOCK {
                return Ok(());
            }
        }
    }
}

/// Methods that write a number with its own width.
macro_rules! numbers {
    ($($name:ident: $type:ty),*) => {$(
        #[inline]
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

    #[inline]
    fn serialize_bool(self, value: bool) -> Result<(), WireError> {
        self.serialize_u8(u8::from(value))
    }

    #[inline]
    fn serialize_char(self, value: char) -> Result<(), WireError> {
        self.serialize_u32(u32::from(value))
    }

    #[inline]
    fn serialize_str(self, value: &str) -> Result<(), WireError> {
        self.serialize_bytes(value.as_bytes())
    }

    #[inline]
    fn serialize_bytes(self, value: &[u8]) -> Result<(), WireError> {
        self.number(value.len() as u64);
        self.0.extend_from_slice(value);
        Ok(())
    }

    #[inline]
    fn serialize_none(self) -> Result<(), WireError> {
        self.serialize_u8(0)
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), WireError> {
        self.0.push(1);
        value.serialize(self)
    }

    #[inline]
    fn serialize_unit(self) -> Result<(), WireError> {
        Ok(())
    }

    #[inline]
    fn serialize_unit_struct(self, _: &'static str) -> Result<(), WireError> {
        Ok(())
    }

    #[inline]
    fn serialize_unit_variant(self, _: &'static str, variant: u32, _: &'static str) -> Result<(), WireError> {
        self.number(u64::from(variant));
        Ok(())
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), WireError> {
        value.serialize(self)
    }

    #[inline]
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

    #[inline]
    fn serialize_seq(self, length: Option<usize>) -> Result<Self, WireError> {
        self.length(length)?;
        Ok(self)
    }

    /// A sequence as a whole, as vectors and slices write themselves.
    #[inline]
    fn collect_seq<I>(self, items: I) -> Result<(), WireError>
    where
        I: IntoIterator<Item: Serialize>,
    {
        let mut items = items.into_iter();
        let (length, most) = items.size_hint();
        self.length(most.filter(|&most| most == length))?;
        let Some(first) = items.next() else { return Ok(()) };
        let mut number = [0; NUMBER_MAX];
        let Ok(width) = first.serialize(NumberWriter(&mut number)) else {
            first.serialize(&mut *self)?;
            return self.items(items);
        };
        self.0.extend_from_slice(&number[..width]);
        match width {
            1 => self.items_of_width::<1, _>(items),
            2 => self.items_of_width::<2, _>(items),
            4 => self.items_of_width::<4, _>(items),
            8 => self.items_of_width::<8, _>(items),
            _ => self.items_of_width::<16, _>(items),
        }
    }

    #[inline]
    fn serialize_tuple(self, _: usize) -> Result<Self, WireError> {
        Ok(self)
    }

    #[inline]
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, WireError> {
        Ok(self)
    }

    #[inline]
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

    #[inline]
    fn serialize_map(self, length: Option<usize>) -> Result<Self, WireError> {
        self.length(length)?;
        Ok(self)
    }

    #[inline]
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, WireError> {
        Ok(self)
    }

    #[inline]
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

    #[inline]
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

            #[inline]
            fn $method<T: Serialize + ?Sized>(&mut self, $(_: $name,)? value: &T) -> Result<(), WireError> {
                value.serialize(&mut **self)
            }

            #[inline]
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

    #[inline]
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), WireError> {
        key.serialize(&mut **self)
    }

    #[inline]
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), WireError> {
        value.serialize(&mut **self)
    }

    #[inline]
    fn end(self) -> Result<(), WireError> {
        Ok(())
    }
}
