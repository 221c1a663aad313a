//! Threads that still wait in the event loop when their scheduler ends are cancelled. The loop then
//! serves another scheduler.

use crate::common::{ms, run_with};
use selvedge_core::{Events, spawn_local};
use selvedge_io::EventLoop;
use selvedge_io::net::UnixStream;
use selvedge_io::time::sleep;
use std::cell::Cell;
use std::rc::Rc;

struct Counted(Rc<Cell<usize>>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn they_are_cancelled() {
    let mut events = EventLoop::new().unwrap();
    for _ in 0..3 {
        let dropped = Rc::new(Cell::new(0));
        let counter = dropped.clone();
        run_with(&mut events, async move {
            for _ in 0..10 {
                let [one, other] = [Counted(counter.clone()), Counted(counter.clone())];
                drop(spawn_local(async move {
                    let _one = one;
                    let (a, _b) = UnixStream::pair().unwrap();
                    a.read(&mut [0]).await.unwrap();
                }));
                drop(spawn_local(async move {
                    let _other = other;
                    sleep(ms(60_000)).await;
                }));
            }
            sleep(ms(2)).await;
        });
        assert_eq!(dropped.get(), 20);
        assert_eq!(events.armed(), 0);
    }
}
