//! The Mandelbrot set as text: each line is computed by a thread of its own, and all of them share
//! the cores.
//!
//! # Prints
//! ```text
//!
//!
//!                                             *
//!
//!                                         ****
//!                                         ****
//!                                   *  **********
//!                                   *****************
//!                                 *******************
//!                                *********************
//!                      *******  **********************
//!                     ********* **********************
//!     **********************************************
//! ```

use selvedge::spawn;
use std::process::ExitCode;

fn main() -> ExitCode {
    selvedge::run_main(async {
        let lines: Vec<_> =
            (0..13).map(|row| spawn(async move { line(f64::from(row) / 10.0 - 1.2) })).collect();
        for line in lines {
            println!("{}", line.await?.trim_end());
        }
        Ok(())
    })
}

fn line(imaginary: f64) -> String {
    let points = (0..60).map(|column| f64::from(column) / 20.0 - 2.2);
    points.map(|real| if is_member(real, imaginary) { '*' } else { ' ' }).collect()
}

fn is_member(real: f64, imaginary: f64) -> bool {
    let (mut x, mut y) = (0.0, 0.0);
    (0..200).all(|_| {
        (x, y) = (x * x - y * y + real, 2.0 * x * y + imaginary);
        x * x + y * y <= 4.0
    })
}
