//! The functions of the fuzz targets, with bytes that are likely to get far.

use proptest::prelude::*;
use selvedge_gateway::fuzz;

fn head_bytes() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        "(Status|Location|Content-Type|Content-Length|X|status): ?[0-9a-z/: ]{0,9}\r?\n",
        Just("HTTP/1.1 200 OK\r\n".to_owned()),
        Just("Connection: x\n".to_owned()),
        "[ -~\r]{0,9}\n",
    ];
    prop::collection::vec(line, 0..5).prop_map(|lines| format!("{}\n", lines.concat()).into_bytes())
}

fn record_bytes() -> impl Strategy<Value = Vec<u8>> {
    let record = (0u8..13, prop::collection::vec(any::<u8>(), 0..20), 0u8..4, any::<bool>()).prop_map(
        |(kind, content, padding, is_whole)| {
            let padding_bytes = if is_whole { usize::from(padding) } else { 0 };
            let head = [1, kind, 0, 1, 0, content.len() as u8, padding, 0];
            [&head[..], &content, &vec![0; padding_bytes]].concat()
        },
    );
    prop::collection::vec(record, 0..5).prop_map(|records| records.concat())
}

proptest! {
    #[test]
    fn heads(data in head_bytes()) {
        fuzz::program_heads(&data);
    }

    #[test]
    fn records(data in record_bytes(), noise in prop::collection::vec(any::<u8>(), 0..30)) {
        fuzz::records(&data);
        fuzz::records(&noise);
        fuzz::program_heads(&noise);
    }
}
