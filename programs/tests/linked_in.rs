//! What is linked into a program: the simulated kernel and the faults only if the program names
//! them.
//!
//! The symbol table tells it in every profile, because the linker drops each function that nothing
//! refers to. A binary without symbols would
//! tell nothing: the one program that names the simulation shows that these have them.

use object::{Object, ObjectSymbol};
use std::fs;
use std::path::Path;

/// The module in the names of symbols: as a path of the compiler's, and within the arguments of a
/// generic one.
const SIMULATION: [&str; 2] = ["11selvedge_io3sim", "selvedge_io..sim"];

/// Symbols of the simulation that a program has.
fn simulation_in(program: &Path) -> Vec<String> {
    let bytes = fs::read(program).unwrap();
    let file = object::File::parse(&bytes[..]).unwrap();
    let names = file.symbols().filter_map(|symbol| symbol.name().ok().map(str::to_string));
    names.filter(|name| SIMULATION.iter().any(|part| name.contains(part))).collect()
}

#[test]
fn a_program_that_does_not_name_the_simulation_has_none_of_it() {
    for program in [env!("CARGO_BIN_EXE_idle"), env!("CARGO_BIN_EXE_echo"), env!("CARGO_BIN_EXE_file_copy")] {
        let found = simulation_in(Path::new(program));
        assert!(found.is_empty(), "{program} has {} symbols, as {}", found.len(), found[0]);
    }
    let named = simulation_in(Path::new(env!("CARGO_BIN_EXE_simulation")));
    assert!(named.len() > 10, "a program that names it has only {named:?}");
}
