//! The work of several OS threads while one comparison in four fails without cause. So attempts
//! begin again at places where a conflict is rare, and their effects are undone there.

use crate::{shaken_alone, workloads};
use selvedge_stm::Engine;

fn no_sum_is_wrong_in_any_audit<E: Engine>() {
    let _alone = shaken_alone(4);
    workloads::no_sum_is_wrong_in_any_audit::<E>();
}

fn no_wake_up_is_lost<E: Engine>() {
    let _alone = shaken_alone(4);
    workloads::no_wake_up_is_lost::<E>();
}

fn either_branch_is_woken<E: Engine>() {
    let _alone = shaken_alone(4);
    workloads::either_branch_is_woken::<E>();
}

under_each_engine! {
    no_sum_is_wrong_in_any_audit
    no_wake_up_is_lost
    either_branch_is_woken
}
