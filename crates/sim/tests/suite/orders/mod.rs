//! Programs in every order of their threads, or in very many.

mod every_order;
mod primitives;
