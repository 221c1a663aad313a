//! Exceptions that cross system calls: thrown deep inside, caught by type, with the rest thrown on.

use selvedge::{SchedulerError, catch, spawn, throw, yield_now};

#[derive(Debug)]
struct OutOfYarn {
    row: u32,
}

async fn weave(rows: u32) -> u32 {
    for row in 0..rows {
        yield_now().await;
        if row == 7 {
            throw(OutOfYarn { row });
        }
    }
    rows
}

fn main() -> Result<(), SchedulerError> {
    selvedge::run(async {
        for rows in [5, 50] {
            match catch(weave(rows)).await {
                Ok(rows) => println!("{rows} rows are done"),
                Err(exception) => match exception.downcast::<OutOfYarn>() {
                    Ok(OutOfYarn { row }) => println!("out of yarn in row {row}"),
                    Err(other) => other.rethrow(),
                },
            }
        }
        // An exception that is not caught ends its thread, and the joiner gets it.
        let end = spawn(weave(50)).await;
        println!("the other thread: {}", end.expect_err("it throws"));
    })
}
