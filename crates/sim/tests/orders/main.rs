//! Programs in every order of their threads, or in very many, in one program.

mod every_order;
mod primitives;
