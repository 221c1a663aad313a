//! Many random graphs end as the interpreter says.

use crate::random_graphs::{Outcome, check};

#[test]
fn random_graphs_end_as_the_interpreter_says() {
    let (mut ended, mut counted, mut stuck, mut failed) = (0, 0, 0, 0);
    for seed in 0..if cfg!(miri) { 3 } else { 80 } {
        let (outcome, is_counted) = check(seed);
        counted += u32::from(is_counted);
        match outcome {
            Outcome::Ended(..) => ended += 1,
            Outcome::Stuck(_) => stuck += 1,
            Outcome::Failed(_) => failed += 1,
        }
    }
    if !cfg!(miri) {
        let least = ended.min(counted).min(stuck).min(failed);
        assert!(least > 3, "{ended} ended, {counted} counted, {stuck} stuck, {failed} failed");
    }
}
