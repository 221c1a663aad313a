//! Calls that block for long fill the pool of `blocking`, and hold up no other calls. (The pool is
//! the process's, so this test has a file of its own.)

mod common;

use common::{ms, run_with};
use selvedge_core::spawn_local;
use selvedge_io::fs::{self, Driver, File};
use selvedge_io::net::resolve;
use selvedge_io::process::Command;
use selvedge_io::time::{sleep, timeout};
use selvedge_io::{EventLoop, blocking, pool};
use std::sync::{Arc, Barrier};

#[test]
fn long_calls_do_not_hold_up_files_and_names() {
    const MAX: usize = 64;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_owned();
    for driver in [Driver::Ring, Driver::Pool] {
        let path = path.join(format!("{driver:?}"));
        run_with(&mut EventLoop::with_driver(driver).unwrap(), async move {
            let released = Arc::new(Barrier::new(MAX + 1));
            let long: Vec<_> = (0..MAX)
                .map(|_| {
                    let released = released.clone();
                    spawn_local(async move {
                        blocking(move || released.wait()).await.unwrap();
                    })
                })
                .collect();
            while pool::shared().load().threads < MAX || pool::shared().load().idle > 0 {
                sleep(ms(1)).await;
            }
            let short = async {
                fs::create_dir(path.clone()).await.unwrap();
                File::create(path.join("file")).await.unwrap();
                assert_eq!(fs::metadata(path.join("file")).await.unwrap().len(), 0);
                fs::rename(path.join("file"), path.join("other")).await.unwrap();
                assert_eq!(resolve("127.0.0.1:80").await.unwrap().len(), 1);
                assert!(Command::new("true").status().await.unwrap().success());
            };
            let ended = timeout(ms(10_000), short).await;
            // The long calls are released first, from another OS thread, because this one must not
            // be the last that waits.
            std::thread::spawn(move || released.wait()).join().unwrap();
            for call in long {
                call.await.unwrap();
            }
            assert!(ended.is_ok(), "{driver:?}: files and names wait behind long calls");
        });
    }
    assert!(pool::load().taken > pool::shared().load().taken);
}
