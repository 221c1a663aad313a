//! Disk operations of threads that move between OS threads: each operation is performed where it
//! was asked for, and its thread goes on on any worker that has time.

use crate::common::disk::on_disk;
use crate::common::ms;
use selvedge_core::{spawn, yield_now};
use selvedge_io::EventLoop;
use selvedge_io::fs::{Driver, File};
use selvedge_sched::{per_core, work_stealing};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const BLOCKS: u64 = 64;

/// A file of blocks, each filled with its number.
fn numbered() -> tempfile::NamedTempFile {
    on_disk(&(0..BLOCKS).flat_map(|i| [i as u8; 4096]).collect::<Vec<u8>>())
}

#[test]
fn threads_read_on_whatever_worker_they_are() {
    let on_disk = numbered();
    for driver in [Driver::Ring, Driver::Pool] {
        let path = on_disk.path().to_owned();
        let reads = work_stealing(2, |_| EventLoop::with_driver(driver), async move {
            let file = File::options().read(true).direct(true).open(path).await.unwrap();
            let reads = Arc::new(AtomicUsize::new(0));
            let readers: Vec<_> = (0..1000)
                .map(|i: u64| {
                    let (file, reads) = (file.clone(), reads.clone());
                    spawn(async move {
                        for round in 0..5 {
                            let block = (i * 7 + round * 13) % BLOCKS;
                            let bytes = file.read_aligned_at(block * 4096, 4096).await.unwrap();
                            assert!(bytes.len() == 4096 && bytes.iter().all(|&b| u64::from(b) == block));
                            yield_now().await;
                            drop(bytes);
                            reads.fetch_add(1, Relaxed);
                        }
                    })
                })
                .collect();
            for reader in readers {
                reader.await.unwrap();
            }
            reads.load(Relaxed)
        });
        assert_eq!(reads.unwrap(), 5000);
    }
}

#[test]
fn cancelled_threads_take_their_operations_back_from_other_workers() {
    let on_disk = numbered();
    for driver in [Driver::Ring, Driver::Pool] {
        let path = on_disk.path().to_owned();
        work_stealing(2, |_| EventLoop::with_driver(driver), async move {
            let file = File::options().read(true).direct(true).open(path).await.unwrap();
            for round in 0..20 {
                let readers: Vec<_> = (0..300)
                    .map(|i: u64| {
                        let file = file.clone();
                        spawn(async move {
                            loop {
                                let read = file.read_aligned_at(i % BLOCKS * 4096, 4096);
                                let timed = selvedge_io::time::timeout(ms(round % 3), read).await;
                                if let Ok(bytes) = timed {
                                    assert_eq!(u64::from(bytes.unwrap()[4095]), i % BLOCKS);
                                }
                            }
                        })
                    })
                    .collect();
                for _ in 0..round {
                    yield_now().await;
                }
                readers.into_iter().for_each(drop_cancelled);
            }
            let bytes = file.read_aligned_at(4096, 4096).await.unwrap();
            assert_eq!(bytes[0], 1);
        })
        .unwrap();
    }
}

fn drop_cancelled(handle: selvedge_core::JoinHandle<()>) {
    handle.cancel();
}

#[test]
fn each_core_has_a_ring_of_its_own() {
    let on_disk = numbered();
    let path = on_disk.path();
    let sums = per_core(
        2,
        |_| EventLoop::new(),
        |worker| {
            let path = path.to_owned();
            async move {
                let file = File::open(path).await.unwrap();
                let mut sum = 0;
                for block in 0..BLOCKS {
                    sum += u64::from(file.read_aligned_at(block * 4096, 4096).await.unwrap()[worker]);
                }
                sum
            }
        },
    );
    assert_eq!(sums.unwrap(), [(0..BLOCKS).sum::<u64>(); 2]);
}
