//! All interleavings of a new OS thread with its caller, which may limit its CPUs: it has all of
//! them in the end.
#![cfg(loom)]

#[test]
fn an_os_thread_restores_its_cpus_after_its_caller_has_limited_them() {
    loom::model(selvedge_sched::model_of_a_start);
}
