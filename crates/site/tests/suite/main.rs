//! The front ends and the tables that they make, in one program.

mod hostile;
mod passwords;
mod two_front_ends;
