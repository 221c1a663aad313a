//! The bytes of an FTP control connection: Telnet, lines, commands and their arguments.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((&cut, bytes)) = data.split_first() else { return };
    selvedge_ftpd::fuzz::commands(bytes, usize::from(cut));
});
