//! A simulated schedule with a real event loop: its clock stands still, and its sockets are real.

use nix::time::{ClockId, clock_gettime};
use selvedge_io::EventLoop;
use selvedge_io::net::UnixStream;
use selvedge_sim::Simulation;
use std::time::Duration;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn busy() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap().into()
}

#[test]
fn who_waits_for_a_real_socket_sleeps_meanwhile() {
    let mut events = EventLoop::new().unwrap();
    let before = busy();
    let run = Simulation::new(1).run(&mut events, async {
        let (one, other) = UnixStream::pair().unwrap();
        let writer = std::thread::spawn(move || {
            std::thread::sleep(ms(500));
            other.try_write(b"x").unwrap();
            other
        });
        assert_eq!(one.read(&mut [0]).await.unwrap(), 1);
        writer.join().unwrap();
    });
    run.unwrap();
    let busy = busy() - before;
    assert!(busy < ms(40), "{busy:?}");
}
