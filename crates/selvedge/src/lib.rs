//! One concurrency system: threads, events and schedulers as one value.
