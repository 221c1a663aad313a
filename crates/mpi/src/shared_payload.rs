//! Payloads that stay with their sender: [`SharedPayload`], a body that the messages of one
//! operation have in common, and [`BodyPool`], which uses such bodies again.
//!
//! The collectives on elements send them, and persistent operations do. Between ranks of one
//! process the body is in no message copied: each has a handle of it, and the receivers copy what
//! they need. When the last receiver has dropped its handle, the pool of the sender has the memory
//! back. So an operation that is repeated allocates no memory.

use crate::collective::Parts;
use crate::envelope::{MessageContent, Moved, MovedType};
use crate::payload::{
    Elements, ReceivedPayload, SentPayload, another_type, append_part, bytes_of_elements, elements_of,
    for_each_part,
};
use bytemuck::Pod;
use std::any::type_name;
use std::collections::VecDeque;
use std::sync::Arc;

/// A body that several messages have in common, and their sender.
pub(crate) struct SharedPayload<B>(pub(crate) Arc<B>);

/// What such a body may be: elements, or parts of them.
pub(crate) trait SharedBody: Default + Clone + Send + Sync + 'static {
    /// The name of the type as that of a payload.
    fn type_name() -> &'static str;

    /// The length of its data in bytes.
    fn bytes(&self) -> usize;

    /// Its bytes, as a message between processes has them.
    fn to_bytes(&self) -> Vec<u8>;

    /// The body of a message that is no shared one; or what is wrong with it.
    fn from_content(body: &MessageContent) -> Result<Self, String>;
}

impl<B> SharedPayload<B> {
    pub(crate) fn new(body: B) -> SharedPayload<B> {
        SharedPayload(Arc::new(body))
    }
}

impl<B: Clone> SharedPayload<B> {
    /// The body. It is copied if another handle of it is left.
    pub(crate) fn into_body(self) -> B {
        Arc::unwrap_or_clone(self.0)
    }
}

impl<B> Clone for SharedPayload<B> {
    fn clone(&self) -> SharedPayload<B> {
        SharedPayload(self.0.clone())
    }
}

impl<B: SharedBody> SentPayload for SharedPayload<B> {
    fn pack(self, moved: bool) -> Result<MessageContent, String> {
        let bytes = self.0.bytes();
        Ok(match moved {
            true => MessageContent::Moved(Moved::shared(
                self.0,
                const { &MovedType::of::<B>(B::type_name) },
                bytes,
            )),
            false => MessageContent::Bytes(self.0.to_bytes()),
        })
    }
}

impl<B: SharedBody> ReceivedPayload for SharedPayload<B> {
    fn unpack(body: MessageContent) -> Result<SharedPayload<B>, String> {
        let body = match body {
            MessageContent::Moved(moved) => match moved.downcast_shared() {
                Ok(body) => return Ok(SharedPayload(body)),
                Err(moved) => MessageContent::Moved(moved),
            },
            bytes => bytes,
        };
        B::from_content(&body).map(SharedPayload::new)
    }
}

impl<T: Pod + Send + Sync> SharedBody for Vec<T> {
    fn type_name() -> &'static str {
        type_name::<Elements<T>>()
    }

    fn bytes(&self) -> usize {
        size_of_val(self.as_slice())
    }

    fn to_bytes(&self) -> Vec<u8> {
        bytemuck::cast_slice(self).to_vec()
    }

    fn from_content(body: &MessageContent) -> Result<Vec<T>, String> {
        elements_of(bytes_of_elements::<T>(body)?)
    }
}

impl<T: Pod + Send + Sync> SharedBody for Parts<T> {
    fn type_name() -> &'static str {
        type_name::<Parts<T>>()
    }

    fn bytes(&self) -> usize {
        self.iter().map(size_of_val).sum()
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.bytes() + 8 * self.len());
        self.iter().for_each(|part| append_part(&mut all, bytemuck::cast_slice(part)));
        all
    }

    fn from_content(body: &MessageContent) -> Result<Parts<T>, String> {
        let bytes = match body {
            MessageContent::Bytes(bytes) => bytes,
            MessageContent::Moved(moved) => return Err(another_type::<Parts<T>>(moved)),
        };
        let mut parts = Parts::default();
        for_each_part(bytes, |part| {
            parts.push(&elements_of(part)?);
            Ok(())
        })?;
        Ok(parts)
    }
}

/// One part of parts that several messages have in common, on its way to a rank.
pub(crate) struct PartToRank<T> {
    pub(crate) all: Arc<Parts<T>>,
    pub(crate) to: usize,
}

impl<T: Pod + Send + Sync> SentPayload for PartToRank<T> {
    fn pack(self, moved: bool) -> Result<MessageContent, String> {
        let part = &self.all[self.to];
        let bytes = size_of_val(part);
        Ok(match moved {
            true => {
                let of = const { &MovedType::of::<Vec<T>>(Vec::<T>::type_name) };
                MessageContent::Moved(Moved::shared(self.all, of, bytes))
            }
            false => MessageContent::Bytes(bytemuck::cast_slice(part).to_vec()),
        })
    }
}

/// A part that has come: alone, or among those of the other receivers.
pub(crate) enum PartThatCame<T> {
    Alone(Vec<T>),
    Among(Arc<Parts<T>>),
}

impl<T> PartThatCame<T> {
    /// The elements for this rank, which is the receiver.
    pub(crate) fn of(&self, rank: usize) -> &[T] {
        match self {
            PartThatCame::Alone(part) => part,
            PartThatCame::Among(all) => &all[rank],
        }
    }
}

impl<T: Pod + Send + Sync> ReceivedPayload for PartThatCame<T> {
    fn unpack(body: MessageContent) -> Result<PartThatCame<T>, String> {
        let body = match body {
            MessageContent::Moved(moved) => match moved.downcast_shared() {
                Ok(all) => return Ok(PartThatCame::Among(all)),
                Err(moved) => MessageContent::Moved(moved),
            },
            bytes => bytes,
        };
        Vec::from_content(&body).map(PartThatCame::Alone)
    }
}

/// Bodies that are used again when no message has them any more.
pub(crate) struct BodyPool<B> {
    used: VecDeque<Arc<B>>,
}

/// The number of bodies that a pool keeps. A sender that is further ahead of its receivers
/// allocates.
const KEPT: usize = 8;

impl<B> Default for BodyPool<B> {
    fn default() -> BodyPool<B> {
        BodyPool { used: VecDeque::new() }
    }
}

impl<B: Clone + Default> BodyPool<B> {
    /// A body that nothing else has, with any content.
    pub(crate) fn take(&mut self) -> Arc<B> {
        let Some(mut body) = self.used.pop_front() else { return Arc::default() };
        if Arc::get_mut(&mut body).is_some() {
            return body;
        }
        self.used.push_back(body);
        Arc::default()
    }

    /// Makes a payload of a body, which comes back when the messages have gone.
    pub(crate) fn share(&mut self, body: Arc<B>) -> SharedPayload<B> {
        if self.used.len() < KEPT {
            self.used.push_back(body.clone());
        }
        SharedPayload(body)
    }

    /// A payload with a copy of this content.
    pub(crate) fn copied(&mut self, content: &B) -> SharedPayload<B> {
        let mut body = self.take();
        alone(&mut body).clone_from(content);
        self.share(body)
    }
}

/// The body that [`BodyPool::take`] gave.
pub(crate) fn alone<B>(body: &mut Arc<B>) -> &mut B {
    Arc::get_mut(body).expect("the pool gave the one handle of it")
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_body_comes_back_when_its_messages_have_gone() {
        let mut pool = BodyPool::<Vec<u32>>::default();
        let first = pool.copied(&vec![1, 2]);
        let at = Arc::as_ptr(&first.0);
        let second = pool.copied(&vec![3]);
        assert_ne!(at, Arc::as_ptr(&second.0), "the first message is on its way");
        assert_eq!((&*first.0, &*second.0), (&vec![1, 2], &vec![3]));
        drop(first);
        drop(second);
        for _ in 0..10 {
            pool.copied(&vec![4, 5]);
        }
        assert_eq!(pool.used.len(), 2);
        assert!(pool.used.iter().any(|body| Arc::as_ptr(body) == at));
    }

    #[test]
    fn a_pool_keeps_few_bodies() {
        let mut pool = BodyPool::<Vec<u32>>::default();
        let all: Vec<_> = (0..100).map(|number| pool.copied(&vec![number])).collect();
        assert!(all.iter().enumerate().all(|(number, body)| body.0[0] == number as u32));
        assert_eq!(pool.used.len(), KEPT);
    }
}
