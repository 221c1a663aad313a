//! [`Memo`]: the answers of the present second, as they were sent over UDP.
//!
//! Times to live count in seconds, so an answer is the same for a second. The thread that receives
//! queries looks here first, and a query that another client has sent in the same bytes costs one
//! search. All answers are forgotten when the second is over, and at most [`ANSWERS_MAX`] are kept.

use selvedge::Time;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

/// How many answers are kept for clients nearby, and as many for others. Each has at most 1,232
/// bytes, and its query at most 512.
const ANSWERS_MAX: usize = 4096;

/// The longest query of which the answer is kept. Clients send about 50 bytes.
const QUERY_MAX: usize = 512;

/// The id in front of each message, in which queries for the same differ.
const ID_BYTES: usize = 2;

/// What was answered in a second.
#[derive(Debug, Default)]
pub(super) struct Memo {
    state: Mutex<MemoState>,
}

/// Answers by their queries, both without their ids.
type Remembered = HashMap<Box<[u8]>, Box<[u8]>>;

#[derive(Debug, Default)]
struct MemoState {
    second: u64,
    /// By the query's bytes behind its id: for clients far away, and for those nearby, which are
    /// answered otherwise.
    answers: [Remembered; 2],
}

impl Memo {
    /// Writes the answer to a query into `out`. Whether there is one.
    pub(super) fn recall(&self, query: &[u8], is_near: bool, now: Time, out: &mut Vec<u8>) -> bool {
        let Some((id, rest)) = query.split_at_checked(ID_BYTES) else { return false };
        let state = self.at(now);
        let Some(answer) = state.answers[usize::from(is_near)].get(rest) else { return false };
        out.clear();
        out.extend_from_slice(id);
        out.extend_from_slice(answer);
        true
    }

    /// Keeps the answer to a query until the second is over. The query was answered, so it has an
    /// id.
    pub(super) fn keep(&self, query: &[u8], is_near: bool, now: Time, answer: &[u8]) {
        let mut state = self.at(now);
        let answers = &mut state.answers[usize::from(is_near)];
        if query.len() <= QUERY_MAX && answers.len() < ANSWERS_MAX {
            answers.insert(query[ID_BYTES..].into(), answer[ID_BYTES..].into());
        }
    }

    /// The state, without what is too old.
    fn at(&self, now: Time) -> MutexGuard<'_, MemoState> {
        let mut state = self.state.lock().expect("no code panics under this lock");
        let second = now.as_nanos() / 1_000_000_000;
        if state.second != second {
            state.second = second;
            state.answers.iter_mut().for_each(HashMap::clear);
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Time {
        Time::from_nanos(milliseconds * 1_000_000)
    }

    fn recalled(memo: &Memo, query: &[u8], is_near: bool, milliseconds: u64) -> Option<Vec<u8>> {
        let mut out = vec![9; 3];
        memo.recall(query, is_near, at(milliseconds), &mut out).then_some(out)
    }

    #[test]
    fn an_answer_is_kept_for_the_second() {
        let memo = Memo::default();
        memo.keep(b"\x01\x02query", true, at(5100), b"\x01\x02answer");
        assert_eq!(recalled(&memo, b"\x07\x08query", true, 5999).unwrap(), b"\x07\x08answer");
        assert_eq!(recalled(&memo, b"\x07\x08Query", true, 5999), None);
        assert_eq!(recalled(&memo, b"\x07\x08query", false, 5999), None);
        assert_eq!(recalled(&memo, b"\x07", true, 5999), None);
        assert_eq!(recalled(&memo, b"\x07\x08query", true, 6000), None);
    }

    #[test]
    fn the_memory_is_bounded() {
        let memo = Memo::default();
        for number in 0..10_000_u32 {
            memo.keep(&[&[0, 0][..], &number.to_be_bytes()].concat(), false, at(1), b"\0\0answer");
        }
        let known =
            |number: u32| recalled(&memo, &[&[0, 0][..], &number.to_be_bytes()].concat(), false, 1).is_some();
        assert_eq!((0..10_000).filter(|&number| known(number)).count(), ANSWERS_MAX);
        memo.keep(&[0; 600], true, at(1), b"\0\0answer");
        assert_eq!(recalled(&memo, &[0; 600], true, 1), None);
    }
}
