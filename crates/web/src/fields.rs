//! Names with values, as serde reads them: path parameters, queries, forms, cookies.
//!
//! All values are texts. A value is read as the type that the program asks for: a number is parsed,
//! and several values of one name are a sequence.

use serde::de::value::MapDeserializer;
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, IntoDeserializer, SeqAccess, Visitor};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};
use std::fmt;
use std::hash::Hash;

/// A name and a value.
pub(crate) type NamedValue<'de> = (Cow<'de, str>, Cow<'de, str>);

/// Why fields do not fit a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldError(pub(crate) String);

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FieldError {}

impl de::Error for FieldError {
    fn custom<T: fmt::Display>(message: T) -> FieldError {
        FieldError(message.to_string())
    }
}

/// Reads `pairs` into a `T`: a struct or a map by their names, a tuple by their order, and anything
/// else from the only value.
pub(crate) fn read<'de, T: Deserialize<'de>>(pairs: Vec<NamedValue<'de>>) -> Result<T, FieldError> {
    T::deserialize(NamedFields::Several(pairs))
}

/// [`read`] for one pair, which needs no vector.
pub(crate) fn read_only<'de, T: Deserialize<'de>>(pair: NamedValue<'de>) -> Result<T, FieldError> {
    T::deserialize(NamedFields::One(pair))
}

enum NamedFields<'de> {
    One(NamedValue<'de>),
    Several(Vec<NamedValue<'de>>),
}

impl<'de> NamedFields<'de> {
    /// The values of each name, in the order of the names' first places.
    fn grouped(self) -> Vec<(Cow<'de, str>, NamedValues<'de>)> {
        group(self.all()).into_iter().map(|(name, values)| (name, NamedValues(values))).collect()
    }

    fn all(self) -> Vec<NamedValue<'de>> {
        match self {
            NamedFields::One(pair) => vec![pair],
            NamedFields::Several(pairs) => pairs,
        }
    }

    fn only(self) -> Result<Text<'de>, FieldError> {
        let pair = match self {
            NamedFields::One(pair) => Some(pair),
            NamedFields::Several(mut pairs) => pairs.pop().filter(|_| pairs.is_empty()),
        };
        let (_, value) = pair.ok_or_else(|| FieldError("there is more or less than one value".into()))?;
        Ok(Text(value))
    }
}

/// The values of each name, in the order of the names' first places. A client chooses the names, so
/// the cost is linear in their number.
fn group<N: Clone + Eq + Hash, V>(pairs: Vec<(N, V)>) -> Vec<(N, VecDeque<V>)> {
    let mut grouped: Vec<(N, VecDeque<V>)> = Vec::new();
    let mut places: HashMap<N, usize> = HashMap::new();
    for (name, value) in pairs {
        match places.entry(name) {
            Entry::Occupied(place) => grouped[*place.get()].1.push_back(value),
            Entry::Vacant(vacant) => {
                grouped.push((vacant.key().clone(), [value].into()));
                vacant.insert(grouped.len() - 1);
            }
        }
    }
    grouped
}

macro_rules! of_the_only {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
            self.only()?.$method(visitor)
        })*
    };
}

impl<'de> Deserializer<'de> for NamedFields<'de> {
    type Error = FieldError;

    of_the_only! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32
        deserialize_f64 deserialize_char deserialize_str deserialize_string deserialize_bytes
        deserialize_byte_buf deserialize_option deserialize_identifier
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        self.deserialize_map(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_map(MapDeserializer::new(self.grouped().into_iter()))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        self.deserialize_map(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_seq(NamedValues(self.all().into_iter().map(|(_, value)| value).collect()))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, FieldError> {
        let all = self.all();
        if len != all.len() {
            return Err(FieldError(format!("{} values where {len} are wanted", all.len())));
        }
        NamedFields::Several(all).deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        self.deserialize_tuple(len, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        self.only()?.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        visitor.visit_unit()
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_unit()
    }
}

/// The values of one name.
struct NamedValues<'de>(VecDeque<Cow<'de, str>>);

impl<'de> NamedValues<'de> {
    fn only(mut self) -> Result<Text<'de>, FieldError> {
        match (self.0.pop_front(), self.0.is_empty()) {
            (Some(value), true) => Ok(Text(value)),
            _ => Err(FieldError("it has several values".into())),
        }
    }
}

impl<'de> IntoDeserializer<'de, FieldError> for NamedValues<'de> {
    type Deserializer = NamedValues<'de>;

    fn into_deserializer(self) -> NamedValues<'de> {
        self
    }
}

impl<'de> SeqAccess<'de> for NamedValues<'de> {
    type Error = FieldError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, FieldError> {
        self.0.pop_front().map(|value| seed.deserialize(Text(value))).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

impl<'de> Deserializer<'de> for NamedValues<'de> {
    type Error = FieldError;

    of_the_only! {
        deserialize_any deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_i128 deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64 deserialize_char deserialize_str deserialize_string
        deserialize_bytes deserialize_byte_buf deserialize_identifier
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_some(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_seq(self)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_seq(self)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        visitor.visit_seq(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        self.only()?.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! { unit unit_struct map struct }
}

/// One value.
struct Text<'de>(Cow<'de, str>);

macro_rules! parsed {
    ($($method:ident $visit:ident $type:ty;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
            match self.0.parse::<$type>() {
                Ok(value) => visitor.$visit(value),
                Err(_) => Err(FieldError(format!("{:?} is no {}", self.0, stringify!($type)))),
            }
        })*
    };
}

impl<'de> Deserializer<'de> for Text<'de> {
    type Error = FieldError;

    parsed! {
        deserialize_bool visit_bool bool;
        deserialize_i8 visit_i8 i8;
        deserialize_i16 visit_i16 i16;
        deserialize_i32 visit_i32 i32;
        deserialize_i64 visit_i64 i64;
        deserialize_i128 visit_i128 i128;
        deserialize_u8 visit_u8 u8;
        deserialize_u16 visit_u16 u16;
        deserialize_u32 visit_u32 u32;
        deserialize_u64 visit_u64 u64;
        deserialize_u128 visit_u128 u128;
        deserialize_f32 visit_f32 f32;
        deserialize_f64 visit_f64 f64;
        deserialize_char visit_char char;
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self.0 {
            Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            Cow::Owned(text) => visitor.visit_string(text),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        visitor.visit_enum(self.0.into_deserializer())
    }

    serde::forward_to_deserialize_any! {
        str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use std::cell::Cell;
    use std::hash::Hasher;

    fn pairs(text: &str) -> Vec<NamedValue<'_>> {
        form_urlencoded::parse(text.as_bytes()).collect()
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Weave {
        Plain,
        Twill,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Cloth {
        weave: Weave,
        ells: Option<u32>,
        #[serde(default)]
        colour: Vec<String>,
    }

    #[test]
    fn a_struct_is_read_by_names() {
        let cloth: Cloth = read(pairs("colour=red&weave=twill&ells=12&colour=sea%20green&other=1")).unwrap();
        let colour = vec!["red".to_string(), "sea green".into()];
        assert_eq!(cloth, Cloth { weave: Weave::Twill, ells: Some(12), colour });
        let cloth: Cloth = read(pairs("weave=plain")).unwrap();
        assert_eq!(cloth, Cloth { weave: Weave::Plain, ells: None, colour: vec![] });
        let misfit = |text| read::<Cloth>(pairs(text)).unwrap_err().0;
        assert_eq!(misfit("weave=plain&ells=x"), "\"x\" is no u32");
        assert_eq!(misfit("weave=plain&weave=twill"), "it has several values");
        assert_eq!(misfit("ells=1"), "missing field `weave`");
        assert!(misfit("weave=knit").contains("knit"));
    }

    thread_local! {
        static COMPARISONS: Cell<usize> = const { Cell::new(0) };
    }

    /// A name that counts how often it is compared.
    #[derive(Clone, Debug)]
    struct Counted(usize);

    impl PartialEq for Counted {
        fn eq(&self, other: &Counted) -> bool {
            COMPARISONS.set(COMPARISONS.get() + 1);
            self.0 == other.0
        }
    }

    impl Eq for Counted {}

    impl Hash for Counted {
        fn hash<H: Hasher>(&self, hasher: &mut H) {
            self.0.hash(hasher);
        }
    }

    #[test]
    fn many_names_are_grouped_at_a_linear_cost() {
        let pairs = (0..4000).map(|i| (Counted(i % 2000), i)).collect();
        let grouped = group(pairs);
        assert_eq!(grouped.len(), 2000);
        for (i, (name, values)) in grouped.iter().enumerate() {
            assert_eq!((name.0, values), (i, &VecDeque::from([i, i + 2000])));
        }
        assert!(COMPARISONS.get() < 20_000, "{} comparisons", COMPARISONS.get());
    }

    #[test]
    fn a_tuple_is_read_by_order_and_a_scalar_from_the_only_value() {
        assert_eq!(read(pairs("a=1&b=x")), Ok((1u8, "x".to_string())));
        assert_eq!(read(pairs("a=-7")), Ok(-7i64));
        assert_eq!(read::<(u8, u8)>(pairs("a=1")), Err(FieldError("1 values where 2 are wanted".into())));
        assert!(read::<u8>(pairs("a=1&b=2")).is_err());
        assert!(read::<u8>(pairs("a=256")).is_err());
    }
}
