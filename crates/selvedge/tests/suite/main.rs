//! The house as one dependency: programs within programs, and transactions with time.

mod attributes;
mod run_within_run;
mod transactions;
