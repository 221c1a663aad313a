//! Signals: several subscribers await them, they are merged, and their action is restored when the
//! last subscription is dropped. (Signals belong to the process, so this is one test.)

mod common;

use common::{ms, run};
use rustix::process::{Signal as Raw, getpid, kill_process};
use selvedge_core::spawn;
use selvedge_io::signal::{Signal, signals};
use selvedge_io::time::{sleep, timeout};
use std::io::ErrorKind;

fn raise(signal: Raw) {
    kill_process(getpid(), signal).unwrap();
}

#[test]
fn signals_are_awaited_merged_and_given_back() {
    // Other OS threads exist already: the kernel may deliver the signal on any of them.
    let idle = std::thread::spawn(|| std::thread::park_timeout(ms(60_000)));
    // The action of USR1 before the test. USR1 must have it again afterwards.
    let mut outer = signals(&[Signal::USR1]).unwrap();

    run(async {
        let mut one = signals(&[Signal::USR1, Signal::TERM]).unwrap();
        let mut other = signals(&[Signal::USR1]).unwrap();
        let waiting = spawn(async move {
            let first = one.next().await.unwrap();
            (first, one)
        });
        sleep(ms(5)).await;
        raise(Raw::USR1);
        let (first, mut one) = waiting.await.unwrap();
        assert_eq!((first, other.next().await.unwrap()), (Signal::USR1, Signal::USR1));
        assert!(timeout(ms(20), other.next()).await.is_err(), "each is delivered once");

        for _ in 0..5 {
            raise(Raw::TERM);
        }
        raise(Raw::USR1);
        sleep(ms(5)).await;
        assert_eq!(one.next().await.unwrap(), Signal::USR1);
        assert_eq!(one.next().await.unwrap(), Signal::TERM);
        assert_eq!(one.try_next(), None);
        assert_eq!(other.try_next(), Some(Signal::USR1));
    });

    // All inner subscriptions are dropped. The outer subscription has seen every signal, merged,
    // and no other signal.
    assert_eq!((outer.try_next(), outer.try_next()), (Some(Signal::USR1), None));
    let error = signals(&[Signal::TERM, Signal::from_raw(libc::SIGKILL)]).unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (ErrorKind::InvalidInput, "signal 9 cannot be awaited")
    );
    drop(outer);

    // SAFETY: the call only reads the current action into zeroed memory, for which all-zero is a
    // valid value.
    let action = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        assert_eq!(libc::sigaction(libc::SIGUSR1, std::ptr::null(), &mut action), 0);
        action
    };
    assert_eq!(action.sa_sigaction, libc::SIG_DFL, "the last one to go restores what was there");

    let many: Vec<_> = (0..16).map(|_| signals(&[Signal::USR2]).unwrap()).collect();
    assert_eq!(signals(&[Signal::USR2]).unwrap_err().kind(), ErrorKind::ResourceBusy);
    let before = common::open_descriptors();
    drop(many);
    for _ in 0..100 {
        drop(signals(&[Signal::USR2]).unwrap());
    }
    assert!(common::open_descriptors() <= before);
    idle.thread().unpark();
}
