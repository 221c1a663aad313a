//! What is linked into a program: the simulated kernel and the faults only if the program names
//! them.
//!
//! The test reads the symbol tables. They show it in every profile, because the linker drops each
//! function that nothing refers to. A binary without symbols would show nothing, so the test also
//! looks at the one program that names the simulation.

use object::{Object, ObjectSymbol};
use std::fs;
use std::path::Path;

/// The crate of the simulation and the module of the faults in the names of symbols: in the path of
/// an item, and within the arguments of a generic item.
const SIMULATION: [&str; 4] =
    ["12selvedge_sim", "selvedge_sim..", "11selvedge_io6faults", "selvedge_io..faults"];

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
