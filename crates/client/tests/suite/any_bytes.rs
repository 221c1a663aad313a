//! The function of the fuzz target, with bytes that are likely to get far.

use proptest::prelude::*;
use selvedge_client::fuzz;

proptest! {
    #[test]
    fn answers(
        status in prop_oneof![Just("HTTP/1.1 200 OK\r\n"), Just("HTTP/1.0 204\r\n"), Just("HTTP/1.1 101 x\n")],
        lines in prop::collection::vec(
            prop_oneof![
                "(Content-Length|Transfer-Encoding|Connection|A): ?(chunked|5|close)?\r\n",
                "[ -~\r]{0,9}\n",
            ],
            0..4,
        ),
        noise in prop::collection::vec(any::<u8>(), 0..30),
    ) {
        fuzz::answers(format!("{status}{}\r\n", lines.concat()).as_bytes());
        fuzz::answers(&noise);
    }
}
