//! Elements within a value of the simple interface that go in one piece: a module for
//! `#[serde(with)]`.
//!
//! serde writes a vector of a struct element by element, because it does not tell a serialiser that
//! the elements lie side by side. A field with this attribute goes as its bytes: they are copied
//! once into the message, and once out of it. A `Vec` of numbers, such as a `Vec<f64>`, needs no
//! attribute: `wire.rs` finds out that it is one. It is for vectors of other elements, such as
//! `[f32; 3]`, and for types of a program that lie around a vector.
//!
//! The elements are [plain data](crate::Plain). They have the bytes that they have in memory, so
//! the form is for messages, and not for files that other machines read.
//!
//! # Examples
//! ```
//! use selvedge::mpi;
//!
//! #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
//! struct Block {
//!     name: String,
//!     #[serde(with = "selvedge::mpi::raw")]
//!     cells: Vec<f64>,
//! }
//!
//! # selvedge::round_robin(async {
//! mpi::Ranks::new(2).serialized().run(|world| async move {
//!     let block = Block { name: "warp".to_string(), cells: vec![0.5; 1000] };
//!     let came = world.bcast(0, || block.clone()).await?;
//!     assert_eq!(came, block);
//!     Ok::<_, mpi::Error>(())
//! })
//! .await
//! # })?.unwrap();
//! # Ok::<(), selvedge::RunError>(())
//! ```

use crate::payload::elements_of;
use bytemuck::Pod;
use serde::de::{Deserializer, Error, Visitor};
use serde::ser::Serializer;
use std::fmt;
use std::marker::PhantomData;

/// Writes the elements as their bytes.
///
/// # Errors
/// Those of the serialiser.
pub fn serialize<T: Pod, S: Serializer>(elements: &[T], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(bytemuck::cast_slice(elements))
}

/// Reads elements of their bytes.
///
/// # Errors
/// Those of the deserialiser, and if the bytes are no whole number of elements.
pub fn deserialize<'de, T: Pod, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_bytes(ElementsVisitor(PhantomData))
}

/// Makes elements of bytes.
struct ElementsVisitor<T>(PhantomData<T>);

impl<T: Pod> Visitor<'_> for ElementsVisitor<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of elements")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<T>, E> {
        elements_of(bytes).map_err(E::custom)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::wire::{decode, encode};
    use serde::{Deserialize, Serialize};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Block {
        flag: bool,
        #[serde(with = "crate::raw")]
        cells: Vec<f64>,
        #[serde(with = "crate::raw")]
        bytes: Vec<u8>,
        #[serde(with = "crate::raw")]
        pairs: Vec<[u16; 2]>,
        end: Option<String>,
    }

    #[test]
    fn elements_go_as_their_bytes_and_come_back_wherever_they_lie() {
        let block = Block {
            flag: true,
            cells: vec![1.5, f64::NEG_INFINITY, -0.0],
            bytes: vec![7; 300],
            pairs: vec![[1, 2]],
            end: Some("weft".to_string()),
        };
        let bytes = encode(&block).unwrap();
        // The head; the flag; three lengths with their elements; and the string that may be there.
        assert_eq!(bytes.len(), 9 + 1 + (1 + 3 * 8) + (2 + 300) + (1 + 4) + (1 + 1 + 4));
        assert!(bytes.windows(24).any(|window| window == bytemuck::cast_slice::<f64, u8>(&block.cells)));
        assert_eq!(decode::<Block>(&bytes).unwrap(), block);
        for end in 0..bytes.len() {
            assert!(decode::<Block>(&bytes[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn bytes_that_are_no_whole_number_of_elements_are_refused() {
        #[derive(Debug, Serialize, Deserialize)]
        struct Cells(#[serde(with = "crate::raw")] Vec<u32>);

        let mut bytes = encode(&Cells(vec![1, 2])).unwrap();
        assert_eq!(bytes[9], 8);
        bytes[9] = 7;
        bytes.pop();
        let error = decode::<Cells>(&bytes).unwrap_err().to_string();
        assert!(error.contains("has 7 bytes, which are no whole number of u32 of 4"), "{error}");
    }
}
