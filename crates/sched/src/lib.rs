//! Ready-made schedulers over Selvedge threads.
