//! All interleavings of an OS thread that begins, or sleeps, with another one that may limit its
//! CPUs: it has all of them when it has begun.

#[test]
fn an_os_thread_restores_its_cpus_after_another_one_has_limited_them() {
    loom::model(selvedge_sched::model_of_two_sleeps);
}
