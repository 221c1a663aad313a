//! Bodies of replies that are files: [`body_of`] makes one of what a responder has decided.
//!
//! A file comes from the kernel, or from the blocks of a [`BlockCache`]. Of blocks, a span within
//! one is a body in memory, which leaves with its head. A longer span is a stream: the next block
//! is asked for when the client has taken the one before, and the blocks behind it are read
//! meanwhile. So a client that reads slowly holds a piece of the file, and nothing in the cache.
//!
//! `static_files.rs` and `direct_routes.rs` call it. `file_store.rs` has bodies of its own, and
//! takes [`multipart`].

use crate::block_cache::{BLOCK_BYTES, BlockCache, BlockError};
use crate::cache::{CachedFile, split_key};
use crate::document_root::Backing;
use crate::range::{Parts, Span};
use crate::responder::{Reply, Rest};
use crate::status::Status;
use bytes::Bytes;
use selvedge_core::yield_now;
use selvedge_handler::{Body, BodyError, Out};
use std::error::Error;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// The number of blocks that are read ahead of the block that is sent.
const AHEAD: u64 = 3;

/// A stream lets the other threads of the worker run after this number of blocks, because a client
/// may be as fast as the worker.
const TURN: u64 = 4;

/// The error of a reply that is cut, because a file could not be read on.
#[derive(Debug)]
struct FileCutError {
    name: Box<str>,
    len: u64,
    error: BlockError,
}

impl fmt::Display for FileCutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FileCutError { name, len, error } = self;
        match error {
            BlockError::Shorter(end) => {
                write!(f, "/{name} got shorter while it was sent: a reply of {len} bytes was cut at {end}")
            }
            error => write!(f, "/{name}: {error}"),
        }
    }
}

impl Error for FileCutError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.error)
    }
}

impl FileCutError {
    fn new(file: &CachedFile, error: BlockError) -> FileCutError {
        let name = split_key(&file.name).0.escape_ascii().to_string();
        FileCutError { name: name.into(), len: file.identity.len, error }
    }
}

/// The body behind the head of a reply, if it is not in memory behind that head.
///
/// # Errors
/// The status that the client gets instead.
pub(crate) async fn body_of(blocks: Option<&BlockCache>, reply: Reply) -> Result<Option<Body>, Status> {
    match reply.rest {
        Rest::Nothing => Ok(None),
        Rest::Span(file, span) => content(blocks, &file, span).await.map(Some),
        Rest::Parts(file, spans) => parts(blocks, &file, *spans).await.map(Some),
    }
}

/// A span of `file` as a body: from `cache` if there is one, and otherwise from the file, as the
/// kernel has it.
///
/// # Errors
/// The status of the reply, if its first byte cannot be read.
async fn content(cache: Option<&BlockCache>, file: &Rc<CachedFile>, span: Span) -> Result<Body, Status> {
    match cache {
        Some(cache) if matches!(file.body, Backing::Open(_)) && !cache.is_refused(file) => {
            match first_block(cache, file, span).await {
                Ok(body) => Ok(body),
                Err(BlockError::Refused) => whole(file, span),
                Err(BlockError::Failed(..)) => Err(Status::INTERNAL_SERVER_ERROR),
                Err(BlockError::Shorter(_) | BlockError::Abandoned) => Err(Status::SERVICE_UNAVAILABLE),
            }
        }
        _ => whole(file, span),
    }
}

/// Several spans of `file` as a body, each behind its part head.
///
/// # Errors
/// As for [`content`].
async fn parts(cache: Option<&BlockCache>, file: &Rc<CachedFile>, parts: Parts) -> Result<Body, Status> {
    let mut bodies = Vec::new();
    for &span in parts.spans() {
        bodies.push(match (cache, bodies.is_empty()) {
            // The first one has told that the file takes direct reads.
            (Some(cache), false) if matches!(file.body, Backing::Open(_)) && !cache.is_refused(file) => {
                streamed(cache.clone(), file.clone(), span, None)
            }
            _ => content(cache, file, span).await?,
        });
    }
    Ok(multipart(parts, bodies))
}

/// A span as a body, with its first block in memory.
async fn first_block(cache: &BlockCache, file: &Rc<CachedFile>, span: Span) -> Result<Body, BlockError> {
    let number = span.start / BLOCK_BYTES;
    let start = number * BLOCK_BYTES;
    let block = cache.block(file, number).await?;
    if span.end <= start + block.len() as u64 {
        return Ok(block.slice((span.start - start) as usize..(span.end - start) as usize).into());
    }
    Ok(streamed(cache.clone(), file.clone(), span, Some(block)))
}

/// A span as a stream. `first` is its first block, if that has been read.
fn streamed(cache: BlockCache, file: Rc<CachedFile>, span: Span, first: Option<Bytes>) -> Body {
    Body::produce(async move |mut out: Out| {
        let sent = send(&cache, &file, span, first, &mut out).await;
        sent.map_err(|error| FileCutError::new(&file, error))
    })
}

async fn send(
    cache: &BlockCache,
    file: &Rc<CachedFile>,
    span: Span,
    mut first: Option<Bytes>,
    out: &mut Out,
) -> Result<(), BlockError> {
    let mut at = span.start;
    while at < span.end {
        let number = at / BLOCK_BYTES;
        let start = number * BLOCK_BYTES;
        let last = (span.end - 1) / BLOCK_BYTES;
        cache.read_ahead(file, number..=last.min(number + AHEAD));
        let block = match first.take() {
            Some(block) => block,
            None => cache.block(file, number).await?,
        };
        let end = span.end.min(start + block.len() as u64);
        out.put(block.slice((at - start) as usize..(end - start) as usize)).await;
        at = end;
        if number % TURN == TURN - 1 {
            yield_now().await;
        }
    }
    Ok(())
}

/// A span of a file that is in memory, or that the kernel has.
fn whole(file: &CachedFile, span: Span) -> Result<Body, Status> {
    match &file.body {
        Backing::Memory(content) => Ok(Body::from(content[span.start as usize..span.end as usize].to_vec())),
        Backing::Open(open) => match open.duplicate() {
            Ok(open) => Ok(Body::file(Arc::new(open), span.start..span.end)),
            // No descriptor is left.
            Err(_) => Err(Status::SERVICE_UNAVAILABLE),
        },
    }
}

/// The body of a multipart/byteranges reply: each of `bodies` behind its part head.
pub(crate) fn multipart(parts: Parts, bodies: Vec<Body>) -> Body {
    Body::produce(async move |mut out| {
        for (index, mut body) in bodies.into_iter().enumerate() {
            let mut head = Vec::new();
            parts.put_part_head(index, &mut head);
            out.put(head).await;
            while let Some(piece) = body.next().await.transpose()? {
                out.put(piece).await;
            }
        }
        let mut end = Vec::new();
        parts.put_end(&mut end);
        out.put(end).await;
        Ok::<(), BodyError>(())
    })
}
