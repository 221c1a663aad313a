//! The same programs under every scheduler.

use crate::programs::*;

under_every_scheduler! {
    a_tree_of_threads_is_joined
    threads_that_yield_all_come_to_their_end
    a_value_goes_round_a_ring
    ten_thousand_threads_wait_and_are_woken
    a_panic_reaches_the_joiner_and_no_other_thread
    a_panic_of_main_goes_on
    a_cancelled_thread_runs_its_destructors
    a_shielded_thread_is_cancelled_when_it_leaves_the_shield
    what_is_left_when_main_ends_is_cancelled
    exit_ends_a_thread_and_main_without_a_result
    os_threads_wake_threads
    os_threads_create_threads
    a_foreign_channel_carries_values_in_and_out
    threads_sleep_and_time_goes_on_however_many_are_ready
    a_local_thread_stays_on_its_os_thread
    random_programs_deliver_every_value_once
    random_programs_in_direct_style_deliver_every_value_once
    a_panic_in_an_action_is_its_threads_alone
    a_foreign_waker_that_panics_harms_no_other_thread
    threads_in_direct_style_block_like_ordinary_code
    a_cancelled_thread_in_direct_style_unwinds_its_stack
    a_panic_in_direct_style_reaches_the_thread_that_joins
}
