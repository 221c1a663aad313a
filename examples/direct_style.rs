//! A recursive-descent parser that blocks for its next character, as if it read from a file: a
//! thread in direct style, beside `async` threads that type.

use selvedge::direct::{Options, wait};
use selvedge::{Local, MVar, RunError, spawn_local, yield_now};
use std::rc::Rc;

/// The source of the parser's input; it knows nothing of futures.
struct Keyboard {
    keys: Rc<MVar<char, Local>>,
    next: Option<char>,
}

impl Keyboard {
    fn peek(&mut self) -> char {
        *self.next.get_or_insert_with(|| wait(self.keys.take()))
    }

    fn accept(&mut self, key: char) -> bool {
        let accepted = self.peek() == key;
        if accepted {
            self.next = None;
        }
        accepted
    }
}

/// `sum = product { "+" product }`
fn sum(keys: &mut Keyboard) -> u64 {
    let mut sum = product(keys);
    while keys.accept('+') {
        sum += product(keys);
    }
    sum
}

/// `product = factor { "*" factor }`
fn product(keys: &mut Keyboard) -> u64 {
    let mut product = factor(keys);
    while keys.accept('*') {
        product *= factor(keys);
    }
    product
}

/// `factor = number | "(" sum ")"`
fn factor(keys: &mut Keyboard) -> u64 {
    if keys.accept('(') {
        let sum = sum(keys);
        assert!(keys.accept(')'), "a bracket is not closed");
        return sum;
    }
    let mut number = 0;
    while let Some(digit) = keys.peek().to_digit(10) {
        number = number * 10 + u64::from(digit);
        keys.next = None;
    }
    number
}

fn main() -> Result<(), RunError> {
    let typed = ["2*(3+4)*3=", "1+2*(3+4*(5+6*(7+8)))=", "((((((6))))))*7="];
    let results = selvedge::run_local(async move {
        let mut results = Vec::new();
        for text in typed {
            let keys = Rc::new(MVar::empty_local());
            let keyboard = Keyboard { keys: keys.clone(), next: None };
            let parser = Options::new().name("parser").stack_bytes(64 * 1024);
            results.push(spawn_local(parser.direct(move || sum(&mut { keyboard }))));
            drop(spawn_local(async move {
                for key in text.chars() {
                    keys.put(key).await;
                    yield_now().await;
                }
            }));
        }
        let mut values = Vec::new();
        for result in results {
            values.push(result.await.expect("the brackets are closed"));
        }
        values
    })?;
    for (text, value) in typed.iter().zip(&results) {
        println!("{text}{value}");
    }
    assert_eq!(results, [42, 767, 42]);
    Ok(())
}
