//! Threads that are events: the one-shot thread, its trace of system calls, and the wait queue.
