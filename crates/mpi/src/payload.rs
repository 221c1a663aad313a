//! What a message holds: a value of the simple interface ([`Value`]), elements of the fast one
//! ([`Elements`]), or several of either ([`SeveralPayloads`]).
//!
//! [`MessagePayload`] makes bodies of them and opens bodies, so the collectives are written once
//! for both interfaces. A body is a value that is moved, where the engine can do that; otherwise
//! bytes.

use crate::byte_pieces::BytePieces;
use crate::communicator::OpensMessage;
use crate::envelope::{Envelope, MessageContent, Moved, MovedType, Status};
use crate::error::{CallSite, Error, ErrorClass};
use crate::job_header::HeaderTail;
use crate::receive_room::ReceiveRoom;
use crate::spare_memory::{SPARE_MIN, spare};
use crate::tag::PROC_NULL;
use crate::wire::{self, ComingVector, WireError};
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

/// What can be made a body of a message.
pub(crate) trait SentPayload: Sized + Send {
    /// The body, moved or as bytes.
    fn pack(self, moved: bool) -> Result<MessageContent, String>;

    /// The bytes of the body, if most of them lie there as they are. What stands before these is
    /// written to `head`, which is empty.
    #[inline]
    fn lying<'a>(&'a self, _head: &'a mut Vec<u8>) -> Option<BytePieces<'a>> {
        None
    }

    /// The number of bytes that are copied when the payload is moved.
    #[inline]
    fn copied_bytes(&self) -> usize {
        0
    }
}

/// What can be made of the body of a message.
pub(crate) trait ReceivedPayload: Sized + Send + 'static {
    /// The payload of a body; or what is wrong with it.
    fn unpack(body: MessageContent) -> Result<Self, String>;
}

/// What can be made a body of a message, and be made of one.
pub(crate) trait MessagePayload: SentPayload + ReceivedPayload {}

impl<P: SentPayload + ReceivedPayload> MessagePayload for P {}

/// Opens a message.
pub(crate) fn open<P: ReceivedPayload>(call: CallSite, envelope: Envelope) -> Result<(P, Status), Error> {
    open_with(call, envelope, P::unpack)
}

/// Opens a message with a function that reads its body, or says what is wrong with it.
pub(crate) fn open_with<P>(
    call: CallSite,
    envelope: Envelope,
    unpack: impl FnOnce(MessageContent) -> Result<P, String>,
) -> Result<(P, Status), Error> {
    let status = envelope.status();
    let Envelope { source, tag, sent, .. } = envelope;
    match unpack(envelope.body) {
        Ok(payload) => Ok((payload, status)),
        Err(what) => Err(wrong_body(call, (source, tag), sent, &what)),
    }
}

/// The error of a message from this source and with this tag: something is wrong with its body.
#[cold]
pub(crate) fn wrong_body(
    call: CallSite,
    (source, tag): (u32, u32),
    sent: Option<CallSite>,
    what: &str,
) -> Error {
    if source as usize == PROC_NULL {
        return call.error(ErrorClass::Type, format!("the message of the null rank {what}"));
    }
    let sent = sent.map_or(String::new(), |sent| format!(", which {sent} sent"));
    call.error(ErrorClass::Type, format!("the message from rank {source} with tag {tag}{sent}, {what}"))
}

/// Makes the body of a message.
pub(crate) fn pack<P: SentPayload>(call: CallSite, payload: P, moved: bool) -> Result<MessageContent, Error> {
    payload.pack(moved).map_err(|what| call.error(ErrorClass::Type, what))
}

/// A value of the simple interface.
#[derive(Clone)]
pub(crate) struct Value<T>(pub(crate) T);

impl<T: Message> SentPayload for Value<T> {
    fn pack(self, moved: bool) -> Result<MessageContent, String> {
        if moved {
            return Ok(MessageContent::Moved(Moved::new(self, size_of::<T>())));
        }
        match wire::encode(&self.0) {
            Ok(bytes) => Ok(MessageContent::Bytes(bytes)),
            Err(error) => Err(format!("a value of type {} cannot be written: {error}", type_name::<T>())),
        }
    }

    #[inline]
    fn lying<'a>(&'a self, head: &'a mut Vec<u8>) -> Option<BytePieces<'a>> {
        wire::vector_in_pieces(&self.0, SPARE_MIN, head)
    }
}

/// What a receive makes of a message that holds a value.
pub(crate) struct ComingValue<T> {
    call: CallSite,
    /// It is there if values of the type are vectors of numbers.
    vector: Option<ComingVector<T>>,
}

impl<T: Message> ComingValue<T> {
    pub(crate) fn new(call: CallSite) -> ComingValue<T> {
        ComingValue { call, vector: ComingVector::new() }
    }
}

impl<T: Message> OpensMessage<(T, Status)> for ComingValue<T> {
    fn room(&mut self) -> Option<ReceiveRoom<'_>> {
        self.vector.as_mut().map(|vector| ReceiveRoom::of_vector(vector))
    }

    fn open(self, envelope: Envelope) -> Result<(T, Status), Error> {
        let (Value(value), status) = open(self.call, envelope)?;
        Ok((value, status))
    }

    fn opened(self, status: Status) -> Result<(T, Status), Error> {
        let vector = self.vector.expect("it has lent room, which a vector has");
        match vector.value() {
            Ok(value) => Ok((value, status)),
            Err(error) => {
                let from = (status.source as u32, status.tag.0);
                Err(wrong_body(self.call, from, None, &no_value::<T>(&error)))
            }
        }
    }
}

fn no_value<T>(error: &WireError) -> String {
    format!("is not a value of type {}: {error}", type_name::<T>())
}

impl<T: Message> ReceivedPayload for Value<T> {
    fn unpack(body: MessageContent) -> Result<Value<T>, String> {
        match body {
            MessageContent::Moved(moved) if moved.is_nothing() => match wire::empty() {
                Ok(value) => Ok(Value(value)),
                Err(error) => Err(format!("holds no value of type {}: {error}", type_name::<T>())),
            },
            MessageContent::Moved(moved) => downcast(moved),
            MessageContent::Bytes(bytes) => {
                let value = wire::decode(&bytes);
                spare().keep(bytes);
                match value {
                    Ok(value) => Ok(Value(value)),
                    Err(error) => Err(no_value::<T>(&error)),
                }
            }
        }
    }
}

/// Elements of the fast interface.
#[derive(Clone)]
pub(crate) struct Elements<T>(pub(crate) Vec<T>);

impl<T: Pod + Send> SentPayload for Elements<T> {
    fn pack(self, moved: bool) -> Result<MessageContent, String> {
        Ok(match moved {
            true => moved_elements(self.0),
            false => bytes_with_room(bytemuck::cast_slice(&self.0)),
        })
    }
}

/// Elements of the fast interface that stay with their sender: one copy is made of them.
pub(crate) struct ElementSlice<'a, T>(pub(crate) &'a [T]);

impl<T: Pod + Send + Sync> SentPayload for ElementSlice<'_, T> {
    fn pack(self, moved: bool) -> Result<MessageContent, String> {
        let ElementSlice(elements) = self;
        let bytes = bytemuck::cast_slice(elements);
        if !moved {
            return Ok(bytes_with_room(bytes));
        }
        let few = match size_of::<T>() {
            0 => None,
            _ => Moved::few(bytes, const { &MovedType::of::<T>(type_name::<Elements<T>>) }),
        };
        Ok(few.map_or_else(|| moved_elements(spare().filled(elements)), MessageContent::Moved))
    }

    #[inline]
    fn lying<'a>(&'a self, _head: &'a mut Vec<u8>) -> Option<BytePieces<'a>> {
        Some([&[], bytemuck::cast_slice(self.0)])
    }

    #[inline]
    fn copied_bytes(&self) -> usize {
        size_of_val(self.0)
    }
}

/// A body of elements that are moved.
fn moved_elements<T: Pod + Send>(elements: Vec<T>) -> MessageContent {
    let bytes = size_of_val(elements.as_slice());
    let of = const { &MovedType::of::<Vec<T>>(type_name::<Elements<T>>) };
    MessageContent::Moved(Moved::named(elements, of, bytes))
}

/// A body of these bytes, with room for what an engine appends.
fn bytes_with_room(bytes: &[u8]) -> MessageContent {
    let room = bytes.len() + HeaderTail::BYTES_MAX;
    let mut body = spare().room(room);
    body.reserve_exact(room);
    body.extend_from_slice(bytes);
    MessageContent::Bytes(body)
}

impl<T: Pod + Send> ReceivedPayload for Elements<T> {
    fn unpack(body: MessageContent) -> Result<Elements<T>, String> {
        let body = match body {
            MessageContent::Moved(moved) => match moved.downcast() {
                Ok(elements) => return Ok(Elements(elements)),
                Err(moved) => MessageContent::Moved(moved),
            },
            bytes => bytes,
        };
        let elements = elements_of(bytes_of_elements::<T>(&body)?).map(Elements);
        if let MessageContent::Bytes(bytes) = body {
            spare().keep(bytes);
        }
        elements
    }
}

/// The bytes of the elements in a body, however it holds them.
pub(crate) fn bytes_of_elements<T: Pod + Send>(body: &MessageContent) -> Result<&[u8], String> {
    let moved = match body {
        MessageContent::Bytes(bytes)
            if size_of::<T>() == 0 || !bytes.len().is_multiple_of(size_of::<T>()) =>
        {
            return Err(no_whole_number::<T>(bytes));
        }
        MessageContent::Bytes(bytes) => return Ok(bytes),
        MessageContent::Moved(moved) => moved,
    };
    if let Some(bytes) = moved.few_bytes::<T>() {
        return Ok(bytes);
    }
    if moved.is_nothing() || size_of::<T>() == 0 {
        return Ok(&[]);
    }
    let elements = moved.get::<Vec<T>>();
    elements.map(|elements| bytemuck::cast_slice(elements)).ok_or_else(|| another_type::<Elements<T>>(moved))
}

/// The elements with these bytes. They are copied, because the bytes may not be aligned for them.
pub(crate) fn elements_of<T: Pod>(bytes: &[u8]) -> Result<Vec<T>, String> {
    if size_of::<T>() == 0 || !bytes.len().is_multiple_of(size_of::<T>()) {
        return Err(no_whole_number::<T>(bytes));
    }
    let mut elements = vec![T::zeroed(); bytes.len() / size_of::<T>()];
    bytemuck::cast_slice_mut(&mut elements).copy_from_slice(bytes);
    Ok(elements)
}

fn no_whole_number<T>(bytes: &[u8]) -> String {
    let (name, size) = (type_name::<T>(), size_of::<T>());
    format!("has {} bytes, which are no whole number of {name} of {size}", bytes.len())
}

/// Several payloads in one message, for a collective.
#[derive(Clone)]
pub(crate) struct SeveralPayloads<P>(pub(crate) Vec<P>);

impl<P: SentPayload + 'static> SentPayload for SeveralPayloads<P> {
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
            append_part(&mut all, &bytes);
        }
        Ok(MessageContent::Bytes(all))
    }
}

impl<P: ReceivedPayload> ReceivedPayload for SeveralPayloads<P> {
    fn unpack(body: MessageContent) -> Result<SeveralPayloads<P>, String> {
        let bytes = match body {
            MessageContent::Moved(moved) => return downcast(moved),
            MessageContent::Bytes(bytes) => bytes,
        };
        let mut parts = Vec::new();
        for_each_part(&bytes, |part| {
            parts.push(P::unpack(MessageContent::Bytes(part.to_vec()))?);
            Ok(())
        })?;
        Ok(SeveralPayloads(parts))
    }
}

/// Appends a part to the bytes of a message of several parts: its length in 8 bytes, and itself.
pub(crate) fn append_part(all: &mut Vec<u8>, part: &[u8]) {
    all.extend_from_slice(&(part.len() as u64).to_le_bytes());
    all.extend_from_slice(part);
}

/// The parts of a message of several parts.
pub(crate) fn for_each_part(
    mut bytes: &[u8],
    mut each: impl FnMut(&[u8]) -> Result<(), String>,
) -> Result<(), String> {
    while let Some((length, after)) = bytes.split_first_chunk() {
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let (part, after) = after.split_at_checked(length).ok_or("is cut off in a part")?;
        each(part)?;
        bytes = after;
    }
    if bytes.is_empty() { Ok(()) } else { Err("is cut off between two parts".to_string()) }
}

fn downcast<P: 'static>(moved: Moved) -> Result<P, String> {
    moved.downcast().map_err(|moved| another_type::<P>(&moved))
}

/// What is wrong with a body that holds no payload of type `P`.
pub(crate) fn another_type<P>(moved: &Moved) -> String {
    format!("holds {} and not {}", described(moved.type_name()), described(type_name::<P>()))
}

/// The name of a payload's type in words.
fn described(name: &str) -> String {
    let name = name.replace("selvedge_mpi::payload::", "");
    let forms = [
        ("Value<", "a value of type"),
        ("Elements<", "elements of type"),
        ("selvedge_mpi::collective::parts::Parts<", "parts of elements of type"),
    ];
    let inside = |(start, words)| {
        let inner: &str = name.strip_prefix::<&str>(start)?.strip_suffix('>')?;
        Some(format!("{words} {inner}"))
    };
    forms.into_iter().find_map(inside).unwrap_or(name.clone())
}
