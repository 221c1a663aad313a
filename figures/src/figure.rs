//! [`Figure`]: an entry in the table `FIGURES` of a module. `main.rs` joins the tables.

use crate::effort::Effort;
use crate::table::Table;

/// A figure: its name, its content, and how to measure it.
#[derive(Debug)]
pub(crate) struct Figure {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// What it measures, in a few words.
    pub(crate) about: &'static str,
    /// Measures it.
    pub(crate) measure: fn(Effort) -> Result<Table, String>,
}
