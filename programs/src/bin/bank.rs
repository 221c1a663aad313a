//! A bank: tellers move money between accounts while an auditor adds up all of them. Each audit
//! sees one moment, so no sum is ever wrong.
//!
//! # Prints
//! ```text
//! 4 tellers made 2000 transfers; 100 audits of 16 accounts each found 1600
//! ```

use selvedge::stm::{TWord, Tried, Tx, atomically};
use selvedge::{spawn, yield_now};
use std::process::ExitCode;
use std::sync::Arc;

const ACCOUNTS: usize = 16;
const TRANSFERS: usize = 500;

type Accounts = Arc<[TWord<u64>]>;

/// Moves a sum, or as much of it as is there.
fn transfer(tx: &Tx, from: &TWord<u64>, to: &TWord<u64>, sum: u64) -> Tried<()> {
    let there = from.read(tx)?;
    let sum = sum.min(there);
    from.write(tx, there - sum);
    to.modify(tx, |there| there + sum)
}

async fn teller(accounts: Accounts, mut number: usize) -> usize {
    for _ in 0..TRANSFERS {
        number = number * 75 % 65_537;
        let (from, to) = (&accounts[number % ACCOUNTS], &accounts[number / ACCOUNTS % ACCOUNTS]);
        atomically(|tx| transfer(tx, from, to, number as u64 % 200)).await;
    }
    TRANSFERS
}

async fn audit(accounts: &Accounts) -> u64 {
    atomically(|tx| accounts.iter().map(|account| account.read(tx)).sum()).await
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        let accounts: Accounts = (0..ACCOUNTS).map(|_| TWord::new(100)).collect();
        let tellers: Vec<_> = (1..=4).map(|n| spawn(teller(accounts.clone(), n * 1_000))).collect();
        let auditor = spawn(async move {
            for _ in 0..100 {
                assert_eq!(audit(&accounts).await, 1_600);
                yield_now().await;
            }
        });
        let mut transfers = 0;
        for teller in tellers {
            transfers += teller.await?;
        }
        auditor.await?;
        println!("4 tellers made {transfers} transfers; 100 audits of {ACCOUNTS} accounts each found 1600");
        Ok(())
    })
}
