//! [`Parameters`]: the values that a path has for the names in its route, and the check of a type
//! against these names when the route is made.

use crate::fields::{self, FieldError};
use percent_encoding::percent_decode_str;
use serde::de::{self, Deserialize, Deserializer, Visitor};
use std::borrow::Cow;
use std::fmt;

/// The parameters of a path, in the order of its route.
#[derive(Debug)]
pub(crate) struct Parameters<'p>(&'p matchit::Params<'p, 'p>);

impl<'p> Parameters<'p> {
    pub(crate) fn new(matched: &'p matchit::Params<'p, 'p>) -> Parameters<'p> {
        Parameters(matched)
    }

    /// Reads them into a `T`.
    pub(crate) fn read<T: de::DeserializeOwned>(&self) -> Result<T, FieldError> {
        let decode = |(name, value): (&'p str, &'p str)| {
            if !value.contains('%') {
                return Ok((Cow::Borrowed(name), Cow::Borrowed(value)));
            }
            let value = percent_decode_str(value).decode_utf8();
            let value = value.map_err(|_| FieldError(format!("{name:?} is not UTF-8")))?;
            Ok((Cow::Borrowed(name), value))
        };
        let mut pairs = self.0.iter().map(decode);
        match (self.0.len(), pairs.next()) {
            (1, Some(only)) => fields::read_only(only?),
            (_, first) => fields::read(first.into_iter().chain(pairs).collect::<Result<_, FieldError>>()?),
        }
    }
}

/// Checks that a `T` takes parameters with these names.
pub(crate) fn check<'de, T: Deserialize<'de>>(names: &[String]) -> Result<(), String> {
    match T::deserialize(Probe(names)) {
        // A type that reads nothing takes any parameters.
        Ok(_) | Err(ProbeError(None)) => Ok(()),
        Err(ProbeError(Some(misfit))) => Err(misfit),
    }
}

/// Asks a type how it would be read, and gives it no value.
struct Probe<'n>(&'n [String]);

/// What a type said: why it does not fit, or `None`.
#[derive(Debug)]
struct ProbeError(Option<String>);

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_deref().unwrap_or("it fits"))
    }
}

impl std::error::Error for ProbeError {}

impl de::Error for ProbeError {
    /// A type that fails for a reason of its own says nothing about names.
    fn custom<T: fmt::Display>(_: T) -> ProbeError {
        ProbeError(None)
    }
}

impl Probe<'_> {
    fn wants<T>(&self, count: usize) -> Result<T, ProbeError> {
        let (has, names) = (self.0.len(), self.0.join(", "));
        Err(ProbeError(
            (count != has).then(|| format!("{count} parameters are read, and the path has {has}: {names}")),
        ))
    }
}

macro_rules! one {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, ProbeError> {
            self.wants(1)
        })*
    };
}

macro_rules! any {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, ProbeError> {
            Err(ProbeError(None))
        })*
    };
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = ProbeError;

    one! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32
        deserialize_f64 deserialize_char deserialize_str deserialize_string deserialize_bytes
        deserialize_byte_buf deserialize_option deserialize_identifier
    }

    any! { deserialize_any deserialize_map deserialize_seq deserialize_unit deserialize_ignored_any }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        known: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, ProbeError> {
        let unknown = self.0.iter().find(|name| !known.contains(&name.as_str()));
        Err(ProbeError(unknown.map(|unknown| format!("{name} has no field {unknown:?}"))))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, _: V) -> Result<V::Value, ProbeError> {
        self.wants(len)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        len: usize,
        _: V,
    ) -> Result<V::Value, ProbeError> {
        self.wants(len)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ProbeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, _: V) -> Result<V::Value, ProbeError> {
        Err(ProbeError(None))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, ProbeError> {
        self.wants(1)
    }
}
