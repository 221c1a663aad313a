//! The readers of both logs.
#![no_main]

use selvedge_make::log::{build_log, deps_log};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let read = build_log::read(data);
    assert!(read.whole <= data.len());
    assert!(read.lines.iter().all(|(path, _)| !path.is_empty()));
    // The signature is put in front, because few inputs would have it.
    for text in [data.to_vec(), [b"# ninjadeps\n\x04\0\0\0", data].concat()] {
        let Some((records, whole)) = deps_log::read(&text) else { continue };
        assert!(whole <= text.len());
        let mut paths = 0;
        for record in records {
            match record {
                deps_log::Record::Path(path) => {
                    assert!(!path.is_empty());
                    paths += 1;
                }
                deps_log::Record::Deps { output, inputs, .. } => {
                    assert!(inputs.iter().chain([&output]).all(|number| *number < paths));
                }
            }
        }
    }
});
