//! The sessions that the paper prints, letter by letter: the text on the terminal and the results.
//!
//! Where the paper breaks a line of the terminal for its page, the text here has a space.

use futures::executor::block_on;
use selvedge_coroutine::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

/// What a session prints.
#[derive(Default)]
struct Terminal(Mutex<String>);

impl Terminal {
    fn put(&self, text: &str) {
        self.0.lock().unwrap().push_str(text);
    }

    fn put_line(&self, text: &str) {
        self.put(text);
        self.put("\n");
    }
}

/// Runs one line of a session; returns its text and its result.
fn session<R>(line: impl AsyncFnOnce(&Terminal) -> R) -> (String, R) {
    let terminal = Terminal::default();
    let result = block_on(line(&terminal));
    (terminal.0.into_inner().unwrap(), result)
}

fn hello(terminal: &Terminal) -> Trampoline<'_, ()> {
    Trampoline::new(move |mut co| async move {
        terminal.put("Hello, ");
        co.pause().await;
        terminal.put_line("World!");
    })
}

fn r#gen(terminal: &Terminal) -> Generator<'_, i32, i32> {
    Generator::new(move |mut co| async move {
        terminal.put("Yielding one, ");
        co.yield_(1).await;
        terminal.put("then two, ");
        co.yield_(2).await;
        terminal.put("returning three: ");
        3
    })
}

fn iter(terminal: &Terminal) -> Iteratee<'_, i32, ()> {
    Iteratee::new(move |mut co| async move {
        terminal.put("Enter two numbers: ");
        let a = co.await_().await;
        let b = co.await_().await;
        terminal.put_line(&format!("sum is {}", a + b));
    })
}

fn iter2(terminal: &Terminal, mut s: i32) -> Iteratee<'_, Option<i32>, ()> {
    Iteratee::new(move |mut co| async move {
        loop {
            terminal.put("Enter a number: ");
            match co.await_().await {
                Some(n) => s += n,
                None => return terminal.put_line(&format!("sum is {s}")),
            }
        }
    })
}

fn double<'a>() -> Transducer<'a, i32, i32, ()> {
    lift_stateless(|a| [a, a])
}

fn yield_three<'a>() -> Generator<'a, i32, ()> {
    Generator::new(|mut co| async move { co.yield_(3).await })
}

#[test]
fn run_hello() {
    assert_eq!(session(async |t| run(hello(t)).await), ("Hello, World!\n".to_string(), ()));
}

#[test]
fn bounce_hello_and_do_other_work() {
    let (text, ()) = session(async |t| {
        let Resumed::Suspended(continuation) = bounce(hello(t)).await else { panic!("hello pauses") };
        t.put("Wonderful ");
        run(continuation).await;
    });
    assert_eq!(text, "Hello, Wonderful World!\n");
}

#[test]
fn interleave_three_hellos() {
    let (text, results) = session(async |t| run(interleave([hello(t), hello(t), hello(t)])).await);
    assert_eq!(text, "Hello, Hello, Hello, World!\nWorld!\nWorld!\n");
    assert_eq!(results, [(), (), ()]);
}

#[test]
fn run_generator_gen() {
    let (text, result) = session(async |t| run_generator(r#gen(t)).await);
    assert_eq!(text, "Yielding one, then two, returning three: ");
    assert_eq!(result, (vec![1, 2], 3));
}

#[test]
fn run_iteratee_iter() {
    let (text, ()) = session(async |t| run_iteratee([4, 5], iter(t)).await);
    assert_eq!(text, "Enter two numbers: sum is 9\n");
}

#[test]
fn pipe1_gen_iter() {
    let (text, result) = session(async |t| pipe1(r#gen(t), iter(t)).await);
    assert_eq!(text, "Yielding one, Enter two numbers: then two, returning three: sum is 3\n");
    assert_eq!(result, (3, ()));
}

#[test]
fn pipe1_return_iter_ends_too_soon() {
    let terminal = Terminal::default();
    let piped = || block_on(pipe1(Generator::done(()), iter(&terminal)));
    let thrown = catch_unwind(AssertUnwindSafe(piped)).unwrap_err();
    let text = terminal.0.into_inner().unwrap();
    assert_eq!(text, "Enter two numbers: ");
    assert_eq!(thrown.downcast_ref::<&str>(), Some(&"The producer ended too soon."));
}

#[test]
fn pipe2_return_iter2() {
    let (text, result) = session(async |t| pipe2(Generator::done(()), iter2(t, 0)).await);
    assert_eq!(text, "Enter a number: sum is 0\n");
    assert_eq!(result, ((), ()));
}

#[test]
fn pipe2_gen_and_gen_iter2() {
    let (text, result) = session(async |t| {
        let gen_and_gen = r#gen(t).and_then(move |_| r#gen(t));
        pipe2(gen_and_gen, iter2(t, 0)).await
    });
    let expected = "Yielding one, Enter a number: then two, Enter a number: returning three: \
                    Yielding one, Enter a number: then two, Enter a number: returning three: \
                    Enter a number: sum is 6\n";
    assert_eq!(text, expected);
    assert_eq!(result, (3, ()));
}

#[test]
fn gen_through_double() {
    let (text, result) =
        session(async |t| run_generator(to_generator(from_generator(r#gen(t)) >> double())).await);
    assert_eq!(text, "Yielding one, then two, returning three: ");
    assert_eq!(result, (vec![1, 1, 2, 2], (3, ())));
}

#[test]
fn double_before_iter2() {
    let (text, result) = session(async |t| {
        let iteratee = to_iteratee(double() >> from_iteratee(iter2(t, 0)));
        run_iteratee([Some(3), None], iteratee).await
    });
    assert_eq!(text, "Enter a number: Enter a number: Enter a number: sum is 6\n");
    assert_eq!(result, ((), ()));
}

#[test]
fn three_through_double_to_iter2() {
    let (text, result) = session(async |t| {
        let three = from_generator(yield_three());
        run(to_trampoline(three >> double() >> from_iteratee(iter2(t, 0)))).await
    });
    assert_eq!(text, "Enter a number: Enter a number: Enter a number: sum is 6\n");
    assert_eq!(result, (((), ()), ()));
}

#[test]
fn three_through_double_twice_to_iter2() {
    let (text, result) = session(async |t| {
        let three = from_generator(yield_three());
        run(to_trampoline(three >> double() >> double() >> from_iteratee(iter2(t, 0)))).await
    });
    let expected = "Enter a number: Enter a number: Enter a number: Enter a number: Enter a number: \
                    sum is 12\n";
    assert_eq!(text, expected);
    assert_eq!(result, ((((), ()), ()), ()));
}
