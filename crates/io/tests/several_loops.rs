//! Threads wait for one descriptor in several event loops: threads that go from one loop to
//! another, and several threads at once. (The tests count the event loops of the process that know
//! a descriptor, so they have a file of their own.)

mod common;

use common::{ms, run};
use selvedge_core::spawn_local;
use selvedge_io::net::{Stream, UnixStream};
use selvedge_io::nonblocking::PollState;
use selvedge_io::time::{sleep, timeout};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

fn pair() -> (Arc<Stream>, Arc<Stream>) {
    let (one, other) = UnixStream::pair().unwrap();
    (Arc::new(one.into()), Arc::new(other.into()))
}

/// The number of epoll sets of the process that contain a descriptor. (The tests in this
/// file run in a process of their own, and use descriptors of their own.)
fn registrations(fd: impl AsFd) -> usize {
    let wanted = format!("tfd:{:>9} ", fd.as_fd().as_raw_fd());
    let sets = std::fs::read_dir("/proc/self/fdinfo").unwrap();
    let infos = sets.filter_map(|set| std::fs::read_to_string(set.unwrap().path()).ok());
    infos.filter(|info| info.contains(&wanted)).count()
}

/// An OS thread with a scheduler that runs the jobs that it is sent, one after the other.
struct Worker(mpsc::Sender<Box<dyn FnOnce() + Send>>);

impl Worker {
    fn start() -> Worker {
        let (sender, jobs) = mpsc::channel::<Box<dyn FnOnce() + Send>>();
        std::thread::spawn(move || {
            run(async move {
                loop {
                    match jobs.try_recv() {
                        Ok(job) => job(),
                        Err(mpsc::TryRecvError::Empty) => sleep(ms(1)).await,
                        Err(mpsc::TryRecvError::Disconnected) => break,
                    }
                }
            });
        });
        Worker(sender)
    }

    /// Spawns a thread on this worker that runs a future.
    fn spawn<F: Future<Output: Send> + 'static>(
        &self,
        make: impl FnOnce() -> F + Send + 'static,
    ) -> mpsc::Receiver<F::Output> {
        let (sender, result) = mpsc::channel();
        let job = move || {
            drop(spawn_local(async move {
                let _ = sender.send(make().await);
            }));
        };
        self.0.send(Box::new(job)).unwrap();
        result
    }
}

fn wait<T>(result: mpsc::Receiver<T>) -> T {
    result.recv_timeout(std::time::Duration::from_secs(60)).expect("the thread ends")
}

/// Whether soon only the loop of `worker`, where the descriptor's thread is, has the descriptor in
/// its set. The other loops take it out after some edges. On a loaded machine several edges may be
/// one edge for them, or may reach them late.
fn is_only_with(worker: &Worker, one: &Arc<Stream>, other: &Stream) -> bool {
    for _ in 0..500 {
        if registrations(&**one) == 1 {
            return true;
        }
        let reader = one.clone();
        let read = worker.spawn(move || async move { reader.read_exact(&mut [0]).await.unwrap() });
        std::thread::sleep(ms(3));
        other.try_write(b"x").unwrap();
        wait(read);
    }
    false
}

#[test]
fn a_thread_that_moves_on_leaves_nothing_behind() {
    let (one, other) = pair();
    let workers = [Worker::start(), Worker::start(), Worker::start()];
    for round in 0..30u8 {
        let reader = one.clone();
        let read = workers[round as usize % 3].spawn(move || async move {
            let mut bytes = [0; 2];
            reader.read_exact(&mut bytes).await.unwrap();
            bytes
        });
        std::thread::sleep(ms(5));
        // The bytes come one by one, so that the reader waits at least once more.
        for _ in 0..2 {
            other.try_write(&[round]).unwrap();
            std::thread::sleep(ms(3));
        }
        assert_eq!(wait(read), [round; 2]);
        assert!(is_only_with(&workers[round as usize % 3], &one, &other), "in round {round}");
    }
}

/// A thread that goes on in another loop finds the data that came before, though no further edge
/// comes.
#[test]
fn what_came_in_between_is_noticed() {
    let (one, other) = pair();
    let workers = [Worker::start(), Worker::start()];
    for round in 0..20u8 {
        let reader = one.clone();
        let given_up = workers[round as usize % 2]
            .spawn(move || async move { timeout(ms(3), reader.read(&mut [0])).await.is_err() });
        assert!(wait(given_up));
        other.try_write(&[round]).unwrap();
        let reader = one.clone();
        let read = workers[(round as usize + 1) % 2].spawn(move || async move {
            reader.readable().await.unwrap();
            let mut byte = [0; 10];
            (reader.read(&mut byte).await.unwrap(), byte[0])
        });
        assert_eq!(wait(read), (1, round));
    }
}

#[test]
fn one_reads_here_and_another_writes_there() {
    const BYTES: usize = 4_000_000;
    let (one, other) = pair();
    let workers = [Worker::start(), Worker::start(), Worker::start()];
    let copy = |from: Arc<Stream>| {
        move || async move {
            let (mut total, mut buffer) = (0, vec![0; 10_000]);
            while total < BYTES {
                total += from.read(&mut buffer).await.unwrap();
            }
            total
        }
    };
    let send = |to: Arc<Stream>| {
        move || async move {
            for _ in 0..BYTES / 50_000 {
                to.write_all(&[7; 50_000]).await.unwrap();
            }
            0
        }
    };
    let all = [
        workers[0].spawn(copy(one.clone())),
        workers[1].spawn(send(one.clone())),
        workers[2].spawn(copy(other.clone())),
        workers[0].spawn(send(other.clone())),
    ];
    for (result, expected) in all.into_iter().zip([BYTES, 0, BYTES, 0]) {
        assert_eq!(wait(result), expected);
    }
}

#[test]
fn several_read_from_one_stream_in_several_loops() {
    const MESSAGES: usize = 3000;
    let (one, other) = pair();
    let workers = [Worker::start(), Worker::start()];
    let read = Arc::new(AtomicUsize::new(0));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let readers: Vec<_> = (0..4)
        .map(|i| {
            let (one, read, seen) = (one.clone(), read.clone(), seen.clone());
            workers[i % 2].spawn(move || async move {
                let mut byte = [0];
                while one.read(&mut byte).await.unwrap() > 0 {
                    read.fetch_add(1, Ordering::SeqCst);
                    seen.lock().unwrap().push(byte[0]);
                }
            })
        })
        .collect();
    for i in 0..MESSAGES {
        while other.try_write(&[i as u8]).is_err() {
            std::thread::yield_now();
        }
        if i % 100 == 0 {
            // Every reader waits now and then.
            std::thread::sleep(ms(1));
        }
    }
    other.shutdown(std::net::Shutdown::Write).unwrap();
    readers.into_iter().for_each(wait);
    assert_eq!(read.load(Ordering::SeqCst), MESSAGES);
    let mut seen = std::mem::take(&mut *seen.lock().unwrap());
    let mut expected: Vec<u8> = (0..MESSAGES).map(|i| i as u8).collect();
    seen.sort();
    expected.sort();
    assert_eq!(seen, expected);
}

/// A loop that has ended takes no descriptor out.
#[test]
fn a_loop_ends_and_its_descriptors_go_on() {
    let (one, other) = pair();
    for round in 0..5u8 {
        let reader = one.clone();
        let writer = other.clone();
        std::thread::spawn(move || {
            run(async move {
                let wrote = spawn_local(async move {
                    sleep(ms(2)).await;
                    writer.write_all(&[round]).await.unwrap();
                });
                let mut byte = [0];
                reader.read_exact(&mut byte).await.unwrap();
                assert_eq!(byte, [round]);
                wrote.await.unwrap();
            });
        })
        .join()
        .unwrap();
    }
}

/// A poller gives up without telling its loop. The descriptor leaves that loop all the same.
#[test]
fn a_wait_that_a_poller_left_behind_keeps_no_descriptor_in_its_loop() {
    let (one, other) = pair();
    let workers = [Worker::start(), Worker::start()];
    let reader = one.clone();
    wait(workers[0].spawn(move || async move {
        let mut state = PollState::default();
        let pending = std::future::poll_fn(|cx| {
            std::task::Poll::Ready(
                reader.poll_read_with(&mut state, cx, |s| s.try_read(&mut [0])).is_pending(),
            )
        });
        assert!(pending.await);
        sleep(ms(2)).await;
    }));
    assert_eq!(registrations(&*one), 1);
    let reader = one.clone();
    let read = workers[1].spawn(move || async move { reader.read_exact(&mut [0; 4]).await.unwrap() });
    for _ in 0..4 {
        std::thread::sleep(ms(5));
        other.try_write(b"x").unwrap();
    }
    wait(read);
    assert!(is_only_with(&workers[1], &one, &other));
}
