//! The words of a dump for how a thread's step ended ([`call`]) and what the thread waits for
//! ([`wait`]).

use crate::descriptors::Descriptors;
use selvedge_core::observe::{End, Object, WaitReason};
use selvedge_core::{Interest, Time};
use std::time::Duration;

/// Whether a step that ends so leaves its thread waiting.
pub(crate) fn is_wait(end: End) -> bool {
    matches!(end, End::Wait(_) | End::Sleep(_) | End::Call(_) | End::Block(_) | End::Join | End::Park)
}

/// The words for a wait that a step has begun by this end, or for the reason of the wait that the
/// operation has told; `None` if such a step leaves no thread waiting.
pub(crate) fn wait(
    end: End,
    reason: Option<&WaitReason>,
    now: Time,
    descriptors: &mut Descriptors,
) -> Option<String> {
    if !is_wait(end) {
        return None;
    }
    Some(match (reason, end) {
        (Some(reason), End::Park | End::Wait(_) | End::Sleep(_) | End::Block(_)) => {
            describe_reason(reason, descriptors)
        }
        _ => describe(end, now, descriptors),
    })
}

/// The name of a system call.
pub(crate) fn call(end: End) -> String {
    match end {
        End::Yield => "yield".into(),
        End::Fork(child) => format!("fork {child}"),
        End::Nbio => "nbio".into(),
        End::Wait(readiness) => format!("wait to {} descriptor {}", verb(readiness.interest), readiness.fd),
        End::Sleep(_) => "sleep".into(),
        End::Call(name) => format!("call {name}"),
        End::Block(Some(place)) => format!("block at {place}"),
        End::Block(None) => "block".into(),
        End::Join => "join".into(),
        End::Park => "park".into(),
        End::Return => "return".into(),
        End::Panic => "panic".into(),
        other => format!("{other:?}"),
    }
}

/// The words for a reason that an operation has told.
fn describe_reason(reason: &WaitReason, descriptors: &mut Descriptors) -> String {
    match reason.object {
        Object::Descriptor(fd) | Object::Part { fd, .. } => {
            format!("{reason} ({})", descriptors.describe(fd))
        }
        _ => reason.to_string(),
    }
}

fn verb(interest: Interest) -> &'static str {
    match (interest.contains(Interest::READ), interest.contains(Interest::WRITE)) {
        (true, true) => "read or write",
        (true, false) => "read",
        _ => "write",
    }
}

/// The words for a wait, by the end of the step that began it.
fn describe(end: End, now: Time, descriptors: &mut Descriptors) -> String {
    let to_go = |until: Time| match until.since(now) {
        Duration::ZERO => "its time has come".to_owned(),
        left => format!("{left:.1?} to go"),
    };
    match end {
        End::Wait(readiness) => {
            let until = readiness.deadline.time(now).map_or(String::new(), |at| format!(", {}", to_go(at)));
            let of = descriptors.describe(readiness.fd);
            format!("waits to {} descriptor {} ({of}){until}", verb(readiness.interest), readiness.fd)
        }
        End::Sleep(until) => format!("sleeps, {}", to_go(until)),
        End::Call(name) => format!("waits for the answer to {name}"),
        End::Block(Some(place)) => format!("waits at {place}"),
        End::Block(None) => "waits in a queue".into(),
        End::Join => "waits to join another thread".into(),
        End::Park => "waits behind a waker".into(),
        other => call(other),
    }
}
