//! The report of a thread that panicked says which thread it was.

use selvedge_core::{Cpu, JoinError, Trace, round_robin, spawn_local, throw};

fn name(of: &str) -> bool {
    let Some((id, rest)) = of.strip_prefix("thread ").and_then(|rest| rest.split_once(' ')) else {
        return false;
    };
    id.parse::<u32>().is_ok_and(|id| id > 0) && rest.starts_with('(') && !rest.contains("closure")
}

#[test]
fn a_joiner_is_told_which_thread_it_was() {
    let ended = round_robin(async { spawn_local(async { panic!("no bread") }).await });
    let error: JoinError = ended.unwrap().unwrap_err();
    let text = error.to_string();
    assert!(name(&text), "{text}");
    assert!(
        text.ends_with("a_joiner_is_told_which_thread_it_was) ended by an exception: no bread"),
        "{text}"
    );
}

#[test]
fn the_value_is_what_was_thrown() {
    let ended = round_robin(async {
        let JoinError::Panicked(thrown) = spawn_local(async { throw(42_u8) }).await.unwrap_err() else {
            panic!()
        };
        let thrown = thrown.downcast::<String>().unwrap_err();
        assert_eq!(thrown.message(), None);
        thrown.downcast::<u8>().unwrap()
    });
    assert_eq!(ended.unwrap(), 42);
}

#[test]
fn a_scheduler_is_told_which_thread_it_was() {
    let mut cpu = Cpu::new().unwrap();
    let thread = cpu.thread(async { panic!("no bread") }).unwrap();
    let Trace::Panic(panic) = thread.step(&mut cpu) else { panic!("it panics") };
    let text = panic.to_string();
    assert!(name(&text) && text.ends_with(": no bread"), "{text}");
    assert!(panic.thread().ends_with("a_scheduler_is_told_which_thread_it_was"), "{}", panic.thread());
}
