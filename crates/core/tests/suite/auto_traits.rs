//! The auto traits of core's types: which types may leave their OS thread. An auto trait that
//! appears by accident is a hole in soundness.

use selvedge_core::*;

const BOTH: (bool, bool) = (true, true);
const NONE: (bool, bool) = (false, false);

enum Get {}
impl<P> Role<(), P> for Get {
    type Output = ();
    fn attempt(_: &mut (), _: &mut Queue<'_, P>, _: &mut P) -> Option<()> {
        None
    }
    fn granted(_: &mut P) {}
    fn abandoned(_: &mut (), _: &mut Queue<'_, P>, _: &mut P) {}
}

type NotSync = std::cell::Cell<u8>;
type NotSend = std::rc::Rc<u8>;

struct NotSendRequest(#[expect(dead_code, reason = "its type is what counts")] NotSend);
impl Syscall for NotSendRequest {
    type Reply = ();
}

struct Request;
impl Syscall for Request {
    type Reply = ();
}

#[test]
fn what_holds_threads_stays_on_its_os_thread() {
    assert_eq!(has!(Cpu), NONE);
    assert_eq!(has!(Thread), NONE);
    assert_eq!(has!(RunQueue), NONE);
    assert_eq!(has!(Trace), NONE);
    assert_eq!(has!(Wait), NONE);
    assert_eq!(has!(selvedge_core::Sleep), NONE);
    assert_eq!(has!(Nbio), NONE);
    assert_eq!(has!(selvedge_core::Call), NONE);
    assert_eq!(has!(Answer<Request>), NONE);
    assert_eq!(has!(Detached), NONE);
    assert_eq!(has!(selvedge_core::Request), NONE);
    assert_eq!(has!(JoinHandle<NotSend>), NONE);
    assert_eq!(has!(Fork<NotSend>), NONE);
    assert_eq!(has!(Calling<NotSendRequest>), NONE);
    assert_eq!(has!(Performing<(), NotSend>), NONE);
    assert_eq!(has!(Performing<NotSend, ()>), NONE);
}

#[test]
fn what_a_mobile_thread_holds_may_move_with_it() {
    assert_eq!(has!(SendThread), BOTH);
    assert_eq!(has!(Group), BOTH);
    assert_eq!(has!(JoinHandle<()>), BOTH);
    assert_eq!(has!(JoinHandle<NotSync>), BOTH);
    assert_eq!(has!(Fork<NotSync>), (true, false));
    assert_eq!(has!(Calling<Request>), BOTH);
    assert_eq!(has!(Performing<(), NotSync>), (true, false));
    assert_eq!(has!(Shield<NotSync>), (true, false));
}

#[test]
fn what_is_only_data_may_go_anywhere() {
    assert_eq!(has!(YieldNow), BOTH);
    assert_eq!(has!(SleepUntil), BOTH);
    assert_eq!(has!(WaitFd), BOTH);
    assert_eq!(has!(ThreadInfo), BOTH);
    assert_eq!(has!(Deadlock), BOTH);
    assert_eq!(has!(Exception), BOTH);
    assert_eq!(has!(Panic), BOTH);
    assert_eq!(has!(JoinError), BOTH);
    assert_eq!(has!(RunError), BOTH);
    assert_eq!(has!(ArenaFullError), BOTH);
    assert_eq!(has!(Time), BOTH);
}

#[test]
fn a_wait_queue_is_shared_if_its_mode_and_payloads_allow() {
    assert_eq!(has!(WaitQueue<(), NotSync, Shared>), BOTH);
    assert_eq!(has!(WaitQueue<NotSync, (), Shared>), BOTH);
    assert_eq!(has!(WaitQueue<(), NotSend, Shared>), NONE);
    assert_eq!(has!(WaitQueue<NotSend, (), Shared>), NONE);
    assert_eq!(has!(WaitQueue<(), (), Local>), NONE);
    assert_eq!(has!(Waiting<'static, (), NotSync, Get, Shared>), (true, false));
    assert_eq!(has!(Waiting<'static, (), NotSend, Get, Shared>), NONE);
    assert_eq!(has!(Waiting<'static, (), (), Get, Local>), NONE);
}
