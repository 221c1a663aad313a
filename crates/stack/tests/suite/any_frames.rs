//! The function of the fuzz target, with bytes from a seed and with a conversation.

use selvedge_stack::fuzz;

/// The next number of the sequence SplitMix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[test]
fn a_conversation_is_accepted() {
    let (opens, acknowledges, accept) = ([3, 4, 0, 0x02, 0, 0x10], [3, 4, 0, 0x10, 0, 0x10], [5, 0]);
    let conversation = [&opens[..], &acknowledges, &accept].concat();
    assert_eq!(fuzz::frames(&conversation), 1);
    assert_eq!(fuzz::frames(&[&opens[..], &accept].concat()), 0);
}

#[test]
fn any_bytes_leave_a_stack_in_order() {
    for seed in 0..200 {
        let mut state = seed;
        let bytes: Vec<u8> = (0..400).flat_map(|_| random(&mut state).to_le_bytes()).collect();
        fuzz::frames(&bytes);
        // The same, with more that is well-formed: short pieces, and the flags of TCP.
        let mut actions = Vec::new();
        for _ in 0..200 {
            let [kind, port, flag, payload, ..] = random(&mut state).to_le_bytes();
            let flags = [0x02, 0x10, 0x18, 0x11, 0x04, 0x12][usize::from(flag % 6)];
            let payload = payload % 8;
            actions.extend([3 + kind % 5, 4 + payload, port, flags, 0, 0x10]);
            actions.extend((0..payload).map(|_| 7));
        }
        fuzz::frames(&actions);
    }
}
