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
        if left > 0 { Ok(second.to_vec()) } else { Err("no more".to_string()) }
    };
    match parse(b"build.ninja", first, &mut load) {
        Err(misread) => {
            assert!(misread.line > 0 && misread.column > 0);
            assert!(misread.to_string().contains(&misread.message));
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
