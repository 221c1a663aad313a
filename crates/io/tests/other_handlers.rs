//! Signal handlers of other libraries, installed before and after the handler of this crate. (This
//! is one test, because the action of a signal belongs to the process.)

mod common;

use common::{ms, run};
use selvedge_io::signal::{Signal, signals};
use selvedge_io::time::timeout;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};

static FIRST: AtomicU32 = AtomicU32::new(0);
static SECOND: AtomicU32 = AtomicU32::new(0);
/// The handler that the second handler has replaced.
static BELOW: AtomicUsize = AtomicUsize::new(0);

extern "C" fn first(number: i32) {
    assert_eq!(number, libc::SIGUSR1);
    FIRST.fetch_add(1, SeqCst);
}

type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);

/// A handler that calls the handler that it has replaced, as many libraries do.
extern "C" fn second(number: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid pointer.
    assert_eq!(unsafe { (*info).si_signo }, number);
    SECOND.fetch_add(1, SeqCst);
    // SAFETY: the test has stored a handler of this type.
    let below: Handler = unsafe { std::mem::transmute(BELOW.load(SeqCst)) };
    below(number, info, context);
}

fn install(handler: usize, flags: i32) -> libc::sigaction {
    // SAFETY: an all-zero `sigaction` is a valid value.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    (action.sa_sigaction, action.sa_flags) = (handler, flags);
    // SAFETY: an all-zero `sigaction` is a valid value.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: the handlers of this file only count, and call a handler that was installed before.
    assert_eq!(unsafe { libc::sigaction(libc::SIGUSR1, &action, &mut before) }, 0);
    before
}

fn raise() -> (u32, u32) {
    let before = (FIRST.load(SeqCst), SECOND.load(SeqCst));
    // SAFETY: the signal has a handler.
    unsafe { libc::raise(libc::SIGUSR1) };
    (FIRST.load(SeqCst) - before.0, SECOND.load(SeqCst) - before.1)
}

#[test]
fn handlers_of_other_libraries_go_on() {
    install(first as extern "C" fn(i32) as usize, 0);
    run(async {
        let mut ours = signals(&[Signal::USR1]).unwrap();
        assert_eq!(raise(), (1, 0), "the one that was there first");
        assert_eq!(timeout(ms(5000), ours.next()).await.unwrap().unwrap(), Signal::USR1);
        drop(ours);
        assert_eq!(raise(), (1, 0), "and it is there again");

        // Another handler is installed above the crate's, and calls it.
        let mut ours = signals(&[Signal::USR1]).unwrap();
        let before = install(second as Handler as usize, libc::SA_SIGINFO);
        BELOW.store(before.sa_sigaction, SeqCst);
        assert_eq!(raise(), (1, 1));
        assert_eq!(timeout(ms(5000), ours.next()).await.unwrap().unwrap(), Signal::USR1);
        drop(ours);
        assert_eq!(raise(), (1, 1), "it stays when ours goes");

        // The crate's handler is now above the other handler and also below it. The calls must not
        // go in a circle.
        let mut ours = signals(&[Signal::USR1]).unwrap();
        assert_eq!(raise(), (1, 0));
        assert_eq!(timeout(ms(5000), ours.next()).await.unwrap().unwrap(), Signal::USR1);
        drop(ours);
        assert_eq!(raise(), (1, 1), "and it is there again");
    });
}
