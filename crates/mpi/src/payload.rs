//! What a message holds: a value of the simple interface ([`Value`]), elements of the fast one
//! ([`Elements`]), or several of either ([`SeveralPayloads`]).
//!
//! [`MessagePayload`] makes bodies of them and opens bodies, so the collectives are written once
//! for both interfaces. A body is a value that is moved, where the engine can do that; otherwise
//! bytes.

use crate::envelope::{Envelope, MessageContent, Moved, Status};
use crate::error::{CallSite, Error, ErrorClass};
use crate::tag::PROC_NULL;
use crate::wire;
use bytemuck::Pod;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::type_name;

/// A type of values that the simple interface can send: any that serde can serialise, and that owns
/// its data.
///
/// `#[derive(serde::Serialize, serde::Deserialize)]` makes a type of a program one. Between ranks
/// of one process a value is moved and not serialised.
///
/// # Paper
/// [HMPI "Point-to-point communications"]: instances of `Serialize`.
#[diagnostic::on_unimplemented(
    message = "a value of type `{Self}` cannot be sent as a message",
    note = "a message is of a type that is `serde::Serialize`, `serde::de::DeserializeOwned`, `Send` and `'static`",
    note = "send a `String` rather than a `&str`, and a `Vec` rather than a slice"
)]
pub trait Message: Serialize + DeserializeOwned + Send + 'static {}

impl<T: Serialize + DeserializeOwned + Send + 'static> Message for T {}

/// What can be made a body of a message, and be made of one.
pub(crate) trait MessagePayload: Sized + Send + 'static {
    /// The body, moved or as bytes.
    fn pack(self, moved: bool) -> Result<MessageContent, String>;

    /// The payload of a body; or what is wrong with it.
    fn unpack(body: MessageContent) -> Result<Self, String>;
}

/// Opens a message.
pub(crate) fn open<P: MessagePayload>(call: CallSite, envelope: Envelope) -> Result<(P, Status), Error> {
    let status = envelope.status();
    let Envelope { source, tag, sent, .. } = envelope;
    match P::unpack(envelope.body) {
        Ok(payload) => Ok((payload, status)),
        Err(what) if source as usize == PROC_NULL => {
            Err(call.error(ErrorClass::Type, format!("the message of the null rank {what}")))
        }
        Err(what) => {
            let sent = sent.map_or(String::new(), |sent| format!(", which {sent} sent"));
            let text = format!("the message from rank {source} with tag {tag}{sent}, {what}");
            Err(call.error(ErrorClass::Type, text))
        }
    }
}

/// Makes the body of a message.
pub(crate) fn pack<P: MessagePayload>(
    call: CallSite,
    payload: P,
    moved: bool,
) -> Result<MessageContent, Error> {
    payload.pack(moved).map_err(|what| call.error(ErrorClass::Type, what))
}

/// A value of the simple interface.
#[derive(Clone)]
pub(crate) struct Value<T>(pub(crate) T);

impl<T: Message> MessagePayload for Value<T> {
    fn pack(self, moved: bool) -> Result<MessageContent, String> {
        if moved {
            return Ok(MessageContent::Moved(Moved::new(self, size_of::<T>())));
        }
        match wire::encode(&self.0) {
            Ok(bytes) => Ok(MessageContent::Bytes(bytes)),
            Err(error) => Err(format!("a value of type {} cannot be written: {error}", type_name::<T>())),
        }
    }

    fn unpack(body: MessageContent) -> Result<Value<T>, String> {
        match body {
            MessageContent::Moved(moved) if moved.is_nothing() => match wire::empty() {
                Ok(value) => Ok(Value(value)),
                Err(error) => Err(format!("holds no value of type {}: {error}", type_name::<T>())),
            },
            MessageContent::Moved(moved) => downcast(moved),
            MessageContent::Bytes(bytes) => match wire::decode(&bytes) {
                Ok(value) => Ok(Value(value)),
                Err(error) => Err(format!("is not a value of type {}: {error}", type_name::<T>())),
            },
        }
    }
}

/// Elements of the fast interface.
#[derive(Clone)]
pub(crate) struct Elements<T>(pub(crate) Vec<T>);

impl<T: Pod + Send> MessagePayload for Elements<T> {
    fn pack(self, moved: bool) -> Result<MessageContent, String> {
        let bytes = size_of_val(self.0.as_slice());
        Ok(match moved {
            true => MessageContent::Moved(Moved::new(self, bytes)),
            false => MessageContent::Bytes(bytemuck::cast_slice(&self.0).to_vec()),
        })
    }

    fn unpack(body: MessageContent) -> Result<Elements<T>, String> {
        let bytes = match body {
            MessageContent::Moved(moved) if moved.is_nothing() => return Ok(Elements(Vec::new())),
            MessageContent::Moved(moved) => return downcast(moved),
            MessageContent::Bytes(bytes) => bytes,
        };
        if size_of::<T>() == 0 || !bytes.len().is_multiple_of(size_of::<T>()) {
            let (name, size) = (type_name::<T>(), size_of::<T>());
            return Err(format!("has {} bytes, which are no whole number of {name} of {size}", bytes.len()));
        }
        // A copy, because the memory of the bytes may not be aligned for the elements.
        let mut elements = vec![T::zeroed(); bytes.len() / size_of::<T>()];
        bytemuck::cast_slice_mut(&mut elements).copy_from_slice(&bytes);
        Ok(Elements(elements))
    }
}

/// Several payloads in one message, for a collective.
#[derive(Clone)]
pub(crate) struct SeveralPayloads<P>(pub(crate) Vec<P>);

impl<P: MessagePayload> MessagePayload for SeveralPayloads<P> {
    fn pack(self, moved: bool) -> Result<MessageContent, String> {
        if moved {
            let bytes = size_of_val(self.0.as_slice());
            return Ok(MessageContent::Moved(Moved::new(self, bytes)));
        }
        let mut all = Vec::new();
        for part in self.0 {
            let MessageContent::Bytes(bytes) = part.pack(false)? else {
                unreachable!("it was not to be moved")
            };
            all.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
            all.extend_from_slice(&bytes);
        }
        Ok(MessageContent::Bytes(all))
    }

    fn unpack(body: MessageContent) -> Result<SeveralPayloads<P>, String> {
        let bytes = match body {
            MessageContent::Moved(moved) => return downcast(moved),
            MessageContent::Bytes(bytes) => bytes,
        };
        let mut rest = bytes.as_slice();
        let mut parts = Vec::new();
        while let Some((length, after)) = rest.split_first_chunk() {
            let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
            let (part, after) = after.split_at_checked(length).ok_or("is cut off in a part")?;
            parts.push(P::unpack(MessageContent::Bytes(part.to_vec()))?);
            rest = after;
        }
        match rest.is_empty() {
            true => Ok(SeveralPayloads(parts)),
            false => Err("is cut off between two parts".to_string()),
        }
    }
}

fn downcast<P: 'static>(moved: Moved) -> Result<P, String> {
    moved.downcast().map_err(|moved| {
        format!("holds {} and not {}", described(moved.type_name()), described(type_name::<P>()))
    })
}

/// The name of a payload's type in words.
fn described(name: &str) -> String {
    let name = name.replace("selvedge_mpi::payload::", "");
    let inside = |start: &str| Some(name.strip_prefix(start)?.strip_suffix('>')?.to_string());
    if let Some(value) = inside("Value<") {
        return format!("a value of type {value}");
    }
    match inside("Elements<") {
        Some(element) => format!("elements of type {element}"),
        None => name,
    }
}
