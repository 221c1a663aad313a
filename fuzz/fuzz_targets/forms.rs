//! Forms with files, and cookies.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((&cut, body)) = data.split_first() else { return };
    selvedge_web::fuzz::multipart(body, usize::from(cut));
    if let Ok(field) = std::str::from_utf8(body) {
        selvedge_web::fuzz::cookies(field);
    }
});
