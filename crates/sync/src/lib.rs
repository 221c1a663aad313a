//! What threads share: MVar, Fifo, Mutex.
