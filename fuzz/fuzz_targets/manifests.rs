//! The manifest's parser, and the evaluation of what it has read.
#![no_main]

use selvedge_make::graph::names;
use selvedge_make::manifest::parse;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    // A file that includes another one reads the second half of the input.
    let (first, second) = data.split_at(data.len() / 2);
    let mut left = 3;
    let mut load = |_: &[u8]| {
        left -= 1;
        if left > 0 { Ok(second.to_vec()) } else { Err(std::io::Error::other("no more")) }
    };
    match parse(b"build.ninja", first, &mut load) {
        Err(error) => {
            assert!(error.line > 0 && error.column > 0);
            assert!(error.to_string().contains(&error.message));
        }
        Ok(graph) => {
            for edge in graph.edge_ids() {
                let mut command = Vec::new();
                if graph.command_with_content(edge, &mut command).is_ok() {
                    let _ = selvedge_make::shell::words(&command);
                }
                let _ = graph.path_value(edge, names::DEPFILE);
                assert!(graph.outputs(edge).all(|output| graph.maker(output) == Some(edge)));
                assert!(graph.inputs(edge).all(|input| !graph.path(input).is_empty()));
            }
            assert!(graph.default_targets().len() <= graph.nodes() + graph.defaults.len());
        }
    }
});
