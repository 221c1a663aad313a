//! Runs an application under one implementation, checks its answer, and prints time and memory:
//! `selvedge-lightweight sieve tramp 1000`.
#![forbid(unsafe_code)]

use selvedge_lightweight::implementations::{ALL, Application, Implementation, named, run};
use std::process::ExitCode;

const HELP: &str = "\
usage: selvedge-lightweight PROGRAM IMPLEMENTATION SIZE [ROUNDS]

  kpn      the first SIZE numbers of the form 2^a 3^b 5^c, by a network with circles
  sieve    the primes up to SIZE, by a chain of filters
  sorter   SIZE numbers sorted by a network, with a thread for each comparator
           -d  only builds the network

implementations:";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((program, by, rounds)) = parse(&words) else {
        eprintln!("{HELP} {}, all", ALL.iter().map(|by| by.name).collect::<Vec<_>>().join(", "));
        return ExitCode::from(2);
    };
    for by in by {
        match run(program, by, rounds) {
            Ok(ran) => println!(
                "{:<16} {:>12.6} s {:>10} threads {:>12} bytes {:>8.1} bytes a thread",
                by.name,
                ran.time.as_secs_f64(),
                ran.threads,
                ran.bytes,
                ran.bytes as f64 / ran.threads as f64,
            ),
            Err(wrong) => {
                eprintln!("{}: {wrong}", by.name);
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

fn parse(words: &[String]) -> Option<(Application, Vec<&'static Implementation>, u32)> {
    let (only_build, words): (Vec<&str>, Vec<&str>) =
        words.iter().map(String::as_str).partition(|w| *w == "-d");
    let (&[program, by, size], rounds) = words.split_first_chunk()?;
    let program = match (program, only_build.is_empty()) {
        ("kpn", true) => Application::Kpn(size.parse().ok()?),
        ("sieve", true) => Application::Sieve(size.parse().ok()?),
        ("sorter", true) => Application::Sorter(size.parse().ok()?),
        ("sorter", false) => Application::SorterBuilt(size.parse().ok()?),
        _ => return None,
    };
    let by = if by == "all" { ALL.iter().collect() } else { vec![named(by)?] };
    let rounds = match rounds {
        [] => 1,
        [rounds] => rounds.parse().ok()?,
        _ => return None,
    };
    Some((program, by, rounds))
}
