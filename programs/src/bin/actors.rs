//! Actors: an account is a thread with a mailbox. It answers each request
//! through a promise that came with the request.
//!
//! # Prints
//! ```text
//! 10 deposits of 5, and 2 of 3 withdrawals of 20: the balance is 10
//! ```

use selvedge::spawn;
use selvedge::sync::{Fifo, Fulfiller, Promise};
use std::process::ExitCode;
use std::sync::Arc;

enum Message {
    Deposit(u64),
    /// The answer says whether the account had enough.
    Withdraw(u64, Fulfiller<bool>),
    Balance(Fulfiller<u64>),
}

async fn account(mailbox: Arc<Fifo<Message>>) {
    let mut balance = 0;
    loop {
        match mailbox.take().await {
            Message::Deposit(amount) => balance += amount,
            Message::Withdraw(amount, answer) => {
                let is_enough = amount <= balance;
                if is_enough {
                    balance -= amount;
                }
                answer.fulfil(is_enough);
            }
            Message::Balance(answer) => answer.fulfil(balance),
        }
    }
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        let mailbox = Arc::new(Fifo::new());
        let actor = spawn(account(mailbox.clone()));

        let deposits: Vec<_> = (0..10)
            .map(|_| {
                let mailbox = mailbox.clone();
                spawn(async move { mailbox.put(Message::Deposit(5)) })
            })
            .collect();
        for deposit in deposits {
            deposit.await?;
        }
        let mut paid = 0;
        for _ in 0..3 {
            let (answer, is_enough) = Promise::new();
            mailbox.put(Message::Withdraw(20, answer));
            paid += u32::from(*is_enough.claim().await?);
        }
        let (answer, balance) = Promise::new();
        mailbox.put(Message::Balance(answer));
        println!(
            "10 deposits of 5, and {paid} of 3 withdrawals of 20: the balance is {}",
            balance.claim().await?
        );
        actor.cancel(); // its mailbox is read no more
        Ok(())
    })
}
