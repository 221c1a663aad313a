//! What ends a process, or leaves it with a stack that is given up: each in a process of its own.

use selvedge_core::{fork_local, round_robin, spawn_local};
use selvedge_direct::{Options, direct, wait, yield_now};
use std::cell::Cell;
use std::future::pending;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};
use std::rc::Rc;

fn child(test: &str) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    // What is on a stack that was given up is a leak.
    command.env("ASAN_OPTIONS", "detect_leaks=0");
    let test = format!("processes::{test}");
    command.args(["--exact", &test, "--ignored", "--nocapture", "--test-threads=1"]).output().unwrap()
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

/// Makes the kernel refuse the calls that kernels before 6.13 do not have.
fn on_an_older_kernel() {
    const NUMBER: u32 = 0;
    const ADVICE: u32 = 32;
    const MADV_GUARD_INSTALL: u32 = 102;
    let refused = libc::SECCOMP_RET_ERRNO | libc::EINVAL as u32;
    let statement = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let load = |from| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, from);
    let is = |what, then, or| statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, then, or, what);
    let result = |what| statement(libc::BPF_RET | libc::BPF_K, 0, 0, what);
    let mut program = [
        load(NUMBER),
        is(libc::SYS_process_madvise as u32, 3, 0),
        is(libc::SYS_madvise as u32, 0, 3),
        load(ADVICE),
        is(MADV_GUARD_INSTALL, 0, 1),
        result(refused),
        result(libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: as prctl(2) asks for. The filter is for this OS thread alone.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program), 0);
    }
}

#[test]
#[ignore = "ends its process"]
fn overflows_on_an_older_kernel() {
    on_an_older_kernel();
    let _ = round_robin(async {
        let threads: Vec<_> = (0..2000).map(|n| selvedge_direct::spawn(move || wait_and_give(n))).collect();
        for (n, thread) in threads.into_iter().enumerate() {
            assert_eq!(thread.await.unwrap(), n);
        }
        Options::new().name("weaver").direct(|| recurse(0, true)).await
    });
}

fn wait_and_give(number: usize) -> usize {
    yield_now();
    number
}

#[test]
#[ignore = "ends its process"]
fn has_too_many_on_an_older_kernel() {
    on_an_older_kernel();
    let mappings = std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap();
    let mappings: usize = mappings.trim().parse().unwrap();
    assert!(mappings < 1 << 20, "too many to try");
    let _ = round_robin(async move {
        for _ in 0..mappings / 2 {
            fork_local(direct(|| wait(pending::<()>()))).await;
        }
    });
}

/// Whether the address sanitizer runs: it takes addresses by the terabyte, and has memory of its
/// own for each stack.
pub(crate) fn is_sanitized() -> bool {
    memory("VmSize:") > 1 << 30
}

/// A line of the process's status, in KiB.
fn memory(name: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}

#[test]
#[ignore = "measures its process"]
fn has_many_and_then_none() {
    if is_sanitized() {
        return; // Its own memory cannot be told from that of stacks.
    }
    for _ in 0..3 {
        let most = round_robin(async {
            for n in 0..20_000 {
                drop(selvedge_direct::spawn(move || wait_and_give(n)));
            }
            selvedge_core::yield_now().await;
            memory("VmRSS:")
        });
        assert!(most.unwrap() > 20_000 * 4, "a stack has a page");
        let kept = memory("VmRSS:");
        assert!(kept < 64 * 1024, "{kept} KiB are kept");
    }
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

extern "C" fn compare(a: *const libc::c_void, b: *const libc::c_void) -> i32 {
    yield_now();
    // SAFETY: `qsort` calls this with addresses of numbers.
    unsafe { *a.cast::<i32>() - *b.cast::<i32>() }
}

/// Sorts by C's function, which calls back, each time to be waited for.
fn sort(numbers: &mut [i32]) {
    // SAFETY: as qsort(3) asks for.
    unsafe { libc::qsort(numbers.as_mut_ptr().cast(), numbers.len(), 4, Some(compare)) };
}

#[test]
#[ignore = "leaves a stack behind"]
fn waits_in_a_callback_of_c_when_its_scheduler_ends() {
    round_robin(async move {
        let weaver = Options::new().name("weaver").direct(|| {
            loop {
                sort(&mut [3, 1, 2]);
            }
        });
        fork_local(weaver).await;
        selvedge_core::yield_now().await;
    })
    .unwrap();
}

#[test]
#[ignore = "may end its process"]
fn waits_in_a_callback_of_c_when_it_is_cancelled() {
    struct Says(Rc<Cell<&'static str>>);
    impl Drop for Says {
        fn drop(&mut self) {
            self.0.set(if self.0.get() == "sorted" { "unwound" } else { "left in the middle" });
        }
    }
    round_robin(async move {
        let state = Rc::new(Cell::new("begun"));
        let says = Says(state.clone());
        let thread = spawn_local(direct(move || {
            let mut numbers = [3, 1, 2];
            sort(&mut numbers);
            assert_eq!(numbers, [1, 2, 3]);
            says.0.set("sorted");
            wait(pending::<()>());
            says.0.set("never");
        }));
        selvedge_core::yield_now().await;
        thread.cancel();
        assert!(thread.await.is_err());
        for _ in 0..20 {
            selvedge_core::yield_now().await;
        }
        assert_eq!(state.get(), "unwound");
    })
    .unwrap();
}

#[test]
fn one_that_waits_in_a_callback_of_c_goes_on_until_it_can_be_unwound() {
    let output = child("waits_in_a_callback_of_c_when_it_is_cancelled");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("given up"), "{said}");
    let output = child("waits_in_a_callback_of_c_when_its_scheduler_ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("direct-style thread weaver waits in a destructor, or within"), "{said}");
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
    assert!(said.contains("stack overflow in direct-style thread suite::processes::overflows_on"), "{said}");
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

#[test]
fn without_marks_a_guard_takes_mappings() {
    let output = child("overflows_on_an_older_kernel");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{said}");
    assert!(said.contains("stack overflow in direct-style thread weaver (stack of 256 KiB)"), "{said}");
    let output = child("has_too_many_on_an_older_kernel");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("no stack of 256 KiB for another direct-style thread: there are too"), "{said}");
    assert!(said.contains("and vm.max_map_count allows"), "{said}");
}

#[test]
fn the_memory_of_most_free_stacks_is_given_back() {
    let output = child("has_many_and_then_none");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
