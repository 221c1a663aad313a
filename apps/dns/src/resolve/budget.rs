//! [`Budget`]: what one client's question may cost: time, questions to other servers, and
//! work.
//!
//! A zone can be made such that its resolution asks thousands of questions: servers without
//! addresses, in zones with servers without addresses. So all parts of a resolution share one
//! budget.

use crate::dnssec::work::Work;
use selvedge::Time;
use std::time::Duration;

/// The time after which a client gets no answer any more. Most clients ask again after 5 seconds.
const TIME: Duration = Duration::from_secs(5);

/// How many questions other servers get at most.
const QUESTIONS_MAX: u32 = 60;

/// What is left for a resolution.
#[derive(Debug)]
pub(super) struct Budget {
    until: Time,
    questions: u32,
    /// What validation may compute.
    pub(super) work: Work,
}

impl Budget {
    /// The budget of a resolution that begins now.
    pub(super) fn new() -> Budget {
        Budget { until: Time::now() + TIME, questions: QUESTIONS_MAX, work: Work::default() }
    }

    /// Takes a question with a time limit, and returns its end. `None` if nothing is left.
    pub(super) fn question(&mut self, limit: Duration) -> Option<Time> {
        let now = Time::now();
        self.questions = self.questions.checked_sub(1)?;
        (now < self.until).then(|| (now + limit).min(self.until))
    }
}
