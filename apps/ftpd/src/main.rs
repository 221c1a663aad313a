//! The binary `selvedge-ftpd`. `lib.rs` has what it does.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    selvedge_ftpd::run()
}
