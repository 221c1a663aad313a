//! `selvedge-pipe`: a streaming shell of typed stages.
//!
//! | module | what it has |
//! |---|---|
//! | [`language`] | the language: tokens, tree, parser, printer, complaints with a caret |
//! | [`kinds`] | what each stage takes and yields: a script that does not fit is refused before it runs |
//! | [`mod@test`], [`regex`], [`condition`] | conditions as splitters |
//! | [`stage`], [`stages`] | stages as transducers |
//! | [`stream`], [`source`], [`join`], [`run`] | what waits: files, processes, joins, the run |
//! | [`explain`], [`progress`] | what the user is told about a run |
//! | [`interactive`] | the prompt |
//! | [`options`] | the command line |

#![forbid(unsafe_code)]

pub mod condition;
pub mod explain;
#[doc(hidden)]
pub mod fuzz;
pub mod interactive;
pub mod join;
pub mod kinds;
pub mod language;
pub mod options;
pub mod progress;
pub mod regex;
pub mod run;
pub mod source;
pub mod stage;
pub mod stages;
pub mod stream;
pub mod test;
