//! A message on its way: [`Envelope`], with its [`MessageContent`] of bytes or of a value that is
//! moved; and [`Status`], what a receive tells of it.
//!
//! The interfaces (`simple.rs`, `fast.rs`) make envelopes and open them, engines carry them, and
//! the mailbox (`mailbox.rs`) matches them. No file but the two interfaces looks into a body.

use crate::Tag;
use crate::completion::EndedRank;
use crate::error::CallSite;
use crate::matching::Pattern;
use crate::tag::PROC_NULL;
use std::any::{Any, TypeId, type_name};
use std::fmt;
use std::sync::Arc;

/// A message, as an engine carries it.
#[derive(Debug)]
pub struct Envelope {
    /// The communicator, and whether the message belongs to one of its collectives.
    pub context: u64,
    /// Of a message of a collective: which operation, and its root. 0 for the program's own.
    pub mark: u32,
    /// The sender's rank in that communicator.
    pub source: u32,
    /// The tag.
    pub tag: u32,
    /// The data.
    pub body: MessageContent,
    /// The call that has sent it, where the engine can tell.
    pub sent: Option<CallSite>,
    /// To be told when a receive has taken the message: of a synchronous send.
    pub matched: Option<OnMatch>,
}

// A message is copied several times on its way, and longer copies are calls of a function.
const _: () = assert!(size_of::<Envelope>() <= 120);

/// What a message has beside its data, as in an [`Envelope`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageKey {
    /// See [`Envelope::context`].
    pub context: u64,
    /// See [`Envelope::mark`].
    pub mark: u32,
    /// See [`Envelope::source`].
    pub source: u32,
    /// See [`Envelope::tag`].
    pub tag: u32,
}

/// What happens when a receive has taken a message, or its receiver has ended without one.
pub struct OnMatch(Box<dyn FnOnce(Result<(), EndedRank>) + Send>);

impl OnMatch {
    /// The function is called once, on the OS thread of the receiver. It must not wait.
    pub fn new(tell: impl FnOnce(Result<(), EndedRank>) + Send + 'static) -> OnMatch {
        OnMatch(Box::new(tell))
    }

    pub(crate) fn tell(self, result: Result<(), EndedRank>) {
        (self.0)(result);
    }
}

impl fmt::Debug for OnMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnMatch")
    }
}

/// The data of a message.
#[derive(Debug)]
pub enum MessageContent {
    /// Bytes: a value that the simple interface has written, or the elements of a slice.
    Bytes(Vec<u8>),
    /// A value that went to a rank of the same process as it is.
    Moved(Moved),
}

/// A value of some type, with the name of that type.
pub struct Moved {
    value: MovedValue,
    of: &'static MovedType,
    bytes: usize,
}

/// The type of a value that is moved. A message has one pointer to it, because each message is
/// copied several times on its way.
pub(crate) struct MovedType {
    /// What it is to its receiver.
    name: fn() -> &'static str,
    /// The type of the value; of an element, if there are few.
    id: fn() -> TypeId,
}

impl MovedType {
    /// A value of type `T`, which is called `name`.
    pub(crate) const fn of<T: 'static>(name: fn() -> &'static str) -> MovedType {
        MovedType { name, id: TypeId::of::<T> }
    }
}

enum MovedValue {
    /// The message alone has it.
    Owned(Box<dyn Any + Send>),
    /// The sender and other messages may have it too.
    Shared(Arc<dyn Any + Send + Sync>),
    /// The bytes of elements of the fast interface, which lie in the message itself.
    Few([u8; FEW_BYTES]),
}

/// The most bytes of elements that lie in the message itself: each message is copied with them.
const FEW_BYTES: usize = 24;

impl Moved {
    /// A value, and the number of bytes that [`Status::bytes`] is to tell.
    pub(crate) fn new<T: Send + 'static>(value: T, bytes: usize) -> Moved {
        Moved::named(value, const { &MovedType::of::<T>(type_name::<T>) }, bytes)
    }

    /// As [`new`](Self::new), of a value that is of another type to its receiver.
    pub(crate) fn named<T: Send + 'static>(value: T, of: &'static MovedType, bytes: usize) -> Moved {
        Moved { value: MovedValue::Owned(Box::new(value)), of, bytes }
    }

    /// A value that is shared, with the type that it is to its receiver.
    pub(crate) fn shared<T: Send + Sync + 'static>(
        value: Arc<T>,
        of: &'static MovedType,
        bytes: usize,
    ) -> Moved {
        Moved { value: MovedValue::Shared(value), of, bytes }
    }

    /// Elements with these bytes, if they are few.
    #[inline]
    pub(crate) fn few(elements: &[u8], of: &'static MovedType) -> Option<Moved> {
        let mut bytes = [0; FEW_BYTES];
        bytes.get_mut(..elements.len())?.copy_from_slice(elements);
        Some(Moved { value: MovedValue::Few(bytes), of, bytes: elements.len() })
    }

    /// The bytes of elements of this type, if they are few.
    #[inline]
    pub(crate) fn few_bytes<T: 'static>(&self) -> Option<&[u8]> {
        match &self.value {
            MovedValue::Few(bytes) if (self.of.id)() == TypeId::of::<T>() => bytes.get(..self.bytes),
            _ => None,
        }
    }

    /// No value: what the null rank sends.
    fn nothing() -> Moved {
        Moved::new((), 0)
    }

    /// Whether it is [`nothing`](Self::nothing), which no payload is.
    pub(crate) fn is_nothing(&self) -> bool {
        self.get::<()>().is_some()
    }

    /// The value, if it is of this type and the message alone has it.
    pub(crate) fn downcast<T: 'static>(self) -> Result<T, Moved> {
        let Moved { value, of, bytes } = self;
        let value = match value {
            MovedValue::Owned(value) => match value.downcast() {
                Ok(value) => return Ok(*value),
                Err(value) => MovedValue::Owned(value),
            },
            other => other,
        };
        Err(Moved { value, of, bytes })
    }

    /// The value, if it is of this type and shared.
    pub(crate) fn downcast_shared<T: Send + Sync + 'static>(self) -> Result<Arc<T>, Moved> {
        let Moved { value, of, bytes } = self;
        let value = match value {
            MovedValue::Shared(value) => match value.downcast() {
                Ok(value) => return Ok(value),
                Err(value) => MovedValue::Shared(value),
            },
            other => other,
        };
        Err(Moved { value, of, bytes })
    }

    /// The value, if it is of this type, shared or not.
    pub(crate) fn get<T: 'static>(&self) -> Option<&T> {
        match &self.value {
            MovedValue::Owned(value) => value.downcast_ref(),
            MovedValue::Shared(value) => value.downcast_ref(),
            MovedValue::Few(_) => None,
        }
    }

    pub(crate) fn type_name(&self) -> &'static str {
        (self.of.name)()
    }
}

impl fmt::Debug for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Moved({})", self.type_name())
    }
}

impl Envelope {
    /// The pattern that this message alone has.
    pub(crate) fn pattern(&self) -> Pattern {
        Pattern { context: self.context, source: Some(self.source), tag: Some(self.tag) }
    }

    /// The empty message of the null rank.
    pub(crate) fn of_null_rank() -> Envelope {
        Envelope {
            context: 0,
            mark: 0,
            source: PROC_NULL as u32,
            tag: Tag::UNIT.0,
            body: MessageContent::Moved(Moved::nothing()),
            sent: None,
            matched: None,
        }
    }

    /// Whether it is of the null rank, so that no mailbox keeps it.
    pub(crate) fn is_of_null_rank(&self) -> bool {
        self.source as usize == PROC_NULL
    }

    pub(crate) fn status(&self) -> Status {
        let bytes = match &self.body {
            MessageContent::Bytes(bytes) => bytes.len(),
            MessageContent::Moved(moved) => moved.bytes,
        };
        Status { source: self.source as usize, tag: Tag(self.tag), bytes }
    }
}

/// What a receive or a probe tells of a message beside its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// The rank that has sent it, in the communicator of the receive; or
    /// [`PROC_NULL`].
    pub source: usize,
    /// Its tag.
    pub tag: Tag,
    /// The length of its data in bytes. Of a value of the simple interface this is the length of
    /// its serialised form, or the size of its type if the value was moved.
    pub bytes: usize,
}

impl Status {
    /// How many elements of type `T` a message of the fast interface has. `None` if its bytes are
    /// not a whole number of them.
    #[doc(alias = "getCount")]
    #[doc(alias = "MPI_Get_count")]
    pub fn count<T: bytemuck::Pod>(&self) -> Option<usize> {
        match size_of::<T>() {
            0 => None,
            size => self.bytes.is_multiple_of(size).then_some(self.bytes / size),
        }
    }
}
