//! The sales of each month in a CSV file, by a pipeline: the parser runs in a thread of its own,
//! `sort` is a stage, and a row that is wrong is told with its place.
//!
//! # Prints
//! ```text
//! 2026-01 12
//! 2026-02 30
//! csv::records: item 3, offset 31: a quoted field that is not closed
//! ```

use selvedge::flow::{self, ahead};
use selvedge::fs;
use selvedge::pipeline::*;
use selvedge::process::Command;
use std::collections::BTreeMap;
use std::process::ExitCode;

const SALES: &str = "day,what,amount
2026-02-03,\"warp, black\",13
2026-01-07,weft,12
2026-02-11,\"a \"\"selvedge\"\"
in two lines\",17
";

/// The text of a row that is kept: the month and the amount.
fn month_and_amount(row: &csv::Fields, text: &mut Vec<u8>) {
    if let (Some(day), Some(amount)) = (row.get(0), row.get(2))
        && let Some(month) = day.get(..7)
        && amount.iter().all(u8::is_ascii_digit)
    {
        text.extend_from_slice(month);
        text.push(b' ');
        text.extend_from_slice(amount);
        text.push(b'\n');
    }
}

fn add(
    sums: &mut BTreeMap<String, u64>,
    line: &[u8],
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let line = str::from_utf8(line)?;
    let (month, amount) = line.split_once(' ').ok_or("no amount")?;
    *sums.entry(month.to_string()).or_default() += amount.parse::<u64>()?;
    Ok(())
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        let home = std::env::temp_dir().join(format!("sales-{}", std::process::id()));
        fs::write(&home, SALES).await?;
        let sums = flow::file(&home)
            >> csv::records(b',')
            >> ahead(2)
            >> rewrite(month_and_amount)
            >> concatenate()
            >> flow::through(Command::new("sort"))
            >> group_by(line())
            >> try_fold(BTreeMap::new(), add);
        for (month, sum) in sums.run().await? {
            println!("{month} {sum}");
        }
        fs::write(&home, "day,what,amount\n2026-01-07,1,2\n\"2026-01-08,2\n").await?;
        if let Err(failure) = (flow::file(&home) >> csv::records(b',') >> count()).run().await {
            println!("{failure}");
        }
        fs::remove_file(home).await?;
        Ok(())
    })
}
