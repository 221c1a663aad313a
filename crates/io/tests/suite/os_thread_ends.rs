//! Values in thread-locals of an OS thread that ends are dropped after the event loop's own
//! thread-locals. (A panic there aborts the process.)

use selvedge_core::round_robin_over;
use selvedge_io::EventLoop;
use selvedge_io::fs::File;
use std::cell::RefCell;

thread_local! {
    static FILE: RefCell<Option<File>> = const { RefCell::new(None) };
    static EVENTS: RefCell<Option<EventLoop>> = const { RefCell::new(None) };
}

#[test]
fn a_file_may_outlive_the_event_loop_in_a_variable_of_the_os_thread() {
    let ended = std::thread::spawn(|| {
        // This thread-local exists first, so it is dropped last.
        FILE.with_borrow(|file| assert!(file.is_none()));
        let open = async { FILE.set(Some(File::open("Cargo.toml").await.unwrap())) };
        round_robin_over(&mut EventLoop::new().unwrap(), open).unwrap();
    });
    ended.join().unwrap();
}

#[test]
fn so_may_an_event_loop() {
    let ended = std::thread::spawn(|| {
        EVENTS.with_borrow_mut(|events| {
            let events = events.insert(EventLoop::new().unwrap());
            let read =
                async { File::open("Cargo.toml").await.unwrap().read_aligned_at(0, 9).await.unwrap().len() };
            assert_eq!(round_robin_over(events, read).unwrap(), 9);
        });
    });
    ended.join().unwrap();
}

/// A value that makes an event loop when it is dropped with the OS thread's thread-locals, and
/// reads with that loop.
struct AtTheEnd(std::sync::mpsc::Sender<usize>);

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        let read =
            async { File::open("Cargo.toml").await.unwrap().read_aligned_at(0, 9).await.unwrap().len() };
        let events = &mut EventLoop::new().expect("descriptors");
        let _ = self.0.send(round_robin_over(events, read).expect("no deadlock"));
    }
}

thread_local! {
    static AT_THE_END: RefCell<Option<AtTheEnd>> = const { RefCell::new(None) };
}

#[test]
fn an_event_loop_may_be_made_when_the_variables_of_the_os_thread_go() {
    let (send, read) = std::sync::mpsc::channel();
    let ended = std::thread::spawn(|| {
        // This thread-local exists before the event loop's thread-locals, so it is dropped after
        // them.
        AT_THE_END.set(Some(AtTheEnd(send)));
        round_robin_over(&mut EventLoop::new().unwrap(), async {}).unwrap();
    });
    ended.join().unwrap();
    assert_eq!(read.recv(), Ok(9));
}
