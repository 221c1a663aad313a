//! What ends a process, or leaves it with a stack that is given up: each in a process of its own.

use selvedge_core::{fork_local, round_robin};
use selvedge_direct::{Options, direct, wait, yield_now};
use std::future::pending;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

fn child(test: &str) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    // What is on a stack that was given up is a leak.
    command.env("ASAN_OPTIONS", "detect_leaks=0");
    command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]).output().unwrap()
}

fn recurse(depth: u64, waits: bool) -> u64 {
    let here = std::hint::black_box([depth; 64]);
    if waits && depth.is_multiple_of(8) {
        yield_now();
    }
    if here[0] == u64::MAX { 0 } else { recurse(depth + 1, waits) + here[3] }
}

#[test]
#[ignore = "ends its process"]
fn overflows() {
    let _ = round_robin(Options::new().name("weaver").stack_bytes(64 * 1024).direct(|| recurse(0, true)));
}

#[test]
#[ignore = "ends its process"]
fn overflows_on_a_foreign_thread() {
    // As an OS thread that a C library has created, which std has given no stack for handlers.
    extern "C" fn body(_: *mut libc::c_void) -> *mut libc::c_void {
        let none = libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
        // SAFETY: takes away the stack for handlers, which nothing is running on.
        unsafe { libc::sigaltstack(&none, std::ptr::null_mut()) };
        let _ = round_robin(direct(|| recurse(0, true)));
        std::ptr::null_mut()
    }
    // SAFETY: as pthread_create(3) asks for; the thread is joined.
    unsafe {
        let mut thread = 0;
        libc::pthread_create(&mut thread, std::ptr::null(), body, std::ptr::null_mut());
        libc::pthread_join(thread, std::ptr::null_mut());
    }
}

#[test]
#[ignore = "ends its process"]
fn faults_otherwise() {
    let _ = round_robin(direct(|| {
        yield_now();
        // SAFETY: it is not: that is the test.
        unsafe { std::ptr::without_provenance_mut::<u8>(8).write_volatile(1) };
    }));
}

#[test]
#[ignore = "ends its process"]
fn overflows_elsewhere() {
    let _ = round_robin(direct(yield_now));
    recurse(0, false);
}

/// Waits in its destructor, for nothing.
struct Lingers;

impl Drop for Lingers {
    fn drop(&mut self) {
        wait(pending::<()>());
    }
}

#[test]
#[ignore = "leaves a stack behind"]
fn waits_for_ever_in_a_destructor() {
    round_robin(async move {
        let weaver = Options::new().name("weaver").direct(|| {
            let _lingers = Lingers;
            wait(pending::<()>());
        });
        fork_local(weaver).await;
        selvedge_core::yield_now().await;
    })
    .unwrap();
}

#[test]
fn a_destructor_that_waits_for_ever_is_given_up() {
    let output = child("waits_for_ever_in_a_destructor");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("direct-style thread weaver waits in a destructor"), "{said}");
}

#[test]
fn an_overflow_names_the_thread() {
    let output = child("overflows");
    assert_eq!(output.status.signal(), Some(libc::SIGABRT));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("stack overflow in direct-style thread weaver (stack of 64 KiB)"), "{said}");
}

#[test]
fn an_overflow_on_a_foreign_thread_too() {
    let output = child("overflows_on_a_foreign_thread");
    assert_eq!(output.status.signal(), Some(libc::SIGABRT));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("stack overflow in direct-style thread processes::overflows_on"), "{said}");
    assert!(said.contains("(stack of 256 KiB)"), "{said}");
}

#[test]
fn another_fault_is_left_to_the_handler_before_ours() {
    let output = child("faults_otherwise");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("direct-style"), "{said}");
}

#[test]
fn an_ordinary_stack_that_overflows_is_reported_as_ever() {
    let output = child("overflows_elsewhere");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("overflow") && !said.contains("direct-style"), "{said}");
}
