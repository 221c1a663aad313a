//! The parsers of depfiles and of dyndep files.
#![no_main]

use selvedge_make::canonical::canonicalize;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(depfile) = selvedge_make::depfile::parse(data) {
        for mut path in depfile.outputs.into_iter().chain(depfile.inputs) {
            assert!(!path.is_empty());
            canonicalize(&mut path);
            let once = path.clone();
            canonicalize(&mut path);
            assert_eq!(path, once, "a canonical path stays as it is");
        }
    }
    let manifest =
        b"rule r\n  command = r\nbuild a: r || dd\n  dyndep = dd\nbuild b: r || dd\n  dyndep = dd\n";
    let graph = selvedge_make::manifest::parse(b"build.ninja", manifest, &mut |_| unreachable!());
    let mut graph = graph.expect("the manifest is right");
    let file = graph.find(b"dd").expect("the manifest names it");
    if let Ok(edges) = selvedge_make::dyndep::load(&mut graph, file, data) {
        assert_eq!(edges.len(), 2);
        assert!(
            edges.iter().all(|edge| graph.outputs(*edge).all(|output| graph.maker(output) == Some(*edge)))
        );
    }
});
